//! `silt find` by the real program.

use crate::common::{Sandbox, ran};
use serde_json::Value;

/// Three snapshots: `report.txt` changes with the third, `old.txt` goes with the second.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("a/report.txt", b"one");
    sandbox.write("a/.hidden", vec![0; 5000]);
    let old = sandbox.write("old.txt", b"old");
    sandbox.backup(&[]);
    std::fs::remove_file(old).expect("removed");
    sandbox.backup(&[]);
    sandbox.write("a/report.txt", b"two three");
    sandbox.backup(&[]);
    sandbox
}

fn ids(sandbox: &Sandbox) -> Vec<String> {
    let told = ran(sandbox.silt().args(["snapshots", "--json"])).ok().stdout;
    let listed: Value = serde_json::from_str(&told).expect("JSON");
    listed.as_array().expect("an array").iter().map(|one| one["id"].as_str().expect("an id").to_owned()).collect()
}

/// The lines of the output without what is between snapshot and colon.
fn found(sandbox: &Sandbox, arguments: &[&str]) -> Vec<String> {
    let told = ran(sandbox.silt().arg("find").args(arguments)).ok().stdout;
    let source = sandbox.source();
    told.lines().map(|line| line.replace(&source, "SOURCE")).collect()
}

#[test]
fn versions_are_shown_with_the_first_and_the_last_snapshot_that_has_them() {
    let sandbox = sandbox();
    let ids = ids(&sandbox);
    let lines = found(&sandbox, &["*.txt"]);
    let [first, second, third] = [&ids[0][..8], &ids[1][..8], &ids[2][..8]];
    assert_eq!(lines.len(), 8, "{lines:?}");
    assert!(lines[0].starts_with(&format!("in snapshot {first} of ")), "{lines:?}");
    assert_eq!((lines[1].as_str(), lines[2].as_str()), ("SOURCE/old.txt", ""));
    assert!(lines[3].starts_with("in 2 snapshots of ") && lines[3].contains(&format!(", from {first} (")), "{lines:?}");
    assert!(lines[3].contains(&format!(") to {second} (")), "{lines:?}");
    assert_eq!((lines[4].as_str(), lines[5].as_str()), ("SOURCE/a/report.txt", ""));
    assert!(lines[6].starts_with(&format!("in snapshot {third} of ")), "{lines:?}");
    assert_eq!(lines[7], "SOURCE/a/report.txt");
}

#[test]
fn names_types_sizes_times_and_snapshots_narrow_what_is_found() {
    let sandbox = sandbox();
    let paths = |arguments: &[&str]| {
        let lines = found(&sandbox, arguments);
        lines.into_iter().filter(|line| line.starts_with("SOURCE")).collect::<Vec<_>>()
    };
    assert_eq!(paths(&["source/*/REPORT.*", "-i", "--snapshot", "latest"]), ["SOURCE/a/report.txt"]);
    assert_eq!(paths(&["a", "--type", "dir", "--snapshot", "latest"]), ["SOURCE/a"]);
    assert_eq!(paths(&["*", "--type", "f", "--size", "+5K"]), Vec::<String>::new());
    assert_eq!(paths(&["*", "--type", "f", "--size", "+4K", "--size", "-5000"]), ["SOURCE/a/.hidden"]);
    assert_eq!(paths(&["*.txt", "--newest", "2001-01-01"]), Vec::<String>::new());
    assert_eq!(paths(&["*.txt", "--oldest", "2001-01-01", "--snapshot", "latest"]), ["SOURCE/a/report.txt"]);
    let long = paths_of_long(&found(&sandbox, &["--long", "report.txt", "--snapshot", "latest"]));
    assert!(long.starts_with("-rw") && long.ends_with("SOURCE/a/report.txt"), "{long}");
}

fn paths_of_long(lines: &[String]) -> String {
    lines.last().expect("a line").clone()
}

#[test]
fn nothing_found_is_said() {
    let sandbox = sandbox();
    let ended = ran(sandbox.silt().args(["find", "nothing"])).ok();
    assert!(ended.stdout.contains("nothing matches"), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(ran(sandbox.silt().args(["find", "nothing", "--json"])).ok().stdout.trim(), "[]");
    let refused = ran(sandbox.silt().args(["find", "*", "--size", "10K"]));
    assert_eq!(refused.status, 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("+10M or -1K"), "{}", refused.stderr);
}

#[test]
fn json_is_a_document_with_each_snapshot_that_has_a_match() {
    let sandbox = sandbox();
    let told = ran(sandbox.silt().args(["find", "--json", "old.txt", "report.txt"])).ok().stdout;
    let document: Value = serde_json::from_str(&told).expect("JSON");
    let found = document.as_array().expect("an array");
    let hits: Vec<_> = found.iter().map(|one| one["hits"].as_u64().expect("a number")).collect();
    assert_eq!(hits, [2, 1, 1], "{told}");
    let ids = ids(&sandbox);
    assert!(found.iter().zip(&ids).all(|(one, id)| one["snapshot"] == id.as_str()), "{told}");
    assert_eq!(found[2]["matches"][0]["path"], format!("{}/a/report.txt", sandbox.source()));
    assert_eq!(found[2]["matches"][0]["size"], 9);
}
