//! The index of known chunks, kept on this machine from one backup to the next.

use super::outcome::Leftover;
use super::previous::{known, last_whole};
use super::run::BackupRun;
use super::sketch_file::SketchesIdentity;
use crate::chunks::ChunkSource;
use crate::index::{CacheIdentity, CacheKind, CachedRun, FingerprintIndex, IndexError, Runs};
use crate::observer::Notice;
use crate::{EngineError, Observer};
use roaring::RoaringTreemap;
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::{SeriesId, SnapshotId};
use std::path::{Path, PathBuf};

/// Older chunks that are kept in mind for each that the last snapshot refers to.
const OLDER_OF_LAST: u64 = 2;
/// Older chunks that are kept in mind in any case: a megabyte and a half.
const OLDER_LEAST: u64 = 1 << 16;

/// Places of a series' index on this machine.
pub(super) struct Cache {
    pub(super) index: PathBuf,
    /// Index of chunks that only older snapshots have.
    pub(super) older: PathBuf,
    /// Sketches of the last snapshot's chunks.
    pub(super) sketches: PathBuf,
    /// Catalog of the last snapshot, where the key cannot read it from the repository.
    pub(super) catalog: PathBuf,
}

impl Cache {
    pub(super) fn new(folder: &Path, repository: &Repository, series: SeriesId) -> Self {
        let folder = folder.join(repository.id().to_string());
        let file = |kind: &str| folder.join(format!("{series}.{kind}"));
        Self { index: file("index"), older: file("older"), sketches: file("likes"), catalog: file("catalog") }
    }
}

/// Opens the index of the chunks that the last snapshot's catalog refers to: from the cache, or rebuilt from the
/// containers' indexes. The chunks of containers whose index turns out to be unreadable are added to those `lost`, and
/// to those `found` damaged.
#[allow(clippy::too_many_arguments)]
pub(super) fn open_index(
    repository: &Repository,
    manifest: &Manifest,
    cache: Option<&Cache>,
    chunks: &ChunkSource<'_>,
    (lost, found): (&mut RoaringTreemap, &mut RoaringTreemap),
    budget_bytes: u64,
    spill_dir: &Path,
    observer: &dyn Observer,
) -> Result<FingerprintIndex, EngineError> {
    let last = last_whole(manifest);
    let cached = cache.zip(last).and_then(|(cache, last)| {
        let identity = CacheIdentity { kind: CacheKind::Last, series: manifest.series, snapshot: last.id };
        CachedRun::open(&cache.index, &identity, &repository.keys().cache_key(), budget_bytes).ok()
    });
    // Not those that it needs as bases only: they are asked for where older ones are. But those that are lost: their
    // content can be stored again under their numbers.
    let mut needed = if repository.may_read() { known(manifest) } else { RoaringTreemap::new() };
    let is_cached = cached.is_some();
    if let Some(position) = last.filter(|_| is_cached).and_then(|last| manifest.position(&last.id)) {
        needed -= manifest.direct(position);
    }
    let mut index = FingerprintIndex::open(cached.unwrap_or_else(CachedRun::empty), budget_bytes, spill_dir);
    // Of a lender that cannot be read nothing is known; what it has is stored again.
    if needed.intersection_len(&chunks.borrowed()) > 0 {
        chunks.read_lenders()?;
    }
    for (at, record) in chunks.records().iter().enumerate() {
        let is_needed = record.chunks.iter().any(|run| needed.range_cardinality(run.range()) > 0);
        if !is_needed {
            continue;
        }
        match chunks.reader(at) {
            Ok(reader) => {
                for place in reader.index().places() {
                    if needed.contains(place.chunk.number.0) {
                        index.insert(place.chunk.fingerprint, place.chunk.number)?;
                    }
                }
            }
            Err(error) if error.is_damage() => {
                let mut fresh = 0;
                for run in &record.chunks {
                    fresh += run.count - lost.range_cardinality(run.range());
                    lost.insert_range(run.range());
                }
                // What is lost as a whole has been told.
                if fresh > 0 {
                    observer.notice(&Notice::IndexUnreadable { reason: error.to_string() });
                    for run in &record.chunks {
                        found.insert_range(run.range());
                    }
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    if last.is_some() && !is_cached {
        match repository.may_read() {
            true if cache.is_some() => observer.notice(&Notice::IndexRebuilt),
            true => {}
            false => observer.notice(&Notice::IndexLost),
        }
    }
    Ok(index)
}

impl BackupRun<'_> {
    /// Keeps what the next backup looks chunks up in: those that the last snapshot refers to, and those that only
    /// others need.
    pub(super) fn save_index(
        &self,
        cache: &Cache,
        (runs, older): (Runs, Option<Leftover>),
        manifest: &Manifest,
        direct: &RoaringTreemap,
    ) -> Result<(), IndexError> {
        let Some(last) = manifest.snapshots().last() else { return Ok(()) };
        let identity = |kind| CacheIdentity { kind, series: manifest.series, snapshot: last.id };
        let key = self.repository.keys().cache_key();
        runs.save(|number| direct.contains(number.0), &cache.index, &identity(CacheKind::Last), &key)?;
        if self.options.deltas.reaches_back() {
            let mut wanted = last_gone(manifest, direct);
            let runs = match older {
                Some(Leftover { runs: older, useless }) => {
                    wanted -= useless;
                    runs.followed_by(older)
                }
                None => runs,
            };
            runs.save(|number| wanted.contains(number.0), &cache.older, &identity(CacheKind::Older), &key)?;
        }
        Ok(())
    }
}

/// The chunks that only older snapshots need, at most about [`OLDER_OF_LAST`] times as many as the last one refers to
/// (`direct`): those that went last. So the list stays as short as the source, however many snapshots there are.
fn last_gone(manifest: &Manifest, direct: &RoaringTreemap) -> RoaringTreemap {
    let older = manifest.live() - direct;
    let most = (direct.len() * OLDER_OF_LAST).max(OLDER_LEAST);
    if older.len() <= most {
        return older;
    }
    let mut gone = RoaringTreemap::new();
    let steps: Vec<_> = manifest.direct_differences().collect();
    for (_, removed) in steps.into_iter().rev() {
        if gone.len() >= most {
            break;
        }
        gone |= removed & &older;
    }
    gone
}

/// Identity of the sketches of this snapshot, which is the last one.
pub(super) fn sketches_identity(manifest: &Manifest, snapshot: SnapshotId) -> SketchesIdentity {
    SketchesIdentity { series: manifest.series, snapshot, next: (manifest.next_data, manifest.next_metadata) }
}
