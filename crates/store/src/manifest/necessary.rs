//! Which chunks each live snapshot needs, kept as differences along the series.
//!
//! NC(i), the necessary chunks of the i-th live snapshot, is NC(i-1) less `removed(i)`, with `added(i)`; NC(-1) is empty. A difference
//! is minimal: `added(i)` shares nothing with NC(i-1), `removed(i)` lies within it. So the union of all `added` is what lives, and
//! taking a snapshot out means composing its difference with the next one's: no NC is ever spelled out for that.
//!
//! Interval property: a number that once left is never needed again (numbers are never reused, and a backup only refers to the
//! chunks of the snapshot before it). Deleting snapshots therefore frees what lived only in them, in any position.
//!
//! Cost: everything here is linear in the sizes of the differences; one NC at a time is in memory.

use roaring::RoaringTreemap;
use std::collections::BTreeSet;

/// The step from one live snapshot to the next.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Difference {
    pub(super) added: RoaringTreemap,
    pub(super) removed: RoaringTreemap,
}

/// The necessary chunks of all live snapshots, in commit order.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct NecessaryChunks {
    differences: Vec<Difference>,
}

impl NecessaryChunks {
    pub(super) fn from_differences(differences: Vec<Difference>) -> Self {
        Self { differences }
    }

    pub(super) fn differences(&self) -> &[Difference] {
        &self.differences
    }

    pub(super) fn len(&self) -> usize {
        self.differences.len()
    }

    pub(super) fn push(&mut self, necessary: &RoaringTreemap) {
        let mut before = RoaringTreemap::new();
        self.differences.iter().for_each(|difference| difference.apply(&mut before));
        self.push_after(&before, necessary);
    }

    /// As [`push`](Self::push), given what the last snapshot needs.
    pub(super) fn push_after(&mut self, before: &RoaringTreemap, necessary: &RoaringTreemap) {
        self.differences.push(Difference { added: necessary - before, removed: before - necessary }.optimized());
    }

    /// NC of the snapshot at this position; empty beyond the last.
    pub(super) fn at(&self, position: usize) -> RoaringTreemap {
        let mut necessary = RoaringTreemap::new();
        if position < self.len() {
            self.differences.iter().take(position + 1).for_each(|difference| difference.apply(&mut necessary));
        }
        necessary
    }

    /// Shows the NC of each snapshot in turn.
    pub(super) fn for_each(&self, mut visit: impl FnMut(usize, &RoaringTreemap)) {
        let mut necessary = RoaringTreemap::new();
        for (position, difference) in self.differences.iter().enumerate() {
            difference.apply(&mut necessary);
            visit(position, &necessary);
        }
    }

    /// Each snapshot's NC with what `more` gives for it.
    pub(super) fn extended(&self, mut more: impl FnMut(usize, &RoaringTreemap) -> RoaringTreemap) -> Self {
        let (mut old, mut before) = (RoaringTreemap::new(), RoaringTreemap::new());
        let mut extended = Self::default();
        for (position, difference) in self.differences.iter().enumerate() {
            difference.apply(&mut old);
            let now = more(position, &old) | &old;
            extended.push_after(&before, &now);
            before = now;
        }
        extended
    }

    /// What any live snapshot needs.
    pub(super) fn live(&self) -> RoaringTreemap {
        self.differences.iter().fold(RoaringTreemap::new(), |live, difference| live | &difference.added)
    }

    /// The series without the snapshots at these positions.
    pub(super) fn without(&self, positions: &BTreeSet<usize>) -> Self {
        let mut kept = Vec::new();
        let mut skipped: Option<Difference> = None;
        for (position, difference) in self.differences.iter().enumerate() {
            let whole = match skipped.take() {
                Some(before) => before.then(difference),
                None => difference.clone(),
            };
            if positions.contains(&position) {
                skipped = Some(whole);
            } else {
                kept.push(whole.optimized());
            }
        }
        Self { differences: kept }
    }

    /// A number of `part` that is missing here, with the position of the snapshot where it is.
    pub(super) fn first_lack(&self, part: &Self) -> Option<(usize, u64, &'static str)> {
        let (mut whole, mut of_part) = (RoaringTreemap::new(), RoaringTreemap::new());
        self.differences.iter().zip(&part.differences).enumerate().find_map(|(position, (all, some))| {
            all.apply(&mut whole);
            some.apply(&mut of_part);
            let lacking = (&of_part - &whole).min()?;
            Some((position, lacking, "is referred to but not said to be needed"))
        })
    }

    /// A number that breaks the rules above, with the position of the snapshot where it does.
    pub(super) fn first_fault(&self) -> Option<(usize, u64, &'static str)> {
        let mut necessary = RoaringTreemap::new();
        let mut gone = RoaringTreemap::new();
        for (position, difference) in self.differences.iter().enumerate() {
            let at = |number: u64, fault| Some((position, number, fault));
            if let Some(number) = (&difference.added & &necessary).min() {
                return at(number, "is added though the snapshot before needs it");
            }
            if let Some(number) = (&difference.removed - &necessary).min() {
                return at(number, "is removed though the snapshot before does not need it");
            }
            if let Some(number) = (&difference.added & &gone).min() {
                return at(number, "is needed again after a snapshot that did not need it");
            }
            gone |= &difference.removed;
            difference.apply(&mut necessary);
        }
        None
    }
}

impl Difference {
    fn apply(&self, necessary: &mut RoaringTreemap) {
        *necessary -= &self.removed;
        *necessary |= &self.added;
    }

    /// Both steps as one: what came and stayed or came later, what went and did not return.
    fn then(self, next: &Self) -> Self {
        let added = (&self.added - &next.removed) | (&next.added - &self.removed);
        let removed = (&self.removed - &next.added) | (&next.removed - &self.added);
        Self { added, removed }
    }

    /// Stored in runs wherever that is smaller.
    fn optimized(mut self) -> Self {
        self.added.optimize();
        self.removed.optimize();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Snapshots as plain sets that keep the interval property: each keeps a part of the one before and adds new numbers.
    fn series() -> impl Strategy<Value = Vec<BTreeSet<u64>>> {
        let step = (prop::collection::vec(any::<prop::sample::Index>(), 0..20), 0u64..40, any::<bool>());
        prop::collection::vec(step, 0..12).prop_map(|steps| {
            let (mut current, mut next, mut all) = (BTreeSet::new(), 0u64, Vec::new());
            for (dropped, fresh, metadata) in steps {
                for index in dropped {
                    let numbers: Vec<u64> = current.iter().copied().collect();
                    if !numbers.is_empty() {
                        current.remove(index.get(&numbers));
                    }
                }
                let base = if metadata { 1 << 63 } else { 0 };
                current.extend((next..next + fresh).map(|number| base + number));
                next += fresh;
                all.push(current.clone());
            }
            all
        })
    }

    fn chunks(series: &[BTreeSet<u64>]) -> NecessaryChunks {
        let mut chunks = NecessaryChunks::default();
        for set in series {
            chunks.push(&set.iter().copied().collect());
        }
        chunks
    }

    fn plain(bitmap: &RoaringTreemap) -> BTreeSet<u64> {
        bitmap.iter().collect()
    }

    proptest! {
        #[test]
        fn differences_hold_what_plain_sets_hold(series in series(), picked: u16) {
            let all = chunks(&series);
            prop_assert_eq!(all.first_fault(), None);
            let removed: BTreeSet<usize> = (0..series.len()).filter(|position| picked >> position & 1 == 1).collect();
            let kept = all.without(&removed);
            let model: Vec<_> =
                series.iter().enumerate().filter(|(position, _)| !removed.contains(position)).map(|(_, set)| set.clone()).collect();
            prop_assert_eq!(&kept, &chunks(&model));
            prop_assert_eq!(kept.first_fault(), None);
            for (position, set) in model.iter().enumerate() {
                prop_assert_eq!(&plain(&kept.at(position)), set);
            }
            let mut seen = Vec::new();
            kept.for_each(|position, necessary| seen.push((position, plain(necessary))));
            prop_assert_eq!(seen, model.iter().cloned().enumerate().collect::<Vec<_>>());
            let live: BTreeSet<u64> = model.iter().flatten().copied().collect();
            prop_assert_eq!(plain(&kept.live()), live);
        }
    }

    #[test]
    fn a_number_that_comes_back_is_found() {
        let sets = [BTreeSet::from([1, 2]), BTreeSet::from([2]), BTreeSet::from([1, 2])];
        let fault = chunks(&sets).first_fault();
        assert!(matches!(fault, Some((2, 1, _))), "{fault:?}");
    }
}
