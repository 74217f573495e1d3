//! A repository that lost history, or was rolled back, is refused by the machine that saw more, until told.

use crate::common::{Ran, Sandbox, ran};
use std::path::Path;
use std::process::Command;

/// `silt` on a machine of this name: with a home, a cache and a memory of its own.
fn machine(sandbox: &Sandbox, name: &str) -> Command {
    let mut silt = sandbox.silt();
    silt.env("HOME", sandbox.path(name)).env("SILT_HOST", name).env("SILT_STATE_DIR", sandbox.path(name).join("state"));
    silt
}

fn run(sandbox: &Sandbox, name: &str, arguments: &[&str]) -> Ran {
    ran(machine(sandbox, name).args(arguments))
}

fn back_up(sandbox: &Sandbox, name: &str, content: &str) {
    sandbox.write("a", content);
    run(sandbox, name, &["backup", &sandbox.source()]).ok();
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp runs");
    assert!(copied.success());
}

/// Puts the copy in the repository's place.
fn bring_back(sandbox: &Sandbox) {
    std::fs::remove_dir_all(sandbox.repository()).expect("removed");
    copy(&sandbox.path("copy"), &sandbox.repository());
}

#[test]
fn a_copy_brought_back_is_refused_by_every_command_until_it_is_accepted() {
    let sandbox = Sandbox::new();
    back_up(&sandbox, "first", "one");
    back_up(&sandbox, "first", "two");
    copy(&sandbox.repository(), &sandbox.path("copy"));
    back_up(&sandbox, "first", "three");
    back_up(&sandbox, "first", "four");
    bring_back(&sandbox);
    for content in ["five", "six", "seven"] {
        back_up(&sandbox, "other", content);
    }
    let (source, target) = (sandbox.source(), sandbox.path("out").display().to_string());
    let commands: [&[&str]; 9] = [
        &["backup", &source],
        &["snapshots"],
        &["restore", "latest", "--target", &target],
        &["ls", "latest"],
        &["check"],
        &["forget", "latest"],
        &["maintain"],
        &["stats"],
        &["snapshots", "--no-cache"],
    ];
    for command in commands {
        let refused = run(&sandbox, "first", command).exits(13);
        assert!(refused.stderr.contains("series 'first:"), "{command:?}: {}", refused.stderr);
        assert!(refused.stderr.contains("was rolled back to commit"), "{command:?}: {}", refused.stderr);
        assert!(refused.stderr.contains("--accept-rollback"), "{command:?}: {}", refused.stderr);
    }
    assert!(!sandbox.path("out").exists());
    let json = run(&sandbox, "first", &["snapshots", "--json"]).exits(13);
    let error: serde_json::Value = serde_json::from_str(&json.stderr).expect("JSON");
    assert_eq!(error["code"], 13);
    run(&sandbox, "other", &["snapshots"]).ok();
    run(&sandbox, "third", &["snapshots"]).ok();

    let accepted = run(&sandbox, "first", &["restore", "latest", "--target", &target, "--accept-rollback"]).ok();
    assert!(accepted.stderr.contains("accepted: series 'first:"), "{}", accepted.stderr);
    assert_eq!(run(&sandbox, "first", &["snapshots"]).ok().stderr, "", "told once");
    back_up(&sandbox, "first", "eight");
}

#[test]
fn a_refusal_quotes_a_long_name_and_says_once_what_to_do() {
    let sandbox = Sandbox::new();
    let long = format!("laptop:/{}", "long/".repeat(30));
    let back_up = |content: &str| {
        sandbox.write("a", content);
        run(&sandbox, "first", &["backup", "--series", &long, &sandbox.source()]).ok();
    };
    back_up("one");
    copy(&sandbox.repository(), &sandbox.path("copy"));
    back_up("two");
    bring_back(&sandbox);
    let refused = run(&sandbox, "first", &["snapshots"]).exits(13).stderr;
    assert!(refused.contains("series 'laptop:/long/") && refused.contains("...' was rolled back"), "{refused}");
    assert_eq!(refused.matches("what is there").count(), 1, "{refused}");
}

#[test]
fn a_series_that_went_on_after_it_was_rolled_back_is_noticed_by_its_chunk_numbers() {
    let sandbox = Sandbox::new();
    back_up(&sandbox, "first", "one");
    copy(&sandbox.repository(), &sandbox.path("copy"));
    for file in 0..20 {
        sandbox.write(&format!("file {file}"), format!("content {file}"));
    }
    back_up(&sandbox, "first", "two");
    for file in 0..20 {
        std::fs::remove_file(sandbox.path("source").join(format!("file {file}"))).expect("removed");
    }
    bring_back(&sandbox);
    let source = sandbox.source();
    for content in ["three", "four", "five"] {
        sandbox.write("a", content);
        run(&sandbox, "second", &["backup", "--host", "first", &source]).ok();
    }
    let refused = run(&sandbox, "first", &["snapshots"]).exits(13);
    assert!(refused.stderr.contains("does not continue"), "{}", refused.stderr);
}

#[test]
fn series_and_containers_that_are_gone_are_missed_where_they_were_seen() {
    let sandbox = Sandbox::new();
    back_up(&sandbox, "first", "one");
    for folder in ["series", "copies/series", "data", "metadata"] {
        std::fs::remove_dir_all(sandbox.repository().join(folder)).expect("removed");
    }
    let commands: [&[&str]; 4] = [
        &["check", "--read-data"],
        &["snapshots"],
        &["backup", &sandbox.source()],
        &["restore", "latest", "-t", "out"],
    ];
    for command in commands {
        let refused = run(&sandbox, "first", command).exits(13);
        assert!(refused.stderr.contains("is gone (commit"), "{}", refused.stderr);
    }
    // A machine that never saw it knows from the repository's list.
    for command in [&["snapshots"][..], &["backup", "--host", "first", &sandbox.source()]] {
        let told = run(&sandbox, "other", command).exits(13);
        assert!(told.stderr.contains("the series 'first:") && told.stderr.contains("is lost"), "{}", told.stderr);
    }
    let checked = run(&sandbox, "other", &["check"]).exits(1);
    assert!(checked.stderr.contains("the series 'first:") && checked.stderr.contains("is lost"), "{}", checked.stderr);
    back_up(&sandbox, "other", "of another series");
    let listed = run(&sandbox, "other", &["snapshots"]).exits(3);
    assert!(listed.stderr.contains("is lost") && listed.stdout.contains("1 snapshot"), "{}", listed.stderr);

    run(&sandbox, "first", &["snapshots", "--accept-rollback"]).ok();
    run(&sandbox, "other", &["check"]).ok();
    back_up(&sandbox, "first", "two");
}

#[test]
fn what_another_machine_commits_is_no_contradiction() {
    let sandbox = Sandbox::new();
    back_up(&sandbox, "first", "one");
    let source = sandbox.source();
    for content in ["two", "three"] {
        sandbox.write("a", content);
        run(&sandbox, "second", &["backup", "--host", "first", &source]).ok();
        run(&sandbox, "first", &["snapshots"]).ok();
    }
    run(&sandbox, "second", &["forget", "latest", "--host", "first"]).ok();
    run(&sandbox, "first", &["check"]).ok();
    back_up(&sandbox, "first", "four");
}

#[test]
fn a_state_folder_that_cannot_be_written_is_told_and_no_failure() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one");
    std::fs::write(sandbox.path("file"), "").expect("written");
    let ran = ran(sandbox.silt().env("SILT_STATE_DIR", sandbox.path("file/state")).args(["backup", &sandbox.source()]));
    let told = ran.ok().stderr;
    assert!(told.contains("what was seen of the repository cannot be kept"), "{told}");
}

#[test]
fn the_memory_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = Sandbox::new();
    back_up(&sandbox, "first", "one");
    let folder = std::fs::metadata(sandbox.path("first/state")).expect("the folder");
    assert_eq!(folder.permissions().mode() & 0o777, 0o700);
}

/// The folders of a series.
fn folders(root: &Path, series: &str) -> Vec<std::path::PathBuf> {
    let kinds = ["series", "copies/series", "data", "metadata", "parity"].map(|kind| root.join(kind).join(series));
    kinds.into_iter().filter(|folder| folder.exists()).collect()
}

fn series_ids(sandbox: &Sandbox) -> Vec<String> {
    let entries = std::fs::read_dir(sandbox.repository().join("series")).expect("series");
    entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("an id")).collect()
}

#[test]
fn a_repair_of_one_series_does_not_accept_the_rollback_of_another() {
    let sandbox = Sandbox::new();
    let back_up = |series: &str, content: &str| {
        sandbox.write("a", content);
        run(&sandbox, "first", &["backup", "--series", series, &sandbox.source()]).ok();
    };
    back_up("rolled", "one");
    let rolled = series_ids(&sandbox).remove(0);
    copy(&sandbox.repository(), &sandbox.path("copy"));
    for content in ["two", "three"] {
        back_up("rolled", content);
        back_up("hurt", content);
    }
    let hurt = series_ids(&sandbox).into_iter().find(|id| *id != rolled).expect("another series");
    for folder in folders(&sandbox.repository(), &rolled) {
        std::fs::remove_dir_all(&folder).expect("removed");
    }
    for folder in folders(&sandbox.path("copy"), &rolled) {
        let to = sandbox.repository().join(folder.strip_prefix(sandbox.path("copy")).expect("below"));
        copy(&folder, &to);
    }
    for kind in ["series", "copies/series"] {
        std::fs::remove_dir_all(sandbox.repository().join(kind).join(&hurt)).expect("removed");
    }
    let repaired = run(&sandbox, "first", &["repair", "--yes", "--series", "hurt"]).ok();
    assert!(repaired.stdout.contains("repaired 1 series"), "{}", repaired.stdout);
    assert!(repaired.stderr.contains("not repaired: series 'rolled' was rolled back"), "{}", repaired.stderr);
    let refused = run(&sandbox, "first", &["snapshots"]).exits(13);
    assert!(refused.stderr.contains("series 'rolled'") && !refused.stderr.contains("'hurt'"), "{}", refused.stderr);
    run(&sandbox, "first", &["snapshots", "--accept-rollback"]).ok();
    run(&sandbox, "first", &["check", "--read-data"]).ok();
}
