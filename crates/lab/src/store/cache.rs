//! Containers kept in memory, those used last, up to a number of bytes; every read is counted and timed.
//!
//! The choice of what is dropped depends on the order of use and on sizes that are known before anything is read, so
//! that the reads can be foreseen.

use super::choose::Container;
use super::container_store::Opened;
use super::prefetch::Prefetcher;
use super::recipe::Number;
use anyhow::Result;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Counts of what was read.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Reads {
    /// Different containers.
    pub(super) involved: u64,
    /// Reads of containers.
    pub(super) containers: u64,
    /// Bytes of those.
    pub(super) bytes: u64,
    /// Bytes of the different containers.
    pub(super) involved_bytes: u64,
    /// Bytes of these for chunks that were needed: of a container as large a part as they are of its text.
    pub(super) needed_bytes: u64,
    /// Seconds they took, with decryption and decompression: the sum over all reads, of which several may run at once.
    pub(super) seconds: f64,
}

impl Reads {
    /// One more container was read.
    pub(super) fn count(&mut self, opened: &Opened) {
        self.containers += 1;
        self.bytes += opened.object_bytes;
        self.seconds += opened.seconds;
    }

    /// It is one that was not read before, and of its bytes so many were needed.
    pub(super) fn count_first(&mut self, opened: &Opened, needed_bytes: u64) {
        self.involved += 1;
        self.involved_bytes += opened.object_bytes;
        self.needed_bytes += needed_bytes;
    }
}

/// A use of a container: which, and how many bytes it takes in memory.
pub(super) type Use = (Container, usize);

/// Containers used last, up to a number of bytes; one container is held whatever its size.
#[derive(Clone, Debug)]
struct Recent<T> {
    bytes_max: usize,
    bytes: usize,
    turn: u64,
    /// When it was used last, its bytes, and what is kept of it.
    held: HashMap<Container, (u64, usize, T)>,
}

impl<T: Clone> Recent<T> {
    fn get(&mut self, container: Container) -> Option<T> {
        self.turn += 1;
        let (turn, _, kept) = self.held.get_mut(&container)?;
        *turn = self.turn;
        Some(kept.clone())
    }

    fn insert(&mut self, (container, bytes): Use, kept: T) {
        self.bytes += bytes;
        while self.bytes > self.bytes_max {
            let oldest = self.held.iter().min_by_key(|(_, (turn, ..))| *turn).map(|(container, _)| *container);
            let Some((_, dropped, _)) = oldest.and_then(|container| self.held.remove(&container)) else { break };
            self.bytes -= dropped;
        }
        self.held.insert(container, (self.turn, bytes, kept));
    }

    /// Returns the same containers with nothing kept of them.
    fn bare(&self) -> Recent<()> {
        let held = self.held.iter().map(|(container, (turn, bytes, _))| (*container, (*turn, *bytes, ())));
        Recent { bytes_max: self.bytes_max, bytes: self.bytes, turn: self.turn, held: held.collect() }
    }
}

/// Containers in memory.
#[derive(Debug)]
pub(super) struct Cache {
    recent: Recent<Arc<Opened>>,
    involved: HashSet<Container>,
    /// Chunks that are needed of the containers.
    needed: HashSet<Number>,
    reads: Reads,
}

impl Cache {
    /// An empty one of so many decompressed bytes.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self::needing(bytes_max, HashSet::new())
    }

    /// An empty one, for work that needs these chunks.
    pub(super) fn needing(bytes_max: usize, needed: HashSet<Number>) -> Self {
        let recent = Recent { bytes_max, bytes: 0, turn: 0, held: HashMap::new() };
        Self { recent, involved: HashSet::new(), needed, reads: Reads::default() }
    }

    /// The containers that these uses will read, in this order.
    pub(super) fn misses(&self, uses: &[Use]) -> Vec<Container> {
        let mut recent = self.recent.bare();
        let mut is_miss = |one: &&Use| {
            recent.get(one.0).is_none() && {
                recent.insert(**one, ());
                true
            }
        };
        uses.iter().filter(|one| is_miss(one)).map(|(container, _)| *container).collect()
    }

    /// The container, from memory or else as the next of those that were foreseen.
    pub(super) fn get(&mut self, prefetcher: &Prefetcher<'_>, container: Container) -> Result<Arc<Opened>> {
        if let Some(opened) = self.recent.get(container) {
            return Ok(opened);
        }
        let opened = Arc::new(prefetcher.next(container)?);
        self.reads.count(&opened);
        if self.involved.insert(container) {
            self.reads.count_first(&opened, opened.object_bytes_of(&self.needed));
        }
        self.recent.insert((container, opened.plain_bytes()), Arc::clone(&opened));
        Ok(opened)
    }

    /// Returns what was read so far.
    pub(super) fn reads(&self) -> Reads {
        self.reads
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deterministic::Sequence;
    use crate::settings::Settings;
    use crate::store::container_store::{ContainerStore, Stored, Writer};
    use crate::store::prefetch::in_order;
    use crate::store::scale::Scale;

    /// Containers of so many bytes each.
    fn container_store(folder: &std::path::Path, sizes: &[usize]) -> (ContainerStore, Vec<Use>) {
        let container_store = ContainerStore::create(folder, &Scale::of(1 << 20, &Settings::default())).unwrap();
        let mut containers = Vec::new();
        for (number, size) in (0..).zip(sizes) {
            let (mut writer, bytes) = (Writer::default(), vec![7; *size]);
            let fingerprint = container_store.repository().keys().fingerprint(&bytes);
            writer.push(&container_store, Stored { number, fingerprint, bytes: &bytes }).unwrap();
            let written = writer.finish(&container_store).unwrap();
            containers.extend(written.into_iter().map(|written| (written.container, written.plain_bytes)));
        }
        container_store.barrier().unwrap();
        (container_store, containers)
    }

    fn use_in_turn(cache: &mut Cache, container_store: &ContainerStore, uses: &[Use]) -> (u64, u64) {
        let misses = cache.misses(uses);
        in_order(container_store, &misses, 2, |prefetcher| {
            uses.iter().try_for_each(|one| cache.get(prefetcher, one.0).map(drop))
        })
        .unwrap();
        (cache.reads().containers, cache.reads().involved)
    }

    #[test]
    fn what_was_used_last_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (container_store, all) = container_store(folder.path(), &[1000; 4]);
        let mut cache = Cache::new(2500);
        let mut in_turn = |which: &[usize]| {
            let uses: Vec<Use> = which.iter().map(|at| all[*at]).collect();
            use_in_turn(&mut cache, &container_store, &uses)
        };
        assert_eq!(in_turn(&[0, 1, 0, 1]), (2, 2));
        assert_eq!(in_turn(&[0, 2, 0]), (3, 3), "1 was dropped, 0 was not");
        assert_eq!(in_turn(&[1, 3]), (5, 4));
    }

    #[test]
    fn all_that_is_read_was_foreseen_and_all_that_was_foreseen_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let (container_store, all) = container_store(folder.path(), &[1000, 300, 2000, 50, 800, 1200]);
        let mut sequence = Sequence::new(3);
        for bytes_max in [0, 500, 1500, 3000, 10_000] {
            let mut cache = Cache::new(bytes_max);
            for _ in 0..3 {
                let uses: Vec<Use> = (0..40).map(|_| all[sequence.index(all.len())]).collect();
                let (before, foreseen) = (cache.reads().containers, cache.misses(&uses).len() as u64);
                assert_eq!(use_in_turn(&mut cache, &container_store, &uses).0, before + foreseen, "{bytes_max}");
            }
        }
    }
}
