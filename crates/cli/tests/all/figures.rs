//! Figures that `stats`, `backup`, `forget` and `maintain` give of deltas, layout and what was moved, as text and as
//! JSON.

use crate::common::Sandbox;
use serde_json::Value;

const FILE_BYTES: usize = 400_000;

/// Versions of one file with a small edit at the same place.
struct History {
    sandbox: Sandbox,
    bytes: Vec<u8>,
    state: u64,
}

impl History {
    fn new() -> Self {
        let mut history = Self { sandbox: Sandbox::new(), bytes: Vec::new(), state: 1 };
        history.bytes = history.noise(FILE_BYTES);
        history
    }

    /// With so many backups.
    fn of(versions: usize) -> Self {
        let mut history = Self::new();
        (0..versions).for_each(|_| drop(history.next(&[])));
        history
    }

    /// Bytes that do not compress.
    fn noise(&mut self, bytes: usize) -> Vec<u8> {
        let mut step = || {
            self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            self.state.to_le_bytes()[7]
        };
        (0..bytes).map(|_| step()).collect()
    }

    fn edit(&mut self) {
        let edit = self.noise(3000);
        self.bytes[FILE_BYTES / 2..][..edit.len()].copy_from_slice(&edit);
        self.sandbox.write("edited", &self.bytes);
    }

    /// Another edit, backed up.
    fn next(&mut self, more: &[&str]) -> Value {
        self.edit();
        self.sandbox.backup(more)
    }

    fn stats(&self, more: &[&str]) -> Value {
        let all: Vec<&str> = ["stats", "--json"].iter().chain(more).copied().collect();
        self.sandbox.run(&all).ok().json()
    }
}

/// A whole number.
#[track_caller]
fn whole(json: &Value, field: &str) -> u64 {
    json[field].as_u64().unwrap_or_else(|| panic!("{field}: {json}"))
}

/// The lines that begin so.
fn line<'t>(text: &'t str, begin: &str) -> Option<&'t str> {
    text.lines().map(str::trim_start).find(|line| line.starts_with(begin))
}

#[test]
fn a_backup_tells_of_its_deltas() {
    let mut history = History::new();
    let first = history.next(&[]);
    assert_eq!(["deltas_kept", "deltas_skipped", "bytes_migrated"].map(|field| whole(&first, field)), [0; 3]);
    let second = history.next(&[]);
    assert!(whole(&second, "deltas_kept") > 0 && whole(&second, "bytes_migrated") > 0, "{second}");

    history.edit();
    let source = history.sandbox.source();
    let text = history.sandbox.run(&["backup", &source]).ok().stdout;
    let deltas = line(&text, "Deltas:").unwrap_or_else(|| panic!("no deltas: {text}"));
    assert!(deltas.contains(" kept, ") && deltas.contains(" rejected, ") && deltas.contains("; moved "), "{deltas}");
    let unchanged = history.sandbox.run(&["backup", "--deltas", "off", "--no-migrate", &source]).ok().stdout;
    assert_eq!(line(&unchanged, "Deltas:"), None, "{unchanged}");

    let listed = history.sandbox.run(&["snapshots", "--json"]).ok().json();
    for field in ["deltas_kept", "deltas_rejected", "deltas_skipped", "bytes_migrated"] {
        assert_eq!(listed[1]["summary"][field], second[field], "{field} stands with the snapshot");
    }
}

#[test]
fn figures_go_down_step_by_step() {
    let mut history = History::new();
    let summaries: Vec<Value> = (0..5).map(|_| history.next(&[])).collect();
    let stats = history.stats(&[]);
    let steps = ["logical_bytes", "deduplicated_bytes", "after_delta_bytes"].map(|field| whole(&stats, field));
    assert!(steps.is_sorted_by(|a, b| a > b), "{steps:?}");
    assert_eq!(steps[0], 5 * FILE_BYTES as u64);
    assert_eq!(whole(&stats, "total_size"), steps[0]);
    assert!(whole(&stats, "stored_bytes") < whole(&stats, "data_container_bytes"));
    let efficiency = stats["delta_compression_efficiency"].as_f64().expect("deltas");
    assert!(efficiency > 0.5 && efficiency < 1.0, "{efficiency}");
    for field in ["deltas_kept", "deltas_rejected", "deltas_skipped", "bytes_migrated"] {
        let sum: u64 = summaries.iter().map(|summary| whole(summary, field)).sum();
        assert_eq!(whole(&stats, field), sum, "{field}");
    }
    let raw = history.stats(&["--mode", "raw-data"]);
    assert_eq!(whole(&raw, "total_size"), whole(&stats, "stored_bytes") + whole(&stats, "metadata_stored_bytes"));

    let snapshots = stats["snapshots"].as_array().expect("a list");
    assert_eq!(snapshots.len(), 5);
    assert_eq!(snapshots[4]["id"], summaries[4]["snapshot_id"]);
    assert_eq!(whole(&snapshots[4], "base_chunks"), 0, "the last is whole");
    assert!(whole(&snapshots[0], "base_chunks") > 0 && whole(&snapshots[0], "delta_chunks") > 0);
    for snapshot in snapshots {
        assert!(snapshot["read_amplification"].as_f64().is_some_and(|factor| (1.0..3.0).contains(&factor)));
        assert!(whole(snapshot, "containers_needed") > 0 && whole(snapshot, "metadata_containers_needed") > 0);
    }
    let restored = history.sandbox.run(&["restore", "latest", "-t", "out", "--json"]).ok().message("summary");
    for field in ["containers_needed", "bytes_read"] {
        assert_eq!(whole(&restored, field), whole(&snapshots[4], field), "{field} is what a restore tells");
    }
}

#[test]
fn figures_of_some_snapshots_only() {
    let history = History::of(5);
    let one = history.stats(&["latest~1"]);
    let all = history.stats(&[]);
    assert_eq!(whole(&one, "snapshots_count"), 1);
    assert_eq!(one["snapshots"][0], all["snapshots"][3]);
    assert_eq!(one["deduplicated_bytes"], one["snapshots"][0]["deduplicated_bytes"]);
    assert_eq!(one["repository_bytes"], all["repository_bytes"]);
    let id = all["snapshots"][0]["short_id"].as_str().expect("an id").to_owned();
    let two = history.stats(&[&id, "latest", "latest"]);
    assert_eq!((whole(&two, "snapshots_count"), whole(&two, "logical_bytes")), (2, 2 * FILE_BYTES as u64));
    let none = history.stats(&["--host", "elsewhere"]);
    assert_eq!((whole(&none, "snapshots_count"), whole(&none, "stored_bytes")), (0, 0));
    history.sandbox.run(&["stats", "ffffffff"]).exits(1);
}

#[test]
fn figures_as_text() {
    let history = History::of(5);
    let text = history.sandbox.run(&["stats", "--detail"]).ok().stdout;
    assert!(text.starts_with("Stats in restore-size mode:\n     Snapshots processed:  5\n"), "{text}");
    for begin in ["Repository Size:", "Logical Size:", "After Deduplication:", "After Deltas:", "After Compression:"] {
        assert!(line(&text, begin).is_some(), "{begin} {text}");
    }
    let efficiency = line(&text, "In Deltas:").expect("deltas");
    assert!(efficiency.contains(" chunks, ") && efficiency.contains("(DCE "), "{efficiency}");
    assert!(text.contains("Containers  Read"), "{text}");
    assert!(text.ends_with("3 of 5: the first, the middle and the last of each series\n"), "{text}");
    let named = history.sandbox.run(&["stats", "--detail", "latest", "latest~1", "latest~2", "latest~3"]).ok().stdout;
    assert!(named.ends_with("\n4 snapshots\n"), "{named}");
    let none = history.sandbox.run(&["stats", "--detail", "--tag", "none"]).ok().stdout;
    assert!(none.trim_end().ends_with("Moved After Backups:  0 B"), "no table: {none}");
}

#[test]
fn what_deltas_hold_back_is_told_and_comes_back_later() {
    let mut history = History::of(9);
    let ids = history.stats(&[]);
    let ids: Vec<&str> = (2..7).map(|at| ids["snapshots"][at]["short_id"].as_str().expect("an id")).collect();
    let forget = |more: &[&str]| {
        let all: Vec<&str> = ["forget"].iter().chain(&ids).chain(more).copied().collect();
        history.sandbox.run(&all).ok()
    };
    let dry = forget(&["--dry-run", "--json"]).message("summary");
    let later = whole(&dry, "ghost_bytes");
    assert!(later > 0, "{dry}");
    let text = forget(&[]).stdout;
    let told = line(&text, "about ").unwrap_or_else(|| panic!("nothing told: {text}"));
    assert!(told.ends_with(" more can come back once 'silt maintain' or the next backup has run"), "{told}");
    let before = whole(&history.stats(&[]), "base_chunks");
    assert!(before > 0);

    let maintain = |more: &[&str]| {
        let all = [&["maintain", "--migrate-threshold", "0", "--json"], more].concat();
        history.sandbox.run(&all).ok().message("summary")
    };
    let mut rehearsed = maintain(&["--dry-run"]);
    assert_eq!(maintain(&["--dry-run"]), rehearsed, "nothing was done");
    let maintained = maintain(&[]);
    assert!(rehearsed["bytes_kept"].as_i64().is_some_and(|bytes| bytes < 0), "{rehearsed}");
    rehearsed.as_object_mut().expect("a document").remove("bytes_kept");
    rehearsed["dry_run"] = false.into();
    assert_eq!(rehearsed, maintained);
    let eliminated = whole(&maintained, "ghosts_eliminated");
    assert!(eliminated > 0, "{maintained}");
    // What is stored whole stays a base.
    assert_eq!(whole(&history.stats(&[]), "base_chunks"), before - eliminated);
    assert!(history.sandbox.run(&["maintain", "--recompress", "0"]).ok().stdout.contains("nothing is left to do"));
    // Which is when there is time for what lies there for long.
    assert!(whole(&maintain(&[]), "containers_recompressed") > 0);
    let last = history.sandbox.run(&["forget", "latest"]).ok().stdout;
    assert_eq!(line(&last, "about "), None, "{last}");
    history.next(&[]);
    history.sandbox.run(&["check", "--read-data"]).ok();
}
