//! Hooks: lines of the shell that a profile runs around a command.
//!
//! What they print goes to standard error, so that standard output stays the command's. Messages name a hook by its
//! place in the profile, never by its line, which may hold a password.

use super::Outcome;
use crate::context::Context;
use crate::environment;
use crate::error::{CliError, Done};
use crate::interrupt;
use crate::profile::{Hooks, Profile};
use siltstone_engine::EngineError;
use std::io;
use std::process::{Command, Stdio};

/// Says to programs below a hook that they run in one, so that they run no hooks themselves.
const IN_HOOK: &str = "SILT_HOOK";

/// A command of the shell, with the profile's variables.
pub(super) fn shell(line: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", line]).envs(environment::added()).stdin(Stdio::null()).stdout(io::stderr());
    command
}

/// The hooks of one command.
pub(super) struct Around<'r> {
    hooks: Hooks,
    profile: Option<&'r Profile>,
    command: &'r str,
}

impl<'r> Around<'r> {
    /// The hooks that the profile has for a command; none within a hook.
    pub(super) fn new(profile: Option<&'r Profile>, command: &'r str) -> Self {
        let outside = profile.filter(|_| environment::variable(IN_HOOK).is_none());
        Self { hooks: outside.map(|profile| profile.hooks(command)).unwrap_or_default(), profile, command }
    }

    /// Runs what goes before, the work, and what goes after; and where one of them fails, what is to run then. Returns
    /// the outcome of the work, unless that is success and a hook failed.
    pub(super) fn run(
        &self,
        context: &Context,
        work: impl FnOnce() -> Result<Done, CliError>,
    ) -> Result<Done, CliError> {
        let mut result = self.run_all("before", &self.hooks.before, None).and_then(|()| work());
        let mut has_failed = result.is_err();
        if result.is_ok() {
            let after = self.run_all("after", &self.hooks.after, Some(&Outcome::of(&result)));
            has_failed = after.is_err();
            result = and_hook(result, after, context);
        }
        if has_failed {
            let failed = self.run_all("failed", &self.hooks.failed, Some(&Outcome::of(&result)));
            result = and_hook(result, failed, context);
        }
        let finally = self.run_all("finally", &self.hooks.finally, Some(&Outcome::of(&result)));
        and_hook(result, finally, context)
    }

    /// Runs hooks one after the other, up to the first that fails.
    fn run_all(&self, name: &'static str, lines: &[String], outcome: Option<&Outcome>) -> Result<(), CliError> {
        for (number, line) in (1..).zip(lines) {
            if interrupt::is_asked() && outcome.is_none() {
                return Err(EngineError::Interrupted.into());
            }
            let failed = |reason| CliError::Hook { command: self.command.to_owned(), name, number, reason };
            let mut command = shell(line);
            command.env(IN_HOOK, name).env("SILT_COMMAND", self.command);
            command.envs(self.profile.map(|profile| ("SILT_PROFILE", &profile.reference)));
            command.envs(outcome.into_iter().flat_map(Outcome::variables));
            let status = command.status().map_err(|error| failed(error.to_string()))?;
            if !status.success() {
                return Err(failed(status.to_string()));
            }
        }
        Ok(())
    }
}

/// The outcome of a run with that of a hook: it counts where all else was done, and is only told elsewhere.
fn and_hook(result: Result<Done, CliError>, hook: Result<(), CliError>, context: &Context) -> Result<Done, CliError> {
    match (result, hook) {
        (result, Ok(())) => result,
        (Ok(Done::Whole), Err(hook)) => Err(hook),
        (result, Err(hook)) => {
            context.output.error(hook.message());
            result
        }
    }
}
