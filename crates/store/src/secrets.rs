//! The secrets of an open repository: one random master key, and one derived key per purpose.
//!
//! Every purpose has its own key, so that a part can be handed out alone: a write-only client needs the fingerprint,
//! chunker and series-name keys, but neither the data nor the metadata key. Derivation is BLAKE3's `derive_key` over
//! master key and repository identity, with a context string per purpose that is part of the format.

use crate::error::StoreError;
use crate::ids::{ChunkNumber, Fingerprint, RepositoryId, SeriesId};
use serde::{Deserialize, Serialize};
use std::fmt;
use zeroize::Zeroizing;

/// `N` bytes from the system's random source.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], StoreError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| StoreError::Machine {
        operation: "asking the system for random bytes",
        reason: error.to_string(),
    })?;
    Ok(bytes)
}

/// The secret from which all others of a repository derive; wiped from memory when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct MasterKey(Zeroizing<[u8; Self::BYTES]>);

impl MasterKey {
    /// Bytes of a master key.
    pub const BYTES: usize = 32;

    /// A fresh one.
    pub fn random() -> Result<Self, StoreError> {
        Ok(Self(Zeroizing::new(random_bytes()?)))
    }

    /// The one with these bytes.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKey(secret)")
    }
}

/// A key for one purpose; wiped from memory when dropped.
#[derive(Clone)]
pub(crate) struct PurposeKey(Zeroizing<[u8; 32]>);

impl PurposeKey {
    pub(crate) fn from_bytes(bytes: Zeroizing<[u8; 32]>) -> Self {
        Self(bytes)
    }

    fn derive(context: &str, master: &MasterKey, repository: RepositoryId) -> Self {
        let mut material = Zeroizing::new([0; MasterKey::BYTES + 16]);
        let (secret, identity) = material.split_at_mut(MasterKey::BYTES);
        secret.copy_from_slice(master.bytes());
        identity.copy_from_slice(&repository.0);
        Self(Zeroizing::new(blake3::derive_key(context, material.as_slice())))
    }

    /// Keyed BLAKE3 of the bytes, first 128 bits.
    fn hash_128(&self, bytes: &[u8]) -> [u8; 16] {
        first_half(blake3::keyed_hash(&self.0, bytes).as_bytes())
    }

    pub(crate) fn hasher(&self) -> blake3::Hasher {
        blake3::Hasher::new_keyed(&self.0)
    }
}

fn first_half(hash: &[u8; 32]) -> [u8; 16] {
    let mut half = [0; 16];
    half.iter_mut().zip(hash).for_each(|(to, from)| *to = *from);
    half
}

impl Fingerprint {
    /// The fingerprint of the chunk whose keyed BLAKE3 this is.
    pub fn of_hash(hash: &[u8; 32]) -> Self {
        Self(first_half(hash))
    }
}

/// The number of a master key: the first is 1, and each rotation makes the next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Epoch(pub u32);

impl Epoch {
    /// The epoch of a repository whose master key was never changed.
    pub const FIRST: Self = Self(1);
}

/// The keys that objects are sealed with under one master key.
#[derive(Clone)]
pub(crate) struct SealingKeys {
    pub(crate) data: PurposeKey,
    pub(crate) metadata: PurposeKey,
}

/// The keys of an open repository: the derived ones, without the master keys themselves. Objects are sealed
/// under the newest epoch and opened under any; everything else stays that of the first, so that chunks are found again
/// across rotations.
#[derive(Clone)]
pub struct RepositoryKeys {
    repository: RepositoryId,
    /// Keys of epochs 1, 2, ...; never empty.
    sealing: Vec<SealingKeys>,
    fingerprints: PurposeKey,
    metadata_fingerprints: PurposeKey,
    chunker: PurposeKey,
    series_names: PurposeKey,
    cache: PurposeKey,
}

impl RepositoryKeys {
    /// Derives every purpose's key from the one master key there is.
    pub fn derive(master: &MasterKey, repository: RepositoryId) -> Self {
        Self::derive_all(&[], master, repository)
    }

    /// Derives every purpose's key from the master keys of epochs 1, 2, ... and the newest.
    pub fn derive_all(older: &[MasterKey], newest: &MasterKey, repository: RepositoryId) -> Self {
        let purpose = |context: &str| PurposeKey::derive(context, older.first().unwrap_or(newest), repository);
        let sealing = |master: &MasterKey| SealingKeys {
            data: PurposeKey::derive("siltstone v1 data", master, repository),
            metadata: PurposeKey::derive("siltstone v1 metadata", master, repository),
        };
        Self {
            repository,
            sealing: older.iter().chain([newest]).map(sealing).collect(),
            fingerprints: purpose("siltstone v1 fingerprints"),
            metadata_fingerprints: purpose("siltstone v1 metadata fingerprints"),
            chunker: purpose("siltstone v1 chunker"),
            series_names: purpose("siltstone v1 series names"),
            cache: purpose("siltstone v1 local cache"),
        }
    }

    /// The epoch that new objects are sealed under.
    pub fn epoch(&self) -> Epoch {
        Epoch(u32::try_from(self.sealing.len()).unwrap_or(u32::MAX))
    }

    /// All epochs, newest first.
    pub(crate) fn epochs(&self) -> impl Iterator<Item = Epoch> + use<> {
        (1..=self.epoch().0).rev().map(Epoch)
    }

    /// Returns the keys that objects are sealed with in an epoch; `None` if there is none of that number.
    pub(crate) fn sealing(&self, epoch: Epoch) -> Option<&SealingKeys> {
        self.sealing.get(usize::try_from(epoch.0.checked_sub(1)?).ok()?)
    }

    /// The repository these keys are of.
    pub fn repository(&self) -> RepositoryId {
        self.repository
    }

    /// The fingerprint of a data chunk.
    pub fn fingerprint(&self, bytes: &[u8]) -> Fingerprint {
        Fingerprint(self.fingerprints.hash_128(bytes))
    }

    /// The key of [`Self::fingerprint`], for those who hash many data chunks at once and then take
    /// [`Fingerprint::of_hash`].
    pub fn fingerprint_key(&self) -> [u8; 32] {
        *self.fingerprints.0
    }

    /// The fingerprint of a metadata chunk: another key, so that a file holding the very bytes of a catalog node is
    /// still never taken for it.
    pub fn metadata_fingerprint(&self, bytes: &[u8]) -> Fingerprint {
        Fingerprint(self.metadata_fingerprints.hash_128(bytes))
    }

    /// The fingerprint of the chunk with this number, data or metadata.
    pub fn fingerprint_of(&self, number: ChunkNumber, bytes: &[u8]) -> Fingerprint {
        if number.is_metadata() { self.metadata_fingerprint(bytes) } else { self.fingerprint(bytes) }
    }

    /// The key of the chunker, from which its table is made: without it cuts cannot be foretold.
    pub fn chunker_key(&self) -> [u8; 32] {
        *self.chunker.0
    }

    /// The key that authenticates what this machine caches about the repository.
    pub fn cache_key(&self) -> [u8; 32] {
        *self.cache.0
    }

    /// The identity of the series with this name.
    pub fn series_id(&self, name: &str) -> SeriesId {
        SeriesId(self.series_names.hash_128(name.as_bytes()))
    }
}

impl fmt::Debug for RepositoryKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RepositoryKeys({}, secret)", self.repository)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(master: u8, repository: u8) -> RepositoryKeys {
        RepositoryKeys::derive(&MasterKey::from_bytes([master; 32]), RepositoryId([repository; 16]))
    }

    /// These values are format: a change here makes every repository unreadable.
    #[test]
    fn derivation_never_changes() {
        let keys = keys(1, 2);
        assert_eq!(keys.fingerprint(b"chunk").to_string(), "2b63e1b12783275641e50a9718bdebe9");
        assert_eq!(keys.metadata_fingerprint(b"chunk").to_string(), "acf7120a12b12b2aa4773067fb9c2a50");
        assert_eq!(keys.series_id("home").to_string(), "56d38f96f85265f0e3f818080e2af8dc");
        assert_eq!(
            blake3::hash(&keys.chunker_key()).to_hex().as_str(),
            "bbbc7540c47d1cefab69fa8e9f764d19a29683e17a04626e5054aefbf082618d"
        );
    }

    #[test]
    fn every_key_depends_on_master_repository_and_purpose() {
        let all = [keys(1, 2), keys(2, 2), keys(1, 3)];
        let mut seen = std::collections::BTreeSet::new();
        for keys in &all {
            let sealing = keys.sealing(Epoch::FIRST).expect("the first");
            for key in [&sealing.data, &sealing.metadata, &keys.fingerprints, &keys.metadata_fingerprints] {
                assert!(seen.insert(*key.0));
            }
            for key in [&keys.chunker, &keys.series_names, &keys.cache] {
                assert!(seen.insert(*key.0));
            }
        }
    }

    #[test]
    fn a_new_master_key_changes_what_objects_are_sealed_with_and_nothing_else() {
        let master = |byte| MasterKey::from_bytes([byte; 32]);
        let (before, repository) = (keys(1, 2), RepositoryId([2; 16]));
        let after = RepositoryKeys::derive_all(&[master(1)], &master(5), repository);
        assert_eq!((before.epoch(), after.epoch()), (Epoch(1), Epoch(2)));
        assert_eq!(before.fingerprint(b"chunk"), after.fingerprint(b"chunk"));
        assert_eq!((before.chunker_key(), before.series_id("home")), (after.chunker_key(), after.series_id("home")));
        let data = |keys: &RepositoryKeys, epoch| *keys.sealing(Epoch(epoch)).expect("one").data.0;
        assert_eq!(data(&before, 1), data(&after, 1));
        assert_eq!(data(&after, 2), data(&keys(5, 2), 1));
        assert!(after.sealing(Epoch(0)).is_none() && after.sealing(Epoch(3)).is_none());
    }

    #[test]
    fn data_and_metadata_fingerprints_of_equal_bytes_differ() {
        let keys = keys(1, 2);
        assert_ne!(keys.fingerprint(b"same"), keys.metadata_fingerprint(b"same"));
        assert_eq!(keys.fingerprint_of(ChunkNumber(3), b"same"), keys.fingerprint(b"same"));
        assert_eq!(keys.fingerprint_of(ChunkNumber::METADATA_FIRST, b"same"), keys.metadata_fingerprint(b"same"));
    }

    #[test]
    fn secrets_do_not_print() {
        assert_eq!(format!("{:?}", MasterKey::from_bytes([7; 32])), "MasterKey(secret)");
        assert!(format!("{:?}", keys(7, 7)).ends_with("secret)"));
    }
}
