//! Writing and reading a manifest: a head of fixed size, the compressed body, the containers' salts, the times of
//! deleted snapshots.
//!
//! Whatever is random or depends on the time stands outside the compressed body and has a fixed size. So the size of a
//! manifest that is yet to be committed is known to the byte, and `forget --dry-run` can say how much comes back.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::{
    Deleted, Lease, Manifest, Snapshot,
    necessary::{Difference, NecessaryChunks},
};
use crate::{
    container::ContainerRecord,
    encoding,
    error::StoreError,
    ids::{ChunkNumber, SeriesId, SnapshotId, Time},
    sealed::Salt,
    storage::ObjectName,
};
use roaring::RoaringTreemap;
use serde::{Deserialize, Serialize};
use siltstone_similar::region::plain;
use std::collections::BTreeSet;

/// Greatest size of a lease as written: names of host and user, the identity of the boot, the purpose.
pub const LEASE_BYTES_MAX: usize = 510;

/// Greatest size of a body before compression: some 40 million containers.
pub const BODY_BYTES_MAX: usize = 1 << 30;

/// zstd level of the body; it is rewritten with every commit.
const BODY_LEVEL: i32 = 3;

/// The compressed part.
#[derive(Serialize)]
struct BodyRef<'m> {
    series: SeriesId,
    name: &'m str,
    next_data: ChunkNumber,
    next_metadata: ChunkNumber,
    snapshots: &'m [Snapshot],
    necessary: Vec<[Vec<u8>; 2]>,
    direct: Vec<[Vec<u8>; 2]>,
    containers: &'m [ContainerRecord],
    unsettled: &'m BTreeSet<SnapshotId>,
    dependents_depths: Vec<Vec<u8>>,
    ghosts_due: bool,
    damaged: Vec<u8>,
    listed: bool,
}

/// The compressed part as it is read: [`BodyRef`], field for field.
#[derive(Deserialize)]
struct Body {
    series: SeriesId,
    name: String,
    next_data: ChunkNumber,
    next_metadata: ChunkNumber,
    snapshots: Vec<Snapshot>,
    necessary: Vec<[Vec<u8>; 2]>,
    direct: Vec<[Vec<u8>; 2]>,
    containers: Vec<ContainerRecord>,
    unsettled: BTreeSet<SnapshotId>,
    dependents_depths: Vec<Vec<u8>>,
    ghosts_due: bool,
    damaged: Vec<u8>,
    listed: bool,
}

/// The head: what changes with each commit.
struct Head {
    sequence: u64,
    previous: [u8; 32],
    committed: Time,
    lease: Option<Lease>,
}

impl Manifest {
    /// The plain bytes of the manifest's object.
    ///
    /// # Errors
    /// [`StoreError::Limit`] if the lease or the body is too large.
    pub fn encode(&self) -> Result<Vec<u8>, StoreError> {
        let body = self.encode_body()?;
        let compressed = plain::compress(&body, BODY_LEVEL)
            .map_err(|error| StoreError::Machine { operation: "compressing a manifest", reason: error.to_string() })?;
        let mut out = self.encode_head()?;
        out.extend_from_slice(&(body.len() as u64).to_le_bytes());
        out.extend_from_slice(&(compressed.len() as u64).to_le_bytes());
        out.extend_from_slice(&compressed);
        self.containers.iter().for_each(|container| out.extend_from_slice(&container.salt));
        for mark in self.snapshots.iter().filter_map(|snapshot| snapshot.deleted) {
            push_time(&mut out, mark.at);
            push_time(&mut out, mark.until);
        }
        Ok(out)
    }

    /// The length of [`Manifest::encode`]'s result. It does not depend on sequence, previous hash, lease, salts, or the
    /// times of the commit and of deleted snapshots.
    ///
    /// # Errors
    /// As [`Manifest::encode`].
    pub fn encoded_bytes(&self) -> Result<u64, StoreError> {
        Ok(self.encode()?.len() as u64)
    }

    /// Reads the plain bytes of the object of this name.
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
        let mut rest = Rest { bytes, object };
        let head = rest.head()?;
        let body_bytes = rest.length()?;
        let compressed_bytes = rest.length()?;
        let compressed = rest.take(compressed_bytes)?;
        let mut body = decode_body(compressed, body_bytes, object, body_bytes_max.min(BODY_BYTES_MAX as u64))?;
        for container in &mut body.containers {
            container.salt = rest.array::<{ size_of::<Salt>() }>()?;
        }
        for mark in body.snapshots.iter_mut().filter_map(|snapshot| snapshot.deleted.as_mut()) {
            *mark = Deleted { at: rest.time()?, until: rest.time()? };
        }
        if !rest.bytes.is_empty() {
            return Err(damaged(object, "bytes follow its end"));
        }
        assemble(head, body, object)
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

    fn encode_body(&self) -> Result<Vec<u8>, StoreError> {
        let steps = |chunks: &NecessaryChunks| {
            let differences = chunks.differences().iter();
            differences.map(|step| [bitmap_bytes(&step.added), bitmap_bytes(&step.removed)]).collect()
        };
        let body = BodyRef {
            series: self.series,
            name: &self.name,
            next_data: self.next_data,
            next_metadata: self.next_metadata,
            snapshots: &self.snapshots,
            necessary: steps(&self.necessary),
            direct: steps(&self.direct),
            containers: &self.containers,
            unsettled: &self.unsettled,
            dependents_depths: self
                .dependents_depths
                .iter()
                .map(|of_depth| bitmap_bytes(&optimized(of_depth.clone())))
                .collect(),
            ghosts_due: self.ghosts_due,
            damaged: bitmap_bytes(&optimized(self.damaged.clone())),
            listed: self.listed,
        };
        let bytes = encoding::encode(&body)?;
        if bytes.len() > BODY_BYTES_MAX {
            let (found, limit) = (bytes.len() as u64, BODY_BYTES_MAX as u64);
            return Err(StoreError::limit(&self.object_name(), "size of the body in bytes", found, limit));
        }
        Ok(bytes)
    }
}

fn decode_body(compressed: &[u8], body_bytes: usize, object: &ObjectName, limit: u64) -> Result<Body, StoreError> {
    let found = body_bytes as u64;
    if found > limit {
        return Err(StoreError::NeedsMemory { object: object.to_string(), found, limit });
    }
    let bytes = plain::decompress(compressed, body_bytes)
        .map_err(|error| damaged(object, &format!("its body does not decompress: {error}")))?;
    encoding::decode(object, "manifest's body", &bytes)
}

/// Puts the parts together, once each is sound by itself. What they say of each other is [`Manifest::faults`]' to
/// judge.
fn assemble(head: Head, body: Body, object: &ObjectName) -> Result<Manifest, StoreError> {
    if *object != ObjectName::Manifest(body.series, head.sequence) {
        return Err(damaged(object, "it is the manifest of another series or sequence"));
    }
    if body.next_data > ChunkNumber::METADATA_FIRST || !body.next_metadata.is_metadata() {
        return Err(damaged(object, "the next chunk numbers are out of their ranges"));
    }
    if [&body.necessary, &body.direct].iter().any(|lists| lists.len() != body.snapshots.len()) {
        return Err(damaged(object, "it has not one list of chunks for each snapshot"));
    }
    let ids: BTreeSet<_> = body.snapshots.iter().map(|snapshot| snapshot.id).collect();
    if ids.len() != body.snapshots.len() {
        return Err(damaged(object, "two snapshots have the same identity"));
    }
    let is_sound = |snapshot: &Snapshot| {
        let is_mark = |mark: Deleted| is_time(mark.at) && is_time(mark.until) && mark.at <= mark.until;
        is_time(snapshot.time)
            && is_time(snapshot.made)
            && snapshot.root.is_metadata()
            && snapshot.deleted.is_none_or(|mark| is_mark(mark) && !snapshot.partial)
    };
    if !is_time(head.committed) || !body.snapshots.iter().all(is_sound) {
        return Err(damaged(object, "a time or the root of a snapshot is out of its range"));
    }
    body.containers.iter().try_for_each(|container| container.validate(object))?;
    if !body.unsettled.is_subset(&ids) {
        return Err(damaged(object, "a snapshot to be settled is not there"));
    }
    let dependents_depths =
        body.dependents_depths.iter().map(|bytes| read_bitmap(bytes, object)).collect::<Result<Vec<_>, _>>()?;
    let depths_count: u64 = dependents_depths.iter().map(RoaringTreemap::len).sum();
    if dependents_depths.iter().fold(RoaringTreemap::new(), |all, of_depth| all | of_depth).len() != depths_count {
        return Err(damaged(object, "a chunk has two depths of dependents"));
    }
    let damaged = read_bitmap(&body.damaged, object)?;
    let chunks = |lists: &[[Vec<u8>; 2]]| {
        let steps = lists.iter().map(|[added, removed]| {
            Ok(Difference { added: read_bitmap(added, object)?, removed: read_bitmap(removed, object)? })
        });
        Ok::<_, StoreError>(NecessaryChunks::from_differences(steps.collect::<Result<_, StoreError>>()?))
    };
    let (necessary, direct) = (chunks(&body.necessary)?, chunks(&body.direct)?);
    Ok(Manifest {
        series: body.series,
        name: body.name,
        sequence: head.sequence,
        previous: head.previous,
        committed: head.committed,
        lease: head.lease,
        next_data: body.next_data,
        next_metadata: body.next_metadata,
        containers: body.containers,
        unsettled: body.unsettled,
        dependents_depths,
        ghosts_due: body.ghosts_due,
        damaged,
        listed: body.listed,
        snapshots: body.snapshots,
        necessary,
        direct,
    })
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
fn bitmap_bytes(bitmap: &RoaringTreemap) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(bitmap.serialized_size());
    if !bitmap.is_empty() && bitmap.serialize_into(&mut bytes).is_err() {
        unreachable!("writing to memory does not fail");
    }
    bytes
}

/// Brings a bitmap into the one form that is written: in runs wherever that is smaller.
fn optimized(mut bitmap: RoaringTreemap) -> RoaringTreemap {
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

    fn length(&mut self) -> Result<usize, StoreError> {
        let length = u64::from_le_bytes(self.array()?);
        usize::try_from(length).map_err(|_| damaged(self.object, "a length exceeds the memory of this machine"))
    }
}

fn damaged(object: &ObjectName, reason: &str) -> StoreError {
    StoreError::damaged(object, "manifest", reason)
}
