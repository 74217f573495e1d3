//! Forgetting snapshots: choose ([`policy`]), commit without them, delete what is dead whole, rewrite what is dead in part.
//!
//! Which containers are dead follows from the bitmaps of necessary chunks alone: no container is read for it. One whose dead share
//! passes the threshold is rewritten (`rewrite`): its survivors move to a new container, which is durable and committed before
//! the old one goes. On a full disk the first commit is made from the reserve, whole dead containers give their space back, and
//! rewriting is put off.
//!
//! A dry run takes the same way with a sink that drops what it is given, so the bytes it states are those that come back.

pub mod policy;
mod rewrite;

use crate::fs::{Problem, ProblemKind};
use crate::lease::{Purpose, acquire, now};
use crate::migrate::ghost_bytes;
use crate::observer::Notice;
use crate::pack::{ContainerSink, DrySink};
use crate::protect::parity_bytes;
use crate::repack::{Stopped, keep_numbers};
use crate::snapshots::SnapshotKey;
use crate::{EngineError, Observer};
use roaring::RoaringTreemap;
use siltstone_store::container::ContainerRecord;
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::series::{ReserveUse, SeriesWriter, manifest_object_bytes, newest_manifest};
use siltstone_store::storage::{Listing, ObjectMeta};
use siltstone_store::{ContainerId, SeriesId, SnapshotId, StoreError};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The share of a container that may be dead before it is rewritten. Space held after any deletion stays below 1 / (1 - this); of a
/// delta, which is small, up to half may be dead (after forgetting every second of 25 dumps: 0.15 % of the repository).
pub const REWRITE_THRESHOLD_DEFAULT: f64 = 0.2;

/// How to forget.
#[derive(Clone, Debug)]
pub struct ForgetOptions {
    /// Do everything but write: the summary states the exact bytes.
    pub dry_run: bool,
    /// Whether a series may lose its last snapshots.
    pub allow_remove_all: bool,
    /// A container whose dead share exceeds this is rewritten (0 ..= 1).
    pub rewrite_threshold: f64,
    /// Take over a lease whose holder cannot be seen from here.
    pub take_over: bool,
    /// Who does it, recorded in the lease.
    pub user: String,
    /// Compression level of zstd for rewritten regions.
    pub compression_level: i32,
}

/// What forgetting did, or would do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ForgetSummary {
    /// Snapshots removed.
    pub snapshots_removed: u64,
    /// Snapshots asked for that could not be removed (their series failed); the error was reported as a problem.
    pub snapshots_failed: u64,
    /// Containers deleted outright.
    pub containers_deleted: u64,
    /// Containers replaced by smaller ones.
    pub containers_rewritten: u64,
    /// About how many bytes are held by chunks that only deltas need now: the next backup or `silt maintain` frees most of them.
    pub ghost_bytes: u64,
    /// Size of all objects of the repository before.
    pub bytes_before: u64,
    /// Size of all objects after.
    pub bytes_after: u64,
}

impl ForgetSummary {
    /// Bytes that came (or will come) back.
    pub fn bytes_returned(&self) -> i64 {
        i64::try_from(self.bytes_before).unwrap_or(i64::MAX) - i64::try_from(self.bytes_after).unwrap_or(i64::MAX)
    }
}

/// Removes these snapshots and gives back the space that only they needed. Snapshots already gone are passed over.
///
/// # Errors
/// What concerns the repository as a whole; [`EngineError::RemovesAll`] before anything is removed. If one series of several fails, it is reported as a problem and counted.
pub fn forget(
    repository: &Repository,
    snapshots: &[SnapshotKey],
    options: &ForgetOptions,
    observer: &dyn Observer,
) -> Result<ForgetSummary, EngineError> {
    let mut by_series: BTreeMap<SeriesId, BTreeSet<SnapshotId>> = BTreeMap::new();
    for (series, id) in snapshots {
        by_series.entry(*series).or_default().insert(*id);
    }
    for (series, ids) in &by_series {
        // One that cannot be read is told below.
        if let Ok(Some(stored)) = newest_manifest(repository, *series) {
            refuse_emptying(&stored.manifest, ids, options)?;
        }
    }
    let bytes_before = repository.bytes()?;
    let mut summary = ForgetSummary { bytes_before, ..ForgetSummary::default() };
    let mut bytes_returned = 0i64;
    let only_one = by_series.len() == 1;
    for (series, ids) in &by_series {
        match forget_in_series(repository, *series, ids, options, observer, &mut summary) {
            Ok(returned) => bytes_returned += returned,
            Err(error) if only_one || matches!(error, EngineError::Interrupted) => return Err(error),
            Err(error) => {
                summary.snapshots_failed += ids.len() as u64;
                observer.problem(&Problem::object(format!("series {series}"), ProblemKind::NotRemoved, error));
            }
        }
    }
    summary.bytes_after = if options.dry_run {
        u64::try_from(i64::try_from(bytes_before).unwrap_or(i64::MAX) - bytes_returned).unwrap_or(0)
    } else {
        repository.bytes()?
    };
    Ok(summary)
}

/// Refuses to remove the last snapshots of a series: what was probably meant is less. Checkpoints do not count as left.
fn refuse_emptying(
    manifest: &Manifest,
    ids: &BTreeSet<SnapshotId>,
    options: &ForgetOptions,
) -> Result<(), EngineError> {
    let mut whole = manifest.snapshots().iter().filter(|snapshot| !snapshot.partial).peekable();
    let has_any = whole.peek().is_some();
    if options.allow_remove_all || !has_any || whole.any(|snapshot| !ids.contains(&snapshot.id)) {
        return Ok(());
    }
    Err(EngineError::RemovesAll { series: manifest.name.clone() })
}

/// What removing snapshots does to the containers of a series; pure.
struct Plan {
    /// The manifest without the snapshots and without dead containers.
    next: Manifest,
    /// Containers that no live snapshot needs any chunk of.
    dead: Vec<ContainerRecord>,
    /// Containers whose dead share passes the threshold.
    to_rewrite: Vec<ContainerRecord>,
    /// The chunk numbers that live snapshots need.
    live: RoaringTreemap,
}

fn plan(manifest: &Manifest, ids: &BTreeSet<SnapshotId>, threshold: f64) -> Plan {
    let mut next = manifest.clone();
    next.squeeze_due |= !next.remove_snapshots(ids).is_empty();
    let live = next.live();
    let (mut dead, mut to_rewrite, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for mut record in std::mem::take(&mut next.containers) {
        match dead_share(&record, &live) {
            share if share >= 1.0 => dead.push(record),
            share => {
                if record.has_deltas {
                    // What is dead may hang on what goes now: nobody can decode it any more.
                    keep_numbers(&mut record, |numbers| numbers & &live);
                }
                if share > threshold {
                    to_rewrite.push(record.clone());
                }
                kept.push(record);
            }
        }
    }
    next.containers = kept;
    Plan { next, dead, to_rewrite, live }
}

/// The manifest of a new whole snapshot, the last, without the checkpoints on the way to it, and the containers that nothing needs then.
pub(crate) fn without_checkpoints(manifest: &Manifest, partial: &BTreeSet<SnapshotId>) -> (Manifest, Vec<ContainerId>) {
    let needed = |position: usize| manifest.necessary(position);
    let last = manifest.snapshots().len().saturating_sub(1);
    // Hulls end with the new snapshot, unless something came back in a checkpoint and went again.
    let mut went = RoaringTreemap::new();
    for position in (0..last).filter(|at| manifest.snapshots().get(*at).is_some_and(|snapshot| snapshot.partial)) {
        went |= needed(position) - needed(last);
    }
    let kept = (0..last).rfind(|at| manifest.snapshots().get(*at).is_some_and(|snapshot| !snapshot.partial));
    let is_hull_left = kept.is_some_and(|kept| !went.is_disjoint(&needed(kept)));
    let plan = plan(manifest, partial, f64::INFINITY);
    let mut next = plan.next;
    next.squeeze_due = manifest.squeeze_due || is_hull_left;
    (next, container_ids(&plan.dead))
}

/// The share of a container's chunks that no live snapshot needs or another container answers for, by number: chunks are much of a size.
#[allow(clippy::cast_precision_loss)]
fn dead_share(record: &ContainerRecord, live: &RoaringTreemap) -> f64 {
    let held = record.held;
    let needed: u64 = record.chunks.iter().map(|run| count_in(live, run.range())).sum();
    (held - needed) as f64 / held.max(1) as f64
}

fn count_in(live: &RoaringTreemap, range: std::ops::RangeInclusive<u64>) -> u64 {
    let below = range.start().checked_sub(1).map_or(0, |before| live.rank(before));
    live.rank(*range.end()) - below
}

/// Forgets in one series; gives the bytes that came back.
fn forget_in_series(
    repository: &Repository,
    series: SeriesId,
    ids: &BTreeSet<SnapshotId>,
    options: &ForgetOptions,
    observer: &dyn Observer,
    summary: &mut ForgetSummary,
) -> Result<i64, EngineError> {
    let Some(stored) = newest_manifest(repository, series)? else {
        return Ok(0);
    };
    let named = stored.manifest.snapshots().iter().filter(|snapshot| ids.contains(&snapshot.id)).count() as u64;
    if named == 0 {
        return Ok(0);
    }
    if options.dry_run {
        let plan = plan(&stored.manifest, ids, options.rewrite_threshold);
        summary.snapshots_removed += named;
        summary.ghost_bytes += ghost_bytes(repository, &plan.next).unwrap_or(0);
        let orphans = manifest_and_orphan_bytes(repository, &stored.manifest)?;
        return dry_run(repository, plan, &stored.manifest, orphans, options, observer, summary);
    }
    let (user, take_over) = (options.user.as_str(), options.take_over);
    let purpose = Purpose { name: "forget", user, take_over, reserve: ReserveUse::Spend };
    let mut writer = acquire(repository, &stored.manifest.name, &purpose, observer)?;
    match execute(repository, &mut writer, ids, options, observer) {
        Ok(done) => {
            summary.snapshots_removed += named;
            summary.ghost_bytes += done.ghost_bytes;
            summary.containers_deleted += done.containers_deleted;
            summary.containers_rewritten += done.containers_rewritten;
            Ok(0)
        }
        Err(error) => {
            // The first error is the one to tell; a lease left behind is taken over by the next run.
            let _ = writer.abandon(now());
            Err(error)
        }
    }
}

/// The manifests of a series, which two new ones with their copies replace, and the containers that acquiring the lease will remove.
fn manifest_and_orphan_bytes(repository: &Repository, manifest: &Manifest) -> Result<u64, StoreError> {
    let known: HashSet<ContainerId> = manifest.containers.iter().map(|record| record.id).collect();
    let storage = repository.storage();
    let series = manifest.series;
    let mut listed = Vec::new();
    for what in [
        Listing::Containers(series),
        Listing::Parity(series),
        Listing::Manifests(series),
        Listing::ManifestCopies(series),
    ] {
        listed.extend(storage.list(what)?);
    }
    let is_named = |meta: &&ObjectMeta| meta.name.container().is_some_and(|id| known.contains(&id));
    Ok(listed.iter().filter(|meta| !is_named(meta)).map(|meta| meta.bytes).sum())
}

/// Every manifest lies there twice.
const COPIES: u64 = 2;

fn dry_run(
    repository: &Repository,
    plan: Plan,
    manifest: &Manifest,
    held_bytes: u64,
    options: &ForgetOptions,
    observer: &dyn Observer,
    summary: &mut ForgetSummary,
) -> Result<i64, EngineError> {
    let sink = DrySink::new(manifest.sequence + 1);
    // The manifest before the last one stays: that of the lease, or of the first of two commits.
    let before_last = if plan.to_rewrite.is_empty() { manifest } else { &plan.next };
    let before_last_bytes = manifest_object_bytes(before_last)?;
    let mut next = plan.next;
    let parity = parity_bytes(repository, next.series)?;
    let bytes_now = |records: &[ContainerRecord]| {
        object_bytes(records) + records.iter().filter_map(|record| parity.get(&record.id)).sum::<u64>()
    };
    let mut gone: u64 = held_bytes + bytes_now(&plan.dead);
    let mut made = 0;
    summary.containers_deleted += plan.dead.len() as u64;
    if !plan.to_rewrite.is_empty() {
        let Rewritten { old, new, .. } =
            rewrite_sound(repository, &next, plan.to_rewrite, &plan.live, options, &sink, observer)?;
        gone += bytes_now(&old);
        let parity = |record: &ContainerRecord| repository.parity().object_bytes(record.kind, record.object_bytes);
        made += object_bytes(&new) + new.iter().map(parity).sum::<u64>();
        summary.containers_rewritten += old.len() as u64;
        replace(&mut next, &old, new);
    }
    next.lease = None;
    made += COPIES * (before_last_bytes + manifest_object_bytes(&next)?);
    let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    Ok(signed(gone) - signed(made))
}

fn execute(
    repository: &Repository,
    writer: &mut SeriesWriter<'_>,
    ids: &BTreeSet<SnapshotId>,
    options: &ForgetOptions,
    observer: &dyn Observer,
) -> Result<ForgetSummary, EngineError> {
    // Another may have removed some since.
    refuse_emptying(writer.manifest(), ids, options)?;
    let plan = plan(writer.manifest(), ids, options.rewrite_threshold);
    let rewrites = !plan.to_rewrite.is_empty();
    // An estimate, which must not keep anything from being forgotten.
    let ghost_bytes = ghost_bytes(repository, &plan.next).unwrap_or(0);
    writer.commit(plan.next, rewrites, now())?;
    writer.delete(&container_ids(&plan.dead))?;
    let containers_deleted = plan.dead.len() as u64;
    let mut done = ForgetSummary { containers_deleted, ghost_bytes, ..ForgetSummary::default() };
    if rewrites {
        match rewrite_and_commit(repository, writer, plan.to_rewrite, &plan.live, options, observer) {
            Ok(rewritten) => done.containers_rewritten = rewritten,
            Err(error) if error.is_full() => {
                // The snapshots are gone and whole dead containers have been given back; this part waits for the next forget.
                observer.notice(&Notice::RewriteDeferred);
                let unchanged = writer.manifest().clone();
                writer.commit(unchanged, false, now())?;
                writer.sweep()?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    repository.storage().barrier().map_err(StoreError::from)?;
    writer.restore_reserve()?;
    Ok(done)
}

/// Rewrites containers whose dead share exceeds the threshold, and deletes dead ones, without forgetting anything. The lease is kept.
/// Gives the bytes written and those deleted; `note` is shown the manifest to be committed, and the former.
pub(crate) fn compact(
    repository: &Repository,
    writer: &mut SeriesWriter<'_>,
    options: &ForgetOptions,
    observer: &dyn Observer,
    note: impl FnOnce(&mut Manifest, u64),
) -> Result<(u64, u64), EngineError> {
    let plan = plan(writer.manifest(), &BTreeSet::new(), options.rewrite_threshold);
    let Rewritten { old, new, is_whole } =
        rewrite_sound(repository, &plan.next, plan.to_rewrite, &plan.live, options, writer, observer)?;
    if plan.dead.is_empty() && old.is_empty() {
        return if is_whole { Ok((0, 0)) } else { Ok(writer.sweep().map(|()| (0, 0))?) };
    }
    let (written, mut next) = (object_bytes(&new), plan.next);
    replace(&mut next, &old, new);
    note(&mut next, written);
    writer.commit(next, true, now())?;
    let gone: Vec<_> = plan.dead.into_iter().chain(old).collect();
    writer.delete(&container_ids(&gone))?;
    if !is_whole {
        writer.sweep()?;
    }
    Ok((written, object_bytes(&gone)))
}

fn rewrite_and_commit(
    repository: &Repository,
    writer: &mut SeriesWriter<'_>,
    to_rewrite: Vec<ContainerRecord>,
    live: &RoaringTreemap,
    options: &ForgetOptions,
    observer: &dyn Observer,
) -> Result<u64, StoreError> {
    let (manifest, sink): (_, &dyn ContainerSink) = (writer.manifest(), writer);
    let Rewritten { old, new, is_whole } =
        rewrite_sound(repository, manifest, to_rewrite, live, options, sink, observer)?;
    let mut next = writer.manifest().clone();
    replace(&mut next, &old, new);
    writer.commit(next, false, now())?;
    writer.delete(&container_ids(&old))?;
    if !is_whole {
        writer.sweep()?;
    }
    Ok(old.len() as u64)
}

/// What rewriting did.
struct Rewritten {
    old: Vec<ContainerRecord>,
    new: Vec<ContainerRecord>,
    /// Whether all could be read. Else something may have been made in vain.
    is_whole: bool,
}

/// Rewrites the containers that can be read. A damaged container is told and stays as it is, for
/// what is sound of it is still needed; what was made of it before the damage was met is left to be swept.
fn rewrite_sound(
    repository: &Repository,
    manifest: &Manifest,
    mut to_rewrite: Vec<ContainerRecord>,
    live: &RoaringTreemap,
    options: &ForgetOptions,
    sink: &dyn ContainerSink,
    observer: &dyn Observer,
) -> Result<Rewritten, StoreError> {
    let mut is_whole = true;
    loop {
        match rewrite::rewrite(repository, manifest, &to_rewrite, live, options, sink) {
            Ok((old, new)) => return Ok(Rewritten { old, new, is_whole }),
            Err(Stopped { container, error }) if error.is_damage() => {
                let id = container.and_then(|at| manifest.containers.get(at)).map(|record| record.id);
                let Some(at) = to_rewrite.iter().position(|record| Some(record.id) == id) else { return Err(error) };
                is_whole = false;
                let name = to_rewrite.remove(at).object_name(manifest.series).to_string();
                let reason = format!("{error}; it is kept as it is");
                observer.problem(&Problem::object(name, ProblemKind::Damaged, reason));
            }
            Err(Stopped { error, .. }) => return Err(error),
        }
    }
}

fn replace(manifest: &mut Manifest, old: &[ContainerRecord], new: Vec<ContainerRecord>) {
    let gone: HashSet<_> = old.iter().map(|record| record.id).collect();
    manifest.containers.retain(|record| !gone.contains(&record.id));
    manifest.containers.extend(new);
}

fn container_ids(records: &[ContainerRecord]) -> Vec<ContainerId> {
    records.iter().map(|record| record.id).collect()
}

fn object_bytes(records: &[ContainerRecord]) -> u64 {
    records.iter().map(|record| record.object_bytes).sum()
}
