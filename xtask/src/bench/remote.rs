//! A repository at a distance, `cargo xtask bench remote`: a server of an object store on this machine, behind a round
//! trip of some milliseconds. Requests, bytes and seconds of each operation, beside restic and, where it is
//! installed, rustic at the same server, and `rclone copy` where files as they are say something.

use super::far::{Distance, Far};
use super::report::{row_with, rows_by_operation};
use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::json;
use siltstone_testbed::bench::publish::{Row, table_of};
use siltstone_testbed::bench::rounds::{Pile, flush, turns};
use siltstone_testbed::bench::{HistoryOptions, Rounds};
use siltstone_testbed::corpus::{Corpus, History};
use siltstone_testbed::data;
use siltstone_testbed::distance::Traffic;
use siltstone_testbed::install::{self, RCLONE};
use siltstone_testbed::minio::Minio;
use siltstone_testbed::program::{self, Cost};
use siltstone_testbed::statistics::{Spread, rounded};
use siltstone_testbed::table::as_float;
use siltstone_testbed::tool::{Name, Reading, Repository, Tool, restored_place};
use siltstone_testbed::tree::{self, Listing};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options: how far, and on what.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    histories: HistoryOptions,
    #[command(flatten)]
    distance: Distance,
    #[command(flatten)]
    rounds: Rounds,
}

/// Versions of a history that are backed up one after the other.
const VERSIONS: usize = 3;
/// Bytes that nothing makes smaller.
const RANDOM_BYTES: usize = 168_000_000;
const RANDOM_BYTES_QUICK: usize = 20_000_000;
/// The remote of `rclone`.
const REMOTE: &str = "far";
const RCLONE_COPY: &str = "rclone copy";
const COLUMNS: &str = "data operation tool requests mb_up mb_down seconds spread_percent peak_mib ratio";

/// One operation of one tool in one round.
struct Sample {
    data: String,
    operation: &'static str,
    tool: &'static str,
    cost: Cost,
    traffic: Traffic,
}

/// Means and results that all rounds share.
struct Bench<'a> {
    far: &'a Far,
    pile: Pile,
    samples: Vec<Sample>,
}

/// Runs the benchmark and prints its table.
pub(super) fn run(options: &Options) -> Result<()> {
    let output = &options.histories.output;
    let rounds = options.rounds.number(output, 3);
    install::ensure(&[RCLONE])?;
    let tools = tools()?;
    let corpora = options.histories.corpora(&[History::Openssl])?;
    let far = Far::start(&options.distance)?;
    let random = far.work().join("random");
    make_random(&random, if output.quick { RANDOM_BYTES_QUICK } else { RANDOM_BYTES })?;

    let pile = Pile::below(far.work())?;
    let mut bench = Bench { far: &far, pile, samples: Vec::new() };
    for round in 0..rounds {
        for corpus in &corpora {
            bench.history(corpus, &tools, round)?;
        }
        bench.random(&random, &tools, round)?;
    }

    let rows = rows_of(&bench.samples);
    let mut notes: Vec<String> = tools.iter().map(|tool| format!("{}, with its defaults", tool.version)).collect();
    notes.push(far.note.clone());
    let rclone = program::quietly(Command::new(RCLONE.program).arg("version"))?;
    notes.push(format!("rclone: {}", rclone.lines().next().unwrap_or_default()));
    notes.push(format!("{rounds} rounds, taking turns; medians of seconds; requests and bytes of the last round"));
    notes.push("cold: a machine that has never seen the repository; ratio: seconds to those of restic".into());
    notes.extend(
        corpora.iter().map(|corpus| format!("{}: the newest {VERSIONS} of {}", corpus.name, corpus.description)),
    );
    output.publish("remote", &table_of(COLUMNS, &rows).to_string(), &rows, &notes, far.work())
}

/// The programs that are compared; rustic where it is installed.
fn tools() -> Result<Vec<Tool>> {
    let mut tools = vec![Tool::prepare(Name::Silt)?, Tool::prepare(Name::Restic)?];
    match Tool::found(Name::Rustic)? {
        Some(rustic) => tools.push(rustic),
        None => eprintln!("rustic is left out: it is not installed (`cargo install --locked rustic-rs`)"),
    }
    Ok(tools)
}

/// Makes a folder of files of random bytes.
fn make_random(folder: &Path, bytes: usize) -> Result<()> {
    const FILES: usize = 21;
    fs::create_dir_all(folder)?;
    for seed in 0..FILES {
        fs::write(folder.join(format!("{seed:02}")), data::random(seed as u64, bytes / FILES))?;
    }
    Ok(())
}

impl Bench<'_> {
    /// Every operation on the newest versions of a history, the tools taking turns.
    fn history(&mut self, corpus: &Corpus, tools: &[Tool], round: u64) -> Result<()> {
        let newest = corpus.versions.len().saturating_sub(VERSIONS);
        let versions = &corpus.versions[newest..];
        ensure!(versions.len() == VERSIONS, "{} has fewer than {VERSIONS} versions", corpus.name);
        for turn in turns(tools.len(), round) {
            self.versions(&corpus.name, versions, &tools[turn], round)?;
        }
        Ok(())
    }

    fn versions(&mut self, data: &str, versions: &[PathBuf], tool: &Tool, round: u64) -> Result<()> {
        let folder = tempfile::tempdir_in(self.far.work())?;
        let source = folder.path().join("source");
        let repository = self.new_repository(tool, &format!("{data}-{round}"), folder.path())?;
        tree::copy(&versions[0], &source)?;
        self.measure(
            data,
            "first backup",
            &repository,
            &mut repository.backup_command(&source, "0", Reading::Changed),
        )?;
        tree::make_equal(&source, &versions[1])?;
        repository.backup(&source, "1", Reading::Changed)?;
        tree::make_equal(&source, &versions[2])?;
        let mut later = repository.backup_command(&source, "2", Reading::Changed);
        self.measure(data, "later backup", &repository, &mut later)?;
        // Labelled as the one before, as a backup that is made every hour is.
        let mut unchanged = repository.backup_command(&source, "2", Reading::Changed);
        self.measure(data, "unchanged backup", &repository, &mut unchanged)?;
        let mut skipped = repository.backup_command(&source, "4", Reading::Changed);
        self.measure(data, "unchanged, skipped", &repository, skipped.arg("--skip-if-unchanged"))?;

        self.measure(data, "snapshots", &repository, repository.command().arg("snapshots"))?;
        let elsewhere = |name: &str| repository.at(&folder.path().join(name));
        let cold = elsewhere("cold-snapshots");
        self.measure(data, "snapshots, cold", &cold, cold.command().arg("snapshots"))?;
        let listing = Listing::of(&source)?;
        self.restore_file(data, "restore one file", &repository, &source)?;
        self.restore_file(data, "restore one file, cold", &elsewhere("cold-file"), &source)?;
        self.restore(data, "restore all", &repository, &source, &listing)?;
        self.restore(data, "restore all, cold", &elsewhere("cold-all"), &source, &listing)?;
        let mut forget = repository.forget_command(&["0".to_owned()])?;
        self.measure(data, "forget the oldest", &repository, &mut forget)?;
        self.restore(data, "restore all, after that", &repository, &source, &listing)
    }

    /// A backup and a restore of what nothing makes smaller, beside files copied as they are.
    fn random(&mut self, source: &Path, tools: &[Tool], round: u64) -> Result<()> {
        let listing = Listing::of(source)?;
        for turn in turns(tools.len() + 1, round) {
            let folder = tempfile::tempdir_in(self.far.work())?;
            match tools.get(turn) {
                Some(tool) => {
                    let repository = self.new_repository(tool, &format!("random-{round}"), folder.path())?;
                    let mut backup = repository.backup_command(source, "0", Reading::Changed);
                    self.measure("random", "first backup", &repository, &mut backup)?;
                    self.restore(
                        "random",
                        "restore all, cold",
                        &repository.at(&folder.path().join("cold")),
                        source,
                        &listing,
                    )?;
                }
                None => self.copied(source, &listing, round)?,
            }
        }
        Ok(())
    }

    /// Copies files as they are to the server and back.
    fn copied(&mut self, source: &Path, listing: &Listing, round: u64) -> Result<()> {
        let far = Minio::rclone_path(REMOTE, &format!("files-{round}"));
        let target = self.pile.place(listing.bytes())?;
        for (operation, from, to) in [
            ("first backup", source.as_os_str().to_owned(), far.clone().into()),
            ("restore all, cold", far.clone().into(), target.as_os_str().to_owned()),
        ] {
            flush()?;
            let mut command = Command::new(RCLONE.program);
            command.envs(Minio::rclone_remote(REMOTE, self.far.link.address())).arg("copy").arg(from).arg(to);
            // The server speaks plain HTTP, and some versions fail where this is set.
            command.env_remove("AWS_CA_BUNDLE");
            self.far.link.take_traffic();
            let cost = program::measured(&mut command)?;
            self.add("random", operation, RCLONE_COPY, cost);
        }
        // It keeps neither owners nor modes; contents are what is compared.
        for file in tree::files(source)? {
            let copy = target.join(file.strip_prefix(source)?);
            let is_same = fs::read(&file)? == fs::read(&copy).with_context(|| copy.display().to_string())?;
            ensure!(is_same, "{RCLONE_COPY} brought {} back differently", file.display());
        }
        Ok(())
    }

    fn new_repository(&self, tool: &Tool, prefix: &str, folder: &Path) -> Result<Repository> {
        let place = self.far.place(&format!("{}-{prefix}", tool.name.text()));
        tool.init_at(place, &folder.join("machine"))
    }

    fn restore_file(
        &mut self,
        data: &str,
        operation: &'static str,
        repository: &Repository,
        source: &Path,
    ) -> Result<()> {
        let files = tree::files(source)?;
        let file = files.get(files.len() / 2).context("the source has files")?;
        let target = self.pile.place(0)?;
        let mut command = repository.restore_file_command(file, &target)?;
        self.measure(data, operation, repository, &mut command)?;
        let restored = restored_place(file, &target)?;
        let is_same = fs::read(file)? == fs::read(&restored).with_context(|| restored.display().to_string())?;
        ensure!(is_same, "{} restored {} differently", repository.name().text(), file.display());
        Ok(())
    }

    fn restore(
        &mut self,
        data: &str,
        operation: &'static str,
        repository: &Repository,
        source: &Path,
        expected: &Listing,
    ) -> Result<()> {
        let target = self.pile.place(expected.bytes())?;
        let mut command = repository.restore_latest_command(&target);
        self.measure(data, operation, repository, &mut command)?;
        let restored = Listing::of(&restored_place(source, &target)?)?;
        let compared = if repository.name() == Name::Rustic {
            // It keeps nothing of the folder that is backed up but what is in it.
            expected.clone().without_top().expect_same(&restored.without_top())
        } else {
            expected.expect_same(&restored)
        };
        compared.with_context(|| format!("{} restored {data} differently", repository.name().text()))
    }

    fn measure(
        &mut self,
        data: &str,
        operation: &'static str,
        repository: &Repository,
        command: &mut Command,
    ) -> Result<()> {
        flush()?;
        self.far.link.take_traffic();
        let cost = program::measured(command)?;
        self.add(data, operation, repository.name().text(), cost);
        Ok(())
    }

    fn add(&mut self, data: &str, operation: &'static str, tool: &'static str, cost: Cost) {
        let traffic = self.far.link.take_traffic();
        eprintln!("{data}, {operation}, {tool}: {:.2} s, {} requests", cost.wall.as_secs_f64(), traffic.requests);
        self.samples.push(Sample { data: data.to_owned(), operation, tool, cost, traffic });
    }
}

fn rows_of(samples: &[Sample]) -> Vec<Row> {
    let tools = [Name::Silt.text(), Name::Restic.text(), Name::Rustic.text(), RCLONE_COPY];
    rows_by_operation(samples, &tools, |sample| [&sample.data, sample.operation, sample.tool], row)
}

fn row(own: &[&Sample], restic: &[&Sample]) -> Row {
    let seconds = |samples: &[&Sample]| Spread::of(samples.iter().map(|sample| sample.cost.wall.as_secs_f64()));
    let (last, spread) = (own[own.len() - 1], seconds(own));
    let megabytes = |bytes| rounded(as_float(bytes) / 1e6, 3);
    let peak = own.iter().map(|sample| sample.cost.peak_bytes).max().unwrap_or_default();
    let ratio = (!restic.is_empty()).then(|| rounded(spread.median / seconds(restic).median, 2));
    row_with([
        ("data", json!(last.data)),
        ("operation", json!(last.operation)),
        ("tool", json!(last.tool)),
        ("requests", json!(last.traffic.requests)),
        ("mb_up", json!(megabytes(last.traffic.bytes_up))),
        ("mb_down", json!(megabytes(last.traffic.bytes_down))),
        ("seconds", json!(rounded(spread.median, 2))),
        ("spread_percent", json!(rounded(spread.percent(), 0))),
        ("peak_mib", json!(rounded(as_float(peak) / f64::from(1 << 20), 0))),
        ("ratio", json!(ratio)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn sample(tool: &'static str, seconds: u64) -> Sample {
        let cost = Cost { wall: Duration::from_secs(seconds), ..Cost::default() };
        let traffic = Traffic { requests: seconds, bytes_up: 1_000_000, bytes_down: 0 };
        Sample { data: "d".into(), operation: "snapshots", tool, cost, traffic }
    }

    #[test]
    fn rows_stand_by_operation_with_their_ratio_to_restic() {
        let samples: Vec<Sample> =
            [1, 3, 2].into_iter().flat_map(|s| [sample("restic", s * 2), sample("silt", s)]).collect();
        let rows = rows_of(&samples);
        assert_eq!(rows.len(), 2);
        assert_eq!(
            (&rows[0]["tool"], &rows[0]["seconds"], &rows[0]["ratio"]),
            (&json!("silt"), &json!(2.0), &json!(0.5))
        );
        assert_eq!(
            (&rows[1]["tool"], &rows[1]["ratio"], &rows[1]["mb_up"]),
            (&json!("restic"), &json!(1.0), &json!(1.0))
        );
        assert!(rows.iter().all(|row| COLUMNS.split(' ').all(|column| row.contains_key(column))));
    }
}
