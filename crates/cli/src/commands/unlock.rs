//! `silt unlock`: ends leases whose holders are dead.

use super::{Context, without};
use crate::environment;
use crate::error::{CliError, Done};
use crate::repository::open;
use clap::Args;
use serde::Serialize;
use siltstone_engine::unlock::{UnlockOptions, unlock};

/// End the leases of writers that died
#[derive(Args, Debug)]
pub(crate) struct UnlockArgs {
    /// Only that of this series
    #[arg(long, value_name = "NAME")]
    series: Option<String>,
    /// Also leases whose holders cannot be seen from here; a holder that still lives is fenced off and loses its run
    #[arg(long)]
    remove_all: bool,
}

#[derive(Serialize)]
struct Unlocked {
    message_type: &'static str,
    locks_removed: u64,
}

pub(super) fn run(arguments: &UnlockArgs, context: &Context) -> Result<Done, CliError> {
    let repository = open(context)?;
    let options =
        UnlockOptions { series: arguments.series.clone(), take_over: arguments.remove_all, user: environment::user() };
    let (removed, damaged) = unlock(&repository, &options)?;
    if context.output.json {
        context.output.json(&Unlocked { message_type: "summary", locks_removed: removed })?;
    } else {
        context.output.report(format_args!("successfully removed {removed} locks"))?;
    }
    Ok(without(&damaged, context.output))
}
