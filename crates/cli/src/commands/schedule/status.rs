//! Status of schedules: installed jobs, their next run, and how the last one went.

use super::job::Job;
use super::{ScheduleError, Scheduler, cron};
use crate::context::Context;
use crate::environment::store_time;
use crate::error::CliError;
use crate::profile::{Profile, SCHEDULED};
use crate::render::{Table, clock, local};
use crate::run::Record;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Serialize)]
struct StatusJson<'a> {
    profile: &'a str,
    commands: Vec<CommandJson>,
}

/// A command that has a schedule, is installed, or ran.
#[derive(Serialize)]
struct CommandJson {
    command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule: Option<String>,
    installed: bool,
    /// In the scheduler's own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<Record>,
}

pub(super) fn show(profile: &Profile, scheduler: &Scheduler, context: &Context) -> Result<(), CliError> {
    let (jobs, mut there) = (Job::of(profile)?, installed(scheduler, &profile.name)?);
    let mut commands = Vec::new();
    for command in SCHEDULED {
        let schedule = jobs.iter().find(|job| job.command == command).map(|job| job.when.clone());
        let next = there.remove(command);
        let (installed, next) = (next.is_some(), next.flatten());
        let last = Record::last(Some(&profile.name), command);
        if schedule.is_some() || installed || last.is_some() {
            commands.push(CommandJson { command: command.to_owned(), schedule, installed, next, last });
        }
    }
    if context.output.json {
        return context.output.json(&StatusJson { profile: &profile.name, commands });
    }
    if commands.is_empty() {
        return Err(ScheduleError::Nothing { profile: profile.name.clone() }.into());
    }
    context.output.line(table(&commands))
}

/// Returns for each command that is installed when it runs next, as far as that is known.
fn installed(scheduler: &Scheduler, profile: &str) -> Result<BTreeMap<&'static str, Option<String>>, ScheduleError> {
    match scheduler {
        Scheduler::Systemd(systemd) => {
            let there = SCHEDULED.into_iter().filter(|command| systemd.has(profile, command));
            Ok(there.map(|command| (command, systemd.next(profile, command))).collect())
        }
        Scheduler::Cron => {
            let lines = cron::lines(profile)?;
            let line = |command| lines.iter().find(|line| line.ends_with(&format!(" {command} --quiet")));
            let fields = |line: &String| line.split(' ').take(5).collect::<Vec<_>>().join(" ");
            Ok(SCHEDULED.into_iter().filter_map(|command| Some((command, Some(fields(line(command)?))))).collect())
        }
    }
}

fn table(commands: &[CommandJson]) -> String {
    let mut table = Table::new(vec!["Command", "Schedule", "Next", "Last run", "Took", "Result"]);
    for one in commands {
        let text = |text: Option<&String>| text.cloned().unwrap_or_default();
        let next = match &one.next {
            Some(next) => next.clone(),
            None if one.installed => "unknown".to_owned(),
            None => "not installed".to_owned(),
        };
        let last = |of: fn(&Record) -> String| one.last.as_ref().map(of).unwrap_or_default();
        let cells = [
            one.command.clone(),
            text(one.schedule.as_ref()),
            next,
            last(|record| local(store_time(record.ended.0))),
            last(|record| clock(Duration::try_from_secs_f64(record.duration_seconds).unwrap_or_default())),
            last(result),
        ];
        table.row(cells.map(|cell| vec![cell]).to_vec());
    }
    let errors =
        commands.iter().filter_map(|one| Some(format!("{}: {}", one.command, one.last.as_ref()?.error.as_ref()?)));
    table.footer(errors.collect::<Vec<_>>().join("\n"));
    table.to_string()
}

fn result(record: &Record) -> String {
    let code = if record.exit_code == 0 { String::new() } else { format!(" ({})", record.exit_code) };
    record.status.word().to_owned() + &code
}
