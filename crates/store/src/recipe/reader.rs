//! Gives the pieces of a recipe, whichever form it has.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::{Piece, Recipe, RecipePart, codec::PartChunk};
use crate::{
    catalog::MetadataSource,
    error::StoreError,
    ids::{ChunkNumber, ChunkRun},
};
use std::{collections::BTreeSet, iter::FusedIterator, vec::IntoIter};

/// Iterates over the pieces of a recipe in file order, loading parts as it reaches them; memory of one part per level.
///
/// It ends after the first error: what follows a lost part has no known place but through [`RecipePart::bytes`].
#[derive(Debug)]
pub struct RecipeReader<S> {
    source: S,
    pieces: IntoIter<Piece>,
    /// Lists of parts still to be read, the outermost first, each with the level its parts must have (`None` outside).
    lists: Vec<(IntoIter<RecipePart>, Option<u8>)>,
    /// The parts opened so far, with the level they had to have, where none is to be opened twice.
    opened: Option<BTreeSet<(ChunkNumber, Option<u8>)>>,
}

/// The item that a reader reaches next.
enum Step {
    Part(ChunkNumber),
    Piece(Piece),
}

impl<S: MetadataSource> RecipeReader<S> {
    /// Begins at the first piece.
    pub fn new(recipe: &Recipe, source: S) -> Self {
        let (pieces, lists) = match recipe {
            Recipe::Inline(pieces) => (pieces.clone(), Vec::new()),
            Recipe::Indirect(parts) => (Vec::new(), vec![(parts.clone().into_iter(), None)]),
        };
        Self { source, pieces: pieces.into_iter(), lists, opened: None }
    }

    fn step(&mut self) -> Option<Result<Step, StoreError>> {
        if let Some(piece) = self.pieces.next() {
            return Some(Ok(Step::Piece(piece)));
        }
        while let Some((parts, level)) = self.lists.last_mut() {
            let level = *level;
            let Some(part) = parts.next() else {
                self.lists.pop();
                continue;
            };
            if self.opened.as_mut().is_some_and(|opened| !opened.insert((part.chunk, level))) {
                continue;
            }
            let opened = self.open(part, level);
            if opened.is_err() {
                self.lists.clear();
            }
            return Some(opened.map(|()| Step::Part(part.chunk)));
        }
        None
    }

    fn open(&mut self, part: RecipePart, level: Option<u8>) -> Result<(), StoreError> {
        match load_part(&self.source, part, level)? {
            PartChunk::Pieces(pieces) => self.pieces = pieces.into_iter(),
            PartChunk::Parts { level, parts } => self.lists.push((parts.into_iter(), Some(level - 1))),
        }
        Ok(())
    }
}

/// Loads a part, which must be of the given level if one is known. Levels fall from list to list, so no part can hold
/// itself; each holds something, so that a few lists that name an empty one over and over keep no reader busy.
pub(super) fn load_part(
    source: &impl MetadataSource,
    part: RecipePart,
    level: Option<u8>,
) -> Result<PartChunk, StoreError> {
    let damaged = |fault: &str| StoreError::damaged(&format!("chunk {}", part.chunk), "part of a recipe", fault);
    let bytes = source.load(part.chunk)?;
    let opened = PartChunk::decode(&bytes).map_err(damaged)?;
    if level.is_some_and(|level| level != opened.level()) {
        return Err(damaged("its level is not the one below its list"));
    }
    if opened.is_empty() {
        return Err(damaged("it holds nothing"));
    }
    Ok(opened)
}

impl<S: MetadataSource> Iterator for RecipeReader<S> {
    type Item = Result<Piece, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.step()? {
                Ok(Step::Piece(piece)) => return Some(Ok(piece)),
                Ok(Step::Part(_)) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl<S: MetadataSource> FusedIterator for RecipeReader<S> {}

impl Recipe {
    /// Shows every chunk the recipe needs: the runs of data, and each of its own metadata chunks before what lies in
    /// it. A part that is named again is passed over: eight levels of lists that name one part over and over stand for
    /// more pieces than can be looked at.
    ///
    /// # Errors
    /// The first part that cannot be read ends it.
    pub fn visit_chunks(
        &self,
        source: impl MetadataSource,
        visit: &mut impl FnMut(ChunkRun),
    ) -> Result<(), StoreError> {
        let mut reader = RecipeReader { opened: Some(BTreeSet::new()), ..RecipeReader::new(self, source) };
        while let Some(step) = reader.step() {
            match step? {
                Step::Part(first) => visit(ChunkRun { first, count: 1 }),
                Step::Piece(Piece::Run(run)) => visit(run),
                Step::Piece(Piece::Hole(_)) => {}
            }
        }
        Ok(())
    }
}
