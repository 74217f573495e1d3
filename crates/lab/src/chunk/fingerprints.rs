//! Names for chunks: what each hash takes. Every one of them is given all chunks of the data in turn; what is compared
//! is the exclusive or of the first eight bytes of all results.

use super::cuts::Digest;
use crate::isas;
use md5::Md5;
use mur3::murmurhash3_x64_128;
use sha2::{Digest as _, Sha512};
use siltstone_chunk::{Fingerprinter, Isa, Reference};

/// Bytes of a chunk where no chunker cuts.
pub const CHUNK_BYTES: usize = 8 << 10;
/// Chunks handed over at once where a form takes several: what a backup has at hand.
const BATCH: usize = 128;
const KEY: &[u8; 32] = b"siltstone-lab chunk fingerprints";

/// One way to name chunks.
#[derive(Clone, Copy, Debug)]
pub enum Fingerprint {
    /// The crate `blake3`, keyed, one chunk at a time.
    Crate,
    /// Ours: the same values, many chunks at once. Its scalar form is the crate.
    Batch(Isa),
    /// Another hash, one chunk at a time.
    Other(Reference),
    /// MD5, as in `VectorCDC`, Figure 3.
    Md5,
    /// SHA-512, as there.
    Sha512,
    /// `MurmurHash3`, as there: 128 bits in its form for 64-bit processors, seed 0.
    Murmur3,
}

impl Fingerprint {
    /// All there are.
    pub fn all() -> impl Iterator<Item = Self> {
        let batches = isas().filter(|isa| *isa != Isa::SCALAR).map(Self::Batch);
        let others = [Reference::Sha1, Reference::Sha256, Reference::Xxh3].map(Self::Other);
        [Self::Crate].into_iter().chain(batches).chain(others)
    }

    /// Those of `VectorCDC`, TOS'25, Figure 3, and ours.
    pub fn compared() -> Vec<Self> {
        let others = [Reference::Sha1, Reference::Sha256, Reference::Xxh3].map(Self::Other);
        [&[Self::Md5, Self::Sha512, Self::Murmur3], &others[..], &[Self::Crate, Self::Batch(Isa::best())]].concat()
    }

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Crate => "crate:blake3",
            Self::Batch(_) => "blake3-batch",
            Self::Other(reference) => reference.name(),
            Self::Md5 => "md5",
            Self::Sha512 => "sha512",
            Self::Murmur3 => "murmur3-128",
        }
    }

    /// Returns its name in the column `isa`.
    pub fn isa_name(self) -> &'static str {
        match self {
            Self::Batch(isa) => isa.name(),
            _ => "its best",
        }
    }

    /// The one whose results this one's must equal.
    #[must_use]
    pub fn truth(self) -> Self {
        match self {
            Self::Batch(_) => Self::Crate,
            other => other,
        }
    }

    /// Names chunks of [`CHUNK_BYTES`].
    pub fn run(self, data: &[u8]) -> Digest {
        self.over(data.chunks(CHUNK_BYTES))
    }

    /// Names all these chunks.
    pub fn over<'c>(self, chunks: impl Iterator<Item = &'c [u8]>) -> Digest {
        Digest::of_number(match self {
            Self::Crate => chunks.fold(0, |sum, chunk| sum ^ word(blake3::keyed_hash(KEY, chunk).as_bytes())),
            Self::Batch(isa) => batches(chunks, isa),
            Self::Other(reference) => chunks.fold(0, |sum, chunk| sum ^ word(&reference.hash(chunk))),
            Self::Md5 => chunks.fold(0, |sum, chunk| sum ^ word(&Md5::digest(chunk))),
            Self::Sha512 => chunks.fold(0, |sum, chunk| sum ^ word(&Sha512::digest(chunk))),
            Self::Murmur3 => chunks.fold(0, |sum, chunk| sum ^ murmurhash3_x64_128(chunk, 0).0),
        })
    }
}

fn batches<'c>(mut chunks: impl Iterator<Item = &'c [u8]>, isa: Isa) -> u64 {
    let fingerprinter = Fingerprinter::new(KEY, isa);
    let (mut batch, mut names) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
    let mut sum = 0;
    loop {
        batch.clear();
        batch.extend(chunks.by_ref().take(BATCH));
        if batch.is_empty() {
            return sum;
        }
        names.clear();
        fingerprinter.fingerprints(&batch, &mut names);
        sum = names.iter().fold(sum, |sum, name| sum ^ word(name));
    }
}

fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deterministic::Sequence;

    #[test]
    fn murmur3_is_that_of_its_author() {
        // The 128 bits of the reference program for this sentence begin with e34bbc7bbc071b6c.
        let found = Fingerprint::Murmur3.run(b"The quick brown fox jumps over the lazy dog");
        assert_eq!(found, Digest::of_number(0xe34b_bc7b_bc07_1b6c));
    }

    #[test]
    fn every_form_names_chunks_alike() {
        let data = Sequence::new(3).bytes(3 * CHUNK_BYTES * BATCH / 2 + 77);
        for fingerprint in Fingerprint::all().chain(Fingerprint::compared()) {
            assert_eq!(fingerprint.run(&data), fingerprint.truth().run(&data), "{fingerprint:?}");
        }
    }
}
