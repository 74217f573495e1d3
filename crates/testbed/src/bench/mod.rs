//! Parts that benchmarks share, whether they run as a task or as a program of their own.
//!
//! | file | holds |
//! |---|---|
//! | `options.rs` | what benchmarks take that are parsed by the task and run by another program |
//! | `rounds.rs`, `patch_chain.rs` | fair turns; zstd over whole versions |
//! | `publish.rs` | tables, rows, records |

pub mod options;
pub mod patch_chain;
pub mod publish;
pub mod rounds;

pub use options::{DataOptions, HistoryOptions, Rounds};
