//! Healing: content met in the source whose chunk cannot be read is stored again, under the number it has.
//!
//! The fingerprint says that it is the same content, and numbers never move. So once the new container answers for the
//! number, every snapshot that needs the chunk, and every delta that hangs on it, is whole again. A healed chunk is
//! stored whole whatever it was before: it hangs on nothing, and no chain can come to lead back to it.
//!
//! There is little of it, if any. So regions are encoded here, in the assembling thread; they gather apart from those
//! of new chunks, because their numbers come in any order and have to ascend within a region.

use super::flow::{Encoded, Handed};
use crate::EngineError;
use crate::parallel::Ticket;
use crossbeam_channel::Sender;
use roaring::RoaringTreemap;
use siltstone_store::ChunkNumber;
use siltstone_store::container::ContainerKind;
use siltstone_store::manifest::Manifest;
use siltstone_store::region::{ChunkEntry, EncodedRegion, RegionEncoder};
use std::collections::BTreeMap;

/// Chunks of one kind gathered until they fill a region, by number.
#[derive(Default)]
struct HealedRegion {
    chunks: BTreeMap<ChunkNumber, (ChunkEntry, Vec<u8>)>,
    bytes: usize,
}

/// Stores chunks again under their numbers.
pub(super) struct Healer {
    data: HealedRegion,
    metadata: HealedRegion,
    level: i32,
    encoder: Option<RegionEncoder>,
    packer: Sender<Handed>,
    healed: RoaringTreemap,
}

impl Healer {
    pub(super) fn new(level: i32, packer: Sender<Handed>) -> Self {
        let (data, metadata, healed) = (HealedRegion::default(), HealedRegion::default(), RoaringTreemap::new());
        Self { data, metadata, level, encoder: None, packer, healed }
    }

    /// Tells whether the chunk was stored again in this run.
    pub(super) fn has(&self, number: ChunkNumber) -> bool {
        self.healed.contains(number.0)
    }

    /// Tells whether any chunk was stored again in this run.
    pub(super) fn has_any(&self) -> bool {
        !self.healed.is_empty()
    }

    /// Stores a chunk again that was not yet.
    pub(super) fn push(&mut self, chunk: ChunkEntry, bytes: &[u8]) -> Result<(), EngineError> {
        let kind = ContainerKind::of(chunk.number);
        let open = self.open(kind);
        if open.bytes > 0 && open.bytes + bytes.len() > kind.region_bytes_target() {
            self.flush(kind)?;
        }
        let open = self.open(kind);
        open.bytes += bytes.len();
        open.chunks.insert(chunk.number, (chunk, bytes.to_vec()));
        self.healed.insert(chunk.number.0);
        Ok(())
    }

    fn open(&mut self, kind: ContainerKind) -> &mut HealedRegion {
        match kind {
            ContainerKind::Data => &mut self.data,
            ContainerKind::Metadata => &mut self.metadata,
        }
    }

    fn flush(&mut self, kind: ContainerKind) -> Result<(), EngineError> {
        let open = std::mem::take(self.open(kind));
        if open.chunks.is_empty() {
            return Ok(());
        }
        let mut plain = Vec::with_capacity(open.bytes);
        let chunks = open.chunks.into_values().map(|(chunk, bytes)| {
            plain.extend_from_slice(&bytes);
            chunk
        });
        let chunks = chunks.collect();
        let encoder = match &mut self.encoder {
            Some(encoder) => encoder,
            none => none.insert(RegionEncoder::fast(self.level)),
        };
        let region = EncodedRegion::encode(encoder, chunks, &plain)?;
        let encoded = Encoded { region, likenesses: Vec::new(), texts: Vec::new(), was_offered: false };
        // The packer goes away only after an error of its own, which is the one told.
        self.packer.send(Handed::Region(kind, Ticket::ready(Ok(encoded)))).map_err(|_| EngineError::Interrupted)
    }

    /// Hands on what is left; gives the numbers healed.
    pub(super) fn finish(mut self) -> Result<RoaringTreemap, EngineError> {
        self.flush(ContainerKind::Data)?;
        self.flush(ContainerKind::Metadata)?;
        Ok(self.healed)
    }
}

/// Takes the healed chunks from the containers that answered for them; those that answer for nothing else go. What was
/// part of a delta hangs on nothing any more, so what only it hung on may be needed no longer: the next settling looks.
pub(super) fn hand_over(manifest: &mut Manifest, healed: &RoaringTreemap) {
    if healed.is_empty() {
        return;
    }
    let is_touched = |run: &siltstone_store::ChunkRun| healed.range_cardinality(run.range()) > 0;
    for record in manifest.containers.iter_mut().filter(|record| record.chunks.iter().any(is_touched)) {
        manifest.ghosts_due |= record.has_deltas;
        record.change_numbers(|numbers| numbers - healed);
    }
    manifest.containers.retain(|record| !record.chunks.is_empty());
    manifest.damaged -= healed;
}
