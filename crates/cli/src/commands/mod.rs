//! One file per command: its options, and how its result is shown.

pub(crate) mod backup;
mod changes;
pub(crate) mod check;
pub(crate) mod dump;
pub(crate) mod forget;
pub(crate) mod generate;
pub(crate) mod init;
pub(crate) mod key;
mod layout;
pub(crate) mod ls;
pub(crate) mod maintain;
pub(crate) mod prune;
pub(crate) mod repair;
pub(crate) mod restore;
pub(crate) mod snapshots;
mod sources;
pub(crate) mod stats;
pub(crate) mod undelete;
pub(crate) mod unlock;
pub(crate) mod version;

use crate::args::{Cli, Command, GlobalArgs};
use crate::environment;
use crate::error::{CliError, Done, EXIT_FAILED, EXIT_INCOMPLETE, EXIT_INTERRUPTED};
use crate::interrupt;
use crate::output::{Output, error_line};
use crate::parse::{Compression, Preset};
use crate::render::visible;
use clap::Parser;
use serde::Serialize;
use siltstone_engine::cost::Preset as Place;
use siltstone_engine::fs::raise_open_file_limit;
use siltstone_engine::snapshots::{SnapshotFilter, SnapshotView, resolve};
use siltstone_store::StoreError;
use siltstone_store::repository::Repository;
use std::path::PathBuf;
use std::process::ExitCode;

/// What every command is given.
pub(crate) struct Context {
    /// Options that any command takes.
    pub(crate) options: GlobalArgs,
    /// Where to print.
    pub(crate) output: Output,
}

impl Context {
    fn new(options: GlobalArgs) -> Self {
        let output = Output { json: options.json, quiet: options.quiet, verbosity: options.verbose };
        Self { options, output }
    }

    /// Folder of the local index, unless none is wanted.
    fn cache_folder(&self) -> Option<PathBuf> {
        let chosen = || self.options.cache_dir.clone().or_else(environment::cache_folder);
        if self.options.no_cache { None } else { chosen() }
    }

    /// What reading and moving costs.
    fn preset(&self) -> Result<Place, CliError> {
        let set = || environment::parsed::<Preset>("SILT_PRESET");
        let preset = self.options.preset.map_or_else(set, |preset| Ok(Some(preset)))?;
        Ok(preset.unwrap_or_default().0)
    }

    /// Level of zstd.
    fn compression_level(&self) -> Result<i32, CliError> {
        let set = || environment::parsed::<Compression>("SILT_COMPRESSION");
        let mode = self.options.compression.map_or_else(set, |mode| Ok(Some(mode)))?;
        Ok(mode.unwrap_or_default().level())
    }
}

/// Tells what is wrong with the series that could not be read: what was done is done without them.
fn without(damaged: &[StoreError], output: Output) -> Done {
    for error in damaged {
        output.error(error);
    }
    if damaged.is_empty() { Done::Whole } else { Done::InPart }
}

/// The snapshot meant. If it is the latest of some series only, the others are told.
fn find(
    repository: &Repository,
    wanted: &str,
    filter: &SnapshotFilter,
    output: Output,
) -> Result<(SnapshotView, Done), CliError> {
    let (view, damaged) = resolve(repository, wanted, filter)?;
    let done = without(&damaged, output);
    if done == Done::InPart {
        output.warn(format_args!("warning: '{wanted}' is chosen among the other series: {}", view.snapshot.id.short()));
    }
    Ok((view, done))
}

/// The snapshots meant, in this order.
fn find_all(
    repository: &Repository,
    wanted: &[String],
    filter: &SnapshotFilter,
    output: Output,
) -> Result<(Vec<SnapshotView>, Done), CliError> {
    let mut done = Done::Whole;
    let found = wanted.iter().map(|wanted| {
        let (view, found) = find(repository, wanted, filter, output)?;
        done = done.and(found);
        Ok(view)
    });
    let views = found.collect::<Result<_, CliError>>()?;
    Ok((views, done))
}

/// The program: parses, runs, tells how it went.
pub(crate) fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_understood(&error),
    };
    interrupt::listen();
    raise_open_file_limit();
    let context = Context::new(cli.global);
    match environment::check().and_then(|()| run(&cli.command, &context)) {
        Ok(Done::Whole) => ExitCode::SUCCESS,
        Ok(Done::InPart) => ExitCode::from(EXIT_INCOMPLETE),
        Err(error) => {
            // Whatever a run that was asked to stop fell over, it ended because of that.
            let code = if interrupt::is_asked() { EXIT_INTERRUPTED } else { error.exit_status() };
            if !error.is_closed_pipe() {
                print_error(context.output.json, code, &error.message());
            }
            ExitCode::from(code)
        }
    }
}

fn run(command: &Command, context: &Context) -> Result<Done, CliError> {
    match command {
        Command::Init(arguments) => init::run(arguments, context),
        Command::Backup(arguments) => backup::run(arguments, context),
        Command::Snapshots(arguments) => snapshots::run(arguments, context),
        Command::Ls(arguments) => ls::run(arguments, context),
        Command::Restore(arguments) => restore::run(arguments, context),
        Command::Dump(arguments) => dump::run(arguments, context),
        Command::Forget(arguments) => forget::run(arguments, context),
        Command::Undelete(arguments) => undelete::run(arguments, context),
        Command::Maintain(arguments) => maintain::run(arguments, context),
        Command::Prune(arguments) => prune::run(arguments, context),
        Command::Check(arguments) => check::run(arguments, context),
        Command::Repair(arguments) => repair::run(arguments, context),
        Command::Stats(arguments) => stats::run(arguments, context),
        Command::Key(arguments) => key::run(arguments, context),
        Command::Unlock(arguments) => unlock::run(arguments, context),
        Command::Version(arguments) => version::run(arguments, context),
        Command::Generate(arguments) => generate::run(arguments, context),
    }
}

/// Help and version are answers; anything else is an error of the caller.
fn not_understood(error: &clap::Error) -> ExitCode {
    let wants_json = std::env::args_os().any(|argument| argument == "--json");
    if error.use_stderr() && wants_json {
        print_error(true, EXIT_FAILED, error.to_string().trim_end());
    } else {
        let _ = error.print();
    }
    if error.use_stderr() { ExitCode::from(EXIT_FAILED) } else { ExitCode::SUCCESS }
}

/// `message_type` `exit_error`.
#[derive(Serialize)]
struct ExitError<'a> {
    message_type: &'static str,
    code: u8,
    message: &'a str,
}

fn print_error(json: bool, code: u8, message: &str) {
    let message_type = "exit_error";
    let document = serde_json::to_string(&ExitError { message_type, code, message }).unwrap_or_default();
    error_line(&if json { document } else { format!("silt: {}", visible(message.as_bytes())) });
}
