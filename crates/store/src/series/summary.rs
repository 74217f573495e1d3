//! Summaries of series: what the object of a manifest says by itself. Whoever looks for snapshots needs no more, and of
//! a large series all the rest lies in parts.

use crate::manifest::{BottomK, Lender, Manifest, Snapshot};
use crate::{ChunkNumber, SeriesId, Time};

/// A series as its newest manifest says it, without chunks and containers.
#[derive(Clone, PartialEq, Debug)]
pub struct SeriesSummary {
    /// The series.
    pub series: SeriesId,
    /// Its name.
    pub name: String,
    /// Number of the commit, from 1.
    pub sequence: u64,
    /// BLAKE3 of the manifest's object.
    pub hash: [u8; 32],
    /// BLAKE3 of the object of the manifest before; zeros in the first.
    pub previous: [u8; 32],
    /// Time of the commit, by the writer's clock.
    pub committed: Time,
    /// The numbers that the next data and metadata chunk get.
    pub next: [ChunkNumber; 2],
    /// The snapshots in the order they were committed, those marked as deleted among them.
    pub snapshots: Vec<Snapshot>,
    /// True if other series may borrow of it.
    pub lends: bool,
    /// The sample of its chunks by which they find what they share with it.
    pub sketch: BottomK,
    /// The series that it borrows of.
    pub lenders: Vec<Lender>,
}

impl SeriesSummary {
    /// The summary of a manifest whose object has this hash. Its lists need not be there.
    pub(crate) fn of(manifest: &Manifest, hash: [u8; 32]) -> Self {
        Self {
            series: manifest.series,
            name: manifest.name.clone(),
            sequence: manifest.sequence,
            hash,
            previous: manifest.previous,
            committed: manifest.committed,
            next: [manifest.next_data, manifest.next_metadata],
            snapshots: manifest.snapshots().to_vec(),
            lends: manifest.lends,
            sketch: manifest.sketch.clone(),
            lenders: manifest.lenders.clone(),
        }
    }
}
