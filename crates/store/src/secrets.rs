//! The secrets of an open repository: one random master key, and one derived key per purpose.
//!
//! Every purpose has its own key, so that a part can be handed out alone: a client that can add backups and read none
//! ([`WriteOnlyKey`]) has the fingerprint and chunker keys and the manifest key of one series, but neither the data nor
//! the metadata key. Derivation is BLAKE3's `derive_key` over master key and repository identity, with a context string
//! per purpose that is part of the format; from keys that are of one series, keyed BLAKE3 of its id gives that series'.

use crate::config::Config;
use crate::error::StoreError;
use crate::header::{KeyMode, ObjectKind, Salt};
use crate::ids::{ChunkNumber, Fingerprint, RepositoryId, SeriesId};
use crate::recipient::{self, Recipient};
use crate::storage::ObjectName;
use crate::write_only::{WriteOnlyKey, WriteOnlySettings};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
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

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The key of one series among those that this one stands for.
    fn of_series(&self, series: SeriesId) -> Self {
        Self(Zeroizing::new(*blake3::keyed_hash(&self.0, &series.0).as_bytes()))
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

/// The master key and the way that an object's key derives by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Derivation {
    /// The epoch of the master key.
    pub epoch: Epoch,
    /// The way.
    pub mode: KeyMode,
}

impl Derivation {
    /// Returns the derivation of an object that a holder of the master key of this epoch sealed.
    pub const fn of_master(epoch: Epoch) -> Self {
        Self { epoch, mode: KeyMode::Derived }
    }
}

/// The keys that objects are sealed with under one master key.
#[derive(Clone)]
struct SealingKeys {
    data: PurposeKey,
    metadata: PurposeKey,
    /// From it the key of each series' manifests derives.
    manifests: PurposeKey,
    /// The secret key that opens what write-only clients seal.
    recipient: PurposeKey,
    /// From it the write key of each series derives.
    write: PurposeKey,
}

impl SealingKeys {
    fn derive(master: &MasterKey, repository: RepositoryId) -> Self {
        let purpose = |context: &str| PurposeKey::derive(context, master, repository);
        Self {
            data: purpose("siltstone v1 data"),
            metadata: purpose("siltstone v1 metadata"),
            manifests: purpose("siltstone v1 manifests"),
            recipient: purpose("siltstone v1 recipient"),
            write: purpose("siltstone v1 write keys"),
        }
    }

    /// The purpose key of an object of key mode 0.
    fn derived(&self, name: &ObjectName, kind: ObjectKind) -> PurposeKey {
        match (kind, name.series()) {
            (ObjectKind::DataContainer, _) => self.data.clone(),
            (ObjectKind::Manifest | ObjectKind::ManifestPart, Some(series)) => self.manifests.of_series(series),
            _ => self.metadata.clone(),
        }
    }

    /// The purpose key of an object of key mode 1; `None` if nobody can have sealed it.
    fn sealed_to_recipient(&self, name: &ObjectName, salt: &Salt) -> Result<Option<PurposeKey>, StoreError> {
        let Some(series) = name.series() else { return Ok(None) };
        recipient::open_with(&self.recipient, &self.write.of_series(series), salt)
    }
}

/// The keys that a client seals with that can read nothing but the manifests of its series.
#[derive(Clone)]
struct WriteOnlyKeys {
    series: SeriesId,
    series_name: String,
    recipient: Recipient,
    write: PurposeKey,
    /// The series' manifest keys of epochs 1, 2, ...; never empty.
    manifests: Vec<PurposeKey>,
    /// Purpose keys of what this process has sealed, so that it can read that back: by salt.
    own: Arc<Mutex<HashMap<Salt, PurposeKey>>>,
}

impl WriteOnlyKeys {
    fn create(&self, name: &ObjectName, kind: ObjectKind) -> Result<NewKey, StoreError> {
        if self.writes(name, kind) {
            let (salt, purpose) = recipient::seal_to(&self.recipient, &self.write)?;
            self.own.lock().unwrap_or_else(PoisonError::into_inner).insert(salt, purpose.clone());
            return Ok(NewKey { purpose, salt, mode: KeyMode::Recipient });
        }
        let manifests = self.manifests.last().filter(|_| self.reads(name, kind));
        let purpose = manifests.ok_or_else(|| write_only(name))?.clone();
        Ok(NewKey { purpose, salt: random_bytes()?, mode: KeyMode::Derived })
    }

    fn open(
        &self,
        name: &ObjectName,
        kind: ObjectKind,
        salt: &Salt,
        derivation: Derivation,
    ) -> Result<Option<PurposeKey>, StoreError> {
        match derivation.mode {
            KeyMode::Derived if self.reads(name, kind) => Ok(at_epoch(&self.manifests, derivation.epoch).cloned()),
            KeyMode::Recipient if self.writes(name, kind) => {
                let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
                own.get(salt).cloned().map(Some).ok_or_else(|| write_only(name))
            }
            _ => Err(write_only(name)),
        }
    }

    fn reads(&self, name: &ObjectName, kind: ObjectKind) -> bool {
        matches!(kind, ObjectKind::Manifest | ObjectKind::ManifestPart) && name.series() == Some(self.series)
    }

    fn writes(&self, name: &ObjectName, kind: ObjectKind) -> bool {
        kind.allows(KeyMode::Recipient) && name.series() == Some(self.series)
    }
}

fn write_only(name: &ObjectName) -> StoreError {
    StoreError::WriteOnly { what: format!("opening {name}") }
}

fn at_epoch<T>(keys: &[T], epoch: Epoch) -> Option<&T> {
    keys.get(usize::try_from(epoch.0.checked_sub(1)?).ok()?)
}

/// A purpose key for a new object, and what its header says of it.
pub(crate) struct NewKey {
    pub(crate) purpose: PurposeKey,
    pub(crate) salt: Salt,
    pub(crate) mode: KeyMode,
}

#[derive(Clone)]
enum Sealing {
    /// Keys of epochs 1, 2, ...; never empty.
    All(Vec<SealingKeys>),
    WriteOnly(Box<WriteOnlyKeys>),
}

/// The keys of an open repository: the derived ones, without the master keys themselves. Objects are sealed
/// under the newest epoch and opened under any; everything else stays that of the first, so that chunks are found again
/// across rotations.
///
/// Those of a write-only client open the manifests of its series alone, and what it has sealed itself since it began.
#[derive(Clone)]
pub struct RepositoryKeys {
    repository: RepositoryId,
    sealing: Sealing,
    fingerprints: PurposeKey,
    metadata_fingerprints: PurposeKey,
    chunker: PurposeKey,
    /// The key that names series by; a write-only client has another one there, which hits no series but its own.
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
        let sealing = older.iter().chain([newest]).map(|master| SealingKeys::derive(master, repository));
        Self {
            repository,
            sealing: Sealing::All(sealing.collect()),
            fingerprints: purpose("siltstone v1 fingerprints"),
            metadata_fingerprints: purpose("siltstone v1 metadata fingerprints"),
            chunker: purpose("siltstone v1 chunker"),
            series_names: purpose("siltstone v1 series names"),
            cache: purpose("siltstone v1 local cache"),
        }
    }

    /// The keys that a write-only key holds.
    pub(crate) fn of_write_only(key: &WriteOnlyKey) -> Self {
        let purpose = |bytes: &Zeroizing<[u8; 32]>| PurposeKey(bytes.clone());
        let sealing = WriteOnlyKeys {
            series: key.series,
            series_name: key.series_name.clone(),
            recipient: key.recipient,
            write: purpose(&key.write),
            manifests: key.manifests.iter().map(purpose).collect(),
            own: Arc::default(),
        };
        let cache = purpose(&key.cache);
        Self {
            repository: key.repository,
            sealing: Sealing::WriteOnly(Box::new(sealing)),
            fingerprints: purpose(&key.fingerprints),
            metadata_fingerprints: purpose(&key.metadata_fingerprints),
            chunker: purpose(&key.chunker_key),
            series_names: cache.clone(),
            cache,
        }
    }

    /// Makes the key of a client that can add backups to this series and read none.
    ///
    /// # Errors
    /// [`StoreError::WriteOnly`] if these are such a client's keys themselves.
    pub fn write_only(&self, series_name: &str, config: &Config) -> Result<WriteOnlyKey, StoreError> {
        let all = match &self.sealing {
            Sealing::All(all) => all.as_slice(),
            Sealing::WriteOnly(_) => &[],
        };
        let newest = all.last().ok_or_else(|| StoreError::WriteOnly { what: "making a key".to_owned() })?;
        let series = self.series_id(series_name);
        Ok(WriteOnlyKey {
            repository: self.repository,
            series,
            series_name: series_name.to_owned(),
            recipient: recipient::public_of(&newest.recipient)?,
            write: newest.write.of_series(series).0,
            manifests: all.iter().map(|keys| keys.manifests.of_series(series).0).collect(),
            fingerprints: self.fingerprints.0.clone(),
            metadata_fingerprints: self.metadata_fingerprints.0.clone(),
            chunker_key: self.chunker.0.clone(),
            cache: self.cache.0.clone(),
            settings: WriteOnlySettings::of(config),
        })
    }

    /// The epoch that new objects are sealed under.
    pub fn epoch(&self) -> Epoch {
        let epochs = match &self.sealing {
            Sealing::All(keys) => keys.len(),
            Sealing::WriteOnly(keys) => keys.manifests.len(),
        };
        Epoch(u32::try_from(epochs).unwrap_or(u32::MAX))
    }

    /// All epochs, newest first.
    pub(crate) fn epochs(&self) -> impl Iterator<Item = Epoch> + use<> {
        (1..=self.epoch().0).rev().map(Epoch)
    }

    /// The one series that they can write to, if they are a write-only client's, and its name.
    pub fn write_only_series(&self) -> Option<(SeriesId, &str)> {
        match &self.sealing {
            Sealing::All(_) => None,
            Sealing::WriteOnly(keys) => Some((keys.series, &keys.series_name)),
        }
    }

    /// Makes the purpose key of a new object, under the newest epoch.
    pub(crate) fn create(&self, name: &ObjectName, kind: ObjectKind) -> Result<NewKey, StoreError> {
        match &self.sealing {
            Sealing::All(keys) => {
                let newest = keys.last().ok_or_else(|| no_epoch(name))?;
                Ok(NewKey { purpose: newest.derived(name, kind), salt: random_bytes()?, mode: KeyMode::Derived })
            }
            Sealing::WriteOnly(keys) => keys.create(name, kind),
        }
    }

    /// Returns the purpose key of an object; `None` if nobody can have sealed one with this salt.
    ///
    /// # Errors
    /// Damage if there is no such epoch; [`StoreError::WriteOnly`].
    pub(crate) fn open(
        &self,
        name: &ObjectName,
        kind: ObjectKind,
        salt: &Salt,
        derivation: Derivation,
    ) -> Result<Option<PurposeKey>, StoreError> {
        match &self.sealing {
            Sealing::All(keys) => {
                let keys = at_epoch(keys, derivation.epoch).ok_or_else(|| no_epoch(name))?;
                match derivation.mode {
                    KeyMode::Derived => Ok(Some(keys.derived(name, kind))),
                    KeyMode::Recipient => keys.sealed_to_recipient(name, salt),
                }
            }
            Sealing::WriteOnly(keys) => keys.open(name, kind, salt, derivation),
        }
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

    /// The identity of the series with this name. With a write-only key, of any other name than that of its own series
    /// it is an id that no series has.
    pub fn series_id(&self, name: &str) -> SeriesId {
        match self.write_only_series() {
            Some((series, own)) if own == name => series,
            _ => SeriesId(self.series_names.hash_128(name.as_bytes())),
        }
    }

    /// The key that seals what this machine keeps for itself.
    pub(crate) fn cache_purpose(&self) -> &PurposeKey {
        &self.cache
    }
}

fn no_epoch(name: &ObjectName) -> StoreError {
    StoreError::damaged(name, "epoch", "there is no master key of that number")
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

    fn sealing(keys: &RepositoryKeys, epoch: u32) -> Option<&SealingKeys> {
        let Sealing::All(all) = &keys.sealing else { return None };
        at_epoch(all, Epoch(epoch))
    }

    fn first(keys: &RepositoryKeys) -> &SealingKeys {
        sealing(keys, 1).expect("the first")
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
        let SealingKeys { manifests, recipient, write, .. } = first(&keys);
        let series = keys.series_id("home");
        let public = recipient::public_of(recipient).expect("a public key");
        let all = [*manifests.of_series(series).0, public, *write.of_series(series).0].concat();
        assert_eq!(
            blake3::hash(&all).to_hex().as_str(),
            "0185860bc50ece2210094f89a4bfa326e89c9c74d5947ef8e80ab4ec3db75067"
        );
    }

    #[test]
    fn every_key_depends_on_master_repository_and_purpose() {
        let all = [keys(1, 2), keys(2, 2), keys(1, 3)];
        let mut seen = std::collections::BTreeSet::new();
        for keys in &all {
            let SealingKeys { data, metadata, manifests, recipient, write } = first(keys);
            let of_series =
                [3, 4].map(|byte| SeriesId([byte; 16])).map(|id| [manifests.of_series(id), write.of_series(id)]);
            for key in [data, metadata, manifests, recipient, write].into_iter().chain(of_series.as_flattened()) {
                assert!(seen.insert(*key.0));
            }
            assert!(seen.insert(*keys.fingerprints.0) && seen.insert(*keys.metadata_fingerprints.0));
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
        let data = |keys: &RepositoryKeys, epoch| *sealing(keys, epoch).expect("one").data.0;
        assert_eq!(data(&before, 1), data(&after, 1));
        assert_eq!(data(&after, 2), data(&keys(5, 2), 1));
        assert!(sealing(&after, 0).is_none() && sealing(&after, 3).is_none());
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
