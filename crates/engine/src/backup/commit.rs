//! The end of a backup, and what its beginning needs of the one before: the commit, and the index of known chunks kept on this machine.

use super::{Flow, Task};
use crate::chunks::ChunkSource;
use crate::delta::closure;
use crate::index::{CacheIdentity, FingerprintIndex, PreviousRun};
use crate::lease::now;
use crate::observer::Notice;
use crate::{EngineError, Observer};
use roaring::RoaringTreemap;
use siltstone_store::manifest::{Manifest, Snapshot, SnapshotStatistics};
use siltstone_store::repository::Repository;
use siltstone_store::secrets::random_bytes;
use siltstone_store::series::{SeriesWriter, keep_reserve};
use siltstone_store::{SeriesId, SnapshotId};
use std::path::{Path, PathBuf};

/// Where a series' index lies on this machine.
pub(super) struct Cache {
    index: PathBuf,
    /// The number of the newest manifest seen, as text.
    seen: PathBuf,
}

impl Cache {
    pub(super) fn new(folder: &Path, repository: &Repository, series: SeriesId) -> Self {
        let folder = folder.join(repository.id().to_string());
        Self { index: folder.join(format!("{series}.index")), seen: folder.join(format!("{series}.seen")) }
    }

    /// Where the index may put what does not fit in memory: the cache's folder, else the system's for temporary files.
    pub(super) fn spill_dir(folder: Option<&Path>, repository: &Repository) -> PathBuf {
        let folder = folder.map(|folder| folder.join(repository.id().to_string()));
        folder.filter(|folder| std::fs::create_dir_all(folder).is_ok()).unwrap_or_else(std::env::temp_dir)
    }

    /// Tells if the store has an older manifest than one seen before.
    fn notice_rollback(&self, found: u64, observer: &dyn Observer) {
        let seen = std::fs::read_to_string(&self.seen).ok().and_then(|text| text.trim().parse::<u64>().ok());
        if let Some(seen) = seen.filter(|seen| *seen > found) {
            observer.notice(&Notice::RolledBack { seen, found });
        }
    }

    fn remember(&self, sequence: u64) {
        // Only a hint for the next run; nothing depends on it.
        let _ = std::fs::write(&self.seen, sequence.to_string());
    }
}

/// The index of the chunks that the last snapshot needs: from the cache, or rebuilt from the containers' indexes. The chunks of
/// containers whose index turns out to be unreadable are added to `lost`.
#[allow(clippy::too_many_arguments)]
pub(super) fn open_index(
    repository: &Repository,
    manifest: &Manifest,
    cache: Option<&Cache>,
    chunks: &ChunkSource<'_>,
    lost: &mut RoaringTreemap,
    budget_bytes: u64,
    spill_dir: &Path,
    observer: &dyn Observer,
) -> Result<FingerprintIndex, EngineError> {
    if let Some(cache) = cache {
        cache.notice_rollback(manifest.sequence, observer);
    }
    let Some(last) = manifest.snapshots().last() else {
        return Ok(FingerprintIndex::open(PreviousRun::empty(), budget_bytes, spill_dir));
    };
    let identity = CacheIdentity { series: manifest.series, snapshot: last.id };
    let key = repository.keys().cache_key();
    let cached = cache.and_then(|cache| PreviousRun::open(&cache.index, &identity, &key, budget_bytes).ok());
    if let Some(previous) = cached {
        return Ok(FingerprintIndex::open(previous, budget_bytes, spill_dir));
    }
    let mut index = FingerprintIndex::open(PreviousRun::empty(), budget_bytes, spill_dir);
    let needed = manifest.necessary(manifest.snapshots().len() - 1) - &*lost;
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
            // Its chunks are stored again; a check will tell of it.
            Err(error) if error.is_damage() => {
                observer.notice(&Notice::IndexUnreadable { reason: error.to_string() });
                record.chunks.iter().for_each(|run| {
                    lost.insert_range(run.range());
                });
            }
            Err(error) => return Err(error.into()),
        }
    }
    if cache.is_some() {
        observer.notice(&Notice::IndexRebuilt);
    }
    Ok(index)
}

impl<'t> Task<'t> {
    /// Makes the snapshot true: containers durable, then the manifest; then, on this machine, the index for the next backup.
    pub(super) fn commit(
        &self,
        writer: &mut SeriesWriter<'t>,
        flow: Flow,
        statistics: SnapshotStatistics,
    ) -> Result<SnapshotId, EngineError> {
        let options = self.options;
        let necessary = closure(&ChunkSource::new(self.repository, writer.manifest()), &flow.assembled.necessary)?;
        let id = SnapshotId(random_bytes()?);
        let snapshot = Snapshot {
            id,
            time: options.time.unwrap_or_else(now),
            host: options.host.clone(),
            user: options.user.clone(),
            paths: self.paths.clone(),
            tags: options.tags.clone(),
            description: options.description.clone(),
            program: options.program.clone(),
            root: flow.root,
            statistics,
        };
        let mut next = writer.manifest().clone();
        next.next_data = flow.assembled.next_data;
        next.next_metadata = flow.assembled.next_metadata;
        next.containers.extend(flow.packed.containers);
        next.unsettled.extend(next.snapshots().last().map(|before| before.id));
        next.push_snapshot(snapshot, &flow.assembled.necessary, &necessary);
        writer.commit(next, self.options.migrate, now())?;

        // The snapshot stands; what follows makes the next run better and must not fail this one.
        let _ = keep_reserve(self.repository, writer.stored().object_bytes);
        if let Some(folder) = &options.cache {
            let cache = Cache::new(folder, self.repository, writer.series());
            let identity = CacheIdentity { series: writer.series(), snapshot: id };
            let key = self.repository.keys().cache_key();
            let keep = |number: siltstone_store::ChunkNumber| necessary.contains(number.0);
            if let Err(error) = flow.assembled.index.finish(keep, &cache.index, &identity, &key) {
                self.observer.notice(&Notice::IndexNotSaved { reason: error.to_string() });
            }
            cache.remember(writer.manifest().sequence);
        }
        Ok(id)
    }
}
