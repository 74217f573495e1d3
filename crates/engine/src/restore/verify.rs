//! Reading back what was restored, or what was kept, and comparing every chunk with its fingerprint.

use super::batch::{Batch, FileTask, Placement};
use super::place::Placing;
use super::run::RestoreRun;
use crate::chunks::ChunkSource;
use crate::fs::{NodeKind, Problem, ProblemKind, Status, TargetDir, TargetFile};
use siltstone_store::catalog::{Content, Entry, EntryPath};
use siltstone_store::container::ChunkPlace;
use siltstone_store::recipe::{Piece, Recipe, RecipeReader};
use siltstone_store::{ChunkNumber, StoreError};
use std::sync::atomic::Ordering;

/// Bytes of a hole that are read at once.
const ZEROS_BYTES: usize = 64 << 10;

impl Placing<'_> {
    /// Verifies a finished batch. A file that goes on in the next batch is verified as far as it is written.
    pub(super) fn verify_batch(&self, batch: &Batch, chunks: &ChunkSource<'_>) {
        let mut by_file: Vec<&Placement> = batch.placements.iter().collect();
        by_file.sort_unstable_by_key(|placement| (placement.file, placement.file_offset));
        let mut groups = by_file.chunk_by(|a, b| a.file == b.file).peekable();
        for (number, file) in batch.files.iter().enumerate() {
            let group =
                groups.next_if(|group| group.first().is_some_and(|placement| placement.file as usize == number));
            if file.is_faulty() {
                continue;
            }
            match self.verify_file(file, group.unwrap_or(&[]), chunks) {
                Ok(()) => {
                    self.counts.files_verified.fetch_add(u64::from(file.is_complete()), Ordering::Relaxed);
                }
                Err(reason) => self.report(&Problem::entry(&file.path, ProblemKind::VerifyFailed, reason)),
            }
        }
    }

    fn verify_file(&self, file: &FileTask, placements: &[&Placement], chunks: &ChunkSource<'_>) -> Result<(), String> {
        let open = if file.is_complete() {
            let open = self.target.open_existing(&file.path).map_err(|error| error.to_string())?;
            has_size(&open, file.size)?;
            open
        } else {
            self.target.open_draft(&file.path, file.draft).map_err(|problem| problem.reason)?
        };
        let mut reading = Reading { open, chunks, buffer: Vec::new() };
        placements
            .iter()
            .try_for_each(|placement| reading.chunk(placement.number, &placement.place, placement.file_offset))
    }
}

impl RestoreRun<'_> {
    /// Compares what stands in the target and would be kept with the entry: a file's bytes, a link's target.
    ///
    /// # Errors
    /// [`ProblemKind::VerifyFailed`] if they differ, [`ProblemKind::ContentDamaged`] if the repository cannot say.
    pub(super) fn compare(
        &self,
        target: &TargetDir,
        chunks: &ChunkSource<'_>,
        path: &EntryPath,
        entry: &Entry,
        there: &Status,
    ) -> Result<(), Problem> {
        let differs = |reason: &str| Err(Problem::entry(path, ProblemKind::VerifyFailed, reason));
        match &entry.content {
            Content::File { .. } if there.kind != NodeKind::File => differs("it is no regular file"),
            Content::Symlink { .. } if there.kind != NodeKind::Symlink => differs("it is no symbolic link"),
            Content::Symlink { target: to } => match target.read_link(path) {
                Ok(found) if found == *to => Ok(()),
                Ok(_) => differs("it points elsewhere"),
                Err(error) => differs(&error.to_string()),
            },
            Content::File { size, recipe } => {
                let compared = target
                    .open_existing(path)
                    .map_err(|error| error.to_string())
                    .and_then(|open| has_size(&open, *size).map(|()| Reading { open, chunks, buffer: Vec::new() }))
                    .map_err(Difference::Found)
                    .and_then(|mut reading| reading.content(recipe, &|| self.resources.observer.is_cancelled()));
                compared.map_err(|difference| match difference {
                    Difference::Found(reason) => Problem::entry(path, ProblemKind::VerifyFailed, reason),
                    Difference::Unknown(error) => {
                        let reason = format!("what is there cannot be compared: {error}");
                        Problem::entry(path, ProblemKind::ContentDamaged, reason)
                    }
                })
            }
            _ => Ok(()),
        }
    }
}

fn has_size(open: &TargetFile, wanted: u64) -> Result<(), String> {
    let size = open.size().map_err(|error| error.to_string())?;
    if size == wanted { Ok(()) } else { Err(format!("it has {size} bytes instead of {wanted}")) }
}

/// Why a file is not said to be the snapshot's.
enum Difference {
    /// It is not, or cannot be read.
    Found(String),
    /// The repository cannot say.
    Unknown(StoreError),
}

impl From<StoreError> for Difference {
    fn from(error: StoreError) -> Self {
        Self::Unknown(error)
    }
}

/// A file being compared.
struct Reading<'c, 'r> {
    open: TargetFile,
    chunks: &'c ChunkSource<'r>,
    buffer: Vec<u8>,
}

impl Reading<'_, '_> {
    /// Compares all of it, or as far as it comes before `is_cancelled`.
    fn content(&mut self, recipe: &Recipe, is_cancelled: &dyn Fn() -> bool) -> Result<(), Difference> {
        let mut at = 0;
        for piece in RecipeReader::new(recipe, self.chunks) {
            match piece? {
                Piece::Run(run) => {
                    for number in run.range().map(ChunkNumber) {
                        if is_cancelled() {
                            return Ok(());
                        }
                        let (_, place) = self.chunks.place_of(number)?;
                        self.chunk(number, &place, at).map_err(Difference::Found)?;
                        at = at.saturating_add(u64::from(place.chunk.length));
                    }
                }
                Piece::Hole(bytes) => {
                    self.zeros(at, bytes, is_cancelled).map_err(Difference::Found)?;
                    at = at.saturating_add(bytes);
                }
            }
        }
        Ok(())
    }

    fn chunk(&mut self, number: ChunkNumber, place: &ChunkPlace, at: u64) -> Result<(), String> {
        self.buffer.resize(place.chunk.length as usize, 0);
        self.open.read_exact_at(&mut self.buffer, at).map_err(|error| error.to_string())?;
        if self.chunks.repository().keys().fingerprint_of(number, &self.buffer) == place.chunk.fingerprint {
            return Ok(());
        }
        Err(format!("the content at byte {at} differs"))
    }

    fn zeros(&mut self, at: u64, bytes: u64, is_cancelled: &dyn Fn() -> bool) -> Result<(), String> {
        let end = at.saturating_add(bytes);
        for start in (at..end).step_by(ZEROS_BYTES) {
            if is_cancelled() {
                break;
            }
            self.buffer.resize(usize::try_from(end - start).unwrap_or(ZEROS_BYTES).min(ZEROS_BYTES), 0);
            self.open.read_exact_at(&mut self.buffer, start).map_err(|error| error.to_string())?;
            if self.buffer.iter().any(|byte| *byte != 0) {
                return Err(format!("the content at byte {start} differs"));
            }
        }
        Ok(())
    }
}
