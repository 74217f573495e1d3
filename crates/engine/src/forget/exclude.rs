//! Forgetting paths instead of snapshots: a [`RewritePlan`] says what of which snapshots would go; making it writes
//! nothing.
//!
//! Carrying it out is a forgetting in which snapshots are replaced by such that lack the paths (module `rewrite`): one
//! commit says so, what nothing needs then is deleted after it, and containers that are dead in part are rewritten. A
//! snapshot that was replaced keeps its place in the series, its mark if it is deleted, and its short id.

use super::{ForgetOptions, ForgetSummary, forget};
use crate::chunks::ChunkSource;
use crate::fs::PathFilter;
use crate::rewrite::{Excluded, excluded_of};
use crate::snapshots::{SnapshotKey, SnapshotView};
use crate::{EngineError, Resources};
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::{SeriesId, SnapshotId, StoreError};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// A snapshot that has what a filter excludes.
#[derive(Clone, Debug)]
pub struct Affected {
    /// The snapshot.
    pub snapshot: SnapshotView,
    /// Entries that it would lose.
    pub excluded: Excluded,
}

/// Plan of taking paths out of snapshots: made by [`plan_rewrite`], carried out by [`RewritePlan::execute`].
#[derive(Debug)]
#[non_exhaustive]
pub struct RewritePlan {
    /// Snapshots that have what the filter excludes, in the order given.
    pub affected: Vec<Affected>,
    /// Snapshots whose catalogs cannot be read: they stay as they are.
    pub damaged: Vec<(SnapshotView, StoreError)>,
    options: ForgetOptions,
}

/// Looks which of these snapshots have what the filter excludes, partial and deleted ones too. Nothing is written.
///
/// # Errors
/// [`EngineError::ExcludesAll`] if no file would be left of a snapshot, unless the options allow to remove all;
/// [`EngineError::Interrupted`]; those of the repository.
pub fn plan_rewrite(
    repository: &Repository,
    snapshots: Vec<SnapshotView>,
    filter: PathFilter,
    options: &ForgetOptions,
    resources: &Resources,
) -> Result<RewritePlan, EngineError> {
    repository.require_reading("rewriting snapshots")?;
    let mut by_series: BTreeMap<SeriesId, BTreeSet<SnapshotId>> = BTreeMap::new();
    for view in &snapshots {
        by_series.entry(view.series).or_default().insert(view.snapshot.id);
    }
    let mut found = HashMap::new();
    for (series, ids) in by_series {
        let manifest = match repository.manifest(series) {
            Ok(manifest) => manifest.unwrap_or_else(|| Manifest::new(series, "")),
            Err(error) if error.is_damage() => {
                let error = Arc::new(error);
                found.extend(ids.into_iter().map(|id| ((series, id), Err(StoreError::Shared(Arc::clone(&error))))));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let chunks = ChunkSource::new(repository, &manifest);
        let counted = excluded_of(&chunks, &manifest, &ids, &filter, resources)?;
        found.extend(counted.into_iter().map(|(id, excluded)| ((series, id), excluded)));
    }
    let mut plan = RewritePlan { affected: Vec::new(), damaged: Vec::new(), options: options.clone() };
    for snapshot in snapshots {
        match found.remove(&snapshot.key()) {
            Some(Ok(excluded)) if excluded.is_empty() => {}
            Some(Ok(excluded)) => plan.affected.push(Affected { snapshot, excluded }),
            Some(Err(error)) => plan.damaged.push((snapshot, error)),
            // Gone since it was listed.
            None => {}
        }
    }
    plan.refuse_emptying()?;
    plan.options.exclude = Some(filter);
    Ok(plan)
}

impl RewritePlan {
    /// Puts others into the place of the snapshots, and gives back the space that only what they had needed.
    ///
    /// # Errors
    /// Those of [`forget`].
    pub fn execute(&self, repository: &Repository, resources: &Resources) -> Result<ForgetSummary, EngineError> {
        forget(repository, &self.keys(), &self.options, resources)
    }

    /// Returns what executing it would do, to the byte.
    ///
    /// # Errors
    /// Those of [`Self::execute`].
    pub fn forecast(&self, repository: &Repository, resources: &Resources) -> Result<ForgetSummary, EngineError> {
        forget(repository, &self.keys(), &self.options.clone().with_dry_run(true), resources)
    }

    fn keys(&self) -> Vec<SnapshotKey> {
        self.affected.iter().map(|affected| affected.snapshot.key()).collect()
    }

    /// Refuses to leave nothing of a snapshot: what was probably meant is less. What a checkpoint has may be just that.
    fn refuse_emptying(&self) -> Result<(), EngineError> {
        let is_emptied = |affected: &&Affected| {
            let (of, excluded) = (&affected.snapshot.snapshot, &affected.excluded);
            let (files, others) = (of.statistics.files, of.statistics.others);
            !of.partial && files + others > 0 && excluded.files >= files && excluded.others >= others
        };
        match self.affected.iter().find(is_emptied).filter(|_| !self.options.allow_remove_all) {
            Some(Affected { snapshot, .. }) => Err(EngineError::ExcludesAll { snapshot: snapshot.snapshot.id.short() }),
            None => Ok(()),
        }
    }
}
