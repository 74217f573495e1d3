//! Key slots come and go. One counts only while the newest record lists it. So whoever changes slots commits a record,
//! and of two who do so at once the second sees what the first did: the slot one works with must still be listed, which
//! keeps two holders from removing each other.
//!
//! A record's word stands, whatever befalls the files of slots afterwards: one that is not listed opens nothing.
//! That such a file is left is told beside the outcome, by the log at least; removing the key again clears it away.

use super::{Access, Repository};
use crate::config::Config;
use crate::config::chain::Newest;
use crate::created::create_same;
use crate::keys::{Argon2Cost, KeyLabel, KeySlot, OpenOptions, SlotSecret, Unlocked, read_slot, slot_ids};
use crate::secrets::{MasterKey, RepositoryKeys, random_bytes};
use crate::storage::{ObjectName, Original, Storage};
use crate::{Epoch, KeyId, RecoveryKey, StoreError};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A key slot as listed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeySlotView {
    /// Id of the slot.
    pub id: KeyId,
    /// Label: when, on which host and by whom it was made.
    pub label: KeyLabel,
    /// Cost of trying a password on it; `None` if a key file opens it.
    pub cost: Option<Argon2Cost>,
    /// True if the repository was opened with it.
    pub current: bool,
    /// The series of a write-only client's key: its name, or its id where the record does not tell.
    pub write_only: Option<String>,
}

/// The outcome of a change of the master key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rotation {
    /// The one slot that counts.
    pub slot: KeyId,
    /// The epoch of the new master key.
    pub epoch: Epoch,
    /// The slots of others that no longer count; they were of the old master key.
    pub invalidated: BTreeSet<KeyId>,
    /// The reason why files of slots that no longer count are left, if any are. They open nothing.
    pub left: Option<String>,
}

/// Tells whether this master key is the newest of the repository.
///
/// # Errors
/// As [`find`](super::find), and damage of the record.
pub fn check_recovery(storage: &dyn Storage, key: &RecoveryKey) -> Result<bool, StoreError> {
    let keys = RepositoryKeys::derive(&key.master, key.repository);
    match Newest::find(storage)?.open(storage, &keys) {
        Ok(_) => Ok(true),
        Err(StoreError::Misplaced { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

impl Repository {
    /// The key slots that count, oldest first. What of them cannot be read, original or copy, is an error of its own
    /// and returned beside.
    pub fn key_slots(&self) -> Result<(Vec<KeySlotView>, Vec<StoreError>), StoreError> {
        self.require_reading("listing keys")?;
        let (mut slots, mut damaged) = (Vec::new(), Vec::new());
        let config = self.config();
        for id in &config.all_keys() {
            let label_in = |name| {
                let read = read_slot(self.storage(), *id, &name);
                let label = read.and_then(|slot| Ok((slot.label(&self.keys)?, slot.cost())));
                label.map_err(|error| error.found_in(&name))
            };
            let (original, copy) = (Original::Key(*id).name(), Original::Key(*id).copy());
            let (first, second) = (label_in(original), label_in(copy));
            if let Some((label, cost)) = first.as_ref().ok().or(second.as_ref().ok()).cloned() {
                let series = config.write_only.get(id);
                let write_only =
                    series.map(|series| config.series.get(series).cloned().unwrap_or_else(|| series.to_string()));
                slots.push(KeySlotView { id: *id, label, cost, current: *id == self.key_in_use(), write_only });
            }
            damaged.extend([first.err(), second.err()].into_iter().flatten());
        }
        slots.sort_by_key(|slot| (slot.label.created, slot.id));
        Ok((slots, damaged))
    }

    /// Key slots that lie there and do not count: left by an interrupted run, or put back. They open nothing.
    pub fn key_slots_unlisted(&self) -> Result<Vec<KeyId>, StoreError> {
        let listed = self.config().all_keys();
        Ok(slot_ids(self.storage())?.into_iter().filter(|id| !listed.contains(id)).collect())
    }

    /// Adds a key slot for another password: the slot is durable, twice, before the record lists it.
    pub fn add_key(&self, password: &[u8], label: &KeyLabel, cost: Argon2Cost) -> Result<KeyId, StoreError> {
        let id = KeyId(random_bytes()?);
        self.put_key(id, password, label, cost, |_| {})?;
        Ok(id)
    }

    /// Adds the key of a client that can add backups to a series and read none. The record lists the series by then,
    /// and it has a manifest: such a client can do neither.
    ///
    /// # Errors
    /// [`StoreError::KeyInvalid`] if the slot in use was removed meanwhile; [`StoreError::Refused`] if the series has
    /// no manifest; [`StoreError::Limit`] if its name is too long.
    pub fn add_write_only_key(
        &self,
        series_name: &str,
        password: &[u8],
        label: &KeyLabel,
        cost: Argon2Cost,
    ) -> Result<KeyId, StoreError> {
        let series = self.keys.series_id(series_name);
        if self.manifest(series)?.is_none() {
            let what = format!("making a key for the series \"{series_name}\"");
            return Err(StoreError::Refused { what, reason: "there is no such series".to_owned() });
        }
        let id = KeyId(random_bytes()?);
        let key = self.keys.write_only(series_name, &self.config())?;
        let object = KeySlot::create_write_only(id, &key, password, cost, (label, &self.keys))?;
        match KeySlot::parse(id, &object)?.open(password)? {
            Some(SlotSecret::WriteOnly(opened)) if *opened == key => {}
            _ => return Err(StoreError::SelfCheck { what: ObjectName::Key(id).to_string() }),
        }
        create_slot(self.storage(), id, &object)?;
        self.list_key(id, &object, |config| {
            config.write_only.insert(id, series);
        })?;
        Ok(id)
    }

    /// Makes a slot and lists it, with what else is to change in the record.
    fn put_key(
        &self,
        id: KeyId,
        password: &[u8],
        label: &KeyLabel,
        cost: Argon2Cost,
        also: impl Fn(&mut Config),
    ) -> Result<(), StoreError> {
        let unlocked = Unlocked { slot: id, ..self.full("making a key")?.clone() };
        let object = write_slot(self.storage(), &unlocked, password, label, cost)?;
        self.list_key(id, &object, |config| {
            config.key_slots.insert(id);
            also(config);
        })
    }

    /// Lists a slot that was made.
    fn list_key(&self, id: KeyId, object: &[u8], list: impl Fn(&mut Config)) -> Result<(), StoreError> {
        let listed = self.amend(|config| {
            self.require_listed(config)?;
            list(config);
            Ok(())
        });
        if let Err(error) = listed {
            // Only where it is sure that no record lists it; else it must stay, and if none does it opens nothing.
            if matches!(error, StoreError::KeyInvalid { .. }) {
                let _ = delete_slot(self.storage(), id);
            }
            return Err(error);
        }
        // Whoever cleared away slots that are not listed may have taken it for one before it was. Unless that happened
        // it is there already, and it counts from now on in any case.
        if let Err(error) = create_slot(self.storage(), id, object) {
            tracing::warn!(%id, %error, "a key was added, and its file cannot be looked at");
        }
        Ok(())
    }

    /// Removes a key slot: the record lists it no more before it is deleted. Where it cannot be deleted then, it opens
    /// nothing all the same, and may be removed once more. A write-only key works as long as its file is there.
    ///
    /// # Errors
    /// [`StoreError::Refused`] for the slot this repository was opened with: the last way in must not be lost by a
    /// slip. [`StoreError::KeyInvalid`] if that one was removed meanwhile: whoever did so relies on the other.
    pub fn remove_key(&self, id: KeyId) -> Result<(), StoreError> {
        if id == self.key_in_use() {
            return Err(StoreError::Refused {
                what: format!("removing {}", ObjectName::Key(id)),
                reason: "it is the key in use; open the repository with another password first".to_owned(),
            });
        }
        let mut counted = false;
        self.amend(|config| {
            self.require_listed(config)?;
            counted |= config.key_slots.remove(&id);
            config.write_only.remove(&id);
            Ok(())
        })?;
        match delete_slot(self.storage(), id) {
            Err(error) if counted => {
                warn_of_left(id, &error);
                Ok(())
            }
            other => other,
        }
    }

    /// Puts a new password in place of the one the repository was opened with: the new slot counts from the same commit
    /// on from which the old one does not.
    ///
    /// # Errors
    /// [`StoreError::KeyInvalid`] if the old one was removed meanwhile.
    pub fn change_password(
        &mut self,
        password: &[u8],
        label: &KeyLabel,
        cost: Argon2Cost,
    ) -> Result<KeyId, StoreError> {
        let unlocked = self.full("changing a password")?.clone();
        let (id, old) = (KeyId(random_bytes()?), unlocked.slot);
        self.put_key(id, password, label, cost, |config| {
            config.key_slots.remove(&old);
        })?;
        self.access = Access::Full(Unlocked { slot: id, ..unlocked });
        if let Err(error) = delete_slot(self.storage(), old) {
            warn_of_left(old, &error);
        }
        Ok(id)
    }

    /// Makes a new master key: what is written from now on is sealed under it, and a new slot with this password is the
    /// only one that counts. What is there stays as it is, and can be read by whoever knows the old one until it is
    /// written anew.
    ///
    /// # Errors
    /// [`StoreError::KeyInvalid`] if the slot in use was removed meanwhile, or the master key changed.
    pub fn rotate(&mut self, password: &[u8], label: &KeyLabel, cost: Argon2Cost) -> Result<Rotation, StoreError> {
        let before = self.full("changing the master key")?.clone();
        let slot = KeyId(random_bytes()?);
        let next = Unlocked { slot, master: MasterKey::random()?, repository: self.id() };
        write_slot(self.storage(), &next, password, label, cost)?;
        let mut invalidated = BTreeSet::new();
        let amended = self.amend_under(&next.keys(), None, |config| {
            self.require_listed(config)?;
            invalidated = config.all_keys();
            config.key_slots = BTreeSet::from([slot]);
            config.write_only.clear();
            config.older_masters.push(before.master.clone());
            Ok(())
        });
        let config = match amended {
            Err(error @ StoreError::KeyInvalid { .. }) => {
                // It opens nothing.
                let _ = delete_slot(self.storage(), slot);
                return Err(error);
            }
            other => other?,
        };
        self.keys = next.all_keys(&config.older_masters);
        self.access = Access::Full(next);
        let mut left = None;
        for id in &invalidated {
            if let Err(error) = delete_slot(self.storage(), *id) {
                warn_of_left(*id, &error);
                left.get_or_insert(error.to_string());
            }
        }
        invalidated.remove(&before.slot);
        Ok(Rotation { slot, epoch: self.keys.epoch(), invalidated, left })
    }

    /// Returns the key that opens the repository without a password: to be kept on paper.
    ///
    /// # Errors
    /// [`StoreError::WriteOnly`].
    pub fn recovery_key(&self) -> Result<RecoveryKey, StoreError> {
        let master = self.full("making a recovery key")?.master.clone();
        Ok(RecoveryKey { repository: self.id(), epoch: self.keys.epoch(), master })
    }

    /// Opens a repository by its master key, and makes a key slot with this password.
    ///
    /// # Errors
    /// [`StoreError::Misplaced`] if the master key is not the newest of this repository.
    pub fn recover(
        storage: Arc<dyn Storage>,
        key: &RecoveryKey,
        password: &[u8],
        label: &KeyLabel,
        cost: Argon2Cost,
    ) -> Result<Self, StoreError> {
        let slot = KeyId(random_bytes()?);
        let unlocked = Unlocked { slot, master: key.master.clone(), repository: key.repository };
        let stored = Newest::find(storage.as_ref())?.open(storage.as_ref(), &unlocked.keys())?;
        write_slot(storage.as_ref(), &unlocked, password, label, cost)?;
        let repository = Self::assemble(storage, unlocked, stored, &OpenOptions::default());
        repository.amend(|config| {
            config.key_slots.insert(slot);
            Ok(())
        })?;
        Ok(repository)
    }

    fn require_listed(&self, config: &Config) -> Result<(), StoreError> {
        if config.key_slots.contains(&self.key_in_use()) {
            Ok(())
        } else {
            Err(self.invalid("it was removed meanwhile"))
        }
    }
}

/// Writes a slot and its copy after opening what was made: a slot that does not open would be found out too late.
pub(super) fn write_slot(
    storage: &dyn Storage,
    unlocked: &Unlocked,
    password: &[u8],
    label: &KeyLabel,
    cost: Argon2Cost,
) -> Result<Vec<u8>, StoreError> {
    let object = KeySlot::create(unlocked, password, cost, label)?;
    let is_same = |opened: &Unlocked| opened.master == unlocked.master && opened.repository == unlocked.repository;
    let opened = KeySlot::parse(unlocked.slot, &object)?.open(password)?;
    if !matches!(opened, Some(SlotSecret::Full(opened)) if is_same(&opened)) {
        return Err(StoreError::SelfCheck { what: ObjectName::Key(unlocked.slot).to_string() });
    }
    create_slot(storage, unlocked.slot, &object)?;
    Ok(object)
}

/// Makes a slot and its copy, as far as they are not there.
fn create_slot(storage: &dyn Storage, id: KeyId, object: &[u8]) -> Result<(), StoreError> {
    Original::Key(id).places().iter().try_for_each(|name| create_same(storage, name, object))
}

/// Tells the log that the file of a slot that no longer counts is left.
fn warn_of_left(id: KeyId, error: &StoreError) {
    tracing::warn!(%id, %error, "a key was removed and opens nothing, and its file is left");
}

/// Deletes a slot, durably, and its copy.
pub(super) fn delete_slot(storage: &dyn Storage, id: KeyId) -> Result<(), StoreError> {
    storage.delete(&Original::Key(id).name())?;
    storage.delete(&Original::Key(id).copy())?;
    Ok(storage.barrier()?)
}
