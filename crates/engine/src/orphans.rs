//! Orphans: objects of a series that no manifest needs, left by a writer that was interrupted or may not delete.

use siltstone_store::manifest::Manifest;
use siltstone_store::storage::{ObjectName, Original};
use std::collections::HashSet;

/// Objects that a series needs, as its newest manifest tells.
pub(crate) struct Needed {
    newest: u64,
    named: HashSet<ObjectName>,
}

impl Needed {
    /// Returns what this manifest, the newest of its series, needs.
    pub(crate) fn by(manifest: &Manifest) -> Self {
        Self { newest: manifest.sequence, named: manifest.named_objects() }
    }

    /// Tells whether a container or its parity is named by no manifest, or a manifest is older than the predecessor of
    /// the newest. Of other objects, parts of manifests among them, it tells nothing.
    pub(crate) fn is_orphan(&self, name: &ObjectName) -> bool {
        match name {
            ObjectName::Container(..) | ObjectName::Parity(..) => !self.named.contains(name),
            ObjectName::Manifest(_, sequence) | ObjectName::Copy(Original::Manifest(_, sequence)) => {
                sequence + 1 < self.newest
            }
            _ => false,
        }
    }
}
