//! The stage that decides: every chunk in stream order is known or new, gets its number, goes into a region; every
//! entry into the catalog. It runs on one thread, so numbers and catalogs do not depend on how many others there are.

use super::borrow::Borrowing;
use super::flow::{Reached, Segment, Unusable};
use super::heal::Healer;
use super::local::LocalCatalog;
use super::older::Older;
use super::outcome::{Account, Assembled, Taken, Tally};
use super::regions::Regions;
use super::segments::Segments;
use crate::EngineError;
use crate::index::FingerprintIndex;
use roaring::RoaringTreemap;
use siltstone_store::catalog::MetadataSink;
use siltstone_store::container::ContainerKind;
use siltstone_store::manifest::{BottomK, Snapshot};
use siltstone_store::region::{ChunkEntry, split_region};
use siltstone_store::secrets::RepositoryKeys;
use siltstone_store::{ChunkNumber, ChunkRun, Fingerprint, StoreError};
use std::sync::atomic::Ordering;

/// Where new chunks go.
pub(super) enum Outlet<'env> {
    /// Into regions of their own, as they come.
    Regions(Box<Regions<'env>>),
    /// To the selector.
    Segments(Segments),
}

impl Outlet<'_> {
    fn push(&mut self, kind: ContainerKind, chunk: ChunkEntry, bytes: &[u8]) -> Result<(), EngineError> {
        match self {
            Self::Regions(regions) => regions.push(kind, chunk, bytes),
            Self::Segments(segments) => segments.push(chunk, bytes),
        }
    }

    /// Hands on what is open, and the checkpoint behind it.
    fn checkpoint(&mut self, reached: Reached) -> Result<(), EngineError> {
        match self {
            Self::Regions(regions) => regions.checkpoint(reached),
            Self::Segments(segments) => segments.checkpoint(reached),
        }
    }

    fn finish(self) -> Result<(), EngineError> {
        match self {
            Self::Regions(regions) => regions.finish(),
            Self::Segments(segments) => segments.finish(),
        }
    }
}

/// Gives numbers to chunks and keeps account of them. It is also where the catalog and long recipes store their pieces.
pub(super) struct ChunkStore<'a, 'env> {
    keys: &'a RepositoryKeys,
    local: &'a LocalCatalog,
    index: FingerprintIndex,
    /// Chunks of older snapshots, asked where the index knows nothing.
    older: Option<Older<'a>>,
    /// Other series, asked where neither knows anything.
    borrowing: Option<Borrowing<'a>>,
    /// New chunks that are not stored yet, for a lender may still be found that has them.
    waiting: Segment,
    /// The most that may wait, bytes; 0 once so much has waited.
    waiting_bytes_max: usize,
    /// A sample of the new chunks.
    sketch: BottomK,
    unusable: &'a Unusable,
    /// The first number that this run gives to a catalog piece.
    metadata_from: ChunkNumber,
    next_data: ChunkNumber,
    next_metadata: ChunkNumber,
    outlet: Outlet<'env>,
    healer: Healer,
    /// Numbers the snapshot needs.
    necessary: RoaringTreemap,
    /// Numbers that came up since the last entry: its own, and those of the parts of its recipe. They count once it is
    /// in the catalog.
    pending: RoaringTreemap,
    account: Account,
}

/// Chunks that need not be stored.
pub(super) struct Knowledge<'a> {
    pub(super) index: FingerprintIndex,
    pub(super) older: Option<Older<'a>>,
    pub(super) borrowing: Option<Borrowing<'a>>,
    /// The most that may wait for a lender to be found, bytes.
    pub(super) waiting_bytes: u64,
}

/// State of content that was met.
enum Met {
    /// Its chunk can be used.
    Known(ChunkNumber),
    /// Its chunk cannot be read.
    Hurt(ChunkNumber),
    /// No chunk holds it.
    New,
}

impl<'a, 'env> ChunkStore<'a, 'env> {
    pub(super) fn new(
        (keys, local): (&'a RepositoryKeys, &'a LocalCatalog),
        Knowledge { index, older, borrowing, waiting_bytes }: Knowledge<'a>,
        unusable: &'a Unusable,
        next: (ChunkNumber, ChunkNumber),
        (outlet, healer): (Outlet<'env>, Healer),
    ) -> Self {
        Self {
            keys,
            local,
            index,
            older,
            borrowing,
            waiting: Segment::default(),
            waiting_bytes_max: usize::try_from(waiting_bytes).unwrap_or(usize::MAX),
            sketch: BottomK::default(),
            unusable,
            metadata_from: next.1,
            next_data: next.0,
            next_metadata: next.1,
            outlet,
            healer,
            necessary: RoaringTreemap::new(),
            pending: RoaringTreemap::new(),
            account: Account::default(),
        }
    }

    /// The number of a chunk of the current file: the known one, or a new one, the bytes then being stored.
    pub(super) fn data_chunk(&mut self, fingerprint: Fingerprint, bytes: &[u8]) -> Result<ChunkNumber, EngineError> {
        let number = match self.known(&fingerprint, bytes)? {
            Met::Known(number) => number,
            Met::Hurt(number) => {
                self.account.data_plain_bytes += bytes.len() as u64;
                self.heal(number, fingerprint, bytes)?
            }
            Met::New => {
                if let Some(number) = self.borrowed(&fingerprint, bytes.len())? {
                    self.pending.insert(number.0);
                    return Ok(number);
                }
                let number = self.next_data;
                self.next_data.0 += 1;
                self.index.insert(fingerprint, number)?;
                self.take_new(ChunkEntry { number, fingerprint, length: length(bytes)? }, bytes)?;
                number
            }
        };
        self.pending.insert(number.0);
        Ok(number)
    }

    /// The current entry is in the catalog: the snapshot needs its chunks, and the nodes that were finished with it.
    pub(super) fn keep_entry(&mut self) {
        if !self.pending.is_empty() {
            self.necessary |= std::mem::take(&mut self.pending);
        }
    }

    /// The current entry could not be read to its end, or was refused: the snapshot does not hold it.
    pub(super) fn drop_entry(&mut self) {
        self.pending.clear();
    }

    /// Chunks of the current file that the previous snapshot has.
    pub(super) fn known_run(&mut self, run: ChunkRun) {
        self.pending.insert_range(run.range());
    }

    /// Counts chunks of the previous snapshot as needed by this one too.
    pub(super) fn keep_range(&mut self, range: std::ops::RangeInclusive<u64>) {
        self.necessary.insert_range(range);
    }

    /// Counts a chunk of the previous snapshot as needed by this one too, unless it cannot be read.
    pub(super) fn keep_known(&mut self, number: ChunkNumber) -> bool {
        let is_known = !self.is_unusable(number);
        if is_known {
            self.necessary.insert(number.0);
        }
        is_known
    }

    /// Bytes of new chunks so far, those that wait included.
    pub(super) fn new_bytes(&self) -> u64 {
        self.account.data_plain_bytes + self.account.metadata_plain_bytes + self.waiting.plain.len() as u64
    }

    /// Tells whether a checkpoint can be made: none is once something was healed, for only the end of the run hands its
    /// numbers over.
    pub(super) fn takes_checkpoints(&self) -> bool {
        !self.healer.has_any()
    }

    /// Stores what waits, and sets aside the numbers of the current entry: what is stored until
    /// [`Self::end_checkpoint`] is the checkpoint's alone.
    pub(super) fn begin_checkpoint(&mut self) -> Result<RoaringTreemap, EngineError> {
        self.end_waiting()?;
        Ok(self.pending.clone())
    }

    /// Hands on a checkpoint; then goes on with the numbers that were set aside.
    pub(super) fn end_checkpoint(
        &mut self,
        set_aside: RoaringTreemap,
        snapshot: Snapshot,
        tally: Tally,
        is_last: bool,
    ) -> Result<(), EngineError> {
        let direct = &self.necessary | std::mem::replace(&mut self.pending, set_aside);
        let next = (self.next_data, self.next_metadata);
        let taken = self.taken();
        self.outlet.checkpoint(Reached { snapshot, direct, taken, next, tally, account: self.account, is_last })
    }

    fn taken(&self) -> Vec<Taken> {
        self.borrowing.as_ref().map(Borrowing::taken).unwrap_or_default()
    }

    fn known(&mut self, fingerprint: &Fingerprint, bytes: &[u8]) -> Result<Met, EngineError> {
        if let Some(number) = self.index.get(fingerprint)? {
            return Ok(if self.is_unusable(number) { Met::Hurt(number) } else { Met::Known(number) });
        }
        let lost = &self.unusable.lost;
        let Some(number) = self.older.as_mut().and_then(|older| older.find(fingerprint, lost)) else {
            return Ok(Met::New);
        };
        self.index.insert(*fingerprint, number)?;
        if self.is_unusable(number) {
            return Ok(Met::Hurt(number));
        }
        self.account.reused.chunks += 1;
        self.account.reused.plain_bytes += bytes.len() as u64;
        Ok(Met::Known(number))
    }

    /// The number of a chunk that another series lends.
    fn borrowed(&mut self, fingerprint: &Fingerprint, bytes: usize) -> Result<Option<ChunkNumber>, EngineError> {
        let Some(borrowing) = &mut self.borrowing else { return Ok(None) };
        let found = borrowing.find(fingerprint, bytes, (&mut self.next_data, &self.waiting.chunks))?;
        self.account.borrowed = borrowing.borrowed;
        if let Some(number) = found {
            self.index.insert(*fingerprint, number)?;
        }
        Ok(found)
    }

    /// Stores a new chunk, now or once it has waited long enough.
    fn take_new(&mut self, chunk: ChunkEntry, bytes: &[u8]) -> Result<(), EngineError> {
        let is_searching = self.borrowing.as_ref().is_some_and(Borrowing::is_searching);
        if is_searching && self.waiting.plain.len() + bytes.len() <= self.waiting_bytes_max {
            self.waiting.chunks.push(chunk);
            self.waiting.plain.extend_from_slice(bytes);
            return Ok(());
        }
        self.end_waiting()?;
        self.store_new(chunk, bytes)
    }

    /// Stores what waited, but for what a lender has.
    fn end_waiting(&mut self) -> Result<(), EngineError> {
        let Segment { chunks, plain } = std::mem::take(&mut self.waiting);
        for (chunk, bytes) in split_region(&chunks, &plain) {
            if !self.borrowing.as_mut().is_some_and(|borrowing| borrowing.takes(&chunk)) {
                self.store_new(chunk, bytes)?;
            }
        }
        self.account.borrowed = self.borrowing.as_ref().map(|borrowing| borrowing.borrowed).unwrap_or_default();
        // Nothing is gained by waiting again.
        self.waiting_bytes_max = 0;
        Ok(())
    }

    fn store_new(&mut self, chunk: ChunkEntry, bytes: &[u8]) -> Result<(), EngineError> {
        self.sketch.offer(&chunk.fingerprint, chunk.number);
        self.account.chunks_new += 1;
        self.account.data_plain_bytes += bytes.len() as u64;
        self.outlet.push(ContainerKind::Data, chunk, bytes)
    }

    fn is_unusable(&self, number: ChunkNumber) -> bool {
        let Unusable { lost, catalog_damaged } = self.unusable;
        let is_earlier_catalog = number.is_metadata() && number < self.metadata_from;
        let is_hurt = (is_earlier_catalog && catalog_damaged.load(Ordering::Acquire)) || lost.contains(number.0);
        is_hurt && !self.healer.has(number)
    }

    /// Stores a chunk again under its number.
    fn heal(
        &mut self,
        number: ChunkNumber,
        fingerprint: Fingerprint,
        bytes: &[u8],
    ) -> Result<ChunkNumber, EngineError> {
        self.account.healed.chunks += 1;
        self.account.healed.plain_bytes += bytes.len() as u64;
        self.healer.push(ChunkEntry { number, fingerprint, length: length(bytes)? }, bytes)?;
        Ok(number)
    }

    /// Hands on what is left.
    pub(super) fn finish(mut self) -> Result<Assembled, EngineError> {
        self.keep_entry();
        self.end_waiting()?;
        let taken = self.taken();
        self.outlet.finish()?;
        let healed = self.healer.finish()?;
        Ok(Assembled {
            healed,
            taken,
            directory: self.borrowing.and_then(Borrowing::into_directory),
            sketch: self.sketch,
            index: self.index,
            older: self.older.map(Older::finish),
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
        let number = match self.known(&fingerprint, bytes).map_err(local)? {
            Met::Known(number) => number,
            Met::Hurt(number) => {
                self.account.metadata_plain_bytes += bytes.len() as u64;
                self.heal(number, fingerprint, bytes).map_err(local)?
            }
            Met::New => {
                let number = self.next_metadata;
                self.next_metadata.0 += 1;
                self.account.metadata_plain_bytes += bytes.len() as u64;
                self.index.insert(fingerprint, number).map_err(|error| local(error.into()))?;
                let chunk = ChunkEntry { number, fingerprint, length: length(bytes).map_err(local)? };
                self.outlet.push(ContainerKind::Metadata, chunk, bytes).map_err(local)?;
                number
            }
        };
        self.local.note(number, bytes);
        self.pending.insert(number.0);
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
