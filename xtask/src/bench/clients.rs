//! Many clients of one repository, `cargo xtask bench clients`: each backs up a small tree to a series of its own, some
//! at once, on a server of an object store some milliseconds away: once with what the first has stored as the lender of
//! all others, and into another repository with nothing shared. Then one machine lists, checks, thins and maintains all
//! of them. At the end the commit records of one series are lost, and the others must not notice.

use super::far::{Distance, Far};
use super::report::row_with;
use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::json;
use siltstone_testbed::bench::publish::{Output, Row, table_of};
use siltstone_testbed::data;
use siltstone_testbed::distance::Traffic;
use siltstone_testbed::program::{self, Cost};
use siltstone_testbed::statistics::{Spread, rounded};
use siltstone_testbed::table::as_float;
use siltstone_testbed::tool::{Reading, Repository, Tool};
use siltstone_testbed::tree::Listing;
use siltstone_testbed::workspace::Build;
use std::fs;
use std::ops::Range;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Options: how many, and how far away.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    output: Output,
    /// Clients, each with a series of its own; 1000 by default, 40 with --quick.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=100_000))]
    count: Option<u64>,
    /// Clients that work at the same time.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=256))]
    at_once: u64,
    #[command(flatten)]
    distance: Distance,
}

/// Files of a client's tree; most are the same for all clients.
const FILES: u64 = 60;
const FILES_OF_ITS_OWN: u64 = 4;
const FILE_BYTES: usize = 20_000;
/// Repositories, and what is said of borrowing at each backup into them.
const SHARED: (&str, &str) = ("shared", "--borrow=auto");
const ALONE: (&str, &str) = ("alone", "--borrow=never");
const MACHINE: &str = "maintainer";
const COLUMNS: &str = "repository operation clients requests mb_up mb_down seconds requests_each seconds_each peak_mib";
/// The exit status for what was done in part, since something was damaged.
const EXIT_IN_PART: i32 = 3;

/// One operation on all clients.
struct Sample {
    repository: &'static str,
    operation: &'static str,
    clients: u64,
    traffic: Traffic,
    wall: Duration,
    /// One of each command.
    costs: Vec<Cost>,
}

/// Means that all operations share.
struct Clients<'a> {
    name: &'static str,
    /// Option that says whether to borrow.
    words: &'static str,
    count: u64,
    at_once: u64,
    far: &'a Far,
    /// The repository as the machine sees it that maintains it.
    repository: Repository,
    samples: Vec<Sample>,
}

/// Runs the benchmark and prints its table.
pub(super) fn run(options: &Options) -> Result<()> {
    let count = options.count.unwrap_or(if options.output.quick { 40 } else { 1000 });
    let tool = Tool::silt(Build::Release)?;
    let far = Far::start(&options.distance)?;
    let mut samples = Vec::new();
    for (name, words) in [ALONE, SHARED] {
        let repository = tool.init_at(far.place(name), &far.work().join(format!("{MACHINE}-{name}")))?;
        let at_once = options.at_once;
        let mut clients = Clients { name, words, count, at_once, far: &far, repository, samples: Vec::new() };
        clients.back_up("first backup of the first", 1, 0..1)?;
        clients.back_up("first backups", 1, 1..count)?;
        clients.back_up("later backups", 2, 0..count)?;
        clients.maintain()?;
        if name == SHARED.0 {
            clients.forget_lender()?;
            clients.lose_one()?;
        }
        samples.extend(clients.samples);
    }

    let at_once = options.at_once;
    let rows: Vec<Row> = samples.iter().map(row).collect();
    let notes = [
        tool.version.clone(),
        far.note.clone(),
        format!(
            "{count} clients, {at_once} at once, each {FILES} files of {FILE_BYTES} bytes, {FILES_OF_ITS_OWN} its own"
        ),
        "alone: nothing is borrowed; shared: others may borrow of the first client, which comes before them".to_owned(),
        "a later backup finds one file changed; each: the median of the clients' seconds".to_owned(),
        "maintaining: one machine that holds the right to delete, cold at its first command".to_owned(),
    ];
    options.output.publish("clients", &table_of(COLUMNS, &rows).to_string(), &rows, &notes, far.work())
}

impl Clients<'_> {
    fn series(client: u64) -> String {
        format!("client-{client:05}")
    }

    /// Backs up each of these clients once.
    fn back_up(&mut self, operation: &'static str, version: u64, clients: Range<u64>) -> Result<()> {
        let next = AtomicU64::new(clients.start);
        self.far.link.take_traffic();
        let begin = Instant::now();
        let work = || -> Result<Vec<Cost>> {
            let mut costs = Vec::new();
            loop {
                let client = next.fetch_add(1, Ordering::Relaxed);
                if client >= clients.end {
                    return Ok(costs);
                }
                costs.push(self.back_up_one(client, version).with_context(|| Self::series(client))?);
            }
        };
        let costs = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..self.at_once).map(|_| scope.spawn(work)).collect();
            let joined = workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
            joined.collect::<Result<Vec<_>>>()
        })?;
        self.add(operation, clients.end - clients.start, begin.elapsed(), costs.concat());
        Ok(())
    }

    fn back_up_one(&self, client: u64, version: u64) -> Result<Cost> {
        let folder = self.far.work().join(self.name).join(Self::series(client));
        let source = folder.join("source");
        write_tree(&source, client, version)?;
        let series = Self::series(client);
        let repository = self.repository.at(&folder);
        let mut command = repository.backup_command(&source, &version.to_string(), Reading::Changed);
        program::measured(command.args(["--series", &series, "--host", &series, self.words]))
    }

    /// Work of the machine that looks after all of them.
    fn maintain(&mut self) -> Result<()> {
        self.measure("snapshots, cold", &["snapshots"])?;
        self.measure("snapshots", &["snapshots"])?;
        self.measure("stats", &["stats"])?;
        self.measure("check", &["check"])?;
        self.measure("policy set", &["policy", "set", "--keep-last", "1"])?;
        self.measure("forget --policy, dry run", &["forget", "--policy", "--dry-run"])?;
        self.measure("forget --policy", &["forget", "--policy"])?;
        self.measure("maintain", &["maintain"])?;
        ensure!(self.snapshots()? == self.count, "each client keeps one snapshot");
        Ok(())
    }

    fn measure(&mut self, operation: &'static str, words: &[&str]) -> Result<()> {
        self.far.link.take_traffic();
        let cost = program::measured(self.repository.command().args(words))?;
        self.add(operation, 1, cost.wall, vec![cost]);
        Ok(())
    }

    fn snapshots(&self) -> Result<u64> {
        let said = program::quietly(self.repository.command().args(["snapshots", "--json"]))?;
        Ok(serde_json::from_str::<Vec<serde_json::Value>>(&said)?.len() as u64)
    }

    /// Forgets all that the lender has; whoever borrows of it is still restored whole.
    fn forget_lender(&mut self) -> Result<()> {
        self.measure("forget the lender", &["forget", "--series", &Self::series(0), "--unsafe-allow-remove-all"])?;
        let target = self.far.work().join("restored");
        let last = Self::series(self.count - 1);
        self.measure(
            "restore one who borrows",
            &["restore", "latest", "--series", &last, "--target", &target.to_string_lossy()],
        )?;
        let source = self.far.work().join(self.name).join(&last).join("source");
        let restored = target.join(source.strip_prefix("/").unwrap_or(&source));
        Listing::of(&source)?.expect_same(&Listing::of(&restored)?).context(last)
    }

    /// Takes the commit records of one series away, originals and copies: it is named, all others are there.
    fn lose_one(&mut self) -> Result<()> {
        let place = self.far.server.folder(self.name);
        let series = first_series(&place)?;
        for kind in ["series", "copies/series"] {
            fs::remove_dir_all(place.join(kind).join(&series))?;
        }
        self.far.link.take_traffic();
        let begin = Instant::now();
        // This machine saw the series and would refuse to go on; another one did not.
        let elsewhere = self.repository.at(&self.far.work().join("elsewhere"));
        let output = program::try_quietly(elsewhere.command().args(["snapshots", "--json"]))?;
        let wall = begin.elapsed();
        let told = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.code() == Some(EXIT_IN_PART),
            "{} is told as {}: {told}",
            series.display(),
            output.status
        );
        let others = serde_json::from_slice::<Vec<serde_json::Value>>(&output.stdout)?.len() as u64;
        ensure!(others == self.count - 2, "{others} snapshots of others are shown");
        self.add("snapshots, cold, one series lost", 1, wall, vec![Cost { wall, ..Cost::default() }]);
        Ok(())
    }

    fn add(&mut self, operation: &'static str, clients: u64, wall: Duration, costs: Vec<Cost>) {
        let traffic = self.far.link.take_traffic();
        eprintln!("{}, {operation}: {:.2} s, {} requests", self.name, wall.as_secs_f64(), traffic.requests);
        self.samples.push(Sample { repository: self.name, operation, clients, traffic, wall, costs });
    }
}

fn first_series(place: &Path) -> Result<PathBuf> {
    let first = fs::read_dir(place.join("series"))?.next().context("there is a series")??;
    Ok(first.file_name().into())
}

/// Writes the tree of a client: most files are those of all clients, some its own; of these one changes with the
/// version.
fn write_tree(folder: &Path, client: u64, version: u64) -> Result<()> {
    fs::create_dir_all(folder)?;
    for file in 0..FILES {
        let of_all = file >= FILES_OF_ITS_OWN;
        if version > 1 && file > 0 {
            continue;
        }
        let seed = if of_all { file } else { (client + 1) * FILES * 100 + file * 100 + version };
        fs::write(folder.join(format!("{file:02}")), data::random(seed, FILE_BYTES))?;
    }
    Ok(())
}

fn row(sample: &Sample) -> Row {
    let megabytes = |bytes| rounded(as_float(bytes) / 1e6, 2);
    let peak = sample.costs.iter().map(|cost| cost.peak_bytes).max().unwrap_or_default();
    let each = Spread::of(sample.costs.iter().map(|cost| cost.wall.as_secs_f64())).median;
    row_with([
        ("repository", json!(sample.repository)),
        ("operation", json!(sample.operation)),
        ("clients", json!(sample.clients)),
        ("requests", json!(sample.traffic.requests)),
        ("mb_up", json!(megabytes(sample.traffic.bytes_up))),
        ("mb_down", json!(megabytes(sample.traffic.bytes_down))),
        ("seconds", json!(rounded(sample.wall.as_secs_f64(), 2))),
        ("requests_each", json!(rounded(as_float(sample.traffic.requests) / as_float(sample.clients), 1))),
        ("seconds_each", json!(rounded(each, 2))),
        ("peak_mib", json!(rounded(as_float(peak) / f64::from(1 << 20), 0))),
    ])
}
