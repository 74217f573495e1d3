//! Siltstone itself, by its own engine.

use super::Keeper;
use crate::repository::{backup_options, new_repository, resources};
use crate::tree;
use anyhow::Result;
use siltstone_chunk::Sizes;
use siltstone_engine::Session;
use siltstone_engine::backup::{BackupOptions, Source};
use siltstone_engine::delta::Deltas;
use siltstone_engine::maintain::MaintainOptions;
use siltstone_store::storage::Disk;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A repository in a folder of its own.
pub(super) struct Silt {
    session: Session,
    options: BackupOptions,
    repository: PathBuf,
}

impl Silt {
    pub(super) fn create(folder: &Path, memory_bytes: u64) -> Result<Self> {
        let repository = folder.join("repository");
        let disk = Disk::create(repository.clone())?;
        let expected = u32::try_from(Sizes::DEFAULT.expected())?;
        let session =
            Session::new(new_repository(Arc::new(disk), expected)?, resources(folder.join("cache"), memory_bytes));
        Ok(Self { session, options: backup_options(Deltas::default()), repository })
    }
}

impl Keeper for Silt {
    fn name(&self) -> &'static str {
        "silt"
    }

    /// A backup of the version as it lies on disk, and all that it leaves to be done.
    fn keep(&mut self, version: &Path, _: &[u8]) -> Result<()> {
        self.session.backup(Source::Paths(vec![version.to_path_buf()]), &self.options)?;
        self.session.maintain(&MaintainOptions::default().with_user("lab".into()))?;
        Ok(())
    }

    fn stored(&self) -> Result<u64> {
        tree::bytes(&self.repository)
    }
}
