//! Temporary file of regions that wait beyond the budget.
//!
//! The file has no name, so it is gone when the process is, however that ends. What it holds is sealed under a key of
//! its own that is never written: it may be on another disk than what is restored, and nothing read back is believed
//! unseen.

use siltstone_store::container::ContainerKind;
use siltstone_store::repository::Repository;
use siltstone_store::sealed::{ObjectKey, ObjectKind, PieceNumber};
use siltstone_store::storage::ObjectName;
use siltstone_store::{ContainerId, SeriesId, StoreError};
use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The most pieces written to one file; each has a number of its own.
const PIECES_MAX: u32 = 1 << 31;

/// Where a piece lies in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    offset: u64,
    sealed_bytes: usize,
    piece: u32,
}

/// The temporary file, made when it is first needed.
#[derive(Debug)]
pub(super) struct Spill {
    folder: PathBuf,
    open: Option<Open>,
    /// Bytes written so far, in all.
    pub(super) bytes_written: u64,
}

#[derive(Debug)]
struct Open {
    file: File,
    key: ObjectKey,
    end: u64,
    pieces: u32,
    /// Pieces not yet given back. With the last one the file begins anew.
    live: u64,
}

impl Spill {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), open: None, bytes_written: 0 }
    }

    /// Writes a piece.
    ///
    /// # Errors
    /// [`StoreError::Machine`] if there is no room, or no file can be made.
    pub(super) fn write(&mut self, repository: &Repository, bytes: &[u8]) -> Result<Span, StoreError> {
        let open = match &mut self.open {
            Some(open) => open,
            none => none.insert(Open::new(&self.folder, repository)?),
        };
        if open.pieces == PIECES_MAX {
            return Err(failed("writing a temporary file", &"it has too many pieces"));
        }
        if open.live == 0 {
            open.end = 0;
        }
        let span = Span { offset: open.end, sealed_bytes: 0, piece: open.pieces };
        let mut sealed = bytes.to_vec();
        open.key.seal_piece(PieceNumber(span.piece), &mut sealed, 0)?;
        open.pieces += 1;
        open.file.write_all_at(&sealed, span.offset).map_err(|error| failed("writing a temporary file", &error))?;
        open.end += sealed.len() as u64;
        open.live += 1;
        self.bytes_written += bytes.len() as u64;
        Ok(Span { sealed_bytes: sealed.len(), ..span })
    }

    /// Reads a piece back.
    pub(super) fn read(&self, span: Span) -> Result<Vec<u8>, StoreError> {
        let open = self.open.as_ref().ok_or_else(|| failed("reading a temporary file", &"there is none"))?;
        let mut bytes = vec![0; span.sealed_bytes];
        let reading = "reading back a temporary file";
        open.file.read_exact_at(&mut bytes, span.offset).map_err(|error| failed(reading, &error))?;
        let opened = open.key.open_piece(PieceNumber(span.piece), "piece", &mut bytes);
        let plain_bytes = opened.map_err(|_| failed(reading, &"its bytes are not those that were written"))?.len();
        bytes.truncate(plain_bytes);
        Ok(bytes)
    }

    /// A piece is no longer needed.
    pub(super) fn give_back(&mut self, _: Span) {
        if let Some(open) = &mut self.open {
            open.live = open.live.saturating_sub(1);
        }
    }
}

impl Open {
    fn new(folder: &Path, repository: &Repository) -> Result<Self, StoreError> {
        let file = tempfile::tempfile_in(folder)
            .map_err(|error| failed("making a temporary file", &format!("{}: {error}", folder.display())))?;
        // The name only goes into the key, with a salt drawn now.
        let name = ObjectName::Container(ContainerKind::Data, SeriesId([0; 16]), ContainerId { lease: 0, serial: 0 });
        let key = ObjectKey::create(repository.keys(), name, ObjectKind::DataContainer)?;
        Ok(Self { file, key, end: 0, pieces: 0, live: 0 })
    }
}

fn failed(operation: &'static str, reason: &dyn fmt::Display) -> StoreError {
    StoreError::Machine { operation, reason: reason.to_string() }
}
