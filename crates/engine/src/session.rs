//! Sessions: an open repository and the resources to work on it, which is what a program holds. Each method is a
//! command of its own, first refused where the memory is too little for it; the functions of the modules are below.

use crate::backup::{BackupOptions, BackupSummary, Source, backup};
use crate::check::{CheckOptions, CheckReport, check};
use crate::copy::{CopyOptions, CopySummary, Originals, copy};
use crate::dump::{Archive, dump, write_out};
use crate::file_reader::SnapshotReader;
use crate::forget::{
    ForgetOptions, ForgetPlan, ForgetSummary, RewritePlan, SnapshotSelection, held_by, plan_forget, plan_rewrite,
};
use crate::fs::PathFilter;
use crate::import::{ForeignRepository, ImportOptions, TarArchive, TarBytes, VerifySummary};
use crate::import::{import_snapshots, import_tar, verify_snapshots};
use crate::label::{LabelOptions, label};
use crate::maintain::{self, MaintainForecast, MaintainOptions, MaintainSummary, maintain};
use crate::protect::{ProtectSummary, protect};
use crate::repair::{self, RepairOptions, RepairPlan, RepairSummary};
use crate::restore::{RestoreOptions, RestoreSummary, restore};
use crate::snapshots::{self, SnapshotFilter, SnapshotKey, SnapshotView};
use crate::undelete::{UndeleteOptions, undelete};
use crate::unlock::{UnlockOptions, UnlockSummary, unlock};
use crate::{Command, EngineError, Resources};
use siltstone_store::catalog::EntryPath;
use siltstone_store::repository::{OpenOptions, Repository};
use siltstone_store::storage::Storage;
use std::borrow::Borrow;
use std::io::Write;
use std::sync::Arc;

/// An open repository and the resources to work on it. The repository is its own, or borrowed.
#[derive(Debug)]
pub struct Session<R = Repository> {
    repository: R,
    resources: Resources,
}

impl Session {
    /// Opens the repository in this storage.
    ///
    /// # Errors
    /// There is none, it is damaged, the password opens none of its keys, or trying it would take more memory than the
    /// resources have.
    pub fn open(storage: Arc<dyn Storage>, password: &[u8], resources: Resources) -> Result<Self, EngineError> {
        let options = OpenOptions::default().with_memory(resources.memory_bytes);
        Ok(Self::new(Repository::open_with(storage, password, &options)?, resources))
    }
}

impl<R: Borrow<Repository>> Session<R> {
    /// Works on a repository that is open already.
    pub fn new(repository: R, resources: Resources) -> Self {
        Self { repository, resources }
    }

    /// Returns the repository.
    pub fn repository(&self) -> &Repository {
        self.repository.borrow()
    }

    /// Returns the resources.
    pub fn resources(&self) -> &Resources {
        &self.resources
    }

    /// Returns the snapshots that pass, oldest first.
    ///
    /// # Errors
    /// Those of [`snapshots::list`].
    pub fn snapshots(&self, filter: &SnapshotFilter) -> Result<Vec<SnapshotView>, EngineError> {
        snapshots::list(self.repository(), filter)
    }

    /// Makes a snapshot of `source`.
    ///
    /// # Errors
    /// Those of [`backup`].
    pub fn backup(&self, source: Source, options: &BackupOptions) -> Result<BackupSummary, EngineError> {
        backup(self.repository(), source, options, &self.resources)
    }

    /// Makes a tar archive ready to be imported.
    ///
    /// # Errors
    /// Those of [`TarArchive::open`].
    pub fn open_tar(&self, name: &str, bytes: TarBytes) -> Result<TarArchive, EngineError> {
        TarArchive::open(name, bytes, self.repository(), &self.resources)
    }

    /// Makes a snapshot of what a tar archive holds.
    ///
    /// # Errors
    /// [`EngineError::MemoryTooSmall`]; those of [`import_tar`].
    pub fn import_tar(&self, archive: &TarArchive, options: &ImportOptions) -> Result<BackupSummary, EngineError> {
        import_tar(self.repository(), archive, options, &self.resources)
    }

    /// Brings snapshots of another program's repository over, oldest first.
    ///
    /// # Errors
    /// [`EngineError::MemoryTooSmall`]; those of [`import_snapshots`].
    pub fn import_snapshots(
        &self,
        source: &dyn ForeignRepository,
        snapshots: &[SnapshotView],
        options: &CopyOptions,
    ) -> Result<CopySummary, EngineError> {
        import_snapshots(source, snapshots, self.repository(), options, &self.resources)
    }

    /// Compares snapshots that were imported with their originals.
    ///
    /// # Errors
    /// Those of [`verify_snapshots`].
    pub fn verify_snapshots(
        &self,
        source: &dyn ForeignRepository,
        originals: &[SnapshotView],
    ) -> Result<VerifySummary, EngineError> {
        verify_snapshots(source, originals, self.repository(), &self.resources)
    }

    /// Copies snapshots of another repository into this one, oldest first.
    ///
    /// # Errors
    /// [`EngineError::MemoryTooSmall`]; those of [`copy`].
    pub fn copy_from<S: Borrow<Repository>>(
        &self,
        source: &Session<S>,
        snapshots: &[SnapshotView],
        options: &CopyOptions,
    ) -> Result<CopySummary, EngineError> {
        let originals = Originals { repository: source.repository(), snapshots, fetches: source.resources.fetches };
        copy(&originals, self.repository(), options, &self.resources)
    }

    /// Restores a snapshot, or part of it.
    ///
    /// # Errors
    /// [`EngineError::MemoryTooSmall`]; those of [`restore`].
    pub fn restore(&self, snapshot: &SnapshotView, options: &RestoreOptions) -> Result<RestoreSummary, EngineError> {
        self.resources.suffice_for(Command::Restore, self.repository())?;
        restore(self.repository(), snapshot, options, &self.resources)
    }

    /// Writes a file of a snapshot, or an archive of a folder.
    ///
    /// # Errors
    /// [`EngineError::MemoryTooSmall`]; those of [`dump`].
    pub fn dump(
        &self,
        snapshot: &SnapshotView,
        path: Option<&EntryPath>,
        archive: Archive,
        output: &mut dyn Write,
    ) -> Result<(), EngineError> {
        self.resources.suffice_for(Command::Dump, self.repository())?;
        dump(self.repository(), snapshot, path, archive, output, &self.resources)
    }

    /// Writes an archive of a snapshot, or of part of it.
    ///
    /// # Errors
    /// [`EngineError::MemoryTooSmall`]; those of [`dump`], but for [`EngineError::NotDumpable`].
    pub fn export(
        &self,
        snapshot: &SnapshotView,
        path: Option<&EntryPath>,
        archive: Archive,
        output: &mut dyn Write,
    ) -> Result<(), EngineError> {
        self.resources.suffice_for(Command::Dump, self.repository())?;
        write_out(self.repository(), snapshot, (path, false), archive, output, &self.resources)
    }

    /// Opens the files of a snapshot for reading anywhere in them.
    ///
    /// # Errors
    /// Those of [`SnapshotReader::open`].
    pub fn files(&self, snapshot: &SnapshotView) -> Result<SnapshotReader<'_>, EngineError> {
        SnapshotReader::open(self.repository(), snapshot, &self.resources)
    }

    /// Chooses what to forget. Nothing is written.
    ///
    /// # Errors
    /// Those of [`plan_forget`].
    pub fn plan_forget(
        &self,
        selection: SnapshotSelection,
        options: &ForgetOptions,
    ) -> Result<ForgetPlan, EngineError> {
        plan_forget(self.repository(), selection, options)
    }

    /// Returns what executing a plan would do, to the byte.
    ///
    /// # Errors
    /// [`EngineError::MemoryTooSmall`]; those of [`ForgetPlan::forecast`].
    pub fn forecast(&self, plan: &ForgetPlan) -> Result<ForgetSummary, EngineError> {
        let resources = self.resources.beside_containers(Command::Forget, self.repository())?;
        plan.forecast(self.repository(), &resources)
    }

    /// Removes or marks the snapshots of a plan.
    ///
    /// # Errors
    /// [`EngineError::MemoryTooSmall`]; those of [`ForgetPlan::execute`].
    pub fn execute(&self, plan: &ForgetPlan) -> Result<ForgetSummary, EngineError> {
        let resources = self.resources.beside_containers(Command::Forget, self.repository())?;
        plan.execute(self.repository(), &resources)
    }

    /// Looks which of these snapshots have what a filter excludes. Nothing is written.
    ///
    /// # Errors
    /// [`EngineError::MemoryTooSmall`]; those of [`plan_rewrite`].
    pub fn plan_rewrite(
        &self,
        snapshots: Vec<SnapshotView>,
        filter: PathFilter,
        options: &ForgetOptions,
    ) -> Result<RewritePlan, EngineError> {
        let resources = self.resources.beside_containers(Command::Forget, self.repository())?;
        plan_rewrite(self.repository(), snapshots, filter, options, &resources)
    }

    /// Returns what carrying out a plan of rewriting would do, to the byte.
    ///
    /// # Errors
    /// [`EngineError::MemoryTooSmall`]; those of [`RewritePlan::forecast`].
    pub fn forecast_rewrite(&self, plan: &RewritePlan) -> Result<ForgetSummary, EngineError> {
        let resources = self.resources.beside_containers(Command::Forget, self.repository())?;
        plan.forecast(self.repository(), &resources)
    }

    /// Takes out of snapshots what a plan says.
    ///
    /// # Errors
    /// [`EngineError::MemoryTooSmall`]; those of [`RewritePlan::execute`].
    pub fn rewrite(&self, plan: &RewritePlan) -> Result<ForgetSummary, EngineError> {
        let resources = self.resources.beside_containers(Command::Forget, self.repository())?;
        plan.execute(self.repository(), &resources)
    }

    /// Returns the bytes that come back when these snapshots, marked as deleted, are removed.
    ///
    /// # Errors
    /// [`EngineError::MemoryTooSmall`]; those of [`held_by`].
    pub fn held_by(&self, snapshots: &[SnapshotKey], options: &ForgetOptions) -> Result<i64, EngineError> {
        let resources = self.resources.beside_containers(Command::Forget, self.repository())?;
        held_by(self.repository(), snapshots, options, &resources)
    }

    /// Takes the marks off snapshots; returns how many had one.
    ///
    /// # Errors
    /// Those of [`undelete`].
    pub fn undelete(&self, snapshots: &[SnapshotKey], options: &UndeleteOptions) -> Result<u64, EngineError> {
        undelete(self.repository(), snapshots, options, &self.resources)
    }

    /// Changes tags and description of snapshots; returns how many differ now.
    ///
    /// # Errors
    /// Those of [`label`].
    pub fn label(&self, snapshots: &[SnapshotKey], options: &LabelOptions) -> Result<u64, EngineError> {
        label(self.repository(), snapshots, options, &self.resources)
    }

    /// Settles what backups left behind, and ends marks that are over.
    ///
    /// # Errors
    /// [`EngineError::MemoryTooSmall`]; those of [`maintain()`].
    pub fn maintain(&self, options: &MaintainOptions) -> Result<MaintainSummary, EngineError> {
        let resources = self.resources.beside_containers(options.command(), self.repository())?;
        maintain(self.repository(), options, &resources)
    }

    /// Returns what [`Session::maintain`] and then [`Session::protect`] would do. Nothing is written to the repository.
    /// `parity` is the share of files' data, in percent, that would be set first.
    ///
    /// # Errors
    /// [`EngineError::MemoryTooSmall`]; those of [`maintain::forecast`].
    pub fn forecast_maintenance(
        &self,
        parity: Option<u8>,
        options: &MaintainOptions,
    ) -> Result<MaintainForecast, EngineError> {
        let resources = self.resources.beside_containers(options.command(), self.repository())?;
        maintain::forecast(self.repository(), parity, options, &resources)
    }

    /// Gives all containers the parity that the repository's settings want; `user` is recorded in the lease.
    ///
    /// # Errors
    /// Those of [`protect`].
    pub fn protect(&self, user: &str) -> Result<ProtectSummary, EngineError> {
        protect(self.repository(), user, &self.resources)
    }

    /// Looks for damage.
    ///
    /// # Errors
    /// [`EngineError::MemoryTooSmall`]; those of [`check`].
    pub fn check(&self, options: &CheckOptions) -> Result<CheckReport, EngineError> {
        self.resources.suffice_for(Command::Check, self.repository())?;
        check(self.repository(), options, &self.resources)
    }

    /// Looks for what is wrong, and decides what to do about it.
    ///
    /// # Errors
    /// [`EngineError::MemoryTooSmall`]; those of [`repair::plan`].
    pub fn plan_repair(&self, options: &RepairOptions) -> Result<RepairPlan, EngineError> {
        let resources = self.resources.beside_containers(Command::Repair, self.repository())?;
        repair::plan(self.repository(), options, &resources)
    }

    /// Does what a plan of a repair says; returns too the errors of what could not be repaired.
    ///
    /// # Errors
    /// [`EngineError::MemoryTooSmall`]; those of [`repair::execute`].
    pub fn repair(
        &self,
        plan: RepairPlan,
        options: &RepairOptions,
    ) -> Result<(RepairSummary, Vec<EngineError>), EngineError> {
        let resources = self.resources.beside_containers(Command::Repair, self.repository())?;
        repair::execute(self.repository(), plan, options, &resources)
    }

    /// Ends leases of writers that are gone.
    ///
    /// # Errors
    /// Those of [`unlock`].
    pub fn unlock(&self, options: &UnlockOptions) -> Result<UnlockSummary, EngineError> {
        unlock(self.repository(), options, &self.resources)
    }
}
