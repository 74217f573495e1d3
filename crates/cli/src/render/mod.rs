//! Text and JSON of single things: sizes, durations, times, names, entries, snapshots, tables. Pure functions.

mod change;
mod cost;
mod counted;
mod duration;
mod entry;
mod fit;
mod group;
mod name;
mod size;
mod snapshot;
mod statistics;
mod table;
mod time;
mod transfer;

pub(crate) use change::modifier;
pub(crate) use cost::Cost;
pub(crate) use counted::{counted, plural};
pub(crate) use duration::{clock, seconds};
pub(crate) use entry::{EntryJson, long_line};
pub(crate) use fit::{longest_part, shortened, wrapped};
pub(crate) use group::GroupHeader;
pub(crate) use name::{Path, visible, visible_lines};
pub(crate) use size::{brief, exact, size};
#[cfg(test)]
pub(crate) use snapshot::tests as snapshot_tests;
pub(crate) use snapshot::{SnapshotJson, borrowing_lines, describe, snapshot_table};
pub(crate) use statistics::StatisticsJson;
pub(crate) use table::Table;
pub(crate) use time::{local, rfc3339};
pub(crate) use transfer::Transfer;
