//! Looking into a snapshot without restoring it: `ls` and `dump`.

use crate::chunks::ChunkSource;
use crate::restore::manifest_of;
use crate::snapshots::SnapshotView;
use crate::{EngineError, Observer};
use siltstone_store::catalog::{CatalogReader, Content, Entry, EntryPath};
use siltstone_store::recipe::{Piece, Recipe, RecipeReader};
use siltstone_store::repository::Repository;
use siltstone_store::{ChunkNumber, StoreError};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Calls `visit` for the entry at `path` (if any was given) and for what is below it: its children, or all if `recursive`.
///
/// # Errors
/// [`EngineError::NoSuchPath`]; damage of the catalog; whatever `visit` returns.
pub fn ls(
    repository: &Repository,
    snapshot: &SnapshotView,
    path: Option<&EntryPath>,
    recursive: bool,
    visit: &mut dyn FnMut(&Entry) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let manifest = manifest_of(repository, snapshot)?;
    let chunks = ChunkSource::new(repository, &manifest);
    let catalog = CatalogReader::new(&chunks, snapshot.snapshot.root);
    let entry = path.map(|path| find(&catalog, snapshot, path)).transpose()?;
    if recursive {
        let entries = path.map_or_else(|| catalog.entries(), |path| catalog.under(path));
        for entry in entries {
            visit(&entry?)?;
        }
        return Ok(());
    }
    if let Some(entry) = &entry {
        visit(entry)?;
    }
    if entry.as_ref().is_none_or(Entry::is_directory) {
        for entry in catalog.children(path) {
            visit(&entry?)?;
        }
    }
    Ok(())
}

fn find(
    catalog: &CatalogReader<&ChunkSource<'_>>,
    snapshot: &SnapshotView,
    path: &EntryPath,
) -> Result<Entry, EngineError> {
    catalog
        .find(path)?
        .ok_or_else(|| EngineError::NoSuchPath { snapshot: snapshot.snapshot.id.short(), path: shown(path) })
}

fn shown(path: &EntryPath) -> String {
    format!("/{}", path.as_bytes().escape_ascii())
}

/// Writes the content of a file; of a directory (or, without a path, of everything), a tar archive of it and all below it.
///
/// # Errors
/// [`EngineError::NoSuchPath`], [`EngineError::NotDumpable`], damage, or [`EngineError::Target`] if the output fails. What was
/// written before stands.
pub fn dump(
    repository: &Repository,
    snapshot: &SnapshotView,
    path: Option<&EntryPath>,
    output: &mut dyn Write,
    observer: &dyn Observer,
) -> Result<(), EngineError> {
    let manifest = manifest_of(repository, snapshot)?;
    let chunks = ChunkSource::new(repository, &manifest);
    let catalog = CatalogReader::new(&chunks, snapshot.snapshot.root);
    let entry = path.map(|path| find(&catalog, snapshot, path)).transpose()?;
    match entry {
        Some(Entry { path, content: Content::File { size, recipe }, .. }) => {
            let mut content = FileContent::new(&chunks, &recipe, observer);
            let copied = io::copy(&mut content, output);
            content.outcome(copied.map(drop), &path, size)
        }
        Some(entry) if !entry.is_directory() => {
            let path = shown(&entry.path);
            Err(EngineError::NotDumpable { snapshot: snapshot.snapshot.id.short(), path })
        }
        _ => {
            let entries = path.map_or_else(|| catalog.entries(), |path| catalog.under(path));
            dump_tar(entries, &chunks, output, observer)
        }
    }
}

fn output_failed(source: io::Error) -> EngineError {
    EngineError::Target { path: PathBuf::from("the output"), source }
}

fn dump_tar(
    entries: impl Iterator<Item = Result<Entry, siltstone_store::StoreError>>,
    chunks: &ChunkSource<'_>,
    output: &mut dyn Write,
    observer: &dyn Observer,
) -> Result<(), EngineError> {
    let mut archive = tar::Builder::new(output);
    for entry in entries {
        let entry = entry?;
        let path = Path::new(std::ffi::OsStr::from_bytes(entry.path.as_bytes()));
        let mut header = tar_header(&entry);
        let times = format!("{}.{:09}", entry.metadata.modified.seconds, entry.metadata.modified.nanoseconds);
        if entry.metadata.modified.nanoseconds != 0 && entry.metadata.modified.seconds >= 0 {
            archive.append_pax_extensions([("mtime", times.as_bytes())]).map_err(output_failed)?;
        }
        match &entry.content {
            Content::File { size, recipe } => {
                header.set_size(*size);
                let mut content = FileContent::new(chunks, recipe, observer);
                let appended = archive.append_data(&mut header, path, &mut content);
                content.outcome(appended, &entry.path, *size)?;
            }
            Content::Symlink { target } => {
                let target = Path::new(std::ffi::OsStr::from_bytes(target));
                archive.append_link(&mut header, path, target).map_err(output_failed)?;
            }
            _ => archive.append_data(&mut header, path, io::empty()).map_err(output_failed)?,
        }
    }
    archive.finish().map_err(output_failed)
}

fn tar_header(entry: &Entry) -> tar::Header {
    let metadata = &entry.metadata;
    let mut header = tar::Header::new_gnu();
    header.set_mode(metadata.mode);
    header.set_uid(metadata.uid.into());
    header.set_gid(metadata.gid.into());
    header.set_mtime(u64::try_from(metadata.modified.seconds).unwrap_or(0));
    header.set_size(0);
    let name = |name: &Option<siltstone_store::catalog::Name>| name.as_ref().map(ToString::to_string);
    // Names too long for the field are left to the numbers.
    if let Some(user) = name(&metadata.user) {
        let _ = header.set_username(&user);
    }
    if let Some(group) = name(&metadata.group) {
        let _ = header.set_groupname(&group);
    }
    let (kind, device) = match &entry.content {
        Content::Directory => (tar::EntryType::Directory, None),
        Content::File { .. } => (tar::EntryType::Regular, None),
        Content::Symlink { .. } => (tar::EntryType::Symlink, None),
        Content::Fifo => (tar::EntryType::Fifo, None),
        Content::CharDevice { major, minor } => (tar::EntryType::Char, Some((*major, *minor))),
        Content::BlockDevice { major, minor } => (tar::EntryType::Block, Some((*major, *minor))),
    };
    header.set_entry_type(kind);
    if let Some((major, minor)) = device {
        let _ = header.set_device_major(major);
        let _ = header.set_device_minor(minor);
    }
    header
}

/// A file's content as a reader: chunk after chunk, each verified, holes as zeros.
struct FileContent<'c, 'r> {
    chunks: &'c ChunkSource<'r>,
    pieces: RecipeReader<&'c ChunkSource<'r>>,
    observer: &'c dyn Observer,
    /// Numbers of the current run still to come.
    run: std::ops::RangeInclusive<u64>,
    hole: u64,
    buffer: Vec<u8>,
    read: usize,
    /// Bytes given so far.
    given: u64,
    /// What stopped the reading, told in place of the I/O error it appears as.
    error: Option<EngineError>,
}

impl<'c, 'r> FileContent<'c, 'r> {
    #[allow(clippy::reversed_empty_ranges)]
    fn new(chunks: &'c ChunkSource<'r>, recipe: &Recipe, observer: &'c dyn Observer) -> Self {
        let pieces = RecipeReader::new(recipe, chunks);
        Self { chunks, pieces, observer, run: 1..=0, hole: 0, buffer: Vec::new(), read: 0, given: 0, error: None }
    }

    /// The outcome of copying this content, given what the copying said and the size the file is to have.
    fn outcome(self, copied: io::Result<()>, path: &EntryPath, size: u64) -> Result<(), EngineError> {
        match self.error {
            Some(error) => Err(error),
            None => copied.map_err(output_failed),
        }?;
        if self.given == size {
            return Ok(());
        }
        let reason = format!("it makes {} bytes instead of {size}", self.given);
        Err(StoreError::damaged(&shown(path), "recipe", reason).into())
    }

    /// Brings the next chunk or hole; `false` at the end.
    fn advance(&mut self) -> Result<bool, EngineError> {
        if self.observer.is_cancelled() {
            return Err(EngineError::Interrupted);
        }
        if let Some(number) = self.run.next() {
            self.buffer.clear();
            self.read = 0;
            let buffer = &mut self.buffer;
            self.chunks.with_chunk(ChunkNumber(number), |bytes| buffer.extend_from_slice(bytes))?;
            self.observer.advance(0, self.buffer.len() as u64);
            return Ok(true);
        }
        match self.pieces.next().transpose()? {
            Some(Piece::Run(run)) => self.run = run.range(),
            Some(Piece::Hole(bytes)) => self.hole = bytes,
            None => return Ok(false),
        }
        Ok(true)
    }
}

impl Read for FileContent<'_, '_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            if self.hole > 0 {
                let count = out.len().min(usize::try_from(self.hole).unwrap_or(usize::MAX));
                out[..count].fill(0);
                self.hole -= count as u64;
                self.given += count as u64;
                return Ok(count);
            }
            if self.read < self.buffer.len() {
                let count = out.len().min(self.buffer.len() - self.read);
                out[..count].copy_from_slice(&self.buffer[self.read..self.read + count]);
                self.read += count;
                self.given += count as u64;
                return Ok(count);
            }
            match self.advance() {
                Ok(true) => {}
                Ok(false) => return Ok(0),
                Err(error) => {
                    self.error = Some(error);
                    return Err(io::Error::other("the content cannot be read"));
                }
            }
        }
    }
}
