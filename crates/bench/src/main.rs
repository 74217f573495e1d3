//! Benchmarks of the parts, which have the crates to be measured in their own process: `cargo xtask bench chunk`,
//! `similar`, `stages` and `scale` start this program. Every benchmark is a test first: a time is printed only for a
//! result that was compared with what it should be.

mod chunk;
mod scale;
mod similar;
mod stages;

use anyhow::{Result, anyhow};
use clap::Parser;
use siltstone_testbed::bench::options::{ChunkOptions, ScaleOptions, SimilarOptions, StagesOptions};
use std::process::ExitCode;

/// Benchmarks of the parts.
#[derive(Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench")]
enum Bench {
    /// Where the time of a backup goes, stage by stage, beside what each stage's work takes alone.
    Stages(StagesOptions),
    /// Every chunker: how fast it cuts data in memory, and what it saves on real data at equal real averages.
    Chunk(ChunkOptions),
    /// Deltas of chunks and of regions: speed, size, and what they come to on real versions.
    Similar(SimilarOptions),
    /// How time, memory and the repository's own bytes grow with the source, up to 1 TB in ten million files.
    Scale(ScaleOptions),
    /// One command of `scale`, in a process of its own.
    #[command(hide = true)]
    ScaleStep(scale::StepOptions),
}

fn main() -> ExitCode {
    match run(&Bench::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cargo xtask bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(bench: &Bench) -> Result<()> {
    match bench {
        Bench::Stages(options) => stages::run(options),
        Bench::Chunk(options) => chunk::run(options),
        Bench::Similar(options) => similar::run(options),
        Bench::Scale(options) => scale::run(options),
        Bench::ScaleStep(options) => scale::step(options),
    }
}

/// Error that zstd names by this code.
fn zstd_error(code: usize) -> anyhow::Error {
    anyhow!("zstd: {}", zstd_safe::get_error_name(code))
}
