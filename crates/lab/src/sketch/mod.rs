//! Sketches: how fast they are made, how well they estimate, what they find (Finesse, FAST'19; Odess, TOS).
//!
//! | file | holds |
//! |---|---|
//! | `contender.rs`, [`own`] | a sketch in the form that is measured; Siltstone's own beside those of the papers |
//! | `timed.rs` | what every time is of, and the check of what was found in it |
//! | [`versions`], `ground.rs`, `found.rs` | versions cut and deduplicated; bases found in them, deltas of these, and what they come to |
//! | `study.rs` | the subject of most experiments: speed and findings of one contender on one ground |
//! | `estimates.rs` | estimated beside true resemblance, on pairs of chunks made for it |
//! | `draw.rs`, `choice.rs` | findings as plots; what the settings ask for |
//!
//! and one file for each experiment, as its name says.

mod accuracy;
mod choice;
mod contender;
mod detection;
mod draw;
mod estimates;
mod features;
mod found;
mod ground;
mod mask;
pub mod own;
mod pairs;
pub mod parallel;
mod sampling;
mod speed;
mod study;
mod subchunks;
mod theory;
mod timed;
pub mod versions;
mod windows;
mod word_lanes;

use crate::experiment::Experiment;

/// The experiments of this room.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    vec![
        Box::new(speed::Speed),
        Box::new(detection::Detection),
        Box::new(pairs::Similarity),
        Box::new(accuracy::METHODS),
        Box::new(accuracy::SAMPLING),
        Box::new(accuracy::FEATURES),
        Box::new(theory::Theory),
        Box::new(sampling::Sampling),
        Box::new(mask::Masks),
        Box::new(features::Features),
        Box::new(windows::NumberOfWindows),
        Box::new(subchunks::Subchunks),
    ]
}
