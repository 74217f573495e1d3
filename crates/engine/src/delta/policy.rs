//! Which way deltas point, and how long their chains may be.

use super::keep::KeepRule;
use super::offers::CANDIDATES;
use super::segment::DELTA_REGION_BYTES_TARGET;
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
    /// New chunks against old ones, by a policy of the program's own.
    Custom(ForwardPolicy),
}

impl Deltas {
    /// Tells whether old chunks are encoded against new ones.
    pub(crate) fn is_reverse(self) -> bool {
        matches!(self, Self::Reverse { .. })
    }

    /// Tells whether a backup uses chunks again that only snapshots before the last one have.
    pub(crate) fn reaches_back(self) -> bool {
        self.forward().is_none_or(|policy| policy.reaches_back)
    }

    /// How a backup encodes new chunks against old ones, if it does.
    pub(crate) fn forward(self) -> Option<ForwardPolicy> {
        match self {
            Self::Off | Self::Reverse { .. } => None,
            Self::Forward { depth } => Some(ForwardPolicy { depth, ..ForwardPolicy::default() }),
            Self::Custom(policy) => Some(policy),
        }
    }
}

/// How new chunks are encoded against old ones. Repositories are read alike whatever it is; the values by default are
/// those that store least on the histories measured (`docs/MEASUREMENTS.md`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ForwardPolicy {
    /// The longest chain, at least 1; what would make a longer one stays whole.
    pub depth: u32,
    /// Bases looked up for each chunk.
    pub candidates: usize,
    /// True if chunks are alike by one super-feature in common, the newest first, rather than by most features.
    pub super_features: bool,
    /// Which deltas are kept.
    pub keep: KeepRule,
    /// Text of a region of deltas, bytes. 0: each chunk alone, whose base may then be of any length.
    pub region_bytes: usize,
    /// True if chunks without a base in the last snapshot are offered those of their own segment.
    pub intra_segment: bool,
    /// True if a backup uses chunks again that only snapshots before the last one have.
    pub reaches_back: bool,
}

impl Default for ForwardPolicy {
    fn default() -> Self {
        Self {
            depth: FORWARD_DEPTH_DEFAULT,
            candidates: CANDIDATES,
            super_features: false,
            keep: KeepRule::IS_SMALLER,
            region_bytes: DELTA_REGION_BYTES_TARGET,
            intra_segment: true,
            reaches_back: true,
        }
    }
}

impl Default for Deltas {
    fn default() -> Self {
        Self::Reverse { depth: DEPTH_DEFAULT }
    }
}
