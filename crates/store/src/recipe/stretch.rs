//! Finding the pieces around an offset without reading those before it.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::{Piece, Recipe, RecipePart, codec::PartChunk, reader::load_part};
use crate::{catalog::MetadataSource, error::StoreError};

/// Consecutive pieces of a recipe: one part of it, or all of a recipe that stands in its catalog entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// Offset in the file at which the first piece begins, bytes.
    pub start: u64,
    /// Bytes of the file that the pieces cover; `None` for all of it.
    pub bytes: Option<u64>,
    /// The pieces, in file order; at most [`PART_ITEMS_MAX`](super::PART_ITEMS_MAX).
    pub pieces: Vec<Piece>,
}

impl Recipe {
    /// Returns the pieces around the byte at `offset`, or `None` if the recipe ends before it. Loads one part per
    /// level.
    ///
    /// # Errors
    /// The first part on the way that cannot be read, or is none.
    pub fn stretch_at(&self, source: &impl MetadataSource, offset: u64) -> Result<Option<Stretch>, StoreError> {
        let (mut parts, mut start, mut level) = match self {
            Self::Inline(pieces) => return Ok(Some(Stretch { start: 0, bytes: None, pieces: pieces.clone() })),
            Self::Indirect(parts) => (parts.clone(), 0, None),
        };
        // Levels fall, so this ends.
        while let Some((part, begins)) = covering(&parts, start, offset) {
            match load_part(source, part, level)? {
                PartChunk::Pieces(pieces) => {
                    return Ok(Some(Stretch { start: begins, bytes: Some(part.bytes), pieces }));
                }
                PartChunk::Parts { level: of_list, parts: inner } => {
                    (parts, start, level) = (inner, begins, of_list.checked_sub(1));
                }
            }
        }
        Ok(None)
    }
}

/// The part that covers the byte at `offset`, and where it begins, if the first begins at `start`.
fn covering(parts: &[RecipePart], start: u64, offset: u64) -> Option<(RecipePart, u64)> {
    let mut begins = start;
    for part in parts {
        let ends = begins.saturating_add(part.bytes);
        if (begins..ends).contains(&offset) {
            return Some((*part, begins));
        }
        begins = ends;
    }
    None
}
