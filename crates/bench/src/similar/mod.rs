//! Deltas and what they come to, each part measured on its own: `cargo xtask bench similar`. Sketches are measured by
//! `silt-lab sketch`.
//!
//! | part | file | question |
//! |---|---|---|
//! | `policy` | `policy.rs` | which fit, filter, depth, and how many snapshots back? |
//! | `codecs` | `codecs.rs` | how fast and how small are deltas of chunks? |
//! | `regions` | `regions.rs` | how fast and how small are deltas of regions? |
//! | `layouts` | `layouts.rs` | what do whole histories come to, whichever way deltas point? |

mod candidates;
mod chain;
mod codecs;
mod costs;
mod layouts;
mod pairs;
mod peers;
mod policy;
mod regional;
mod regions;
mod xdelta;

use anyhow::Result;
use clap::ValueEnum;
use siltstone_testbed::bench::options::{Part, SimilarOptions};
use siltstone_testbed::bench::publish::Row;
use siltstone_testbed::workspace;

/// Findings of one part.
#[derive(Default)]
pub(super) struct Findings {
    /// For people.
    pub(super) tables: String,
    /// Flat, for programs.
    pub(super) rows: Vec<Row>,
    /// Notes that explain the numbers, a line each.
    pub(super) notes: Vec<String>,
}

fn measure(part: Part, options: &SimilarOptions) -> Result<Findings> {
    let (rounds, quick) = (options.memory.rounds(), options.memory.output.quick);
    match part {
        Part::Policy => policy::measure(options.sources()?),
        Part::Layouts => layouts::measure(options.sources()?, quick, &workspace::target()?),
        Part::Codecs => codecs::measure(options.sources()?, rounds, quick, &workspace::target()?),
        Part::Regions => regions::measure(options.sources()?, rounds, quick),
    }
}

/// Runs the parts and prints their tables.
pub(crate) fn run(options: &SimilarOptions) -> Result<()> {
    let mut all = Findings::default();
    let parts = options.parts();
    for part in &parts {
        let found = measure(*part, options)?;
        all.tables += &found.tables;
        all.rows.extend(found.rows);
        all.notes.extend(found.notes);
    }
    let names: Vec<String> =
        parts.iter().filter_map(|part| Some(part.to_possible_value()?.get_name().to_owned())).collect();
    let variant = if options.only.is_empty() { "similar".into() } else { format!("similar-{}", names.join("-")) };
    options.memory.output.publish(&variant, &all.tables, &all.rows, &all.notes, &workspace::target()?)
}
