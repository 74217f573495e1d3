//! The pipelined data reduction system, end to end, with each chunker and with each sketch (AE, section 4.4; Odess,
//! section 4.3.4).
//!
//! ```text
//! chunkers sketches     the experiments; subject: what they measure; show: their figures
//! stream                what goes through
//! system                the stages, joined; stages: threads and channels
//!   chunk fingerprint delta region container      what the stages do
//! verify                reading all back
//! silt                  `silt` itself, beside
//! ```

mod chunk;
mod chunkers;
mod container;
mod delta;
mod fingerprint;
mod region;
mod show;
mod silt;
mod sketches;
mod stages;
mod stream;
mod subject;
mod system;
#[cfg(test)]
mod tests;
mod verify;

use crate::experiment::Experiment;

/// The experiments of this room.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    vec![Box::new(chunkers::Chunkers), Box::new(sketches::Sketches)]
}
