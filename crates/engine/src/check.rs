//! Checking a repository: that everything committed is there, authentic, consistent and, if asked, readable to the last byte.

use crate::{EngineError, Observer};
use siltstone_store::repository::Repository;

/// How much of the containers' data to read.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ReadData {
    /// Structure only: objects present and of the right size, indexes, catalogs, recipes, necessary chunks.
    None,
    /// Every byte.
    All,
    /// Part `part` (1-based) of `parts` equal parts of the containers, always the same ones.
    Subset {
        /// Which part, from 1.
        part: u32,
        /// Of how many.
        parts: u32,
    },
    /// A random share of the containers.
    Percent(f64),
}

/// One thing found wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Name of the object (or snapshot) concerned.
    pub object: String,
    /// What is wrong.
    pub what: String,
    /// Snapshots (short ids) that cannot be restored in full because of it, where known.
    pub snapshots: Vec<String>,
}

/// What a check saw.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// Damage; empty means the repository is sound as far as it was looked at.
    pub findings: Vec<Finding>,
    /// Series looked at.
    pub series: u64,
    /// Snapshots looked at.
    pub snapshots: u64,
    /// Containers in all.
    pub containers: u64,
    /// Containers read whole.
    pub containers_read: u64,
    /// Bytes read from containers read whole.
    pub bytes_read: u64,
    /// Objects no manifest names, left by an interrupted run; the next backup or forget of their series removes them.
    pub orphans: u64,
    /// Their bytes.
    pub orphan_bytes: u64,
}

/// Checks the whole repository; damage is reported, not returned as an error.
pub fn check(
    repository: &Repository,
    read_data: ReadData,
    observer: &dyn Observer,
) -> Result<CheckReport, EngineError> {
    let _ = (repository, read_data, observer);
    todo!()
}
