//! From the address of a repository to its storage, with every call logged.

use crate::error::CliError;
use siltstone_remote::{Bucket, ConnectError, ObjectStorage, Place, Variables};
use siltstone_store::storage::{Disk, Storage, Traced};
use std::sync::Arc;

/// Opens a place. A folder must be there; a bucket is asked nothing yet.
pub(crate) fn open(place: &Place) -> Result<Arc<dyn Storage>, CliError> {
    Ok(match place {
        Place::Folder(path) => traced(Disk::open(path)?),
        Place::Bucket(bucket) => traced(connect(bucket)?),
    })
}

/// Connects a bucket with the credentials of the environment.
pub(crate) fn connect(bucket: &Bucket) -> Result<ObjectStorage, CliError> {
    siltstone_remote::connect(bucket, &Variables::of_process()).map_err(|error| match error {
        ConnectError::Place(error) => error.into(),
        ConnectError::Storage(error) => error.into(),
        error => CliError::Connect(error),
    })
}

/// Logs the calls to a storage.
pub(crate) fn traced(storage: impl Storage + 'static) -> Arc<dyn Storage> {
    Arc::new(Traced::new(storage))
}
