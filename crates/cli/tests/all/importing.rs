//! `silt import` by the real program.

use crate::common::{Sandbox, ran};
use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};

/// Writes the source as an archive beside it, as GNU tar does.
fn tar(sandbox: &Sandbox, name: &str) -> String {
    let archive = format!("{}.{name}", sandbox.source());
    let made = Command::new("tar").args(["-C", &sandbox.source(), "-cf", &archive, "."]).status().expect("tar runs");
    assert!(made.success());
    archive
}

fn snapshots(sandbox: &Sandbox) -> Vec<Value> {
    let told = ran(sandbox.silt().args(["snapshots", "--json"])).ok().stdout;
    serde_json::from_str::<Value>(&told).expect("JSON").as_array().expect("an array").clone()
}

#[test]
fn archives_become_snapshots_in_their_order_with_their_times() {
    let sandbox = Sandbox::new();
    sandbox.write("folder/file", b"one");
    let first = tar(&sandbox, "1.tar");
    sandbox.write("folder/file", b"two");
    sandbox.write("more", b"more");
    let second = tar(&sandbox, "2.tar");
    for (archive, time) in [(&first, "2001-02-03 04:05:06 UTC"), (&second, "2002-02-03 04:05:06 UTC")] {
        assert!(Command::new("touch").args(["-d", time, archive]).status().expect("touch runs").success());
    }
    let labels = ["--tag", "a,b", "--host", "other", "--description", "from tar"];
    ran(sandbox.silt().args(["import", "tar", "--series", "s", &first, &second]).args(labels)).ok();
    let listed = snapshots(&sandbox);
    let of = |field: &str| listed.iter().map(|one| one[field].to_string()).collect::<Vec<_>>();
    assert!(
        of("time")[0].starts_with("\"2001-02-03T04:05:06") && of("time")[1].starts_with("\"2002"),
        "{:?}",
        of("time")
    );
    assert_eq!(of("tags"), [r#"["a","b"]"#; 2]);
    assert_eq!(of("hostname"), [r#""other""#; 2]);
    for (snapshot, expected) in [("latest", "two"), ("latest~1", "one")] {
        assert_eq!(ran(sandbox.silt().args(["dump", snapshot, "/folder/file"])).ok().stdout, expected);
    }
    let unchanged = ["import", "tar", "--series", "s", "--skip-if-unchanged", &second];
    assert!(ran(sandbox.silt().args(unchanged)).ok().stdout.contains("nothing changed"));
    assert_eq!(snapshots(&sandbox).len(), 2);
}

#[test]
fn an_archive_may_come_from_standard_input_and_go_below_a_folder() {
    let sandbox = Sandbox::new();
    sandbox.write("file", b"content");
    let archive = tar(&sandbox, "tar");
    let mut silt = sandbox.silt();
    silt.args([
        "import",
        "tar",
        "--series",
        "s",
        "--as-path",
        "/home/me",
        "--time",
        "2001-02-03T04:05:06Z",
        "-",
        "--json",
    ]);
    silt.stdin(Stdio::from(fs::File::open(&archive).expect("the archive")));
    let told = ran(&mut silt).ok().stdout;
    let summary: Value = serde_json::from_str(told.lines().last().expect("a summary")).expect("JSON");
    assert_eq!(summary["message_type"], "summary");
    assert_eq!(summary["total_files_processed"], 1);
    assert_eq!(ran(sandbox.silt().args(["dump", "latest", "/home/me/file"])).ok().stdout, "content");
    assert_eq!(snapshots(&sandbox)[0]["paths"], serde_json::json!(["/home/me"]));
}

#[test]
fn what_is_no_archive_is_refused_and_what_cannot_be_kept_is_told() {
    let sandbox = Sandbox::new();
    sandbox.write("file", b"content");
    let archive = tar(&sandbox, "tar");
    let import = |arguments: &[&str]| ran(sandbox.silt().args(["import", "tar", "--series", "s"]).args(arguments));
    let cut = format!("{archive}.cut");
    fs::write(&cut, &fs::read(&archive).expect("read")[..1100]).expect("written");
    for (arguments, words) in [
        (&[cut.as_str()][..], "cut short"),
        (&["/etc"], "cannot read the archive /etc"),
        (&["/nowhere.tar"], "cannot read the archive /nowhere.tar"),
        (&["--time", "2001-02-03T04:05:06Z", &archive, &archive], "--time is the time of one snapshot"),
    ] {
        let refused = import(arguments).exits(1);
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
    assert_eq!(snapshots(&sandbox).len(), 0);

    let odd = format!("{archive}.odd");
    let renamed = ["--transform", "s,file,../file,", "-P", "-C", &sandbox.source(), "-cf", &odd, "file"];
    assert!(Command::new("tar").args(renamed).status().expect("tar runs").success());
    let told = import(&[&odd]).exits(3);
    assert!(told.stderr.contains("../file: cannot be imported as it is: its name holds '..'"), "{}", told.stderr);
}

#[test]
fn an_exported_archive_is_imported_as_it_was() {
    let sandbox = Sandbox::new();
    sandbox.write("folder/file", b"content");
    fs::hard_link(sandbox.path("source/folder/file"), sandbox.path("source/other name")).expect("a hard link");
    let hole = fs::File::create(sandbox.path("source/hole")).expect("a file");
    hole.set_len(9 << 20).expect("a hole");
    sandbox.backup(&[]);
    let archive = sandbox.path("out.tar").display().to_string();
    ran(sandbox.silt().args(["export", "tar", "latest", "--output", &archive])).ok();
    assert!(fs::metadata(&archive).expect("the archive").len() < 1 << 20, "a hole takes no space");
    ran(sandbox.silt().args(["import", "tar", "--series", "again", &archive])).ok();
    let ids: Vec<String> =
        snapshots(&sandbox).iter().map(|one| one["id"].as_str().expect("an id").to_owned()).collect();
    let told = ran(sandbox.silt().args(["diff", "--metadata", &ids[0], &ids[1]])).ok().stdout;
    assert!(told.contains("Files:        0 new,       0 removed,       0 changed"), "{told}");
    assert!(!told.contains("U    "), "{told}");

    let zip = sandbox.path("out.zip");
    let reference = format!("latest:{}/folder/file", sandbox.source());
    ran(sandbox.silt().args(["export", "zip", &reference, "-o", &zip.display().to_string()])).ok();
    assert!(fs::read(&zip).expect("the archive").starts_with(b"PK"), "a file is exported as an archive too");
}

#[test]
fn a_mounted_snapshot_is_backed_up_as_what_it_is_a_snapshot_of() {
    let sandbox = Sandbox::new();
    sandbox.write("snapshots/monday/file", b"content");
    let source = format!("{}/snapshots/monday", sandbox.source());
    ran(sandbox.silt().args(["backup", "--host", "h", "--as-path", "/home/me", &source])).ok();
    assert_eq!(snapshots(&sandbox)[0]["paths"], serde_json::json!(["/home/me"]));
    assert_eq!(ran(sandbox.silt().args(["dump", "latest", "/home/me/file"])).ok().stdout, "content");
    let refused = ran(sandbox.silt().args(["backup", "--as-path", "/home/me", &source, "/etc"])).exits(1);
    assert!(refused.stderr.contains("only one file or folder"), "{}", refused.stderr);
}
