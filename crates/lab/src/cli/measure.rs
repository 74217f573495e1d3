//! Commands that measure: settings, folder, data, run, report.

use super::args::{Measure, Places, RunFile};
use super::progress::Progress;
use super::{Failure, interrupt};
use anyhow::{Context, Result, anyhow};
use siltstone_chunk::Isa;
use siltstone_lab::experiments;
use siltstone_lab::run::{self, Ending, Header, Order, SETTINGS_FILE};
use siltstone_lab::settings::Settings;
use siltstone_testbed::corpus::{self, Corpora};
use siltstone_testbed::machine;
use std::fs;
use std::path::{Path, PathBuf};

/// The experiments of these commands, of all for none.
pub(super) fn command(commands: &[&str], wanted: &Measure) -> Result<(), Failure> {
    with_corpora(wanted.settings(commands), &wanted.places)
}

/// Experiments of an answer on chunkers.
const ANSWER_EXPERIMENTS: [&str; 2] = ["chunk-savings", "chunk-throughput"];
/// Its chunkers: those that backup programs have, the papers' and ours.
const ANSWER_METHODS: [&str; 8] =
    ["fixed", "rabin", "gear-nc2", "fastcdc-2016-nc2", "crate:fastcdc", "ae-max", "ram-t", "lagged"];
/// Its expected sizes, bytes: ours, its half and its double.
const ANSWER_SIZES: [u32; 3] = [8 << 10, 16 << 10, 32 << 10];

/// All on chunkers, or an answer for the user's data: of that all bytes, but few chunkers, sizes and rounds.
pub(super) fn chunk(wanted: &Measure, is_full: bool) -> Result<(), Failure> {
    let mut settings = wanted.settings(&["chunk"]);
    let is_answer = !is_full && !wanted.quick && wanted.experiment.is_empty() && wanted.method.is_empty();
    if is_answer {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        settings.experiments = names(&ANSWER_EXPERIMENTS);
        settings.methods = names(&ANSWER_METHODS);
        settings.rounds = wanted.rounds.unwrap_or(Settings::new(true).rounds);
        if settings.expected_bytes.is_empty() {
            settings.expected_bytes = ANSWER_SIZES.into();
        }
    }
    with_corpora(settings, &wanted.places)
}

fn with_corpora(mut settings: Settings, places: &Places) -> Result<(), Failure> {
    if settings.data.is_empty() && settings.corpora.is_empty() {
        settings.corpora = corpus::DEFAULTS.map(str::to_owned).into();
    }
    measure(&settings, places)
}

/// Runs what a file of settings says.
pub(super) fn file(wanted: &RunFile) -> Result<(), Failure> {
    let settings = Settings::read(&wanted.file).map_err(Failure::Usage)?;
    measure(&settings, &wanted.places)
}

fn measure(settings: &Settings, places: &Places) -> Result<(), Failure> {
    let all = experiments();
    settings.check(&all, &corpus::KINDS.map(|corpus| corpus.name)).map_err(Failure::Usage)?;
    let isa = Isa::chosen().map_err(|error| Failure::Usage(error.into()))?;
    if let Some(path) = settings.data.iter().find(|path| !path.exists()) {
        return Err(Failure::Usage(anyhow!("{} is not there", path.display())));
    }
    let inputs = run::inputs(settings, &Corpora::at(corpora_folder(places)?))?;
    if let Some((_, empty)) = inputs.iter().find(|(_, summary)| summary.bytes == 0) {
        return Err(Failure::Usage(anyhow!("{} holds no bytes: there is nothing to measure", empty.name)));
    }
    let folder = places.out.clone().unwrap_or_else(|| format!("silt-lab-{}", machine::moment()).into());
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    let (corpora, summaries) = inputs.into_iter().unzip();
    let mut machine = machine::lines(&folder);
    machine.push(format!("instruction sets: up to {isa}"));
    let header = Header::new(settings.clone(), machine, machine::today(), summaries);
    let ending = {
        let progress = Progress::begin();
        interrupt::measuring();
        run::measure(&all, Order { header, corpora, folder: &folder, afresh: places.fresh }, &progress)?
    };
    match ending {
        Ending::Done => super::report(&folder),
        Ending::Interrupted => {
            // What there is is worth a report; that some of it failed is told there.
            match super::report(&folder) {
                Ok(()) | Err(Failure::Methods(_)) => {}
                Err(failure) => return Err(failure),
            }
            Err(Failure::Interrupted(how_to_go_on(&folder, places)))
        }
    }
}

fn how_to_go_on(folder: &Path, places: &Places) -> String {
    let out = folder.display();
    let corpora = places.corpora.as_ref().map(|folder| format!(" --corpora {}", folder.display())).unwrap_or_default();
    format!("go on with: silt-lab run {out}/{SETTINGS_FILE} --out {out}{corpora}")
}

/// Where corpora are kept, as the XDG base directories have it.
fn corpora_folder(places: &Places) -> Result<PathBuf> {
    if let Some(folder) = &places.corpora {
        return Ok(folder.clone());
    }
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")));
    let cache = cache.context("neither XDG_CACHE_HOME nor HOME is set: say with --corpora where corpora are kept")?;
    Ok(cache.join("siltstone").join("lab"))
}
