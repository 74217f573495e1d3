//! Restoring where something stands already: overwrite modes, `--delete`, things in the way, links that lead outside.

use super::*;
use crate::common::{self, entry_path, faults::forget_parity, heard_by, log::Log, tree};
use siltstone_engine::restore::{self, Overwrite, RestoreOptions, RestoreSummary};
use siltstone_store::storage::{Damage, ObjectName, SimulatedDisk};
use std::os::unix::fs::{MetadataExt, symlink};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A snapshot of a folder, to be restored with that folder becoming the target.
pub(super) struct Scene {
    pub(super) sandbox: Sandbox,
    pub(super) id: SnapshotId,
    pub(super) target: TempDir,
}

impl Scene {
    pub(super) fn new(sandbox: Sandbox) -> Self {
        let id = sandbox.backup();
        Self { sandbox, id, target: folder() }
    }

    fn options(&self) -> RestoreOptions {
        let below = Some(entry_path(&self.sandbox.source()));
        self.sandbox.restore_options(self.target.path()).with_below(below)
    }

    pub(super) fn restore(&self, change: impl Fn(&mut RestoreOptions)) -> (RestoreSummary, Log) {
        let (mut options, log) = (self.options(), Log::default());
        change(&mut options);
        let (repository, view) = (self.sandbox.repository(), self.sandbox.view(self.id));
        (restore::restore(&repository, &view, &options, &heard_by(&log)).expect("a restore"), log)
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.target.path().join(name)
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.at(name)).expect("read")
    }

    /// Entries of the target, the folder itself apart.
    pub(super) fn found(&self) -> tree::Tree {
        let mut found = tree::read(self.target.path());
        found.remove(&b""[..]);
        found
    }

    /// Entries that the target lacks or has too much, the folder itself apart.
    pub(super) fn differences(&self) -> Vec<String> {
        let mut wanted = tree::read(&self.sandbox.source());
        wanted.remove(&b""[..]);
        tree::differences(&self.found(), &wanted)
    }
}

fn set_modified(path: impl AsRef<Path>, time: SystemTime) {
    fs::File::options().write(true).open(path).expect("opened").set_modified(time).expect("a time");
}

/// Four files; in the target the first is as in the snapshot, the second older, the third newer, the fourth missing.
fn four_files() -> Scene {
    let sandbox = Sandbox::new();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000);
    for name in ["same", "older", "newer", "missing"] {
        sandbox.write(name, format!("{name} in the snapshot").as_bytes());
        set_modified(sandbox.source().join(name), time);
    }
    let scene = Scene::new(sandbox);
    for (name, content, time) in [
        ("same", "same in the snapshot", time),
        ("older", "an older one", time - Duration::from_secs(5)),
        ("newer", "a newer one", time + Duration::from_secs(5)),
    ] {
        fs::write(scene.at(name), content).expect("written");
        set_modified(scene.at(name), time);
    }
    scene
}

#[test]
fn each_overwrite_mode_replaces_what_it_says() {
    for (mode, kept) in [
        (Overwrite::Always, &[][..]),
        (Overwrite::IfChanged, &["same"]),
        (Overwrite::IfNewer, &["same", "newer"]),
        (Overwrite::Never, &["same", "older", "newer"]),
    ] {
        let scene = four_files();
        let inodes =
            |scene: &Scene| ["same", "older", "newer"].map(|name| fs::metadata(scene.at(name)).expect("status").ino());
        let before = inodes(&scene);
        let (planned, _) = scene.restore(|options| (options.overwrite, options.dry_run) = (mode, true));
        assert_eq!(inodes(&scene), before, "a dry run writes nothing");
        assert!(!scene.at("missing").exists());
        let (summary, _) = scene.restore(|options| options.overwrite = mode);
        assert_eq!(
            (summary.files_kept, summary.files_restored),
            (kept.len() as u64, 4 - kept.len() as u64),
            "{mode:?}"
        );
        assert_eq!(
            (planned.files_kept, planned.files_restored),
            (summary.files_kept, summary.files_restored),
            "{mode:?}"
        );
        for (at, name) in ["same", "older", "newer"].into_iter().enumerate() {
            let is_restored = scene.read(name) == format!("{name} in the snapshot").as_bytes();
            assert_eq!(is_restored, !kept.contains(&name) || name == "same", "{mode:?}: {name}");
            assert_eq!(inodes(&scene)[at] == before[at], kept.contains(&name), "{mode:?}: {name}");
        }
        assert_eq!(scene.read("missing"), b"missing in the snapshot", "{mode:?}");
        if mode == Overwrite::Always {
            assert_eq!(scene.differences(), [""; 0]);
        }
    }
}

/// A kept file once got the further names that the snapshot gives to another content.
#[test]
fn names_of_a_replaced_file_do_not_go_to_what_was_kept() {
    let sandbox = Sandbox::new();
    sandbox.write("a", b"content of the snapshot");
    fs::hard_link(sandbox.source().join("a"), sandbox.source().join("b")).expect("linked");
    let scene = Scene::new(sandbox);
    fs::write(scene.at("a"), "of the user").expect("written");
    scene.restore(|options| options.overwrite = Overwrite::Never);
    assert_eq!((scene.read("a"), scene.read("b")), (b"of the user".to_vec(), b"content of the snapshot".to_vec()));
    scene.restore(|_| ());
    assert_eq!(scene.differences(), [""; 0], "and with permission both are the file of the snapshot");
}

/// The draft of a damaged file is given up and what stood there stays; its further names once became links to that.
#[test]
fn names_of_a_damaged_file_do_not_go_to_what_stood_there() {
    let disk = Arc::new(SimulatedDisk::new());
    let sandbox = Sandbox::on(disk.clone());
    sandbox.write("a", &common::noise(1, 100_000));
    fs::hard_link(sandbox.source().join("a"), sandbox.source().join("b")).expect("linked");
    let scene = Scene::new(sandbox);
    fs::write(scene.at("a"), "of the user").expect("written");
    let largest = |name: &&ObjectName| {
        let objects = scene.sandbox.repository();
        objects.storage().read(name, u64::MAX).map_or(0, |bytes| bytes.len())
    };
    let names: Vec<_> = disk.names().into_iter().filter(|name| matches!(name, ObjectName::Container(..))).collect();
    let data = names.iter().max_by_key(largest).expect("a container");
    assert!(disk.damage(data, Damage::Flip { offset: 5000, mask: 1 }));
    let (summary, log) = scene.restore(|_| ());
    assert_eq!(scene.read("a"), b"of the user");
    assert!(!scene.at("b").exists());
    assert_eq!(summary.problems, 2, "{:?}", log.problems());
    assert!(log.tells_of("another name of"), "{:?}", log.problems());
    assert_eq!(tree::listing(scene.target.path()), ["a"], "no draft is left");
}

#[test]
fn delete_removes_what_the_snapshot_does_not_hold_and_nothing_else() {
    let sandbox = Sandbox::new();
    sandbox.write("folder/kept", b"1");
    sandbox.write("now a file", b"2");
    sandbox.symlink("now a link", "x");
    let scene = Scene::new(sandbox);
    let outside = folder();
    fs::write(outside.path().join("precious"), "3").expect("written");
    for name in ["folder/extra/deep/er", "extra/file", "now a file/with/content", "now a link/with/content"] {
        fs::create_dir_all(scene.at(name)).expect("made");
        fs::write(scene.at(name).join("x"), "x").expect("written");
    }
    symlink(outside.path(), scene.at("extra link")).expect("linked");
    symlink(outside.path(), scene.at("extra/link")).expect("linked");
    let (planned, _) = scene.restore(|options| (options.delete, options.dry_run) = (true, true));
    assert!(planned.deleted > 0 && scene.at("extra/file").exists());
    let (summary, log) = scene.restore(|options| options.delete = true);
    assert_eq!((summary.problems, log.problems()), (0, Vec::new()));
    assert_eq!(scene.differences(), [""; 0]);
    assert_eq!(fs::read(outside.path().join("precious")).expect("read"), b"3");
}

#[test]
fn without_delete_a_folder_with_content_is_never_removed() {
    let sandbox = Sandbox::new();
    sandbox.write("a", b"1");
    sandbox.write("b", b"2");
    let scene = Scene::new(sandbox);
    fs::create_dir(scene.at("a")).expect("made");
    fs::create_dir(scene.at("b")).expect("made");
    fs::write(scene.at("b/of the user"), "3").expect("written");
    let (summary, log) = scene.restore(|_| ());
    assert_eq!(scene.read("a"), b"1", "an empty folder gives way");
    assert_eq!(scene.read("b/of the user"), b"3");
    assert_eq!(tree::listing(scene.target.path()), ["a", "b"], "no draft is left");
    assert!(summary.problems >= 1 && log.tells_of("a directory has its name"), "{:?}", log.problems());
}

#[test]
fn a_link_planted_in_the_target_leads_nowhere() {
    let sandbox = Sandbox::new();
    sandbox.write("folder/below/file", b"of the snapshot");
    sandbox.write("file", b"of the snapshot");
    let outside = folder();
    fs::create_dir(outside.path().join("below")).expect("made");
    for name in ["precious", "below/file", "file"] {
        fs::write(outside.path().join(name), "untouched").expect("written");
    }
    let before = tree::read(outside.path());
    let mut scene = Scene::new(sandbox);
    for mode in [Overwrite::Always, Overwrite::IfChanged, Overwrite::IfNewer, Overwrite::Never] {
        for delete in [false, true] {
            scene.target = folder();
            symlink(outside.path(), scene.at("folder")).expect("linked");
            symlink(outside.path().join("precious"), scene.at("file")).expect("linked");
            let (summary, _) = scene.restore(|options| (options.overwrite, options.delete) = (mode, delete));
            assert_eq!(tree::differences(&tree::read(outside.path()), &before), [""; 0], "{mode:?}");
            match mode {
                Overwrite::Always | Overwrite::IfChanged => assert_eq!(scene.differences(), [""; 0], "{mode:?}"),
                Overwrite::Never => assert!(summary.problems > 0 && scene.at("folder").is_symlink()),
                Overwrite::IfNewer => {}
            }
        }
    }
}

#[test]
fn the_target_itself_may_be_reached_by_a_link_and_keeps_its_metadata() {
    let sandbox = Sandbox::new();
    sandbox.write("file", b"1");
    set_mode(sandbox.source(), 0o750);
    let mut scene = Scene::new(sandbox);
    set_mode(scene.target.path(), 0o711);
    let way = folder();
    symlink(scene.target.path(), way.path().join("link")).expect("linked");
    let (summary, _) = scene.restore(|options| options.target = way.path().join("link"));
    assert_eq!((summary.problems, scene.read("file")), (0, b"1".to_vec()));
    assert_eq!(fs::metadata(scene.target.path()).expect("status").mode() & 0o7777, 0o711);
    // One that is made for the restore becomes what the snapshot holds.
    scene.restore(|options| options.target = way.path().join("new/target"));
    scene.target = way;
    assert_eq!(fs::metadata(scene.at("new/target")).expect("status").mode() & 0o7777, 0o750);
}

#[test]
fn unwritable_folders_are_no_obstacle() {
    let sandbox = Sandbox::new();
    sandbox.write("folder/file", b"1");
    set_mode(sandbox.source().join("folder"), 0o500);
    let scene = Scene::new(sandbox);
    for _ in 0..2 {
        let (summary, log) = scene.restore(|_| ());
        assert_eq!((summary.problems, log.problems()), (0, Vec::new()));
        assert_eq!(scene.differences(), [""; 0]);
    }
    for folder in [scene.at("folder"), scene.sandbox.source().join("folder")] {
        set_mode(folder, 0o700);
    }
}

/// The folder's own entry lies in the damaged part of the catalog; what it holds once could not be restored for want of
/// a parent.
#[test]
fn a_damaged_part_of_the_catalog_costs_only_what_it_lists() {
    const FILES: usize = 12_000;
    let disk = Arc::new(SimulatedDisk::new());
    let sandbox = Sandbox::on(disk.clone());
    let mut names: Vec<String> = Vec::new();
    for number in 0..FILES {
        // Long names that do not compress: more than a region of them.
        let half = |number: usize| blake3::hash(&number.to_le_bytes()).to_hex();
        let name = format!("{}{}", half(number), half(number + FILES));
        sandbox.write(&format!("folder/{name}"), b"");
        names.push(name);
    }
    let scene = Scene::new(sandbox);
    let metadata =
        disk.names().into_iter().find(|name| matches!(name, ObjectName::Container(..))).expect("a container");
    assert!(disk.damage(&metadata, Damage::Flip { offset: 1000, mask: 1 }));
    forget_parity(&disk);
    let target = folder();
    let log = Log::default();
    let options = scene.sandbox.restore_options(target.path());
    let view = scene.sandbox.view(scene.id);
    let summary = restore::restore(&scene.sandbox.repository(), &view, &options, &heard_by(&log)).expect("a restore");
    assert!(log.tells_of("the catalog: is damaged"), "{:?}", log.problems());
    let restored = usize::try_from(summary.files_restored).expect("small");
    assert!((FILES / 10..FILES).contains(&restored), "{restored} of {FILES} files");
    let found = target.path().join(scene.sandbox.source().strip_prefix("/").expect("absolute")).join("folder");
    assert_eq!(tree::listing(&found).len(), restored);
    names.sort();
    assert_eq!(tree::listing(&found).last().and_then(|name| name.to_str()), names.last().map(String::as_str));
}
