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

use super::publish::{Output, Row};
use crate::workspace;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use siltstone_lab::corpus::Amount;
use siltstone_lab::data::{Data, Source};
use std::path::PathBuf;

/// What it takes.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    output: Output,
    /// Your own data: a file, or a folder with one file or folder per version, in the order of their names; several
    /// times for several.
    #[arg(long, value_name = "DIR_OR_FILE")]
    data: Vec<PathBuf>,
    /// Only these parts; all by default.
    #[arg(long, value_delimiter = ',', value_name = "PARTS")]
    only: Vec<Part>,
    /// How often speeds are measured; 5 by default, 3 with --quick.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rounds: Option<u64>,
}

/// What is measured on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    Policy,
    Codecs,
    Regions,
    Layouts,
}

/// What a part found.
#[derive(Default)]
pub(super) struct Findings {
    /// For people.
    pub(super) tables: String,
    /// Flat, for programs.
    pub(super) rows: Vec<Row>,
    /// What explains the numbers, a line each.
    pub(super) notes: Vec<String>,
    /// Names of rows whose results were not what they should be.
    pub(super) wrong: Vec<String>,
}

impl Options {
    fn rounds(&self) -> u64 {
        self.rounds.unwrap_or(if self.output.quick { 3 } else { 5 })
    }

    /// The user's data, or else versions of different kinds; each brought into memory when its turn comes.
    fn sources(&self) -> Result<impl Iterator<Item = Result<Data>> + use<>> {
        let amount = if self.output.quick { Amount::Little } else { Amount::Memory };
        let sources: Vec<Source> =
            if self.data.is_empty() { Source::for_resemblance(&workspace::corpora()?, amount)? } else { self.given()? };
        Ok(sources.into_iter().map(|source| source.load()))
    }

    /// The user's data; none if nothing is named.
    fn given(&self) -> Result<Vec<Source>> {
        self.data.iter().map(|path| Source::given(path)).collect()
    }

    fn parts(&self) -> Vec<Part> {
        if self.only.is_empty() { Part::value_variants().to_vec() } else { self.only.clone() }
    }

    fn measure(&self, part: Part) -> Result<Findings> {
        match part {
            Part::Policy => policy::measure(self.sources()?),
            Part::Layouts => layouts::measure(self.sources()?, self.output.quick, &workspace::target()?),
            Part::Codecs => codecs::measure(self.sources()?, self.rounds(), self.output.quick, &workspace::target()?),
            Part::Regions => regions::measure(self.sources()?, self.rounds(), self.output.quick),
        }
    }
}

/// Runs the parts and prints their tables.
pub(crate) fn run(options: &Options) -> Result<()> {
    if cfg!(debug_assertions) {
        return workspace::run_again_in_release();
    }
    let mut all = Findings::default();
    let parts = options.parts();
    for part in &parts {
        let found = options.measure(*part)?;
        all.tables += &found.tables;
        all.rows.extend(found.rows);
        all.notes.extend(found.notes);
        all.wrong.extend(found.wrong);
    }
    let names: Vec<String> =
        parts.iter().filter_map(|part| Some(part.to_possible_value()?.get_name().to_owned())).collect();
    let variant = if options.only.is_empty() { "similar".into() } else { format!("similar-{}", names.join("-")) };
    options.output.publish(&variant, &all.tables, &all.rows, &all.notes, &workspace::target()?)?;
    if !all.wrong.is_empty() {
        bail!("these rows found something else than they should: {}", all.wrong.join("; "));
    }
    let _ = options.rounds();
    Ok(())
}
