//! `silt undelete`: brings snapshots back that are marked as deleted.

use crate::choose::{find_all, keys};
use crate::context::Context;
use crate::environment;
use crate::error::{CliError, Done};
use crate::memory;
use crate::patterns::FilterArgs;
use crate::progress::{Progress, Work};
use crate::render::counted;
use crate::repository::open;
use crate::retry::while_locked;
use clap::Args;
use serde::Serialize;
use siltstone_engine::undelete::UndeleteOptions;

/// Bring back snapshots that 'silt forget --keep-deleted' has marked as deleted
#[derive(Args, Debug)]
pub(crate) struct UndeleteArgs {
    /// Bring these back; 'silt snapshots --deleted' lists what there is
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    #[command(flatten)]
    filter: FilterArgs,
}

/// `message_type` `summary`.
#[derive(Serialize)]
struct SummaryMessage {
    message_type: &'static str,
    snapshots_undeleted: u64,
}

pub(crate) fn run(arguments: &UndeleteArgs, context: &Context) -> Result<Done, CliError> {
    let repository = open(context)?;
    let filter = arguments.filter.filter().with_deleted(true);
    let (views, found) = find_all(&repository, &arguments.ids, &filter, context.output)?;
    let options = UndeleteOptions::default().with_user(environment::user());
    let progress = Progress::begin(Work::Undelete, context)?;
    let keys = keys(&views);
    let session = context.session(&repository, &progress);
    let count = while_locked(context, || Ok(session.undelete(&keys, &options)?))?;
    progress.end();
    memory::renew(&repository, context);
    let message = SummaryMessage { message_type: "summary", snapshots_undeleted: count };
    context.output.json_or_report(&message, format_args!("brought back {}", counted(count, "snapshot")))?;
    Ok(found)
}
