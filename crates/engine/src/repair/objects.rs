//! Records, key slots and manifests that lie in one place only: written anew from the other. One before the newest that
//! is lost in both places is put aside, for nothing hangs on it; a key slot lost in both is told, for nothing brings it
//! back.

use crate::EngineError;
use siltstone_store::repository::Repository;
use siltstone_store::salvage::{remove_replaced, set_aside};
use siltstone_store::storage::{ObjectName, Original, Replaced};
use siltstone_store::twins::{self, Twins};
use siltstone_store::{SeriesId, StoreError};

/// Plan for an object that is kept twice.
#[derive(Debug)]
pub struct ObjectPlan {
    /// The object.
    pub name: ObjectName,
    /// Faults, each with the place.
    pub faults: Vec<String>,
    /// Repair of it.
    pub repair: ObjectRepair,
    twins: Twins,
}

/// Repair of an object of which a place is damaged or missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectRepair {
    /// It is written anew from this place.
    From(ObjectName),
    /// Nothing needs it any more: it is put aside.
    PutAside,
    /// Nothing brings it back.
    Nothing,
}

impl From<Twins> for ObjectPlan {
    fn from(twins: Twins) -> Self {
        let sound = |place: &ObjectName| twins.faults.iter().all(|(damaged, _)| damaged != place);
        let repair = match twins.original.places().into_iter().find(sound) {
            Some(place) => ObjectRepair::From(place),
            None if twins.is_newest => ObjectRepair::Nothing,
            None => ObjectRepair::PutAside,
        };
        let faults = twins.faults.iter().map(|(_, error)| error.to_string()).collect();
        Self { name: twins.original.name(), faults, repair, twins }
    }
}

/// Plans the repair of objects that belong to no series.
pub(super) fn of_repository(repository: &Repository) -> Result<Vec<ObjectPlan>, EngineError> {
    Ok(twins::of_repository(repository)?.into_iter().map(ObjectPlan::from).collect())
}

/// Plans the repair of the manifests of a series that can be read.
pub(super) fn of_series(repository: &Repository, series: SeriesId) -> Result<Vec<ObjectPlan>, EngineError> {
    Ok(twins::of_series(repository, series)?.into_iter().map(ObjectPlan::from).collect())
}

/// Does what the plan says; `false` if there was nothing to do.
pub(super) fn execute(repository: &Repository, plan: &ObjectPlan) -> Result<bool, EngineError> {
    match plan.repair {
        ObjectRepair::From(_) => Ok(twins::mend(repository, &plan.twins)?),
        ObjectRepair::PutAside => put_aside(repository, plan.twins.original),
        ObjectRepair::Nothing => Ok(false),
    }
}

fn put_aside(repository: &Repository, original: Original) -> Result<bool, EngineError> {
    let (storage, what) = (repository.storage(), Replaced::from(original));
    set_aside(storage, what)?;
    remove_replaced(storage, what)?;
    storage.barrier().map_err(StoreError::from)?;
    Ok(true)
}
