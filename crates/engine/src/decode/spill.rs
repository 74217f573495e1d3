//! Temporary file of what waits beyond the budget.
//!
//! The file has no name, so it is gone when the process is, however that ends. What it holds is sealed under a key of
//! its own that is never written: it may be on another disk than what is restored, and nothing read back is believed
//! unseen.

use super::Bytes;
use crate::held::HeldBytes;
use crate::parallel::lock;
use siltstone_store::container::ContainerKind;
use siltstone_store::repository::Repository;
use siltstone_store::sealed::{ObjectKey, ObjectKind, PieceNumber};
use siltstone_store::storage::ObjectName;
use siltstone_store::{ContainerId, SeriesId, StoreError};
use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The most pieces written to one file; each has a number of its own.
const PIECES_MAX: u32 = 1 << 31;

/// The temporary file, made when it is first needed. Several threads write and read it at once.
#[derive(Debug)]
pub(crate) struct Spill {
    folder: PathBuf,
    file: Mutex<Option<Arc<SpillFile>>>,
}

#[derive(Debug)]
struct SpillFile {
    file: File,
    key: ObjectKey,
    layout: Mutex<Layout>,
}

/// How far the file is filled.
#[derive(Debug, Default)]
struct Layout {
    end: u64,
    pieces: u32,
    /// Pieces not yet dropped. With the last one the file begins anew.
    live: u64,
}

/// Bytes in the temporary file. Their place is free when this is dropped.
#[derive(Debug)]
pub(crate) struct Spilled {
    file: Arc<SpillFile>,
    offset: u64,
    sealed_bytes: usize,
    piece: PieceNumber,
    /// Their length once they are decompressed, if they are compressed.
    decompressed_bytes: Option<usize>,
}

impl Spill {
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), file: Mutex::default() }
    }

    /// Writes bytes as they are held.
    ///
    /// # Errors
    /// [`StoreError::Machine`] if there is no room, or no file can be made.
    pub(crate) fn write(&self, repository: &Repository, bytes: &HeldBytes) -> Result<Spilled, StoreError> {
        let decompressed_bytes = match bytes {
            HeldBytes::Plain(_) => None,
            HeldBytes::Compressed { plain_bytes, .. } => Some(*plain_bytes),
        };
        let bytes = bytes.as_held();
        let file = self.file(repository)?;
        let piece = PieceNumber(file.next_piece()?);
        let mut sealed = Vec::with_capacity(bytes.len() + 64);
        sealed.extend_from_slice(bytes);
        file.key.seal_piece(piece, &mut sealed, 0)?;
        // From here on the place is given back, also if writing fails.
        let (offset, sealed_bytes) = (file.take_place(sealed.len()), sealed.len());
        let spilled = Spilled { file, offset, sealed_bytes, piece, decompressed_bytes };
        let written = spilled.file.file.write_all_at(&sealed, spilled.offset);
        written.map_err(|error| failed("writing a temporary file", &error))?;
        Ok(spilled)
    }

    fn file(&self, repository: &Repository) -> Result<Arc<SpillFile>, StoreError> {
        let mut file = lock(&self.file);
        match &*file {
            Some(file) => Ok(file.clone()),
            None => Ok(file.insert(Arc::new(SpillFile::new(&self.folder, repository)?)).clone()),
        }
    }
}

impl SpillFile {
    fn new(folder: &Path, repository: &Repository) -> Result<Self, StoreError> {
        let file = tempfile::tempfile_in(folder)
            .map_err(|error| failed("making a temporary file", &format!("{}: {error}", folder.display())))?;
        // The name only goes into the key, with a salt drawn now.
        let name = ObjectName::Container(ContainerKind::Data, SeriesId([0; 16]), ContainerId { lease: 0, serial: 0 });
        let key = ObjectKey::create(repository.keys(), name, ObjectKind::DataContainer)?;
        Ok(Self { file, key, layout: Mutex::default() })
    }

    fn next_piece(&self) -> Result<u32, StoreError> {
        let mut layout = lock(&self.layout);
        if layout.pieces == PIECES_MAX {
            return Err(failed("writing a temporary file", &"it has too many pieces"));
        }
        layout.pieces += 1;
        Ok(layout.pieces - 1)
    }

    /// Takes a place for so many bytes.
    fn take_place(&self, bytes: usize) -> u64 {
        let mut layout = lock(&self.layout);
        if layout.live == 0 {
            layout.end = 0;
        }
        let offset = layout.end;
        layout.end += bytes as u64;
        layout.live += 1;
        offset
    }
}

impl Spilled {
    /// Bytes that they take in the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.sealed_bytes as u64
    }

    /// Reads the bytes back.
    pub(crate) fn read(&self) -> Result<Bytes, StoreError> {
        let reading = "reading back a temporary file";
        let mut bytes = vec![0; self.sealed_bytes];
        self.file.file.read_exact_at(&mut bytes, self.offset).map_err(|error| failed(reading, &error))?;
        let opened = self.file.key.open_piece(self.piece, "piece", &mut bytes);
        let plain_bytes = opened.map_err(|_| failed(reading, &"its bytes are not those that were written"))?.len();
        bytes.truncate(plain_bytes);
        match self.decompressed_bytes {
            None => Ok(bytes.into()),
            Some(plain_bytes) => HeldBytes::Compressed { block: bytes.into(), plain_bytes }.bytes(),
        }
    }
}

impl Drop for Spilled {
    fn drop(&mut self) {
        lock(&self.file.layout).live -= 1;
    }
}

fn failed(operation: &'static str, reason: &dyn fmt::Display) -> StoreError {
    StoreError::Machine { operation, reason: reason.to_string() }
}
