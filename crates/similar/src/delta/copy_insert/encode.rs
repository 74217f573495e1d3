//! Finding what target and base have in common.
//!
//! ```text
//! copy what both begin with; leave what both end with for the last copy; in between, from each place where they differ:
//!   near    the first place where the base goes on as expected: 4 equal bytes after up to 7 others, 8 after more
//!   far     if that is not sure (16 bytes): the first word before it that is entered in the index of the base, with all that is
//!           equal around it, if that is 24 bytes or more; the index is made when the first word is to be looked up
//!   copy the longer one; without any go on 61 bytes later
//! ```
//!
//! Reasons, with the bytes of pools of real pairs at zstd level 3 (text: source releases; programs: compiled ones;
//! 2026-11):
//! 1. **Four bytes near**: with 8 everywhere programs took 8 % more, with 4 everywhere text 1 % more. A literal
//!    replaced in place costs a record of two bytes; after many literals a few equal bytes are mostly chance.
//! 2. **24 bytes far**: with 20 text took 1 % more, with 32 programs 1 %. Literals are compressed with those of other
//!    deltas; a record of five bytes is not.
//! 3. **Sure after 16 bytes**: with 24 the size was the same within 0.2 %, and programs 9 % slower.
//! 4. **Less patience after 128 literals**: every second word is looked up, after 256 every third. With half of that up
//!    to 1.4 % more bytes, 5-12 % faster; with twice that up to 0.7 % fewer, 4-8 % slower.

use super::compare::{common_prefix, common_suffix, equal_mask, word};
use super::index::{Index, WORDS};
use super::{Parts, record};
use crate::compare::{BLOCK_BYTES, Compare, Scalar, Vectors};
use siltstone_simd::{Kernel, Simd};

/// Bytes that are copied where the base goes on as expected, a few literals after the last copy.
const NEAR_BYTES_MIN: usize = 4;
/// A bit for each place that is so few literals after the last copy.
const SOON: u64 = 0xFF;
/// Bytes that are copied from elsewhere.
const FAR_BYTES_MIN: usize = 24;
/// Bytes for which the base must go on as expected, so that nothing else is looked for.
const SURE_BYTES: usize = 16;
/// The base-two logarithm of the literals after which some words are left out.
const PATIENCE_BITS: u32 = 7;
/// Places that one look tells about: the last of a block begin what it does not show whole.
const STEP_BYTES: usize = BLOCK_BYTES + 1 - NEAR_BYTES_MIN;

/// An encoding to be run. It tells whether it took at most `bytes_max` bytes; if not, only some are written.
pub(super) struct Encode<'a> {
    pub(super) base: &'a [u8],
    pub(super) target: &'a [u8],
    pub(super) bytes_max: usize,
    pub(super) index: &'a mut Index,
    pub(super) parts: &'a mut Parts,
}

impl Kernel for Encode<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> bool {
        self.with(Vectors(s))
    }
}

impl Encode<'_> {
    /// Without vectors.
    pub(super) fn scalar(self) -> bool {
        self.with(Scalar)
    }

    #[inline(always)]
    fn with(self, compare: impl Compare) -> bool {
        let Encode { base, target, bytes_max, index, parts } = self;
        let bytes = base.len().min(target.len());
        let prefix = common_prefix(compare, base, target, bytes);
        let suffix = common_suffix(compare, base, target, bytes - prefix);
        let suffix = if suffix < NEAR_BYTES_MIN { 0 } else { suffix };
        let (base_end, end) = (base.len() - suffix, target.len() - suffix);
        let bytes_max = bytes_max.saturating_add(parts.bytes());
        let (is_indexed, done, next) = (false, 0, 0);
        let mut search = Search { compare, base, target, base_end, end, index, is_indexed, done, next, parts };
        if prefix >= NEAR_BYTES_MIN {
            search.copy(Match { at: 0, from: 0, bytes: prefix });
        }
        search.all(bytes_max)
    }
}

/// Bytes of the target that are in the base too.
#[derive(Clone, Copy)]
struct Match {
    /// Begin in the target.
    at: usize,
    /// Begin in the base.
    from: usize,
    bytes: usize,
}

struct Search<'a, C> {
    compare: C,
    base: &'a [u8],
    target: &'a [u8],
    /// Begin of the common end, in the base.
    base_end: usize,
    /// Begin of the common end, in the target.
    end: usize,
    index: &'a mut Index,
    is_indexed: bool,
    /// Bytes of the target that records have been written for.
    done: usize,
    /// End of the last copy, in the base.
    next: usize,
    parts: &'a mut Parts,
}

impl<C: Compare> Search<'_, C> {
    /// Writes all records, as long as they are at most `bytes_max` bytes with what was there before.
    #[inline(always)]
    fn all(mut self, bytes_max: usize) -> bool {
        let mut at = self.done;
        while at < self.end {
            if self.parts.bytes() > bytes_max {
                return false;
            }
            let until = self.end.min(at + STEP_BYTES);
            at = match self.find(at, until) {
                Some(found) => {
                    self.copy(found);
                    self.done
                }
                None => until,
            };
        }
        if self.done < self.target.len() {
            self.last();
        }
        self.parts.bytes() <= bytes_max
    }

    /// Finds a copy among the next bytes.
    #[inline(always)]
    fn find(&mut self, at: usize, until: usize) -> Option<Match> {
        let near = self.near(at).filter(|near| near.at < until);
        let until = match near {
            Some(near) if near.bytes < SURE_BYTES => near.at + near.bytes,
            Some(near) if near.at < at + FAR_BYTES_MIN => return Some(near),
            Some(near) => near.at,
            None => until,
        };
        match (near, self.far(at, until)) {
            (Some(near), Some(far)) if far.bytes <= near.bytes && near.at < far.at + far.bytes => Some(near),
            (near, far) => far.or(near),
        }
    }

    /// The first match where the base goes on as if literals had replaced as many of its bytes.
    #[inline(always)]
    fn near(&self, at: usize) -> Option<Match> {
        let from = self.next + (at - self.done);
        let equal = equal_mask(self.compare, self.base.get(from..)?, self.target.get(at..)?);
        let pairs = equal & equal >> 1;
        let fours = pairs & pairs >> 2;
        let eights = fours & fours >> 4;
        let begins = if at == self.done { eights | fours & SOON } else { eights };
        if begins == 0 {
            return None;
        }
        let skipped = begins.trailing_zeros() as usize;
        let (at, from) = (at + skipped, from + skipped);
        if at >= self.end {
            return None;
        }
        let bytes = self.extend(at, from);
        (bytes >= NEAR_BYTES_MIN).then_some(Match { at, from, bytes })
    }

    /// The first match of a word between these places with one that is entered.
    #[inline(always)]
    fn far(&mut self, mut at: usize, until: usize) -> Option<Match> {
        if !self.is_indexed {
            if self.end - self.done < FAR_BYTES_MIN {
                return None;
            }
            self.index.build(self.base);
            self.is_indexed = true;
        }
        while at < until {
            let impatience = (at - self.done) >> PATIENCE_BITS;
            if impatience == 0 && until - at >= WORDS {
                let known = self.index.known(self.target[at..].first_chunk()?);
                if known == 0 {
                    at += WORDS;
                    continue;
                }
                at += known.trailing_zeros() as usize;
            }
            let found = self.entered(at, word(self.target, at)?);
            if found.is_some() {
                return found;
            }
            at += 1 + impatience;
        }
        None
    }

    /// The match around a word, if that is entered.
    #[inline(always)]
    fn entered(&self, at: usize, word_at: u64) -> Option<Match> {
        let from = self.index.find(word_at)?;
        if word(self.base, from) != Some(word_at) || !self.may_do(at, from) {
            return None;
        }
        let after = self.extend(at, from);
        let before = common_suffix(self.compare, &self.base[..from], &self.target[..at], at - self.done);
        let found = Match { at: at - before, from: from - before, bytes: before + after };
        (found.bytes >= FAR_BYTES_MIN).then_some(found)
    }

    /// Tells whether enough may be equal around two places; one comparison sorts most out.
    #[inline(always)]
    fn may_do(&self, at: usize, from: usize) -> bool {
        /// Bytes of the block before the word; more lie behind it, because those before were looked up before.
        const BEFORE: usize = 28;
        let (Some(first), Some(first_from)) = (at.checked_sub(BEFORE), from.checked_sub(BEFORE)) else { return true };
        let (target, base) = (self.target[first..].first_chunk(), self.base[first_from..].first_chunk());
        let (Some(target), Some(base)) = (target, base) else { return true };
        let equal = self.compare.equal(target, base);
        let before = (equal << (BLOCK_BYTES - BEFORE)).leading_ones();
        let after = (equal >> BEFORE).trailing_ones();
        (before + after) as usize >= FAR_BYTES_MIN
    }

    /// Counts the bytes that are equal from here on; the common end is not looked at again.
    #[inline(always)]
    fn extend(&self, at: usize, from: usize) -> usize {
        let bytes = common_prefix(self.compare, &self.target[at..], &self.base[from..], self.end - at);
        let is_end = at + bytes == self.end && from + bytes == self.base_end;
        if is_end { self.target.len() - at } else { bytes }
    }

    /// Writes a record: the literals before the match, and the match.
    #[inline(always)]
    fn copy(&mut self, found: Match) {
        let literals = &self.target[self.done..found.at];
        let expected = self.next + literals.len();
        self.done = found.at + found.bytes;
        self.next = found.from + found.bytes;
        let copied = if self.done == self.target.len() { 0 } else { found.bytes };
        self.parts.literals.extend_from_slice(literals);
        record::write(&mut self.parts.instructions, literals.len(), expected, found.from, copied);
    }

    /// Writes the record of what is left: what both end with, or literals.
    #[inline(always)]
    fn last(&mut self) {
        let bytes = self.target.len() - self.end;
        if bytes > 0 {
            self.copy(Match { at: self.end, from: self.base_end, bytes });
        } else {
            self.parts.literals.extend_from_slice(&self.target[self.done..]);
            record::write_last(&mut self.parts.instructions, self.target.len() - self.done);
        }
    }
}
