//! Creating an object where answers may be lost.
//!
//! A place at a distance may do what it was asked for and fail to say so, and a layer between may then ask again and
//! meet its own object. So neither an error nor a name that is taken tells what happened. The bytes under the name do:
//! they are sealed under a random salt, and nobody else can have made the same ones.
//!
//! An object that is absent is sent again: two requests for the same bytes under one name are one. A disk that failed
//! says so (its barrier fails from then on), and what lies there may be gone after a loss of power: such an error stands.
//! A storage that has looked itself, and says that the outcome is unknown, is not asked again.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use crate::error::StoreError;
use crate::storage::{ObjectName, Storage, StorageError};

/// Times that an object is sent whose answer was lost and which is not there.
const CREATE_ATTEMPTS_MAX: u32 = 3;

/// The outcome of creating an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Created {
    /// The object is there, durable.
    Ours,
    /// Other bytes have its name.
    Taken,
}

/// Creates an object and finds out what came of it.
///
/// # Errors
/// Those of the storage that tell that nothing was done; [`StoreError::OutcomeUnknown`] if the object may be there, or
/// may come to be.
pub(crate) fn create_ours(storage: &dyn Storage, name: &ObjectName, object: &[u8]) -> Result<Created, StoreError> {
    let mut doubt = None;
    for _ in 0..CREATE_ATTEMPTS_MAX {
        let error = match storage.create(name, object) {
            Ok(()) => return Ok(Created::Ours),
            Err(error @ StorageError::OutcomeUnknown { .. }) => return Err(unknown(name, &error)),
            Err(error) if leaves_doubt(storage, &error) => error,
            Err(error) => return Err(doubt.map_or_else(|| error.into(), |first| unknown(name, &first))),
        };
        match storage.read(name, object.len() as u64) {
            Ok(found) if found == object => return Ok(Created::Ours),
            // A body that was cut off on its way proves nothing.
            Ok(found) if !object.starts_with(&found) => return Ok(Created::Taken),
            Err(StorageError::TooLarge { .. } | StorageError::Unreadable { .. }) => return Ok(Created::Taken),
            Err(read) if !read.is_not_found() => return Err(unknown(name, &read)),
            Ok(_) | Err(_) => {}
        }
        doubt.get_or_insert(error);
    }
    Err(doubt.map_or_else(|| StorageError::NotFound { name: *name }.into(), |first| unknown(name, &first)))
}

/// Creates an object that is to be there, whoever makes it.
///
/// # Errors
/// As [`create_ours`]; that the name is taken, if it is by other bytes.
pub(crate) fn create_same(storage: &dyn Storage, name: &ObjectName, object: &[u8]) -> Result<(), StoreError> {
    match create_ours(storage, name, object)? {
        Created::Ours => Ok(()),
        Created::Taken => Err(StorageError::AlreadyExists { name: *name }.into()),
    }
}

/// Tells whether the object may be there after this error.
fn leaves_doubt(storage: &dyn Storage, error: &StorageError) -> bool {
    match error {
        StorageError::AlreadyExists { .. } => true,
        StorageError::Io { .. } | StorageError::Unreachable { .. } => storage.barrier().is_ok(),
        _ => false,
    }
}

fn unknown(name: &ObjectName, error: &StorageError) -> StoreError {
    StoreError::outcome_unknown(name, error)
}
