//! Names for chunks: how fast each hash goes over chunks of 8 KiB. Every one of them is given all chunks of the data in turn; what is
//! compared is the exclusive or of the first eight bytes of all results.

use super::cuts::Digest;
use siltstone_chunk::{Fingerprinter, Isa, Reference};

/// Bytes of a chunk here.
pub(super) const CHUNK_BYTES: usize = 8 << 10;
/// Chunks handed over at once where a form takes several: what a backup has at hand.
const BATCH: usize = 128;
const KEY: &[u8; 32] = b"cargo xtask bench fingerprints..";

/// One way to name chunks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fingerprint {
    /// The crate `blake3`, keyed, one chunk at a time.
    Crate,
    /// Ours: the same values, many chunks at once. Its scalar form is the crate.
    Batch(Isa),
    /// Another hash, one chunk at a time.
    Other(Reference),
}

impl Fingerprint {
    /// All there are.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let batches = Isa::available().filter(|isa| *isa != Isa::SCALAR).map(Self::Batch);
        let others = [Reference::Sha1, Reference::Sha256, Reference::Xxh3].map(Self::Other);
        [Self::Crate].into_iter().chain(batches).chain(others)
    }

    /// Its name in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Crate => "crate:blake3",
            Self::Batch(_) => "blake3-batch",
            Self::Other(reference) => reference.name(),
        }
    }

    /// What the column `isa` says.
    pub(super) fn isa_name(self) -> &'static str {
        match self {
            Self::Batch(isa) => isa.name(),
            _ => "its best",
        }
    }

    /// The one whose results this one's must equal.
    pub(super) fn truth(self) -> Self {
        match self {
            Self::Batch(_) => Self::Crate,
            other => other,
        }
    }

    /// Names all chunks of `data`.
    pub(super) fn run(self, data: &[u8]) -> Digest {
        let chunks = data.chunks(CHUNK_BYTES);
        Digest::of_number(match self {
            Self::Crate => chunks.fold(0, |sum, chunk| sum ^ word(blake3::keyed_hash(KEY, chunk).as_bytes())),
            Self::Batch(isa) => batches(data, isa),
            Self::Other(reference) => chunks.fold(0, |sum, chunk| sum ^ word(&reference.hash(chunk))),
        })
    }
}

fn batches(data: &[u8], isa: Isa) -> u64 {
    let fingerprinter = Fingerprinter::new(KEY, isa);
    let mut names = Vec::with_capacity(BATCH);
    data.chunks(BATCH * CHUNK_BYTES).fold(0, |sum, batch| {
        let chunks: Vec<&[u8]> = batch.chunks(CHUNK_BYTES).collect();
        names.clear();
        fingerprinter.fingerprints(&chunks, &mut names);
        names.iter().fold(sum, |sum, name| sum ^ word(name))
    })
}

fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_lab::deterministic::Sequence;

    #[test]
    fn every_form_names_chunks_alike() {
        let data = Sequence::new(3).bytes(3 * CHUNK_BYTES * BATCH / 2 + 77);
        for fingerprint in Fingerprint::all() {
            assert_eq!(fingerprint.run(&data), fingerprint.truth().run(&data), "{fingerprint:?}");
        }
    }
}
