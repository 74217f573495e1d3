//! A file that stands where a folder of the snapshot belongs stays as it is, or goes; and files that only have the name
//! of a draft are restored as all others. What is told of all of them has the snapshot's paths.

use super::over_existing::Scene;
use crate::common::log::Log;
use crate::common::{Sandbox, entry_path, heard_by, tree};
use rustix::fs::XattrFlags;
use siltstone_engine::fs::{DRAFT_PREFIX, Problem, Subject};
use siltstone_engine::restore::{self, Overwrite, RestoreSummary};
use siltstone_engine::{EntryAction, Observer};
use siltstone_store::catalog::EntryPath;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// When the folder was changed that the snapshot holds.
const SNAPSHOT: Duration = Duration::new(1_600_000_000, 0);
const BEFORE: Duration = Duration::new(1_500_000_000, 0);
const AFTER: Duration = Duration::new(1_700_000_000, 0);

fn set_modified(path: &Path, since: Duration) {
    File::open(path).expect("opened").set_modified(SystemTime::UNIX_EPOCH + since).expect("a time");
}

/// A folder `d` in the snapshot, and in the target a file of that name with this time.
fn file_for_folder(modified: Duration) -> Scene {
    let sandbox = Sandbox::new();
    sandbox.write("d/file", b"of the snapshot");
    sandbox.write("d/below/file", b"of the snapshot, too");
    set_modified(&sandbox.source().join("d"), SNAPSHOT);
    let scene = Scene::new(sandbox);
    let file = scene.at("d");
    fs::write(&file, "of the user").expect("written");
    fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("permissions");
    rustix::fs::lsetxattr(&file, "user.note", b"a note", XattrFlags::empty()).expect("an attribute");
    set_modified(&file, modified);
    scene
}

fn sorted(log: &Log) -> Vec<String> {
    let mut problems = log.problems();
    problems.sort();
    problems
}

/// The story: the file was left, and then got the permissions, the times and the attributes of the folder; or it went,
/// though it was newer.
#[test]
fn a_file_that_stays_where_a_folder_belongs_stays_as_it_is() {
    let kept = [
        (Overwrite::Never, BEFORE),
        (Overwrite::Never, AFTER),
        (Overwrite::IfNewer, SNAPSHOT),
        (Overwrite::IfNewer, AFTER),
    ];
    for (mode, modified) in kept {
        for delete in [false, true] {
            let (scene, story) = (file_for_folder(modified), format!("{mode:?}, delete {delete}"));
            let before = scene.found();
            let (planned, told) = scene.restore(|options| {
                (options.overwrite, options.delete, options.dry_run) = (mode, delete, true);
            });
            let (summary, log) = scene.restore(|options| (options.overwrite, options.delete) = (mode, delete));
            assert_eq!(tree::differences(&scene.found(), &before), [""; 0], "{story}");
            let problems = sorted(&log);
            assert_eq!(summary.problems, 4, "each entry is told once: {problems:?}, {story}");
            assert!(problems.iter().all(|problem| problem.contains("is blocked")), "{problems:?}, {story}");
            assert_eq!(sorted(&told), problems, "{story}");
            let counts = |of: &RestoreSummary| (of.entries, of.files_restored, of.bytes_total, of.problems);
            assert_eq!(counts(&planned), counts(&summary), "{story}");
        }
    }
}

#[test]
fn a_file_gives_way_to_a_folder_where_it_may_be_replaced() {
    let replaced = [
        (Overwrite::Always, AFTER),
        (Overwrite::IfChanged, AFTER),
        (Overwrite::IfChanged, SNAPSHOT),
        (Overwrite::IfNewer, BEFORE),
    ];
    for (mode, modified) in replaced {
        let scene = file_for_folder(modified);
        let (planned, _) = scene.restore(|options| (options.overwrite, options.dry_run) = (mode, true));
        assert_eq!((planned.problems, planned.files_restored), (0, 2), "{mode:?}");
        let (summary, log) = scene.restore(|options| options.overwrite = mode);
        assert_eq!((summary.problems, log.problems()), (0, Vec::new()), "{mode:?}");
        assert_eq!(scene.differences(), [""; 0], "{mode:?}");
    }
}

/// The story: a file of the snapshot with such a name was restored, verified, and then taken for what a killed restore
/// had left.
#[test]
fn a_file_with_the_name_of_a_draft_is_restored_and_what_a_killed_restore_left_goes() {
    let draft = |serial: u32| format!("{DRAFT_PREFIX}0123456789abcdef-d{serial}");
    let folders = ["", "folder/"];
    let sandbox = Sandbox::new();
    for folder in folders {
        sandbox.write(&format!("{folder}{}", draft(1)), b"of the snapshot");
    }
    let scene = Scene::new(sandbox);
    fs::create_dir(scene.at("folder")).expect("made");
    for mode in [Overwrite::Always, Overwrite::IfChanged, Overwrite::IfNewer, Overwrite::Never] {
        for delete in [false, true] {
            for folder in folders {
                fs::write(scene.at(&format!("{folder}{}", draft(2))), "half").expect("written");
            }
            let (summary, log) = scene.restore(|options| (options.overwrite, options.delete) = (mode, delete));
            assert_eq!((summary.problems, log.problems()), (0, Vec::new()), "{mode:?}");
            assert_eq!(summary.files_verified, 2, "{mode:?}");
            assert_eq!(scene.differences(), [""; 0], "{mode:?}, delete {delete}");
        }
    }
}

/// Content of such a file stays, too, where files that are there are kept.
#[test]
fn a_kept_file_with_the_name_of_a_draft_is_not_swept() {
    let name = format!("{DRAFT_PREFIX}0123456789abcdef-d1");
    let sandbox = Sandbox::new();
    sandbox.write(&name, b"of the snapshot");
    let scene = Scene::new(sandbox);
    fs::write(scene.at(&name), "of the user").expect("written");
    let (summary, _) = scene.restore(|options| (options.overwrite, options.verify) = (Overwrite::Never, false));
    assert_eq!((summary.files_kept, summary.problems), (1, 0));
    assert_eq!(fs::read(scene.at(&name)).expect("read"), b"of the user");
}

/// Lines about entries and problems.
#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl Lines {
    fn add(&self, line: String) {
        self.0.lock().expect("a lock").push(line);
    }

    fn sorted(&self) -> Vec<String> {
        let mut lines = self.0.lock().expect("a lock").clone();
        lines.sort();
        lines
    }
}

impl Observer for Lines {
    fn entry(&self, path: &EntryPath, action: EntryAction, _: u64) {
        self.add(format!("{action:?} {}", Subject::Entry(path.clone())));
    }

    fn wants_entries(&self) -> bool {
        true
    }

    fn problem(&self, problem: &Problem) {
        self.add(problem.to_string());
    }
}

/// The story: of a folder that was restored, what was written had paths in the target, what was kept had those in the
/// snapshot, and a dry run told other ones than the run.
#[test]
fn a_restore_of_a_folder_and_its_dry_run_tell_the_paths_of_the_snapshot() {
    let sandbox = Sandbox::new();
    for name in ["blocked/file", "folder/new", "kept", "one"] {
        sandbox.write(name, name.as_bytes());
    }
    fs::hard_link(sandbox.source().join("one"), sandbox.source().join("other")).expect("linked");
    sandbox.symlink("link", "one");
    let scene = Scene::new(sandbox);
    fs::create_dir(scene.at("extra")).expect("made");
    for name in ["blocked", "extra/deep", "kept"] {
        fs::write(scene.at(name), "of the user").expect("written");
    }
    let told = |below: &Path, dry_run: bool| {
        let options = scene.sandbox.restore_options(scene.target.path()).with_below(Some(entry_path(below)));
        let options = options.with_overwrite(Overwrite::Never).with_verify(false).with_dry_run(dry_run);
        let options = options.with_delete(below == scene.sandbox.source());
        let lines: Arc<Lines> = Arc::default();
        let observer: Arc<dyn Observer> = lines.clone();
        let (repository, view) = (scene.sandbox.repository(), scene.sandbox.view(scene.id));
        restore::restore(&repository, &view, &options, &heard_by(observer)).expect("a restore");
        lines.sorted()
    };
    let source = scene.sandbox.source();
    let at = |name: &str| source.join(name).display().to_string();
    let mut expected = vec![
        format!("Deleted {}", at("extra")),
        format!("Deleted {}", at("extra/deep")),
        format!("Kept {}", at("kept")),
        format!("{}: is blocked: something else has its name", at("blocked")),
        format!("{}: is blocked: something on the way to it is no directory", at("blocked/file")),
    ];
    expected.extend(["folder/new", "link", "one", "other"].map(|name| format!("Restored {}", at(name))));
    expected.sort();
    for dry_run in [true, false] {
        assert_eq!(told(&source, dry_run), expected, "dry run {dry_run}");
    }
    fs::remove_file(scene.at("one")).expect("removed");
    for dry_run in [true, false] {
        assert_eq!(told(&source.join("one"), dry_run), [format!("Restored {}", at("one"))], "dry run {dry_run}");
    }
}
