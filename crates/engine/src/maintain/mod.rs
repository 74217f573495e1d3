//! Maintenance: chunks that a backup left behind are encoded against what took their place, and laid where their
//! lifecycle ends; what forgetting left is compacted.
//!
//! ```text
//! forecast -> maintain
//! maintain -> orphans, marks, borrowed, lent, settle, shortcuts, recompress
//! settle   -> retired (places), split, ghosts (hulls), compact, merge
//! ghosts, shortcuts -> rebase
//! split, merge, rebase, rewrite, recompress -> repack (batch, segment, categories)
//! compact  -> dead, rewrite                 (`forget` starts with these two; `shortcuts` ends with it)
//! marks    -> dead, lent -> dead             (`forget` takes both)
//! layout   -> repack                        with what a chunk is laid
//! orphans                                   what clients left that may not delete; taking the lease removes it
//! borrowed                                  loans shrink, and what is borrowed becomes the series' own
//! options, commit, damage, pieces            serve all of them and know none
//! ```
//! Arrows are imports; none leads back.
//!
//! A chunk *dies* when the snapshot before the last needs it and the last does not: it is *retired*. Its lifecycle is
//! then final, but for what is forgotten later. Container by container of those that hold retired chunks:
//!
//! 1. Each retired chunk that resembles a new one becomes part of a region delta (policy
//!    [`Reverse`](crate::delta::Deltas::Reverse)), in a container of its category; here it is superseded.
//! 2. A container of which more than the threshold is superseded, or dead beside what lives on, is split: survivors go
//!    on with survivors, dead chunks into their category. Below the threshold it stays as it is, and counts in the
//!    newer column. With threshold 0 no container ever mixes categories: the layout of MeGA (ATC 2022, section 4.3).
//!
//! A container whose chunks all live on, or all die, moves by name alone: where it belongs is known from the manifest's
//! bitmaps.
//!
//! 3. Where snapshots were taken out, hulls shrink (module `hulls`), ghosts are eliminated (module `ghosts`), and
//!    containers that are dead in part are compacted.
//! 4. Of small containers that have become many, one is made (module `merge`).
//! 5. Where there was nothing to do, old snapshots are made to hang on fewer others (module `shortcuts`).
//! 6. What lies in containers is encoded once more at a higher level (module `recompress`): as much as is asked for, or
//!    a share of what only old snapshots need where there was nothing to do.
//!
//! A container that cannot be read is passed over and reported (module `damage`): it stays as it is, the rest is
//! settled, and it is not tried again.
//!
//! New containers are durable and committed before the old ones go; a stop at any point leaves the last manifest true,
//! with the snapshot still among those to be settled. Work is done in pieces, each with a commit of its own, so that
//! little is done again, and little room is needed beside what is there.

mod borrowed;
mod commit;
mod compact;
mod damage;
pub(crate) mod dead;
mod forecast;
mod ghosts;
mod hulls;
mod layout;
pub(crate) mod lent;
mod marks;
mod merge;
mod options;
mod orphans;
mod pieces;
mod places;
mod rebase;
mod recompress;
pub(crate) mod repack;
mod retired;
pub(crate) mod rewrite;
mod settle;
mod shortcuts;
mod split;

pub use forecast::{MaintainForecast, forecast};
pub(crate) use ghosts::ghost_bytes;
pub(crate) use options::Maintenance;
pub use options::{MIGRATE_THRESHOLD_DEFAULT, MaintainOptions, MaintainSummary, PIECE_BYTES_DEFAULT, Recompression};
pub(crate) use settle::{settle, settle_in_manifest};

use crate::fs::{Problem, ProblemKind};
use crate::lease::{Purpose, acquire, now};
use crate::lending::{entry_of, mend_directory};
use crate::many_series::{self, ManySeries};
use crate::{Command, EngineError, Resources};
use marks::{end_marks, has_marks_over};
use orphans::Listed;
use recompress::{is_due, recompress};
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::series::{ReserveUse, SeriesWriter};
use siltstone_store::storage::Latency;
use siltstone_store::{SeriesId, StoreError};
use std::fmt::Display;

/// A series in which there is something to do.
struct Due {
    series: SeriesId,
    /// Memory it takes.
    weight: u64,
    name: String,
    /// Objects there that no manifest needs.
    orphans: MaintainSummary,
}

/// Settles all series that have something to settle, and removes what no manifest needs, and snapshots that were marked
/// as deleted until now: what `silt maintain` does.
///
/// # Errors
/// Fails with what stops it as a whole, or with the damage of the first series if none can be read; if one series of
/// several fails,
/// that is reported as a problem. Where another writer has a series, the error says so after the others are done.
pub fn maintain(
    repository: &Repository,
    options: &MaintainOptions,
    resources: &Resources,
) -> Result<MaintainSummary, EngineError> {
    repository.require_reading("maintaining a repository")?;
    repository.require_deletes("maintaining a repository")?;
    let work = Maintenance { repository, options, resources };
    let not_moved = |series: &dyn Display, reason: &dyn Display| {
        resources.observer.problem(&Problem::object(format!("series {series}"), ProblemKind::NotMoved, reason));
    };
    let listed = Listed::of(repository)?;
    let mut loans = borrowed::Loans::new(repository);
    let (mut due, mut keeping, mut lending) = (Vec::new(), Vec::new(), Vec::new());
    let damage = repository.visit_manifests(repository.series()?, |manifest| {
        lending.extend(entry_of(&manifest));
        let mut is_due = !manifest.unsettled.is_empty() || manifest.ghosts_due || has_marks_over(&manifest, now());
        let orphans = listed.orphans(repository, &manifest);
        is_due |= orphans.orphans_deleted > 0 || borrowed::is_due(&mut loans, &manifest, options.owns)?;
        let (series, weight) = (manifest.series, many_series::weight(&manifest));
        if !is_due {
            is_due = match lent::is_over(repository, &manifest) {
                // All that is lent stays, and the other series are worked on.
                Err(error) if error.is_damage() => {
                    not_moved(&series, &error);
                    false
                }
                is_over => is_over?,
            };
        }
        if is_due {
            due.push(Due { series, weight, name: manifest.name.clone(), orphans });
        }
        if !manifest.lent.is_empty() {
            keeping.push(Due { series, weight, name: manifest.name, orphans: MaintainSummary::default() });
        }
        Ok::<_, EngineError>(())
    })?;
    // Who cannot be read now is in the directory still.
    if damage.is_empty() {
        mend_directory(repository, &lending)?;
    }
    let many = ManySeries::of(repository, resources.memory_bytes);
    let outcome = |series: SeriesId, result: Result<MaintainSummary, EngineError>| match result {
        Ok(done) => Ok((done, None)),
        Err(EngineError::Interrupted) => Err(EngineError::Interrupted),
        Err(EngineError::Store(error)) if error.is_lost_race() => Ok((MaintainSummary::default(), Some(error))),
        Err(error) => {
            not_moved(&series, &error);
            Ok((MaintainSummary::default(), None))
        }
    };
    let work_on = |Due { series, name, orphans, .. }: Due| {
        let settle = |writer: &mut SeriesWriter<'_>| {
            let mut done = end_marks_and_settle(work, writer)?;
            done.add(&orphans);
            Ok(done)
        };
        outcome(series, with_lease(work, &name, settle))
    };
    let mut done = many.each(due, |due| due.weight, work_on)?;
    // What was kept for others may be needed no more, now that they have given it back.
    keeping.retain(|due| {
        let manifest = repository.manifest_listed(due.series).ok().flatten();
        manifest.is_some_and(|manifest| lent::is_over(repository, &manifest).unwrap_or(false))
    });
    done.extend(many.each(keeping, |due| due.weight, work_on)?);
    if let Some(asked) = options.recompression {
        improve_what_rests(work, asked, &mut done, &outcome)?;
    }
    let (mut summary, mut lost) = (MaintainSummary::default(), None);
    for (done, error) in done {
        summary.add(&done);
        lost = error.or(lost);
    }
    for error in &damage {
        match error {
            StoreError::UnreadableSeries { series, source } => not_moved(series, source),
            other => not_moved(&"", other),
        }
    }
    lost.map_or(Ok(summary), |error| Err(error.into()))
}

/// The outcome for a series: figures of what was done, and the error if another writer had it.
type Outcome = (MaintainSummary, Option<StoreError>);

/// Recompresses as far as asked for. If only an idle run is to do so, it makes shortcuts first, and recompresses where
/// it made none; and does either only where `done` says that nothing else was done, and reading and writing cost
/// little. Adds the `outcome` for each series to `done`.
fn improve_what_rests(
    work: Maintenance<'_>,
    mut asked: Recompression,
    done: &mut Vec<Outcome>,
    outcome: &dyn Fn(SeriesId, Result<MaintainSummary, EngineError>) -> Result<Outcome, EngineError>,
) -> Result<(), EngineError> {
    let Maintenance { repository, options, resources } = work;
    let is_near = repository.storage().capabilities().latency == Latency::Disk;
    let is_idle = |done: &[Outcome]| {
        is_near && done.iter().all(|(done, lost)| *done == MaintainSummary::default() && lost.is_none())
    };
    // One series after another: the work keeps all workers busy by itself. What cannot be read was told.
    let in_turn = |done: &mut Vec<_>, deed: &mut dyn FnMut(&Manifest) -> Option<Result<_, EngineError>>| {
        for series in repository.series_known() {
            let manifest = repository.manifest_listed(series).ok().flatten();
            if let Some(result) = manifest.and_then(|manifest| deed(&manifest)) {
                done.push(outcome(series, result)?);
            }
        }
        Ok::<_, EngineError>(())
    };
    if asked.only_when_idle && is_idle(done) {
        let mut text_bytes = shortcuts::IDLE_TEXT_BYTES;
        in_turn(done, &mut |manifest| {
            let is_due = text_bytes > 0 && shortcuts::is_due(options, manifest);
            let make = |writer: &mut SeriesWriter<'_>| shortcuts::make(work, writer, &mut text_bytes);
            is_due.then(|| with_lease(work, &manifest.name, make))
        })?;
    }
    let has_memory = || resources.beside_containers(Command::Recompress, repository).is_ok();
    if !asked.only_when_idle || (is_idle(done) && has_memory()) {
        let resources = resources.for_recompression();
        let work = Maintenance { resources: &resources, ..work };
        in_turn(done, &mut |manifest| {
            let is_due = is_due(manifest, asked);
            let encode = |writer: &mut SeriesWriter<'_>| recompress(work, writer, &mut asked);
            is_due.then(|| with_lease(work, &manifest.name, encode))
        })?;
    }
    Ok(())
}

/// Does something to a series, and commits what it leaves.
fn with_lease(
    work: Maintenance<'_>,
    series_name: &str,
    deed: impl FnOnce(&mut SeriesWriter<'_>) -> Result<MaintainSummary, EngineError>,
) -> Result<MaintainSummary, EngineError> {
    let (user, take_over) = (work.options.user.as_str(), work.options.take_over);
    let purpose = Purpose { name: "maintain", user, take_over, reserve: ReserveUse::Keep };
    let mut writer = acquire(work.repository, series_name, &purpose, work.resources)?;
    match deed(&mut writer) {
        Ok(summary) => {
            let settled = writer.manifest().clone();
            writer.commit(settled, false, now())?;
            Ok(summary)
        }
        Err(error) => {
            let _ = writer.abandon(now());
            Err(error)
        }
    }
}

fn end_marks_and_settle(work: Maintenance<'_>, writer: &mut SeriesWriter<'_>) -> Result<MaintainSummary, EngineError> {
    let (ended, containers_deleted, bytes_deleted) = end_marks(work.repository, writer, now())?;
    let mut summary = MaintainSummary { ended, bytes_deleted, containers_deleted, ..MaintainSummary::default() };
    if work.options.owns {
        summary.add(&borrowed::take_over(work, writer)?);
    }
    borrowed::renew_loans(work.repository, writer)?;
    summary.add(&lent::release(work.repository, writer)?);
    summary.add(&settle(work, writer, None)?);
    Ok(summary)
}
