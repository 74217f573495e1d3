//! Storages that refuse something: all writing, as on a read-only mount, objects of one kind, or what they list.

use siltstone_store::storage::{Call, Guarded, NameKind, ObjectName, Original, Outcome, SimulatedDisk, StorageError};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

fn refused(name: &ObjectName) -> Outcome {
    Outcome::Refused(StorageError::ReadOnly {
        name: name.to_string(),
        source: io::ErrorKind::ReadOnlyFilesystem.into(),
    })
}

/// A disk that nothing can be written to.
pub fn read_only(disk: SimulatedDisk) -> Guarded<SimulatedDisk> {
    Guarded::new(disk, |call| match call {
        Call::Put(name) | Call::Create(name) | Call::Delete(name) | Call::Renew(name) => refused(name),
        _ => Outcome::Made,
    })
}

/// A disk that refuses to create objects of one kind after so many: renewals, as for a holder that sleeps or is cut
/// off, or loans.
pub fn refusing_after(objects: u32, kind: NameKind, disk: SimulatedDisk) -> Guarded<SimulatedDisk> {
    let left = AtomicU32::new(objects);
    Guarded::new(disk, move |call| match call {
        Call::Create(name) | Call::Renew(name) if NameKind::from(name) == kind => {
            let left = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            left.map_or_else(|_| refused(name), |_| Outcome::Made)
        }
        _ => Outcome::Made,
    })
}

/// A disk that lists its manifests and says that they are not there: a part of the place is away.
pub fn denying_manifests(disk: SimulatedDisk) -> Guarded<SimulatedDisk> {
    Guarded::new(disk, |call| match call {
        Call::Read(name @ (ObjectName::Manifest(..) | ObjectName::Copy(Original::Manifest(..)))) => {
            Outcome::Refused(StorageError::NotFound { name: *name })
        }
        _ => Outcome::Made,
    })
}
