//! From the address of a repository to its storage, with every call logged.

use crate::context::Context;
use crate::error::CliError;
use siltstone_remote::{Bucket, ConnectError, ObjectStorage, Place, ServerAddress, Variables};
use siltstone_store::storage::{Disk, Storage, Traced};
use std::sync::Arc;

/// Opens a place. A folder must be there; a bucket is asked nothing yet, a server what its token may do. The cache
/// remembers which buckets were probed.
pub(crate) fn open(place: &Place, context: &Context) -> Result<Arc<dyn Storage>, CliError> {
    Ok(match place {
        Place::Folder(path) => traced(Disk::open(path)?),
        Place::Bucket(bucket) => {
            let storage = connect(bucket)?;
            match context.cache_folder() {
                Some(cache) => {
                    let file = storage.location().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
                    traced(storage.with_probe_marker(cache.join("probed").join(file)))
                }
                None => traced(storage),
            }
        }
        Place::Server(address) => traced(connect_server(address, context)?),
    })
}

/// Connects a bucket with the credentials of the environment.
pub(crate) fn connect(bucket: &Bucket) -> Result<ObjectStorage, CliError> {
    siltstone_remote::connect(bucket, &Variables::of_process()).map_err(told)
}

/// Connects a server with the token of the environment.
pub(crate) fn connect_server(address: &ServerAddress, context: &Context) -> Result<ObjectStorage, CliError> {
    let variables = Variables::of_process().with_certificates(context.options.cacert.as_deref());
    siltstone_remote::connect_server(address, &variables).map_err(told)
}

fn told(error: ConnectError) -> CliError {
    match error {
        ConnectError::Place(error) => error.into(),
        ConnectError::Storage(error) => error.into(),
        error => CliError::Connect(error),
    }
}

/// Logs the calls to a storage.
pub(crate) fn traced(storage: impl Storage + 'static) -> Arc<dyn Storage> {
    Arc::new(Traced::new(storage))
}
