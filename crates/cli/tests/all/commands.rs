//! Commands from end to end, and the shapes of what they print.

use crate::common::{Sandbox, content, ran, ran_with_input};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

#[test]
fn back_up_list_restore() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one");
    sandbox.write("folder/b", "two");
    let first = sandbox.run(&["backup", "--tag", "x,y", "--tag", "z", &sandbox.source()]).ok();
    assert!(first.stdout.contains("Files:           2 new,     0 changed,     0 unmodified"), "{}", first.stdout);
    assert!(first.stdout.trim_end().ends_with(" saved"), "{}", first.stdout);
    sandbox.write("a", "ONE!");
    let second = sandbox.backup(&[]);
    assert_eq!((&second["files_new"], &second["files_changed"]), (&0.into(), &1.into()));
    assert_eq!(second["files_unmodified"], 1);

    let list = sandbox.run(&["snapshots", "--json"]).ok().json();
    assert_eq!(list.as_array().map(Vec::len), Some(2));
    assert_eq!(list[0]["tags"], json!(["x", "y", "z"]));
    assert_eq!(list[0]["username"], "tester");
    assert_eq!(list[1]["id"], second["snapshot_id"]);
    assert_eq!(list[1]["paths"], json!([sandbox.source()]));
    let table = sandbox.run(&["list"]).ok();
    assert!(table.stdout.starts_with("ID        Time                 Host"), "{}", table.stdout);
    assert!(table.stdout.trim_end().ends_with("2 snapshots"), "{}", table.stdout);

    let out = sandbox.path("out");
    let below = format!("latest~1:{}", sandbox.source());
    let restored = sandbox.run(&["restore", &below, "--target", "out", "--verify"]).ok();
    assert!(restored.stdout.contains("Summary: Restored 2 files"), "{}", restored.stdout);
    assert_eq!(content(out.join("a")), "one");
    assert_eq!(content(out.join("folder/b")), "two");
    let whole = sandbox.run(&["restore", "latest", "--target", "whole", "--json"]).ok().message("summary");
    assert_eq!(whole["files_restored"], 2);
    let copy = sandbox.path("whole").join(sandbox.source().trim_start_matches('/'));
    assert_eq!(content(copy.join("a")), "ONE!");
}

#[test]
fn filters_choose_snapshots() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one");
    sandbox.backup(&["--host", "here", "--tag", "a"]);
    sandbox.backup(&["--host", "there", "--tag", "a,b", "--series", "mail"]);
    let count = |arguments: &[&str]| {
        let all: Vec<&str> = ["snapshots", "--json"].iter().chain(arguments).copied().collect();
        sandbox.run(&all).ok().json().as_array().map(Vec::len)
    };
    assert_eq!(count(&[]), Some(2));
    assert_eq!(count(&["-H", "here"]), Some(1));
    assert_eq!(count(&["--tag", "a,b"]), Some(1));
    assert_eq!(count(&["--tag", "a"]), Some(2));
    assert_eq!(count(&["--series", "mail"]), Some(1));
    assert_eq!(count(&["--path", &sandbox.source()]), Some(2));
    assert_eq!(count(&["--path", "/elsewhere"]), Some(0));
    assert_eq!(count(&["latest"]), Some(1));
    let only = ran(sandbox.silt().env("SILT_HOST", "there").args(["snapshots", "--json"])).ok().json();
    assert_eq!(only[0]["series"], "mail");
    let grouped = sandbox.run(&["snapshots", "--json", "--group-by", "host"]).ok().json();
    assert_eq!(grouped[0]["group_key"]["hostname"], "here");
    assert_eq!(grouped[0]["snapshots"].as_array().map(Vec::len), Some(1));
}

#[test]
fn ls_shows_entries_as_text_and_json() {
    let sandbox = Sandbox::new();
    sandbox.write("folder/deep/b", "two");
    symlink("nowhere", sandbox.path("source/link")).expect("made");
    let odd = sandbox.path("source").join(OsStr::from_bytes(b"odd\n\xff"));
    std::fs::write(odd, "").expect("written");
    sandbox.backup(&[]);
    let below = format!("latest:{}", sandbox.source());
    let text = sandbox.run(&["ls", &below]).ok().stdout;
    assert!(text.starts_with("snapshot "), "{text}");
    assert!(text.contains("/folder/deep/b\n") && text.contains("/odd\\n\\xff\n"), "{text}");
    let long = sandbox.run(&["ls", "-l", &below]).ok().stdout;
    assert!(long.contains("/link -> nowhere") && long.contains("drwx"), "{long}");
    let children = sandbox.run(&["ls", &below, "/folder"]).ok().stdout;
    assert!(children.contains("/folder/deep\n") && !children.contains("/deep/b"), "{children}");
    let recursive = sandbox.run(&["ls", "--recursive", &below, "/folder"]).ok().stdout;
    assert!(recursive.contains("/folder/deep/b"), "{recursive}");

    let lines = sandbox.run(&["ls", "--json", &below]).ok().lines();
    assert_eq!(lines[0]["message_type"], "snapshot");
    let node = |name: &str| {
        let named = lines.iter().find(|line| line["name"] == name);
        named.unwrap_or_else(|| panic!("no {name}: {lines:?}")).clone()
    };
    assert_eq!((&node("b")["type"], &node("b")["size"]), (&"file".into(), &3.into()));
    assert_eq!((&node("link")["type"], &node("link")["linktarget"]), (&"symlink".into(), &"nowhere".into()));
    assert_eq!(node("deep")["type"], "dir");
    let odd = lines.iter().find(|line| line["path_raw"].is_string()).expect("the odd one");
    assert!(odd["path_raw"].as_str().expect("text").ends_with("6f64640aff"));
}

#[test]
fn streams_become_files() {
    let sandbox = Sandbox::new();
    let mut silt = sandbox.silt();
    ran_with_input(silt.args(["backup", "--stdin", "--stdin-filename", "dump.sql"]), b"rows").ok();
    assert_eq!(sandbox.run(&["dump", "latest", "/dump.sql"]).ok().stdout, "rows");
    assert_eq!(sandbox.run(&["cat", "latest:dump.sql"]).ok().stdout, "rows");

    sandbox.run(&["backup", "--stdin-from-command", "--", "sh", "-c", "echo from a command"]).ok();
    assert_eq!(sandbox.run(&["dump", "latest", "stdin"]).ok().stdout, "from a command\n");
    let failed = sandbox.run(&["backup", "--stdin-from-command", "--", "sh", "-c", "echo half; exit 7"]).exits(1);
    assert!(failed.stderr.contains("exit status: 7"), "{}", failed.stderr);
    assert_eq!(sandbox.run(&["snapshots", "--json"]).ok().json().as_array().map(Vec::len), Some(2));
    sandbox.run(&["dump", "latest", "stdin", "--target", "copy"]).ok();
    assert_eq!(content(sandbox.path("copy")), "from a command\n");
}

#[test]
fn dry_runs_write_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one");
    let dry = sandbox.run(&["backup", "-n", &sandbox.source()]).ok();
    assert!(dry.stdout.contains("Would add to the repository: "), "{}", dry.stdout);
    assert_eq!(sandbox.run(&["snapshots", "--json"]).ok().json(), json!([]));
    sandbox.backup(&[]);
    sandbox.run(&["restore", "latest", "-t", "out", "--dry-run"]).ok();
    assert!(!sandbox.path("out").join("a").exists());
    let nothing = sandbox.run(&["maintain", "--dry-run", "--parity", "20"]).ok().stdout;
    assert!(nothing.contains("Nothing was written: the repository would grow by "), "{nothing}");
    let kept = sandbox.run(&["maintain", "--dry-run"]).ok().stdout;
    assert!(kept.contains("nothing is left to do"), "the share of parity was not set: {kept}");
}

/// Folders above the source are part of the snapshot, so their times must stand still: the source lies where no other
/// test writes.
#[test]
fn an_unchanged_source_can_be_skipped() {
    let sandbox = Sandbox::new();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let path = folder.path().display().to_string();
    std::fs::write(folder.path().join("a"), "one").expect("written");
    let backup = || sandbox.run(&["backup", "--json", "--skip-if-unchanged", &path]).ok().message("summary");
    assert!(backup()["snapshot_id"].is_string());
    // The folders above are in the snapshot, and other tests make folders in one of them.
    assert!((0..50).any(|_| backup().get("snapshot_id").is_none()));
    std::fs::write(folder.path().join("b"), "two").expect("written");
    assert!(backup()["snapshot_id"].is_string());
}

#[test]
fn excluded_files_stay_out() {
    let sandbox = Sandbox::new();
    for name in ["keep.txt", "drop.o", "Photo.JPG", "cache/x", "huge"] {
        sandbox.write(name, vec![b'x'; if name == "huge" { 5000 } else { 10 }]);
    }
    sandbox.write("cache/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55");
    std::fs::write(sandbox.path("rules"), "# objects\n*.o\n").expect("written");
    let options = ["--exclude-file", "rules", "--iexclude", "*.jpg", "--exclude-caches", "--exclude-larger-than", "4K"];
    sandbox.backup(&options);
    let text = sandbox.run(&["ls", &format!("latest:{}", sandbox.source())]).ok().stdout;
    assert!(text.contains("/keep.txt"), "{text}");
    for gone in ["drop.o", "Photo", "cache/x", "huge"] {
        assert!(!text.contains(gone), "{gone}: {text}");
    }
}

#[test]
fn verbose_backups_name_what_is_new() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one");
    let text = sandbox.run(&["backup", "-v", &sandbox.source()]).ok().stdout;
    assert!(text.contains("new       ") && text.contains("/source/a, 3 B"), "{text}");
    sandbox.write("b", "two");
    let lines = sandbox.run(&["backup", "-v", "--json", &sandbox.source()]).ok().lines();
    let new: Vec<&Value> = lines.iter().filter(|line| line["action"] == "new").collect();
    assert!(new.iter().any(|line| line["item"].as_str().is_some_and(|item| item.ends_with("/b"))), "{lines:?}");
    let quiet = sandbox.run(&["backup", "-q", &sandbox.source()]).ok();
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
}

#[test]
fn restore_overwrites_as_told() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "stored");
    sandbox.backup(&[]);
    let below = format!("latest:{}", sandbox.source());
    let out = sandbox.path("out");
    let restore = |more: &[&str]| {
        let all: Vec<&str> = ["restore", below.as_str(), "-t", "out"].iter().chain(more).copied().collect();
        sandbox.run(&all).ok();
        content(out.join("a"))
    };
    std::fs::create_dir(&out).expect("made");
    std::fs::write(out.join("a"), "local").expect("written");
    std::fs::write(out.join("extra"), "").expect("written");
    assert_eq!(restore(&["--overwrite", "never"]), "local");
    assert_eq!(restore(&["--overwrite", "if-newer"]), "local");
    assert_eq!(restore(&["--overwrite", "if-changed"]), "stored");
    assert!(out.join("extra").exists());
    assert_eq!(restore(&["--delete"]), "stored");
    assert!(!out.join("extra").exists());
    sandbox.run(&["restore", &below]).exits(1);
}

#[test]
fn forgetting_returns_the_bytes_that_the_dry_run_states() {
    let sandbox = Sandbox::new();
    // Bytes that do not compress, so that each snapshot has containers of its own.
    let mut state = 1u64;
    let mut noise = || {
        let step = |state: &mut u64| {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*state >> 56) as u8
        };
        (0..400_000).map(|_| step(&mut state)).collect::<Vec<u8>>()
    };
    for _ in 0..4 {
        sandbox.write("a", noise());
        sandbox.backup(&[]);
    }
    let bytes = || {
        fn walk(folder: &std::path::Path) -> u64 {
            let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
            entries
                .map(|entry| {
                    if entry.path().is_dir() { walk(&entry.path()) } else { entry.metadata().expect("metadata").len() }
                })
                .sum()
        }
        walk(&sandbox.repository())
    };
    let dry = sandbox.run(&["forget", "--keep-last", "2", "--dry-run", "--json"]).ok();
    let groups = dry.json();
    assert_eq!(groups[0]["keep"].as_array().map(Vec::len), Some(2));
    assert_eq!(groups[0]["remove"].as_array().map(Vec::len), Some(2));
    assert_eq!(groups[0]["reasons"][0]["matches"], json!(["last snapshot"]));
    let summary: serde_json::Value = serde_json::from_str(&dry.stderr).expect("a line of JSON");
    let promised = summary["bytes_returned"].as_u64().expect("bytes");
    assert!(promised > 800_000, "{promised}");
    assert_eq!(sandbox.run(&["snapshots", "--json"]).ok().json().as_array().map(Vec::len), Some(4));

    let before = bytes();
    let text = sandbox.run(&["forget", "--keep-last", "2", "--prune"]).ok().stdout;
    assert_eq!(before - bytes(), promised);
    assert!(text.contains("Applying Policy: keep 2 latest snapshots"), "{text}");
    assert!(text.contains(&format!("({promised} bytes) came back")), "{text}");
    assert!(text.contains("snapshots for (host [") && text.contains("remove 2 snapshots:"), "{text}");
    sandbox.run(&["check", "--read-data"]).ok();

    let id = sandbox.run(&["snapshots", "--json"]).ok().json()[0]["short_id"].as_str().expect("an id").to_owned();
    sandbox.run(&["forget", &id]).ok();
    assert_eq!(sandbox.run(&["snapshots", "--json"]).ok().json().as_array().map(Vec::len), Some(1));
}

#[test]
fn rules_thin_each_series_by_itself_unless_groups_are_given() {
    let sandbox = Sandbox::new();
    for content in ["one", "two"] {
        for series in ["pg-a", "pg-b"] {
            ran_with_input(sandbox.silt().args(["backup", "--stdin", "--series", series]), content.as_bytes()).ok();
        }
    }
    let counts = |more: &[&str]| {
        let dry = sandbox.run(&[&["forget", "--keep-last", "1", "--dry-run", "--json"], more].concat()).ok().json();
        let count = |group: &Value, part: &str| group[part].as_array().expect("snapshots").len();
        let groups = dry.as_array().expect("groups").iter();
        groups.map(|group| [count(group, "keep"), count(group, "remove")]).collect::<Vec<_>>()
    };
    assert_eq!(counts(&[]), [[1, 1], [1, 1]]);
    assert_eq!(counts(&["--group-by", "host,paths", "--unsafe-allow-remove-all"]), [[1, 3]]);
    let told = sandbox.run(&["forget", "--keep-last", "1", "--dry-run"]).ok().stdout;
    assert!(told.contains("series [pg-a]):") && told.contains("series [pg-b]):"), "{told}");
    let latest = sandbox.run(&["snapshots", "--latest", "1", "--json"]).ok().json();
    assert_eq!(latest.as_array().map(Vec::len), Some(2));
}

#[test]
fn forget_refuses_what_would_lose_everything() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one");
    sandbox.backup(&[]);
    assert!(sandbox.run(&["forget"]).exits(1).stderr.contains("no policy was specified"));
    let typo = sandbox.run(&["forget", "--keep-tag", "tpyo"]).exits(14);
    assert!(typo.stderr.contains("refusing to remove all snapshots"), "{}", typo.stderr);
    sandbox.run(&["forget", "latest", "--keep-last", "1"]).exits(1);
    sandbox.run(&["forget", "--keep-last", "-1"]).exits(1);
    assert_eq!(sandbox.run(&["snapshots", "--json"]).ok().json().as_array().map(Vec::len), Some(1));
    sandbox.run(&["forget", "--unsafe-allow-remove-all", "--path", &sandbox.source()]).ok();
    assert_eq!(sandbox.run(&["snapshots", "--json"]).ok().json(), json!([]));
}

#[test]
fn check_finds_damage_and_says_where() {
    let sandbox = Sandbox::new();
    sandbox.write("a", vec![7; 100_000]);
    sandbox.backup(&[]);
    let sound = sandbox.run(&["check", "--read-data"]).ok();
    assert!(sound.stdout.trim_end().ends_with("no errors were found"), "{}", sound.stdout);
    assert_eq!(sandbox.run(&["check", "--json"]).ok().message("summary")["num_errors"], 0);
    sandbox.run(&["check", "--read-data-subset", "1/2"]).ok();
    sandbox.run(&["check", "--read-data-subset", "50%"]).ok();
    sandbox.run(&["check", "--read-data-subset", "1G"]).ok();
    sandbox.run(&["check", "--read-data-subset", "3/2"]).exits(1);

    let containers = sandbox.repository().join("data");
    let series = std::fs::read_dir(containers).expect("a folder").next().expect("one series").expect("an entry");
    let container = std::fs::read_dir(series.path()).expect("a folder").next().expect("one").expect("an entry").path();
    std::fs::remove_file(&container).expect("removed");
    let name = container.file_name().and_then(OsStr::to_str).expect("a name").to_owned();
    let damaged = sandbox.run(&["check"]).exits(1);
    assert!(damaged.stderr.contains(&name), "{}", damaged.stderr);
    let json = sandbox.run(&["check", "--json"]).exits(1);
    assert!(json.message("summary")["num_errors"].as_u64().is_some_and(|errors| errors > 0), "{}", json.stdout);
}

#[test]
fn figures_and_small_commands() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one");
    sandbox.backup(&[]);
    let stats = sandbox.run(&["stats", "--json"]).ok().json();
    assert_eq!((&stats["snapshots_count"], &stats["total_size"]), (&1.into(), &3.into()));
    assert!(sandbox.run(&["stats", "--detail"]).ok().stdout.contains("Total Size:  3 B"));
    let told = sandbox.run(&["stats"]).ok().stdout;
    assert!(told.contains("Sources:  3 B in 1 file of 1 snapshot\n") && told.lines().count() == 4, "{told}");
    assert!(sandbox.run(&["prune"]).ok().stdout.contains("nothing is left to do"));
    sandbox.run(&["prune", "--max-unused", "5%"]).ok();
    assert!(sandbox.run(&["unlock"]).ok().stdout.contains("removed 0 locks"));
    assert_eq!(sandbox.run(&["version", "--json"]).ok().json()["message_type"], "version");
    assert!(sandbox.run(&["generate", "--bash-completion", "-"]).ok().stdout.contains("silt"));
}

#[test]
fn places_come_from_options_files_and_variables() {
    let sandbox = Sandbox::new();
    let repository = sandbox.repository().display().to_string();
    std::fs::write(sandbox.path("place"), format!("{repository}\n")).expect("written");
    let silt = || {
        let mut silt = sandbox.silt();
        silt.env_remove("SILT_REPOSITORY");
        silt
    };
    assert!(ran(silt().arg("snapshots")).exits(1).stderr.contains("no repository given"));
    ran(silt().args(["-r", &repository, "snapshots"])).ok();
    ran(silt().args(["--repository-file", "place", "snapshots"])).ok();
    ran(silt().arg("snapshots").env("SILT_REPOSITORY_FILE", "place")).ok();
    ran(silt().args(["-r", &repository, "--repository-file", "place", "snapshots"])).exits(1);
    let unknown = ran(silt().args(["-r", "rest:http://host/", "snapshots"])).exits(1);
    assert!(unknown.stderr.contains("does not reach 'rest:'"), "{}", unknown.stderr);
    let of_ssh = ran(silt().args(["init", "me@server:/backups/repo"])).exits(1);
    assert!(of_ssh.stderr.contains("sftp:me@server:/backups/repo"), "{}", of_ssh.stderr);
    assert!(!sandbox.path("me@server:").exists(), "no folder of that name is made");
    let wrong = ran(silt().args(["init", "s3:host"])).exits(1);
    assert!(wrong.stderr.contains("s3:https://host/bucket/prefix"), "{}", wrong.stderr);
}

#[test]
fn the_repository_is_not_backed_up_into_itself_by_whatever_path_it_is_met() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "one");
    let all = sandbox.path("").display().to_string();
    for _ in 0..2 {
        let told = sandbox.run(&["backup", &all]).ok().stderr;
        for folder in ["repository", "home/.cache/siltstone", "home/.local/state/siltstone"] {
            assert!(
                told.contains(&format!("/{folder}: the repository itself, or what silt keeps")),
                "{folder}: {told}"
            );
        }
        let listed = sandbox.run(&["ls", "latest"]).ok().stdout;
        assert!(listed.contains("/source/a"), "{listed}");
        assert!(!listed.contains("/repository") && !listed.contains("siltstone"), "{listed}");
    }
    std::fs::rename(sandbox.repository(), sandbox.path("source/elsewhere")).expect("moved");
    std::os::unix::fs::symlink("source/elsewhere", sandbox.repository()).expect("linked");
    let told = sandbox.run(&["backup", &sandbox.source()]).ok().stderr;
    assert!(told.contains("/source/elsewhere: the repository itself"), "{told}");
}
