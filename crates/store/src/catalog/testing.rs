//! Helpers of the tests of catalogs and recipes: metadata chunks in memory, and trees that look like trees.

use super::{Content, Entry, EntryPath, Metadata, MetadataSink, MetadataSource};
use crate::{
    error::StoreError,
    ids::{ChunkNumber, ChunkRun, Time},
    recipe::{Piece, Recipe},
};
use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

/// Holds metadata chunks, each content once, and remembers which were asked for.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    numbers: HashMap<Arc<[u8]>, ChunkNumber>,
    pub(crate) chunks: Vec<Arc<[u8]>>,
    pub(crate) lost: BTreeSet<ChunkNumber>,
    pub(crate) loaded: RefCell<Vec<ChunkNumber>>,
}

impl Memory {
    /// Replaces the bytes of a chunk, as damage would that no seal had noticed.
    pub(crate) fn replace(&mut self, number: ChunkNumber, bytes: Vec<u8>) {
        self.chunks[index(number)] = bytes.into();
    }

    pub(crate) fn bytes_of(&self, number: ChunkNumber) -> Arc<[u8]> {
        self.chunks[index(number)].clone()
    }

    /// Counts the chunks that have been asked for since the last question.
    pub(crate) fn take_loads(&self) -> usize {
        std::mem::take(&mut *self.loaded.borrow_mut()).len()
    }
}

fn index(number: ChunkNumber) -> usize {
    usize::try_from(number.0 - ChunkNumber::METADATA_FIRST.0).unwrap()
}

impl MetadataSink for Memory {
    fn store(&mut self, bytes: &[u8]) -> Result<ChunkNumber, StoreError> {
        if let Some(&number) = self.numbers.get(bytes) {
            return Ok(number);
        }
        let number = ChunkNumber(ChunkNumber::METADATA_FIRST.0 + self.chunks.len() as u64);
        self.chunks.push(bytes.into());
        self.numbers.insert(bytes.into(), number);
        Ok(number)
    }
}

impl MetadataSource for Memory {
    fn load(&self, number: ChunkNumber) -> Result<Arc<[u8]>, StoreError> {
        self.loaded.borrow_mut().push(number);
        if self.lost.contains(&number) {
            return Err(StoreError::MissingChunk { number });
        }
        self.chunks.get(index(number)).cloned().ok_or(StoreError::MissingChunk { number })
    }
}

pub(crate) fn path(text: &str) -> EntryPath {
    EntryPath::new(text).unwrap()
}

pub(crate) fn directory(text: &str) -> Entry {
    Entry { path: path(text), metadata: metadata(0o755, 1), content: Content::Directory }
}

/// A file of `chunks` chunks of 16 KiB from number `first` on.
pub(crate) fn file(text: &str, first: u64, chunks: u64) -> Entry {
    let run = ChunkRun { first: ChunkNumber(first), count: chunks };
    let recipe = if chunks == 0 { Recipe::default() } else { Recipe::Inline(vec![Piece::Run(run)]) };
    Entry { path: path(text), metadata: metadata(0o644, first), content: Content::File { size: chunks << 14, recipe } }
}

fn metadata(mode: u32, seed: u64) -> Metadata {
    let hash = super::wire::mix(seed);
    let modified = Time { seconds: 1_700_000_000 + (hash & 0xff_ffff).cast_signed(), nanoseconds: (hash >> 40) as u32 };
    Metadata {
        mode,
        uid: 1000,
        gid: 1000,
        user: Some("sand".into()),
        group: Some("stone".into()),
        modified,
        changed: modified,
        inode: 4_000_000 + seed,
        device: 66_306,
        links: 1,
        xattrs: Vec::new(),
    }
}

/// `directories` times `files` files in directories of directories, in catalog order.
pub(crate) fn tree(directories: u64, files: u64) -> Vec<Entry> {
    let mut entries = vec![directory("source")];
    for outer in 0..directories.div_ceil(20) {
        entries.push(directory(&format!("source/module-{outer:04}")));
        for inner in 0..20 {
            let parent = format!("source/module-{outer:04}/part.{inner:02}");
            entries.push(directory(&parent));
            let serial = (outer * 20 + inner) * files;
            entries.extend((0..files).map(|at| file(&format!("{parent}/file_{at:05}.rs"), (serial + at) * 2, at % 3)));
        }
    }
    entries
}
