//! `kill -9` on the real program at random moments, again and again. After each: nothing that was committed is lost or
//! changed, a snapshot that was being forgotten is either still whole or gone, `check --read-data` is clean, and every
//! snapshot listed comes back as its source was. What the program has to be told after being killed: nothing.
//!
//! The repository lies in a folder, or at a place whose server is killed and started again meanwhile. Several clients,
//! each with a series, a cache and a state of its own, may work in it at once: a round is one command of each, all
//! together. Half of what each has the first has too, and the others borrow that of it. A command that fails because
//! its place was away must say so.

mod client;
mod place;
mod server;
mod source;

use crate::campaign::{self, each, joined};
use anyhow::{Context, Result, ensure};
use clap::Args;
use client::{Client, Ending, Ran};
use place::{Site, Where};
use serde_json::Value;
use server::Server;
use siltstone_testbed::deterministic::Sequence;
use siltstone_testbed::machine;
use siltstone_testbed::program;
use siltstone_testbed::record;
use siltstone_testbed::table::Table;
use siltstone_testbed::tool::{Repository, Tool};
use siltstone_testbed::workspace::Build;
pub(crate) use source::generate;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Options of the kill loop.
#[derive(Args)]
pub(crate) struct Options {
    /// Rounds: each client runs one command in each.
    #[arg(long, default_value_t = 200)]
    rounds: u64,
    /// The place of the repository.
    #[arg(long, value_enum, default_value_t = Where::Folder)]
    place: Where,
    /// Clients that work in the repository at once.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    clients: u64,
    /// Seed that the moments and the edits are drawn from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Size of each client's source in MB.
    #[arg(long, default_value_t = 64)]
    megabytes: u64,
    #[command(flatten)]
    campaign: campaign::Options,
}

impl Options {
    /// The form that is part of the tests.
    pub(crate) fn short() -> Self {
        let campaign = campaign::Options::default();
        Self { rounds: 12, place: Where::Folder, clients: 1, seed: 1, megabytes: 12, campaign }
    }
}

/// Runs the loop; the first thing that is not as it should be ends it with the seed and the round.
pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(options.place != Where::Rclone || options.clients == 1, "rclone cannot keep several writers apart");
    let silt = Tool::silt_for_trials(Build::of(options.campaign.release), &[])?;
    let folder = tempfile::tempdir()?;
    let mut scene = Scene::begin(&silt, folder.path(), options)?;
    for round in 0..options.rounds {
        scene.round(round).with_context(|| format!("seed {}, round {round}", options.seed))?;
        scene.tell(round, options);
    }
    if options.place != Where::Folder {
        scene.outage().with_context(|| format!("seed {}, after the last round", options.seed))?;
    }
    let report = scene.report(options);
    println!("{report}");
    if options.campaign.record { keep(&report, options, folder.path()) } else { Ok(()) }
}

fn keep(report: &str, options: &Options, work: &Path) -> Result<()> {
    let name = format!("kill-loop-{}-{}", options.place.text(), machine::today());
    let build = if options.campaign.release { "release" } else { "development" };
    let Options { rounds, megabytes, seed, .. } = options;
    let notes = [
        format!("{rounds} rounds, {megabytes} MB for each client, seed {seed}, {build} build"),
        "half of each client's source is the same, and is borrowed of the first".to_owned(),
    ];
    record::keep("kill-loop", &name, report, &notes, work)
}

/// The repository, its server and its clients.
struct Scene {
    site: Site,
    repository: Repository,
    server: Option<Server>,
    clients: Vec<Client>,
    sequence: Sequence,
    /// About what a round takes.
    usual: Duration,
    count: Count,
}

/// Counts of what was done.
#[derive(Default)]
struct Count {
    commands: u64,
    killed: u64,
    away: u64,
    servers: u64,
}

impl Scene {
    fn begin(silt: &Tool, folder: &Path, options: &Options) -> Result<Self> {
        let (site, server) = options.place.open(silt, folder)?;
        let home = |number: u64| folder.join(format!("client-{number}"));
        let repository = silt.init_at(site.place.clone(), &home(0))?;
        let begin = Instant::now();
        let client = |number: u64| Client::begin(number, repository.at(&home(number)), &site, &home(number), options);
        let mut clients = vec![client(0).context("the first client")?];
        clients.extend(each(1..options.clients, client)?);
        if options.clients > 1 {
            let said = program::quietly(repository.command().args(["stats", "--json"]))?;
            let figures: Value = serde_json::from_str(&said)?;
            let borrowed = figures["borrowed"].as_array().context("figures without what is borrowed")?;
            ensure!(!borrowed.is_empty(), "no client borrows of the first");
        }
        let sequence = Sequence::of(&[options.seed, u64::MAX]);
        Ok(Self { site, repository, server, clients, sequence, usual: begin.elapsed(), count: Count::default() })
    }

    fn round(&mut self, round: u64) -> Result<()> {
        let acts = each(&mut self.clients, |client| client.plan(round))?;
        let begin = Instant::now();
        let (clients, server, sequence, usual) = (&mut self.clients, &mut self.server, &mut self.sequence, self.usual);
        let has_ended = AtomicBool::new(false);
        let (ran, kills) = thread::scope(|scope| {
            let trouble = scope.spawn(|| match server {
                Some(server) => place::trouble(server, &has_ended, usual, sequence),
                None => Ok(0),
            });
            let ran = each(clients.iter_mut().zip(acts), |(client, act)| client.carry_out(act));
            has_ended.store(true, Ordering::Release);
            (ran, joined(trouble))
        });
        self.usual = begin.elapsed();
        self.count.servers += kills.context("the server's trouble")?;
        self.judge(ran?)
    }

    /// The place is away for as long as the programs try: each must say so. Then it is there again.
    fn outage(&mut self) -> Result<()> {
        let acts = each(&mut self.clients, Client::plan_away)?;
        if let Some(server) = &mut self.server {
            server.kill_all()?;
        }
        let ran = each(self.clients.iter_mut().zip(acts), |(client, act)| client.carry_out(act))?;
        ensure!(ran.iter().all(|ran| ran.ending == Ending::Away), "a backup ended well without its place");
        if let Some(server) = &mut self.server {
            server.restart()?;
        }
        self.judge(ran)
    }

    /// Counts how the commands ended, and holds the repository against what must be in it.
    fn judge(&mut self, ran: Vec<Ran>) -> Result<()> {
        let count = |ending| ran.iter().filter(|ran| ran.ending == ending).count() as u64;
        self.count.commands += ran.len() as u64;
        self.count.killed += count(Ending::Killed);
        self.count.away += count(Ending::Away);
        each(self.clients.iter_mut().zip(ran), |(client, ran)| client.settle(ran))?;
        let listed: BTreeSet<String> = self.repository.labels()?.into_iter().collect();
        let expected: BTreeSet<String> = self.clients.iter().flat_map(Client::snapshots).cloned().collect();
        ensure!(listed == expected, "snapshots listed: {listed:?}; snapshots committed: {expected:?}");
        program::quietly(self.repository.command().args(["check", "--read-data"]))?;
        each(&self.clients, Client::verify)?;
        Ok(())
    }

    /// Servers and connections that were killed under commands.
    fn cuts(&self) -> u64 {
        self.count.servers + self.site.cuts()
    }

    /// Says how far it is, where a round takes long.
    fn tell(&self, round: u64, options: &Options) {
        if options.place != Where::Folder || options.clients > 1 {
            let (Count { commands, killed, away, .. }, cuts) = (&self.count, self.cuts());
            let (round, rounds) = (round + 1, options.rounds);
            eprintln!(
                "kill-loop: round {round} of {rounds}: {commands} commands, {killed} killed, {away} away; {cuts} cuts"
            );
        }
    }

    fn report(&self, options: &Options) -> String {
        let columns =
            ["place", "clients", "commands", "killed", "told that the place was away", "servers or connections killed"];
        let mut table = Table::new(columns);
        let Count { commands, killed, away, .. } = &self.count;
        let numbers = [options.clients, *commands, *killed, *away, self.cuts()];
        let cells = std::iter::once(options.place.text()).chain(numbers.map(|number| number.to_string()));
        table.row(cells.collect());
        let snapshots = self.clients.iter().flat_map(Client::snapshots).count();
        format!("{table}\n{snapshots} snapshots left and whole; committed snapshots lost, damage found: 0.\n")
    }
}
