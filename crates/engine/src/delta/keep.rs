//! Decides if a region stays a delta: one rule for backups and maintenance, unless a program brings a policy of its
//! own.
//!
//! A delta is kept if it is smaller. Asking more was tried, since what is stored whole is the good base of its next
//! versions: a delta had to be below 0.7 of the region encoded whole. Asked of backups, `forward:16` takes 1.2 % more
//! on 27 releases of OpenSSL, 8.2 % on 25 tars of TypeScript and 4.4 % on 22 images of a system; asked of maintenance,
//! `reverse` takes 1.9, 5.0 and 1.9 % more, and 0.4 % on 25 dumps of Redis (one run each, November 2026).

use siltstone_similar::benefit::Benefit;
use siltstone_similar::sketch::Shape;

/// When a delta is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeepRule {
    /// A delta of at most this part of its text (1/n) is kept unasked: the region is not encoded whole beside it.
    pub clear_part: usize,
    /// Any other must cost less than this share of the region encoded whole.
    pub benefit: Benefit,
}

impl KeepRule {
    /// A delta must be smaller. Few regions compress to a quarter of their text.
    pub const IS_SMALLER: Self = Self { clear_part: 4, benefit: Benefit::ANY };

    /// Tells whether a base with this many of a chunk's features can be expected to give a delta that is kept.
    pub(crate) fn expects(self, matches: usize) -> bool {
        self.benefit.expects(matches, Shape::DEFAULT.features())
    }

    /// Tells whether a delta is kept whatever the region would cost whole.
    pub(crate) fn is_clear(self, delta_bytes: usize, text_bytes: usize) -> bool {
        delta_bytes * self.clear_part <= text_bytes
    }

    /// Tells whether a delta is kept beside the region encoded whole.
    pub(crate) fn accepts(self, delta_bytes: usize, whole_bytes: usize) -> bool {
        self.benefit.accepts(delta_bytes as u64, whole_bytes as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delta_is_kept_that_is_smaller_and_without_asking_where_it_is_a_quarter_of_its_text() {
        let rule = KeepRule::IS_SMALLER;
        assert!(rule.is_clear(250, 1000) && !rule.is_clear(251, 1000));
        assert!(rule.accepts(999, 1000) && !rule.accepts(1000, 1000));
        assert!(rule.expects(0), "whatever is smaller");
    }

    #[test]
    fn a_rule_may_ask_more_of_a_delta() {
        let rule = KeepRule { clear_part: 10, benefit: Benefit::DEFAULT };
        assert!(rule.is_clear(100, 1000) && !rule.is_clear(101, 1000));
        assert!(rule.accepts(699, 1000) && !rule.accepts(700, 1000));
        assert!(!rule.expects(0) && rule.expects(12));
    }
}
