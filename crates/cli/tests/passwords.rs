//! Where the password comes from, and what wrong ones get.

mod common;

use common::{Sandbox, ran, ran_with_input};

#[test]
fn every_source_opens_the_repository() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("password"), "secret\n").expect("written");
    let silt = || sandbox.silt_without_password();
    ran(silt().args(["-p", "password", "snapshots"])).ok();
    ran(silt().args(["snapshots", "--password-file", "password"])).ok();
    ran(silt().args(["--password-command", "echo 'secret'", "snapshots"])).ok();
    ran(silt().arg("snapshots").env("SILT_PASSWORD_FILE", "password")).ok();
    ran(silt().arg("snapshots").env("SILT_PASSWORD_COMMAND", "printf secret")).ok();
    ran_with_input(silt().arg("snapshots"), b"secret\n").ok();
}

#[test]
fn options_win_over_variables() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("password"), "secret").expect("written");
    ran(sandbox.silt_without_password().env("SILT_PASSWORD", "wrong").args(["-p", "password", "snapshots"])).ok();
    let both = sandbox.run(&["-p", "password", "--password-command", "echo secret", "snapshots"]).exits(1);
    assert!(both.stderr.contains("exclude each other"), "{}", both.stderr);
}

#[test]
fn a_wrong_password_is_exit_12() {
    let sandbox = Sandbox::new();
    let wrong = ran(sandbox.silt_without_password().env("SILT_PASSWORD", "wrong").arg("snapshots")).exits(12);
    assert!(wrong.stderr.starts_with("silt: wrong password"), "{}", wrong.stderr);
    assert!(wrong.stdout.is_empty());
}

#[test]
fn an_empty_password_needs_to_be_meant() {
    let sandbox = Sandbox::bare();
    ran_with_input(sandbox.silt_without_password().arg("init"), b"\n").exits(1);
    ran(sandbox.silt_without_password().args(["init", "--insecure-no-password"])).ok();
    ran(sandbox.silt_without_password().args(["snapshots", "--insecure-no-password"])).ok();
    sandbox.run(&["snapshots"]).exits(12);
}

#[test]
fn password_and_data_cannot_share_standard_input() {
    let sandbox = Sandbox::new();
    let shared = ran_with_input(sandbox.silt_without_password().args(["backup", "--stdin"]), b"secret\n").exits(1);
    assert!(shared.stderr.contains("both the password and the data"), "{}", shared.stderr);
}

#[test]
fn keys_come_and_go() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("new"), "other").expect("written");
    sandbox.run(&["key", "add", "--new-password-file", "new", "--host", "there", "--user", "me"]).ok();
    let keys = sandbox.run(&["key", "list", "--json"]).ok().json();
    let keys = keys.as_array().expect("a list");
    assert_eq!(keys.len(), 2);
    let added = keys.iter().find(|key| key["current"] == false).expect("the new one");
    assert_eq!((&added["hostName"], &added["userName"]), (&"there".into(), &"me".into()));
    let current = keys.iter().find(|key| key["current"] == true).expect("ours");

    let refused = sandbox.run(&["key", "remove", current["id"].as_str().expect("an id")]).exits(1);
    assert!(refused.stderr.contains("in use"), "{}", refused.stderr);
    let other = || {
        let mut silt = sandbox.silt_without_password();
        silt.env("SILT_PASSWORD", "other");
        silt
    };
    ran(other().args(["key", "remove", &current["id"].as_str().expect("an id")[..8]])).ok();
    sandbox.run(&["snapshots"]).exits(12);

    std::fs::write(sandbox.path("new"), "third").expect("written");
    ran(other().args(["key", "passwd", "--new-password-file", "new"])).ok();
    ran(other().arg("snapshots")).exits(12);
    let list = ran(sandbox.silt_without_password().env("SILT_PASSWORD", "third").args(["key", "list"])).ok();
    assert_eq!(list.stdout.matches('*').count(), 1, "{}", list.stdout);
}
