//! Names of things: newtypes for every number and identifier that lies on disk, so that none can be taken for another.
//!
//! A [`ChunkNumber`] is a serial within one series, given when a chunk is first stored, never reused and never moved.
//! Data and metadata chunks share one 64-bit space: metadata starts at 2^63, so that a bitmap of numbers covers both.

use roaring::RoaringTreemap;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Serial of a chunk within its series.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ChunkNumber(pub u64);

impl ChunkNumber {
    /// The first number of a metadata chunk; all below are data chunks.
    pub const METADATA_FIRST: Self = Self(1 << 63);

    /// Tells whether the number names a piece of a catalog rather than of a file.
    pub const fn is_metadata(self) -> bool {
        self.0 >= Self::METADATA_FIRST.0
    }
}

impl fmt::Display for ChunkNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_metadata() { write!(f, "m{}", self.0 - Self::METADATA_FIRST.0) } else { write!(f, "{}", self.0) }
    }
}

/// Consecutive chunk numbers; never empty, never reaching past `u64::MAX`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ChunkRun {
    /// The first number of the run.
    pub first: ChunkNumber,
    /// Count of the numbers, at least 1.
    pub count: u64,
}

impl ChunkRun {
    /// The numbers of the run, as a range of `u64` for bitmaps. Empty if the run would pass `u64::MAX` (hostile input).
    pub fn range(self) -> std::ops::RangeInclusive<u64> {
        match (self.count.checked_sub(1)).and_then(|n| self.first.0.checked_add(n)) {
            Some(last) => self.first.0..=last,
            #[allow(clippy::reversed_empty_ranges)]
            None => 1..=0,
        }
    }

    /// The numbers as ascending runs.
    pub fn runs_of(numbers: &RoaringTreemap) -> Vec<Self> {
        let mut runs: Vec<Self> = Vec::new();
        for number in numbers {
            match runs.last_mut() {
                Some(run) if run.range().end().checked_add(1) == Some(number) => run.count += 1,
                _ => runs.push(Self { first: ChunkNumber(number), count: 1 }),
            }
        }
        runs
    }
}

macro_rules! bytes_id {
    ($(#[$doc:meta])* $name:ident, $len:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub [u8; $len]);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl $name {
            /// Reads the identifier from the exact hexadecimal text that `Display` writes; `None` for anything else.
            pub fn from_hex(text: &str) -> Option<Self> {
                let digits = text.as_bytes();
                if digits.len() != 2 * $len {
                    return None;
                }
                let mut bytes = [0u8; $len];
                for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
                    let [high, low] = pair else { return None };
                    *byte = (hex_digit(*high)? << 4) | hex_digit(*low)?;
                }
                Some(Self(bytes))
            }
        }
    };
}

fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

bytes_id!(
    /// Keyed BLAKE3 of a chunk's content, cut to 128 bits (`docs/FORMAT.md` says why that is enough).
    Fingerprint, 16
);
bytes_id!(
    /// Identity of a repository, random at creation.
    RepositoryId, 16
);
bytes_id!(
    /// Identity of a series: the keyed hash of its name, so that two writers creating it at once meet in one place.
    SeriesId, 16
);
bytes_id!(
    /// Identity of a snapshot, random. The first half is that of the snapshot it was copied from, if it was copied.
    SnapshotId, 32
);
bytes_id!(
    /// First half of a snapshot's identity, which a snapshot shares with all copies of it.
    OriginId, 16
);
bytes_id!(
    /// Identity of a key slot, random.
    KeyId, 16
);

impl SnapshotId {
    /// The first eight hexadecimal digits, as shown to users.
    pub fn short(&self) -> String {
        self.to_string().chars().take(8).collect()
    }

    /// Returns what this snapshot and all its copies have in common.
    pub fn origin(&self) -> OriginId {
        OriginId(std::array::from_fn(|at| self.0.get(at).copied().unwrap_or_default()))
    }

    /// Returns this identity as that of a copy of a snapshot of this origin: only its second half stays.
    #[must_use]
    pub fn copied_from(mut self, origin: OriginId) -> Self {
        self.0.iter_mut().zip(origin.0).for_each(|(byte, of_origin)| *byte = of_origin);
        self
    }
}

/// Identity of a container within its series: the manifest number of the lease it was written under and a serial under
/// that lease. A lease number is won by put-if-absent, so no two writers can ever make the same identity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ContainerId {
    /// Sequence number of the manifest that granted the writer its lease.
    pub lease: u64,
    /// Serial of the container under that lease, from 0.
    pub serial: u32,
}

impl fmt::Display for ContainerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{:08x}", self.lease, self.serial)
    }
}

impl ContainerId {
    /// Reads the identity from the exact text that `Display` writes.
    pub fn from_text(text: &str) -> Option<Self> {
        let (lease, serial) = text.split_once('-')?;
        let id = Self { lease: u64::from_str_radix(lease, 16).ok()?, serial: u32::from_str_radix(serial, 16).ok()? };
        (id.to_string() == text).then_some(id)
    }
}

/// Identity of a renewal within its series: the lease that it renews, and how many came before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RenewalId {
    /// Sequence number of the manifest that granted the lease.
    pub lease: u64,
    /// Serial of the renewal under that lease, from 0.
    pub count: u32,
}

impl fmt::Display for RenewalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{:08x}", self.lease, self.count)
    }
}

impl RenewalId {
    /// Reads the identity from the exact text that `Display` writes.
    pub fn from_text(text: &str) -> Option<Self> {
        let ContainerId { lease, serial: count } = ContainerId::from_text(text)?;
        Some(Self { lease, count })
    }
}

/// Identity of a part of a manifest within its series: the lease that it was written under and a serial under that
/// lease. It is unique for the reason that a [`ContainerId`] is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PartId {
    /// Sequence number of the manifest that granted the writer its lease.
    pub lease: u64,
    /// Serial of the part under that lease, from 0.
    pub serial: u32,
}

impl fmt::Display for PartId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{:08x}", self.lease, self.serial)
    }
}

impl PartId {
    /// Reads the identity from the exact text that `Display` writes.
    pub fn from_text(text: &str) -> Option<Self> {
        let ContainerId { lease, serial } = ContainerId::from_text(text)?;
        Some(Self { lease, serial })
    }
}

/// Identity of a loan among those of its lender: who borrows, and under which of that series' leases, with a serial. It
/// is unique for the reason that a [`ContainerId`] is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct LoanId {
    /// The series that borrows.
    pub borrower: SeriesId,
    /// Sequence number of the borrower's manifest that granted the writer its lease.
    pub lease: u64,
    /// Serial of the loan under that lease, from 0.
    pub serial: u32,
}

impl fmt::Display for LoanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:016x}-{:08x}", self.borrower, self.lease, self.serial)
    }
}

impl LoanId {
    /// Reads the identity from the exact text that `Display` writes.
    pub fn from_text(text: &str) -> Option<Self> {
        let (borrower, rest) = text.split_once('-')?;
        let ContainerId { lease, serial } = ContainerId::from_text(rest)?;
        Some(Self { borrower: SeriesId::from_hex(borrower)?, lease, serial })
    }
}

/// A moment as files and snapshots carry it: seconds since 1970 UTC, and nanoseconds below 10^9.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Time {
    /// Whole seconds, negative before 1970.
    pub seconds: i64,
    /// 0 ..= 999 999 999.
    pub nanoseconds: u32,
}

impl fmt::Display for Time {
    /// UTC, to the second.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_second(self.seconds) {
            Ok(time) => write!(f, "{time}"),
            Err(_) => write!(f, "second {}", self.seconds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_shares_its_origin_and_short_id_with_its_original_and_nothing_else() {
        let original = SnapshotId(std::array::from_fn(|at| u8::try_from(at).expect("small")));
        let copy = SnapshotId([0xaa; 32]).copied_from(original.origin());
        assert_eq!((copy.origin(), copy.short()), (original.origin(), original.short()));
        assert_eq!(copy.0[16..], [0xaa; 16]);
        let of_copy = SnapshotId([0xbb; 32]).copied_from(copy.origin());
        assert_eq!(of_copy.origin(), original.origin());
    }
}
