//! Bytes that snapshots marked as deleted hold: exactly those that a run that ended their marks would give back.

use super::ForgetOptions;
use super::choice::{Choice, marked};
use super::dry::{Beside, State, has_more, lenders_in};
use super::order::{in_order, lenders_of};
use crate::maintain::lent::is_over;
use crate::many_series::{self, ManySeries};
use crate::snapshots::SnapshotKey;
use crate::{EngineError, Observer, Resources};
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::series::newest_manifest;
use siltstone_store::storage::ObjectName;
use siltstone_store::{SeriesId, SnapshotId, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Snapshots marked as deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Held {
    /// How many.
    pub snapshots: u64,
    /// The bytes that come back once the marks of all of them have ended, if nothing else is done before; `None` if
    /// there are none, if what lies beside them could not be read, or if a run at a distance had nothing to do: that
    /// reads no containers for this figure alone.
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

/// A series of which there is more to come, and its state, if that could be read.
pub(super) struct After {
    held: Held,
    state: Option<State>,
}

impl After {
    /// The series with this manifest, the newest, if there is more to come of it; its state is read where it is wanted.
    pub(super) fn lying(repository: &Repository, manifest: &Manifest, wants_state: bool) -> Option<Self> {
        // What was done is done, whether this can be told or not.
        let state = || wants_state.then(|| State::lying(repository, manifest).ok()).flatten();
        has_more(manifest).then(|| Self { held: Held::new(manifest), state: state() })
    }

    /// The series in this state, if there is more to come of it.
    pub(super) fn of(state: State) -> Option<Self> {
        has_more(&state.manifest).then(|| Self { held: Held::new(&state.manifest), state: Some(state) })
    }
}

/// Returns what all marked snapshots of these series hold together, their bytes where they are wanted; `beside` is what
/// a dry run has made so far.
pub(super) fn held_of(
    beside: Option<Beside>,
    repository: &Repository,
    all: Vec<After>,
    wants_bytes: bool,
    options: &ForgetOptions,
    resources: &Resources,
) -> Held {
    let mut held = Held::default();
    let mut states = Some(Vec::new());
    for After { held: of_series, state } in all {
        held.add(of_series);
        states = states.zip(state).map(|(mut states, state)| {
            let ids = marked(&state.manifest);
            states.push((state, ids));
            states
        });
    }
    if let Some(states) = states.filter(|_| wants_bytes && held.snapshots > 0) {
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

/// A series that snapshots go from, and those it borrows of.
struct Losing {
    state: State,
    ids: BTreeSet<SnapshotId>,
    lenders: BTreeSet<SeriesId>,
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
    let free = |Losing { state, ids, .. }: Losing| -> Result<(i64, BTreeSet<ObjectName>), EngineError> {
        if ids.is_empty() && !is_over(repository, &state.manifest).unwrap_or(false) {
            return Ok((0, BTreeSet::new()));
        }
        let outcome = state.after(repository, &Choice::removing(ids), options, None, &resources)?;
        beside.give_back(&outcome.loans);
        Ok((outcome.bytes_returned, outcome.loans))
    };
    let losing = |(state, ids): (State, BTreeSet<SnapshotId>)| {
        let lenders = if ids.is_empty() { BTreeSet::new() } else { lenders_of(&state.manifest) };
        Losing { state, ids, lenders }
    };
    let concerned: BTreeSet<SeriesId> = states.iter().map(|(state, _)| state.manifest.series).collect();
    let (mut bytes, mut lenders) = (0, BTreeSet::new());
    let items = states.into_iter().map(losing).collect();
    for turn in in_order(items, |item| (item.state.manifest.series, &item.lenders)) {
        for (returned, loans) in many.each(turn, |item| many_series::weight(&item.state.manifest), free)? {
            bytes += returned;
            lenders.extend(lenders_in(&loans));
        }
    }
    for series in &lenders - &concerned {
        let manifest = repository.manifest_listed(series).ok().flatten();
        let state = manifest.and_then(|manifest| State::lying(repository, &manifest).ok());
        // A run would leave a series as it is that it cannot work on.
        let returned = state.map(|state| free(losing((state, BTreeSet::new()))));
        bytes += returned.and_then(Result::ok).map_or(0, |(returned, _)| returned);
    }
    Ok(bytes)
}
