//! Candidates by place: what stands now where a dying chunk stood, in the file of the same path.
//!
//! Both catalogs are read only where they differ: a node that both snapshots need holds nothing that changed, nor does
//! anything beneath it. Sketches find what is alike; this finds what they miss, at the price of the changed part of two
//! catalogs.

use crate::chunks::ChunkSource;
use crate::delta::CANDIDATES;
use roaring::RoaringTreemap;
use siltstone_similar::aligned::{Place, aligned};
use siltstone_store::catalog::{CatalogReader, Content, Entry};
use siltstone_store::manifest::Snapshot;
use siltstone_store::recipe::{Piece, Recipe, RecipeReader};
use siltstone_store::{ChunkNumber, StoreError};
use std::collections::HashMap;

/// Files of more chunks, before or after, are passed over: their lists take memory.
const FILE_CHUNKS_MAX: usize = 1 << 20;
/// Chunks that candidates are kept for, some 40 bytes each.
const CHUNKS_MAX: usize = 1 << 20;
/// Chunks count as equally long: their lengths would have to be looked up.
const CHUNK_BYTES: u64 = 16 << 10;

/// For dying chunks, those new ones that stand where they stood.
#[derive(Debug, Default)]
pub(super) struct Places {
    found: HashMap<u64, Vec<ChunkNumber>>,
}

impl Places {
    /// Compares the catalogs of two neighbouring snapshots. `gone` is what only the first needs, `come` what only the
    /// second needs; `bases` are those of the latter that may be bases. Damage ends the search: these are only
    /// suggestions.
    pub(super) fn find(
        chunks: &ChunkSource<'_>,
        (before, after): (&Snapshot, &Snapshot),
        gone: &RoaringTreemap,
        come: &RoaringTreemap,
        bases: &RoaringTreemap,
    ) -> Self {
        let mut places = Self::default();
        let old = CatalogReader::new(chunks, before.root).entries_in(gone.clone());
        let mut new = CatalogReader::new(chunks, after.root).entries_in(come.clone()).map_while(Result::ok).peekable();
        for old in old.map_while(Result::ok) {
            while new.next_if(|entry| entry.path < old.path).is_some() {}
            let Some(new) = new.next_if(|entry| entry.path == old.path) else { continue };
            if places.compare(chunks, &old, &new, gone, bases).is_err() || places.found.len() >= CHUNKS_MAX {
                break;
            }
        }
        places
    }

    fn compare(
        &mut self,
        chunks: &ChunkSource<'_>,
        old: &Entry,
        new: &Entry,
        gone: &RoaringTreemap,
        bases: &RoaringTreemap,
    ) -> Result<(), StoreError> {
        let (Content::File { recipe: old, .. }, Content::File { recipe: new, .. }) = (&old.content, &new.content)
        else {
            return Ok(());
        };
        if old == new {
            return Ok(());
        }
        let (Some(old), Some(new)) = (numbers(chunks, old)?, numbers(chunks, new)?) else {
            return Ok(());
        };
        let at: HashMap<u64, usize> = new.iter().enumerate().map(|(at, number)| (*number, at)).collect();
        let ends: Vec<u64> = (1..=new.len() as u64).map(|count| count * CHUNK_BYTES).collect();
        let places: Vec<_> =
            old.iter().map(|number| Place { bytes: CHUNK_BYTES, old: at.get(number).copied() }).collect();
        for (number, over) in old.iter().zip(aligned(&places, &ends)) {
            let candidates = new.get(over).unwrap_or_default().iter().filter(|number| bases.contains(**number));
            let candidates: Vec<_> = candidates.take(CANDIDATES).copied().map(ChunkNumber).collect();
            if gone.contains(*number) && !candidates.is_empty() {
                self.found.insert(*number, candidates);
            }
        }
        Ok(())
    }

    /// The candidates for a chunk.
    pub(super) fn of(&self, number: ChunkNumber) -> &[ChunkNumber] {
        self.found.get(&number.0).map_or(&[], Vec::as_slice)
    }
}

/// The numbers of a file's chunks, unless there are too many.
fn numbers(chunks: &ChunkSource<'_>, recipe: &Recipe) -> Result<Option<Vec<u64>>, StoreError> {
    let mut numbers = Vec::new();
    for piece in RecipeReader::new(recipe, chunks) {
        if let Piece::Run(run) = piece? {
            if numbers.len() as u64 + run.count > FILE_CHUNKS_MAX as u64 {
                return Ok(None);
            }
            numbers.extend(run.range());
        }
    }
    Ok(Some(numbers))
}
