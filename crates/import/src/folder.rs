//! The files of a restic repository, in a folder that is only read.

use bytes::Bytes;
use rustic_core::{BytesList, ErrorKind, FileType, Id, ReadBackend, RusticError, RusticResult, WriteBackend};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Folder of a restic repository.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    fn path(&self, kind: FileType, id: &Id) -> PathBuf {
        let name = id.to_hex();
        match kind {
            FileType::Config => self.0.join("config"),
            FileType::Pack => self.0.join("data").join(&name.as_str()[..2]).join(name.as_str()),
            _ => self.0.join(kind.dirname()).join(name.as_str()),
        }
    }
}

impl ReadBackend for Folder {
    fn location(&self) -> String {
        self.0.display().to_string()
    }

    fn list_with_size(&self, kind: FileType) -> RusticResult<Vec<(Id, u32)>> {
        let failed = |error: io::Error| failed(&self.0.join(kind.dirname()), error);
        if kind == FileType::Config {
            return match fs::metadata(self.0.join("config")) {
                Ok(status) => Ok(vec![(Id::default(), length(status.len()))]),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
                Err(error) => Err(failed(error)),
            };
        }
        let mut found = Vec::new();
        list(&self.0.join(kind.dirname()), kind == FileType::Pack, &mut found).map_err(failed)?;
        Ok(found)
    }

    fn read_full(&self, kind: FileType, id: &Id) -> RusticResult<Bytes> {
        let path = self.path(kind, id);
        fs::read(&path).map(Bytes::from).map_err(|error| failed(&path, error))
    }

    fn read_partial(&self, kind: FileType, id: &Id, _: bool, offset: u32, length: u32) -> RusticResult<Bytes> {
        let path = self.path(kind, id);
        let read = || {
            let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
            File::open(&path)?.read_exact_at(&mut bytes, offset.into())?;
            Ok(Bytes::from(bytes))
        };
        read().map_err(|error| failed(&path, error))
    }

    fn warmup_path(&self, kind: FileType, id: &Id) -> String {
        self.path(kind, id).display().to_string()
    }
}

/// The library asks for a place that can be written to. This one never is.
impl WriteBackend for Folder {
    fn write_bytes(&self, kind: FileType, id: &Id, _: bool, _: BytesList) -> RusticResult<()> {
        Err(read_only(&self.path(kind, id)))
    }

    fn remove(&self, kind: FileType, id: &Id, _: bool) -> RusticResult<()> {
        Err(read_only(&self.path(kind, id)))
    }
}

/// Adds the files of a folder that are named by ids, and those of the folders in it if they are sorted into such.
fn list(folder: &Path, is_nested: bool, found: &mut Vec<(Id, u32)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if is_nested && entry.file_type()?.is_dir() {
            list(&entry.path(), false, found)?;
        } else if let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) {
            found.push((id, length(entry.metadata()?.len())));
        }
    }
    Ok(())
}

/// No file of a restic repository is longer.
fn length(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn failed(path: &Path, error: io::Error) -> Box<RusticError> {
    RusticError::with_source(ErrorKind::InputOutput, "cannot read {path}", error)
        .attach_context("path", path.display().to_string())
}

fn read_only(path: &Path) -> Box<RusticError> {
    RusticError::new(ErrorKind::Unsupported, "{path}: the repository is only read")
        .attach_context("path", path.display().to_string())
}
