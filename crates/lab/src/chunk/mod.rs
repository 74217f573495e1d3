//! Chunkers: how fast they cut, what deduplication then saves, how their chunks are spread (AE, TC'17; VectorCDC, TOS'25).
//!
//! | file | holds |
//! |---|---|
//! | `method.rs`, `outside.rs`, `fingerprints.rs`, `floor.rs` | what is measured |
//! | `oracle.rs` | where chunks end, a second time |
//! | `cuts.rs`, `chunks.rs`, `search.rs` | chunks summed up; the expected size for a real average |
//! | `forms.rs`, `common.rs` | what experiments share |
//! | `throughput.rs`, `widths.rs` | the experiments on speed |

mod chunks;
mod common;
pub mod cuts;
pub mod equal;
pub mod fingerprints;
pub mod floor;
mod forms;
pub mod method;
mod oracle;
mod outside;
pub mod search;
mod throughput;
mod widths;

use crate::experiment::Experiment;

/// The experiments of this room.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    vec![Box::new(throughput::Throughput), Box::new(widths::Widths)]
}
