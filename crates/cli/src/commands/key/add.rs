//! `silt key add`: another password, or one of a client that can add backups and read none.

use super::{NewKeyArgs, told};
use crate::context::Context;
use crate::environment;
use crate::error::{CliError, Done};
use crate::repository::open;
use clap::Args;
use siltstone_engine::backup::{BackupOptions, series_name};
use siltstone_engine::write_only::add_write_only_key;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(super) struct AddArgs {
    /// Make the key of a client that can add backups to one series and read none
    ///
    /// With its password 'silt backup' works as ever, and 'silt snapshots' lists the series; every other command ends
    /// with exit code 15. Backups are incremental by what the client keeps in its cache: where that is lost, all files
    /// are read and stored again. Settling, forgetting, checking and restoring take another key.
    #[arg(long)]
    write_only: bool,
    /// Series that the key adds backups to [default: host and PATHs, as of 'silt backup']
    #[arg(long, value_name = "NAME", requires = "write_only")]
    series: Option<String>,
    /// Paths that the client will back up, to name the series by
    #[arg(value_name = "PATH", requires = "write_only", conflicts_with = "series")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    new: NewKeyArgs,
}

pub(super) fn run(arguments: &AddArgs, context: &Context) -> Result<Done, CliError> {
    let AddArgs { write_only, series, paths, new } = arguments;
    let repository = open(context)?;
    if !write_only {
        let (cost, password, label) = new.ask(context)?;
        return told(context, "added", repository.add_key(&password, &label, cost)?, "saved new key");
    }
    let host = new.host.clone().unwrap_or_else(environment::host);
    let options = BackupOptions::default().with_host(host).with_series(series.clone());
    let series = series_name(paths, &options)?;
    let (cost, password, label) = new.ask(context)?;
    let id = add_write_only_key(&repository, &series, &password, (&label, cost), &context.resources())?;
    told(context, "added", id, "saved new key")
}
