//! A file's previous recipe, as extents with their places: chunk by chunk, and holes.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)
)]

use crate::chunks::ChunkSource;
use siltstone_store::recipe::{Piece, Recipe, RecipeReader};
use siltstone_store::{ChunkNumber, ChunkRun};

/// An extent of a file as it was; never empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PreviousExtent {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) kind: PreviousKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PreviousKind {
    Chunk(ChunkNumber),
    Hole,
}

impl PreviousExtent {
    pub(super) fn is_hole(&self) -> bool {
        self.kind == PreviousKind::Hole
    }
}

/// Goes through the extents from the file's beginning. It ends where the recipe does, and where something of it
/// cannot be read: what lies behind is as good as changed.
pub(super) struct Layout<'c, 'r> {
    chunks: &'c ChunkSource<'r>,
    pieces: RecipeReader<&'c ChunkSource<'r>>,
    /// Rest of the current run.
    run: Option<ChunkRun>,
    current: Option<PreviousExtent>,
}

impl<'c, 'r> Layout<'c, 'r> {
    pub(super) fn new(recipe: &Recipe, chunks: &'c ChunkSource<'r>) -> Self {
        let mut layout = Self { chunks, pieces: RecipeReader::new(recipe, chunks), run: None, current: None };
        layout.current = layout.extent_at(0);
        layout
    }

    /// The extent it has come to.
    pub(super) fn current(&self) -> Option<PreviousExtent> {
        self.current
    }

    /// Goes on to the next extent.
    pub(super) fn advance(&mut self) {
        self.current = self.current.and_then(|extent| self.extent_at(extent.end));
    }

    /// Passes over all that lies before a place, and over the part of a hole before it.
    pub(super) fn seek(&mut self, place: u64) {
        while self.current.is_some_and(|extent| extent.end <= place) {
            self.advance();
        }
        if let Some(extent) = &mut self.current
            && extent.is_hole()
        {
            extent.start = extent.start.max(place);
        }
    }

    fn extent_at(&mut self, start: u64) -> Option<PreviousExtent> {
        let (bytes, kind) = match self.next_number()? {
            Next::Chunk(number) => {
                let (_, place) = self.chunks.place_of(number).ok()?;
                (u64::from(place.chunk.length), PreviousKind::Chunk(number))
            }
            Next::Hole(bytes) => (bytes, PreviousKind::Hole),
        };
        let end = start.checked_add(bytes).filter(|end| *end > start)?;
        Some(PreviousExtent { start, end, kind })
    }

    fn next_number(&mut self) -> Option<Next> {
        if self.run.is_none() {
            match self.pieces.next()?.ok()? {
                Piece::Run(run) => self.run = Some(run),
                Piece::Hole(bytes) => return Some(Next::Hole(bytes)),
            }
        }
        let run = self.run?;
        let rest = run.count.checked_sub(1).filter(|count| *count > 0);
        let after = run.first.0.checked_add(1).map(ChunkNumber);
        self.run = rest.zip(after).map(|(count, first)| ChunkRun { first, count });
        Some(Next::Chunk(run.first))
    }
}

enum Next {
    Chunk(ChunkNumber),
    Hole(u64),
}
