//! The command `estimate`: which versions, how far it is, and the answer.

use super::args::EstimateOptions;
use super::{Failure, interrupt};
use anyhow::{Context, Result, anyhow};
use indicatif::{ProgressBar, ProgressStyle};
use siltstone_lab::estimate::{self, Estimate};
use siltstone_testbed::{table, tree};
use std::fs;
use std::io::{IsTerminal, stderr};
use std::path::{Path, PathBuf};

/// Methods that all go through all bytes.
const METHODS: u64 = 4;

pub(super) fn run(wanted: &EstimateOptions) -> Result<(), Failure> {
    let all = versions(wanted).map_err(Failure::Usage)?;
    let taken = newest(&all, wanted.at_most << 20).map_err(Failure::Usage)?;
    let folder = tempfile::tempdir().context("no folder for temporary files can be made")?;
    let progress = Progress::begin(taken.bytes * METHODS);
    interrupt::measuring();
    let found = estimate::estimate(&taken.paths, folder.path(), wanted.memory << 20, |what, done| {
        progress.at(what, done);
        !interrupt::is_asked()
    });
    progress.end();
    let found = found?;
    super::print(&text(&found, &taken, all.len()))?;
    if found.is_whole {
        return Ok(());
    }
    Err(Failure::Interrupted(format!("{} of {} versions are in it", found.versions, taken.paths.len())))
}

fn text(found: &Estimate, taken: &Taken, all: usize) -> String {
    let left_out = all - taken.paths.len();
    let note = if left_out == 0 {
        String::new()
    } else {
        format!("The {left_out} oldest versions are left out: --at-most takes in more.\n")
    };
    if found.lines.is_empty() { note } else { format!("{}{note}", found.text()) }
}

/// Every PATH, or every entry of one.
fn versions(wanted: &EstimateOptions) -> Result<Vec<PathBuf>> {
    if let Some(path) = wanted.paths.iter().find(|path| !path.exists()) {
        return Err(anyhow!("{} is not there", path.display()));
    }
    match &wanted.paths[..] {
        [folder] if wanted.versions && folder.is_dir() => {
            let mut entries = tree::entries(folder)?;
            entries.sort();
            if entries.is_empty() {
                return Err(anyhow!("{} is empty: with --versions each of its entries is one", folder.display()));
            }
            Ok(entries)
        }
        [_] | [] if wanted.versions => Err(anyhow!("--versions takes one folder, whose entries are the versions")),
        paths if wanted.versions => Err(anyhow!("--versions takes one folder, not {}", paths.len())),
        paths => Ok(paths.to_vec()),
    }
}

/// Versions that are looked at.
struct Taken {
    paths: Vec<PathBuf>,
    bytes: u64,
}

/// The newest versions that together have no more than so many bytes.
fn newest(all: &[PathBuf], bytes_max: u64) -> Result<Taken> {
    let mut taken = Taken { paths: Vec::new(), bytes: 0 };
    for path in all.iter().rev() {
        let bytes = bytes(path)?;
        if taken.bytes + bytes > bytes_max {
            if taken.paths.is_empty() {
                let (bytes, most) = (table::bytes(bytes), table::bytes(bytes_max));
                let path = path.display();
                return Err(anyhow!(
                    "{path} has {bytes}, and an estimate looks at {most}: raise --at-most, or name a part"
                ));
            }
            break;
        }
        taken.paths.push(path.clone());
        taken.bytes += bytes;
    }
    if taken.bytes == 0 {
        return Err(anyhow!("there are no bytes to store"));
    }
    taken.paths.reverse();
    Ok(taken)
}

fn bytes(path: &Path) -> Result<u64> {
    if path.is_dir() { tree::bytes(path) } else { Ok(fs::metadata(path)?.len()) }
}

/// How far it is: a bar on a terminal, lines elsewhere.
struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    fn begin(bytes: u64) -> Self {
        let bar = stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{wide_bar} {bytes} of {total_bytes}, {eta} to go: {msg}");
            ProgressBar::new(bytes).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        Self { bar }
    }

    fn at(&self, what: &str, done: u64) {
        match &self.bar {
            Some(bar) => {
                bar.set_position(done);
                bar.set_message(what.to_owned());
            }
            None => eprintln!("{what}"),
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
