//! The order in which containers are visited.
//!
//! Row and column of a container are the first and the last live snapshot that needs one of its chunks.
//! *Always-forward-reference* order (`MeGA`, ATC'22, sections 3.4 and 4.4) goes by columns ascending, rows descending,
//! and backwards within: where containers lie in their categories, deltas then come before their bases, small before
//! large, and what waits are deltas. Where the layout is not that tidy a base may come first; then it waits.

use crate::lifecycle::Lifecycle;
use roaring::RoaringTreemap;
use siltstone_store::ContainerId;
use siltstone_store::container::ContainerRecord;
use siltstone_store::manifest::Manifest;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::OnceLock;

/// Where a container stands in the order; the least comes first.
pub(crate) type Rank = (usize, Reverse<usize>, Reverse<ContainerId>);

/// The order of the containers of a manifest, computed when it is first asked for.
#[derive(Debug)]
pub(crate) struct Order<'m> {
    manifest: &'m Manifest,
    hulls: OnceLock<HashMap<ContainerId, Lifecycle>>,
}

impl<'m> Order<'m> {
    pub(crate) fn new(manifest: &'m Manifest) -> Self {
        Self { manifest, hulls: OnceLock::new() }
    }

    /// Where a container stands. One that the manifest does not know, or no live snapshot needs, comes last.
    pub(crate) fn rank(&self, record: &ContainerRecord) -> Rank {
        let hulls = self.hulls.get_or_init(|| hulls(self.manifest));
        let hull = hulls.get(&record.id).copied();
        let Lifecycle { row, column } = hull.unwrap_or(Lifecycle { row: 0, column: usize::MAX });
        (column, Reverse(row), Reverse(record.id))
    }
}

/// The least lifecycle that covers those of a container's chunks, of every container that a live snapshot needs
/// something of.
///
/// # Complexity
/// One pass over the manifest's differences; of the numbers in them, one look for each stretch within a container's
/// run.
fn hulls(manifest: &Manifest) -> HashMap<ContainerId, Lifecycle> {
    let mut spans: Vec<(u64, u64, ContainerId)> = Vec::new();
    for record in &manifest.containers {
        spans.extend(record.chunks.iter().map(|run| (*run.range().start(), *run.range().end(), record.id)));
    }
    spans.sort_unstable();
    let mut hulls: HashMap<ContainerId, Lifecycle> = HashMap::new();
    for (position, (added, removed)) in manifest.differences().enumerate() {
        for_each_met(added, &spans, |id| {
            hulls.entry(id).or_insert(Lifecycle { row: position, column: position });
        });
        for_each_met(removed, &spans, |id| {
            if let Some(hull) = hulls.get_mut(&id) {
                hull.column = hull.column.max(position.saturating_sub(1));
            }
        });
    }
    if let Some(last) = manifest.snapshots().len().checked_sub(1) {
        for_each_met(&manifest.necessary(last), &spans, |id| {
            if let Some(hull) = hulls.get_mut(&id) {
                hull.column = last;
            }
        });
    }
    hulls
}

/// Calls `met` for each span that holds a number of the bitmap.
fn for_each_met(numbers: &RoaringTreemap, spans: &[(u64, u64, ContainerId)], mut met: impl FnMut(ContainerId)) {
    let mut numbers = numbers.iter();
    while let Some(number) = numbers.next() {
        let at = spans.partition_point(|(_, last, _)| *last < number);
        let Some((first, last, id)) = spans.get(at) else { return };
        if *first <= number {
            met(*id);
            let Some(next) = last.checked_add(1) else { return };
            numbers.advance_to(next);
        } else {
            numbers.advance_to(*first);
        }
    }
}
