//! Memory of what this machine saw of a repository: the newest commit of its record and of each series, by number and
//! hash.
//!
//! Everything in a repository is authenticated, but a store that brings back an older state of it, or drops a series,
//! shows nothing but what was once genuine. Only memory tells. It lies in the user's state folder, a file per
//! repository, and is tested whenever the repository is opened, as far as the command concerns it: a backup tests its
//! own series, so that its cost does not grow with their number:
//!
//! | found | says |
//! |---|---|
//! | the number seen, with another hash | history was replaced |
//! | a lower number | history was rolled back |
//! | the next number, whose predecessor is not what was seen | history was replaced |
//! | chunk numbers that were given out already | history was rolled back, and went on |
//! | nothing | the series is lost |
//! | anything else, or a series not seen before | nothing: others write too |
//!
//! The memory is read before the repository: what another process commits in between makes the repository newer, never
//! older. Of two processes that remember at once, the highest number stays.

mod file;
#[cfg(test)]
mod tests;

use crate::EngineError;
use crate::history::{Found, judge};
pub use crate::history::{Loss, Sighting, Subject};
use file::MemoryFile;
use siltstone_store::repository::{MANIFESTS_AT_ONCE, Repository};
use siltstone_store::series::newest_manifest;
use siltstone_store::storage::StorageError;
use siltstone_store::{RepositoryId, SeriesId, StoreError};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Tells whether the memory in this folder can be used; `true` where there is none.
pub(crate) fn is_genuine(folder: &Path, repository: RepositoryId, key: [u8; 32]) -> io::Result<bool> {
    MemoryFile::new(folder, repository, key).read().map(|(_, is_begun_anew)| !is_begun_anew)
}

/// The memory of one repository.
#[derive(Debug)]
pub struct Memory<'r> {
    repository: &'r Repository,
    file: MemoryFile,
    /// As it was when the memory was opened, or last tested.
    seen: BTreeMap<Subject, Sighting>,
    /// True if the content of the file could not be used; it is begun anew.
    pub is_begun_anew: bool,
}

/// Takes the series that the record lists, and of which nothing is there, off the record's list. Gives their names, and
/// whether the list could be changed: where the repository cannot be written they stay in it, and whatever reads them
/// names them.
///
/// # Errors
/// Those of the repository.
pub fn accept_lost_series(repository: &Repository) -> Result<Vec<(String, bool)>, EngineError> {
    let mut accepted = Vec::new();
    for (id, name) in repository.lost_series()? {
        match repository.unlist_series(id) {
            Err(StoreError::Storage(StorageError::ReadOnly { .. })) => accepted.push((name, false)),
            other => accepted.push(other.map(|()| (name, true))?),
        }
    }
    Ok(accepted)
}

impl<'r> Memory<'r> {
    /// Opens the memory in this folder. A repository met for the first time has none.
    ///
    /// # Errors
    /// The file is there and cannot be read.
    pub fn open(repository: &'r Repository, folder: &Path) -> io::Result<Self> {
        let file = MemoryFile::new(folder, repository.id(), repository.keys().cache_key());
        let (seen, is_begun_anew) = file.read()?;
        Ok(Self { repository, file, seen, is_begun_anew })
    }

    /// Holds what is there against what was seen.
    ///
    /// # Errors
    /// As [`Memory::test_series`], of all series.
    pub fn test(&mut self) -> Result<(), EngineError> {
        self.repository.list_series_ahead()?;
        self.test_listed(|_| true)
    }

    /// Holds the record, and what is there of one series, against what was seen: what a command must know that
    /// concerns that series alone. The cost does not grow with the number of series.
    ///
    /// # Errors
    /// [`EngineError::HistoryLost`] with all that contradicts it. What keeps the storage from being listed. A series
    /// that cannot be read is not judged: whatever reads it tells of it. Nor is one that is out of reach
    /// ([`Memory::out_of_reach`]).
    pub fn test_series(&mut self, series: SeriesId) -> Result<(), EngineError> {
        self.repository.list_one_ahead(series)?;
        self.test_listed(|subject| subject.series().is_none_or(|other| other == series))
    }

    /// Tests what was listed ahead of these histories.
    fn test_listed(&mut self, concerns: impl Fn(&Subject) -> bool) -> Result<(), EngineError> {
        let is_tested = |subject: &Subject| concerns(subject) && self.reaches(*subject);
        let (mut losses, mut now) = (Vec::new(), BTreeMap::new());
        let subjects: Vec<_> = self.seen.iter().collect();
        for batch in subjects.chunks(MANIFESTS_AT_ONCE) {
            let tested = batch.iter().filter(|(subject, _)| is_tested(subject));
            let series: Vec<SeriesId> = tested.filter_map(|(subject, _)| subject.series()).collect();
            self.repository.read_manifests_ahead(&series);
            for (subject, seen) in batch {
                if !is_tested(subject) {
                    now.insert(**subject, (*seen).clone());
                    continue;
                }
                match self.find(**subject, seen) {
                    Ok(found) => {
                        losses.extend(judge(seen, found.as_ref()));
                        now.extend(found.map(|found| (**subject, found.sighting)));
                    }
                    Err(error) if error.is_damage() => drop(now.insert(**subject, (*seen).clone())),
                    Err(error) => return Err(error.into()),
                }
            }
        }
        if !losses.is_empty() {
            return Err(EngineError::HistoryLost { losses });
        }
        self.seen = now;
        Ok(())
    }

    /// The titles of what was seen and is out of reach now: the storage says so, and nothing can be held against it.
    pub fn out_of_reach(&self) -> Vec<String> {
        let storage = self.repository.storage();
        let is_out = |subject: &Subject| subject.series().is_some_and(|series| !storage.reaches(series));
        let out = self.seen.iter().filter(|(subject, _)| is_out(subject));
        out.map(|(_, seen)| seen.title.clone()).collect()
    }

    fn reaches(&self, subject: Subject) -> bool {
        match subject {
            Subject::Record => self.repository.may_read(),
            Subject::Series(series) => self.repository.reaches(series),
        }
    }

    /// The number of the newest commit that was seen of each series.
    pub fn commits(&self) -> BTreeMap<SeriesId, u64> {
        let series = |(subject, seen): (&Subject, &Sighting)| subject.series().map(|series| (series, seen.sequence));
        self.seen.iter().filter_map(series).collect()
    }

    /// Returns what is there now. The record was read before the memory was: where it seems to be older, it is read
    /// again.
    fn find(&self, subject: Subject, seen: &Sighting) -> Result<Option<Found>, StoreError> {
        match subject {
            Subject::Record => {
                if self.repository.config().sequence < seen.sequence {
                    self.repository.amend(|_| Ok(()))?;
                }
                Ok(Some(Found::record(self.repository)))
            }
            Subject::Series(series) => match self.repository.summary_listed(series) {
                Err(StoreError::LostSeries { .. }) => Ok(None),
                found => Ok(found?.as_ref().map(Found::series)),
            },
        }
    }

    /// Takes what is there for what was seen, whatever that was.
    ///
    /// # Errors
    /// Those of the repository, and of the file.
    pub fn accept(&mut self) -> Result<(), EngineError> {
        let mut seen = std::mem::take(&mut self.seen);
        seen.retain(|subject, _| !self.reaches(*subject));
        self.seen = seen;
        self.look(self.repository.series()?)?;
        self.file.replace(&self.seen).map_err(|source| EngineError::Local { source })
    }

    /// Takes what is there of these histories for what was seen of them; all else stays as it was seen.
    ///
    /// # Errors
    /// As [`Memory::accept`].
    pub fn accept_only(&mut self, subjects: &[Subject]) -> Result<(), EngineError> {
        let mut now = BTreeMap::new();
        for subject in subjects {
            let found = match subject {
                Subject::Record if !self.repository.may_read() => continue,
                Subject::Record => Some(Found::record(self.repository)),
                Subject::Series(series) => match newest_manifest(self.repository, *series) {
                    Err(error) if error.is_damage() => None,
                    found => found?.map(|stored| Found::series(&stored.summary())),
                },
            };
            now.insert(*subject, found.map(|found| found.sighting));
        }
        self.seen = self.file.revise(now).map_err(|source| EngineError::Local { source })?;
        Ok(())
    }

    /// Remembers what this process itself has listed, read or committed, where it is newer than what was seen.
    ///
    /// # Errors
    /// Those of the repository, and of the file.
    pub fn remember(&mut self) -> Result<(), EngineError> {
        self.look(self.repository.series_known())?;
        self.file.merge(&self.seen).map_err(|source| EngineError::Local { source })
    }

    /// Reads the newest manifest of each of these series that has gone on, or was not seen before. One that cannot be
    /// read is left as it was.
    fn look(&mut self, mut series: Vec<SeriesId>) -> Result<(), EngineError> {
        if self.repository.may_read() {
            self.note(Subject::Record, Found::record(self.repository));
        }
        let seen = |series: &SeriesId| self.seen.get(&Subject::Series(*series)).map(|seen| seen.sequence);
        series.retain(|series| self.repository.number_listed(*series) > seen(series));
        for batch in series.chunks(MANIFESTS_AT_ONCE) {
            self.repository.read_manifests_ahead(batch);
            for series in batch {
                match self.repository.summary_listed(*series) {
                    Ok(Some(found)) => self.note(Subject::Series(*series), Found::series(&found)),
                    Ok(None) => {}
                    Err(error) if error.is_damage() => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    fn note(&mut self, subject: Subject, found: Found) {
        if self.seen.get(&subject).is_none_or(|seen| seen.sequence < found.sighting.sequence) {
            self.seen.insert(subject, found.sighting);
        }
    }
}
