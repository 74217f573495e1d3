//! Figures about a repository and its snapshots: what deduplication, deltas and compression each leave, what backups
//! and migration did, and what a restore of each snapshot reads.
//!
//! The summary of a backup is part of its snapshot; the rest is computed from manifests and the indexes of containers
//! (module `gather`). A region may hold chunks that are needed beside others that are not: of its stored bytes each
//! takes the share that it has of the plain ones.
//!
//! ```text
//! logical_bytes        what restores would write
//! data.unique_bytes       deduplication: each chunk once
//! data.after_delta_bytes    deltas: chunks in deltas count as their deltas, bases that nothing else needs are added
//! data.stored_bytes           compression: what all these take, encrypted, in their containers
//! ```

mod borrowed;
mod gather;

use crate::EngineError;
use crate::many_series::{self, ManySeries};
use crate::resources::MEMORY_BYTES_DEFAULT;
use crate::snapshots::SnapshotView;
use siltstone_store::StoreError;
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::{MANIFESTS_AT_ONCE, Repository};

/// Content of the repository.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Snapshots asked for.
    pub snapshots: u64,
    /// Files in them, each snapshot counted.
    pub files: u64,
    /// Bytes a restore of each would write, summed.
    pub restore_bytes: u64,
    /// Reduction of their files' chunks.
    pub data: Reduction,
    /// Reduction of their catalogs' chunks.
    pub metadata: Reduction,
    /// Chunks that became part of a delta, by their backups and by settling what those left behind.
    pub deltas_kept: u64,
    /// Chunks that stayed whole because their delta would have saved too little.
    pub deltas_rejected: u64,
    /// Chunks that the selector skipped.
    pub deltas_skipped: u64,
    /// Bytes written by migration after their backups.
    pub bytes_migrated: u64,
    /// Bytes of all data containers of the repository.
    pub data_container_bytes: u64,
    /// Bytes of all metadata containers.
    pub metadata_container_bytes: u64,
    /// Bytes of all containers, and of parts of manifests with their copies, that are sealed under a master key before
    /// the newest one.
    pub older_key_bytes: u64,
    /// Bytes of the parity of both.
    pub parity_bytes: u64,
    /// Number of containers.
    pub containers: u64,
    /// Bytes of everything in the repository.
    pub repository_bytes: u64,
    /// Chunks that series borrow of each other: one entry for each pair, by the borrower's name. Chunks of a lender
    /// that cannot be read have no bytes.
    pub borrowed: Vec<BorrowedFigures>,
    /// Bytes of chunks that no snapshot of their series needs any more and that are kept for others.
    pub lent_bytes: u64,
    /// The snapshots asked for, one by one: series by series, in the order of their commits.
    pub by_snapshot: Vec<SnapshotFigures>,
}

/// Chunks that a series borrows of another one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BorrowedFigures {
    /// The name of the series that borrows.
    pub series: String,
    /// The name of the lender; its id if the repository's list does not have it.
    pub lender: String,
    /// Chunks.
    pub chunks: u64,
    /// Their bytes.
    pub plain_bytes: u64,
    /// Those of them that the lender needs no more itself, and keeps for others.
    pub only_for_others: u64,
}

/// A snapshot by itself.
#[derive(Clone, Debug)]
pub struct SnapshotFigures {
    /// The snapshot; it has what its backup did.
    pub view: SnapshotView,
    /// Reduction of the chunks that its files need.
    pub data: Reduction,
    /// Reduction of the chunks that its catalog needs.
    pub metadata: Reduction,
    /// Data containers that a restore reads from, each once: those of bases included.
    pub containers_needed: u64,
    /// Metadata containers that hold its catalog.
    pub metadata_containers_needed: u64,
    /// Bytes that a restore reads of data containers if it has memory for all at once: the regions with anything that
    /// is needed, and the gaps between them that are not worth a second read.
    pub bytes_read: u64,
}

impl SnapshotFigures {
    /// Bytes a restore reads over the bytes that it needs; `None` if it needs none.
    pub fn read_amplification(&self) -> Option<f64> {
        ratio(self.bytes_read, self.data.stored_bytes)
    }
}

/// Bytes left, step by step, of chunks of one kind. None of it includes indexes and padding of containers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reduction {
    /// Chunks that catalogs refer to, each once.
    pub chunks: u64,
    /// Their bytes.
    pub unique_bytes: u64,
    /// Chunks needed beside them, as bases of deltas only.
    pub bases: u64,
    /// The bytes of those.
    pub base_bytes: u64,
    /// Bytes of all these: plain of those stored whole, compressed of deltas.
    pub after_delta_bytes: u64,
    /// Bytes that all these take.
    pub stored_bytes: u64,
    /// Those that are part of a delta.
    pub deltas: DeltaFigures,
}

impl Reduction {
    fn add(&mut self, other: &Self) {
        self.chunks += other.chunks;
        self.unique_bytes += other.unique_bytes;
        self.bases += other.bases;
        self.base_bytes += other.base_bytes;
        self.after_delta_bytes += other.after_delta_bytes;
        self.stored_bytes += other.stored_bytes;
        self.deltas = self.deltas.and(other.deltas);
    }
}

/// Chunks in deltas.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeltaFigures {
    /// How many.
    pub chunks: u64,
    /// Their bytes.
    pub plain_bytes: u64,
    /// Bytes that they take.
    pub stored_bytes: u64,
}

impl DeltaFigures {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            chunks: self.chunks + other.chunks,
            plain_bytes: self.plain_bytes + other.plain_bytes,
            stored_bytes: self.stored_bytes + other.stored_bytes,
        }
    }

    /// The delta compression efficiency, DCE: the share of their bytes that deltas save; `None` if there are none. The
    /// name is that of Finesse (FAST'19), the definition that of Odess (TOS, equation 13), with bytes for weights:
    /// chunks that share a delta have no sizes of their own that could be averaged. Unlike there, deltas are compressed
    /// and encrypted.
    pub fn efficiency(&self) -> Option<f64> {
        ratio(self.stored_bytes, self.plain_bytes).map(|left| 1.0 - left)
    }
}

/// How often one goes into the other.
#[allow(clippy::cast_precision_loss)]
fn ratio(whole: u64, part: u64) -> Option<f64> {
    (part > 0).then(|| whole as f64 / part as f64)
}

/// Gathers the figures of the repository and of those of its live snapshots that are `wanted`. A series whose manifest
/// or indexes cannot be read is left out; what is wrong with it is returned beside.
///
/// # Errors
/// Those of the repository; the damage of the first series if none can be read.
///
/// # Complexity
/// The index of every container that holds what the snapshots need is read once. One pass over the manifest's
/// differences for each; memory of one index and some bitmaps.
pub fn stats(
    repository: &Repository,
    wanted: &(dyn Fn(&SnapshotView) -> bool + Sync),
) -> Result<(Stats, Vec<StoreError>), EngineError> {
    repository.require_reading("counting what snapshots hold")?;
    let mut stats = Stats { repository_bytes: repository.bytes()?, ..Stats::default() };
    let (mut series_counted, mut damage) = (0u64, Vec::new());
    let many = ManySeries::of(repository, MEMORY_BYTES_DEFAULT);
    let mut count = |manifests: Vec<Manifest>| {
        let figures = |manifest| match of_series(repository, manifest, wanted) {
            Err(error) if !error.is_damage() => Err(EngineError::from(error)),
            figures => Ok(figures),
        };
        for figures in many.each(manifests, many_series::weight, figures)? {
            match figures {
                Ok(of_series) => {
                    stats.add(of_series);
                    series_counted += 1;
                }
                Err(error) => damage.push(error),
            }
        }
        Ok::<_, EngineError>(())
    };
    let mut waiting = Vec::new();
    let unreadable = repository.visit_manifests(repository.series()?, |manifest| {
        waiting.push(manifest);
        if waiting.len() < MANIFESTS_AT_ONCE { Ok(()) } else { count(std::mem::take(&mut waiting)) }
    })?;
    count(waiting)?;
    stats.borrowed.sort_by(|one, other| (&one.series, &one.lender).cmp(&(&other.series, &other.lender)));
    damage.extend(unreadable);
    if damage.is_empty() || series_counted > 0 { Ok((stats, damage)) } else { Err(damage.swap_remove(0).into()) }
}

/// The figures of one series. If a container was gone because a writer has replaced it, the newer manifest counts.
fn of_series(
    repository: &Repository,
    mut manifest: Manifest,
    wanted: &(dyn Fn(&SnapshotView) -> bool + Sync),
) -> Result<Stats, StoreError> {
    loop {
        match gather::series(repository, &manifest, wanted) {
            Err(error) if error.is_not_found() => {
                let newest = repository.manifest(manifest.series)?;
                let Some(newer) = newest.filter(|newest| newest.sequence > manifest.sequence) else {
                    return Err(error.of_series(format_args!("\"{}\"", manifest.name)));
                };
                manifest = newer;
            }
            Err(error) => return Err(error.of_series(format_args!("\"{}\"", manifest.name))),
            Ok(stats) => return Ok(stats),
        }
    }
}

impl Stats {
    fn add(&mut self, other: Self) {
        self.snapshots += other.snapshots;
        self.files = self.files.saturating_add(other.files);
        self.restore_bytes = self.restore_bytes.saturating_add(other.restore_bytes);
        self.data.add(&other.data);
        self.metadata.add(&other.metadata);
        self.deltas_kept = self.deltas_kept.saturating_add(other.deltas_kept);
        self.deltas_rejected = self.deltas_rejected.saturating_add(other.deltas_rejected);
        self.deltas_skipped = self.deltas_skipped.saturating_add(other.deltas_skipped);
        self.bytes_migrated = self.bytes_migrated.saturating_add(other.bytes_migrated);
        self.data_container_bytes += other.data_container_bytes;
        self.metadata_container_bytes += other.metadata_container_bytes;
        self.older_key_bytes += other.older_key_bytes;
        self.parity_bytes += other.parity_bytes;
        self.containers += other.containers;
        self.repository_bytes += other.repository_bytes;
        self.borrowed.extend(other.borrowed);
        self.lent_bytes += other.lent_bytes;
        self.by_snapshot.extend(other.by_snapshot);
    }
}

/// A snapshot of a manifest.
fn view_at(manifest: &Manifest, position: usize) -> Option<SnapshotView> {
    let snapshot = manifest.snapshots().get(position)?.clone();
    let (series, series_name) = (manifest.series, manifest.name.clone());
    Some(SnapshotView { series, series_name, position, borrows_of: Vec::new(), snapshot })
}
