//! Lifecycles: since which live snapshot a chunk is needed, and until which. They follow from the manifest's bitmaps alone.

use roaring::RoaringTreemap;
use siltstone_store::manifest::Manifest;
use std::collections::HashMap;

/// First and last live snapshot that need a chunk, by position.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Lifecycle {
    /// The first.
    pub(crate) row: usize,
    /// The last.
    pub(crate) column: usize,
}

impl Lifecycle {
    /// A number for the category, the same for equal lifecycles of one manifest only; rows and columns count to 65 535.
    pub(crate) fn category(self) -> u32 {
        let small = |position: usize| u32::try_from(position).unwrap_or(u32::MAX).min(0xffff);
        small(self.row) << 16 | small(self.column)
    }
}

/// The lifecycles of those of `numbers` that any live snapshot needs.
///
/// # Complexity
/// One pass over the manifest's differences for each row that `numbers` have.
pub(crate) fn lifecycles(manifest: &Manifest, numbers: &RoaringTreemap) -> HashMap<u64, Lifecycle> {
    along(manifest.differences(), numbers)
}

/// The same of those that the catalog of any live snapshot refers to, as long as they do.
pub(crate) fn direct_lifecycles(manifest: &Manifest, numbers: &RoaringTreemap) -> HashMap<u64, Lifecycle> {
    along(manifest.direct_differences(), numbers)
}

fn along<'d>(
    differences: impl ExactSizeIterator<Item = (&'d RoaringTreemap, &'d RoaringTreemap)>,
    numbers: &RoaringTreemap,
) -> HashMap<u64, Lifecycle> {
    let mut found = HashMap::new();
    let mut living: Vec<(usize, RoaringTreemap)> = Vec::new();
    let last = differences.len().saturating_sub(1);
    for (position, (added, removed)) in differences.enumerate() {
        for (row, of_row) in &mut living {
            let gone = &*of_row & removed;
            if !gone.is_empty() {
                *of_row -= &gone;
                let lifecycle = Lifecycle { row: *row, column: position - 1 };
                found.extend(gone.iter().map(|number| (number, lifecycle)));
            }
        }
        living.retain(|(_, of_row)| !of_row.is_empty());
        let fresh = added & numbers;
        if !fresh.is_empty() {
            living.push((position, fresh));
        }
    }
    for (row, of_row) in living {
        found.extend(of_row.iter().map(|number| (number, Lifecycle { row, column: last })));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_store::SeriesId;
    use siltstone_store::manifest::{Snapshot, SnapshotStatistics};
    use siltstone_store::{ChunkNumber, SnapshotId, Time};

    fn manifest(necessary: &[&[u64]]) -> Manifest {
        let mut manifest = Manifest::new(SeriesId([0; 16]), "series");
        for (at, numbers) in (0u8..).zip(necessary) {
            let snapshot = Snapshot {
                id: SnapshotId([at; 32]),
                time: Time::default(),
                host: String::new(),
                user: String::new(),
                paths: Vec::new(),
                tags: Vec::new(),
                description: None,
                program: String::new(),
                root: ChunkNumber::METADATA_FIRST,
                statistics: SnapshotStatistics::default(),
            };
            let numbers = numbers.iter().copied().collect();
            manifest.push_snapshot(snapshot, &numbers, &numbers);
        }
        manifest
    }

    #[test]
    fn lifecycles_are_first_and_last_snapshot() {
        let manifest = manifest(&[&[1, 2, 3], &[2, 3, 4], &[3, 4], &[3, 9]]);
        let found = lifecycles(&manifest, &(0..20).collect());
        let of = |number: u64| found.get(&number).map(|found| (found.row, found.column));
        assert_eq!([1, 2, 3, 4, 9].map(of), [(0, 0), (0, 1), (0, 3), (1, 2), (3, 3)].map(Some));
        assert_eq!(found.len(), 5);
        assert_eq!(lifecycles(&manifest, &[2, 17].into_iter().collect()).len(), 1);
    }

    #[test]
    fn a_catalog_may_refer_to_a_chunk_for_a_part_of_its_lifecycle() {
        let mut manifest = manifest(&[&[1, 2], &[2, 3]]);
        let snapshot = Snapshot { id: SnapshotId([9; 32]), ..manifest.snapshots()[0].clone() };
        manifest.push_snapshot(snapshot, &[3].into_iter().collect(), &[2, 3].into_iter().collect());
        let numbers = (0..20).collect();
        let columns = |found: HashMap<u64, Lifecycle>| [1, 2, 3].map(|number| found.get(&number).map(|of| of.column));
        assert_eq!(columns(lifecycles(&manifest, &numbers)), [0, 2, 2].map(Some));
        assert_eq!(columns(direct_lifecycles(&manifest, &numbers)), [0, 1, 2].map(Some));
    }
}
