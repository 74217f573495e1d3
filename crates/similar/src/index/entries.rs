//! The chunks an index knows: a ring, so that the oldest make room.

use alloc::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) number: u64,
    /// The last snapshot that needed it.
    pub(super) snapshot: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Entries {
    ring: VecDeque<Entry>,
    capacity: usize,
    /// The serial of the first entry; serials wrap around after four thousand million.
    first: u32,
    snapshot: u32,
}

impl Entries {
    pub(super) fn new(capacity: usize) -> Self {
        Self { ring: VecDeque::with_capacity(capacity), capacity, first: 0, snapshot: 0 }
    }

    pub(super) fn snapshot(&self) -> u32 {
        self.snapshot
    }

    pub(super) fn next_snapshot(&mut self) {
        self.snapshot += 1;
    }

    /// Adds an entry that the current snapshot needs; its serial.
    pub(super) fn push(&mut self, number: u64) -> u32 {
        self.ring.push_back(Entry { number, snapshot: self.snapshot });
        let serial = self.first.wrapping_add(self.count() - 1);
        if self.ring.len() > self.capacity {
            self.ring.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        serial
    }

    /// Notes that the current snapshot needs the chunk of this serial, if it is this chunk.
    pub(super) fn keep(&mut self, serial: u32, number: u64) {
        let place = self.age_order(serial) as usize;
        match self.ring.get_mut(place) {
            Some(entry) if entry.number == number => entry.snapshot = self.snapshot,
            _ => {}
        }
    }

    /// The entry of this serial, unless it was pushed out.
    pub(super) fn get(&self, serial: u32) -> Option<Entry> {
        self.ring.get(self.age_order(serial) as usize).copied()
    }

    /// Greater for newer entries.
    pub(super) fn age_order(&self, serial: u32) -> u32 {
        serial.wrapping_sub(self.first)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        (self.capacity + 1) * size_of::<Entry>()
    }

    #[allow(clippy::cast_possible_truncation)] // A ring of more would take 64 GiB, and only its serials would repeat.
    fn count(&self) -> u32 {
        self.ring.len() as u32
    }
}
