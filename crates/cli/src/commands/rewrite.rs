//! `silt rewrite`: takes paths out of snapshots that there are.

use super::forget::{options, report};
use crate::choose::{find, without};
use crate::context::Context;
use crate::error::{CliError, Done};
use crate::memory;
use crate::patterns::{FilterArgs, LeaveArgs};
use crate::prices;
use crate::progress::{Progress, Work};
use crate::render::{Cost, counted, describe, size};
use crate::repository::{Opened, open};
use crate::retry::while_locked;
use clap::Args;
use serde::Serialize;
use siltstone_engine::EngineError;
use siltstone_engine::forget::{Affected, ForgetOptions, ForgetSummary, RewritePlan};
use siltstone_engine::snapshots::{SnapshotFilter, SnapshotView, list_readable};
use std::io::{IsTerminal, stdin};

/// Take paths out of snapshots that there are: a password, a huge file
///
/// What the patterns match goes from each snapshot, with all that a folder holds. A snapshot keeps its short id, time,
/// host, tags and description. Without --forget nothing is changed: it is shown what would go, and the exact bytes that
/// would come back.
#[derive(Args, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct RewriteArgs {
    /// Snapshots: id, latest or latest~N [default: all that the filters let through, deleted and partial ones too]
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Do it: what is left out is gone from these snapshots for ever. Without it, and without --dry-run, a run that
    /// would change something ends with exit code 1 where standard input is no terminal
    #[arg(long)]
    forget: bool,
    /// Change nothing, only show what would be done and the exact bytes that would come back; the exit code is 0 then
    #[arg(short = 'n', long, conflicts_with = "forget")]
    dry_run: bool,
    /// Leave nothing of it in the repository: rewrite every container in which anything is dead, not only those of
    /// which more than a fifth is
    #[arg(long)]
    purge: bool,
    /// Let patterns leave out all files of a snapshot
    #[arg(long)]
    unsafe_allow_remove_all: bool,
    #[command(flatten)]
    leave: LeaveArgs,
    #[command(flatten)]
    filter: FilterArgs,
}

pub(crate) fn run(arguments: &RewriteArgs, context: &Context) -> Result<Done, CliError> {
    if arguments.leave.is_empty() {
        return Err(CliError::NothingExcluded);
    }
    let filter = arguments.leave.filter()?;
    let repository = open(context)?;
    let (views, found) = chosen(arguments, &repository, context)?;
    let progress = Progress::begin(Work::Rewrite, context)?;
    let session = context.session(&repository, &progress);
    let plan = session.plan_rewrite(views, filter, &arguments.options(context)?)?;
    let stated = session.forecast_rewrite(&plan)?;
    progress.end();
    let found = found.and(tell_damaged(&plan, context));
    if !context.output.json {
        context.output.report(text(arguments, &plan, &stated, context)?)?;
    }
    if !arguments.forget {
        return tell_nothing_done(arguments, &plan, &stated, context).map(|()| found);
    }
    let done = execute(&plan, &repository, context)?;
    if context.output.json {
        context.output.json(&SummaryMessage::new(&plan, &done, false, context)?)?;
    } else {
        context.output.report(format_args!("rewrote {}", what(&done, false)))?;
    }
    if done.snapshots_failed > 0 {
        let left = counted(done.snapshots_failed, "snapshot");
        context.output.warn(format_args!("warning: {left} could not be rewritten"));
        return Ok(Done::InPart);
    }
    Ok(found)
}

impl RewriteArgs {
    fn options(&self, context: &Context) -> Result<ForgetOptions, CliError> {
        let options = options(context)?.with_allow_remove_all(self.unsafe_allow_remove_all);
        Ok(if self.purge { options.with_rewrite_threshold(0.0) } else { options })
    }

    /// The snapshots that the command is about, live or deleted.
    fn filters(&self) -> [SnapshotFilter; 2] {
        [false, true].map(|deleted| self.filter.filter().with_deleted(deleted))
    }
}

/// The snapshots that are looked at, deleted and partial ones too: a path that stays in one of them is still there.
fn chosen(
    arguments: &RewriteArgs,
    repository: &Opened,
    context: &Context,
) -> Result<(Vec<SnapshotView>, Done), CliError> {
    let [live, deleted] = arguments.filters();
    if arguments.ids.is_empty() {
        let (mut views, damaged) = list_readable(repository, &live)?;
        // What cannot be read is told once.
        views.extend(list_readable(repository, &deleted)?.0);
        return Ok((views, without(&damaged, context.output)));
    }
    let mut done = Done::Whole;
    let found = arguments.ids.iter().map(|wanted| {
        let (view, found) = match find(repository, wanted, &live, context.output) {
            Err(CliError::Engine(EngineError::SnapshotDeleted { .. })) => {
                find(repository, wanted, &deleted, context.output)?
            }
            other => other?,
        };
        done = done.and(found);
        Ok(view)
    });
    let views = found.collect::<Result<_, CliError>>()?;
    Ok((views, done))
}

/// Names the snapshots that cannot be looked into.
fn tell_damaged(plan: &RewritePlan, context: &Context) -> Done {
    for (view, error) in &plan.damaged {
        context.output.error(format_args!("snapshot {} stays as it is: {error}", view.snapshot.id.short()));
    }
    if plan.damaged.is_empty() { Done::Whole } else { Done::InPart }
}

/// Says how to have it done; a program that cannot be asked is told by an error.
fn tell_nothing_done(
    arguments: &RewriteArgs,
    plan: &RewritePlan,
    stated: &ForgetSummary,
    context: &Context,
) -> Result<(), CliError> {
    if context.output.json {
        context.output.json(&SummaryMessage::new(plan, stated, true, context)?)?;
    }
    if plan.affected.is_empty() || arguments.dry_run {
        return Ok(());
    }
    if !stdin().is_terminal() {
        return Err(CliError::NotConfirmed { option: "--forget" });
    }
    context.output.warn("nothing was changed: --forget does it");
    Ok(())
}

fn execute(plan: &RewritePlan, repository: &Opened, context: &Context) -> Result<ForgetSummary, CliError> {
    let progress = Progress::begin(Work::Rewrite, context)?;
    let session = context.session(repository, &progress);
    let done = while_locked(context, || Ok(session.rewrite(plan)?))?;
    progress.end();
    memory::renew(repository, context);
    Ok(done)
}

/// The plan for people: a line for each snapshot, then what comes back.
fn text(
    arguments: &RewriteArgs,
    plan: &RewritePlan,
    stated: &ForgetSummary,
    context: &Context,
) -> Result<String, CliError> {
    if plan.affected.is_empty() {
        return Ok("no snapshot has anything that these patterns match".to_owned());
    }
    let mut lines: Vec<String> = plan.affected.iter().map(line).collect();
    lines.push(format!("would rewrite {}", what(stated, true)));
    lines.extend(report::later(stated));
    lines.extend(report::held(&stated.held, true));
    if !arguments.purge {
        lines.push("what lies of it beside other data may stay there, encrypted; --purge removes that too".to_owned());
    }
    lines.push("backups store it again unless they exclude it too".to_owned());
    let cost = prices::cost(&stated.usage, context)?;
    Ok(lines.join("\n") + &cost.map_or_else(String::new, |cost| cost.lines_below("at most")))
}

/// A snapshot, and what goes of it.
fn line(Affected { snapshot, excluded }: &Affected) -> String {
    let some = |count: u64, noun: &str| (count > 0).then(|| counted(count, noun));
    let files = some(excluded.files, "file").map(|files| {
        let bytes = size(excluded.logical_bytes);
        format!("{files} ({bytes})")
    });
    let parts = [files, some(excluded.directories, "folder"), some(excluded.others, "other entry")];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    format!("snapshot {}: {}", describe(snapshot), parts.join(", "))
}

fn what(summary: &ForgetSummary, dry_run: bool) -> String {
    format!("{}: {}", counted(summary.snapshots_rewritten, "snapshot"), report::came_back(summary, dry_run))
}

/// A snapshot, and what goes of it.
#[derive(Serialize)]
struct AffectedJson {
    id: String,
    short_id: String,
    files: u64,
    directories: u64,
    others: u64,
    bytes: u64,
}

/// `message_type` `summary`. Ids are those before.
#[derive(Serialize)]
struct SummaryMessage {
    message_type: &'static str,
    dry_run: bool,
    snapshots: Vec<AffectedJson>,
    snapshots_rewritten: u64,
    snapshots_failed: u64,
    containers_deleted: u64,
    containers_rewritten: u64,
    bytes_before: u64,
    bytes_after: u64,
    bytes_returned: i64,
    ghost_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Cost>,
}

impl SummaryMessage {
    fn new(plan: &RewritePlan, summary: &ForgetSummary, dry_run: bool, context: &Context) -> Result<Self, CliError> {
        Ok(Self {
            message_type: "summary",
            dry_run,
            snapshots: plan.affected.iter().map(AffectedJson::from).collect(),
            snapshots_rewritten: summary.snapshots_rewritten,
            snapshots_failed: summary.snapshots_failed + plan.damaged.len() as u64,
            containers_deleted: summary.containers_deleted,
            containers_rewritten: summary.containers_rewritten,
            bytes_before: summary.bytes_before,
            bytes_after: summary.bytes_after,
            bytes_returned: summary.bytes_returned(),
            ghost_bytes: summary.ghost_bytes,
            cost: prices::cost(&summary.usage, context)?,
        })
    }
}

impl From<&Affected> for AffectedJson {
    fn from(affected: &Affected) -> Self {
        let (id, excluded) = (affected.snapshot.snapshot.id, &affected.excluded);
        Self {
            id: id.to_string(),
            short_id: id.short(),
            files: excluded.files,
            directories: excluded.directories,
            others: excluded.others,
            bytes: excluded.logical_bytes,
        }
    }
}
