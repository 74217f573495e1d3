//! The record of the repository: changed by commits, kept as it was read last.

use super::Repository;
use crate::config::Config;
use crate::config::chain::{self, Outcome, StoredConfig};
use crate::secrets::RepositoryKeys;
use crate::series::newest_manifest;
use crate::storage::ObjectName;
use crate::{SeriesId, StoreError};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// Times that a change of the record is tried again because others changed it first.
const AMEND_ATTEMPTS_MAX: u32 = 64;

impl Repository {
    /// Reads the newest record, changes it and commits it; begins anew if somebody else came first, or if others have
    /// gone on so far that nothing tells whether it counts. So `change` may be called several times, also on a record
    /// that has the change. What changes nothing commits nothing.
    ///
    /// # Errors
    /// Those of `change`, then nothing was committed; [`StoreError::OutcomeUnknown`] where that is not sure;
    /// [`StoreError::KeyInvalid`] if the master key was changed meanwhile; [`StoreError::WriteOnly`].
    pub fn amend(&self, change: impl FnMut(&mut Config) -> Result<(), StoreError>) -> Result<Arc<Config>, StoreError> {
        self.amend_under(&self.keys, None, change)
    }

    /// Amends as [`Repository::amend`] does, sealing the next record under these keys. It is tried first on a record
    /// that is `known`, without reading the newest.
    pub(super) fn amend_under(
        &self,
        keys: &RepositoryKeys,
        mut known: Option<StoredConfig>,
        mut change: impl FnMut(&mut Config) -> Result<(), StoreError>,
    ) -> Result<Arc<Config>, StoreError> {
        self.require_reading("changing the record of the repository")?;
        let mut untold = None;
        for _ in 0..AMEND_ATTEMPTS_MAX {
            match self.try_amend(keys, known.take(), &mut change) {
                Ok(Outcome::Committed(stored)) => return Ok(self.keep(stored)),
                Ok(Outcome::Lost) => {}
                Ok(Outcome::Untold(error)) => untold = Some(error),
                // What was committed before may count all the same.
                Err(error) => return Err(untold.unwrap_or(error)),
            }
        }
        let (what, reason) =
            ("changing the record of the repository".to_owned(), "others keep changing it; try again".to_owned());
        Err(untold.unwrap_or(StoreError::Refused { what, reason }))
    }

    fn try_amend(
        &self,
        keys: &RepositoryKeys,
        known: Option<StoredConfig>,
        change: &mut impl FnMut(&mut Config) -> Result<(), StoreError>,
    ) -> Result<Outcome, StoreError> {
        let stored = match known {
            Some(known) => known,
            None => chain::newest(self.storage(), &self.keys).map_err(|error| self.told(error))?,
        };
        let mut next = stored.config.clone();
        change(&mut next)?;
        if next == stored.config {
            return Ok(Outcome::Committed(stored));
        }
        chain::commit(self.storage(), keys, Some(&stored), next)
    }

    /// Makes the copy of the newest record where an interrupted commit left none.
    pub fn keep_record_copy(&self) -> Result<(), StoreError> {
        if self.lacks_record_copy.load(Ordering::Relaxed) {
            chain::keep_copy(self.storage(), &self.keys, self.config().sequence)?;
            self.lacks_record_copy.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Lists the faults of the newest record and its copy.
    ///
    /// # Errors
    /// Errors of the storage; [`StoreError::WriteOnly`].
    pub fn record_faults(&self) -> Result<Vec<StoreError>, StoreError> {
        self.require_reading("checking the record of the repository")?;
        chain::faults(self.storage(), &self.keys)
    }

    pub(crate) fn keep(&self, stored: StoredConfig) -> Arc<Config> {
        self.lacks_record_copy.store(!stored.has_copy, Ordering::Relaxed);
        let config = Arc::new(stored.config);
        *self.record.lock().unwrap_or_else(PoisonError::into_inner) = (Arc::clone(&config), stored.hash);
        config
    }

    /// A record under a master key that is not ours can only be a newer one: ours opened one before.
    fn told(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Misplaced { .. } => self.invalid("the master key was changed meanwhile"),
            other => other,
        }
    }

    pub(super) fn invalid(&self, reason: &'static str) -> StoreError {
        StoreError::KeyInvalid { object: ObjectName::Key(self.key_in_use()).to_string(), reason }
    }

    /// Adds a series to the record's list, so that its loss shows.
    pub fn register_series(&self, id: SeriesId, name: &str) -> Result<(), StoreError> {
        // The record as it was read last is most likely the newest still; where it is not, the commit fails and the
        // newest is read. Nothing is taken off the list, so what stands on an older one needs no look.
        let known = Some(self.stored_record());
        self.amend_under(&self.keys, known, |config| {
            config.series.entry(id).or_insert_with(|| name.to_owned());
            Ok(())
        })
        .map(drop)
    }

    /// The record as it was read last.
    fn stored_record(&self) -> StoredConfig {
        let (config, hash) = self.record();
        let has_copy = !self.lacks_record_copy.load(Ordering::Relaxed);
        StoredConfig { config: config.as_ref().clone(), hash, has_copy }
    }

    /// Takes a series off the record's list: its loss is accepted.
    pub fn unlist_series(&self, id: SeriesId) -> Result<(), StoreError> {
        self.amend(|config| {
            config.series.remove(&id);
            Ok(())
        })
        .map(drop)
    }

    /// The series that the record lists and that have no manifest, with their names.
    pub fn lost_series(&self) -> Result<Vec<(SeriesId, String)>, StoreError> {
        let mut lost = Vec::new();
        for (id, name) in self.series_recorded() {
            match newest_manifest(self, id) {
                Err(StoreError::LostSeries { .. }) => lost.push((id, name)),
                Err(error) if !error.is_damage() => return Err(error),
                _ => {}
            }
        }
        Ok(lost)
    }

    /// Returns the words for a series in messages: its name in quotation marks where the record tells it, else its id.
    pub fn series_words(&self, id: SeriesId) -> String {
        self.config().series.get(&id).map_or_else(|| id.to_string(), |name| format!("\"{name}\""))
    }
}
