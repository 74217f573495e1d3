//! `silt`: arguments in, text or JSON out. What a command does is the engine's; this program parses, asks and renders.
//!
//! It is a library so that `silt-import` has the same options, words and exit codes: that program adds how repositories
//! of another program are read.

#![allow(clippy::doc_markdown, reason = "the documentation of an option is its help text")]

mod args;
mod choose;
mod commands;
mod context;
mod environment;
mod error;
mod from;
mod hint;
mod interrupt;
mod kdf;
mod kernel;
mod key_hint;
mod log;
mod memory;
mod output;
mod parse;
mod password;
mod patterns;
mod place;
mod prices;
mod profile;
mod progress;
mod render;
mod repository;
mod retry;
mod run;
mod short_help;

pub use commands::foreign::{OpenError, OpenForeign};

use args::{Cli, Command, ImportCli, ImportCommand};
use clap::{CommandFactory, Parser};
use commands::{
    backup, check, copy, diff, dump, find, foreign, forget, generate, history, import, init, key, label, ls, maintain,
    mount, policy, prune, repair, restore, rewrite, schedule, serve, show_config, snapshots, stats, undelete, unlock,
    version,
};
use context::{Context, GlobalArgs};
use error::{CliError, Done, EXIT_FAILED, EXIT_INCOMPLETE};
use output::error_line;
use profile::{Asked, NotUnderstood};
use render::visible;
use serde::Serialize;
use siltstone_engine::fs::raise_open_file_limit;
use std::process::ExitCode;

/// The program `silt`: parses, runs, tells how it went.
pub fn main() -> ExitCode {
    let mut asked = match profile::asked(short_help::arranged(Cli::command())) {
        Ok(asked) => asked,
        Err(NotUnderstood::Line(error)) => return not_understood(&error),
        Err(NotUnderstood::Profile(error)) => {
            print_error(wants_json(), EXIT_FAILED, &error.to_string());
            return ExitCode::from(EXIT_FAILED);
        }
    };
    arrange_memory(asked.parts.iter().map(|part| &part.command));
    let is_server = asked.parts.iter().any(|part| matches!(part.command, Command::Serve(_)));
    let options = std::mem::take(&mut asked.global);
    ended(options, is_server, |context| run::run(&asked, context, |part| run(&part.command, &asked, context)))
}

/// Tells the allocator what suits these commands. Those that run on for long give back what they do not need.
fn arrange_memory<'c>(mut commands: impl Iterator<Item = &'c Command> + Clone) {
    if commands.clone().any(|command| matches!(command, Command::Copy(_))) {
        kernel::bound_arenas();
    } else if !commands.any(|command| matches!(command, Command::Serve(_) | Command::Mount(_) | Command::Maintain(_))) {
        kernel::keep_freed_memory();
    }
}

/// The program `silt-import`, which reads repositories of restic by `open`.
pub fn import_main(open: OpenForeign) -> ExitCode {
    match ImportCli::try_parse() {
        Ok(cli) => {
            kernel::bound_arenas();
            ended(cli.global, false, |context| match &cli.command {
                ImportCommand::Restic(arguments) => foreign::run(arguments, open, context),
            })
        }
        Err(error) => not_understood(&error),
    }
}

/// Runs a command, tells how it went.
fn ended(options: GlobalArgs, is_server: bool, command: impl FnOnce(&Context) -> Result<Done, CliError>) -> ExitCode {
    interrupt::listen();
    raise_open_file_limit();
    let context = Context::new(options);
    let output = context.output;
    log::listen(output, is_server);
    match environment::check().and_then(|()| run_within_limits(context, command)) {
        Ok(Done::Whole) => ExitCode::SUCCESS,
        Ok(Done::InPart) => ExitCode::from(EXIT_INCOMPLETE),
        Err(error) => {
            let code = run::exit_status(&error);
            if !error.is_closed_pipe() {
                print_error(output.json, code, &error.message());
            }
            ExitCode::from(code)
        }
    }
}

fn run_within_limits(
    context: Context,
    command: impl FnOnce(&Context) -> Result<Done, CliError>,
) -> Result<Done, CliError> {
    let context = context.within_limits()?;
    let done = command(&context)?;
    context.tell_unused_limits();
    Ok(done)
}

fn run(command: &Command, asked: &Asked, context: &Context) -> Result<Done, CliError> {
    match command {
        Command::Init(arguments) => init::run(arguments, context),
        Command::Backup(arguments) => backup::run(arguments, context),
        Command::Copy(arguments) => copy::run(arguments, context),
        Command::Import(arguments) => import::run(arguments, context),
        Command::Snapshots(arguments) => snapshots::run(arguments, context),
        Command::Ls(arguments) => ls::run(arguments, context),
        Command::Find(arguments) => find::run(arguments, context),
        Command::History(arguments) => history::run(arguments, context),
        Command::Diff(arguments) => diff::run(arguments, context),
        Command::Restore(arguments) => restore::run(arguments, context),
        Command::Dump(arguments) => dump::run(arguments, context),
        Command::Export(arguments) => dump::export(arguments, context),
        Command::Mount(arguments) => mount::run(arguments, context),
        Command::Forget(arguments) => forget::run(arguments, context),
        Command::Undelete(arguments) => undelete::run(arguments, context),
        Command::Tag(arguments) => label::tag(arguments, context),
        Command::Describe(arguments) => label::describe(arguments, context),
        Command::Rewrite(arguments) => rewrite::run(arguments, context),
        Command::Policy(arguments) => policy::run(arguments, context),
        Command::Maintain(arguments) => maintain::run(arguments, context),
        Command::Prune(arguments) => prune::run(arguments, context),
        Command::Check(arguments) => check::run(arguments, context),
        Command::Repair(arguments) => repair::run(arguments, context),
        Command::Stats(arguments) => stats::run(arguments, context),
        Command::Key(arguments) => key::run(arguments, context),
        Command::Unlock(arguments) => unlock::run(arguments, context),
        Command::Schedule(arguments) => schedule::run(arguments, asked.profile.as_ref(), context),
        Command::Serve(arguments) => serve::run(arguments, context),
        Command::ShowConfig(arguments) => show_config::run(arguments, asked.profile.as_ref(), context),
        Command::Version(arguments) => version::run(arguments, context),
        Command::Generate(arguments) => {
            generate::run(arguments, short_help::arranged(Cli::command()), ImportCli::command())
        }
    }
}

/// Help and version are answers; anything else is an error of the caller.
fn not_understood(error: &clap::Error) -> ExitCode {
    if error.use_stderr() && wants_json() {
        print_error(true, EXIT_FAILED, error.to_string().trim_end());
    } else {
        let _ = error.print();
    }
    if error.use_stderr() { ExitCode::from(EXIT_FAILED) } else { ExitCode::SUCCESS }
}

/// Tells whether JSON is asked for, where the command line cannot be read.
fn wants_json() -> bool {
    std::env::args_os().any(|argument| argument == "--json")
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
