//! Where the password comes from, and what wrong ones get.

use crate::common::{self, Sandbox, ran, ran_with_input};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

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
    let refused = ran_with_input(sandbox.silt_without_password().arg("init"), b"\n").exits(1);
    assert!(refused.stderr.contains("of a new repository"), "{}", refused.stderr);
    ran(sandbox.silt_without_password().args(["init", "--insecure-no-password"])).ok();
    ran(sandbox.silt_without_password().args(["snapshots", "--insecure-no-password"])).ok();
    sandbox.run(&["snapshots"]).exits(12);
    let refused = ran_with_input(sandbox.silt_without_password().arg("snapshots"), b"\n").exits(1);
    assert!(refused.stderr.contains("SILT_PASSWORD gives one, --insecure-no-password allows it"), "{}", refused.stderr);
}

#[test]
fn an_empty_password_is_told_with_whose_it_is_and_the_option_for_it() {
    let sandbox = Sandbox::new();
    let other = sandbox.path("other").display().to_string();
    sandbox.run(&["init", "-q", &other]).ok();
    let repository = sandbox.repository().display().to_string();
    let copy = sandbox.run(&["-r", &other, "copy", "--from-repo", &repository]).exits(1).stderr;
    assert!(copy.contains("of the source repository") && copy.contains("SILT_FROM_PASSWORD gives one"), "{copy}");
    assert!(copy.contains(" --from-insecure-no-password allows it"), "{copy}");
    std::fs::write(sandbox.path("empty"), "").expect("written");
    for command in [&["key", "add"][..], &["key", "passwd"], &["key", "add", "--new-password-file", "empty"]] {
        let told = sandbox.run(command).exits(1).stderr;
        assert!(told.contains("of a new key") && told.contains(" --new-insecure-no-password allows it"), "{told}");
    }
    let no_key_file = sandbox.run(&["key", "add", "--key-file", "empty"]).exits(1).stderr;
    assert!(no_key_file.contains("is no key file"), "{no_key_file}");
}

#[test]
fn password_and_data_cannot_share_standard_input() {
    let sandbox = Sandbox::new();
    let shared = ran_with_input(sandbox.silt_without_password().args(["backup", "--stdin"]), b"secret\n").exits(1);
    assert!(shared.stderr.contains("both the password and the data"), "{}", shared.stderr);
}

/// A limit on the size of files stands for the full disk.
#[test]
fn a_key_file_that_finds_no_room_leaves_nothing() {
    let sandbox = Sandbox::new();
    let silt = sandbox.silt();
    let mut shell = Command::new("sh");
    shell.env_clear().envs(silt.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.current_dir(sandbox.path("")).arg("-c").arg("trap '' XFSZ; ulimit -f 0; exec \"$0\" key add --key-file key");
    let refused = ran(shell.arg(silt.get_program())).exits(1);
    assert!(refused.stderr.contains("cannot write key: "), "{}", refused.stderr);
    assert!(!sandbox.path("key").exists());
    sandbox.run(&["key", "add", "--key-file", "key"]).ok();
}

#[test]
fn a_key_file_opens_without_a_password_hash() {
    let sandbox = Sandbox::new();
    sandbox.run(&["key", "add", "--key-file", "key"]).ok();
    let mode = std::fs::metadata(sandbox.path("key")).expect("made").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let by_file = || {
        let mut silt = sandbox.silt_without_password();
        silt.args(["--password-file", "key", "-vv"]);
        silt
    };
    let opened = ran(by_file().arg("snapshots")).ok();
    assert!(!opened.stderr.contains("hashed a password"), "{}", opened.stderr);
    let keys = ran(by_file().args(["key", "list", "--json"])).ok().json();
    let current = keys.as_array().expect("a list").iter().find(|key| key["current"] == true).expect("ours").clone();
    assert!(current["kdf"].is_null());

    let line = std::fs::read_to_string(sandbox.path("key")).expect("written");
    std::fs::write(sandbox.path("cut"), &line[..40]).expect("written");
    let cut = ran(sandbox.silt_without_password().args(["--password-file", "cut", "snapshots"])).exits(12);
    assert!(cut.stderr.contains("key file is damaged"), "{}", cut.stderr);
    std::fs::write(sandbox.path("notes"), "something else").expect("written");
    let kept = sandbox.run(&["key", "add", "--key-file", "notes"]).exits(1);
    assert!(kept.stderr.contains("is no key file"), "{}", kept.stderr);
    assert_eq!(std::fs::read_to_string(sandbox.path("notes")).expect("kept"), "something else");

    ran(by_file().args(["key", "passwd", "--key-file", "other"])).ok();
    ran(by_file().arg("snapshots")).exits(12);
    ran(sandbox.silt_without_password().args(["--password-file", "other", "snapshots"])).ok();
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

#[test]
fn the_cost_of_a_key_is_chosen_shown_and_bounded_by_the_memory_allowed() {
    let sandbox = Sandbox::bare();
    sandbox.run(&["init", "--kdf-memory", "8M", "--kdf-passes", "2", "--kdf-lanes", "1"]).ok();
    std::fs::write(sandbox.path("new"), "other").expect("written");
    let add =
        |more: &[&str]| sandbox.run(&[&["key", "add", "--new-password-file", "new", "--host", "there"], more].concat());
    add(&["--kdf-memory", "32M", "--kdf-time", "20ms"]).ok();
    let keys = sandbox.run(&["key", "list", "--json"]).ok().json();
    let kdf = |host: bool| {
        let key = keys.as_array().expect("a list").iter().find(|key| (key["hostName"] == "there") == host);
        key.expect("a key")["kdf"].clone()
    };
    assert_eq!(kdf(false), serde_json::json!({"memory_bytes": 8 << 20, "passes": 2, "lanes": 1}));
    assert!(kdf(true)["passes"].as_u64().expect("a number") >= 1);
    assert!(sandbox.run(&["key", "list"]).ok().stdout.contains("8 MiB x 2, 1 lanes"));
    assert!(add(&["--kdf-memory", "1G"]).exits(1).stderr.contains("raise --memory"));
    assert!(add(&["--kdf-lanes", "65"]).exits(1).stderr.contains("lanes"));
    for too_cheap in [["--kdf-memory", "1G", "--kdf-passes", "0"], ["--kdf-memory", "8K", "--kdf-passes", "1"]] {
        let refused = add(&too_cheap).exits(1);
        assert!(refused.stderr.contains("choose other --kdf-memory"), "{}", refused.stderr);
    }
    // What a key demands is not paid where less is allowed.
    let refused = sandbox.run(&["snapshots", "--memory", "7M"]).exits(1);
    assert!(
        refused.stderr.contains("keys/") && refused.stderr.contains("raise --memory to 8 MiB"),
        "{}",
        refused.stderr
    );
}

#[test]
fn the_key_opened_last_and_the_one_hinted_at_are_tried_first() {
    let sandbox = Sandbox::bare();
    sandbox.run(&["init", "--kdf-memory", "8K", "--kdf-passes", "1", "--kdf-lanes", "1"]).ok();
    std::fs::write(sandbox.path("new"), "other").expect("written");
    for _ in 0..24 {
        let cheap = ["--kdf-memory", "8K", "--kdf-passes", "1", "--kdf-lanes", "1"];
        sandbox.run(&[&["key", "add", "--new-password-file", "new"], &cheap[..]].concat()).ok();
    }
    let keys = sandbox.run(&["key", "list", "--json"]).ok().json();
    let current = keys.as_array().expect("a list").iter().find(|key| key["current"] == true).expect("ours");
    let id = current["id"].as_str().expect("an id");
    let last_keys = sandbox.path("home/.local/state/siltstone/last-keys");
    assert!(common::content(&last_keys).starts_with(&format!("{id} /")));
    // What another repository was opened by is no hint for this one.
    let elsewhere = sandbox.path("elsewhere");
    ran(sandbox.silt().args(["init", "--kdf-memory", "64K", "-r"]).arg(&elsewhere)).ok();
    ran(sandbox.silt().args(["snapshots", "-r"]).arg(&elsewhere)).ok();
    assert_eq!(common::content(&last_keys).lines().count(), 2);
    sandbox.run(&["snapshots"]).ok();
    std::fs::remove_file(&last_keys).expect("removed");
    sandbox.run(&["snapshots", "--key-hint", &id[..8]]).ok();
    std::fs::remove_file(&last_keys).expect("it is kept again");
    ran(sandbox.silt().arg("snapshots").env("SILT_KEY_HINT", id)).ok();
    let wrong = ran(sandbox.silt_without_password().env("SILT_PASSWORD", "wrong").arg("snapshots")).exits(12);
    assert!(wrong.stderr.contains("5 more were not tried") && wrong.stderr.contains("--key-hint"), "{}", wrong.stderr);
}

#[test]
fn a_new_master_key_leaves_one_key_reads_everything_and_goes_on_deduplicating() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("new"), "other").expect("written");
    sandbox.run(&["key", "add", "--new-password-file", "new"]).ok();
    sandbox.write("a", common_noise());
    sandbox.backup(&[]);
    let rotated = sandbox.run(&["key", "rotate", "--json"]).ok().message("summary");
    assert_eq!((&rotated["action"], &rotated["epoch"]), (&"rotated".into(), &2.into()));
    assert_eq!(rotated["invalidated"].as_array().expect("a list").len(), 1);
    assert!(rotated["older_key_bytes"].as_u64().expect("a number") > 300_000);
    ran(sandbox.silt_without_password().env("SILT_PASSWORD", "other").arg("snapshots")).exits(12);

    sandbox.write("b", "new");
    let after = sandbox.backup(&["--force"]);
    assert!(after["data_added"].as_u64().expect("a number") < 20_000, "{after}");
    sandbox.run(&["check", "--read-data"]).ok();
    sandbox.run(&["restore", "latest", "--target", "out"]).ok();
    let restored = sandbox.path("out").join(sandbox.source().trim_start_matches('/')).join("a");
    assert_eq!(std::fs::read(restored).expect("restored"), common_noise());
    let older = sandbox.run(&["stats", "--json"]).ok().json()["older_key_bytes"].as_u64().expect("a number");
    assert!((300_000..1_000_000).contains(&older), "{older}");
    let told = sandbox.run(&["key", "rotate"]).ok().stdout;
    assert!(told.contains("number 3") && told.contains("until it is written anew"), "{told}");
    sandbox.run(&["check", "--read-data"]).ok();
}

/// Bytes that neither compress nor repeat.
fn common_noise() -> Vec<u8> {
    let mut state = 1u64;
    let next = |state: &mut u64| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u8::try_from(*state >> 56).expect("eight bits")
    };
    (0..400_000).map(|_| next(&mut state)).collect()
}

#[test]
fn a_recovery_sheet_opens_the_repository_without_a_password() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("new"), "found again").expect("written");
    sandbox.run(&["key", "export", "--output", "sheet"]).ok();
    sandbox.run(&["key", "export", "--output", "sheet"]).exits(1);
    let sheet = common::content(sandbox.path("sheet"));
    let printed = sandbox.run(&["key", "export"]).ok().stdout;
    let keys_of = |text: &str| text.lines().filter(|line| line.starts_with("key ")).collect::<Vec<_>>().join("\n");
    assert_eq!((keys_of(&sheet), keys_of(&sheet).lines().count()), (keys_of(&printed), 6));
    let import = |sheet: &str| {
        std::fs::write(sandbox.path("typed"), sheet).expect("written");
        ran(sandbox.silt_without_password().args(["key", "import", "typed", "--new-password-file", "new"]))
    };
    let key_lines = keys_of(&sheet);
    let mistyped = {
        let at = key_lines.find("  ").expect("a gap") + 3;
        let other = if &key_lines[at..=at] == "7" { "8" } else { "7" };
        let mut text = key_lines.clone();
        text.replace_range(at..=at, other);
        text
    };
    let told = import(&mistyped).exits(1).stderr;
    assert!(told.contains("group 1 ") && told.contains("mistyped"), "{told}");
    import(&key_lines.to_lowercase()).ok();
    ran(sandbox.silt_without_password().env("SILT_PASSWORD", "found again").arg("snapshots")).ok();
    assert_eq!(sandbox.run(&["key", "list", "--json"]).ok().json().as_array().map(Vec::len), Some(2));

    let other = Sandbox::new();
    std::fs::write(other.path("typed"), &sheet).expect("written");
    let foreign = other.run(&["key", "import", "typed", "--new-insecure-no-password"]).exits(1);
    assert!(foreign.stderr.contains("another repository"), "{}", foreign.stderr);
    sandbox.run(&["key", "rotate"]).ok();
    assert!(import(&sheet).exits(1).stderr.contains("changed since"));
}
