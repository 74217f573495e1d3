//! Placing content: the chunks of a decoded region are verified and written wherever they belong.
//!
//! A file is made under a hidden name by the first worker that has something for it and gets its metadata and its name
//! from the one that writes the last byte, so no file stays open between regions. One of which a part is damaged never
//! gets its name.

use super::batch::{Batch, FileTask, Placement};
use super::told::Origin;
use crate::Observer;
use crate::chunks::ChunkSource;
use crate::fs::{ConflictPolicy, Draft, Problem, ProblemKind, Subject, TargetDir, TargetFile, aside};
use crate::observer::EntryAction;
use crate::parallel::lock;
use siltstone_store::StoreError;
use siltstone_store::catalog::EntryPath;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts that the workers share.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) files_restored: AtomicU64,
    pub(super) bytes_restored: AtomicU64,
    pub(super) files_verified: AtomicU64,
    pub(super) problems: AtomicU64,
}

/// State that all workers share.
pub(super) struct Placing<'a> {
    pub(super) target: &'a TargetDir,
    /// Given paths in the target, it tells those in the snapshot.
    pub(super) observer: &'a dyn Observer,
    pub(super) origin: &'a Origin,
    pub(super) counts: &'a Counts,
    /// Leave out chunks of zeros.
    pub(super) sparse: bool,
    pub(super) verify: bool,
    /// Keep what could be had of damaged files under another name.
    pub(super) keep_damaged: bool,
    pub(super) drafts: Drafts,
}

/// The drafts that lie in the target, by their serials, for when the restore is stopped.
#[derive(Debug, Default)]
pub(super) struct Drafts(Mutex<HashMap<u64, EntryPath>>);

impl Drafts {
    fn begun(&self, file: &FileTask) {
        lock(&self.0).insert(file.draft.serial, file.path.clone());
    }

    fn ended(&self, file: &FileTask) {
        lock(&self.0).remove(&file.draft.serial);
    }
}

impl Placing<'_> {
    /// Removes the drafts of files that will not be completed, because the restore ends here.
    pub(super) fn abandon(&self) {
        for (serial, path) in lock(&self.drafts.0).drain() {
            let _ = self.target.discard(&path, Draft { serial, on_conflict: ConflictPolicy::Keep });
        }
    }

    pub(super) fn report(&self, problem: &Problem) {
        self.counts.problems.fetch_add(1, Ordering::Relaxed);
        self.observer.problem(problem);
    }

    /// Deals with the ends of the files that are planned to their end.
    pub(super) fn end_files(&self, batch: &Batch) {
        for file in batch.ending() {
            // Nothing of it is under way: it is empty, a hole, or was written by the batch before.
            if file.deal_with(1) {
                self.end(file, self.open(file));
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
        let mut sound: Vec<(Placement, &[u8])> = Vec::with_capacity(placements.len());
        // Each chunk is verified once, however often it is placed.
        for of_one_chunk in placements.chunk_by(|a, b| a.number == b.number) {
            let bytes = self.verified(batch, of_one_chunk, chunks, plain);
            sound.extend(of_one_chunk.iter().map(|placement| (*placement, bytes)));
        }
        sound.sort_by_key(|(placement, _)| (placement.file, placement.file_offset));
        for of_one_file in sound.chunk_by(|(a, _), (b, _)| a.file == b.file) {
            let Some((first, _)) = of_one_file.first() else {
                continue;
            };
            self.write_to_file(&batch.files[first.file as usize], of_one_file, plain.unwrap_or(&[]));
        }
    }

    /// A chunk's bytes; none, and all files that hold it told, if it is damaged.
    fn verified<'p>(
        &self,
        batch: &Batch,
        of_one_chunk: &[Placement],
        chunks: &ChunkSource<'_>,
        plain: Result<&'p [u8], &StoreError>,
    ) -> &'p [u8] {
        let Some(first) = of_one_chunk.first() else { return &[] };
        let damaged = |error: &StoreError| {
            for placement in of_one_chunk {
                self.damaged(&batch.files[placement.file as usize], error);
            }
        };
        let verified = plain.map(|plain| chunks.verified(first.container as usize, &first.place, plain));
        match verified {
            Ok(Ok(bytes)) => return bytes,
            Ok(Err(error)) => damaged(&error),
            Err(error) => damaged(error),
        }
        &[]
    }

    /// Takes note that part of a file's content cannot be had.
    pub(super) fn damaged(&self, file: &FileTask, error: &StoreError) {
        if !file.damaged.swap(true, Ordering::Relaxed) {
            let outcome = match aside(&file.path) {
                Some(aside) if self.keep_damaged => {
                    format!("what could be had is kept as {}", Subject::Entry(self.origin.path(&aside)))
                }
                _ if file.draft.on_conflict == ConflictPolicy::Replace => "what stands there stays".to_owned(),
                _ => "it is left out".to_owned(),
            };
            self.report(&Problem::entry(&file.path, ProblemKind::ContentDamaged, format_args!("{error}; {outcome}")));
        }
    }

    fn write_to_file(&self, file: &FileTask, pieces: &[(Placement, &[u8])], plain: &[u8]) {
        let dealt: u64 = pieces.iter().map(|(placement, _)| u64::from(placement.place.chunk.length)).sum();
        if self.observer.wants_paths() {
            self.observer.at(&file.path);
        }
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
            self.end(file, open);
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
        let mut made = lock(&file.made);
        let open = if *made {
            self.target.open_draft(&file.path, file.draft)
        } else {
            self.target.create_file(&file.path, file.draft)
        };
        match open {
            Ok(open) => {
                if !std::mem::replace(&mut *made, true) {
                    self.drafts.begun(file);
                }
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

    /// All content has been dealt with: the file gets its name, or goes.
    fn end(&self, file: &FileTask, open: Option<TargetFile>) {
        let done = match open {
            Some(open) if !file.is_faulty() => self.complete(file, &open),
            open => {
                self.give_up(file, open.as_ref());
                return;
            }
        };
        match done {
            Ok(()) => self.drafts.ended(file),
            Err(problem) => {
                self.fail(file, &problem);
                self.give_up(file, None);
            }
        }
    }

    /// Length, metadata, name.
    fn complete(&self, file: &FileTask, open: &TargetFile) -> Result<(), Problem> {
        if file.has_holes.load(Ordering::Relaxed) || self.sparse {
            let sized = open.set_size(file.size);
            sized.map_err(|error| Problem::entry(&file.path, ProblemKind::NotWritten, error))?;
        }
        for problem in self.target.apply_to_file(open, &file.path, &file.metadata) {
            self.report(&problem);
        }
        self.target.publish(&file.path, file.draft)?;
        self.counts.files_restored.fetch_add(1, Ordering::Relaxed);
        self.observer.advance(1, 0);
        if self.observer.wants_entries() {
            self.observer.entry(&file.path, EntryAction::Restored, file.size);
        }
        Ok(())
    }

    /// Leaves what stood there before, which is better than half of what should. What could be had of a damaged file is
    /// kept under another name if the user wants it: of the file's length, for its owner only, and as young as it is.
    fn give_up(&self, file: &FileTask, open: Option<&TargetFile>) {
        let failed = file.failed.load(Ordering::Relaxed);
        let kept = match open.filter(|_| self.keep_damaged && !failed) {
            Some(open) => self.keep_aside(file, open).inspect_err(|problem| self.report(problem)).is_ok(),
            None => false,
        };
        if !kept {
            let _ = self.target.discard(&file.path, file.draft);
        }
        self.drafts.ended(file);
    }

    fn keep_aside(&self, file: &FileTask, open: &TargetFile) -> Result<(), Problem> {
        let sized = open.set_size(file.size);
        sized.map_err(|error| Problem::entry(&file.path, ProblemKind::NotWritten, error))?;
        self.target.set_aside(&file.path, file.draft)
    }
}
