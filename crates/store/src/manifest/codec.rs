//! Writing and reading a manifest: a head of fixed size, the compressed body, the containers' salts, the times of
//! deleted snapshots, the records of its parts.
//!
//! Whatever is random or depends on the time stands outside the compressed body and has a fixed size. So the size of a
//! manifest that is yet to be committed is known to the byte, and `forget --dry-run` can say how much comes back.
//!
//! A manifest is read in two steps: [`ManifestRoot`] is what its object says, and with the texts of its parts, where it
//! has any, it becomes a [`Manifest`].

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::lists::{self, CONTAINERS, DEPTHS, DIFFERENCES, IMPORTS, LISTS, Lists, SALTS};
use super::parts::{Outline, PART_BYTES_MAX, PartRecord, PartTable};
use super::{BottomK, Deleted, Lease, Lender, Manifest, Snapshot};
use crate::encoding;
use crate::error::StoreError;
use crate::ids::{ChunkNumber, PartId, SeriesId, SnapshotId, Time};
use crate::storage::ObjectName;
use roaring::RoaringTreemap;
use serde::{Deserialize, Serialize};
use siltstone_similar::region::plain;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Greatest size of a lease as written: names of host and user, the identity of the boot, the purpose.
pub const LEASE_BYTES_MAX: usize = 510;

/// Greatest size of a body before compression, its lists and parts included: some 20 million containers.
pub const BODY_BYTES_MAX: usize = 1 << 30;

/// zstd level of the body; it is rewritten with every commit.
const BODY_LEVEL: i32 = 3;

/// Greatest number of parts of a list: of the least size they fill the largest body.
const PARTS_MAX: usize = 1 << 20;

/// The compressed part. The last fields are the lists but the salts, each empty if it is cut into parts.
#[derive(Serialize, Deserialize)]
struct Body<'m> {
    series: SeriesId,
    name: Cow<'m, str>,
    next_data: ChunkNumber,
    next_metadata: ChunkNumber,
    snapshots: Cow<'m, [Snapshot]>,
    unsettled: Cow<'m, BTreeSet<SnapshotId>>,
    ghosts_due: bool,
    ghosts_kept: u64,
    shortcuts: Cow<'m, BTreeMap<SnapshotId, Option<u64>>>,
    damaged: Vec<u8>,
    listed: bool,
    lends: bool,
    lent: Vec<u8>,
    unclaimed: Vec<u8>,
    sketch: Cow<'m, BottomK>,
    lenders: Cow<'m, [Lender]>,
    differences: Cow<'m, [u8]>,
    containers: Cow<'m, [u8]>,
    depths: Cow<'m, [u8]>,
    imports: Cow<'m, [u8]>,
}

/// The head: what changes with each commit.
struct Head {
    sequence: u64,
    previous: [u8; 32],
    committed: Time,
    lease: Option<Lease>,
}

/// A manifest as its own object says it: all but the lists that lie in parts.
#[derive(Clone, Debug)]
pub struct ManifestRoot {
    /// The manifest, without its lists.
    manifest: Manifest,
    /// The lists as far as they lie in it.
    lists: Lists,
    parts: PartTable,
}

impl Manifest {
    /// The plain bytes of the manifest's object, everything in it.
    ///
    /// # Errors
    /// [`StoreError::Limit`] if the lease or the body is too large.
    pub fn encode(&self) -> Result<Vec<u8>, StoreError> {
        self.encode_root(&Outline::whole(self)?)
    }

    /// The plain bytes of the manifest's object, with its lists as the outline has them. The length does not depend on
    /// sequence, previous hash, lease, salts, the identities of parts, or the times of the commit and of deleted
    /// snapshots.
    ///
    /// # Errors
    /// As [`Manifest::encode`].
    pub(crate) fn encode_root(&self, outline: &Outline) -> Result<Vec<u8>, StoreError> {
        let body = self.encode_body(outline)?;
        let compressed = plain::compress(&body, BODY_LEVEL)
            .map_err(|error| StoreError::Machine { operation: "compressing a manifest", reason: error.to_string() })?;
        let salts = outline.inline(SALTS);
        let mut out = self.encode_head()?;
        for bytes in [body.len(), compressed.len(), salts.len()] {
            out.extend_from_slice(&(bytes as u64).to_le_bytes());
        }
        for parts in &outline.table().of_lists {
            out.extend_from_slice(&(parts.len() as u64).to_le_bytes());
        }
        out.extend_from_slice(&compressed);
        out.extend_from_slice(salts);
        for mark in self.snapshots.iter().filter_map(|snapshot| snapshot.deleted) {
            push_time(&mut out, mark.at);
            push_time(&mut out, mark.until);
        }
        outline.table().records().for_each(|record| push_part(&mut out, record));
        Ok(out)
    }

    /// Reads the plain bytes of the object of this name, of a manifest without parts.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] or [`StoreError::NeedsMemory`], naming the object.
    pub fn decode(object: &ObjectName, bytes: &[u8]) -> Result<Self, StoreError> {
        Self::decode_within(object, bytes, BODY_BYTES_MAX as u64)
    }

    /// Decodes as [`Manifest::decode`] does, refusing a body that takes more bytes once decompressed; nothing is
    /// decompressed then.
    ///
    /// # Errors
    /// As [`Manifest::decode`].
    pub fn decode_within(object: &ObjectName, bytes: &[u8], body_bytes_max: u64) -> Result<Self, StoreError> {
        ManifestRoot::decode_within(object, bytes, body_bytes_max)?.complete(object, Vec::new())
    }

    fn encode_head(&self) -> Result<Vec<u8>, StoreError> {
        let mut out = Vec::new();
        out.extend_from_slice(&self.sequence.to_le_bytes());
        out.extend_from_slice(&self.previous);
        push_time(&mut out, self.committed);
        let lease = encoding::encode(&self.lease)?;
        let length = u16::try_from(lease.len()).unwrap_or(u16::MAX);
        if lease.len() > LEASE_BYTES_MAX {
            let limit = LEASE_BYTES_MAX as u64;
            return Err(StoreError::limit(
                &self.object_name(),
                "size of the lease in bytes",
                lease.len() as u64,
                limit,
            ));
        }
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&lease);
        out.resize(out.len() + LEASE_BYTES_MAX - lease.len(), 0);
        Ok(out)
    }

    fn encode_body(&self, outline: &Outline) -> Result<Vec<u8>, StoreError> {
        let inline = |list| Cow::Borrowed(outline.inline(list));
        let body = Body {
            series: self.series,
            name: Cow::Borrowed(&self.name),
            next_data: self.next_data,
            next_metadata: self.next_metadata,
            snapshots: Cow::Borrowed(&self.snapshots),
            unsettled: Cow::Borrowed(&self.unsettled),
            ghosts_due: self.ghosts_due,
            ghosts_kept: self.ghosts_kept,
            shortcuts: Cow::Borrowed(&self.shortcuts),
            damaged: bitmap_bytes(&optimized(self.damaged.clone())),
            listed: self.listed,
            lends: self.lends,
            lent: bitmap_bytes(&optimized(self.lent.clone())),
            unclaimed: bitmap_bytes(&optimized(self.unclaimed.clone())),
            sketch: Cow::Borrowed(&self.sketch),
            lenders: Cow::Borrowed(&self.lenders),
            differences: inline(DIFFERENCES),
            containers: inline(CONTAINERS),
            depths: inline(DEPTHS),
            imports: inline(IMPORTS),
        };
        let bytes = encoding::encode(&body)?;
        let found = bytes.len().saturating_add(outline.lists.iter().map(Vec::len).sum()) as u64;
        if found > BODY_BYTES_MAX as u64 {
            let limit = BODY_BYTES_MAX as u64;
            return Err(StoreError::limit(&self.object_name(), "size of the body in bytes", found, limit));
        }
        Ok(bytes)
    }
}

impl ManifestRoot {
    /// Reads the plain bytes of the object of this name, refusing a manifest whose body and lists take more bytes once
    /// decompressed; nothing is decompressed then.
    ///
    /// # Errors
    /// As [`Manifest::decode`].
    pub fn decode_within(object: &ObjectName, bytes: &[u8], body_bytes_max: u64) -> Result<Self, StoreError> {
        let mut rest = Rest { bytes, object };
        let head = rest.head()?;
        let (body_bytes, compressed_bytes, salts_bytes) = (rest.length()?, rest.length()?, rest.length()?);
        let mut counts = [0; LISTS];
        for count in &mut counts {
            *count = rest.length()?;
        }
        let compressed = rest.take(compressed_bytes)?;
        let limit = body_bytes_max.min(BODY_BYTES_MAX as u64);
        let body = decompress(compressed, body_bytes, object, limit)?;
        let body: Body<'static> = encoding::decode(object, "manifest's body", &body)?;
        let salts = rest.take(salts_bytes)?.to_vec();
        let (mut manifest, lists) = assemble(head, body, salts, object)?;
        for mark in manifest.snapshots.iter_mut().filter_map(|snapshot| snapshot.deleted.as_mut()) {
            *mark = Deleted { at: rest.time()?, until: rest.time()? };
        }
        check_snapshots(&manifest, object)?;
        let parts = rest.parts(counts, &lists)?;
        if !rest.bytes.is_empty() {
            return Err(damaged(object, "bytes follow its end"));
        }
        let root = Self { manifest, lists, parts };
        let found = (body_bytes as u64).saturating_add(root.parts.plain_bytes());
        if found > limit {
            return Err(StoreError::NeedsMemory { object: object.to_string(), found, limit });
        }
        Ok(root)
    }

    /// Returns its parts.
    pub fn parts(&self) -> &PartTable {
        &self.parts
    }

    /// Returns the series it belongs to.
    pub fn series(&self) -> SeriesId {
        self.manifest.series
    }

    /// Returns the name of its object.
    pub fn object_name(&self) -> ObjectName {
        self.manifest.object_name()
    }

    /// Returns the manifest as it is without its lists: who it is, and its snapshots.
    pub(crate) fn without_lists(&self) -> &Manifest {
        &self.manifest
    }

    /// Makes the manifest of it and of the texts of its parts, in their order.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if these are not all, or the lists are not sound.
    pub fn complete(self, object: &ObjectName, texts: Vec<Vec<u8>>) -> Result<Manifest, StoreError> {
        let Self { mut manifest, mut lists, parts } = self;
        if texts.len() != parts.records().count() {
            return Err(damaged(object, "its parts are not there"));
        }
        let mut texts = texts.into_iter();
        for (list, parts) in lists.iter_mut().zip(&parts.of_lists) {
            texts.by_ref().take(parts.len()).for_each(|text| list.extend_from_slice(&text));
        }
        lists::decode(object, &mut manifest, &lists)?;
        Ok(manifest)
    }
}

fn decompress(compressed: &[u8], body_bytes: usize, object: &ObjectName, limit: u64) -> Result<Vec<u8>, StoreError> {
    let found = body_bytes as u64;
    if found > limit {
        return Err(StoreError::NeedsMemory { object: object.to_string(), found, limit });
    }
    plain::decompress(compressed, body_bytes)
        .map_err(|error| damaged(object, &format!("its body does not decompress: {error}")))
}

/// Puts head and body together; the lists are apart. What they say of each other is [`Manifest::faults`]' to judge.
fn assemble(
    head: Head,
    body: Body<'static>,
    salts: Vec<u8>,
    object: &ObjectName,
) -> Result<(Manifest, Lists), StoreError> {
    if *object != ObjectName::Manifest(body.series, head.sequence) {
        return Err(damaged(object, "it is the manifest of another series or sequence"));
    }
    if body.next_data > ChunkNumber::METADATA_FIRST || !body.next_metadata.is_metadata() {
        return Err(damaged(object, "the next chunk numbers are out of their ranges"));
    }
    let manifest = Manifest {
        sequence: head.sequence,
        previous: head.previous,
        committed: head.committed,
        lease: head.lease,
        next_data: body.next_data,
        next_metadata: body.next_metadata,
        unsettled: body.unsettled.into_owned(),
        ghosts_due: body.ghosts_due,
        ghosts_kept: body.ghosts_kept,
        shortcuts: body.shortcuts.into_owned(),
        damaged: read_bitmap(&body.damaged, object)?,
        listed: body.listed,
        lends: body.lends,
        lent: read_bitmap(&body.lent, object)?,
        unclaimed: read_bitmap(&body.unclaimed, object)?,
        sketch: body.sketch.into_owned(),
        lenders: body.lenders.into_owned(),
        snapshots: body.snapshots.into_owned(),
        ..Manifest::new(body.series, body.name)
    };
    let lists = [
        body.differences.into_owned(),
        body.containers.into_owned(),
        salts,
        body.depths.into_owned(),
        body.imports.into_owned(),
    ];
    Ok((manifest, lists))
}

/// Checks what a manifest says of its snapshots, but for their chunks.
fn check_snapshots(manifest: &Manifest, object: &ObjectName) -> Result<(), StoreError> {
    let snapshots = &manifest.snapshots;
    let ids: BTreeSet<_> = snapshots.iter().map(|snapshot| snapshot.id).collect();
    if ids.len() != snapshots.len() {
        return Err(damaged(object, "two snapshots have the same identity"));
    }
    let is_sound = |snapshot: &Snapshot| {
        let is_mark = |mark: Deleted| is_time(mark.at) && is_time(mark.until) && mark.at <= mark.until;
        is_time(snapshot.time)
            && is_time(snapshot.made)
            && snapshot.root.is_metadata()
            && snapshot.deleted.is_none_or(|mark| is_mark(mark) && !snapshot.partial)
    };
    if !is_time(manifest.committed) || !snapshots.iter().all(is_sound) {
        return Err(damaged(object, "a time or the root of a snapshot is out of its range"));
    }
    if !manifest.unsettled.is_subset(&ids) {
        return Err(damaged(object, "a snapshot to be settled is not there"));
    }
    if !manifest.shortcuts.keys().all(|id| ids.contains(id)) {
        return Err(damaged(object, "a snapshot that has a shortcut past it is not there"));
    }
    Ok(())
}

/// Appends the record of a part in its fixed form.
fn push_part(out: &mut Vec<u8>, record: &PartRecord) {
    out.extend_from_slice(&record.id.lease.to_le_bytes());
    for field in [record.id.serial, record.plain_bytes, record.content_bytes] {
        out.extend_from_slice(&field.to_le_bytes());
    }
    out.extend_from_slice(&record.hash);
}

/// Appends a time in the form of fixed size.
fn push_time(out: &mut Vec<u8>, time: Time) {
    out.extend_from_slice(&time.seconds.to_le_bytes());
    out.extend_from_slice(&time.nanoseconds.to_le_bytes());
}

fn is_time(time: Time) -> bool {
    time.nanoseconds < 1_000_000_000
}

/// A bitmap in the portable serialization of Roaring bitmaps, 64-bit extension; nothing at all for the empty one.
pub(super) fn bitmap_bytes(bitmap: &RoaringTreemap) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(bitmap.serialized_size());
    if !bitmap.is_empty() && bitmap.serialize_into(&mut bytes).is_err() {
        unreachable!("writing to memory does not fail");
    }
    bytes
}

/// Brings a bitmap into the one form that is written: in runs wherever that is smaller.
pub(super) fn optimized(mut bitmap: RoaringTreemap) -> RoaringTreemap {
    bitmap.optimize();
    bitmap
}

/// Reads a bitmap, in the one form that is written only: parts ascending, none empty, nothing behind.
pub(super) fn read_bitmap(bytes: &[u8], object: &ObjectName) -> Result<RoaringTreemap, StoreError> {
    if bytes.is_empty() {
        return Ok(RoaringTreemap::new());
    }
    let unsound = || damaged(object, "a list of necessary chunks is no sound bitmap");
    let mut bitmap = RoaringTreemap::deserialize_from(bytes).map_err(|_| unsound())?;
    bitmap.optimize();
    if bitmap.is_empty() || bitmap_bytes(&bitmap) != bytes { Err(unsound()) } else { Ok(bitmap) }
}

/// The bytes left of an object's plain ones.
struct Rest<'b> {
    bytes: &'b [u8],
    object: &'b ObjectName,
}

impl<'b> Rest<'b> {
    fn head(&mut self) -> Result<Head, StoreError> {
        let sequence = u64::from_le_bytes(self.array()?);
        let previous = self.array()?;
        let committed = self.time()?;
        let lease_bytes = usize::from(u16::from_le_bytes(self.array()?));
        let block = self.take(LEASE_BYTES_MAX)?;
        let (lease, padding) =
            block.split_at_checked(lease_bytes).ok_or_else(|| damaged(self.object, "its lease exceeds its place"))?;
        if padding.iter().any(|&byte| byte != 0) {
            return Err(damaged(self.object, "bytes follow its lease"));
        }
        let lease = encoding::decode(self.object, "manifest's lease", lease)?;
        Ok(Head { sequence, previous, committed, lease })
    }

    fn time(&mut self) -> Result<Time, StoreError> {
        let seconds = i64::from_le_bytes(self.array()?);
        Ok(Time { seconds, nanoseconds: u32::from_le_bytes(self.array()?) })
    }

    fn take(&mut self, count: usize) -> Result<&'b [u8], StoreError> {
        let (taken, rest) =
            self.bytes.split_at_checked(count).ok_or_else(|| damaged(self.object, "it ends too early"))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], StoreError> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or_else(|| damaged(self.object, "it ends too early"))?;
        self.bytes = rest;
        Ok(*taken)
    }

    /// Reads the records of the parts; of a list that has any, nothing lies in the manifest itself.
    fn parts(&mut self, counts: [usize; LISTS], inline: &Lists) -> Result<PartTable, StoreError> {
        let mut table = PartTable::default();
        for ((records, count), list) in table.of_lists.iter_mut().zip(counts).zip(inline) {
            if count > PARTS_MAX || (count > 0 && !list.is_empty()) {
                return Err(damaged(self.object, "a list has parts and bytes, or too many parts"));
            }
            for _ in 0..count {
                records.push(self.part()?);
            }
        }
        Ok(table)
    }

    fn part(&mut self) -> Result<PartRecord, StoreError> {
        let lease = u64::from_le_bytes(self.array()?);
        let (serial, plain_bytes, content_bytes) = (self.u32()?, self.u32()?, self.u32()?);
        let record = PartRecord { id: PartId { lease, serial }, plain_bytes, content_bytes, hash: self.array()? };
        if plain_bytes == 0 || plain_bytes as usize > PART_BYTES_MAX || content_bytes > plain_bytes {
            return Err(damaged(self.object, "the size of a part is out of its range"));
        }
        Ok(record)
    }

    fn u32(&mut self) -> Result<u32, StoreError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn length(&mut self) -> Result<usize, StoreError> {
        let length = u64::from_le_bytes(self.array()?);
        usize::try_from(length).map_err(|_| damaged(self.object, "a length exceeds the memory of this machine"))
    }
}

pub(super) fn damaged(object: &ObjectName, reason: &str) -> StoreError {
    StoreError::damaged(object, "manifest", reason)
}
