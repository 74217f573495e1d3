//! `silt tag` and `silt describe`: change what is said of snapshots.

use crate::choose::{find_all, find_all_or_list, keys};
use crate::context::Context;
use crate::environment;
use crate::error::{CliError, Done};
use crate::memory;
use crate::parse::TagList;
use crate::patterns::FilterArgs;
use crate::progress::{Progress, Work};
use crate::render::counted;
use crate::repository::{Opened, open};
use crate::retry::while_locked;
use clap::Args;
use serde::Serialize;
use siltstone_engine::label::LabelOptions;
use siltstone_engine::snapshots::SnapshotView;

/// Change tags of snapshots
#[derive(Args, Debug)]
#[command(group(clap::ArgGroup::new("change").required(true).multiple(true)))]
pub(crate) struct TagArgs {
    /// Snapshots: id, latest or latest~N [default: all that the filters let through]
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Tags to add, `tag[,tag,...]` (may be repeated)
    #[arg(long, value_name = "TAGS", group = "change")]
    add: Vec<TagList>,
    /// Tags to remove (may be repeated)
    #[arg(long, value_name = "TAGS", group = "change")]
    remove: Vec<TagList>,
    /// These tags and no others; '' for none (may be repeated)
    #[arg(long, value_name = "TAGS", group = "change", conflicts_with_all = ["add", "remove"])]
    set: Option<Vec<TagList>>,
    #[command(flatten)]
    filter: FilterArgs,
}

/// Change the description of a snapshot
#[derive(Args, Debug)]
pub(crate) struct DescribeArgs {
    /// Id, latest or latest~N
    #[arg(value_name = "ID")]
    id: String,
    /// The description; '' for none
    #[arg(value_name = "TEXT")]
    text: String,
    #[command(flatten)]
    filter: FilterArgs,
}

/// `message_type` `summary`.
#[derive(Serialize)]
struct SummaryMessage {
    message_type: &'static str,
    changed_snapshots: u64,
}

pub(crate) fn tag(arguments: &TagArgs, context: &Context) -> Result<Done, CliError> {
    let repository = open(context)?;
    let filter = arguments.filter.filter();
    let (views, found) = find_all_or_list(&repository, &arguments.ids, &filter, context.output)?;
    let options = LabelOptions::default()
        .with_set_tags(arguments.set.as_deref().map(TagList::flatten))
        .with_add_tags(TagList::flatten(&arguments.add))
        .with_remove_tags(TagList::flatten(&arguments.remove));
    label(&repository, &views, options, context)?;
    Ok(found)
}

pub(crate) fn describe(arguments: &DescribeArgs, context: &Context) -> Result<Done, CliError> {
    let repository = open(context)?;
    let ids = std::slice::from_ref(&arguments.id);
    let (views, found) = find_all(&repository, ids, &arguments.filter.filter(), context.output)?;
    let options = LabelOptions::default().with_description(Some(arguments.text.clone()));
    label(&repository, &views, options, context)?;
    Ok(found)
}

fn label(
    repository: &Opened,
    views: &[SnapshotView],
    options: LabelOptions,
    context: &Context,
) -> Result<(), CliError> {
    let options = options.with_user(environment::user());
    let progress = Progress::begin(Work::Label, context)?;
    let keys = keys(views);
    let session = context.session(repository, &progress);
    let count = while_locked(context, || Ok(session.label(&keys, &options)?))?;
    progress.end();
    memory::renew(repository, context);
    let message = SummaryMessage { message_type: "summary", changed_snapshots: count };
    context.output.json_or_report(&message, format_args!("changed {}", counted(count, "snapshot")))
}
