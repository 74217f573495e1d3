//! One algorithm in several forms, timed in the same run: cuts of all must be those of its scalar form, and those of
//! that must be its definition's.

use super::cuts::Digest;
use super::fingerprints::{CHUNK_BYTES, Fingerprint};
use super::floor::Floor;
use super::oracle;
use super::setup::Setup;
use crate::experiment::{Outcome, Row, Sample, Subject, row};
use crate::table::as_float;
use crate::thread_time;
use anyhow::Result;
use serde_json::json;
use siltstone_chunk::{Chunker, Isa};
use std::hint::black_box;

/// Data smaller than this is gone through again and again until a run has seen so much.
const RUN_BYTES_MIN: usize = 32 << 20;

/// Seconds of this thread's processor time for each time the data is gone through, and what came of it. Little data
/// is gone through several times, after one time that does not count.
pub fn timed(data: &[u8], mut work: impl FnMut(&[u8]) -> Digest) -> (f64, Digest) {
    let repeats = if cfg!(test) { 1 } else { RUN_BYTES_MIN.div_ceil(data.len().max(1)).min(1 << 16) };
    let mut digest = Digest::default();
    if repeats > 1 {
        work(black_box(data));
    }
    let (seconds, ()) = thread_time::of(|| {
        for _ in 0..repeats {
            digest = work(black_box(data));
        }
    });
    (seconds / as_float(repeats as u64), digest)
}

/// A rate in bytes of 10^9.
pub fn gb_per_s(bytes: usize, seconds: f64) -> f64 {
    as_float(bytes as u64) / 1e9 / seconds.max(1e-9)
}

/// Share of the expected size by which an average may be off before a row says so.
const AVERAGE_OFF: f64 = 0.25;

/// The sample, with a remark: how the form goes its way, and that its average is off by more than a quarter. Chunkers
/// that make fewer chunks than asked for are faster for nothing.
pub(super) fn remarked(sample: Sample, way: &str, average: f64, expected: u32) -> Sample {
    let off = average / f64::from(expected) - 1.0;
    let off = (off.abs() > AVERAGE_OFF).then(|| format!("average off by {:+.0} %", 100.0 * off));
    let remarks: Vec<String> =
        [Some(way.to_owned()).filter(|way| !way.is_empty()), off].into_iter().flatten().collect();
    if remarks.is_empty() { sample } else { sample.at("remark", remarks.join("; ")) }
}

/// An algorithm at an expected size, in some of its forms, the scalar one first.
pub(super) struct Forms<'d> {
    setup: Setup,
    data: &'d [u8],
    chunkers: Vec<(Isa, Box<dyn Chunker>)>,
    /// In what the scalar form differs from its definition.
    difference: Option<String>,
    /// Runs made: another form begins each time.
    runs: usize,
}

impl<'d> Forms<'d> {
    /// The scalar form and these.
    pub(super) fn new(setup: Setup, data: &'d [u8], isas: &[Isa]) -> Result<Self> {
        let others = isas.iter().copied().filter(|isa| *isa != Isa::SCALAR);
        let make = |isa| Ok((isa, setup.chunker(isa)?));
        let chunkers = std::iter::once(Isa::SCALAR).chain(others).map(make).collect::<Result<_>>()?;
        let difference = oracle::difference(setup.method, setup.expected, data)?;
        Ok(Self { setup, data, chunkers, difference, runs: 0 })
    }
}

impl Subject for Forms<'_> {
    fn parameters(&self) -> Row {
        self.setup.parameters()
    }

    fn run(&mut self) -> Result<Outcome> {
        if let Some(difference) = &self.difference {
            return Ok(Outcome::Wrong(difference.clone()));
        }
        let count = self.chunkers.len();
        let mut found = vec![(0.0, Digest::default()); count];
        for turn in 0..count {
            let form = (turn + self.runs) % count;
            let chunker = &*self.chunkers[form].1;
            found[form] = timed(self.data, |data| Digest::of(chunker, data));
        }
        self.runs += 1;
        let (scalar_seconds, truth) = found[0];
        let mut samples = Vec::with_capacity(count);
        for ((isa, _), (seconds, digest)) in self.chunkers.iter().zip(found) {
            if digest != truth {
                return Ok(Outcome::Wrong(format!("the form for {isa} cuts elsewhere than the scalar one")));
            }
            let average = digest.average(self.data.len());
            let sample = Sample::of([
                ("gb_per_s", gb_per_s(self.data.len(), seconds)),
                ("ratio_to_scalar", scalar_seconds / seconds),
                ("average_bytes", average),
            ]);
            let Setup { method, expected } = self.setup;
            samples.push(remarked(sample.at("isa", method.isa_name(*isa)), method.way(*isa), average, expected));
        }
        Ok(Outcome::Right(samples))
    }
}

/// A pass over data.
type Work = Box<dyn FnMut(&[u8]) -> Digest>;

/// Work that stands beside the chunkers, with the digest that it must find.
pub(super) struct Beside<'d> {
    parameters: Row,
    data: &'d [u8],
    work: Work,
    truth: Digest,
}

impl<'d> Beside<'d> {
    /// A floor beneath the chunkers.
    pub(super) fn floor(floor: Floor, data: &'d [u8]) -> Self {
        // Written to, so that its pages are there.
        let mut scratch = if floor == Floor::Copy { vec![1; data.len()] } else { Vec::new() };
        Self {
            parameters: row([("method", json!(floor.name())), ("isa", json!(floor.isa_name()))]),
            data,
            work: Box::new(move |data: &[u8]| floor.run(data, &mut scratch)),
            truth: floor.truth(data),
        }
    }

    /// A hash of chunks of 8 KiB, for comparison.
    pub(super) fn fingerprint(fingerprint: Fingerprint, data: &'d [u8]) -> Self {
        let (name, expected, isa) = (fingerprint.name(), CHUNK_BYTES, fingerprint.isa_name());
        Self {
            parameters: row([("method", json!(name)), ("expected_bytes", json!(expected)), ("isa", json!(isa))]),
            data,
            work: Box::new(move |data: &[u8]| fingerprint.run(data)),
            truth: fingerprint.truth().run(data),
        }
    }
}

impl Subject for Beside<'_> {
    fn parameters(&self) -> Row {
        self.parameters.clone()
    }

    fn run(&mut self) -> Result<Outcome> {
        let (seconds, digest) = timed(self.data, &mut self.work);
        if digest != self.truth {
            return Ok(Outcome::Wrong("what it found is not what it should".into()));
        }
        Ok(Outcome::Right(vec![Sample::of([("gb_per_s", gb_per_s(self.data.len(), seconds))])]))
    }
}
