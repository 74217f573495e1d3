//! Stores for versions: greedy, capped, and laid out by lifetime, each with real reads and writes on the same containers (MeGA, ATC'22).
//!
//! ```text
//! history, maintenance    the experiments; figures: their plots; versions: what they are fed
//! method                  Greedy FGD CLD | MFD MeGA | silt
//! intake                  how a version is backed up, the same for all but silt; choose: what is refused
//! arrival, lifecycle      the two layouts: restore, upkeep, deletion      engine: Siltstone, by its own engine
//! stored index recipe     what a store knows; shelf cache: containers on disk and in memory; scale: how large they are
//! ```
//! What differs from the paper: the chunker (`lagged`, with its limits), the fingerprints, the codec of deltas (`CopyInsert`) and the encryption are
//! Siltstone's, as is the container's format. Chunk-level indexes lie in memory, as they do there.

mod arrival;
mod cache;
mod choose;
mod engine;
mod figures;
mod history;
mod index;
mod intake;
mod lifecycle;
mod maintenance;
mod method;
mod parallel;
mod recipe;
mod scale;
mod shelf;
mod stored;
#[cfg(test)]
mod tests;
mod versions;

use crate::experiment::Experiment;

/// The experiments of this room.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    vec![Box::new(history::History), Box::new(maintenance::Maintenance)]
}
