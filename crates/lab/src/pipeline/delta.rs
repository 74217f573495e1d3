//! Resemblance: sketches of new chunks, the bases they lead to, and deltas against these.
//!
//! As in Odess's system (section 4.3): 12 features in 3 super-features, the first chunk that shares one is the base
//! (`FirstFit`), and what is stored of a chunk is the delta if that is smaller than the chunk. Its Xdelta, with its own
//! compression switched off, is here the codec `copy-insert`. Bases are chunks stored whole, and are kept in memory up
//! to a limit, beyond which the oldest are forgotten.

use super::fingerprint::New;
use super::region::{Gatherer, Member, Stored};
use super::stages::Ordered;
use anyhow::Result;
use siltstone_similar::Isa;
use siltstone_similar::delta::{ChunkDelta, CopyInsert};
use siltstone_similar::index::{Fit, Index};
use siltstone_similar::sketch::{Grouping, Shape, Sketch, Sketcher};
use std::collections::VecDeque;

/// New chunks, each with its sketch if it has one.
pub(super) struct Sketched(Vec<(New, Option<Sketch>)>);

/// The work of a stage: sketches of new chunks.
pub(super) fn sketch(sketcher: &dyn Sketcher) -> impl FnMut(Vec<New>) -> Result<Sketched> {
    move |new| {
        let sketched = new.into_iter().map(|new| {
            let sketch = sketcher.sketch(&new.chunk);
            (new, sketch)
        });
        Ok(Sketched(sketched.collect()))
    }
}

/// Limits of what may be held to look for bases in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BaseLimits {
    /// Chunks that the index has room for.
    pub(super) chunks: usize,
    /// Bytes of chunks.
    pub(super) bytes: usize,
}

/// The stage: encodes what resembles something, and gathers regions.
pub(super) fn delta(
    sketched: &Ordered<Sketched>,
    grouping: Grouping,
    limits: BaseLimits,
    mut regions: Gatherer,
) -> Result<()> {
    let mut bases = Bases::new(grouping, limits);
    let mut codec = CopyInsert::new(Isa::best());
    while let Some(Sketched(all)) = sketched.next()? {
        for (new, sketch) in all {
            let delta = sketch.and_then(|sketch| bases.delta(&mut codec, &new.chunk, &sketch));
            if let Some((base, delta)) = delta {
                let stored = Stored::Delta { base, delta };
                regions.push(Member { name: new.name, bytes: new.chunk.len(), stored })?;
                continue;
            }
            if let Some(sketch) = sketch {
                bases.insert(&new, &sketch);
            }
            regions.push(Member::whole(new))?;
        }
    }
    regions.finish()
}

/// Chunks stored whole, by what they resemble.
struct Bases {
    index: Index,
    /// Numbers and bytes, oldest first: numbers ascend.
    held: VecDeque<(u32, Box<[u8]>)>,
    bytes: usize,
    bytes_max: usize,
}

impl Bases {
    fn new(grouping: Grouping, limits: BaseLimits) -> Self {
        // One snapshot that never ends: nothing grows old but by room.
        let index = Index::new(Fit::First(grouping), limits.chunks, Shape::DEFAULT.super_features(), 0);
        Self { index, held: VecDeque::new(), bytes: 0, bytes_max: limits.bytes }
    }

    /// A base's number and the delta of the chunk against it, if there is a base and the delta is smaller than the
    /// chunk.
    fn delta(&self, codec: &mut CopyInsert, chunk: &[u8], sketch: &Sketch) -> Option<(u32, Vec<u8>)> {
        let number = u32::try_from(self.index.find(sketch)?.number).ok()?;
        let place = self.held.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        let mut delta = Vec::new();
        codec.encode(&self.held[place].1, chunk, chunk.len().saturating_sub(1), &mut delta).ok()?;
        Some((number, delta))
    }

    fn insert(&mut self, new: &New, sketch: &Sketch) {
        self.index.insert(new.number.into(), sketch);
        self.bytes += new.chunk.len();
        self.held.push_back((new.number, (*new.chunk).into()));
        while self.bytes > self.bytes_max {
            let Some((_, oldest)) = self.held.pop_front() else { break };
            self.bytes -= oldest.len();
        }
    }
}
