//! Outcome of one configuration on one history in one round, and the rows that rounds become.

use crate::bench::report::row_with;
use serde_json::{Value, json};
use siltstone_testbed::bench::publish::Row;
use siltstone_testbed::json::number_of;
use siltstone_testbed::program::Cost;
use siltstone_testbed::statistics::{Spread, rounded};
use siltstone_testbed::table::{as_float, mb_per_s};

/// One snapshot made.
#[derive(Clone, Debug)]
pub(super) struct Backup {
    pub(super) cost: Cost,
    pub(super) source_bytes: u64,
    /// Values that the program gave for [`COUNTS`], in their order; 0 where it gave none.
    counts: [i64; COUNTS.len()],
}

/// Sums that `silt backup --json` gives.
const COUNTS: [&str; 4] = ["bytes_migrated", "deltas_kept", "deltas_rejected", "deltas_skipped"];

/// Cost of forgetting, and what it left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forgotten {
    pub(super) cost: Cost,
    pub(super) bytes_returned: i64,
}

/// One snapshot restored, or copied, some times.
#[derive(Clone, Debug, Default)]
pub(super) struct Restores {
    /// Bytes of its files.
    pub(super) bytes: u64,
    /// One of each round of restores.
    pub(super) costs: Vec<Cost>,
}

/// Ways to encode a repository once more: names, and options of `silt maintain --recompress`.
pub(super) const AT_REST: [(&str, &[&str]); 2] = [("at-rest", &[]), ("at-rest-max", &["--compression", "max"])];

/// A copy of the repository that was encoded once more.
#[derive(Clone, Debug)]
pub(super) struct AtRest {
    /// Cost of encoding.
    pub(super) cost: Cost,
    pub(super) repository_bytes: u64,
    /// Restores of the newest.
    pub(super) of_newest: Restores,
}

/// Everything of one configuration in one round.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) backups: Vec<Backup>,
    /// All that lies on disk when all versions are in.
    pub(super) repository_bytes: u64,
    /// Restores of the first, the middle, the last.
    pub(super) restores: Vec<Restores>,
    /// `cp -r` of the last, in the same rounds.
    pub(super) copies: Restores,
    /// Measures at rest, with all versions in, in each way of [`AT_REST`], if they were asked for.
    pub(super) at_rest: Vec<AtRest>,
    /// Forgetting of every second snapshot.
    pub(super) forgotten: Option<Forgotten>,
}

impl Backup {
    /// With what the program said while at it.
    pub(super) fn new(cost: Cost, source_bytes: u64, said: &str) -> Self {
        Self { cost, source_bytes, counts: COUNTS.map(|key| number_of(said, key).unwrap_or_default()) }
    }

    fn mb_per_s(&self) -> f64 {
        mb_per_s(self.source_bytes, self.cost.wall.as_secs_f64())
    }
}

impl Restores {
    /// None yet of so many bytes.
    pub(super) fn of(bytes: u64) -> Self {
        Self { bytes, costs: Vec::new() }
    }

    /// `None` if there was none.
    fn spread(&self) -> Option<Spread> {
        (!self.costs.is_empty()).then(|| Spread::of(self.costs.iter().map(|cost| cost.wall.as_secs_f64())))
    }

    /// By the median time.
    pub(super) fn mb_per_s(&self) -> Option<f64> {
        Some(mb_per_s(self.bytes, self.spread()?.median))
    }

    /// The median over the rounds of how many times as fast this was as `other` in the same round.
    fn speed_to(&self, other: &Self) -> Option<f64> {
        let both = self.costs.iter().zip(&other.costs);
        let ratios: Vec<f64> = both.map(|(own, other)| other.wall.as_secs_f64() / own.wall.as_secs_f64()).collect();
        (!ratios.is_empty()).then(|| Spread::of(ratios).median)
    }
}

impl Outcome {
    fn backup_seconds(&self) -> f64 {
        self.backups.iter().map(|backup| backup.cost.wall.as_secs_f64()).sum()
    }

    fn source_bytes(&self) -> u64 {
        self.backups.iter().map(|backup| backup.source_bytes).sum()
    }

    /// Returns what varies between rounds: in a table stands the median.
    fn measured(&self) -> Vec<(&'static str, Option<f64>)> {
        let backups = self.backups.iter();
        let first = self.backups.first().map(Backup::mb_per_s);
        let later: Vec<f64> = backups.skip(1).map(Backup::mb_per_s).collect();
        let restore = |number: usize| self.restores.get(number)?.mb_per_s();
        let mib = |cost: Cost| as_float(cost.peak_bytes) / f64::from(1 << 20);
        let peak = |costs: &mut dyn Iterator<Item = Cost>| costs.map(mib).reduce(f64::max);
        let backup_peak = peak(&mut self.backups.iter().map(|backup| backup.cost));
        let restore_peak = peak(&mut self.restores.iter().flat_map(|restores| restores.costs.iter().copied()));
        let forget_peak = peak(&mut self.forgotten.iter().map(|forgotten| forgotten.cost));
        vec![
            ("backup_seconds", Some(self.backup_seconds())),
            ("backup_mb_per_s", Some(mb_per_s(self.source_bytes(), self.backup_seconds()))),
            ("first_mb_per_s", first),
            ("later_mb_per_s", (!later.is_empty()).then(|| Spread::of(later).median)),
            ("restore_first_mb_per_s", restore(0)),
            ("restore_middle_mb_per_s", restore(1)),
            ("restore_last_mb_per_s", restore(2)),
            ("restore_last_to_cp", self.restores.get(2).and_then(|last| last.speed_to(&self.copies))),
            ("restore_spread_percent", self.restores.get(2).and_then(|last| Some(last.spread()?.percent()))),
            ("at_rest_seconds", self.at_rest.first().map(|at_rest| at_rest.cost.wall.as_secs_f64())),
            ("at_rest_max_seconds", self.at_rest.get(1).map(|at_rest| at_rest.cost.wall.as_secs_f64())),
            ("restore_at_rest_mb_per_s", self.at_rest.first().and_then(|at_rest| at_rest.of_newest.mb_per_s())),
            ("restore_at_rest_max_mb_per_s", self.at_rest.get(1).and_then(|at_rest| at_rest.of_newest.mb_per_s())),
            ("at_rest_peak_mib", peak(&mut self.at_rest.iter().map(|at_rest| at_rest.cost))),
            ("forget_seconds", self.forgotten.map(|forgotten| forgotten.cost.wall.as_secs_f64())),
            ("peak_mib", [backup_peak, restore_peak, forget_peak].into_iter().flatten().reduce(f64::max)),
            ("backup_peak_mib", backup_peak),
            ("restore_peak_mib", restore_peak),
            ("forget_peak_mib", forget_peak),
        ]
    }

    /// Returns what rounds have in common: the last one's.
    fn counted(&self) -> Vec<(&'static str, Value)> {
        let ratio = as_float(self.source_bytes()) / as_float(self.repository_bytes.max(1));
        let mut counted = vec![
            ("source_bytes", json!(self.source_bytes())),
            ("repository_bytes", json!(self.repository_bytes)),
            ("at_rest_bytes", json!(self.at_rest.first().map(|at_rest| at_rest.repository_bytes))),
            ("at_rest_max_bytes", json!(self.at_rest.get(1).map(|at_rest| at_rest.repository_bytes))),
            ("ratio", json!(rounded(ratio, 2))),
            ("bytes_returned", json!(self.forgotten.map(|forgotten| forgotten.bytes_returned))),
        ];
        let sum = |at: usize| self.backups.iter().map(|backup| backup.counts[at]).sum::<i64>();
        counted.extend(COUNTS.iter().enumerate().map(|(at, key)| (*key, json!(sum(at)))));
        counted
    }

    /// One row per version, for programs.
    pub(super) fn version_rows<'o>(&'o self, data: &'o str, name: &'o str) -> impl Iterator<Item = Row> + 'o {
        self.backups.iter().enumerate().map(move |(number, backup)| {
            let mut row = head("versions", data, name);
            row.insert("version".into(), json!(number));
            row.insert("source_bytes".into(), json!(backup.source_bytes));
            row.insert("seconds".into(), json!(rounded(backup.cost.wall.as_secs_f64(), 3)));
            row.insert("mb_per_s".into(), json!(rounded(backup.mb_per_s(), 1)));
            row.extend(COUNTS.iter().zip(backup.counts).map(|(key, count)| ((*key).to_owned(), json!(count))));
            row
        })
    }
}

/// The row of a configuration: medians over these rounds, at least one.
pub(super) fn row_of(data: &str, name: &str, rounds: &[Outcome]) -> Row {
    let mut row = head("history", data, name);
    let (measured, last) = (rounds.iter().map(Outcome::measured).collect::<Vec<_>>(), &rounds[rounds.len() - 1]);
    row.extend(last.counted().into_iter().map(|(key, value)| (key.to_owned(), value)));
    for (at, (key, _)) in measured[0].iter().enumerate() {
        let values: Vec<f64> = measured.iter().filter_map(|measured| measured[at].1).collect();
        let spread = (!values.is_empty()).then(|| Spread::of(values));
        let digits = if key.ends_with("seconds") || key.contains("_to_") { 3 } else { 1 };
        row.insert((*key).to_owned(), json!(spread.map(|spread| rounded(spread.median, digits))));
        if *key == "backup_seconds" {
            row.insert("spread_percent".into(), json!(spread.map(|spread| rounded(spread.percent(), 1))));
        }
    }
    row
}

/// Returns the beginning of every row.
pub(super) fn head(table: &str, data: &str, name: &str) -> Row {
    row_with([("table", json!(table)), ("data", json!(data)), ("config", json!(name))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn outcome(seconds: u64) -> Outcome {
        let cost = |seconds| Cost { wall: Duration::from_secs(seconds), peak_bytes: 1 << 20, ..Cost::default() };
        let said = "{\"message_type\":\"summary\",\"bytes_migrated\":7}";
        let backup = |seconds| Backup::new(cost(seconds), 10_000_000, said);
        Outcome {
            backups: vec![backup(10 * seconds), backup(seconds), backup(2 * seconds)],
            repository_bytes: 10_000_000,
            restores: vec![Restores { bytes: 10_000_000, costs: [1, 5, 2].map(cost).into() }; 3],
            copies: Restores { bytes: 10_000_000, costs: [3, 1, 1].map(cost).into() },
            at_rest: Vec::new(),
            forgotten: Some(Forgotten { cost: cost(1), bytes_returned: -5 }),
        }
    }

    #[test]
    fn a_row_has_medians_of_rates_and_sums_of_counts() {
        let row = row_of("d", "c", &[outcome(1), outcome(4), outcome(2)]);
        assert_eq!(row["backup_seconds"], 26.0);
        assert_eq!(row["later_mb_per_s"], 5.0);
        assert_eq!(row["ratio"], 3.0);
        assert_eq!(row["bytes_migrated"], 21);
        assert_eq!(row["deltas_kept"], 0);
        assert_eq!(row["bytes_returned"], -5);
        assert_eq!((&row["restore_last_mb_per_s"], &row["restore_spread_percent"]), (&json!(5.0), &json!(200.0)));
        // 3/1, 1/5 and 1/2: of the same rounds, not of the medians.
        assert_eq!(row["restore_last_to_cp"], 0.5);
        assert_eq!(row["peak_mib"], 1.0);
        assert_eq!(outcome(1).version_rows("d", "c").count(), 3);
    }

    #[test]
    fn a_single_version_has_no_later_one() {
        let mut one = outcome(1);
        one.backups.truncate(1);
        one.forgotten = None;
        let row = row_of("d", "c", &[one]);
        assert!(row["later_mb_per_s"].is_null() && row["forget_seconds"].is_null());
    }
}
