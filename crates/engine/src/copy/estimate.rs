//! Estimates of a copy, from manifests alone: the chunks that the wanted snapshots refer to and that none of their
//! series does which the destination has already, as large as they are in the source.
//!
//! It is an estimate, for the destination cuts and compresses anew: it may find in one chunk of the source what it has
//! in two, and it stores whole what lies in the source as a delta.

use super::CopySummary;
use crate::EngineError;
use crate::snapshots::SnapshotView;
use crate::usage::{Usage, is_counted};
use roaring::RoaringTreemap;
use siltstone_store::container::{ContainerKind, ContainerRecord};
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::{OriginId, SeriesId, SnapshotId};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;

/// Bytes of a manifest of a few snapshots, about, where the destination has none of the series yet.
const MANIFEST_BYTES: u64 = 4 << 10;

/// Estimate of what a copy reads and writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Estimate {
    /// Chunks of files.
    data: Share,
    /// Chunks of catalogs.
    metadata: Share,
    usage: Usage,
}

/// Share that chunks have in containers, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Share {
    /// Their own.
    plain: u64,
    /// Those that they take.
    stored: u64,
}

impl AddAssign for Share {
    fn add_assign(&mut self, other: Self) {
        self.plain += other.plain;
        self.stored += other.stored;
    }
}

impl Estimate {
    /// Estimates the copying of these snapshots. A series whose manifest cannot be read is left out.
    ///
    /// # Errors
    /// Those of the source as a whole.
    pub(super) fn of(
        source: &Repository,
        destination: &Repository,
        wanted: &[&SnapshotView],
        present: &BTreeSet<OriginId>,
    ) -> Result<Self, EngineError> {
        let mut by_series: BTreeMap<SeriesId, BTreeSet<SnapshotId>> = BTreeMap::new();
        for view in wanted {
            by_series.entry(view.series).or_default().insert(view.snapshot.id);
        }
        let mut all = Self::default();
        for (series, ids) in by_series {
            match source.manifest_listed(series) {
                Ok(Some(manifest)) => {
                    let chunk_bytes = u64::from(source.config().chunker.average_bytes);
                    let new = new_chunks(&manifest, &ids, present);
                    all.add(&Self::of_chunks(&manifest, &new, chunk_bytes).with_usage(destination, ids.len() as u64));
                }
                Err(error) if !error.is_damage() => return Err(error.into()),
                _ => {}
            }
        }
        Ok(all)
    }

    /// Sums what these chunks take; one of which no length is known counts as `chunk_bytes`.
    fn of_chunks(manifest: &Manifest, chunks: &RoaringTreemap, chunk_bytes: u64) -> Self {
        let mut estimate = Self::default();
        for record in &manifest.containers {
            let share = Share::of(record, &(record.numbers() & chunks), chunk_bytes);
            match record.kind {
                ContainerKind::Data => estimate.data += share,
                ContainerKind::Metadata => estimate.metadata += share,
            }
        }
        estimate
    }

    /// Adds what writing it to the destination asks of its place: containers, and commits for each snapshot.
    fn with_usage(mut self, destination: &Repository, snapshots: u64) -> Self {
        if !is_counted(destination) {
            return self;
        }
        for (kind, Share { stored: bytes, .. }) in
            [(ContainerKind::Data, self.data), (ContainerKind::Metadata, self.metadata)]
        {
            let parity = destination.parity().object_bytes(kind, bytes);
            let containers = bytes.div_ceil(destination.container_bytes(kind).max(1)).max(snapshots);
            self.usage.puts += if parity > 0 { 2 * containers } else { containers };
            self.usage.bytes_sent += bytes + parity;
        }
        self.usage.bytes_kept = i64::try_from(self.usage.bytes_sent).unwrap_or(i64::MAX);
        for _ in 0..snapshots {
            self.usage += Usage::of_commits(0, MANIFEST_BYTES);
        }
        self
    }

    fn add(&mut self, other: &Self) {
        self.data += other.data;
        self.metadata += other.metadata;
        self.usage += other.usage;
    }

    /// States it in a summary.
    pub(super) fn add_to(self, summary: &mut CopySummary) {
        summary.read_bytes += self.data.plain;
        summary.added_plain_bytes += self.data.plain + self.metadata.plain;
        summary.added_stored_bytes += self.data.stored + self.metadata.stored;
        summary.usage += self.usage;
    }
}

/// The chunks that the wanted snapshots of a series refer to, and none that the destination has.
fn new_chunks(manifest: &Manifest, wanted: &BTreeSet<SnapshotId>, present: &BTreeSet<OriginId>) -> RoaringTreemap {
    let (mut new, mut there) = (RoaringTreemap::new(), RoaringTreemap::new());
    manifest.for_each_direct(|position, direct| match manifest.snapshots().get(position) {
        Some(snapshot) if wanted.contains(&snapshot.id) => new |= direct,
        Some(snapshot) if !snapshot.partial && present.contains(&snapshot.id.origin()) => there |= direct,
        _ => {}
    });
    new - there
}

impl Share {
    /// The share of these of a container's chunks.
    fn of(record: &ContainerRecord, chunks: &RoaringTreemap, chunk_bytes: u64) -> Self {
        let mut plain = 0;
        for run in &record.chunks {
            let bytes = record.bytes_of(*run).unwrap_or(run.count.saturating_mul(chunk_bytes));
            plain += part(bytes, chunks.range_cardinality(run.range()), run.count);
        }
        Self { plain, stored: part(record.object_bytes, chunks.len(), record.held) }
    }
}

/// The part of `bytes` that `count` of `of` have.
fn part(bytes: u64, count: u64, of: u64) -> u64 {
    let part = u128::from(bytes) * u128::from(count) / u128::from(of.max(1));
    u64::try_from(part).unwrap_or(u64::MAX)
}
