//! Tags and descriptions of snapshots, changed later.

use crate::amend::{Amendment, amend};
use crate::setters::setters;
use crate::snapshots::SnapshotKey;
use crate::{EngineError, Resources};
use siltstone_store::SnapshotId;
use siltstone_store::manifest::{Manifest, Snapshot};
use siltstone_store::repository::Repository;

/// Options of changing tags and descriptions.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LabelOptions {
    /// These tags, and no others.
    pub set_tags: Option<Vec<String>>,
    /// Tags to add, behind those that are there.
    pub add_tags: Vec<String>,
    /// Tags to remove.
    pub remove_tags: Vec<String>,
    /// Another description; none if it is empty.
    pub description: Option<String>,
    /// Take over a lease whose holder cannot be seen from here.
    pub take_over: bool,
    /// Who does it, recorded in the lease.
    pub user: String,
}

setters!(LabelOptions {
    with_set_tags(set_tags: Option<Vec<String>>),
    with_add_tags(add_tags: Vec<String>),
    with_remove_tags(remove_tags: Vec<String>),
    with_description(description: Option<String>),
    with_take_over(take_over: bool),
    with_user(user: String),
});

/// Changes tags and description of snapshots. Returns how many differ now.
///
/// # Errors
/// [`EngineError::NoSnapshot`] before any is changed, if one is gone; those of the repository, with the series before
/// done.
pub fn label(
    repository: &Repository,
    snapshots: &[SnapshotKey],
    options: &LabelOptions,
    resources: &Resources,
) -> Result<u64, EngineError> {
    repository.require_reading("changing tags and descriptions")?;
    let apply = |snapshot: &mut Snapshot| {
        let before = (snapshot.tags.clone(), snapshot.description.clone());
        options.apply(snapshot);
        before != (snapshot.tags.clone(), snapshot.description.clone())
    };
    let gone = |id: &SnapshotId, _: &Manifest| EngineError::NoSnapshot { wanted: id.short() };
    let (user, take_over) = (options.user.as_str(), options.take_over);
    let amendment = Amendment { name: "label", user, take_over, gone, apply: &apply };
    amend(repository, snapshots, &amendment, resources)
}

impl LabelOptions {
    fn apply(&self, snapshot: &mut Snapshot) {
        if let Some(tags) = &self.set_tags {
            snapshot.tags.clear();
            snapshot.tags.extend_from_slice(tags);
        }
        for tag in &self.add_tags {
            if !snapshot.tags.contains(tag) {
                snapshot.tags.push(tag.clone());
            }
        }
        snapshot.tags.retain(|tag| !self.remove_tags.contains(tag));
        if let Some(text) = &self.description {
            snapshot.description = (!text.is_empty()).then(|| text.clone());
        }
    }
}
