//! A client that can add backups and read none, as its user and the maintainer see it.

use crate::common::{Ran, Sandbox, noise, ran};
use serde_json::Value;

/// Runs `silt` with the client's password and its own cache and state.
fn client(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    let mut command = sandbox.silt_without_password();
    command.env("SILT_PASSWORD", "of the client").env("HOME", sandbox.path("home of the client"));
    ran(command.args(arguments))
}

fn add_key(sandbox: &Sandbox, more: &[&str]) -> Ran {
    let file = sandbox.path("password of the client");
    std::fs::write(&file, "of the client").expect("written");
    let file = file.display().to_string();
    let arguments = ["key", "add", "--write-only", "--new-password-file", &file, "--kdf-memory", "8M"];
    sandbox.run(&[&arguments, more].concat())
}

fn backup(sandbox: &Sandbox) -> Value {
    client(sandbox, &["backup", "--json", &sandbox.source()]).ok().message("summary")
}

#[test]
fn a_client_adds_backups_that_others_restore() {
    let sandbox = Sandbox::new();
    sandbox.write("a", noise(1, 100_000));
    add_key(&sandbox, &["--series", "laptop"]).ok();
    let first = backup(&sandbox);
    assert_eq!(first["files_new"], 1);
    sandbox.write("b", noise(2, 1000));
    let second = backup(&sandbox);
    assert_eq!((&second["files_new"], &second["files_unmodified"]), (&1.into(), &1.into()));
    let listed = client(&sandbox, &["snapshots", "--json"]).ok();
    let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    assert_eq!(listed.as_array().map(Vec::len), Some(2));

    let target = sandbox.path("restored").display().to_string();
    sandbox.run(&["maintain"]).ok();
    sandbox.run(&["check", "--read-data"]).ok();
    sandbox.run(&["restore", "latest", "--target", &target]).ok();
    let restored = sandbox.path("restored").join(sandbox.source().trim_start_matches('/'));
    for name in ["a", "b"] {
        let (found, wanted) = (restored.join(name), sandbox.path("source").join(name));
        assert!(std::fs::read(found).expect("restored") == std::fs::read(wanted).expect("read"), "{name}");
    }

    std::fs::remove_dir_all(sandbox.path("home of the client")).expect("removed");
    let again = client(&sandbox, &["backup", &sandbox.source()]).ok();
    assert_eq!(again.stderr.matches("all chunks stored again").count(), 1, "{}", again.stderr);
}

#[test]
fn what_reads_ends_with_exit_15_and_says_why() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "a");
    add_key(&sandbox, &["--series", "laptop"]).ok();
    backup(&sandbox);
    let target = sandbox.path("restored").display().to_string();
    let commands: [&[&str]; 15] = [
        &["restore", "latest", "--target", &target],
        &["ls", "latest"],
        &["dump", "latest", "/a"],
        &["check"],
        &["check", "--read-data"],
        &["stats"],
        &["forget", "--keep-last", "1"],
        &["forget", "latest", "--dry-run"],
        &["maintain"],
        &["repair", "--dry-run"],
        &["key", "list"],
        &["key", "remove", "00"],
        &["key", "rotate"],
        &["key", "export"],
        &["policy", "list"],
    ];
    for command in commands {
        let refused = client(&sandbox, command).exits(15);
        assert!(
            refused.stderr.contains("can add backups to its series and read none"),
            "{command:?}: {}",
            refused.stderr
        );
    }
    let webdav = client(&sandbox, &["serve", "webdav", "--listen", "127.0.0.1:0"]).exits(15);
    assert!(webdav.stderr.contains("and read none"), "{}", webdav.stderr);
    let elsewhere = client(&sandbox, &["backup", "--series", "other", &sandbox.source()]).exits(1);
    assert!(elsewhere.stderr.contains("laptop"), "{}", elsewhere.stderr);
    assert!(!sandbox.path("restored").exists());
}

#[test]
fn a_mistyped_id_is_no_lost_history() {
    let sandbox = Sandbox::new();
    sandbox.write("a", noise(1, 100_000));
    sandbox.backup(&["--series", "of another"]);
    add_key(&sandbox, &["--series", "laptop"]).ok();
    backup(&sandbox);
    for wanted in ["00000000", "latest~9"] {
        let absent = client(&sandbox, &["snapshots", wanted]).exits(1);
        assert!(absent.stderr.contains(wanted), "{}", absent.stderr);
    }
}

#[test]
fn a_key_is_listed_with_its_series_and_removed_with_a_word_of_what_stays() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "a");
    add_key(&sandbox, &["--host", "lap", &sandbox.source()]).ok();
    let listed = sandbox.run(&["key", "list", "--json"]).ok();
    let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    let keys = listed.as_array().expect("keys");
    let of_client = keys.iter().find(|key| key["write_only"].is_string()).expect("the client's");
    assert_eq!(of_client["write_only"], format!("lap:{}", sandbox.source()));
    assert_eq!(keys.len(), 2);
    assert!(sandbox.run(&["key", "list"]).ok().stdout.contains("lap:/"));
    assert_eq!(backup(&sandbox)["series"], of_client["write_only"]);

    let removed = sandbox.run(&["key", "remove", of_client["id"].as_str().expect("an id")]).ok();
    assert!(removed.stdout.contains("can still add"), "{}{}", removed.stdout, removed.stderr);
    client(&sandbox, &["backup", &sandbox.source()]).exits(12);
    add_key(&sandbox, &[]).exits(1);
}
