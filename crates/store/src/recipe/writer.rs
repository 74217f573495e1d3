//! Makes a recipe while its file is stored.

use super::{
    PART_CUT_BITS, PART_ITEMS_MAX, PART_ITEMS_MIN, PART_LEVELS_MAX, PIECES_INLINE_MAX, Piece, Recipe, RecipePart,
    codec::{PartChunk, check},
};
use crate::{
    catalog::{MetadataSink, wire::mix},
    error::StoreError,
    ids::{ChunkNumber, ChunkRun},
};

/// Takes the runs and holes of a file from its beginning to its end and gives its recipe.
///
/// Neighbouring runs become one where their numbers follow each other, neighbouring holes always. Memory: one list of
/// pieces and, for a long recipe, one list of parts per level.
#[derive(Clone, Debug, Default)]
pub struct RecipeWriter {
    /// The piece that may still grow, and the bytes of the file it covers.
    pending: Option<(Piece, u64)>,
    /// Pieces not yet cut off, each with the bytes of the file it covers.
    pieces: Vec<(Piece, u64)>,
    /// True if the recipe has outgrown its entry, so that lists are cut.
    indirect: bool,
    /// Lists of parts not yet cut, level 1 first.
    parts: Vec<Vec<RecipePart>>,
}

impl RecipeWriter {
    /// Begins a recipe.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the content of consecutive data chunks; `bytes` is the sum of their lengths.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if the run is empty or not of data chunks; whatever the sink says.
    pub fn push_run(&mut self, run: ChunkRun, bytes: u64, sink: &mut impl MetadataSink) -> Result<(), StoreError> {
        self.push(Piece::Run(run), bytes, sink)
    }

    /// Adds one data chunk.
    ///
    /// # Errors
    /// As [`RecipeWriter::push_run`].
    pub fn push_chunk(
        &mut self,
        number: ChunkNumber,
        bytes: u64,
        sink: &mut impl MetadataSink,
    ) -> Result<(), StoreError> {
        self.push_run(ChunkRun { first: number, count: 1 }, bytes, sink)
    }

    /// Adds bytes that were never written. None at all is fine.
    ///
    /// # Errors
    /// [`StoreError::Refused`] beyond 2^63 bytes; whatever the sink says.
    pub fn push_hole(&mut self, bytes: u64, sink: &mut impl MetadataSink) -> Result<(), StoreError> {
        if bytes == 0 { Ok(()) } else { self.push(Piece::Hole(bytes), bytes, sink) }
    }

    /// Adds a piece; `bytes` is how much of the file it covers.
    ///
    /// # Errors
    /// [`StoreError::Refused`] for a piece no file can have; whatever the sink says.
    pub fn push(&mut self, piece: Piece, bytes: u64, sink: &mut impl MetadataSink) -> Result<(), StoreError> {
        let merged = self.pending.and_then(|(before, _)| merge(before, piece));
        check(merged.unwrap_or(piece)).map_err(refused)?;
        match (&mut self.pending, merged) {
            (Some(pending), Some(merged)) => *pending = (merged, pending.1.saturating_add(bytes)),
            _ => {
                if let Some((done, done_bytes)) = self.pending.replace((piece, bytes)) {
                    self.place(done, done_bytes, sink)?;
                }
            }
        }
        Ok(())
    }

    /// Ends the recipe.
    ///
    /// # Errors
    /// Whatever the sink says.
    pub fn finish(mut self, sink: &mut impl MetadataSink) -> Result<Recipe, StoreError> {
        if let Some((piece, bytes)) = self.pending.take() {
            self.place(piece, bytes, sink)?;
        }
        if !self.indirect {
            return Ok(Recipe::Inline(self.pieces.into_iter().map(|(piece, _)| piece).collect()));
        }
        self.close_pieces(sink)?;
        let mut level = 0;
        while level + 1 < self.parts.len() {
            self.close_parts(level, sink)?;
            level += 1;
        }
        Ok(Recipe::Indirect(self.parts.pop().unwrap_or_default()))
    }

    /// Takes a piece that grows no more.
    fn place(&mut self, piece: Piece, bytes: u64, sink: &mut impl MetadataSink) -> Result<(), StoreError> {
        self.pieces.push((piece, bytes));
        if self.indirect {
            return if is_cut(piece_hash(piece), self.pieces.len()) { self.close_pieces(sink) } else { Ok(()) };
        }
        if self.pieces.len() <= PIECES_INLINE_MAX {
            return Ok(());
        }
        // From here on lists are cut: those gathered so far as well, as if they came only now.
        self.indirect = true;
        let gathered = std::mem::take(&mut self.pieces);
        gathered.into_iter().try_for_each(|(piece, bytes)| self.place(piece, bytes, sink))
    }

    fn close_pieces(&mut self, sink: &mut impl MetadataSink) -> Result<(), StoreError> {
        if self.pieces.is_empty() {
            return Ok(());
        }
        let (pieces, bytes): (Vec<Piece>, Vec<u64>) = self.pieces.drain(..).unzip();
        let chunk = sink.store(&PartChunk::encode_pieces(&pieces))?;
        self.add_part(0, RecipePart { chunk, bytes: sum(bytes) }, sink)
    }

    fn close_parts(&mut self, level: usize, sink: &mut impl MetadataSink) -> Result<(), StoreError> {
        let parts = self.parts.get_mut(level).map(std::mem::take).unwrap_or_default();
        if parts.is_empty() {
            return Ok(());
        }
        let height = u8::try_from(level + 2).ok().filter(|&height| height <= PART_LEVELS_MAX);
        let chunk =
            sink.store(&PartChunk::encode_parts(height.ok_or_else(|| refused("it has too many pieces"))?, &parts))?;
        self.add_part(level + 1, RecipePart { chunk, bytes: sum(parts.iter().map(|part| part.bytes)) }, sink)
    }

    fn add_part(&mut self, level: usize, part: RecipePart, sink: &mut impl MetadataSink) -> Result<(), StoreError> {
        if self.parts.len() <= level {
            self.parts.push(Vec::new());
        }
        let Some(parts) = self.parts.get_mut(level) else {
            return Ok(());
        };
        parts.push(part);
        if is_cut(mix(part.chunk.0), parts.len()) { self.close_parts(level, sink) } else { Ok(()) }
    }
}

/// The two pieces as one, where the second continues the first.
fn merge(before: Piece, piece: Piece) -> Option<Piece> {
    match (before, piece) {
        (Piece::Run(before), Piece::Run(run)) if before.first.0.checked_add(before.count) == Some(run.first.0) => {
            let count = before.count.checked_add(run.count)?;
            Some(Piece::Run(ChunkRun { first: before.first, count }))
        }
        (Piece::Hole(before), Piece::Hole(bytes)) => before.checked_add(bytes).map(Piece::Hole),
        _ => None,
    }
}

/// Tells whether a list ends after its latest item.
fn is_cut(hash: u64, items: usize) -> bool {
    items >= PART_ITEMS_MAX || (items >= PART_ITEMS_MIN && hash >> (64 - PART_CUT_BITS) == 0)
}

fn piece_hash(piece: Piece) -> u64 {
    match piece {
        Piece::Run(run) => mix(run.first.0 ^ mix(run.count)),
        Piece::Hole(bytes) => mix(!bytes),
    }
}

fn sum(bytes: impl IntoIterator<Item = u64>) -> u64 {
    bytes.into_iter().fold(0, u64::saturating_add)
}

fn refused(reason: &str) -> StoreError {
    StoreError::Refused { what: "recipe of a file".to_owned(), reason: reason.to_owned() }
}
