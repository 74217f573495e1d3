//! From the address of a repository to its storage, with every call logged.

use crate::error::CliError;
use siltstone_remote::{Bucket, ConnectError, ObjectStorage, Place, Variables};
use siltstone_store::storage::{Disk, Storage, Traced};
use std::path::PathBuf;
use std::sync::Arc;

/// Opens a place. A folder must be there; a bucket is asked nothing yet. The cache remembers which places were probed.
pub(crate) fn open(place: &Place, cache: Option<PathBuf>) -> Result<Arc<dyn Storage>, CliError> {
    Ok(match place {
        Place::Folder(path) => traced(Disk::open(path)?),
        Place::Bucket(bucket) => {
            let storage = connect(bucket)?;
            match cache {
                Some(cache) => {
                    let file = storage.location().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
                    traced(storage.with_probe_marker(cache.join("probed").join(file)))
                }
                None => traced(storage),
            }
        }
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
