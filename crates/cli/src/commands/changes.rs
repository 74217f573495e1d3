//! Lists of what changed, for `silt backup --changed-list`.

use super::sources::{ListArgs, open_list};
use crate::error::CliError;
use clap::Args;
use siltstone_engine::backup::ChangedList;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options that list what changed since the series' last snapshot.
#[derive(Args, Debug, Default)]
#[allow(clippy::struct_field_names, reason = "they are the names of the options")]
pub(super) struct ChangeArgs {
    /// Look only at what a file lists as changed; the rest is as in the series' last snapshot
    ///
    /// Makes a full snapshot from a list of what changed since the series' last one, such as an incremental backup or a
    /// file system's journal gives: what it does not mention is copied from that snapshot, neither read nor looked at,
    /// so that a change it leaves out stays unknown. PATHs are those of that snapshot; they must hold all that is
    /// listed.
    ///
    /// Text, an entry a line: `PATH`, changed, made or removed (of a folder: with all in it); or
    /// `PATH<TAB>OFFSET<TAB>LENGTH`, of which only these bytes changed, as often as needed, and whatever lies beyond
    /// its old or new length. Only what lies around them is read. Relative paths begin at the working folder; empty
    /// lines are passed over; an empty list makes a snapshot like the last. Of a file with several names, list each.
    /// `-` is standard input; may be repeated.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["stdin", "stdin_from_command"])]
    changed_list: Vec<PathBuf>,
    /// Take the changed entries from a file of paths, each ended by a NUL byte, for names of any bytes
    #[arg(long, value_name = "FILE", conflicts_with_all = ["stdin", "stdin_from_command"])]
    changed_list_raw: Vec<PathBuf>,
}

impl ChangeArgs {
    /// Tells whether a list comes from standard input.
    pub(super) fn take_stdin(&self) -> bool {
        self.all().any(|list| list.as_os_str() == "-")
    }

    fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.changed_list.iter().chain(&self.changed_list_raw)
    }

    /// The lists given as one, if any is, for a backup within so much memory.
    ///
    /// # Errors
    /// A list that cannot be read, is not understood or too large; standard input wanted twice.
    pub(super) fn read(&self, lists: &ListArgs, memory_bytes: u64) -> Result<Option<Arc<ChangedList>>, CliError> {
        let from_stdin = self.all().filter(|list| list.as_os_str() == "-").count();
        if from_stdin > 1 || (from_stdin == 1 && lists.take_stdin()) {
            // Whoever comes second finds it empty, and an empty list says that nothing changed.
            return Err(CliError::Conflict { first: "--changed-list -", second: "another list from standard input" });
        }
        if self.all().next().is_none() {
            return Ok(None);
        }
        let mut list = ChangedList::new(memory_bytes);
        for path in &self.changed_list {
            list.add_lines(&shown(path), open_list(path)?)?;
        }
        for path in &self.changed_list_raw {
            list.add_raw(&shown(path), open_list(path)?)?;
        }
        Ok(Some(Arc::new(list)))
    }
}

fn shown(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard input".to_owned() } else { path.display().to_string() }
}
