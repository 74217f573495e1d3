//! Turning the handle: experiments x inputs x rounds, each sample journalled as it comes.
//!
//! ```text
//! settings + data -> plan: steps, each one experiment on one input
//! step     subjects made once; round 1 in their order, round 2 in reverse, and so on
//! run      one subject, one round -> verdict -> a line of the journal
//! ```
//!
//! The journal is all there is: what is shown is computed from it, whether the run has just ended or lies in a folder
//! since last year. A run that was stopped goes on after its last line, provided that it is still the same program,
//! machine, data and settings.

mod findings;
mod inputs;
mod journal;
mod plan;
mod runner;

#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
mod tests;

pub use findings::findings;
pub use inputs::inputs;
pub use journal::{Header, JOURNAL, Ran, Record, Recorded, Step, StepKey, Verdict};
pub use plan::{PlannedStep, RunPlan};
pub use runner::{Ending, Order, SETTINGS_FILE, Watch, measure};

/// Version of the program, and the commit it was built from where that is known.
pub const VERSION: &str = env!("SILT_LAB_VERSION");
