//! Cuts of a list by its content: bytes that are inserted or removed move the cuts beside them and no others.
//!
//! For parts of `p` bytes a cut is looked for from `p / 2` bytes on and made at `4 p` in any case. Bytes are cut where
//! a sum over the 64 before, each mixed and shifted, begins with zeros; salts after a container whose number does so
//! once mixed. A reader relies on none of this.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use crate::catalog::wire::mix;
use crate::container::ContainerRecord;
use crate::sealed::Salt;

/// Bounds of the lengths of parts, in items.
struct Lengths {
    min: usize,
    max: usize,
    /// A hash below this cuts.
    threshold: u64,
}

impl Lengths {
    /// Parts of this many items on average.
    fn about(average: usize) -> Self {
        let half = (average / 2).max(1);
        Self { min: half, max: 8 * half, threshold: u64::MAX / half as u64 }
    }

    /// The lengths of the parts, given a hash for each item: the last part ends with the last item.
    fn cut(&self, hashes: impl Iterator<Item = u64>) -> Vec<usize> {
        let (mut lengths, mut length) = (Vec::new(), 0);
        for hash in hashes {
            length += 1;
            if length >= self.max || (length >= self.min && hash < self.threshold) {
                lengths.push(std::mem::take(&mut length));
            }
        }
        if length > 0 {
            lengths.push(length);
        }
        lengths
    }
}

/// The lengths of the parts of a list, about `part_bytes` each.
pub(super) fn bytes(list: &[u8], part_bytes: usize) -> Vec<usize> {
    let sums = list.iter().scan(0_u64, |sum, byte| {
        *sum = (*sum << 1).wrapping_add(mix(u64::from(*byte) + 1));
        Some(*sum)
    });
    Lengths::about(part_bytes).cut(sums)
}

/// The lengths in bytes of the parts of the salts of these containers, about `part_bytes` each.
pub(super) fn salts(containers: &[ContainerRecord], part_bytes: usize) -> Vec<usize> {
    let hashes = containers.iter().map(|record| mix(mix(record.id.lease) ^ u64::from(record.id.serial)));
    let lengths = Lengths::about(part_bytes / size_of::<Salt>()).cut(hashes);
    lengths.into_iter().map(|records| records * size_of::<Salt>()).collect()
}
