//! `silt forget`: removes snapshots, by id or by rules, and gives their space back; or marks them as deleted, to be
//! removed later.

mod messages;
mod report;
mod rules;

use crate::choose::{find_all, keys, without};
use crate::context::Context;
use crate::environment;
use crate::error::{CliError, Done};
use crate::memory;
use crate::parse::{Duration, Groups, TagList};
use crate::patterns::FilterArgs;
use crate::progress::{Progress, Work};
use crate::render::{GroupHeader, local, snapshot_table};
use crate::repository::open;
use crate::retry::while_locked;
use clap::Args;
use messages::{GroupJson, SummaryMessage};
use report::text;
use rules::RuleArgs;
use siltstone_engine::forget::policy::{self, AHEAD, Decision, PARTIAL};
use siltstone_engine::forget::{ForgetOptions, Marking, REWRITE_THRESHOLD_DEFAULT, forget};
use siltstone_engine::snapshots::{Group, SnapshotFilter, SnapshotView, group, list_readable};
use siltstone_store::SeriesId;
use siltstone_store::repository::Repository;
use std::collections::HashSet;
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
    /// Apply the rules to each group of equal host, paths, tags or series; empty for one group of all
    #[arg(short, long, value_name = "KEYS", default_value = "host,paths")]
    group_by: Groups,
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

/// A group and what the rules say of each of its snapshots.
struct Decided {
    group: Group,
    decisions: Vec<Decision>,
}

impl Decided {
    /// The snapshots that stay, or those that go, with the reasons.
    fn part(&self, keep: bool) -> (Vec<SnapshotView>, Vec<Vec<String>>) {
        let both = self.group.snapshots.iter().zip(&self.decisions);
        both.filter(|(_, decision)| decision.keep == keep)
            .map(|(view, decision)| (view.clone(), decision.reasons.clone()))
            .unzip()
    }
}

pub(crate) fn run(arguments: &ForgetArgs, context: &Context) -> Result<Done, CliError> {
    if !arguments.ids.is_empty() && !arguments.rules.policy().is_empty() {
        return Err(CliError::Conflict { first: "snapshot ids", second: "--keep-* options" });
    }
    let filter = filter(arguments);
    let repository = open(context)?;
    let (mut doomed, found) = if !arguments.ids.is_empty() {
        by_id(arguments, &filter, &repository, context)?
    } else if arguments.only_ends() {
        (Doomed::default(), Done::Whole)
    } else {
        by_rules(arguments, &filter, &repository, context)?
    };
    if arguments.ids.is_empty() {
        doomed.add_deleted(arguments, &filter, &repository)?;
    }
    Ok(found.and(remove(doomed, arguments, &repository, context)?))
}

impl ForgetArgs {
    /// Whether no rules are to be applied, and only what is deleted goes.
    fn only_ends(&self) -> bool {
        self.end_deleted && self.rules.policy().is_empty() && !self.unsafe_allow_remove_all
    }

    fn keep_deleted(&self) -> std::time::Duration {
        self.keep_deleted.unwrap_or_default().0
    }
}

/// Snapshots to remove or to mark, and series whose marks end.
#[derive(Default)]
struct Doomed {
    /// To be removed or marked; or marked before and to be removed now.
    snapshots: Vec<SnapshotView>,
    /// Where marks that are over end.
    series: Vec<SeriesId>,
}

impl Doomed {
    /// Adds what the filter lets through of the snapshots that are marked as deleted: their marks end if they are over,
    /// or are asked to.
    fn add_deleted(
        &mut self,
        arguments: &ForgetArgs,
        filter: &FilterArgs,
        repository: &Repository,
    ) -> Result<(), CliError> {
        // What cannot be read has been told, or is told by whoever looks at live snapshots.
        let (views, _) = list_readable(repository, &SnapshotFilter { deleted: true, ..filter.filter() })?;
        self.series.extend(views.iter().map(|view| view.series));
        if arguments.end_deleted {
            self.snapshots.extend(views);
        }
        Ok(())
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
    filter: &FilterArgs,
    repository: &Repository,
    context: &Context,
) -> Result<(Doomed, Done), CliError> {
    let filter = SnapshotFilter { deleted: arguments.end_deleted, ..filter.filter() };
    let (mut snapshots, found) = find_all(repository, &arguments.ids, &filter, context.output)?;
    let mut known = HashSet::new();
    snapshots.retain(|view| known.insert(view.snapshot.id));
    Ok((Doomed { snapshots, series: Vec::new() }, found))
}

fn by_rules(
    arguments: &ForgetArgs,
    filter: &FilterArgs,
    repository: &Repository,
    context: &Context,
) -> Result<(Doomed, Done), CliError> {
    let (views, damaged) = list_readable(repository, &filter.filter())?;
    let found = without(&damaged, context.output);
    let decided = decide(arguments, filter, views)?;
    warn_of_future(&decided, context);
    if context.output.json {
        context.output.json(&decided.iter().map(GroupJson::from).collect::<Vec<_>>())?;
    } else {
        context.output.report(format_args!("Applying Policy: {}", arguments.rules))?;
        decided.iter().try_for_each(|decided| print_group(decided, arguments, context))?;
    }
    let series = decided.iter().flat_map(|decided| decided.group.snapshots.iter().map(|view| view.series)).collect();
    Ok((Doomed { snapshots: decided.iter().flat_map(|decided| decided.part(false).0).collect(), series }, found))
}

fn decide(arguments: &ForgetArgs, filter: &FilterArgs, views: Vec<SnapshotView>) -> Result<Vec<Decided>, CliError> {
    let (policy, allows_all) = (arguments.rules.policy(), arguments.unsafe_allow_remove_all);
    let removes_all = policy.is_empty();
    if removes_all && !allows_all {
        return Err(CliError::EmptyPolicy);
    }
    if removes_all && filter.is_empty() {
        return Err(CliError::RemoveAllUnfiltered);
    }
    let now = jiff::Zoned::now();
    let mut all = Vec::new();
    for group in group(views, &arguments.group_by.0) {
        let mut decisions = policy::apply(&group.snapshots, &policy, &now);
        if removes_all {
            decisions.fill(Decision { keep: false, reasons: Vec::new() });
        }
        if !allows_all && is_emptied(&decisions) {
            return Err(CliError::GroupEmptied { group: format!("({})", GroupHeader(&group)) });
        }
        all.push(Decided { group, decisions });
    }
    Ok(all)
}

/// Tells of snapshots that a clock far ahead has made: rules pass them over for ever.
fn warn_of_future(decided: &[Decided], context: &Context) {
    let each = decided.iter().flat_map(|decided| decided.group.snapshots.iter().zip(&decided.decisions));
    for (view, _) in each.filter(|(_, decision)| decision.reasons.iter().any(|reason| reason == AHEAD)) {
        let (id, time) = (view.snapshot.id.short(), local(view.snapshot.time));
        context.output.warn(format_args!(
            "warning: snapshot {id} is dated {time}, in the future: no rule counts or removes it; give its id to remove it"
        ));
    }
}

/// Whether nothing stays of what rules decide on.
fn is_emptied(decisions: &[Decision]) -> bool {
    let is_passed_over =
        |decision: &&Decision| decision.reasons.iter().any(|reason| [AHEAD, PARTIAL].contains(&reason.as_str()));
    let mut decided = decisions.iter().filter(|decision| !is_passed_over(decision)).peekable();
    decided.peek().is_some() && !decided.any(|decision| decision.keep)
}

fn print_group(decided: &Decided, arguments: &ForgetArgs, context: &Context) -> Result<(), CliError> {
    let output = context.output;
    let header = GroupHeader(&decided.group).to_string();
    if !header.is_empty() {
        output.report(format_args!("snapshots for ({header}):\n"))?;
    }
    let (compact, goes) = (arguments.compact, if arguments.keep_deleted().is_zero() { "remove" } else { "mark" });
    for (keep, word) in [(true, "keep"), (false, goes)] {
        let (views, reasons) = decided.part(keep);
        if !views.is_empty() {
            let table = snapshot_table(&views, keep.then_some(reasons.as_slice()), compact);
            output.report(format_args!("{word} {} snapshots:\n{table}\n", views.len()))?;
        }
    }
    Ok(())
}

/// Options of an ordinary run, without marks.
pub(super) fn options(context: &Context) -> Result<ForgetOptions, CliError> {
    Ok(ForgetOptions {
        dry_run: false,
        allow_remove_all: false,
        rewrite_threshold: REWRITE_THRESHOLD_DEFAULT,
        take_over: false,
        user: environment::user(),
        compression_level: context.compression_level()?,
        marking: Marking::default(),
    })
}

fn remove(
    doomed: Doomed,
    arguments: &ForgetArgs,
    repository: &Repository,
    context: &Context,
) -> Result<Done, CliError> {
    let keys = keys(&doomed.snapshots);
    let marking = Marking {
        keep: arguments.keep_deleted(),
        ends_given: arguments.end_deleted,
        now: environment::now(),
        series: doomed.series,
    };
    let options = ForgetOptions {
        dry_run: arguments.dry_run,
        allow_remove_all: arguments.unsafe_allow_remove_all,
        marking,
        ..options(context)?
    };
    let until = (!arguments.keep_deleted().is_zero()).then(|| options.marking.until());
    let progress = Progress::begin(Work::Forget, context.output)?;
    let summary = while_locked(context, || Ok(forget(repository, &keys, &options, &progress)?))?;
    progress.end();
    memory::renew(repository, context);
    if context.output.json {
        let message = SummaryMessage::new(&summary, until, arguments.dry_run);
        // With rules the document on standard output is restic's list of groups.
        let has_groups = arguments.ids.is_empty() && !arguments.only_ends();
        if has_groups { context.output.json_aside(&message) } else { context.output.json(&message)? }
    } else {
        context.output.report(text(&summary, until, arguments.dry_run))?;
    }
    if summary.snapshots_failed > 0 {
        context.output.warn(format_args!("warning: {} snapshots could not be removed", summary.snapshots_failed));
        return Ok(Done::InPart);
    }
    Ok(Done::Whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use crate::render::snapshot_tests::view;
    use clap::Parser;

    fn parse(line: &str) -> ForgetArgs {
        let cli =
            Cli::try_parse_from(["silt", "forget"].into_iter().chain(line.split_whitespace())).expect("a valid line");
        match cli.command {
            Command::Forget(arguments) => *arguments,
            other => panic!("not forget: {other:?}"),
        }
    }

    fn decided(line: &str) -> Result<String, CliError> {
        let arguments = parse(line);
        let views = vec![view(1, &[], None), view(2, &["keep"], None), view(3, &[], None)];
        let decided = decide(&arguments, &filter(&arguments), views)?;
        let decisions = decided.iter().flat_map(|decided| &decided.decisions);
        Ok(decisions.map(|decision| if decision.keep { 'k' } else { '-' }).collect())
    }

    #[test]
    fn short_options_are_restics() {
        let arguments = parse("-l 1 -H 2 -d 3 -w 4 -m 5 -y unlimited -c -n");
        let policy = arguments.rules.policy();
        assert_eq!([policy.last, policy.hourly, policy.daily], [Some(1), Some(2), Some(3)]);
        assert_eq!([policy.weekly, policy.monthly, policy.yearly], [Some(4), Some(5), Some(u32::MAX)]);
        assert!(arguments.compact && arguments.dry_run);
    }

    #[test]
    fn rules_decide_per_group() {
        assert_eq!(decided("--keep-last 1").expect("decided"), "--k");
        assert_eq!(decided("--keep-last 1 --keep-tag keep").expect("decided"), "-kk");
        assert_eq!(decided("--keep-last 1 --group-by tags").expect("decided"), "-kk");
    }

    #[test]
    fn an_empty_policy_removes_nothing() {
        assert!(matches!(decided(""), Err(CliError::EmptyPolicy)));
        assert!(matches!(decided("--keep-daily 0"), Err(CliError::EmptyPolicy)));
        assert!(matches!(decided("--unsafe-allow-remove-all"), Err(CliError::RemoveAllUnfiltered)));
        assert_eq!(decided("--unsafe-allow-remove-all --host kasimir").expect("decided"), "---");
    }

    #[test]
    fn a_mistyped_tag_does_not_empty_a_group() {
        let error = decided("--keep-tag kepe").expect_err("refused");
        assert!(matches!(&error, CliError::GroupEmptied { group } if group.contains("kasimir")), "{error}");
        assert_eq!(decided("--keep-tag kepe --unsafe-allow-remove-all").expect("decided"), "---");
    }
}
