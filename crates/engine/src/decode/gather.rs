//! Reading many regions, or chunks, that hang on others: every region once, bases before what hangs on them.
//!
//! One by one, a chunk in a chain of deltas would cost the decoding of all below it, again and again: the bases of one
//! region lie in many others, theirs in still more.

use super::spill::Spilled;
use super::{
    Bytes, DecodeSettings, DecodeVisitor, Decoding, GAP_BYTES_DEFAULT, Order, Plan, PlannedRegion, Spill, Tally, Worker,
};
use crate::Resources;
use crate::chunks::{Address, ChunkSource};
use crate::held::HeldBytes;
use crate::observer::Observer;
use crate::parallel::{Pool, lock};
use siltstone_store::manifest::Manifest;
use siltstone_store::region::{ChunkEntry, split_region};
use siltstone_store::{ChunkNumber, StoreError};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::Scope;

/// The longest range read.
const READ_BYTES_MAX: u64 = 4 << 20;

/// Chunks, each verified, and why regions of others cannot be decoded.
pub(crate) type Gathered<T = Bytes> = (HashMap<ChunkNumber, T>, Vec<Arc<StoreError>>);

/// Bytes of a chunk that was verified.
#[derive(Debug)]
pub(crate) enum HeldChunk {
    InMemory(Bytes),
    InFile(Spilled),
}

impl HeldChunk {
    /// Reads the bytes.
    ///
    /// # Errors
    /// The temporary file no longer gives them.
    pub(crate) fn read(&self) -> Result<Bytes, StoreError> {
        match self {
            Self::InMemory(bytes) => Ok(bytes.clone()),
            Self::InFile(spilled) => spilled.read(),
        }
    }

    /// Bytes that they take.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::InMemory(bytes) => bytes.len() as u64,
            Self::InFile(spilled) => spilled.bytes(),
        }
    }
}

/// Reads regions and chunks.
pub(crate) struct Gatherer<'env> {
    pub(crate) chunks: Arc<ChunkSource<'env>>,
    order: Order<'env>,
    pool: Pool<'env, Worker>,
    /// Threads of the pool.
    threads: usize,
    /// Bytes that may wait for bases in memory; the rest goes to a temporary file in the folder.
    waiting_bytes: u64,
    spill_folder: PathBuf,
    /// Counts of all that is gathered.
    pub(crate) tally: Arc<Tally>,
    observer: &'env dyn Observer,
}

/// Receives regions that were asked for, from several threads.
pub(crate) trait RegionVisitor: Send + Sync {
    /// Sees one region. Its chunks are *not* verified; its bases are, but where single chunks are asked for.
    fn visit(&self, address: Address, chunks: &[ChunkEntry], plain: &[u8], bases: &[&[u8]]);
}

struct Gathering<'g, T> {
    wanted: usize,
    visitor: Arc<T>,
    failures: Mutex<BTreeMap<usize, Arc<StoreError>>>,
    observer: &'g dyn Observer,
}

impl<T: RegionVisitor> DecodeVisitor for Gathering<'_, T> {
    fn decoded(&self, region: PlannedRegion, chunks: &[ChunkEntry], plain: &[u8]) {
        self.decoded_delta(region, chunks, plain, &[]);
    }

    fn decoded_delta(&self, region: PlannedRegion, chunks: &[ChunkEntry], plain: &[u8], bases: &[&[u8]]) {
        if region.node < self.wanted {
            self.visitor.visit(region.address, chunks, plain, bases);
        }
    }

    fn failed(&self, region: PlannedRegion, _: PlannedRegion, error: &Arc<StoreError>) {
        if region.node < self.wanted {
            lock(&self.failures).insert(region.node, error.clone());
        }
    }

    fn spill_failed(&self, _: &StoreError) {}

    fn is_cancelled(&self) -> bool {
        self.observer.is_cancelled()
    }
}

/// Takes some chunks of regions, and keeps them in its way.
struct Choice<'r, T> {
    source: Arc<ChunkSource<'r>>,
    wanted: BTreeMap<Address, Vec<ChunkNumber>>,
    keep: Keep<'r, T>,
    found: Mutex<HashMap<ChunkNumber, T>>,
}

/// Makes something of a chunk's bytes that lasts.
type Keep<'r, T> = Box<dyn Fn(&[u8]) -> T + Send + Sync + 'r>;

impl<T: Send> RegionVisitor for Choice<'_, T> {
    fn visit(&self, address: Address, chunks: &[ChunkEntry], plain: &[u8], _: &[&[u8]]) {
        let wanted = self.wanted.get(&address).map_or(&[][..], Vec::as_slice);
        let keys = self.source.repository().keys();
        let members = split_region(chunks, plain).filter(|(chunk, _)| wanted.contains(&chunk.number));
        let genuine = members.filter(|(chunk, bytes)| keys.fingerprint_of(chunk.number, bytes) == chunk.fingerprint);
        let found: Vec<_> = genuine.map(|(chunk, bytes)| (chunk.number, (self.keep)(bytes))).collect();
        lock(&self.found).extend(found);
    }
}

impl<'env> Gatherer<'env> {
    /// Starts its threads, which end with it. At most `waiting_bytes` wait for bases in memory.
    ///
    /// # Errors
    /// The system gives no threads.
    pub(crate) fn start<'scope>(
        scope: &'scope Scope<'scope, 'env>,
        threads: usize,
        chunks: Arc<ChunkSource<'env>>,
        manifest: &'env Manifest,
        waiting_bytes: u64,
        spill_folder: PathBuf,
        resources: &'env Resources,
    ) -> Result<Self, StoreError> {
        let pool = Pool::start(scope, "decode", threads, threads, || Ok(Worker::default()))?;
        let (order, observer) = (Order::new(manifest), &*resources.observer);
        Ok(Self { chunks, order, pool, threads, waiting_bytes, spill_folder, tally: Arc::default(), observer })
    }

    /// Gives `visitor` the regions at these addresses, each given once, as far as they can be decoded. Gives the
    /// reasons why others could not be, by their places in the list.
    ///
    /// # Errors
    /// A worker went away.
    pub(crate) fn regions<T: RegionVisitor + 'env>(
        &self,
        wanted: &[Address],
        visitor: &Arc<T>,
    ) -> Result<BTreeMap<usize, Arc<StoreError>>, StoreError> {
        self.decode(wanted, visitor, true)
    }

    fn decode<T: RegionVisitor + 'env>(
        &self,
        wanted: &[Address],
        visitor: &Arc<T>,
        verifies_bases: bool,
    ) -> Result<BTreeMap<usize, Arc<StoreError>>, StoreError> {
        let plan = Plan::new(&self.chunks, wanted, &self.order);
        let settings = DecodeSettings {
            gap_bytes: GAP_BYTES_DEFAULT,
            read_bytes_max: READ_BYTES_MAX,
            waiting_bytes_max: self.waiting_bytes,
            verifies_bases,
            spill_folder: self.spill_folder.clone(),
        };
        let (visitor, observer) = (visitor.clone(), self.observer);
        let visitor = Gathering { wanted: wanted.len(), visitor, failures: Mutex::default(), observer };
        let decoding = Arc::new(Decoding::new(self.chunks.clone(), plan, settings, self.tally.clone(), visitor));
        decoding.wait(decoding.start(&self.pool, self.threads))?;
        Ok(std::mem::take(&mut *lock(&decoding.visitor().failures)))
    }

    /// These chunks, each verified, as far as they can be had, and why regions of others cannot be decoded.
    ///
    /// # Errors
    /// A worker went away.
    pub(crate) fn chunks(&self, numbers: &BTreeSet<ChunkNumber>) -> Result<Gathered, StoreError> {
        self.kept(numbers, Box::new(Bytes::copy_from_slice))
    }

    /// These chunks, each verified, as far as they can be had, and why regions of others cannot be decoded: so many
    /// bytes in memory, the rest in a temporary file of their own. What that has no room for is in memory too.
    ///
    /// # Errors
    /// A worker went away.
    pub(crate) fn spilled(
        &self,
        numbers: &BTreeSet<ChunkNumber>,
        memory_bytes: u64,
    ) -> Result<Gathered<HeldChunk>, StoreError> {
        let (spill, chunks, in_memory) = (Spill::new(&self.spill_folder), self.chunks.clone(), AtomicU64::new(0));
        let keep = move |bytes: &[u8]| {
            let before = in_memory.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            let is_over = before + bytes.len() as u64 > memory_bytes;
            let bytes = Bytes::copy_from_slice(bytes);
            let held = HeldBytes::Plain(bytes.clone());
            let spilled = is_over.then(|| spill.write(chunks.repository(), &held).ok()).flatten();
            spilled.map_or(HeldChunk::InMemory(bytes), HeldChunk::InFile)
        };
        self.kept(numbers, Box::new(keep))
    }

    fn kept<T: Send + 'env>(
        &self,
        numbers: &BTreeSet<ChunkNumber>,
        keep: Keep<'env, T>,
    ) -> Result<Gathered<T>, StoreError> {
        let mut wanted: BTreeMap<Address, Vec<ChunkNumber>> = BTreeMap::new();
        let mut failures = Vec::new();
        for number in numbers {
            match self.chunks.place_of(*number) {
                Ok((container, place)) => {
                    wanted.entry(Address { container, region: place.region }).or_default().push(*number);
                }
                Err(error) => failures.push(Arc::new(error)),
            }
        }
        if wanted.is_empty() {
            return Ok((HashMap::new(), failures));
        }
        let addresses: Vec<Address> = wanted.keys().copied().collect();
        let choice = Arc::new(Choice { source: self.chunks.clone(), wanted, keep, found: Mutex::default() });
        // The choice verifies what it takes.
        failures.extend(self.decode(&addresses, &choice, false)?.into_values());
        let found = std::mem::take(&mut *lock(&choice.found));
        Ok((found, failures))
    }
}
