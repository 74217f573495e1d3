//! Which snapshots of a life are kept.

use anyhow::Result;
use siltstone_testbed::program::{self, Cost};
use siltstone_testbed::tool::Repository;
use std::process::Command;

/// The day before the first snapshot. Without the zone `date` takes the number of days for one.
const EPOCH: &str = "2020-01-01 20:00 UTC";
/// Rules of a thinned life, after which some two dozen snapshots are there.
const RULES: [&str; 6] = ["--keep-daily", "7", "--keep-weekly", "5", "--keep-monthly", "12"];

/// Fate of snapshots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Policy {
    /// All stay.
    KeepAll,
    /// One a day is made; behind each, those that no rule keeps are forgotten.
    Thinned,
}

impl Policy {
    /// In words, for the record.
    pub(super) fn description(self) -> String {
        match self {
            Self::KeepAll => "all snapshots are kept".to_owned(),
            Self::Thinned => format!("a snapshot a day, and after each `silt forget {}`", RULES.join(" ")),
        }
    }

    /// Gives the backup of this number its time.
    pub(super) fn date(self, backup: &mut Command, number: u64) -> Result<()> {
        if self == Self::Thinned {
            let day = format!("{EPOCH} + {number} days");
            let said = program::quietly(Command::new("date").args(["-u", "-d", &day, "+%F %T"]))?;
            backup.args(["--time", said.trim()]);
        }
        Ok(())
    }

    /// Forgets what is not kept, right behind a backup.
    pub(super) fn thin(self, repository: &Repository) -> Result<Option<Cost>> {
        let forget = || program::measured(repository.command().arg("forget").args(RULES));
        (self == Self::Thinned).then(forget).transpose()
    }
}
