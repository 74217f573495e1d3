//! Incremental backups: what such a backup is told of a version, and how the records of the version before stand in for
//! what did not change (MeGA, ATC 2022, section 4.6, *virtual full backups*).
//!
//! ```text
//! the version before    |  chunk  |  chunk  |  chunk  |  chunk  |  chunk  |  chunk  |
//! changes               kept ------------------|new|kept ---------------------------
//! this version          | record  | record  |cut  |cut   |cut | record  |  record   |
//! ```
//! A record is copied where a chunk begins now, a chunk of the version before began there too, and all of that chunk
//! was kept. Everywhere else bytes are read and cut. So the paper's *local streams* begin with the chunk that a change
//! begins in, and go on after the change until a cut meets a boundary of the version before. Where a chunk ends depends
//! on nothing before it: cuts are exactly those of a full backup. How soon a cut meets a boundary is up to the content:
//! mostly after a few chunks, in long runs of the same bytes after the run.
//!
//! Records count where chunks do: a segment is as long as that of a full backup, and a rule sees the same references.
//! So a virtual full backup refers to what a full one refers to. Only capping has duplicates written again: then it
//! reads what it refuses, and may choose another of the chunks that have the same bytes.

use super::recipe::Item;
use super::versions::Digest;
use anyhow::{Context, Result};
use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;

/// Size of the blocks of a version that is a file, as tracking of changed blocks has them, bytes.
const BLOCK_BYTES: usize = 64 << 10;

/// Parts of a version in their order, by which incremental backups see what changed.
#[derive(Debug, Default)]
pub(super) struct Inventory(Vec<Part>);

/// Part of a version.
#[derive(Debug)]
struct Part {
    name: Name,
    range: Range<usize>,
    digest: Digest,
}

/// Name by which a part is found in another version.
#[derive(PartialEq, Eq, Hash, Debug)]
enum Name {
    /// A file's entry in an archive, by its path.
    File(PathBuf),
    /// End of an archive, after its entries.
    End,
    /// A block of a file, by its number.
    Block(usize),
}

impl Inventory {
    /// That of an archive with these entries.
    ///
    /// # Errors
    /// If an entry is not in the archive.
    pub(super) fn of_archive(entries: Vec<(PathBuf, Range<usize>)>, archive: &[u8]) -> Result<Self> {
        let end = entries.last().map_or(0, |(_, range)| range.end)..archive.len();
        let files = entries.into_iter().map(|(path, range)| (Name::File(path), range));
        let part = |(name, range): (Name, Range<usize>)| {
            let bytes = archive.get(range.clone()).context("a file grew or shrank while its version was read")?;
            Ok(Part { name, range, digest: Digest::of(bytes) })
        };
        Ok(Self(files.chain([(Name::End, end)]).map(part).collect::<Result<_>>()?))
    }

    /// That of a file.
    pub(super) fn of_blocks(file: &[u8]) -> Self {
        let part = |(number, block): (usize, &[u8])| {
            let begin = number * BLOCK_BYTES;
            Part { name: Name::Block(number), range: begin..begin + block.len(), digest: Digest::of(block) }
        };
        Self(file.chunks(BLOCK_BYTES).enumerate().map(part).collect())
    }
}

/// Stretch of a version that is new as a whole, or was kept as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stretch {
    /// Its length, bytes.
    pub(super) bytes: usize,
    /// Offset at which the version before has the same bytes; `None`: it is listed as changed.
    pub(super) from: Option<usize>,
}

/// Content of an incremental backup: the stretches that make up a version, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Changes(Vec<Stretch>);

impl Changes {
    /// Those that lead from one version to the next: a part is kept if it had the same name and the same bytes, even if
    /// it lay elsewhere.
    pub(super) fn between(before: &Inventory, now: &Inventory) -> Self {
        let parts: HashMap<&Name, &Part> = before.0.iter().map(|part| (&part.name, part)).collect();
        let stretch = |part: &Part| {
            let same = parts.get(&part.name).filter(|before| before.digest == part.digest);
            Stretch { bytes: part.range.len(), from: same.map(|before| before.range.start) }
        };
        now.0.iter().map(stretch).collect()
    }

    /// Bytes of the whole version.
    pub(super) fn bytes(&self) -> usize {
        self.0.iter().map(|stretch| stretch.bytes).sum()
    }

    /// Bytes that are listed as changed.
    pub(super) fn changed_bytes(&self) -> usize {
        self.0.iter().filter(|stretch| stretch.from.is_none()).map(|stretch| stretch.bytes).sum()
    }

    /// Tells whether anything was kept.
    pub(super) fn keep_something(&self) -> bool {
        self.0.iter().any(|stretch| stretch.from.is_some())
    }
}

impl FromIterator<Stretch> for Changes {
    /// Joins neighbours that are both new, or were neighbours before: a chunk may lie across them.
    fn from_iter<I: IntoIterator<Item = Stretch>>(stretches: I) -> Self {
        let mut joined: Vec<Stretch> = Vec::new();
        for stretch in stretches.into_iter().filter(|stretch| stretch.bytes > 0) {
            match joined.last_mut() {
                Some(last) if last.from.map(|from| from + last.bytes) == stretch.from => last.bytes += stretch.bytes,
                _ => joined.push(stretch),
            }
        }
        Self(joined)
    }
}

/// Records of the version before, found by the offsets that their chunks have now.
pub(super) struct Records<'c> {
    /// Its recipe.
    items: Vec<Item>,
    /// Offset of each chunk there.
    begins: Vec<usize>,
    /// Stretches of this version that were not yet passed.
    stretches: &'c [Stretch],
    /// Offset of the first of these.
    stretch_begin: usize,
    /// Length of this version, bytes.
    version_bytes: usize,
}

impl<'c> Records<'c> {
    /// Those of this recipe, for a version with these changes.
    pub(super) fn new(items: Vec<Item>, changes: &'c Changes) -> Self {
        let mut end = 0;
        let begins = items.iter().map(|item| {
            end += item.bytes as usize;
            end - item.bytes as usize
        });
        let begins = begins.collect();
        Self { items, begins, stretches: &changes.0, stretch_begin: 0, version_bytes: changes.bytes() }
    }

    /// The record of the chunk that begins at this offset; `None` if its bytes must be cut. Offsets are asked for in
    /// ascending order.
    pub(super) fn at(&mut self, offset: usize) -> Option<Item> {
        let stretch = loop {
            let (first, rest) = self.stretches.split_first()?;
            if offset < self.stretch_begin + first.bytes {
                break first;
            }
            self.stretch_begin += first.bytes;
            self.stretches = rest;
        };
        let begin = stretch.from? + offset - self.stretch_begin;
        let place = self.begins.binary_search(&begin).ok()?;
        let item = self.items[place];
        let end = offset + item.bytes as usize;
        // The last chunk ended with its version. With other bytes after it the cut may lie elsewhere.
        let is_cut_here = place + 1 < self.items.len() || end == self.version_bytes;
        (is_cut_here && end <= self.stretch_begin + stretch.bytes).then_some(item)
    }
}

#[cfg(test)]
mod tests;
