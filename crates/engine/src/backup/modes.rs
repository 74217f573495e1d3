//! Both ways of a run: without writing, or to a commit.

use super::checkpoint::Checkpoints;
use super::options::{BackupSummary, Source};
use super::previous;
use super::run::BackupRun;
use crate::EngineError;
use crate::delta::NewChunks;
use crate::pack::DrySink;
use crate::usage::{Usage, is_counted};
use crate::written::verify_written;
use siltstone_store::StoreError;
use siltstone_store::container::ContainerRecord;
use siltstone_store::manifest::{Manifest, PartTable};
use siltstone_store::series::{SeriesWriter, lost_containers, newest_manifest, parts_named, sizes_of_commit};

impl<'t> BackupRun<'t> {
    /// Runs all stages without writing.
    pub(super) fn dry_run(&self, source: Source) -> Result<BackupSummary, EngineError> {
        let id = self.repository.keys().series_id(self.series);
        let stored = newest_manifest(self.repository, id)?;
        let manifest = stored.map_or_else(|| Manifest::new(id, self.series), |stored| stored.manifest);
        self.tell_new_series(&manifest);
        let listed = self.repository.storage().list_containers(id).map_err(StoreError::from)?;
        let lost = lost_containers(self.repository, &manifest, &listed);
        let sink = DrySink::new(manifest.sequence + 1);
        let (outcome, _) = self.run_stages(source, &manifest, &lost, (&sink, None))?;
        self.refuse_shrunk(&manifest, &outcome.entries.statistics)?;
        let mut summary = self.summary(None, &manifest, &outcome);
        if is_counted(self.repository) {
            summary.usage = self.writing(manifest, outcome.packed.containers)?;
        }
        Ok(summary)
    }

    /// Usage for writing these containers and committing.
    fn writing(&self, mut manifest: Manifest, new: Vec<ContainerRecord>) -> Result<Usage, EngineError> {
        let mut usage = Usage::of_containers(self.repository, &new);
        usage.bytes_kept = i64::try_from(usage.bytes_sent).unwrap_or(i64::MAX);
        if manifest.sequence == 0 {
            usage += Usage::of_new_series();
        }
        let lease = manifest.sequence + 1;
        let parts =
            if manifest.sequence == 0 { PartTable::default() } else { parts_named(self.repository, &manifest)? };
        manifest.containers.extend(new);
        let sizes = sizes_of_commit(self.repository, &manifest, &parts, Some(lease))?;
        // The new snapshot names its chunks as those before it do: as short as all of them at most.
        usage += Usage::of_commits(0, 2 * sizes.object_bytes);
        usage += Usage::of_new_parts(&parts, &[&sizes]);
        Ok(usage)
    }

    /// Runs all stages and commits; gives too the new chunks, if the settling can use them.
    pub(super) fn run_and_commit(
        &self,
        source: Source,
        writer: &mut SeriesWriter<'t>,
    ) -> Result<(BackupSummary, Option<NewChunks>), EngineError> {
        let manifest = writer.manifest().clone();
        self.warn_of_clock(&manifest);
        self.tell_new_series(&manifest);
        let lost = writer.lost.clone();
        let checkpoints = Checkpoints::new(&mut *writer);
        let (mut outcome, known) = self.run_stages(source, &manifest, &lost, (&checkpoints, Some(&checkpoints)))?;
        self.refuse_incomplete(&outcome)?;
        let verify = self.options.verify_written;
        verify_written(verify, self.repository, manifest.series, outcome.packed.unverified())?;
        self.refuse_shrunk(&manifest, &outcome.entries.statistics)?;
        if self.is_unwanted(outcome.snapshot.root, &manifest) {
            if !outcome.assembled.healed.is_empty() {
                self.commit_healed(writer, &outcome)?;
            }
            return Ok((self.summary(None, &manifest, &outcome), None));
        }
        let mut summary = self.summary(None, &manifest, &outcome);
        // What an interrupted run stored was not looked at by this one: what resembles what is then found anew.
        let new = outcome.noted.new.take().filter(|_| previous::partial(&manifest).next().is_none());
        summary.snapshot = Some(self.commit(writer, &manifest, outcome, known.as_ref(), summary.statistics)?);
        Ok((summary, new))
    }
}
