//! `silt prune`: nothing is ever left to do, since `forget` gives the space back itself.

use crate::context::Context;
use crate::error::{CliError, Done};
use crate::repository::open;
use clap::Args;
use serde::Serialize;

/// Nothing is left to do: forget gives the space back at once
#[derive(Args, Debug)]
pub(crate) struct PruneArgs {
    /// Options of other tools, accepted for the sake of scripts
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _ignored: Vec<String>,
}

#[derive(Serialize)]
struct Nothing {
    message_type: &'static str,
    bytes_returned: u64,
}

pub(crate) fn run(_: &PruneArgs, context: &Context) -> Result<Done, CliError> {
    open(context)?;
    let words = "nothing is left to do: 'silt forget' gives the space back at once";
    context.output.json_or_report(&Nothing { message_type: "summary", bytes_returned: 0 }, words)?;
    Ok(Done::Whole)
}
