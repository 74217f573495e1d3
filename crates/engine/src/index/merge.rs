//! Several runs as one: in order of fingerprint, the newest record of each. With at most twenty runs the least head is
//! found by looking at all of them.

use super::record::Record;
use super::run::{Cursor, Run};
use siltstone_store::ChunkNumber;
use std::io;

/// Iterates over the records of runs that `keep` asks for.
pub(super) struct Merge<'r, K> {
    /// Newest first.
    sources: Vec<Source<'r>>,
    keep: K,
    dropped: u64,
}

struct Source<'r> {
    cursor: Cursor<'r>,
    head: Option<Record>,
}

impl<'r, K: Fn(ChunkNumber) -> bool> Merge<'r, K> {
    pub(super) fn new(newest_first: impl IntoIterator<Item = &'r Run>, keep: K) -> Self {
        let sources = newest_first.into_iter().map(|run| Source { cursor: Cursor::new(run), head: None }).collect();
        Self { sources, keep, dropped: 0 }
    }

    /// Records passed over so far: not asked for, or older than another of the same fingerprint.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    fn next_record(&mut self) -> io::Result<Option<Record>> {
        for source in &mut self.sources {
            self.dropped += source.fill(&self.keep)?;
        }
        let heads = self.sources.iter().filter_map(|source| source.head);
        // Of equal ones this gives the first, which is the newest.
        let Some(least) = heads.min_by_key(|record| record.fingerprint) else {
            return Ok(None);
        };
        let mut taken = 0;
        for source in &mut self.sources {
            taken += u64::from(source.head.take_if(|head| head.fingerprint == least.fingerprint).is_some());
        }
        self.dropped += taken - 1;
        Ok(Some(least))
    }
}

impl<K: Fn(ChunkNumber) -> bool> Iterator for Merge<'_, K> {
    type Item = io::Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_record().transpose()
    }
}

impl Source<'_> {
    /// Moves to the next record asked for unless one waits already; returns how many it passed over.
    fn fill(&mut self, keep: impl Fn(ChunkNumber) -> bool) -> io::Result<u64> {
        let mut passed = 0;
        while self.head.is_none() {
            let Some(record) = self.cursor.next()? else { break };
            if keep(record.number) {
                self.head = Some(record);
            } else {
                passed += 1;
            }
        }
        Ok(passed)
    }
}
