//! Open files, and where each is being read.

use crate::page_cache::TreePages;
use crate::snapshots::lock;
use siltstone_engine::EngineError;
use siltstone_engine::file_reader::{FileReader, SnapshotReader};
use siltstone_store::catalog::{Entry, EntryPath};
use std::io;
use std::sync::Mutex;

/// Requests for bytes that follow each other, after which the next ones are expected.
const STREAK_MIN: u32 = 2;
/// Bytes by which requests may come out of their order: the kernel sends several at once.
const DISORDER_BYTES: u64 = 1 << 20;

/// A file that is open.
pub(crate) struct OpenFile {
    /// The snapshot it is of.
    pub(crate) snapshot: SnapshotReader<'static>,
    pub(crate) path: EntryPath,
    /// Where the kernel takes what is decoded of its tree, if a kernel reads it.
    pub(crate) pages: Option<TreePages>,
    reader: FileReader<'static>,
    reading: Mutex<Reading>,
}

/// Where a file is being read.
#[derive(Debug, Default)]
struct Reading {
    /// Begin of what was asked for, in one streak.
    begin: u64,
    /// End of it.
    end: u64,
    streak: u32,
    /// End of what was, or will be, decoded ahead.
    prepared: u64,
}

impl OpenFile {
    /// Opens the file that an entry of the snapshot stands for.
    pub(crate) fn new(
        snapshot: SnapshotReader<'static>,
        entry: &Entry,
        pages: Option<TreePages>,
    ) -> Result<Self, EngineError> {
        let reader = snapshot.open_file(entry)?;
        Ok(Self { snapshot, path: entry.path.clone(), pages, reader, reading: Mutex::default() })
    }

    /// Reads so many bytes, fewer only at the end of the file: that is what a kernel takes a short answer for.
    pub(crate) fn read(&self, offset: u64, bytes: u32) -> io::Result<Vec<u8>> {
        let mut buffer = self.buffer(offset, bytes);
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.reader.read_at(offset.saturating_add(filled as u64), rest)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => filled += count,
            }
        }
        Ok(buffer)
    }

    /// Reads up to so many bytes, fewer at the end of the file and before what cannot be read.
    pub(crate) fn read_some(&self, offset: u64, bytes: u32) -> io::Result<Vec<u8>> {
        let mut buffer = self.buffer(offset, bytes);
        let count = self.reader.read_at(offset, &mut buffer)?;
        buffer.truncate(count);
        Ok(buffer)
    }

    /// Room for so many bytes, or for those that the file has from there on.
    fn buffer(&self, offset: u64, bytes: u32) -> Vec<u8> {
        let left = self.reader.size().saturating_sub(offset);
        vec![0; usize::try_from(left.min(u64::from(bytes))).unwrap_or(usize::MAX)]
    }

    /// Notes that somebody reads this part; returns the one to decode before it is asked for, of `ahead` bytes or
    /// fewer.
    pub(crate) fn note(&self, offset: u64, bytes: u32, ahead: u64) -> Option<(u64, u64)> {
        let end = offset.saturating_add(u64::from(bytes));
        let next = lock(&self.reading).note(offset, end, ahead);
        next.filter(|(from, _)| *from < self.reader.size())
    }

    /// Decodes a part, so that who reads it next finds it decoded.
    pub(crate) fn prepare(&self, from: u64, to: u64) {
        self.reader.prepare(from, to);
    }
}

impl Reading {
    /// Notes a request; returns the bytes to decode ahead of the next ones, when half of `ahead` is left. As long as
    /// the streak is shorter than that, only as much: who reads a large piece here and there wants nothing after it.
    fn note(&mut self, offset: u64, end: u64, ahead: u64) -> Option<(u64, u64)> {
        let is_next = offset <= self.end.saturating_add(DISORDER_BYTES)
            && offset.saturating_add(DISORDER_BYTES) >= self.end
            && end.saturating_add(DISORDER_BYTES) > self.end;
        if !is_next {
            *self = Self { begin: offset, end, streak: 0, prepared: end };
            return None;
        }
        self.streak += u32::from(end > self.end);
        self.end = self.end.max(end);
        self.prepared = self.prepared.max(self.end);
        let ahead = ahead.min(self.end.saturating_sub(self.begin));
        if self.streak < STREAK_MIN || self.prepared - self.end > ahead / 2 {
            return None;
        }
        let (from, to) = (self.prepared, self.end.saturating_add(ahead));
        self.prepared = to;
        Some((from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AHEAD: u64 = 8 << 20;
    const STEP: u64 = 128 << 10;

    #[test]
    fn a_streak_is_read_ahead_of_and_nothing_twice() {
        let mut reading = Reading::default();
        let mut prepared = 0;
        for at in 0..200 {
            let end = (at + 1) * STEP;
            if let Some((from, to)) = reading.note(at * STEP, end, AHEAD) {
                assert!(from >= prepared && from < to && to <= end + AHEAD);
                prepared = to;
            }
            assert!(at < 3 || prepared >= end + end.min(AHEAD) / 2, "request {at}");
        }
    }

    #[test]
    fn after_large_pieces_here_and_there_little_is_decoded_ahead() {
        let mut reading = Reading::default();
        let (mut read, mut ahead) = (0, 0);
        for piece in [50, 7, 90, 33, 61, 12, 88] {
            for at in 0..8 {
                let offset = (piece << 24) + at * STEP;
                let next = reading.note(offset, offset + STEP, AHEAD);
                ahead += next.map_or(0, |(from, to)| to - from);
                read += STEP;
            }
        }
        assert!(ahead > 0 && ahead <= 2 * read, "{ahead} bytes ahead of {read}");
    }

    #[test]
    fn requests_out_of_order_are_a_streak_all_the_same() {
        let mut reading = Reading::default();
        let order = [1, 0, 3, 2, 5, 4, 7, 6];
        let found = order.map(|at| reading.note(at * STEP, (at + 1) * STEP, AHEAD));
        assert!(found.iter().any(Option::is_some));
    }

    #[test]
    fn reading_here_and_there_decodes_nothing_ahead() {
        let mut reading = Reading::default();
        for at in [0, 50, 7, 90, 33, 61, 12, 88] {
            assert_eq!(reading.note(at << 22, (at << 22) + 4096, AHEAD), None);
        }
    }
}
