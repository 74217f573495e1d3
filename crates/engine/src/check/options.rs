//! How to check.

use super::restored::RestoreSample;
use crate::setters::setters;
use std::path::PathBuf;
use std::time::Duration;

/// How much of the containers' data to read.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum ReadData {
    /// Structure only: objects present and of the right size, indexes, catalogs, recipes, necessary chunks.
    #[default]
    None,
    /// Every byte.
    All,
    /// Part `part` (1-based) of `parts` equal parts of the containers, always the same ones.
    Subset {
        /// Which part, from 1.
        part: u32,
        /// Number of parts.
        parts: u32,
    },
    /// A random share of the containers.
    Percent(f64),
}

/// Options of a check.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct CheckOptions {
    /// How much of the data to read.
    pub read_data: ReadData,
    /// Who records in the manifests which chunks are damaged, so that backups heed it; `None`: nobody does.
    pub record: Option<String>,
    /// Do not read what was read within this time and was sound.
    pub max_age: Option<Duration>,
    /// Begin no further reading of data once this time has passed. What was read longest ago comes first; some is read
    /// in any case.
    pub max_duration: Option<Duration>,
    /// The folder in which this machine remembers what it read and when; `None`: it does not.
    pub state: Option<PathBuf>,
    /// Files to restore into nothing.
    pub restore_sample: Option<RestoreSample>,
}

impl CheckOptions {
    /// Reads so much, and records nothing.
    pub fn reading(read_data: ReadData) -> Self {
        Self::default().with_read_data(read_data)
    }
}

setters!(CheckOptions {
    with_read_data(read_data: ReadData),
    with_record(record: Option<String>),
    with_max_age(max_age: Option<Duration>),
    with_max_duration(max_duration: Option<Duration>),
    with_state(state: Option<PathBuf>),
    with_restore_sample(restore_sample: Option<RestoreSample>),
});
