//! Chunkers: how fast they cut, what deduplication then saves, how their chunks are spread (AE, TC'17; VectorCDC, TOS'25).

use crate::experiment::Experiment;

/// The experiments of this room.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    Vec::new()
}
