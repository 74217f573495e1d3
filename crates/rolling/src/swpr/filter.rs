//! A filter by bytes of the places at which SWPR may reach a boundary, before the values are computed at all.
//!
//! Siltstone's own. Sampling asks of few places in a hundred whether their value is large, that is, of its highest
//! byte. With `b_t` the byte t places before, each byte of the window (t below 32) has one power of two in the sum, so
//! that
//!
//! ```text
//! h              = sum over k in 0 .. n of 16^k c_k            (mod 2^B), n = B / 4
//! c_k            W = 2:  b(2k) + b(2k-3)
//!                W = 4:  b(4k) + b(4k-7) + b(4k-14) + b(4k-21)
//!                W = 8:  b(8k) + b(8k+2) + b(8k+4) + b(8k+6) + b(8k-9) + b(8k-11) + b(8k-13) + b(8k-15)
//! h / 2^(B-8)    = 16 c_(n-1) + c_(n-2)                        (mod 256)
//!                  + c_(n-3) / 16 + c_(n-4) / 256
//!                  + c_(n-5) / 4096 + ...                      less than 0.14; nothing if W = 8
//! ```
//!
//! Bytes are lanes here, as many as a vector holds, whatever W is. Within each line the first is the second, W places
//! earlier: `U(L) = c_(n-2)` and `q(L) = c_(n-4) / d` serve both, with d = 2 if W = 2, else 4. Means rounded up give
//!
//! ```text
//! Q(L)   = the mean of the bytes of q(L), two and two              q <= Q <= q + 1
//! R(L)   = mean(Q(L-W), floor(Q(L) / 16)) less 2, not below 0
//! T(L)   = 16 U(L-W) + U(L) + floor(d R(L) / 8)                    T <= h / 2^(B-8) < T + 1.875
//! ```
//!
//! so a value of `boundary` or more has a T above `boundary / 2^(B-8) - 1.875`: three of 256 for a sample of one in
//! 128.
//!
//! Cost: eight to twelve loads and some twenty operations for a whole vector of places.

use super::RollingWindows;
use siltstone_simd::Simd;

/// The filter for so many windows: the sums of the vector before.
pub struct CandidateFilter<S: Simd, const WINDOWS: usize> {
    /// `U`.
    sums: S::Bytes,
    /// `Q`.
    means: S::Bytes,
    /// The least T let through.
    least: S::Bytes,
}

impl<S: Simd, const WINDOWS: usize> CandidateFilter<S, WINDOWS> {
    /// Bytes looked at before the first of a vector.
    pub const BEFORE: usize = match WINDOWS {
        2 => 30,
        4 => 24,
        _ => 22,
    };

    /// A filter for values of `boundary` or more, with no bytes before.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // What is left of 16 bits is 8.
    pub fn new(s: S, boundary: u64) -> Self {
        /// 1.875 in units of 2^-8.
        const ERROR: u64 = 480;
        let zero = s.splat(0);
        let top = boundary >> (RollingWindows::<WINDOWS>::BITS - 16);
        let least = top.checked_sub(ERROR).map_or(0, |above| (above >> 8) as u8 + 1);
        Self { sums: zero, means: zero, least: s.splat(least) }
    }

    /// Tells which of the next `LANES` places may reach the boundary, one bit each. `block` holds `BEFORE` bytes and
    /// those at which the places lie. The `WINDOWS` places before must have been in the vector before, or be no places
    /// of a chunk: else the first `WINDOWS` bits are nonsense.
    #[inline(always)]
    pub fn next(&mut self, s: S, block: &[u8]) -> u64 {
        let block = &block[..Self::BEFORE + S::LANES];
        let ago = |t: usize| s.load(block, Self::BEFORE - t);
        let sum = |a: usize, b: usize| s.add(ago(a), ago(b));
        let mean = |a: usize, b: usize| s.mean(ago(a), ago(b));
        let (sums, means, sums_before, means_before);
        if WINDOWS == 2 {
            // Loads are cheaper than moves between lanes here.
            (sums, sums_before) = (sum(28, 25), sum(30, 27));
            (means, means_before) = (mean(24, 21), mean(26, 23));
        } else if WINDOWS == 4 {
            sums = s.add(sum(3, 10), sum(17, 24));
            means = s.mean(mean(2, 9), s.mean(ago(16), s.splat(0)));
            (sums_before, means_before) = (s.shift_in::<4>(self.sums, sums), s.shift_in::<4>(self.means, means));
        } else {
            sums = [5, 7, 16, 18, 20, 22].into_iter().fold(sum(1, 3), |sum, t| s.add(sum, ago(t)));
            means = s.mean(mean(0, 2), mean(4, 6));
            (sums_before, means_before) = (s.shift_in::<8>(self.sums, sums), s.shift_in::<8>(self.means, means));
        }
        (self.sums, self.means) = (sums, means);
        let high = s.add(sums, s.shl::<4>(sums_before));
        let low = s.sub_saturating(s.mean(means_before, s.shr::<4>(means)), s.splat(2));
        let low = if WINDOWS == 2 { s.shr::<2>(low) } else { s.shr::<1>(low) };
        s.ge(s.add(high, low), self.least)
    }
}
