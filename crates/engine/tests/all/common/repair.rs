//! Repairs of a repository on a simulated disk.

use super::{PASSWORD, resources};
use siltstone_engine::EngineError;
use siltstone_engine::repair::{self, RepairOptions, RepairSummary};
use siltstone_store::SeriesId;
use siltstone_store::repository::Repository;
use siltstone_store::storage::SimulatedDisk;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Opens the repository on a disk.
pub fn open(disk: &SimulatedDisk) -> Repository {
    Repository::open(Arc::new(disk.clone()), PASSWORD).expect("the repository opens")
}

/// The series of the backups that [`super::Sandbox::options`] makes.
pub fn series_of(disk: &SimulatedDisk) -> SeriesId {
    open(disk).keys().series_id("test")
}

/// Options of a repair that takes leases over and reads no data.
pub fn repair_options() -> RepairOptions {
    RepairOptions::default()
        .with_series(None)
        .with_read_data(false)
        .with_drop_damaged(false)
        .with_take_over(true)
        .with_user("user".into())
        .with_seen(BTreeMap::new())
}

/// Repairs what is wrong, all of which can be repaired.
pub fn try_repair(disk: &SimulatedDisk, options: &RepairOptions) -> Result<RepairSummary, EngineError> {
    let repository = Repository::open(Arc::new(disk.clone()), PASSWORD)?;
    let plan = repair::plan(&repository, options, &resources())?;
    repair::execute(&repository, plan, options, &resources()).map(|(summary, errors)| {
        assert!(errors.is_empty(), "{errors:?}");
        summary
    })
}
