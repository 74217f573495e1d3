//! The end of a backup, and what its beginning needs of the one before: the commit, and the index of known chunks kept on this machine.

use super::assemble::Assembled;
use super::older::Leftover;
use super::select::{self, Known, LikesIdentity};
use super::{Flow, Task};
use crate::chunks::ChunkSource;
use crate::delta::closure;
use crate::index::{CacheIdentity, CacheKind, CachedRun, FingerprintIndex, IndexError, Runs};
use crate::lease::now;
use crate::observer::Notice;
use crate::{EngineError, Observer};
use roaring::RoaringTreemap;
use siltstone_store::manifest::{Manifest, Snapshot, SnapshotStatistics};
use siltstone_store::repository::Repository;
use siltstone_store::secrets::random_bytes;
use siltstone_store::series::{SeriesWriter, keep_reserve};
use siltstone_store::{ChunkNumber, SeriesId, SnapshotId};
use std::path::{Path, PathBuf};

/// Older chunks that are kept in mind for each that the last snapshot refers to.
const OLDER_OF_LAST: u64 = 2;
/// So many older chunks are kept in mind in any case: a megabyte and a half.
const OLDER_LEAST: u64 = 1 << 16;

/// Where a series' index lies on this machine.
pub(super) struct Cache {
    index: PathBuf,
    /// The same of chunks that only older snapshots have.
    pub(super) older: PathBuf,
    /// What the last snapshot's chunks look like.
    pub(super) likes: PathBuf,
    /// The number of the newest manifest seen, as text.
    seen: PathBuf,
}

impl Cache {
    pub(super) fn new(folder: &Path, repository: &Repository, series: SeriesId) -> Self {
        let folder = folder.join(repository.id().to_string());
        let file = |kind: &str| folder.join(format!("{series}.{kind}"));
        Self { index: file("index"), older: file("older"), likes: file("likes"), seen: file("seen") }
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

/// The index of the chunks that the last snapshot's catalog refers to: from the cache, or rebuilt from the containers' indexes. The chunks of
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
        return Ok(FingerprintIndex::open(CachedRun::empty(), budget_bytes, spill_dir));
    };
    let identity = CacheIdentity { kind: CacheKind::Last, series: manifest.series, snapshot: last.id };
    let key = repository.keys().cache_key();
    let cached = cache.and_then(|cache| CachedRun::open(&cache.index, &identity, &key, budget_bytes).ok());
    if let Some(previous) = cached {
        return Ok(FingerprintIndex::open(previous, budget_bytes, spill_dir));
    }
    let mut index = FingerprintIndex::open(CachedRun::empty(), budget_bytes, spill_dir);
    // Not those that it needs as bases only: they are asked for where older ones are.
    let needed = manifest.direct(manifest.snapshots().len() - 1) - &*lost;
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
    /// The snapshot to be.
    pub(super) fn snapshot(&self, root: ChunkNumber, statistics: SnapshotStatistics) -> Result<Snapshot, EngineError> {
        let (options, made) = (self.options, now());
        Ok(Snapshot {
            id: SnapshotId(random_bytes()?),
            time: options.time.unwrap_or(made),
            made,
            host: options.host.clone(),
            user: options.user.clone(),
            paths: self.paths.clone(),
            tags: options.tags.clone(),
            description: options.description.clone(),
            program: options.program.clone(),
            root,
            record: ChunkNumber(0),
            statistics,
            partial: false,
            forgotten: None,
        })
    }

    /// Makes the snapshot true: containers durable, then the manifest; then, on this machine, the index for the next backup.
    pub(super) fn commit(
        &self,
        writer: &mut SeriesWriter<'t>,
        flow: Flow,
        known: Option<&Known>,
        statistics: SnapshotStatistics,
    ) -> Result<SnapshotId, EngineError> {
        let options = self.options;
        let necessary = self.necessary(writer.manifest(), &flow)?;
        let snapshot = Snapshot { statistics, ..flow.snapshot };
        let id = snapshot.id;
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
            let key = self.repository.keys().cache_key();
            let direct = &flow.assembled.necessary;
            let runs = (flow.assembled.index.into_runs(), flow.assembled.older);
            if let Err(error) = self.save_index(&cache, runs, writer.manifest(), direct) {
                self.observer.notice(&Notice::IndexNotSaved { reason: error.to_string() });
            }
            let identity = likes_identity(writer.manifest(), id);
            let parts = [known.and_then(|known| known.records.as_ref()), flow.noted.records.as_ref()];
            let parts: Vec<_> = parts.into_iter().flatten().collect();
            let keep = |number: ChunkNumber| necessary.contains(number.0);
            match known.map(|_| select::save(&cache.likes, &identity, &key, &parts, keep)) {
                Some(Ok(())) => {}
                Some(Err(error)) => self.observer.notice(&Notice::IndexNotSaved { reason: error.to_string() }),
                // It describes a snapshot that is the last no longer.
                None => drop(std::fs::remove_file(&cache.likes)),
            }
            cache.remember(writer.manifest().sequence);
        }
        Ok(id)
    }

    /// Keeps what the next backup looks chunks up in: those that the last snapshot refers to, and those that only others need.
    fn save_index(
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

    /// What the snapshot needs: what its catalog refers to, and the bases.
    fn necessary(&self, before: &Manifest, flow: &Flow) -> Result<RoaringTreemap, EngineError> {
        let Assembled { necessary: direct, next_data, next_metadata, .. } = &flow.assembled;
        let mut new = RoaringTreemap::new();
        new.insert_range(before.next_data.0..next_data.0);
        new.insert_range(before.next_metadata.0..next_metadata.0);
        let mut needed = direct.clone();
        if new.is_subset(direct) {
            needed |= &flow.noted.bases;
        } else {
            // Of regions with chunks that no entry refers to in the end, the indexes tell which bases are needed.
            let mut written = Manifest::new(before.series, "");
            written.containers.clone_from(&flow.packed.containers);
            let kept = direct & &new;
            needed |= ChunkSource::new(self.repository, &written).bases(&kept)?;
        }
        // New bases are whole.
        let old = &needed - &new;
        let closure = match closure(&ChunkSource::new(self.repository, before), &old) {
            // What a damaged index hides must stay: all that was needed by the snapshot before.
            Err(error) if error.is_damage() => old | before.necessary(before.snapshots().len().saturating_sub(1)),
            other => other?,
        };
        Ok(closure | needed)
    }
}

/// The chunks that only older snapshots need, at most about [`OLDER_OF_LAST`] times as many as the last one refers to (`direct`): those that
/// went last. So the list stays as short as the source, however many snapshots there are.
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

pub(super) fn likes_identity(manifest: &Manifest, snapshot: SnapshotId) -> LikesIdentity {
    LikesIdentity { series: manifest.series, snapshot, next: (manifest.next_data, manifest.next_metadata) }
}
