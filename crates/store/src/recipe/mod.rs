//! The recipe of a file: its content as runs of chunk numbers and holes.
//!
//! A file stored in one go is one run, whatever its size: its chunks are numbered in order. Edits break runs, so a
//! recipe grows with the history of its file and not with its length. Up to [`PIECES_INLINE_MAX`] pieces stand in the
//! catalog entry itself; a longer recipe is cut by content into metadata chunks of its own, so that two versions of a
//! large file share the parts between their edits, and those parts are listed in the entry (or, for an enormous recipe,
//! in further parts). Cost: memory of one part per level, both ways.

mod codec;
mod reader;
mod stretch;
#[cfg(test)]
mod tests;
mod writer;

pub use reader::RecipeReader;
pub use stretch::Stretch;
pub use writer::RecipeWriter;

pub(crate) use codec::{check_recipe, put_recipe, read_recipe};

use crate::ids::{ChunkNumber, ChunkRun};

/// Most pieces a recipe keeps in its catalog entry: 8 KiB at the usual 4-8 bytes a piece.
pub const PIECES_INLINE_MAX: usize = 1024;

/// Most pieces of a part, or parts of a list of parts. Longer lists are refused when read.
pub const PART_ITEMS_MAX: usize = 4096;

/// Fewest items after which a list may be cut by content.
const PART_ITEMS_MIN: usize = 512;

/// A list is cut after one item in 2^10, once it has [`PART_ITEMS_MIN`]: parts of about 1500 items, some 10 KB.
const PART_CUT_BITS: u32 = 10;

/// Greatest height of a recipe: 512^7 parts are more than there are chunk numbers.
const PART_LEVELS_MAX: u8 = 8;

/// A stretch of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Piece {
    /// The content of consecutive data chunks.
    Run(ChunkRun),
    /// Bytes that were never written and read as zero, by their number; at least 1.
    Hole(u64),
}

/// A file's content. An empty file has an empty inline recipe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Recipe {
    /// The pieces themselves.
    Inline(Vec<Piece>),
    /// The pieces lie in metadata chunks of their own, in order.
    Indirect(Vec<RecipePart>),
}

/// A metadata chunk that holds a stretch of a recipe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecipePart {
    /// The metadata chunk.
    pub chunk: ChunkNumber,
    /// Bytes of the file that the pieces in it cover, holes included.
    pub bytes: u64,
}

impl Default for Recipe {
    fn default() -> Self {
        Self::Inline(Vec::new())
    }
}

impl Recipe {
    /// Tells whether the file has no content at all.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Inline(pieces) => pieces.is_empty(),
            Self::Indirect(parts) => parts.is_empty(),
        }
    }
}
