//! Ledger of what was fuzzed: for each target and each commit the time it had and what it came to.

use super::outcome::Outcome;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Rows, by target, then in the order in which their commits were fuzzed.
#[derive(PartialEq, Debug, Default)]
pub(super) struct Ledger {
    rows: Vec<Outcome>,
}

impl Ledger {
    /// Reads a ledger; an empty one if there is none.
    pub(super) fn load(file: &Path) -> Result<Self> {
        if !file.exists() {
            return Ok(Self::default());
        }
        let rows = serde_json::from_slice(&fs::read(file)?);
        Ok(Self { rows: rows.with_context(|| format!("{} is no ledger", file.display()))? })
    }

    /// Writes it, a line for each row.
    pub(super) fn save(&self, file: &Path) -> Result<()> {
        let rows = self.rows.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        let fresh = file.with_extension("new");
        fs::write(&fresh, format!("[\n{}\n]\n", rows.join(",\n")))?;
        Ok(fs::rename(fresh, file)?)
    }

    /// Takes a row in. Of two for the same target and commit, the one with more time is kept.
    pub(super) fn put(&mut self, row: Outcome) {
        let same = self.rows.iter_mut().find(|kept| (&kept.target, &kept.commit) == (&row.target, &row.commit));
        match same {
            Some(kept) if kept.processor < row.processor => *kept = row,
            Some(_) => {}
            None => {
                let end = self.rows.partition_point(|kept| kept.target <= row.target);
                self.rows.insert(end, row);
            }
        }
    }

    /// Takes in all rows of another ledger.
    pub(super) fn join(&mut self, other: Self) {
        other.rows.into_iter().for_each(|row| self.put(row));
    }

    /// Returns the row of a target and a commit; a fresh one if there is none.
    pub(super) fn row(&self, target: &str, commit: &str) -> Outcome {
        let mut rows = self.rows_of(target);
        let fresh = || Outcome { target: target.to_owned(), commit: commit.to_owned(), ..Outcome::default() };
        rows.find(|row| row.commit == commit).cloned().unwrap_or_else(fresh)
    }

    /// Returns the rows of a target.
    pub(super) fn rows_of(&self, target: &str) -> impl Iterator<Item = &Outcome> {
        self.rows.iter().filter(move |row| row.target == target)
    }

    /// Returns the processor time that a target had on all commits but this one.
    pub(super) fn time_elsewhere(&self, target: &str, commit: &str) -> Duration {
        self.rows_of(target).filter(|row| row.commit != commit).map(|row| row.processor).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(target: &str, commit: &str, seconds: u64) -> Outcome {
        let processor = Duration::from_secs(seconds);
        Outcome {
            target: target.into(),
            commit: commit.into(),
            processor,
            executions: 7 * seconds,
            ..Outcome::default()
        }
    }

    #[test]
    fn a_later_run_goes_on_where_the_one_before_ended() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("ledger.json");
        let mut ledger = Ledger::load(&file).expect("nothing yet");
        assert_eq!(ledger.row("slot", "abc"), row("slot", "abc", 0));
        ledger.put(row("tar", "abc", 3));
        ledger.put(row("slot", "abc", 5));
        ledger.save(&file).expect("saved");
        assert_eq!(Ledger::load(&file).expect("loaded"), ledger);
        assert_eq!(ledger.row("slot", "abc"), row("slot", "abc", 5));
    }

    #[test]
    fn time_on_other_commits_counts_and_of_two_accounts_of_one_the_longer() {
        let mut ledger = Ledger::default();
        [row("slot", "old", 5), row("slot", "new", 9)].into_iter().for_each(|row| ledger.put(row));
        let mut other = Ledger::default();
        [row("slot", "old", 4), row("slot", "new", 11), row("tar", "new", 2)]
            .into_iter()
            .for_each(|row| other.put(row));
        ledger.join(other);
        let all = ["slot", "tar"].map(|target| ledger.rows_of(target).cloned().collect::<Vec<_>>()).concat();
        assert_eq!(all, [row("slot", "old", 5), row("slot", "new", 11), row("tar", "new", 2)]);
        assert_eq!(ledger.time_elsewhere("slot", "new"), Duration::from_secs(5));
    }
}
