//! The snapshots that are shown, listed again now and then, and readers of their series.

use crate::folders::{Folder, Place, arranged};
use crate::{MountOptions, eighth};
use jiff::tz::TimeZone;
use lru::LruCache;
use siltstone_engine::EngineError;
use siltstone_engine::file_reader::{ReaderCache, SnapshotReader};
use siltstone_engine::snapshots::{SnapshotFilter, SnapshotKey, SnapshotView, list_readable};
use siltstone_store::repository::Repository;
use siltstone_store::{SeriesId, Time};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Age of the list at which it is made again when somebody looks.
const LIST_AGE_MAX: Duration = Duration::from_mins(1);
/// Series whose chunks and indexes are kept at the same time.
const SERIES_MAX: NonZeroUsize = NonZeroUsize::new(4).unwrap();

/// All snapshots of a mount.
pub(crate) struct Catalogue {
    repository: &'static Repository,
    filter: SnapshotFilter,
    zone: TimeZone,
    /// Decoded content of all series.
    cache: ReaderCache,
    list: Mutex<List>,
    /// A reader of any snapshot of the series.
    readers: Mutex<LruCache<SeriesId, SnapshotReader<'static>>>,
}

struct List {
    folders: Arc<Folder>,
    keys: BTreeSet<SnapshotKey>,
    made: Instant,
}

impl Catalogue {
    /// Lists the snapshots; returns the errors of series that cannot be read, beside.
    pub(crate) fn new(
        repository: &'static Repository,
        options: &MountOptions,
    ) -> Result<(Self, Vec<String>), EngineError> {
        repository.require_reading("mounting snapshots")?;
        let zone = TimeZone::system();
        let (list, damage) = listed(repository, &options.filter, &zone)?;
        let catalogue = Self {
            repository,
            filter: options.filter.clone(),
            zone,
            cache: ReaderCache::new(3 * eighth(&options.resources), &options.resources),
            list: Mutex::new(list),
            readers: Mutex::new(LruCache::new(SERIES_MAX)),
        };
        Ok((catalogue, damage))
    }

    /// The folders as they are now.
    ///
    /// # Errors
    /// What keeps the snapshots from being listed, or some: beside the folders as far as they are known.
    pub(crate) fn folders(&self) -> (Arc<Folder>, Vec<String>) {
        let mut list = lock(&self.list);
        if list.made.elapsed() < LIST_AGE_MAX {
            return (list.folders.clone(), Vec::new());
        }
        let errors = match listed(self.repository, &self.filter, &self.zone) {
            Ok((newer, damage)) => {
                if newer.keys != list.keys {
                    lock(&self.readers).clear();
                }
                *list = newer;
                damage
            }
            Err(error) => {
                list.made = Instant::now();
                vec![error.to_string()]
            }
        };
        (list.folders.clone(), errors)
    }

    /// Place that these names lead to.
    pub(crate) fn place(&self, names: &[Vec<u8>]) -> (Option<Place>, Vec<String>) {
        let (folders, errors) = self.folders();
        let mut place = None;
        let mut folder = &*folders;
        for (at, name) in names.iter().enumerate() {
            place = folder.get(name);
            match place {
                Some(Place::Folder(inner)) => folder = inner,
                _ if at + 1 == names.len() => {}
                _ => return (None, errors),
            }
        }
        let place = if names.is_empty() { Some(Place::Folder(folders.clone())) } else { place.cloned() };
        (place, errors)
    }

    /// A reader of a snapshot; all of one series share what they keep.
    pub(crate) fn reader(&self, snapshot: &SnapshotView) -> Result<SnapshotReader<'static>, EngineError> {
        if let Some(reader) = lock(&self.readers).get(&snapshot.series).and_then(|reader| reader.beside(snapshot)) {
            return Ok(reader);
        }
        let reader = SnapshotReader::sharing(self.repository, snapshot, &self.cache)?;
        let mut readers = lock(&self.readers);
        // Another thread may have been faster.
        let kept = readers.get_or_insert(snapshot.series, || reader.clone());
        Ok(kept.beside(snapshot).unwrap_or(reader))
    }
}

fn listed(
    repository: &Repository,
    filter: &SnapshotFilter,
    zone: &TimeZone,
) -> Result<(List, Vec<String>), EngineError> {
    let (views, damage) = list_readable(repository, filter)?;
    let keys = views.iter().map(SnapshotView::key).collect();
    let folders = Arc::new(arranged(views, now(), zone));
    Ok((List { folders, keys, made: Instant::now() }, damage.iter().map(ToString::to_string).collect()))
}

fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time { seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX), nanoseconds: since.subsec_nanos() }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
