//! Portions of a dump that are worked on together.
//!
//! Workers read ahead of what is written. Each region is decoded ahead by a task of its own, and kept until the last
//! portion of the group that lies in it; single chunks that come again are kept longer (`kept`). Where regions are
//! deltas that is not enough, for their bases lie in many others: of a group with deltas all content is gathered
//! together.

use super::kept;
use super::prefetch::{AtHand, Portion, ReadContent, Step};
use crate::chunks::{Address, ChunkSource};
use lru::LruCache;
use siltstone_store::ChunkNumber;
use std::collections::{BTreeSet, VecDeque};

/// The most steps in a group, about: of small files their metadata is what takes memory.
const GROUP_STEPS_MAX: usize = 1 << 16;
/// The least that a task counts of what may be done ahead, bytes: so there are not too many of them.
pub(super) const TASK_BYTES_MIN: usize = 64 << 10;

/// Part of the work on a group.
pub(super) enum Task {
    /// Decodes a region, of so many bytes, that portions to come will have.
    Decode(Address, usize),
    /// Reads a portion that is kept, or whose region is decoded by then.
    ReadDecoded(Portion),
    /// Reads a portion whose content was gathered.
    ReadGathered(Portion),
}

impl Task {
    /// Returns how much more memory its result takes, about, bytes.
    pub(super) fn weight(&self) -> usize {
        let bytes = match self {
            Self::Decode(_, bytes) => *bytes,
            Self::ReadDecoded(portion) => portion.kept_bytes(),
            Self::ReadGathered(portion) => portion.bytes,
        };
        bytes.max(TASK_BYTES_MIN)
    }

    pub(super) fn run(self, chunks: &ChunkSource<'_>, at_hand: &AtHand) -> Vec<Step<ReadContent>> {
        match self {
            Self::Decode(address, _) => {
                // What cannot be read is told where its content is read.
                let _ = chunks.region(address.container, address.region);
                Vec::new()
            }
            Self::ReadDecoded(portion) | Self::ReadGathered(portion) => portion.read(chunks, at_hand),
        }
    }
}

/// Portions that follow each other.
#[derive(Default)]
pub(super) struct PortionGroup {
    pub(super) portions: Vec<Portion>,
}

impl PortionGroup {
    /// Takes portions until they have about so many bytes of content, one at least; `None` if there are none.
    pub(super) fn next(portions: &mut impl Iterator<Item = Portion>, bytes_max: usize) -> Option<Self> {
        let (mut group, mut bytes, mut steps) = (Self::default(), 0, 0);
        while group.portions.is_empty() || (bytes < bytes_max && steps < GROUP_STEPS_MAX) {
            let Some(portion) = portions.next() else { break };
            bytes += portion.bytes;
            steps += portion.steps.len();
            group.portions.push(portion);
        }
        (!group.portions.is_empty()).then_some(group)
    }

    /// Finds what is kept until it comes again, so many bytes at a time; a portion that is kept needs no region.
    fn mark_kept(&mut self, bytes_max: usize) {
        kept::mark(self.portions.iter_mut().flat_map(Portion::content_mut).collect(), bytes_max);
        for portion in &mut self.portions {
            if portion.content().all(|wanted| wanted.kept_for.is_some()) {
                portion.region = None;
            }
        }
    }

    /// Finds the portions after which their region is not wanted again.
    fn mark_last(&mut self) {
        let mut wanted = BTreeSet::new();
        for portion in self.portions.iter_mut().rev() {
            portion.is_last = portion.region.is_some_and(|region| wanted.insert(region));
        }
    }

    /// Turns into the tasks that read it. Regions are decoded by tasks of their own, about `bytes_ahead` before they
    /// are read: while one worker decodes a region, the others need not wait for it. The cache holds `cached_bytes`,
    /// and of what comes again `kept_bytes` are kept.
    pub(super) fn into_tasks(
        mut self,
        bytes_ahead: usize,
        cached_bytes: usize,
        kept_bytes: usize,
        chunks: &ChunkSource<'_>,
    ) -> Vec<Task> {
        self.mark_kept(kept_bytes);
        self.mark_last();
        // What cannot be read is told where its content is read.
        self.tasks(bytes_ahead, cached_bytes, |address| chunks.plain_bytes(address).unwrap_or(0))
    }

    fn tasks(self, bytes_ahead: usize, cached_bytes: usize, bytes_of: impl Fn(Address) -> usize) -> Vec<Task> {
        let mut begun = self.begun(cached_bytes, bytes_of).into_iter();
        let (mut ahead, mut weights_ahead) = (0, VecDeque::new());
        let mut tasks = Vec::new();
        // The first portion that begins a region for which there is no task yet, and its task.
        let mut next = begun.next();
        for (at, portion) in self.portions.into_iter().enumerate() {
            while ahead < bytes_ahead.max(1)
                && let Some((begins, address, bytes)) = next
            {
                let task = Task::Decode(address, bytes);
                ahead += task.weight();
                weights_ahead.push_back((begins, task.weight()));
                tasks.push(task);
                next = begun.next();
            }
            if let Some((_, weight)) = weights_ahead.pop_front_if(|(begins, _)| *begins == at) {
                ahead -= weight;
            }
            tasks.push(Task::ReadDecoded(portion));
        }
        tasks
    }

    /// The portions that begin a region which the cache does not hold by then, with its bytes.
    fn begun(&self, cached_bytes: usize, bytes_of: impl Fn(Address) -> usize) -> Vec<(usize, Address, usize)> {
        let (mut cache, mut cached, mut begun) = (LruCache::unbounded(), 0, Vec::new());
        for (at, portion) in self.portions.iter().enumerate() {
            let Some(region) = portion.region else { continue };
            if cache.get(&region).is_none() {
                let bytes = bytes_of(region);
                begun.push((at, region, bytes));
                cache.put(region, bytes);
                cached += bytes;
            }
            while cached > cached_bytes
                && let Some((_, oldest)) = cache.pop_lru()
            {
                cached -= oldest;
            }
            let gone = if portion.is_last { cache.pop(&region) } else { None };
            cached -= gone.unwrap_or(0);
        }
        begun
    }

    /// Turns into the tasks that read it from what was gathered.
    pub(super) fn into_reads(self) -> Vec<Task> {
        self.portions.into_iter().map(Task::ReadGathered).collect()
    }

    /// Tells whether some content lies in region deltas.
    pub(super) fn has_deltas(&self, chunks: &ChunkSource<'_>) -> bool {
        // What cannot be read is told where its content is read.
        self.regions().into_iter().any(|address| chunks.has_bases(address).unwrap_or(false))
    }

    fn regions(&self) -> BTreeSet<Address> {
        self.portions.iter().filter_map(|portion| portion.region).collect()
    }

    /// Returns the chunks of its content.
    pub(super) fn numbers(&self) -> BTreeSet<ChunkNumber> {
        self.portions.iter().flat_map(Portion::content).map(|wanted| wanted.number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(regions: &[usize]) -> PortionGroup {
        let portion = |region: &usize| {
            let region = Some(Address { container: 0, region: *region });
            Portion { region, ..Portion::default() }
        };
        PortionGroup { portions: regions.iter().map(portion).collect() }
    }

    #[test]
    fn portions_know_whether_their_region_comes_again() {
        let mut group = group(&[0, 0, 1, 0, 2, 1]);
        group.mark_last();
        let is_last: Vec<bool> = group.portions.iter().map(|portion| portion.is_last).collect();
        assert_eq!(is_last, [false, false, false, true, true, true]);
    }

    /// The regions of a group's tasks, those to decode as they are, those to read on in less 100; the cache holds so
    /// many of them.
    fn tasks(regions: &[usize], mib_ahead: usize, cached: usize) -> Vec<isize> {
        let mut group = group(regions);
        group.mark_last();
        let shown = |task: &Task| match task {
            Task::Decode(address, _) => address.region.cast_signed(),
            Task::ReadDecoded(portion) | Task::ReadGathered(portion) => {
                portion.region.map_or(0, |at| at.region.cast_signed()) - 100
            }
        };
        group.tasks(mib_ahead << 20, cached << 20, |_| 1 << 20).iter().map(shown).collect()
    }

    #[test]
    fn regions_are_decoded_so_many_bytes_before_they_are_read() {
        assert_eq!(tasks(&[0, 0, 1, 0, 1, 2], 0, 9), [0, -100, 1, -100, -99, 2, -100, -99, -98]);
        assert_eq!(tasks(&[0, 0, 1, 0, 1, 2], 2, 9), [0, 1, -100, 2, -100, -99, -100, -99, -98]);
        assert_eq!(tasks(&[0, 1], 9, 9), [0, 1, -100, -99]);
        assert!(tasks(&[], 1, 1).is_empty());
    }

    #[test]
    fn regions_that_the_cache_no_longer_holds_are_decoded_again() {
        assert_eq!(tasks(&[0, 1, 0, 1], 0, 2), [0, -100, 1, -99, -100, -99]);
        assert_eq!(tasks(&[0, 1, 0, 1], 0, 1), [0, -100, 1, -99, 0, -100, 1, -99]);
    }
}
