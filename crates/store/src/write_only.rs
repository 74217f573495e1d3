//! The keys of a client that can add backups to one series and read none.
//!
//! It cannot open the record of the repository, which holds older master keys. So beside the keys it has what a backup
//! takes from there: how files are cut, and how large containers and their parity are. What it has of the settings is
//! how they stood when the key was made.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use crate::config::{ChunkerSettings, Config, ParitySettings};
use crate::container::ContainerKind;
use crate::encoding;
use crate::error::StoreError;
use crate::ids::{KeyId, RepositoryId, SeriesId, Time};
use crate::recipient::Recipient;
use crate::secrets::RepositoryKeys;
use crate::storage::ObjectName;
use serde::{Deserialize, Serialize};
use std::fmt;
use zeroize::Zeroizing;

/// The plain bytes of a key are a multiple of this, so that a slot does not tell how long the series' name is.
const PADDED_TO: usize = 512;
/// The most bytes that a key has, padded: what is left of a slot's 64 KiB besides is its label's.
pub(crate) const KEY_BYTES_MAX: usize = 32 << 10;

/// A 32-byte secret, wiped from memory when dropped.
pub(crate) type Secret = Zeroizing<[u8; 32]>;

/// The secrets and settings of a write-only client, of one series.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteOnlyKey {
    pub(crate) repository: RepositoryId,
    pub(crate) series: SeriesId,
    pub(crate) series_name: String,
    pub(crate) recipient: Recipient,
    pub(crate) write: Secret,
    /// The keys of the series' manifests, of epochs 1, 2, ...; the last is that of new objects.
    pub(crate) manifests: Vec<Secret>,
    pub(crate) fingerprints: Secret,
    pub(crate) metadata_fingerprints: Secret,
    pub(crate) chunker_key: Secret,
    pub(crate) cache: Secret,
    pub(crate) settings: WriteOnlySettings,
}

/// The settings that a backup needs of the repository's record.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct WriteOnlySettings {
    chunker: ChunkerSettings,
    container_bytes: u64,
    part_bytes: u32,
    parity: ParitySettings,
}

impl WriteOnlySettings {
    /// The settings of a repository.
    pub(crate) fn of(config: &Config) -> Self {
        Self {
            chunker: config.chunker.clone(),
            container_bytes: config.container_bytes(ContainerKind::Data),
            part_bytes: u32::try_from(config.part_bytes()).unwrap_or(u32::MAX),
            parity: config.parity,
        }
    }
}

impl WriteOnlyKey {
    /// The id of the series that it writes to.
    pub fn series(&self) -> SeriesId {
        self.series
    }

    /// The keys to work with.
    pub fn keys(&self) -> RepositoryKeys {
        RepositoryKeys::of_write_only(self)
    }

    /// Makes a record of the repository as far as this key knows it.
    ///
    /// # Errors
    /// Damage of the slot that it is from: settings that no repository can have.
    pub(crate) fn config(&self, slot: KeyId) -> Result<Config, StoreError> {
        let settings = &self.settings;
        let mut config = Config::new(self.repository, settings.chunker.clone(), Time::default(), slot);
        config.set_container_bytes(settings.container_bytes)?;
        config.set_part_bytes(settings.part_bytes);
        config.parity = settings.parity;
        config.series.insert(self.series, self.series_name.clone());
        config.validate_settings(&ObjectName::Key(slot))?;
        Ok(config)
    }

    /// The plain bytes, padded with zeros.
    pub(crate) fn encode(&self) -> Result<Zeroizing<Vec<u8>>, StoreError> {
        let mut bytes = Zeroizing::new(encoding::encode(self)?);
        let padded = bytes.len().next_multiple_of(PADDED_TO);
        if padded > KEY_BYTES_MAX {
            let (found, limit) = (padded as u64, KEY_BYTES_MAX as u64);
            return Err(StoreError::limit(&"a write-only key", "its size in bytes", found, limit));
        }
        // Grown in place the bytes could stay behind where they were.
        let mut all = Zeroizing::new(Vec::with_capacity(padded));
        all.append(&mut bytes);
        all.resize(padded, 0);
        Ok(all)
    }

    /// Reads the plain bytes of a slot.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] of the slot.
    pub(crate) fn decode(slot: &ObjectName, bytes: &[u8]) -> Result<Self, StoreError> {
        let damaged = |reason: &str| StoreError::damaged(slot, "secret", reason);
        let (key, rest): (Self, _) = encoding::take(slot, "secret", bytes)?;
        if rest.iter().any(|byte| *byte != 0) {
            return Err(damaged("its padding is not zero"));
        }
        if key.manifests.is_empty() {
            return Err(damaged("it has no key for manifests"));
        }
        Ok(key)
    }
}

impl fmt::Debug for WriteOnlyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WriteOnlyKey({}, series {}, secret)", self.repository, self.series)
    }
}
