//! Requests of [`Storage::read_many`](super::Storage::read_many): an object and the part of it that is read.

use super::ObjectName;

/// The request for an object, or for a part of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadRequest {
    /// The object.
    pub name: ObjectName,
    /// The part of it.
    pub part: Part,
}

/// The part of an object that is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The whole object, as by [`Storage::read`](super::Storage::read).
    Whole {
        /// The greatest length that is read, in bytes.
        bytes_max: u64,
    },
    /// A range, as by [`Storage::read_range`](super::Storage::read_range).
    Range {
        /// Begin of the range, in bytes from the object's start.
        offset: u64,
        /// Length of the range in bytes.
        length: usize,
    },
}

impl ReadRequest {
    /// A request for a whole object of at most `bytes_max` bytes.
    pub fn whole(name: ObjectName, bytes_max: u64) -> Self {
        Self { name, part: Part::Whole { bytes_max } }
    }

    /// A request for `length` bytes from `offset`.
    pub fn range(name: ObjectName, offset: u64, length: usize) -> Self {
        Self { name, part: Part::Range { offset, length } }
    }
}
