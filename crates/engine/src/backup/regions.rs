//! New chunks become regions in the order in which they come: all of them whole.

use super::flow::{Encoded, Handed, Reached};
use crate::EngineError;
use crate::delta::Likeness;
use crate::parallel::Pool;
use crossbeam_channel::Sender;
use siltstone_store::container::ContainerKind;
use siltstone_store::region::{ChunkEntry, EncodedRegion, RegionEncoder, split_region};

/// Chunks of one kind gathered until they fill a region.
#[derive(Default)]
struct GatheredRegion {
    chunks: Vec<ChunkEntry>,
    plain: Vec<u8>,
}

/// Fills regions and hands them out to be encoded.
pub(super) struct Regions<'env> {
    data: GatheredRegion,
    metadata: GatheredRegion,
    encoders: Pool<'env, RegionEncoder>,
    /// True if old chunks will be encoded against the new ones.
    is_for_migration: bool,
    packer: Sender<Handed>,
}

impl<'env> Regions<'env> {
    pub(super) fn new(encoders: Pool<'env, RegionEncoder>, is_for_migration: bool, packer: Sender<Handed>) -> Self {
        Self {
            data: GatheredRegion::default(),
            metadata: GatheredRegion::default(),
            encoders,
            is_for_migration,
            packer,
        }
    }

    pub(super) fn push(&mut self, kind: ContainerKind, chunk: ChunkEntry, bytes: &[u8]) -> Result<(), EngineError> {
        let open = self.open(kind);
        if !open.chunks.is_empty() && open.plain.len() + bytes.len() > kind.region_bytes_target() {
            self.flush(kind)?;
        }
        let open = self.open(kind);
        if open.plain.capacity() == 0 {
            open.plain.reserve_exact(kind.region_bytes_target());
        }
        open.chunks.push(chunk);
        open.plain.extend_from_slice(bytes);
        Ok(())
    }

    fn open(&mut self, kind: ContainerKind) -> &mut GatheredRegion {
        match kind {
            ContainerKind::Data => &mut self.data,
            ContainerKind::Metadata => &mut self.metadata,
        }
    }

    /// Hands the open region on to be encoded.
    fn flush(&mut self, kind: ContainerKind) -> Result<(), EngineError> {
        let open = self.open(kind);
        if open.chunks.is_empty() {
            return Ok(());
        }
        let (chunks, plain) = (std::mem::take(&mut open.chunks), std::mem::take(&mut open.plain));
        let is_for_migration = self.is_for_migration;
        let ticket = self.encoders.submit(move |encoder| {
            let looked_at = split_region(&chunks, &plain).filter(|_| is_for_migration);
            let likenesses = looked_at.map(|(_, bytes)| Likeness::of(bytes)).collect();
            Ok(Encoded { region: EncodedRegion::encode(encoder, chunks, &plain)?, likenesses, was_offered: false })
        });
        // The packer goes away only after an error of its own, which is the one told.
        self.packer.send(Handed::Region(kind, ticket)).map_err(|_| EngineError::Interrupted)
    }

    /// Hands on what is open, and the checkpoint behind it.
    pub(super) fn checkpoint(&mut self, reached: Reached) -> Result<(), EngineError> {
        self.flush(ContainerKind::Data)?;
        self.flush(ContainerKind::Metadata)?;
        self.packer.send(Handed::Checkpoint(Box::new(reached))).map_err(|_| EngineError::Interrupted)
    }

    /// Hands on what is left.
    pub(super) fn finish(mut self) -> Result<(), EngineError> {
        self.flush(ContainerKind::Data)?;
        self.flush(ContainerKind::Metadata)
    }
}
