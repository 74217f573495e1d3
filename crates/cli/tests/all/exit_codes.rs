//! Each way to end has its documented exit status, in text and in JSON.

use crate::common::{Sandbox, ran, ran_with_input, signal};
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn no_repository_is_exit_10() {
    let sandbox = Sandbox::bare();
    let absent = sandbox.run(&["snapshots"]).exits(10);
    assert!(absent.stderr.contains("repository"), "{}", absent.stderr);
    std::fs::create_dir(sandbox.repository()).expect("made");
    let empty = sandbox.run(&["snapshots"]).exits(10);
    assert!(empty.stderr.contains("silt init"), "{}", empty.stderr);
    let asked = ran_with_input(sandbox.silt_without_password().arg("snapshots"), b"").exits(10);
    assert!(!asked.stderr.contains("password"), "nothing to open, nothing to ask: {}", asked.stderr);
}

#[test]
fn a_bad_command_line_is_exit_1() {
    let sandbox = Sandbox::bare();
    sandbox.run(&["no-such-command"]).exits(1);
    sandbox.run(&["snapshots", "--no-such-option"]).exits(1);
    sandbox.run(&["backup"]).exits(1);
    sandbox.run(&["--help"]).ok();
    let version = sandbox.run(&["version"]).ok();
    assert!(version.stdout.starts_with("silt "), "{}", version.stdout);
    let json = sandbox.run(&["snapshots", "--json", "--no-such-option"]).exits(1);
    let error: serde_json::Value = serde_json::from_str(&json.stderr).expect("JSON");
    assert_eq!((&error["message_type"], &error["code"]), (&"exit_error".into(), &1.into()));
}

#[test]
fn errors_are_json_where_json_is_asked_for() {
    let sandbox = Sandbox::new();
    let wrong =
        ran(sandbox.silt_without_password().env("SILT_PASSWORD", "wrong").args(["snapshots", "--json"])).exits(12);
    let error: serde_json::Value = serde_json::from_str(&wrong.stderr).expect("JSON");
    assert_eq!(error["message_type"], "exit_error");
    assert_eq!(error["code"], 12);
    assert!(error["message"].as_str().expect("text").contains("wrong password"));
}

#[test]
fn invalid_variables_are_errors() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "a");
    let bad_ones =
        [("SILT_COMPRESSION", "much"), ("SILT_PROGRESS_FPS", "-1"), ("SILT_PROGRESS_FPS", "fast"), ("SILT_ISA", "mmx")];
    for (name, value) in bad_ones {
        let bad = ran(sandbox.silt().env(name, value).args(["backup", &sandbox.source()])).exits(1);
        assert!(bad.stderr.contains(name) && bad.stderr.contains(value), "{}", bad.stderr);
    }
    let unknown = ran(sandbox.silt().env("SILT_ISA", "mmx").arg("version")).exits(1);
    assert!(unknown.stderr.contains("scalar, portable"), "the known ones are named: {}", unknown.stderr);
    ran(sandbox.silt().env("SILT_ISA", "portable").args(["backup", &sandbox.source()])).ok();
}

#[test]
fn init_makes_the_folders_and_refuses_what_is_there() {
    let sandbox = Sandbox::bare();
    let made = sandbox.run(&["init", "deep/down/repository"]).ok();
    assert!(made.stdout.starts_with("created silt repository "), "{}", made.stdout);
    sandbox.run(&["init", "deep/down/repository"]).exits(1);
    sandbox.run(&["-r", "deep/down/repository", "snapshots"]).ok();
    sandbox.write("a", "a");
    let full = sandbox.run(&["init", &sandbox.source()]).exits(1);
    assert!(full.stderr.contains("not empty"), "{}", full.stderr);
    let json = sandbox.run(&["init", "--json"]).ok().json();
    assert_eq!(json["message_type"], "initialized");
    assert_eq!(json["id"].as_str().map(str::len), Some(32));
}

#[test]
fn a_source_that_is_missing_is_exit_3_and_the_rest_is_saved() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "a");
    let absent = sandbox.path("absent").display().to_string();
    let ran = sandbox.run(&["backup", "--json", &sandbox.source(), &absent]).exits(3);
    assert!(ran.message("summary")["snapshot_id"].is_string());
    let error: serde_json::Value = serde_json::from_str(ran.stderr.lines().next().expect("a line")).expect("JSON");
    assert_eq!((&error["message_type"], &error["during"]), (&"error".into(), &"archival".into()));
    assert!(error["item"].as_str().expect("a path").ends_with("/absent"));

    let none = sandbox.run(&["backup", &absent]).exits(1);
    assert!(none.stderr.starts_with("silt: nothing to back up") || none.stderr.contains("absent"), "{}", none.stderr);
}

#[test]
fn no_such_snapshot_or_path_is_exit_1() {
    let sandbox = Sandbox::new();
    assert!(sandbox.run(&["ls", "latest"]).exits(1).stderr.contains("no snapshot matches 'latest'"));
    sandbox.write("a", "a");
    sandbox.backup(&[]);
    sandbox.run(&["ls", "latest~1"]).exits(1);
    let absent = sandbox.run(&["ls", "latest:/no/such"]).exits(1);
    assert!(absent.stderr.contains("no/such"), "{}", absent.stderr);
    sandbox.run(&["restore", "latest:/no/such", "-t", "out"]).exits(1);
}

#[test]
fn an_interrupt_is_exit_130_and_leaves_no_lease() {
    let sandbox = Sandbox::new();
    let mut silt = sandbox.silt();
    silt.args(["backup", "--stdin"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = silt.spawn().expect("started");
    let mut stdin = child.stdin.take().expect("a pipe");
    let feed = std::thread::spawn(move || {
        let block = vec![0x5a; 1 << 16];
        while std::io::Write::write_all(&mut stdin, &block).is_ok() {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    std::thread::sleep(Duration::from_millis(1500));
    signal(&child, "-INT");
    let began = Instant::now();
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(130));
    assert!(began.elapsed() < Duration::from_secs(20));
    feed.join().expect("the feed ends");
    assert_eq!(sandbox.run(&["snapshots", "--json"]).ok().json(), serde_json::json!([]));
    sandbox.write("a", "a");
    sandbox.backup(&[]);
}

#[test]
fn a_source_that_is_gone_is_exit_14_and_makes_no_snapshot() {
    let sandbox = Sandbox::new();
    let files = ["a", "b", "c"].map(|name| sandbox.write(name, "content"));
    sandbox.backup(&[]);
    for file in &files {
        std::fs::remove_file(file).expect("removed");
    }
    let refused = sandbox.run(&["backup", &sandbox.source()]).exits(14);
    assert!(refused.stderr.contains("--allow-shrink"), "{}", refused.stderr);
    assert_eq!(sandbox.run(&["snapshots", "--json"]).ok().json().as_array().map(Vec::len), Some(1));
    sandbox.backup(&["--allow-shrink"]);
    sandbox.write("a", "content");
    sandbox.backup(&["--shrink-guard", "off"]);
}

#[test]
fn removing_the_last_snapshots_of_a_series_is_exit_14() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "a");
    sandbox.backup(&[]);
    for arguments in [&["forget", "latest"][..], &["forget", "--keep-tag", "mistyped"], &["forget", "-n", "latest"]] {
        let refused = sandbox.run(arguments).exits(14);
        assert!(refused.stderr.contains("--unsafe-allow-remove-all"), "{}", refused.stderr);
    }
    sandbox.run(&["forget", "latest", "--unsafe-allow-remove-all"]).ok();
}

#[test]
fn a_series_that_is_being_written_is_exit_11() {
    let sandbox = Sandbox::new();
    let writer = |name: &str| {
        let mut silt = sandbox.silt();
        silt.args(["backup", "--stdin", "--series", name]).stdout(Stdio::null());
        silt
    };
    let mut holder = writer("one").stdin(Stdio::piped()).spawn().expect("started");
    let stdin = holder.stdin.take().expect("a pipe");
    let began = Instant::now();
    while !std::fs::read_dir(sandbox.repository().join("series")).is_ok_and(|mut series| series.next().is_some()) {
        assert!(began.elapsed() < Duration::from_secs(30), "the holder never began");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    let locked = ran_with_input(&mut writer("one"), b"data").exits(11);
    assert!(locked.stderr.contains("silt unlock"), "{}", locked.stderr);
    assert!(sandbox.run(&["unlock"]).ok().stdout.contains("removed 0 locks"), "the holder lives");
    ran_with_input(&mut writer("two"), b"data").ok();
    let release = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(500));
        drop(stdin);
    });
    ran_with_input(writer("one").args(["--retry-lock", "1m"]), b"data").ok();
    release.join().expect("released");
    assert!(holder.wait().expect("it ends").success());
}

#[test]
fn a_reader_that_went_away_is_no_panic() {
    let sandbox = Sandbox::new();
    for number in 0..2000 {
        sandbox.write(&format!("a file with a rather long name, number {number}"), "");
    }
    sandbox.backup(&[]);
    let mut silt = sandbox.silt();
    let mut child = silt.args(["ls", "latest"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
