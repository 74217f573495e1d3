//! Names come from anyone: none of them drives a terminal, and JSON has them exactly. Signals ask, and are answered.

use crate::common::{Ran, Sandbox, ran, signal};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A name that turns the rest of its line around, clears the screen, ends the line and hides a letter.
const HOSTILE: &str = "a\u{202e}b\u{1b}[2Jc\nd\u{200b}\u{85}e";

#[track_caller]
fn is_harmless(text: &str) {
    let bad = |c: &char| (c.is_control() && *c != '\n') || matches!(c, '\u{202e}' | '\u{200b}');
    assert_eq!(text.chars().find(bad), None, "{text:?}");
    let forged = text.lines().find(|line| line.starts_with("d\\u"));
    assert_eq!(forged, None, "a name began a line of its own: {text:?}");
}

#[track_caller]
fn names_it(ran: &Ran) {
    let both = format!("{}{}", ran.stdout, ran.stderr);
    is_harmless(&both);
    assert!(both.contains("a\\u{202e}b\\u{1b}[2Jc\\nd\\u{200b}\\u{85}e"), "{both}");
}

#[test]
fn the_log_tells_what_is_done_to_the_repository_and_drives_no_terminal() {
    let sandbox = Sandbox::new();
    sandbox.write(HOSTILE, "content");
    let source = sandbox.source();
    let quiet = sandbox.run(&["-v", "backup", &source, "--series", HOSTILE]).ok();
    assert!(!quiet.stderr.contains("DEBUG"), "{}", quiet.stderr);
    let logged = sandbox.run(&["-vv", "backup", "--force", &source, "--series", HOSTILE]).ok();
    names_it(&logged);
    for told in ["read object=config/", "hashed a password", "opened the local index", "committed series="] {
        assert!(logged.stderr.contains(told), "{told}: {}", logged.stderr);
    }
    let documents = sandbox.run(&["-vv", "--json", "snapshots"]).ok();
    let mut lines = documents.stderr.lines().map(serde_json::from_str::<serde_json::Value>);
    assert!(lines.any(|line| line.expect("a document")["message"] == "hashed a password"), "{}", documents.stderr);
}

#[test]
fn no_name_drives_the_terminal_wherever_it_is_printed() {
    let sandbox = Sandbox::new();
    sandbox.write(HOSTILE, "content");
    std::os::unix::fs::symlink(HOSTILE, sandbox.path("source/link")).expect("linked");
    let source = sandbox.source();
    let tagged = ["-v", "backup", &source, "--tag", HOSTILE, "--host", HOSTILE, "--series", HOSTILE];
    names_it(&sandbox.run(&tagged).ok());
    names_it(&sandbox.run(&["snapshots"]).ok());
    names_it(&sandbox.run(&["snapshots", "--group-by", "host,tags,paths"]).ok());
    names_it(&sandbox.run(&["ls", "latest"]).ok());
    names_it(&sandbox.run(&["ls", "-l", "latest"]).ok());
    let target = sandbox.path(HOSTILE);
    let restore = [OsStr::new("-v"), "restore".as_ref(), "latest".as_ref(), "--target".as_ref(), target.as_ref()];
    names_it(&sandbox.run(&restore).ok());
    names_it(&sandbox.run(&["ls", &format!("latest:/no/{HOSTILE}")]).exits(1));
    names_it(&sandbox.run(&["ls", HOSTILE]).exits(1));
    names_it(&sandbox.run(&["-r", HOSTILE, "snapshots"]).exits(10));
    names_it(&sandbox.run(&["backup", &format!("/no/{HOSTILE}")]).exits(1));
    names_it(&sandbox.run(&["forget", "--keep-last", "1", "--dry-run", "--group-by", "host,tags"]).ok());
}

#[test]
fn json_has_names_exactly() {
    let sandbox = Sandbox::new();
    sandbox.write(HOSTILE, "content");
    sandbox.backup(&["--tag", HOSTILE]);
    let listed = sandbox.run(&["ls", "latest", "--json"]).ok().lines();
    assert!(listed.iter().any(|entry| entry["name"] == HOSTILE), "{listed:?}");
    assert_eq!(sandbox.run(&["snapshots", "--json"]).ok().json()[0]["tags"][0], HOSTILE);
}

#[test]
fn forget_prints_one_json_document_whatever_it_is_asked() {
    let sandbox = Sandbox::new();
    for content in ["one", "two", "three"] {
        sandbox.write("a", content);
        sandbox.backup(&[]);
    }
    let by_rules = sandbox.run(&["forget", "--keep-last", "2", "--json"]).ok();
    assert_eq!(by_rules.json()[0]["remove"].as_array().map(Vec::len), Some(1), "restic's list of groups");
    let summary: serde_json::Value = serde_json::from_str(&by_rules.stderr).expect("a line of JSON");
    assert_eq!((&summary["message_type"], &summary["snapshots_removed"]), (&"summary".into(), &1.into()));
    let by_id = sandbox.run(&["forget", "latest", "--json"]).ok();
    assert_eq!(by_id.json()["snapshots_removed"], 1);
}

/// A backup of standard input that has read something and waits for more.
fn reading(sandbox: &Sandbox, launcher: &[&str]) -> Child {
    let silt = sandbox.silt();
    let mut command = match launcher {
        [] => Command::new(silt.get_program()),
        [program, rest @ ..] => {
            let mut command = Command::new(program);
            command.args(rest).arg(silt.get_program());
            command
        }
    };
    command.env_clear().envs(silt.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(sandbox.path("")).args(["backup", "--stdin"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("started");
    child.stdin.as_mut().expect("a pipe").write_all(&[7; 4096]).expect("written");
    // Where the lease is taken the work has begun.
    let began = Instant::now();
    while !std::fs::read_dir(sandbox.repository().join("series")).is_ok_and(|mut series| series.next().is_some()) {
        assert!(began.elapsed() < Duration::from_mins(1), "the backup never began");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

fn end(mut child: Child) -> ExitStatus {
    drop(child.stdin.take());
    child.wait().expect("it ends")
}

#[test]
fn sigusr1_shows_how_far_the_work_is_and_the_work_goes_on() {
    let sandbox = Sandbox::new();
    let mut child = reading(&sandbox, &[]);
    signal(&child, "-USR1");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    assert!(lines.any(|line| line.expect("text").starts_with("[0:")), "nothing was shown");
    std::thread::spawn(move || lines.for_each(drop));
    assert_eq!(end(child).code(), Some(0));
    assert_eq!(sandbox.run(&["snapshots", "--json"]).ok().json().as_array().map(Vec::len), Some(1));
}

#[test]
fn a_hangup_or_a_request_to_end_is_an_interrupt() {
    for name in ["-HUP", "-TERM", "-INT"] {
        let sandbox = Sandbox::new();
        let child = reading(&sandbox, &[]);
        signal(&child, name);
        assert_eq!(end(child).code(), Some(130), "{name}");
        assert_eq!(sandbox.run(&["snapshots", "--json"]).ok().json(), serde_json::json!([]), "{name}");
        assert!(ran(sandbox.silt().args(["unlock"])).ok().stdout.contains("removed 0 locks"), "{name}");
    }
}

#[test]
fn nohup_outlives_a_hangup() {
    let sandbox = Sandbox::new();
    let child = reading(&sandbox, &["nohup"]);
    signal(&child, "-HUP");
    assert_eq!(end(child).code(), Some(0));
}
