//! Finding what target and base have in common.

use super::compare::{BLOCK_BYTES, Compare, Scalar, Vectors, common_prefix, common_suffix, equal_mask, word};
use super::index::{Index, WORDS};
use super::{EncodeError, Parts, record};
use siltstone_simd::{Kernel, Simd};

/// Bytes that are copied where the base goes on as expected: a record of two bytes and what it costs to interrupt the literals.
const NEAR_BYTES_MIN: usize = 4;
const SOON: u64 = 0xF;
/// Bytes that are copied from elsewhere: a record of four bytes, and another to come back.
const FAR_BYTES_MIN: usize = 24;
/// Where the base goes on for so long as expected, nothing else is looked for.
const SURE_BYTES: usize = 16;
/// Literals after which every second word only is looked up, then every third, ...
const PATIENCE_BITS: u32 = 7;

/// What is encoded, by the vectors of an instruction set.
pub(super) struct Encode<'a> {
    pub(super) base: &'a [u8],
    pub(super) target: &'a [u8],
    pub(super) bytes_max: usize,
    pub(super) index: &'a mut Index,
    pub(super) parts: &'a mut Parts,
}

impl Kernel for Encode<'_> {
    type Output = Result<(), EncodeError>;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Self::Output {
        self.with(Vectors(s))
    }
}

impl Encode<'_> {
    /// Without vectors.
    pub(super) fn scalar(self) -> Result<(), EncodeError> {
        self.with(Scalar)
    }

    #[inline(always)]
    fn with(self, compare: impl Compare) -> Result<(), EncodeError> {
        let Encode { base, target, bytes_max, index, parts } = self;
        let bytes = base.len().min(target.len());
        let prefix = common_prefix(compare, base, target, bytes);
        let suffix = common_suffix(compare, base, target, bytes - prefix);
        let suffix = if suffix < NEAR_BYTES_MIN { 0 } else { suffix };
        let bytes_before = parts.bytes();
        let mut search = Search {
            compare,
            base,
            target,
            base_end: base.len() - suffix,
            end: target.len() - suffix,
            index,
            is_indexed: false,
            bytes_max: bytes_max.saturating_add(bytes_before),
            done: 0,
            next: 0,
            parts,
        };
        if prefix >= NEAR_BYTES_MIN {
            search.copy(Match { at: 0, from: 0, bytes: prefix });
        }
        search.all()
    }
}

/// Bytes of the target that are in the base too.
#[derive(Clone, Copy)]
struct Match {
    /// Where in the target.
    at: usize,
    /// Where in the base.
    from: usize,
    bytes: usize,
}

struct Search<'a, C> {
    compare: C,
    base: &'a [u8],
    target: &'a [u8],
    /// Where what is common at the end of both begins, in the base.
    base_end: usize,
    /// The same in the target.
    end: usize,
    index: &'a mut Index,
    is_indexed: bool,
    /// More are not worth it.
    bytes_max: usize,
    /// Bytes of the target that records have been written for.
    done: usize,
    /// Where in the base the last copy ended.
    next: usize,
    parts: &'a mut Parts,
}

impl<C: Compare> Search<'_, C> {
    #[inline(always)]
    fn all(mut self) -> Result<(), EncodeError> {
        let mut at = self.done;
        while at < self.end {
            if self.parts.bytes() + (at - self.done) > self.bytes_max {
                return Err(EncodeError::NotWorthIt { bytes_max: self.bytes_max });
            }
            match self.find(at) {
                Ok(found) => {
                    self.copy(found);
                    at = self.done;
                }
                Err(next) => at = next,
            }
        }
        if self.end < self.target.len() {
            let bytes = self.target.len() - self.end;
            if self.done < self.target.len() {
                self.copy(Match { at: self.end, from: self.base_end, bytes });
            }
        } else if self.done < self.end {
            self.parts.literals.extend_from_slice(&self.target[self.done..self.end]);
            record::write_last(&mut self.parts.instructions, self.end - self.done);
        }
        if self.parts.bytes() > self.bytes_max {
            return Err(EncodeError::NotWorthIt { bytes_max: self.bytes_max });
        }
        Ok(())
    }

    /// A match among the next bytes, or where to go on.
    #[inline(always)]
    fn find(&mut self, at: usize) -> Result<Match, usize> {
        let next = (at + BLOCK_BYTES + 1 - NEAR_BYTES_MIN).min(self.end);
        let near = self.near(at).filter(|near| near.at < next);
        let until = match near {
            Some(near) if near.bytes >= SURE_BYTES && near.at < at + FAR_BYTES_MIN => return Ok(near),
            Some(near) if near.bytes >= SURE_BYTES => near.at,
            Some(near) => near.at + near.bytes,
            None => next,
        };
        let far = self.far(at, until);
        match (near, far) {
            (Some(near), Some(far)) if far.bytes > near.bytes || far.at + far.bytes <= near.at => Ok(far),
            (Some(near), _) => Ok(near),
            (None, Some(far)) => Ok(far),
            (None, None) => Err(next),
        }
    }

    /// The first match where the base goes on as if literals had replaced as many of its bytes.
    #[inline(always)]
    fn near(&self, at: usize) -> Option<Match> {
        let from = self.next + (at - self.done);
        let equal = equal_mask(self.compare, self.base.get(from..)?, self.target.get(at..)?);
        let pairs = equal & equal >> 1;
        let fours = pairs & pairs >> 2;
        let runs = if at == self.done { fours & SOON | fours & fours >> 4 } else { fours & fours >> 4 };
        if runs == 0 {
            return None;
        }
        let skipped = runs.trailing_zeros() as usize;
        let (at, from) = (at + skipped, from + skipped);
        if at >= self.end {
            return None;
        }
        let bytes = self.extend(at, from);
        (bytes >= NEAR_BYTES_MIN).then_some(Match { at, from, bytes })
    }

    /// The first match of a word between these places with any of the base.
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
            let word = word(self.target, at)?;
            let entry = self.index.first(word);
            if entry != 0 {
                if let Some(found) = self.entered(at, word, entry) {
                    return Some(found);
                }
            }
            at += 1 + impatience;
        }
        None
    }

    /// The match around a word that may be entered.
    #[inline(always)]
    fn entered(&self, at: usize, word_at: u64, entry: u16) -> Option<Match> {
        let from = self.index.offset(entry);
        if word(self.base, from) != Some(word_at) || !self.may_do(at, from) {
            return None;
        }
        let found = self.around(at, from);
        (found.bytes >= FAR_BYTES_MIN).then_some(found)
    }

    /// Whether so much may be equal around two places that a copy pays; one comparison sorts most out.
    #[inline(always)]
    fn may_do(&self, at: usize, from: usize) -> bool {
        const BEFORE: usize = 28;
        let (Some(first), Some(first_from)) = (at.checked_sub(BEFORE), from.checked_sub(BEFORE)) else { return true };
        let (target, base) = (self.target[first..].first_chunk(), self.base[first_from..].first_chunk());
        let (Some(target), Some(base)) = (target, base) else { return true };
        let equal = self.compare.equal(target, base);
        let before = (equal << (BLOCK_BYTES - BEFORE)).leading_ones();
        let after = (equal >> BEFORE).trailing_ones();
        (before + after) as usize >= FAR_BYTES_MIN
    }

    /// All that is equal around two places.
    #[inline(always)]
    fn around(&self, at: usize, from: usize) -> Match {
        let after = self.extend(at, from);
        let before = common_suffix(self.compare, &self.base[..from], &self.target[..at], at - self.done);
        Match { at: at - before, from: from - before, bytes: before + after }
    }

    /// How many bytes are equal from here on; what is common at the end of both need not be looked at again.
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
        let bytes = if self.done == self.target.len() { 0 } else { found.bytes };
        self.parts.literals.extend_from_slice(literals);
        record::write(&mut self.parts.instructions, literals.len(), expected, found.from, bytes);
    }
}
