//! Profiles: what a file under a name says holds where neither the command line nor the environment says otherwise.

use crate::common::{Ran, Sandbox, ran};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// Writes a profile of the user.
pub(crate) fn profile(sandbox: &Sandbox, name: &str, text: &str) -> PathBuf {
    let folder = sandbox.path("home/.config/siltstone/profiles");
    fs::create_dir_all(&folder).expect("made");
    let path = folder.join(format!("{name}.toml"));
    fs::write(&path, text).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("set");
    path
}

/// A repository, and `silt` without any variable that names it.
pub(crate) fn run_by_profile(sandbox: &Sandbox, line: &str) -> Ran {
    let mut silt = sandbox.silt_without_password();
    ran(silt.env_remove("SILT_REPOSITORY").args(line.split(' ')))
}

/// A profile's lines that lead to the sandbox's repository.
pub(crate) fn access(sandbox: &Sandbox) -> String {
    let password = sandbox.path("password");
    fs::write(&password, "secret\n").expect("written");
    format!("repo = '{}'\npassword-file = '{}'\n", sandbox.repository().display(), password.display())
}

fn paths_of_snapshots(sandbox: &Sandbox) -> Vec<String> {
    let list = sandbox.run(&["snapshots", "--json"]).ok().json();
    let list = list.as_array().expect("a list").clone();
    list.iter().map(|snapshot| snapshot["paths"][0].as_str().expect("a path").to_owned()).collect()
}

#[test]
fn a_backup_without_arguments_does_what_the_profile_says() {
    let sandbox = Sandbox::new();
    sandbox.write("one/a", "a");
    sandbox.write("two/b", "b");
    let source = sandbox.source();
    let text = access(&sandbox)
        + &format!(
            "[backup]\ntag = ['nightly']\n[[backup.sources]]\npaths = ['{source}/one']\n\
             [[backup.sources]]\npaths = ['{source}/two']\nexclude = ['*.tmp']\n"
        );
    profile(&sandbox, "default", &text);
    let ran = run_by_profile(&sandbox, "backup").ok();
    assert!(ran.stdout.contains("source 1 of 2: ") && ran.stdout.contains("source 2 of 2: "), "{}", ran.stdout);
    assert_eq!(paths_of_snapshots(&sandbox), [format!("{source}/one"), format!("{source}/two")]);
    let listed = run_by_profile(&sandbox, "snapshots --json --tag nightly").ok().json();
    assert_eq!(listed.as_array().map(Vec::len), Some(2));
    run_by_profile(&sandbox, &format!("backup {source}")).ok();
    assert_eq!(paths_of_snapshots(&sandbox).len(), 3, "paths on the command line take the place of the sources");
    run_by_profile(&sandbox, "--no-profile snapshots").exits(1);
}

#[test]
fn one_source_that_fails_does_not_keep_the_others_from_being_backed_up() {
    let sandbox = Sandbox::new();
    sandbox.write("two/b", "b");
    let source = sandbox.source();
    let sources =
        format!("[[backup.sources]]\npaths = '{source}/absent'\n[[backup.sources]]\npaths = '{source}/two'\n");
    profile(&sandbox, "p", &(access(&sandbox) + &sources));
    let failed = run_by_profile(&sandbox, "-P p backup").exits(1);
    assert!(
        failed.stderr.contains("source 1 (") && failed.stderr.contains("1 of 2 sources failed"),
        "{}",
        failed.stderr
    );
    assert_eq!(paths_of_snapshots(&sandbox), [format!("{source}/two")]);
    let wrong = ran(sandbox.silt().env("SILT_PASSWORD", "wrong").args(["-P", "p", "backup"])).exits(12);
    assert_eq!(wrong.stderr.matches("wrong password").count(), 1, "told once: {}", wrong.stderr);
}

#[test]
fn a_password_that_was_read_serves_every_source() {
    let sandbox = Sandbox::new();
    let source = sandbox.source();
    sandbox.write("one/a", "a");
    sandbox.write("two/b", "b");
    let sources = format!("[[backup.sources]]\npaths = '{source}/one'\n[[backup.sources]]\npaths = '{source}/two'\n");
    profile(&sandbox, "p", &sources);
    let mut silt = sandbox.silt_without_password();
    crate::common::ran_with_input(silt.args(["-P", "p", "backup"]), b"secret\n").ok();
    assert_eq!(paths_of_snapshots(&sandbox).len(), 2);
}

#[test]
fn the_command_line_goes_before_the_environment_and_that_before_the_profile() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "a");
    let text = access(&sandbox) + &format!("[backup]\npaths = '{}'\nhost = 'of-profile'\n", sandbox.source());
    profile(&sandbox, "p", &text);
    let host = |line: &[&str], variable: Option<&str>| {
        let mut silt = sandbox.silt_without_password();
        silt.env_remove("SILT_REPOSITORY").envs(variable.map(|value| ("SILT_HOST", value)));
        ran(silt.args(["-P", "p", "backup"]).args(line)).ok();
        let last = sandbox.run(&["snapshots", "--json", "--latest", "1"]).ok().json();
        let hosts = last.as_array().expect("a list").iter().map(|one| one["hostname"].to_string());
        hosts.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(host(&[], None), "\"of-profile\"");
    assert!(host(&[], Some("of-variable")).contains("of-variable"));
    assert!(host(&["--host", "of-line"], Some("of-variable")).contains("of-line"));
    let mut silt = sandbox.silt_without_password();
    let elsewhere = silt.env("SILT_REPOSITORY", sandbox.path("elsewhere")).args(["-P", "p", "snapshots"]);
    ran(elsewhere).exits(10);
    let mut silt = sandbox.silt_without_password();
    ran(silt.env("SILT_PROFILE", "p").env_remove("SILT_REPOSITORY").arg("snapshots")).ok();
}

#[test]
fn a_profiles_variables_reach_the_programs_that_are_started() {
    let sandbox = Sandbox::new();
    let repository = sandbox.repository().display().to_string();
    let text =
        format!("repo = '{repository}'\npassword-command = 'printenv ANSWER'\n[environment]\nANSWER = 'secret'\n");
    profile(&sandbox, "p", &text);
    run_by_profile(&sandbox, "-P p snapshots").ok();
    let mut silt = sandbox.silt_without_password();
    ran(silt.env("ANSWER", "wrong").args(["-P", "p", "snapshots"])).exits(12);
    let program = "sftp-command = 'sh -c \"printenv ANSWER > seen; echo Permission denied >&2; exit 1\"'\n";
    profile(&sandbox, "far", &format!("repo = 'sftp:host:/x'\n{program}[environment]\nANSWER = 'here'\n"));
    run_by_profile(&sandbox, "-P far snapshots").exits(1);
    assert_eq!(fs::read_to_string(sandbox.path("seen")).expect("it ran"), "here\n");
    let text = format!("repo = '{repository}'\n[environment]\nSILT_PASSWORD = 'secret'\n");
    profile(&sandbox, "p", &text);
    run_by_profile(&sandbox, "-P p snapshots").ok();
}

#[test]
fn what_is_wrong_with_a_profile_is_said() {
    let sandbox = Sandbox::new();
    let path = profile(&sandbox, "p", "[forget]\nkeep-dayly = 7\n");
    let unknown = run_by_profile(&sandbox, "-P p snapshots").exits(1);
    let named = unknown.stderr.contains(&path.display().to_string());
    assert!(named && unknown.stderr.contains("did you mean 'keep-daily'?"), "{}", unknown.stderr);
    let json = run_by_profile(&sandbox, "-P p snapshots --json").exits(1);
    let error: serde_json::Value = serde_json::from_str(&json.stderr).expect("JSON");
    assert_eq!(error["message_type"], "exit_error");
    let absent = run_by_profile(&sandbox, "-P absent snapshots").exits(1);
    assert!(absent.stderr.contains("absent.toml"), "{}", absent.stderr);
    run_by_profile(&sandbox, "-P absent version").ok();
    let path = profile(&sandbox, "p", "password-command = 'x'\n");
    fs::set_permissions(path, fs::Permissions::from_mode(0o622)).expect("set");
    let refused = run_by_profile(&sandbox, "-P p snapshots").exits(1);
    assert!(refused.stderr.contains("chmod go-w"), "{}", refused.stderr);
}

#[test]
fn show_config_says_what_holds_and_hides_secrets() {
    let sandbox = Sandbox::new();
    profile(&sandbox, "base", "memory = '256M'\n[environment]\nTOKEN = 'very secret'\n");
    profile(&sandbox, "p", &format!("inherit = 'base'\n{}[forget]\nkeep-daily = 7\n", access(&sandbox)));
    let shown = run_by_profile(&sandbox, "-P p show-config").ok();
    for part in
        ["/p.toml\n# inherits ", "/base.toml", "memory = \"256M\"", "\n[forget]\nkeep-daily = 7", "TOKEN = \"***\""]
    {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }
    assert!(!shown.stdout.contains("very secret"));
    let mut silt = sandbox.silt();
    let overridden = ran(silt.args(["-P", "p", "show-config"])).ok();
    assert!(overridden.stdout.contains("# SILT_REPOSITORY of the environment goes before it"), "{}", overridden.stdout);
    let json = run_by_profile(&sandbox, "-P p show-config --json").ok().json();
    assert_eq!((&json["profile"], &json["settings"]["forget"]["keep-daily"]), (&"p".into(), &7.into()));
    run_by_profile(&sandbox, "show-config").exits(1);
}
