//! A series whose manifest is damaged keeps no command from the others: it is named, the rest is done, and the exit
//! code says so.

use crate::common::{Sandbox, content};
use std::path::{Path, PathBuf};

/// Repository with the series `good` and `bad`, two snapshots each; the last of all is one of `bad`.
fn two_series() -> Sandbox {
    let sandbox = Sandbox::new();
    for version in ["1", "2"] {
        for series in ["good", "bad"] {
            sandbox.write("file", format!("{series} {version}"));
            sandbox.backup(&["--series", series]);
        }
    }
    sandbox
}

/// The files below a folder.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// Damages every manifest of the series `bad`, copies too; gives the series' id.
fn damage(sandbox: &Sandbox, with: impl Fn(Vec<u8>) -> Vec<u8>) -> String {
    let manifests = || files_below(&sandbox.repository()).into_iter().filter(|path| is_manifest(path));
    let before: Vec<_> = manifests().map(|path| (path.clone(), std::fs::read(path).expect("read"))).collect();
    sandbox.backup(&["--series", "bad", "--force"]);
    let is_new = |path: &PathBuf| !before.iter().any(|(known, _)| known == path);
    let folder = manifests().find(is_new).and_then(|path| path.parent().map(Path::to_owned)).expect("a new manifest");
    let id = folder.file_name().expect("a name").to_string_lossy().into_owned();
    for path in manifests().filter(|path| path.parent().is_some_and(|folder| folder.ends_with(&id))) {
        let bytes = std::fs::read(&path).expect("read");
        std::fs::write(&path, with(bytes)).expect("written");
    }
    id
}

/// Tells whether a file is a manifest, or the copy of one.
fn is_manifest(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "series")
}

fn flip(mut bytes: Vec<u8>) -> Vec<u8> {
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    bytes
}

fn cut(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.len() / 2);
    bytes
}

#[test]
fn every_command_does_the_rest_and_names_the_damaged_series() {
    for with in [flip, cut] {
        let sandbox = two_series();
        let id = damage(&sandbox, with);
        let in_part = |arguments: &[&str]| {
            let ran = sandbox.run(arguments).exits(3);
            assert!(ran.stderr.contains(&id) || ran.stderr.contains("\"bad\""), "{arguments:?}: {}", ran.stderr);
            assert_eq!(ran.stderr.matches("both unreadable").count(), 1, "told once: {arguments:?}: {}", ran.stderr);
            ran
        };
        assert_eq!(in_part(&["snapshots", "--json"]).json().as_array().map(Vec::len), Some(2));
        assert!(in_part(&["ls", "latest"]).stdout.contains("file"));
        let file = format!("latest:{}/file", sandbox.source());
        assert_eq!(in_part(&["dump", &file]).stdout, "good 2");
        assert_eq!(in_part(&["stats", "--json"]).json()["snapshots_count"], 2);
        assert!(in_part(&["unlock"]).stdout.contains("removed 0 locks"));
        in_part(&["maintain"]);
        let warned = in_part(&["restore", "latest", "--target", "out"]);
        assert!(warned.stderr.contains("'latest' is chosen among the other series"), "{}", warned.stderr);
        assert_eq!(content(sandbox.path("out").join(sandbox.source().trim_start_matches('/')).join("file")), "good 2");
        assert!(in_part(&["rewrite", "--exclude", "nothing", "--forget"]).stdout.contains("no snapshot has anything"));
        assert!(in_part(&["forget", "--keep-last", "1"]).stdout.contains("removed 1 snapshot"));
        assert_eq!(in_part(&["snapshots", "--json"]).json().as_array().map(Vec::len), Some(1));
    }
}

#[test]
fn a_command_that_is_not_about_the_damaged_series_is_whole() {
    let sandbox = two_series();
    damage(&sandbox, flip);
    let listed = sandbox.run(&["snapshots", "--json", "--series", "good"]).ok().json();
    let id = listed[0]["short_id"].as_str().expect("an id").to_owned();
    sandbox.run(&["ls", "latest", "--series", "good"]).ok();
    sandbox.run(&["restore", &id, "--target", "out"]).ok();
    sandbox.run(&["snapshots", &id]).ok();
    sandbox.run(&["unlock", "--series", "good"]).ok();
    sandbox.backup(&["--series", "good"]);
    sandbox.run(&["forget", "--series", "good", "--keep-last", "1"]).ok();
    sandbox.run(&["forget", "--dry-run", "--unsafe-allow-remove-all", "latest", "--series", "good"]).ok();
}

#[test]
fn a_command_about_the_damaged_series_alone_fails_with_the_damage() {
    let sandbox = two_series();
    let id = damage(&sandbox, flip);
    for arguments in [
        &["snapshots", "--series", "bad"][..],
        &["restore", "latest", "--series", "bad", "--target", "out"],
        &["forget", "--series", "bad", "--keep-last", "1"],
        &["unlock", "--series", "bad"],
        &["ls", "0123456789abcdef"],
    ] {
        let failed = sandbox.run(arguments).exits(1);
        assert!(failed.stderr.contains(&id), "{arguments:?}: {}", failed.stderr);
    }
    assert!(!sandbox.path("out").exists());
}

#[test]
fn programs_are_told_too() {
    let sandbox = two_series();
    let id = damage(&sandbox, flip);
    for arguments in
        [&["snapshots", "--json"][..], &["stats", "--json"], &["unlock", "--json"], &["maintain", "--json"]]
    {
        let ran = sandbox.run(arguments).exits(3);
        let told = ran.stderr.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
        let errors: Vec<_> = told.filter(|line| line["message_type"] == "error").collect();
        assert_eq!(errors.len(), 1, "{arguments:?}: {}", ran.stderr);
        assert!(errors[0].to_string().contains(&id), "{arguments:?}: {}", ran.stderr);
    }
}
