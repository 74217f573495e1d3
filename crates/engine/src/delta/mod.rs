//! Which way deltas point, and how a chunk's likes are found.

use crate::chunks::ChunkSource;
use crate::repack::numbers_of;
use roaring::RoaringTreemap;
use siltstone_similar::index::{Candidate, Fit, Index};
use siltstone_similar::sketch::{Shape, Sketch, Sketcher, by_name};
use siltstone_store::StoreError;
use siltstone_store::container::ContainerRecord;
use std::sync::Arc;

/// The method that sketches are made by. Nothing on disk depends on it.
const METHOD: &str = "odess-plus";
/// The longest chain of deltas that may be asked for. A reader gives up far beyond it.
pub const DEPTH_MAX: u32 = 1024;
/// The longest chain unless another is asked for.
pub const DEPTH_DEFAULT: u32 = 128;

/// Which way deltas point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deltas {
    /// There are none.
    Off,
    /// Old chunks against new ones: what a backup leaves behind is encoded against what took its place. The newest snapshot is whole.
    Reverse {
        /// The longest chain; what would make a longer one stays whole.
        depth: u32,
    },
}

impl Default for Deltas {
    fn default() -> Self {
        Self::Reverse { depth: DEPTH_DEFAULT }
    }
}

/// The numbers and, transitively, the bases that they hang on. Where no container with deltas answers for any, they have none.
pub(crate) fn closure(chunks: &ChunkSource<'_>, numbers: &RoaringTreemap) -> Result<RoaringTreemap, StoreError> {
    let records = chunks.records();
    let touches = |record: &Arc<ContainerRecord>| record.has_deltas && !numbers_of(record).is_disjoint(numbers);
    if records.iter().any(touches) { chunks.closure(numbers) } else { Ok(numbers.clone()) }
}

/// Makes the sketches of chunks.
pub(crate) fn sketcher() -> Arc<dyn Sketcher> {
    by_name(METHOD, Shape::DEFAULT).map(Arc::from).expect("a method of this name")
}

/// Chunks by their sketches, in bounded memory: what does not fit is as if nothing resembled it.
pub(crate) struct Likes {
    index: Index,
}

impl Likes {
    /// An empty index of about so many bytes.
    pub(crate) fn within(bytes: u64) -> Self {
        let keys = Shape::DEFAULT.features();
        let one = Index::new(Fit::Best, 1 << 10, keys, 1).memory_bytes() as u64 >> 10;
        let chunks = usize::try_from(bytes / one.max(1)).unwrap_or(usize::MAX);
        Self { index: Index::new(Fit::Best, chunks.max(1 << 10), keys, 1) }
    }

    /// Adds a chunk.
    pub(crate) fn insert(&mut self, number: u64, sketch: &Sketch) {
        self.index.insert(number, sketch);
    }

    /// The likest chunks, at most `most`, likest first.
    pub(crate) fn find(&self, sketch: &Sketch, most: usize) -> Vec<Candidate> {
        self.index.find_some(sketch, most)
    }
}
