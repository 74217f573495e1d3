//! Names of objects, and identifiers in them.

use siltstone_store::storage::ObjectName;
use siltstone_store::{ContainerId, Fingerprint, SnapshotId};

/// The path of a file in a repository.
pub(crate) fn names(data: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(data) else { return false };
    let spelled = [
        ContainerId::from_text(text).map(|id| id.to_string()),
        Fingerprint::from_hex(text).map(|id| id.to_string()),
        SnapshotId::from_hex(text).map(|id| id.to_string()),
    ];
    for again in spelled.into_iter().flatten() {
        assert_eq!(again, text, "an identifier has one spelling");
    }
    let Some(name) = ObjectName::from_text(text) else { return false };
    assert_eq!(name.to_string(), text, "a name has one spelling");
    let _ = (name.bytes_max(), name.container(), name.sequence(), name.series());
    assert!(name.original().is_none_or(|original| original.name() == name));
    true
}
