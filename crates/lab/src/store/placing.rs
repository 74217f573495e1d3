//! The chunks of a version go to their places in its file as their containers come, deltas before their bases (MeGA,
//! ATC 2022, section 4.4).
//!
//! A delta waits for its base: in memory, as section 4.5 has it, as long as there is room, else *prewritten* in the
//! file where its chunk goes, and read back from there. What a container brings to neighbouring places is written by
//! one call.

use super::container_store::Opened;
use super::recipe::{Item, Number};
use anyhow::{Context, Result};
use siltstone_chunk::Isa;
use siltstone_similar::delta::{ChunkDelta, CopyInsert};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Most that is written by one call, bytes, unless one chunk is longer; as much as restores in the order of arrival
/// write at once.
pub(super) const RUN_BYTES_MAX: usize = 1 << 20;
/// Decoded chunks that are gathered before they are written, bytes.
const DECODED_BYTES_MAX: usize = 4 << 20;

/// Where a chunk goes, and what waits for it: an entry of the *offset hash table*.
#[derive(Debug, Default)]
struct Entry {
    bytes: usize,
    base: Option<Number>,
    offsets: Vec<u64>,
    /// Deltas of which it is the base.
    deltas: Vec<Number>,
    /// Its own delta, once that was met.
    delta: Option<Delta>,
}

/// A delta whose base is still to come.
#[derive(Debug)]
enum Delta {
    Held(Box<[u8]>),
    /// So many bytes at its first place.
    Prewritten(usize),
}

/// A file that chunks and deltas are placed in.
pub(super) struct Placing {
    table: HashMap<Number, Entry>,
    file: File,
    codec: CopyInsert,
    held_bytes: usize,
    held_bytes_max: usize,
    /// Bytes of deltas that were written to the file.
    prewritten_bytes: u64,
    /// Bytes that are written next.
    run: Vec<u8>,
}

impl Placing {
    /// A new file for the version with this recipe; so many bytes of deltas may wait in memory.
    ///
    /// # Errors
    /// If the file is there already, or cannot be made.
    pub(super) fn create(into: &Path, recipe: &[Item], isa: Isa, held_bytes_max: usize) -> Result<Self> {
        Ok(Self {
            table: table(recipe),
            file: OpenOptions::new().read(true).write(true).create_new(true).open(into)?,
            codec: CopyInsert::new(isa),
            held_bytes: 0,
            held_bytes_max,
            prewritten_bytes: 0,
            run: Vec::new(),
        })
    }

    /// Places what a container holds, its last chunk first.
    ///
    /// # Errors
    /// If it holds what the version does not need, a delta does not decode, or the file cannot be written.
    pub(super) fn place(&mut self, opened: &Opened) -> Result<()> {
        let mut gathered = Gathered { file: &self.file, run: &mut self.run, pieces: Vec::new(), decoded_bytes: 0 };
        for chunk in opened.chunks().rev() {
            let number = chunk.number;
            let entry = self.table.get_mut(&number).with_context(|| format!("chunk {number} is read in vain"))?;
            if entry.base.is_some() {
                entry.delta = Some(if self.held_bytes + chunk.bytes.len() <= self.held_bytes_max {
                    self.held_bytes += chunk.bytes.len();
                    Delta::Held(chunk.bytes.into())
                } else {
                    self.file.write_all_at(chunk.bytes, entry.offsets[0])?;
                    self.prewritten_bytes += chunk.bytes.len() as u64;
                    Delta::Prewritten(chunk.bytes.len())
                });
                continue;
            }
            for offset in &entry.offsets {
                gathered.push(*offset, Cow::Borrowed(chunk.bytes))?;
            }
            for number in std::mem::take(&mut entry.deltas) {
                let entry = self.table.get_mut(&number).with_context(|| format!("delta {number} has no place"))?;
                let delta = match entry.delta.take().with_context(|| format!("delta {number} comes after its base"))? {
                    Delta::Held(delta) => {
                        self.held_bytes -= delta.len();
                        delta
                    }
                    Delta::Prewritten(bytes) => {
                        let mut delta = vec![0; bytes].into_boxed_slice();
                        self.file.read_exact_at(&mut delta, entry.offsets[0])?;
                        delta
                    }
                };
                let mut decoded = Vec::with_capacity(entry.bytes);
                let what = || format!("chunk {number} does not decode");
                self.codec.decode(chunk.bytes, &delta, entry.bytes, &mut decoded).with_context(what)?;
                if let Some((last, others)) = entry.offsets.split_last() {
                    for offset in others {
                        gathered.push(*offset, Cow::Owned(decoded.clone()))?;
                    }
                    gathered.push(*last, Cow::Owned(decoded))?;
                }
            }
        }
        Ok(gathered.write()?)
    }

    /// Returns the bytes of deltas that were prewritten.
    pub(super) fn prewritten_bytes(&self) -> u64 {
        self.prewritten_bytes
    }
}

fn table(recipe: &[Item]) -> HashMap<Number, Entry> {
    let mut table: HashMap<Number, Entry> = HashMap::new();
    let mut offset = 0;
    for item in recipe {
        let entry = table.entry(item.number).or_default();
        entry.bytes = item.bytes as usize;
        entry.base = item.base;
        entry.offsets.push(offset);
        offset += u64::from(item.bytes);
        if let (Some(base), 1) = (item.base, entry.offsets.len()) {
            table.entry(base).or_default().deltas.push(item.number);
        }
    }
    table
}

/// Writes held back until neighbours can be written together.
struct Gathered<'f, 'b> {
    file: &'f File,
    run: &'f mut Vec<u8>,
    pieces: Vec<(u64, Cow<'b, [u8]>)>,
    decoded_bytes: usize,
}

impl<'b> Gathered<'_, 'b> {
    fn push(&mut self, offset: u64, bytes: Cow<'b, [u8]>) -> io::Result<()> {
        if let Cow::Owned(decoded) = &bytes {
            self.decoded_bytes += decoded.len();
        }
        self.pieces.push((offset, bytes));
        if self.decoded_bytes >= DECODED_BYTES_MAX { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> io::Result<()> {
        self.pieces.sort_unstable_by_key(|(offset, _)| *offset);
        let mut begin = 0;
        self.run.clear();
        for (offset, bytes) in self.pieces.drain(..) {
            let is_next = begin + self.run.len() as u64 == offset;
            if !is_next || self.run.len() + bytes.len() > RUN_BYTES_MAX {
                self.file.write_all_at(self.run, begin)?;
                self.run.clear();
                begin = offset;
            }
            self.run.extend_from_slice(&bytes);
        }
        self.decoded_bytes = 0;
        self.file.write_all_at(self.run, begin)
    }
}
