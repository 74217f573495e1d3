//! Whether a region stays a delta. Each rule is a value; which one a stage goes by is decided here and nowhere else.

use siltstone_similar::benefit::Benefit;
use siltstone_similar::sketch::Shape;

/// When a delta is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KeepRule {
    /// A delta of at most this part of its text (1/n) is kept unasked: the region is not encoded whole beside it.
    clear_part: usize,
    /// Any other must cost less than this share of the region encoded whole.
    benefit: Benefit,
}

impl KeepRule {
    /// A delta must save much: what is stored whole is the good base of its next versions. Hardly anything compresses
    /// so well that a tenth of the text would not pay.
    const SAVES_MUCH: Self = Self { clear_part: 10, benefit: Benefit::DEFAULT };
    /// A delta must be smaller: what is encoded dies, and nothing new will hang on it. Few regions compress to a
    /// quarter of their text.
    const IS_SMALLER: Self = Self { clear_part: 4, benefit: Benefit::ANY };

    /// The rule for new chunks against old ones.
    pub(crate) const IN_BACKUP: Self = Self::SAVES_MUCH;
    /// The rule for old chunks against new ones, and for what hung on ghosts.
    pub(crate) const IN_MAINTENANCE: Self = Self::IS_SMALLER;
    /// Every delta that is smaller than its text, as MeGA has it (ATC 2022, section 4.2).
    pub(crate) const PAPER: Self = Self { clear_part: 1, benefit: Benefit::ANY };

    /// Whether a base with this many of a chunk's features can be expected to give a delta that is kept.
    pub(crate) fn expects(self, matches: usize) -> bool {
        self == Self::PAPER || self.benefit.expects(matches, Shape::DEFAULT.features())
    }

    /// Whether a delta is kept whatever the region would cost whole.
    pub(crate) fn is_clear(self, delta_bytes: usize, text_bytes: usize) -> bool {
        delta_bytes * self.clear_part <= text_bytes
    }

    /// Whether a delta is kept beside the region encoded whole.
    pub(crate) fn accepts(self, delta_bytes: usize, whole_bytes: usize) -> bool {
        self.benefit.accepts(delta_bytes as u64, whole_bytes as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_keeps_what_saves_much_and_maintenance_what_is_smaller() {
        let (backup, maintenance) = (KeepRule::IN_BACKUP, KeepRule::IN_MAINTENANCE);
        assert!(backup.is_clear(100, 1000) && !backup.is_clear(101, 1000));
        assert!(maintenance.is_clear(250, 1000) && !maintenance.is_clear(251, 1000));
        assert!(backup.accepts(699, 1000) && !backup.accepts(700, 1000));
        assert!(maintenance.accepts(999, 1000) && !maintenance.accepts(1000, 1000));
        assert!(KeepRule::PAPER.is_clear(1000, 1000) && KeepRule::PAPER.expects(0));
        assert!(!backup.expects(0) && backup.expects(12));
    }
}
