//! Versions of something as a backup sees them: cut by the default chunker, each chunk that the version before does not hold numbered
//! as new. That is what is sketched and encoded.

use anyhow::Result;
use siltstone_chunk::{ALGORITHMS, DEFAULT_NAME, Fingerprinter, Isa, Lagged, SliceChunks};
use siltstone_lab::data::Data;
use siltstone_similar::sketch::{SampleSketch, Shape, Sketch};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Decides where chunks end; any would do.
const KEY: [u8; 32] = [5; 32];

/// A chunk that was new when it came.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    /// Where it lies.
    pub(super) at: Range<usize>,
}

/// The versions, cut and deduplicated.
pub(super) struct Versions<'d> {
    bytes: &'d [u8],
    /// All that were ever new; a chunk's number is its place here.
    pub(super) chunks: Vec<Chunk>,
    /// Of each version, the numbers of its chunks.
    pub(super) recipes: Vec<Vec<usize>>,
    /// Of each version, the numbers that are new in it.
    pub(super) new: Vec<Range<usize>>,
    chunker: Lagged,
}

impl<'d> Versions<'d> {
    /// Cuts every version into chunks of `average` bytes and leaves out what the version before holds, or the same version before.
    /// With `newest_first` the last version comes first.
    pub(super) fn of(data: &'d Data, average: u32, newest_first: bool) -> Result<Self> {
        let default = ALGORITHMS.iter().find(|algorithm| algorithm.name == DEFAULT_NAME).expect("it is there");
        let chunker = Lagged::new(default.usual_sizes(average)?, &KEY, Isa::best());
        let mut ranges = data.ranges();
        if newest_first {
            ranges.reverse();
        }
        let mut versions =
            Self { bytes: &data.bytes, chunks: Vec::new(), recipes: Vec::new(), new: Vec::new(), chunker };
        let mut known = HashMap::new();
        for range in ranges {
            known = versions.add(range, &known);
        }
        Ok(versions)
    }

    /// One more version; what it holds, by fingerprint.
    fn add(&mut self, range: Range<usize>, before: &HashMap<[u8; 32], usize>) -> HashMap<[u8; 32], usize> {
        let chunks: Vec<&[u8]> = SliceChunks::new(&self.chunker, &self.bytes[range.clone()]).collect();
        let mut fingerprints = Vec::new();
        Fingerprinter::best(&KEY).fingerprints(&chunks, &mut fingerprints);
        let (mut held, mut recipe, first) = (HashMap::new(), Vec::with_capacity(chunks.len()), self.chunks.len());
        let mut begin = range.start;
        for (chunk, fingerprint) in chunks.iter().zip(fingerprints) {
            let at = begin..begin + chunk.len();
            begin = at.end;
            let number = *held.entry(fingerprint).or_insert_with(|| {
                before.get(&fingerprint).copied().unwrap_or_else(|| {
                    self.chunks.push(Chunk { at });
                    self.chunks.len() - 1
                })
            });
            recipe.push(number);
        }
        self.recipes.push(recipe);
        self.new.push(first..self.chunks.len());
        held
    }

    /// The bytes of a chunk.
    pub(super) fn bytes(&self, number: usize) -> &'d [u8] {
        &self.bytes[self.chunks[number].at.clone()]
    }

    /// New chunks of one version after another in runs of about so many bytes.
    pub(super) fn regions(&self, region_bytes: usize) -> Vec<Range<usize>> {
        let mut regions = Vec::new();
        for new in &self.new {
            let mut begin = new.start;
            let mut bytes = 0;
            for number in new.clone() {
                bytes += self.bytes(number).len();
                if bytes >= region_bytes || number + 1 == new.end {
                    regions.push(begin..number + 1);
                    (begin, bytes) = (number + 1, 0);
                }
            }
        }
        regions
    }

    /// Bytes of all that was new.
    pub(super) fn unique_bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.at.len() as u64).sum()
    }

    /// Siltstone's own sketch of every chunk.
    pub(super) fn sketches(&self) -> Vec<Option<Sketch>> {
        let empty = SampleSketch::new(Shape::DEFAULT);
        let sketch = |number| {
            let mut sketch = empty.clone();
            self.chunker.samples(self.bytes(number), |sample| sketch.add(sample.hash));
            sketch.finish()
        };
        in_parallel(self.chunks.len(), sketch)
    }
}

/// `work` of every number below `count`, on all cores, in order.
pub(super) fn in_parallel<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    /// Shares per core: pieces of work differ.
    const SHARES: usize = 64;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = count.div_ceil(threads * SHARES).max(1);
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let from = next.fetch_add(share, Ordering::Relaxed);
            if from >= count {
                return done;
            }
            done.push((from, (from..count.min(from + share)).map(&work).collect::<Vec<T>>()));
        }
    };
    let mut done: Vec<(usize, Vec<T>)> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        handles.into_iter().flat_map(|handle| handle.join().expect("no worker panics")).collect()
    });
    done.sort_by_key(|(from, _)| *from);
    done.into_iter().flat_map(|(_, results)| results).collect()
}
