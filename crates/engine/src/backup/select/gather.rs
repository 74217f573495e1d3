//! Reading what many chunks hang on: every region once, bases before what hangs on them, by [`crate::unfold`].
//!
//! One by one, a chunk in a chain of deltas would cost the decoding of all below it, again and again: the bases of one region lie in many
//! others, theirs in still more.

use crate::chunks::{Address, ChunkSource};
use crate::observer::Observer;
use crate::parallel::Pool;
use crate::unfold::{GAP_BYTES_DEFAULT, Order, Plan, Sink, Tally, UnfoldSettings, Unfolded, Unfolding, Worker};
use siltstone_store::StoreError;
use siltstone_store::region::ChunkEntry;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The longest range read.
const READ_BYTES_MAX: u64 = 4 << 20;

/// Reads regions.
pub(in crate::backup) struct Gatherer<'s, 'env> {
    pub(in crate::backup) chunks: Arc<ChunkSource<'env>>,
    pub(in crate::backup) order: &'s Order<'s>,
    pub(in crate::backup) pool: Pool<'env, Worker>,
    /// Threads of the pool.
    pub(in crate::backup) workers: usize,
    /// What may wait for bases in memory; the rest goes to a temporary file in the folder.
    pub(in crate::backup) waiting_bytes: u64,
    pub(in crate::backup) spill_folder: PathBuf,
    pub(in crate::backup) observer: &'env dyn Observer,
}

/// Whoever takes the regions, from several threads.
pub(super) trait Take: Send + Sync {
    /// One that was asked for. Its chunks are *not* verified.
    fn take(&self, address: Address, chunks: &[ChunkEntry], plain: &[u8]);
}

struct Gathering<'g, T> {
    wanted: usize,
    taker: Arc<T>,
    failure: Mutex<Option<Arc<StoreError>>>,
    observer: &'g dyn Observer,
}

impl<T: Take> Sink for Gathering<'_, T> {
    fn decoded(&self, region: Unfolded, chunks: &[ChunkEntry], plain: &[u8]) {
        if region.node < self.wanted {
            self.taker.take(region.address, chunks, plain);
        }
    }

    fn failed(&self, _: Unfolded, _: Unfolded, error: &Arc<StoreError>) {
        lock(&self.failure).get_or_insert_with(|| error.clone());
    }

    fn spill_failed(&self, _: &StoreError) {}

    fn is_cancelled(&self) -> bool {
        self.observer.is_cancelled()
    }
}

impl<'env> Gatherer<'_, 'env> {
    /// Gives `taker` the regions at these addresses, each given once, as far as they can be decoded. Gives the first reason why one
    /// could not be.
    pub(super) fn gather<T: Take + 'env>(&self, wanted: &[Address], taker: &Arc<T>) -> Option<Arc<StoreError>> {
        let plan = Plan::new(&self.chunks, wanted, self.order);
        let settings = UnfoldSettings {
            gap_bytes: GAP_BYTES_DEFAULT,
            read_bytes_max: READ_BYTES_MAX,
            waiting_bytes_max: self.waiting_bytes,
            spill_folder: self.spill_folder.clone(),
        };
        let (taker, observer) = (taker.clone(), self.observer);
        let sink = Gathering { wanted: wanted.len(), taker, failure: Mutex::default(), observer };
        let unfolding = Arc::new(Unfolding::new(self.chunks.clone(), plan, settings, Arc::<Tally>::default(), sink));
        for ticket in unfolding.start(&self.pool, self.workers) {
            let _: Option<()> = ticket.wait();
        }
        lock(&unfolding.sink().failure).take()
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
