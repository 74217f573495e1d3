//! The methods of MeGA's evaluation (ATC 2022, section 5.1) and Siltstone's policies, behind one face.

use super::choose::Rule;
use super::engine::{Engine, POLICIES};
use super::incremental::Changes;
use super::index::Reach;
use super::lifecycle::Lifecycles;
use super::parallel::can_limit;
use super::scale::{Scale, SyncCounts};
use super::stored::{BackedUp, Held, Restored, Store, Upkeep, Way};
use super::versions::Digest;
use crate::distinct;
use crate::experiment::{Row, row};
use crate::settings::Settings;
use anyhow::{Result, bail};
use siltstone_engine::delta::Deltas;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

/// Capping levels of FGD: containers per segment. The paper's are not printed; a segment of five containers' size needs
/// five or six when nothing is scattered.
pub(super) const LEVELS: [usize; 3] = [6, 10, 20];
/// The capping level of CLD, and of FGD where there is one only.
pub(super) const LEVEL_MEDIAN: usize = LEVELS[1];
/// Thresholds of MeGA's selector: bases per container and segment.
pub(super) const THRESHOLDS: [u32; 3] = [0, 2, 8];
/// That of MeGA where there is one only.
pub(super) const THRESHOLD_MEDIAN: u32 = THRESHOLDS[1];

/// Siltstone's policies by name, as [`POLICIES`] has them.
static OWN_NAMES: LazyLock<Vec<String>> =
    LazyLock::new(|| POLICIES.iter().map(|(policy, _)| format!("silt-{policy}")).collect());

/// A method with its parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Method {
    /// Everything is shared with everything.
    Greedy,
    /// Fine-grained deduplication with capping at this level.
    Fgd(usize),
    /// Chunk-level deduplication with capping at this level.
    Cld(usize),
    /// Chunk-level deduplication of adjacent versions, by lifecycles.
    Mfd,
    /// Fine-grained deduplication of adjacent versions, by lifecycles, with a selector of this threshold.
    Mega(u32),
    /// Siltstone with this policy.
    Silt(&'static str, Deltas),
}

impl Method {
    /// All of them.
    pub(super) fn all() -> Vec<Self> {
        let mut all = vec![Self::Greedy];
        all.extend(LEVELS.map(Self::Fgd));
        all.extend([Self::Cld(LEVEL_MEDIAN), Self::Mfd]);
        all.extend(THRESHOLDS.map(Self::Mega));
        all.extend(Self::own());
        all
    }

    /// Those that are compared with the same sizes as Siltstone's: of each paper's method the median.
    pub(super) fn alike() -> Vec<Self> {
        let (fgd, cld, mega) = (Self::Fgd(LEVEL_MEDIAN), Self::Cld(LEVEL_MEDIAN), Self::Mega(THRESHOLD_MEDIAN));
        [Self::Greedy, fgd, cld, Self::Mfd, mega].into_iter().chain(Self::own()).collect()
    }

    /// Those that are compared in what keeping a store in order costs.
    pub(super) fn kept_in_order() -> Vec<Self> {
        [Self::Fgd(LEVEL_MEDIAN), Self::Mega(THRESHOLD_MEDIAN)].into_iter().chain(Self::own()).collect()
    }

    /// Siltstone with each of its policies.
    fn own() -> [Self; POLICIES.len()] {
        POLICIES.map(|(name, deltas)| Self::Silt(name, deltas))
    }

    /// Its name, as settings and tables have it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Greedy => "Greedy",
            Self::Fgd(_) => "FGD",
            Self::Cld(_) => "CLD",
            Self::Mfd => "MFD",
            Self::Mega(_) => "MeGA",
            Self::Silt(..) => "silt",
        }
    }

    /// Its name alone, where others share [`Self::name`] with it: `silt-reverse` for a policy.
    fn own_name(self) -> &'static str {
        let Self::Silt(wanted, _) = self else { return self.name() };
        let place = POLICIES.iter().position(|(policy, _)| *policy == wanted);
        place.map_or(self.name(), |place| OWN_NAMES[place].as_str())
    }

    /// The names by which settings choose among these.
    pub(super) fn names(of: &[Self]) -> Vec<&'static str> {
        distinct(of.iter().flat_map(|method| [method.name(), method.own_name()]))
    }

    /// Tells whether the settings ask for it, and it can obey them: Siltstone's engine takes all CPUs it sees, where
    /// they cannot be hidden.
    pub(super) fn is_asked_for(self, settings: &Settings) -> bool {
        let obeys = !matches!(self, Self::Silt(..)) || can_limit(settings.threads);
        obeys && (settings.chooses_method(self.name()) || settings.chooses_method(self.own_name()))
    }

    /// Returns the parameters by which it differs from the others.
    pub(super) fn parameters(self) -> Row {
        let parameter = match self {
            Self::Greedy | Self::Mfd => "".into(),
            Self::Fgd(level) | Self::Cld(level) => level.into(),
            Self::Mega(threshold) => threshold.into(),
            Self::Silt(policy, _) => policy.into(),
        };
        row([("method", self.name().into()), ("parameter", parameter)])
    }

    /// An empty store of this method in a folder.
    pub(super) fn create(self, folder: &Path, scale: Scale) -> Result<Kept> {
        let way = |reach, rule, has_deltas| Way { reach, rule, has_deltas };
        let store = |way| Store::create(folder, way, scale);
        Ok(match self {
            Self::Greedy => Kept::Arrival(store(way(Reach::Everything, Rule::Everything, true))?),
            Self::Fgd(level) => Kept::Arrival(store(way(Reach::Everything, Rule::Capping(level), true))?),
            Self::Cld(level) => Kept::Arrival(store(way(Reach::Everything, Rule::Capping(level), false))?),
            Self::Mfd => Kept::Lifecycle(Lifecycles::new(store(way(Reach::Adjacent, Rule::Everything, false))?)),
            Self::Mega(threshold) => {
                Kept::Lifecycle(Lifecycles::new(store(way(Reach::Adjacent, Rule::Threshold(threshold), true))?))
            }
            Self::Silt(_, deltas) => Kept::Siltstone(Engine::create(folder, deltas, scale)?),
        })
    }
}

/// A store under test. Versions are counted from 1.
pub(super) enum Kept {
    /// Containers in the order of arrival.
    Arrival(Store),
    /// Containers by lifecycles.
    Lifecycle(Lifecycles),
    /// Siltstone's engine.
    Siltstone(Engine),
}

impl Kept {
    /// Backs up the next version.
    pub(super) fn back_up(&mut self, version: usize, bytes: &Arc<[u8]>) -> Result<BackedUp> {
        self.back_up_changes(version, bytes, None)
    }

    /// Backs up the next version, given what changed in it: a *virtual full* backup (MeGA, ATC 2022, section 4.6).
    /// Without changes it is a full one.
    pub(super) fn back_up_changes(
        &mut self,
        version: usize,
        bytes: &Arc<[u8]>,
        changes: Option<&Changes>,
    ) -> Result<BackedUp> {
        let before = self.syncs();
        let mut done = match (&mut *self, changes) {
            (Self::Arrival(store), changes) => store.back_up(version, bytes, changes),
            (Self::Lifecycle(store), changes) => store.back_up(version, bytes, changes),
            (Self::Siltstone(engine), None) => engine.back_up(version, bytes),
            (Self::Siltstone(_), Some(_)) => bail!("Siltstone's engine is not told what changed"),
        }?;
        done.seconds += self.sync_up_to(before, |syncs| syncs.backup)?;
        Ok(done)
    }

    /// Does what the last backup left to be done.
    pub(super) fn settle(&mut self, version: usize) -> Result<Upkeep> {
        let before = self.syncs();
        let mut done = match self {
            Self::Arrival(_) => return Ok(Upkeep::default()),
            Self::Lifecycle(store) => store.settle(version),
            Self::Siltstone(engine) => engine.settle(),
        }?;
        done.seconds += self.sync_up_to(before, |syncs| syncs.settle)?;
        Ok(done)
    }

    /// Syncs until there were as many since `before` as the scale wants of all methods; returns the seconds it took.
    fn sync_up_to(&self, before: u64, wanted: impl Fn(SyncCounts) -> u64) -> Result<f64> {
        let begin = Instant::now();
        if let Some(store) = self.store()
            && let Some(syncs) = store.scale.syncs
        {
            store.disk.sync_up_to(wanted(syncs), before)?;
        }
        Ok(begin.elapsed().as_secs_f64())
    }

    /// The store of one of the papers' methods.
    pub(super) fn store(&self) -> Option<&Store> {
        match self {
            Self::Arrival(store) | Self::Lifecycle(Lifecycles { store, .. }) => Some(store),
            Self::Siltstone(_) => None,
        }
    }

    /// Restores a version into a new file.
    pub(super) fn restore(&self, version: usize, into: &Path) -> Result<Restored> {
        match self {
            Self::Arrival(store) => store.restore_in_order(version, into),
            Self::Lifecycle(store) => store.restore(version, into),
            Self::Siltstone(engine) => engine.restore(version, into),
        }
    }

    /// Restores a version with so many bytes of memory in which deltas wait for their bases; `None` for a layout whose
    /// deltas wait for nothing.
    pub(super) fn restore_within(&self, version: usize, into: &Path, waiting_bytes: usize) -> Result<Option<Restored>> {
        match self {
            Self::Lifecycle(lifecycles) if lifecycles.store.way.has_deltas => {
                lifecycles.restore_within(version, into, waiting_bytes).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Forgets a version, be it the oldest or one in the middle; `liveness_threshold` is of garbage collection, where
    /// there is any.
    pub(super) fn forget(&mut self, version: usize, liveness_threshold: Option<f64>) -> Result<Upkeep> {
        match (self, liveness_threshold) {
            (Self::Arrival(store), Some(threshold)) => store.forget_and_collect(version, threshold),
            (Self::Lifecycle(store), None) => store.forget(version),
            (Self::Siltstone(engine), None) => engine.forget(version),
            _ => bail!("garbage is collected where containers lie by arrival, and nowhere else"),
        }
    }

    /// Returns the count of its syncs so far.
    pub(super) fn syncs(&self) -> u64 {
        match self {
            Self::Arrival(store) | Self::Lifecycle(Lifecycles { store, .. }) => store.disk.syncs(),
            Self::Siltstone(engine) => engine.syncs(),
        }
    }

    /// Returns the files of the containers that a restore of a version reads, in this order.
    ///
    /// # Errors
    /// If the version is not stored, or the method reads parts of containers.
    pub(super) fn files_read(&self, version: usize) -> Result<Vec<PathBuf>> {
        let (store, order) = match self {
            Self::Arrival(store) => (store, store.reads_in_order(version)?),
            Self::Lifecycle(lifecycles) => (&lifecycles.store, lifecycles.traversal(version)),
            Self::Siltstone(_) => bail!("Siltstone's engine reads parts of containers"),
        };
        Ok(order.into_iter().map(|container| store.disk.file(container)).collect())
    }

    /// Returns the first of these versions that does not come back as it was, by a restore into this file.
    pub(super) fn first_wrong<'d>(
        &self,
        digests: impl IntoIterator<Item = (usize, &'d Digest)>,
        restored: &Path,
    ) -> Result<Option<usize>> {
        for (version, digest) in digests {
            let is_right = self.restore(version, restored).is_ok() && Digest::of_file(restored)? == *digest;
            if !is_right {
                return Ok(Some(version));
            }
            fs::remove_file(restored)?;
        }
        Ok(None)
    }

    /// Returns what it takes on disk.
    pub(super) fn held(&self) -> Result<Held> {
        match self {
            Self::Arrival(store) | Self::Lifecycle(Lifecycles { store, .. }) => store.held(),
            Self::Siltstone(engine) => engine.held(),
        }
    }
}
