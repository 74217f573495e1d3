//! The rule by which a delta pays: kept only if it costs less than a share of what the chunk would cost compressed
//! alone.
//!
//! A delta that saves little is worse than none: stored whole, the chunk would be the good base of its next versions;
//! stored as a bad delta it is paid for again in every version. Where chains of deltas are bounded at 4, keeping all
//! that is found stores 12 % more than keeping what costs below 0.7, and below 0.35 8 % more
//! (`bench/record/similar-policy-*`). So the share is below one. It is asked twice: before the base is read, with the
//! cost that this many matching features let expect, and with the real one.

/// The share of a chunk's own cost below which a delta pays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Benefit {
    per_mille: u16,
}

/// Cost of a delta against a chunk that shares this many twelfths of the features, in thousandths of the chunk
/// compressed alone: the means of four corpora at 16 KiB, averaged and rounded (`cargo xtask bench similar --only
/// policy`, November 2026).
const EXPECTED_PER_MILLE: [u16; 13] = [1000, 1000, 700, 560, 465, 405, 340, 260, 180, 125, 80, 50, 30];

impl Benefit {
    /// The share that stores least where chains are bounded at 4 (`bench/record/similar-policy-*`).
    pub const DEFAULT: Self = Self { per_mille: 700 };
    /// Takes every delta that is smaller than the chunk compressed.
    pub const ANY: Self = Self { per_mille: 1000 };

    /// Keeps deltas below this many thousandths of the chunk's own cost; more than 1000 is 1000.
    pub fn below_per_mille(per_mille: u16) -> Self {
        Self { per_mille: per_mille.min(1000) }
    }

    /// The share, 0 to 1.
    pub fn share(self) -> f64 {
        f64::from(self.per_mille) / 1000.0
    }

    /// Tells whether a base with this many of the chunk's features can be expected to pay, so that reading it is worth
    /// it.
    pub fn expects(self, matches: usize, features: usize) -> bool {
        let twelfths = (12 * matches.min(features)).checked_div(features).unwrap_or(0);
        EXPECTED_PER_MILLE[twelfths] <= self.per_mille
    }

    /// Tells whether a delta of `delta_bytes` pays for a chunk that would cost `plain_bytes` alone.
    pub fn accepts(self, delta_bytes: u64, plain_bytes: u64) -> bool {
        u128::from(delta_bytes) * 1000 < u128::from(plain_bytes) * u128::from(self.per_mille)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delta_pays_below_its_share_of_the_plain_cost() {
        assert!(Benefit::below_per_mille(500).accepts(499, 1000));
        assert!(!Benefit::below_per_mille(500).accepts(500, 1000));
        assert!(Benefit::ANY.accepts(999, 1000));
        assert!(!Benefit::below_per_mille(u16::MAX).accepts(1000, 1000));
        assert!(!Benefit::DEFAULT.accepts(u64::MAX, u64::MAX));
    }

    #[test]
    fn more_features_in_common_let_expect_more() {
        for features in [1, 6, 12, 24] {
            for matches in 0..features {
                let line = Benefit::below_per_mille(400);
                assert!(line.expects(matches + 1, features) || !line.expects(matches, features));
            }
        }
        assert!(
            Benefit::DEFAULT.expects(12, 12) && !Benefit::DEFAULT.expects(0, 12) && !Benefit::DEFAULT.expects(0, 0)
        );
    }
}
