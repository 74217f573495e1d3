//! `silt unlock`: ends leases whose holders are dead.

use crate::choose::without;
use crate::context::Context;
use crate::environment;
use crate::error::{CliError, Done};
use crate::progress::{Progress, Work};
use crate::render::counted;
use crate::repository::open;
use clap::Args;
use serde::Serialize;
use siltstone_engine::unlock::{HeldLease, Life, UnlockOptions};

/// End the leases of writers that died; those that cannot be seen from here are watched first (--lease-timeout)
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
    locks_held: Vec<Held>,
}

/// A lease that stays.
#[derive(Serialize)]
struct Held {
    series: String,
    holder: String,
    since: String,
    purpose: String,
    life: &'static str,
}

impl From<&HeldLease> for Held {
    fn from(held: &HeldLease) -> Self {
        let (series, purpose) = (held.series.clone(), held.lease.purpose.clone());
        let (holder, since) = (held.lease.holder.to_string(), held.lease.since.to_string());
        let life = match held.life {
            Life::RunsHere => "runs_here",
            Life::Renews => "renews",
            Life::Unknown => "unknown",
        };
        Self { series, holder, since, purpose, life }
    }
}

pub(crate) fn run(arguments: &UnlockArgs, context: &Context) -> Result<Done, CliError> {
    let repository = open(context)?;
    let options = UnlockOptions::default()
        .with_series(arguments.series.clone())
        .with_take_over(arguments.remove_all)
        .with_user(environment::user());
    let progress = Progress::begin(Work::Unlock, context)?;
    let summary = context.session(&repository, &progress).unlock(&options)?;
    progress.end();
    if context.output.json {
        let locks_held = summary.held.iter().map(Held::from).collect();
        let (message_type, locks_removed) = ("summary", summary.ended);
        context.output.json(&Unlocked { message_type, locks_removed, locks_held })?;
    } else {
        for held in &summary.held {
            context.output.report(words(held))?;
        }
        context.output.report(format_args!("successfully removed {}", counted(summary.ended, "lock")))?;
    }
    Ok(without(&summary.damage, context.output))
}

fn words(held: &HeldLease) -> String {
    let Held { series, holder, since, purpose, .. } = Held::from(held);
    let known = match held.life {
        Life::RunsHere => "which runs on this machine",
        Life::Renews => "which is alive: it went on while it was watched",
        Life::Unknown => "of which nothing can be known from here; --remove-all takes over if it is dead",
    };
    format!("the series \"{series}\" stays locked for {purpose} by {holder} since {since}, {known}")
}
