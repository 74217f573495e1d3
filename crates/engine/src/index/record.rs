//! A record of the index as it lies in a run: 16 bytes fingerprint, then the chunk number as little-endian u64. Packed
//! records compare as their fingerprints do.

use siltstone_store::{ChunkNumber, Fingerprint};

pub(super) const RECORD_BYTES: usize = 24;

/// A record in its stored form.
pub(super) type Packed = [u8; RECORD_BYTES];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Record {
    pub(super) fingerprint: Fingerprint,
    pub(super) number: ChunkNumber,
}

impl Record {
    pub(super) fn pack(self) -> Packed {
        let mut packed = [0; RECORD_BYTES];
        let (fingerprint, number) = packed.split_at_mut(16);
        fingerprint.copy_from_slice(&self.fingerprint.0);
        number.copy_from_slice(&self.number.0.to_le_bytes());
        packed
    }

    pub(super) fn unpack(packed: &Packed) -> Self {
        let (mut fingerprint, mut number) = ([0; 16], [0; 8]);
        fingerprint.copy_from_slice(&packed[..16]);
        number.copy_from_slice(&packed[16..]);
        Self { fingerprint: Fingerprint(fingerprint), number: ChunkNumber(u64::from_le_bytes(number)) }
    }
}
