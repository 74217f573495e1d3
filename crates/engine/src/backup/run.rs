//! One run of a backup: what it was given, and what it says of itself.

use super::options::{BackupOptions, BackupSummary};
use super::outcome::{Account, Noted, RunOutcome, Tally};
use super::previous;
use crate::fs::{ScanDetail, ScanOptions};
use crate::lease::{Purpose, acquire_late, now};
use crate::maintain::MaintainSummary;
use crate::observer::Notice;
use crate::pack::Packed;
use crate::snapshots::SnapshotView;
use crate::usage::Usage;
use crate::{EngineError, Resources};
use siltstone_chunk::Chunker;
use siltstone_store::manifest::{Manifest, Snapshot, SnapshotStatistics};
use siltstone_store::repository::Repository;
use siltstone_store::secrets::random_bytes;
use siltstone_store::series::{ReserveUse, SeriesWriter};
use siltstone_store::{ChunkNumber, SnapshotId};
use std::time::Instant;

/// Backup as it was asked for.
pub(super) struct BackupRun<'t> {
    pub(super) repository: &'t Repository,
    pub(super) chunker: &'t dyn Chunker,
    pub(super) options: &'t BackupOptions,
    pub(super) resources: &'t Resources,
    pub(super) started: Instant,
    pub(super) paths: Vec<Vec<u8>>,
    /// The share that the source may lose.
    pub(super) shrink_share: Option<f64>,
    /// Memory that a list of changes takes, bytes.
    pub(super) list_bytes: u64,
    pub(super) series: &'t str,
    /// The snapshot that is copied, if one is.
    pub(super) original: Option<Original<'t>>,
}

/// A snapshot that is copied.
#[derive(Clone, Copy)]
pub(crate) struct Original<'t> {
    /// The snapshot, and its series.
    pub(crate) view: &'t SnapshotView,
    /// Tells, once all was read that can be, whether a copy is made that lacks something.
    pub(crate) takes_incomplete: &'t (dyn Fn() -> bool + Sync),
}

impl<'t> BackupRun<'t> {
    /// Takes the lease of the series, or makes ready to take it when there is something to write.
    pub(super) fn acquire(&self) -> Result<SeriesWriter<'t>, EngineError> {
        let BackupOptions { user, take_over, .. } = self.options;
        let purpose = Purpose { name: "backup", user, take_over: *take_over, reserve: ReserveUse::Keep };
        acquire_late(self.repository, self.series, &purpose, self.resources)
    }

    /// Makes the whole snapshot to be, without its record.
    pub(super) fn snapshot(&self, root: ChunkNumber, statistics: SnapshotStatistics) -> Result<Snapshot, EngineError> {
        let (options, made) = (self.options, now());
        let id = SnapshotId(random_bytes()?);
        Ok(Snapshot {
            id: self.original.map_or(id, |original| id.copied_from(original.view.snapshot.id.origin())),
            time: options.time.unwrap_or(made),
            made,
            host: options.host.clone(),
            user: self.original.map_or(&options.user, |original| &original.view.snapshot.user).clone(),
            paths: self.paths.clone(),
            tags: options.tags.clone(),
            description: options.description.clone(),
            program: options.program.clone(),
            root,
            record: ChunkNumber(0),
            statistics,
            partial: false,
            deleted: None,
        })
    }

    /// Tells whether a snapshot with this root is not to be made, for the last live one has the same.
    pub(super) fn is_unwanted(&self, root: ChunkNumber, manifest: &Manifest) -> bool {
        self.options.skip_if_unchanged && previous::latest_live(manifest).is_some_and(|parent| parent.root == root)
    }

    /// Refuses a copy that lacks something of its original, unless such are taken: it would pass for whole.
    pub(super) fn refuse_incomplete(&self, outcome: &RunOutcome) -> Result<(), EngineError> {
        let problems = outcome.entries.statistics.problems + outcome.planned.problems;
        match self.original.filter(|original| problems > 0 && !(original.takes_incomplete)()) {
            Some(original) => {
                Err(EngineError::CopyIncomplete { snapshot: original.view.snapshot.id.short(), problems })
            }
            None => Ok(()),
        }
    }

    /// Options of the walk through the source.
    pub(super) fn scan_options(&self, detail: ScanDetail) -> ScanOptions {
        let BackupOptions { exclude, one_file_system, .. } = self.options;
        ScanOptions { exclude: exclude.clone(), one_file_system: *one_file_system, detail }
    }

    /// Reports a clock that is behind the newest snapshot.
    pub(super) fn warn_of_clock(&self, manifest: &Manifest) {
        let last = manifest.snapshots().iter().map(|snapshot| snapshot.made.seconds).max();
        let behind = last.map_or(0, |last| last.saturating_sub(now().seconds));
        if behind > 0 {
            self.resources.observer.notice(&Notice::ClockBehind { seconds: behind });
        }
    }

    /// Statistics of the snapshot, with all that is known by now.
    pub(super) fn statistics(
        &self,
        account: &Account,
        tally: &Tally,
        packed: &Packed,
        noted: &Noted,
    ) -> SnapshotStatistics {
        SnapshotStatistics {
            added_plain_bytes: account.data_plain_bytes,
            added_stored_bytes: packed.object_bytes(),
            metadata_bytes: account.metadata_plain_bytes,
            chunks_new: account.chunks_new,
            deltas_kept: noted.deltas.kept,
            deltas_rejected: noted.deltas.rejected,
            deltas_skipped: noted.deltas.skipped,
            duration_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            ..tally.statistics
        }
    }

    /// Summary of the run.
    pub(super) fn summary(
        &self,
        snapshot: Option<SnapshotId>,
        manifest: &Manifest,
        outcome: &RunOutcome,
    ) -> BackupSummary {
        let account = &outcome.assembled.account;
        let mut statistics = self.statistics(account, &outcome.entries, &outcome.packed, &outcome.noted);
        statistics.problems += outcome.planned.problems;
        BackupSummary {
            snapshot,
            parent: manifest.snapshots().last().map(|snapshot| snapshot.id),
            series: self.series.to_owned(),
            statistics,
            deltas: outcome.noted.deltas,
            reused: account.reused,
            borrowed: account.borrowed,
            healed: account.healed,
            migration: MaintainSummary::default(),
            missing_sources: outcome.planned.missing_sources,
            usage: Usage::default(),
        }
    }
}
