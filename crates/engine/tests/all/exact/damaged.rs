//! A damaged repository, or an interruption, and what it leaves in the target: never a file that looks like the
//! snapshot's and is not.

use super::*;
use crate::common::{entry_path, heard_by, log::Log, noise, tree};
use siltstone_engine::fs::{DAMAGED_SUFFIX, DRAFT_PREFIX};
use siltstone_engine::restore::{self, Overwrite, RestoreOptions, RestoreSummary};
use siltstone_engine::{EngineError, Observer, Resources};
use siltstone_store::storage::{Damage, Listing, ObjectName, SimulatedDisk, Storage};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// A snapshot of several files on a disk that can be damaged and healed.
struct Scene {
    disk: SimulatedDisk,
    sandbox: Sandbox,
    id: SnapshotId,
    target: TempDir,
}

impl Scene {
    fn new(fill: impl Fn(&Sandbox)) -> Self {
        let disk = SimulatedDisk::new();
        let sandbox = Sandbox::on(Arc::new(disk.clone()));
        fill(&sandbox);
        let id = sandbox.backup();
        Self { disk, sandbox, id, target: folder() }
    }

    /// Files of 30 kB that do not compress, all older than the restore.
    fn of_files(count: u64) -> Self {
        Self::new(|sandbox| {
            for number in 0..count {
                let name = format!("folder/{number:03}");
                sandbox.write(&name, &noise(number, 30_000));
                let file = fs::File::options().write(true).open(sandbox.source().join(name)).expect("opened");
                file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_500_000_001)).expect("a time");
            }
        })
    }

    fn options(&self) -> RestoreOptions {
        let below = Some(entry_path(&self.sandbox.source()));
        self.sandbox.restore_options(self.target.path()).with_below(below).with_verify(false)
    }

    fn try_restore(
        &self,
        change: impl Fn(&mut RestoreOptions),
        resources: &Resources,
    ) -> Result<RestoreSummary, EngineError> {
        let mut options = self.options();
        change(&mut options);
        restore::restore(&self.sandbox.repository(), &self.sandbox.view(self.id), &options, resources)
    }

    fn restore(&self, change: impl Fn(&mut RestoreOptions)) -> (RestoreSummary, Log) {
        let log = Log::default();
        (self.try_restore(change, &heard_by(&log)).expect("a restore"), log)
    }

    /// Flips a byte a third into the largest container; flipping it again heals it.
    fn flip(&self) {
        let listed = self.disk.list(Listing::All).expect("a list");
        let containers = listed.iter().filter(|meta| matches!(meta.name, ObjectName::Container(..)));
        let largest = containers.max_by_key(|meta| meta.bytes).expect("a container");
        assert!(self.disk.damage(&largest.name, Damage::Flip { offset: largest.bytes / 3, mask: 1 }));
    }

    /// The files found in the target that the snapshot has too, and that differ from it in content.
    fn wrong(&self) -> Vec<String> {
        let (wanted, found) = (tree::read(&self.sandbox.source()), tree::read(self.target.path()));
        let differs = |(name, node): &(&Vec<u8>, &tree::Node)| {
            wanted.get(*name).is_some_and(|wanted| (wanted.kind, &wanted.content) != (node.kind, &node.content))
        };
        found.iter().filter(differs).map(|(name, _)| String::from_utf8_lossy(name).into_owned()).collect()
    }

    fn differences(&self) -> Vec<String> {
        let [mut found, mut wanted] = [self.target.path(), &self.sandbox.source()].map(tree::read);
        for tree in [&mut wanted, &mut found] {
            tree.remove(&b""[..]);
        }
        tree::differences(&found, &wanted)
    }

    /// Names in the target that begin or end so.
    fn names(&self, is_meant: impl Fn(&str) -> bool) -> Vec<String> {
        let names = tree::read(self.target.path()).into_keys().map(|name| String::from_utf8(name).expect("text"));
        names.filter(|name| is_meant(name.rsplit('/').next().unwrap_or(name))).collect()
    }

    fn drafts(&self) -> Vec<String> {
        self.names(|name| name.starts_with(DRAFT_PREFIX))
    }
}

/// Asks to stop once so many bytes are restored.
struct StopsAfter {
    left: AtomicU64,
}

impl Observer for StopsAfter {
    fn advance(&self, _: u64, bytes: u64) {
        let less = |left: u64| Some(left.saturating_sub(bytes));
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).expect("always some");
    }

    fn is_cancelled(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }
}

/// The story: one flipped byte left files with the snapshot's size and time and nothing but zeros; when the repository
/// was whole again, `if-changed` took them for restored and `verify` did not look at them.
#[test]
fn a_damaged_file_is_left_out_and_restored_when_the_repository_is_whole_again() {
    let scene = Scene::of_files(60);
    scene.flip();
    let (summary, log) = scene.restore(|_| ());
    assert!(summary.problems > 0 && summary.files_restored < 60, "{summary:?}");
    assert_eq!(summary.problems + summary.files_restored, 60, "every file is restored or named");
    assert!(log.tells_of("has damaged content"));
    assert_eq!(scene.wrong(), [""; 0], "what is there is right");
    assert_eq!(scene.drafts(), [""; 0]);
    scene.flip();
    let missing = 60 - summary.files_restored;
    let (summary, log) = scene.restore(|options| (options.overwrite, options.verify) = (Overwrite::IfChanged, true));
    assert_eq!((summary.files_restored, log.problems()), (missing, Vec::new()));
    assert_eq!(scene.differences(), [""; 0]);
}

#[test]
fn verify_finds_kept_files_that_only_look_right_and_if_changed_restores_them() {
    let scene = Scene::of_files(9);
    scene.restore(|_| ());
    let spoil = |name: &str, content: &[u8]| {
        let path = scene.target.path().join("folder").join(name);
        let time = fs::metadata(&path).expect("status").modified().expect("a time");
        fs::write(&path, content).expect("written");
        fs::File::options().write(true).open(&path).expect("opened").set_modified(time).expect("a time");
    };
    let mut flipped = noise(7, 30_000);
    flipped[29_999] ^= 1;
    let truncated = noise(5, 10_000);
    for mode in [Overwrite::Never, Overwrite::IfNewer] {
        spoil("003", &vec![0; 30_000]);
        spoil("005", &truncated);
        spoil("007", &flipped);
        let (summary, log) = scene.restore(|options| (options.overwrite, options.verify) = (mode, true));
        assert_eq!((summary.problems, summary.files_kept, summary.files_verified), (3, 9, 6), "{mode:?}");
        assert!(["003", "005", "007"].iter().all(|name| log.tells_of(name)), "{:?}", log.problems());
        let (summary, _) = scene.restore(|options| options.overwrite = mode);
        assert_eq!((summary.problems, summary.files_kept), (0, 9), "without it nothing is read");
    }
    let change = |options: &mut RestoreOptions| (options.overwrite, options.verify) = (Overwrite::IfChanged, true);
    let (planned, _) = scene.restore(|options| {
        change(options);
        options.dry_run = true;
    });
    let (summary, log) = scene.restore(change);
    assert_eq!((summary.files_restored, summary.files_kept, summary.files_verified), (3, 6, 9));
    assert_eq!((planned.files_restored, planned.files_kept), (3, 6), "a dry run looks as closely");
    assert_eq!(log.problems(), [""; 0]);
    assert_eq!(log.notices().len(), 2, "two had the snapshot's size and time: {:?}", log.notices());
    assert_eq!(scene.differences(), [""; 0]);
}

#[test]
fn what_could_be_had_of_a_damaged_file_is_kept_aside_if_wanted() {
    let scene = Scene::new(|sandbox| {
        let content: Vec<u8> = (0..30).flat_map(|number| noise(number, 100_000)).collect();
        sandbox.write("image", &content);
    });
    scene.flip();
    let (summary, log) = scene.restore(|options| (options.keep_damaged, options.delete) = (true, true));
    assert_eq!((summary.problems, summary.files_restored), (1, 0), "{:?}", log.problems());
    assert!(log.tells_of("image.silt-damaged"), "{:?}", log.problems());
    assert_eq!(tree::listing(scene.target.path()), ["image.silt-damaged"]);
    let aside = scene.target.path().join(format!("image{DAMAGED_SUFFIX}"));
    let (wanted, found) = (scene.sandbox.source().join("image"), fs::read(&aside).expect("read"));
    let same = fs::read(&wanted).expect("read").chunks(1000).zip(found.chunks(1000)).filter(|(a, b)| a == b).count();
    assert_eq!(found.len(), 3_000_000);
    assert!((500..3000).contains(&same), "{same} of 3000 parts are the snapshot's");
    let times = [&wanted, &aside].map(|path| fs::metadata(path).expect("status").mtime_nsec());
    assert_ne!(times[0], times[1], "it is not as old as the file it stands for");
    // Once the repository is whole, the file comes beside it; what was kept goes with --delete.
    scene.flip();
    scene.restore(|_| ());
    assert_eq!(tree::listing(scene.target.path()), ["image", "image.silt-damaged"]);
    scene.restore(|options| options.delete = true);
    assert_eq!(scene.differences(), [""; 0]);
}

#[test]
fn what_is_kept_aside_never_takes_the_place_of_something_else() {
    let scene = Scene::new(|sandbox| sandbox.write("a", &noise(1, 100_000)));
    fs::write(scene.target.path().join("a.silt-damaged"), "of the user").expect("written");
    scene.flip();
    let (summary, log) = scene.restore(|options| options.keep_damaged = true);
    assert_eq!(summary.problems, 2, "{:?}", log.problems());
    assert_eq!(fs::read(scene.target.path().join("a.silt-damaged")).expect("read"), b"of the user");
    assert_eq!(scene.drafts(), [""; 0]);
}

#[test]
fn further_names_of_a_damaged_file_are_not_made() {
    let scene = Scene::new(|sandbox| {
        sandbox.write("a", &noise(1, 100_000));
        fs::hard_link(sandbox.source().join("a"), sandbox.source().join("b")).expect("linked");
    });
    scene.flip();
    for keep_damaged in [false, true] {
        let (summary, log) = scene.restore(|options| options.keep_damaged = keep_damaged);
        assert_eq!(summary.problems, 2, "{:?}", log.problems());
        assert!(log.tells_of("another name of"), "{:?}", log.problems());
        assert_eq!(scene.names(|name| name == "a" || name == "b"), [""; 0]);
    }
}

/// The story: Ctrl-C left 83 of 314 MB under the final name, which `if-newer` and `never` then kept.
#[test]
fn an_interrupted_restore_leaves_whole_files_only() {
    const BYTES: u64 = 3_000_000;
    let scene = Scene::new(|sandbox| {
        let content: Vec<u8> = (0..30).flat_map(|number| noise(number, 100_000)).collect();
        sandbox.write("large", &content);
        for number in 0..40 {
            sandbox.write(&format!("small/{number}"), &noise(100 + number, 20_000));
        }
    });
    let mut stopped = 0;
    for left in (1..BYTES + 800_000).step_by(600_000) {
        for memory_bytes in [256 << 20, 10_000] {
            let observer = Arc::new(StopsAfter { left: left.into() });
            let resources = Resources::default().with_memory_bytes(memory_bytes).with_observer(observer);
            let outcome = scene.try_restore(|_| (), &resources);
            stopped += u64::from(matches!(outcome, Err(EngineError::Interrupted)));
            assert_eq!(scene.wrong(), [""; 0], "after {left} bytes");
            assert_eq!(scene.drafts(), [""; 0], "after {left} bytes");
            for mode in [Overwrite::IfNewer, Overwrite::Never] {
                let (summary, _) = scene.restore(|options| (options.overwrite, options.verify) = (mode, true));
                assert_eq!(summary.problems, 0);
                assert_eq!(scene.differences(), [""; 0], "{mode:?} completes what was begun");
            }
            for name in ["large", "small"] {
                let path = scene.target.path().join(name);
                if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.expect("removed");
            }
        }
    }
    assert!(stopped >= 6, "{stopped} restores were stopped on their way");
}

#[test]
fn drafts_of_a_killed_restore_are_swept_by_the_next_one() {
    let scene = Scene::of_files(4);
    scene.restore(|_| ());
    let dead = format!("{DRAFT_PREFIX}0123456789abcdef-d1f");
    let alike = [format!("{DRAFT_PREFIX}notes"), format!("{DRAFT_PREFIX}0123456789abcdef-d1f.txt")];
    for name in alike.iter().chain([&dead]) {
        fs::write(scene.target.path().join("folder").join(name), "half").expect("written");
    }
    let (summary, _) = scene.restore(|options| (options.overwrite, options.dry_run) = (Overwrite::Never, true));
    assert_eq!((summary.problems, scene.drafts().len()), (0, 3), "a dry run removes nothing");
    scene.restore(|options| options.overwrite = Overwrite::Never);
    let left = scene.drafts();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(alike.iter().all(|name| left.iter().any(|left| left.ends_with(name.as_str()))), "{left:?}");
}

#[test]
fn a_problem_is_told_in_one_line() {
    let scene = Scene::of_files(2);
    scene.flip();
    let (_, log) = scene.restore(|_| ());
    let told: Vec<String> = log.problems();
    assert!(told.iter().all(|line| !line.contains('\n') && line.ends_with("; it is left out")), "{told:?}");
}
