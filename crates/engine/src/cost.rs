//! Costs of reading, moving and keeping bytes at different places, and what follows from them for the layout.
//!
//! | | a request in vain, as bytes read instead | moving a byte, as months of keeping it | then |
//! |---|---:|---:|---|
//! | `local` | 128 KiB: 0.1 ms to find an object at 1.3 GB/s | 0 | time decides |
//! | `s3-region` | 1 MiB: 10 ms to the first byte at 100 MB/s | 0: traffic within a region is free, 1000 requests cost as much as a month of 0.2 GB | time decides |
//! | `s3-internet` | 1 MiB: 100 ms at 10 MB/s | 4: a GB out costs 0.09 $, a month of it 0.023 $ | every byte read must pay back |
//!
//! A container of which the share *t* is of no use is written anew if that pays: the rest, (1 - *t*), is read and
//! written, and *t* is no longer kept. Where moving is free, *t* is a matter of time: with 27 releases of OpenSSL and
//! 25 tars of TypeScript (November 2026) a quarter stores 2 % more than nothing wasted, and moves 24 and 13 % of the
//! bytes. Where a byte moved costs *m* months of keeping it, and what is freed would have been kept for another year,
//! it pays from (1 - *t*) *m* = 12 *t* on, which for *m* = 4 is *t* = 1/4; twice that leaves room for those that forget
//! sooner.
//!
//! Deltas of old chunks against new ones (`reverse`) are made by reading what is stored; deltas of new chunks against
//! old ones (`forward`) send less. So where sending and reading are dear, new points to old.

use crate::backup::DELTA_THRESHOLD_DEFAULT;
use crate::delta::{Deltas, FORWARD_DEPTH_DEFAULT};
use crate::maintain::MIGRATE_THRESHOLD_DEFAULT;
use crate::restore::GAP_BYTES_DEFAULT;

/// Location profile: where a repository lies, and what reading, moving and keeping bytes costs there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LocationProfile {
    /// On a disk of this machine, or of one near by.
    #[default]
    Local,
    /// In an object store, used from within its region.
    S3Region,
    /// In an object store, over the internet.
    S3Internet,
}

impl LocationProfile {
    /// The names users give them by.
    pub const NAMES: [(&'static str, Self); 3] =
        [("local", Self::Local), ("s3-region", Self::S3Region), ("s3-internet", Self::S3Internet)];

    /// Which way deltas point.
    pub fn deltas(self) -> Deltas {
        match self {
            Self::Local | Self::S3Region => Deltas::default(),
            Self::S3Internet => Deltas::Forward { depth: FORWARD_DEPTH_DEFAULT },
        }
    }

    /// The share of a container that may be superseded or dead before it is split.
    pub fn migrate_threshold(self) -> f64 {
        match self {
            Self::Local | Self::S3Region => MIGRATE_THRESHOLD_DEFAULT,
            Self::S3Internet => 0.5,
        }
    }

    /// Gaps between needed regions up to this many bytes are read rather than asked around.
    pub fn gap_bytes(self) -> u64 {
        match self {
            Self::Local => GAP_BYTES_DEFAULT,
            Self::S3Region | Self::S3Internet => 1 << 20,
        }
    }

    /// References from one segment into a container below which its chunks are no bases: a request must bring bases
    /// that save more than it costs, and a base saves some 12 KiB.
    pub fn delta_threshold(self) -> u32 {
        match self {
            Self::Local => DELTA_THRESHOLD_DEFAULT,
            Self::S3Region | Self::S3Internet => 16,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dear_to_move_is_moved_later() {
        let [local, region, internet] = LocationProfile::NAMES.map(|(_, profile)| profile);
        assert_eq!(local, LocationProfile::default());
        assert!(local.migrate_threshold() <= region.migrate_threshold());
        assert!(region.migrate_threshold() < internet.migrate_threshold());
        assert!(local.gap_bytes() < region.gap_bytes());
        assert!(matches!(internet.deltas(), Deltas::Forward { .. }));
    }
}
