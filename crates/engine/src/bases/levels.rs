//! Numbers by level: the i-th bitmap holds those of level i + 1, and no number is in two. What is in none has level 0.
//!
//! Manifests keep the depth of chunks' dependents so, backups the depth of chunks.

use roaring::RoaringTreemap;
use siltstone_store::ChunkNumber;

/// Returns the level of a number.
pub(crate) fn level_of(levels: &[RoaringTreemap], number: ChunkNumber) -> u32 {
    let found = levels.iter().position(|of_level| of_level.contains(number.0));
    found.and_then(|at| u32::try_from(at + 1).ok()).unwrap_or(0)
}

/// Lifts a number to this level, if it is below.
pub(crate) fn raise(levels: &mut Vec<RoaringTreemap>, number: ChunkNumber, level: u32) {
    let before = level_of(levels, number);
    if level <= before {
        return;
    }
    if let Some(lower) = before.checked_sub(1).and_then(|at| levels.get_mut(at as usize)) {
        lower.remove(number.0);
    }
    if levels.len() < level as usize {
        levels.resize(level as usize, RoaringTreemap::new());
    }
    if let Some(of_level) = levels.get_mut(level as usize - 1) {
        of_level.insert(number.0);
    }
}
