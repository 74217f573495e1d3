//! `silt stats`: figures about the repository and its snapshots.

mod messages;

use super::forget;
use crate::choose::{find_all, keys, without};
use crate::context::Context;
use crate::error::{CliError, Done};
use crate::output::Output;
use crate::patterns::FilterArgs;
use crate::render::{Table, brief, counted, exact, local, size};
use crate::repository::open;
use clap::{Args, ValueEnum};
use messages::StatsJson;
use siltstone_engine::forget::held_by;
use siltstone_engine::snapshots::{SnapshotView, list_readable};
use siltstone_engine::stats::{BorrowedFigures, DeltaFigures, SnapshotFigures, Stats, stats};
use siltstone_store::repository::Repository;

/// Figures about the repository and its snapshots
#[derive(Args, Debug)]
pub(crate) struct StatsArgs {
    /// Only these snapshots [default: all; of each series the first, the middle and the last are shown]
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Show all figures, and of the snapshots by themselves
    #[arg(long)]
    detail: bool,
    /// Bytes that the total size of --detail and --json counts
    #[arg(long, value_name = "MODE", default_value = "restore-size")]
    mode: Mode,
    #[command(flatten)]
    filter: FilterArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Mode {
    /// Bytes that restoring every snapshot would write
    RestoreSize,
    /// Bytes that the chunks of the snapshots take in the repository, each once
    RawData,
}

pub(crate) fn run(arguments: &StatsArgs, context: &Context) -> Result<Done, CliError> {
    let repository = open(context)?;
    let (figures, done) = gather(arguments, &repository, context.output)?;
    let deleted = Deleted::find(arguments, &repository, context)?;
    if context.output.json {
        context.output.json(&StatsJson::new(total(arguments.mode, &figures), &figures, &deleted))?;
    } else if !arguments.detail {
        context.output.line(summary(&figures, &deleted))?;
    } else {
        context.output.line(text(arguments.mode, &figures, &deleted))?;
        if !figures.by_snapshot.is_empty() {
            let is_narrow = context.output.columns().is_some_and(|columns| columns < DETAIL_COLUMNS);
            context.output.line(format_args!("\n{}", table(&figures, !arguments.ids.is_empty(), is_narrow)))?;
        }
    }
    Ok(done)
}

/// The snapshots that are marked as deleted, of those that pass the filter.
#[derive(Default)]
struct Deleted {
    snapshots: u64,
    /// Bytes that come back when all of them end.
    bytes: i64,
}

impl Deleted {
    fn find(arguments: &StatsArgs, repository: &Repository, context: &Context) -> Result<Self, CliError> {
        // What cannot be read has been told.
        let (views, _) = list_readable(repository, &arguments.filter.filter().with_deleted(true))?;
        let bytes = held_by(repository, &keys(&views), &forget::options(context)?, &context.resources())?;
        Ok(Self { snapshots: views.len() as u64, bytes })
    }
}

fn gather(arguments: &StatsArgs, repository: &Repository, output: Output) -> Result<(Stats, Done), CliError> {
    let filter = arguments.filter.filter();
    let (views, found) = find_all(repository, &arguments.ids, &filter, output)?;
    let keys = keys(&views);
    let is_wanted = |view: &SnapshotView| {
        if keys.is_empty() { filter.matches(view) } else { keys.contains(&(view.series, view.snapshot.id)) }
    };
    let (figures, damaged) = stats(repository, &is_wanted)?;
    let told = if found == Done::Whole { without(&damaged, output) } else { found };
    Ok((figures, told))
}

fn total(mode: Mode, stats: &Stats) -> u64 {
    match mode {
        Mode::RestoreSize => stats.restore_bytes,
        Mode::RawData => stats.data.stored_bytes + stats.metadata.stored_bytes,
    }
}

/// How often one goes into the other; `None` if that is nothing.
#[allow(clippy::cast_precision_loss, reason = "two decimals are shown")]
fn ratio(whole: u64, part: u64) -> Option<f64> {
    (part > 0).then(|| whole as f64 / part as f64)
}

fn times(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}x"))
}

/// Where the bytes went, in four lines, and more where there is more to tell.
fn summary(stats: &Stats, deleted: &Deleted) -> String {
    let (data, metadata) = (&stats.data, &stats.metadata);
    let stored = data.stored_bytes + metadata.stored_bytes;
    let less = ratio(stats.restore_bytes, stored).map_or_else(String::new, |ratio| format!(", {ratio:.1} times less"));
    let (files, snapshots) = (counted(stats.files, "file"), counted(stats.snapshots, "snapshot"));
    let saved = [
        ("deduplication", stats.restore_bytes.saturating_sub(data.unique_bytes)),
        ("deltas", data.unique_bytes.saturating_sub(data.after_delta_bytes)),
        ("compression", data.after_delta_bytes.saturating_sub(data.stored_bytes)),
    ];
    let saved = saved.map(|(by, bytes)| format!("{by} {}", brief(bytes)));
    let (data, metadata) = (stats.data_container_bytes, stats.metadata_container_bytes);
    let rest = stats.repository_bytes.saturating_sub(data + metadata);
    let parts = format!("data {}, metadata {}, other {}", brief(data), brief(metadata), brief(rest));
    let rows = [
        ("Sources", format!("{} in {files} of {snapshots}", size(stats.restore_bytes))),
        ("Stored", format!("{}{less}", size(stored))),
        ("Saved by", saved.join(", ")),
        ("Repository", format!("{}: {parts}", size(stats.repository_bytes))),
    ];
    let rows = rows.into_iter().chain(asides(stats, deleted));
    let lines: Vec<String> = rows.map(|(name, value)| format!("{name:>10}:  {value}")).collect();
    format!("{}{}", lines.join("\n"), borrowed(stats))
}

/// Figures that most repositories do not have.
fn asides(stats: &Stats, deleted: &Deleted) -> impl Iterator<Item = (&'static str, String)> {
    let older = (stats.older_key_bytes > 0).then(|| ("Under Older Master Keys", size(stats.older_key_bytes)));
    let held = || format!("{}, which hold {}", deleted.snapshots, exact(deleted.bytes));
    let deleted = (deleted.snapshots > 0).then(|| ("Deleted Snapshots", held()));
    let lent = (stats.lent_bytes > 0).then(|| ("Kept For Other Series", size(stats.lent_bytes)));
    older.into_iter().chain(deleted).chain(lent)
}

/// restic's lines, and below them ours.
fn text(mode: Mode, stats: &Stats, deleted: &Deleted) -> String {
    let word = match mode {
        Mode::RestoreSize => "restore-size",
        Mode::RawData => "raw-data",
    };
    let (data, metadata) = (&stats.data, &stats.metadata);
    let rows = [
        ("Snapshots processed", stats.snapshots.to_string()),
        ("Total File Count", stats.files.to_string()),
        ("Total Size", size(total(mode, stats))),
        ("Total Chunk Count", data.chunks.to_string()),
        ("Total Uncompressed Size", size(data.unique_bytes)),
        ("Deduplication Ratio", times(ratio(stats.restore_bytes, data.unique_bytes))),
        ("Compression Ratio", times(ratio(data.unique_bytes, data.stored_bytes))),
        ("Containers", stats.containers.to_string()),
        ("Data Containers", size(stats.data_container_bytes)),
        ("Metadata Containers", size(stats.metadata_container_bytes)),
        ("Repository Size", size(stats.repository_bytes)),
    ];
    let left = |bytes| match ratio(stats.restore_bytes, bytes) {
        Some(ratio) => format!("{} ({ratio:.2}x)", size(bytes)),
        None => size(bytes),
    };
    let bases = (data.bases + metadata.bases, data.base_bytes + metadata.base_bytes);
    let more = [
        ("Logical Size", size(stats.restore_bytes)),
        ("After Deduplication", left(data.unique_bytes)),
        ("After Deltas", left(data.after_delta_bytes)),
        ("After Compression", left(data.stored_bytes)),
        ("Metadata", format!("{}, {} stored", size(metadata.unique_bytes), size(metadata.stored_bytes))),
        ("In Deltas", in_deltas(&data.deltas.and(metadata.deltas))),
        ("Kept For Deltas Only", format!("{}, {}", counted(bases.0, "chunk"), size(bases.1))),
        ("Deltas Of Backups", counts(stats.deltas_kept, stats.deltas_rejected, stats.deltas_skipped)),
        ("Moved After Backups", size(stats.bytes_migrated)),
    ];
    let more: Vec<_> = more.into_iter().chain(asides(stats, deleted)).collect();
    let lines = |rows: &[(&str, String)]| {
        let lines = rows.iter().map(|(name, value)| format!("{name:>24}:  {value}"));
        lines.collect::<Vec<_>>().join("\n")
    };
    format!("Stats in {word} mode:\n{}\n\n{}{}", lines(&rows), lines(&more), borrowed(stats))
}

/// Lines about series that borrow of others; empty if none does.
fn borrowed(stats: &Stats) -> String {
    let line = |of: &BorrowedFigures| {
        let kept = if of.only_for_others > 0 { ", of which that one keeps some for others only" } else { "" };
        format!("\nseries '{}' borrows {} of '{}'{kept}", of.series, size(of.plain_bytes), of.lender)
    };
    let lines: String = stats.borrowed.iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

fn counts(kept: u64, rejected: u64, skipped: u64) -> String {
    format!("{kept} kept, {rejected} rejected, {skipped} skipped")
}

fn in_deltas(deltas: &DeltaFigures) -> String {
    match deltas.efficiency() {
        None => "0 chunks".to_owned(),
        Some(efficiency) => {
            let (plain, stored) = (size(deltas.plain_bytes), size(deltas.stored_bytes));
            let percent = 100.0 * efficiency;
            format!("{}, {plain} as {stored} (DCE {percent:.1} %)", counted(deltas.chunks, "chunk"))
        }
    }
}

/// Columns that the table of snapshots by themselves takes.
const DETAIL_COLUMNS: usize = 112;
/// Its headings, and whether a narrow terminal has room for the column.
const HEADINGS: [(&str, bool); 10] = [
    ("ID", true),
    ("Time", false),
    ("Size", true),
    ("Unique", true),
    ("With\nDeltas", true),
    ("Stored", true),
    ("Metadata", true),
    ("Containers", false),
    ("Read", true),
    ("Read/\nNeeded", true),
];

/// Snapshots by themselves: all that were asked for by name; else of each series the first, the middle and the last.
fn table(stats: &Stats, are_named: bool, is_narrow: bool) -> Table {
    let shown_columns = HEADINGS.map(|(_, fits)| fits || !is_narrow);
    let headings = HEADINGS.iter().zip(shown_columns).filter(|(_, shown)| *shown);
    let mut table = Table::new(headings.map(|((heading, _), _)| *heading).collect());
    let mut shown = 0;
    for series in stats.by_snapshot.chunk_by(|a, b| a.view.series == b.view.series) {
        let places = if are_named || series.len() <= 3 {
            (0..series.len()).collect()
        } else {
            vec![0, series.len() / 2, series.len() - 1]
        };
        for figures in places.into_iter().filter_map(|at| series.get(at)) {
            shown += 1;
            let cells = cells(figures).into_iter().zip(shown_columns).filter(|(_, shown)| *shown);
            table.row(cells.map(|(cell, _)| vec![cell]).collect());
        }
    }
    let all = stats.by_snapshot.len();
    let not_all = "the first, the middle and the last of each series";
    let footer = if shown == all { counted(all as u64, "snapshot") } else { format!("{shown} of {all}: {not_all}") };
    table.footer(footer);
    table
}

fn cells(figures: &SnapshotFigures) -> [String; 10] {
    let snapshot = &figures.view.snapshot;
    [
        snapshot.id.short(),
        local(snapshot.time),
        brief(snapshot.statistics.logical_bytes),
        brief(figures.data.unique_bytes),
        brief(figures.data.after_delta_bytes),
        brief(figures.data.stored_bytes),
        brief(figures.metadata.stored_bytes),
        figures.containers_needed.to_string(),
        brief(figures.bytes_read),
        times(figures.read_amplification()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::snapshot_tests::view;
    use siltstone_engine::stats::Reduction;

    fn figures(number: u8, series: &str) -> SnapshotFigures {
        let mut view = view(number, &[], Some(series));
        view.series.0 = [series.as_bytes()[0]; 16];
        SnapshotFigures {
            view,
            data: Reduction { unique_bytes: 2048, after_delta_bytes: 1024, stored_bytes: 800, ..Reduction::default() },
            metadata: Reduction { stored_bytes: 100, ..Reduction::default() },
            containers_needed: 7,
            metadata_containers_needed: 2,
            bytes_read: 1000,
        }
    }

    fn some() -> Stats {
        let deltas = DeltaFigures { chunks: 5, plain_bytes: 2000, stored_bytes: 100 };
        Stats {
            snapshots: 2,
            restore_bytes: 6000,
            data: Reduction {
                chunks: 3,
                unique_bytes: 3000,
                after_delta_bytes: 1500,
                stored_bytes: 1000,
                deltas,
                ..Reduction::default()
            },
            metadata: Reduction {
                unique_bytes: 500,
                stored_bytes: 50,
                bases: 1,
                base_bytes: 9,
                ..Reduction::default()
            },
            deltas_kept: 8,
            deltas_rejected: 2,
            deltas_skipped: 1,
            bytes_migrated: 4096,
            data_container_bytes: 2000,
            by_snapshot: vec![figures(1, "mail")],
            ..Stats::default()
        }
    }

    #[test]
    fn an_empty_repository_has_no_ratios() {
        let text = text(Mode::RestoreSize, &Stats::default(), &Deleted::default());
        assert!(text.contains("       Compression Ratio:  -"), "{text}");
        assert!(text.contains("       After Compression:  0 B\n"), "{text}");
        assert!(text.contains("               In Deltas:  0 chunks\n"), "{text}");
    }

    #[test]
    fn modes_say_what_the_total_is() {
        assert_eq!(total(Mode::RestoreSize, &some()), 6000);
        assert_eq!(total(Mode::RawData, &some()), 1050, "of data and metadata");
        assert!(
            text(Mode::RawData, &some(), &Deleted::default())
                .starts_with("Stats in raw-data mode:\n     Snapshots processed:  2\n")
        );
    }

    #[test]
    fn each_step_is_told() {
        let text = text(Mode::RestoreSize, &some(), &Deleted::default());
        let (restics, ours) = text.split_once("\n\n").expect("two parts");
        assert!(restics.contains("     Deduplication Ratio:  2.00x\n       Compression Ratio:  3.00x\n"), "{text}");
        let expected = "            Logical Size:  5.859 KiB
     After Deduplication:  2.930 KiB (2.00x)
            After Deltas:  1.465 KiB (4.00x)
       After Compression:  1000 B (6.00x)
                Metadata:  500 B, 50 B stored
               In Deltas:  5 chunks, 1.953 KiB as 100 B (DCE 95.0 %)
    Kept For Deltas Only:  1 chunk, 9 B
       Deltas Of Backups:  8 kept, 2 rejected, 1 skipped
     Moved After Backups:  4.000 KiB";
        assert_eq!(ours, expected);
        let deleted = Deleted { snapshots: 2, bytes: 3072 };
        let told = super::text(Mode::RestoreSize, &some(), &deleted);
        let expected = "       Deleted Snapshots:  2, which hold 3.000 KiB (3072 bytes)";
        assert_eq!(told.lines().last(), Some(expected));
    }

    #[test]
    fn the_first_the_middle_and_the_last_of_each_series_are_shown() {
        let many = (1..=9).map(|number| figures(number, "mail")).chain([figures(20, "other"), figures(21, "other")]);
        let stats = Stats { by_snapshot: many.collect(), ..Stats::default() };
        let text = table(&stats, false, false).to_string();
        let ids: Vec<&str> = text.lines().skip(3).take(5).map(|line| &line[..2]).collect();
        assert_eq!(ids, ["01", "05", "09", "14", "15"], "{text}");
        assert!(text.ends_with("5 of 11: the first, the middle and the last of each series"), "{text}");
        assert!(text.contains("7           1000 B  1.25x\n"), "{text}");
        assert!(table(&stats, true, false).to_string().ends_with("\n11 snapshots"));
        let narrow = table(&stats, true, true).to_string();
        assert!(narrow.lines().all(|line| line.len() <= 80) && !narrow.contains("Time"), "{narrow}");
    }
}
