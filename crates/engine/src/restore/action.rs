//! The choice of what a restore does with an entry, given what stands where it belongs.

use super::options::Overwrite;
use super::run::RestoreRun;
use crate::chunks::ChunkSource;
use crate::fs::{ConflictPolicy, NodeKind, Problem, ProblemKind, Status, TargetDir};
use siltstone_store::catalog::{Content, Entry, EntryPath, Metadata};

/// Action of a restore on an entry.
pub(super) enum Action {
    /// It is made: nothing stands there.
    New,
    /// It takes the place of what stands there.
    Replace {
        /// That is a directory.
        directory: bool,
        /// That has the snapshot's size and time; what differs nevertheless.
        only_looked_right: Option<Problem>,
    },
    /// The object that is there stays.
    Keep {
        /// True if it equals the snapshot's by its size and time and, if that was asked for, by its content.
        as_wanted: bool,
        /// True if its content was compared and found right.
        verified: bool,
        /// How its content differs.
        differs: Option<Problem>,
    },
}

impl Action {
    /// Chooses the action for an entry by what stands under its path in the target.
    ///
    /// # Errors
    /// The path cannot be looked at.
    pub(super) fn of(
        run: &RestoreRun<'_>,
        target: &TargetDir,
        chunks: &ChunkSource<'_>,
        path: &EntryPath,
        entry: &Entry,
    ) -> Result<Self, Problem> {
        let there = target.state(path);
        let Some(there) = there.map_err(|error| Problem::entry(path, ProblemKind::NotWritten, error))? else {
            return Ok(Self::New);
        };
        let looks_right = looks_like(&there, entry);
        let overwrite = run.options.overwrite;
        let keeps = match overwrite {
            Overwrite::Always => false,
            Overwrite::Never => true,
            Overwrite::IfChanged => looks_right,
            Overwrite::IfNewer => there.modified >= entry.metadata.modified,
        };
        let directory = there.kind == NodeKind::Directory;
        if !keeps {
            return Ok(Self::Replace { directory, only_looked_right: None });
        }
        if !run.options.verify {
            return Ok(Self::Keep { as_wanted: looks_right, verified: false, differs: None });
        }
        Ok(match run.compare(target, chunks, path, entry, &there) {
            Ok(()) => Self::Keep { as_wanted: looks_right, verified: true, differs: None },
            Err(problem) if overwrite == Overwrite::IfChanged && problem.kind == ProblemKind::VerifyFailed => {
                Self::Replace { directory, only_looked_right: Some(problem) }
            }
            Err(problem) => Self::Keep { as_wanted: false, verified: false, differs: Some(problem) },
        })
    }
}

impl RestoreRun<'_> {
    /// Chooses what becomes of something else that stands where a directory is to be. Without the directory's metadata
    /// nobody knows whether that is newer.
    pub(super) fn directory_conflict(
        &self,
        target: &TargetDir,
        path: &EntryPath,
        metadata: Option<&Metadata>,
    ) -> ConflictPolicy {
        let is_older = |there: Status| metadata.is_some_and(|metadata| there.modified < metadata.modified);
        let replaces = match self.options.overwrite {
            Overwrite::Always | Overwrite::IfChanged => true,
            Overwrite::IfNewer => target.state(path).is_ok_and(|there| there.is_none_or(is_older)),
            Overwrite::Never => false,
        };
        if replaces { ConflictPolicy::Replace } else { ConflictPolicy::Keep }
    }

    /// The problem of a directory that a restore would not make, as something else stands there and stays.
    pub(super) fn blocked_directory(
        &self,
        target: &TargetDir,
        path: &EntryPath,
        metadata: Option<&Metadata>,
    ) -> Option<Problem> {
        if self.directory_conflict(target, path, metadata) == ConflictPolicy::Replace {
            return None;
        }
        let there = target.state(path).ok().flatten()?;
        let is_other = there.kind != NodeKind::Directory;
        is_other.then(|| Problem::entry(path, ProblemKind::InTheWay, "something else has its name"))
    }
}

/// Tells whether the object there has the kind, size and modification time of the entry.
fn looks_like(there: &Status, entry: &Entry) -> bool {
    let same_time = there.modified == entry.metadata.modified;
    match &entry.content {
        Content::File { size, .. } => there.kind == NodeKind::File && there.size == *size && same_time,
        Content::Symlink { target } => {
            there.kind == NodeKind::Symlink && there.size == target.len() as u64 && same_time
        }
        _ => false,
    }
}
