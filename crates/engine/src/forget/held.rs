//! Bytes that snapshots marked as deleted hold: exactly those that a run that ended their marks would give back.

use super::ForgetOptions;
use super::choice::{Choice, marked};
use super::dry::{Beside, State};
use super::order::{in_order, lenders_of};
use crate::many_series::{self, ManySeries};
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
    /// Those of a series, without their bytes.
    fn new(manifest: &Manifest) -> Self {
        let until = || manifest.snapshots().iter().filter_map(|snapshot| Some(snapshot.deleted?.until));
        Self { snapshots: until().count() as u64, bytes: None, first_until: until().min(), last_until: until().max() }
    }

    /// Adds those of another series, without their bytes: what one gives back may free what another has lent it.
    fn add(&mut self, other: Self) {
        if other.snapshots == 0 {
            return;
        }
        let is_first = self.snapshots == 0;
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

/// Snapshots marked as deleted in a series, and its state, if that could be read.
pub(super) struct Marked {
    held: Held,
    state: Option<State>,
}

impl Marked {
    /// Those of a series with this manifest, the newest, if there are any.
    pub(super) fn lying(repository: &Repository, manifest: &Manifest) -> Option<Self> {
        let is_any = !marked(manifest).is_empty();
        // What was done is done, whether this can be told or not.
        is_any.then(|| Self { held: Held::new(manifest), state: State::lying(repository, manifest).ok() })
    }

    /// Those of a state, if there are any.
    pub(super) fn of(state: State) -> Option<Self> {
        let is_any = !marked(&state.manifest).is_empty();
        is_any.then(|| Self { held: Held::new(&state.manifest), state: Some(state) })
    }
}

/// Returns what all marked snapshots of these series hold together; `beside` is what a dry run has made so far.
pub(super) fn held_of(
    beside: Option<Beside>,
    repository: &Repository,
    all: Vec<Marked>,
    options: &ForgetOptions,
    resources: &Resources,
) -> Held {
    let mut held = Held::default();
    let mut states = Some(Vec::new());
    for Marked { held: of_series, state } in all {
        held.add(of_series);
        states = states.zip(state).map(|(mut states, state)| {
            let ids = marked(&state.manifest);
            states.push((state, ids));
            states
        });
    }
    if let Some(states) = states.filter(|_| held.snapshots > 0) {
        let beside = beside.or_else(|| Beside::over(repository, &resources.scratch_of(repository)).ok());
        held.bytes = beside.and_then(|beside| freed(&beside, states, options, resources).ok());
    }
    held
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
    let mut states = Vec::new();
    for (series, ids) in by_series {
        if let Some(stored) = newest_manifest(repository, series)? {
            states.push((State::lying(repository, &stored.manifest)?, ids));
        }
    }
    freed(&Beside::over(repository, &resources.scratch_of(repository))?, states, options, resources)
}

/// The bytes that come back when these snapshots go from these series.
fn freed(
    beside: &Beside,
    states: Vec<(State, BTreeSet<SnapshotId>)>,
    options: &ForgetOptions,
    resources: &Resources,
) -> Result<i64, EngineError> {
    // What is damaged is told by who takes it apart, not by who only asks.
    let unheard = Arc::new(Unheard(resources.observer.clone()));
    let resources = resources.clone().with_observer(unheard);
    let repository = beside.repository();
    let many = ManySeries::of(repository, resources.memory_bytes);
    let free = |(_, state, ids): (BTreeSet<SeriesId>, State, BTreeSet<SnapshotId>)| -> Result<i64, EngineError> {
        let outcome = state.after(repository, &Choice::removing(ids), options, None, &resources)?;
        beside.give_back(&outcome.loans);
        Ok(outcome.bytes_returned)
    };
    let items = states.into_iter().map(|(state, ids)| (lenders_of(&state.manifest), state, ids)).collect();
    let mut bytes = 0;
    for turn in in_order(items, |(lenders, state, _)| (state.manifest.series, lenders)) {
        bytes += many.each(turn, |(_, state, _)| many_series::weight(&state.manifest), &free)?.iter().sum::<i64>();
    }
    Ok(bytes)
}
