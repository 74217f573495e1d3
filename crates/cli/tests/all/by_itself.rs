//! Runs without a person: hooks around a command, the record of its last run, metrics, notifications, schedules.

use crate::common::{Ran, Sandbox, content, ran};
use crate::profiles::{access, profile, run_by_profile};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::thread::JoinHandle;

/// A sandbox whose profile `home` backs its source up, with more of this.
fn with_profile(more: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("a", "content");
    let own = format!("[backup]\npaths = '{}'\n", sandbox.source());
    let more = if more.contains("[backup]\n") { more.replace("[backup]\n", &own) } else { own + more };
    profile(&sandbox, "home", &(access(&sandbox) + &more));
    sandbox
}

/// Hooks that write down that they ran, and how the command went; one of those before and after does this, too.
fn noting_hooks(before: &str, after: &str) -> String {
    let note =
        |name: &str| format!("{name} = 'echo {name} $SILT_HOOK $SILT_COMMAND $SILT_STATUS $SILT_EXIT_CODE >> notes'\n");
    format!(
        "[backup.hooks]\nbefore = ['echo before $SILT_PROFILE >> notes', '{before}']\n\
         after = ['echo after $SILT_STATUS $SILT_EXIT_CODE >> notes', '{after}']\n{}{}",
        note("failed"),
        note("finally")
    )
}

fn notes(sandbox: &Sandbox) -> Vec<String> {
    let notes = content(sandbox.path("notes")).lines().map(str::to_owned).collect();
    fs::remove_file(sandbox.path("notes")).expect("removed");
    notes
}

fn record(sandbox: &Sandbox, command: &str) -> Value {
    let path = sandbox.path(&format!("home/.local/state/siltstone/runs/home.{command}.json"));
    serde_json::from_str(&content(path)).expect("JSON")
}

#[test]
fn hooks_run_in_order_around_the_command() {
    let sandbox = with_profile(&noting_hooks("true", "echo noise"));
    let run = run_by_profile(&sandbox, "-P home backup --json").ok();
    assert_eq!(notes(&sandbox), ["before home", "after success 0", "finally finally backup success 0"]);
    run.message("summary");
    assert!(run.stderr.contains("noise"), "what hooks print is not the command's output: {}", run.stderr);
    run_by_profile(&sandbox, "-P home backup --dry-run").ok();
    assert!(!sandbox.path("notes").exists(), "a dry run runs no hooks");
    run_by_profile(&sandbox, "-P home snapshots").ok();
    assert!(!sandbox.path("notes").exists(), "they are of another command");
}

#[test]
fn a_hook_before_that_fails_keeps_the_command_from_running() {
    let sandbox = with_profile(&noting_hooks("echo SECRET; exit 4", "true"));
    let run = run_by_profile(&sandbox, "-P home backup").exits(1);
    assert!(run.stderr.contains("the hook 'before' of 'silt backup' failed: its line 2"), "{}", run.stderr);
    assert_eq!(notes(&sandbox), ["before home", "failed failed backup failed 1", "finally finally backup failed 1"]);
    assert_eq!(sandbox.run(&["snapshots", "--json"]).ok().json(), serde_json::json!([]));
    let record = record(&sandbox, "backup").to_string();
    assert!(record.contains("the hook 'before'") && !record.contains("SECRET"), "{record}");
}

#[test]
fn hooks_hide_no_exit_status_and_their_own_failure_is_one() {
    let sandbox = with_profile(&noting_hooks("true", "exit 5"));
    let run = run_by_profile(&sandbox, "-P home backup").exits(1);
    assert!(run.stdout.contains("saved") && run.stderr.contains("the hook 'after'"), "{}", run.stderr);
    assert_eq!(notes(&sandbox).len(), 4, "failed hooks run, too");
    let absent = sandbox.path("absent").display().to_string();
    let in_part = format!("-P home backup {} {absent}", sandbox.source());
    run_by_profile(&sandbox, &in_part).exits(3);
    assert_eq!(notes(&sandbox)[1], "after partial 3");
    let mut silt = sandbox.silt();
    ran(silt.env("SILT_PASSWORD", "wrong").args(["-P", "home", "backup"])).exits(12);
    assert_eq!(notes(&sandbox)[1], "failed failed backup failed 12");
}

#[test]
fn a_hook_may_use_the_same_profile_and_runs_no_hooks_itself() {
    let silt = env!("CARGO_BIN_EXE_silt");
    let sandbox =
        with_profile(&format!("[backup.hooks]\nafter = '{silt} backup && {silt} snapshots --json > listed'\n"));
    run_by_profile(&sandbox, "-P home backup").ok();
    let listed: Value = serde_json::from_str(&content(sandbox.path("listed"))).expect("JSON");
    assert_eq!(listed.as_array().map(Vec::len), Some(2), "the hook's own backup is there, and it ended");
}

#[test]
fn an_interrupted_run_still_runs_its_last_hooks() {
    let sandbox = with_profile(&noting_hooks("touch begun; exec sleep 60", "true"));
    let mut silt = sandbox.silt();
    let mut child = silt.args(["-P", "home", "backup"]).spawn().expect("started");
    while !sandbox.path("begun").exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let pid = child.id().to_string();
    let children = content(format!("/proc/{pid}/task/{pid}/children"));
    for pid in [pid.as_str()].into_iter().chain(children.split_whitespace()) {
        assert!(Command::new("kill").args(["-INT", pid]).status().expect("kill runs").success());
    }
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let notes = notes(&sandbox);
    assert_eq!(notes[1..], ["failed failed backup interrupted 130", "finally finally backup interrupted 130"]);
}

#[test]
fn the_last_run_is_recorded_without_secrets_and_metrics_are_written() {
    let sandbox = with_profile("");
    fs::create_dir(sandbox.path("metrics")).expect("made");
    let metrics = sandbox.path("metrics").display().to_string();
    run_by_profile(&sandbox, &format!("-P home backup --metrics-dir {metrics}")).ok();
    let good = record(&sandbox, "backup");
    assert_eq!((&good["status"], &good["exit_code"]), (&"success".into(), &0.into()));
    assert_eq!((&good["figures"]["files_new"], &good["last_success"]), (&1.into(), &good["ended"]));
    assert_eq!(good["snapshots"].as_array().map(Vec::len), Some(1));
    let text = content(sandbox.path("metrics/silt_home_backup.prom"));
    for part in [
        "silt_last_run_exit_code{profile=\"home\",command=\"backup\"} 0\n",
        "silt_last_run_new_files{profile=\"home\",command=\"backup\"} 1\n",
        "silt_last_run_processed_bytes{profile=\"home\",command=\"backup\"} 7\n",
        "silt_last_success_timestamp_seconds{",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }

    let line = format!("-P home backup --password-command {} --metrics-dir {metrics}", "exit-SECRET");
    run_by_profile(&sandbox, &line).exits(1);
    let bad = record(&sandbox, "backup");
    assert_eq!((&bad["status"], &bad["last_success"]), (&"failed".into(), &good["last_success"]));
    assert!(!bad.to_string().contains("SECRET"), "{bad}");
    let text = content(sandbox.path("metrics/silt_home_backup.prom"));
    assert!(text.contains("exit_code{profile=\"home\",command=\"backup\"} 1\n"), "{text}");
    assert!(text.contains("silt_last_success_timestamp_seconds{"), "an alarm goes by it: {text}");

    let missing = sandbox.path("no-such-folder").display().to_string();
    let line = format!("-P home backup {} {missing} --metrics-dir {metrics}", sandbox.source());
    run_by_profile(&sandbox, &line).exits(3);
    let text = content(sandbox.path("metrics/silt_home_backup.prom"));
    assert!(text.contains("problems{profile=\"home\",command=\"backup\"} 1\n"), "counted once: {text}");

    run_by_profile(&sandbox, "-P home check").ok();
    assert_eq!(record(&sandbox, "check")["figures"]["problems"], 0);
    let elsewhere = run_by_profile(&sandbox, "-P home backup --metrics-dir /no/such/folder").ok();
    assert!(elsewhere.stderr.contains("warning: the metrics"), "a good backup stays one: {}", elsewhere.stderr);
}

/// A web server that takes so many requests: its address, and what was asked.
fn web_server(requests: usize) -> (String, JoinHandle<Vec<(String, String)>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let asked = std::thread::spawn(move || (0..requests).map(|_| answered(&listener)).collect());
    (address, asked)
}

/// Takes a request: its path, and its body.
fn answered(listener: &TcpListener) -> (String, String) {
    let (mut stream, _) = listener.accept().expect("a connection");
    let (mut asked, mut bytes) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut bytes).expect("read");
        asked.extend_from_slice(&bytes[..read]);
        let text = String::from_utf8_lossy(&asked).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned));
        if body.len() >= length.map_or(0, |length| length.parse::<usize>().expect("a number")) {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").expect("answered");
            return (head.split(' ').nth(1).expect("a path").to_owned(), body.to_owned());
        }
    }
}

#[test]
fn notifications_go_to_web_servers_and_commands() {
    let sandbox = with_profile("");
    let (address, asked) = web_server(5);
    let line = format!("-P home backup --notify ping:{address}/id --notify {address}/hook");
    run_by_profile(&sandbox, &line).ok();
    let failing = format!("{line} --password-command exit-SECRET --notify-on failure");
    run_by_profile(&sandbox, &failing.replace(&format!(" --notify {address}/hook"), "")).exits(1);
    let asked = asked.join().expect("all were asked");
    let paths: Vec<&str> = asked.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["/id/start", "/id", "/hook", "/id/start", "/id/fail"]);
    let message: Value = serde_json::from_str(&asked[2].1).expect("JSON");
    assert_eq!((&message["profile"], &message["status"]), (&"home".into(), &"success".into()));
    assert!(message["text"].as_str().expect("text").contains("profile home: done"), "{message}");
    assert!(!asked.iter().any(|(_, body)| body.contains("SECRET")), "{asked:?}");

    let mut silt = sandbox.silt();
    let mail = "command:(echo \"$SILT_SUBJECT\"; cat) > mail";
    ran(silt.args(["-P", "home", "check", "--notify", mail, "--notify-on", "failure"])).ok();
    assert!(!sandbox.path("mail").exists(), "it was no failure");
    let mut silt = sandbox.silt();
    ran(silt.args(["-P", "home", "check", "--notify", mail])).ok();
    let mail = content(sandbox.path("mail"));
    assert!(mail.contains("profile home: done") && mail.contains("problems: 0"), "{mail}");
}

#[test]
fn a_notification_that_fails_spoils_no_backup_and_shows_no_secret() {
    let sandbox = with_profile("");
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let line = format!("-P home backup --notify http://{free}/SECRET --notify command:exit\u{a0}7");
    let mut silt = sandbox.silt();
    let run = ran(silt.args(line.split(' ').map(|word| word.replace('\u{a0}', " ")))).ok();
    assert!(run.stderr.contains("warning: 127.0.0.1 was not told"), "{}", run.stderr);
    assert!(run.stderr.contains("exit status: 7") && !run.stderr.contains("SECRET"), "{}", run.stderr);
    sandbox.run(&["check", "--notify", "mailto:me"]).exits(1);
}

/// A program of this name that goes before the real one.
fn fake(sandbox: &Sandbox, name: &str, script: &str) {
    let path = sandbox.path("bin").join(name);
    fs::create_dir_all(sandbox.path("bin")).expect("made");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("set");
}

/// Runs `silt -P home schedule ...` with the programs of the sandbox.
fn schedule(sandbox: &Sandbox, line: &str) -> Ran {
    let path = format!("{}:{}", sandbox.path("bin").display(), std::env::var("PATH").expect("a path"));
    let mut silt = sandbox.silt();
    ran(silt.env("PATH", path).args(["-P", "home", "schedule"]).args(line.split(' ')))
}

const SCHEDULES: &str = "[check]\nschedule = 'weekly'\n[backup]\nschedule = 'Mon..Fri 03:00'\n";

#[test]
fn systemd_gets_a_service_and_a_timer_for_each_command() {
    let sandbox = with_profile(SCHEDULES);
    fake(&sandbox, "systemctl", "echo \"$@\" >> asked; case \"$2\" in show) echo tomorrow;; esac");
    schedule(&sandbox, "install --scheduler systemd --user").ok();
    let units = sandbox.path("home/.config/systemd/user");
    let service = content(units.join("silt-home-backup.service"));
    assert!(
        service.contains(&format!("ExecStart={} --profile home backup\n", env!("CARGO_BIN_EXE_silt"))),
        "{service}"
    );
    assert!(!service.contains("secret") && !service.contains("password"), "{service}");
    let timer = content(units.join("silt-home-backup.timer"));
    assert!(timer.contains("OnCalendar=Mon..Fri 03:00\nPersistent=true\n"), "{timer}");
    assert!(units.join("silt-home-check.timer").exists());
    let asked = content(sandbox.path("asked"));
    let enabled = "--user daemon-reload\n--user enable silt-home-backup.timer\n--user restart silt-home-backup.timer\n";
    assert!(asked.contains(enabled), "{asked}");

    run_by_profile(&sandbox, "-P home backup").ok();
    let status = schedule(&sandbox, "status --scheduler systemd --user").ok();
    for part in ["Mon..Fri 03:00", "tomorrow", "success", "weekly"] {
        assert!(status.stdout.contains(part), "{part}: {}", status.stdout);
    }
    let json = schedule(&sandbox, "status --scheduler systemd --user --json").ok().json();
    let backup = &json["commands"][0];
    assert_eq!((&backup["installed"], &backup["last"]["exit_code"]), (&true.into(), &0.into()));

    schedule(&sandbox, "remove --scheduler systemd --user").ok();
    assert_eq!(fs::read_dir(&units).expect("read").count(), 0);
    assert!(content(sandbox.path("asked")).contains("--user disable --now silt-home-check.timer"));
    schedule(&sandbox, "remove --scheduler systemd --user").ok();
}

#[test]
fn what_is_scheduled_no_more_is_removed_with_the_next_install() {
    let sandbox = with_profile(SCHEDULES);
    fake(&sandbox, "systemctl", "true");
    schedule(&sandbox, "install --scheduler systemd --user").ok();
    let text = access(&sandbox) + "[check]\nschedule = 'daily'\n";
    profile(&sandbox, "home", &text);
    schedule(&sandbox, "install --scheduler systemd --user").ok();
    let mut names: Vec<_> = fs::read_dir(sandbox.path("home/.config/systemd/user"))
        .expect("read")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    assert_eq!(names, ["silt-home-check.service", "silt-home-check.timer"]);
}

#[test]
fn cron_gets_lines_of_its_own_and_keeps_all_others() {
    let sandbox = with_profile(SCHEDULES);
    let crontab = "case $1 in -l) cat crontab 2>/dev/null || { echo no crontab for me >&2; exit 1; };; -r) rm \
                   crontab;; -) cat > crontab;; esac";
    fake(&sandbox, "crontab", crontab);
    let others = "MAILTO=me\n0 1 * * * mine\n";
    fs::write(sandbox.path("crontab"), others).expect("written");
    schedule(&sandbox, "install --scheduler cron").ok();
    let once = content(sandbox.path("crontab"));
    let silt = env!("CARGO_BIN_EXE_silt");
    assert!(once.starts_with(others), "{once}");
    assert!(once.contains(&format!("\n0 3 * * 1-5 nice -n 10 {silt} --profile home backup --quiet\n")), "{once}");
    assert!(once.contains(&format!("\n0 0 * * 1 nice -n 10 {silt} --profile home check --quiet\n")), "{once}");
    schedule(&sandbox, "install --scheduler cron").ok();
    assert_eq!(content(sandbox.path("crontab")), once, "a second time changes nothing");
    let status = schedule(&sandbox, "status --scheduler cron").ok();
    assert!(status.stdout.contains("0 3 * * 1-5"), "{}", status.stdout);
    schedule(&sandbox, "remove --scheduler cron").ok();
    assert_eq!(content(sandbox.path("crontab")), others);

    fs::remove_file(sandbox.path("crontab")).expect("removed");
    schedule(&sandbox, "install --scheduler cron").ok();
    schedule(&sandbox, "remove --scheduler cron").ok();
    assert!(!sandbox.path("crontab").exists(), "there was none before");
    fake(&sandbox, "crontab", "echo cannot open the spool >&2; exit 1");
    let failed = schedule(&sandbox, "install --scheduler cron").exits(1);
    assert!(failed.stderr.contains("cannot open the spool"), "what cannot be read is not replaced: {}", failed.stderr);
}

#[test]
fn a_schedule_that_cannot_work_is_refused() {
    let sandbox = with_profile("[backup]\nschedule = '*-*-1 03:00'\n");
    fake(&sandbox, "crontab", "exit 9");
    let odd = schedule(&sandbox, "install --scheduler cron").exits(1);
    assert!(odd.stderr.contains("cron") && odd.stderr.contains("*-*-1 03:00"), "{}", odd.stderr);
    fake(&sandbox, "systemd-analyze", "echo Failed to parse >&2; exit 1");
    let wrong = schedule(&sandbox, "install --scheduler systemd --user").exits(1);
    assert!(wrong.stderr.contains("Failed to parse"), "{}", wrong.stderr);
    profile(&sandbox, "home", "repo = '/x'\n[backup]\npaths = '/x'\nschedule = 'daily'\n");
    let lacking = schedule(&sandbox, "install --scheduler cron").exits(1);
    assert!(lacking.stderr.contains("no password"), "{}", lacking.stderr);
    profile(&sandbox, "home", &access(&sandbox));
    let nothing = schedule(&sandbox, "install --scheduler cron").exits(1);
    assert!(nothing.stderr.contains("no schedule"), "{}", nothing.stderr);
}
