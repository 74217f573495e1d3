//! What `silt restore` leaves in its target when the repository is damaged, when it is interrupted, and where the target is a bad choice.

mod common;

use common::Sandbox;
use std::fs;
use std::path::PathBuf;

/// A repository of several files that do not compress.
fn of_files(count: u64) -> Sandbox {
    let sandbox = Sandbox::new();
    for number in 0..count {
        sandbox.write(&format!("{number:03}"), noise(number, 50_000));
    }
    sandbox.backup(&[]);
    sandbox
}

/// Bytes that do not compress.
fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed + 1;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    };
    std::iter::repeat_with(next).take(bytes).collect()
}

fn largest_container(sandbox: &Sandbox) -> PathBuf {
    let folders = fs::read_dir(sandbox.repository().join("containers")).expect("read");
    let files = folders.flat_map(|folder| fs::read_dir(folder.expect("a folder").path()).expect("read"));
    let bytes = |path: &PathBuf| fs::metadata(path).expect("status").len();
    files.map(|file| file.expect("a file").path()).max_by_key(bytes).expect("a container")
}

#[test]
fn what_is_damaged_is_named_and_left_out_or_kept_aside() {
    let sandbox = of_files(40);
    let container = largest_container(&sandbox);
    let good = fs::read(&container).expect("read");
    let mut bad = good.clone();
    bad[good.len() / 3] ^= 1;
    let restore = |target: &str, more: &[&str]| {
        let below = format!("latest:{}", sandbox.source());
        let target = sandbox.path(target).display().to_string();
        sandbox.run(&[["restore", &below, "--target", &target].as_slice(), more].concat())
    };
    fs::write(&container, bad).expect("written");
    let ran = restore("out", &[]).exits(1);
    assert!(ran.stderr.contains("it is left out") && ran.stderr.contains("errors"), "{}", ran.stderr);
    let names = || fs::read_dir(sandbox.path("out")).expect("read").count();
    let whole = names();
    assert!(whole < 40);
    let ran = restore("out", &["--keep-damaged"]).exits(1);
    assert!(ran.stderr.contains("kept as /0"), "{}", ran.stderr);
    assert_eq!(names(), 40, "{} of them under another name", 40 - whole);
    fs::write(&container, good).expect("written");
    let ran = restore("out", &["--overwrite", "if-changed", "--verify", "--delete"]).ok();
    assert!(ran.stdout.contains("verified 40 files"), "{}", ran.stdout);
    for number in 0..40 {
        let name = format!("{number:03}");
        let [found, wanted] = ["out", "source"].map(|folder| fs::read(sandbox.path(folder).join(&name)).expect("read"));
        assert!(found == wanted, "{name} differs");
    }
    // A file that only looks right is seen by --verify alone.
    let spoiled = sandbox.path("out/007");
    let time = fs::metadata(&spoiled).expect("status").modified().expect("a time");
    fs::write(&spoiled, [0; 50_000]).expect("written");
    fs::File::options().write(true).open(&spoiled).expect("opened").set_modified(time).expect("a time");
    restore("out", &["--overwrite", "never"]).ok();
    let ran = restore("out", &["--overwrite", "never", "--verify"]).exits(1);
    assert!(ran.stderr.contains("/007: is not as it was backed up"), "{}", ran.stderr);
    let ran = restore("out", &["--overwrite", "if-changed", "--verify"]).ok();
    assert!(ran.stderr.contains("/007 has the snapshot's size and time, but"), "{}", ran.stderr);
    restore("out", &["--overwrite", "never", "--verify"]).ok();
}
