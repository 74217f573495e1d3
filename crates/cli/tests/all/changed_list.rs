//! `silt backup --changed-list`, and the sizes of `silt init`, as a user meets them.

use crate::common::{Sandbox, content, ran_with_input};
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Bytes that neither repeat nor compress.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(next).take(bytes).collect()
}

/// A sandbox with a first snapshot of two files.
fn backed_up() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("image", noise(2_000_000));
    sandbox.write("folder/note", "before");
    std::thread::sleep(Duration::from_millis(40));
    sandbox.backup(&[]);
    sandbox
}

#[test]
fn only_what_is_listed_is_looked_at() {
    let sandbox = backed_up();
    let image = std::fs::File::options().write(true).open(sandbox.path("source/image")).expect("opened");
    image.write_all_at(b"changed", 1_000_000).expect("written");
    sandbox.write("folder/note", "after, not listed");
    sandbox.write("new", "new");
    std::fs::write(sandbox.path("list"), "source/image\t1000000\t7\n\nsource/new\n").expect("written");
    let summary = sandbox.backup(&["--changed-list", "list"]);
    assert!(summary["bytes_read"].as_u64().expect("a number") < 400_000, "{summary}");
    let counts = ["files_new", "files_changed", "files_unmodified", "problems"].map(|field| summary[field].as_u64());
    assert_eq!(counts, [1, 1, 1, 0].map(Some), "{summary}");
    assert_eq!(summary["total_bytes_processed"], 2_000_009);

    sandbox.run(&["restore", &format!("latest:{}", sandbox.source()), "--target", "out"]).ok();
    assert!(
        std::fs::read(sandbox.path("out/image")).expect("read")
            == std::fs::read(sandbox.path("source/image")).expect("read")
    );
    assert_eq!(content(sandbox.path("out/folder/note")), "before");
    assert_eq!(content(sandbox.path("out/new")), "new");
    sandbox.run(&["check", "--read-data"]).ok();
}

#[test]
fn lists_come_from_standard_input_and_with_any_names() {
    let sandbox = backed_up();
    sandbox.write("a\tb\nc", "new");
    let path = |name: &str| format!("{}/{name}", sandbox.source());
    let source = sandbox.source();
    let raw = ["backup", "--json", "--changed-list-raw", "-", &source];
    let ran = ran_with_input(sandbox.silt().args(raw), format!("{}\0", path("a\tb\nc")).as_bytes()).ok();
    assert_eq!(ran.message("summary")["files_new"], 1);
    std::fs::remove_file(path("image")).expect("removed");
    let lines = ["backup", "--json", "--changed-list", "-", &source];
    let ran = ran_with_input(sandbox.silt().args(lines), format!("{}\n", path("image")).as_bytes()).ok();
    assert_eq!(ran.message("summary")["total_files_processed"], 2);
    let ran = ran_with_input(sandbox.silt().args(lines), b"").ok();
    assert_eq!(ran.message("summary")["total_files_processed"], 2, "an empty list changes nothing");
}

#[test]
fn lists_that_make_no_sense_are_exit_1_and_write_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "a");
    let list = |text: &str| std::fs::write(sandbox.path("list"), text).expect("written");
    let source = sandbox.source();
    let refused = |arguments: &[&str]| sandbox.run(&[&["backup", &source], arguments].concat()).exits(1).stderr;

    list("source/a\n");
    let none = refused(&["--changed-list", "list"]);
    assert!(none.contains("make a full backup first"), "{none}");
    sandbox.backup(&[]);
    for (text, words) in [
        ("source/a\nsource/a\t5\n", ["list, line 2: 'source/a\\t5'", "expected a path"]),
        ("source/a\t0\tfive\n", ["list, line 1", "decimal"]),
        ("/etc/passwd\n", ["line 1: '/etc/passwd'", "outside the sources"]),
        ("source/../b\n", ["/b'", "outside the sources"]),
    ] {
        list(text);
        let error = refused(&["--changed-list", "list"]);
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
    let cut_short = refused(&["--changed-list-raw", "list"]);
    assert!(cut_short.contains("entry 1") && cut_short.contains("NUL"), "{cut_short}");
    let lines: Vec<_> = (0..100_000).map(|at| format!("source/a\t{}\t1\n", 2 * at)).collect();
    list(&lines.concat());
    let long = refused(&["--memory", "160MiB", "--changed-list", "list"]);
    assert!(long.contains("list: 100000 entries") && long.contains("raise --memory"), "{long}");
    let absent = refused(&["--changed-list", "no-such-list"]);
    assert!(absent.contains("no-such-list"), "{absent}");
    let twice = refused(&["--changed-list", "-", "--files-from", "-"]);
    assert!(twice.contains("standard input"), "{twice}");
    sandbox.run(&["backup", "--stdin", "--changed-list", "list"]).exits(1);
    assert_eq!(sandbox.run(&["snapshots", "--json"]).ok().json().as_array().map(Vec::len), Some(1));
}

#[test]
fn the_size_of_containers_is_chosen_at_the_beginning() {
    let sandbox = Sandbox::bare();
    for bad in ["15M", "129M", "0", "big"] {
        let refused = sandbox.run(&["init", "--container-size", bad]).exits(1);
        assert!(refused.stderr.contains("container-size"), "{bad}: {}", refused.stderr);
    }
    let out_of_range = sandbox.run(&["init", "--container-size", "129M"]).exits(1);
    assert!(out_of_range.stderr.contains("containers have from 16M to 128M"), "{}", out_of_range.stderr);
    sandbox.run(&["init", "--container-size", "32M"]).ok();
    sandbox.write("large", noise(24 << 20));
    sandbox.backup(&[]);
    let largest = std::fs::metadata(sandbox.largest_container()).expect("status").len();
    assert!(largest > 24 << 20, "{largest} bytes");
    let refused = sandbox.run(&["backup", &sandbox.source(), "--memory", "170M"]).exits(1);
    assert!(refused.stderr.contains("208 MiB"), "{}", refused.stderr);
}

#[test]
fn the_size_of_chunks_is_chosen_at_the_beginning() {
    let chunks_at = |size: &str| {
        let sandbox = Sandbox::bare();
        sandbox.run(&["init", "--chunk-size", size]).ok();
        sandbox.write("image", noise(4 << 20));
        sandbox.backup(&[])["data_blobs"].as_u64().expect("a number")
    };
    for (size, chunks) in [("4K", 1024), ("24KiB", 170), ("256K", 16)] {
        let found = chunks_at(size);
        assert!((chunks * 2 / 3..=chunks * 3 / 2).contains(&found), "{size}: {found} chunks, about {chunks} expected");
    }
    let sandbox = Sandbox::bare();
    for bad in ["4095", "2M", "0", "big", "99999999999999999999"] {
        sandbox.run(&["init", "--chunk-size", bad]).exits(1);
    }
    sandbox.run(&["init", "--chunk-size", "1M"]).ok();
    sandbox.write("a", noise(9_000_000));
    sandbox.backup(&[]);
    sandbox.run(&["check", "--read-data"]).ok();
}
