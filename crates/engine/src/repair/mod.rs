//! Repairing a repository: [`plan`] looks and decides, [`execute`] does what a plan says, and nothing else.
//!
//! ```text
//! one of an object's two copies damaged -> it is written anew from the other
//! newest manifest unreadable or lost    -> the newest one that can be read, and snapshots that it does not name and
//!                                          containers hold; where none can be read, all that containers hold
//! newest commit lost without a trace    -> likewise, where this machine saw it and containers hold snapshots of it
//! a container that its parity heals     -> it is written anew under a new name; parity that is missing is made
//! what was borrowed                    -> comes back from loans, which have the numbers of both ends
//! a loan that is missing or unreadable -> another one is made of what is borrowed
//! any other unreadable or lost          -> its chunks are noted in the manifest: the next backup stores them again
//! ```
//! What a snapshot lost is named, and the snapshot stays unless it is to be dropped. What is replaced is kept aside.
//! Reading containers without a manifest reads each of them whole, and holds some 60 bytes for each chunk in memory.

mod choose;
mod damage;
mod gather;
mod heal;
mod loans;
mod look;
mod objects;
mod rebuild;

use crate::lease::{Purpose, acquire, is_running_here, now};
use crate::maintain::dead::take_out;
use crate::maintain::lent::keep_lent;
use crate::protect::protect_these;
use crate::setters::setters;
use crate::{EngineError, Resources};
pub use objects::{ObjectPlan, ObjectRepair};
use roaring::RoaringTreemap;
use siltstone_store::manifest::{Manifest, Snapshot};
use siltstone_store::repository::Repository;
use siltstone_store::salvage::{commit_beyond, remove_replaced, set_aside};
use siltstone_store::series::{ReserveUse, SeriesWriter, refuse_lost_history};
use siltstone_store::storage::{Listing, ObjectName, Replaced};
use siltstone_store::{ContainerId, LoanId, SeriesId, SnapshotId, StoreError};
use std::collections::{BTreeMap, BTreeSet};

/// Options of a repair.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RepairOptions {
    /// Only the series of this name.
    pub series: Option<String>,
    /// Read all data: so damage is found that shows in no index.
    pub read_data: bool,
    /// Drop snapshots that cannot be restored whole.
    pub drop_damaged: bool,
    /// Repair also what another writer may be at work on; it is fenced off and its run is lost.
    pub take_over: bool,
    /// Who does it, recorded in the lease.
    pub user: String,
    /// The newest commits that this machine saw of each series: where fewer are there, containers are searched for the
    /// snapshots of those that are lost.
    pub seen: BTreeMap<SeriesId, u64>,
}

setters!(RepairOptions {
    with_series(series: Option<String>),
    with_read_data(read_data: bool),
    with_drop_damaged(drop_damaged: bool),
    with_take_over(take_over: bool),
    with_user(user: String),
    with_seen(seen: BTreeMap<SeriesId, u64>),
});

/// Plan of a repair.
#[derive(Debug, Default)]
pub struct RepairPlan {
    /// Objects kept twice of which a place is damaged or missing.
    pub objects: Vec<ObjectPlan>,
    /// The series in which something is wrong.
    pub series: Vec<SeriesPlan>,
}

impl RepairPlan {
    /// Tells whether there is anything to be done.
    pub fn has_steps(&self) -> bool {
        self.objects.iter().any(|object| object.repair != ObjectRepair::Nothing)
            || self.series.iter().any(|series| !matches!(series.step, Step::Nothing))
    }

    /// Tells whether something stays lost when all is done.
    pub fn has_losses(&self) -> bool {
        self.objects.iter().any(|object| object.repair == ObjectRepair::Nothing)
            || self.series.iter().any(|series| !series.damaged.is_empty() || series.is_beyond_repair)
    }
}

/// Plan of the repair of one series.
#[derive(Debug)]
pub struct SeriesPlan {
    /// The series.
    pub series: SeriesId,
    /// Its name, if that is known.
    pub name: Option<String>,
    /// Faults, each with the object it concerns.
    pub faults: Vec<String>,
    /// Source of its snapshots.
    pub basis: Basis,
    /// Snapshots it will have.
    pub snapshots: u64,
    /// Those of them that no readable manifest names: found in containers. One that was forgotten a short time ago may
    /// be among them.
    pub found: Vec<Snapshot>,
    /// Snapshots that cannot be restored whole.
    pub damaged: Vec<DamagedSnapshot>,
    /// True if those are dropped.
    pub drops_damaged: bool,
    /// Objects that are kept aside, and then removed from their place.
    pub aside: Vec<ObjectName>,
    /// Containers that get parity.
    pub protected: u64,
    /// True if nothing can be made of what is there.
    pub is_beyond_repair: bool,
    step: Step,
}

/// Source of the snapshots of a repaired series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Basis {
    /// The newest manifest, which can be read.
    Newest,
    /// An older manifest, of this number, and containers that it does not name.
    Older(u64),
    /// Containers alone.
    Containers,
}

/// A snapshot that cannot be restored whole.
#[derive(Clone, Debug)]
pub struct DamagedSnapshot {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// Chunks of it that cannot be read.
    pub chunks_lost: u64,
    /// True if parts of its catalog are among them: then files are missing that nobody can name.
    pub catalog_is_damaged: bool,
    /// Files with such chunks, at most [`FILES_NAMED_MAX`], as paths in the snapshot.
    pub files: Vec<Vec<u8>>,
    /// How many there are.
    pub files_damaged: u64,
}

/// Damaged files of a snapshot that are named one by one.
pub const FILES_NAMED_MAX: usize = 1000;

/// Step of the repair of a series.
#[derive(Debug)]
enum Step {
    /// Nothing more can be done.
    Nothing,
    /// Objects that mean nothing any more go.
    Clear { unreadable: Vec<Replaced> },
    /// A manifest beyond all that were ever seen takes the place of those that cannot be read.
    Commit { manifest: Box<Manifest>, last: u64, unreadable: Vec<Replaced> },
    /// Mends a manifest that can be kept.
    Mend(Mending),
}

/// Repair of a series whose manifest can be read.
#[derive(Debug, Default)]
struct Mending {
    series_name: String,
    /// Chunks that the manifest is to say are lost.
    lost: RoaringTreemap,
    /// Snapshots to be dropped.
    dropped: BTreeSet<SnapshotId>,
    /// Containers that parity heals, to be written anew.
    healed: Vec<ContainerId>,
    /// Containers whose parity is missing or damaged, to be made.
    unprotected: Vec<ContainerId>,
    /// Lenders of which loans are to be made anew.
    renewed: BTreeSet<SeriesId>,
    /// Loans that nothing needs.
    unknown: Vec<(SeriesId, LoanId)>,
}

/// Summary of a repair.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RepairSummary {
    /// The series with a manifest that does not continue what was there.
    pub rebuilt: Vec<SeriesId>,
    /// Objects kept twice that have two sound places again.
    pub objects_mended: u64,
    /// Containers that parity healed, written anew.
    pub containers_healed: u64,
    /// Containers that have parity again.
    pub containers_protected: u64,
    /// Series repaired, as far as that goes.
    pub series_repaired: u64,
    /// Series that could not be repaired; the error was told.
    pub series_failed: u64,
    /// Snapshots that no readable manifest named, and that are back.
    pub snapshots_found: u64,
    /// Snapshots that cannot be restored whole, and stay.
    pub snapshots_damaged: u64,
    /// Those that were dropped.
    pub snapshots_dropped: u64,
    /// Objects that were put aside.
    pub objects_aside: u64,
}

/// Looks for what is wrong, and decides what to do about it. Data is read only if that is asked for.
///
/// # Errors
/// Anything that keeps the repository from being looked at; the user interrupted it.
pub fn plan(
    repository: &Repository,
    options: &RepairOptions,
    resources: &Resources,
) -> Result<RepairPlan, EngineError> {
    repository.require_reading("repairing a repository")?;
    let asked = options.series.as_ref().map(|name| repository.keys().series_id(name));
    let mut plan = RepairPlan::default();
    if asked.is_none() {
        plan.objects = objects::of_repository(repository)?;
    }
    let all_loans = loans::all(repository)?;
    for series in series_there(repository)? {
        resources.unless_cancelled()?;
        if asked.is_none_or(|asked| asked == series) {
            plan.objects.extend(objects::of_series(repository, series)?);
            plan.series.extend(plan_series(repository, series, &all_loans, options, resources)?);
        }
    }
    Ok(plan)
}

/// The series that have a manifest or a container, or are listed.
fn series_there(repository: &Repository) -> Result<BTreeSet<SeriesId>, EngineError> {
    let listed = repository.storage().list(Listing::All).map_err(StoreError::from)?;
    let containers = listed.iter().filter_map(|meta| match meta.name {
        ObjectName::Container(_, series, _) => Some(series),
        _ => None,
    });
    Ok(containers.chain(repository.series()?).collect())
}

fn plan_series(
    repository: &Repository,
    series: SeriesId,
    all_loans: &[(SeriesId, LoanId)],
    options: &RepairOptions,
    resources: &Resources,
) -> Result<Option<SeriesPlan>, EngineError> {
    let containers = repository.storage().list_containers(series).map_err(StoreError::from)?;
    let fault = match repository.manifest(series) {
        Ok(Some(manifest)) => match refuse_lost_history(&containers, manifest.sequence) {
            Ok(()) => {
                return match plan_lost_commits(repository, &manifest, options, resources)? {
                    None => damage::plan(repository, &manifest, &containers, all_loans, options, resources),
                    found => Ok(found),
                };
            }
            Err(error) => error,
        },
        Ok(None) => match refuse_lost_history(&containers, 0) {
            Ok(()) => return Ok(None),
            Err(error) => error,
        },
        // What a newer program wrote is no damage, and must not be replaced.
        Err(error) if error.is_damage() && !error.is_of_newer_format() => error,
        Err(error) => return Err(error.into()),
    };
    rebuild::plan(repository, series, &fault, options, resources).map(Some)
}

/// A plan for a series of which this machine saw a newer commit, if the containers still hold snapshots of such.
/// Without any, an older copy of the repository was brought back, or what was lost made no snapshot: nothing helps.
fn plan_lost_commits(
    repository: &Repository,
    manifest: &Manifest,
    options: &RepairOptions,
    resources: &Resources,
) -> Result<Option<SeriesPlan>, EngineError> {
    let Some(seen) = options.seen.get(&manifest.series).copied().filter(|seen| *seen > manifest.sequence) else {
        return Ok(None);
    };
    let fault = StoreError::LostCommits { series: manifest.name.clone(), found: manifest.sequence, seen };
    let plan = rebuild::plan(repository, manifest.series, &fault, options, resources)?;
    Ok(Some(plan).filter(|plan| !plan.found.is_empty()))
}

/// Does what the plan says. An object or a series that cannot be repaired is told, and the others are.
///
/// # Errors
/// [`StoreError::LeaseHeld`] if another writer is at work on the only series of the plan; [`StoreError::NoRight`] where
/// nothing may be deleted; what concerns the repository as a whole.
pub fn execute(
    repository: &Repository,
    plan: RepairPlan,
    options: &RepairOptions,
    resources: &Resources,
) -> Result<(RepairSummary, Vec<EngineError>), EngineError> {
    repository.require_deletes("repairing a repository")?;
    let (mut summary, mut errors) = (RepairSummary::default(), Vec::new());
    for object in &plan.objects {
        match objects::execute(repository, object) {
            Ok(is_done) => summary.objects_mended += u64::from(is_done),
            Err(error) => errors.push(error),
        }
    }
    for series in plan.series {
        resources.unless_cancelled()?;
        match execute_series(repository, series, options, resources) {
            Ok(done) => summary.add(done),
            Err(error) => {
                summary.series_failed += 1;
                errors.push(error);
            }
        }
    }
    if summary.series_repaired == 0 && summary.objects_mended == 0 && !errors.is_empty() {
        return Err(errors.swap_remove(0));
    }
    Ok((summary, errors))
}

fn execute_series(
    repository: &Repository,
    plan: SeriesPlan,
    options: &RepairOptions,
    resources: &Resources,
) -> Result<RepairSummary, EngineError> {
    let damaged = plan.damaged.len() as u64;
    let mut done = RepairSummary {
        series_repaired: u64::from(!matches!(plan.step, Step::Nothing)),
        snapshots_found: plan.found.len() as u64,
        objects_aside: plan.aside.len() as u64,
        snapshots_dropped: if plan.drops_damaged { damaged } else { 0 },
        snapshots_damaged: if plan.drops_damaged { 0 } else { damaged },
        ..RepairSummary::default()
    };
    match plan.step {
        Step::Nothing => {}
        Step::Clear { unreadable } => {
            keep_aside(repository, &unreadable)?;
            remove(repository, &unreadable)?;
            done.rebuilt.push(plan.series);
        }
        Step::Commit { manifest, last, unreadable } => {
            commit(repository, *manifest, last, &unreadable)?;
            done.rebuilt.push(plan.series);
            // Containers are healed once a manifest names them.
            if let Some(SeriesPlan { step: Step::Mend(mending), .. }) =
                plan_series(repository, plan.series, &[], options, resources)?
            {
                mend(repository, &mending, options, resources, &mut done)?;
            }
        }
        Step::Mend(mending) => mend(repository, &mending, options, resources, &mut done)?,
    }
    Ok(done)
}

impl RepairSummary {
    fn add(&mut self, other: Self) {
        self.rebuilt.extend(other.rebuilt);
        self.containers_healed += other.containers_healed;
        self.containers_protected += other.containers_protected;
        self.series_repaired += other.series_repaired;
        self.snapshots_found += other.snapshots_found;
        self.snapshots_damaged += other.snapshots_damaged;
        self.snapshots_dropped += other.snapshots_dropped;
        self.objects_aside += other.objects_aside;
    }
}

/// Commits a manifest beyond all that were ever seen; what cannot be read goes aside.
fn commit(repository: &Repository, manifest: Manifest, last: u64, unreadable: &[Replaced]) -> Result<(), EngineError> {
    keep_aside(repository, unreadable)?;
    let stored = commit_beyond(repository, manifest, last, now())?;
    // Once more, so that the newest has a predecessor that can be read when the unreadable ones go.
    let sequence = stored.manifest.sequence;
    commit_beyond(repository, stored.manifest, sequence, now())?;
    remove(repository, unreadable)
}

/// Mends what the manifest of a series can be kept for, under its lease.
fn mend(
    repository: &Repository,
    mending: &Mending,
    options: &RepairOptions,
    resources: &Resources,
    done: &mut RepairSummary,
) -> Result<(), EngineError> {
    let purpose =
        Purpose { name: "repair", user: &options.user, take_over: options.take_over, reserve: ReserveUse::Spend };
    let mut writer = acquire(repository, &mending.series_name, &purpose, resources)?;
    if let Err(error) = mend_leased(repository, &mut writer, mending, resources, done) {
        let _ = writer.abandon(now());
        return Err(error);
    }
    writer.restore_reserve()?;
    Ok(())
}

fn mend_leased(
    repository: &Repository,
    writer: &mut SeriesWriter<'_>,
    mending: &Mending,
    resources: &Resources,
    done: &mut RepairSummary,
) -> Result<(), EngineError> {
    let mut next = writer.manifest().clone();
    let old = heal::rewrite(repository, writer, &mending.healed, &mut next, resources)?;
    if !mending.dropped.is_empty() {
        take_out(&mut next, &mending.dropped);
        keep_lent(repository, writer.manifest(), &mut next)?;
    }
    next.damaged |= &mending.lost;
    next.damaged &= next.live();
    loans::renew(repository, writer, &mut next, &mending.renewed)?;
    writer.commit(next, true, now())?;
    for (lender, id) in &mending.unknown {
        writer.give_back(*lender, &[*id])?;
    }
    writer.delete(&old)?;
    done.containers_healed += old.len() as u64;
    done.containers_protected += protect_these(repository, writer, &mending.unprotected, resources)?;
    let mended = writer.manifest().clone();
    Ok(writer.commit(mended, false, now())?)
}

fn keep_aside(repository: &Repository, objects: &[Replaced]) -> Result<(), EngineError> {
    Ok(objects.iter().try_for_each(|what| set_aside(repository.storage(), *what))?)
}

fn remove(repository: &Repository, objects: &[Replaced]) -> Result<(), EngineError> {
    let storage = repository.storage();
    objects.iter().try_for_each(|what| remove_replaced(storage, *what))?;
    Ok(storage.barrier().map_err(StoreError::from)?)
}

/// The error of a repair that finds a writer at work: the holder of the lease in the newest manifest that can be read,
/// if it runs on this machine. Of a holder elsewhere nothing can be told, and a series that cannot be read can have no
/// other; it would be fenced off.
fn refuse_at_work(manifest: &Manifest, options: &RepairOptions) -> Result<(), EngineError> {
    match &manifest.lease {
        Some(lease) if !options.take_over && is_running_here(&lease.holder) => Err(StoreError::LeaseHeld {
            series: manifest.name.clone(),
            holder: lease.holder.to_string(),
            since: lease.since.to_string(),
        }
        .into()),
        _ => Ok(()),
    }
}
