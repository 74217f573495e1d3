//! Requests that a restore would make for content: batches are gathered and planned as for the restore, and counted
//! instead of read.

use super::batch::{Batch, FilePlan};
use super::fetch::settings;
use super::options::RestoreSummary;
use super::run::RestoreRun;
use crate::chunks::ChunkSource;
use crate::decode::{DecodeSettings, Order, Plan};
use crate::fs::{ConflictPolicy, Draft};
use siltstone_store::catalog::{Content, Entry, EntryPath};
use siltstone_store::manifest::Manifest;
use std::collections::HashSet;

/// See the module.
pub(super) struct Forecast<'f, 'r> {
    chunks: &'f ChunkSource<'r>,
    order: Order<'f>,
    settings: DecodeSettings,
    batch_bytes: u64,
    batch: Batch,
    containers: HashSet<usize>,
}

impl<'f, 'r> Forecast<'f, 'r> {
    /// Nothing so far.
    pub(super) fn new(run: &RestoreRun<'_>, chunks: &'f ChunkSource<'r>, manifest: &'f Manifest) -> Self {
        let batch_bytes = run.resources.restore_shares().batch_bytes;
        Self {
            chunks,
            order: Order::new(manifest),
            settings: settings(run.resources, run.options),
            batch_bytes,
            batch: Batch::new(batch_bytes),
            containers: HashSet::new(),
        }
    }

    /// Adds an entry that would be written, if it is a file. What cannot be found is left to the restore to tell.
    pub(super) fn add(&mut self, path: EntryPath, entry: &Entry, summary: &mut RestoreSummary) {
        let Content::File { size, recipe } = &entry.content else { return };
        let draft = Draft { serial: 0, on_conflict: ConflictPolicy::Keep };
        let mut file = FilePlan::new(self.chunks, (path, entry.metadata.clone(), draft), (*size, recipe));
        while !file.fill(&mut self.batch, &mut |_, _| ()) {
            self.count(summary);
        }
        if self.batch.is_full() {
            self.count(summary);
        }
    }

    /// Counts what the batch takes, and begins another.
    pub(super) fn count(&mut self, summary: &mut RestoreSummary) {
        let batch = std::mem::replace(&mut self.batch, Batch::new(self.batch_bytes));
        let wanted: Vec<_> = batch.regions().into_iter().collect();
        let plan = Plan::new(self.chunks, &wanted, &self.order);
        let (reads, bytes) = plan.reads(self.chunks, &self.settings);
        self.containers.extend(plan.containers());
        summary.usage.gets += reads;
        summary.usage.bytes_received += bytes;
        summary.containers_needed = self.containers.len() as u64;
    }
}
