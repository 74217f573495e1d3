//! The stage that decides: every chunk in stream order is known or new, gets its number, goes into a region; every entry into the
//! catalog. It runs on one thread, so numbers and catalogs do not depend on how many others there are.

use crate::EngineError;
use crate::index::FingerprintIndex;
use crate::parallel::{Pool, Ticket};
use crossbeam_channel::Sender;
use roaring::RoaringTreemap;
use siltstone_store::catalog::MetadataSink;
use siltstone_store::container::ContainerKind;
use siltstone_store::region::{ChunkEntry, EncodedRegion, REGION_PLAIN_BYTES_TARGET, RegionEncoder};
use siltstone_store::secrets::RepositoryKeys;
use siltstone_store::{ChunkNumber, Fingerprint, StoreError};

/// A region on its way to the packer, in the order it was cut off.
pub(super) type RegionTicket = (ContainerKind, Ticket<Result<EncodedRegion, StoreError>>);

/// Chunks of one kind gathered until they fill a region.
#[derive(Default)]
struct RegionStage {
    chunks: Vec<ChunkEntry>,
    plain: Vec<u8>,
}

/// Gives numbers to chunks and keeps account of them. It is also where the catalog and long recipes store their pieces.
pub(super) struct ChunkStore<'a, 'env> {
    keys: &'a RepositoryKeys,
    index: FingerprintIndex,
    /// Chunks that the manifest names but the storage lost: as good as unknown, so that they are stored again.
    lost: &'a RoaringTreemap,
    next_data: ChunkNumber,
    next_metadata: ChunkNumber,
    data: RegionStage,
    metadata: RegionStage,
    encoders: Pool<'env, Option<RegionEncoder>>,
    packer: Sender<RegionTicket>,
    /// Numbers the snapshot needs.
    necessary: RoaringTreemap,
    /// Numbers of the file being put together; they count only if it comes to an end.
    pending: RoaringTreemap,
    account: Account,
}

/// What went through a [`ChunkStore`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Account {
    /// Chunks that were not known.
    pub(super) chunks_new: u64,
    /// Their bytes.
    pub(super) data_plain_bytes: u64,
    /// Bytes of new catalog pieces.
    pub(super) metadata_plain_bytes: u64,
}

/// What a [`ChunkStore`] leaves behind once all is handed on.
pub(super) struct Assembled {
    pub(super) index: FingerprintIndex,
    pub(super) necessary: RoaringTreemap,
    pub(super) next_data: ChunkNumber,
    pub(super) next_metadata: ChunkNumber,
    pub(super) account: Account,
}

impl<'a, 'env> ChunkStore<'a, 'env> {
    pub(super) fn new(
        keys: &'a RepositoryKeys,
        index: FingerprintIndex,
        lost: &'a RoaringTreemap,
        next: (ChunkNumber, ChunkNumber),
        encoders: Pool<'env, Option<RegionEncoder>>,
        packer: Sender<RegionTicket>,
    ) -> Self {
        Self {
            keys,
            index,
            lost,
            next_data: next.0,
            next_metadata: next.1,
            data: RegionStage::default(),
            metadata: RegionStage::default(),
            encoders,
            packer,
            necessary: RoaringTreemap::new(),
            pending: RoaringTreemap::new(),
            account: Account::default(),
        }
    }

    /// The number of a chunk of the current file: the known one, or a new one, the bytes then being stored.
    pub(super) fn data_chunk(&mut self, fingerprint: Fingerprint, bytes: &[u8]) -> Result<ChunkNumber, EngineError> {
        let number = match self.known(&fingerprint)? {
            Some(number) => number,
            None => {
                let number = self.next_data;
                self.next_data.0 += 1;
                self.account.chunks_new += 1;
                self.account.data_plain_bytes += bytes.len() as u64;
                self.index.insert(fingerprint, number)?;
                self.add_to_region(
                    ContainerKind::Data,
                    ChunkEntry { number, fingerprint, length: length(bytes)? },
                    bytes,
                )?;
                number
            }
        };
        self.pending.insert(number.0);
        Ok(number)
    }

    /// The current file is complete: the snapshot needs its chunks.
    pub(super) fn keep_file(&mut self) {
        if !self.pending.is_empty() {
            self.necessary |= std::mem::take(&mut self.pending);
        }
    }

    /// The current file could not be read to its end: the snapshot does not hold it.
    pub(super) fn drop_file(&mut self) {
        self.pending.clear();
    }

    /// Counts chunks of the previous snapshot as needed by this one too.
    pub(super) fn keep_range(&mut self, range: std::ops::RangeInclusive<u64>) {
        self.necessary.insert_range(range);
    }

    fn known(&self, fingerprint: &Fingerprint) -> Result<Option<ChunkNumber>, EngineError> {
        let found = self.index.get(fingerprint)?;
        Ok(found.filter(|number| self.lost.is_empty() || !self.lost.contains(number.0)))
    }

    fn add_to_region(&mut self, kind: ContainerKind, chunk: ChunkEntry, bytes: &[u8]) -> Result<(), EngineError> {
        let stage = self.stage(kind);
        if !stage.chunks.is_empty() && stage.plain.len() + bytes.len() > REGION_PLAIN_BYTES_TARGET {
            self.flush(kind)?;
        }
        let stage = self.stage(kind);
        if stage.plain.capacity() == 0 {
            stage.plain.reserve_exact(REGION_PLAIN_BYTES_TARGET);
        }
        stage.chunks.push(chunk);
        stage.plain.extend_from_slice(bytes);
        Ok(())
    }

    fn stage(&mut self, kind: ContainerKind) -> &mut RegionStage {
        match kind {
            ContainerKind::Data => &mut self.data,
            ContainerKind::Metadata => &mut self.metadata,
        }
    }

    /// Hands the open region on to be encoded.
    fn flush(&mut self, kind: ContainerKind) -> Result<(), EngineError> {
        let stage = self.stage(kind);
        if stage.chunks.is_empty() {
            return Ok(());
        }
        let (chunks, plain) = (std::mem::take(&mut stage.chunks), std::mem::take(&mut stage.plain));
        let ticket = self.encoders.submit(move |encoder| match encoder {
            Some(encoder) => encoder.encode(chunks, &plain),
            None => Err(StoreError::Machine { operation: "preparing zstd", reason: "out of memory".to_owned() }),
        });
        // The packer goes away only after an error of its own, which is the one told.
        self.packer.send((kind, ticket)).map_err(|_| EngineError::Interrupted)
    }

    /// Hands on what is left.
    pub(super) fn finish(mut self) -> Result<Assembled, EngineError> {
        self.flush(ContainerKind::Data)?;
        self.flush(ContainerKind::Metadata)?;
        Ok(Assembled {
            index: self.index,
            necessary: self.necessary,
            next_data: self.next_data,
            next_metadata: self.next_metadata,
            account: self.account,
        })
    }
}

impl MetadataSink for ChunkStore<'_, '_> {
    fn store(&mut self, bytes: &[u8]) -> Result<ChunkNumber, StoreError> {
        let fingerprint = self.keys.metadata_fingerprint(bytes);
        let number = match self.known(&fingerprint).map_err(local)? {
            Some(number) => number,
            None => {
                let number = self.next_metadata;
                self.next_metadata.0 += 1;
                self.account.metadata_plain_bytes += bytes.len() as u64;
                self.index.insert(fingerprint, number).map_err(|error| local(error.into()))?;
                let chunk = ChunkEntry { number, fingerprint, length: length(bytes).map_err(local)? };
                self.add_to_region(ContainerKind::Metadata, chunk, bytes).map_err(local)?;
                number
            }
        };
        self.necessary.insert(number.0);
        Ok(number)
    }
}

fn length(bytes: &[u8]) -> Result<u32, EngineError> {
    let refused = |_| StoreError::limit("a chunk", "its length", bytes.len() as u64, u32::MAX.into());
    Ok(u32::try_from(bytes.len()).map_err(refused)?)
}

/// The sink's trait speaks the store's errors; what comes from the engine's own work files is told as such.
fn local(error: EngineError) -> StoreError {
    match error {
        EngineError::Store(error) => error,
        other => StoreError::Machine { operation: "keeping the index of chunks", reason: other.to_string() },
    }
}
