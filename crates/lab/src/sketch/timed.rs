//! Timing of sketches: one thread makes all sketches of chunks that lie in memory. What it found is held against
//! what the scalar form finds, by a digest whose cost is a hundredth of the fastest method's; a run that finds
//! something else has no time.

use super::contender::Contender;
use crate::experiment::{Outcome, Row, Sample};
use crate::settings::Settings;
use crate::table::{as_float, mb_per_s};
use crate::thread_time;
use siltstone_similar::sketch::{Sketch, Sketcher};
use std::hint::black_box;
use std::rc::Rc;

/// Amount that is timed: a run must be long beside what disturbs it, and not all of a large input is needed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Amount {
    /// Chunks for forms with vectors, bytes.
    pub(super) bytes: u64,
    /// For those without, which are slow.
    slow_bytes: u64,
}

impl Amount {
    /// Returns the amount that the settings let be timed.
    pub(super) fn of(settings: &Settings) -> Self {
        let divisor = if settings.quick { 4 } else { 1 };
        Self { bytes: (256 << 20) / divisor, slow_bytes: (32 << 20) / divisor }
    }
}

/// Work whose result is known.
pub(super) struct Timed<'i> {
    work: Box<dyn FnMut() -> u64 + 'i>,
    truth: u64,
    bytes: u64,
    chunks: u64,
}

/// Measures of one run.
pub(super) type Values = Vec<(String, f64)>;

impl<'i> Timed<'i> {
    /// Work on so many bytes in so many chunks, which must give this digest.
    pub(super) fn new(work: Box<dyn FnMut() -> u64 + 'i>, truth: u64, bytes: u64, chunks: u64) -> Self {
        Self { work, truth, bytes, chunks }
    }

    /// The sketches of the first chunks, as many as make this amount; `oracle` is the same contender in its scalar
    /// form.
    pub(super) fn sketching(
        contender: Rc<Contender>,
        oracle: &Contender,
        chunks: &Rc<Vec<&'i [u8]>>,
        amount: Amount,
    ) -> Self {
        let bytes_max = if contender.is_vector() { amount.bytes } else { amount.slow_bytes };
        let (count, bytes) = first(chunks, bytes_max);
        let truth = digest_of_all(oracle.sketcher(), &chunks[..count]);
        let chunks = Rc::clone(chunks);
        let work = move || digest_of_all(contender.sketcher(), black_box(&chunks[..count]));
        Self::new(Box::new(work), truth, bytes, count as u64)
    }

    /// One run; `Err` says that its result is wrong.
    pub(super) fn measure(&mut self) -> Result<Values, String> {
        let (seconds, found) = thread_time::of(|| (self.work)());
        if found != self.truth {
            return Err("other features than the scalar form finds".into());
        }
        let values = [
            ("gb_per_s", mb_per_s(self.bytes, seconds) / 1000.0),
            ("seconds", seconds),
            ("average_bytes", (as_float(self.bytes) / as_float(self.chunks).max(1.0)).round()),
            ("seen_mb", as_float(self.bytes) / 1e6),
        ];
        Ok(values.map(|(name, value)| (name.to_owned(), value)).into())
    }
}

/// The outcome of a run with these measures.
pub(super) fn outcome(measured: Result<Values, String>) -> Outcome {
    match measured {
        Ok(values) => Outcome::Right(vec![Sample { at: Row::new(), values }]),
        Err(why) => Outcome::Wrong(why),
    }
}

/// Returns how many of the first chunks make this many bytes, or one more; and their bytes.
fn first(chunks: &[&[u8]], bytes_max: u64) -> (usize, u64) {
    let (mut count, mut bytes) = (0, 0);
    while count < chunks.len() && bytes < bytes_max {
        bytes += chunks[count].len() as u64;
        count += 1;
    }
    (count, bytes)
}

fn digest_of_all(sketcher: &dyn Sketcher, chunks: &[&[u8]]) -> u64 {
    let mut digest = Digest::default();
    for chunk in chunks {
        digest.add(sketcher.sketch(chunk));
    }
    digest.sum()
}

/// A sum of numbers, each times an odd one of its own: cheap beside what is measured, and no number is left out unseen.
#[derive(Default)]
pub(super) struct Digest {
    sum: u64,
    factor: u64,
}

impl Digest {
    /// One more number.
    pub(super) fn add_number(&mut self, number: u64) {
        self.factor += 2;
        self.sum = self.sum.wrapping_add((number + 1).wrapping_mul(self.factor - 1));
    }

    /// All features of one more sketch, or that there is none.
    pub(super) fn add(&mut self, sketch: Option<Sketch>) {
        match sketch {
            Some(sketch) => sketch.features().iter().for_each(|feature| self.add_number((*feature).into())),
            None => self.add_number(u64::MAX >> 1),
        }
    }

    /// Returns the digest of all that was added.
    pub(super) fn sum(&self) -> u64 {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deterministic::Sequence;
    use siltstone_chunk::Isa;
    use siltstone_similar::sketch::Shape;

    #[test]
    fn what_finds_something_else_has_no_time() {
        let bytes = Sequence::new(3).bytes(50_000);
        let chunks = Rc::new(bytes.chunks(5000).collect::<Vec<_>>());
        let contender = |name| Contender::named(name, Shape::DEFAULT, Isa::best()).unwrap();
        let timed = |name, oracle| {
            Timed::sketching(Rc::new(contender(name)), &contender(oracle), &chunks, Amount::of(&Settings::default()))
        };
        let right = timed("odess", "odess").measure().unwrap();
        assert_eq!(right[2], ("average_bytes".to_owned(), 5000.0));
        assert!(timed("odess", "finesse").measure().is_err());
        assert!(matches!(outcome(Err("w".into())), Outcome::Wrong(_)));
    }

    #[test]
    fn the_first_chunks_make_an_amount() {
        let chunks = [[1; 10].as_slice(), &[2; 10], &[3; 10]];
        assert_eq!((first(&chunks, 11), first(&chunks, 100), first(&chunks, 0)), ((2, 20), (3, 30), (0, 0)));
    }

    #[test]
    fn a_digest_sees_every_number_and_its_place() {
        let of = |numbers: &[u64]| {
            let mut digest = Digest::default();
            for number in numbers {
                digest.add_number(*number);
            }
            digest.sum()
        };
        assert_ne!(of(&[1, 2, 3]), of(&[1, 3, 2]));
        assert_ne!(of(&[1, 2]), of(&[1, 2, 0]));
    }
}
