//! AE: a chunk ends w bytes after the first position whose value nothing before it reaches and nothing in the w after
//! it exceeds.
//!
//! Source: AE, TC'17, Algorithm 1; AE-Min is the same with the order turned round. The definition, which is format; a
//! chunk's first position is 0, `v(i)` the value at position i:
//!
//! ```text
//! record     a position i >= min whose value is beyond those of all positions min ..< i     (beyond: >, for AE-Min <)
//! cut        the least i + w + 1 over records i such that no position in i + 1 ..= i + w is a record and all of them,
//!            i + w included, have a value inside the stream and the limit; otherwise max, or the end of the stream
//! v(i)       byte i (VectorCDC, TOS'25), or bytes i ..< i + 8 as a big-endian number (TC'17, section 3.1)
//! ```
//!
//! **Window.** `w` is found so that the average on random bytes is the expected size `e` (less `min`, from which the
//! search begins):
//! - *Eight-byte values* hardly ever tie. Measure positions in windows. If `g(x) / x` is the density of "x is a record
//!   and the chunk has not ended before", then `x g(x)` is the integral of g over `x - 1 .. x` and `g = 1` on `0 .. 1`:
//!   g is Dickman's function. A record at x is the last with probability `x / (x + 1)`. So a chunk is longer than x
//!   windows with probability `g(x)`, and the mean length is the integral of g over all x, which is e^gamma:
//!   `w = e / 1.78107`. (The paper's section 3.1 estimates `(e - 1) w = 1.718 w`, 3.5 % short: its sum of probabilities
//!   counts positions after the end.)
//! - *Single bytes* tie: the first 255 ends the search. From a record of value m, `q = (255 - m) / 256` is the chance
//!   that a byte exceeds it, and the mean rest is `s w + (1 - s) (g + mean rest over the values above m)` with
//!   `s = (1 - q)^w` and `g` the mean of a geometric distribution cut off at w. For w far above 256 it comes to
//!   `w + 256`.
//!
//! **One pass.** `VectorCDC` finds each record by a range scan and then the extreme byte of the whole window after it,
//! which is thrown away when a later record comes. Neither is needed. While no byte of a block exceeds the record, the
//! block is done; when one does, the extreme of that block is the next record, whatever lies between: inside a block
//! shorter than w no chunk can end. And a record of 255 (0 for AE-Min) is the last one: nothing after it need be looked
//! at.

mod bytes;
mod opt1;
mod opt2;
mod wide;

pub use opt1::AeOpt1;
pub use opt2::AeOpt2;

use crate::average::{floor, least_reaching, power};
use crate::scalar::{Number, first};
use crate::{Chunker, Isa, Sizes};
use siltstone_simd::Simd;

/// The extreme that is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    /// AE-Max.
    Max,
    /// AE-Min.
    Min,
}

/// The value at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// The byte there.
    Byte,
    /// The eight bytes from there on, as a big-endian number.
    EightBytes,
}

/// The chunkers `ae-max`, `ae-min`, `ae8-max`, `ae8-min`.
#[derive(Clone, Copy, Debug)]
pub struct Ae {
    name: &'static str,
    extreme: Extreme,
    value: Value,
    sizes: Sizes,
    window: usize,
    isa: Isa,
}

impl Ae {
    /// The chunker in its form for `isa`, known by `name`.
    pub fn new(name: &'static str, extreme: Extreme, value: Value, sizes: Sizes, isa: Isa) -> Self {
        Self { name, extreme, value, sizes, window: window(value, sizes), isa }
    }

    /// Positions after a record that must hold no other, in bytes.
    pub fn window(&self) -> usize {
        self.window
    }
}

impl Chunker for Ae {
    fn name(&self) -> &'static str {
        self.name
    }

    fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn cut(&self, data: &[u8]) -> usize {
        let Self { sizes, window, extreme, value, isa, .. } = *self;
        sizes.cut(data, |searched| Some(cut(searched, window, extreme, value, isa)))
    }
}

/// The first cut of `data`; its length if there is none.
fn cut(data: &[u8], window: usize, extreme: Extreme, value: Value, isa: Isa) -> usize {
    match (extreme, value) {
        (Extreme::Max, Value::Byte) => bytes::cut::<Greatest>(data, window, isa),
        (Extreme::Min, Value::Byte) => bytes::cut::<Least>(data, window, isa),
        (Extreme::Max, Value::EightBytes) => wide::cut::<Greatest>(data, window, isa),
        (Extreme::Min, Value::EightBytes) => wide::cut::<Least>(data, window, isa),
    }
}

/// TC'17, Algorithm 1: two questions of each value. The first cut of `data`; its length if there is none.
fn cut_scalar<N: Number, O: Order>(data: &[u8], window: usize) -> usize {
    let mut at = 0;
    while at < N::count(data) {
        let (record, last) = (N::read(data, at), at + window);
        match first(data, at + 1, |i, value| O::beyond(value, record) || i == last) {
            Some(i) if O::beyond(N::read(data, i), record) => at = i,
            Some(last) => return last + 1,
            None => break,
        }
    }
    data.len()
}

/// An order on values: which of two is beyond the other.
trait Order {
    const MAX: bool;

    /// The byte that nothing is beyond.
    const LAST: u8 = if Self::MAX { u8::MAX } else { 0 };

    #[inline(always)]
    fn beyond<T: PartialOrd>(a: T, b: T) -> bool {
        if Self::MAX { a > b } else { a < b }
    }
}

/// Tells whether some lane is beyond the same lane of `record`.
#[inline(always)]
fn any_beyond<S: Simd, O: Order>(s: S, bytes: S::Bytes, record: S::Bytes) -> bool {
    if O::MAX { s.any_gt(bytes, record) } else { s.any_gt(record, bytes) }
}

struct Greatest;
struct Least;

impl Order for Greatest {
    const MAX: bool = true;
}

impl Order for Least {
    const MAX: bool = false;
}

/// The window that gives the expected size.
fn window(value: Value, sizes: Sizes) -> usize {
    /// e to the power of Euler's constant.
    const MEAN_IN_WINDOWS: f64 = 1.781_072_417_990_198;
    let goal = sizes.searched();
    let window = match value {
        Value::EightBytes => floor(f64::from(goal) / MEAN_IN_WINDOWS + 0.5),
        Value::Byte => least_reaching(1, goal, f64::from(goal), mean_of_bytes).into(),
    };
    usize::try_from(window.max(1)).unwrap_or(usize::MAX)
}

/// Mean chunk length on random bytes, single bytes being the values.
fn mean_of_bytes(window: u32) -> f64 {
    let w = f64::from(window);
    // Mean rest after a record of each value, from 255 down; values above it are equally likely next.
    let (mut sum_above, mut rest) = (0.0, w);
    for above in 0..256 {
        if above > 0 {
            let q = f64::from(above) / 256.0;
            let none = power(1.0 - q, window);
            let next = 1.0 / q - w * none / (1.0 - none);
            rest = none * w + (1.0 - none) * (next + sum_above / f64::from(above));
        }
        sum_above += rest;
    }
    1.0 + sum_above / 256.0
}
