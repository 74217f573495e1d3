//! Writing and reading recipes and their parts. A run is stored as its length and its distance from where the run
//! before it ended, so that the chunks of files stored one after another cost two bytes a file.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::{PART_ITEMS_MAX, PART_LEVELS_MAX, Piece, Recipe, RecipePart};
use crate::{
    catalog::wire::{Fault, WireReader, put_difference, put_number},
    ids::{ChunkNumber, ChunkRun},
};

/// First byte of a metadata chunk that holds pieces. 1 and 2 are the nodes of the catalog.
const TAG_PIECES: u8 = 3;
/// First byte of a metadata chunk that lists parts.
const TAG_PARTS: u8 = 4;

/// The content of a metadata chunk of a recipe.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PartChunk {
    /// Level 1: the pieces themselves.
    Pieces(Vec<Piece>),
    /// Level 2 and above: parts of the level below.
    Parts { level: u8, parts: Vec<RecipePart> },
}

impl PartChunk {
    pub(super) fn level(&self) -> u8 {
        match self {
            Self::Pieces(_) => 1,
            Self::Parts { level, .. } => *level,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Pieces(pieces) => pieces.is_empty(),
            Self::Parts { parts, .. } => parts.is_empty(),
        }
    }

    pub(super) fn encode_pieces(pieces: &[Piece]) -> Vec<u8> {
        let mut out = vec![TAG_PIECES];
        put_number(&mut out, pieces.len() as u64);
        put_pieces(&mut out, pieces, &mut 0);
        out
    }

    pub(super) fn encode_parts(level: u8, parts: &[RecipePart]) -> Vec<u8> {
        let mut out = vec![TAG_PARTS, level];
        put_number(&mut out, parts.len() as u64);
        put_parts(&mut out, parts);
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Fault> {
        let mut reader = WireReader::new(bytes);
        let part = match reader.byte()? {
            TAG_PIECES => {
                let count = read_count(&mut reader)?;
                Self::Pieces(read_pieces(&mut reader, count, &mut 0)?)
            }
            TAG_PARTS => {
                let level = reader.byte()?;
                if !(2..=PART_LEVELS_MAX).contains(&level) {
                    return Err("its level is not one a list of parts can have");
                }
                let count = read_count(&mut reader)?;
                Self::Parts { level, parts: read_parts(&mut reader, count)? }
            }
            _ => return Err("it is no part of a recipe"),
        };
        reader.end()?;
        Ok(part)
    }
}

/// Checks that a recipe can be written to a catalog entry, and returns the number of items it lists there.
pub(crate) fn check_recipe(recipe: &Recipe) -> Result<usize, Fault> {
    let count = match recipe {
        Recipe::Inline(pieces) => {
            pieces.iter().try_for_each(|piece| check(*piece))?;
            pieces.len()
        }
        Recipe::Indirect(parts) if parts.iter().all(|part| part.chunk.is_metadata()) => parts.len(),
        Recipe::Indirect(_) => return Err("a part of its recipe is no metadata chunk"),
    };
    if count > PART_ITEMS_MAX { Err("its recipe has more pieces than an entry holds") } else { Ok(count) }
}

/// Appends a recipe that [`check_recipe`] has passed to a catalog entry. `expected` is the number after the last run
/// written, here and in the entries before.
pub(crate) fn put_recipe(out: &mut Vec<u8>, recipe: &Recipe, expected: &mut u64) {
    match recipe {
        Recipe::Inline(pieces) => {
            put_number(out, (pieces.len() as u64) << 1);
            put_pieces(out, pieces, expected);
        }
        Recipe::Indirect(parts) => {
            put_number(out, ((parts.len() as u64) << 1) | 1);
            put_parts(out, parts);
        }
    }
}

/// Reads a recipe from a catalog entry.
pub(crate) fn read_recipe(reader: &mut WireReader<'_>, expected: &mut u64) -> Result<Recipe, Fault> {
    let header = reader.number()?;
    let count = bounded_count(header >> 1)?;
    if header & 1 == 0 {
        Ok(Recipe::Inline(read_pieces(reader, count, expected)?))
    } else {
        Ok(Recipe::Indirect(read_parts(reader, count)?))
    }
}

/// Checks that a piece is one a file can have: a run of data chunks, not empty, or a hole that is not empty.
pub(super) fn check(piece: Piece) -> Result<(), Fault> {
    match piece {
        Piece::Hole(0) => Err("a hole is empty"),
        Piece::Hole(bytes) if bytes > u64::MAX >> 1 => Err("a hole exceeds 2^63 bytes"),
        Piece::Hole(_) => Ok(()),
        Piece::Run(ChunkRun { count: 0, .. }) => Err("a run of chunks is empty"),
        Piece::Run(run) => match run.first.0.checked_add(run.count) {
            Some(end) if end < ChunkNumber::METADATA_FIRST.0 => Ok(()),
            _ => Err("a run leaves the numbers of data chunks"),
        },
    }
}

fn put_pieces(out: &mut Vec<u8>, pieces: &[Piece], expected: &mut u64) {
    for piece in pieces {
        match piece {
            Piece::Run(run) => {
                put_number(out, run.count << 1);
                put_difference(out, run.first.0, *expected);
                *expected = run.first.0 + run.count;
            }
            Piece::Hole(bytes) => put_number(out, (bytes << 1) | 1),
        }
    }
}

fn read_pieces(reader: &mut WireReader<'_>, count: usize, expected: &mut u64) -> Result<Vec<Piece>, Fault> {
    let mut pieces = Vec::with_capacity(count.min(reader.left()));
    for _ in 0..count {
        pieces.push(read_piece(reader, expected)?);
    }
    Ok(pieces)
}

fn read_piece(reader: &mut WireReader<'_>, expected: &mut u64) -> Result<Piece, Fault> {
    let header = reader.number()?;
    if header & 1 == 1 {
        let hole = Piece::Hole(header >> 1);
        check(hole)?;
        return Ok(hole);
    }
    let run = ChunkRun { first: ChunkNumber(reader.difference(*expected)?), count: header >> 1 };
    check(Piece::Run(run))?;
    *expected = run.first.0.saturating_add(run.count);
    Ok(Piece::Run(run))
}

fn put_parts(out: &mut Vec<u8>, parts: &[RecipePart]) {
    let mut before = ChunkNumber::METADATA_FIRST;
    for part in parts {
        put_difference(out, part.chunk.0, before.0);
        put_number(out, part.bytes);
        before = part.chunk;
    }
}

fn read_parts(reader: &mut WireReader<'_>, count: usize) -> Result<Vec<RecipePart>, Fault> {
    let mut before = ChunkNumber::METADATA_FIRST;
    let mut parts = Vec::with_capacity(count.min(reader.left()));
    for _ in 0..count {
        let part = RecipePart { chunk: ChunkNumber(reader.difference(before.0)?), bytes: reader.number()? };
        if !part.chunk.is_metadata() {
            return Err("a part of a recipe is no metadata chunk");
        }
        before = part.chunk;
        parts.push(part);
    }
    Ok(parts)
}

fn read_count(reader: &mut WireReader<'_>) -> Result<usize, Fault> {
    bounded_count(reader.number()?)
}

fn bounded_count(count: u64) -> Result<usize, Fault> {
    usize::try_from(count).ok().filter(|&count| count <= PART_ITEMS_MAX).ok_or("a list exceeds its limit")
}
