//! Bringing snapshots back that were marked as deleted: their marks are taken off, in one commit for each series.
//!
//! A marked snapshot lies in its series as any other (`forget`).

use crate::amend::{Amendment, amend};
use crate::setters::setters;
use crate::snapshots::SnapshotKey;
use crate::{EngineError, Resources};
use siltstone_store::SnapshotId;
use siltstone_store::manifest::{Manifest, Snapshot};
use siltstone_store::repository::Repository;

/// Options of bringing snapshots back.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct UndeleteOptions {
    /// Take over a lease whose holder cannot be seen from here.
    pub take_over: bool,
    /// Who does it, recorded in the lease.
    pub user: String,
}

setters!(UndeleteOptions {
    with_take_over(take_over: bool),
    with_user(user: String),
});

/// Takes the marks off these snapshots; those that have none are live already. Gives how many had one.
///
/// # Errors
/// [`EngineError::DeletedForGood`] before any is brought back, if one is gone; those of the repository, with the series
/// before done.
pub fn undelete(
    repository: &Repository,
    snapshots: &[SnapshotKey],
    options: &UndeleteOptions,
    resources: &Resources,
) -> Result<u64, EngineError> {
    repository.require_reading("bringing snapshots back")?;
    let gone = |id: &SnapshotId, manifest: &Manifest| EngineError::DeletedForGood {
        snapshot: id.short(),
        series: manifest.name.clone(),
    };
    let apply = |snapshot: &mut Snapshot| snapshot.deleted.take().is_some();
    let (user, take_over) = (options.user.as_str(), options.take_over);
    let amendment = Amendment { name: "undelete", user, take_over, gone, apply: &apply };
    amend(repository, snapshots, &amendment, resources)
}
