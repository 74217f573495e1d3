//! `silt rewrite` by the real program.

use crate::common::{QUICK_KEY, Sandbox, content, noise, ran};
use serde_json::Value;
use std::path::PathBuf;

/// Two snapshots with a folder that is to go, and a third without it.
fn with_secrets() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("letter", "dear");
    sandbox.write("private/passwords.txt", noise(1, 200_000));
    sandbox.backup(&["--tag", "first"]);
    sandbox.write("private/more", "more");
    sandbox.backup(&[]);
    std::fs::remove_dir_all(sandbox.path("source/private")).expect("removed");
    sandbox.backup(&["--allow-shrink"]);
    sandbox
}

fn listed(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.run(&["snapshots", "--json"]).ok().json().as_array().expect("an array").clone()
}

/// The bytes of all files of the repository.
fn stored_bytes(folder: PathBuf) -> u64 {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let bytes_of = |entry: std::fs::DirEntry| {
        let metadata = entry.metadata().expect("status");
        if metadata.is_dir() { stored_bytes(entry.path()) } else { metadata.len() }
    };
    entries.map(bytes_of).sum()
}

#[test]
fn what_would_go_and_come_back_is_told_and_then_it_does() {
    let sandbox = with_secrets();
    let before = listed(&sandbox);
    let told = sandbox.run(&["rewrite", "--exclude", "private", "--dry-run"]).ok().stdout;
    let id = before[0]["short_id"].as_str().expect("an id");
    assert!(told.lines().next().is_some_and(|line| line.contains(id)), "{told}");
    assert!(told.contains("1 file (195.3") && told.contains("2 files") && told.contains("1 folder"), "{told}");
    assert!(told.contains("would rewrite 2 snapshots: ") && told.contains("unless they exclude it too"), "{told}");
    let stated = sandbox.run(&["rewrite", "--exclude", "private", "--dry-run", "--json"]).ok().message("summary");
    assert_eq!((&stated["snapshots_rewritten"], &stated["dry_run"]), (&2.into(), &true.into()));
    assert_eq!(stated["snapshots"][1]["files"], 2);
    let bytes_before = stored_bytes(sandbox.repository());
    assert_eq!(stated["bytes_before"], bytes_before);
    assert_eq!(listed(&sandbox), before, "nothing was changed");
    let done = sandbox.run(&["rewrite", "--exclude", "private", "--forget", "--json"]).ok().message("summary");
    assert_eq!((&done["bytes_returned"], &done["dry_run"]), (&stated["bytes_returned"], &false.into()));
    assert_eq!(done["bytes_after"], stored_bytes(sandbox.repository()));
    assert!(done["bytes_returned"].as_i64().expect("bytes") > 190_000, "{done}");
    let after = listed(&sandbox);
    for (before, after) in before.iter().zip(&after) {
        for key in ["short_id", "time", "tags", "hostname", "paths"] {
            assert_eq!(before[key], after[key], "{key}");
        }
    }
    assert_ne!(before[0]["id"], after[0]["id"]);
    assert_eq!(before[2], after[2]);
    assert!(!sandbox.run(&["ls", id]).ok().stdout.contains("private"));
    sandbox.run(&["restore", id, "--target", "out"]).ok();
    let restored = sandbox.path("out").join(sandbox.source().trim_start_matches('/'));
    assert_eq!(content(restored.join("letter")), "dear");
    assert!(!restored.join("private").exists());
    sandbox.run(&["check", "--read-data"]).ok();
    let told = sandbox.run(&["rewrite", "--exclude", "private", "--forget"]).ok().stdout;
    assert!(told.contains("no snapshot has anything"), "{told}");
}

#[test]
fn without_forget_a_program_is_told_that_nothing_was_changed() {
    let sandbox = with_secrets();
    let before = listed(&sandbox);
    let refused = sandbox.run(&["rewrite", "--exclude", "private"]).exits(1);
    assert!(
        refused.stderr.contains("--forget") && refused.stderr.contains("nothing was changed"),
        "{}",
        refused.stderr
    );
    assert!(refused.stdout.contains("would rewrite 2 snapshots"), "{}", refused.stdout);
    assert_eq!(listed(&sandbox), before);
    let refused = sandbox.run(&["rewrite", "--forget"]).exits(1);
    assert!(refused.stderr.contains("--exclude"), "{}", refused.stderr);
    let refused = sandbox.run(&["rewrite", "--exclude", "*", "--forget"]).exits(14);
    assert!(refused.stderr.contains("silt forget"), "{}", refused.stderr);
}

#[test]
fn snapshots_are_chosen_by_id_and_by_filters() {
    let sandbox = with_secrets();
    let told = sandbox.run(&["rewrite", "-e", "private", "--forget", "--tag", "first"]).ok().stdout;
    assert!(told.contains("rewrote 1 snapshot: "), "{told}");
    let before = listed(&sandbox);
    let id = before[1]["short_id"].as_str().expect("an id");
    sandbox.run(&["forget", id, "--keep-deleted", "9d"]).ok();
    let told = sandbox.run(&["rewrite", "--iexclude", "PRIVATE", "--purge", "--forget", id]).ok().stdout;
    assert!(told.contains("rewrote 1 snapshot: "), "{told}");
    sandbox.run(&["undelete", id]).ok();
    assert!(!sandbox.run(&["ls", id]).ok().stdout.contains("private"));
    sandbox.run(&["check", "--read-data"]).ok();
}

#[test]
fn copies_are_still_known_as_copies() {
    let sandbox = with_secrets();
    let elsewhere = sandbox.path("elsewhere");
    let copy = || {
        let mut command = sandbox.silt();
        command.args(["copy", "--json", "--from-repo"]).arg(sandbox.repository());
        command.env("SILT_FROM_PASSWORD", "secret").env("SILT_REPOSITORY", &elsewhere);
        ran(&mut command).ok()
    };
    ran(sandbox.silt().env("SILT_REPOSITORY", &elsewhere).arg("init").args(QUICK_KEY)).ok();
    copy();
    sandbox.run(&["rewrite", "--exclude", "private", "--forget"]).ok();
    copy();
    let there = ran(sandbox.silt().env("SILT_REPOSITORY", &elsewhere).args(["snapshots", "--json"])).ok().json();
    assert_eq!(there.as_array().map(Vec::len), Some(3), "none is copied a second time");
}
