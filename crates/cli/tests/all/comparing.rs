//! `silt diff` by the real program.

use crate::common::{Sandbox, ran};
use serde_json::Value;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("changed", b"one");
    sandbox.write("gone", b"gone");
    sandbox.write("kind", b"a file");
    sandbox.write("same", b"same");
    sandbox.backup(&[]);
    sandbox.write("changed", b"other");
    let source = std::path::PathBuf::from(sandbox.source());
    std::fs::remove_file(source.join("gone")).expect("removed");
    std::fs::remove_file(source.join("kind")).expect("removed");
    sandbox.write("kind/below", b"a file in a folder");
    sandbox.write("new\u{1b}[1m", b"12345");
    sandbox.backup(&[]);
    sandbox
}

#[test]
fn what_differs_is_listed_and_counted() {
    let sandbox = sandbox();
    let part = |snapshot: &str| format!("{snapshot}:{}", sandbox.source());
    let [first, second] = ["latest~1", "latest"].map(part);
    let told = ran(sandbox.silt().args(["diff", &first, &second])).ok().stdout;
    let lines: Vec<&str> = told.lines().filter(|line| line.contains(" /")).collect();
    let lines: Vec<&str> = lines.into_iter().filter(|line| !line.contains('@')).collect();
    assert_eq!(
        lines,
        ["M    /changed", "-    /gone", "T    /kind/", "+    /kind/below", "+    /new\\u{1b}[1m"],
        "{told}"
    );
    assert!(told.contains("Files:        2 new,       1 removed,       2 changed"), "{told}");
    assert!(told.ends_with("  Added:   28 B\n  Removed: 13 B\n"), "{told}");

    let with_metadata = ran(sandbox.silt().args(["diff", "--metadata", "latest~1", "latest"])).ok().stdout;
    let folder = format!("U    {}/", sandbox.source());
    assert!(with_metadata.lines().any(|line| line == folder), "{with_metadata}");
    let nothing = ran(sandbox.silt().args(["diff", "latest", "latest"])).ok().stdout;
    assert!(nothing.contains("Files:        0 new,       0 removed,       0 changed"), "{nothing}");
}

#[test]
fn json_is_a_line_for_each_path_and_one_of_statistics() {
    let sandbox = sandbox();
    let told = ran(sandbox.silt().args(["diff", "--json", "latest~1", "latest"])).ok().stdout;
    let lines: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let (last, changes) = lines.split_last().expect("lines");
    let modifiers: Vec<_> = changes.iter().map(|change| change["modifier"].as_str().expect("a modifier")).collect();
    assert_eq!(modifiers, ["M", "-", "T", "+", "+"]);
    assert!(changes.iter().all(|change| change["message_type"] == "change"), "{told}");
    assert_eq!(changes[0]["path"], format!("{}/changed", sandbox.source()));
    assert_eq!((&last["message_type"], &last["changed_files"]), (&"statistics".into(), &2.into()));
    assert_eq!((&last["added"]["bytes"], &last["removed"]["bytes"]), (&28.into(), &13.into()));
    assert_eq!(last["source_snapshot"].as_str().map(str::len), Some(64));
}

#[test]
fn a_path_that_is_not_there_is_an_error() {
    let sandbox = sandbox();
    let refused = ran(sandbox.silt().args(["diff", "latest:/nothing", "latest:/nothing"]));
    assert_eq!(refused.status, 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("/nothing"), "{}", refused.stderr);
}
