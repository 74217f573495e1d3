//! `silt maintain`: settles what backups left behind, where a backup was told not to or could not.

use super::layout::LayoutArgs;
use crate::context::Context;
use crate::environment;
use crate::error::{CliError, Done};
use crate::memory;
use crate::parse::{Budget, Parity};
use crate::prices;
use crate::progress::{Progress, Work};
use crate::render::{Cost, counted, size};
use crate::repository::{open, preset};
use crate::retry::while_locked;
use clap::Args;
use serde::Serialize;
use siltstone_engine::maintain::{MaintainOptions, MaintainSummary, Recompression};
use siltstone_engine::protect::ProtectSummary;
use siltstone_store::repository::Repository;

/// Encode and lay out what backups left behind, and end what was deleted; backups do the former themselves unless told
/// not to
#[derive(Args, Debug)]
pub(crate) struct MaintainArgs {
    #[command(flatten)]
    layout: LayoutArgs,

    /// Parity of files' data from now on, such as 5%, or `off`; containers that are there get it too. Without this
    /// option what parity is missing is made
    #[arg(long, value_name = "SHARE")]
    parity: Option<Parity>,

    /// Store what series borrow of others in containers of their own, so that none needs another
    #[arg(long)]
    own: bool,

    /// Encode old containers once more, which makes them smaller and takes long: all of them, or so many bytes of them,
    /// such as 1G, what only old snapshots need first. At level 12 of zstd, or at that of --compression where it is
    /// higher (`max`: ten to twenty times as long); what was done at a level is not done again. Without this option a
    /// run that finds nothing else to do, in a folder of this machine, makes old snapshots hang on fewer others where
    /// that costs little, or else takes 256M of what only old snapshots need, at level 12; 0 does neither
    #[arg(long, value_name = "SIZE", num_args = 0..=1, default_missing_value = "unlimited")]
    recompress: Option<Budget>,

    /// Write nothing to the repository, only show what would be done and, at a distance, what it costs: all is done on
    /// the side, in a temporary file, so that it takes as long and needs as much room there
    #[arg(short = 'n', long)]
    dry_run: bool,
}

/// `message_type` `summary`.
#[derive(Serialize)]
struct SummaryMessage {
    message_type: &'static str,
    dry_run: bool,
    snapshots_settled: u64,
    snapshots_ended: u64,
    containers_passed_over: u64,
    bytes_migrated: u64,
    bytes_deleted: u64,
    containers_written: u64,
    containers_deleted: u64,
    deltas_kept: u64,
    deltas_rejected: u64,
    ghosts_eliminated: u64,
    shortcuts_made: u64,
    containers_recompressed: u64,
    orphans_deleted: u64,
    orphan_bytes_deleted: u64,
    containers_protected: u64,
    parity_bytes_written: u64,
    parity_bytes_deleted: u64,
    /// Bytes that the repository would grow by; of a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_kept: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Cost>,
}

pub(crate) fn run(arguments: &MaintainArgs, context: &Context) -> Result<Done, CliError> {
    let repository = open(context)?;
    let recompression = match arguments.recompress {
        None => Recompression::when_idle(),
        Some(Budget(bytes)) => {
            let level = context.compression_level()?.max(Recompression::LEVEL_DEFAULT.into());
            Recompression::all_at(level).with_bytes_max(bytes)
        }
    };
    let options = MaintainOptions::default()
        .with_deltas(arguments.layout.deltas(preset(context)?)?)
        .with_threshold(arguments.layout.threshold(preset(context)?))
        .with_compression_level(context.compression_level()?)
        .with_recompression(Some(recompression))
        .with_owns(arguments.own)
        .with_user(environment::user());
    let percent = arguments.parity.as_ref().map(|Parity(percent)| *percent);
    if arguments.dry_run {
        return dry_run(&repository, percent, &options, context);
    }
    if let Some(percent) = percent {
        repository.amend(|config| {
            config.parity.data_percent = percent;
            Ok(())
        })?;
    }
    let progress = Progress::begin(Work::Maintain, context)?;
    let session = context.session(&repository, &progress);
    let summary = while_locked(context, || Ok(session.maintain(&options)?))?;
    let parity = while_locked(context, || Ok(session.protect(&options.user)?))?;
    let problems = progress.counts().problems;
    progress.end();
    memory::renew(&repository, context);
    context.figures.add([
        ("snapshots_removed", summary.ended),
        ("freed_bytes", (summary.bytes_deleted + summary.orphan_bytes_deleted).saturating_sub(summary.bytes_written)),
        ("problems", problems),
    ]);
    report(context, &summary, &parity, None)?;
    Ok(done(problems, &summary, &parity))
}

/// Shows what a run would do.
fn dry_run(
    repository: &Repository,
    parity: Option<u8>,
    options: &MaintainOptions,
    context: &Context,
) -> Result<Done, CliError> {
    let progress = Progress::begin(Work::Maintain, context)?;
    let session = context.session(repository, &progress);
    let forecast = while_locked(context, || Ok(session.forecast_maintenance(parity, options)?))?;
    let problems = progress.counts().problems;
    progress.end();
    let cost = prices::cost(&forecast.usage, context)?;
    report(context, &forecast.maintenance, &forecast.parity, Some((forecast.bytes_kept, cost)))?;
    Ok(done(problems, &forecast.maintenance, &forecast.parity))
}

fn done(problems: u64, summary: &MaintainSummary, parity: &ProtectSummary) -> Done {
    if problems == 0 && summary.passed_over == 0 && parity.passed_over == 0 { Done::Whole } else { Done::InPart }
}

/// Reports what was done; in a dry run with what the repository would grow by, and what that costs.
fn report(
    context: &Context,
    summary: &MaintainSummary,
    parity: &ProtectSummary,
    dry_run: Option<(i64, Option<Cost>)>,
) -> Result<(), CliError> {
    if context.output.json {
        let (bytes_kept, cost) = dry_run.clone().unzip();
        return context.output.json(&SummaryMessage {
            message_type: "summary",
            dry_run: dry_run.is_some(),
            bytes_kept,
            cost: cost.flatten(),
            snapshots_settled: summary.settled,
            snapshots_ended: summary.ended,
            containers_passed_over: summary.passed_over,
            bytes_migrated: summary.bytes_written,
            bytes_deleted: summary.bytes_deleted,
            containers_written: summary.containers_written,
            containers_deleted: summary.containers_deleted,
            deltas_kept: summary.deltas_kept,
            deltas_rejected: summary.deltas_rejected,
            ghosts_eliminated: summary.ghosts_eliminated,
            shortcuts_made: summary.shortcuts_made,
            containers_recompressed: summary.recompressed,
            orphans_deleted: summary.orphans_deleted,
            orphan_bytes_deleted: summary.orphan_bytes_deleted,
            containers_protected: parity.protected,
            parity_bytes_written: parity.bytes_written,
            parity_bytes_deleted: parity.bytes_deleted,
        });
    }
    if *parity != ProtectSummary::default() {
        let [wrote, deleted] = [parity.bytes_written, parity.bytes_deleted].map(size);
        let protected = parity.protected;
        let Verbs { wrote: write, deleted: delete, .. } = Verbs::of(dry_run.is_some());
        let protected = counted(protected, "container");
        let counts = format!("parity of {protected}: {write} {wrote}, {delete} {deleted}");
        context.output.report(counts)?;
    }
    let text = text(summary, &Verbs::of(dry_run.is_some()));
    let outlook = dry_run.map_or_else(String::new, |(bytes_kept, cost)| outlook(bytes_kept, cost.as_ref()));
    context.output.report(text + &outlook)
}

/// Lines of a dry run below the report.
fn outlook(bytes_kept: i64, cost: Option<&Cost>) -> String {
    let change = if bytes_kept < 0 { "shrink" } else { "grow" };
    let cost = cost.map_or_else(String::new, |cost| cost.lines_below("of the run"));
    format!("\nNothing was written: the repository would {change} by {}{cost}", size(bytes_kept.unsigned_abs()))
}

/// Verbs of a report: of what was done, or of what would be.
struct Verbs {
    removed: &'static str,
    settled: &'static str,
    wrote: &'static str,
    deleted: &'static str,
    encoded: &'static str,
    /// Where it begins a sentence.
    deleted_alone: &'static str,
    /// Where it begins a sentence.
    encoded_alone: &'static str,
    made_shortcuts: &'static str,
    /// Where it begins a sentence.
    made_shortcuts_alone: &'static str,
}

impl Verbs {
    fn of(is_dry_run: bool) -> Self {
        let [removed, settled, wrote, deleted, encoded, deleted_alone, encoded_alone] = if is_dry_run {
            ["would remove", "would settle", "write", "delete", "encode", "would delete", "would encode"]
        } else {
            ["removed", "settled", "wrote", "deleted", "encoded", "deleted", "encoded"]
        };
        let made_shortcuts = if is_dry_run { "make shortcuts" } else { "made shortcuts" };
        let made_shortcuts_alone = if is_dry_run { "would make shortcuts" } else { made_shortcuts };
        Self {
            removed,
            settled,
            wrote,
            deleted,
            encoded,
            deleted_alone,
            encoded_alone,
            made_shortcuts,
            made_shortcuts_alone,
        }
    }
}

fn text(summary: &MaintainSummary, verbs: &Verbs) -> String {
    if *summary == MaintainSummary::default() {
        return "nothing is left to do".to_owned();
    }
    let swept = swept(summary, verbs);
    if (MaintainSummary { orphans_deleted: 0, orphan_bytes_deleted: 0, ..*summary }) == MaintainSummary::default() {
        return swept;
    }
    let MaintainSummary { settled, deltas_kept, ghosts_eliminated, .. } = summary;
    let (written, gone) = (size(summary.bytes_written), size(summary.bytes_deleted));
    let Verbs { removed, settled: settle, wrote, deleted, encoded: encode, .. } = verbs;
    let recompressed = counted(summary.recompressed, "container");
    let shortcuts = counted(summary.shortcuts_made, "snapshot");
    let others = [summary.ended, *settled, *deltas_kept, *ghosts_eliminated, summary.passed_over];
    if summary.shortcuts_made > 0 && others == [0; 5] && summary.recompressed == 0 && swept.is_empty() {
        return format!("{} past {shortcuts}: {wrote} {written}, {deleted} {gone}", verbs.made_shortcuts_alone);
    }
    if summary.recompressed > 0 && others == [0; 5] && swept.is_empty() {
        return format!("{} {recompressed} once more: {wrote} {written}, {deleted} {gone}", verbs.encoded_alone);
    }
    let eliminated = match ghosts_eliminated {
        0 => String::new(),
        eliminated => format!(", eliminated {} that only deltas needed", counted(*eliminated, "chunk")),
    };
    let ended = match summary.ended {
        0 => String::new(),
        ended => format!("{removed} {} whose time was over; ", counted(ended, "deleted snapshot")),
    };
    let recompressed = match summary.recompressed {
        0 => String::new(),
        _ => format!(", {encode} {recompressed} once more"),
    };
    let shortcuts = match summary.shortcuts_made {
        0 => String::new(),
        _ => format!(", {} past {shortcuts}", verbs.made_shortcuts),
    };
    let further = eliminated + &shortcuts + &recompressed;
    let passed_over = match summary.passed_over {
        0 => String::new(),
        passed_over => format!("; left as it is what could not be read: {}", counted(passed_over, "container")),
    };
    format!(
        "{ended}{settle} {}: {wrote} {written}, {deleted} {gone}, {} as deltas{further}{passed_over}",
        counted(*settled, "snapshot"),
        counted(*deltas_kept, "chunk"),
    ) + if swept.is_empty() { "" } else { "; " }
        + &swept
}

/// Objects that clients had left and that went, in words.
fn swept(summary: &MaintainSummary, verbs: &Verbs) -> String {
    match (summary.orphans_deleted, summary.orphan_bytes_deleted) {
        (0, _) => String::new(),
        (orphans, bytes) => format!(
            "{} {} ({}) left by a run that was interrupted or may not delete",
            verbs.deleted_alone,
            counted(orphans, "object"),
            size(bytes)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dry_run_tells_what_would_come_back() {
        assert_eq!(outlook(-2048, None), "\nNothing was written: the repository would shrink by 2.000 KiB");
        assert_eq!(outlook(0, None), "\nNothing was written: the repository would grow by 0 B");
    }

    fn told(summary: &MaintainSummary) -> String {
        text(summary, &Verbs::of(false))
    }

    #[test]
    fn what_was_done_is_told() {
        assert_eq!(told(&MaintainSummary::default()), "nothing is left to do");
        let settled = MaintainSummary { settled: 2, bytes_written: 1024, deltas_kept: 7, ..MaintainSummary::default() };
        let expected = "settled 2 snapshots: wrote 1.000 KiB, deleted 0 B, 7 chunks as deltas";
        assert_eq!(told(&settled), expected);
        let would = "would settle 2 snapshots: write 1.000 KiB, delete 0 B, 7 chunks as deltas";
        assert_eq!(text(&settled, &Verbs::of(true)), would);
        let ended = MaintainSummary { ended: 3, ..settled };
        assert_eq!(told(&ended), format!("removed 3 deleted snapshots whose time was over; {expected}"));
        let eliminated = MaintainSummary { bytes_deleted: 2048, ghosts_eliminated: 3, ..MaintainSummary::default() };
        let expected = "settled 0 snapshots: wrote 0 B, deleted 2.000 KiB, 0 chunks as deltas, \
                        eliminated 3 chunks that only deltas needed";
        assert_eq!(told(&eliminated), expected);
        let recompressed = MaintainSummary { recompressed: 2, passed_over: 1, ..settled };
        let line = told(&recompressed);
        assert!(line.contains(", encoded 2 containers once more; left as it is what could not be read"), "{line}");
        let idle = MaintainSummary { recompressed: 1, bytes_deleted: 2048, ..MaintainSummary::default() };
        assert_eq!(told(&idle), "encoded 1 container once more: wrote 0 B, deleted 2.000 KiB");
        assert_eq!(text(&idle, &Verbs::of(true)), "would encode 1 container once more: write 0 B, delete 2.000 KiB");
        let shortened = MaintainSummary { shortcuts_made: 2, bytes_deleted: 2048, ..MaintainSummary::default() };
        assert_eq!(told(&shortened), "made shortcuts past 2 snapshots: wrote 0 B, deleted 2.000 KiB");
        let would = "would make shortcuts past 2 snapshots: write 0 B, delete 2.000 KiB";
        assert_eq!(text(&shortened, &Verbs::of(true)), would);
        let swept = MaintainSummary { orphans_deleted: 3, orphan_bytes_deleted: 1024, ..MaintainSummary::default() };
        let expected = "deleted 3 objects (1.000 KiB) left by a run that was interrupted or may not delete";
        assert_eq!(told(&swept), expected);
        let both = MaintainSummary { settled: 1, ..swept };
        let would = text(&both, &Verbs::of(true));
        assert!(would.contains("0 chunks as deltas; would delete 3 objects (1.000 KiB) left"), "{would}");
    }
}
