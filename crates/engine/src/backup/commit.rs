//! The end of a backup, and what its beginning needs of the one before: the commit, and the index of known chunks kept
//! on this machine.

use super::older::Leftover;
use super::previous::{add_containers, known, last_whole, partial_ids};
use super::select::{self, Known, SketchesIdentity};
use super::{Flow, Task, heal};
use crate::chunks::ChunkSource;
use crate::forget;
use crate::index::{CacheIdentity, CacheKind, CachedRun, FingerprintIndex, IndexError, Runs};
use crate::lease::now;
use crate::observer::Notice;
use crate::{EngineError, Observer};
use roaring::RoaringTreemap;
use siltstone_store::container::ContainerRecord;
use siltstone_store::manifest::{Manifest, Snapshot, SnapshotStatistics};
use siltstone_store::repository::Repository;
use siltstone_store::secrets::random_bytes;
use siltstone_store::series::{SeriesWriter, keep_reserve};
use siltstone_store::{ChunkNumber, ContainerId, SeriesId, SnapshotId, StoreError};
use std::collections::HashSet;
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
    pub(super) sketches: PathBuf,
}

impl Cache {
    pub(super) fn new(folder: &Path, repository: &Repository, series: SeriesId) -> Self {
        let folder = folder.join(repository.id().to_string());
        let file = |kind: &str| folder.join(format!("{series}.{kind}"));
        Self { index: file("index"), older: file("older"), sketches: file("likes") }
    }

    /// Where the index may put what does not fit in memory: the cache's folder, else the system's for temporary files.
    pub(super) fn spill_dir(folder: Option<&Path>, repository: &Repository) -> PathBuf {
        let folder = folder.map(|folder| folder.join(repository.id().to_string()));
        folder.filter(|folder| std::fs::create_dir_all(folder).is_ok()).unwrap_or_else(std::env::temp_dir)
    }
}

/// The index of the chunks that the last snapshot's catalog refers to: from the cache, or rebuilt from the containers'
/// indexes. The chunks of containers whose index turns out to be unreadable are added to those `lost`, and to those
/// `found` damaged.
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
    let mut needed = known(manifest);
    let is_cached = cached.is_some();
    if let Some(position) = last.filter(|_| is_cached).and_then(|last| manifest.position(&last.id)) {
        needed -= manifest.direct(position);
    }
    let mut index = FingerprintIndex::open(cached.unwrap_or_else(CachedRun::empty), budget_bytes, spill_dir);
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
    if cache.is_some() && last.is_some() && !is_cached {
        observer.notice(&Notice::IndexRebuilt);
    }
    Ok(index)
}

impl<'t> Task<'t> {
    /// The whole snapshot to be, without its record.
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
            deleted: None,
        })
    }

    /// Makes the snapshot true: containers durable, then the manifest, which drops the checkpoints; then, on this
    /// machine, the index for the next backup. `before` is the manifest at the beginning of the run.
    pub(super) fn commit(
        &self,
        writer: &mut SeriesWriter<'t>,
        before: &Manifest,
        flow: Flow,
        known: Option<&Known>,
        statistics: SnapshotStatistics,
    ) -> Result<SnapshotId, EngineError> {
        let options = self.options;
        let needs = Needs {
            direct: &flow.assembled.necessary,
            healed: &flow.assembled.healed,
            next: (flow.assembled.next_data, flow.assembled.next_metadata),
            containers: &flow.packed.containers,
            bases: &flow.noted.bases,
        };
        let (necessary, is_exact) = self.necessary(before, &needs)?;
        let mut next = with_containers(writer.manifest(), &flow);
        next.squeeze_due |= !is_exact;
        let snapshot = Snapshot { statistics, ..flow.snapshot };
        let id = snapshot.id;
        next.unsettled.extend(last_whole(&next).map(|before| before.id));
        next.push_snapshot(snapshot, &flow.assembled.necessary, &necessary);
        let partial = partial_ids(&next);
        let mut dead = Vec::new();
        if !partial.is_empty() {
            (next, dead) = forget::without_checkpoints(&next, &partial);
        }
        self.commit_and_delete(writer, next, dead, self.options.migrate)?;

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
            let identity = sketches_identity(writer.manifest(), id);
            let parts = [known.and_then(|known| known.records.as_ref()), flow.noted.records.as_ref()];
            let parts: Vec<_> = parts.into_iter().flatten().collect();
            let keep = |number: ChunkNumber| necessary.contains(number.0);
            match known.map(|_| select::save(&cache.sketches, &identity, &key, &parts, keep)) {
                Some(Ok(())) => {}
                Some(Err(error)) => self.observer.notice(&Notice::IndexNotSaved { reason: error.to_string() }),
                // It describes a snapshot that is the last no longer.
                None => drop(std::fs::remove_file(&cache.sketches)),
            }
        }
        Ok(id)
    }

    /// Commits what was healed, without a snapshot.
    pub(super) fn commit_healed(&self, writer: &mut SeriesWriter<'t>, flow: &Flow) -> Result<(), EngineError> {
        let next = with_containers(writer.manifest(), flow);
        self.commit_and_delete(writer, next, Vec::new(), true)
    }

    /// Commits `next`, then deletes the containers that it no longer names, as others answer for all that they held,
    /// and those of this run that are `dead`.
    fn commit_and_delete(
        &self,
        writer: &mut SeriesWriter<'t>,
        next: Manifest,
        dead: Vec<ContainerId>,
        keep_lease: bool,
    ) -> Result<(), EngineError> {
        let kept: HashSet<ContainerId> = next.containers.iter().map(|record| record.id).collect();
        let named = writer.manifest().containers.iter().map(|record| record.id);
        let gone: HashSet<ContainerId> = named.filter(|id| !kept.contains(id)).chain(dead).collect();
        let gone: Vec<ContainerId> = gone.into_iter().collect();
        if !next.damaged.is_empty() {
            self.observer.notice(&Notice::DamageLeft { chunks: next.damaged.len() });
        }
        writer.commit(next, keep_lease, now())?;
        // The commit stands. What cannot be deleted now the next writer removes.
        let _ = writer.delete(&gone);
        Ok(())
    }

    /// Keeps what the next backup looks chunks up in: those that the last snapshot refers to, and those that only
    /// others need.
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

    /// What a snapshot needs: what its catalog refers to, and the bases; and whether it is no more than that. `before`
    /// is the manifest at the beginning of the run.
    pub(super) fn necessary(
        &self,
        before: &Manifest,
        needs: &Needs<'_>,
    ) -> Result<(RoaringTreemap, bool), EngineError> {
        let Needs { direct, healed, next: (next_data, next_metadata), containers, bases } = *needs;
        let mut new = RoaringTreemap::new();
        new.insert_range(before.next_data.0..next_data.0);
        new.insert_range(before.next_metadata.0..next_metadata.0);
        let mut needed = direct.clone();
        if bases.is_empty() || new.is_subset(direct) {
            needed |= bases;
        } else {
            // Of regions with chunks that no entry refers to in the end, the indexes tell which bases are needed. What
            // was put can be read behind a barrier only.
            self.repository.storage().barrier().map_err(StoreError::from)?;
            let mut written = Manifest::new(before.series, "");
            written.containers = containers.to_vec();
            let kept = direct & &new;
            needed |= ChunkSource::new(self.repository, &written).bases(&kept)?;
        }
        // New bases are whole, and so is what was healed.
        let old = &needed - &new - healed;
        match ChunkSource::new(self.repository, before).closure_of_live(&old) {
            // What a damaged index hides must stay: all that was needed by the snapshot before.
            Err(error) if error.is_damage() => {
                let hidden = before.necessary(before.snapshots().len().saturating_sub(1));
                Ok((old | hidden | needed, false))
            }
            other => Ok((other? | needed, true)),
        }
    }
}

/// What a snapshot is made of, as far as it says what it needs.
#[derive(Clone, Copy)]
pub(super) struct Needs<'n> {
    /// What its catalog refers to.
    pub(super) direct: &'n RoaringTreemap,
    /// Numbers of earlier snapshots that new containers answer for.
    pub(super) healed: &'n RoaringTreemap,
    /// The next numbers of data and metadata chunks.
    pub(super) next: (ChunkNumber, ChunkNumber),
    /// The containers written by this run.
    pub(super) containers: &'n [ContainerRecord],
    /// What their regions hang on.
    pub(super) bases: &'n RoaringTreemap,
}

/// The manifest with the new containers, which answer for what was healed, and with what is known of damage.
fn with_containers(before: &Manifest, flow: &Flow) -> Manifest {
    let mut next = before.clone();
    next.next_data = flow.assembled.next_data;
    next.next_metadata = flow.assembled.next_metadata;
    next.damaged |= &flow.found;
    next.damaged &= before.live();
    heal::hand_over(&mut next, &flow.assembled.healed);
    add_containers(&mut next, &flow.packed.containers);
    next
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

pub(super) fn sketches_identity(manifest: &Manifest, snapshot: SnapshotId) -> SketchesIdentity {
    SketchesIdentity { series: manifest.series, snapshot, next: (manifest.next_data, manifest.next_metadata) }
}
