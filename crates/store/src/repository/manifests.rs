//! The series of the repository and their newest manifests: listed, read and remembered, so that a command at a
//! distance asks for each once.

use super::Repository;
use crate::manifest::Manifest;
use crate::series::newest::{
    StoredRoot, manifest_numbered, newest_sequence, numbers_of_all, read_ahead, summary_numbered,
};
use crate::series::remembered::RememberedManifests;
use crate::series::{SeriesSummary, StoredManifest, newest_manifest, older_parts_bytes};
use crate::{SeriesId, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Age of a listing that a command may take once more.
const LISTING_AGE_MAX: Duration = Duration::from_secs(10);
/// Manifests that are read at the same time, at a distance.
pub const MANIFESTS_AT_ONCE: usize = 64;

/// State of the series as this process knows it.
#[derive(Debug, Default)]
pub(super) struct KnownSeries {
    /// Numbers of the manifests that were the newest when they were last listed: whoever only reads may begin there.
    numbers: Mutex<BTreeMap<SeriesId, u64>>,
    /// Series that the next call for them takes as they were listed last.
    listed_ahead: Mutex<ListedAhead>,
    /// The moment at which all series were listed last.
    listed_at: Mutex<Option<Instant>>,
    /// Manifests that were read or committed, where reading one again would take a round trip.
    remembered: Mutex<RememberedManifests>,
}

/// Series that were listed ahead of their use.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum ListedAhead {
    #[default]
    Nothing,
    One(SeriesId),
    All,
}

impl Repository {
    /// The series within reach that have a manifest, or a copy of one, and those that the record lists.
    pub fn series(&self) -> Result<Vec<SeriesId>, StoreError> {
        if self.take_listed_ahead() != ListedAhead::All {
            self.list_series()?;
        }
        let series: BTreeSet<_> = self.lock_numbers().keys().chain(self.series_recorded().keys()).copied().collect();
        Ok(series.into_iter().filter(|series| self.reaches(*series)).collect())
    }

    /// Lists the series as [`Repository::series`] does. Its next call, or the next writer of a series, takes what this
    /// one found, without a look: so a program that tests what it opens, and then goes on at once, looks once.
    ///
    /// # Errors
    /// Those of the storage.
    pub fn list_series_ahead(&self) -> Result<(), StoreError> {
        self.list_series()?;
        *self.lock_listed_ahead() = ListedAhead::All;
        Ok(())
    }

    /// Lets the next call of [`Repository::series`], or the next writer of a series, take what the last one found, as
    /// [`Repository::list_series_ahead`] does, if that was moments ago: for a command that asks several times. Where
    /// listing costs little, each call lists.
    pub fn reuse_listing(&self) {
        let listed_at = *self.known.listed_at.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_near() && listed_at.is_some_and(|at| at.elapsed() < LISTING_AGE_MAX) {
            *self.lock_listed_ahead() = ListedAhead::All;
        }
    }

    /// Lists one series, for its next writer, as [`Repository::list_series_ahead`] lists all: the cost does not grow
    /// with their number.
    ///
    /// # Errors
    /// Those of the storage.
    pub fn list_one_ahead(&self, series: SeriesId) -> Result<(), StoreError> {
        let newest = newest_sequence(self, series)?;
        match newest {
            Some(sequence) => self.lock_numbers().insert(series, sequence),
            None => self.lock_numbers().remove(&series),
        };
        *self.lock_listed_ahead() = ListedAhead::One(series);
        Ok(())
    }

    /// Tells, once, whether the series was listed ahead.
    pub(crate) fn was_listed_ahead(&self, series: SeriesId) -> bool {
        [ListedAhead::All, ListedAhead::One(series)].contains(&self.take_listed_ahead())
    }

    fn take_listed_ahead(&self) -> ListedAhead {
        std::mem::take(&mut *self.lock_listed_ahead())
    }

    fn lock_listed_ahead(&self) -> MutexGuard<'_, ListedAhead> {
        self.known.listed_ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn list_series(&self) -> Result<(), StoreError> {
        let began = Instant::now();
        *self.lock_numbers() = numbers_of_all(self)?;
        *self.known.listed_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(began);
        Ok(())
    }

    /// The series whose manifests this process has listed, read or committed.
    pub fn series_known(&self) -> Vec<SeriesId> {
        self.lock_numbers().keys().copied().filter(|series| self.reaches(*series)).collect()
    }

    /// The number of the newest manifest of a series, when the series were listed last, or of this process's own.
    pub fn number_listed(&self, series: SeriesId) -> Option<u64> {
        self.lock_numbers().get(&series).copied()
    }

    /// Remembers a manifest that is the newest of its series.
    pub(crate) fn note_manifest(&self, stored: &StoredManifest) {
        self.lock_numbers().insert(stored.manifest.series, stored.manifest.sequence);
        if !self.is_near() {
            self.lock_remembered().keep(stored);
        }
    }

    /// Remembers the object of a manifest that is the newest of its series.
    pub(crate) fn note_opened(&self, opened: StoredRoot) {
        self.lock_numbers().insert(opened.series(), opened.sequence());
        if !self.is_near() {
            self.lock_remembered().keep_opened(opened);
        }
    }

    /// Returns the manifest of this number, if it is remembered.
    pub(crate) fn manifest_at_hand(&self, series: SeriesId, sequence: u64) -> Option<StoredManifest> {
        self.lock_remembered().get(series, sequence).cloned()
    }

    /// Returns the object of the manifest of this number, if that is what is remembered of it.
    pub(crate) fn opened_at_hand(&self, series: SeriesId, sequence: u64) -> Option<StoredRoot> {
        self.lock_remembered().opened(series, sequence).cloned()
    }

    /// Returns the summary of the manifest of this number, if it or its object is remembered.
    pub(crate) fn summary_at_hand(&self, series: SeriesId, sequence: u64) -> Option<SeriesSummary> {
        self.lock_remembered().summary(series, sequence)
    }

    /// Tells whether the manifest of this number, or its object, is remembered.
    pub(crate) fn has_at_hand(&self, series: SeriesId, sequence: u64) -> bool {
        self.lock_remembered().has(series, sequence)
    }

    /// Remembers the object of a manifest that was read ahead of its use; `false`, and nothing is done, where there is
    /// no room.
    pub(crate) fn remember_opened(&self, opened: StoredRoot) -> bool {
        let mut remembered = self.lock_remembered();
        let has_room = remembered.has_room(opened.bytes());
        if has_room {
            remembered.keep_opened(opened);
        }
        has_room
    }

    /// Makes room for manifests that are read ahead.
    pub(crate) fn make_room_for_manifests(&self) {
        self.lock_remembered().make_room();
    }

    fn lock_remembered(&self) -> MutexGuard<'_, RememberedManifests> {
        self.known.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_numbers(&self) -> MutexGuard<'_, BTreeMap<SeriesId, u64>> {
        self.known.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest manifest of a series.
    pub fn manifest(&self, series: SeriesId) -> Result<Option<Manifest>, StoreError> {
        Ok(newest_manifest(self, series)?.map(|stored| stored.manifest))
    }

    /// The manifest of a series that was the newest when the series were last listed, without looking for a newer one
    /// as long as it is there: for readers, who find out by what they miss. The newest, if they were not listed.
    ///
    /// # Errors
    /// As [`newest_manifest`].
    pub fn manifest_listed(&self, series: SeriesId) -> Result<Option<Manifest>, StoreError> {
        Ok(self.stored_listed(series)?.map(|stored| stored.manifest))
    }

    /// As [`Repository::manifest_listed`], with what the next manifest must say of it.
    ///
    /// # Errors
    /// As [`newest_manifest`].
    pub fn stored_listed(&self, series: SeriesId) -> Result<Option<StoredManifest>, StoreError> {
        manifest_numbered(self, series, self.number_listed(series))
    }

    /// The summary of what [`Repository::manifest_listed`] returns. Parts of the manifest are not read.
    ///
    /// # Errors
    /// As [`newest_manifest`].
    pub fn summary_listed(&self, series: SeriesId) -> Result<Option<SeriesSummary>, StoreError> {
        summary_numbered(self, series, self.number_listed(series))
    }

    /// The newest manifests of all series.
    ///
    /// # Errors
    /// The damage of any of them: [`Repository::visit_manifests`] does the rest.
    pub fn manifests(&self) -> Result<Vec<Manifest>, StoreError> {
        let mut manifests = Vec::new();
        for series in self.series()? {
            manifests.extend(self.manifest(series)?);
        }
        Ok(manifests)
    }

    /// Reads the newest manifests of these series ahead of their use, at the same time, where each takes a round trip;
    /// those that were listed, and as far as there is room for them in memory. Their parts, and what fails, are left to
    /// the use.
    pub fn read_manifests_ahead(&self, series: &[SeriesId]) {
        if !self.is_near() {
            read_ahead(self, series);
        }
    }

    /// Shows the manifests of these series, the newest when they were listed, one at a time, and returns what is wrong
    /// with those that cannot be read.
    ///
    /// # Errors
    /// Errors of the repository as a whole, and whatever `visit` returns. If there are series and none can be read,
    /// the damage of the first: nothing can be done then.
    pub fn visit_manifests<E: From<StoreError>>(
        &self,
        series: impl IntoIterator<Item = SeriesId>,
        visit: impl FnMut(Manifest) -> Result<(), E>,
    ) -> Result<Vec<StoreError>, E> {
        self.visit_each(series, |series| self.manifest_listed(series), visit)
    }

    /// Shows the summaries of these manifests, as [`Repository::visit_manifests`] shows all of each. No part of a
    /// manifest is read, and damage of parts does not show.
    ///
    /// # Errors
    /// As [`Repository::visit_manifests`].
    pub fn visit_summaries<E: From<StoreError>>(
        &self,
        series: impl IntoIterator<Item = SeriesId>,
        visit: impl FnMut(SeriesSummary) -> Result<(), E>,
    ) -> Result<Vec<StoreError>, E> {
        self.visit_each(series, |series| self.summary_listed(series), visit)
    }

    fn visit_each<T, E: From<StoreError>>(
        &self,
        series: impl IntoIterator<Item = SeriesId>,
        read: impl Fn(SeriesId) -> Result<Option<T>, StoreError>,
        mut visit: impl FnMut(T) -> Result<(), E>,
    ) -> Result<Vec<StoreError>, E> {
        let (mut readable, mut unreadable) = (0u64, Vec::new());
        let series: Vec<SeriesId> = series.into_iter().collect();
        for batch in series.chunks(MANIFESTS_AT_ONCE) {
            self.read_manifests_ahead(batch);
            for series in batch {
                match read(*series) {
                    Ok(None) => {}
                    Ok(Some(found)) => {
                        readable += 1;
                        visit(found)?;
                    }
                    Err(error) if error.is_damage() => unreadable.push(error),
                    Err(error) => return Err(error.into()),
                }
            }
        }
        if unreadable.is_empty() || readable > 0 { Ok(unreadable) } else { Err(unreadable.swap_remove(0).into()) }
    }

    /// Returns the bytes of containers, and of parts of manifests with their copies, that are sealed under a master key
    /// before the newest one, as far as manifests can be read.
    ///
    /// # Errors
    /// Those of the storage.
    pub fn older_epoch_bytes(&self) -> Result<u64, StoreError> {
        let mut bytes = 0;
        for series in self.series()? {
            match self.manifest(series) {
                Ok(None) => {}
                Ok(Some(manifest)) => {
                    let older = manifest.containers.iter().filter(|record| record.epoch < self.keys.epoch());
                    bytes += older.map(|record| record.object_bytes).sum::<u64>();
                    bytes += older_parts_bytes(self, &manifest)?;
                }
                Err(error) if error.is_damage() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(bytes)
    }
}
