//! The beginning of a backup: how its memory is divided, and what it has to know of the snapshot before.

use super::assemble::Knowledge;
use super::borrow::{Borrowing, MakesLoans};
use super::cache::{Cache, open_index, sketches_identity};
use super::checkpoint::Checkpoints;
use super::flow::Unusable;
use super::local::LocalCatalog;
use super::older::Older;
use super::options::{Borrow, Source};
use super::outcome::RunOutcome;
use super::previous::{last_whole, needed};
use super::run::BackupRun;
use super::sample::read_sample;
use super::select::{Known, Origin};
use super::sketch_file::SketchDraft;
use super::stages::{DeltaSelection, Stages};
use crate::EngineError;
use crate::chunks::ChunkSource;
use crate::delta::{Deltas, ForwardPolicy, NewChunksRoom};
use crate::observer::Notice;
use crate::pack::ContainerSink;
use crate::resources::shares::{BackupShares, BackupUses};
use crate::written::VerifyWritten;
use roaring::RoaringTreemap;
use siltstone_store::ContainerId;
use siltstone_store::manifest::Manifest;
use std::path::Path;
use std::sync::Arc;

/// Indexes of containers kept open for reading bases; one takes up to about 0.7 MB, mostly far less.
const READERS_MAX: usize = 24;
/// The part of the memory for fingerprints that those of lenders' chunks take.
const BORROWED_PART: u64 = 4;

impl<'t> BackupRun<'t> {
    /// Runs all stages to the end of the source; gives too what new chunks were encoded against, if they were.
    pub(super) fn run_stages(
        &self,
        source: Source,
        manifest: &Manifest,
        lost: &[ContainerId],
        (sink, checkpoints): (&dyn ContainerSink, Option<&Checkpoints<'_, 't>>),
    ) -> Result<(RunOutcome, Option<Known>), EngineError> {
        let cache = self.resources.cache.as_deref().map(|folder| Cache::new(folder, self.repository, manifest.series));
        let local = LocalCatalog::open(self, manifest, cache.as_ref());
        let chunks = ChunkSource::with_limits(self.repository, manifest, 8, 12 << 20).with_catalog(local.catalog());
        let (mut lost, mut found) = self.lost(manifest, lost, &chunks)?;
        let spill = self.resources.scratch_of(self.repository);
        let uses = self.uses(manifest);
        let shares = self.resources.backup_shares(uses);
        let index = open_index(
            self.repository,
            manifest,
            cache.as_ref(),
            &chunks,
            (&mut lost, &mut found),
            shares.index_bytes - shares.index_bytes / BORROWED_PART,
            spill.as_ref(),
            &*self.resources.observer,
        )?;
        let older = uses.reaches_back.then(|| {
            let room = (shares.older_bytes, spill.as_path());
            Older::open(self.repository, manifest, cache.as_ref(), &chunks, &lost, room, &*self.resources.observer)
        });
        let older = older.transpose()?;
        // The selector reads what is stored.
        let mut selection = match self.options.deltas.forward().filter(|_| self.repository.may_read()) {
            Some(forward) => {
                Some(self.open_selection(forward, manifest, cache.as_ref(), &lost, shares, spill.as_ref())?)
            }
            None => None,
        };
        let unusable = Unusable { lost, ..Unusable::default() };
        let is_for_migration = self.settles() && last_whole(manifest).is_some() && self.options.deltas.is_reverse();
        let BackupShares { similar_bytes, text_bytes, .. } = shares;
        // Where nothing is read back once it is written, what old chunks come to hang on is read for that.
        let text_bytes = if self.options.verify_written == VerifyWritten::Never { 0 } else { text_bytes };
        let new_chunks = is_for_migration.then_some(NewChunksRoom { similar_bytes, text_bytes });
        let (chunks, unusable, local_catalog) = (&chunks, &unusable, &local);
        let room = (shares.index_bytes / BORROWED_PART, spill.as_ref());
        let borrowing = Borrowing::new(self, manifest, checkpoints.map(|made| made as &dyn MakesLoans), room);
        let known = Knowledge { index, older, borrowing, waiting_bytes: shares.lender_bytes };
        let linked_bytes = shares.linked_bytes;
        let stages = Stages {
            run: self,
            manifest,
            chunks,
            unusable,
            sink,
            checkpoints,
            new_chunks,
            linked_bytes,
            local_catalog,
        };
        let mut outcome = stages.run(source, known, selection.as_mut())?;
        outcome.found = found;
        outcome.catalog = local.into_draft();
        Ok((outcome, selection.map(|selection| selection.known)))
    }

    /// The chunks that cannot be had: of containers that are gone, known to be damaged, or found so by a sample, and
    /// what hangs on them. Gives too those of them that were found damaged where they lie just now.
    fn lost(
        &self,
        manifest: &Manifest,
        containers: &[ContainerId],
        chunks: &ChunkSource<'_>,
    ) -> Result<(RoaringTreemap, RoaringTreemap), EngineError> {
        let gone = lost_numbers(manifest, containers);
        let live = manifest.live();
        let mut known = &manifest.damaged & &live;
        known |= &live - answered(manifest) - manifest.imported();
        let sample_bytes = self.options.sample_bytes_of(self.repository.storage());
        let sample_bytes = if self.repository.may_read() { sample_bytes } else { 0 };
        let sampled = read_sample(chunks, manifest, sample_bytes, self.resources.workers)?;
        let found = &sampled.damaged - &gone;
        for error in &sampled.errors {
            self.resources.observer.notice(&Notice::DamageMet { reason: error.to_string() });
        }
        let (gone_chunks, known_chunks) = (gone.len(), (&known - &gone).len());
        let mut lost = gone | known | &found;
        if !lost.is_empty() {
            chunks.add_dependents(&mut lost)?;
        }
        if gone_chunks > 0 {
            self.resources.observer.notice(&Notice::ContainersLost { chunks: gone_chunks });
        }
        if known_chunks > 0 {
            self.resources.observer.notice(&Notice::DamageKnown { chunks: known_chunks });
        }
        Ok((lost, found))
    }

    /// Uses that this backup has for its memory.
    fn uses(&self, manifest: &Manifest) -> BackupUses {
        let is_first = last_whole(manifest).is_none();
        let (selects, sketches) = match self.options.deltas {
            Deltas::Off => (false, false),
            Deltas::Reverse { .. } => (false, self.settles() && !is_first),
            Deltas::Forward { .. } | Deltas::Custom(_) => (self.repository.may_read(), !is_first),
        };
        let reaches_back = self.options.deltas.reaches_back() && manifest.snapshots().len() > 1;
        let looks_for_lenders = is_first && self.options.borrow == Borrow::Auto && self.repository.may_read();
        let known_chunks = needed(manifest).len();
        BackupUses { list_bytes: self.list_bytes, selects, sketches, known_chunks, reaches_back, looks_for_lenders }
    }

    /// Makes ready for encoding new chunks against old ones.
    fn open_selection(
        &self,
        forward: ForwardPolicy,
        manifest: &Manifest,
        cache: Option<&Cache>,
        lost: &RoaringTreemap,
        BackupShares { similar_bytes, segment_bytes_max, waiting_bytes, .. }: BackupShares,
        spill: &Path,
    ) -> Result<DeltaSelection<'t>, EngineError> {
        let chunks = Arc::new(ChunkSource::with_limits(self.repository, manifest, READERS_MAX, 0));
        let needed = needed(manifest) - lost;
        let key = self.repository.keys().cache_key();
        let last = last_whole(manifest).map(|last| sketches_identity(manifest, last.id));
        let origin = Origin {
            needed,
            manifest,
            chunks: chunks.clone(),
            cache: cache.zip(last).map(|(cache, identity)| (cache.sketches.as_path(), identity, key)),
            spill,
            memory_bytes: similar_bytes,
            waiting_bytes,
            resources: self.resources,
        };
        let known = Known::open(forward, &origin)?;
        let draft = (cache.is_some() && !self.options.dry_run).then(|| SketchDraft::new(spill)).transpose();
        let draft = draft.unwrap_or_else(|error| {
            self.resources.observer.notice(&Notice::IndexNotSaved { reason: error.to_string() });
            None
        });
        let segment_bytes = usize::try_from(self.options.segment_bytes.min(segment_bytes_max)).unwrap_or(usize::MAX);
        Ok(DeltaSelection { known, chunks, segment_bytes, waiting_bytes, spill_folder: spill.to_owned(), draft })
    }
}

/// The chunk numbers that some container answers for.
fn answered(manifest: &Manifest) -> RoaringTreemap {
    let mut numbers = RoaringTreemap::new();
    for run in manifest.containers.iter().flat_map(|record| &record.chunks) {
        numbers.insert_range(run.range());
    }
    numbers
}

/// The chunk numbers of containers that the storage lost.
fn lost_numbers(manifest: &Manifest, lost: &[ContainerId]) -> RoaringTreemap {
    let mut numbers = RoaringTreemap::new();
    for record in manifest.containers.iter().filter(|record| lost.contains(&record.id)) {
        for run in &record.chunks {
            numbers.insert_range(run.range());
        }
    }
    numbers
}
