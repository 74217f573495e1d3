//! The record of the repository: identity, required features, how chunks are cut, which key slots count, which series
//! there are, and settings. Sealed under the metadata key of the newest master key; committed as a chain (module
//! `chain`).
//!
//! Required features stand first, so that a program that does not know one of them says its name instead of stumbling
//! over what that feature changed behind.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

pub(crate) mod chain;
pub mod older;

use crate::container::{CONTAINER_BYTES_DEFAULT, CONTAINER_BYTES_TARGETS, ContainerKind};
use crate::encoding;
use crate::error::StoreError;
use crate::ids::{KeyId, RepositoryId, SeriesId, Time};
use crate::manifest::PART_BYTES_MAX;
use crate::region::CHUNK_BYTES_MAX;
use crate::sealed::{ObjectKind, open_object, seal_object};
use crate::secrets::{MasterKey, RepositoryKeys};
use crate::storage::{CONFIG_BYTES_MAX, ObjectName};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use zeroize::Zeroizing;

/// The features this program knows: none beyond version 1 itself so far.
pub const FEATURES_KNOWN: [&str; 0] = [];
/// The most parity there can be, in percent of what it protects.
pub const PARITY_PERCENT_MAX: u8 = 100;
/// The name of the setting of [`Config::part_bytes`]: a little-endian u32.
const PART_BYTES: &str = "manifest part bytes";
/// Bytes of a manifest's parts unless set otherwise. A list of this length costs a commit less as a whole than the
/// round trips for parts of it would: 256 KiB with its copy, some 20 ms at 100 Mbit/s. It is that of 4096 containers,
/// 64 GB.
const PART_BYTES_DEFAULT: usize = 128 << 10;
const PART_BYTES_LEAST: usize = 32;
const PART_BYTES_MOST: usize = PART_BYTES_MAX / 4;

/// The setting of what containers of data are filled to.
const CONTAINER_BYTES: &str = "container bytes";

/// Settings of the chunker. The name says which one; whether it is known is for the engine to say.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ChunkerSettings {
    /// The chunker's name, for ever bound to its cuts.
    pub name: String,
    /// The shortest chunk in bytes, but for the last of a file; at least 1.
    pub min_bytes: u32,
    /// The expected size in bytes.
    pub average_bytes: u32,
    /// The longest chunk in bytes, at most [`CHUNK_BYTES_MAX`].
    pub max_bytes: u32,
}

/// Parity that new containers get, in percent of their size; 0 for none.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct ParitySettings {
    /// Percent for containers of data.
    pub data_percent: u8,
    /// Percent for containers of metadata.
    pub metadata_percent: u8,
}

/// The record of a repository as one commit leaves it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Features that a program must know to touch the repository at all.
    pub features: Vec<String>,
    /// The repository's identity.
    pub repository: RepositoryId,
    /// Settings of the chunker.
    pub chunker: ChunkerSettings,
    /// Time at which the repository was made.
    pub created: Time,
    /// Number of the commit, from 1; also in the object's name.
    pub sequence: u64,
    /// BLAKE3 of the whole object of the record before; zeros in the first.
    pub previous: [u8; 32],
    /// The master keys before the one this record is sealed under, of epochs 1, 2, ...
    pub older_masters: Vec<MasterKey>,
    /// The key slots that count; never empty.
    pub key_slots: BTreeSet<KeyId>,
    /// The keys of write-only clients, and the series of each.
    pub write_only: BTreeMap<KeyId, SeriesId>,
    /// The series, by their names. One that is here and has no manifest is lost.
    pub series: BTreeMap<SeriesId, String>,
    /// Parity that new containers get.
    pub parity: ParitySettings,
    /// Further settings by name. Those that a program does not know it keeps as they are.
    pub settings: BTreeMap<String, Vec<u8>>,
}

/// The part of the record that follows the features on disk.
#[derive(Serialize, Deserialize)]
struct Body {
    repository: RepositoryId,
    chunker: ChunkerSettings,
    created: Time,
    sequence: u64,
    previous: [u8; 32],
    older_masters: Vec<Zeroizing<[u8; MasterKey::BYTES]>>,
    key_slots: BTreeSet<KeyId>,
    write_only: BTreeMap<KeyId, SeriesId>,
    series: BTreeMap<SeriesId, String>,
    parity: ParitySettings,
    settings: BTreeMap<String, Vec<u8>>,
}

impl Config {
    /// The record of a new repository, with one key slot and no series. Its sequence is 0, which is never written.
    pub fn new(repository: RepositoryId, chunker: ChunkerSettings, created: Time, slot: KeyId) -> Self {
        Self {
            features: Vec::new(),
            repository,
            chunker,
            created,
            sequence: 0,
            previous: [0; 32],
            older_masters: Vec::new(),
            key_slots: BTreeSet::from([slot]),
            write_only: BTreeMap::new(),
            series: BTreeMap::new(),
            parity: ParitySettings::default(),
            settings: BTreeMap::new(),
        }
    }

    /// The name of its object.
    pub fn object_name(&self) -> ObjectName {
        ObjectName::Config(self.sequence)
    }

    /// Returns the ids of all keys that count, those of write-only clients among them.
    pub fn all_keys(&self) -> BTreeSet<KeyId> {
        self.key_slots.iter().chain(self.write_only.keys()).copied().collect()
    }

    /// Returns the bytes that containers of this kind are filled to.
    pub fn container_bytes(&self, kind: ContainerKind) -> u64 {
        match kind {
            ContainerKind::Data => self.data_container_bytes(&self.object_name()).unwrap_or(CONTAINER_BYTES_DEFAULT),
            ContainerKind::Metadata => CONTAINER_BYTES_DEFAULT,
        }
    }

    /// Sets the bytes that containers of data are filled to.
    ///
    /// # Errors
    /// [`StoreError::Limit`] for less or more than there can be.
    pub fn set_container_bytes(&mut self, bytes: u64) -> Result<(), StoreError> {
        require_container_bytes(&self.object_name(), bytes)?;
        self.settings.insert(CONTAINER_BYTES.to_owned(), encoding::encode(&bytes)?);
        Ok(())
    }

    fn data_container_bytes(&self, name: &ObjectName) -> Result<u64, StoreError> {
        let Some(value) = self.settings.get(CONTAINER_BYTES) else { return Ok(CONTAINER_BYTES_DEFAULT) };
        let bytes = encoding::decode(name, "container bytes", value)?;
        require_container_bytes(name, bytes)?;
        Ok(bytes)
    }

    /// The bytes of its object.
    pub fn seal(&self, keys: &RepositoryKeys) -> Result<Vec<u8>, StoreError> {
        self.validate(&self.object_name(), keys)?;
        let body = Body {
            repository: self.repository,
            chunker: self.chunker.clone(),
            created: self.created,
            sequence: self.sequence,
            previous: self.previous,
            older_masters: self.older_masters.iter().map(|master| Zeroizing::new(*master.bytes())).collect(),
            key_slots: self.key_slots.clone(),
            write_only: self.write_only.clone(),
            series: self.series.clone(),
            parity: self.parity,
            settings: self.settings.clone(),
        };
        let plain = Zeroizing::new(encoding::append(&body, encoding::encode(&self.features)?)?);
        let object = seal_object(keys, &self.object_name(), ObjectKind::Config, &plain)?;
        match object.len() as u64 {
            bytes if bytes > CONFIG_BYTES_MAX => {
                Err(StoreError::limit(&self.object_name(), "its size in bytes", bytes, CONFIG_BYTES_MAX))
            }
            _ => Ok(object),
        }
    }

    /// Opens the object `config/<sequence>`.
    ///
    /// # Errors
    /// [`StoreError::UnknownFeature`] by name, [`StoreError::Damaged`], [`StoreError::Misplaced`] for another
    /// repository's or one that is sealed under another master key.
    pub fn open(keys: &RepositoryKeys, sequence: u64, object: Vec<u8>) -> Result<Self, StoreError> {
        let name = ObjectName::Config(sequence);
        let plain = Zeroizing::new(open_object(keys, &name, ObjectKind::Config, object)?);
        let (features, rest) = encoding::take::<Vec<String>>(&name, "features", &plain)?;
        refuse_unknown(&name, &features)?;
        let body: Body = encoding::decode(&name, "content", rest)?;
        let config = Self {
            features,
            repository: body.repository,
            chunker: body.chunker,
            created: body.created,
            sequence: body.sequence,
            previous: body.previous,
            older_masters: body.older_masters.iter().map(|master| MasterKey::from_bytes(**master)).collect(),
            key_slots: body.key_slots,
            write_only: body.write_only,
            series: body.series,
            parity: body.parity,
            settings: body.settings,
        };
        config.validate(&name, keys)?;
        Ok(config)
    }

    /// Returns the bytes of a list of a manifest that is yet kept in one piece, and of the parts of a longer one.
    pub fn part_bytes(&self) -> usize {
        let set = self.settings.get(PART_BYTES).and_then(|value| value.as_slice().try_into().ok());
        let set = set.and_then(|value| usize::try_from(u32::from_le_bytes(value)).ok());
        set.unwrap_or(PART_BYTES_DEFAULT).clamp(PART_BYTES_LEAST, PART_BYTES_MOST)
    }

    /// Sets what [`Config::part_bytes`] returns.
    pub fn set_part_bytes(&mut self, bytes: u32) {
        self.settings.insert(PART_BYTES.to_owned(), bytes.to_le_bytes().to_vec());
    }

    fn validate(&self, name: &ObjectName, keys: &RepositoryKeys) -> Result<(), StoreError> {
        refuse_unknown(name, &self.features)?;
        if self.repository != keys.repository() {
            return Err(StoreError::Misplaced { object: name.to_string() });
        }
        if *name != self.object_name() {
            return Err(StoreError::damaged(name, "content", "it names another sequence number"));
        }
        if self.key_slots.is_empty() {
            return Err(StoreError::damaged(name, "content", "it names no key slot"));
        }
        if self.write_only.keys().any(|id| self.key_slots.contains(id)) {
            return Err(StoreError::damaged(name, "content", "a key slot is of two kinds"));
        }
        self.validate_settings(name)
    }

    /// Checks how chunks, containers and parity are to be made.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] or [`StoreError::Limit`] of `name`.
    pub(crate) fn validate_settings(&self, name: &ObjectName) -> Result<(), StoreError> {
        let percent = self.parity.data_percent.max(self.parity.metadata_percent);
        if percent > PARITY_PERCENT_MAX {
            return Err(StoreError::limit(name, "percent of parity", percent.into(), PARITY_PERCENT_MAX.into()));
        }
        self.data_container_bytes(name)?;
        self.chunker.validate(name)
    }
}

impl ChunkerSettings {
    fn validate(&self, name: &ObjectName) -> Result<(), StoreError> {
        let Self { min_bytes, average_bytes, max_bytes, .. } = *self;
        let limit = CHUNK_BYTES_MAX as u64;
        if u64::from(max_bytes) > limit {
            return Err(StoreError::limit(name, "the longest chunk", max_bytes.into(), limit));
        }
        if !(1 <= min_bytes && min_bytes <= average_bytes && average_bytes <= max_bytes) {
            return Err(StoreError::damaged(name, "content", "its chunk sizes are out of order"));
        }
        Ok(())
    }
}

fn require_container_bytes(name: &ObjectName, bytes: u64) -> Result<(), StoreError> {
    if bytes < *CONTAINER_BYTES_TARGETS.start() {
        return Err(StoreError::damaged(name, "container bytes", "containers are filled to 16 MiB at least"));
    }
    if bytes > *CONTAINER_BYTES_TARGETS.end() {
        return Err(StoreError::limit(name, "the size of containers", bytes, *CONTAINER_BYTES_TARGETS.end()));
    }
    Ok(())
}

fn refuse_unknown(name: &ObjectName, features: &[String]) -> Result<(), StoreError> {
    match features.iter().find(|feature| !FEATURES_KNOWN.contains(&feature.as_str())) {
        None => Ok(()),
        Some(feature) => Err(StoreError::UnknownFeature { object: name.to_string(), feature: feature.clone() }),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use crate::secrets::MasterKey;

    fn keys(repository: u8) -> RepositoryKeys {
        RepositoryKeys::derive(&MasterKey::from_bytes([1; 32]), RepositoryId([repository; 16]))
    }

    fn config() -> Config {
        let chunker = ChunkerSettings { name: "gear".into(), min_bytes: 4096, average_bytes: 16384, max_bytes: 65536 };
        let created = Time { seconds: 1_700_000_000, nanoseconds: 0 };
        Config {
            sequence: 7,
            previous: [8; 32],
            older_masters: vec![MasterKey::from_bytes([3; 32])],
            write_only: BTreeMap::from([(KeyId([6; 16]), SeriesId([4; 16]))]),
            series: BTreeMap::from([(SeriesId([4; 16]), "home".to_owned())]),
            parity: ParitySettings { data_percent: 5, metadata_percent: 50 },
            settings: BTreeMap::from([("of a later program".to_owned(), vec![1, 2, 3])]),
            ..Config::new(RepositoryId([2; 16]), chunker, created, KeyId([9; 16]))
        }
    }

    #[test]
    fn a_config_comes_back_as_it_was() {
        assert_eq!(Config::open(&keys(2), 7, config().seal(&keys(2)).unwrap()).unwrap(), config());
    }

    #[test]
    fn a_config_of_another_repository_number_or_master_key_is_refused() {
        let object = config().seal(&keys(2)).unwrap();
        let other = RepositoryKeys::derive(&MasterKey::from_bytes([9; 32]), RepositoryId([2; 16]));
        for (keys, sequence) in [(keys(3), 7), (keys(2), 8), (other, 7)] {
            let error = Config::open(&keys, sequence, object.clone()).unwrap_err();
            assert!(matches!(error, StoreError::Misplaced { .. }), "{error:?}");
        }
    }

    #[test]
    fn an_unknown_feature_is_refused_by_name_whatever_follows_it() {
        let plain = encoding::encode(&["time travel"].as_slice()).unwrap();
        let object =
            seal_object(&keys(2), &ObjectName::Config(1), ObjectKind::Config, &[plain, vec![255; 9]].concat()).unwrap();
        let error = Config::open(&keys(2), 1, object).unwrap_err().to_string();
        assert!(error.contains("time travel") && error.contains("newer"), "{error}");
    }

    #[test]
    fn absurd_numbers_are_refused() {
        for (min_bytes, average_bytes, max_bytes) in [(0, 1, 2), (3, 2, 4), (1, 5, 4), (1, 2, u32::MAX)] {
            let mut config = config();
            config.chunker = ChunkerSettings { name: "gear".into(), min_bytes, average_bytes, max_bytes };
            assert!(config.seal(&keys(2)).is_err());
        }
        let parity = ParitySettings { data_percent: 0, metadata_percent: 101 };
        assert!(Config { parity, ..config() }.seal(&keys(2)).is_err());
        assert!(Config { key_slots: BTreeSet::new(), ..config() }.seal(&keys(2)).is_err());
        let twice = BTreeMap::from([(KeyId([9; 16]), SeriesId([4; 16]))]);
        assert!(Config { write_only: twice, ..config() }.seal(&keys(2)).is_err());
    }

    #[test]
    fn containers_of_data_are_filled_to_what_the_settings_say() {
        let mut config = config();
        let filled_to =
            |config: &Config| [ContainerKind::Data, ContainerKind::Metadata].map(|kind| config.container_bytes(kind));
        assert_eq!(filled_to(&config), [16 << 20, 16 << 20]);
        config.set_container_bytes(64 << 20).unwrap();
        let read = Config::open(&keys(2), 7, config.seal(&keys(2)).unwrap()).unwrap();
        assert_eq!(filled_to(&read), [64 << 20, 16 << 20]);
        for bytes in [0, (16 << 20) - 1, (128 << 20) + 1, u64::MAX] {
            assert!(config.set_container_bytes(bytes).is_err(), "{bytes}");
            let hostile = BTreeMap::from([(CONTAINER_BYTES.to_owned(), encoding::encode(&bytes).unwrap())]);
            assert!(Config { settings: hostile, ..config.clone() }.seal(&keys(2)).is_err(), "{bytes}");
        }
        let torn = BTreeMap::from([(CONTAINER_BYTES.to_owned(), vec![0x80])]);
        assert!(Config { settings: torn, ..config }.seal(&keys(2)).is_err());
    }

    #[test]
    fn a_config_too_large_to_be_read_is_not_written() {
        let settings = BTreeMap::from([("large".to_owned(), vec![1; 9 << 20])]);
        assert!(matches!(Config { settings, ..config() }.seal(&keys(2)), Err(StoreError::Limit { .. })));
    }
}
