//! The pipelined data reduction system, end to end, with each chunker and with each sketch (AE, section 4.4; Odess, section 4.3.4).

use crate::experiment::Experiment;

/// The experiments of this room.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    Vec::new()
}
