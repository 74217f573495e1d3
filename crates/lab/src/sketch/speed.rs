//! Speeds: every sketch in every form, on the same chunks in memory, one thread, beside what reading the memory alone
//! takes (Finesse, Fig. 4; Odess, Fig. 23(a)).
//!
//! Siltstone's own has two rows: the sketch of a chunk that was cut before (`samples`), and cutting with sketching in
//! one pass (`cut+samples`), which stands beside cutting alone (`cut`).

use super::choice;
use super::contender::{Contender, NAMES_TIMED, REFERENCE};
use super::draw::{self, Drawing, SPEED};
use super::own;
use super::timed::{self, Amount, Digest, Timed};
use super::versions::{KEY, sizes};
use super::word_lanes;
use crate::experiment::{Experiment, Finding, Head, Input, Needs, Outcome, Rounds, Row, Subject, row};
use crate::isas;
use crate::memory;
use crate::report::Figure;
use crate::settings::Settings;
use anyhow::Result;
use siltstone_chunk::{Isa, Lagged, Sizes, SliceChunks};
use siltstone_similar::sketch::{Rate, SampleSketch, Shape, Windows};
use std::hint::black_box;
use std::rc::Rc;

const SIZES: [u32; 4] = [4 << 10, 8 << 10, 16 << 10, 64 << 10];

const READ: &str = "memory-read";
const CUT: &str = "cut";
const CUT_SAMPLING: &str = "cut+samples";

/// The experiment.
pub(super) struct Speed;

/// A row.
struct Form<'i> {
    parameters: Row,
    timed: Timed<'i>,
}

/// Bytes, and the same cut to chunks.
struct Cut<'i> {
    bytes: &'i [u8],
    chunks: Rc<Vec<&'i [u8]>>,
    expected_bytes: u32,
    sizes: Sizes,
}

impl Experiment for Speed {
    fn head(&self) -> Head {
        Head {
            name: "sketch-speed",
            title: "How fast sketches are made, by method, instruction set and size of chunks",
            reproduces: &["Finesse (FAST'19), Fig. 4", "Odess (TOS), Fig. 23(a)"],
            needs: Needs::Bytes,
            methods: NAMES_TIMED.to_vec(),
            rounds: Rounds::All,
            columns: "method isa expected_bytes average_bytes seen_mb gb_per_s",
        }
    }

    fn subjects<'i>(&self, input: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        let amount = Amount::of(settings);
        let all = &input.data()?.bytes;
        let bytes = &all[..all.len().min(usize::try_from(amount.bytes)?)];
        let mut forms = Vec::new();
        for expected_bytes in choice::sizes(settings, &SIZES) {
            let sizes = sizes(expected_bytes)?;
            let chunks = Rc::new(SliceChunks::new(&Lagged::new(sizes, &KEY, Isa::best()), bytes).collect());
            let cut = Cut { bytes, chunks, expected_bytes, sizes };
            forms.push(cut.reading());
            for name in NAMES_TIMED.into_iter().filter(|name| settings.chooses_method(name)) {
                forms.extend(cut.sketching(name, amount)?);
            }
            if settings.chooses_method(own::NAME) {
                forms.extend(cut.cutting(CUT, cut_alone));
                forms.extend(cut.cutting(CUT_SAMPLING, cut_sampling));
            }
        }
        Ok(forms.into_iter().map(|form| Box::new(form) as Box<dyn Subject>).collect())
    }

    fn figures(&self, findings: &[Finding]) -> Vec<Figure> {
        let best = fastest_forms(findings);
        let usual: Vec<&Finding> = best.iter().copied().filter(|one| is_of_usual_size(findings, one)).collect();
        let mut figures = vec![
            Drawing {
                title: "Speed of sketches in their fastest forms, by data".into(),
                redraws: "Finesse, Fig. 4; Odess, Fig. 23(a)",
                caption: "One thread, chunks in memory, 12 features. Reading the memory alone is the bound.",
            }
            .bars(&usual, SPEED, &|finding| finding.data.clone(), &draw::method_name),
        ];
        for data in draw::data_names(findings) {
            let of_data: Vec<&Finding> = best.iter().copied().filter(|one| one.data == data).collect();
            let is_shown =
                |one: &&Finding| one.data == data && is_of_usual_size(findings, one) && has_forms(findings, one);
            let forms: Vec<&Finding> = findings.iter().filter(is_shown).collect();
            figures.push(
                Drawing {
                    title: format!("Speed of sketches by size of chunks, {data}"),
                    redraws: "",
                    caption: "One thread; the fastest form of each method.",
                }
                .bars(&of_data, SPEED, &draw::size_name, &draw::method_name),
            );
            figures.push(
                Drawing {
                    title: format!("Speed of sketches by instruction set, {data}"),
                    redraws: "",
                    caption: "Methods that have forms for vectors; every form finds the same features.",
                }
                .bars(&forms, SPEED, &draw::method_name, &|finding| finding.parameter("isa")),
            );
        }
        figures.into_iter().flatten().collect()
    }

    fn advice(&self, findings: &[Finding]) -> Vec<String> {
        let best = fastest_forms(findings);
        let speed = |data: &str, method: &str| {
            let of_method = |one: &&&Finding| one.data == data && draw::method_name(one) == method;
            best.iter().filter(of_method).find(|one| is_of_usual_size(findings, one))?.median(SPEED.name)
        };
        let line = |data: String| {
            let (reference, plus) = (speed(&data, REFERENCE)?, speed(&data, "odess-plus")?);
            let against = |method: &str| Some(format!("{:.1} times {method}", plus / speed(&data, method)?));
            let others: Vec<String> = ["finesse", "odess"].into_iter().filter_map(against).collect();
            let others = if others.is_empty() { String::new() } else { format!(", {}", others.join(", ")) };
            Some(format!(
                "{data}: odess-plus sketches {plus:.2} GB/s, {:.1} times {REFERENCE}{others}.",
                plus / reference
            ))
        };
        draw::data_names(findings).into_iter().filter_map(line).collect()
    }
}

impl<'i> Cut<'i> {
    fn form(&self, method: &str, isa: &str, timed: Timed<'i>) -> Form<'i> {
        let expected = ("expected_bytes", self.expected_bytes.into());
        Form { parameters: row([("method", method.into()), ("isa", isa.into()), expected]), timed }
    }

    /// Work on all of the bytes.
    fn timed(&self, work: impl FnMut() -> u64 + 'i, truth: u64) -> Timed<'i> {
        Timed::new(Box::new(work), truth, self.bytes.len() as u64, self.chunks.len() as u64)
    }

    fn reading(&self) -> Form<'i> {
        let (isa, bytes) = (Isa::best(), self.bytes);
        let work = move || memory::largest(black_box(bytes), isa).into();
        self.form(READ, isa.name(), self.timed(work, memory::largest(bytes, Isa::SCALAR).into()))
    }

    /// A method in all its forms.
    fn sketching(&self, name: &str, amount: Amount) -> Result<Vec<Form<'i>>> {
        if name == word_lanes::NAME {
            return Ok(self.rolling(amount).into_iter().collect());
        }
        let oracle = Contender::named(name, Shape::DEFAULT, Isa::SCALAR)?;
        let has_forms = Contender::named(name, Shape::DEFAULT, Isa::best())?.is_vector();
        let isas = isas().filter(|isa| has_forms || *isa == Isa::SCALAR);
        isas.map(|isa| {
            let contender = Rc::new(Contender::named(name, Shape::DEFAULT, isa)?);
            let timed = Timed::sketching(contender, &oracle, &self.chunks, amount);
            Ok(self.form(name, isa.name(), timed))
        })
        .collect()
    }

    /// Odess+ as its paper rolls it, with four windows.
    fn rolling(&self, amount: Amount) -> Option<Form<'i>> {
        let contender = Contender::word_lanes(Windows::Four, Shape::DEFAULT)?;
        let oracle = Contender::odess_plus(Rate::DEFAULT, Shape::DEFAULT, Isa::SCALAR);
        let isa = contender.isa_name();
        Some(self.form(word_lanes::NAME, isa, Timed::sketching(Rc::new(contender), &oracle, &self.chunks, amount)))
    }

    /// Work of the chunker in all its forms.
    fn cutting(&self, name: &str, work: fn(&[u8], Sizes, Isa) -> u64) -> Vec<Form<'i>> {
        let (bytes, sizes) = (self.bytes, self.sizes);
        let truth = work(bytes, sizes, Isa::SCALAR);
        let form =
            |isa: Isa| self.form(name, isa.name(), self.timed(move || work(black_box(bytes), sizes, isa), truth));
        isas().map(form).collect()
    }
}

/// Cutting.
fn cut_alone(bytes: &[u8], sizes: Sizes, isa: Isa) -> u64 {
    let mut digest = Digest::default();
    let chunker = Lagged::new(sizes, &KEY, isa);
    SliceChunks::new(&chunker, bytes).for_each(|chunk| digest.add_number(chunk.len() as u64));
    digest.sum()
}

/// Cutting and sketching in one pass.
fn cut_sampling(mut bytes: &[u8], sizes: Sizes, isa: Isa) -> u64 {
    let (chunker, mut sketch) = (Lagged::new(sizes, &KEY, isa), SampleSketch::with_isa(Shape::DEFAULT, isa));
    let mut digest = Digest::default();
    while !bytes.is_empty() {
        let length = chunker.cut_sampling(bytes, |sample| sketch.add(sample.hash));
        digest.add_number(length as u64);
        digest.add(sketch.finish());
        bytes = &bytes[length..];
    }
    digest.sum()
}

impl Subject for Form<'_> {
    fn parameters(&self) -> Row {
        self.parameters.clone()
    }

    fn run(&mut self) -> Result<Outcome> {
        Ok(timed::outcome(self.timed.measure()))
    }
}

/// Returns, for every method on every data at every size, the form with the highest median.
fn fastest_forms(findings: &[Finding]) -> Vec<&Finding> {
    let speed = |finding: &Finding| finding.median(SPEED.name).unwrap_or(f64::NEG_INFINITY);
    let is_same = |one: &Finding, other: &Finding| {
        one.data == other.data
            && ["method", "expected_bytes"].iter().all(|key| one.parameter(key) == other.parameter(key))
    };
    let is_fastest = |one: &Finding| findings.iter().all(|other| !is_same(one, other) || speed(other) <= speed(one));
    findings.iter().filter(|one| is_fastest(one)).collect()
}

/// Tells whether its chunks are of the size that is shown where only one is.
fn is_of_usual_size(findings: &[Finding], one: &Finding) -> bool {
    draw::usual_size(findings).is_some_and(|size| size == draw::size_name(one))
}

/// Tells whether there are forms for several instruction sets.
fn has_forms(findings: &[Finding], one: &Finding) -> bool {
    let method = draw::method_name(one);
    findings.iter().any(|other| draw::method_name(other) == method && other.parameter("isa") != one.parameter("isa"))
}

#[cfg(test)]
mod tests {
    use super::super::study::tests::{findings, quick};
    use super::*;

    #[test]
    fn every_form_is_right_and_the_fastest_is_drawn() {
        let found = findings(&Speed, &quick());
        assert_eq!(draw::those(&found, &[("method", "odess-plus")]).len(), isas().count());
        assert_eq!(draw::those(&found, &[("method", "ntransform")]).len(), 1);
        let names: Vec<String> = fastest_forms(&found).into_iter().map(draw::method_name).collect();
        let has_lanes = Contender::word_lanes(Windows::Four, Shape::DEFAULT).is_some();
        assert_eq!(names.len(), NAMES_TIMED.len() + 2 + usize::from(has_lanes), "{names:?}");
        assert!(found.iter().all(|finding| finding.wrong.is_none()));
        assert_eq!(Speed.figures(&found).len(), 3);
        assert_eq!(Speed.advice(&found).len(), 1);
    }

    #[test]
    fn only_what_is_asked_for_is_measured() {
        let settings = Settings { methods: vec!["finesse".into()], expected_bytes: vec![4096], ..quick() };
        let (_folder, input) = super::super::study::tests::versions();
        let subjects = Speed.subjects(&input, &settings).unwrap();
        let rows: Vec<Row> = subjects.iter().map(|subject| subject.parameters()).collect();
        assert_eq!(rows.len(), 2);
        assert!(rows.iter().all(|row| row["expected_bytes"] == 4096));
    }
}
