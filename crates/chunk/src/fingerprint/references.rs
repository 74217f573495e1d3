//! Other hashes, one chunk at a time, to compare with. Nothing that is stored depends on them.
//!
//! SHA-1 and SHA-256 name chunks in other tools; SHA-1 is broken. XXH3 is no fingerprint at all: it is not collision
//! resistant, anyone can make two chunks with the same value. It shows what a checksum costs.

use sha1::Sha1;
use sha2::{Digest, Sha256};
use xxhash_rust::xxh3::xxh3_128;

/// A hash to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reference {
    /// SHA-1, FIPS 180-4: 20 bytes.
    Sha1,
    /// SHA-256, FIPS 180-4: 32 bytes.
    Sha256,
    /// XXH3 with 128 bits, big-endian as its canonical form: 16 bytes. No fingerprint: not collision resistant.
    Xxh3,
    /// BLAKE3 without a key by its crate, each chunk for itself: 32 bytes.
    Blake3,
}

impl Reference {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Sha1, Self::Sha256, Self::Xxh3, Self::Blake3];

    /// Returns the name of the hash.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Xxh3 => "xxh3-128",
            Self::Blake3 => "blake3",
        }
    }

    /// The one of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reference| reference.name() == name)
    }

    /// The hash of a chunk; zeros follow one shorter than 32 bytes.
    pub fn hash(self, chunk: &[u8]) -> [u8; 32] {
        match self {
            Self::Sha1 => with_zeros(&Sha1::digest(chunk)),
            Self::Sha256 => with_zeros(&Sha256::digest(chunk)),
            Self::Xxh3 => with_zeros(&xxh3_128(chunk).to_be_bytes()),
            Self::Blake3 => *blake3::hash(chunk).as_bytes(),
        }
    }
}

fn with_zeros(hash: &[u8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..hash.len()].copy_from_slice(hash);
    bytes
}
