//! `silt schedule`: has the system run the commands for which a profile has a `schedule`, by systemd or by cron.
//!
//! What is installed names the profile and nothing that is in it, so that no password gets there and a change of the
//! profile holds for the next run.

mod cron;
mod job;
mod status;
mod systemd;
mod tool;

use crate::context::Context;
use crate::environment;
use crate::error::{CliError, Done};
use crate::profile::Profile;
use clap::{Args, Subcommand, ValueEnum};
use job::Job;
use std::path::Path;
use systemd::Systemd;
use tool::ToolError;

/// There is this folder if systemd runs the system.
const SYSTEMD_RUNS: &str = "/run/systemd/system";
/// Options of which each run needs one, and the variable that stands in for them.
const REPOSITORY: &[&str] = &["repo", "repository-file"];
const PASSWORD: (&[&str], &str) = (&["password-file", "password-command", "insecure-no-password"], "SILT_PASSWORD");

/// Have the system run what the profile has a schedule for
#[derive(Args, Debug)]
pub(crate) struct ScheduleArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Install what the profile has a schedule for, in the place of what was installed for it before
    Install(SchedulerArgs),
    /// Show what is installed, when it runs next, and how it went last
    Status(SchedulerArgs),
    /// Remove all that was installed for the profile
    Remove(SchedulerArgs),
}

#[derive(Args, Debug)]
struct SchedulerArgs {
    /// The scheduler to use
    #[arg(long, value_name = "NAME", default_value = "auto")]
    scheduler: Choice,
    /// Units of the user's own systemd, also for root
    #[arg(long)]
    user: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
enum Choice {
    /// systemd where it runs the system, else cron
    Auto,
    Systemd,
    Cron,
}

/// A schedule cannot be installed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScheduleError {
    #[error("the profile '{profile}' has no schedule: put schedule = 'daily' under [backup]")]
    Nothing { profile: String },
    #[error("the profile '{profile}' gives 'silt {command}' no {what}, and nobody is there to give it: put it there")]
    Lacking { profile: String, command: String, what: &'static str },
    #[error("the schedule '{when}' of 'silt {command}' is not one of systemd: {reason}")]
    NotOfSystemd { when: String, command: String, reason: String },
    #[error(
        "the schedule '{when}' of 'silt {command}' is not one that cron can keep: it takes hourly, daily, weekly, \
         monthly, yearly, '03:00', 'Mon..Fri 03:00', or the five fields of a crontab"
    )]
    NotOfCron { when: String, command: String },
    #[error("there is no home folder: set HOME")]
    NoHome,
    #[error("this program's own path cannot be had: {0}")]
    NoProgram(std::io::Error),
    #[error("'{path}' cannot stand in a line of systemd or cron")]
    BadPath { path: String },
    #[error("cannot write {path}: {source}")]
    File { path: std::path::PathBuf, source: std::io::Error },
    #[error(transparent)]
    Tool(#[from] ToolError),
}

/// Whoever runs commands at their times.
enum Scheduler {
    Systemd(Systemd),
    Cron,
}

impl Scheduler {
    fn choose(arguments: &SchedulerArgs) -> Result<Self, ScheduleError> {
        let runs_systemd = match arguments.scheduler {
            Choice::Auto => Path::new(SYSTEMD_RUNS).is_dir(),
            Choice::Systemd => true,
            Choice::Cron => false,
        };
        if !runs_systemd {
            return Ok(Self::Cron);
        }
        let is_user = arguments.user || !environment::is_root();
        Systemd::new(is_user).map(Self::Systemd)
    }
}

pub(crate) fn run(arguments: &ScheduleArgs, profile: Option<&Profile>, context: &Context) -> Result<Done, CliError> {
    let profile = profile.ok_or_else(Profile::none_chosen)?;
    match &arguments.action {
        Action::Install(arguments) => install(profile, &Scheduler::choose(arguments)?, context)?,
        Action::Remove(arguments) => remove(profile, &Scheduler::choose(arguments)?, context)?,
        Action::Status(arguments) => status::show(profile, &Scheduler::choose(arguments)?, context)?,
    }
    Ok(Done::Whole)
}

fn install(profile: &Profile, scheduler: &Scheduler, context: &Context) -> Result<(), CliError> {
    let jobs = Job::of(profile)?;
    if jobs.is_empty() {
        return Err(ScheduleError::Nothing { profile: profile.name.clone() }.into());
    }
    for job in &jobs {
        let lacking =
            |what| ScheduleError::Lacking { profile: profile.name.clone(), command: job.command.clone(), what };
        if !profile.gives(&job.command, REPOSITORY, "") {
            return Err(lacking("repository").into());
        }
        if !profile.gives(&job.command, PASSWORD.0, PASSWORD.1) {
            return Err(lacking("password").into());
        }
    }
    match scheduler {
        Scheduler::Systemd(systemd) => systemd.install(&profile.name, &jobs)?,
        Scheduler::Cron => cron::install(&profile.name, &jobs)?,
    }
    for Job { command, when, .. } in &jobs {
        context.output.report(format_args!("installed: silt {command}, {when}"))?;
    }
    if let Scheduler::Systemd(Systemd { is_user: true, .. }) = scheduler {
        let text = "it runs while you are logged in; 'loginctl enable-linger' has it run always";
        context.output.report(text)?;
    }
    Ok(())
}

fn remove(profile: &Profile, scheduler: &Scheduler, context: &Context) -> Result<(), CliError> {
    let was_there = match scheduler {
        Scheduler::Systemd(systemd) => systemd.remove(&profile.name)?,
        Scheduler::Cron => cron::remove(&profile.name)?,
    };
    let name = &profile.name;
    let text = if was_there { "removed the schedule of" } else { "nothing is installed for" };
    context.output.report(format_args!("{text} the profile '{name}'"))
}

impl From<ScheduleError> for CliError {
    fn from(error: ScheduleError) -> Self {
        Self::Schedule(Box::new(error))
    }
}
