//! Placing content: the chunks of a decoded region are verified and written wherever they belong.
//!
//! A file is made by the first worker that has something for it and gets its metadata and its name from the one that writes the
//! last byte, so no file stays open between regions.

use super::batch::{Batch, FileTask, Placement};
use super::fetch::Fetching;
use crate::Observer;
use crate::chunks::ChunkSource;
use crate::fs::{Draft, Problem, ProblemKind, TargetDir, TargetFile};
use crate::observer::EntryAction;
use siltstone_store::{ChunkNumber, StoreError};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts that the workers share.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) files_restored: AtomicU64,
    pub(super) bytes_restored: AtomicU64,
    pub(super) files_verified: AtomicU64,
    pub(super) problems: AtomicU64,
}

/// What all workers share.
pub(super) struct Placing<'a> {
    pub(super) target: &'a TargetDir,
    pub(super) observer: &'a dyn Observer,
    pub(super) counts: &'a Counts,
    /// Leave out chunks of zeros.
    pub(super) sparse: bool,
    pub(super) verify: bool,
    pub(super) fetching: &'a Fetching<'a>,
}

impl Placing<'_> {
    pub(super) fn report(&self, problem: &Problem) {
        self.counts.problems.fetch_add(1, Ordering::Relaxed);
        self.observer.problem(problem);
    }

    /// Deals with the ends of the files that are planned to their end.
    pub(super) fn end_files(&self, batch: &Batch) {
        for file in batch.ending() {
            // Nothing of it is under way: it is empty, a hole, or was written by the batch before.
            if file.deal_with(1)
                && let Some(open) = self.open(file)
            {
                self.complete(file, &open);
            }
        }
    }

    /// Writes placements of one region, given its plain bytes or what became of them.
    pub(super) fn write_placements(
        &self,
        batch: &Batch,
        placements: &[Placement],
        chunks: &ChunkSource<'_>,
        plain: Result<&[u8], &StoreError>,
    ) {
        // Verify each chunk once, however often it is placed.
        let mut sound: Vec<(Placement, &[u8])> = Vec::with_capacity(placements.len());
        let mut last: Option<(ChunkNumber, Option<&[u8]>)> = None;
        for placement in placements {
            let bytes = match (&last, plain) {
                (Some((number, bytes)), _) if *number == placement.number => *bytes,
                (_, Ok(plain)) => match chunks.verified(placement.container as usize, &placement.place, plain) {
                    Ok(bytes) => Some(bytes),
                    Err(error) => {
                        self.damaged(batch, placement, &error);
                        None
                    }
                },
                (_, Err(error)) => {
                    self.damaged(batch, placement, error);
                    None
                }
            };
            if bytes.is_none() && last.is_some_and(|(number, _)| number == placement.number) {
                let file = &batch.files[placement.file as usize];
                file.damaged.store(true, Ordering::Relaxed);
            }
            last = Some((placement.number, bytes));
            sound.push((*placement, bytes.unwrap_or(&[])));
        }
        sound.sort_by_key(|(placement, _)| (placement.file, placement.file_offset));
        for of_one_file in sound.chunk_by(|(a, _), (b, _)| a.file == b.file) {
            let Some((first, _)) = of_one_file.first() else {
                continue;
            };
            self.write_to_file(&batch.files[first.file as usize], of_one_file, plain.unwrap_or(&[]));
        }
    }

    fn damaged(&self, batch: &Batch, placement: &Placement, error: &StoreError) {
        let file = &batch.files[placement.file as usize];
        if !file.damaged.swap(true, Ordering::Relaxed) {
            self.report(&Problem::entry(&file.path, ProblemKind::ContentDamaged, error));
        }
    }

    fn write_to_file(&self, file: &FileTask, pieces: &[(Placement, &[u8])], plain: &[u8]) {
        let dealt: u64 = pieces.iter().map(|(placement, _)| u64::from(placement.place.chunk.length)).sum();
        let open = self.open(file);
        if let Some(open) = &open {
            let joins = |(a, a_bytes): &(Placement, &[u8]), (b, b_bytes): &(Placement, &[u8])| {
                let is_next = a.place.offset + a_bytes.len() == b.place.offset;
                is_next
                    && a.file_offset + a_bytes.len() as u64 == b.file_offset
                    && !a_bytes.is_empty()
                    && !b_bytes.is_empty()
            };
            for run in pieces.chunk_by(joins) {
                if let Err(error) = self.write_run(open, run, plain) {
                    self.fail(file, &Problem::entry(&file.path, ProblemKind::NotWritten, error));
                    break;
                }
            }
        }
        self.observer.advance(0, dealt);
        if file.deal_with(dealt) {
            match open {
                Some(open) => self.complete(file, &open),
                None => self.give_up(file),
            }
        }
    }

    /// Writes chunks that follow each other both in the region and in the file.
    fn write_run(&self, open: &TargetFile, run: &[(Placement, &[u8])], plain: &[u8]) -> std::io::Result<()> {
        let (Some((first, first_bytes)), Some((last, last_bytes))) = (run.first(), run.last()) else {
            return Ok(());
        };
        if first_bytes.is_empty() {
            return Ok(());
        }
        if self.sparse {
            for (placement, bytes) in run {
                if bytes.iter().any(|byte| *byte != 0) {
                    self.counts.bytes_restored.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                    open.write_all_at(bytes, placement.file_offset)?;
                }
            }
            return Ok(());
        }
        let bytes = &plain[first.place.offset..last.place.offset + last_bytes.len()];
        self.counts.bytes_restored.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        open.write_all_at(bytes, first.file_offset)
    }

    /// Opens the draft, making it if this is the first time; `None` if the file has failed.
    fn open(&self, file: &FileTask) -> Option<TargetFile> {
        if file.failed.load(Ordering::Relaxed) {
            return None;
        }
        let mut made = file.made.lock().unwrap_or_else(PoisonError::into_inner);
        let open = if *made {
            self.target.open_draft(&file.path, file.draft)
        } else {
            self.target.create_file(&file.path, file.draft)
        };
        match open {
            Ok(open) => {
                *made = true;
                Some(open)
            }
            Err(problem) => {
                self.fail(file, &problem);
                None
            }
        }
    }

    fn fail(&self, file: &FileTask, problem: &Problem) {
        if !file.failed.swap(true, Ordering::Relaxed) {
            self.report(problem);
        }
    }

    /// All content is in place: length, metadata, name.
    fn complete(&self, file: &FileTask, open: &TargetFile) {
        let damaged = file.damaged.load(Ordering::Relaxed);
        let failed = file.failed.load(Ordering::Relaxed);
        if failed || (damaged && file.draft != Draft::InPlace) {
            return self.give_up(file);
        }
        if (file.has_holes.load(Ordering::Relaxed) || self.sparse || damaged)
            && let Err(error) = open.set_size(file.size)
        {
            return self.fail(file, &Problem::entry(&file.path, ProblemKind::NotWritten, error));
        }
        for problem in self.target.apply_to_file(open, &file.path, &file.metadata) {
            self.report(&problem);
        }
        if let Err(problem) = self.target.publish(&file.path, file.draft) {
            return self.fail(file, &problem);
        }
        self.counts.files_restored.fetch_add(1, Ordering::Relaxed);
        self.observer.advance(1, 0);
        if self.observer.wants_entries() {
            self.observer.entry(&file.path, EntryAction::Restored, file.size);
        }
    }

    /// Leaves what stood there before, which is better than half of what should.
    fn give_up(&self, file: &FileTask) {
        if file.draft != Draft::InPlace {
            let _ = self.target.discard(&file.path, file.draft);
        }
    }
}
