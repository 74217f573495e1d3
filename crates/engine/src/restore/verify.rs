//! Reading back what was restored, and comparing every chunk with its fingerprint.

use super::batch::{Batch, FileTask, Placement};
use super::place::Placing;
use crate::chunks::ChunkSource;
use crate::fs::{Problem, ProblemKind};
use std::sync::atomic::Ordering;

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
            let size = open.size().map_err(|error| error.to_string())?;
            if size != file.size {
                return Err(format!("it has {size} bytes instead of {}", file.size));
            }
            open
        } else {
            self.target.open_draft(&file.path, file.draft).map_err(|problem| problem.reason)?
        };
        let mut buffer = Vec::new();
        for placement in placements {
            buffer.resize(placement.place.chunk.length as usize, 0);
            open.read_exact_at(&mut buffer, placement.file_offset).map_err(|error| error.to_string())?;
            let fingerprint = chunks.repository().keys().fingerprint_of(placement.number, &buffer);
            if fingerprint != placement.place.chunk.fingerprint {
                return Err(format!("the content at byte {} differs", placement.file_offset));
            }
        }
        Ok(())
    }
}
