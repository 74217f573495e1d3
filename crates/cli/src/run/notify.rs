//! Telling others how a run ended: by a request to a web server, or by a command such as `mail`. Whatever goes wrong
//! here is a warning: the run is as good as it was.

use super::hooks::shell;
use super::record::{Record, Status};
use crate::context::Context;
use crate::interrupt;
use clap::ValueEnum;
use serde::Serialize;
use siltstone_remote::Webhook;
use std::fmt;
use std::io::{self, Write};
use std::process::{Child, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// Times that a request at the end is tried; the one at the beginning once, not to keep the run waiting.
const TRIES: u32 = 3;
/// Time that a command has.
const COMMAND_MAX: Duration = Duration::from_mins(1);
const PING: &str = "ping:";
const COMMAND: &str = "command:";

/// Whom to tell.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// It gets JSON.
    Webhook(Webhook),
    /// It is called at the beginning and at the end, as healthchecks.io is.
    Ping(Webhook),
    /// A line of the shell, which gets text.
    Command(String),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let address = |text: &str| Webhook::parse(text).map_err(|error| error.to_string());
        match (text.strip_prefix(PING), text.strip_prefix(COMMAND)) {
            (Some(text), _) => address(text).map(Self::Ping),
            (_, Some(line)) if line.trim().is_empty() => Err("the command is empty".to_owned()),
            (_, Some(line)) => Ok(Self::Command(line.to_owned())),
            _ => address(text).map(Self::Webhook),
        }
    }
}

impl fmt::Display for Target {
    /// Without what may be secret in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Webhook(address) | Self::Ping(address) => write!(f, "{}", address.host()),
            Self::Command(_) => f.write_str("the command of --notify"),
        }
    }
}

/// Runs that are told.
#[derive(Clone, Copy, PartialEq, Eq, Default, ValueEnum, Debug)]
pub(crate) enum When {
    /// All
    #[default]
    Always,
    /// Those that did not end with success
    Failure,
}

/// The message: the record, and a line for those who show one.
#[derive(Serialize)]
struct Message<'a> {
    text: String,
    #[serde(flatten)]
    record: &'a Record,
}

/// Tells that a run begins, to whom wants to know that.
pub(super) fn begins(context: &Context) {
    for target in &context.options.watch.notify {
        if let Target::Ping(address) = target {
            told(target, address.below("start").post("", 1).map_err(|error| error.to_string()), context);
        }
    }
}

/// Tells how a run ended.
pub(super) fn ended(record: &Record, context: &Context) {
    let is_wanted = context.options.watch.notify_on == When::Always || record.status != Status::Success;
    let message = Message { text: record.summary(), record };
    let json = || serde_json::to_string(&message).unwrap_or_default();
    let tries = if interrupt::is_asked() { 1 } else { TRIES };
    let post = |address: &Webhook| address.post(&json(), tries).map_err(|error| error.to_string());
    for target in &context.options.watch.notify {
        let result = match target {
            Target::Ping(address) if record.status == Status::Success => post(address),
            Target::Ping(address) => post(&address.below("fail")),
            _ if !is_wanted => Ok(()),
            Target::Webhook(address) => post(address),
            Target::Command(line) => run(line, record).map_err(|error| error.to_string()),
        };
        told(target, result, context);
    }
}

fn told(target: &Target, result: Result<(), String>, context: &Context) {
    if let Err(error) = result {
        context.output.warn(format_args!("warning: {target} was not told: {error}"));
    }
}

/// Runs a command with the report on its standard input.
fn run(line: &str, record: &Record) -> io::Result<()> {
    let mut command = shell(line);
    command.env("SILT_SUBJECT", record.summary()).env("SILT_COMMAND", &record.command);
    command.envs(record.profile.iter().map(|name| ("SILT_PROFILE", name)));
    command.env("SILT_STATUS", record.status.word()).env("SILT_EXIT_CODE", record.exit_code.to_string());
    let mut child = command.stdin(Stdio::piped()).spawn()?;
    // It may end without having read everything.
    let _ = child.stdin.take().map(|mut input| input.write_all(report(record).as_bytes()));
    wait(&mut child)
}

/// The record as text, a line for each field.
fn report(record: &Record) -> String {
    let mut lines = vec![record.summary(), String::new()];
    lines.extend(record.error.iter().map(|error| format!("{error}\n")));
    lines.push(format!("started: {}", record.started.0));
    lines.push(format!("ended: {}", record.ended.0));
    lines.extend(record.snapshots.iter().map(|id| format!("snapshot: {id}")));
    lines.extend(record.figures.iter().map(|(name, count)| format!("{name}: {count}")));
    lines.join("\n") + "\n"
}

fn wait(child: &mut Child) -> io::Result<()> {
    let began = Instant::now();
    loop {
        match child.try_wait()? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(io::Error::other(status.to_string())),
            None if began.elapsed() > COMMAND_MAX => {
                child.kill()?;
                child.wait()?;
                return Err(io::Error::other("it took longer than a minute and was ended"));
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_addresses_and_commands_and_show_no_secret() {
        let shown = |text: &str| Target::from_str(text).map(|target| format!("{target} {target:?}"));
        assert!(matches!(Target::from_str("ping:https://hc-ping.com/a"), Ok(Target::Ping(_))));
        assert!(matches!(Target::from_str("command:mail -s x me"), Ok(Target::Command(_))));
        assert!(!shown("https://hooks.example.org/services/SECRET?key=SECRET").expect("fine").contains("SECRET"));
        for bad in ["mail me", "ftp://x/", "command: ", "ping:x", "https://"] {
            assert!(Target::from_str(bad).is_err(), "{bad}");
        }
    }
}
