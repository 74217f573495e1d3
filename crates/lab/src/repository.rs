//! Repositories of Siltstone made for one run, and the options that all backups into them share.

use anyhow::Result;
use siltstone_engine::Resources;
use siltstone_engine::VerifyWritten;
use siltstone_engine::backup::{BackupOptions, chunker_sized};
use siltstone_engine::delta::Deltas;
use siltstone_store::Time;
use siltstone_store::keys::{Argon2Cost, KeyLabel};
use siltstone_store::repository::Repository;
use siltstone_store::storage::Storage;
use std::path::PathBuf;
use std::sync::Arc;

/// Makes a repository with Siltstone's chunker. Its password guards nothing, so hashing it costs nothing.
///
/// # Errors
/// If it cannot be made, or the chunker does not take this average.
pub(crate) fn new_repository(storage: Arc<dyn Storage>, expected_bytes: u32) -> Result<Repository> {
    let label = KeyLabel { created: Time::default(), host: "lab".into(), user: "lab".into() };
    let chunker = chunker_sized(siltstone_chunk::DEFAULT_NAME, expected_bytes.into())?;
    Ok(Repository::init(storage, b"lab", &label, Argon2Cost::TEST, chunker)?)
}

/// Options of a backup that reads nothing but its source, so that nothing else is timed, and settles nothing.
pub(crate) fn backup_options(deltas: Deltas) -> BackupOptions {
    BackupOptions::default()
        .with_series(Some("lab".into()))
        .with_host("lab".into())
        .with_user("lab".into())
        .with_program("silt-lab".into())
        .with_shrink_share(None)
        .with_deltas(deltas)
        .with_migrate(false)
        .with_verify_written(VerifyWritten::Never)
        .with_sample_bytes(Some(0))
}

/// Resources of one run, with a cache in this folder.
pub(crate) fn resources(cache: PathBuf, memory_bytes: u64) -> Resources {
    Resources::default().with_memory_bytes(memory_bytes).with_cache(Some(cache))
}
