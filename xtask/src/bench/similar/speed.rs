//! How fast: every sketch in every form, on the same chunks in memory, one thread, beside what reading the memory alone takes. All
//! rows once, then all again, so that a slow moment of the machine meets all of them. What every single run found is compared with
//! what the scalar form finds; a row that ever differs shows no time.
//!
//! Siltstone's own has two rows: the sketch of a chunk that was cut before (`samples`), and cutting with sketching in one pass
//! (`cut+samples`), which is held against cutting alone (`cut`).

use super::Findings;
use crate::bench::publish::{Row, table_of};
use crate::workspace;
use anyhow::Result;
use serde_json::{Value, json};
use siltstone_chunk::{ALGORITHMS, DEFAULT_NAME, Isa, Lagged, Sizes, SliceChunks};
use siltstone_lab::corpus::Amount;
use siltstone_lab::data::{Data, Source};
use siltstone_lab::memory;
use siltstone_lab::statistics::{Spread, rounded};
use siltstone_lab::table::as_float;
use siltstone_similar::sketch::{METHODS, Method, SampleSketch, Shape, Sketch};
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

/// Expected sizes of chunks, bytes.
const AVERAGES: [u32; 4] = [4 << 10, 8 << 10, 16 << 10, 64 << 10];
/// Of a set of data, bytes; methods without vectors are slow, and see less.
const BYTES: usize = 256 << 20;
const SLOW_BYTES: usize = 16 << 20;
const QUICK_DIVISOR: usize = 4;

const KEY: [u8; 32] = [0; 32];
const READ: &str = "memory-read";
const CUT: &str = "cut";
/// Rows that columns divide by.
const YARDSTICKS: [(&str, &str); 4] = [
    ("ratio_to_ntransform", "ntransform"),
    ("ratio_to_odess", "odess"),
    ("ratio_to_cut", CUT),
    ("share_of_read", READ),
];

const COLUMNS: [&str; 10] = [
    "method",
    "isa",
    "average_bytes",
    "seen_mb",
    "gb_per_s",
    "spread_percent",
    "ratio_to_ntransform",
    "ratio_to_odess",
    "ratio_to_cut",
    "share_of_read",
];

/// Bytes, and the same cut to chunks.
#[derive(Clone, Copy)]
struct Input<'d> {
    bytes: &'d [u8],
    chunks: &'d [&'d [u8]],
}

/// What is run: it gives a digest of what it found.
type Work = Box<dyn FnMut(Input) -> u64>;

/// A row while it is measured.
struct Runner<'d> {
    method: &'static str,
    isa: Isa,
    work: Work,
    input: Input<'d>,
    /// What every run must find.
    truth: u64,
    seconds: Vec<f64>,
    is_wrong: bool,
}

/// On these sources, or on random bytes and releases of source code.
pub(super) fn measure(given: Vec<Source>, rounds: u64, is_quick: bool) -> Result<Findings> {
    let (amount, divisor) = if is_quick { (Amount::Little, QUICK_DIVISOR) } else { (Amount::Memory, 1) };
    let sources = if given.is_empty() {
        vec![
            Source::Random { name: "random", bytes: BYTES / divisor },
            Source::Versions(workspace::corpora()?.releases(amount)?),
        ]
    } else {
        given
    };
    let mut findings = Findings::default();
    for source in sources {
        let mut data = source.load()?;
        data.bytes.truncate(BYTES / divisor);
        for average in AVERAGES {
            findings.add(&data, average, rounds, SLOW_BYTES / divisor)?;
        }
        let megabytes = data.bytes.len() / 1_000_000;
        findings.notes.push(format!("speed, {}: the first {megabytes} MB of {}", data.name, data.description));
    }
    findings.notes.push(format!(
        "speed: one thread; rounds: {rounds}, all rows once in each; shown is the median, spread is (slowest - fastest) / median; \
         chunks are cut by {DEFAULT_NAME}; seen_mb is how much of the data a row sees"
    ));
    Ok(findings)
}

impl Findings {
    /// One set of data, cut to chunks of one size.
    fn add(&mut self, data: &Data, average: u32, rounds: u64, slow_bytes: usize) -> Result<()> {
        let default = ALGORITHMS.iter().find(|algorithm| algorithm.name == DEFAULT_NAME).expect("it is there");
        let sizes = default.usual_sizes(average)?;
        let chunks: Vec<&[u8]> = SliceChunks::new(&Lagged::new(sizes, &KEY, Isa::best()), &data.bytes).collect();
        let all = Input { bytes: &data.bytes, chunks: &chunks };
        let mut runners = vec![read(all)];
        runners.extend(METHODS.iter().flat_map(|method| sketchers(method, all, all.first(slow_bytes))));
        for (name, work) in [(CUT, cut as fn(Sizes, Isa) -> Work), ("cut+samples", cut_sampling), ("samples", samples)]
        {
            let truth = work(sizes, Isa::SCALAR)(all);
            runners.extend(Isa::available().map(|isa| Runner::new(name, isa, work(sizes, isa), all, truth)));
        }
        for round in 0..rounds {
            eprintln!("{}, {average} bytes: round {} of {rounds}, {} rows", data.name, round + 1, runners.len());
            runners.iter_mut().for_each(Runner::run);
        }
        let wrong = runners.iter().filter(|runner| runner.is_wrong);
        self.wrong.extend(wrong.map(|runner| format!("{} on {}, {}, {average}", runner.method, runner.isa, data.name)));
        let rows: Vec<Row> = runners.iter().map(|runner| runner.row(&data.name, average, &runners)).collect();
        let title = format!("Speed of sketches: {}, chunks of {} KiB expected", data.name, average >> 10);
        let _ = write!(self.tables, "\n### {title}\n\n{}", table_of(&COLUMNS, &rows));
        self.rows.extend(rows);
        Ok(())
    }
}

impl Input<'_> {
    /// The first chunks, of so many bytes in all, or one more.
    fn first(self, bytes_wanted: usize) -> Self {
        let (mut bytes, mut count) = (0, 0);
        while count < self.chunks.len() && bytes < bytes_wanted {
            bytes += self.chunks[count].len();
            count += 1;
        }
        Self { bytes: &self.bytes[..bytes], chunks: &self.chunks[..count] }
    }
}

fn read(input: Input) -> Runner {
    let isa = Isa::highest();
    let work: Work = Box::new(move |input| memory::largest(input.bytes, isa).into());
    Runner::new(READ, isa, work, input, memory::largest(input.bytes, Isa::SCALAR).into())
}

/// A method in all its forms; without vectors on less.
fn sketchers<'d>(method: &'static Method, all: Input<'d>, slow: Input<'d>) -> Vec<Runner<'d>> {
    let work = |isa| -> Work {
        let sketcher = method.make(Shape::DEFAULT, isa);
        Box::new(move |input| {
            let mut digest = Digest::default();
            for chunk in input.chunks {
                digest.add(sketcher.sketch(chunk));
            }
            digest.sum
        })
    };
    let truth = |input| work(Isa::SCALAR)(input);
    let mut forms = vec![Runner::new(method.name, Isa::SCALAR, work(Isa::SCALAR), slow, truth(slow))];
    if method.vector {
        let truth = truth(all);
        let vectors = Isa::available().filter(|isa| *isa != Isa::SCALAR);
        forms.extend(vectors.map(|isa| Runner::new(method.name, isa, work(isa), all, truth)));
    }
    forms
}

/// Cutting alone.
fn cut(sizes: Sizes, isa: Isa) -> Work {
    let chunker = Lagged::new(sizes, &KEY, isa);
    Box::new(move |input| {
        let mut digest = Digest::default();
        SliceChunks::new(&chunker, input.bytes).for_each(|chunk| digest.add_number(chunk.len() as u64));
        digest.sum
    })
}

/// Cutting and sketching in one pass.
fn cut_sampling(sizes: Sizes, isa: Isa) -> Work {
    let chunker = Lagged::new(sizes, &KEY, isa);
    let mut sketch = SampleSketch::with_isa(Shape::DEFAULT, isa);
    Box::new(move |input| {
        let (mut digest, mut rest) = (Digest::default(), input.bytes);
        while !rest.is_empty() {
            let length = chunker.cut_sampling(rest, |sample| sketch.add(sample.hash));
            digest.add_number(length as u64);
            digest.add(sketch.finish());
            rest = &rest[length..];
        }
        digest.sum
    })
}

/// Sketches of what is cut.
fn samples(sizes: Sizes, isa: Isa) -> Work {
    let chunker = Lagged::new(sizes, &KEY, isa);
    let mut sketch = SampleSketch::with_isa(Shape::DEFAULT, isa);
    Box::new(move |input| {
        let mut digest = Digest::default();
        for chunk in input.chunks {
            chunker.samples(chunk, |sample| sketch.add(sample.hash));
            digest.add(sketch.finish());
        }
        digest.sum
    })
}

/// A sum of numbers, each times an odd one of its own: cheap beside what is measured, and no number is left out unseen.
#[derive(Default)]
struct Digest {
    sum: u64,
    factor: u64,
}

impl Digest {
    fn add_number(&mut self, number: u64) {
        self.factor += 2;
        self.sum = self.sum.wrapping_add((number + 1).wrapping_mul(self.factor - 1));
    }

    fn add(&mut self, sketch: Option<Sketch>) {
        match sketch {
            Some(sketch) => sketch.features().iter().for_each(|feature| self.add_number((*feature).into())),
            None => self.add_number(u64::MAX >> 1),
        }
    }
}

impl<'d> Runner<'d> {
    fn new(method: &'static str, isa: Isa, work: Work, input: Input<'d>, truth: u64) -> Self {
        Self { method, isa, work, input, truth, seconds: Vec::new(), is_wrong: false }
    }

    /// One measurement.
    fn run(&mut self) {
        if !self.is_wrong {
            let begin = Instant::now();
            let found = (self.work)(black_box(self.input));
            self.seconds.push(begin.elapsed().as_secs_f64());
            self.is_wrong = found != self.truth;
        }
    }

    /// Median speed; `None` if what it found was wrong.
    fn gb_per_s(&self) -> Option<f64> {
        let seconds = Spread::of(self.seconds.iter().copied());
        (!self.is_wrong).then(|| as_float(self.input.bytes.len() as u64) / 1e9 / seconds.median)
    }

    fn row(&self, data: &str, average: u32, all: &[Runner]) -> Row {
        let speed = self.gb_per_s();
        let spread = speed.map(|_| Spread::of(self.seconds.iter().copied()).percent());
        let bytes = as_float(self.input.bytes.len() as u64);
        let mut row = Row::new();
        let mut set = |key: &str, value: Value| row.insert(key.to_owned(), value);
        set("table", json!("speed"));
        set("data", json!(data));
        set("chunk_bytes", json!(average));
        set("method", json!(self.method));
        set("isa", json!(self.isa.name()));
        set("average_bytes", json!((bytes / as_float(self.input.chunks.len() as u64)).round()));
        set("seen_mb", json!((bytes / 1e6).round()));
        set("gb_per_s", number(speed, 3));
        set("spread_percent", number(spread, 1));
        for (column, yardstick) in YARDSTICKS {
            set(column, number(speed.zip(against(all, yardstick, self)).map(|(speed, other)| speed / other), 3));
        }
        set("is_right", json!(!self.is_wrong));
        row
    }
}

/// The speed of the yardstick: cutting is held against cutting in the same form, all else against the only form there is.
fn against(all: &[Runner], yardstick: &str, runner: &Runner) -> Option<f64> {
    let is_it = |other: &&Runner| other.method == yardstick && (yardstick != CUT || other.isa == runner.isa);
    let cuts = runner.method.contains(CUT);
    all.iter().find(is_it).filter(|_| yardstick != CUT || cuts)?.gb_per_s()
}

fn number(value: Option<f64>, digits: i32) -> Value {
    json!(value.map(|value| rounded(value, digits)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_lab::deterministic::Sequence;

    #[test]
    fn all_rows_are_measured_and_right() {
        let data = Data::single("d", String::new(), Sequence::new(4).bytes(300_000));
        let mut findings = Findings::default();
        findings.add(&data, 4 << 10, 1, 50_000).unwrap();
        assert_eq!(findings.wrong, [""; 0]);
        let row = |method: &str| findings.rows.iter().find(|row| row["method"] == method).unwrap();
        assert!(row("ntransform")["gb_per_s"].as_f64().unwrap() > 0.0);
        assert_eq!(row("ntransform")["ratio_to_ntransform"], 1.0);
        assert!(row("cut+samples")["ratio_to_cut"].is_number() && row("samples")["ratio_to_cut"].is_null());
        assert!(COLUMNS.iter().all(|column| row("odess-plus").contains_key(*column)));
    }

    #[test]
    fn what_finds_something_else_has_no_time() {
        let chunks: [&[u8]; 1] = [&[1, 2]];
        let input = Input { bytes: chunks[0], chunks: &chunks };
        let mut runner = Runner::new("broken", Isa::SCALAR, Box::new(|_| 8), input, 7);
        runner.run();
        let row = runner.row("d", 4096, &[]);
        assert_eq!((&row["gb_per_s"], &row["is_right"]), (&Value::Null, &json!(false)));
    }

    #[test]
    fn a_digest_sees_every_number_and_its_place() {
        let of = |numbers: &[u64]| {
            let mut digest = Digest::default();
            for number in numbers {
                digest.add_number(*number);
            }
            digest.sum
        };
        assert_ne!(of(&[1, 2, 3]), of(&[1, 3, 2]));
        assert_ne!(of(&[1, 2]), of(&[1, 2, 0]));
    }
}
