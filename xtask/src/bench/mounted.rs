//! Reading mounted snapshots, `cargo xtask bench mounted`: looking at every file, reading whole trees, one large file
//! and small pieces of it, in the newest snapshot and the oldest; beside restic, in turns.
//!
//! What is timed is compared with the source.

use super::report::{row_with, rows_by_operation};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde_json::json;
use siltstone_testbed::bench::publish::{Row, table_of};
use siltstone_testbed::bench::rounds::{flush, turns};
use siltstone_testbed::bench::{HistoryOptions, Rounds};
use siltstone_testbed::corpus::{Corpus, History};
use siltstone_testbed::deterministic::Sequence;
use siltstone_testbed::install::{self, Needed};
use siltstone_testbed::program;
use siltstone_testbed::statistics::{Spread, rounded};
use siltstone_testbed::table::mb_per_s;
use siltstone_testbed::tool::{Name, Reading, Repository, Tool, restored_place};
use siltstone_testbed::tree::{self, Listing};
use siltstone_testbed::workspace;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Options: what is backed up and mounted.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    histories: HistoryOptions,
    #[command(flatten)]
    rounds: Rounds,
}

/// The program that mounts for others than root, which restic asks in any case.
const FUSERMOUNT: Needed = Needed { program: "fusermount", package: "fuse3" };
/// Bytes of the large file.
const LARGE_BYTES: u64 = 467_000_000;
const LARGE_BYTES_QUICK: u64 = 50_000_000;
/// Small reads of the large file.
const READS: usize = 1000;
const READ_BYTES: usize = 4096;
/// Longest time that a mount takes to come or to go.
const LIMIT: Duration = Duration::from_mins(1);
const COLUMNS: &str = "data operation tool value unit spread_percent peak_mib ratio";

/// One figure of one tool in one round.
struct Sample {
    data: String,
    operation: &'static str,
    tool: &'static str,
    value: f64,
    unit: &'static str,
    /// Peak of the program that mounts, since it was started.
    peak_mib: f64,
}

/// Runs the benchmark and prints its table.
pub(super) fn run(options: &Options) -> Result<()> {
    let output = &options.histories.output;
    let rounds = options.rounds.number(output, 3);
    install::ensure(&[FUSERMOUNT])?;
    let tools = [Tool::prepare(Name::Silt)?, Tool::prepare(Name::Restic)?];
    let corpora = options.histories.corpora(&[History::Openssl])?;
    let work = tempfile::tempdir_in(workspace::target()?)?;
    let large = if output.quick { LARGE_BYTES_QUICK } else { LARGE_BYTES };
    let mut samples = Vec::new();
    for corpus in &corpora {
        let subjects = tools.iter().map(|tool| Subject::make(corpus, tool, large, work.path()));
        let subjects = subjects.collect::<Result<Vec<_>>>()?;
        for round in 0..rounds {
            for turn in turns(subjects.len(), round) {
                subjects[turn].measure(&mut samples)?;
            }
        }
    }
    let rows = rows_of(&samples);
    let mut notes: Vec<String> = tools.iter().map(|tool| format!("{}, with its defaults", tool.version)).collect();
    notes
        .push(format!("{rounds} rounds, taking turns; medians; a new mount for each kind of reading; page cache warm"));
    notes.push("ratio: how much better than restic".into());
    notes.extend(corpora.iter().map(|corpus| format!("{}: {}", corpus.name, corpus.description)));
    output.publish("mounted", &table_of(COLUMNS, &rows).to_string(), &rows, &notes, work.path())
}

/// A repository that holds all versions of a history, and with each the same large file.
struct Subject {
    data: String,
    repository: Repository,
    /// Source of the newest snapshot: `tree` and `large`.
    source: PathBuf,
    /// Content of `tree` in the oldest.
    oldest: PathBuf,
    mountpoint: PathBuf,
}

impl Subject {
    fn make(corpus: &Corpus, tool: &Tool, large_bytes: u64, work: &Path) -> Result<Self> {
        let folder = work.join(format!("{}-{}", corpus.name, tool.name.text()));
        let (source, mountpoint) = (folder.join("source"), folder.join("mounted"));
        fs::create_dir_all(&mountpoint)?;
        fs::create_dir_all(&source)?;
        make_large(corpus, large_bytes, &source.join("large"))?;
        let repository = tool.init(&folder.join("repository"))?;
        let oldest = corpus.versions.first().context("the history has versions")?.clone();
        for (number, version) in corpus.versions.iter().enumerate() {
            eprintln!("{}, {}: backup {number}", corpus.name, tool.name.text());
            let tree = source.join("tree");
            if number == 0 {
                tree::copy(version, &tree)?;
            } else {
                tree::make_equal(&tree, version)?;
            }
            repository.backup(&source, &number.to_string(), Reading::Changed)?;
        }
        Ok(Self { data: corpus.name.clone(), repository, source, oldest, mountpoint })
    }

    fn measure(&self, samples: &mut Vec<Sample>) -> Result<()> {
        let (large, trees) = (self.source.join("large"), self.source.join("tree"));
        self.with_newest(samples, |newest| Ok(vec![("find with status", look(newest, &self.source)?, "s")]))?;
        self.with_newest(samples, |newest| Ok(vec![("trees by tar", tar(&newest.join("tree"), &trees)?, "MB/s")]))?;
        self.with_newest(samples, |newest| Ok(vec![("large file", whole(&newest.join("large"), &large)?, "MB/s")]))?;
        self.with_newest(samples, |newest| {
            let times = pieces(&newest.join("large"), &large)?;
            let (median, worst) = (times[times.len() / 2], times[times.len() - 1]);
            Ok(vec![("4 KiB anywhere, median", median, "ms"), ("4 KiB anywhere, worst", worst, "ms")])
        })?;
        self.with_oldest(samples, |oldest| {
            Ok(vec![("oldest: trees by tar", tar(&oldest.join("tree"), &self.oldest)?, "MB/s")])
        })?;
        self.with_oldest(samples, |oldest| {
            let worst = beginnings(&oldest.join("tree"), &self.oldest)?;
            Ok(vec![("oldest: first 4 KiB of a file, worst", worst, "ms")])
        })?;
        self.with_newest(samples, |newest| {
            let compared = Listing::of(&self.source)?.expect_same(&Listing::of(newest)?);
            compared.with_context(|| format!("{} shows {} differently", self.repository.name().text(), self.data))?;
            Ok(Vec::new())
        })
    }

    fn with_newest(&self, samples: &mut Vec<Sample>, measure: impl FnOnce(&Path) -> Result<Vec<Figure>>) -> Result<()> {
        self.with(samples, |mounted| measure(&restored_place(&self.source, &mounted.newest()?)?))
    }

    fn with_oldest(&self, samples: &mut Vec<Sample>, measure: impl FnOnce(&Path) -> Result<Vec<Figure>>) -> Result<()> {
        self.with(samples, |mounted| measure(&restored_place(&self.source, &mounted.oldest()?)?))
    }

    /// Measures in a new mount.
    fn with(&self, samples: &mut Vec<Sample>, measure: impl FnOnce(&Mounted) -> Result<Vec<Figure>>) -> Result<()> {
        let tool = self.repository.name().text();
        let mounted = Mounted::start(&self.repository, &self.mountpoint)?;
        for (operation, value, unit) in measure(&mounted)? {
            eprintln!("{}, {operation}, {tool}: {value:.3} {unit}", self.data);
            let (data, peak_mib) = (self.data.clone(), mounted.peak_mib()?);
            samples.push(Sample { data, operation, tool, value, unit, peak_mib });
        }
        mounted.end()
    }
}

/// Operation, its figure, and the unit.
type Figure = (&'static str, f64, &'static str);

/// Seconds that it takes to see the status of all there is.
fn look(folder: &Path, source: &Path) -> Result<f64> {
    let begin = Instant::now();
    let seen = program::quietly(Command::new("find").arg(folder).args(["-printf", "%s %T@\\n"]))?;
    let seconds = begin.elapsed().as_secs_f64();
    let expected = program::quietly(Command::new("find").arg(source).arg("-print0"))?.matches('\0').count();
    ensure!(seen.lines().count() == expected, "{} has {} names", folder.display(), seen.lines().count());
    Ok(seconds)
}

/// Writes archives of versions one after the other, up to this many bytes.
fn make_large(corpus: &Corpus, bytes: u64, path: &Path) -> Result<()> {
    let mut file = File::create(path)?;
    for version in corpus.versions.iter().cycle() {
        let mut tar =
            Command::new("tar").args(["cf", "-", "-C"]).arg(version).arg(".").stdout(Stdio::piped()).spawn()?;
        let left = bytes.saturating_sub(file.metadata()?.len());
        let output = tar.stdout.take().context("a pipe")?;
        io::copy(&mut output.take(left), &mut file)?;
        let _ = tar.kill();
        tar.wait()?;
        if file.metadata()?.len() >= bytes {
            return Ok(());
        }
    }
    bail!("{} has no versions", corpus.name)
}

/// Speed at which `tar` reads a tree, MB/s of its files.
fn tar(folder: &Path, source: &Path) -> Result<f64> {
    flush()?;
    // To a pipe: into the null device it reads nothing.
    let mut command = Command::new("sh");
    command.args(["-c", "tar cf - -C \"$1\" . | cat > /dev/null", "sh"]).arg(folder);
    let cost = program::measured(&mut command)?;
    Ok(mb_per_s(tree::bytes(source)?, cost.wall.as_secs_f64()))
}

/// Speed at which a file is read from front to back, MB/s.
fn whole(file: &Path, source: &Path) -> Result<f64> {
    flush()?;
    let mut from = File::open(file)?;
    let mut buffer = vec![0; 1 << 20];
    let (begin, mut bytes) = (Instant::now(), 0);
    loop {
        match from.read(&mut buffer)? {
            0 => break,
            count => bytes += count as u64,
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    ensure!(bytes == fs::metadata(source)?.len(), "{} has {bytes} bytes", file.display());
    program::quietly(Command::new("cmp").arg(file).arg(source))?;
    Ok(mb_per_s(bytes, seconds))
}

/// Times of small reads anywhere in a file, in milliseconds and in order.
fn pieces(file: &Path, source: &Path) -> Result<Vec<f64>> {
    let (there, here) = (File::open(file)?, File::open(source)?);
    let places = here.metadata()?.len() - READ_BYTES as u64;
    let mut sequence = Sequence::new(1);
    let mut times = Vec::with_capacity(READS);
    for _ in 0..READS {
        let (mut found, mut expected) = ([0; READ_BYTES], [0; READ_BYTES]);
        let offset = sequence.below(places);
        let begin = Instant::now();
        there.read_exact_at(&mut found, offset)?;
        times.push(begin.elapsed().as_secs_f64() * 1000.0);
        here.read_exact_at(&mut expected, offset)?;
        ensure!(found == expected, "{} differs at {offset}", file.display());
    }
    times.sort_unstable_by(f64::total_cmp);
    Ok(times)
}

/// The longest that it takes to open a file of a tree and to read its first bytes, in milliseconds.
fn beginnings(folder: &Path, source: &Path) -> Result<f64> {
    let mut worst: f64 = 0.0;
    for file in tree::files(source)? {
        let there = folder.join(file.strip_prefix(source)?);
        let (mut found, mut expected) = (vec![0; READ_BYTES], vec![0; READ_BYTES]);
        let begin = Instant::now();
        let count = File::open(&there)?.read(&mut found)?;
        worst = worst.max(begin.elapsed().as_secs_f64() * 1000.0);
        let there_bytes = File::open(&file)?.read(&mut expected)?;
        ensure!(count == there_bytes && found == expected, "{} differs", there.display());
    }
    Ok(worst)
}

/// A mounted repository; it is unmounted with the value.
struct Mounted {
    process: Child,
    folder: PathBuf,
}

impl Mounted {
    fn start(repository: &Repository, folder: &Path) -> Result<Self> {
        let mut command = repository.command();
        command.arg("mount").arg(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mounted = Self { process: command.spawn()?, folder: folder.to_owned() };
        let begin = Instant::now();
        while !mounted.folder.join("snapshots").is_dir() {
            ensure!(begin.elapsed() < LIMIT, "{} mounts nothing", repository.name().text());
            thread::sleep(Duration::from_millis(20));
        }
        Ok(mounted)
    }

    /// The folder of the newest snapshot.
    fn newest(&self) -> Result<PathBuf> {
        Ok(self.folder.join("snapshots/latest").canonicalize()?)
    }

    /// The folder of the oldest snapshot: names are times.
    fn oldest(&self) -> Result<PathBuf> {
        tree::entries(&self.folder.join("snapshots"))?.into_iter().min().context("there are snapshots")
    }

    /// Largest resident set so far.
    fn peak_mib(&self) -> Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("a peak")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
    }

    fn end(mut self) -> Result<()> {
        program::quietly(Command::new("umount").arg(&self.folder))?;
        self.process.wait()?;
        Ok(())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Ok(None) = self.process.try_wait() {
            let _ = Command::new("umount").arg("-l").arg(&self.folder).status();
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

fn rows_of(samples: &[Sample]) -> Vec<Row> {
    let tools = [Name::Silt.text(), Name::Restic.text()];
    rows_by_operation(samples, &tools, |sample| [&sample.data, sample.operation, sample.tool], row)
}

fn row(own: &[&Sample], restic: &[&Sample]) -> Row {
    let values = |samples: &[&Sample]| Spread::of(samples.iter().map(|sample| sample.value));
    let (first, spread) = (own[0], values(own));
    let peak = own.iter().map(|sample| sample.peak_mib).fold(0.0, f64::max);
    let is_speed = first.unit == "MB/s";
    let ratio = (!restic.is_empty()).then(|| {
        let theirs = values(restic).median;
        rounded(if is_speed { spread.median / theirs } else { theirs / spread.median }, 2)
    });
    row_with([
        ("data", json!(first.data)),
        ("operation", json!(first.operation)),
        ("tool", json!(first.tool)),
        ("value", json!(rounded(spread.median, 3))),
        ("unit", json!(first.unit)),
        ("spread_percent", json!(rounded(spread.percent(), 0))),
        ("peak_mib", json!(rounded(peak, 0))),
        ("ratio", json!(ratio)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_above_one_is_better_than_restic_whatever_the_unit() {
        let sample =
            |tool, operation, value, unit| Sample { data: "d".into(), operation, tool, value, unit, peak_mib: 1.0 };
        let rows = rows_of(&[
            sample("restic", "speed", 50.0, "MB/s"),
            sample("silt", "speed", 100.0, "MB/s"),
            sample("restic", "time", 5.0, "s"),
            sample("silt", "time", 10.0, "s"),
        ]);
        let ratios: Vec<_> = rows.iter().map(|row| (row["tool"].clone(), row["ratio"].clone())).collect();
        let expected = [("silt", 2.0), ("restic", 1.0), ("silt", 0.5), ("restic", 1.0)];
        assert_eq!(ratios, expected.map(|(tool, ratio)| (json!(tool), json!(ratio))));
        assert!(rows.iter().all(|row| COLUMNS.split(' ').all(|column| row.contains_key(column))));
    }
}
