//! Which way deltas point, and how long their chains may be.

use super::keep::KeepRule;
use super::offers::CANDIDATES;
use crate::bases::CHAIN_REGIONS_MAX;

/// The longest chain of deltas that may be asked for: a quarter of what a reader follows, so that chains of several
/// policies may stand on one another.
pub const DEPTH_MAX: u32 = CHAIN_REGIONS_MAX / 4;
/// The longest chain unless another is asked for.
pub const DEPTH_DEFAULT: u32 = 128;
/// The longest chain of new against old unless another is asked for. Where nearly all changes, half of that stores 1.7
/// times as much and backs up an eighth faster; elsewhere the difference is small
/// (`bench/record/history-redis-openssl-forward-*`).
pub const FORWARD_DEPTH_DEFAULT: u32 = 16;

/// Which way deltas point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deltas {
    /// There are none.
    Off,
    /// Old chunks against new ones: what a backup leaves behind is encoded against what took its place. The newest
    /// snapshot is whole.
    Reverse {
        /// The longest chain; what would make a longer one stays whole.
        depth: u32,
    },
    /// New chunks against old ones, while they are backed up.
    Forward {
        /// The longest chain; what would make a longer one stays whole.
        depth: u32,
    },
    /// Deltas as MeGA describes them (ATC 2022, section 4.2): each chunk against the first that shares a super-feature,
    /// which is whole.
    Paper,
}

impl Deltas {
    /// Whether old chunks are encoded against new ones.
    pub(crate) fn is_reverse(self) -> bool {
        matches!(self, Self::Reverse { .. })
    }

    /// Whether a backup uses chunks again that only snapshots before the last one have. MeGA does not: there,
    /// lifecycles are what is in successive backups.
    pub(crate) fn reaches_back(self) -> bool {
        !matches!(self, Self::Paper)
    }

    /// How a backup encodes new chunks against old ones, if it does.
    pub(crate) fn forward(self) -> Option<Forward> {
        match self {
            Self::Off | Self::Reverse { .. } => None,
            Self::Forward { depth } => Some(Forward { depth, is_paper: false }),
            Self::Paper => Some(Forward { depth: 1, is_paper: true }),
        }
    }
}

/// New chunks against old ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Forward {
    /// The longest chain.
    pub(crate) depth: u32,
    /// A delta for each chunk, against one base, kept whenever it is smaller than the chunk.
    pub(crate) is_paper: bool,
}

impl Forward {
    /// Which deltas are kept.
    pub(crate) fn keep_rule(self) -> KeepRule {
        if self.is_paper { KeepRule::PAPER } else { KeepRule::IN_BACKUP }
    }

    /// Bases looked up for each chunk.
    pub(crate) fn candidates(self) -> usize {
        if self.is_paper { 1 } else { CANDIDATES }
    }
}

impl Default for Deltas {
    fn default() -> Self {
        Self::Reverse { depth: DEPTH_DEFAULT }
    }
}
