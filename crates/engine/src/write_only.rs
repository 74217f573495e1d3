//! Keys of clients that can add backups to one series and read none.

use crate::lease::{Purpose, acquire, now};
use crate::{EngineError, Resources};
use siltstone_store::KeyId;
use siltstone_store::keys::{Argon2Cost, KeyLabel};
use siltstone_store::repository::Repository;
use siltstone_store::series::ReserveUse;

/// Adds the key of a write-only client. The series is begun where there is none: such a client can open neither the
/// record, which is to list it, nor what another began.
///
/// # Errors
/// [`LeaseHeld`](siltstone_store::StoreError::LeaseHeld) if the series is yet to be listed and somebody writes to it;
/// those of [`Repository::add_write_only_key`].
pub fn add_write_only_key(
    repository: &Repository,
    series_name: &str,
    password: &[u8],
    (label, cost): (&KeyLabel, Argon2Cost),
    resources: &Resources,
) -> Result<KeyId, EngineError> {
    repository.require_reading("making a key")?;
    let series = repository.keys().series_id(series_name);
    if repository.manifest(series)?.is_none_or(|manifest| !manifest.listed) {
        let purpose = Purpose { name: "key", user: &label.user, take_over: false, reserve: ReserveUse::Keep };
        acquire(repository, series_name, &purpose, resources)?.abandon(now())?;
    }
    Ok(repository.add_write_only_key(series_name, password, label, cost)?)
}
