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
    let cases: [(&[&str], &str); 12] = [
        (&["no-such-command"], "no-such-command"),
        (&["chunk", "--no-such-option"], "no-such-option"),
        (&["all", "--experiment", "chunk-thruput"], "no experiment is called 'chunk-thruput'"),
        (&["all", "--corpus", "libressl"], "openssl"),
        (&["all", "--rounds", "0"], "at least 1"),
        (&["all", "--memory", "4096"], "give a unit"),
        (&["all", "--expected", "8x"], "expected a size"),
        (&["all", "--fresh"], "--out"),
        (&["run", "bad.toml"], "quik"),
        (&["estimate", "nowhere"], "nowhere is not there"),
        (&["estimate", ".", "bad.toml", "--versions"], "one folder"),
        (&["chunk", "--full", "--quick"], "--quick"),
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
fn an_estimate_has_a_row_for_each_store_and_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    for version in ["v1", "v2"] {
        let version = folder.path().join("all").join(version);
        std::fs::create_dir_all(&version).unwrap();
        std::fs::write(version.join("file"), "a line of text\n".repeat(20_000)).unwrap();
    }
    let done = silt_lab(&["estimate", "all", "--versions"], folder.path());
    let text = said(&done.stdout);
    assert_eq!(done.status.code(), Some(0), "{}", said(&done.stderr));
    for row in ["| silt ", "| restic-like ", "| zstd --long ", "| delta chain "] {
        assert!(text.contains(row), "{text}");
    }
    assert!(text.contains("silt stores the 2 versions"), "{text}");
    assert!(said(&done.stderr).contains("silt of version 1 of 2"), "{}", said(&done.stderr));
    let refused = silt_lab(&["estimate", "all/v1", "--at-most", "1M"], folder.path());
    assert_eq!(refused.status.code(), Some(0), "{}", said(&refused.stderr));
}

#[test]
#[cfg(unix)]
fn a_run_that_is_interrupted_writes_the_report_it_has() {
    use std::time::{Duration, Instant};
    let folder = tempfile::tempdir().unwrap();
    let lines: Vec<u8> =
        (0..200_000_u32).flat_map(|number| format!("{}\n", number.wrapping_mul(0x9E37_79B9)).into_bytes()).collect();
    std::fs::write(folder.path().join("data"), lines).unwrap();
    let words = ["chunk", "data", "--full", "--rounds", "99", "--out", "out"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_silt-lab"));
    let run = command.args(words).current_dir(folder.path());
    let run = run.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let (begin, journal) = (Instant::now(), folder.path().join("out/journal.jsonl"));
    let has_results =
        || std::fs::read_to_string(&journal).is_ok_and(|text| text.contains("\"Ran\"") || text.contains("\"ran\""));
    while !has_results() {
        assert!(begin.elapsed() < Duration::from_mins(2), "nothing is measured");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap().success());
    let ended = run.wait_with_output().unwrap();
    let told = said(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{told}");
    assert!(told.contains("go on with: silt-lab run out/run.toml"), "{told}");
    assert!(said(&ended.stdout).contains("Not all that was asked for is measured."), "{}", said(&ended.stdout));
    assert!(
        std::fs::read_to_string(folder.path().join("out/report.html")).unwrap().contains("did not come to its end")
    );
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
