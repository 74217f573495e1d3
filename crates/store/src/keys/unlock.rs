//! A password tried on the slots of a repository, one after the other.

use super::slot::{KeySlot, Secret, SlotSecret, Unlocked};
use crate::error::StoreError;
use crate::ids::KeyId;
use crate::series::LeaseTerms;
use crate::storage::{Listing, ObjectMeta, ObjectName, Original, Storage};
use crate::write_only::WriteOnlyKey;
use std::collections::BTreeSet;

/// The most slots that a password is tried on: each try costs what its slot demands.
const TRIES_MAX: usize = 20;

/// Options for opening a repository.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OpenOptions {
    /// Memory to stay below, in bytes. It bounds what trying a password may cost, and a quarter of it what a manifest
    /// may take.
    pub memory_bytes: u64,
    /// Ids of the slots to try first, or beginnings of ids, in this order.
    pub key_hints: Vec<String>,
    /// Terms on which leases are held and watched.
    pub lease_terms: LeaseTerms,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { memory_bytes: 512 << 20, key_hints: Vec::new(), lease_terms: LeaseTerms::default() }
    }
}

impl OpenOptions {
    /// Returns these options with this much memory, bytes.
    #[must_use]
    pub fn with_memory(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// Returns these options with these slots to try first.
    #[must_use]
    pub fn with_key_hints(mut self, hints: Vec<String>) -> Self {
        self.key_hints = hints;
        self
    }

    /// Returns these options with leases held and watched on these terms.
    #[must_use]
    pub fn with_lease_terms(mut self, terms: LeaseTerms) -> Self {
        self.lease_terms = terms;
        self
    }

    /// The order in which slots are tried.
    fn order(&self, slots: &BTreeSet<KeyId>) -> Vec<KeyId> {
        let rank = |id: &KeyId| {
            let text = id.to_string();
            self.key_hints.iter().position(|hint| text.starts_with(hint.as_str())).unwrap_or(usize::MAX)
        };
        let mut order: Vec<KeyId> = slots.iter().copied().collect();
        order.sort_by_key(rank);
        order
    }
}

/// A slot that opened, and what was made of its keys.
#[derive(Debug)]
pub enum Opened<T> {
    /// One with the master key, and what was accepted of it.
    Full(Unlocked, T),
    /// That of a write-only client.
    WriteOnly(KeyId, Box<WriteOnlyKey>),
}

impl<T> Opened<T> {
    /// Returns the id of the slot.
    pub fn slot(&self) -> KeyId {
        match self {
            Self::Full(unlocked, _) => unlocked.slot,
            Self::WriteOnly(slot, _) => *slot,
        }
    }
}

/// Tries the password on the slots of the repository, hinted ones first and `TRIES_MAX` at most, until one opens that
/// `accept` returns something for, or one of a write-only client.
///
/// # Errors
/// [`StoreError::NoKeySlots`]; [`StoreError::KeyInvalid`] if the password's slot was not accepted;
/// [`StoreError::WrongPassword`] if it opens none; if a slot was damaged in both copies or demands too much and no
/// other opened, that, for it may have been the right one.
pub fn unlock<T>(
    storage: &dyn Storage,
    password: &[u8],
    options: &OpenOptions,
    mut accept: impl FnMut(&Unlocked) -> Result<Option<T>, StoreError>,
) -> Result<Opened<T>, StoreError> {
    let secret = Secret::parse(password)?;
    let mut slots = BTreeSet::new();
    let (mut damage, mut refused, mut tries) = (None, None, TRIES_MAX);
    // What is named in full needs no listing; and copies are looked for only if no original opens.
    for look in [Look::Hints, Look::Originals, Look::Copies] {
        let found: BTreeSet<KeyId> = look.find(storage, options)?.difference(&slots).copied().collect();
        for id in options.order(&found).iter().take(tries) {
            match open_slot(storage, *id, &secret, options.memory_bytes) {
                Ok(Some(SlotSecret::WriteOnly(key))) => return Ok(Opened::WriteOnly(*id, key)),
                Ok(Some(SlotSecret::Full(unlocked))) => match accept(&unlocked)? {
                    Some(accepted) => return Ok(Opened::Full(unlocked, accepted)),
                    None => refused = Some(*id),
                },
                Ok(None) => {}
                // Removed since it was listed, or named in vain.
                Err(error) if error.is_not_found() => continue,
                Err(error) if error.is_damage() || matches!(error, StoreError::KeyCost { .. }) => {
                    damage = damage.or(Some(error));
                }
                Err(error) => return Err(error),
            }
            tries -= 1;
            slots.insert(*id);
        }
        if look != Look::Hints {
            slots.extend(found);
        }
    }
    let location = storage.location();
    Err(match (damage, refused) {
        (_, Some(id)) => StoreError::KeyInvalid {
            object: ObjectName::Key(id).to_string(),
            reason: "it was removed, or the master key was changed since it was made",
        },
        (Some(error), None) => error,
        (None, None) if slots.is_empty() => StoreError::NoKeySlots { location },
        (None, None) => {
            let tried = slots.len().min(TRIES_MAX);
            StoreError::WrongPassword { location, slots: tried, untried: slots.len() - tried }
        }
    })
}

/// A way to find key slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Look {
    Hints,
    Originals,
    Copies,
}

impl Look {
    fn find(self, storage: &dyn Storage, options: &OpenOptions) -> Result<BTreeSet<KeyId>, StoreError> {
        let listing = match self {
            Self::Hints => return Ok(options.key_hints.iter().filter_map(|hint| KeyId::from_hex(hint)).collect()),
            Self::Originals => Listing::Keys,
            Self::Copies => Listing::KeyCopies,
        };
        Ok(slots_in(&storage.list(listing)?))
    }
}

/// The slots that lie there, by original or copy, whether or not they count.
pub fn slot_ids(storage: &dyn Storage) -> Result<BTreeSet<KeyId>, StoreError> {
    Ok(slots_in(&storage.list_both([Listing::Keys, Listing::KeyCopies])?.concat()))
}

fn slots_in(listed: &[ObjectMeta]) -> BTreeSet<KeyId> {
    let id = |meta: &ObjectMeta| match meta.name {
        ObjectName::Key(id) | ObjectName::Copy(Original::Key(id)) => Some(id),
        _ => None,
    };
    listed.iter().filter_map(id).collect()
}

/// Reads a slot, or the copy of one, as the slot it is of.
pub(crate) fn read_slot(storage: &dyn Storage, id: KeyId, name: &ObjectName) -> Result<KeySlot, StoreError> {
    KeySlot::parse(id, &storage.read(name, name.bytes_max())?)
}

/// Tries a secret on a slot; on its copy if the slot is missing or damaged.
fn open_slot(
    storage: &dyn Storage,
    id: KeyId,
    secret: &Secret<'_>,
    memory_bytes: u64,
) -> Result<Option<SlotSecret>, StoreError> {
    let original = Original::Key(id);
    let open = |name| read_slot(storage, id, &name)?.open_within(secret, memory_bytes);
    let first = match open(original.name()) {
        Err(error) if error.is_damage() => error,
        result => return result,
    };
    open(original.copy()).map_err(|error| if error.is_not_found() { first } else { error })
}
