//! Chunkers: how fast they cut, what deduplication then saves, how their chunks are spread (AE, TC'17; `VectorCDC`,
//! TOS'25).
//!
//! | file | holds |
//! |---|---|
//! | `method.rs`, `papers.rs`, `setup.rs`, `outside.rs`, `fingerprints.rs`, `floor.rs` | what is measured |
//! | `oracle.rs` | where chunks end, a second time |
//! | `cuts.rs`, `chunks.rs` | chunks summed up |
//! | `search.rs`, `equal.rs` | the expected size for a real average |
//! | `common.rs`, `forms.rs` | what experiments share |
//! | `throughput.rs`, `widths.rs`, `bottleneck.rs` | time: `chunk-throughput`, `chunk-widths`, `chunk-fingerprint` |
//! | `phases.rs`, `two_phase.rs` | where it goes: `chunk-phases` |
//! | `savings.rs`, `advice.rs`, `equal_savings.rs` | space: `chunk-savings`, `chunk-equal` |
//! | `sizes.rs`, `long_chunks.rs`, `theory.rs`, `low_entropy.rs` | chunks: `chunk-sizes`, `chunk-long`, `chunk-low-entropy` |

mod advice;
mod bottleneck;
mod chunks;
mod common;
pub mod cuts;
pub mod equal;
mod equal_savings;
pub mod fingerprints;
pub mod floor;
pub mod forms;
mod long_chunks;
mod low_entropy;
pub mod method;
mod oracle;
mod outside;
mod papers;
mod phases;
mod savings;
pub mod search;
mod setup;
mod sizes;
mod theory;
mod throughput;
mod two_phase;
mod widths;

use crate::experiment::Experiment;

/// The experiments of this room; first the one that advises.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    vec![
        Box::new(savings::Savings),
        Box::new(throughput::Throughput),
        Box::new(widths::Widths),
        Box::new(phases::PhaseShares),
        Box::new(bottleneck::Bottleneck),
        Box::new(equal_savings::EqualSavings),
        Box::new(sizes::ChunkSizes),
        Box::new(long_chunks::LongChunks),
        Box::new(low_entropy::LowEntropy),
    ]
}
