//! `silt stats`: figures about the repository.

use super::Context;
use crate::error::{CliError, Done};
use crate::patterns::FilterArgs;
use crate::render::size;
use crate::repository::open;
use clap::{Args, ValueEnum};
use serde::Serialize;
use siltstone_engine::stats::{Stats, stats};

/// Figures about the repository and its snapshots
#[derive(Args, Debug)]
pub(crate) struct StatsArgs {
    /// What the total size counts
    #[arg(long, value_name = "MODE", default_value = "restore-size")]
    mode: Mode,
    #[command(flatten)]
    filter: FilterArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Mode {
    /// What restoring every snapshot would write
    RestoreSize,
    /// What the chunks of the snapshots take in the repository, each once
    RawData,
}

#[derive(Serialize)]
struct StatsJson {
    total_size: u64,
    total_file_count: u64,
    total_blob_count: u64,
    total_uncompressed_size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    compression_ratio: Option<f64>,
    snapshots_count: u64,
    containers_count: u64,
    data_container_bytes: u64,
    metadata_container_bytes: u64,
    repository_bytes: u64,
}

pub(super) fn run(arguments: &StatsArgs, context: &Context) -> Result<Done, CliError> {
    let repository = open(context)?;
    let stats = stats(&repository, &arguments.filter.filter())?;
    if context.output.json {
        context.output.json(&json(arguments.mode, &stats))?;
    } else {
        context.output.line(text(arguments.mode, &stats))?;
    }
    Ok(Done::Whole)
}

fn total(mode: Mode, stats: &Stats) -> u64 {
    match mode {
        Mode::RestoreSize => stats.restore_bytes,
        Mode::RawData => stats.data_container_bytes + stats.metadata_container_bytes,
    }
}

/// How many times the unique bytes go into what holds them; `None` for an empty repository.
#[allow(clippy::cast_precision_loss, reason = "two decimals are shown")]
fn ratio(whole: u64, part: u64) -> Option<f64> {
    (part > 0).then(|| whole as f64 / part as f64)
}

fn json(mode: Mode, stats: &Stats) -> StatsJson {
    StatsJson {
        total_size: total(mode, stats),
        total_file_count: stats.files,
        total_blob_count: stats.chunks,
        total_uncompressed_size: stats.unique_bytes,
        compression_ratio: ratio(stats.unique_bytes, stats.data_container_bytes),
        snapshots_count: stats.snapshots,
        containers_count: stats.containers,
        data_container_bytes: stats.data_container_bytes,
        metadata_container_bytes: stats.metadata_container_bytes,
        repository_bytes: stats.repository_bytes,
    }
}

fn text(mode: Mode, stats: &Stats) -> String {
    let ratio = |whole, part| ratio(whole, part).map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}x"));
    let word = match mode {
        Mode::RestoreSize => "restore-size",
        Mode::RawData => "raw-data",
    };
    let rows = [
        ("Snapshots processed", stats.snapshots.to_string()),
        ("Total File Count", stats.files.to_string()),
        ("Total Size", size(total(mode, stats))),
        ("Total Chunk Count", stats.chunks.to_string()),
        ("Total Uncompressed Size", size(stats.unique_bytes)),
        ("Deduplication Ratio", ratio(stats.restore_bytes, stats.unique_bytes)),
        ("Compression Ratio", ratio(stats.unique_bytes, stats.data_container_bytes)),
        ("Containers", stats.containers.to_string()),
        ("Data Containers", size(stats.data_container_bytes)),
        ("Metadata Containers", size(stats.metadata_container_bytes)),
        ("Repository Size", size(stats.repository_bytes)),
    ];
    let lines = rows.map(|(name, value)| format!("{name:>24}:  {value}"));
    format!("Stats in {word} mode:\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_repository_has_no_ratios() {
        let text = text(Mode::RestoreSize, &Stats::default());
        assert!(text.contains("       Compression Ratio:  -"), "{text}");
        let stats = Stats { unique_bytes: 30, data_container_bytes: 20, restore_bytes: 60, ..Stats::default() };
        assert_eq!(json(Mode::RawData, &stats).compression_ratio, Some(1.5));
        assert_eq!(json(Mode::RawData, &stats).total_size, 20);
        assert_eq!(json(Mode::RestoreSize, &stats).total_size, 60);
    }
}
