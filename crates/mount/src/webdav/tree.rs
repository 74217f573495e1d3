//! Resources that paths lead to: the folders above the snapshots, and what is in these.
//!
//! `WebDAV` knows files and folders only. The links `latest` are shown as the folders they lead to; links, pipes and
//! devices of a snapshot are left out.

use crate::ahead::ReadAhead;
use crate::content::OpenFile;
use crate::folders::{Folder, Place};
use crate::snapshots::{Catalogue, lock};
use crate::told::Told;
use crate::{MountError, MountOptions, eighth};
use lru::LruCache;
use siltstone_engine::EngineError;
use siltstone_engine::snapshots::SnapshotView;
use siltstone_store::catalog::{Content, Entry, EntryPath};
use siltstone_store::repository::Repository;
use siltstone_store::{SnapshotId, Time};
use std::io;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

/// Files whose extents, and where they are being read, are kept.
const FILES_MAX: NonZeroUsize = NonZeroUsize::new(256).unwrap();
/// Threads that read ahead.
const READ_AHEAD_THREADS: usize = 2;

/// All that is shown.
pub(super) struct Tree {
    catalogue: Catalogue,
    files: Mutex<LruCache<(SnapshotId, EntryPath), Arc<OpenFile>>>,
    read_ahead: ReadAhead,
    told: Told,
}

/// Resource that a path leads to.
pub(super) enum Resource {
    /// A folder above the snapshots.
    Above(Arc<Folder>),
    /// A snapshot.
    Top(Arc<SnapshotView>),
    /// A folder in one.
    Directory(Arc<SnapshotView>, Entry),
    /// A file in one.
    File(Arc<SnapshotView>, Entry),
}

/// Properties of a file or a folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Properties {
    /// When it was changed; not known of folders above the snapshots.
    pub(super) modified: Option<Time>,
    /// Size and identity of a file; `None` of a folder.
    pub(super) file: Option<FileProperties>,
}

/// Properties of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct FileProperties {
    pub(super) size: u64,
    /// An entity tag, without quotes: no other content ever has it.
    pub(super) tag: String,
}

/// Why there is nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Missing {
    /// The path leads nowhere.
    NotFound,
    /// It cannot be read; what is wrong has been told.
    Unreadable,
}

impl Tree {
    /// Shows the snapshots that the options choose.
    ///
    /// # Errors
    /// Those of listing them; that no thread can be started.
    pub(super) fn new(repository: &'static Repository, options: MountOptions) -> Result<Self, MountError> {
        let (catalogue, damage) = Catalogue::new(repository, &options)?;
        let failed = |source| MountError::Threads { source };
        let tree = Self {
            catalogue,
            files: Mutex::new(LruCache::new(FILES_MAX)),
            read_ahead: ReadAhead::start(READ_AHEAD_THREADS, eighth(&options.resources)).map_err(failed)?,
            told: Told::new(options.tell),
        };
        tree.told.all(damage);
        Ok(tree)
    }

    fn missing(&self, path: Option<&EntryPath>, error: &EngineError) -> Missing {
        if matches!(error, EngineError::NoSuchPath { .. } | EngineError::NoSnapshot { .. }) {
            return Missing::NotFound;
        }
        let path = path.map_or(&b""[..], EntryPath::as_bytes).escape_ascii();
        self.told.once(format!("/{path}: {error}"));
        Missing::Unreadable
    }

    /// Follows a path from the topmost folder.
    pub(super) fn find(&self, names: &[Vec<u8>]) -> Result<Resource, Missing> {
        let (root, errors) = self.catalogue.folders();
        self.told.all(errors);
        let mut folder = root;
        for (at, name) in names.iter().enumerate() {
            match place_in(&folder, name).ok_or(Missing::NotFound)? {
                Place::Folder(inner) => folder = inner,
                Place::Snapshot(snapshot) => return self.inside(snapshot, names.get(at + 1..).unwrap_or_default()),
                // A link that leads to a link.
                Place::Link(_) => return Err(Missing::NotFound),
            }
        }
        Ok(Resource::Above(folder))
    }

    /// Follows a path in a snapshot.
    fn inside(&self, snapshot: Arc<SnapshotView>, names: &[Vec<u8>]) -> Result<Resource, Missing> {
        if names.is_empty() {
            return Ok(Resource::Top(snapshot));
        }
        let path = EntryPath::new(names.join(&b'/')).map_err(|_| Missing::NotFound)?;
        let found = self.catalogue.reader(&snapshot).and_then(|reader| reader.entry(&path));
        let entry = found.map_err(|error| self.missing(Some(&path), &error))?;
        match entry.content {
            Content::Directory => Ok(Resource::Directory(snapshot, entry)),
            Content::File { .. } => Ok(Resource::File(snapshot, entry)),
            _ => Err(Missing::NotFound),
        }
    }

    /// Shows the names in a folder, with what is told of each, until `show` fails. A file holds none.
    ///
    /// # Errors
    /// Those of `show`; what cannot be read of the folder.
    pub(super) fn list(
        &self,
        resource: &Resource,
        mut show: impl FnMut(&[u8], &Properties) -> io::Result<()>,
    ) -> io::Result<()> {
        let (snapshot, path) = match resource {
            Resource::Above(folder) => {
                return folder.iter().try_for_each(|(name, place)| match followed(folder, place) {
                    Some(place) => show(name, &properties_of_place(&place)),
                    None => Ok(()),
                });
            }
            Resource::Top(snapshot) => (snapshot, None),
            Resource::Directory(snapshot, entry) => (snapshot, Some(&entry.path)),
            Resource::File(..) => return Ok(()),
        };
        let told = |error: EngineError| {
            self.missing(path, &error);
            io::Error::other(error)
        };
        let reader = self.catalogue.reader(snapshot).map_err(told)?;
        for entry in reader.children(path) {
            let entry = entry.map_err(told)?;
            if matches!(entry.content, Content::Directory | Content::File { .. }) {
                show(entry.path.name(), &properties_of_entry(snapshot, &entry))?;
            }
        }
        Ok(())
    }

    /// The file that is being read.
    pub(super) fn open(&self, snapshot: &SnapshotView, entry: &Entry) -> Result<Arc<OpenFile>, Missing> {
        let key = (snapshot.snapshot.id, entry.path.clone());
        if let Some(file) = lock(&self.files).get(&key) {
            return Ok(file.clone());
        }
        let opened = self.catalogue.reader(snapshot).and_then(|snapshot| OpenFile::new(snapshot, entry, None));
        let file = Arc::new(opened.map_err(|error| self.missing(Some(&entry.path), &error))?);
        Ok(lock(&self.files).get_or_insert(key, || file).clone())
    }

    /// Reads of a file, up to what cannot be read, and ahead of who reads it.
    ///
    /// # Errors
    /// Fails with what cannot be read; it is told.
    pub(super) fn read(&self, file: &Arc<OpenFile>, offset: u64, bytes: u32) -> io::Result<Vec<u8>> {
        self.read_ahead.follow(file, offset, bytes);
        file.read_some(offset, bytes).inspect_err(|error| {
            self.told.once(format!("/{}: {error}", file.path.as_bytes().escape_ascii()));
        })
    }
}

impl Resource {
    /// Returns its properties.
    pub(super) fn properties(&self) -> Properties {
        match self {
            Self::Above(_) => Properties { modified: None, file: None },
            Self::Top(snapshot) => Properties { modified: Some(snapshot.snapshot.time), file: None },
            Self::Directory(snapshot, entry) | Self::File(snapshot, entry) => properties_of_entry(snapshot, entry),
        }
    }
}

/// Finds a name in a folder; of a link, what it leads to.
fn place_in(folder: &Folder, name: &[u8]) -> Option<Place> {
    followed(folder, folder.get(name)?)
}

/// Follows a link to what lies in the folder or below it; anything else is itself.
fn followed(folder: &Folder, place: &Place) -> Option<Place> {
    let Place::Link(target) = place else { return Some(place.clone()) };
    let mut names = target.split(|byte| *byte == b'/');
    let first = folder.get(names.next()?)?;
    names.try_fold(first.clone(), |place, name| match place {
        Place::Folder(inner) => inner.get(name).cloned(),
        Place::Snapshot(_) | Place::Link(_) => None,
    })
}

fn properties_of_place(place: &Place) -> Properties {
    let modified = if let Place::Snapshot(snapshot) = place { Some(snapshot.snapshot.time) } else { None };
    Properties { modified, file: None }
}

fn properties_of_entry(snapshot: &SnapshotView, entry: &Entry) -> Properties {
    let file = if let Content::File { size, .. } = &entry.content {
        // A snapshot never changes.
        let mut hasher = blake3::Hasher::new();
        hasher.update(snapshot.snapshot.id.to_string().as_bytes()).update(b"/").update(entry.path.as_bytes());
        let tag = hasher.finalize().to_hex().chars().take(32).collect();
        Some(FileProperties { size: *size, tag })
    } else {
        None
    };
    Properties { modified: Some(entry.metadata.modified), file }
}
