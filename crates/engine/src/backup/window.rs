//! New chunks that wait for a while, so that those that resemble one another come to lie in one region.
//!
//! zstd finds again what lies in the same region, and nothing else. Copies of a program in one archive, or table pages
//! and the log that holds them, are many regions apart when they come. So new chunks wait in a window of
//! [`WINDOW_BYTES`]. A region is filled with the chunk that has waited longest and those that have most in common with
//! it, then with the next one that waits, and so on: what resembles nothing keeps its order. A chunk never moves
//! farther than the window is long, so that a restore in order reads few regions before their turn.
//!
//! Bytes that first backups store, to those without a window: an archive of TypeScript 0.79, Python's library 0.95, a
//! data folder of `PostgreSQL` 0.96, the image of a system 0.97, sources of OpenSSL 0.98, C headers and a dump of Redis
//! 1.00 (`data_added_packed`, medians of three, November 2026). Twice the window gains no more than 1 % on whole
//! histories of archives, images and `PostgreSQL`.
//!
//! [Anchors](siltstone_similar::anchors) tell what resembles what: a chunk has one in about 128 bytes. They are
//! computed once: whoever looks for bases among the new chunks needs them too. The window looks at one in four: its
//! table then stays in the cache, and what is stored is the same within the 1 % by which repositories differ whose
//! chunks are cut by other keys.

use crate::decode::Bytes;
use crate::delta::Likeness;
use siltstone_store::region::ChunkEntry;
use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};

/// Text of the window, bytes. It shapes the repository's bytes.
pub(super) const WINDOW_BYTES: usize = 16 << 20;
/// The window looks at one anchor in so many.
const ONE_ANCHOR_IN: u32 = 4;
/// Anchors in common, of those looked at, from which on chunks lie together: about a kibibyte of text.
const ANCHORS_IN_COMMON_MIN: u32 = 2;
/// Slots of the table of anchors: twice as many as are looked at in a window, about.
const SLOTS: usize = 1 << 16;
/// The slot that holds nothing.
const EMPTY: u64 = u64::MAX;

/// A chunk that waits for its region.
pub(super) struct WaitingChunk {
    pub(super) entry: ChunkEntry,
    pub(super) likeness: Likeness,
    /// Part of the batch in which it came.
    pub(super) text: Bytes,
    /// The group of chunks that are to lie together: the place of the first of them.
    group: u64,
}

impl WaitingChunk {
    /// A chunk that has come.
    pub(super) fn new(entry: ChunkEntry, likeness: Likeness, text: Bytes) -> Self {
        Self { entry, likeness, text, group: 0 }
    }

    /// Returns the anchors that the window looks at.
    fn anchors(&self) -> impl Iterator<Item = u32> + use<'_> {
        self.likeness.anchors().iter().copied().filter(|anchor| anchor % ONE_ANCHOR_IN == 0)
    }
}

/// A place in the order in which chunks came.
struct Place {
    /// Length of the chunk.
    bytes: usize,
    /// `None` once it has its region.
    chunk: Option<WaitingChunk>,
}

/// Chunks that wait, in the order in which they came.
pub(super) struct Window {
    /// The oldest that waits, and all since.
    places: VecDeque<Place>,
    /// Number of the first of them; places are counted from the beginning of the backup.
    first: u64,
    /// Bytes of all of them.
    bytes: usize,
    /// Places of the chunks that wait, by group.
    groups: HashMap<u64, VecDeque<u64>>,
    /// By the low bits of an anchor: the anchor, and the low bits of the place of a chunk that has it, the first of
    /// those that wait.
    anchors: Vec<u64>,
}

impl Window {
    /// An empty one.
    pub(super) fn new() -> Self {
        Self { places: VecDeque::new(), first: 0, bytes: 0, groups: HashMap::new(), anchors: Vec::new() }
    }

    /// Tells whether no chunk waits.
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Bytes of the oldest chunk that waits and all since: what their text takes in memory.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes the next chunk.
    pub(super) fn push(&mut self, mut chunk: WaitingChunk) {
        let place = self.first + self.places.len() as u64;
        chunk.group = self.group_of(&chunk).unwrap_or(place);
        self.groups.entry(chunk.group).or_default().push_back(place);
        self.anchors.resize(SLOTS, EMPTY);
        for anchor in chunk.anchors() {
            let slot = slot_of(anchor);
            let is_free = self.anchors.get(slot).is_some_and(|held| self.waiting(*held).is_none());
            if let Some(held) = self.anchors.get_mut(slot).filter(|_| is_free) {
                *held = u64::from(anchor) << 32 | place & u64::from(u32::MAX);
            }
        }
        let bytes = chunk.entry.length as usize;
        self.bytes += bytes;
        self.places.push_back(Place { bytes, chunk: Some(chunk) });
    }

    /// Takes out the chunks of a region of at most so many bytes (one longer chunk excepted), in the order in which
    /// they came; none if none waits.
    pub(super) fn take_region(&mut self, region_bytes: usize) -> Vec<WaitingChunk> {
        let (mut taken, mut bytes) = (Vec::new(), 0);
        'region: while let Some(group) = self.oldest().map(|chunk| chunk.group) {
            while let Some(place) = self.groups.get(&group).and_then(VecDeque::front).copied() {
                let index = usize::try_from(place - self.first).unwrap_or(usize::MAX);
                let Some(found) = self.places.get_mut(index) else { break 'region };
                if bytes > 0 && bytes + found.bytes > region_bytes {
                    break 'region;
                }
                bytes += found.bytes;
                taken.extend(found.chunk.take().map(|chunk| (place, chunk)));
                if let Some(members) = self.groups.get_mut(&group) {
                    members.pop_front();
                }
            }
            self.groups.remove(&group);
        }
        self.oldest();
        taken.sort_unstable_by_key(|(place, _)| *place);
        taken.into_iter().map(|(_, chunk)| chunk).collect()
    }

    /// Returns the oldest chunk that waits; places before it are forgotten.
    fn oldest(&mut self) -> Option<&WaitingChunk> {
        while let Some(Place { bytes, .. }) = self.places.pop_front_if(|place| place.chunk.is_none()) {
            self.bytes -= bytes;
            self.first += 1;
        }
        self.places.front()?.chunk.as_ref()
    }

    /// Returns the group whose waiting chunks have most anchors in common with a chunk, if they have enough; the oldest
    /// of several.
    fn group_of(&self, chunk: &WaitingChunk) -> Option<u64> {
        let mut votes: Vec<(u64, u32)> = Vec::new();
        for anchor in chunk.anchors() {
            let held = self.anchors.get(slot_of(anchor)).copied().filter(|held| held >> 32 == u64::from(anchor));
            let Some(WaitingChunk { group, .. }) = held.and_then(|held| self.waiting(held)) else { continue };
            match votes.iter_mut().find(|(known, _)| known == group) {
                Some((_, votes)) => *votes += 1,
                None => votes.push((*group, 1)),
            }
        }
        let best = votes.into_iter().max_by_key(|(group, votes)| (*votes, Reverse(*group)));
        best.filter(|(_, votes)| *votes >= ANCHORS_IN_COMMON_MIN).map(|(group, _)| group)
    }

    /// Returns the chunk that a slot names, if it waits. After 2^32 chunks it may be another one, which is as good as a
    /// wrong guess.
    #[allow(clippy::cast_possible_truncation, reason = "the low bits")]
    fn waiting(&self, held: u64) -> Option<&WaitingChunk> {
        let index = (held as u32).wrapping_sub(self.first as u32);
        self.places.get(index as usize)?.chunk.as_ref()
    }
}

fn slot_of(anchor: u32) -> usize {
    (anchor / ONE_ANCHOR_IN) as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_store::{ChunkNumber, Fingerprint};

    const CHUNK_BYTES: usize = 16 << 10;

    fn noise(seed: u8) -> Vec<u8> {
        let mut noise = vec![0; CHUNK_BYTES];
        blake3::Hasher::new().update(&[seed]).finalize_xof().fill(&mut noise);
        noise
    }

    /// Pushes chunks of these texts, each in a batch of its own.
    fn push(window: &mut Window, from: u64, texts: &[Vec<u8>]) {
        for (number, text) in (from..).zip(texts) {
            let length = u32::try_from(text.len()).unwrap();
            let entry = ChunkEntry { number: ChunkNumber(number), fingerprint: Fingerprint([0; 16]), length };
            window.push(WaitingChunk::new(entry, Likeness::of(text), text.clone().into()));
        }
    }

    fn numbers(region: &[WaitingChunk]) -> Vec<u64> {
        region.iter().map(|chunk| chunk.entry.number.0).collect()
    }

    #[test]
    fn what_resembles_the_oldest_comes_with_it_and_all_else_keeps_its_order() {
        let mut window = Window::new();
        let half = [&noise(0)[..CHUNK_BYTES / 2], &noise(9)[..CHUNK_BYTES / 2]].concat();
        push(&mut window, 0, &[noise(0), noise(1), noise(2), half, noise(1), noise(4)]);
        let region = window.take_region(3 * CHUNK_BYTES);
        assert_eq!(numbers(&region), [0, 1, 3]);
        assert_eq!(region[1].text, noise(1));
        assert_eq!(window.bytes(), 4 * CHUNK_BYTES, "from the third one on, though the fourth is taken");
        assert_eq!(numbers(&window.take_region(3 * CHUNK_BYTES)), [2, 4, 5], "the rest of a group has its turn first");
        assert!(window.take_region(CHUNK_BYTES).is_empty());
        assert!(window.is_empty() && window.bytes() == 0);
    }

    #[test]
    fn what_has_its_region_draws_nothing() {
        let mut window = Window::new();
        push(&mut window, 0, &[noise(0), noise(1)]);
        assert_eq!(numbers(&window.take_region(CHUNK_BYTES)), [0]);
        push(&mut window, 2, &[noise(0), noise(2), noise(0)]);
        assert_eq!(numbers(&window.take_region(2 * CHUNK_BYTES)), [1, 2]);
        assert_eq!(numbers(&window.take_region(2 * CHUNK_BYTES)), [3, 4]);
    }

    #[test]
    fn a_chunk_longer_than_a_region_has_one_alone() {
        let mut window = Window::new();
        push(&mut window, 0, &[noise(0), noise(1)]);
        assert_eq!(numbers(&window.take_region(1)), [0]);
        assert_eq!(numbers(&window.take_region(1)), [1]);
    }
}
