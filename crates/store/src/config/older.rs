//! A repository whose newest record can be read from neither place, opened by an older one.
//!
//! No command does so by itself: an older record may list keys that were removed since, lack keys that were added
//! since, and have older settings; one from before a change of the master key opens nothing that matters. A user who
//! knows that goes on from it: the next record says what it says, without the keys whose slots are gone (they were
//! removed), and with every series that has a manifest. A record is lost only if what lies at its places is damaged or
//! not listed; one that the place does not give back now may be sound.
//!
//! Order: the damaged records are durable aside, then the new one is committed beyond all of them, then they go.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::chain::{self, Newest, Outcome, StoredConfig};
use crate::error::StoreError;
use crate::keys::{OpenOptions, Opened, slot_ids, unlock};
use crate::repository::{Repository, accept};
use crate::salvage::{hash_of, remove_replaced, require_numbers_after, set_aside};
use crate::storage::{Original, Replaced, Storage};
use std::sync::Arc;

/// A repository opened by a record that is not the newest.
#[derive(Debug)]
pub struct OlderRecord {
    repository: Repository,
    /// The numbers of the records above it, newest first; none can be read.
    lost: Vec<u64>,
}

impl OlderRecord {
    /// Opens a repository by the newest record that can be read; `None` if that is the newest there is.
    ///
    /// # Errors
    /// As [`Repository::open`]; [`StoreError::BothDamaged`] if no record can be read; [`StoreError::ListedAndMissing`]
    /// if the place lists a record that it does not give back.
    pub fn open(
        storage: &Arc<dyn Storage>,
        password: &[u8],
        options: &OpenOptions,
    ) -> Result<Option<Self>, StoreError> {
        let (mut lost, mut first) = (Vec::new(), None);
        for sequence in chain::sequences(storage.as_ref())? {
            let newest = match Newest::at(storage.as_ref(), sequence) {
                Err(error) if error.is_damage() => Err(error),
                other => Ok(other?),
            };
            let opened = newest.and_then(|newest| {
                unlock(storage.as_ref(), password, options, |unlocked| accept(storage.as_ref(), &newest, unlocked))
            });
            match opened {
                Ok(Opened::WriteOnly(..)) => {
                    return Err(StoreError::WriteOnly { what: "going on from an older config".to_owned() });
                }
                Ok(Opened::Full(unlocked, stored)) => {
                    let repository = Repository::assemble(Arc::clone(storage), unlocked, stored, options);
                    return Ok(if lost.is_empty() { None } else { Some(Self { repository, lost }) });
                }
                Err(error) if is_of(&error, sequence) => {
                    chain::refuse_contradiction(storage.as_ref(), sequence)?;
                    lost.push(sequence);
                    first.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(first.unwrap_or_else(|| chain::none(storage.as_ref())))
    }

    /// The repository as the older record has it: for looking, not for writing.
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// The number of the newest record, which cannot be read.
    pub fn newest(&self) -> u64 {
        self.lost.iter().copied().max().unwrap_or_default()
    }

    /// Makes a new record from the older one, beyond those that cannot be read.
    ///
    /// # Errors
    /// Those of the storage; [`StoreError::Refused`] if another program was faster, if one of those can be read by now,
    /// or if no number is left beyond them.
    pub fn restore(self) -> Result<Repository, StoreError> {
        let (repository, newest) = (&self.repository, self.newest());
        let (storage, mut next) = (repository.storage(), (*repository.config()).clone());
        require_numbers_after(&Original::Config(newest).name(), newest)?;
        self.lost.iter().try_for_each(|sequence| require_lost(repository, *sequence))?;
        let there = slot_ids(storage)?;
        next.key_slots.retain(|id| there.contains(id));
        next.write_only.retain(|id, _| there.contains(id));
        for series in repository.series()? {
            if let Ok(Some(manifest)) = repository.manifest(series) {
                next.series.entry(series).or_insert(manifest.name);
            }
        }
        self.lost.iter().try_for_each(|sequence| set_aside(storage, Replaced::Config(*sequence)))?;
        let hash = hash_of(storage, Original::Config(newest))?;
        let mut before = StoredConfig { config: next.clone(), hash, has_copy: true };
        before.config.sequence = newest;
        // Twice: were what is removed the predecessor, its name would be free for a request that comes late.
        for _ in 0..2 {
            before = match chain::commit(storage, repository.keys(), Some(&before), next.clone())? {
                Outcome::Committed(stored) => stored,
                Outcome::Untold(error) => return Err(error),
                Outcome::Lost => {
                    let what = "making a new record of the repository".to_owned();
                    let reason = "another program was faster; try again".to_owned();
                    return Err(StoreError::Refused { what, reason });
                }
            };
        }
        repository.keep(before);
        self.lost.iter().try_for_each(|sequence| remove_replaced(storage, Replaced::Config(*sequence)))?;
        storage.barrier()?;
        Ok(self.repository)
    }
}

/// Looks once more whether a record is lost: what kept it from being read may have passed.
fn require_lost(repository: &Repository, sequence: u64) -> Result<(), StoreError> {
    let storage = repository.storage();
    match Newest::at(storage, sequence).and_then(|newest| newest.open(storage, repository.keys())) {
        Ok(_) => {
            let what = format!("going on without {}", Original::Config(sequence).name());
            Err(StoreError::Refused { what, reason: "it can be read again; run the command once more".to_owned() })
        }
        Err(error) if error.is_damage() => chain::refuse_contradiction(storage, sequence),
        Err(error) => Err(error),
    }
}

/// Tells whether the error is damage of this record.
fn is_of(error: &StoreError, sequence: u64) -> bool {
    let name = Original::Config(sequence).name().to_string();
    error.is_not_found() || matches!(error, StoreError::BothDamaged { object, .. } if *object == name)
}
