//! Rounds: subjects take turns, so that what changes while a run lasts (the clock of the processor, other programs)
//! meets all of them.

use super::findings;
use super::inputs::QUICK_BYTES;
use super::journal::{Header, Journal, Ran, Record, Recorded, Verdict};
use super::plan::{PlannedStep, RunPlan};
use crate::corpus::Corpus;
use crate::experiment::{Experiment, Finding, Input, Needs, Row, Subject, row_text};
use crate::settings::Settings;
use anyhow::{Result, bail};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Divisor for the memory that may be used: data takes one part in so many; the rest is what methods work with: cuts,
/// fingerprints, compressed copies.
const MEMORY_PARTS: u64 = 2;

/// The settings, in the folder of a run.
pub const SETTINGS_FILE: &str = "run.toml";

/// Who looks on, and may ask to stop.
pub trait Watch {
    /// Tells whether the run is to stop before the next subject.
    fn is_interrupted(&self) -> bool;

    /// A step begins, the `number`th (from 0) of so many; its subjects are being made.
    fn begins(&self, step: &PlannedStep, number: usize, of: usize);

    /// So many of the step's runs are done, and this one begins.
    fn turns(&self, done: u64, of: u64, parameters: &Row);

    /// Something worth a line.
    fn says(&self, line: &str);
}

/// End of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// All was run.
    Done,
    /// Someone asked to stop.
    Interrupted,
}

/// Plan of a run: what is to be measured, and where it is written.
#[derive(Debug)]
pub struct Order<'o> {
    /// The first line of the journal.
    pub header: Header,
    /// The data, in the order of the header's list.
    pub corpora: Vec<Corpus>,
    /// The folder of the run; it exists.
    pub folder: &'o Path,
    /// True if a journal that is there already is forgotten.
    pub afresh: bool,
}

/// Measures what is not measured yet, and journals it.
///
/// # Errors
/// If the journal cannot be written, or that of another run is there. Methods that fail are no errors: they are
/// recorded.
pub fn measure(all: &[Box<dyn Experiment>], order: Order, watch: &dyn Watch) -> Result<Ending> {
    let Order { header, corpora, folder, afresh } = order;
    let settings = header.settings.clone();
    let plan = RunPlan::of(all, &settings, &header.inputs);
    for line in &plan.skipped {
        watch.says(line);
    }
    if plan.steps.is_empty() {
        bail!("there is nothing to measure");
    }
    let memory_bytes = settings.memory_mib.saturating_mul(1 << 20) / MEMORY_PARTS;
    let bytes_max = if settings.quick { memory_bytes.min(QUICK_BYTES) } else { memory_bytes };
    let mut journal = Journal::open(folder, header, afresh)?;
    settings.write(&folder.join(SETTINGS_FILE))?;
    let mut loaded: Option<(Option<usize>, Input)> = None;
    for (number, step) in plan.steps.iter().enumerate() {
        if journal.recorded().step(&step.key).is_some_and(|known| known.is_done) {
            continue;
        }
        if watch.is_interrupted() {
            return Ok(Ending::Interrupted);
        }
        watch.begins(step, number, plan.steps.len());
        // Stores go through versions one by one, and want the memory that all of them together would take.
        let is_in_memory = step.experiment.head().needs == Needs::Bytes;
        let (_, input) = match loaded.take() {
            Some((which, input)) if which == step.input && is_in_memory => loaded.insert((which, input)),
            // What the last input held in memory is gone before the next is brought there.
            _ => loaded.insert((
                step.input,
                Input::new(step.input.map_or_else(no_corpus, |at| corpora[at].clone()), bytes_max),
            )),
        };
        if run_step(step, input, &settings, &mut journal, watch)? == Ending::Interrupted {
            return Ok(Ending::Interrupted);
        }
        // What the last one advises is shown with all else in a moment.
        if number + 1 < plan.steps.len() {
            let is_own = |f: &Finding| f.experiment == step.key.experiment && f.data == step.key.data;
            let own: Vec<Finding> = findings(&plan, journal.recorded()).into_iter().filter(is_own).collect();
            step.experiment.advice(&own).iter().for_each(|sentence| watch.says(&format!("-> {sentence}")));
        }
    }
    Ok(Ending::Done)
}

/// For what needs no data.
fn no_corpus() -> Corpus {
    Corpus { name: String::new(), description: String::new(), versions: Vec::new() }
}

fn run_step(
    step: &PlannedStep,
    input: &Input,
    settings: &Settings,
    journal: &mut Journal,
    watch: &dyn Watch,
) -> Result<Ending> {
    let methods = step.experiment.head().methods;
    let has_none_asked_for = !methods.is_empty() && !methods.iter().any(|method| settings.chooses_method(method));
    let subjects = if has_none_asked_for { Ok(Vec::new()) } else { step.experiment.subjects(input, settings) };
    let mut subjects = match subjects {
        Ok(subjects) => subjects,
        Err(error) => {
            let reason = format!("{error:#}");
            watch.says(&format!("{}: could not be run: {reason}", step.text()));
            journal.append(Record::Broken { step: step.key.clone(), reason })?;
            return Ok(Ending::Done);
        }
    };
    if let Some(left_out) = input.left_out().filter(|what| *what != journal.recorded().left_out(input.name())) {
        watch.says(&format!("{} is measured in memory without {left_out}", input.name()));
        journal.append(Record::LeftOut { data: input.name().to_owned(), what: left_out.to_owned() })?;
    }
    let skipped = subjects
        .is_empty()
        .then(|| format!("{}: it has other methods than those asked for: {}", step.text(), methods.join(", ")));
    if let Some(line) = &skipped {
        watch.says(line);
    }
    let rounds = step.experiment.head().rounds.of(settings.rounds);
    let turns = Turns { step, rounds, parameters: subjects.iter().map(|subject| subject.parameters()).collect() };
    turns.check(journal.recorded())?;
    let Some(is_complete) = turns.run(&mut subjects, journal, watch)? else { return Ok(Ending::Interrupted) };
    if is_complete {
        journal.append(Record::Done { step: step.key.clone(), skipped })?;
    }
    Ok(Ending::Done)
}

/// The runs of a step.
struct Turns<'t, 'e> {
    step: &'t PlannedStep<'e>,
    rounds: u64,
    parameters: Vec<Row>,
}

impl Turns<'_, '_> {
    /// Fails if what was recorded is of other subjects: then the program does not do the same each time.
    fn check(&self, recorded: &Recorded) -> Result<()> {
        let names: BTreeSet<String> =
            self.parameters.iter().map(|row| Value::Object(row.clone()).to_string()).collect();
        if names.len() < self.parameters.len() {
            bail!("{}: two of its subjects have the same parameters", self.step.text());
        }
        for ran in recorded.step(&self.step.key).iter().flat_map(|known| known.runs.values()) {
            if self.parameters.get(ran.subject) != Some(&ran.parameters) {
                bail!("{}: its subjects are others than before; begin again with --fresh", self.step.text());
            }
        }
        Ok(())
    }

    /// Runs what is still to be run. Whether all could be, or nothing if it was interrupted.
    fn run(
        &self,
        subjects: &mut [Box<dyn Subject + '_>],
        journal: &mut Journal,
        watch: &dyn Watch,
    ) -> Result<Option<bool>> {
        let count = subjects.len();
        let mut is_out = vec![false; count];
        let mut is_complete = true;
        for turn in 0..self.rounds * count as u64 {
            let (round, subject) = self.at(turn);
            match self.known(journal.recorded(), subject, round) {
                _ if is_out[subject] => continue,
                Some(Verdict::Right(_)) => continue,
                Some(Verdict::Wrong(_)) => {
                    is_out[subject] = true;
                    continue;
                }
                None | Some(Verdict::Failed(_)) => {}
            }
            if watch.is_interrupted() {
                return Ok(None);
            }
            let parameters = &self.parameters[subject];
            watch.turns(turn, self.rounds * count as u64, parameters);
            let verdict = Verdict::from(subjects[subject].run());
            // Further rounds of what went wrong would come to the same.
            is_out[subject] = !matches!(verdict, Verdict::Right(_));
            is_complete &= !matches!(verdict, Verdict::Failed(_));
            if let Verdict::Wrong(reason) | Verdict::Failed(reason) = &verdict {
                watch.says(&format!("{}: {}: {reason}", self.step.text(), row_text(parameters)));
            }
            let (step, parameters) = (self.step.key.clone(), parameters.clone());
            journal.append(Record::Ran(Ran { step, subject, round, parameters, verdict }))?;
        }
        Ok(Some(is_complete))
    }

    /// Round and subject of a turn: every other round goes backwards.
    fn at(&self, turn: u64) -> (u64, usize) {
        let count = self.parameters.len();
        let (round, place) = (turn / count as u64, turn % count as u64);
        let place = usize::try_from(place).expect("it is below a usize");
        (round, if round.is_multiple_of(2) { place } else { count - 1 - place })
    }

    fn known<'r>(&self, recorded: &'r Recorded, subject: usize, round: u64) -> Option<&'r Verdict> {
        let runs = &recorded.step(&self.step.key)?.runs;
        runs.get(&(subject, round)).map(|ran| &ran.verdict)
    }
}
