//! The folder a repository lies in, held open: every path is resolved below it, so neither a change of the working
//! directory nor a disk unmounted underneath can lead a write astray. Here are the single steps (write, sync, publish,
//! list); `disk.rs` and `queue.rs` put them in order.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use crate::ids::SeriesId;
use crate::storage::{ObjectMeta, ObjectName, StorageError, TEMPORARIES};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The folders a repository has besides.
const FOLDERS: [&str; 11] =
    ["config", "keys", "series", "data", "metadata", "parity", "aside", "renewals", "parts", "loans", "directory"];
/// The folder of copies; it has some of the same folders.
const COPIES: &str = "copies";

/// The folder of a path below the root; the root itself is `""`.
pub(super) fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Makes a folder and those above it, durably.
pub(super) fn make_folders(path: &Path) -> Result<(), StorageError> {
    let unreachable = |source| StorageError::Unreachable { location: path.display().to_string(), source };
    let absolute = std::path::absolute(path).map_err(unreachable)?;
    let missing: Vec<&Path> = absolute.ancestors().take_while(|folder| !folder.exists()).collect();
    for folder in missing.into_iter().rev() {
        make_folder(folder).map_err(unreachable)?;
    }
    Ok(())
}

fn make_folder(folder: &Path) -> io::Result<()> {
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    match folder.parent().map(File::open) {
        Some(Ok(parent)) => sync_entries(&parent.into()),
        // A folder may be written without being readable, but only an open one can be synced by itself.
        Some(Err(_)) => Ok(rustix::fs::syncfs(File::open(folder)?)?),
        None => Ok(()),
    }
}

/// Makes the entries of an open folder durable. File systems that cannot sync a folder (some network ones) keep entries
/// in order by themselves and say `EINVAL`: there is nothing more to ask for.
fn sync_entries(folder: &OwnedFd) -> io::Result<()> {
    match rustix::fs::fsync(folder) {
        Ok(()) | Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) folder: OwnedFd,
    location: String,
    /// Folders whose own entry is known to be durable.
    durable_folders: Mutex<BTreeSet<String>>,
    /// Temporary files this process is writing.
    pub(super) temporaries: Mutex<BTreeSet<String>>,
}

impl Root {
    pub(super) fn open(path: &Path) -> Result<Self, StorageError> {
        let location = path.display().to_string();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(folder) => {
                Ok(Self { folder, location, durable_folders: Mutex::default(), temporaries: Mutex::default() })
            }
            Err(errno) => Err(StorageError::Unreachable { location, source: errno.into() }),
        }
    }

    pub(super) fn location(&self) -> &str {
        &self.location
    }

    /// Returns the path of the open folder now, whatever path it was opened by.
    pub(super) fn canonical(&self) -> Option<PathBuf> {
        let open = format!("/proc/self/fd/{}", self.folder.as_raw_fd());
        std::fs::canonicalize(open).or_else(|_| std::fs::canonicalize(&self.location)).ok()
    }

    pub(super) fn read(&self, name: &ObjectName, bytes_max: u64) -> Result<Vec<u8>, StorageError> {
        let (file, bytes) = self.open_object(name)?;
        match usize::try_from(bytes) {
            Ok(length) if bytes <= bytes_max => read_exact(&file, name, 0, length),
            _ => Err(StorageError::TooLarge { name: *name, bytes, limit: bytes_max }),
        }
    }

    pub(super) fn read_range(&self, name: &ObjectName, offset: u64, length: usize) -> Result<Vec<u8>, StorageError> {
        let (file, found) = self.open_object(name)?;
        let expected = offset.saturating_add(length as u64);
        if expected > found {
            return Err(StorageError::TooShort { name: *name, expected, found });
        }
        read_exact(&file, name, offset, length)
    }

    pub(super) fn size_of(&self, name: &ObjectName) -> Result<u64, StorageError> {
        self.open_object(name).map(|(_, bytes)| bytes)
    }

    /// Asks the system to drop the pages it keeps of an object. It may decline; then its memory answers the next read.
    pub(super) fn drop_cached(&self, name: &ObjectName) {
        if let Ok((file, _)) = self.open_object(name) {
            let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
        }
    }

    /// The object's file and its length. Never blocks on a FIFO planted in its place.
    fn open_object(&self, name: &ObjectName) -> Result<(File, u64), StorageError> {
        let failed = |source| StorageError::reading("open", name, source);
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.folder, name.to_string(), flags, Mode::empty());
        let file = File::from(opened.map_err(|errno| failed(errno.into()))?);
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_file() {
            Ok((file, metadata.len()))
        } else {
            Err(failed(io::Error::new(io::ErrorKind::InvalidData, "it is not a regular file")))
        }
    }

    pub(super) fn exists(&self, name: &ObjectName) -> Result<bool, StorageError> {
        match rustix::fs::statat(&self.folder, name.to_string(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(StorageError::reading("look up", name, errno.into())),
        }
    }

    /// Makes a new file without content. It is whole at once, and durable whenever the system likes.
    pub(super) fn make_empty(&self, name: &ObjectName) -> Result<(), StorageError> {
        self.ensure_folder(folder_of(&name.to_string()))?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.folder, name.to_string(), flags, Mode::RUSR | Mode::WUSR) {
            Ok(_) => Ok(()),
            Err(Errno::EXIST) => Err(StorageError::AlreadyExists { name: *name }),
            Err(errno) => Err(StorageError::writing("make", name, errno.into())),
        }
    }

    /// Removes a file and says whether it was there.
    pub(super) fn remove(&self, path: &str) -> Result<bool, StorageError> {
        match rustix::fs::unlinkat(&self.folder, path, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(StorageError::writing("delete", path, errno.into())),
        }
    }

    /// Makes a folder if it is missing, and makes sure once that its entry lasts: it may have been made a moment ago by
    /// a process that had not synced it yet.
    pub(super) fn ensure_folder(&self, folder: &str) -> Result<(), StorageError> {
        if folder.is_empty() || lock(&self.durable_folders).contains(folder) {
            return Ok(());
        }
        self.ensure_folder(folder_of(folder))?;
        match rustix::fs::mkdirat(&self.folder, folder, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(StorageError::writing("make folder", folder, errno.into())),
        }
        self.sync_folder(folder_of(folder))?;
        lock(&self.durable_folders).insert(folder.to_owned());
        Ok(())
    }

    /// Makes the entries of a folder durable.
    pub(super) fn sync_folder(&self, folder: &str) -> Result<(), StorageError> {
        let failed = |source| StorageError::writing("sync folder", shown(folder), source);
        let opened = self.open_folder(folder).map_err(|errno| failed(errno.into()))?;
        sync_entries(&opened).map_err(failed)
    }

    fn open_folder(&self, folder: &str) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat(&self.folder, shown(folder), flags, Mode::empty())
    }

    /// Names in a folder, in no order; none if the folder is missing. Names that are not UTF-8 are foreign and left
    /// out.
    pub(super) fn entries(&self, folder: &str) -> Result<Vec<String>, StorageError> {
        let failed =
            |errno: Errno| StorageError::Io { operation: "list", name: shown(folder).to_owned(), source: errno.into() };
        let opened = match self.open_folder(folder) {
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Vec::new()),
            opened => opened.map_err(failed)?,
        };
        let mut names = Vec::new();
        for entry in Dir::new(opened).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            match entry.file_name().to_str() {
                Ok("." | "..") | Err(_) => {}
                Ok(name) => names.push(name.to_owned()),
            }
        }
        Ok(names)
    }

    /// The objects that lie directly in a folder.
    pub(super) fn list_folder(&self, folder: &str) -> Result<Vec<ObjectMeta>, StorageError> {
        let mut objects = Vec::new();
        for entry in self.entries(folder)? {
            let path = if folder.is_empty() { entry } else { format!("{folder}/{entry}") };
            let Some(name) = ObjectName::from_text(&path) else {
                continue;
            };
            match rustix::fs::statat(&self.folder, &path, AtFlags::empty()) {
                Ok(stat) if FileType::from_raw_mode(stat.st_mode).is_file() => {
                    objects.push(ObjectMeta { name, bytes: u64::try_from(stat.st_size).unwrap_or(0) });
                }
                // Not ours, or deleted since its name was read.
                Ok(_) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(StorageError::reading("look up", &name, errno.into())),
            }
        }
        Ok(objects)
    }

    /// The objects that lie in the folders of a folder.
    pub(super) fn list_below(&self, folder: &str) -> Result<Vec<ObjectMeta>, StorageError> {
        let mut objects = Vec::new();
        for entry in self.entries(folder)? {
            if SeriesId::from_hex(&entry).is_some() {
                objects.extend(self.list_folder(&format!("{folder}/{entry}"))?);
            }
        }
        Ok(objects)
    }

    pub(super) fn list_all(&self) -> Result<Vec<ObjectMeta>, StorageError> {
        let mut objects = Vec::new();
        for folder in ["", "config", "keys", "copies/config", "copies/keys", "aside", "directory"] {
            objects.extend(self.list_folder(folder)?);
        }
        let of_series =
            ["series", "data", "metadata", "parity", "copies/series", "renewals", "parts", "copies/parts", "loans"];
        for folder in of_series {
            objects.extend(self.list_below(folder)?);
        }
        Ok(objects)
    }

    pub(super) fn is_empty(&self) -> Result<bool, StorageError> {
        for entry in self.entries("")? {
            let is_vacant = match entry.as_str() {
                "lost+found" => true,
                TEMPORARIES => self.entries(TEMPORARIES)?.iter().all(|file| ObjectName::of_temporary(file).is_some()),
                COPIES => self.are_vacant(&self.entries(COPIES)?, COPIES)?,
                folder => FOLDERS.contains(&folder) && self.entries(folder)?.is_empty(),
            };
            if !is_vacant {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Tells whether these entries of a folder are folders of ours that hold nothing.
    fn are_vacant(&self, entries: &[String], below: &str) -> Result<bool, StorageError> {
        for entry in entries {
            if !FOLDERS.contains(&entry.as_str()) || !self.entries(&format!("{below}/{entry}"))?.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Removes the temporary files of a series and its leases up to this one, but those being written by this process.
    pub(super) fn remove_temporaries(&self, series: SeriesId, lease_last: u64) -> Result<u64, StorageError> {
        let mut removed = 0;
        for file in self.entries(TEMPORARIES)? {
            let is_over = ObjectName::of_temporary(&file).is_some_and(|name| name.is_of(series, lease_last));
            let path = format!("{TEMPORARIES}/{file}");
            if is_over && !lock(&self.temporaries).contains(&path) && self.remove(&path)? {
                removed += 1;
            }
        }
        Ok(removed)
    }
}

/// The guard, whether or not a thread panicked: no state here is ever half changed.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The text of a folder's path for the system and for messages.
fn shown(folder: &str) -> &str {
    if folder.is_empty() { "." } else { folder }
}

fn read_exact(file: &File, name: &ObjectName, offset: u64, length: usize) -> Result<Vec<u8>, StorageError> {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, offset).map_err(|source| StorageError::reading("read", name, source))?;
    Ok(bytes)
}
