//! Checks that the snapshots of a series need the chunks that their manifest says.

use super::report::Finding;
use super::series::SeriesCheck;
use crate::EngineError;
use crate::chunks::{Address, ChunkSource, Probe};
use roaring::RoaringTreemap;
use siltstone_store::StoreError;
use siltstone_store::catalog::{CatalogReader, MetadataSource};
use siltstone_store::container::ContainerKind;
use siltstone_store::manifest::{NecessaryChunks, Snapshot, SnapshotRecord};
use std::collections::BTreeSet;

/// Reads a snapshot's record, and holds it against the snapshot. It may be that of an earlier one with its catalog.
fn read_record(chunks: &ChunkSource<'_>, snapshot: &Snapshot) -> Result<(), StoreError> {
    let record = SnapshotRecord::decode(snapshot.record, &chunks.load(snapshot.record)?)?.snapshot;
    let agrees = record.root == snapshot.root && record.host == snapshot.host;
    let other =
        || StoreError::damaged(&format!("chunk {}", snapshot.record), "snapshot record", "it is of another one");
    if agrees { Ok(()) } else { Err(other()) }
}

impl SeriesCheck<'_> {
    /// Walks each snapshot's catalog and compares what it refers to with what the manifest says it needs. Gives what
    /// each needs itself; of one whose catalog cannot be walked, what it is said to need. Gives too the chunks of such
    /// catalogs that are damaged.
    pub(super) fn check_snapshots(
        &self,
        lost: &RoaringTreemap,
        findings: &mut Vec<Finding>,
    ) -> Result<(NecessaryChunks, RoaringTreemap), EngineError> {
        let chunks = ChunkSource::new(self.repository, self.manifest);
        let (mut needs, mut before) = (NecessaryChunks::default(), RoaringTreemap::new());
        let mut walked = BTreeSet::new();
        let mut probe = Probe::default();
        for (position, snapshot) in self.manifest.snapshots().iter().enumerate() {
            if self.resources.observer.is_cancelled() {
                return Err(EngineError::Interrupted);
            }
            let mut referred = RoaringTreemap::new();
            let mut faults = Vec::new();
            CatalogReader::new(&chunks, snapshot.root).visit_chunks(&mut |step| match step
                .and_then(|run| chunks.answered(run))
            {
                Ok(range) => drop(referred.insert_range(range)),
                Err(error @ (StoreError::MissingChunk { .. } | StoreError::NotLent { .. })) if !faults.is_empty() => {
                    drop(error);
                }
                Err(error) => faults.push(error),
            });
            match read_record(&chunks, snapshot) {
                Ok(()) => drop(referred.insert(snapshot.record.0)),
                Err(error) => faults.push(error),
            }
            let with_bases = chunks.closure(&referred).unwrap_or_else(|error| {
                faults.push(error);
                RoaringTreemap::new()
            });
            if let Some(at) = faults.iter().position(StoreError::is_outage) {
                return Err(faults.swap_remove(at).into());
            }
            let necessary = self.manifest.necessary(position);
            let now = if faults.is_empty() {
                walked.insert(position);
                self.compare_direct(position, &referred, findings);
                with_bases
            } else {
                // Damage of the containers has been told; here it is only what else keeps the catalog from being read.
                let is_known = !lost.is_empty() && !necessary.is_disjoint(lost);
                if !is_known {
                    let what = faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                    self.complain(position, what, findings);
                }
                probe_catalog(&chunks, &necessary, &mut probe)?;
                necessary
            };
            needs.push_after(&before, &now);
            before = now;
        }
        self.compare_necessary(needs.clone(), &walked, findings);
        Ok((needs, probe.damaged))
    }

    fn compare_direct(&self, position: usize, referred: &RoaringTreemap, findings: &mut Vec<Finding>) {
        let direct = self.manifest.direct(position);
        if *referred != direct {
            let (missing, extra) = ((referred - &direct).len(), (&direct - referred).len());
            let what =
                format!("it refers to {missing} chunks that it is not said to refer to, and not to {extra} that it is");
            self.complain(position, what, findings);
        }
    }

    /// Holds what the manifest says that snapshots need against what those that could be `walked` need. What one needs
    /// itself, it and what those around it need in common is all; after something was forgotten it may be more, until
    /// ghosts are looked for.
    fn compare_necessary(&self, needs: NecessaryChunks, walked: &BTreeSet<usize>, findings: &mut Vec<Finding>) {
        let mut complaints = Vec::new();
        let hull = needs.hull();
        hull.for_each(|position, needed| {
            let necessary = self.manifest.necessary(position);
            let (missing, extra) = ((needed - &necessary).len(), (&necessary - needed).len());
            let is_wrong = missing > 0 || (extra > 0 && !self.manifest.ghosts_due);
            if is_wrong && walked.contains(&position) {
                let what = format!(
                    "it needs {missing} chunks, with their bases, that it is not said to need, and not {extra} that it is"
                );
                complaints.push((position, what));
            }
        });
        for (position, what) in complaints {
            self.complain(position, what, findings);
        }
    }

    fn complain(&self, position: usize, what: String, findings: &mut Vec<Finding>) {
        if let Some(snapshot) = self.manifest.snapshots().get(position) {
            let id = snapshot.id.short();
            let (object, snapshots) = (format!("snapshot {id}"), vec![id]);
            findings.push(Finding { object, what, help: self.help_for(&snapshots), snapshots });
        }
    }
}

/// Reads every region that holds metadata a snapshot needs. Containers whose indexes cannot be read have been told.
fn probe_catalog(chunks: &ChunkSource<'_>, necessary: &RoaringTreemap, probe: &mut Probe) -> Result<(), StoreError> {
    for (container, record) in chunks.own_records() {
        let is_needed = record.chunks.iter().any(|run| necessary.range_cardinality(run.range()) > 0);
        if record.kind != ContainerKind::Metadata || !is_needed {
            continue;
        }
        let reader = match chunks.reader(container) {
            Err(error) if error.is_outage() => return Err(error),
            Err(_) => continue,
            Ok(reader) => reader,
        };
        for (region, entry) in reader.index().regions().iter().enumerate() {
            if entry.chunks.iter().any(|chunk| necessary.contains(chunk.number.0)) {
                probe.read(chunks, Address { container, region })?;
            }
        }
    }
    Ok(())
}
