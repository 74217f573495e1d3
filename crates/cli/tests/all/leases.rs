//! Writers in other containers: a process-id space of one's own, in which nobody outside can see a process.

use crate::common::{Ran, Sandbox, ran, signal};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Makes writers that renew twice a second.
const RENEWING: [&str; 2] = ["--lease-renewal", "500ms"];

/// How a process-id space of one's own can be had here, if it can.
fn container() -> Option<&'static [&'static str]> {
    let ways: [&[&str]; 2] = [&["--pid"], &["--user", "--map-root-user", "--pid"]];
    ways.into_iter().find(|way| {
        let mut unshare = Command::new("unshare");
        unshare.args(*way).args(["--fork", "--kill-child", "true"]).stderr(Stdio::null());
        unshare.status().is_ok_and(|status| status.success())
    })
}

/// A backup in a container that holds the lease and waits for its data.
struct Holder(Child);

impl Holder {
    /// `None` where no container can be had.
    fn begin(sandbox: &Sandbox) -> Option<Self> {
        let Some(way) = container() else {
            eprintln!("no process-id space can be had here: nothing was tested");
            return None;
        };
        let silt = sandbox.silt();
        let mut inside = Command::new("unshare");
        inside.args(way).args(["--fork", "--kill-child"]).arg(silt.get_program());
        inside.args(["backup", "--stdin", "--series", "one"]).args(RENEWING).env_clear();
        inside.envs(silt.get_envs().filter_map(|(name, value)| Some((name, value?))));
        inside.current_dir(sandbox.path("")).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let holder = Self(inside.spawn().expect("started"));
        let began = Instant::now();
        while !is_any_below(&sandbox.repository().join("renewals")) {
            assert!(began.elapsed() < Duration::from_mins(1), "the holder never renewed its lease");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(holder)
    }

    /// Kills it, so that it leaves its lease.
    fn kill(mut self) {
        self.0.kill().expect("killed");
        self.0.wait().expect("it ends");
    }

    /// Lets it come to its end.
    fn end(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().expect("it ends").success());
    }
}

/// Tells whether a folder of this folder holds anything.
fn is_any_below(folder: &std::path::Path) -> bool {
    let Ok(folders) = std::fs::read_dir(folder) else { return false };
    folders.flatten().any(|folder| std::fs::read_dir(folder.path()).is_ok_and(|mut files| files.next().is_some()))
}

fn back_up(sandbox: &Sandbox, options: &[&str]) -> Ran {
    sandbox.write("a", "a");
    let source = sandbox.source();
    ran(sandbox.silt().args(["backup", &source, "--series", "one"]).args(RENEWING).args(options))
}

#[test]
fn a_writer_killed_in_another_container_is_taken_over_without_a_hand() {
    let sandbox = Sandbox::new();
    let Some(holder) = Holder::begin(&sandbox) else { return };
    holder.kill();
    let began = Instant::now();
    let next = back_up(&sandbox, &["--lease-timeout", "3s"]).ok();
    assert!(began.elapsed() >= Duration::from_secs(3));
    for words in ["waiting for a sign of life for up to 0:03", "Ctrl-C", "taken over from process"] {
        assert!(next.stderr.contains(words), "{words}: {}", next.stderr);
    }
    assert!(!is_any_below(&sandbox.repository().join("renewals")), "what it left is swept");
    sandbox.run(&["check", "--read-data"]).ok();
}

#[test]
fn a_writer_alive_in_another_container_is_left_alone() {
    let sandbox = Sandbox::new();
    let Some(holder) = Holder::begin(&sandbox) else { return };
    let began = Instant::now();
    let locked = back_up(&sandbox, &[]).exits(11);
    assert!(locked.stderr.contains("is being written by"), "{}", locked.stderr);
    let unlocked = sandbox.run(&["unlock"]).ok();
    assert!(unlocked.stdout.contains("which is alive") && unlocked.stdout.contains("removed 0 locks"));
    let json = sandbox.run(&["unlock", "--json"]).ok().message("summary");
    assert_eq!((&json["locks_removed"], &json["locks_held"][0]["life"]), (&0.into(), &"renews".into()));
    assert!(began.elapsed() < Duration::from_mins(1), "nobody waits for long on the living");
    holder.end();
    back_up(&sandbox, &[]).ok();
}

#[test]
fn a_wait_for_a_sign_of_life_can_be_interrupted() {
    let sandbox = Sandbox::new();
    let Some(holder) = Holder::begin(&sandbox) else { return };
    holder.kill();
    let source = sandbox.source();
    sandbox.write("a", "a");
    let mut silt = sandbox.silt();
    silt.args(["backup", &source, "--series", "one", "--lease-timeout", "1h"]);
    let mut child = silt.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("started");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    assert!(lines.any(|line| line.expect("text").contains("waiting for a sign of life")), "it never waited");
    signal(&child, "-INT");
    let began = Instant::now();
    std::thread::spawn(move || lines.for_each(drop));
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert!(began.elapsed() < Duration::from_secs(20));
    back_up(&sandbox, &["--lease-timeout", "2s"]).ok();
}

#[test]
fn a_lease_timeout_of_less_than_a_few_renewals_is_refused() {
    let sandbox = Sandbox::new();
    let refused = sandbox.run(&["unlock", "--lease-timeout", "90s"]).exits(1);
    assert!(refused.stderr.contains("--lease-timeout must be at least 2:00"), "{}", refused.stderr);
}
