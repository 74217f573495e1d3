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
fn a_snapshot_is_compared_with_the_disk() {
    let sandbox = sandbox();
    sandbox.write("changed", b"OTHER");
    sandbox.write("kind/left out", b"new");
    std::fs::remove_file(sandbox.path("source/same")).expect("removed");
    let told = ran(sandbox.silt().args(["diff", "--live", "latest", "--exclude", "left out"])).ok().stdout;
    let source = sandbox.source();
    let lines: Vec<&str> = told.lines().filter(|line| line.contains(&format!(" {source}/"))).collect();
    assert_eq!(lines, [format!("M    {source}/changed"), format!("-    {source}/same")], "{told}");
    assert!(told.contains("what is on disk"), "{told}");
    assert!(told.ends_with("  Added:   5 B\n  Removed: 9 B\n"), "{told}");

    let part = format!("latest:{source}/kind");
    let told = ran(sandbox.silt().args(["diff", "--live", "--trust-times", "--json", &part])).ok();
    let last = told.message("statistics");
    assert_eq!((&last["added"]["files"], &last["target_snapshot"]), (&1.into(), &Value::Null));

    let refused = ran(sandbox.silt().args(["diff", "latest"])).exits(1);
    assert!(refused.stderr.contains("SNAPSHOT"), "{}", refused.stderr);
    let refused = ran(sandbox.silt().args(["diff", "latest~1", "latest", "--exclude", "x"])).exits(1);
    assert!(refused.stderr.contains("--live"), "{}", refused.stderr);
}

#[test]
fn a_path_that_is_not_there_is_an_error() {
    let sandbox = sandbox();
    let refused = ran(sandbox.silt().args(["diff", "latest:/nothing", "latest:/nothing"]));
    assert_eq!(refused.status, 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("/nothing"), "{}", refused.stderr);
}

#[test]
fn the_versions_of_a_file_are_listed() {
    let sandbox = sandbox();
    sandbox.write("gone", b"back");
    sandbox.backup(&[]);
    let path = format!("{}/gone", sandbox.source());
    let told = ran(sandbox.silt().args(["history", &path])).ok().stdout;
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines[0].starts_with("series ") && lines.len() == 4, "{told}");
    let letters: Vec<Option<&str>> = lines[1..].iter().map(|line| line.split("  ").nth(2)).collect();
    assert_eq!(letters, [Some("+"), Some("-"), Some("+")], "{told}");
    assert!(lines[1].ends_with(&path) && lines[3].ends_with(&path), "{told}");

    let mut relative = sandbox.silt();
    relative.current_dir(sandbox.source()).args(["history", "--json", "changed"]);
    let told = ran(&mut relative).ok();
    let versions = told.lines();
    let modifiers: Vec<_> = versions.iter().map(|version| version["modifier"].as_str().expect("a letter")).collect();
    assert_eq!(modifiers, ["+", "M"]);
    assert_eq!((&versions[1]["message_type"], &versions[1]["entry"]["size"]), (&"version".into(), &5.into()));

    let nothing = ran(sandbox.silt().args(["history", "/nothing"])).exits(1);
    assert!(nothing.stderr.contains("no snapshot has /nothing"), "{}", nothing.stderr);
}

#[test]
fn a_listing_is_ordered_as_asked() {
    let sandbox = Sandbox::new();
    for (name, bytes, seconds) in [("b.txt", 30, 1), ("a.zip", 10, 3), ("c", 20, 2)] {
        let path = sandbox.write(name, vec![0; bytes]);
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        std::fs::File::options().write(true).open(path).expect("opened").set_modified(time).expect("set");
    }
    sandbox.backup(&[]);
    let names = |arguments: &[&str]| {
        let reference = format!("latest:{}", sandbox.source());
        let told = ran(sandbox.silt().args(["ls", &reference]).args(arguments)).ok().stdout;
        let folder = format!("{}/", sandbox.source());
        told.lines().filter_map(|line| line.strip_prefix(&folder)).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names(&["--sort", "size"]), ["a.zip", "c", "b.txt"]);
    assert_eq!(names(&["--sort", "time", "--reverse"]), ["a.zip", "c", "b.txt"]);
    assert_eq!(names(&["-s", "extension"]), ["c", "b.txt", "a.zip"]);
    assert_eq!(names(&["--reverse"]), ["c", "b.txt", "a.zip"]);
}
