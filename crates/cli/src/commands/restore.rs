//! `silt restore`: writes what a snapshot holds into a folder.

mod pick;

use crate::choose::find;
use crate::context::Context;
use crate::environment;
use crate::error::{CliError, Done};
use crate::parse::SnapshotReference;
use crate::patterns::{FilterArgs, SelectArgs};
use crate::prices;
use crate::progress::{Counts, Progress, Work};
use crate::render::{Cost, Transfer, clock, counted, describe, size, visible};
use crate::repository::{open, preset};
use clap::{Args, ValueEnum};
use serde::Serialize;
use siltstone_engine::fs::Ownership;
use siltstone_engine::restore::{Overwrite, RestoreOptions, RestoreSummary};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

/// Restore a snapshot, or part of it, into a folder
#[derive(Args, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct RestoreArgs {
    /// Id, latest or latest~N; with :PATH only what is below that path, which then becomes the target itself
    #[arg(value_name = "SNAPSHOT[:PATH]")]
    snapshot: OsString,
    /// Folder to restore into; made if there is none
    #[arg(short, long, value_name = "DIR", required = true)]
    target: PathBuf,
    /// Treatment of files that are already there
    #[arg(long, value_name = "WHEN", default_value = "always")]
    overwrite: OverwriteArg,
    /// Remove from the target what the snapshot does not hold
    #[arg(long)]
    delete: bool,
    /// Let --delete remove from the root folder or a home folder what the snapshot does not hold
    #[arg(long, requires = "delete")]
    unsafe_allow_delete: bool,
    /// Read everything back and compare, files that are kept too
    #[arg(long)]
    verify: bool,
    /// Keep what can be had of a damaged file as NAME.silt-damaged; otherwise it is left out
    #[arg(long)]
    keep_damaged: bool,
    /// Make holes for runs of zeros too; holes of the source are always made
    #[arg(long)]
    sparse: bool,
    /// Write nothing, only show what would be done
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Give files to owners by number; otherwise by name, where this machine knows the name
    #[arg(long, conflicts_with = "no_ownership")]
    numeric_ids: bool,
    /// Ask at the terminal what to restore: words narrow a list, numbers choose from it
    #[arg(long, conflicts_with_all = ["include", "iinclude", "include_file", "iinclude_file"])]
    pick: bool,
    /// Leave all files to the user who restores
    #[arg(long)]
    no_ownership: bool,
    /// Accepted for the sake of scripts: by name is how it is done
    #[arg(long, hide = true, conflicts_with_all = ["numeric_ids", "no_ownership"])]
    ownership_by_name: bool,
    #[command(flatten)]
    select: SelectArgs,
    #[command(flatten)]
    filter: FilterArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OverwriteArg {
    /// Replace them
    Always,
    /// Replace them if size or modification time differ
    IfChanged,
    /// Replace them if they are older
    IfNewer,
    /// Keep them
    Never,
}

impl From<OverwriteArg> for Overwrite {
    fn from(argument: OverwriteArg) -> Self {
        match argument {
            OverwriteArg::Always => Self::Always,
            OverwriteArg::IfChanged => Self::IfChanged,
            OverwriteArg::IfNewer => Self::IfNewer,
            OverwriteArg::Never => Self::Never,
        }
    }
}

pub(crate) fn run(arguments: &RestoreArgs, context: &Context) -> Result<Done, CliError> {
    let reference = SnapshotReference::from(arguments.snapshot.clone());
    let mut options = options(arguments, &reference, context)?;
    if arguments.pick {
        pick::require_terminal(context)?;
    }
    let repository = open(context)?;
    let (view, found) = find(&repository, &reference.snapshot, &arguments.filter.filter(), context.output)?;
    if arguments.pick {
        let picked = pick::pick(&repository, &view, options.below.as_ref(), context)?;
        options = options.with_filter(arguments.select.filter(picked)?);
    }
    let target = visible(arguments.target.as_os_str().as_bytes());
    context.output.report(format_args!("restoring snapshot {} to {target}", describe(&view)))?;

    let progress = Progress::begin(Work::Restore, context)?;
    let summary = context.session(&repository, &progress).restore(&view, &options)?;
    let (counts, elapsed) = (progress.counts(), progress.elapsed());
    progress.end();
    report(context, &summary, elapsed, arguments.dry_run)?;
    match failures(&summary, &counts, environment::is_root()) {
        0 => Ok(found),
        problems => Err(CliError::RestoreProblems { problems }),
    }
}

/// How many problems count: without root's rights owners and the like cannot be restored, which is no failure.
fn failures(summary: &RestoreSummary, counts: &Counts, is_root: bool) -> u64 {
    if is_root { summary.problems.max(counts.problems + counts.minor_problems) } else { counts.problems }
}

fn options(
    arguments: &RestoreArgs,
    reference: &SnapshotReference,
    context: &Context,
) -> Result<RestoreOptions, CliError> {
    let ownership = match (arguments.no_ownership, arguments.numeric_ids) {
        (true, _) => Ownership::None,
        (_, true) => Ownership::Numeric,
        _ => Ownership::ByName,
    };
    Ok(RestoreOptions::new(arguments.target.clone())
        .with_below(reference.entry_path()?)
        .with_filter(arguments.select.filter(Vec::new())?)
        .with_overwrite(arguments.overwrite.into())
        .with_delete(arguments.delete)
        .with_unsafe_delete(arguments.unsafe_allow_delete)
        .with_verify(arguments.verify)
        .with_keep_damaged(arguments.keep_damaged)
        .with_sparse(arguments.sparse)
        .with_dry_run(arguments.dry_run)
        .with_ownership(ownership)
        .with_gap_bytes(preset(context)?.gap_bytes()))
}

fn report(context: &Context, summary: &RestoreSummary, elapsed: Duration, dry_run: bool) -> Result<(), CliError> {
    let (transfer, cost) = (Transfer::of(&context.traffic), prices::cost(&summary.usage, context)?);
    if context.output.json {
        return context.output.json(&SummaryMessage::new(summary, elapsed, dry_run, (transfer, cost)));
    }
    let cost = cost.map_or_else(String::new, |cost| cost.lines_below("at most"));
    let text = text(summary, elapsed, dry_run, context.output.verbosity > 0);
    context.output.report(text + &transfer.line_below() + &cost)
}

fn text(summary: &RestoreSummary, elapsed: Duration, dry_run: bool, verbose: bool) -> String {
    let (verb, deleted) = if dry_run { ("Would restore", "would delete") } else { ("Restored", "deleted") };
    let (files, bytes) = (counted(summary.files_restored, "file"), size(summary.bytes_restored));
    let left = summary.bytes_total.saturating_sub(summary.bytes_restored);
    let parts = [
        Some(format!("Summary: {verb} {files} ({bytes}) in {}", clock(elapsed))),
        (summary.files_kept > 0).then(|| format!(", skipped {} {}", counted(summary.files_kept, "file"), size(left))),
        (summary.deleted > 0).then(|| format!(", {deleted} {}", counted(summary.deleted, "entry"))),
        (summary.files_verified > 0).then(|| format!("\nverified {}", counted(summary.files_verified, "file"))),
        (verbose && !dry_run).then(|| {
            let (read, visits) = (size(summary.bytes_read), summary.containers_read);
            let visits = counted(visits, "visit");
            format!("\nread {read} in {visits} to {}", counted(summary.containers_needed, "container"))
        }),
        (verbose && summary.bytes_prewritten > 0)
            .then(|| format!(", {} by way of a temporary file", size(summary.bytes_prewritten))),
    ];
    parts.into_iter().flatten().collect()
}

/// `message_type` `summary`.
#[derive(Serialize)]
struct SummaryMessage {
    message_type: &'static str,
    dry_run: bool,
    seconds_elapsed: u64,
    total_duration: f64,
    total_entries: u64,
    total_files: u64,
    files_restored: u64,
    files_skipped: u64,
    files_deleted: u64,
    files_verified: u64,
    total_bytes: u64,
    bytes_restored: u64,
    containers_needed: u64,
    containers_read: u64,
    bytes_read: u64,
    bytes_prewritten: u64,
    error_count: u64,
    #[serde(flatten)]
    transfer: Transfer,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Cost>,
}

impl SummaryMessage {
    fn new(
        summary: &RestoreSummary,
        elapsed: Duration,
        dry_run: bool,
        (transfer, cost): (Transfer, Option<Cost>),
    ) -> Self {
        Self {
            message_type: "summary",
            dry_run,
            seconds_elapsed: elapsed.as_secs(),
            total_duration: elapsed.as_secs_f64(),
            total_entries: summary.entries,
            total_files: summary.files_restored + summary.files_kept,
            files_restored: summary.files_restored,
            files_skipped: summary.files_kept,
            files_deleted: summary.deleted,
            files_verified: summary.files_verified,
            total_bytes: summary.bytes_total,
            bytes_restored: summary.bytes_restored,
            containers_needed: summary.containers_needed,
            containers_read: summary.containers_read,
            bytes_read: summary.bytes_read,
            bytes_prewritten: summary.bytes_prewritten,
            error_count: summary.problems,
            transfer,
            cost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> RestoreSummary {
        RestoreSummary { entries: 9, files_restored: 5, bytes_restored: 20, bytes_total: 30, ..Default::default() }
    }

    #[test]
    fn the_report_tells_only_what_happened() {
        assert_eq!(text(&summary(), Duration::ZERO, false, false), "Summary: Restored 5 files (20 B) in 0:00");
        let all = RestoreSummary { files_kept: 2, deleted: 1, files_verified: 5, ..summary() };
        let expected = "Summary: Would restore 5 files (20 B) in 0:00, skipped 2 files 10 B, would delete 1 entry\nverified 5 files";
        assert_eq!(text(&all, Duration::ZERO, true, true), expected);
        let read = RestoreSummary { containers_needed: 3, containers_read: 4, bytes_read: 2048, ..summary() };
        let expected = "Summary: Restored 5 files (20 B) in 0:00\nread 2.000 KiB in 4 visits to 3 containers";
        assert_eq!(text(&read, Duration::ZERO, false, true), expected);
        let waited = RestoreSummary { bytes_prewritten: 1024, ..read };
        assert!(
            text(&waited, Duration::ZERO, false, true).ends_with("containers, 1.000 KiB by way of a temporary file")
        );
    }

    #[test]
    fn the_summary_message_tells_what_was_read() {
        let summary = RestoreSummary {
            containers_needed: 3,
            containers_read: 4,
            bytes_read: 5,
            bytes_prewritten: 6,
            ..summary()
        };
        let json =
            serde_json::to_value(SummaryMessage::new(&summary, Duration::ZERO, false, (Transfer::new(1, 2), None)))
                .expect("plain data");
        let fields = ["containers_needed", "containers_read", "bytes_read", "bytes_prewritten"];
        assert_eq!(fields.map(|field| json[field].as_u64()), [3, 4, 5, 6].map(Some));
        assert_eq!(json["bytes_received"], 2);
    }

    #[test]
    fn owners_are_no_failure_without_the_right_to_set_them() {
        let counts = Counts { minor_problems: 4, ..Counts::default() };
        let summary = RestoreSummary { problems: 4, ..summary() };
        assert_eq!(failures(&summary, &counts, false), 0);
        assert_eq!(failures(&summary, &counts, true), 4);
        let counts = Counts { problems: 1, ..counts };
        assert_eq!(failures(&summary, &counts, false), 1);
    }
}
