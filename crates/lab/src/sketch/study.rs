//! The subject of most experiments: one contender on one ground. How fast it sketches is measured every time; what it
//! finds is the same every time, and is found once.

use super::contender::Contender;
use super::found::{Bases, Choice, Found};
use super::ground::Ground;
use super::timed::{self, Amount, Timed, Values};
use crate::experiment::{Outcome, Row, Subject};
use crate::settings::Settings;
use anyhow::Result;
use serde_json::Value;
use std::rc::Rc;

/// Speed and findings.
pub(super) struct Study<'i> {
    ground: Rc<Ground<'i>>,
    contender: Rc<Contender>,
    choice: Choice,
    further: Row,
    timed: Timed<'i>,
    found: Option<Result<Values, String>>,
}

impl<'i> Study<'i> {
    /// Makes the study of a contender whose scalar form is `oracle`.
    pub(super) fn new(ground: &Rc<Ground<'i>>, contender: Contender, oracle: &Contender, settings: &Settings) -> Self {
        let contender = Rc::new(contender);
        let timed = Timed::sketching(Rc::clone(&contender), oracle, &ground.chunks, Amount::of(settings));
        let (ground, choice) = (Rc::clone(ground), Choice::First);
        Self { ground, contender, choice, further: Row::new(), timed, found: None }
    }

    /// Returns this study with bases chosen in this way.
    pub(super) fn choosing(mut self, choice: Choice) -> Self {
        self.choice = choice;
        self.with("fit", choice.name())
    }

    /// Returns this study with one more parameter.
    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.further.insert(name.to_owned(), value.into());
        self
    }

    fn find(&self) -> Result<Result<Values, String>> {
        let bases = Bases::of(&self.ground.sketches(&self.contender), self.contender.shape(), self.choice);
        let found = Found::of(&self.ground, &bases);
        let reference = self.ground.reference_dcr()?;
        Ok(found.and_then(|found| {
            let ratio = ("ratio_to_ntransform", found.dcr() / reference?);
            Ok(found.values().into_iter().chain([ratio]).map(|(name, value)| (name.to_owned(), value)).collect())
        }))
    }
}

impl Subject for Study<'_> {
    fn parameters(&self) -> Row {
        let mut row = self.contender.row();
        row.extend(self.further.clone());
        row.insert("expected_bytes".into(), self.ground.expected_bytes.into());
        row
    }

    fn run(&mut self) -> Result<Outcome> {
        let found = match &self.found {
            Some(found) => found.clone(),
            None => self.find()?,
        };
        self.found = Some(found.clone());
        Ok(timed::outcome(found.and_then(|found| Ok(self.timed.measure()?.into_iter().chain(found).collect()))))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::corpus;
    use crate::deterministic::Sequence;
    use crate::experiment::{Experiment, Finding, Input, testing};
    use std::fs;
    use tempfile::TempDir;

    /// Three versions of random bytes, each with a few bytes changed here and there.
    pub(in super::super) fn versions() -> (TempDir, Input) {
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = Sequence::new(9).bytes(300_000);
        for version in 0..3 {
            fs::write(folder.path().join(version.to_string()), &bytes).unwrap();
            (0..10).for_each(|change| bytes[29_000 * change + 1000 * version] ^= 1);
        }
        let input = Input::new(corpus::given(folder.path()).unwrap(), 1 << 30);
        (folder, input)
    }

    /// Every subject run once: nothing may be wrong, and every column must be filled somewhere.
    pub(in super::super) fn findings(experiment: &dyn Experiment, settings: &Settings) -> Vec<Finding> {
        let (_folder, input) = versions();
        let findings = testing::findings(experiment, &input, settings);
        for finding in &findings {
            assert_eq!(finding.wrong, None, "{:?}", finding.parameters);
        }
        for column in experiment.head().columns() {
            let is_filled =
                |finding: &Finding| !finding.parameter(column).is_empty() || finding.median(column).is_some();
            assert!(findings.iter().any(is_filled), "{column}");
        }
        assert!(!experiment.figures(&findings).is_empty());
        findings
    }

    /// The settings of a quick run.
    pub(in super::super) fn quick() -> Settings {
        Settings { quick: true, rounds: 1, ..Settings::default() }
    }
}
