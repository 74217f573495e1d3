//! The handle, turned with the fake experiment.

use super::fake::Fake;
use super::{Ending, Header, Order, PlannedStep, Recorded, RunPlan, Watch, findings, measure};
use crate::corpus::Corpus;
use crate::experiment::{Experiment, Finding, Needs, Row};
use crate::report::{InputSummary, Report};
use crate::settings::Settings;
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Lets so many runs begin, and keeps what is said.
struct Patience {
    left: Cell<usize>,
    said: RefCell<Vec<String>>,
}

impl Patience {
    fn of(runs: usize) -> Self {
        Self { left: Cell::new(runs), said: RefCell::default() }
    }
}

impl Watch for Patience {
    fn is_interrupted(&self) -> bool {
        self.left.get() == 0
    }

    fn begins(&self, _: &PlannedStep, _: usize, _: usize) {}

    fn turns(&self, _: u64, _: u64, _: &Row) {
        self.left.set(self.left.get() - 1);
    }

    fn says(&self, line: &str) {
        self.said.borrow_mut().push(line.to_owned());
    }
}

const FOR_EVER: usize = usize::MAX;

fn settings() -> Settings {
    Settings { rounds: 3, ..Settings::default() }
}

/// Two inputs, the second with one version.
fn corpora() -> Vec<Corpus> {
    let corpus = |name: &str, versions: Vec<std::path::PathBuf>| Corpus {
        name: name.into(),
        description: String::new(),
        versions,
    };
    vec![corpus("two", vec!["a".into(), "b".into()]), corpus("one", vec!["c".into()])]
}

fn header(settings: Settings) -> Header {
    let summary = |corpus: &Corpus| InputSummary {
        name: corpus.name.clone(),
        description: String::new(),
        bytes: 1,
        versions: corpus.versions.len(),
    };
    Header::new(settings, vec!["processor: fast".into()], "2026-11-22".into(), corpora().iter().map(summary).collect())
}

fn turn(all: &[Box<dyn Experiment>], settings: Settings, folder: &Path, watch: &Patience) -> anyhow::Result<Ending> {
    let order = Order { header: header(settings), corpora: corpora(), folder, afresh: false };
    measure(all, order, watch)
}

fn found(all: &[Box<dyn Experiment>], folder: &Path) -> Vec<Finding> {
    let recorded = Recorded::read(folder).unwrap();
    findings(&RunPlan::of(all, &recorded.header.settings, &recorded.header.inputs), &recorded)
}

/// One of each need; subjects of all kinds.
fn experiments() -> Vec<Box<dyn Experiment>> {
    let of = |name, needs, methods: &[&'static str]| {
        Box::new(Fake { name, needs, methods: methods.to_vec(), ..Fake::default() }) as Box<dyn Experiment>
    };
    vec![
        of("fake-bytes", Needs::Bytes, &["left", "wrong", "right"]),
        of("fake-versions", Needs::Versions, &["left", "right"]),
        of("fake-nothing", Needs::Nothing, &["left", "right"]),
    ]
}

#[test]
fn subjects_take_turns_in_alternating_order() {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::default();
    let runs = Arc::clone(&fake.runs);
    let all: Vec<Box<dyn Experiment>> = vec![Box::new(fake)];
    assert_eq!(turn(&all, settings(), folder.path(), &Patience::of(FOR_EVER)).unwrap(), Ending::Done);
    assert_eq!(*runs.lock().unwrap(), ["left", "right", "right", "left", "left", "right"]);
    let found = found(&all, folder.path());
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].values, [("seconds".into(), vec![0.1; 3]), ("count".into(), vec![1.0; 3])]);
    assert_eq!((found[1].parameter("method"), found[1].parameter("version")), ("right".into(), "0".into()));
}

#[test]
fn each_need_meets_its_data() {
    let folder = tempfile::tempdir().unwrap();
    let (all, watch) = (experiments(), Patience::of(FOR_EVER));
    turn(&all, settings(), folder.path(), &watch).unwrap();
    let found = found(&all, folder.path());
    let mut met: Vec<(&str, &str)> =
        found.iter().map(|finding| (finding.experiment.as_str(), finding.data.as_str())).collect();
    met.dedup();
    let expected = [("fake-bytes", "two"), ("fake-bytes", "one"), ("fake-versions", "two"), ("fake-nothing", "")];
    assert_eq!(met, expected);
    assert!(watch.said.borrow()[0].contains("one has one version and these need two or more: fake-versions"));
}

#[test]
fn stores_find_the_memory_free() {
    let folder = tempfile::tempdir().unwrap();
    let versions: Vec<_> = ["a", "b"].map(|name| folder.path().join(name)).into();
    for version in &versions {
        std::fs::write(version, "bytes").unwrap();
    }
    let corpora = vec![Corpus { name: "two".into(), description: String::new(), versions }];
    let inputs = vec![InputSummary { name: "two".into(), description: String::new(), bytes: 10, versions: 2 }];
    let header = Header::new(settings(), Vec::new(), String::new(), inputs);
    let all = experiments();
    let (run, watch) = (folder.path().join("run"), Patience::of(FOR_EVER));
    std::fs::create_dir(&run).unwrap();
    measure(&all, Order { header, corpora, folder: &run, afresh: false }, &watch).unwrap();
    assert!(!watch.said.borrow().iter().any(|line| line.contains("memory")), "{:?}", watch.said);
}

#[test]
fn a_wrong_result_prints_no_time_and_is_not_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake { methods: vec!["left", "wrong"], ..Fake::default() };
    let runs = Arc::clone(&fake.runs);
    let all: Vec<Box<dyn Experiment>> = vec![Box::new(fake)];
    for _ in 0..2 {
        assert_eq!(turn(&all, settings(), folder.path(), &Patience::of(FOR_EVER)).unwrap(), Ending::Done);
        let found = found(&all, folder.path());
        assert_eq!(found.iter().map(|finding| finding.wrong.as_deref()).collect::<Vec<_>>(), [None, Some("a foot")]);
        assert!(found[1].values.is_empty());
        assert_eq!(runs.lock().unwrap().iter().filter(|method| **method == "wrong").count(), 2);
    }
}

#[test]
fn what_could_not_be_run_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake { methods: vec!["broken", "left"], ..Fake::default() };
    let (is_ill, runs) = (Arc::clone(&fake.is_ill), Arc::clone(&fake.runs));
    is_ill.store(true, Ordering::Relaxed);
    let all: Vec<Box<dyn Experiment>> = vec![Box::new(fake)];
    turn(&all, settings(), folder.path(), &Patience::of(FOR_EVER)).unwrap();
    assert_eq!(*runs.lock().unwrap(), ["broken", "left", "left", "left"]);
    let first = found(&all, folder.path());
    assert!(first[0].wrong.as_ref().unwrap().contains("the hand is broken"));
    assert!(!Report::read(&all, folder.path()).unwrap().is_whole);
    is_ill.store(false, Ordering::Relaxed);
    turn(&all, settings(), folder.path(), &Patience::of(FOR_EVER)).unwrap();
    assert_eq!(runs.lock().unwrap()[4..], ["broken"; 3]);
    let second = found(&all, folder.path());
    assert_eq!((second[0].wrong.as_ref(), second[0].values[0].1.len()), (None, 3));
    assert!(Report::read(&all, folder.path()).unwrap().is_whole);
}

#[test]
fn an_experiment_without_subjects_does_not_stop_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let mut all = experiments();
    let bad = Fake { name: "fake-bad", ..Fake::default() };
    bad.has_no_subjects.store(true, Ordering::Relaxed);
    all.push(Box::new(bad));
    turn(&all, settings(), folder.path(), &Patience::of(FOR_EVER)).unwrap();
    let found = found(&all, folder.path());
    let broken: Vec<&Finding> = found.iter().filter(|finding| finding.experiment == "fake-bad").collect();
    assert!(broken.len() == 1 && broken[0].wrong.as_ref().unwrap().contains("is no good"));
    assert!(found.iter().any(|finding| finding.experiment == "fake-versions"));
}

#[test]
fn a_run_interrupted_anywhere_goes_on_to_the_same_findings() {
    let whole = tempfile::tempdir().unwrap();
    turn(&experiments(), settings(), whole.path(), &Patience::of(FOR_EVER)).unwrap();
    let expected = found(&experiments(), whole.path());
    let lines = std::fs::read_to_string(whole.path().join(super::JOURNAL)).unwrap().matches("\"ran\"").count();
    assert!(lines > 20);
    for stop in 0..lines {
        let folder = tempfile::tempdir().unwrap();
        let all = experiments();
        assert_eq!(turn(&all, settings(), folder.path(), &Patience::of(stop)).unwrap(), Ending::Interrupted, "{stop}");
        assert!(!Report::read(&all, folder.path()).unwrap().is_whole);
        assert_eq!(turn(&all, settings(), folder.path(), &Patience::of(lines - stop)).unwrap(), Ending::Done, "{stop}");
        assert_eq!(found(&all, folder.path()), expected, "{stop}");
        assert!(Report::read(&all, folder.path()).unwrap().is_whole);
    }
}

#[test]
fn other_settings_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let all = experiments();
    turn(&all, settings(), folder.path(), &Patience::of(3)).unwrap();
    let changed = Settings { rounds: 4, ..settings() };
    let error = turn(&all, changed, folder.path(), &Patience::of(FOR_EVER)).unwrap_err().to_string();
    assert!(error.contains("setting rounds: 3 before, 4 now"), "{error}");
}

#[test]
fn only_the_methods_asked_for_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    let (all, watch) = (experiments(), Patience::of(FOR_EVER));
    let settings = Settings { methods: vec!["wrong".into()], ..settings() };
    turn(&all, settings, folder.path(), &watch).unwrap();
    let found = found(&all, folder.path());
    assert!(!found.is_empty() && found.iter().all(|finding| finding.parameter("method") == "wrong"));
    let report = Report::read(&all, folder.path()).unwrap();
    assert!(report.is_whole);
    assert!(
        report
            .skipped
            .iter()
            .any(|line| line.contains("fake-nothing: it has other methods") && line.contains("left, right"))
    );
}

#[test]
fn subjects_that_are_others_than_before_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let with = |methods: &[&'static str]| -> Vec<Box<dyn Experiment>> {
        vec![Box::new(Fake { methods: methods.to_vec(), ..Fake::default() })]
    };
    turn(&with(&["left", "right"]), settings(), folder.path(), &Patience::of(1)).unwrap();
    let error = turn(&with(&["right", "left"]), settings(), folder.path(), &Patience::of(FOR_EVER)).unwrap_err();
    assert!(error.to_string().contains("others than before"));
    let twins = turn(&with(&["left", "left"]), settings(), folder.path(), &Patience::of(FOR_EVER)).unwrap_err();
    assert!(twins.to_string().contains("the same parameters"));
}
