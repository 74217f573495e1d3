//! `silt copy`: copies snapshots from another repository into this one.

use super::copying::CopyingArgs;
use crate::choose::find_all_or_list;
use crate::context::Context;
use crate::error::{CliError, Done};
use crate::from::FromArgs;
use crate::memory;
use crate::patterns::FilterArgs;
use crate::prices;
use crate::progress::{Progress, Work};
use crate::render::{Cost, Transfer, clock, counted, seconds, size};
use crate::repository::{open, open_from};
use crate::retry::while_locked;
use clap::Args;
use serde::Serialize;
use siltstone_engine::copy::{CopiedSnapshot, CopySummary};
use siltstone_engine::snapshots::SnapshotView;
use siltstone_store::repository::Repository;
use std::time::Duration;

/// Copy snapshots from another repository into this one
///
/// Each snapshot goes into the series of the same name, with its time, host, user, paths, tags and description, oldest
/// first. What it holds is cut, encrypted and laid out anew with the keys and options of this repository, so that the
/// two share no secret and each forgets on its own. Snapshots that are here already, marked as deleted or not, are
/// skipped; a copy has the first half of its original's id. One that was forgotten here is copied again: choose by ID
/// or filter what is wanted.
#[derive(Args, Debug)]
pub(crate) struct CopyArgs {
    /// Only these snapshots of the source: ids, latest or latest~N [default: all that pass the filters]
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    filter: FilterArgs,
    /// Read no content and write nothing, only show which snapshots would be copied and about how much that is: as much
    /// as it takes in the source
    #[arg(short = 'n', long)]
    dry_run: bool,
    #[command(flatten)]
    copying: CopyingArgs,
    #[command(flatten)]
    from: FromArgs,
}

pub(crate) fn run(arguments: &CopyArgs, context: &Context) -> Result<Done, CliError> {
    let options = arguments.copying.options(arguments.dry_run, context)?;
    let source = open_from(context, &arguments.from)?;
    let destination = open(context)?;
    let (snapshots, found) = wanted(arguments, &source, context)?;
    let progress = Progress::begin(Work::Copy, context)?;
    let (from, into) = (context.session(&source, &progress), context.session(&destination, &progress));
    let summary = while_locked(context, || Ok(into.copy_from(&from, &snapshots, &options)?))?;
    let took = progress.elapsed();
    progress.end();
    memory::renew(&destination, context);
    context.figures.add([
        ("added_bytes", summary.added_plain_bytes),
        ("stored_bytes", summary.added_stored_bytes),
        ("snapshots_made", summary.copied.len() as u64),
        ("problems", summary.failed + summary.incomplete),
    ]);
    report(context, COPY, arguments.dry_run, &summary, took)?;
    if summary.failed > 0 {
        let text = "warning: some snapshots cannot be read whole and were not copied: check the source repository, or \
                    copy them without what is damaged by --skip-damaged";
        context.output.warn(text);
    }
    if summary.incomplete > 0 {
        let text = "warning: some snapshots were copied without what is damaged of them: once the source repository is \
                    repaired, forget these copies and copy again";
        context.output.warn(text);
    }
    Ok(if summary.failed + summary.incomplete > 0 { Done::InPart } else { found })
}

/// The snapshots asked for. One that is named must be whole; others that are not are left out.
fn wanted(arguments: &CopyArgs, source: &Repository, context: &Context) -> Result<(Vec<SnapshotView>, Done), CliError> {
    let filter = arguments.filter.filter();
    let (views, found) = find_all_or_list(source, &arguments.ids, &filter, context.output)?;
    match views.iter().find(|view| view.snapshot.partial) {
        Some(partial) if !arguments.ids.is_empty() => {
            Err(CliError::CopyPartial { snapshot: partial.snapshot.id.short() })
        }
        _ => Ok((views, found)),
    }
}

/// Verbs for what is done to snapshots: the infinitive and the participle.
pub(super) type Words = [&'static str; 2];

const COPY: Words = ["copy", "copied"];

pub(super) fn report(
    context: &Context,
    words: Words,
    dry_run: bool,
    summary: &CopySummary,
    took: Duration,
) -> Result<(), CliError> {
    let transfer = Transfer::of(&context.traffic);
    let cost = prices::cost(&summary.usage, context)?;
    if context.output.json {
        return context.output.json(&SummaryMessage::new(dry_run, summary, took, transfer, cost));
    }
    let cost = cost.map_or_else(String::new, |cost| cost.lines_below("about"));
    context.output.report(text(words, dry_run, summary, took) + &cost + &transfer.line_below())
}

fn text([verb, done]: Words, dry_run: bool, summary: &CopySummary, took: Duration) -> String {
    let CopySummary { copied, skipped, partial, failed, incomplete, .. } = summary;
    let left_out = if *partial > 0 { format!(", {partial} partial left out") } else { String::new() };
    let failed = if *failed > 0 { format!(", {failed} failed") } else { String::new() };
    let incomplete =
        if *incomplete > 0 { format!(", {incomplete} of these without what is damaged") } else { String::new() };
    let counts = format!("{skipped} here already{left_out}{failed}");
    let (added, stored) = (size(summary.added_plain_bytes), size(summary.added_stored_bytes));
    if dry_run {
        let total = format!("would {verb} {}; {counts}", counted(copied.len() as u64, "snapshot"));
        // Of another program's repository that is not known.
        let about = (summary.read_bytes > 0).then(|| format!(
            "About {} to read from the source, {added} to add to the repository ({stored} stored): as large as it is \
             in the source",
            size(summary.read_bytes)
        ));
        let lines: Vec<String> = copied.iter().map(planned).chain([total]).chain(about).collect();
        return lines.join("\n");
    }
    format!(
        "{done} {}{incomplete} in {}; {counts}\n\
         Read from the source: {}\nAdded to the repository: {added} ({stored} stored)",
        counted(copied.len() as u64, "snapshot"),
        clock(took),
        size(summary.read_bytes),
    )
}

fn planned(snapshot: &CopiedSnapshot) -> String {
    let CopiedSnapshot { original, series, statistics, .. } = snapshot;
    // Older versions of restic keep no sizes.
    let bytes = if statistics.files > 0 { size(statistics.logical_bytes) } else { "size unknown".to_owned() };
    format!("{}  {bytes}  {series}", original.short())
}

/// `message_type` `summary`.
#[derive(Serialize)]
struct SummaryMessage<'a> {
    message_type: &'static str,
    dry_run: bool,
    snapshots_copied: usize,
    snapshots_skipped: u64,
    snapshots_partial: u64,
    snapshots_failed: u64,
    /// Copied without what is damaged in the source.
    snapshots_incomplete: u64,
    bytes_read: u64,
    data_added: u64,
    data_added_packed: u64,
    total_duration: f64,
    copies: Vec<CopyJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Cost>,
    #[serde(flatten)]
    transfer: Transfer,
}

/// A snapshot that was copied.
#[derive(Serialize)]
struct CopyJson<'a> {
    original: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot_id: Option<String>,
    series: &'a str,
    /// Entries that it lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    problems: Option<u64>,
}

impl<'a> SummaryMessage<'a> {
    fn new(dry_run: bool, summary: &'a CopySummary, took: Duration, transfer: Transfer, cost: Option<Cost>) -> Self {
        let copies = summary.copied.iter().map(|one| CopyJson {
            original: one.original.to_string(),
            snapshot_id: one.copy.map(|id| id.to_string()),
            series: &one.series,
            problems: one.copy.and(Some(one.statistics.problems)).filter(|problems| *problems > 0),
        });
        Self {
            message_type: "summary",
            dry_run,
            snapshots_copied: summary.copied.len(),
            snapshots_skipped: summary.skipped,
            snapshots_partial: summary.partial,
            snapshots_failed: summary.failed,
            snapshots_incomplete: summary.incomplete,
            bytes_read: summary.read_bytes,
            data_added: summary.added_plain_bytes,
            data_added_packed: summary.added_stored_bytes,
            total_duration: seconds(u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
            copies: copies.collect(),
            cost,
            transfer,
        }
    }
}
