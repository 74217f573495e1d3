//! Everything the five papers compare, side by side on the same data.
//!
//! ```text
//! corpus                      versions of something on disk: made, fetched, or the user's own
//! experiment                  subjects, measured in turns, each result checked in the run that times it
//!   chunk sketch pipeline store     the experiments, a room for each paper's question
//! run                         settings -> inputs x experiments x rounds -> samples, journalled as they come
//! report                      findings -> tables, CSV, JSON, one page of HTML with the plots
//! claims                      what the papers say, held against what was found
//! estimate                    what some versions would take in four stores, for the user's own data
//! ```
//!
//! The library below the program `silt-lab`. Corpora, data, statistics and programs are those of `siltstone-testbed`;
//! the project's own benchmarks use methods from here too.

pub mod chunk;
pub mod claims;
pub mod estimate;
pub mod experiment;
pub mod memory;
pub mod pipeline;
pub mod report;
mod repository;
pub mod run;
pub mod settings;
pub mod sketch;
pub mod store;
mod thread_time;

use siltstone_chunk::Isa;
use siltstone_testbed::{archive, corpus, data, deterministic, statistics, table, tree};

/// Instruction sets that are measured: those the CPU has, as far as the environment allows ([`Isa::VARIABLE`]).
fn isas() -> impl Iterator<Item = Isa> {
    Isa::available().filter(|isa| *isa <= Isa::best())
}

/// The different ones of these items, in the order in which they first occur.
fn distinct<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for item in items {
        if !distinct.contains(&item) {
            distinct.push(item);
        }
    }
    distinct
}

/// Every experiment there is.
pub fn experiments() -> Vec<Box<dyn experiment::Experiment>> {
    let rooms = [chunk::experiments(), sketch::experiments(), pipeline::experiments(), store::experiments()];
    rooms.into_iter().flatten().collect()
}
