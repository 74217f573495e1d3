//! New chunks, as a backup hands them on to the settling that follows: old chunks are encoded against them.

use super::likeness::{Likeness, LikenessIndex};
use crate::held::HeldBytes;
use siltstone_store::ChunkNumber;
use std::collections::HashMap;

/// Bytes that a text takes beside its own: its place in the table, and what the allocator adds.
const ENTRY_BYTES: u64 = 96;

/// Memory for what is known of new chunks, bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewChunksRoom {
    /// Sketches and anchors.
    pub(crate) similar_bytes: u64,
    /// Text.
    pub(crate) text_bytes: u64,
}

/// New chunks by their sketches and anchors, and the text of those that came first.
pub(crate) struct NewChunks {
    pub(crate) similar: LikenessIndex,
    pub(crate) texts: ChunkTexts,
}

impl NewChunks {
    /// None yet, and so much room for them.
    pub(crate) fn within(room: NewChunksRoom) -> Self {
        let NewChunksRoom { similar_bytes, text_bytes } = room;
        Self { similar: LikenessIndex::within(similar_bytes), texts: ChunkTexts::within(text_bytes) }
    }

    /// Adds a chunk; its text as far as there is room.
    pub(crate) fn insert(&mut self, number: ChunkNumber, likeness: &Likeness, text: HeldBytes) {
        self.similar.insert(number, likeness);
        self.texts.insert(number, text);
    }
}

/// Text of chunks in memory: whoever needs one of them as a base need not read and decode the region that holds it.
#[derive(Default)]
pub(crate) struct ChunkTexts {
    texts: HashMap<ChunkNumber, HeldBytes>,
    room: u64,
}

impl ChunkTexts {
    /// None yet, and room for so many bytes.
    fn within(bytes: u64) -> Self {
        Self { texts: HashMap::new(), room: bytes }
    }

    fn insert(&mut self, number: ChunkNumber, text: HeldBytes) {
        let left = self.room.checked_sub(text.memory_bytes() + ENTRY_BYTES);
        // After the first that does not fit none is kept: each may hold on to the batch that it is a part of.
        self.room = left.unwrap_or(0);
        if left.is_some() {
            self.texts.insert(number, text);
        }
    }

    /// Returns the text of a chunk, if it is here.
    pub(crate) fn get(&self, number: ChunkNumber) -> Option<&HeldBytes> {
        self.texts.get(&number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_that_came_first_is_kept_as_far_as_there_is_room() {
        let mut new = NewChunks::within(NewChunksRoom { similar_bytes: 1 << 20, text_bytes: 10 + 2 * ENTRY_BYTES });
        for (number, text) in [(1, "six ok"), (2, "five!"), (3, "four")] {
            let held = HeldBytes::Plain(text.as_bytes().into());
            new.insert(ChunkNumber(number), &Likeness::of(text.as_bytes()), held);
        }
        let kept = [1, 2, 3].map(|number| new.texts.get(ChunkNumber(number)).map(|held| held.as_held().as_ref()));
        assert_eq!(kept, [Some(&b"six ok"[..]), None, None]);
    }
}
