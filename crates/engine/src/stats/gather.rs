//! The figures of one series: container by container, region by region, for all snapshots at once.
//!
//! A chunk is needed in few stretches of the series, mostly one. So a region's chunks are noted where their stretches
//! begin and end, and sums along the series give what each snapshot needs of the region. What it needs is what it
//! refers to with all bases: what is counted as necessary only because snapshots before and after it need it, no
//! restore of it reads.

use super::{DeltaFigures, Reduction, SnapshotFigures, Stats, view_at};
use crate::chunks::ChunkSource;
use crate::decode::GAP_BYTES_DEFAULT;
use crate::lifecycle::{Lifecycle, stretches};
use crate::protect::parity_bytes;
use crate::snapshots::SnapshotView;
use roaring::RoaringTreemap;
use siltstone_store::StoreError;
use siltstone_store::container::{ContainerKind, ContainerRecord, RegionEntry};
use siltstone_store::manifest::{Manifest, NecessaryChunks};
use siltstone_store::repository::Repository;
use siltstone_store::series::older_parts_bytes;

/// The figures of a series; of its snapshots, those that are `wanted`.
pub(super) fn series(
    repository: &Repository,
    manifest: &Manifest,
    wanted: &(dyn Fn(&SnapshotView) -> bool + Sync),
) -> Result<Stats, StoreError> {
    let mut stats = Stats::default();
    for record in &manifest.containers {
        stats.containers += 1;
        if record.epoch < repository.keys().epoch() {
            stats.older_key_bytes += record.object_bytes;
        }
        match record.kind {
            ContainerKind::Data => stats.data_container_bytes += record.object_bytes,
            ContainerKind::Metadata => stats.metadata_container_bytes += record.object_bytes,
        }
    }
    stats.older_key_bytes += older_parts_bytes(repository, manifest)?;
    stats.parity_bytes += parity_bytes(repository, manifest.series)?.values().sum::<u64>();
    let chunks = ChunkSource::new(repository, manifest);
    stats.borrowed = super::borrowed::figures(repository, manifest)?;
    stats.lent_bytes = super::borrowed::plain_bytes(&chunks, manifest, &manifest.lent)?;
    let needs =
        if manifest.has_hulls() { chunks.base_graph()?.needs(manifest) } else { manifest.necessary_chunks().clone() };
    let mut needed = RoaringTreemap::new();
    let mut counted = vec![0];
    needs.for_each(|position, necessary| {
        if let Some(view) = view_at(manifest, position).filter(|view| view.snapshot.deleted.is_none() && wanted(view)) {
            stats.add_snapshot(view);
            needed |= necessary;
        }
        counted.push(stats.by_snapshot.len());
    });
    let mut gathering = Gathering { manifest, needs, needed, counted, stats };
    for (at, record) in manifest.containers.iter().enumerate() {
        gathering.add_container(&chunks, at, record)?;
    }
    Ok(gathering.stats)
}

impl Stats {
    fn add_snapshot(&mut self, view: SnapshotView) {
        let done = &view.snapshot.statistics;
        self.add(Self {
            snapshots: 1,
            files: done.files,
            restore_bytes: done.logical_bytes,
            deltas_kept: done.deltas_kept,
            deltas_rejected: done.deltas_rejected,
            deltas_skipped: done.deltas_skipped,
            bytes_migrated: done.bytes_migrated,
            by_snapshot: vec![SnapshotFigures {
                view,
                data: Reduction::default(),
                metadata: Reduction::default(),
                containers_needed: 0,
                metadata_containers_needed: 0,
                bytes_read: 0,
            }],
            ..Self::default()
        });
    }
}

struct Gathering<'g> {
    manifest: &'g Manifest,
    /// Chunks that each snapshot needs.
    needs: NecessaryChunks,
    /// Chunks that any snapshot asked for needs.
    needed: RoaringTreemap,
    /// How many snapshots are asked for before each position; and at the end, in all.
    counted: Vec<usize>,
    stats: Stats,
}

impl Gathering<'_> {
    fn add_container(
        &mut self,
        chunks: &ChunkSource<'_>,
        at: usize,
        record: &ContainerRecord,
    ) -> Result<(), StoreError> {
        let served = record.numbers() & &self.needed;
        if served.is_empty() {
            return Ok(());
        }
        let necessary = stretches(self.needs.steps(), &served);
        let direct = stretches(self.manifest.direct_differences(), &served);
        let none = Vec::new();
        let reader = chunks.reader(at)?;
        let mut visits = vec![Visit::default(); self.stats.by_snapshot.len()];
        for entry in reader.index().regions() {
            let mut steps = Steps::new(self.manifest.snapshots().len());
            let mut whole = Need::default();
            for chunk in &entry.chunks {
                let (number, bytes) = (chunk.number.0, u64::from(chunk.length));
                let (necessary, direct) =
                    (necessary.get(&number).unwrap_or(&none), direct.get(&number).unwrap_or(&none));
                for stretch in necessary {
                    steps.add(*stretch, Need::of_any(bytes));
                }
                for stretch in direct {
                    steps.add(*stretch, Need::of_direct(bytes));
                }
                if served.contains(number) {
                    whole.add(Need::of_any(bytes));
                }
                if direct.iter().any(|stretch| self.is_asked(*stretch)) {
                    whole.add(Need::of_direct(bytes));
                }
            }
            if whole.chunks > 0 {
                self.add_region(record.kind, entry, &steps, &mut visits);
                match record.kind {
                    ContainerKind::Data => self.stats.data.add_region(entry, &whole),
                    ContainerKind::Metadata => self.stats.metadata.add_region(entry, &whole),
                }
            }
        }
        for (figures, visit) in self.stats.by_snapshot.iter_mut().zip(&visits) {
            let is_needed = u64::from(visit.end.is_some());
            match record.kind {
                ContainerKind::Data => {
                    figures.containers_needed += is_needed;
                    figures.bytes_read += visit.bytes_read;
                }
                ContainerKind::Metadata => figures.metadata_containers_needed += is_needed,
            }
        }
        Ok(())
    }

    /// Adds a region to the snapshots that need any of it.
    fn add_region(&mut self, kind: ContainerKind, entry: &RegionEntry, steps: &Steps, visits: &mut [Visit]) {
        let mut need = Need::default();
        for (step, before) in steps.0.iter().zip(self.counted.windows(2)) {
            need.add(*step);
            let [at, after] = before else { continue };
            if at == after || need.chunks == 0 {
                continue;
            }
            let (Some(figures), Some(visit)) = (self.stats.by_snapshot.get_mut(*at), visits.get_mut(*at)) else {
                continue;
            };
            match kind {
                ContainerKind::Data => figures.data.add_region(entry, &need),
                ContainerKind::Metadata => figures.metadata.add_region(entry, &need),
            }
            visit.read(entry);
        }
    }

    /// Tells whether any snapshot asked for lies within.
    fn is_asked(&self, Lifecycle { row, column }: Lifecycle) -> bool {
        self.counted.get(row) < self.counted.get(column + 1)
    }
}

/// Needed part of a region.
#[derive(Clone, Copy, Default)]
struct Need {
    chunks: u64,
    bytes: u64,
    /// Those of the chunks that catalogs refer to.
    direct_chunks: u64,
    direct_bytes: u64,
}

impl Need {
    fn of_any(bytes: u64) -> Self {
        Self { chunks: 1, bytes, ..Self::default() }
    }

    fn of_direct(bytes: u64) -> Self {
        Self { direct_chunks: 1, direct_bytes: bytes, ..Self::default() }
    }

    fn add(&mut self, other: Self) {
        *self = self.with(other, u64::wrapping_add);
    }

    /// Steps down come out as large numbers, which the sums undo.
    fn subtract(&mut self, other: Self) {
        *self = self.with(other, u64::wrapping_sub);
    }

    fn with(self, other: Self, both: fn(u64, u64) -> u64) -> Self {
        Self {
            chunks: both(self.chunks, other.chunks),
            bytes: both(self.bytes, other.bytes),
            direct_chunks: both(self.direct_chunks, other.direct_chunks),
            direct_bytes: both(self.direct_bytes, other.direct_bytes),
        }
    }
}

/// How what is needed of a region changes from snapshot to snapshot.
struct Steps(Vec<Need>);

impl Steps {
    fn new(snapshots: usize) -> Self {
        Self(vec![Need::default(); snapshots])
    }

    fn add(&mut self, Lifecycle { row, column }: Lifecycle, need: Need) {
        if let Some(first) = self.0.get_mut(row) {
            first.add(need);
        }
        if let Some(behind) = self.0.get_mut(column + 1) {
            behind.subtract(need);
        }
    }
}

impl Reduction {
    /// Adds what is needed of a region.
    fn add_region(&mut self, entry: &RegionEntry, need: &Need) {
        let stored_bytes = u64::from(entry.sealed_bytes) * need.bytes / u64::from(entry.plain_bytes).max(1);
        let deltas = DeltaFigures { chunks: need.chunks, plain_bytes: need.bytes, stored_bytes };
        let is_delta = !entry.bases.is_empty();
        self.add(&Self {
            chunks: need.direct_chunks,
            unique_bytes: need.direct_bytes,
            bases: need.chunks.saturating_sub(need.direct_chunks),
            base_bytes: need.bytes.saturating_sub(need.direct_bytes),
            after_delta_bytes: if is_delta { stored_bytes } else { need.bytes },
            stored_bytes,
            deltas: if is_delta { deltas } else { DeltaFigures::default() },
        });
    }
}

/// Part of one container that a restore reads.
#[derive(Clone, Copy, Default)]
struct Visit {
    /// Where the last region read ends.
    end: Option<u64>,
    bytes_read: u64,
}

impl Visit {
    /// Regions come in the order they lie.
    fn read(&mut self, entry: &RegionEntry) {
        let gap = self.end.map_or(0, |end| entry.offset.saturating_sub(end));
        let gap = if gap <= GAP_BYTES_DEFAULT { gap } else { 0 };
        self.bytes_read += gap + u64::from(entry.sealed_bytes);
        self.end = Some(entry.offset + u64::from(entry.sealed_bytes));
    }
}
