//! A run of a command, and what stands around it: hooks, the record, metrics, notifications. A command knows nothing of
//! them; where a profile gives a backup several sources, it is run once for each.

mod figures;
mod hooks;
mod metrics;
mod notify;
mod record;

pub(crate) use figures::Figures;
pub(crate) use record::{Record, replace};

use crate::context::Context;
use crate::error::{CliError, Done, EXIT_INCOMPLETE, EXIT_INTERRUPTED, EXIT_NO_REPOSITORY, EXIT_WRONG_PASSWORD};
use crate::interrupt::{self, Held};
use crate::profile::{Asked, Part, SCHEDULED};
use clap::Args;
use hooks::Around;
use notify::{Target, When};
use record::{Begun, Stamp, Status};
use siltstone_engine::EngineError;
use std::path::PathBuf;
use std::time::Instant;

/// Failures that every other source would meet too.
const FINAL: [u8; 3] = [EXIT_NO_REPOSITORY, EXIT_WRONG_PASSWORD, EXIT_INTERRUPTED];

/// Options that say who is told of runs.
#[derive(Args, Debug, Default)]
pub(crate) struct WatchArgs {
    /// Whom to tell how backup, check, copy, forget, maintain and prune ended (may be repeated): an address
    /// https://... is sent JSON; ping:https://... is called as healthchecks.io is, with /start before, and /fail for a
    /// failure; command:LINE is a line of the shell, as command:'mail -s "$SILT_SUBJECT" me', with text on its
    /// standard input
    #[arg(long, global = true, value_name = "TO")]
    notify: Vec<Target>,
    /// Runs that --notify tells; ping: is told all
    #[arg(long, global = true, value_name = "WHEN", default_value = "always")]
    notify_on: When,
    /// Folder into which metrics of these runs are written for Prometheus, as node_exporter's textfile collector reads
    /// them
    #[arg(long, global = true, value_name = "DIR")]
    metrics_dir: Option<PathBuf>,
}

/// How a run ended, as far as it is told.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Outcome {
    exit_code: u8,
    error: Option<String>,
}

impl Outcome {
    fn of(result: &Result<Done, CliError>) -> Self {
        match result {
            Ok(Done::Whole) => Self { exit_code: 0, error: None },
            Ok(Done::InPart) => Self { exit_code: EXIT_INCOMPLETE, error: None },
            Err(error) => Self { exit_code: exit_status(error), error: Some(error.message_without_secrets()) },
        }
    }

    /// Variables that tell a program of it.
    fn variables(&self) -> [(&'static str, String); 3] {
        [
            ("SILT_STATUS", Status::of(self.exit_code).word().to_owned()),
            ("SILT_EXIT_CODE", self.exit_code.to_string()),
            ("SILT_ERROR", self.error.clone().unwrap_or_default()),
        ]
    }
}

/// Returns the exit status of a run. Whatever a run that was asked to stop fell over, it ended because of that.
pub(crate) fn exit_status(error: &CliError) -> u8 {
    if interrupt::is_asked() { EXIT_INTERRUPTED } else { error.exit_status() }
}

/// Runs what is asked for, with the hooks of the profile around it, and tells of it where that is wanted.
///
/// # Errors
/// The failure of the command; or of a hook, where the command was done.
pub(crate) fn run(
    asked: &Asked,
    context: &Context,
    command: impl Fn(&Part) -> Result<Done, CliError>,
) -> Result<Done, CliError> {
    let watch = &context.options.watch;
    let is_wanted = asked.profile.is_some() || !watch.notify.is_empty() || watch.metrics_dir.is_some();
    if !is_wanted || asked.is_rehearsal || !SCHEDULED.contains(&asked.name.as_str()) {
        return parts(asked, context, command);
    }
    let _held = Held::begin();
    let (profile, clock) = (asked.profile.as_ref(), Instant::now());
    let name = profile.map(|profile| profile.name.clone());
    let begun = Begun { profile: name, command: asked.name.clone(), started: Stamp::now() };
    notify::begins(context);
    let result = Around::new(profile, &asked.name).run(context, || parts(asked, context, command));
    let (sent, received) = (context.traffic.bytes_sent(), context.traffic.bytes_received());
    context.figures.add([("sent_bytes", sent), ("received_bytes", received)]);
    let Outcome { exit_code, error } = Outcome::of(&result);
    tell(&begun.ended(clock.elapsed(), exit_code, error, &context.figures.counted()), context);
    result
}

/// Keeps the record, and tells it.
fn tell(record: &Record, context: &Context) {
    if let Err(error) = record.keep() {
        context.output.warn(format_args!("warning: the record of this run cannot be kept: {error}"));
    }
    if let Some(folder) = &context.options.watch.metrics_dir
        && let Err(error) = metrics::write(record, folder)
    {
        let folder = folder.display();
        context.output.warn(format_args!("warning: the metrics of this run cannot be written to {folder}: {error}"));
    }
    notify::ended(record, context);
}

/// Runs all parts. One source that fails does not keep the others from being backed up.
fn parts(
    asked: &Asked,
    context: &Context,
    command: impl Fn(&Part) -> Result<Done, CliError>,
) -> Result<Done, CliError> {
    if let [part] = asked.parts.as_slice() {
        return command(part);
    }
    let (mut done, mut failed, count) = (Done::Whole, Vec::new(), asked.parts.len());
    for (number, part) in (1..).zip(&asked.parts) {
        let source = part.source.as_deref().unwrap_or_default();
        context.output.report(format_args!("source {number} of {count}: {source}"))?;
        match command(part) {
            Ok(part) => done = done.and(part),
            Err(error) if FINAL.contains(&exit_status(&error)) => return Err(error),
            Err(error) => {
                context.output.error(format_args!("source {number} ({source}): {}", error.message()));
                failed.push((number, error));
            }
        }
        if interrupt::is_asked() {
            return Err(EngineError::Interrupted.into());
        }
        if number < count {
            context.output.report("")?;
        }
    }
    let number_failed = failed.len();
    match failed.into_iter().next() {
        None => Ok(done),
        Some((number, error)) => {
            Err(CliError::Sources { failed: number_failed, of: count, number, first: Box::new(error) })
        }
    }
}
