//! Ending leases that interrupted writers left. Backup and forget take over from a dead holder by themselves; this serves the holder
//! whose death cannot be seen from here, and the user who wants a clean repository now.

use crate::lease::{Purpose, acquire, now};
use crate::{EngineError, Silent};
use siltstone_store::StoreError;
use siltstone_store::repository::Repository;
use siltstone_store::series::ReserveUse;

/// How to unlock.
#[derive(Clone, Debug)]
pub struct UnlockOptions {
    /// Only the series of this name.
    pub series: Option<String>,
    /// Also leases whose holder may be alive; it is fenced off and its run is lost.
    pub take_over: bool,
    /// Who does it, recorded in the lease that ends the other.
    pub user: String,
}

/// Ends leases, and removes what their holders left unfinished; returns how many were ended, and what is wrong with the series that
/// cannot be read. Leases of the living stay.
///
/// # Errors
/// Those of the repository; the damage of the first series if none asked for can be read.
pub fn unlock(repository: &Repository, options: &UnlockOptions) -> Result<(u64, Vec<StoreError>), EngineError> {
    let asked = options.series.as_ref().map(|name| repository.keys().series_id(name));
    let series = repository.series()?.into_iter().filter(|series| asked.is_none_or(|asked| asked == *series));
    let mut ended = 0;
    let damage = repository.visit_manifests(series, |manifest| {
        if manifest.lease.is_some() && end_lease(repository, &manifest.name, options)? {
            ended += 1;
        }
        Ok::<_, EngineError>(())
    })?;
    Ok((ended, damage))
}

/// Whether the lease was ended; a holder that may live keeps it.
fn end_lease(repository: &Repository, series_name: &str, options: &UnlockOptions) -> Result<bool, EngineError> {
    let (user, take_over) = (options.user.as_str(), options.take_over);
    let purpose = Purpose { name: "unlock", user, take_over, reserve: ReserveUse::Spend };
    match acquire(repository, series_name, &purpose, &Silent) {
        Ok(writer) => {
            writer.abandon(now())?;
            Ok(true)
        }
        Err(StoreError::LeaseHeld { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
