//! Bytes that snapshots marked as deleted hold: exactly those that a run that ended their marks would give back.

use super::ForgetOptions;
use super::choice::{Choice, marked};
use super::dry::State;
use crate::snapshots::SnapshotKey;
use crate::{EngineError, Observer, Resources};
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::series::newest_manifest;
use siltstone_store::{SeriesId, SnapshotId, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Snapshots marked as deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Held {
    /// How many.
    pub snapshots: u64,
    /// The bytes that come back once the marks of all of them have ended, if nothing else is done before; `None` if
    /// there are none, or if what lies beside them could not be read.
    pub bytes: Option<i64>,
    /// When the first of them ends.
    pub first_until: Option<Time>,
    /// When the last of them ends.
    pub last_until: Option<Time>,
}

impl Held {
    /// Those of a series; `bytes` are theirs.
    pub(super) fn new(manifest: &Manifest, bytes: Option<i64>) -> Self {
        let until = || manifest.snapshots().iter().filter_map(|snapshot| Some(snapshot.deleted?.until));
        Self { snapshots: until().count() as u64, bytes, first_until: until().min(), last_until: until().max() }
    }

    /// Adds those of another series.
    pub(super) fn add(&mut self, other: Self) {
        if other.snapshots == 0 {
            return;
        }
        let is_first = self.snapshots == 0;
        self.bytes = if is_first { other.bytes } else { self.bytes.zip(other.bytes).map(|(a, b)| a + b) };
        self.first_until = if is_first { other.first_until } else { self.first_until.min(other.first_until) };
        self.last_until = self.last_until.max(other.last_until);
        self.snapshots += other.snapshots;
    }
}

/// An observer that is told nothing, and may still ask to stop.
struct Unheard(Arc<dyn Observer>);

impl Observer for Unheard {
    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}

/// Returns the bytes that the marked snapshots of a series hold, in this state of it.
pub(super) fn held(repository: &Repository, state: &State, options: &ForgetOptions, resources: &Resources) -> Held {
    let bytes = || freed(repository, state, marked(&state.manifest), options, resources).ok();
    let is_any = state.manifest.snapshots().iter().any(|snapshot| snapshot.deleted.is_some());
    Held::new(&state.manifest, is_any.then(bytes).flatten())
}

/// The bytes that would come back if these snapshots, marked as deleted, were removed now, all at once.
///
/// # Errors
/// Those of the repository.
pub fn held_by(
    repository: &Repository,
    snapshots: &[SnapshotKey],
    options: &ForgetOptions,
    resources: &Resources,
) -> Result<i64, EngineError> {
    repository.require_reading("looking at deleted snapshots")?;
    let mut by_series: BTreeMap<SeriesId, BTreeSet<SnapshotId>> = BTreeMap::new();
    for (series, id) in snapshots {
        by_series.entry(*series).or_default().insert(*id);
    }
    let mut bytes = 0;
    for (series, ids) in by_series {
        let Some(stored) = newest_manifest(repository, series)? else { continue };
        bytes += freed(repository, &State::lying(repository, &stored.manifest)?, ids, options, resources)?;
    }
    Ok(bytes)
}

fn freed(
    repository: &Repository,
    state: &State,
    ids: BTreeSet<SnapshotId>,
    options: &ForgetOptions,
    resources: &Resources,
) -> Result<i64, EngineError> {
    // What is damaged is told by who takes it apart, not by who only asks.
    let unheard = Arc::new(Unheard(resources.observer.clone()));
    let resources = resources.clone().with_observer(unheard);
    Ok(state.after(repository, &Choice::removing(ids), options, None, &resources)?.bytes_returned)
}
