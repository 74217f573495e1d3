//! Decoding: decoding many regions, bases and deltas, with every container visited once. It knows nothing of files.
//!
//! ```text
//! plan       regions wanted, and the closure of their bases                      (`Plan`)
//! visit      one container: neighbouring regions by one range read each, then of every region
//! arrive       plain: decode         delta: decode if its bases have come, else it waits
//! deliver      to the visitor; its chunks that others need, each verified, into their slots
//!              -> whoever is complete is decoded next
//! ```
//! Containers come in always-forward-reference order (module `order`), which lets deltas come before their bases where
//! the layout allows; a base that comes first waits by the same mechanism. A cascade is a list of ready regions, not a
//! recursion: chains may be thousands long. All workers take from that list.
//!
//! **What waits** (encoded deltas, bases of deltas that lack others) is held in memory up to a budget, each base once,
//! and copied nowhere: where most of a region is bases, they stay in the memory that it was decoded into. Beyond the
//! budget bases are compressed where that makes them much smaller, those needed last first. All others, and compressed
//! ones where even these are too much, go to one temporary file, from which they are read back when the last base has
//! come. The paper prewrites a delta at its target offset; here a delta is of a region, whose chunks may belong to many
//! places of many files, and the versions between need none at all: hence a file of its own. Not counted are the lists
//! of chunks and bases of a waiting delta, 1 to 2 KB each.
//!
//! **Damage** goes the way of the bytes: what cannot be read, decoded or verified fails, and so do the deltas that need
//! it, with the same error; everything else goes on. Every node of the plan is told to the visitor exactly once, as
//! decoded or failed.
//!
//! **Bases are verified if asked for.** A chunk that is compared with its fingerprint in the end is right however it
//! came about, and in a chain of deltas the hashing of all that lies between is a quarter of the work. Without it a
//! wrong base is told as damage of what was made of it, and what uses none of its bytes is whole.

mod gather;
mod order;
mod plan;
mod spill;
#[cfg(test)]
mod tests;
mod visit;
mod waiting;

pub(crate) use gather::{Gatherer, HeldChunk, RegionVisitor};
pub(crate) use order::Order;
pub(crate) use plan::Plan;

use crate::chunks::{Address, ChunkSource};
use crate::held::{Compressor, HeldBytes};
use crate::parallel::{Pool, Ticket, lock, lost_worker};
use crate::spares::{Spares, is_room_for};
/// Bytes that several may need: whoever has a part of them has no copy.
pub(crate) use bytes::Bytes;
use plan::Feed;
use siltstone_store::StoreError;
use siltstone_store::container::ContainerReader;
use siltstone_store::region::{ChunkEntry, EncodedRegion, RegionDecoder, split_region};
use spill::Spill;
use std::collections::VecDeque;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;
use waiting::{CompleteDelta, Item, TextMemory, Waited, Waiting};

/// Gaps between needed regions up to this are read rather than asked around, unless said otherwise.
pub(crate) const GAP_BYTES_DEFAULT: u64 = 128 << 10;
/// Memory that is kept for the next regions, bytes: at most a sixteenth of what may wait, which is less by it.
const SPARE_BYTES_MAX: u64 = 8 << 20;
/// How often whoever waits for work asks whether to stop.
const STOP_POLL: Duration = Duration::from_millis(100);

/// Bounds of an decoding.
#[derive(Clone, Debug)]
pub(crate) struct DecodeSettings {
    /// Needed regions with at most this between them are fetched by one range read.
    pub(crate) gap_bytes: u64,
    /// The longest range read, unless one region is longer.
    pub(crate) read_bytes_max: u64,
    /// How much may wait in memory.
    pub(crate) waiting_bytes_max: u64,
    /// True if each base is compared with its fingerprint.
    pub(crate) verifies_bases: bool,
    /// Where the temporary file is made.
    pub(crate) spill_folder: PathBuf,
}

/// A region of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PlannedRegion {
    /// Its place among the regions wanted; beyond those if it only holds bases.
    pub(crate) node: usize,
    pub(crate) address: Address,
    /// True if the plan already said that it cannot be decoded.
    pub(crate) is_fault: bool,
}

/// Receives what is decoded. Called from several threads.
pub(crate) trait DecodeVisitor: Send + Sync {
    /// A region was decoded. Its chunks are *not* verified.
    fn decoded(&self, region: PlannedRegion, chunks: &[ChunkEntry], plain: &[u8]);

    /// Takes a decoded delta, with its bases, which are verified if the settings say so.
    fn decoded_delta(&self, region: PlannedRegion, chunks: &[ChunkEntry], plain: &[u8], bases: &[&[u8]]) {
        let _ = bases;
        self.decoded(region, chunks, plain);
    }

    /// A region cannot be had, because of damage to `origin`: the region itself, or one that it needs.
    fn failed(&self, region: PlannedRegion, origin: PlannedRegion, error: &Arc<StoreError>);

    /// A region that had failed because of another is damaged too.
    fn failed_too(&self, region: PlannedRegion, error: &Arc<StoreError>) {
        let _ = (region, error);
    }

    /// Tells whether to read a container whole, to look at all of it.
    fn reads_whole(&self, container: usize) -> bool {
        let _ = container;
        false
    }

    /// A container was read whole, or could not be; then its regions fail too.
    fn whole(&self, container: usize, reader: &ContainerReader, object: Result<&[u8], &Arc<StoreError>>) {
        let _ = (container, reader, object);
    }

    /// A container was visited.
    fn visited(&self, container: usize, bytes_read: u64) {
        let _ = (container, bytes_read);
    }

    /// The temporary file cannot be written: from now on more memory is used than allowed.
    fn spill_failed(&self, error: &StoreError);

    /// Tells whether to stop.
    fn is_cancelled(&self) -> bool;
}

/// Work done in decoding, shared by all decoders of one run.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Containers visited, each time counted.
    pub(crate) containers_read: AtomicU64,
    /// Regions decoded, each time counted.
    pub(crate) regions_decoded: AtomicU64,
    /// Bytes read from them, gaps included, indexes not.
    pub(crate) bytes_read: AtomicU64,
    /// Bytes written to temporary files.
    pub(crate) bytes_prewritten: AtomicU64,
    /// True if the user asked to stop before all was decoded.
    is_stopped: AtomicBool,
}

impl Tally {
    /// Tells whether the user asked to stop before all was decoded: part of what was asked for is then missing.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }
}

/// Bases with the slots that they go into, the text that they lie in, and memory that nobody needs any longer.
type HeldBases<'f> = (Vec<(&'f [Feed], Bytes)>, Option<TextMemory>, Vec<u8>);

/// A region on its way through the workers.
enum Ready {
    /// As it was read.
    Sealed { node: u32, reader: Arc<ContainerReader>, sealed: Vec<u8> },
    /// A delta with all its bases.
    Complete { node: u32 },
}

/// State that the workers share.
struct Shared {
    waiting: Waiting,
    ready: VecDeque<Ready>,
    /// A worker panicked, or the user asked to stop: nobody waits any longer.
    is_over: bool,
}

/// The decoding of one plan.
pub(crate) struct Decoding<'r, S> {
    chunks: Arc<ChunkSource<'r>>,
    plan: Plan,
    settings: DecodeSettings,
    tally: Arc<Tally>,
    visitor: S,
    compressor: Compressor,
    spill: Spill,
    spares: Arc<Mutex<Spares>>,
    shared: Mutex<Shared>,
    changed: Condvar,
}

/// A worker of the pool that decodings run on.
#[derive(Debug, Default)]
pub(crate) struct Worker {
    decoder: RegionDecoder,
    /// Memory for the next region: that of the last one, if nobody needs its text. It is still in the cache.
    text: Vec<u8>,
    /// Memory for what the region at work hangs on.
    room: Vec<u8>,
}

/// The text of a region, whose memory is used again once nobody needs it.
struct RegionText {
    text: Vec<u8>,
    spares: Arc<Mutex<Spares>>,
}

impl AsRef<[u8]> for RegionText {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}

impl Drop for RegionText {
    fn drop(&mut self) {
        lock(&self.spares).give(std::mem::take(&mut self.text));
    }
}

impl<'r, S: DecodeVisitor> Decoding<'r, S> {
    /// Prepares the decoding of a plan of this source.
    pub(crate) fn new(
        chunks: Arc<ChunkSource<'r>>,
        plan: Plan,
        settings: DecodeSettings,
        tally: Arc<Tally>,
        visitor: S,
    ) -> Self {
        let spare_bytes = (settings.waiting_bytes_max / 16).min(SPARE_BYTES_MAX);
        let waiting = Waiting::new(&plan, settings.waiting_bytes_max - spare_bytes);
        let spill = Spill::new(&settings.spill_folder);
        let shared = Mutex::new(Shared { waiting, ready: VecDeque::new(), is_over: false });
        let spares = Arc::new(Mutex::new(Spares::at_most(usize::try_from(spare_bytes).unwrap_or_default())));
        let (compressor, changed) = (Compressor::default(), Condvar::new());
        Self { chunks, plan, settings, tally, visitor, compressor, spill, spares, shared, changed }
    }

    /// Whoever receives what is decoded.
    pub(crate) fn visitor(&self) -> &S {
        &self.visitor
    }

    /// Hands the work to a pool of so many workers, which [`Self::wait`] ends. Of two decodings on one pool the first
    /// must be done before the second is started.
    pub(crate) fn start<'env>(self: &Arc<Self>, pool: &Pool<'env, Worker>, workers: usize) -> Vec<Ticket<()>>
    where
        S: 'env,
        'r: 'env,
    {
        for (node, error) in &self.plan.faults {
            self.fail(*node, error);
        }
        let mut tickets = Vec::new();
        for visit in 0..self.plan.visits.len() {
            let this = self.clone();
            tickets.push(pool.submit(move |worker| this.guarded(|| this.visit(visit, worker))));
        }
        // Behind all visits, so that each of those is under way when a worker waits here.
        for _ in 0..workers {
            let this = self.clone();
            tickets.push(pool.submit(move |worker| this.guarded(|| this.help(worker))));
        }
        tickets
    }

    /// Waits until all is done, or the user asked to stop.
    ///
    /// # Errors
    /// A worker went away: then the visitor was not told of every region.
    pub(crate) fn wait(&self, tickets: Vec<Ticket<()>>) -> Result<(), StoreError> {
        let outcomes: Vec<_> = tickets.into_iter().map(Ticket::wait).collect();
        outcomes.into_iter().collect::<Result<(), _>>()?;
        if self.lock().waiting.left == 0 {
            return Ok(());
        }
        let is_stopped = self.visitor.is_cancelled();
        self.tally.is_stopped.fetch_or(is_stopped, Ordering::Relaxed);
        if is_stopped { Ok(()) } else { Err(lost_worker()) }
    }

    /// Does everything on this thread.
    #[cfg(test)]
    pub(crate) fn run(&self) {
        let mut worker = Worker::default();
        for (node, error) in &self.plan.faults {
            self.fail(*node, error);
        }
        (0..self.plan.visits.len()).for_each(|visit| self.visit(visit, &mut worker));
    }

    /// Runs a part of the work; a panic in it ends the waiting of the others.
    fn guarded(&self, work: impl FnOnce()) {
        struct Guard<'g, 'r, S: DecodeVisitor>(&'g Decoding<'r, S>);
        impl<S: DecodeVisitor> Drop for Guard<'_, '_, S> {
            fn drop(&mut self) {
                if std::thread::panicking() {
                    self.0.lock().is_over = true;
                    self.0.changed.notify_all();
                }
            }
        }
        let _guard = Guard(self);
        work();
    }

    fn planned(&self, node: u32) -> PlannedRegion {
        let address = self.plan.address(node as usize);
        let is_fault = self.plan.faults.contains_key(&node);
        PlannedRegion { node: node as usize, address, is_fault }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        lock(&self.shared)
    }

    /// Decodes what is ready until nothing is.
    fn drain(&self, worker: &mut Worker) {
        loop {
            if self.visitor.is_cancelled() {
                return;
            }
            let Some(ready) = self.lock().ready.pop_front() else { return };
            self.process(ready, worker);
        }
    }

    /// Decodes what becomes ready until all is done.
    fn help(&self, worker: &mut Worker) {
        loop {
            self.drain(worker);
            let shared = self.lock();
            if shared.waiting.left == 0 || shared.is_over || self.visitor.is_cancelled() {
                return;
            }
            if shared.ready.is_empty() {
                drop(self.changed.wait_timeout(shared, STOP_POLL));
            }
        }
    }

    fn process(&self, ready: Ready, worker: &mut Worker) {
        match ready {
            Ready::Sealed { node, reader, sealed } => {
                let region = self.plan.address(node as usize).region;
                match self.chunks.unseal(&reader, region, sealed) {
                    Ok(encoded) if encoded.bases.is_empty() => self.decode(node, encoded, &[], worker),
                    Ok(encoded) => self.add_region(node, encoded),
                    Err(error) => self.fail_itself(node, error),
                }
            }
            Ready::Complete { node } => {
                let complete = self.lock().waiting.take(node);
                if let Err(error) = complete.ok_or_else(incomplete).and_then(|it| self.decode_delta(node, it, worker)) {
                    self.fail(node, &Arc::new(error));
                }
            }
        }
    }

    /// A region delta has come: it is ready, or waits.
    fn add_region(&self, node: u32, encoded: EncodedRegion) {
        let mut shared = self.lock();
        if shared.waiting.add_region(node, encoded) {
            shared.ready.push_front(Ready::Complete { node });
        } else {
            self.keep_within_budget(shared);
        }
    }

    /// Compresses what is too much, or writes it to the temporary file.
    fn keep_within_budget(&self, mut shared: MutexGuard<'_, Shared>) {
        let excess = shared.waiting.excess();
        drop(shared);
        for excess in excess {
            let smaller = match (excess.item, &excess.bytes) {
                (Item::Base(_), HeldBytes::Plain(bytes)) => {
                    let copy = || excess.is_of_sparse_text.then(|| HeldBytes::Plain(Bytes::copy_from_slice(bytes)));
                    self.compressor.compress(bytes).or_else(copy)
                }
                // An encoded delta is as small as it gets.
                (Item::Payload(_), _) | (_, HeldBytes::Compressed { .. }) => None,
            };
            if let Some(smaller) = smaller {
                self.lock().waiting.replace(excess, smaller);
                continue;
            }
            match self.spill.write(self.chunks.repository(), &excess.bytes) {
                Ok(spilled) => {
                    self.tally.bytes_prewritten.fetch_add(excess.bytes.memory_bytes(), Ordering::Relaxed);
                    self.lock().waiting.spilled(excess.item, spilled);
                }
                Err(error) => {
                    if self.lock().waiting.break_spill() {
                        self.visitor.spill_failed(&error);
                    }
                    return;
                }
            }
        }
    }

    /// Decodes a delta, with what it waited for.
    fn decode_delta(&self, node: u32, complete: CompleteDelta, worker: &mut Worker) -> Result<(), StoreError> {
        let CompleteDelta { region, payload, bases } = complete;
        let payload = brought_back(payload)?.bytes()?.into();
        let bases = bases.into_iter().map(brought_back).collect::<Result<Vec<_>, _>>()?;
        let mut memory = std::mem::take(&mut worker.room);
        let room_bytes = bases.iter().map(HeldBytes::room_bytes).sum();
        if memory.len() < room_bytes {
            memory.resize(room_bytes, 0);
        }
        let mut room = memory.as_mut_slice();
        let mut texts = Vec::with_capacity(bases.len());
        for base in &bases {
            let (text, rest) = base.bytes_in(room)?;
            texts.push(text);
            room = rest;
        }
        self.decode(node, EncodedRegion { payload, ..region }, &texts, worker);
        worker.room = memory;
        Ok(())
    }

    fn decode(&self, node: u32, mut encoded: EncodedRegion, bases: &[&[u8]], worker: &mut Worker) {
        let address = self.plan.address(node as usize);
        let chunks = std::mem::take(&mut encoded.chunks);
        let (name, part) = (self.chunks.object_name(address.container), format!("region {}", address.region));
        let memory = self.memory_for(usize::try_from(encoded.plain_bytes).unwrap_or(usize::MAX), worker);
        match encoded.decode_into(memory, &mut worker.decoder, &name, &part, bases) {
            Ok(text) => worker.text = self.deliver(node, &chunks, text, bases),
            Err(error) => self.fail(node, &Arc::new(error)),
        }
    }

    /// Memory to decode a region of so many bytes into.
    fn memory_for(&self, bytes: usize, worker: &mut Worker) -> Vec<u8> {
        let memory = std::mem::take(&mut worker.text);
        if is_room_for(bytes, &memory) {
            return memory;
        }
        let mut spares = lock(&self.spares);
        spares.give(memory);
        spares.take(bytes)
    }

    /// Gives a decoded region to the visitor and its chunks to whom they are bases of. Returns its memory, unless they
    /// lie in it.
    fn deliver(&self, node: u32, chunks: &[ChunkEntry], text: Vec<u8>, bases: &[&[u8]]) -> Vec<u8> {
        self.tally.regions_decoded.fetch_add(1, Ordering::Relaxed);
        match bases {
            [] => self.visitor.decoded(self.planned(node), chunks, &text),
            bases => self.visitor.decoded_delta(self.planned(node), chunks, &text, bases),
        }
        let mut good: Vec<(&[Feed], Range<usize>)> = Vec::new();
        let mut failing: Vec<(u32, Arc<StoreError>)> = Vec::new();
        let (feeds, mut end) = (self.plan.feeds(node), 0);
        for (chunk, bytes) in split_region(chunks, &text) {
            let place = end..end + bytes.len();
            end = place.end;
            let from = feeds.partition_point(|feed| feed.number < chunk.number);
            let of_this = &feeds[from..feeds.partition_point(|feed| feed.number <= chunk.number)];
            if of_this.is_empty() {
                continue;
            }
            let is_genuine =
                || self.chunks.repository().keys().fingerprint_of(chunk.number, bytes) == chunk.fingerprint;
            if !self.settings.verifies_bases || is_genuine() {
                good.push((of_this, place));
            } else {
                let address = self.plan.address(node as usize);
                let part = format!("region {}, chunk {}", address.region, chunk.number);
                let reason = "its content does not match its fingerprint";
                let error = StoreError::damaged(&self.chunks.object_name(address.container), part, reason);
                let error = Arc::new(error);
                failing.extend(of_this.iter().map(|feed| (feed.to, error.clone())));
            }
        }
        let (good, lies_in, memory) = self.held(node, text, good);
        let mut shared = self.lock();
        let mut complete = Vec::new();
        shared.waiting.add_bases(good, lies_in, &mut complete);
        for node in complete {
            shared.ready.push_front(Ready::Complete { node });
        }
        shared.waiting.finish(node);
        self.changed.notify_all();
        self.keep_within_budget(shared);
        for (failing, error) in failing {
            self.fail_from(node, failing, &error);
        }
        memory
    }

    /// Holds bases at these places of a node's text for as long as they are needed. Where they are most of it, they lie
    /// in its memory; else they are copied, and it is returned.
    fn held<'f>(&self, node: u32, text: Vec<u8>, bases: Vec<(&'f [Feed], Range<usize>)>) -> HeldBases<'f> {
        let base_bytes: usize = bases.iter().map(|(_, place)| place.len()).sum();
        if 2 * base_bytes < text.capacity() || bases.is_empty() {
            let copies = bases.into_iter().map(|(feeds, place)| (feeds, Bytes::copy_from_slice(&text[place])));
            return (copies.collect(), None, text);
        }
        let memory = TextMemory { node, bytes: text.capacity() as u64 };
        let text = Bytes::from_owner(RegionText { text, spares: self.spares.clone() });
        let bases = bases.into_iter().map(|(feeds, place)| (feeds, text.slice(place)));
        (bases.collect(), Some(memory), Vec::new())
    }

    /// A node cannot be read, which is told too if it has failed already.
    fn fail_itself(&self, node: u32, error: StoreError) {
        let error = Arc::new(error);
        if self.lock().waiting.is_done(node) {
            self.visitor.failed_too(self.planned(node), &error);
        } else {
            self.fail(node, &error);
        }
    }

    /// A node cannot be decoded, and with it whatever needs it.
    fn fail(&self, node: u32, error: &Arc<StoreError>) {
        self.fail_from(node, node, error);
    }

    /// Fails a node, and all that needs it, because of another.
    fn fail_from(&self, origin: u32, node: u32, error: &Arc<StoreError>) {
        let origin = self.planned(origin);
        let mut failing = vec![node];
        while let Some(node) = failing.pop() {
            if !self.lock().waiting.finish(node) {
                continue;
            }
            self.visitor.failed(self.planned(node), origin, error);
            failing.extend(self.plan.feeds(node).iter().map(|feed| feed.to));
        }
        self.changed.notify_all();
    }
}

/// Says what is wrong with a delta of which nothing is left. If it has failed meanwhile, nobody hears of it.
fn incomplete() -> StoreError {
    let reason = "it was taken for complete and is not".to_owned();
    StoreError::Refused { what: "a region delta".to_owned(), reason }
}

/// Bytes that waited, in memory.
fn brought_back(waited: Waited) -> Result<HeldBytes, StoreError> {
    match waited {
        Waited::Memory(bytes) => Ok(bytes),
        Waited::Spilled(spilled) => spilled.read().map(HeldBytes::Plain),
    }
}
