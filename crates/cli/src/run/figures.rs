//! Figures: counts of a run, under names whose last word is the unit.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Counts of the parts of a run, added up.
#[derive(Default, Debug)]
pub(crate) struct Figures(Mutex<Counted>);

/// Counts of a run.
#[derive(Clone, Default, Debug)]
pub(super) struct Counted {
    pub(super) numbers: BTreeMap<&'static str, u64>,
    /// Ids of the snapshots that were made.
    pub(super) snapshots: Vec<String>,
}

impl Figures {
    /// Adds counts to those of the same names.
    pub(crate) fn add<const N: usize>(&self, counts: [(&'static str, u64); N]) {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, count) in counts {
            *counted.numbers.entry(name).or_default() += count;
        }
    }

    /// Adds a snapshot that was made.
    pub(crate) fn add_snapshot(&self, id: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).snapshots.push(id);
    }

    pub(super) fn counted(&self) -> Counted {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
