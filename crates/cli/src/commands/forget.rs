//! `silt forget`: removes snapshots, by id or by rules, and gives their space back; or marks them as deleted, to be
//! removed later.

mod messages;
pub(super) mod report;
pub(super) mod rules;

use crate::choose::{find_all, keys, without};
use crate::context::Context;
use crate::environment;
use crate::error::{CliError, Done};
use crate::memory;
use crate::parse::{Duration, Groups, TagList};
use crate::patterns::FilterArgs;
use crate::prices;
use crate::progress::{Progress, Work};
use crate::render::{GroupHeader, counted, local, snapshot_table, visible};
use crate::repository::open;
use crate::retry::while_locked;
use clap::Args;
use messages::{GroupJson, SummaryMessage};
use report::text;
use rules::{RuleArgs, Sentence};
use siltstone_engine::Session;
use siltstone_engine::forget::{DecidedGroup, ForgetOptions, ForgetPlan, Marking, SnapshotSelection};
use siltstone_store::repository::Repository;
use std::path::PathBuf;

/// Remove snapshots, by id or by --keep-* rules; the space comes back at once, or with --keep-deleted after some time
#[derive(Args, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct ForgetArgs {
    /// Remove these snapshots
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Only snapshots of this host (may be repeated) [default: $SILT_HOST]
    #[arg(long = "host", value_name = "HOST")]
    hosts: Vec<String>,
    /// Only snapshots with all of these tags, `tag[,tag,...]` (repeated: with those of any)
    #[arg(long = "tag", value_name = "TAGS")]
    tags: Vec<TagList>,
    /// Only snapshots of this absolute path (repeated: of all of them)
    #[arg(long = "path", value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Only snapshots of this series (may be repeated)
    #[arg(long, value_name = "NAME")]
    series: Vec<String>,
    /// Apply the rules to each group of equal series, host, paths or tags; empty for one group of all
    #[arg(short, long, value_name = "KEYS", default_value = "series,host,paths")]
    group_by: Groups,
    /// Apply to each series the policy that the repository keeps for it ('silt policy'); a series without one keeps all
    #[arg(long, conflicts_with_all = ["ids", "group_by", "end_deleted"])]
    policy: bool,
    /// Remove nothing, only show what would be done and the exact bytes that would come back
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Narrow tables without paths and reasons
    #[arg(short, long)]
    compact: bool,
    /// Let rules or ids remove every snapshot of a group or a series; with a filter and no rule at all, remove every
    /// snapshot that passes it
    #[arg(long)]
    unsafe_allow_remove_all: bool,
    /// Mark snapshots as deleted instead and keep them this long, such as 7d; until then 'silt undelete' brings them
    /// back, and their space is held. A 'silt forget' or 'silt maintain' after that removes them
    #[arg(long, value_name = "DURATION", conflicts_with = "end_deleted")]
    keep_deleted: Option<Duration>,
    /// Remove now what is marked as deleted: these ids, or all that pass the filters
    #[arg(long)]
    end_deleted: bool,
    /// Accepted for the sake of scripts: the space always comes back
    #[arg(long, hide = true)]
    prune: bool,
    // Last, since its heading would cover what follows.
    #[command(flatten)]
    rules: RuleArgs,
}

pub(crate) fn run(arguments: &ForgetArgs, context: &Context) -> Result<Done, CliError> {
    if !arguments.ids.is_empty() && !arguments.rules.policy().is_empty() {
        return Err(CliError::Conflict { first: "snapshot ids", second: "--keep-* options" });
    }
    if arguments.policy && !arguments.rules.policy().is_empty() {
        return Err(CliError::Conflict { first: "--policy", second: "--keep-* options" });
    }
    let repository = open(context)?;
    let (plan, found) = plan(arguments, &repository, context)?;
    tell_groups(&plan, arguments, context)?;
    Ok(found.and(execute(&plan, arguments, &repository, context)?))
}

/// Chooses what to forget.
fn plan(arguments: &ForgetArgs, repository: &Repository, context: &Context) -> Result<(ForgetPlan, Done), CliError> {
    let (selection, found) = if arguments.ids.is_empty() {
        (arguments.selection(), Done::Whole)
    } else {
        by_id(arguments, repository, context)?
    };
    let marking = Marking::default()
        .with_keep(arguments.keep_deleted())
        .with_ends_given(arguments.end_deleted)
        .with_now(environment::now());
    let options = options(context)?
        .with_dry_run(arguments.dry_run)
        .with_allow_remove_all(arguments.unsafe_allow_remove_all)
        .with_marking(marking);
    let session = Session::new(repository, context.resources());
    let plan = session.plan_forget(selection, &options)?;
    if let Some(group) = plan.emptied() {
        return Err(CliError::GroupEmptied { group: format!("({})", GroupHeader(group)) });
    }
    let found = found.and(without(&plan.unreadable, context.output));
    Ok((plan, found))
}

impl ForgetArgs {
    /// Tells whether no rules are to be applied, and only what is deleted goes.
    fn only_ends(&self) -> bool {
        self.end_deleted && self.rules.policy().is_empty()
    }

    /// Tells whether rules are applied to groups.
    fn has_groups(&self) -> bool {
        self.ids.is_empty() && !self.only_ends()
    }

    fn keep_deleted(&self) -> std::time::Duration {
        self.keep_deleted.unwrap_or_default().0
    }

    /// Snapshots chosen where no ids are given.
    fn selection(&self) -> SnapshotSelection {
        let filter = filter(self).filter();
        if self.only_ends() {
            return SnapshotSelection::Marks { filter };
        }
        let now = jiff::Zoned::now();
        if self.policy {
            return SnapshotSelection::ByRecordedPolicies { filter, now };
        }
        let (group_by, policy) = (self.group_by.0.clone(), self.rules.policy());
        SnapshotSelection::ByPolicy { filter, group_by, policy, now }
    }
}

fn filter(arguments: &ForgetArgs) -> FilterArgs {
    FilterArgs {
        hosts: arguments.hosts.clone(),
        tags: arguments.tags.clone(),
        paths: arguments.paths.clone(),
        series: arguments.series.clone(),
    }
}

fn by_id(
    arguments: &ForgetArgs,
    repository: &Repository,
    context: &Context,
) -> Result<(SnapshotSelection, Done), CliError> {
    let filter = filter(arguments).filter().with_deleted(arguments.end_deleted);
    let (snapshots, found) = find_all(repository, &arguments.ids, &filter, context.output)?;
    Ok((SnapshotSelection::Given(keys(&snapshots)), found))
}

/// Prints what rules say of each group, if there are any.
fn tell_groups(plan: &ForgetPlan, arguments: &ForgetArgs, context: &Context) -> Result<(), CliError> {
    if !arguments.has_groups() {
        return Ok(());
    }
    warn_of_future(&plan.groups, context);
    if context.output.json {
        return context.output.json(&plan.groups.iter().map(GroupJson::from).collect::<Vec<_>>());
    }
    if !arguments.policy {
        context.output.report(format_args!("Applying Policy: {}", Sentence(&arguments.rules.policy())))?;
    }
    plan.groups.iter().try_for_each(|decided| print_group(decided, arguments, context))?;
    plan.without_policy.iter().try_for_each(|name| {
        let name = visible(name.as_bytes());
        context.output.report(format_args!("series '{name}' has no policy: all of its snapshots stay"))
    })
}

/// Tells of snapshots that a clock far ahead has made: rules pass them over for ever.
fn warn_of_future(groups: &[DecidedGroup], context: &Context) {
    for view in groups.iter().flat_map(DecidedGroup::ahead) {
        let (id, time) = (view.snapshot.id.short(), local(view.snapshot.time));
        context.output.warn(format_args!(
            "warning: snapshot {id} is dated {time}, in the future: no rule counts or removes it; give its id to remove it"
        ));
    }
}

fn print_group(decided: &DecidedGroup, arguments: &ForgetArgs, context: &Context) -> Result<(), CliError> {
    let output = context.output;
    let header = GroupHeader(&decided.group).to_string();
    if arguments.policy {
        output.report(format_args!("Applying Policy to ({header}): {}\n", Sentence(&decided.policy)))?;
    } else if !header.is_empty() {
        output.report(format_args!("snapshots for ({header}):\n"))?;
    }
    let (compact, goes) = (arguments.compact, if arguments.keep_deleted().is_zero() { "remove" } else { "mark" });
    for (keep, word) in [(true, "keep"), (false, goes)] {
        let (views, reasons) = decided.part(keep);
        if !views.is_empty() {
            let table = snapshot_table(&views, keep.then_some(reasons.as_slice()), compact, output.columns());
            output.report(format_args!("{word} {}:\n{table}\n", counted(views.len() as u64, "snapshot")))?;
        }
    }
    Ok(())
}

/// Options of an ordinary run, without marks.
pub(super) fn options(context: &Context) -> Result<ForgetOptions, CliError> {
    Ok(ForgetOptions::default().with_user(environment::user()).with_compression_level(context.compression_level()?))
}

fn execute(
    plan: &ForgetPlan,
    arguments: &ForgetArgs,
    repository: &Repository,
    context: &Context,
) -> Result<Done, CliError> {
    let until = (!arguments.keep_deleted().is_zero()).then(|| plan.options.marking.until());
    let progress = Progress::begin(Work::Forget, context)?;
    let session = context.session(repository, &progress);
    let summary = while_locked(context, || Ok(session.execute(plan)?))?;
    progress.end();
    memory::renew(repository, context);
    context.figures.add([
        ("snapshots_removed", summary.snapshots_removed + summary.snapshots_ended),
        ("freed_bytes", u64::try_from(summary.bytes_returned()).unwrap_or(0)),
        ("problems", summary.snapshots_failed),
    ]);
    let cost = prices::cost(&summary.usage, context)?;
    if context.output.json {
        let message = SummaryMessage::new(&summary, until, arguments.dry_run, cost);
        // With rules the document on standard output is restic's list of groups.
        if arguments.has_groups() { context.output.json_aside(&message) } else { context.output.json(&message)? }
    } else {
        let cost = cost.map_or_else(String::new, |cost| cost.lines_below("at most"));
        context.output.report(text(&summary, until, arguments.dry_run) + &cost)?;
    }
    if summary.snapshots_failed > 0 {
        let left = counted(summary.snapshots_failed, "snapshot");
        context.output.warn(format_args!("warning: {left} could not be removed"));
        return Ok(Done::InPart);
    }
    Ok(Done::Whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    fn parse(line: &str) -> ForgetArgs {
        let cli =
            Cli::try_parse_from(["silt", "forget"].into_iter().chain(line.split_whitespace())).expect("a valid line");
        match cli.command {
            Command::Forget(arguments) => *arguments,
            other => panic!("not forget: {other:?}"),
        }
    }

    #[test]
    fn short_options_are_restics() {
        let arguments = parse("-l 1 -H 2 -d 3 -w 4 -m 5 -y unlimited -c -n");
        let policy = arguments.rules.policy();
        assert_eq!([policy.last, policy.hourly, policy.daily], [Some(1), Some(2), Some(3)]);
        assert_eq!([policy.weekly, policy.monthly, policy.yearly], [Some(4), Some(5), Some(u32::MAX)]);
        assert!(arguments.compact && arguments.dry_run);
    }
}
