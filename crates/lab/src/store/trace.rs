//! The model of a device (module `device`) held against this machine's disk: the reads of a restore, recorded and then
//! done again by one thread that does nothing else, against what the model says they take.
//!
//! The two figures of the disk are measured beforehand, on files of other sizes than containers have: its access on
//! small ones, its transfer on large ones. So what is tested is the form of the model, an access for each container and
//! a transfer that does not depend on which. A hard disk would show more of it: there neighbours cost less.

use super::cache::Reads;
use super::device::Device;
use super::history::mb;
use super::method::Method;
use super::on_history::OnHistory;
use super::scale::Sizes;
use super::uncached::read_file;
use crate::deterministic::Sequence;
use crate::experiment::{Experiment, Finding, Head, Input, Needs, Outcome, Rounds, Sample, Subject};
use crate::report::{Axis, Bars, Figure, Plot};
use crate::settings::Settings;
use crate::statistics::Spread;
use crate::table::as_float;
use anyhow::{Context, Result};
use std::collections::HashSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Times that the reads of a restore are done again.
const REPLAYS: usize = 7;
/// Files on which an access is measured, and their size, bytes.
const SMALL: (usize, usize) = (64, 4 << 10);
/// Files on which transfer is measured.
const LARGE: (usize, usize) = (16, 8 << 20);

/// `store-device`.
pub(super) struct Trace;

impl Experiment for Trace {
    fn head(&self) -> Head {
        Head {
            name: "store-device",
            title: "Whether the model of a device foretells how long this machine's disk takes for a restore's reads",
            reproduces: &[],
            needs: Needs::Versions,
            methods: Method::names(&methods()),
            rounds: Rounds::One,
            columns: "method parameter version access_us transfer_mb_per_s containers_read restore_read_mb \
                     modelled_seconds measured_seconds measured_over_modelled least_over_modelled \
                     greatest_over_modelled",
        }
    }

    fn subjects<'i>(&self, input: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        OnHistory::subjects(methods(), Sizes::Paper, (input, settings), measure)
    }

    fn figures(&self, findings: &[Finding]) -> Vec<Figure> {
        let name = |finding: &Finding| {
            format!("{}{}: {}", finding.parameter("method"), finding.parameter("parameter"), finding.data)
        };
        let right: Vec<&Finding> = findings.iter().filter(|finding| finding.wrong.is_none()).collect();
        let bars = |name: &str, measure: &str| Bars::of(name, &right, measure);
        vec![Figure {
            title: "Seconds of the reads of a restore on this machine's disk".into(),
            redraws: String::new(),
            caption: format!("Of the newest version, by one thread, past the page cache; medians of {REPLAYS}."),
            plot: Plot::Bars {
                y: Axis::linear("seconds"),
                groups: right.iter().map(|finding| name(finding)).collect(),
                series: vec![bars("measured", "measured_seconds"), bars("by the model", "modelled_seconds")],
            },
        }]
    }
}

/// Methods whose restores read whole containers.
fn methods() -> Vec<Method> {
    Method::alike().into_iter().filter(|method| !matches!(method, Method::Silt(..))).collect()
}

/// Measures the restore of the newest version.
fn measure(of: &OnHistory, folder: &Path) -> Result<Outcome> {
    let (_, mut kept) = of.create(folder, "store")?;
    let newest = of.versions.count();
    for version in 1..=newest {
        kept.back_up(version, &of.versions.load(version)?)?;
        kept.settle(version)?;
    }
    let files = kept.files_read(newest)?;
    let (mut reads, mut seconds, mut modelled) = (Reads::default(), Vec::new(), Vec::new());
    let (mut access, mut transfer) = (Vec::new(), Vec::new());
    for _ in 0..REPLAYS {
        let device = this_disk(folder)?;
        reads = replay(&files)?;
        seconds.push(reads.seconds);
        modelled.push(device.reading(&reads));
        access.push(device.access_seconds * 1e6);
        transfer.push(device.mb_per_s);
    }
    let modelled = Spread::of(modelled).median;
    let over = Spread::of(seconds.iter().map(|seconds| seconds / modelled));
    let sample = Sample::of([
        ("access_us", Spread::of(access).median),
        ("transfer_mb_per_s", Spread::of(transfer).median),
        ("containers_read", as_float(reads.containers)),
        ("restore_read_mb", mb(reads.bytes)),
        ("modelled_seconds", modelled),
        ("measured_seconds", Spread::of(seconds).median),
        ("measured_over_modelled", over.median),
        ("least_over_modelled", over.low),
        ("greatest_over_modelled", over.high),
    ]);
    Ok(Outcome::Right(vec![sample.at("version", newest)]))
}

/// Reads these files in their order, past the page cache.
fn replay(files: &[PathBuf]) -> Result<Reads> {
    let begin = Instant::now();
    let mut bytes = 0;
    for file in files {
        bytes += read_file(file).with_context(|| format!("{} cannot be read", file.display()))?;
    }
    let involved = files.iter().collect::<HashSet<_>>().len() as u64;
    let seconds = begin.elapsed().as_secs_f64();
    Ok(Reads { involved, containers: files.len() as u64, bytes, seconds, ..Reads::default() })
}

/// The disk below this folder, by reads past the page cache.
fn this_disk(folder: &Path) -> Result<Device> {
    let median_seconds = |(count, file_bytes): (usize, usize)| -> Result<f64> {
        let within = tempfile::tempdir_in(folder)?;
        let bytes = Sequence::new(1).bytes(file_bytes);
        let files: Vec<PathBuf> = (0..count).map(|file| within.path().join(file.to_string())).collect();
        for file in &files {
            fs::write(file, &bytes)?;
            File::open(file)?.sync_all()?;
        }
        let mut seconds = Vec::with_capacity(count);
        for file in &files {
            let begin = Instant::now();
            read_file(file)?;
            seconds.push(begin.elapsed().as_secs_f64());
        }
        Ok(Spread::of(seconds).median)
    };
    let (small, large) = (median_seconds(SMALL)?, median_seconds(LARGE)?);
    let difference_mb = mb((LARGE.1 - SMALL.1) as u64);
    // The small ones' transfer is part of their time.
    let mb_per_s = difference_mb / (large - small).max(f64::MIN_POSITIVE);
    let access_seconds = (small - mb(SMALL.1 as u64) / mb_per_s).max(0.0);
    Ok(Device { access_seconds, mb_per_s })
}
