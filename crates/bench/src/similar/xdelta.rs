//! `xdelta3` as a program on files: fast (`-1`), no secondary compression, no checksums.
//!
//! Starting it takes many times as long as encoding a chunk. So sizes are of pairs, one run each; rates are of many
//! bases one after another against as many targets, and what a run on empty files takes, measured in turns with them,
//! is subtracted.

use super::pairs::Pair;
use anyhow::{Result, ensure};
use siltstone_lab::sketch::parallel::in_parallel;
use siltstone_testbed::install::{self, Needed};
use siltstone_testbed::program;
use siltstone_testbed::statistics::Spread;
use siltstone_testbed::table::{as_float, mb_per_s};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const XDELTA: Needed = Needed { program: "xdelta3", package: "xdelta3" };
/// Pairs of a timed run: 1 MiB of 8 KiB chunks.
pub(super) const BATCH_PAIRS: usize = 128;
/// Its buffer for the base, which is cleared whatever the base has; with the 64 MiB that it takes otherwise it is half
/// as fast.
const BASE_BYTES: &str = "2097152";
/// Timed runs of a round, at most.
const BATCHES: usize = 24;

/// Rates of each round, MB/s.
pub(super) struct Rates {
    pub(super) encode: Spread,
    pub(super) decode: Spread,
    /// Time of a run on empty files, milliseconds.
    pub(super) start_ms: f64,
}

/// Where a run finds its files, and leaves them.
struct Files {
    base: PathBuf,
    target: PathBuf,
    delta: PathBuf,
    made: PathBuf,
}

/// Installs it if need be.
pub(super) fn ensure_installed() -> Result<()> {
    install::ensure(&[XDELTA])
}

/// The delta of every pair, one after another; each is decoded again and compared.
pub(super) fn deltas(pairs: &[Pair], work: &Path) -> Result<Vec<Vec<u8>>> {
    let folder = tempfile::Builder::new().prefix("xdelta").tempdir_in(work)?;
    let delta = |at: usize| {
        let files = Files::write(folder.path(), &at.to_string(), pairs[at].base, pairs[at].target)?;
        files.encode()?;
        files.decode()?;
        ensure!(fs::read(&files.made)? == pairs[at].target, "xdelta3 makes something else than what it had encoded");
        let delta = fs::read(&files.delta)?;
        files.remove()?;
        Ok(delta)
    };
    in_parallel(pairs.len(), delta).into_iter().collect()
}

/// Measures how fast xdelta encodes and decodes.
pub(super) fn rates(pairs: &[Pair], rounds: u64, work: &Path) -> Result<Rates> {
    let folder = tempfile::Builder::new().prefix("xdelta").tempdir_in(work)?;
    let empty = Files::write(folder.path(), "empty", b"", b"")?;
    let batch = |(at, pairs): (usize, &[Pair])| {
        let bases: Vec<&[u8]> = pairs.iter().map(|pair| pair.base).collect();
        let targets: Vec<&[u8]> = pairs.iter().map(|pair| pair.target).collect();
        Files::write(folder.path(), &at.to_string(), &bases.concat(), &targets.concat())
    };
    let step = pairs.len().div_ceil(BATCH_PAIRS).div_ceil(BATCHES).max(1);
    let batches: Vec<(usize, &[Pair])> = pairs.chunks(BATCH_PAIRS).enumerate().step_by(step).collect();
    let bytes: u64 = batches.iter().flat_map(|(_, pairs)| *pairs).map(|pair| pair.target.len() as u64).sum();
    let files: Vec<Files> = batches.into_iter().map(batch).collect::<Result<_>>()?;
    // For each round what all batches took; and every start there was.
    let (mut encode, mut decode, mut starts) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        for (sums, run) in [(&mut encode, Files::encode as fn(&Files) -> Result<f64>), (&mut decode, Files::decode)] {
            let mut sum = 0.0;
            for files in &files {
                sum += run(files)?;
                starts.push(run(&empty)?);
            }
            sums.push(sum);
        }
    }
    let start = Spread::of(starts).median;
    let rates = |sums: Vec<f64>| {
        let starts = start * as_float(files.len() as u64);
        Spread::of(sums.into_iter().map(|sum| mb_per_s(bytes, sum - starts)))
    };
    Ok(Rates { encode: rates(encode), decode: rates(decode), start_ms: 1000.0 * start })
}

impl Files {
    fn write(folder: &Path, name: &str, base: &[u8], target: &[u8]) -> Result<Self> {
        let [own_base, own_target, delta, made] =
            ["base", "target", "delta", "made"].map(|kind| folder.join(format!("{name}.{kind}")));
        fs::write(&own_base, base)?;
        fs::write(&own_target, target)?;
        Ok(Self { base: own_base, target: own_target, delta, made })
    }

    fn encode(&self) -> Result<f64> {
        let mut command = Command::new(XDELTA.program);
        command.args(["-e", "-1", "-S", "none", "-n", "-A", "-f", "-B", BASE_BYTES, "-s"]);
        seconds(command.args([&self.base, &self.target, &self.delta]))
    }

    fn decode(&self) -> Result<f64> {
        let mut command = Command::new(XDELTA.program);
        command.args(["-d", "-n", "-f", "-B", BASE_BYTES, "-s"]);
        seconds(command.args([&self.base, &self.delta, &self.made]))
    }

    fn remove(&self) -> Result<()> {
        for file in [&self.base, &self.target, &self.delta, &self.made] {
            fs::remove_file(file)?;
        }
        Ok(())
    }
}

fn seconds(command: &mut Command) -> Result<f64> {
    Ok(program::measured(command)?.wall.as_secs_f64())
}
