//! The floors beneath every chunker: reading the data, and copying it.

use super::cuts::Digest;
use crate::memory;
use siltstone_chunk::Isa;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floor {
    /// Every byte is loaded once and looked at.
    Read,
    /// Every byte is loaded and stored.
    Copy,
}

impl Floor {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Read, Self::Copy];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "memory-read",
            Self::Copy => "memcpy",
        }
    }

    /// Returns its name in the column `isa`.
    pub fn isa_name(self) -> &'static str {
        match self {
            Self::Read => Isa::best().name(),
            Self::Copy => "its best",
        }
    }

    /// Returns the digest that a run must find.
    pub fn truth(self, data: &[u8]) -> Digest {
        match self {
            Self::Read => Digest::of_number(memory::largest(data, Isa::SCALAR).into()),
            Self::Copy => last(data),
        }
    }

    /// A run; `scratch` is as long as the data.
    pub fn run(self, data: &[u8], scratch: &mut [u8]) -> Digest {
        match self {
            Self::Read => Digest::of_number(memory::largest(data, Isa::best()).into()),
            Self::Copy => {
                scratch.copy_from_slice(data);
                last(scratch)
            }
        }
    }
}

fn last(data: &[u8]) -> Digest {
    Digest::of_number(data.last().copied().unwrap_or_default().into())
}
