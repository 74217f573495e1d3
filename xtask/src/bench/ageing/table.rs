//! Tables of a life: rows, and three tables of them.

use super::life::{Forgotten, Life, Restored};
use crate::bench::report::row_with;
use serde_json::{Value, json};
use siltstone_testbed::bench::publish::{Row, rows_of, table_of};
use siltstone_testbed::program::Cost;
use siltstone_testbed::statistics::{Spread, rounded};
use siltstone_testbed::table::mb_per_s;

/// Columns of the table of ages.
const AGES: &str = "snapshots kept source_bytes repository_bytes objects manifest_bytes backup_seconds \
    backup_processor_seconds backup_peak_mb forget_seconds unchanged_seconds unchanged_processor_seconds \
    restore_seconds spread_percent restore_mb_per_s to_youngest to_cp bytes_read";
/// Columns of the table of snapshots.
const SNAPSHOTS: &str = "snapshot source_bytes restore_seconds spread_percent restore_mb_per_s \
    containers_read bytes_read";
/// Columns of the table of forgetting.
const FORGOTTEN: &str = "forgotten seconds spread_percent repository_bytes bytes_returned bytes_of_ghosts";

/// All rows of a life.
pub(super) fn rows(data: &str, life: &Life) -> Vec<Row> {
    let copy = seconds(&life.copies).map(|seconds| seconds.median);
    let youngest = life.ages.first().and_then(|age| seconds(&age.restored.costs)).map(|seconds| seconds.median);
    let mut rows = Vec::new();
    for age in &life.ages {
        let mut row = head("ages", data);
        row.insert("snapshots".into(), json!(age.snapshots));
        row.insert("kept".into(), json!(age.live));
        row.insert("repository_bytes".into(), json!(age.repository_bytes));
        row.insert("objects".into(), json!(age.objects));
        row.insert("manifest_bytes".into(), json!(age.manifest_bytes));
        for (name, costs) in [("backup", &age.backups), ("forget", &age.forgets), ("unchanged", &age.unchanged)] {
            let median = |of: fn(&Cost) -> f64| spread(costs, of).map(|spread| rounded(spread.median, 3));
            row.insert(format!("{name}_seconds"), json!(median(|cost| cost.wall.as_secs_f64())));
            row.insert(format!("{name}_processor_seconds"), json!(median(|cost| cost.processor.as_secs_f64())));
        }
        let peak = age.backups.iter().map(|cost| cost.peak_bytes).max();
        row.insert("backup_peak_mb".into(), json!(peak.map(|bytes| bytes / 1_000_000)));
        restored(&mut row, &age.restored);
        let median = seconds(&age.restored.costs).map(|seconds| seconds.median);
        // Of speeds, as everywhere: above 1 is faster.
        for (key, other) in [("to_youngest", youngest), ("to_cp", copy)] {
            row.insert(key.into(), json!(other.zip(median).map(|(other, own)| rounded(other / own, 3))));
        }
        rows.push(row);
    }
    let names = ["first", "middle", "last"];
    for (name, snapshot) in names.into_iter().skip(names.len() - life.snapshots.len()).zip(&life.snapshots) {
        let mut row = head("snapshots", data);
        row.insert("snapshot".into(), json!(name));
        restored(&mut row, snapshot);
        rows.push(row);
    }
    let mut row = head("snapshots", data);
    row.insert("snapshot".into(), json!("cp -r"));
    let bytes = life.ages.last().map_or(0, |age| age.restored.source_bytes);
    timed(&mut row, "restore_seconds", &life.copies);
    row.insert("source_bytes".into(), json!(bytes));
    row.insert("restore_mb_per_s".into(), json!(copy.map(|seconds| rounded(mb_per_s(bytes, seconds), 1))));
    rows.push(row);
    rows.push(forgotten(head("forgotten", data), &life.forgotten));
    rows
}

fn restored(row: &mut Row, restored: &Restored) {
    timed(row, "restore_seconds", &restored.costs);
    let rate = seconds(&restored.costs).map(|seconds| rounded(mb_per_s(restored.source_bytes, seconds.median), 1));
    let mut set = |key: &str, value: Value| row.insert(key.to_owned(), value);
    set("source_bytes", json!(restored.source_bytes));
    set("restore_mb_per_s", json!(rate));
    set("containers_read", json!(restored.containers_read));
    set("bytes_read", json!(restored.bytes_read));
}

fn forgotten(mut row: Row, forgotten: &Forgotten) -> Row {
    row.insert("forgotten".into(), json!(forgotten.snapshots));
    timed(&mut row, "seconds", &forgotten.costs);
    row.insert("repository_bytes".into(), json!(forgotten.before_bytes));
    row.insert("bytes_returned".into(), json!(forgotten.bytes_returned));
    row.insert("bytes_of_ghosts".into(), json!(forgotten.bytes_of_ghosts));
    row
}

fn timed(row: &mut Row, key: &str, costs: &[Cost]) {
    let seconds = seconds(costs);
    row.insert(key.into(), json!(seconds.map(|seconds| rounded(seconds.median, 3))));
    row.insert("spread_percent".into(), json!(seconds.map(|seconds| rounded(seconds.percent(), 1))));
}

/// `None` of none.
fn seconds(costs: &[Cost]) -> Option<Spread> {
    spread(costs, |cost| cost.wall.as_secs_f64())
}

fn spread(costs: &[Cost], of: fn(&Cost) -> f64) -> Option<Spread> {
    (!costs.is_empty()).then(|| Spread::of(costs.iter().map(of)))
}

fn head(table: &str, data: &str) -> Row {
    row_with([("table", json!(table)), ("data", json!(data))])
}

/// The tables of one source.
pub(super) fn tables(data: &str, description: &str, rows: &[Row]) -> String {
    format!(
        "### {data}\n\n{description}\n\nBy age, the last snapshot restored:\n\n{}\nIn the end:\n\n{}\n{}\n",
        table_of(AGES, &rows_of(rows, "ages")),
        table_of(SNAPSHOTS, &rows_of(rows, "snapshots")),
        table_of(FORGOTTEN, &rows_of(rows, "forgotten"))
    )
}

#[cfg(test)]
mod tests {
    use super::super::life::Age;
    use super::*;
    use std::time::Duration;

    fn costs(seconds: &[u64]) -> Vec<Cost> {
        seconds.iter().map(|seconds| Cost { wall: Duration::from_secs(*seconds), ..Cost::default() }).collect()
    }

    fn took(seconds: &[u64]) -> Restored {
        Restored { source_bytes: 12_000_000, costs: costs(seconds), containers_read: 3, bytes_read: 5 }
    }

    #[test]
    fn ages_stand_against_the_youngest_and_against_a_copy() {
        let age = |snapshots, seconds: &[u64]| Age {
            snapshots,
            repository_bytes: 7,
            objects: 2,
            manifest_bytes: 3,
            live: snapshots,
            backups: costs(&[1]),
            forgets: Vec::new(),
            unchanged: costs(&[1, 1]),
            restored: took(seconds),
        };
        let life = Life {
            ages: vec![age(5, &[2, 3, 2]), age(100, &[4, 9, 4])],
            copies: costs(&[1]),
            snapshots: vec![took(&[6]), took(&[6]), took(&[4])],
            forgotten: Forgotten {
                snapshots: 50,
                before_bytes: 9,
                bytes_returned: 4,
                bytes_of_ghosts: 0,
                costs: costs(&[1]),
            },
            restored_to: String::new(),
        };
        let rows = rows("d", &life);
        assert_eq!(rows.len(), 2 + 4 + 1);
        assert_eq!((&rows[1]["to_youngest"], &rows[1]["to_cp"]), (&json!(0.5), &json!(0.25)));
        assert_eq!((&rows[1]["restore_mb_per_s"], &rows[1]["spread_percent"]), (&json!(3.0), &json!(125.0)));
        assert_eq!((&rows[5]["snapshot"], &rows[5]["restore_mb_per_s"]), (&json!("cp -r"), &json!(12.0)));
        assert_eq!(rows[6]["bytes_returned"], 4);
        assert_eq!(tables("d", "what", &rows).matches("cp -r").count(), 1);
    }

    #[test]
    fn what_was_not_measured_is_left_out() {
        let forgotten = forgotten(head("forgotten", "d"), &Forgotten::default());
        assert!(forgotten["seconds"].is_null() && forgotten["spread_percent"].is_null());
    }
}
