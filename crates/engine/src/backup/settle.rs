//! Settling what a snapshot leaves behind, once it is committed.

use super::options::BackupSummary;
use super::run::BackupRun;
use crate::EngineError;
use crate::delta::NewChunks;
use crate::lease::now;
use crate::maintain::{self, MaintainOptions, Maintenance};
use crate::observer::Notice;
use siltstone_store::series::SeriesWriter;

impl<'t> BackupRun<'t> {
    /// Tells whether the run settles what it leaves behind: it keeps the lease until then.
    pub(super) fn settles(&self) -> bool {
        self.options.migrate && self.repository.may_delete() && self.repository.may_read()
    }

    /// Settles what the backup leaves behind, if asked to and allowed to delete, and gives the lease back, unless its
    /// commit did so. The snapshot stands: whatever goes wrong here is told, and left to the next
    /// [`maintain::maintain`].
    pub(super) fn settle(
        &self,
        mut writer: SeriesWriter<'t>,
        mut summary: BackupSummary,
        new: Option<NewChunks>,
    ) -> BackupSummary {
        if writer.manifest().lease.is_none() {
            return summary;
        }
        let options = MaintainOptions {
            deltas: self.options.deltas,
            threshold: self.options.migrate_threshold,
            compression_level: self.options.compression_level,
            verify_written: self.options.verify_written,
            user: self.options.user.clone(),
            ..MaintainOptions::default()
        };
        let work = Maintenance { repository: self.repository, options: &options, resources: self.resources };
        let result = maintain::settle(work, &mut writer, new);
        let made = writer.manifest().snapshots().iter().find(|made| Some(made.id) == summary.snapshot);
        summary.statistics = made.map_or(summary.statistics, |made| made.statistics);
        let end = match &result {
            Ok(_) => {
                let settled = writer.manifest().clone();
                writer.commit(settled, false, now()).map_err(EngineError::from)
            }
            Err(_) => writer.abandon(now()).map_err(EngineError::from),
        };
        match result.and_then(|migration| end.map(|()| migration)) {
            Ok(migration) => summary.migration = migration,
            Err(error) => self.resources.observer.notice(&Notice::NotSettled { reason: error.to_string() }),
        }
        summary
    }
}
