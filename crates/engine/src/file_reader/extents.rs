//! Where the bytes of a file lie: from an offset to a chunk or a hole.
//!
//! A recipe names chunks by number and leaves their lengths to the containers' indexes. They are summed up as far as
//! somebody asked, a container at a time; what is known is kept for the part of the recipe that was asked for last. A
//! file of one part, as nearly all are, is summed up once, at 32 bytes for each container or piece.

use crate::chunks::ChunkSource;
use siltstone_store::catalog::EntryPath;
use siltstone_store::recipe::{Piece, Recipe, Stretch};
use siltstone_store::{ChunkNumber, ChunkRun, StoreError};

/// Source of the bytes at an offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ByteSource {
    /// Bytes that were never written.
    Hole,
    /// A chunk, and how many of its bytes lie before the offset.
    Chunk { number: ChunkNumber, skip: usize },
}

/// The extents of one file.
#[derive(Debug)]
pub(super) struct Extents {
    path: EntryPath,
    size: u64,
    recipe: Recipe,
    /// The part asked for last.
    part: Option<SummedPart>,
}

/// A part of the recipe, summed up so far.
#[derive(Debug)]
struct SummedPart {
    stretch: Stretch,
    /// Ascending, without gaps from the part's start on.
    known: Vec<Known>,
    /// The pieces not yet summed up, and of the first of them the chunks that are.
    next_piece: usize,
    chunks_done: u64,
    /// Lengths of the chunks of one of `known`, by its place there.
    lengths: Option<(usize, Vec<u32>)>,
}

/// Chunks that one container answers for, or a hole.
#[derive(Clone, Copy, Debug)]
struct Known {
    start: u64,
    bytes: u64,
    /// `None` for a hole.
    run: Option<ChunkRun>,
}

impl Known {
    fn ends(&self) -> u64 {
        self.start.saturating_add(self.bytes)
    }
}

impl Extents {
    pub(super) fn new(path: &EntryPath, size: u64, recipe: Recipe) -> Self {
        Self { path: path.clone(), size, recipe, part: None }
    }

    /// Returns the source of the byte at `offset`, and where that ends; `None` past the end of the file.
    pub(super) fn at(
        &mut self,
        chunks: &ChunkSource<'_>,
        offset: u64,
    ) -> Result<Option<(ByteSource, u64)>, StoreError> {
        if offset >= self.size {
            return Ok(None);
        }
        let part = match self.part.take() {
            Some(part) if part.covers(offset) => part,
            _ => {
                let stretch = self.recipe.stretch_at(&chunks, offset)?;
                SummedPart::new(stretch.ok_or_else(|| self.damaged(offset))?)
            }
        };
        let found = self.part.insert(part).at(chunks, offset)?;
        let (extent, ends) = found.ok_or_else(|| self.damaged(offset))?;
        Ok(Some((extent, ends.min(self.size))))
    }

    fn damaged(&self, offset: u64) -> StoreError {
        let reason = format!("it says nothing of byte {offset} of {}", self.size);
        StoreError::damaged(&self.path, "recipe", reason)
    }
}

impl SummedPart {
    fn new(stretch: Stretch) -> Self {
        Self { stretch, known: Vec::new(), next_piece: 0, chunks_done: 0, lengths: None }
    }

    fn covers(&self, offset: u64) -> bool {
        let ends = self.stretch.bytes.map_or(u64::MAX, |bytes| self.stretch.start.saturating_add(bytes));
        (self.stretch.start..ends).contains(&offset)
    }

    fn at(&mut self, chunks: &ChunkSource<'_>, offset: u64) -> Result<Option<(ByteSource, u64)>, StoreError> {
        while self.known.last().is_none_or(|last| last.ends() <= offset) {
            if !self.sum_up_next(chunks)? {
                return Ok(None);
            }
        }
        let at = self.known.partition_point(|known| known.ends() <= offset);
        let Some(known) = self.known.get(at).copied().filter(|known| known.start <= offset) else {
            return Ok(None);
        };
        let Some(run) = known.run else {
            return Ok(Some((ByteSource::Hole, known.ends())));
        };
        let mut start = known.start;
        for (number, length) in run.range().zip(self.lengths_of(chunks, at, run)?) {
            let ends = start.saturating_add(u64::from(*length));
            if offset < ends {
                let skip = usize::try_from(offset - start).unwrap_or(usize::MAX);
                return Ok(Some((ByteSource::Chunk { number: ChunkNumber(number), skip }, ends)));
            }
            start = ends;
        }
        Ok(None)
    }

    /// Adds the next container's chunks, or the next hole; `false` if there is none.
    fn sum_up_next(&mut self, chunks: &ChunkSource<'_>) -> Result<bool, StoreError> {
        let start = self.known.last().map_or(self.stretch.start, Known::ends);
        let known = match self.stretch.pieces.get(self.next_piece) {
            None => return Ok(false),
            Some(Piece::Hole(bytes)) => {
                self.next_piece += 1;
                Known { start, bytes: *bytes, run: None }
            }
            Some(Piece::Run(run)) => {
                let first = ChunkNumber(run.first.0.saturating_add(self.chunks_done));
                let lengths = chunks.lengths_from(first, run.count - self.chunks_done)?;
                let count = lengths.len() as u64;
                self.chunks_done += count;
                if self.chunks_done >= run.count {
                    (self.next_piece, self.chunks_done) = (self.next_piece + 1, 0);
                }
                let bytes = lengths.iter().map(|length| u64::from(*length)).sum();
                self.lengths = Some((self.known.len(), lengths));
                Known { start, bytes, run: Some(ChunkRun { first, count }) }
            }
        };
        self.known.push(known);
        Ok(true)
    }

    /// Lengths of the chunks of `run`, which stands at `at`.
    fn lengths_of(&mut self, chunks: &ChunkSource<'_>, at: usize, run: ChunkRun) -> Result<&[u32], StoreError> {
        if self.lengths.as_ref().is_none_or(|(known, _)| *known != at) {
            let mut lengths = Vec::new();
            // A writer may have divided them among several containers since.
            while (lengths.len() as u64) < run.count {
                let done = lengths.len() as u64;
                lengths.extend(chunks.lengths_from(ChunkNumber(run.first.0 + done), run.count - done)?);
            }
            self.lengths = Some((at, lengths));
        }
        Ok(self.lengths.as_ref().map_or(&[], |(_, lengths)| lengths))
    }
}
