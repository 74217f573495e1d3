//! Parts: the lists of a large manifest, cut by their content into objects that later manifests refer to as well. A
//! commit writes the parts that changed, and a list of all of them.
//!
//! ```text
//! list, at most `inline` bytes   ->  in the manifest itself
//! longer list                    ->  cut by content  ->  a part that the manifest before has: referred to
//!                                                        any other: compressed, sealed, written before the manifest
//! ```
//! The manifest states the hash of each part's plain text, and so vouches for it. Salts are random: they are cut by the
//! numbers of their containers, and not compressed. So sizes are known before a commit, to the byte.
//!
//! Cost: one pass over the lists for cutting and one for hashing.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::lists::{self, LISTS, Lists, SALTS};
use super::{Manifest, cut};
use crate::error::StoreError;
use crate::ids::PartId;
use crate::sealed::sealed_object_bytes;
use siltstone_similar::region::plain;
use std::collections::{BTreeSet, HashMap};

/// Greatest size of a part's plain text.
pub const PART_BYTES_MAX: usize = 4 << 20;
/// Greatest size of the object of a part: its plain text, header, length, seal and padding.
pub const PART_OBJECT_BYTES_MAX: u64 = sealed_object_bytes(PART_BYTES_MAX as u64);
/// zstd level of a part.
const LEVEL: i32 = 3;

/// The record of a part in a manifest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartRecord {
    /// The part's identity within its series.
    pub id: PartId,
    /// Length of its plain text.
    pub plain_bytes: u32,
    /// Length of the object's content: a zstd frame, or the plain text itself where that is not longer.
    pub content_bytes: u32,
    /// BLAKE3 of its plain text.
    pub hash: [u8; 32],
}

impl PartRecord {
    /// Returns the size of the part's object.
    pub fn object_bytes(&self) -> u64 {
        sealed_object_bytes(self.content_bytes.into())
    }
}

/// The parts of a manifest: of each list, in their order. A list without any lies in the manifest itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PartTable {
    pub(super) of_lists: [Vec<PartRecord>; LISTS],
}

impl PartTable {
    /// Returns all parts.
    pub fn records(&self) -> impl Iterator<Item = &PartRecord> {
        self.of_lists.iter().flatten()
    }

    /// Returns all parts with their identities.
    pub(crate) fn by_id(&self) -> impl Iterator<Item = (PartId, PartRecord)> {
        self.records().map(|record| (record.id, *record))
    }

    /// Returns the identities of all parts.
    pub fn ids(&self) -> BTreeSet<PartId> {
        self.records().map(|record| record.id).collect()
    }

    /// Returns the length of the parts' plain texts together.
    pub(super) fn plain_bytes(&self) -> u64 {
        self.records().map(|record| u64::from(record.plain_bytes)).sum()
    }

    /// Tells whether all lists lie in the manifest itself.
    pub fn is_empty(&self) -> bool {
        self.of_lists.iter().all(Vec::is_empty)
    }

    /// Returns the records but for those of these parts.
    pub(crate) fn without(&self, ids: &BTreeSet<PartId>) -> Self {
        let mut without = self.clone();
        without.of_lists.iter_mut().for_each(|records| records.retain(|record| !ids.contains(&record.id)));
        without
    }

    /// Returns the size of the parts' objects.
    pub fn object_bytes(&self) -> u64 {
        self.records().map(PartRecord::object_bytes).sum()
    }
}

/// A part that is yet to be written.
#[derive(Debug)]
pub(crate) struct NewPart {
    hash: [u8; 32],
    /// The content of its object.
    pub(crate) content: Vec<u8>,
}

/// A manifest's lists, and how they are cut.
#[derive(Debug)]
pub(crate) struct Outline {
    pub(super) lists: Lists,
    table: PartTable,
    /// The parts that are to be written; they have no identity yet.
    new: Vec<NewPart>,
}

impl Outline {
    /// Everything in the manifest itself.
    pub(crate) fn whole(manifest: &Manifest) -> Result<Self, StoreError> {
        Ok(Self { lists: lists::encode(manifest)?, table: PartTable::default(), new: Vec::new() })
    }

    /// Long lists in parts of about `part_bytes`; those of `before` that are the same are used again.
    pub(crate) fn in_parts(manifest: &Manifest, part_bytes: usize, before: &PartTable) -> Result<Self, StoreError> {
        let mut outline = Self::whole(manifest)?;
        let mut known: HashMap<[u8; 32], PartRecord> = before.records().map(|record| (record.hash, *record)).collect();
        for list in 0..LISTS {
            outline.cut(manifest, list, part_bytes, &mut known)?;
        }
        Ok(outline)
    }

    fn cut(
        &mut self,
        manifest: &Manifest,
        list: usize,
        part_bytes: usize,
        known: &mut HashMap<[u8; 32], PartRecord>,
    ) -> Result<(), StoreError> {
        let (Some(bytes), Some(records)) = (self.lists.get(list), self.table.of_lists.get_mut(list)) else {
            return Ok(());
        };
        if bytes.len() <= part_bytes {
            return Ok(());
        }
        let lengths =
            if list == SALTS { cut::salts(&manifest.containers, part_bytes) } else { cut::bytes(bytes, part_bytes) };
        let mut rest = bytes.as_slice();
        for length in lengths {
            let (text, after) = rest.split_at_checked(length).unwrap_or((rest, &[]));
            rest = after;
            let hash = *blake3::hash(text).as_bytes();
            if let Some(record) = known.get(&hash) {
                records.push(*record);
                continue;
            }
            let content = content_of(text, list)?;
            let (plain_bytes, content_bytes) = (length_of(text)?, length_of(&content)?);
            let record = PartRecord { id: PartId::default(), plain_bytes, content_bytes, hash };
            self.new.push(NewPart { hash, content });
            known.insert(hash, record);
            records.push(record);
        }
        Ok(())
    }

    /// Takes the parts that are to be written: each gets its identity by [`Outline::name`].
    pub(crate) fn take_new(&mut self) -> Vec<NewPart> {
        std::mem::take(&mut self.new)
    }

    /// Tells whether parts are to be written.
    pub(crate) fn has_new(&self) -> bool {
        !self.new.is_empty()
    }

    /// Gives a part its identity.
    pub(crate) fn name(&mut self, part: &NewPart, id: PartId) {
        let records = self.table.of_lists.iter_mut().flatten();
        records.filter(|record| record.hash == part.hash).for_each(|record| record.id = id);
    }

    /// Returns the parts of the manifest.
    pub(crate) fn table(&self) -> &PartTable {
        &self.table
    }

    /// Returns the texts of all parts.
    pub(crate) fn texts(&self) -> Vec<Vec<u8>> {
        let mut texts = Vec::new();
        for (list, records) in self.lists.iter().zip(&self.table.of_lists) {
            let mut rest = list.as_slice();
            for record in records {
                let (text, after) = rest.split_at_checked(record.plain_bytes as usize).unwrap_or((rest, &[]));
                texts.push(text.to_vec());
                rest = after;
            }
        }
        texts
    }

    /// Returns what the manifest itself holds of a list.
    pub(super) fn inline(&self, list: usize) -> &[u8] {
        match (self.lists.get(list), self.table.of_lists.get(list)) {
            (Some(bytes), Some(parts)) if parts.is_empty() => bytes,
            _ => &[],
        }
    }
}

fn length_of(bytes: &[u8]) -> Result<u32, StoreError> {
    u32::try_from(bytes.len())
        .map_err(|_| StoreError::limit("a part of a manifest", "its size", bytes.len() as u64, PART_BYTES_MAX as u64))
}

/// The content of the object of a part of this list.
fn content_of(text: &[u8], list: usize) -> Result<Vec<u8>, StoreError> {
    if list == SALTS {
        return Ok(text.to_vec());
    }
    let frame = plain::compress(text, LEVEL).map_err(|error| StoreError::Machine {
        operation: "compressing a part of a manifest",
        reason: error.to_string(),
    })?;
    if frame.len() >= text.len() {
        return Ok(text.to_vec());
    }
    match plain::decompress(&frame, text.len()) {
        Ok(again) if again == text => Ok(frame),
        _ => Err(StoreError::SelfCheck { what: "a part of a manifest".to_owned() }),
    }
}

/// Reads the plain text of a part from the content of its object.
///
/// # Errors
/// [`StoreError::Damaged`] of `object`.
pub(crate) fn text_of(
    object: &dyn std::fmt::Display,
    record: &PartRecord,
    content: Vec<u8>,
) -> Result<Vec<u8>, StoreError> {
    let damaged = |reason: &str| StoreError::damaged(&object.to_string(), "part of a manifest", reason);
    if content.len() as u64 != u64::from(record.content_bytes) {
        return Err(damaged("it has not the length that its manifest states"));
    }
    let text = if record.content_bytes == record.plain_bytes {
        content
    } else {
        let bytes = usize::try_from(record.plain_bytes).unwrap_or(usize::MAX);
        plain::decompress(&content, bytes).map_err(|error| damaged(&format!("it does not decompress: {error}")))?
    };
    if *blake3::hash(&text).as_bytes() == record.hash {
        Ok(text)
    } else {
        Err(damaged("it is not the one that its manifest states"))
    }
}
