//! Snapshots that are deleted and kept for some time: what users see of them, in words and in JSON.

use crate::common::Sandbox;

/// Three snapshots, of different files; their ids.
fn history() -> (Sandbox, Vec<String>) {
    let sandbox = Sandbox::new();
    let ids = (1..4u64).map(|version| {
        let mut state = version << 40;
        // Xorshift: bytes that neither compress nor resemble those of another version.
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[3]
        })
        .take(50_000)
        .collect();
        sandbox.write("file", bytes);
        let summary = sandbox.backup(&["--deltas", "off"]);
        summary["snapshot_id"].as_str().expect("an id").to_owned()
    });
    let ids = ids.collect();
    (sandbox, ids)
}

fn listed(sandbox: &Sandbox, more: &[&str]) -> Vec<String> {
    let arguments: Vec<&str> = ["snapshots", "--json"].iter().chain(more).copied().collect();
    let json = sandbox.run(&arguments).ok().json();
    let snapshots = json.as_array().expect("a list");
    snapshots.iter().map(|snapshot| snapshot["id"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn a_deleted_snapshot_is_gone_for_every_command_but_those_that_bring_it_back() {
    let (sandbox, ids) = history();
    let marked = sandbox.run(&["forget", "--keep-deleted", "7d", "latest"]).ok().stdout;
    assert!(marked.starts_with("marked 1 snapshot as deleted until "), "{marked}");
    assert!(marked.contains("1 deleted snapshot holds ") && marked.contains("--end-deleted"), "{marked}");
    assert_eq!((listed(&sandbox, &[]), listed(&sandbox, &["--deleted"])), (ids[..2].to_vec(), ids[2..].to_vec()));
    let short = &ids[2][..8];
    for command in [&["ls", short][..], &["restore", short, "-t", "out"], &["dump", short, "/"], &["forget", short]] {
        let refused = sandbox.run(command).exits(1);
        assert!(refused.stderr.contains(&format!("silt undelete {short}")), "{command:?}: {}", refused.stderr);
    }
    assert!(sandbox.run(&["undelete", &ids[0][..8]]).exits(1).stderr.contains("is not deleted"));
    assert!(sandbox.run(&["undelete", "00ff00ff"]).exits(1).stderr.contains("no snapshot matches"));
    sandbox.run(&["undelete"]).exits(1);
    assert_eq!(sandbox.run(&["undelete", short]).ok().stdout, "brought back 1 snapshot\n");
    assert_eq!((listed(&sandbox, &[]), listed(&sandbox, &["--deleted"])), (ids.clone(), Vec::new()));
    assert_eq!(sandbox.run(&["snapshots", "--deleted"]).ok().stdout, "0 deleted snapshots\n");
    let target = sandbox.path("out");
    sandbox.run(&["restore", short, "-t", &target.display().to_string()]).ok();
    let restored = target.join(sandbox.source().trim_start_matches('/')).join("file");
    assert_eq!(std::fs::read(restored).expect("restored"), std::fs::read(sandbox.path("source/file")).expect("read"));
}

#[test]
fn every_command_states_the_same_bytes() {
    let (sandbox, ids) = history();
    let forget = |more: &[&str]| {
        let arguments: Vec<&str> = ["forget", "--json"].iter().chain(more).copied().collect();
        sandbox.run(&arguments).ok().json()
    };
    let [one, two] = [0, 1].map(|at| ids[at].as_str());
    let stated = forget(&["-n", "--keep-deleted", "7d", one, two]);
    let done = forget(&["--keep-deleted", "7d", one, two]);
    assert_eq!(
        (&stated["deleted"]["bytes"], &stated["bytes_after"]),
        (&done["deleted"]["bytes"], &done["bytes_after"])
    );
    assert_eq!((&done["snapshots_marked"], &done["snapshots_removed"]), (&2.into(), &0.into()));
    assert!(done["marked_until"].is_string() && done["deleted"]["last_until"].is_string(), "{done}");
    let bytes = done["deleted"]["bytes"].as_i64().expect("a number");
    assert!(bytes > 50_000, "{bytes}");

    let stats = sandbox.run(&["stats", "--json"]).ok().json();
    assert_eq!((&stats["deleted_bytes"], &stats["deleted_snapshots"]), (&bytes.into(), &2.into()));
    assert_eq!(stats["snapshots_count"], 1);
    let words = sandbox.run(&["stats"]).ok().stdout;
    assert!(words.contains("Deleted Snapshots:  2, which hold") && words.contains(&bytes.to_string()), "{words}");
    let table = sandbox.run(&["snapshots", "--deleted"]).ok().stdout;
    assert!(table.contains("Kept Until") && table.contains(&format!("({bytes} bytes) in all")), "{table}");
    let rows = sandbox.run(&["snapshots", "--deleted", "--json"]).ok().json();
    let alone = rows[0]["bytes_freed"].as_i64().expect("a number");
    assert!(alone > 10_000 && alone < bytes && rows[0]["deleted_until"].is_string(), "{rows}");

    let dry = sandbox.run(&["forget", "-n", "--end-deleted"]).ok().stdout;
    assert!(dry.starts_with("would remove 2 snapshots (2 marked as deleted before): "), "{dry}");
    let one_ended = forget(&["--end-deleted", one]);
    assert_eq!((&one_ended["bytes_returned"], &one_ended["snapshots_ended"]), (&alone.into(), &1.into()));
    let rest = forget(&["--end-deleted"]);
    assert_eq!((&rest["snapshots_ended"], &rest["deleted"]["snapshots"]), (&1.into(), &0.into()));
    assert_eq!(listed(&sandbox, &["--deleted"]), Vec::<String>::new());
    assert_eq!(listed(&sandbox, &[]), ids[2..]);
}

#[test]
fn rules_pass_over_deleted_snapshots_and_end_those_whose_time_is_over() {
    let (sandbox, ids) = history();
    sandbox.run(&["forget", "--keep-last", "2", "--keep-deleted", "1s"]).ok();
    assert_eq!(listed(&sandbox, &["--deleted"]), ids[..1]);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let marked = sandbox.run(&["forget", "--keep-last", "1", "--keep-deleted", "1d"]).ok().stdout;
    assert!(marked.contains("mark 1 snapshot:") && marked.contains("(1 marked as deleted before)"), "{marked}");
    assert_eq!((listed(&sandbox, &[]), listed(&sandbox, &["--deleted"])), (ids[2..].to_vec(), ids[1..2].to_vec()));
    let kept = sandbox.run(&["forget", "--keep-last", "1"]).ok().stdout;
    assert!(kept.contains("no snapshots were removed\n1 deleted snapshot holds "), "it says what holds space: {kept}");
    let at_once = sandbox.run(&["forget", "--keep-last", "1", "--end-deleted"]).ok().stdout;
    assert!(at_once.contains("removed 1 snapshot (1 marked as deleted before)"), "{at_once}");
}

#[test]
fn marking_is_guarded_as_removing_is_and_a_window_of_no_time_removes() {
    let (sandbox, ids) = history();
    let all: Vec<&str> = ids.iter().map(String::as_str).collect();
    for window in ["7d", "0"] {
        let arguments: Vec<&str> = ["forget", "--keep-deleted", window].iter().chain(&all).copied().collect();
        assert!(sandbox.run(&arguments).exits(14).stderr.contains("--unsafe-allow-remove-all"));
        sandbox.run(&["forget", "--keep-tag", "mistyped", "--keep-deleted", window]).exits(14);
    }
    sandbox.run(&["forget", "--keep-deleted", "7d"]).exits(1);
    sandbox.run(&["forget", "--keep-deleted", "7", all[0]]).exits(1);
    sandbox.run(&["forget", "--keep-deleted", "7d", "--end-deleted"]).exits(1);
    sandbox.run(&["forget", "--end-deleted", all[0]]).exits(1);
    let removed = sandbox.run(&["forget", "--keep-deleted", "0", all[0]]).ok().stdout;
    assert!(removed.starts_with("removed 1 snapshot: ") && !removed.contains("deleted snapshots"), "{removed}");
    let marked: Vec<&str> =
        ["forget", "--unsafe-allow-remove-all", "--keep-deleted", "7d"].iter().chain(&all[1..]).copied().collect();
    sandbox.run(&marked).ok();
    assert_eq!(listed(&sandbox, &[]), Vec::<String>::new());
    assert!(sandbox.run(&["ls", "latest"]).exits(1).stderr.contains("no snapshot matches 'latest'"));
    sandbox.run(&["undelete", all[1], all[2], all[1]]).ok();
    assert_eq!(listed(&sandbox, &[]), ids[1..]);
}
