//! A method at an expected size: what most rows of this room are of.

use super::method::Method;
use super::oracle;
use crate::experiment::{Outcome, Row, Subject, row};
use crate::settings::Settings;
use anyhow::Result;
use serde_json::json;
use siltstone_chunk::{Chunker, Isa};

/// A method asked for chunks of so many bytes on average.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    /// Method that cuts.
    pub(super) method: Method,
    /// Expected size it is asked for, bytes.
    pub(super) expected: u32,
}

impl Setup {
    /// Those of these methods that the user wants, at each of these sizes.
    pub(super) fn all(methods: impl IntoIterator<Item = Method>, sizes: &[u32], settings: &Settings) -> Vec<Self> {
        let methods = Method::wanted(methods, settings);
        let at = |expected: &u32| {
            let expected = *expected;
            methods.iter().map(move |method| Self { method: *method, expected })
        };
        sizes.iter().flat_map(at).collect()
    }

    /// `method` and `expected_bytes`.
    pub(super) fn parameters(self) -> Row {
        row([("method", json!(self.method.name())), ("expected_bytes", json!(self.expected))])
    }

    /// Its form for `isa`.
    pub(super) fn chunker(self, isa: Isa) -> Result<Box<dyn Chunker>> {
        self.method.chunker(self.expected, isa)
    }

    /// Its best form.
    pub(super) fn best(self) -> Result<Box<dyn Chunker>> {
        self.chunker(self.method.best())
    }

    /// In what its best form differs from its definition on the first bytes of `data`, if it does.
    pub(super) fn difference(self, data: &[u8]) -> Result<Option<String>> {
        oracle::difference_of_best(self.method, self.expected, data)
    }

    /// A subject of it, whose runs are made by `measure`.
    pub(super) fn subject<'i>(self, measure: impl Fn(Self) -> Result<Outcome> + 'i) -> Box<dyn Subject + 'i> {
        Box::new(Measured { setup: self, measure })
    }
}

/// A setup, and how it is measured.
struct Measured<F> {
    setup: Setup,
    measure: F,
}

impl<F: Fn(Setup) -> Result<Outcome>> Subject for Measured<F> {
    fn parameters(&self) -> Row {
        self.setup.parameters()
    }

    fn run(&mut self) -> Result<Outcome> {
        (self.measure)(self.setup)
    }
}
