//! Containers kept in memory, those used last, up to a number of bytes; every read is counted and timed.

use super::choose::Container;
use super::shelf::{Opened, Shelf};
use anyhow::Result;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

/// What was read.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Reads {
    /// Different containers.
    pub(super) involved: u64,
    /// Reads of containers.
    pub(super) containers: u64,
    /// Bytes of those.
    pub(super) bytes: u64,
    /// Seconds they took, with decryption and decompression.
    pub(super) seconds: f64,
}

/// Containers in memory.
#[derive(Debug)]
pub(super) struct Cache {
    bytes_max: usize,
    bytes: usize,
    turn: u64,
    held: HashMap<Container, (u64, Arc<Opened>)>,
    involved: HashSet<Container>,
    reads: Reads,
}

impl Cache {
    /// An empty one of so many decompressed bytes; one container is held whatever its size.
    pub(super) fn new(bytes_max: usize) -> Self {
        let (held, involved) = (HashMap::new(), HashSet::new());
        Self { bytes_max, bytes: 0, turn: 0, held, involved, reads: Reads::default() }
    }

    /// The container, from memory or else from disk.
    pub(super) fn get(&mut self, shelf: &Shelf, container: Container) -> Result<Arc<Opened>> {
        self.turn += 1;
        if let Some((turn, opened)) = self.held.get_mut(&container) {
            *turn = self.turn;
            return Ok(Arc::clone(opened));
        }
        let begin = Instant::now();
        let opened = Arc::new(shelf.open(container)?);
        self.reads.seconds += begin.elapsed().as_secs_f64();
        self.reads.containers += 1;
        self.reads.bytes += opened.object_bytes;
        self.involved.insert(container);
        self.bytes += opened.plain_bytes();
        while self.bytes > self.bytes_max {
            let oldest = self.held.iter().min_by_key(|(_, (turn, _))| *turn).map(|(container, _)| *container);
            let Some((_, dropped)) = oldest.and_then(|container| self.held.remove(&container)) else { break };
            self.bytes -= dropped.plain_bytes();
        }
        self.held.insert(container, (self.turn, Arc::clone(&opened)));
        Ok(opened)
    }

    /// What was read so far.
    pub(super) fn reads(&self) -> Reads {
        Reads { involved: self.involved.len() as u64, ..self.reads }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use crate::store::scale::Scale;
    use crate::store::shelf::{Stored, Writer};

    #[test]
    fn what_was_used_last_stays() {
        let folder = tempfile::tempdir().unwrap();
        let mut shelf = Shelf::create(folder.path(), &Scale::of(1 << 20, &Settings::default())).unwrap();
        let mut containers = Vec::new();
        for number in 0..4 {
            let (mut writer, bytes) = (Writer::default(), [7; 1000]);
            let fingerprint = shelf.repository().keys().fingerprint(&bytes);
            writer.push(&shelf, Stored { number, fingerprint, bytes: &bytes }).unwrap();
            containers.extend(writer.finish(&mut shelf).unwrap().into_iter().map(|written| written.container));
        }
        shelf.barrier().unwrap();
        let mut cache = Cache::new(2500);
        let mut use_in_turn = |which: &[usize]| {
            for at in which {
                cache.get(&shelf, containers[*at]).unwrap();
            }
            (cache.reads().containers, cache.reads().involved)
        };
        assert_eq!(use_in_turn(&[0, 1, 0, 1]), (2, 2));
        assert_eq!(use_in_turn(&[0, 2, 0]), (3, 3), "1 was dropped, 0 was not");
        assert_eq!(use_in_turn(&[1, 3]), (5, 4));
    }
}
