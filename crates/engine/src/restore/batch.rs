//! Batches of files restored together, with the place of every chunk in the repository and in its file.
//!
//! Planning a file looks each of its chunks up, in order; a [`FilePlan`] stops when the batch is full and goes on in
//! the next one, so that a file of any size is restored in the memory of two batches.

use crate::chunks::{Address, ChunkSource};
use crate::fs::Draft;
use siltstone_store::catalog::{EntryPath, Metadata};
use siltstone_store::container::ChunkPlace;
use siltstone_store::recipe::{Piece, Recipe, RecipeReader};
use siltstone_store::{ChunkNumber, StoreError};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Bytes of memory that a file of a batch is counted as: its metadata, its path, its share of the lists.
const FILE_BYTES: u64 = 1000;
/// Bytes of memory that a placement is counted as: itself, and its share of the plan of what is decoded for it.
const PLACEMENT_BYTES: u64 = 100;

/// A regular file to be restored.
pub(super) struct FileTask {
    pub(super) path: EntryPath,
    pub(super) metadata: Metadata,
    pub(super) size: u64,
    pub(super) draft: Draft,
    /// True if the draft exists.
    pub(super) made: Mutex<bool>,
    /// True if the length must be set: the end of the file may not be written.
    pub(super) has_holes: AtomicBool,
    /// True if part of the content could not be had.
    pub(super) damaged: AtomicBool,
    /// True if it cannot be written at all, which has been reported.
    pub(super) failed: AtomicBool,
    /// Bytes of content planned and not yet dealt with, and one more until planning has ended.
    left: AtomicU64,
}

impl FileTask {
    fn new(path: EntryPath, metadata: Metadata, draft: Draft, size: u64) -> Self {
        Self {
            path,
            metadata,
            size,
            draft,
            made: Mutex::new(false),
            has_holes: AtomicBool::new(false),
            damaged: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            left: AtomicU64::new(1),
        }
    }

    /// Counts bytes as dealt with; `true` for the last ones.
    pub(super) fn deal_with(&self, bytes: u64) -> bool {
        self.left.fetch_sub(bytes, Ordering::AcqRel) == bytes
    }

    /// Tells whether all of the content has been dealt with.
    pub(super) fn is_complete(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }

    /// Tells whether some content could not be had, or the file cannot be written: then nothing gets its name. Known
    /// once its batch is done.
    pub(super) fn is_faulty(&self) -> bool {
        self.damaged.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed)
    }
}

/// Where a chunk lies and where it goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placement {
    pub(super) number: ChunkNumber,
    pub(super) container: u32,
    pub(super) place: ChunkPlace,
    /// Index into the batch's files.
    pub(super) file: u32,
    pub(super) file_offset: u64,
}

impl Placement {
    /// The region that it lies in.
    pub(super) fn address(&self) -> Address {
        Address { container: self.container as usize, region: self.place.region }
    }
}

/// Files, or the last part of one and the first of another, that are restored together.
pub(super) struct Batch {
    pub(super) files: Vec<Arc<FileTask>>,
    pub(super) placements: Vec<Placement>,
    /// True if the last file goes on in the next batch.
    continues: bool,
    bytes_max: u64,
}

impl Batch {
    /// An empty batch that is full when it takes this much memory.
    pub(super) fn new(bytes_max: u64) -> Self {
        Self { files: Vec::new(), placements: Vec::new(), continues: false, bytes_max }
    }

    /// Returns the files of this batch with other placements.
    pub(super) fn with_placements(&self, placements: Vec<Placement>) -> Self {
        Self { files: self.files.clone(), placements, ..*self }
    }

    pub(super) fn is_full(&self) -> bool {
        self.unused_bytes() == 0 && !self.files.is_empty()
    }

    /// Returns the memory that it might take and does not.
    pub(super) fn unused_bytes(&self) -> u64 {
        let bytes = self.files.len() as u64 * FILE_BYTES + self.placements.len() as u64 * PLACEMENT_BYTES;
        self.bytes_max.saturating_sub(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Regions that its placements lie in, by container.
    pub(super) fn regions(&self) -> BTreeSet<Address> {
        self.placements.iter().map(Placement::address).collect()
    }

    /// The files that are planned to their end.
    pub(super) fn ending(&self) -> &[Arc<FileTask>] {
        let ending = self.files.len() - usize::from(self.continues);
        self.files.get(..ending).unwrap_or_default()
    }
}

/// A file being planned.
pub(super) struct FilePlan<'c, 'r> {
    file: Arc<FileTask>,
    chunks: &'c ChunkSource<'r>,
    pieces: RecipeReader<&'c ChunkSource<'r>>,
    /// Numbers of the current run still to come.
    run: RangeInclusive<u64>,
    at: u64,
}

impl<'c, 'r> FilePlan<'c, 'r> {
    #[allow(clippy::reversed_empty_ranges)]
    pub(super) fn new(
        chunks: &'c ChunkSource<'r>,
        (path, metadata, draft): (EntryPath, Metadata, Draft),
        (size, recipe): (u64, &Recipe),
    ) -> Self {
        let file = Arc::new(FileTask::new(path, metadata, draft, size));
        Self { file, chunks, pieces: RecipeReader::new(recipe, chunks), run: 1..=0, at: 0 }
    }

    /// Plans on into `batch` until the file ends (`true`) or the batch is full (`false`). What cannot be found is told
    /// to `damaged` and ends the file: without the length of a chunk nothing after it has a place.
    pub(super) fn fill(&mut self, batch: &mut Batch, damaged: &mut dyn FnMut(&FileTask, &StoreError)) -> bool {
        let index = u32::try_from(batch.files.len()).unwrap_or(u32::MAX);
        batch.files.push(self.file.clone());
        batch.continues = true;
        // One chunk at least, however full the batch is: each batch brings a file on.
        loop {
            match self.next() {
                Ok(Some(placement)) => batch.placements.push(Placement { file: index, ..placement }),
                Ok(None) => {
                    batch.continues = false;
                    return true;
                }
                Err(error) => {
                    damaged(&self.file, &error);
                    batch.continues = false;
                    return true;
                }
            }
            if batch.is_full() {
                return false;
            }
        }
    }

    fn next(&mut self) -> Result<Option<Placement>, StoreError> {
        loop {
            if let Some(number) = self.run.next() {
                let number = ChunkNumber(number);
                let (container, place) = self.chunks.place_of(number)?;
                let container = u32::try_from(container).unwrap_or(u32::MAX);
                let file_offset = self.at;
                let length = u64::from(place.chunk.length);
                self.at = self.at.saturating_add(length);
                self.file.left.fetch_add(length, Ordering::AcqRel);
                return Ok(Some(Placement { number, container, place, file: 0, file_offset }));
            }
            match self.pieces.next().transpose()? {
                Some(Piece::Run(run)) => self.run = run.range(),
                Some(Piece::Hole(bytes)) => {
                    self.file.has_holes.store(true, Ordering::Relaxed);
                    self.at = self.at.saturating_add(bytes);
                }
                None if self.at == self.file.size => return Ok(None),
                None => {
                    let reason = format!("it makes {} bytes instead of {}", self.at, self.file.size);
                    return Err(StoreError::damaged(&self.file.path, "recipe", reason));
                }
            }
        }
    }
}
