//! `silt copy` by the real program: two repositories with passwords of their own, filters, dry run, JSON, and what is
//! said where it does not work.

use crate::common::{QUICK_KEY, Ran, Sandbox, noise, ran};
use serde_json::Value;
use std::fs;
use std::process::Command;

/// A sandbox whose repository has three snapshots, and a second repository with another password.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("a", noise(1, 300_000));
    sandbox.backup(&["--tag", "first"]);
    sandbox.write("b", noise(2, 100_000));
    sandbox.backup(&["--tag", "second", "--description", "with b"]);
    sandbox.backup(&["--host", "elsewhere"]);
    ran(second(&sandbox).args(["init", "--parity", "off"]).args(QUICK_KEY)).ok();
    sandbox
}

/// `silt` on the second repository, which has the password `other`.
fn second(sandbox: &Sandbox) -> Command {
    let mut command = sandbox.silt_without_password();
    command.env("SILT_REPOSITORY", sandbox.path("second")).env("SILT_PASSWORD", "other");
    command
}

/// `silt copy` into the second repository with these arguments.
fn copy(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    let mut command = second(sandbox);
    command.env("SILT_FROM_REPOSITORY", sandbox.repository()).env("SILT_FROM_PASSWORD", "secret");
    ran(command.arg("copy").args(arguments))
}

fn snapshots(command: &mut Command) -> Vec<Value> {
    let ran = ran(command.args(["snapshots", "--json"])).ok();
    serde_json::from_str::<Vec<Value>>(&ran.stdout).expect("a list")
}

#[test]
fn snapshots_go_into_a_repository_with_another_password_and_keep_what_they_record() {
    let sandbox = sandbox();
    let done = copy(&sandbox, &[]).ok();
    assert!(done.stdout.contains("copied 3 snapshots"), "{}", done.stdout);
    let (theirs, ours) = (snapshots(&mut sandbox.silt()), snapshots(&mut second(&sandbox)));
    assert_eq!((theirs.len(), ours.len()), (3, 3));
    for (original, copy) in theirs.iter().zip(&ours) {
        for field in ["time", "hostname", "username", "paths", "tags", "short_id", "description"] {
            assert_eq!(original[field], copy[field], "{field}");
        }
        assert_ne!(original["id"], copy["id"]);
    }
    let target = sandbox.path("target");
    ran(second(&sandbox).args(["restore", "latest", "--tag", "second", "--target"]).arg(&target)).ok();
    let restored = target.join(sandbox.source().trim_start_matches('/'));
    assert_eq!(fs::read(restored.join("a")).expect("a file"), noise(1, 300_000));
    assert_eq!(fs::read(restored.join("b")).expect("a file"), noise(2, 100_000));

    let again = copy(&sandbox, &[]).ok();
    assert!(again.stdout.contains("copied 0 snapshots") && again.stdout.contains("3 here already"), "{}", again.stdout);
    ran(second(&sandbox).args(["check", "--read-data"])).ok();
}

#[test]
fn snapshots_are_chosen_by_filter_or_id_and_a_dry_run_copies_none() {
    let sandbox = sandbox();
    let dry = copy(&sandbox, &["--dry-run", "--json", "--host", "elsewhere"]).ok().message("summary");
    assert_eq!((&dry["snapshots_copied"], &dry["dry_run"]), (&1.into(), &true.into()));
    assert!((350_000..500_000).contains(&dry["bytes_read"].as_u64().expect("an estimate")), "{dry}");
    let told = copy(&sandbox, &["--dry-run"]).ok().stdout;
    assert!(told.contains("would copy 3 snapshots") && told.contains("\nAbout "), "{told}");
    assert!(snapshots(&mut second(&sandbox)).is_empty());
    let tagged = copy(&sandbox, &["--json", "--tag", "first"]).ok().message("summary");
    assert_eq!(tagged["snapshots_copied"], 1);
    assert!(tagged["bytes_read"].as_u64().expect("bytes") >= 300_000);
    assert_eq!(tagged["copies"][0]["snapshot_id"].as_str().map(str::len), Some(64));
    let latest = copy(&sandbox, &["--json", "latest"]).ok().message("summary");
    assert_eq!((&latest["snapshots_copied"], &latest["snapshots_skipped"]), (&1.into(), &0.into()));
    let hosts: Vec<_> = snapshots(&mut second(&sandbox)).iter().map(|one| one["hostname"].clone()).collect();
    assert_eq!(hosts.len(), 2);
    assert!(hosts.contains(&"elsewhere".into()));
}

#[test]
fn the_source_is_named_by_option_file_or_variable() {
    let sandbox = sandbox();
    fs::write(sandbox.path("place"), sandbox.repository().display().to_string()).expect("written");
    fs::write(sandbox.path("password"), "secret\n").expect("written");
    let from_files = ["copy", "--dry-run", "--from-repository-file", "place", "--from-password-file", "password"];
    assert!(ran(second(&sandbox).args(from_files)).ok().stdout.contains("would copy 3"));
    let (repository, command) = (sandbox.repository().display().to_string(), "printf secret");
    let by_options = ["copy", "--dry-run", "--from-repo", &repository, "--from-password-command", command];
    assert!(ran(second(&sandbox).args(by_options)).ok().stdout.contains("would copy 3"));
    let none = ran(second(&sandbox).arg("copy"));
    assert_eq!(none.status, 1);
    assert!(none.stderr.contains("--from-repo") && none.stderr.contains("SILT_FROM_REPOSITORY"), "{}", none.stderr);
}

#[test]
fn failures_name_the_repository_they_are_of_and_have_their_status() {
    let sandbox = sandbox();
    let source = sandbox.repository().display().to_string();
    let wrong = ran(second(&sandbox).args(["copy", "--from-repo", &source]).env("SILT_FROM_PASSWORD", "wrong"));
    assert_eq!(wrong.status, 12);
    assert!(wrong.stderr.contains(&source), "{}", wrong.stderr);
    let missing = ran(second(&sandbox).args(["copy", "--from-repo", "nowhere"]).env("SILT_FROM_PASSWORD", "x"));
    assert_eq!(missing.status, 10);
    assert!(missing.stderr.contains("nowhere"), "{}", missing.stderr);
    let itself = ran(sandbox.silt().args(["copy", "--from-repo", &source]).env("SILT_FROM_PASSWORD", "secret"));
    assert_eq!(itself.status, 1);
    assert!(itself.stderr.contains("the same repository"), "{}", itself.stderr);
}

#[test]
fn a_damaged_snapshot_is_left_out_with_status_3_and_comes_once_the_source_is_whole() {
    let sandbox = Sandbox::of_files(20);
    ran(second(&sandbox).arg("init").args(QUICK_KEY)).ok();
    let container = sandbox.largest_container();
    let sound = fs::read(&container).expect("read");
    let mut damaged = sound.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(&container, damaged).expect("written");
    let hit = copy(&sandbox, &[]);
    assert_eq!(hit.status, 3, "{}", hit.stderr);
    assert!(hit.stderr.contains("/source/0") && hit.stderr.contains("not copied"), "{}", hit.stderr);
    assert!(snapshots(&mut second(&sandbox)).is_empty() && hit.stderr.contains("--skip-damaged"), "{}", hit.stderr);
    let without = copy(&sandbox, &["--skip-damaged", "--json"]);
    let summary = without.message("summary");
    assert_eq!((without.status, &summary["snapshots_incomplete"]), (3, &1.into()), "{summary}");
    assert!(summary["copies"][0]["problems"].as_u64().is_some_and(|problems| problems > 0), "{summary}");
    let there = snapshots(&mut second(&sandbox));
    let id = there[0]["id"].as_str().expect("an id").to_owned();
    ran(second(&sandbox).args(["check", "--read-data"])).ok();
    ran(second(&sandbox).args(["forget", "--unsafe-allow-remove-all", &id])).ok();
    fs::write(&container, sound).expect("written");
    assert!(copy(&sandbox, &[]).ok().stdout.contains("copied 1 snapshot"));
}
