//! Orphans: objects of a series that no manifest needs, left by a writer that was interrupted or may not delete.

use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::series::older_may_stay;
use siltstone_store::storage::{ObjectMeta, ObjectName, Original};

/// Returns those of a series' objects that its newest manifest does not need: containers and parity that it does not
/// name, and manifests older than its predecessor. A few of these are no orphans at a distance, where commits leave
/// them to a later run. Of other objects, parts of manifests among them, it tells nothing.
pub(crate) fn orphans_among<'l>(
    repository: &Repository,
    manifest: &Manifest,
    listed: &'l [ObjectMeta],
) -> Vec<&'l ObjectMeta> {
    let named = manifest.named_objects();
    let (mut orphans, mut older, mut older_bytes) = (Vec::new(), Vec::new(), 0);
    for meta in listed {
        match meta.name {
            ObjectName::Container(..) | ObjectName::Parity(..) if !named.contains(&meta.name) => orphans.push(meta),
            ObjectName::Manifest(_, sequence) if is_older(sequence, manifest) => {
                older.push(meta);
                older_bytes += meta.bytes;
            }
            ObjectName::Copy(Original::Manifest(_, sequence)) if is_older(sequence, manifest) => older.push(meta),
            _ => {}
        }
    }
    if !older_may_stay(repository, older.len(), older_bytes) {
        orphans.append(&mut older);
    }
    orphans
}

fn is_older(sequence: u64, newest: &Manifest) -> bool {
    sequence.saturating_add(1) < newest.sequence
}
