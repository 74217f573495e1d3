//! `FastCDC`: Gear with two masks, so that lengths gather around the expected size.
//!
//! Sources: `FastCDC`, ATC'16, section 3 and Algorithm 1; TPDS'20, which rolls two bytes per step. The definition,
//! which is format:
//!
//! ```text
//! first   max(min, 1)
//! h(L)    sum over i in first ..= L of table[data[i]] << (L - i)    (mod 2^64: at most the last 64 bytes)
//! cut     the least L in first ..< max with h(L) & strict == 0, if L <  normal
//!                                       or  h(L) & loose  == 0, if L >= normal;   else max, or the end of the stream
//! k       log2 of expected, rounded
//! m       the most ones that a mask can have which alone gives an average of at most expected
//! strict  k + n ones, loose min(k - n, m) ones, n the level; at level 0 they are m + 1 and m ones
//! ones    bits 62 - floor(48 j / ones) for j in 0 ..< ones
//! normal  the least point in first ..= max that makes the average on random bytes at least expected
//! table   i-th little-endian u64 of BLAKE3's extendable output: "siltstone fastcdc table"
//! ```
//!
//! Reasons:
//! 1. **Cold, and the byte after.** As in the papers' pseudocode the hash starts at `first`, not a window before it,
//!    and the byte that completes it is the first of the next chunk.
//! 2. **Spread masks.** The papers pad masks with zeros so that 48 bytes take part in the decision; bits 15 to 62 see
//!    the last 16 to 63 bytes. Bit 63 stays free for the doubled sums of the 2020 form.
//! 3. **The normal point makes the average true.** With chances p = 2^-(k+n) before it and P = 2^-(k-n) after it a
//!    chunk is first + (1 - q) / p + q (1 - e^(-P (max - normal))) / P long, q = e^(-p (normal - first)). The papers'
//!    own choice, normal = expected, gives 1.14 times that at level 2 with min = expected / 4.
//! 4. **Level 0** is one mask in the papers, and its average first + 2^k. Two neighbouring masks are the nearest thing
//!    to it whose average can be chosen.
//! 5. **Two bytes per step**: `2 h(L)` and then `h(L + 1)` come from `h(L - 1)` by one shift instead of two, with a
//!    second table and a mask that are doubled. The cuts are the same.
//!
//! Cost: a table lookup, shift, addition and test per byte from `first` on.

use crate::normalised::normal_point;
use crate::rolling::positions_per_candidate;
use crate::{Chunker, Sizes};
use alloc::boxed::Box;
use siltstone_rolling::table;

/// Bytes rolled per step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// ATC'16.
    OneByte,
    /// TPDS'20.
    TwoBytes,
}

/// The chunkers `fastcdc-2016-nc0` .. `fastcdc-2020-nc3`.
#[derive(Clone, Debug)]
pub(crate) struct FastCdc {
    name: &'static str,
    sizes: Sizes,
    step: Step,
    masks: Masks,
    normal: usize,
    tables: Box<Tables>,
}

#[derive(Clone, Debug)]
struct Tables {
    single: [u64; 256],
    /// Each entry doubled.
    double: [u64; 256],
}

#[derive(Clone, Copy, Debug)]
struct Masks {
    strict: u64,
    loose: u64,
}

impl FastCdc {
    /// The chunker, normalised at `level`, known by `name`.
    pub(crate) fn new(name: &'static str, step: Step, level: u32, sizes: Sizes) -> Self {
        let single = table(None, b"siltstone fastcdc table", u64::from_le_bytes);
        let ones = Ones::of(level, sizes);
        Self {
            name,
            sizes,
            step,
            masks: Masks { strict: mask(ones.strict), loose: mask(ones.loose) },
            normal: ones.normal_point(sizes),
            tables: Box::new(Tables { single, double: single.map(|number| number << 1) }),
        }
    }

    /// The index in `bytes` of the first byte with which the hash has no bit of `mask`.
    #[inline]
    fn scan(&self, hash: &mut u64, bytes: &[u8], mask: u64) -> Option<usize> {
        match self.step {
            Step::OneByte => self.scan_bytes(hash, bytes, mask),
            Step::TwoBytes => self.scan_pairs(hash, bytes, mask),
        }
    }

    #[inline]
    fn scan_bytes(&self, hash: &mut u64, bytes: &[u8], mask: u64) -> Option<usize> {
        bytes.iter().position(|&byte| {
            *hash = (*hash << 1).wrapping_add(self.tables.single[usize::from(byte)]);
            *hash & mask == 0
        })
    }

    #[inline]
    fn scan_pairs(&self, hash: &mut u64, bytes: &[u8], mask: u64) -> Option<usize> {
        let pairs = bytes.chunks_exact(2);
        let rest = pairs.remainder();
        for (index, pair) in pairs.enumerate() {
            *hash = (*hash << 2).wrapping_add(self.tables.double[usize::from(pair[0])]);
            if *hash & mask << 1 == 0 {
                return Some(2 * index);
            }
            *hash = hash.wrapping_add(self.tables.single[usize::from(pair[1])]);
            if *hash & mask == 0 {
                return Some(2 * index + 1);
            }
        }
        let found = self.scan_bytes(hash, rest, mask);
        found.map(|at| bytes.len() - rest.len() + at)
    }
}

impl Chunker for FastCdc {
    fn name(&self) -> &'static str {
        self.name
    }

    fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn cut(&self, data: &[u8]) -> usize {
        let (first, end) = (first(self.sizes), data.len().min(self.sizes.max()));
        if end <= first {
            return end;
        }
        let (normal, mut hash) = (self.normal.min(end), 0);
        if let Some(at) = self.scan(&mut hash, &data[first..normal], self.masks.strict) {
            return first + at;
        }
        let found = self.scan(&mut hash, &data[normal..end], self.masks.loose);
        found.map_or(end, |at| normal + at)
    }
}

fn first(sizes: Sizes) -> usize {
    sizes.min().max(1)
}

/// Numbers of ones in the masks: one position in `2^ones` passes on random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ones {
    strict: u32,
    loose: u32,
}

impl Ones {
    fn of(level: u32, sizes: Sizes) -> Self {
        let wanted = positions_per_candidate(first(sizes), sizes);
        let most = (1..32).take_while(|ones| positions(*ones) <= wanted).last().unwrap_or(0);
        if level == 0 {
            return Self { strict: most + 1, loose: most };
        }
        let ones = rounded_log2(sizes.expected() as u64);
        Self { strict: ones + level, loose: most.min(ones - level) }
    }

    /// `normal` of the definition.
    fn normal_point(self, sizes: Sizes) -> usize {
        normal_point(sizes, first(sizes), 1.0 / positions(self.strict), 1.0 / positions(self.loose))
    }
}

/// Positions to one that a mask of that many ones lets pass.
fn positions(ones: u32) -> f64 {
    f64::from(1u32 << ones)
}

/// The integer nearest to `log2(number)`, `number > 0`.
fn rounded_log2(number: u64) -> u32 {
    let below = number.ilog2();
    let square = u128::from(number) * u128::from(number);
    if square >> (2 * below + 1) == 0 { below } else { below + 1 }
}

/// Returns a mask of that many ones, spread over bits 15 to 62.
fn mask(ones: u32) -> u64 {
    const BITS: u32 = 48;
    (0..ones).fold(0, |mask, one| mask | 1 << (62 - one * BITS / ones))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_round_at_the_root_of_two() {
        let rounded = [1, 2, 3, 5, 6, 11, 12, 5000, 5792, 5793, 8192, 11585, 11586].map(rounded_log2);
        assert_eq!(rounded, [0, 1, 2, 2, 3, 3, 4, 12, 12, 13, 13, 13, 14]);
    }

    #[test]
    fn masks_hold_their_ones_in_their_place() {
        for ones in 1..=48 {
            assert_eq!(mask(ones).count_ones(), ones);
            assert_eq!(mask(ones) & !(u64::MAX >> 1) | mask(ones) & ((1 << 15) - 1), 0);
        }
    }

    #[test]
    fn levels_lie_around_the_expected_size() {
        let sizes = Sizes::quarter(8 << 10).unwrap();
        let ones = |level| Ones::of(level, sizes);
        assert_eq!(ones(2), Ones { strict: 15, loose: 11 });
        assert_eq!(ones(0), Ones { strict: 13, loose: 12 });
        let normal = |level| ones(level).normal_point(sizes);
        assert!(normal(1) < normal(2) && normal(2) < normal(3) && normal(3) < 8 << 10);
    }
}
