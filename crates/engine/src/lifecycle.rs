//! Lifecycles: since which live snapshot a chunk is needed, and until which. They follow from the manifest's bitmaps
//! alone.

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

/// The lifecycles of those of `numbers` that any live snapshot needs. What only others need is as old as the first.
///
/// # Complexity
/// One pass over the manifest's differences for each row that `numbers` have.
pub(crate) fn lifecycles(manifest: &Manifest, numbers: &RoaringTreemap) -> HashMap<u64, Lifecycle> {
    let mut found = HashMap::new();
    along(manifest.differences(), numbers, |number, lifecycle| {
        found.insert(number, lifecycle);
    });
    let lent = numbers & &manifest.lent;
    for number in lent {
        found.entry(number).or_insert(Lifecycle { row: 0, column: 0 });
    }
    found
}

/// In which stretches of the series `numbers` are in sets that change by these steps: what was added, what was removed.
/// There are several of what was away for a while.
///
/// # Complexity
/// As [`lifecycles`].
pub(crate) fn stretches<'d>(
    steps: impl ExactSizeIterator<Item = (&'d RoaringTreemap, &'d RoaringTreemap)>,
    numbers: &RoaringTreemap,
) -> HashMap<u64, Vec<Lifecycle>> {
    let mut found: HashMap<u64, Vec<Lifecycle>> = HashMap::new();
    along(steps, numbers, |number, stretch| found.entry(number).or_default().push(stretch));
    found
}

fn along<'d>(
    steps: impl ExactSizeIterator<Item = (&'d RoaringTreemap, &'d RoaringTreemap)>,
    numbers: &RoaringTreemap,
    mut found: impl FnMut(u64, Lifecycle),
) {
    let mut living: Vec<(usize, RoaringTreemap)> = Vec::new();
    let last = steps.len().saturating_sub(1);
    for (position, (added, removed)) in steps.enumerate() {
        for (row, of_row) in &mut living {
            let gone = &*of_row & removed;
            if !gone.is_empty() {
                *of_row -= &gone;
                let lifecycle = Lifecycle { row: *row, column: position.saturating_sub(1) };
                gone.iter().for_each(|number| found(number, lifecycle));
            }
        }
        living.retain(|(_, of_row)| !of_row.is_empty());
        let fresh = added & numbers;
        if !fresh.is_empty() {
            living.push((position, fresh));
        }
    }
    for (row, of_row) in living {
        of_row.iter().for_each(|number| found(number, Lifecycle { row, column: last }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunks::testing::add_snapshot;
    use siltstone_store::manifest::Snapshot;
    use siltstone_store::{SeriesId, SnapshotId};

    fn manifest(necessary: &[&[u64]]) -> Manifest {
        let mut manifest = Manifest::new(SeriesId([0; 16]), "series");
        for numbers in necessary {
            add_snapshot(&mut manifest, numbers.iter().copied());
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
        let found = lifecycles(&manifest, &numbers);
        let columns = [1, 2, 3].map(|number| found.get(&number).map(|of| of.column));
        assert_eq!(columns, [0, 2, 2].map(Some));
        let found = stretches(manifest.direct_differences(), &numbers);
        let columns = [1, 2, 3].map(|number| found[&number].iter().map(|of| of.column).collect::<Vec<_>>());
        assert_eq!(columns, [vec![0], vec![1], vec![2]]);
    }

    #[test]
    fn what_was_away_for_a_while_has_one_lifecycle_and_two_stretches() {
        let manifest = manifest(&[&[1, 2], &[2], &[2, 3], &[1, 3]]);
        let found = lifecycles(&manifest, &(0..20).collect());
        let of = |number: u64| found.get(&number).map(|found| (found.row, found.column));
        assert_eq!([1, 2, 3].map(of), [(0, 3), (0, 2), (2, 3)].map(Some));
        let found = stretches(manifest.direct_differences(), &(0..20).collect());
        let of = |number: u64| found[&number].iter().map(|found| (found.row, found.column)).collect::<Vec<_>>();
        assert_eq!([1, 2, 3].map(of), [vec![(0, 0), (3, 3)], vec![(0, 2)], vec![(2, 3)]]);
    }
}
