//! SWPR with four windows at sixteen neighbouring places at once, by words.
//!
//! The sum of eight terms comes by doubling, each stage from the one before and its own values some places earlier:
//!
//! ```text
//! s1(L)   = v(L)  + (v(L-4)   << 4)
//! s2(L)   = s1(L) + (s1(L-8)  << 8)
//! h(L)    = s2(L) + (s2(L-16) << 16)
//! ```
//!
//! Cost: for each vector a shuffle, three shifts, three additions and two moves between lanes.

use siltstone_simd::{Simd, Words};

/// Places hashed together: one, two or four vectors of words.
pub const GROUP: usize = 16;

/// A value for each of 16 places, in the first `16 / WORDS` vectors.
pub type Group<S> = [<S as Words>::Word; 4];

/// The groups before, at each stage of the sum.
pub struct Roll<S: Simd> {
    words: Group<S>,
    fours: Group<S>,
    eights: Group<S>,
}

impl<S: Simd> Roll<S> {
    /// Creates the hash with no bytes before.
    #[inline(always)]
    pub fn new(s: S) -> Self {
        let zero = [s.words_splat(0); 4];
        Self { words: zero, fours: zero, eights: zero }
    }

    /// The hashes of the next 16 places, whose words lie in the first 19 bytes of `data`.
    #[inline(always)]
    pub fn next(&mut self, s: S, data: &[u8]) -> Group<S> {
        let (mut words, mut fours, mut eights) = (self.words, self.fours, self.eights);
        let mut sums = words;
        for (i, vector) in words.iter_mut().enumerate().take(GROUP / S::WORDS) {
            *vector = s.words_sliding(data, i * S::WORDS);
        }
        for i in 0..GROUP / S::WORDS {
            fours[i] = s.words_add(words[i], s.words_shl::<4>(lagged::<S, 4>(s, &self.words, &words, i)));
        }
        for i in 0..GROUP / S::WORDS {
            eights[i] = s.words_add(fours[i], s.words_shl::<8>(lagged::<S, 8>(s, &self.fours, &fours, i)));
        }
        for i in 0..GROUP / S::WORDS {
            sums[i] = s.words_add(eights[i], s.words_shl::<16>(self.eights[i]));
        }
        *self = Self { words, fours, eights };
        sums
    }
}

/// Vector `i` of a group, of the values `LAG` places before.
#[inline(always)]
fn lagged<S: Simd, const LAG: usize>(s: S, before: &Group<S>, group: &Group<S>, i: usize) -> S::Word {
    let vectors = GROUP / S::WORDS;
    let earlier = |by: usize| if i >= by { group[i - by] } else { before[vectors + i - by] };
    if LAG < S::WORDS { s.words_shift_in::<LAG>(earlier(1), group[i]) } else { earlier(LAG / S::WORDS) }
}
