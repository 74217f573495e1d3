//! `silt check` as its users run it: what it has read lately, samples, what becomes of the damage it finds; and running
//! short of memory.

use crate::common::{Sandbox, ran};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

fn flip_a_byte(path: &PathBuf) {
    let mut bytes = fs::read(path).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(path, bytes).expect("written");
}

#[test]
fn what_was_read_lately_is_not_read_again() {
    let sandbox = Sandbox::of_files(4);
    let first = sandbox.run(&["check", "--max-age", "30d", "--json"]).ok().message("summary");
    assert_eq!(first["containers_fresh"], 0);
    assert!(first["bytes_read"].as_u64() > Some(200_000), "{first}");
    let second = sandbox.run(&["check", "--max-age", "30d", "--json"]).ok().message("summary");
    assert_eq!((&second["bytes_read"], &second["containers_fresh"]), (&0.into(), &first["containers_read"]));
}

#[test]
fn a_sample_of_files_is_compared_with_the_source() {
    let sandbox = Sandbox::of_files(4);
    let outcomes = |arguments: &[&str]| -> Vec<String> {
        let all = [&["check", "--json", "--restore-sample", "4"], arguments].concat();
        let samples = sandbox.run(&all).ok().lines();
        let samples = samples.iter().filter(|line| line["message_type"] == "sample");
        samples.map(|line| line["outcome"].as_str().expect("text").to_owned()).collect()
    };
    assert_eq!(outcomes(&[]), ["same_as_source"; 4]);
    sandbox.write("000", "edited");
    let mut changed = outcomes(&["--seed", "1"]);
    changed.sort();
    assert_eq!(changed.iter().filter(|outcome| *outcome == "same_as_source").count(), 3, "{changed:?}");
}

#[test]
fn damage_that_a_check_found_is_healed_by_the_next_backup() {
    let sandbox = Sandbox::of_files(8);
    flip_a_byte(&sandbox.largest_container());
    let found = sandbox.run(&["check", "--read-data"]).exits(1);
    assert!(found.stderr.contains("damaged: "), "{}", found.stderr);
    let backup = sandbox.run(&["backup", "--force", &sandbox.source()]).ok();
    assert!(backup.stdout.contains("Healed:"), "{}", backup.stdout);
    sandbox.run(&["check", "--read-data"]).ok();
    let target = sandbox.path("out").display().to_string();
    sandbox.run(&["restore", "latest", "--target", &target, "--verify"]).ok();
}

/// A thread that the system refuses is an error or is done without: never a panic. Where an allocation fails there is
/// nothing left but to abort, and the next run goes on; so limits are tried down to where the password cannot be
/// hashed.
#[test]
fn too_little_memory_is_no_panic() {
    let sandbox = Sandbox::of_files(2);
    for kib in (60_000..340_000).step_by(20_000) {
        let mut limited = Command::new("sh");
        let silt = sandbox.silt();
        limited.args(["-c", &format!("ulimit -v {kib} && exec \"$0\" \"$@\"")]).arg(silt.get_program());
        limited.args(["backup", "--force", &sandbox.source()]).env_clear().current_dir(sandbox.path(""));
        limited.envs(silt.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = limited.output().expect("sh runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("panicked"), "with {kib} KiB: {said}");
        assert!(matches!(output.status.code(), Some(0 | 1 | 3) | None), "with {kib} KiB: {:?}: {said}", output.status);
    }
    ran(sandbox.silt().args(["backup", &sandbox.source()])).ok();
    sandbox.run(&["check", "--read-data"]).ok();
}
