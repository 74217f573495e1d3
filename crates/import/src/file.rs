//! Content of a file: its blobs, one after the other. What restic gives is held against the hash that names it.

use crate::restic::{Indexed, said};
use bytes::Bytes;
use rustic_core::repofile::BlobType;
use rustic_core::{BlobId, DataId};
use siltstone_engine::backup::source::{ContentReader, FileContent, Span};
use siltstone_store::catalog::EntryPath;
use std::io::{self, Read};
use std::sync::Arc;

/// File of a snapshot.
pub(crate) struct BlobFile {
    pub(crate) repository: Arc<Indexed>,
    pub(crate) blobs: Vec<DataId>,
    pub(crate) size: u64,
}

impl FileContent for BlobFile {
    fn open<'c>(&'c self, _: &EntryPath) -> io::Result<Box<dyn ContentReader + 'c>> {
        Ok(Box::new(BlobReader { file: self, next: 0, blob: Bytes::new(), at: 0, is_begun: false }))
    }

    /// Goes by restic's hashes: its content need not be read for that.
    fn is_same_as(&self, _: &EntryPath, mut bytes: &mut dyn Read) -> io::Result<bool> {
        let mut buffer = Vec::new();
        for id in &self.blobs {
            let entry = self.repository.get_index_entry(id).map_err(|error| unreadable(id, &said(&*error)))?;
            let length = u64::from(entry.location.data_length());
            buffer.clear();
            (&mut bytes).take(length).read_to_end(&mut buffer)?;
            if buffer.len() as u64 != length || !has_hash(&buffer, id) {
                return Ok(false);
            }
        }
        Ok(bytes.read(&mut [0])? == 0)
    }
}

/// Reads a file from front to back.
struct BlobReader<'f> {
    file: &'f BlobFile,
    /// The blob that comes next.
    next: usize,
    /// Rest of the current one.
    blob: Bytes,
    /// Bytes given so far.
    at: u64,
    is_begun: bool,
}

impl ContentReader for BlobReader<'_> {
    fn next_span(&mut self) -> io::Result<Option<Span>> {
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        Ok((is_first && self.file.size > 0).then_some(Span::Data(self.file.size)))
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.blob.is_empty() {
            let Some(id) = self.file.blobs.get(self.next) else { return self.ended() };
            self.blob = self.load(id)?;
            self.next += 1;
        }
        let count = buffer.len().min(self.blob.len());
        buffer[..count].copy_from_slice(&self.blob.split_to(count));
        self.at += count as u64;
        if self.at > self.file.size {
            return Err(io::Error::other(format!("its blobs make more than {} bytes", self.file.size)));
        }
        Ok(count)
    }
}

impl BlobReader<'_> {
    fn load(&self, id: &DataId) -> io::Result<Bytes> {
        let blob = self.file.repository.get_blob_cached(&BlobId::from(*id), BlobType::Data);
        let blob = blob.map_err(|error| unreadable(id, &said(&*error)))?;
        if has_hash(&blob, id) { Ok(blob) } else { Err(unreadable(id, "its content does not have its hash")) }
    }

    fn ended(&self) -> io::Result<usize> {
        let (found, size) = (self.at, self.file.size);
        if found == size { Ok(0) } else { Err(io::Error::other(format!("its blobs make {found} bytes, not {size}"))) }
    }
}

fn has_hash(mut bytes: &[u8], id: &DataId) -> bool {
    id.blob_matches_reader(bytes.len() as u64, &mut bytes)
}

fn unreadable(id: &DataId, reason: &str) -> io::Error {
    io::Error::other(format!("blob {} of the restic repository: {reason}", id.to_hex().as_str()))
}
