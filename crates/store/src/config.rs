//! The repository's settings, fixed at creation: identity, required features, how chunks are cut. Sealed under the metadata key.
//!
//! Required features stand first, so that a program that does not know one of them says its name instead of stumbling over what
//! that feature changed behind.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use crate::encoding;
use crate::error::StoreError;
use crate::ids::{RepositoryId, Time};
use crate::region::CHUNK_BYTES_MAX;
use crate::sealed::{ObjectKind, open_object, seal_object};
use crate::secrets::RepositoryKeys;
use crate::storage::{ObjectName, Storage};
use serde::{Deserialize, Serialize};

/// The features this program knows: none beyond version 1 itself so far.
pub const FEATURES_KNOWN: [&str; 0] = [];

/// How chunks are cut. The name says which chunker; whether it is known is for the engine to say.
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

/// The settings of a repository.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The repository's identity.
    pub repository: RepositoryId,
    /// What a program must know to touch the repository at all.
    pub features: Vec<String>,
    /// How chunks are cut.
    pub chunker: ChunkerSettings,
    /// When the repository was made.
    pub created: Time,
}

/// What follows the features on disk.
#[derive(Serialize, Deserialize)]
struct Body {
    repository: RepositoryId,
    chunker: ChunkerSettings,
    created: Time,
}

impl Config {
    /// The bytes of the object `config`.
    pub fn seal(&self, keys: &RepositoryKeys) -> Result<Vec<u8>, StoreError> {
        self.validate(keys)?;
        let body = Body { repository: self.repository, chunker: self.chunker.clone(), created: self.created };
        let plain = encoding::append(&body, encoding::encode(&self.features)?)?;
        seal_object(keys, &ObjectName::Config, ObjectKind::Config, &plain)
    }

    /// Opens the object `config`.
    ///
    /// # Errors
    /// [`StoreError::UnknownFeature`] by name, [`StoreError::Damaged`], [`StoreError::Misplaced`] for another repository's.
    pub fn open(keys: &RepositoryKeys, object: Vec<u8>) -> Result<Self, StoreError> {
        let plain = open_object(keys, &ObjectName::Config, ObjectKind::Config, object)?;
        let (features, rest) = encoding::take::<Vec<String>>(&ObjectName::Config, "features", &plain)?;
        refuse_unknown(&features)?;
        let Body { repository, chunker, created } = encoding::decode(&ObjectName::Config, "content", rest)?;
        let config = Self { repository, features, chunker, created };
        config.validate(keys)?;
        Ok(config)
    }

    /// Reads and opens the object `config`.
    ///
    /// # Errors
    /// [`StoreError::NotARepository`] if there is none, and those of [`Config::open`].
    pub fn read(storage: &dyn Storage, keys: &RepositoryKeys) -> Result<Self, StoreError> {
        match storage.read(&ObjectName::Config) {
            Ok(object) => Self::open(keys, object),
            Err(error) if error.is_not_found() => Err(StoreError::NotARepository { location: storage.location() }),
            Err(error) => Err(error.into()),
        }
    }

    fn validate(&self, keys: &RepositoryKeys) -> Result<(), StoreError> {
        refuse_unknown(&self.features)?;
        if self.repository != keys.repository() {
            return Err(StoreError::Misplaced { object: ObjectName::Config.to_string() });
        }
        let ChunkerSettings { min_bytes, average_bytes, max_bytes, .. } = self.chunker;
        if u64::from(max_bytes) > CHUNK_BYTES_MAX as u64 {
            let limit = CHUNK_BYTES_MAX as u64;
            return Err(StoreError::limit(&ObjectName::Config, "the longest chunk", max_bytes.into(), limit));
        }
        if !(1 <= min_bytes && min_bytes <= average_bytes && average_bytes <= max_bytes) {
            return Err(StoreError::damaged(&ObjectName::Config, "content", "its chunk sizes are out of order"));
        }
        Ok(())
    }
}

fn refuse_unknown(features: &[String]) -> Result<(), StoreError> {
    match features.iter().find(|feature| !FEATURES_KNOWN.contains(&feature.as_str())) {
        None => Ok(()),
        Some(feature) => {
            Err(StoreError::UnknownFeature { object: ObjectName::Config.to_string(), feature: feature.clone() })
        }
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
        Config {
            repository: RepositoryId([2; 16]),
            features: Vec::new(),
            chunker: ChunkerSettings { name: "gear".into(), min_bytes: 4096, average_bytes: 16384, max_bytes: 65536 },
            created: Time { seconds: 1_700_000_000, nanoseconds: 0 },
        }
    }

    #[test]
    fn a_config_comes_back_as_it_was() {
        assert_eq!(Config::open(&keys(2), config().seal(&keys(2)).unwrap()).unwrap(), config());
    }

    #[test]
    fn another_repository_s_config_is_refused() {
        let error = Config::open(&keys(3), config().seal(&keys(2)).unwrap()).unwrap_err();
        assert!(matches!(error, StoreError::Misplaced { .. }), "{error:?}");
    }

    #[test]
    fn an_unknown_feature_is_refused_by_name_whatever_follows_it() {
        let plain = encoding::encode(&["time travel"].as_slice()).unwrap();
        let object =
            seal_object(&keys(2), &ObjectName::Config, ObjectKind::Config, &[plain, vec![255; 9]].concat()).unwrap();
        let error = Config::open(&keys(2), object).unwrap_err().to_string();
        assert!(error.contains("time travel") && error.contains("newer"), "{error}");
    }

    #[test]
    fn absurd_chunk_sizes_are_refused() {
        for (min_bytes, average_bytes, max_bytes) in [(0, 1, 2), (3, 2, 4), (1, 5, 4), (1, 2, u32::MAX)] {
            let mut config = config();
            config.chunker = ChunkerSettings { name: "gear".into(), min_bytes, average_bytes, max_bytes };
            assert!(config.seal(&keys(2)).is_err());
        }
    }
}
