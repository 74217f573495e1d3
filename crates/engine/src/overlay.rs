//! A storage over another one, for dry runs: what is written goes to a nameless file, what is deleted is hidden, and
//! nothing changes below. So a dry run may do all that the run would do, and the run's requests and bytes are known.
//!
//! Cost: the file takes what is written, also of what is deleted again. Listings ask the place below and are corrected.

use crate::parallel::lock;
use siltstone_store::repository::Repository;
use siltstone_store::storage::{Listing, ObjectMeta, ObjectName, ReadRequest, Storage, StorageError};
use siltstone_store::{SeriesId, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Objects in a nameless file over a storage that is only read.
#[derive(Debug)]
pub(crate) struct Overlay {
    below: Arc<dyn Storage>,
    file: File,
    changes: Mutex<Changes>,
}

/// A repository over an overlay.
#[derive(Debug)]
pub(crate) struct Overlaid<S> {
    pub(crate) repository: Repository,
    pub(crate) overlay: Arc<Overlay>,
    /// The storage over the overlay.
    pub(crate) wrapped: Arc<S>,
}

/// Differences from the storage below.
#[derive(Debug, Default)]
struct Changes {
    /// Where the file ends.
    end: u64,
    /// Where in the file each object begins, and the object's length.
    held: BTreeMap<ObjectName, (u64, u64)>,
    /// Objects of the storage below that were deleted.
    hidden: BTreeSet<ObjectName>,
}

impl Overlay {
    /// Puts an overlay over the storage of a repository, and what `wrap` makes of it over that. What is written goes to
    /// a nameless file in the folder `scratch`.
    ///
    /// # Errors
    /// The file cannot be made.
    pub(crate) fn over<S: Storage + 'static>(
        repository: &Repository,
        scratch: &Path,
        wrap: impl FnOnce(Arc<Self>) -> Arc<S>,
    ) -> Result<Overlaid<S>, StoreError> {
        let file = tempfile::tempfile_in(scratch).map_err(|source| failed("make", source))?;
        let mut made = None;
        let repository = repository.over(|below| {
            let overlay = Arc::new(Self { below, file, changes: Mutex::default() });
            let wrapped = wrap(overlay.clone());
            made = Some((overlay, wrapped.clone()));
            wrapped
        });
        let (overlay, wrapped) = made.unwrap_or_else(|| unreachable!("the repository lies over it"));
        Ok(Overlaid { repository, overlay, wrapped })
    }

    /// Returns by how many bytes its objects are more than those below.
    ///
    /// # Errors
    /// Those of the storage below, which is asked for the lengths of what was deleted.
    pub(crate) fn bytes_kept(&self) -> Result<i64, StorageError> {
        let (held, hidden) = {
            let changes = lock(&self.changes);
            (changes.held.values().map(|(_, bytes)| bytes).sum::<u64>(), changes.hidden.clone())
        };
        let gone = self.lengths(&hidden)?;
        let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        Ok(signed(held) - signed(gone))
    }

    /// The bytes of these objects of the storage below, as far as they are there.
    fn lengths(&self, names: &BTreeSet<ObjectName>) -> Result<u64, StorageError> {
        let series: BTreeSet<SeriesId> = names.iter().filter_map(ObjectName::series).collect();
        let mut listed = vec![self.below.list(Listing::Configs)?, self.below.list(Listing::ConfigCopies)?];
        for series in series {
            for what in Listing::kept_by(series) {
                listed.push(self.below.list(what)?);
            }
        }
        let there: BTreeMap<ObjectName, u64> =
            listed.into_iter().flatten().map(|meta| (meta.name, meta.bytes)).collect();
        let mut bytes = 0;
        for name in names {
            bytes += match (there.get(name), name) {
                (Some(bytes), _) => *bytes,
                (None, ObjectName::Reserve) => self.below.size_of(name).or_else(not_there)?,
                (None, _) => 0,
            };
        }
        Ok(bytes)
    }

    fn place(&self, name: &ObjectName) -> Place {
        let changes = lock(&self.changes);
        match changes.held.get(name) {
            Some((begin, bytes)) => Place::Held(*begin, *bytes),
            None if changes.hidden.contains(name) => Place::Gone,
            None => Place::Below,
        }
    }

    fn read_at(&self, offset: u64, length: usize) -> Result<Vec<u8>, StorageError> {
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, offset).map_err(|source| failed("read", source))?;
        Ok(bytes)
    }

    /// A listing of the storage below, as it is with the changes.
    fn corrected(&self, what: Listing, mut listed: Vec<ObjectMeta>) -> Vec<ObjectMeta> {
        let changes = lock(&self.changes);
        listed.retain(|meta| !changes.hidden.contains(&meta.name) && !changes.held.contains_key(&meta.name));
        let held = changes.held.iter().filter(|(name, _)| what.holds(name));
        listed.extend(held.map(|(name, (_, bytes))| ObjectMeta { name: *name, bytes: *bytes }));
        listed.sort_unstable_by_key(|meta| meta.name);
        listed
    }
}

/// Place of an object.
enum Place {
    /// In the file, from this offset on, with this length.
    Held(u64, u64),
    Below,
    Gone,
}

fn failed(operation: &'static str, source: io::Error) -> StorageError {
    StorageError::Io { operation, name: "a temporary file".into(), source }
}

fn not_there(error: StorageError) -> Result<u64, StorageError> {
    if error.is_not_found() { Ok(0) } else { Err(error) }
}

impl Storage for Overlay {
    fn read(&self, name: &ObjectName, bytes_max: u64) -> Result<Vec<u8>, StorageError> {
        match self.place(name) {
            Place::Below => self.below.read(name, bytes_max),
            Place::Gone => Err(StorageError::NotFound { name: *name }),
            Place::Held(_, bytes) if bytes > bytes_max => {
                Err(StorageError::TooLarge { name: *name, bytes, limit: bytes_max })
            }
            Place::Held(begin, bytes) => self.read_at(begin, usize::try_from(bytes).unwrap_or(usize::MAX)),
        }
    }

    fn read_range(&self, name: &ObjectName, offset: u64, length: usize) -> Result<Vec<u8>, StorageError> {
        match self.place(name) {
            Place::Below => self.below.read_range(name, offset, length),
            Place::Gone => Err(StorageError::NotFound { name: *name }),
            Place::Held(begin, bytes) => match offset.checked_add(length as u64) {
                Some(end) if end <= bytes => self.read_at(begin + offset, length),
                end => Err(StorageError::TooShort { name: *name, expected: end.unwrap_or(u64::MAX), found: bytes }),
            },
        }
    }

    fn read_kept(&self, name: &ObjectName, offset: u64, length: usize) -> Result<Vec<u8>, StorageError> {
        match self.place(name) {
            Place::Below => self.below.read_kept(name, offset, length),
            _ => self.read_range(name, offset, length),
        }
    }

    fn read_many(
        &self,
        requests: &[ReadRequest],
        answer: &mut dyn FnMut(usize, Result<Vec<u8>, StorageError>) -> ControlFlow<()>,
    ) {
        let is_below = |request: &ReadRequest| matches!(self.place(&request.name), Place::Below);
        let (below, own): (Vec<usize>, Vec<usize>) = (0..requests.len()).partition(|at| is_below(&requests[*at]));
        for at in own {
            if answer(at, self.read_part(&requests[at])).is_break() {
                return;
            }
        }
        let asked: Vec<ReadRequest> = below.iter().map(|at| requests[*at]).collect();
        self.below.read_many(&asked, &mut |at, object| answer(below[at], object));
    }

    fn size_of(&self, name: &ObjectName) -> Result<u64, StorageError> {
        match self.place(name) {
            Place::Below => self.below.size_of(name),
            Place::Gone => Err(StorageError::NotFound { name: *name }),
            Place::Held(_, bytes) => Ok(bytes),
        }
    }

    fn put(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        let mut changes = lock(&self.changes);
        let begin = changes.end;
        self.file.write_all_at(bytes, begin).map_err(|source| failed("write", source))?;
        changes.end += bytes.len() as u64;
        changes.held.insert(*name, (begin, bytes.len() as u64));
        Ok(())
    }

    fn barrier(&self) -> Result<(), StorageError> {
        Ok(())
    }

    fn create(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        if lock(&self.changes).held.contains_key(name) {
            return Err(StorageError::AlreadyExists { name: *name });
        }
        self.put(name, bytes)
    }

    fn delete(&self, name: &ObjectName) -> Result<(), StorageError> {
        let mut changes = lock(&self.changes);
        changes.held.remove(name);
        changes.hidden.insert(*name);
        Ok(())
    }

    fn list(&self, what: Listing) -> Result<Vec<ObjectMeta>, StorageError> {
        Ok(self.corrected(what, self.below.list(what)?))
    }

    fn list_both(&self, what: [Listing; 2]) -> Result<[Vec<ObjectMeta>; 2], StorageError> {
        let [first, second] = self.below.list_both(what)?;
        Ok([self.corrected(what[0], first), self.corrected(what[1], second)])
    }

    fn remove_unfinished(&self, _: SeriesId, _: u64) -> Result<u64, StorageError> {
        Ok(0)
    }

    fn drop_cached(&self, name: &ObjectName) -> bool {
        matches!(self.place(name), Place::Below) && self.below.drop_cached(name)
    }

    fn below(&self) -> Option<&dyn Storage> {
        Some(&*self.below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_store::storage::SimulatedDisk;

    const SERIES: SeriesId = SeriesId([1; 16]);

    fn name(number: u64) -> ObjectName {
        ObjectName::Manifest(SERIES, number)
    }

    #[test]
    fn what_is_written_and_deleted_shows_above_and_not_below() {
        let below = SimulatedDisk::new();
        for number in 1..4 {
            below.create(&name(number), &[0; 100]).expect("an object");
        }
        let before = below.list(Listing::All).expect("a list");
        let file = tempfile::tempfile().expect("a file");
        let overlay = Overlay { below: Arc::new(below.clone()), file, changes: Mutex::default() };
        overlay.delete(&name(2)).expect("deleted");
        overlay.create(&name(5), b"five!").expect("created");
        assert!(overlay.create(&name(5), b"again").is_err_and(|error| error.is_already_exists()));
        overlay.put(&name(4), b"").expect("put");
        let listed = overlay.list(Listing::Manifests(SERIES)).expect("a list");
        let listed: Vec<_> = listed.iter().map(|meta| (meta.name, meta.bytes)).collect();
        assert_eq!(listed, [(name(1), 100), (name(3), 100), (name(4), 0), (name(5), 5)]);
        assert_eq!(overlay.bytes_kept().expect("lengths"), 5 - 100);
        assert_eq!(overlay.read(&name(5), 10).expect("bytes"), b"five!");
        assert_eq!(overlay.read_range(&name(5), 1, 3).expect("bytes"), b"ive");
        assert!(overlay.read_range(&name(5), 3, 3).is_err() && overlay.read(&name(5), 4).is_err());
        assert!(overlay.read(&name(2), 100).is_err_and(|error| error.is_not_found()));
        let requests: Vec<ReadRequest> = (1..6).map(|number| ReadRequest::whole(name(number), 100)).collect();
        let mut found = BTreeMap::new();
        overlay.read_many(&requests, &mut |at, object| {
            found.insert(at, object.ok().map(|bytes| bytes.len()));
            ControlFlow::Continue(())
        });
        assert_eq!(found.into_values().collect::<Vec<_>>(), [Some(100), None, Some(100), Some(0), Some(5)]);
        overlay.delete(&name(5)).expect("deleted");
        overlay.create(&name(5), b"anew").expect("its name is free");
        assert_eq!(below.list(Listing::All).expect("a list"), before);
    }
}
