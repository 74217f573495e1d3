//! The program as users meet it: what it lists, what it refuses, and how it ends.

use std::path::Path;
use std::process::{Command, Output};

fn silt_lab(words: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_silt-lab"));
    command.args(words).current_dir(folder).env("XDG_CACHE_HOME", folder.join("cache")).output().expect("it starts")
}

fn said(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_list_names_corpora() {
    let folder = tempfile::tempdir().unwrap();
    let listed = silt_lab(&["list"], folder.path());
    assert_eq!(listed.status.code(), Some(0));
    let text = said(&listed.stdout);
    assert!(text.contains("Experiments") && text.contains("openssl"), "{text}");
    for experiment in siltstone_lab::experiments() {
        assert!(text.contains(experiment.name()), "{text}");
    }
}

#[test]
fn what_makes_no_sense_is_exit_2_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bad.toml"), "quik = true").unwrap();
    let cases: [(&[&str], &str); 9] = [
        (&["no-such-command"], "no-such-command"),
        (&["chunk", "--no-such-option"], "no-such-option"),
        (&["all", "--experiment", "chunk-thruput"], "no experiment is called 'chunk-thruput'"),
        (&["all", "--corpus", "libressl"], "openssl"),
        (&["all", "--rounds", "0"], "at least 1"),
        (&["all", "--memory", "4096"], "give a unit"),
        (&["all", "--expected", "8x"], "expected a size"),
        (&["all", "--fresh"], "--out"),
        (&["run", "bad.toml"], "quik"),
    ];
    for (words, hint) in cases {
        let refused = silt_lab(words, folder.path());
        let told = said(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {told}");
        assert!(told.contains(hint) && refused.stdout.is_empty(), "{words:?}: {told}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_folder_without_a_run_has_no_report() {
    let folder = tempfile::tempdir().unwrap();
    let refused = silt_lab(&["report", "."], folder.path());
    assert_eq!(refused.status.code(), Some(1));
    assert!(said(&refused.stderr).contains("holds no run"), "{}", said(&refused.stderr));
}

#[test]
fn help_and_version_are_no_errors() {
    let folder = tempfile::tempdir().unwrap();
    let version = silt_lab(&["--version"], folder.path());
    assert_eq!(version.status.code(), Some(0));
    assert!(said(&version.stdout).starts_with("silt-lab 0."));
    let help = said(&silt_lab(&["--help"], folder.path()).stdout);
    assert!(help.contains("Exit codes") && help.contains("pipeline"), "{help}");
}
