//! A repository, opened: its storage, its keys, its settings. Key slots come and go here; series are written in [`crate::series`].

use crate::config::{ChunkerSettings, Config};
use crate::keys::{Argon2Cost, KeyLabel, KeySlot, Unlocked, unlock};
use crate::manifest::Manifest;
use crate::sealed::ObjectHeader;
use crate::secrets::{MasterKey, RepositoryKeys, random_bytes};
use crate::series::{keep_reserve, newest_manifest};
use crate::storage::{Listing, ObjectName, Storage, StorageError};
use crate::{KeyId, RepositoryId, SeriesId, StoreError};
use std::collections::BTreeSet;
use std::sync::Arc;

/// An open repository.
#[derive(Debug)]
pub struct Repository {
    storage: Arc<dyn Storage>,
    unlocked: Unlocked,
    keys: RepositoryKeys,
    config: Config,
}

/// A key slot as listed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeySlotView {
    /// Its id.
    pub id: KeyId,
    /// When, on which host and by whom it was made.
    pub label: KeyLabel,
    /// Whether the repository was opened with it.
    pub current: bool,
}

impl Repository {
    /// Makes a repository: a key slot first, then the config, whose creation is the commit.
    ///
    /// # Errors
    /// [`StoreError::AlreadyARepository`] if there is a config already.
    pub fn init(
        storage: Arc<dyn Storage>,
        password: &[u8],
        label: &KeyLabel,
        cost: Argon2Cost,
        chunker: ChunkerSettings,
    ) -> Result<Self, StoreError> {
        let exists = || StoreError::AlreadyARepository { location: storage.location() };
        let listed = storage.list(Listing::All)?;
        // Slots without anything else are what an interrupted init left behind. Beside a manifest or a container they may be the
        // last way into a repository that lost its config: nothing is touched then.
        if listed.iter().any(|meta| !matches!(meta.name, ObjectName::Key(_) | ObjectName::Reserve)) {
            return Err(exists());
        }
        for meta in &listed {
            storage.delete(&meta.name)?;
        }
        let unlocked = Unlocked {
            slot: KeyId(random_bytes()?),
            master: MasterKey::random()?,
            repository: RepositoryId(random_bytes()?),
        };
        let keys = unlocked.keys();
        let config = Config { repository: unlocked.repository, features: Vec::new(), chunker, created: label.created };
        write_slot(storage.as_ref(), &unlocked, password, label, cost)?;
        storage.barrier()?;
        match storage.create(&ObjectName::Config, &config.seal(&keys)?) {
            Err(StorageError::AlreadyExists { .. }) => return Err(exists()),
            other => other?,
        }
        let repository = Self { storage, unlocked, keys, config };
        keep_reserve(&repository, 0)?;
        Ok(repository)
    }

    /// Opens a repository with the password of any of its key slots.
    ///
    /// # Errors
    /// [`StoreError::NotARepository`], [`StoreError::WrongPassword`], an unknown version or feature by name, or damage.
    pub fn open(storage: Arc<dyn Storage>, password: &[u8]) -> Result<Self, StoreError> {
        let object = match storage.read(&ObjectName::Config) {
            Err(error) if error.is_not_found() => return Err(missing_config(storage.as_ref())),
            other => other?,
        };
        // A newer format is told as such before any password is tried.
        ObjectHeader::parse(&ObjectName::Config, &object)?;
        let unlocked = unlock(storage.as_ref(), password)?;
        let keys = unlocked.keys();
        let config = Config::open(&keys, object)?;
        Ok(Self { storage, unlocked, keys, config })
    }

    /// Identity of the repository.
    pub fn id(&self) -> RepositoryId {
        self.config.repository
    }

    /// Where its objects lie.
    pub fn storage(&self) -> &dyn Storage {
        self.storage.as_ref()
    }

    /// The keys derived from its master key.
    pub fn keys(&self) -> &RepositoryKeys {
        &self.keys
    }

    /// Its settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The key slots, oldest first. Slots that cannot be read are errors of their own and are returned beside.
    pub fn key_slots(&self) -> Result<(Vec<KeySlotView>, Vec<StoreError>), StoreError> {
        let (mut slots, mut damaged) = (Vec::new(), Vec::new());
        for meta in self.storage.list(Listing::Keys)? {
            let ObjectName::Key(id) = meta.name else { continue };
            let read = self.storage.read(&meta.name).map_err(StoreError::from);
            match read.and_then(|bytes| KeySlot::parse(id, &bytes)?.label(&self.keys)) {
                Ok(label) => slots.push(KeySlotView { id, label, current: id == self.unlocked.slot }),
                Err(error) => damaged.push(error),
            }
        }
        slots.sort_by_key(|slot| (slot.label.created, slot.id));
        Ok((slots, damaged))
    }

    /// Adds a key slot for another password.
    pub fn add_key(&self, password: &[u8], label: &KeyLabel, cost: Argon2Cost) -> Result<KeyId, StoreError> {
        let unlocked = Unlocked { slot: KeyId(random_bytes()?), ..self.unlocked.clone() };
        write_slot(self.storage.as_ref(), &unlocked, password, label, cost)?;
        self.storage.barrier()?;
        Ok(unlocked.slot)
    }

    /// Removes a key slot.
    ///
    /// # Errors
    /// [`StoreError::Refused`] for the slot this repository was opened with: the last way in must not be lost by a slip.
    pub fn remove_key(&self, id: KeyId) -> Result<(), StoreError> {
        if id == self.unlocked.slot {
            return Err(StoreError::Refused {
                what: format!("removing {}", ObjectName::Key(id)),
                reason: "it is the key in use; open the repository with another password first".to_owned(),
            });
        }
        self.storage.delete(&ObjectName::Key(id))?;
        Ok(self.storage.barrier()?)
    }

    /// Puts a new password in place of the one the repository was opened with: the new slot is durable before the old one goes.
    pub fn change_password(
        &mut self,
        password: &[u8],
        label: &KeyLabel,
        cost: Argon2Cost,
    ) -> Result<KeyId, StoreError> {
        let id = self.add_key(password, label, cost)?;
        let old = std::mem::replace(&mut self.unlocked.slot, id);
        self.remove_key(old)?;
        Ok(id)
    }

    /// The series that have a manifest, or a copy of one.
    pub fn series(&self) -> Result<Vec<SeriesId>, StoreError> {
        let originals = self.storage.list(Listing::AllManifests)?;
        let copies = self.storage.list(Listing::AllManifestCopies)?;
        let series: BTreeSet<_> = originals.iter().chain(&copies).filter_map(|meta| meta.name.series()).collect();
        Ok(series.into_iter().collect())
    }

    /// The newest manifest of a series.
    pub fn manifest(&self, series: SeriesId) -> Result<Option<Manifest>, StoreError> {
        Ok(newest_manifest(self, series)?.map(|stored| stored.manifest))
    }

    /// The newest manifests of all series.
    pub fn manifests(&self) -> Result<Vec<Manifest>, StoreError> {
        let mut manifests = Vec::new();
        for series in self.series()? {
            manifests.extend(self.manifest(series)?);
        }
        Ok(manifests)
    }

    /// The bytes of all objects.
    pub fn bytes(&self) -> Result<u64, StoreError> {
        Ok(self.storage.list(Listing::All)?.iter().map(|meta| meta.bytes).sum())
    }
}

/// No config: either no repository at all, or one that lost it.
fn missing_config(storage: &dyn Storage) -> StoreError {
    let location = storage.location();
    match storage.list(Listing::AllManifests) {
        Ok(manifests) if !manifests.is_empty() => {
            StoreError::damaged(&ObjectName::Config, "object", "it is missing; bring back a copy of it")
        }
        _ => StoreError::NotARepository { location },
    }
}

/// Writes a slot after opening what was made: a slot that does not open would be found out too late.
fn write_slot(
    storage: &dyn Storage,
    unlocked: &Unlocked,
    password: &[u8],
    label: &KeyLabel,
    cost: Argon2Cost,
) -> Result<(), StoreError> {
    let name = ObjectName::Key(unlocked.slot);
    let object = KeySlot::create(unlocked, password, cost, label)?;
    let opened = KeySlot::parse(unlocked.slot, &object)?.open(password)?;
    if !opened.is_some_and(|opened| opened.master == unlocked.master && opened.repository == unlocked.repository) {
        return Err(StoreError::SelfCheck { what: name.to_string() });
    }
    Ok(storage.create(&name, &object)?)
}
