//! Stores for versions: greedy, capped, and laid out by lifetime, each with real reads and writes on the same containers (MeGA, ATC'22).

use crate::experiment::Experiment;

/// The experiments of this room.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    Vec::new()
}
