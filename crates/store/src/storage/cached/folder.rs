//! The folder of a cache: a folder for each object, in it the whole object or ranges of it, each with a checksum.
//!
//! ```text
//! metadata/<name with dots>/whole
//! metadata/<name with dots>/<offset>-<length>     a range; an index of a container
//! data/<name with dots>/whole                     goes first when room is needed
//! ```
//! An entry is written under a temporary name and renamed, so that processes may share the folder. It is not synced:
//! one that a crash tears fails its checksum. Whatever fails is no error: the object is then not here.

use super::ObjectName;
use rustix::fs::{Mode, OFlags};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use tracing::debug;

/// Bytes of the checksum at the end of an entry.
const CHECKSUM_BYTES: usize = blake3::OUT_LEN;
/// Age from which a temporary file is left over: its process is long gone.
const LEFT_OVER_AFTER: Duration = Duration::from_hours(24);
/// The word that a temporary name begins with.
const TEMPORARY: &str = "new-";

/// A class of objects; the later one goes first when room is needed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Class {
    /// Containers of metadata, and indexes of all containers.
    Metadata,
    /// Containers of data.
    Data,
}

impl Class {
    const ALL: [Self; 2] = [Self::Metadata, Self::Data];

    fn folder(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::Data => "data",
        }
    }
}

/// A folder of cached objects.
#[derive(Debug)]
pub(super) struct Folder {
    root: PathBuf,
    bytes_max: u64,
    /// Bytes that the folder may still grow by before its size is looked at again.
    bytes_left: AtomicU64,
    serial: AtomicU64,
}

impl Folder {
    /// Opens the folder, or makes it, readable by this user alone.
    pub(super) fn open(root: &Path, bytes_max: u64) -> io::Result<Self> {
        for class in Class::ALL {
            fs::create_dir_all(root.join(class.folder()))?;
        }
        rustix::fs::chmod(root, Mode::RWXU)?;
        // The size is looked at with the first entry.
        Ok(Self { root: root.to_owned(), bytes_max, bytes_left: AtomicU64::new(0), serial: AtomicU64::new(0) })
    }

    /// The whole object, if it is here and sound.
    pub(super) fn whole(&self, name: &ObjectName) -> Option<Vec<u8>> {
        Class::ALL.into_iter().find_map(|class| read(&self.object(class, name).join("whole"), &label(name, 0)))
    }

    /// A range that was kept as one, if it is here and sound.
    pub(super) fn range(&self, name: &ObjectName, offset: u64, length: usize) -> Option<Vec<u8>> {
        let path = self.object(Class::Metadata, name).join(format!("{offset}-{length}"));
        read(&path, &label(name, offset)).filter(|bytes| bytes.len() == length)
    }

    /// A range of an object that is here whole. Its checksum is not verified, which would read all of it: the bytes
    /// are sealed, and whoever opens them finds out.
    pub(super) fn range_of_whole(&self, name: &ObjectName, offset: u64, length: usize) -> Option<Vec<u8>> {
        let path = Class::ALL.into_iter().map(|class| self.object(class, name).join("whole"));
        let (file, size) = path.into_iter().find_map(|path| open(&path))?;
        let object_bytes = size.checked_sub(CHECKSUM_BYTES as u64)?;
        offset.checked_add(length as u64).filter(|end| *end <= object_bytes)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).ok()?;
        bytes.resize(length, 0);
        file.read_exact_at(&mut bytes, offset).ok()?;
        let _ = file.set_modified(SystemTime::now());
        Some(bytes)
    }

    /// Keeps a whole object.
    pub(super) fn keep_whole(&self, name: &ObjectName, class: Class, bytes: &[u8]) {
        self.keep(&self.object(class, name), "whole", &label(name, 0), bytes);
    }

    /// Keeps a range of an object.
    pub(super) fn keep_range(&self, name: &ObjectName, offset: u64, bytes: &[u8]) {
        let file = format!("{offset}-{}", bytes.len());
        self.keep(&self.object(Class::Metadata, name), &file, &label(name, offset), bytes);
    }

    /// Removes all that is here of an object; true if there was something.
    pub(super) fn drop(&self, name: &ObjectName) -> bool {
        let mut was_here = false;
        for class in Class::ALL {
            was_here |= fs::remove_dir_all(self.object(class, name)).is_ok();
        }
        was_here
    }

    fn object(&self, class: Class, name: &ObjectName) -> PathBuf {
        self.root.join(class.folder()).join(name.to_string().replace('/', "."))
    }

    fn keep(&self, folder: &Path, file: &str, label: &str, bytes: &[u8]) {
        let size = (bytes.len() + CHECKSUM_BYTES) as u64;
        if size > self.bytes_max / 4 || !self.has_room(size) {
            return;
        }
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        let temporary = self.root.join(format!("{TEMPORARY}{}-{serial}", std::process::id()));
        let kept = write(&temporary, label, bytes)
            .and_then(|()| fs::create_dir_all(folder))
            .and_then(|()| fs::rename(&temporary, folder.join(file)));
        if let Err(error) = kept {
            let _ = fs::remove_file(&temporary);
            debug!(object = label, %error, "not cached");
        }
    }

    /// Takes so many bytes of the room; where there is too little, looks at the folder and removes what was used least
    /// lately, data first, down to nine tenths.
    fn has_room(&self, bytes: u64) -> bool {
        let take = |left: u64| left.checked_sub(bytes);
        if self.bytes_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
            return true;
        }
        let left_over = SystemTime::now() - LEFT_OVER_AFTER;
        let mut held: Vec<Held> = Class::ALL.into_iter().flat_map(|class| held(&self.root, class)).collect();
        held.sort_by_key(|entry| (std::cmp::Reverse(entry.class), entry.used));
        let mut total: u64 = held.iter().map(|entry| entry.bytes).sum();
        let goal = self.bytes_max / 10 * 9;
        for entry in held {
            if total + bytes <= goal {
                break;
            }
            if fs::remove_file(&entry.path).is_ok() {
                total -= entry.bytes;
                // Fails while other ranges of the object lie there.
                let _ = entry.path.parent().map(fs::remove_dir);
            }
        }
        remove_temporaries(&self.root, left_over);
        // A sixteenth at a time: other processes fill the folder too.
        let left = self.bytes_max.saturating_sub(total).min(self.bytes_max / 16);
        self.bytes_left.store(left.saturating_sub(bytes), Ordering::Relaxed);
        total + bytes <= self.bytes_max
    }
}

/// An entry as it lies there.
struct Held {
    class: Class,
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

/// All entries of a class.
fn held(root: &Path, class: Class) -> Vec<Held> {
    let objects = fs::read_dir(root.join(class.folder())).into_iter().flatten().flatten();
    let files = objects.flat_map(|object| fs::read_dir(object.path()).into_iter().flatten().flatten());
    files
        .filter_map(|file| {
            let metadata = file.metadata().ok()?;
            Some(Held { class, path: file.path(), bytes: metadata.len(), used: metadata.modified().ok()? })
        })
        .collect()
}

fn remove_temporaries(root: &Path, before: SystemTime) {
    for file in fs::read_dir(root).into_iter().flatten().flatten() {
        let is_temporary = file.file_name().to_string_lossy().starts_with(TEMPORARY);
        let is_old = || file.metadata().and_then(|metadata| metadata.modified()).is_ok_and(|time| time < before);
        if is_temporary && is_old() {
            let _ = fs::remove_file(file.path());
        }
    }
}

/// The text that an entry's checksum covers beside its bytes.
fn label(name: &ObjectName, offset: u64) -> String {
    format!("{name}@{offset}")
}

fn checksum(label: &str, bytes: &[u8]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(label.len() as u64).to_le_bytes()).update(label.as_bytes()).update(bytes);
    hasher.finalize()
}

fn write(path: &Path, label: &str, bytes: &[u8]) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut file = File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?);
    file.write_all(bytes)?;
    file.write_all(checksum(label, bytes).as_bytes())
}

/// An entry's bytes if it is there and its checksum holds. It is marked as used now.
fn read(path: &Path, label: &str) -> Option<Vec<u8>> {
    let (mut file, size) = open(path)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(usize::try_from(size).ok()?).ok()?;
    file.read_to_end(&mut bytes).ok()?;
    let (end, found) = bytes.split_last_chunk::<CHECKSUM_BYTES>().map(|(content, sum)| (content.len(), *sum))?;
    bytes.truncate(end);
    if checksum(label, &bytes) != found {
        let _ = fs::remove_file(path);
        return None;
    }
    let _ = file.set_modified(SystemTime::now());
    Some(bytes)
}

/// An entry's file and its size.
fn open(path: &Path) -> Option<(File, u64)> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let size = file.metadata().ok().filter(fs::Metadata::is_file)?.len();
    Some((file, size))
}
