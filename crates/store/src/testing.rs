//! Helpers of the tests of several modules: keys, bytes, and records of containers.

use crate::container::{ContainerKind, ContainerRecord};
use crate::ids::{ChunkNumber, ChunkRun, ContainerId, RepositoryId};
use crate::sealed::KeyMode;
use crate::secrets::{Epoch, MasterKey, RepositoryKeys};

/// The keys of a repository.
pub(crate) fn keys() -> RepositoryKeys {
    RepositoryKeys::derive(&MasterKey::from_bytes([1; 32]), RepositoryId([2; 16]))
}

/// Bytes that zstd can make nothing of, the same for the same seed.
pub(crate) fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut noise = vec![0; bytes];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut noise);
    noise
}

/// The record of a container with this many chunks from `first` on.
pub(crate) fn container(serial: u32, kind: ContainerKind, first: u64, count: u64) -> ContainerRecord {
    ContainerRecord {
        id: ContainerId { lease: 1, serial },
        kind,
        epoch: Epoch::FIRST,
        mode: KeyMode::Derived,
        salt: [serial.to_le_bytes()[0]; 32],
        object_bytes: 1 << 20,
        index_offset: 1 << 19,
        index_sealed_bytes: 1 << 17,
        held: count,
        has_deltas: false,
        level: 0,
        chunks: vec![ChunkRun { first: ChunkNumber(first), count }],
        run_bytes: vec![count.saturating_mul(1000)],
    }
}
