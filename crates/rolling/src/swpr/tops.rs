//! Where SWPR with four windows may reach a boundary: a filter by bytes, before the values are computed at all.
//!
//! Siltstone's own. Sampling asks of few places in a hundred whether their value is large, that is, of its highest byte. With
//! `b_t` the byte t places before, each byte of the window has one power of two in the sum, so that
//!
//! ```text
//! h / 2^24 = 16 (b7 + b14 + b21 + b28) + (b3 + b10 + b17 + b24)                             (mod 256)
//!          + (b6 + b13 + b20) / 16 + (b2 + b9 + b16) / 256
//!          + (b5 + b12) / 4096 + (b1 + b8) / 65536 + ...                                    less than 0.14
//! ```
//!
//! Bytes are lanes here, as many as a vector holds, where words are a quarter of that. Each line is the one below it, four
//! places earlier: `U(L) = b3 + b10 + b17 + b24` and `q(L) = (b2 + b9 + b16) / 4` serve both. Means rounded up give
//!
//! ```text
//! Q(L)   = mean(mean(b2, b9), mean(b16, 0)) less 1, not below 0          q - 1 <= Q <= q
//! T(L)   = 16 U(L-4) + U(L) + floor((Q(L-4) + floor(Q(L) / 16)) / 4)     T <= h / 2^24 < T + 1.4
//! ```
//!
//! so a value of `boundary` or more has a T above `boundary / 2^24 - 1.4`: three of 256 for a sample of one in 128.
//!
//! Cost: seven loads and some twenty operations for a whole vector of places.

use siltstone_simd::Simd;

/// The sums of the vector before.
pub struct Tops<S: Simd> {
    /// `U`.
    sums: S::Bytes,
    /// `Q`.
    means: S::Bytes,
    /// The least T let through.
    least: S::Bytes,
}

impl<S: Simd> Tops<S> {
    /// Bytes looked at before the first of a vector.
    pub const BEFORE: usize = 24;

    /// A filter for values of `boundary` or more, with no bytes before.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // What is left of 32 bits is 8.
    pub fn new(s: S, boundary: u32) -> Self {
        /// 1.4 in units of 2^-24, rounded up.
        const ERROR: u32 = 23_488_103;
        let zero = s.splat(0);
        let least = boundary.checked_sub(ERROR).map_or(0, |above| (above >> 24) as u8 + 1);
        Self { sums: zero, means: zero, least: s.splat(least) }
    }

    /// Which of the next `LANES` places may reach the boundary, one bit each. `block` holds `BEFORE` bytes and those at
    /// which the places lie. The four places before must have been in the vector before, or be no places of a chunk: else
    /// the first four bits are nonsense.
    #[inline(always)]
    pub fn next(&mut self, s: S, block: &[u8]) -> u64 {
        let block = &block[..Self::BEFORE + S::LANES];
        let sums = s.add(
            s.add(s.load(block, Self::BEFORE - 3), s.load(block, Self::BEFORE - 10)),
            s.add(s.load(block, Self::BEFORE - 17), s.load(block, Self::BEFORE - 24)),
        );
        let pair = s.mean(s.load(block, Self::BEFORE - 2), s.load(block, Self::BEFORE - 9));
        let means = s.mean(pair, s.mean(s.load(block, Self::BEFORE - 16), s.splat(0)));
        let means = s.sub_saturating(means, s.splat(1));
        let high = s.add(sums, s.shl::<4>(s.shift_in::<4>(self.sums, sums)));
        let low = s.add(s.shift_in::<4>(self.means, means), s.shr::<4>(means));
        (self.sums, self.means) = (sums, means);
        s.ge(s.add(high, s.shr::<2>(low)), self.least)
    }
}
