//! The record of a run: lines of JSON, each whole or not there. The first says what is measured with what, each further
//! one what came of one run of one subject, or of a step.
//!
//! A line is written with its end in one call, and nothing follows a line without an end: what a crash tore is cut off
//! when the journal is opened again.

use crate::experiment::{Outcome, Row, Sample};
use crate::report::InputSummary;
use crate::settings::Settings;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Its name in the folder of a run.
pub const JOURNAL: &str = "journal.jsonl";
const FORMAT: u32 = 1;

/// Settings and inputs of a run. A journal goes on only under the same header, but for the day.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Header {
    /// Version of the journal's format.
    format: u32,
    /// Version of the program, with its commit.
    pub version: String,
    /// The day the run began.
    pub day: String,
    /// The machine.
    pub machine: Vec<String>,
    /// The settings.
    pub settings: Settings,
    /// The data.
    pub inputs: Vec<InputSummary>,
}

impl Header {
    /// That of a run that begins now.
    pub fn new(settings: Settings, machine: Vec<String>, day: String, inputs: Vec<InputSummary>) -> Self {
        Self { format: FORMAT, version: super::VERSION.to_owned(), day, machine, settings, inputs }
    }

    /// Returns the differences from another, in words; none if a run can go on.
    fn differences(&self, other: &Self) -> Vec<String> {
        let mut found = Vec::new();
        let mut compare = |what: &str, before: String, now: String| {
            if before != now {
                found.push(format!("{what}: {before} before, {now} now"));
            }
        };
        compare("program", self.version.clone(), other.version.clone());
        for (before, now) in self.machine.iter().zip(&other.machine) {
            compare("machine", before.clone(), now.clone());
        }
        let (before, now) = (fields(&self.settings), fields(&other.settings));
        for (name, value) in &before {
            compare(&format!("setting {name}"), value.clone(), now.get(name).cloned().unwrap_or_default());
        }
        let told = |inputs: &[InputSummary]| {
            let one = |input: &InputSummary| format!("{} ({} bytes in {})", input.name, input.bytes, input.versions);
            inputs.iter().map(one).collect::<Vec<_>>().join(", ")
        };
        compare("data", told(&self.inputs), told(&other.inputs));
        found
    }
}

fn fields(settings: &Settings) -> BTreeMap<String, String> {
    let value = serde_json::to_value(settings).unwrap_or_default();
    value.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), value.to_string())).collect()
}

/// An experiment on an input.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct StepKey {
    /// Name of the experiment.
    pub experiment: String,
    /// Name of the input; empty where none is needed.
    pub data: String,
}

/// A line of the journal.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// The first line.
    Header(Header),
    /// A subject ran once.
    Ran(Ran),
    /// The subjects of a step could not be made, and why.
    Broken {
        /// Step that is broken.
        step: StepKey,
        /// In words.
        reason: String,
    },
    /// Part of an input that was left out where its bytes were measured.
    LeftOut {
        /// Its name.
        data: String,
        /// In words.
        what: String,
    },
    /// A step is done; none of its subjects could not be run.
    Done {
        /// Which.
        step: StepKey,
        /// Why there was nothing to do.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        skipped: Option<String>,
    },
}

/// One run of one subject.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Ran {
    /// The step it belongs to.
    pub step: StepKey,
    /// Which subject of the step, from 0.
    pub subject: usize,
    /// From 0.
    pub round: u64,
    /// Parameters of the subject.
    pub parameters: Row,
    /// Verdict on the run.
    pub verdict: Verdict,
}

/// Verdict on a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The result was right.
    Right(Vec<Sample>),
    /// It was not, and why; it will not be in another run either.
    Wrong(String),
    /// It could not be run, and why; it is tried again when the run goes on.
    Failed(String),
}

impl From<Result<Outcome>> for Verdict {
    fn from(outcome: Result<Outcome>) -> Self {
        match outcome {
            Ok(Outcome::Right(samples)) => match not_a_number(&samples) {
                Some(measure) => Self::Wrong(format!("{measure} is not a finite number")),
                None => Self::Right(samples),
            },
            Ok(Outcome::Wrong(reason)) => Self::Wrong(reason),
            Err(error) => Self::Failed(format!("{error:#}")),
        }
    }
}

/// The first measure that no file can hold and nobody can read.
fn not_a_number(samples: &[Sample]) -> Option<&str> {
    let mut values = samples.iter().flat_map(|sample| &sample.values);
    values.find(|(_, value)| !value.is_finite()).map(|(name, _)| name.as_str())
}

/// State of a step as far as it is known.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Step {
    /// Runs by subject and round; where one was tried again, the last.
    pub runs: BTreeMap<(usize, u64), Ran>,
    /// Why its subjects could not be made, if that is the last that was heard of it.
    pub broken: Option<String>,
    /// Why there was nothing to do.
    pub skipped: Option<String>,
    /// True if it is done.
    pub is_done: bool,
}

/// Content of a journal.
#[derive(Clone, PartialEq, Debug)]
pub struct Recorded {
    /// Its first line.
    pub header: Header,
    steps: BTreeMap<StepKey, Step>,
    left_out: BTreeMap<String, String>,
}

impl Recorded {
    /// Nothing yet.
    pub(super) fn new(header: Header) -> Self {
        Self { header, steps: BTreeMap::new(), left_out: BTreeMap::new() }
    }

    /// Reads the journal in this folder; a torn last line is left out.
    ///
    /// # Errors
    /// If there is none, or a line before its last makes no sense.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(JOURNAL);
        let bytes = fs::read(&path).with_context(|| format!("{} holds no run: no {JOURNAL}", folder.display()))?;
        match parse(&bytes).with_context(|| format!("{} is damaged", path.display()))? {
            (Some(recorded), _) => Ok(recorded),
            (None, _) => bail!("{} is empty: nothing was measured yet", path.display()),
        }
    }

    /// Returns what is known of a step.
    pub fn step(&self, key: &StepKey) -> Option<&Step> {
        self.steps.get(key)
    }

    /// Returns what was left out of this input, in words; empty if nothing was.
    pub fn left_out(&self, data: &str) -> &str {
        self.left_out.get(data).map_or("", String::as_str)
    }

    fn add(&mut self, record: Record) -> Result<()> {
        match record {
            Record::Header(_) => bail!("there is a second first line"),
            Record::Ran(ran) => {
                let step = self.steps.entry(ran.step.clone()).or_default();
                step.broken = None;
                step.runs.insert((ran.subject, ran.round), ran);
            }
            Record::LeftOut { data, what } => drop(self.left_out.insert(data, what)),
            Record::Broken { step, reason } => self.steps.entry(step).or_default().broken = Some(reason),
            Record::Done { step, skipped } => {
                let step = self.steps.entry(step).or_default();
                (step.is_done, step.skipped, step.broken) = (true, skipped, None);
            }
        }
        Ok(())
    }
}

/// Returns the content of these lines, if there is a whole first one, and how many bytes of them are whole.
fn parse(bytes: &[u8]) -> Result<(Option<Recorded>, usize)> {
    let (mut recorded, mut whole) = (None::<Recorded>, 0);
    let lines = bytes.split_inclusive(|&byte| byte == b'\n');
    for (number, line) in lines.enumerate() {
        let is_last = whole + line.len() == bytes.len();
        let record = match serde_json::from_slice(line) {
            Ok(record) if line.ends_with(b"\n") => record,
            _ if is_last => break,
            Ok(_) => bail!("line {} has no end", number + 1),
            Err(error) => bail!("line {}: {error}", number + 1),
        };
        match (&mut recorded, record) {
            (None, Record::Header(header)) if header.format == FORMAT => recorded = Some(Recorded::new(header)),
            (None, Record::Header(header)) => bail!("it has format {}, this program knows {FORMAT}", header.format),
            (None, _) => bail!("it does not begin with a header"),
            (Some(recorded), record) => recorded.add(record).with_context(|| format!("line {}", number + 1))?,
        }
        whole += line.len();
    }
    Ok((recorded, whole))
}

/// A journal that is being written, and what it holds.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    recorded: Recorded,
}

impl Journal {
    /// Begins one in this folder, or goes on with the one that is there if its header is the same. `afresh` forgets
    /// that one.
    pub(super) fn open(folder: &Path, header: Header, afresh: bool) -> Result<Self> {
        let path = folder.join(JOURNAL);
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = opened.with_context(|| format!("{} cannot be opened", path.display()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!("another silt-lab is measuring in {}", folder.display()),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("{} cannot be locked", path.display()));
            }
        }
        if afresh {
            file.set_len(0)?;
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).with_context(|| format!("{} cannot be read", path.display()))?;
        let (recorded, whole) = parse(&bytes).with_context(|| {
            format!("{} is damaged: choose another folder, or begin again with --fresh", path.display())
        })?;
        file.set_len(whole as u64)?;
        file.seek(SeekFrom::End(0))?;
        if let Some(recorded) = recorded {
            let differences = recorded.header.differences(&header);
            if !differences.is_empty() {
                bail!(
                    "{} holds another run; choose another folder, or begin again with --fresh. What differs:\n  {}",
                    folder.display(),
                    differences.join("\n  ")
                );
            }
            return Ok(Self { path, file, recorded });
        }
        let mut journal = Self { path, file, recorded: Recorded::new(header.clone()) };
        journal.write(&Record::Header(header))?;
        Ok(journal)
    }

    pub(super) fn recorded(&self) -> &Recorded {
        &self.recorded
    }

    /// Adds a line.
    pub(super) fn append(&mut self, record: Record) -> Result<()> {
        self.write(&record)?;
        self.recorded.add(record)
    }

    fn write(&mut self, record: &Record) -> Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        self.file.write_all(&line).with_context(|| format!("{} cannot be written", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change<'c> = &'c dyn Fn(&mut Header);

    fn header() -> Header {
        Header::new(Settings::default(), vec!["processor: fast".into()], "2026-11-22".into(), Vec::new())
    }

    fn ran(round: u64) -> Record {
        let step = StepKey { experiment: "fake-count".into(), data: "d".into() };
        let verdict = Verdict::Right(vec![Sample::of([("seconds", 0.1 + 0.2)]).at("version", 3)]);
        Record::Ran(Ran { step, subject: 1, round, parameters: Row::new(), verdict })
    }

    #[test]
    fn every_torn_end_is_cut_off_and_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(JOURNAL);
        let mut journal = Journal::open(folder.path(), header(), false).unwrap();
        let head = fs::read(&path).unwrap().len();
        journal.append(ran(0)).unwrap();
        let expected = journal.recorded().clone();
        drop(journal);
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() {
            let (recorded, kept) = parse(&whole[..length]).unwrap();
            let (is_begun, expected) = (length >= head, if length >= head { head } else { 0 });
            assert_eq!((recorded.is_some(), kept), (is_begun, expected), "{length}");
        }
        for length in [0, 1, head - 1, head, head + 1, whole.len() - 1] {
            fs::write(&path, &whole[..length]).unwrap();
            let mut journal = Journal::open(folder.path(), header(), false).unwrap();
            assert_eq!(fs::read(&path).unwrap(), whole[..head], "{length}");
            journal.append(ran(0)).unwrap();
            drop(journal);
            assert_eq!(fs::read(&path).unwrap(), whole, "{length}");
            assert_eq!(Recorded::read(folder.path()).unwrap(), expected);
        }
    }

    #[test]
    fn a_last_line_of_zeros_is_torn_and_one_before_the_last_is_damage() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(JOURNAL);
        Journal::open(folder.path(), header(), false).unwrap().append(ran(0)).unwrap();
        let whole = fs::read(&path).unwrap();
        fs::write(&path, [&whole[..], &[0; 9], b"\n"].concat()).unwrap();
        drop(Journal::open(folder.path(), header(), false).unwrap());
        assert_eq!(fs::read(&path).unwrap(), whole);
        let damaged = String::from_utf8(whole).unwrap().replacen("fake-count", "fake\u{1}count", 1);
        fs::write(&path, damaged + "x\n").unwrap();
        let error = format!("{:#}", Recorded::read(folder.path()).unwrap_err());
        assert!(error.contains("line 2"), "{error}");
    }

    #[test]
    fn another_header_is_refused_with_what_differs() {
        let folder = tempfile::tempdir().unwrap();
        drop(Journal::open(folder.path(), header(), false).unwrap());
        let mut other = header();
        other.day = "2027-01-01".into();
        drop(Journal::open(folder.path(), other.clone(), false).unwrap());
        let changes: [(Change, &str); 4] = [
            (&|header| header.settings.seed = 2, "setting seed: 1 before, 2 now"),
            (&|header| header.version = "9".into(), "program"),
            (&|header| header.machine[0] = "processor: slow".into(), "processor: slow now"),
            (
                &|header| {
                    header.inputs =
                        vec![InputSummary { name: "d".into(), description: String::new(), bytes: 1, versions: 1 }];
                },
                "d (1 bytes in 1)",
            ),
        ];
        for (change, hint) in changes {
            let mut changed = other.clone();
            change(&mut changed);
            let error = Journal::open(folder.path(), changed.clone(), false).unwrap_err().to_string();
            assert!(error.contains(hint) && error.contains("--fresh"), "{error}");
        }
        other.settings.seed = 3;
        assert_eq!(Journal::open(folder.path(), other.clone(), true).unwrap().recorded().header, other);
    }

    #[test]
    fn two_do_not_write_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let _journal = Journal::open(folder.path(), header(), false).unwrap();
        assert!(Journal::open(folder.path(), header(), false).unwrap_err().to_string().contains("another silt-lab"));
    }

    #[test]
    fn what_is_no_number_is_wrong() {
        let verdict = Verdict::from(Ok(Outcome::Right(vec![Sample::of([("gb_per_s", f64::NAN)])])));
        assert_eq!(verdict, Verdict::Wrong("gb_per_s is not a finite number".into()));
    }
}
