//! Memory of regions that nobody needs any longer, for those that are decoded next.
//!
//! Memory that comes anew costs the system a microsecond for each page, more than most content takes to be decoded.

use std::collections::VecDeque;

/// Memory for regions: what was given last, no more than so many bytes.
#[derive(Debug, Default)]
pub(crate) struct Spares {
    kept: VecDeque<Vec<u8>>,
    bytes: usize,
    bytes_max: usize,
}

impl Spares {
    /// Keeps at most this much.
    pub(crate) fn at_most(bytes_max: usize) -> Self {
        Self { bytes_max, ..Self::default() }
    }

    /// Keeps at most this many bytes from now on; what is too much goes.
    pub(crate) fn hold_at_most(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
        while self.bytes > self.bytes_max
            && let Some(oldest) = self.kept.pop_front()
        {
            self.bytes -= oldest.capacity();
        }
    }

    /// Returns how much it keeps, bytes.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps the memory of a vector whose content is not wanted any more.
    pub(crate) fn give(&mut self, memory: Vec<u8>) {
        if memory.capacity() > 0 {
            self.bytes += memory.capacity();
            self.kept.push_back(memory);
            self.hold_at_most(self.bytes_max);
        }
    }

    /// Memory that has room, and not too much, for this many bytes; an empty vector if there is none.
    pub(crate) fn take(&mut self, bytes: usize) -> Vec<u8> {
        let memory = self
            .kept
            .iter()
            .rposition(|spare| is_room_for(bytes, spare))
            .and_then(|at| self.kept.remove(at))
            .unwrap_or_default();
        self.bytes -= memory.capacity();
        memory
    }
}

/// Tells whether memory has room, and not too much, for this many bytes.
pub(crate) fn is_room_for(bytes: usize, memory: &Vec<u8>) -> bool {
    (bytes..=bytes.saturating_mul(2)).contains(&memory.capacity())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_to_what_it_has_room_for_and_not_too_much_once() {
        let mut spares = Spares::at_most(1000);
        for bytes in [100, 300] {
            spares.give(Vec::with_capacity(bytes));
        }
        assert_eq!([40, 101, 301].map(|bytes| spares.take(bytes).capacity()), [0; 3]);
        assert_eq!([150, 60, 60].map(|bytes| spares.take(bytes).capacity()), [300, 100, 0]);
        assert_eq!(spares.bytes(), 0);
    }

    #[test]
    fn what_was_given_last_is_kept() {
        let mut spares = Spares::at_most(1000);
        for _ in 0..4 {
            spares.give(Vec::with_capacity(300));
        }
        for bytes in [0, 40, 1001] {
            spares.give(Vec::with_capacity(bytes));
        }
        assert_eq!(spares.bytes(), 0, "one alone is too much");
        for bytes in [300, 300, 500] {
            spares.give(Vec::with_capacity(bytes));
        }
        assert_eq!((spares.bytes(), spares.take(500).capacity()), (800, 500));
        spares.hold_at_most(200);
        assert_eq!((spares.bytes(), spares.take(300).capacity()), (0, 0));
    }
}
