//! New chunks become regions, all of them whole: those of files beside those that they resemble (module `window`),
//! those of metadata in the order in which they come.

use super::flow::{Encoded, Handed, Reached};
use super::window::{WINDOW_BYTES, WaitingChunk, Window};
use crate::EngineError;
use crate::decode::Bytes;
use crate::delta::Likeness;
use crate::held::HeldBytes;
use crate::parallel::{Pool, Ticket};
use crossbeam_channel::Sender;
use siltstone_store::StoreError;
use siltstone_store::container::ContainerKind;
use siltstone_store::region::{ChunkEntry, EncodedRegion, RegionEncoder};
use std::collections::VecDeque;

/// Text of files' chunks whose likeness is one piece of work, bytes.
const BATCH_BYTES: usize = 1 << 20;
/// Batches whose likeness may be asked for before the first is waited for.
const BATCHES_AHEAD: usize = 4;
/// The text of a region that is stored in so small a part of it is kept compressed: LZ4 makes it several times smaller,
/// at a tenth of what encoding the region costs.
const COMPRESSED_FROM: usize = 8;

/// Chunks gathered one after another.
#[derive(Default)]
struct GatheredChunks {
    chunks: Vec<ChunkEntry>,
    plain: Vec<u8>,
}

impl GatheredChunks {
    /// Tells whether a chunk would bring it above so many bytes.
    fn is_full_for(&self, bytes: &[u8], target: usize) -> bool {
        !self.chunks.is_empty() && self.plain.len() + bytes.len() > target
    }

    fn push(&mut self, chunk: ChunkEntry, bytes: &[u8], target: usize) {
        if self.plain.capacity() == 0 {
            self.plain.reserve_exact(target);
        }
        self.chunks.push(chunk);
        self.plain.extend_from_slice(bytes);
    }

    /// Finds the likeness of each chunk. There are as many as chunks, whatever their lengths say: none is left out.
    fn likenesses(&self) -> Vec<Likeness> {
        let mut rest = self.plain.as_slice();
        let of_next = |chunk: &ChunkEntry| {
            let (bytes, after) = rest.split_at_checked(chunk.length as usize).unwrap_or((rest, &[]));
            rest = after;
            Likeness::of(bytes)
        };
        self.chunks.iter().map(of_next).collect()
    }
}

/// Returns the text of each of these chunks, of which `plain` is one after another.
fn texts(chunks: &[ChunkEntry], mut plain: Bytes) -> Vec<Bytes> {
    chunks.iter().map(|chunk| plain.split_to(plain.len().min(chunk.length as usize))).collect()
}

/// Returns texts as they are kept: compressed, if the region that holds them is much smaller than they are.
fn kept(texts: Vec<Bytes>, region: &EncodedRegion) -> Vec<HeldBytes> {
    let is_to_be_compressed = region.payload.len() * COMPRESSED_FROM <= region.plain_bytes as usize;
    let compressed = |text: &Bytes| is_to_be_compressed.then(|| HeldBytes::compressed(text)).flatten();
    texts.into_iter().map(|text| compressed(&text).unwrap_or(HeldBytes::Plain(text))).collect()
}

/// Fills regions and hands them out to be encoded.
pub(super) struct Regions<'env> {
    /// Chunks of files, until they are a batch.
    data: GatheredChunks,
    /// Batches before, with the likeness of each of their chunks.
    looked_at: VecDeque<Ticket<(GatheredChunks, Vec<Likeness>)>>,
    window: Window,
    metadata: GatheredChunks,
    encoders: Pool<'env, RegionEncoder>,
    /// True if old chunks will be encoded against the new ones.
    is_for_migration: bool,
    packer: Sender<Handed>,
}

impl<'env> Regions<'env> {
    pub(super) fn new(encoders: Pool<'env, RegionEncoder>, is_for_migration: bool, packer: Sender<Handed>) -> Self {
        Self {
            data: GatheredChunks::default(),
            looked_at: VecDeque::new(),
            window: Window::new(),
            metadata: GatheredChunks::default(),
            encoders,
            is_for_migration,
            packer,
        }
    }

    pub(super) fn push(&mut self, kind: ContainerKind, chunk: ChunkEntry, bytes: &[u8]) -> Result<(), EngineError> {
        match kind {
            ContainerKind::Data => {
                if self.data.is_full_for(bytes, BATCH_BYTES) {
                    self.look_at_batch()?;
                }
                self.data.push(chunk, bytes, BATCH_BYTES);
            }
            ContainerKind::Metadata => {
                let target = kind.region_bytes_target();
                if self.metadata.is_full_for(bytes, target) {
                    self.encode_metadata()?;
                }
                self.metadata.push(chunk, bytes, target);
            }
        }
        Ok(())
    }

    /// Has the likeness of the open batch found.
    fn look_at_batch(&mut self) -> Result<(), EngineError> {
        let batch = std::mem::take(&mut self.data);
        self.looked_at.push_back(self.encoders.submit(move |_| {
            let likenesses = batch.likenesses();
            (batch, likenesses)
        }));
        if self.looked_at.len() > BATCHES_AHEAD { self.take_batch() } else { Ok(()) }
    }

    /// Takes the first of the batches into the window, and hands out what has no room there any more.
    fn take_batch(&mut self) -> Result<(), EngineError> {
        let Some(ticket) = self.looked_at.pop_front() else { return Ok(()) };
        let (GatheredChunks { chunks, plain }, likenesses) = ticket.wait()?;
        let texts = texts(&chunks, plain.into());
        for ((chunk, likeness), text) in chunks.into_iter().zip(likenesses).zip(texts) {
            self.window.push(WaitingChunk::new(chunk, likeness, text));
        }
        while self.window.bytes() > WINDOW_BYTES {
            self.encode_from_window()?;
        }
        Ok(())
    }

    /// Hands a region of the window on to be encoded.
    fn encode_from_window(&mut self) -> Result<(), EngineError> {
        let waiting = self.window.take_region(ContainerKind::Data.region_bytes_target());
        let is_for_migration = self.is_for_migration;
        let ticket = self.encoders.submit(move |encoder| {
            let texts: Vec<&[u8]> = waiting.iter().map(|chunk| chunk.text.as_ref()).collect();
            let chunks = waiting.iter().map(|chunk| chunk.entry).collect();
            let region = EncodedRegion::encode_members(encoder, chunks, &texts)?;
            let known = waiting.into_iter().filter(|_| is_for_migration).map(|chunk| (chunk.likeness, chunk.text));
            let (likenesses, texts): (_, Vec<Bytes>) = known.unzip();
            let texts = kept(texts, &region);
            Ok(Encoded { region, likenesses, texts, was_offered: false })
        });
        self.hand_on(ContainerKind::Data, ticket)
    }

    /// Hands the open region of metadata on to be encoded.
    fn encode_metadata(&mut self) -> Result<(), EngineError> {
        let open = std::mem::take(&mut self.metadata);
        if open.chunks.is_empty() {
            return Ok(());
        }
        let is_for_migration = self.is_for_migration;
        let ticket = self.encoders.submit(move |encoder| {
            let likenesses = if is_for_migration { open.likenesses() } else { Vec::new() };
            let region = EncodedRegion::encode(encoder, open.chunks, &open.plain)?;
            let texts = if is_for_migration { texts(&region.chunks, open.plain.into()) } else { Vec::new() };
            let texts = kept(texts, &region);
            Ok(Encoded { region, likenesses, texts, was_offered: false })
        });
        self.hand_on(ContainerKind::Metadata, ticket)
    }

    fn hand_on(&self, kind: ContainerKind, ticket: Ticket<Result<Encoded, StoreError>>) -> Result<(), EngineError> {
        // The packer goes away only after an error of its own, which is the one told.
        self.packer.send(Handed::Region(kind, ticket)).map_err(|_| EngineError::Interrupted)
    }

    /// Hands on all that waits.
    fn flush(&mut self) -> Result<(), EngineError> {
        if !self.data.chunks.is_empty() {
            self.look_at_batch()?;
        }
        while !self.looked_at.is_empty() {
            self.take_batch()?;
        }
        while !self.window.is_empty() {
            self.encode_from_window()?;
        }
        self.encode_metadata()
    }

    /// Hands on what is open, and the checkpoint behind it.
    pub(super) fn checkpoint(&mut self, reached: Reached) -> Result<(), EngineError> {
        self.flush()?;
        self.packer.send(Handed::Checkpoint(Box::new(reached))).map_err(|_| EngineError::Interrupted)
    }

    /// Hands on what is left.
    pub(super) fn finish(mut self) -> Result<(), EngineError> {
        self.flush()
    }
}
