//! Sketches: how fast they are made, how well they estimate, what they find (Finesse, FAST'19; Odess, TOS).

use crate::experiment::Experiment;

/// The experiments of this room.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    Vec::new()
}
