//! Forgetting snapshots: choose ([`policy`], `selection`, `choice`), commit without them or with their marks, delete
//! what is dead whole, rewrite what is dead in part.
//!
//! Which containers are dead follows from the bitmaps of necessary chunks alone: no container is read for it. One whose
//! dead share passes the threshold is rewritten (`maintain`): its survivors move to a new container, which is durable
//! and committed before the old one goes. On a full disk the first commit is made from the reserve, whole dead
//! containers give their space back, and rewriting is put off.
//!
//! Snapshots may be marked as deleted instead, and kept for some time ([`Marking`]): they hold their space until a run
//! finds that time to be over, and can be brought back until then ([`crate::undelete`]).
//!
//! A dry run takes the same way without writing (`dry`), so the bytes it states are those that come back, now and when
//! marks end (`held`).

mod choice;
mod dry;
mod exclude;
mod held;
mod order;
mod plan;
pub mod policy;
mod recorded;
mod selection;

pub use exclude::{Affected, RewritePlan, plan_rewrite};
pub use held::{Held, held_by};
pub(crate) use plan::without_checkpoints;
pub use recorded::{PolicyScope, RecordedPolicies, record_policy};
pub use selection::{DecidedGroup, ForgetPlan, Kept, SeriesOutlook, SnapshotSelection, plan_forget};

use crate::fs::{PathFilter, Problem, ProblemKind};
use crate::lease::{Purpose, acquire_late, now, try_acquire};
use crate::maintain::dead::{Left, deleted, left, object_bytes};
use crate::maintain::ghost_bytes;
use crate::maintain::lent::is_over;
use crate::maintain::rewrite::{Rewriting, Rewritten, replace, rewrite_intact};
use crate::many_series::{self, ManySeries};
use crate::observer::Notice;
use crate::pack::ContainerSink;
use crate::setters::setters;
use crate::snapshots::SnapshotKey;
use crate::usage::{Usage, is_counted, measured};
use crate::written::{VerifyWritten, verify_written};
use crate::{EngineError, Resources};
use choice::Choice;
use dry::{Beside, State, lenders_in, loans_of};
use held::{After, held_of};
use order::{in_order, lenders_of};
use plan::{Removal, plan};
use roaring::RoaringTreemap;
use siltstone_store::container::ContainerRecord;
use siltstone_store::region::ZSTD_LEVEL_DEFAULT;
use siltstone_store::repository::Repository;
use siltstone_store::series::{ReserveUse, SeriesWriter, claimed_chunks};
use siltstone_store::storage::Latency;
use siltstone_store::{SeriesId, SnapshotId, StoreError, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The share of a container that may be dead before it is rewritten. Space held after any deletion stays below 1 / (1 -
/// this); of a delta, which is small, up to half may be dead (after forgetting every second of 25 dumps: 0.15 % of the
/// repository).
pub const REWRITE_THRESHOLD_DEFAULT: f64 = 0.2;

/// Options of forgetting.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ForgetOptions {
    /// Do everything but write: the summary states the exact bytes.
    pub dry_run: bool,
    /// True if a series may lose its last snapshots.
    pub allow_remove_all: bool,
    /// A container whose dead share exceeds this is rewritten (0 ..= 1).
    pub rewrite_threshold: f64,
    /// Take over a lease whose holder cannot be seen from here.
    pub take_over: bool,
    /// Who does it, recorded in the lease.
    pub user: String,
    /// Compression level of zstd for rewritten regions.
    pub compression_level: i32,
    /// Snapshots that are marked as deleted rather than removed, and marks that end.
    pub marking: Marking,
    /// Filter of what snapshots that stay are to lose.
    pub(crate) exclude: Option<PathFilter>,
}

impl Default for ForgetOptions {
    fn default() -> Self {
        Self {
            dry_run: false,
            allow_remove_all: false,
            rewrite_threshold: REWRITE_THRESHOLD_DEFAULT,
            take_over: false,
            user: String::new(),
            compression_level: ZSTD_LEVEL_DEFAULT,
            marking: Marking::default(),
            exclude: None,
        }
    }
}

setters!(ForgetOptions {
    with_dry_run(dry_run: bool),
    with_allow_remove_all(allow_remove_all: bool),
    with_rewrite_threshold(rewrite_threshold: f64),
    with_take_over(take_over: bool),
    with_user(user: String),
    with_compression_level(compression_level: i32),
    with_marking(marking: Marking),
});

impl ForgetOptions {
    fn rewriting(&self) -> Rewriting {
        Rewriting { threshold: self.rewrite_threshold, compression_level: self.compression_level }
    }
}

/// Marks of deleted snapshots: those that a run makes, and those that end with it. By default it makes none and ends
/// none.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Marking {
    /// How long whole snapshots are kept, marked as deleted, instead of being removed; no time at all: they are
    /// removed. Checkpoints always are.
    pub keep: Duration,
    /// Remove those of the given snapshots that are marked, though their time is not over; otherwise they are passed
    /// over as gone.
    pub ends_given: bool,
    /// The moment at which marks are made, and by which they are over, by the wall clock of whoever runs it.
    pub now: Time,
    /// Series in which marks that are over end, beside those of the given snapshots.
    pub series: Vec<SeriesId>,
}

setters!(Marking {
    with_keep(keep: Duration),
    with_ends_given(ends_given: bool),
    with_now(now: Time),
    with_series(series: Vec<SeriesId>),
});

/// Summary of forgetting, done or planned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ForgetSummary {
    /// Snapshots removed at once.
    pub snapshots_removed: u64,
    /// Snapshots marked as deleted.
    pub snapshots_marked: u64,
    /// Snapshots that had been marked as deleted, and were removed.
    pub snapshots_ended: u64,
    /// Snapshots still marked as deleted, in the series concerned.
    pub held: Held,
    /// Snapshots written anew without what was excluded.
    pub snapshots_rewritten: u64,
    /// Snapshots asked for that could not be removed or written anew (their series failed); the error was reported as a
    /// problem.
    pub snapshots_failed: u64,
    /// Containers deleted outright.
    pub containers_deleted: u64,
    /// Containers replaced by smaller ones.
    pub containers_rewritten: u64,
    /// About how many bytes are held by chunks that only deltas need now, and that the next backup or `silt maintain`
    /// frees if that pays; 0 where it was found not to pay and they are hardly more.
    pub ghost_bytes: u64,
    /// Size of all objects of the repository before; at a distance, where listing them takes long, of the containers of
    /// the series concerned.
    pub bytes_before: u64,
    /// Size of the same after.
    pub bytes_after: u64,
    /// Usage that a dry run expects of the run, at a distance, on a repository that is open: never less than it is, but
    /// for renewals of the lease.
    pub usage: Usage,
}

impl ForgetSummary {
    /// Bytes that came (or will come) back.
    pub fn bytes_returned(&self) -> i64 {
        i64::try_from(self.bytes_before).unwrap_or(i64::MAX) - i64::try_from(self.bytes_after).unwrap_or(i64::MAX)
    }
}

/// Removes these snapshots, or marks them as deleted, and gives back the space that only removed ones needed. Snapshots
/// already gone are passed over. Marks that are over end, in the series of the given snapshots and those named beside.
///
/// # Errors
/// Errors of the repository as a whole; [`EngineError::RemovesAll`], or [`StoreError::NoRight`] where nothing may be
/// deleted, before anything is removed or marked. If one series of several fails, it is reported as a problem and
/// counted.
pub fn forget(
    repository: &Repository,
    snapshots: &[SnapshotKey],
    options: &ForgetOptions,
    resources: &Resources,
) -> Result<ForgetSummary, EngineError> {
    repository.require_reading("forgetting snapshots")?;
    if !options.dry_run {
        repository.require_deletes("forgetting snapshots")?;
        return forget_all(repository, snapshots, options, resources);
    }
    let look = |recorded: &Repository| forget_all(recorded, snapshots, options, resources);
    let (mut summary, reading) = measured(repository, look)?;
    summary.usage += reading;
    Ok(summary)
}

/// Forgets in each series, or looks what that would do.
fn forget_all(
    repository: &Repository,
    snapshots: &[SnapshotKey],
    options: &ForgetOptions,
    resources: &Resources,
) -> Result<ForgetSummary, EngineError> {
    let named = options.marking.series.iter().map(|series| (*series, BTreeSet::new()));
    let mut by_series: BTreeMap<SeriesId, BTreeSet<SnapshotId>> = named.collect();
    for (series, id) in snapshots {
        by_series.entry(*series).or_default().insert(*id);
    }
    let many = ManySeries::of(repository, resources.memory_bytes);
    let look = |(series, ids): (&SeriesId, _)| Concerned::look(repository, *series, ids, options);
    let items = many.each(by_series.iter().collect(), |_| many_series::SERIES_BYTES_MIN, look)?;
    let lists_all = repository.storage().capabilities().latency == Latency::Disk;
    let recorded_bytes = items.iter().map(|item| item.recorded_bytes).sum();
    let bytes_before = if lists_all { repository.bytes()? } else { recorded_bytes };
    // At a distance the bytes that marked snapshots hold take much reading, which is not worth it each time that a run
    // finds nothing to do.
    let states_always = lists_all || options.dry_run;
    let wants_state = states_always || items.iter().any(|item| item.has_work);
    let only_one = items.iter().filter(|item| item.has_work).count() <= 1;
    let beside = options.dry_run.then(|| Beside::over(repository, &resources.scratch_of(repository))).transpose()?;
    let work = |Concerned { series, ids, .. }: Concerned<'_>| {
        let mut summary = ForgetSummary::default();
        let done = match &beside {
            Some(beside) => dry_run_in_series(beside, series, ids, options, resources, &mut summary),
            None => forget_in_series(repository, series, ids, wants_state, options, resources, &mut summary),
        };
        match done {
            Ok(done) => Ok((summary, done)),
            Err(error) if only_one || matches!(error, EngineError::Interrupted) => Err(error),
            Err(error) => {
                // One at least, where only marks were to end.
                summary.snapshots_failed += (ids.len() as u64).max(1);
                let object = format!("series {series}");
                resources.observer.problem(&Problem::object(object, ProblemKind::NotRemoved, error));
                Ok((summary, Done::default()))
            }
        }
    };
    let mut summary = ForgetSummary { bytes_before, ..ForgetSummary::default() };
    let (mut bytes_returned, mut after, mut lenders) = (0i64, Vec::new(), BTreeSet::new());
    for turn in in_order(items, |item| (item.series, &item.lenders)) {
        for (of_series, done) in many.each(turn, |item| item.weight, work)? {
            summary.add(&of_series);
            bytes_returned += done.bytes_returned;
            after.extend(done.after);
            lenders.extend(done.given_back);
        }
    }
    for series in lenders.into_iter().filter(|series| !by_series.contains_key(series)) {
        // Another writer may have it, or this client no right to it: then the next run there does it.
        if let Ok((of_lender, returned)) = release(repository, beside.as_ref(), series, options, resources) {
            summary.add(&of_lender);
            bytes_returned += returned;
        }
    }
    // What is marked may share containers with what goes, and those made of them are looked at again.
    let wants_bytes = states_always || summary.changed_snapshots();
    summary.held = held_of(beside, repository, after, wants_bytes, options, resources);
    summary.bytes_after = if lists_all && !options.dry_run {
        repository.bytes()?
    } else {
        u64::try_from(i64::try_from(bytes_before).unwrap_or(i64::MAX) - bytes_returned).unwrap_or(0)
    };
    Ok(summary)
}

/// A series that snapshots are given of, before anything is done in it.
struct Concerned<'f> {
    series: SeriesId,
    ids: &'f BTreeSet<SnapshotId>,
    /// False if all of it stays as it is.
    has_work: bool,
    /// Those it borrows of; none if it stays as it is.
    lenders: BTreeSet<SeriesId>,
    /// Bytes of its containers.
    recorded_bytes: u64,
    /// Bytes of memory that work on it may take.
    weight: u64,
}

impl<'f> Concerned<'f> {
    /// Looks what there is to do.
    ///
    /// # Errors
    /// [`EngineError::RemovesAll`].
    fn look(
        repository: &Repository,
        series: SeriesId,
        ids: &'f BTreeSet<SnapshotId>,
        options: &ForgetOptions,
    ) -> Result<Self, EngineError> {
        // One that cannot be read is told when it is worked on.
        let Ok(Some(manifest)) = repository.manifest_listed(series) else {
            let weight = many_series::SERIES_BYTES_MIN;
            return Ok(Self { series, ids, has_work: true, lenders: BTreeSet::new(), recorded_bytes: 0, weight });
        };
        let choice = Choice::new(manifest.snapshots(), ids, options);
        choice.refuse_emptying(&manifest, options)?;
        let (recorded_bytes, weight) = (object_bytes(&manifest.containers), many_series::weight(&manifest));
        let has_work = !choice.is_empty();
        let lenders = if has_work { lenders_of(&manifest) } else { BTreeSet::new() };
        Ok(Self { series, ids, has_work, lenders, recorded_bytes, weight })
    }
}

/// Outcome of forgetting in a series.
#[derive(Default)]
struct Done {
    /// Bytes that come back; in a run those of its containers.
    bytes_returned: i64,
    /// The series, if there is more to come of it.
    after: Option<After>,
    /// Those that it has given loans back to.
    given_back: BTreeSet<SeriesId>,
}

/// Forgets in one series.
fn forget_in_series(
    repository: &Repository,
    series: SeriesId,
    ids: &BTreeSet<SnapshotId>,
    wants_state: bool,
    options: &ForgetOptions,
    resources: &Resources,
    summary: &mut ForgetSummary,
) -> Result<Done, EngineError> {
    let Some(manifest) = repository.manifest_listed(series)? else {
        return Ok(Done::default());
    };
    let is_empty = Choice::new(manifest.snapshots(), ids, options).is_empty();
    if is_empty && !is_over(repository, &manifest).unwrap_or(false) {
        return Ok(Done { after: After::lying(repository, &manifest, wants_state), ..Done::default() });
    }
    let mut writer = acquire_late(repository, &manifest.name, &purpose(options), resources)?;
    let (bytes_before, loans_before) = (container_bytes(&writer), loans_of(writer.manifest()));
    match execute(repository, &mut writer, ids, options, resources) {
        Ok(done) => {
            summary.add(&done);
            let given_back = &loans_before - &loans_of(writer.manifest());
            Ok(Done {
                bytes_returned: bytes_before - container_bytes(&writer),
                after: After::lying(repository, writer.manifest(), wants_state),
                given_back: lenders_in(&given_back).collect(),
            })
        }
        Err(error) => {
            // The first error is the one to tell; a lease left behind is taken over by the next run.
            let _ = writer.abandon(now());
            Err(error)
        }
    }
}

/// Lets go of what a series keeps for others who need it no more, and gives the bytes that come back. Nobody is waited
/// for.
fn release(
    repository: &Repository,
    beside: Option<&Beside>,
    series: SeriesId,
    options: &ForgetOptions,
    resources: &Resources,
) -> Result<(ForgetSummary, i64), EngineError> {
    let mut summary = ForgetSummary::default();
    let none = BTreeSet::new();
    if let Some(beside) = beside {
        let done = dry_run_in_series(beside, series, &none, options, resources, &mut summary)?;
        return Ok((summary, done.bytes_returned));
    }
    let Some(manifest) = repository.manifest_listed(series)? else { return Ok((summary, 0)) };
    if !is_over(repository, &manifest)? {
        return Ok((summary, 0));
    }
    let mut writer = try_acquire(repository, &manifest.name, &purpose(options), None)?;
    let bytes_before = container_bytes(&writer);
    match execute(repository, &mut writer, &none, options, resources) {
        Ok(done) => Ok((done, bytes_before - container_bytes(&writer))),
        Err(error) => {
            let _ = writer.abandon(now());
            Err(error)
        }
    }
}

fn purpose(options: &ForgetOptions) -> Purpose<'_> {
    Purpose { name: "forget", user: &options.user, take_over: options.take_over, reserve: ReserveUse::Spend }
}

fn container_bytes(writer: &SeriesWriter<'_>) -> i64 {
    i64::try_from(object_bytes(&writer.manifest().containers)).unwrap_or(i64::MAX)
}

impl ForgetSummary {
    /// Tells whether anything was done to a snapshot.
    fn changed_snapshots(&self) -> bool {
        self.snapshots_removed + self.snapshots_marked + self.snapshots_ended + self.snapshots_rewritten > 0
    }

    /// Adds what was done in a series.
    fn add(&mut self, other: &Self) {
        self.snapshots_removed += other.snapshots_removed;
        self.snapshots_marked += other.snapshots_marked;
        self.snapshots_ended += other.snapshots_ended;
        self.snapshots_rewritten += other.snapshots_rewritten;
        self.snapshots_failed += other.snapshots_failed;
        self.ghost_bytes += other.ghost_bytes;
        self.containers_deleted += other.containers_deleted;
        self.containers_rewritten += other.containers_rewritten;
        self.usage += other.usage;
    }

    fn of(choice: &Choice) -> Self {
        Self {
            snapshots_removed: choice.removed.len() as u64,
            snapshots_marked: choice.marked.len() as u64,
            snapshots_ended: choice.ended.len() as u64,
            ..Self::default()
        }
    }
}

/// Reports what would be done in a series, and gives the loans back that it would, for those that come after it.
fn dry_run_in_series(
    beside: &Beside,
    series: SeriesId,
    ids: &BTreeSet<SnapshotId>,
    options: &ForgetOptions,
    resources: &Resources,
    summary: &mut ForgetSummary,
) -> Result<Done, EngineError> {
    let repository = beside.repository();
    let Some(manifest) = repository.manifest_listed(series)? else {
        return Ok(Done::default());
    };
    let choice = Choice::new(manifest.snapshots(), ids, options);
    if choice.is_empty() && !is_over(repository, &manifest).unwrap_or(false) {
        return Ok(Done { after: After::lying(repository, &manifest, true), ..Done::default() });
    }
    let state = State::lying(repository, &manifest)?;
    let outcome = state.after(repository, &choice, options, Some(beside), resources)?;
    summary.add(&ForgetSummary {
        ghost_bytes: outcome.ghost_bytes,
        containers_deleted: outcome.containers_deleted,
        containers_rewritten: outcome.containers_rewritten,
        snapshots_rewritten: outcome.snapshots_rewritten,
        usage: if is_counted(repository) { outcome.usage } else { Usage::default() },
        ..ForgetSummary::of(&choice)
    });
    beside.give_back(&outcome.loans);
    Ok(Done {
        bytes_returned: outcome.bytes_returned,
        after: After::of(outcome.next),
        given_back: lenders_in(&outcome.loans).collect(),
    })
}

fn execute(
    repository: &Repository,
    writer: &mut SeriesWriter<'_>,
    ids: &BTreeSet<SnapshotId>,
    options: &ForgetOptions,
    resources: &Resources,
) -> Result<ForgetSummary, EngineError> {
    // Another may have removed some since, or brought some back.
    let choice = Choice::new(writer.manifest().snapshots(), ids, options);
    choice.refuse_emptying(writer.manifest(), options)?;
    if !choice.rewritten.is_empty() {
        writer.take_lease()?;
    }
    let (manifest, sink): (_, &dyn ContainerSink) = (writer.manifest(), writer);
    let claimed = || claimed_chunks(repository, manifest.series);
    let Removal { left: plan, new, rewritten } =
        plan(repository, manifest, &choice, options, claimed, sink, resources)?;
    verify_written(VerifyWritten::default(), repository, manifest.series, &new)?;
    let rewrites = !plan.to_rewrite.is_empty();
    // An estimate, which must not keep anything from being forgotten.
    let ghost_bytes = ghost_bytes(repository, &plan.next).unwrap_or(0);
    writer.commit_and_delete(plan.next, &plan.dead, rewrites, now())?;
    let containers_deleted = deleted(&plan.dead, writer.manifest()).len() as u64;
    let done = ForgetSummary { containers_deleted, ghost_bytes, ..ForgetSummary::of(&choice) };
    let mut done = ForgetSummary { snapshots_rewritten: rewritten, ..done };
    if rewrites {
        // The commit keeps what others turn out to have borrowed: more may be alive than was planned.
        let Left { to_rewrite, live, .. } = left(writer.manifest().clone(), options.rewrite_threshold);
        match rewrite_and_commit(repository, writer, to_rewrite, &live, options, resources) {
            Ok(rewritten) => done.containers_rewritten = rewritten,
            Err(EngineError::Store(error)) if error.is_full() => {
                // The snapshots are gone and whole dead containers have been given back; this part waits for the next
                // forget.
                resources.observer.notice(&Notice::RewriteDeferred);
                let unchanged = writer.manifest().clone();
                writer.commit(unchanged, false, now())?;
                writer.sweep()?;
            }
            Err(error) => return Err(error),
        }
    }
    repository.storage().barrier().map_err(StoreError::from)?;
    writer.restore_reserve()?;
    Ok(done)
}

/// Rewrites partly dead containers, reads back what was written, and only then commits and deletes the old ones.
fn rewrite_and_commit(
    repository: &Repository,
    writer: &mut SeriesWriter<'_>,
    to_rewrite: Vec<ContainerRecord>,
    live: &RoaringTreemap,
    options: &ForgetOptions,
    resources: &Resources,
) -> Result<u64, EngineError> {
    let (manifest, sink): (_, &dyn ContainerSink) = (writer.manifest(), writer);
    let Rewritten { old, new, is_whole } =
        rewrite_intact(repository, manifest, to_rewrite, live, options.rewriting(), sink, resources)?;
    verify_written(VerifyWritten::default(), repository, manifest.series, &new)?;
    let mut next = writer.manifest().clone();
    replace(&mut next, &old, new);
    writer.commit_and_delete(next, &old, false, now())?;
    if !is_whole {
        writer.sweep()?;
    }
    Ok(old.len() as u64)
}
