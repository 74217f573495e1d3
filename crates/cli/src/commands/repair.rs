//! `silt repair`: shows what can be mended and what is lost, and mends it once it is told to.

mod messages;

use crate::context::Context;
use crate::environment;
use crate::error::{CliError, Done};
use crate::memory;
use crate::progress::{Progress, Work};
use crate::render::{counted, local, visible};
use crate::repository::{Opened, open_by_older_config, open_to_repair};
use crate::retry::while_locked;
use clap::Args;
use messages::{ObjectMessage, PlanMessage, SummaryMessage};
use siltstone_engine::repair::{
    Basis, DamagedSnapshot, ObjectPlan, ObjectRepair, RepairOptions, RepairPlan, RepairSummary, SeriesPlan,
};
use siltstone_engine::seen::Subject;
use siltstone_store::config::older::OlderRecord;
use siltstone_store::manifest::Snapshot;
use siltstone_store::repository::Repository;
use siltstone_store::storage::ObjectName;
use std::io::{IsTerminal, stdin};

/// Damaged files of a snapshot that are shown, unless all are asked for.
const FILES_SHOWN: usize = 10;

/// Mend what damage left: rebuild manifests, note what is lost, keep aside what is replaced
#[derive(Args, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct RepairArgs {
    /// Do what the plan says; without it the plan is only shown
    #[arg(short, long, conflicts_with = "dry_run")]
    yes: bool,
    /// Change nothing, only show the plan; on a terminal this is what happens without --yes
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Only the series of this name
    #[arg(long, value_name = "NAME")]
    series: Option<String>,
    /// Read all data too: damage that no index shows is found, and healed where there is parity
    #[arg(long)]
    read_data: bool,
    /// Drop the snapshots that cannot be restored whole; otherwise they stay, with what is left of them
    #[arg(long)]
    drop_damaged: bool,
    /// Where the newest config can be read from neither place, go on from the one before: keys that were removed since
    /// then count again if their files are there, keys that were added since open nothing, settings are as they were
    #[arg(long)]
    from_older_config: bool,
    /// Repair a series even if a writer on this machine is at work on it; the writer is fenced off and loses its run
    #[arg(long)]
    take_over: bool,
}

pub(crate) fn run(arguments: &RepairArgs, context: &Context) -> Result<Done, CliError> {
    let older = if arguments.from_older_config { open_by_older_config(context)? } else { None };
    let repository = match older {
        None => open_to_repair(context)?,
        Some(older) if arguments.yes => restored(older, context)?,
        Some(older) => {
            tell_older(&older, context)?;
            if !arguments.dry_run && !stdin().is_terminal() {
                return Err(CliError::NotConfirmed { option: "--yes" });
            }
            context.output.warn("nothing was changed: 'silt repair --from-older-config --yes' does it");
            return Ok(Done::Whole);
        }
    };
    let options = RepairOptions::default()
        .with_series(arguments.series.clone())
        .with_read_data(arguments.read_data)
        .with_drop_damaged(arguments.drop_damaged)
        .with_take_over(arguments.take_over)
        .with_user(environment::user())
        .with_seen(memory::commits(&repository, context));
    if arguments.yes {
        return while_locked(context, || mend(&repository, &options, context));
    }
    let plan = planned(&repository, &options, context)?;
    if context.output.json && is_sound(&plan) {
        context.output.json(&SummaryMessage::from(&RepairSummary::default()))?;
    }
    if plan.has_steps() && !arguments.dry_run && !stdin().is_terminal() {
        return Err(CliError::NotConfirmed { option: "--yes" });
    }
    if plan.has_steps() {
        context.output.warn("nothing was changed: 'silt repair --yes' does it");
    }
    Ok(if plan.has_losses() && !plan.has_steps() { Done::InPart } else { Done::Whole })
}

/// Goes on from an older config.
fn restored(older: OlderRecord, context: &Context) -> Result<Opened, CliError> {
    tell_older(&older, context)?;
    let repository = Opened::to_repair(older.restore()?, context);
    memory::accept_repaired(&repository, &[Subject::Record], context)?;
    Ok(repository)
}

fn tell_older(older: &OlderRecord, context: &Context) -> Result<(), CliError> {
    let config = older.repository().config();
    let keys: Vec<_> = config.all_keys().iter().map(ToString::to_string).collect();
    let (config, newest, keys) = (config.object_name(), ObjectName::Config(older.newest()), keys.join(", "));
    context.output.report(format_args!(
        "{newest} can be read from neither place; it goes on from {config}\n  \
         keys that count: {keys}, as far as their files are there: one of them may have been removed\n  \
         keys that were added since open nothing any more; settings are those of that time\n  \
         machines that saw the lost config refuse the repository until --accept-rollback (exit status 13)"
    ))
}

/// Plans, and tells the plan.
fn planned(repository: &Repository, options: &RepairOptions, context: &Context) -> Result<RepairPlan, CliError> {
    let progress = Progress::begin(Work::Repair, context)?;
    let plan = context.session(repository, &progress).plan_repair(options)?;
    progress.end();
    for object in &plan.objects {
        context.output.json_or_line(&ObjectMessage::from(object), object_text(object))?;
    }
    for series in &plan.series {
        context.output.json_or_line(&PlanMessage::from(series), text(series, context.output.verbosity > 0))?;
    }
    if is_sound(&plan) {
        let more = if options.read_data { "" } else { "; 'silt repair --read-data' looks at every byte" };
        context.output.report(format_args!("nothing to repair{more}"))?;
    }
    Ok(plan)
}

/// Tells whether nothing was found that is wrong.
fn is_sound(plan: &RepairPlan) -> bool {
    plan.series.is_empty() && plan.objects.is_empty()
}

fn mend(repository: &Repository, options: &RepairOptions, context: &Context) -> Result<Done, CliError> {
    let plan = planned(repository, options, context)?;
    let has_losses = plan.has_losses();
    let progress = Progress::begin(Work::Repair, context)?;
    let (summary, errors) = context.session(repository, &progress).repair(plan, options)?;
    progress.end();
    let rebuilt: Vec<_> = summary.rebuilt.iter().copied().map(Subject::Series).collect();
    memory::accept_repaired(repository, &rebuilt, context)?;
    for error in &errors {
        context.output.error(error);
    }
    if context.output.json {
        context.output.json(&SummaryMessage::from(&summary))?;
    } else if summary != RepairSummary::default() {
        context.output.report(done(&summary))?;
    }
    Ok(if has_losses || !errors.is_empty() { Done::InPart } else { Done::Whole })
}

/// An object that is kept twice: what is wrong with it, and what becomes of it.
fn object_text(object: &ObjectPlan) -> String {
    let mut lines = vec![object.name.to_string()];
    lines.extend(object.faults.iter().map(|fault| format!("  wrong: {fault}")));
    lines.push(match object.repair {
        ObjectRepair::From(place) => format!("  will be written anew from {place}"),
        ObjectRepair::PutAside => "  moved to aside/: what came after it is sound".to_owned(),
        ObjectRepair::Nothing => {
            "  nothing brings it back: whoever used this key needs another, by 'silt key add'".to_owned()
        }
    });
    lines.join("\n")
}

/// A series: what is wrong, what will be, what is lost.
fn text(series: &SeriesPlan, shows_all: bool) -> String {
    let name = match &series.name {
        Some(name) => format!("\"{}\"", visible(name.as_bytes())),
        None => series.series.to_string(),
    };
    let mut lines = vec![format!("series {name}")];
    lines.extend(series.faults.iter().map(|fault| format!("  wrong: {fault}")));
    if series.is_beyond_repair {
        lines
            .push("  nothing there says what the series was: bring back a copy of a file of its series/ folder".into());
        return lines.join("\n");
    }
    let snapshots = counted(series.snapshots, "snapshot");
    match series.basis {
        Basis::Newest => {}
        Basis::Older(sequence) => {
            lines.push(format!("  will be: {snapshots}, from manifest {sequence:016x} and containers"));
        }
        Basis::Containers => {
            lines.push(format!("  will be: {snapshots}, from what its containers hold"));
        }
    }
    if series.basis != Basis::Newest {
        lines.extend(series.found.iter().map(|snapshot| format!("  found: {}", described(snapshot))));
    }
    lines.extend(series.aside.iter().map(|name| format!("  moved to aside/: {name}")));
    lines.extend((series.protected > 0).then(|| format!("  gets parity: {}", counted(series.protected, "container"))));
    lines.extend(series.damaged.iter().flat_map(|damaged| hurt_lines(damaged, series.drops_damaged, shows_all)));
    if !series.damaged.is_empty() && !series.drops_damaged {
        lines.push("  what the source still has is stored again by the next 'silt backup --force'".into());
    }
    lines.join("\n")
}

fn described(snapshot: &Snapshot) -> String {
    let paths = snapshot.paths.iter().map(|path| visible(path)).collect::<Vec<_>>().join(" ");
    format!("{} of [{paths}] at {} on {}", snapshot.id.short(), local(snapshot.time), visible(snapshot.host.as_bytes()))
}

fn hurt_lines(damaged: &DamagedSnapshot, is_dropped: bool, shows_all: bool) -> Vec<String> {
    let fate = if is_dropped { "is dropped" } else { "stays" };
    let catalog = if damaged.catalog_is_damaged { ", some of its catalog" } else { "" };
    let (id, files) = (damaged.snapshot.id.short(), damaged.files_damaged);
    let chunks = counted(damaged.chunks_lost, "chunk");
    let hurt = counted(files, "file");
    let mut lines = vec![format!("  lost: {chunks}{catalog} of snapshot {id}, which {fate}; this hurts {hurt}")];
    let shown = if shows_all { damaged.files.len() } else { FILES_SHOWN.min(damaged.files.len()) };
    lines.extend(damaged.files.iter().take(shown).map(|path| format!("    /{}", visible(path))));
    let more = files.saturating_sub(shown as u64);
    lines.extend((more > 0).then(|| format!("    and {more} more")));
    lines
}

fn done(summary: &RepairSummary) -> String {
    let part = |verb: &str, count: u64, noun: &str, rest: &str| {
        (count > 0).then(|| format!("{verb} {}{rest}", counted(count, noun)))
    };
    let parts = [
        Some(format!("repaired {}", counted(summary.series_repaired, "series"))),
        part("mended", summary.objects_mended, "object", " in both places"),
        part("healed", summary.containers_healed, "container", ""),
        part("made parity for", summary.containers_protected, "container", ""),
        part("brought back", summary.snapshots_found, "snapshot", ""),
        part("left", summary.snapshots_damaged, "snapshot", " that cannot be restored whole"),
        part("dropped", summary.snapshots_dropped, "snapshot", ""),
        part("moved", summary.objects_aside, "object", " to aside/"),
        part("could not repair", summary.series_failed, "series", ""),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
