//! Where the bytes of a file lie: from an offset to a chunk or a hole.
//!
//! A recipe names chunks by number and leaves their lengths to the containers. Of a run of chunks that one container
//! answers for, the manifest's record knows the bytes, unless the file begins or ends within it, or somebody has cut
//! it; those are summed up from the container's index. So the recipe's part is laid out as segments, each the chunks
//! of one container or a hole, and their places are found from both ends of the part inwards, opening an index only
//! where a segment's bytes are not known:
//!
//! ```text
//! part     | known | known | unknown | known | unknown | known |
//! placed    from the front ->                      <- from the back
//! ```
//! One unknown segment, if all others are placed, has what is left. Bytes that do not agree are damage. The part that
//! was asked for last is kept, at 48 bytes for each segment.

use crate::chunks::ChunkSource;
use siltstone_store::catalog::EntryPath;
use siltstone_store::recipe::{Piece, Recipe, Stretch};
use siltstone_store::{ChunkNumber, ChunkRun, StoreError};

/// The most segments of a part: a file of 16 TB whose containers answer for all they hold.
const SEGMENTS_MAX: usize = 1 << 20;

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
    part: Option<Part>,
}

/// A part of the recipe, laid out.
#[derive(Debug)]
struct Part {
    begins: u64,
    ends: u64,
    segments: Vec<Segment>,
    /// The segments before `front.at`, and those from `back.at` on, have their places.
    front: Bound,
    back: Bound,
    /// Where the chunks of one segment end in it, by its place.
    chunk_ends: Option<(usize, Vec<u64>)>,
}

/// The bound of what is placed: a segment, and its offset in the file.
#[derive(Clone, Copy, Debug)]
struct Bound {
    at: usize,
    offset: u64,
}

/// Chunks that one container answers for, or a hole.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// Offset in the file, once it is placed.
    start: u64,
    /// Plain bytes, as far as they are known.
    bytes: Option<u64>,
    /// `None` for a hole.
    run: Option<ChunkRun>,
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
        let mut part = match self.part.take() {
            Some(part) if (part.begins..part.ends).contains(&offset) => part,
            _ => {
                let stretch = self.recipe.stretch_at(&chunks, offset)?;
                Part::lay_out(chunks, &stretch.ok_or_else(|| self.damaged(offset))?, self.size)
                    .ok_or_else(|| self.damaged(offset))?
            }
        };
        let found = part.at(chunks, offset);
        self.part = Some(part);
        found?.map(Some).ok_or_else(|| self.damaged(offset))
    }

    fn damaged(&self, offset: u64) -> StoreError {
        let reason = format!("its runs and holes do not make its {} bytes, or say nothing of byte {offset}", self.size);
        StoreError::damaged(&self.path, "recipe", reason)
    }
}

impl Part {
    /// Lays a part of a file of this size out; `None` if it has too many segments.
    fn lay_out(chunks: &ChunkSource<'_>, stretch: &Stretch, size: u64) -> Option<Self> {
        let begins = stretch.start;
        let ends = stretch.bytes.map_or(size, |bytes| begins.saturating_add(bytes));
        let mut segments = Vec::new();
        for piece in &stretch.pieces {
            match piece {
                Piece::Hole(bytes) => segments.push(Segment { start: 0, bytes: Some(*bytes), run: None }),
                Piece::Run(run) => add_segments(chunks, *run, &mut segments),
            }
            if segments.len() > SEGMENTS_MAX {
                return None;
            }
        }
        let (front, back) = (Bound { at: 0, offset: begins }, Bound { at: segments.len(), offset: ends });
        Some(Self { begins, ends, segments, front, back, chunk_ends: None })
    }

    /// Returns the source of the byte at `offset`, and where that ends; `None` if the bytes do not agree.
    fn at(&mut self, chunks: &ChunkSource<'_>, offset: u64) -> Result<Option<(ByteSource, u64)>, StoreError> {
        let placed = loop {
            if !self.place_known() {
                return Ok(None);
            }
            if offset < self.front.offset {
                break 0..self.front.at;
            }
            if offset >= self.back.offset {
                break self.back.at..self.segments.len();
            }
            let is_nearer_to_front = offset - self.front.offset <= self.back.offset - offset;
            let next = if is_nearer_to_front { self.front.at } else { self.back.at - 1 };
            let Some(run) = self.segments[next].run else { return Ok(None) };
            self.segments[next].bytes = Some(self.chunk_ends_of(chunks, next, run)?.last().copied().unwrap_or(0));
        };
        let at = placed.start + self.segments[placed].partition_point(|segment| segment.ends() <= offset);
        let Some(segment) = self.segments.get(at).copied().filter(|segment| segment.start <= offset) else {
            return Ok(None);
        };
        let Some(run) = segment.run else {
            return Ok(Some((ByteSource::Hole, segment.ends())));
        };
        Ok(find(segment, run, self.chunk_ends_of(chunks, at, run)?, offset))
    }

    /// Places all segments whose bytes are known up to the first unknown one, from both ends, and the last that is
    /// left; `false` if the bytes do not agree with those of the part.
    fn place_known(&mut self) -> bool {
        while let Some(bytes) = self.unplaced(self.front.at).and_then(|segment| segment.bytes) {
            self.segments[self.front.at].start = self.front.offset;
            let Some(offset) = self.front.offset.checked_add(bytes) else { return false };
            self.front = Bound { at: self.front.at + 1, offset };
        }
        while let Some(bytes) = self.back.at.checked_sub(1).and_then(|at| self.unplaced(at)?.bytes) {
            let Some(offset) = self.back.offset.checked_sub(bytes) else { return false };
            self.back = Bound { at: self.back.at - 1, offset };
            self.segments[self.back.at].start = offset;
        }
        match (self.back.at - self.front.at, self.back.offset.checked_sub(self.front.offset)) {
            (0, left) => left == Some(0),
            (_, None | Some(0)) => false,
            (1, Some(left)) => {
                self.segments[self.front.at].bytes = Some(left);
                self.place_known()
            }
            _ => true,
        }
    }

    fn unplaced(&self, at: usize) -> Option<&Segment> {
        self.segments.get(at).filter(|_| (self.front.at..self.back.at).contains(&at))
    }

    /// Where the chunks of `run`, which stands at `at`, end in it.
    fn chunk_ends_of(&mut self, chunks: &ChunkSource<'_>, at: usize, run: ChunkRun) -> Result<&[u64], StoreError> {
        if self.chunk_ends.as_ref().is_none_or(|(known, _)| *known != at) {
            let (mut ends, mut end) = (Vec::new(), 0_u64);
            // A writer may have divided them among several containers since.
            while (ends.len() as u64) < run.count {
                let done = ends.len() as u64;
                let first = ChunkNumber(run.first.0.saturating_add(done));
                for length in chunks.lengths_from(first, run.count - done)? {
                    end = end.saturating_add(u64::from(length));
                    ends.push(end);
                }
            }
            self.chunk_ends = Some((at, ends));
        }
        Ok(self.chunk_ends.as_ref().map_or(&[], |(_, ends)| ends))
    }
}

impl Segment {
    fn ends(&self) -> u64 {
        self.start.saturating_add(self.bytes.unwrap_or(0))
    }
}

/// Adds the chunks of a piece, divided by the containers that answer for them. What no container answers for is one
/// segment, at which reading fails.
fn add_segments(chunks: &ChunkSource<'_>, mut rest: ChunkRun, segments: &mut Vec<Segment>) {
    while rest.count > 0 && segments.len() <= SEGMENTS_MAX {
        let (run, bytes) = chunks.run_from(rest).unwrap_or((rest, None));
        segments.push(Segment { start: 0, bytes, run: Some(run) });
        rest = ChunkRun { first: ChunkNumber(rest.first.0.saturating_add(run.count)), count: rest.count - run.count };
    }
}

/// The chunk of a placed segment that has the byte at `offset`, and where that chunk ends; `None` if the chunks do not
/// have the segment's bytes.
fn find(segment: Segment, run: ChunkRun, chunk_ends: &[u64], offset: u64) -> Option<(ByteSource, u64)> {
    if segment.bytes != chunk_ends.last().copied() {
        return None;
    }
    let offset = offset.checked_sub(segment.start)?;
    let at = chunk_ends.partition_point(|end| *end <= offset);
    let number = ChunkNumber(run.first.0.saturating_add(at as u64));
    let start = at.checked_sub(1).and_then(|before| chunk_ends.get(before)).copied().unwrap_or(0);
    let skip = usize::try_from(offset - start).unwrap_or(usize::MAX);
    let ends = segment.start.saturating_add(*chunk_ends.get(at)?);
    Some((ByteSource::Chunk { number, skip }, ends))
}
