//! Ending leases that interrupted writers left. Backup and forget take over from a dead holder by themselves; this
//! serves the user who wants a clean repository now, and the holder of whose death nothing can be known.

use crate::lease::{Purpose, is_running_here, now, try_acquire, watched};
use crate::setters::setters;
use crate::watch::outlast;
use crate::{EngineError, Resources};
use siltstone_store::StoreError;
use siltstone_store::manifest::Lease;
use siltstone_store::repository::Repository;
use siltstone_store::series::{ReserveUse, Watch};

/// Options of unlocking.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct UnlockOptions {
    /// Only the series of this name.
    pub series: Option<String>,
    /// Also leases whose holder may be alive; it is fenced off and its run is lost.
    pub take_over: bool,
    /// Who does it, recorded in the lease that ends the other.
    pub user: String,
}

setters!(UnlockOptions {
    with_series(series: Option<String>),
    with_take_over(take_over: bool),
    with_user(user: String),
});

/// Leases that were ended, and those that stay.
#[derive(Debug, Default)]
pub struct UnlockSummary {
    /// Leases that were ended.
    pub ended: u64,
    /// Leases that stay.
    pub held: Vec<HeldLease>,
    /// Damage of the series that cannot be read.
    pub damage: Vec<StoreError>,
}

/// A lease that stays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeldLease {
    /// The series' name.
    pub series: String,
    /// The lease.
    pub lease: Lease,
    /// State of its holder, as far as it is known.
    pub life: Life,
}

/// State of the holder of a lease, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Life {
    /// It runs on this machine.
    RunsHere,
    /// It showed life while it was watched: it renewed its lease, or went on.
    Renews,
    /// It cannot be seen from here, and does not renew its lease.
    Unknown,
}

/// Ends leases, and removes what their holders left unfinished. Leases of the living stay. Those of which nothing can
/// be seen are watched first, all at once.
///
/// # Errors
/// Those of the repository; the damage of the first series if none asked for can be read; or because the user asked to
/// stop.
pub fn unlock(
    repository: &Repository,
    options: &UnlockOptions,
    resources: &Resources,
) -> Result<UnlockSummary, EngineError> {
    let asked = options.series.as_ref().map(|name| repository.keys().series_id(name));
    let series = repository.series()?.into_iter().filter(|series| asked.is_none_or(|asked| asked == *series));
    let (mut summary, mut found) = (UnlockSummary::default(), Vec::new());
    summary.damage = repository.visit_manifests(series, |manifest| {
        let Some(lease) = manifest.lease.clone() else { return Ok(()) };
        if end_lease(repository, &manifest.name, options, None)? {
            summary.ended += 1;
        } else {
            let watch = watched(repository, &manifest)?;
            let life = if is_running_here(&lease.holder) { Life::RunsHere } else { Life::Unknown };
            found.push((HeldLease { series: manifest.name, lease, life }, watch));
        }
        Ok::<_, EngineError>(())
    })?;
    let silent = outlast(repository, found.iter().filter_map(|(_, watch)| watch.clone()).collect(), resources)?;
    for (held, watch) in found {
        let outlasted = watch.as_ref().filter(|watch| silent.contains(watch)).map(Watch::sequence);
        if outlasted.is_some() && end_lease(repository, &held.series, options, outlasted)? {
            summary.ended += 1;
        } else {
            let life = if watch.is_some() { Life::Renews } else { held.life };
            summary.held.push(HeldLease { life, ..held });
        }
    }
    Ok(summary)
}

/// Ends the lease, and tells whether it did; a holder that may live keeps it.
fn end_lease(
    repository: &Repository,
    series_name: &str,
    options: &UnlockOptions,
    outlasted: Option<u64>,
) -> Result<bool, EngineError> {
    let (user, take_over) = (options.user.as_str(), options.take_over);
    let purpose = Purpose { name: "unlock", user, take_over, reserve: ReserveUse::Spend };
    match try_acquire(repository, series_name, &purpose, outlasted) {
        Ok(writer) => {
            writer.abandon(now())?;
            Ok(true)
        }
        Err(StoreError::LeaseHeld { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
