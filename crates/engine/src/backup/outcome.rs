//! Results of the stages: what each leaves behind, and counts and sums on the way.

use super::options::{DeltaCounts, Healed, Reused};
use super::sketch_file::SketchRecords;
use crate::catalog_file::CatalogDraft;
use crate::delta::NewChunks;
use crate::index::{FingerprintIndex, Runs};
use crate::pack::Packed;
use roaring::RoaringTreemap;
use siltstone_store::directory::Directory;
use siltstone_store::manifest::{BorrowedRun, BottomK, Snapshot, SnapshotStatistics};
use siltstone_store::{ChunkNumber, ChunkRun, LoanId, SeriesId};
use std::collections::BTreeMap;

/// Results of all stages of a run.
pub(super) struct RunOutcome {
    pub(super) planned: Planned,
    pub(super) entries: Tally,
    /// The snapshot to be, with its catalog's root and its record; what the rest of the backup did is not in its
    /// statistics yet.
    pub(super) snapshot: Snapshot,
    pub(super) assembled: Assembled,
    pub(super) packed: Packed,
    pub(super) noted: Noted,
    /// Chunks that were found damaged where they lie.
    pub(super) found: RoaringTreemap,
    /// The catalog for the next run on this machine, where the key cannot read it from the repository.
    pub(super) catalog: Option<CatalogDraft>,
}

/// Counts of what the walk met that does not show in the entries.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Planned {
    pub(super) problems: u64,
    pub(super) missing_sources: u64,
}

/// Sums over all entries.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// Counts of entries and bytes; the rest is filled in elsewhere.
    pub(super) statistics: SnapshotStatistics,
}

/// Sums over all chunks that were assembled.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Account {
    /// Chunks that were not known.
    pub(super) chunks_new: u64,
    /// Their bytes.
    pub(super) data_plain_bytes: u64,
    /// Bytes of new catalog pieces.
    pub(super) metadata_plain_bytes: u64,
    /// Chunks of both kinds that the last snapshot lacked, but an older one had.
    pub(super) reused: Reused,
    /// Chunks of data that other series lend.
    pub(super) borrowed: Reused,
    /// Chunks of both kinds that were known, could not be read and were stored again.
    pub(super) healed: Healed,
}

/// Results of assembling, once all is handed on.
pub(super) struct Assembled {
    pub(super) index: FingerprintIndex,
    pub(super) older: Option<Leftover>,
    pub(super) necessary: RoaringTreemap,
    /// Numbers of earlier snapshots that new containers answer for.
    pub(super) healed: RoaringTreemap,
    pub(super) next_data: ChunkNumber,
    pub(super) next_metadata: ChunkNumber,
    pub(super) account: Account,
    /// Chunks of other series that are used.
    pub(super) taken: Vec<Taken>,
    /// The directory of lenders, if it was looked at.
    pub(super) directory: Option<Directory>,
    /// A sample of the new chunks.
    pub(super) sketch: BottomK,
}

/// Chunks that this run has borrowed of a series.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    pub(super) lender: SeriesId,
    /// The loan that they rest on; none in a dry run.
    pub(super) loan: Option<LoanId>,
    /// How many chunks that is of.
    pub(super) offered: u64,
    /// The number here of the lender's chunk 0, or what it would be.
    pub(super) shift: u64,
    /// The lender's numbers of those that were met once the lender was known.
    pub(super) chunks: RoaringTreemap,
    /// Those that were met before and had waited: by the lender's number the one that they had got here.
    pub(super) waited: BTreeMap<u64, u64>,
}

impl Taken {
    /// The chunks under their numbers at both ends, in the order of those here.
    pub(super) fn runs(&self) -> Vec<BorrowedRun> {
        let mut runs: Vec<BorrowedRun> = Vec::new();
        for (&there, &here) in &self.waited {
            match runs.last_mut() {
                Some(last) if last.there().range().end() + 1 == there && last.chunks.range().end() + 1 == here => {
                    last.chunks.count += 1;
                }
                _ => {
                    let chunks = ChunkRun { first: ChunkNumber(here), count: 1 };
                    runs.push(BorrowedRun { chunks, first_there: ChunkNumber(there) });
                }
            }
        }
        runs.extend(ChunkRun::runs_of(&self.chunks).into_iter().map(|there| {
            let first = ChunkNumber(there.first.0.wrapping_add(self.shift));
            BorrowedRun { chunks: ChunkRun { first, ..there }, first_there: there.first }
        }));
        runs.sort_unstable_by_key(|run| run.chunks.first);
        runs
    }

    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.waited.is_empty()
    }

    /// Those of them that pass, by their numbers here and at the lender.
    pub(super) fn only(&self, passes: impl Fn(u64, u64) -> bool) -> Self {
        let chunks = self.chunks.iter().filter(|there| passes(there.wrapping_add(self.shift), *there)).collect();
        let waited = self.waited.iter().filter(|(there, here)| passes(**here, **there));
        Self { chunks, waited: waited.map(|(there, here)| (*there, *here)).collect(), ..*self }
    }
}

/// Older chunks that were looked up, as they are kept for the next backup.
pub(super) struct Leftover {
    pub(super) runs: Runs,
    /// Numbers that need not be listed any more.
    pub(super) useless: RoaringTreemap,
}

/// Notes on all regions that were packed.
#[derive(Default)]
pub(super) struct Noted {
    /// The new chunks, if old ones will be encoded against them.
    pub(super) new: Option<NewChunks>,
    /// The new chunks' sketches, if the next backup is to have them.
    pub(super) records: Option<SketchRecords>,
    /// Chunks kept in deltas and rejected.
    pub(super) deltas: DeltaCounts,
    /// The bases of new regions.
    pub(super) bases: RoaringTreemap,
}
