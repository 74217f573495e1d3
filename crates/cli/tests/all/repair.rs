//! `silt repair` on the command line: a plan first, nothing without being told to, and what came of it in the exit
//! code.

use crate::common::{self, QUICK_KEY, Sandbox, content, ran_with_input};
use std::path::PathBuf;

/// A repository with two snapshots whose manifests are all gone; gives the snapshots' ids.
fn without_manifests() -> (Sandbox, Vec<String>) {
    let sandbox = Sandbox::new();
    for version in ["1", "2"] {
        sandbox.write("file", version);
        sandbox.backup(&["--tag", version]);
    }
    let ids = ids_of(&sandbox);
    for folder in ["series", "copies/series"].map(|folder| sandbox.repository().join(folder)) {
        if folder.exists() {
            std::fs::remove_dir_all(folder).expect("removed");
        }
    }
    (sandbox, ids)
}

fn ids_of(sandbox: &Sandbox) -> Vec<String> {
    let listed = sandbox.run(&["snapshots", "--json"]).ok().json();
    listed
        .as_array()
        .expect("a list")
        .iter()
        .map(|snapshot| snapshot["id"].as_str().expect("an id").to_owned())
        .collect()
}

#[test]
fn nothing_is_changed_without_being_told_to() {
    let (sandbox, _) = without_manifests();
    let refused = sandbox.run(&["repair"]).exits(1);
    assert!(refused.stderr.contains("--yes"), "{}", refused.stderr);
    let shown = sandbox.run(&["repair", "--dry-run"]).ok();
    assert!(shown.stdout.contains("2 snapshots, from what its containers hold"), "{}", shown.stdout);
    assert!(!sandbox.repository().join("series").exists());
}

#[test]
fn snapshots_come_back_with_their_tags_and_restore() {
    let (sandbox, ids) = without_manifests();
    let done = sandbox.run(&["repair", "--yes"]).ok();
    assert!(done.stdout.contains("repaired 1 series, brought back 2 snapshots"), "{}", done.stdout);
    assert_eq!(ids_of(&sandbox), ids);
    sandbox.run(&["check", "--read-data"]).ok();
    sandbox.run(&["restore", "latest", "--tag", "2", "--target", "out"]).ok();
    let restored = sandbox.path("out").join(sandbox.source().trim_start_matches('/')).join("file");
    assert_eq!(content(restored), "2");
    let again = sandbox.run(&["repair"]).ok();
    assert!(again.stdout.contains("nothing to repair"), "{}", again.stdout);
    for more in [&[][..], &["--dry-run"], &["--yes"]] {
        let summary = sandbox.run(&[&["repair", "--json"], more].concat()).ok().message("summary");
        assert_eq!((&summary["series_repaired"], &summary["snapshots_found"]), (&0.into(), &0.into()), "{more:?}");
    }
}

#[test]
fn programs_are_told_the_plan_and_what_came_of_it() {
    let (sandbox, ids) = without_manifests();
    let ran = sandbox.run(&["repair", "--yes", "--json"]).ok();
    let plan = ran.message("plan");
    assert_eq!(plan["basis"], "containers");
    assert_eq!(plan["snapshots_found"], serde_json::json!(ids));
    let summary = ran.message("summary");
    assert_eq!((&summary["series_repaired"], &summary["snapshots_found"]), (&1.into(), &2.into()));
}

#[test]
fn what_stays_lost_is_named_and_is_exit_3() {
    let sandbox = Sandbox::new();
    ran_with_input(sandbox.silt().args(["backup", "--stdin", "--series", "dump"]), &vec![7; 100_000]).ok();
    let containers = std::fs::read_dir(sandbox.repository().join("data")).expect("containers");
    let folder = containers.map(|entry| entry.expect("an entry").path()).next().expect("a series");
    let files = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> = files.collect();
    files.sort();
    std::fs::remove_file(&files[0]).expect("removed");
    let done = sandbox.run(&["repair", "--yes"]).exits(3);
    assert!(done.stdout.contains("is missing") && done.stdout.contains("stays"), "{}", done.stdout);
    sandbox.run(&["repair", "--yes"]).exits(3);
    sandbox.run(&["repair", "--yes", "--drop-damaged"]).exits(3);
    assert_eq!(ids_of(&sandbox), Vec::<String>::new());
    sandbox.run(&["repair"]).ok();
}

/// The one file in a folder of the repository, or in the only folder there.
fn newest_file(sandbox: &Sandbox, folder: &str) -> PathBuf {
    let mut at = sandbox.repository().join(folder);
    while at.is_dir() {
        let entries = std::fs::read_dir(&at).expect("a folder").map(|entry| entry.expect("an entry").path());
        at = entries.max().expect("not empty");
    }
    at
}

fn flip(path: &PathBuf, at: usize) {
    let mut bytes = std::fs::read(path).expect("readable");
    bytes[at] ^= 1;
    std::fs::write(path, bytes).expect("written");
}

#[test]
fn check_names_the_command_that_helps_and_it_does() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "1");
    sandbox.backup(&[]);
    for folder in ["config", "copies/keys", "series"] {
        flip(&newest_file(&sandbox, folder), 80);
    }
    let found = sandbox.run(&["check"]).exits(1);
    assert!(found.stderr.contains("'silt repair' mends 3 of these"), "{}", found.stderr);
    let json = sandbox.run(&["check", "--json"]).exits(1);
    assert_eq!(json.stdout.matches("\"help\":\"silt repair\"").count(), 3, "{}", json.stdout);
    let shown = sandbox.run(&["repair", "--dry-run"]).ok();
    assert_eq!(shown.stdout.matches("will be written anew from").count(), 3, "{}", shown.stdout);
    let done = sandbox.run(&["repair", "--yes"]).ok();
    assert!(done.stdout.contains("mended 3 objects in both places"), "{}", done.stdout);
    let aside = std::fs::read_dir(sandbox.repository().join("aside")).expect("aside").count();
    assert_eq!(aside, 3, "what was damaged is kept");
    sandbox.run(&["check", "--read-data"]).ok();
}

#[test]
fn a_bit_flipped_in_a_new_repository_costs_nothing_and_is_told() {
    let sandbox = Sandbox::bare();
    sandbox.run(&[&["init"], &QUICK_KEY[..]].concat()).ok();
    let content = common::noise(7, 300_000);
    sandbox.write("file", &content);
    sandbox.backup(&[]);
    flip(&sandbox.largest_container(), 150_000);
    let target = sandbox.path("restored").display().to_string();
    let told = sandbox.run(&["restore", &format!("latest:{}", sandbox.source()), "--target", &target]).ok();
    assert!(told.stderr.contains("was read with its parity"), "{}", told.stderr);
    assert_eq!(std::fs::read(sandbox.path("restored/file")).expect("restored"), content);
}

#[test]
fn what_parity_heals_is_named_by_check_and_healed_by_repair() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "1");
    sandbox.backup(&[]);
    sandbox.run(&["maintain", "--parity", "10"]).ok();
    flip(&newest_file(&sandbox, "data"), 80);
    let found = sandbox.run(&["check", "--read-data"]).exits(1);
    assert!(found.stderr.contains("'silt repair --read-data' mends 1 of these"), "{}", found.stderr);
    let done = sandbox.run(&["repair", "--read-data", "--yes"]).ok();
    assert!(done.stdout.contains("healed 1 container"), "{}", done.stdout);
    sandbox.run(&["check", "--read-data"]).ok();
}

#[test]
fn what_only_the_source_has_is_left_to_a_backup_and_what_nobody_has_to_forget() {
    let sandbox = Sandbox::new();
    for content in ["1", "2"] {
        sandbox.write("file", content.repeat(50_000));
        sandbox.backup(&["--no-migrate"]);
    }
    let mut containers = Vec::new();
    for folder in std::fs::read_dir(sandbox.repository().join("data")).expect("containers") {
        let files = std::fs::read_dir(folder.expect("a folder").path()).expect("a folder");
        containers.extend(files.map(|file| file.expect("a file").path()));
    }
    containers.sort();
    // One of each backup.
    std::fs::remove_file(&containers[0]).expect("removed");
    let old = sandbox.run(&["check"]).exits(1);
    assert!(old.stderr.contains("'silt forget") && old.stderr.contains(&ids_of(&sandbox)[0][..8]), "{}", old.stderr);
    std::fs::remove_file(&containers[1]).expect("removed");
    let new = sandbox.run(&["check"]).exits(1);
    assert!(new.stderr.contains("'silt backup --force' stores again"), "{}", new.stderr);
    sandbox.backup(&["--force"]);
    let healed = sandbox.run(&["check", "--read-data", "--json"]).exits(1);
    assert!(healed.stdout.lines().all(|line| !line.contains("silt backup --force")), "{}", healed.stdout);
}

#[test]
fn an_older_config_is_gone_on_from_only_when_told_to() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "1");
    sandbox.backup(&[]);
    for folder in ["config", "copies/config"] {
        flip(&newest_file(&sandbox, folder), 80);
    }
    let refused = sandbox.run(&["snapshots"]).exits(1);
    assert!(refused.stderr.contains("--from-older-config"), "{}", refused.stderr);
    let shown = sandbox.run(&["repair", "--from-older-config", "--dry-run"]).ok();
    assert!(shown.stdout.contains("keys that count"), "{}", shown.stdout);
    sandbox.run(&["snapshots"]).exits(1);
    sandbox.run(&["repair", "--from-older-config", "--yes"]).ok();
    assert_eq!(ids_of(&sandbox).len(), 1);
    sandbox.run(&["check", "--read-data"]).ok();
}
