//! The directory: which series have much that others may borrow, each with the sketch of its chunks. Whoever looks for
//! a lender reads one object, however many series there are.
//!
//! It is a hint. A series that is not in it can be borrowed of by its name; one that is there and no longer lends is
//! passed over; a directory that is lost or damaged is made anew by those who are told to be in it. So it is kept once,
//! and written without a lease: of two writers of one number the later takes the next.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use crate::created::{Created, create_ours};
use crate::encoding;
use crate::error::StoreError;
use crate::ids::SeriesId;
use crate::manifest::BottomK;
use crate::repository::Repository;
use crate::sealed::{ObjectKind, open_object, seal_object};
use crate::storage::{Listing, ObjectName};
use serde::{Deserialize, Serialize};

/// The most series in a directory. Where there are more, those with the most chunks stay.
pub const DIRECTORY_MAX: usize = 1024;
/// Times that a writer takes the next number.
const ATTEMPTS_MAX: u32 = 8;

/// A series that others may borrow of.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DirectoryEntry {
    /// The series.
    pub series: SeriesId,
    /// The sketch of its own chunks.
    pub sketch: BottomK,
}

/// The newest directory.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Directory {
    /// Its number; 0 if there is none.
    pub sequence: u64,
    /// The series in it.
    pub entries: Vec<DirectoryEntry>,
    /// Numbers of the directories that lie there, itself among them.
    listed: Vec<u64>,
}

impl Directory {
    /// Reads the newest directory; an empty one where there is none, or it is damaged.
    ///
    /// # Errors
    /// Those of the storage.
    pub fn newest(repository: &Repository) -> Result<Self, StoreError> {
        let listed = repository.storage().list(Listing::Directories)?;
        let sequences = listed.iter().filter_map(|meta| match meta.name {
            ObjectName::Directory(sequence) => Some(sequence),
            _ => None,
        });
        let listed: Vec<u64> = sequences.collect();
        let Some(sequence) = listed.iter().max().copied() else { return Ok(Self::default()) };
        let name = ObjectName::Directory(sequence);
        let entries = match repository.storage().read(&name, name.bytes_max()) {
            Ok(object) => Self::open(repository, &name, object).unwrap_or_default(),
            // It was followed by another a moment ago.
            Err(error) if error.is_not_found() => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        Ok(Self { sequence, entries, listed })
    }

    fn open(repository: &Repository, name: &ObjectName, object: Vec<u8>) -> Result<Vec<DirectoryEntry>, StoreError> {
        let content = open_object(repository.keys(), name, ObjectKind::Directory, object)?;
        let entries: Vec<DirectoryEntry> = encoding::decode(name, "directory", &content)?;
        if entries.len() > DIRECTORY_MAX || !entries.iter().all(|entry| entry.sketch.is_sound()) {
            return Err(StoreError::damaged(name, "directory", "its entries are not sound"));
        }
        Ok(entries)
    }

    /// Puts a series into the directory that follows this one, or its sketch in place of the one that is there. Returns
    /// that directory; where others write all the time, none, and the series is not in it.
    ///
    /// # Errors
    /// Those of the storage.
    pub fn with(self, repository: &Repository, entry: &DirectoryEntry) -> Result<Option<Self>, StoreError> {
        self.changed(repository, |entries| {
            entries.retain(|known| known.series != entry.series);
            entries.push(entry.clone());
        })
    }

    /// Writes the directory that follows this one, changed so; where another has been written since, that one is
    /// changed. Returns it; none where others write all the time.
    ///
    /// # Errors
    /// Those of the storage.
    pub fn changed(
        mut self,
        repository: &Repository,
        change: impl Fn(&mut Vec<DirectoryEntry>),
    ) -> Result<Option<Self>, StoreError> {
        for _ in 0..ATTEMPTS_MAX {
            change(&mut self.entries);
            if self.entries.len() > DIRECTORY_MAX {
                self.entries.sort_by_key(|known| std::cmp::Reverse(known.sketch.chunks()));
                self.entries.truncate(DIRECTORY_MAX);
            }
            self.sequence = self.sequence.saturating_add(1);
            let name = ObjectName::Directory(self.sequence);
            let content = encoding::encode(&self.entries)?;
            let object = seal_object(repository.keys(), &name, ObjectKind::Directory, &content)?;
            if create_ours(repository.storage(), &name, &object)? == Created::Ours {
                let before: Vec<ObjectName> = self.listed.drain(..).map(ObjectName::Directory).collect();
                self.listed.push(self.sequence);
                if !before.is_empty() && repository.may_delete() {
                    repository.storage().delete_many(&before)?;
                }
                return Ok(Some(self));
            }
            self = Self::newest(repository)?;
        }
        Ok(None)
    }
}
