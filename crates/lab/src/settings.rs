//! Settings of a run. All of it stands in a small TOML file, from which the run can be repeated.

use crate::experiment::Experiment;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Commands, each with experiments of its own, whose names begin with it.
pub const COMMANDS: [&str; 4] = ["chunk", "sketch", "pipeline", "store"];
/// Least that `memory_mib` can be: below it no data is worth measuring.
pub const MEMORY_MIB_MIN: u64 = 64;
/// Bounds of an expected size of chunks.
const EXPECTED_BYTES: std::ops::RangeInclusive<u32> = 64..=(64 << 20);
const ROUNDS: u64 = 5;
const ROUNDS_QUICK: u64 = 3;

/// Settings of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Names of experiments, or of commands for all of theirs (`chunk`, `sketch`, `pipeline`, `store`); empty for all.
    pub experiments: Vec<String>,
    /// The user's data: files and folders.
    pub data: Vec<PathBuf>,
    /// True if each entry of a folder of `data` is a version, in the order of their names; if not, the whole folder is
    /// one.
    pub versions: bool,
    /// Corpora made by the lab, by name.
    pub corpora: Vec<String>,
    /// Little data, few rounds, few points.
    pub quick: bool,
    /// Rounds of what is timed.
    pub rounds: u64,
    /// Seed of everything that is made.
    pub seed: u64,
    /// Memory that may be used, MiB.
    pub memory_mib: u64,
    /// Threads of what runs on several.
    pub threads: usize,
    /// Expected sizes of chunks, bytes; empty for the experiment's own.
    pub expected_bytes: Vec<u32>,
    /// Only these methods; empty for all.
    pub methods: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            experiments: Vec::new(),
            data: Vec::new(),
            versions: false,
            corpora: Vec::new(),
            quick: false,
            rounds: ROUNDS,
            seed: 1,
            memory_mib: 4096,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            expected_bytes: Vec::new(),
            methods: Vec::new(),
        }
    }
}

impl Settings {
    /// Those of a quick run, or of a thorough one.
    pub fn new(quick: bool) -> Self {
        Self { quick, rounds: if quick { ROUNDS_QUICK } else { ROUNDS }, ..Self::default() }
    }

    /// Reads a file that [`Self::write`] or a person wrote; what it does not say is as on a command line without
    /// options.
    ///
    /// # Errors
    /// If the file cannot be read, or says what is no setting.
    pub fn read(file: &Path) -> Result<Self> {
        let text = fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
        Self::parse(&text).with_context(|| format!("{} does not hold the settings of a run", file.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        let table: toml::Table = toml::from_str(text)?;
        let mut settings: Self = toml::from_str(text)?;
        if !table.contains_key("rounds") {
            settings.rounds = Self::new(settings.quick).rounds;
        }
        Ok(settings)
    }

    /// Writes the file from which the run is repeated.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, file: &Path) -> Result<()> {
        let text = toml::to_string(self).context("a path of the data is not UTF-8")?;
        fs::write(file, format!("# Repeats this run: silt-lab run FILE\n{text}"))
            .with_context(|| format!("{} cannot be written", file.display()))
    }

    /// Holds names and numbers against what there is.
    ///
    /// # Errors
    /// Names the setting that makes no sense, and what could stand there.
    pub fn check(&self, experiments: &[Box<dyn Experiment>], corpora: &[&str]) -> Result<()> {
        if self.rounds == 0 || self.threads == 0 {
            bail!("rounds and threads must be at least 1");
        }
        if self.memory_mib < MEMORY_MIB_MIN {
            bail!("a memory of {} MiB is too little: give {MEMORY_MIB_MIN} MiB or more", self.memory_mib);
        }
        if let Some(bytes) = self.expected_bytes.iter().find(|bytes| !EXPECTED_BYTES.contains(bytes)) {
            let (least, most) = (EXPECTED_BYTES.start(), EXPECTED_BYTES.end() >> 20);
            bail!("an expected size of {bytes} bytes is out of bounds: {least} bytes to {most} MiB");
        }
        let names: Vec<&str> = experiments.iter().map(|experiment| experiment.name()).collect();
        known("experiment", &self.experiments, COMMANDS.into_iter().chain(names))?;
        known("corpus", &self.corpora, corpora.iter().copied())?;
        let chosen: Vec<_> = experiments.iter().filter(|experiment| self.chooses(experiment.name())).collect();
        if chosen.is_empty() {
            bail!("there are no experiments for {}", self.experiments.join(", "));
        }
        known("method", &self.methods, chosen.iter().flat_map(|experiment| experiment.head().methods))
    }

    /// Tells whether this experiment is to be run.
    pub fn chooses(&self, experiment: &str) -> bool {
        let is_of = |command: &str| experiment.strip_prefix(command).is_some_and(|rest| rest.starts_with('-'));
        self.experiments.is_empty() || self.experiments.iter().any(|name| name == experiment || is_of(name))
    }

    /// Tells whether this method is to be measured.
    pub fn chooses_method(&self, method: &str) -> bool {
        self.methods.is_empty() || self.methods.iter().any(|wanted| wanted.eq_ignore_ascii_case(method))
    }
}

/// Names as like as this are worth asking about.
const LIKENESS_MIN: f64 = 0.75;

/// Fails on the first name that is not known, naming those that are.
fn known<'n>(kind: &str, wanted: &[String], known: impl Iterator<Item = &'n str>) -> Result<()> {
    let known: BTreeSet<&str> = known.collect();
    let is_unknown = |name: &&String| !known.iter().any(|known| known.eq_ignore_ascii_case(name));
    let Some(name) = wanted.iter().find(is_unknown) else { return Ok(()) };
    if known.is_empty() {
        bail!("no {kind} is called '{name}': there is none to choose");
    }
    let likeness = |known: &str| strsim::jaro_winkler(&name.to_lowercase(), &known.to_lowercase());
    let nearest = known.iter().max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
    let guess = nearest.filter(|nearest| likeness(nearest) >= LIKENESS_MIN);
    let guess = guess.map(|nearest| format!("did you mean '{nearest}'? ")).unwrap_or_default();
    bail!("no {kind} is called '{name}'; {guess}there are: {}", Vec::from_iter(known).join(", "));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::fake::Fake;

    type Change<'c> = &'c dyn Fn(&mut Settings);

    fn checked(change: impl FnOnce(&mut Settings)) -> Result<()> {
        let mut settings = Settings::default();
        change(&mut settings);
        settings.check(&[Box::new(Fake::default())], &["openssl"])
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("run.toml");
        let mut settings = Settings::new(true);
        settings.data = vec!["a folder".into()];
        settings.methods = vec!["ae".into()];
        settings.expected_bytes = vec![8192, 65536];
        settings.write(&file).unwrap();
        assert_eq!(Settings::read(&file).unwrap(), settings);
    }

    #[test]
    fn a_file_says_only_what_it_wants_otherwise() {
        assert_eq!(Settings::parse("").unwrap(), Settings::new(false));
        assert_eq!(Settings::parse("quick = true").unwrap(), Settings::new(true));
        assert_eq!(Settings::parse("quick = true\nrounds = 7").unwrap().rounds, 7);
        assert!(Settings::parse("quik = true").unwrap_err().to_string().contains("quik"));
    }

    #[test]
    fn unknown_names_are_refused_and_the_known_ones_named() {
        checked(|settings| settings.experiments = vec!["fake-count".into()]).unwrap();
        checked(|settings| settings.methods = vec!["LEFT".into()]).unwrap();
        let refused: [(Change, &str); 7] = [
            (&|settings| settings.experiments = vec!["fake-cuont".into()], "did you mean 'fake-count'?"),
            (&|settings| settings.methods = vec!["lfet".into()], "did you mean 'left'? there are: left, right"),
            (&|settings| settings.experiments = vec!["store".into()], "no experiments for store"),
            (&|settings| settings.methods = vec!["top".into()], "called 'top'; there are: left, right"),
            (&|settings| settings.corpora = vec!["libressl".into()], "openssl"),
            (&|settings| settings.rounds = 0, "at least 1"),
            (&|settings| settings.expected_bytes = vec![1], "out of bounds"),
        ];
        for (change, hint) in refused {
            let error = checked(change).unwrap_err().to_string();
            assert!(error.contains(hint), "{error}");
        }
    }

    #[test]
    fn every_experiment_refuses_methods_it_does_not_have() {
        let all = crate::experiments();
        for experiment in &all {
            let name = experiment.name();
            let check = |method: &str| {
                let settings =
                    Settings { experiments: vec![name.into()], methods: vec![method.into()], ..Settings::default() };
                settings.check(&all, &[])
            };
            assert!(check("no such method").is_err(), "{name}");
            assert!(experiment.head().methods.iter().all(|method| check(method).is_ok()), "{name}");
            // Its subject is data, not a method.
            assert!(name == "sketch-pairs" || !experiment.head().methods.is_empty(), "{name}");
        }
    }

    #[test]
    fn a_command_stands_for_its_experiments() {
        let settings = Settings { experiments: vec!["chunk".into()], ..Settings::default() };
        assert!(settings.chooses("chunk-throughput"));
        assert!(!settings.chooses("chunky-throughput") && !settings.chooses("sketch-speed"));
    }
}
