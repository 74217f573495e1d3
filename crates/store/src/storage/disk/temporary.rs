//! A file on its way to become an object: written under a name nobody looks for, synced, then named in one step that
//! never replaces.

use super::root::{Root, lock};
use crate::storage::{ObjectName, StorageError, TEMPORARIES};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

/// A file that has no object's name yet; removed when dropped unpublished.
#[derive(Debug)]
pub(super) struct Temporary {
    root: Arc<Root>,
    name: ObjectName,
    path: String,
    file: File,
}

impl Temporary {
    /// Writes a new file, not yet synced.
    pub(super) fn write(root: &Arc<Root>, name: &ObjectName, bytes: &[u8]) -> Result<Self, StorageError> {
        let failed = |source| StorageError::writing("write", name, source);
        root.ensure_folder(TEMPORARIES)?;
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| failed(io::Error::other(error.to_string())))?;
        let file = ObjectName::temporary(&name.to_string(), u64::from_le_bytes(random));
        let path = format!("{TEMPORARIES}/{file}");
        lock(&root.temporaries).insert(path.clone());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        match rustix::fs::openat(&root.folder, &path, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => {
                let mut temporary = Self { root: Arc::clone(root), name: *name, path, file: file.into() };
                temporary.file.write_all(bytes).map_err(failed)?;
                Ok(temporary)
            }
            Err(errno) => {
                lock(&root.temporaries).remove(&path);
                Err(failed(errno.into()))
            }
        }
    }

    pub(super) fn name(&self) -> &ObjectName {
        &self.name
    }

    /// Makes the content durable.
    pub(super) fn sync(&self) -> Result<(), StorageError> {
        self.file.sync_all().map_err(|source| StorageError::writing("sync", &self.name, source))
    }

    /// Gives the file its object's name, unless something has it. Durable after the folder is synced.
    pub(super) fn publish(self) -> Result<(), StorageError> {
        let (folder, name) = (&self.root.folder, self.name.to_string());
        let renamed = match rustix::fs::renameat_with(folder, &self.path, folder, &name, RenameFlags::NOREPLACE) {
            // The file system lacks such a rename (NFS, for one); a hard link does not replace either.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => self.link_to(&name),
            renamed => renamed,
        };
        match renamed {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => Err(StorageError::AlreadyExists { name: self.name }),
            Err(Errno::NOENT) if self.is_gone() => Err(StorageError::Swept { name: self.name }),
            Err(errno) => Err(StorageError::writing("name", &self.name, errno.into())),
        }
    }

    /// Links the file to a second name; dropping `self` removes the first.
    fn link_to(&self, name: &str) -> rustix::io::Result<()> {
        let folder = &self.root.folder;
        match rustix::fs::linkat(folder, &self.path, folder, name, AtFlags::empty()) {
            // A network file system may have repeated a call whose first answer was lost: then the name is ours.
            Err(Errno::EXIST) if self.is_named(name) => Ok(()),
            linked => linked,
        }
    }

    /// Tells whether someone else removed the file: no name is left.
    fn is_gone(&self) -> bool {
        rustix::fs::fstat(&self.file).is_ok_and(|own| own.st_nlink == 0)
    }

    fn is_named(&self, name: &str) -> bool {
        let named = rustix::fs::statat(&self.root.folder, name, AtFlags::SYMLINK_NOFOLLOW);
        match (named, rustix::fs::fstat(&self.file)) {
            (Ok(named), Ok(own)) => (named.st_dev, named.st_ino) == (own.st_dev, own.st_ino),
            _ => false,
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Already gone after a rename. If it cannot be removed it stays as an unfinished file, which does no harm.
        let _ = self.root.remove(&self.path);
        lock(&self.root.temporaries).remove(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SeriesId;

    /// The way of file systems without a rename that refuses to replace.
    #[test]
    fn a_hard_link_does_not_replace_and_knows_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let root = Arc::new(Root::open(folder.path()).unwrap());
        let first = Temporary::write(&root, &ObjectName::Reserve, b"first").unwrap();
        let second = Temporary::write(&root, &ObjectName::Reserve, b"second").unwrap();
        first.link_to("reserve").unwrap();
        first.link_to("reserve").unwrap();
        assert_eq!(second.link_to("reserve"), Err(Errno::EXIST));
        drop((first, second));
        assert_eq!(root.read(&ObjectName::Reserve, 5).unwrap(), b"first");
        assert_eq!(root.entries(TEMPORARIES).unwrap(), Vec::<String>::new());
    }

    /// The story: the winner of a race for the lease swept the loser's manifest away before it had its name, and the
    /// loser said "cannot name series/...: No such file" instead of who holds the lease.
    #[test]
    fn a_file_swept_by_another_process_is_reported_as_swept() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = [(); 2].map(|()| Arc::new(Root::open(folder.path()).unwrap()));
        one.ensure_folder("series").unwrap();
        let series = SeriesId([7; 16]);
        let name = ObjectName::Manifest(series, 5);
        let written = || {
            one.ensure_folder(&format!("series/{series}")).unwrap();
            Temporary::write(&one, &name, b"a manifest").unwrap()
        };
        let live = written();
        assert_eq!(other.remove_temporaries(series, 4).unwrap(), 0, "it may be a successor's");
        live.publish().unwrap();
        one.remove(&name.to_string()).unwrap();

        let late = written();
        assert_eq!(other.remove_temporaries(series, 5).unwrap(), 1);
        let error = late.publish().unwrap_err();
        assert!(matches!(&error, StorageError::Swept { name: swept } if *swept == name), "{error:?}");
    }
}
