//! Open files, and reading ahead of whoever reads one from front to back.

use crate::snapshots::lock;
use siltstone_engine::file_reader::FileReader;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

/// Bytes of a file that are decoded before they are asked for, at most.
const AHEAD_BYTES_MAX: u64 = 8 << 20;
/// Requests for bytes that follow each other, after which the next ones are expected.
const STREAK_MIN: u32 = 2;
/// Bytes by which requests may come out of their order: the kernel sends several at once.
const DISORDER_BYTES: u64 = 1 << 20;
/// Files that wait to be read ahead.
const WAITING_MAX: usize = 16;

/// A file that is open.
pub(crate) struct OpenFile {
    reader: FileReader<'static>,
    reading: Mutex<Reading>,
}

/// Where a file is being read.
#[derive(Debug, Default)]
struct Reading {
    /// End of what was asked for, in one streak.
    end: u64,
    streak: u32,
    /// End of what was, or will be, decoded ahead.
    prepared: u64,
}

impl OpenFile {
    pub(crate) fn new(reader: FileReader<'static>) -> Self {
        Self { reader, reading: Mutex::default() }
    }

    /// Reads up to so many bytes, fewer at the end of the file.
    pub(crate) fn read(&self, offset: u64, bytes: u32) -> io::Result<Vec<u8>> {
        let left = self.reader.size().saturating_sub(offset);
        let mut buffer = vec![0; usize::try_from(left.min(u64::from(bytes))).unwrap_or(usize::MAX)];
        let count = self.reader.read_at(offset, &mut buffer)?;
        buffer.truncate(count);
        Ok(buffer)
    }
}

impl Reading {
    /// Notes a request; returns the bytes to decode ahead of the next ones, from half of `ahead` on.
    fn note(&mut self, offset: u64, end: u64, ahead: u64) -> Option<(u64, u64)> {
        let is_next = offset <= self.end.saturating_add(DISORDER_BYTES)
            && offset.saturating_add(DISORDER_BYTES) >= self.end
            && end.saturating_add(DISORDER_BYTES) > self.end;
        if !is_next {
            *self = Self { end, streak: 0, prepared: end };
            return None;
        }
        self.streak += u32::from(end > self.end);
        self.end = self.end.max(end);
        self.prepared = self.prepared.max(self.end);
        if self.streak < STREAK_MIN || self.prepared - self.end > ahead / 2 {
            return None;
        }
        let (from, to) = (self.prepared, self.end.saturating_add(ahead));
        self.prepared = to;
        Some((from, to))
    }
}

struct Job {
    file: Arc<OpenFile>,
    from: u64,
    to: u64,
}

/// Threads that decode what will be read.
pub(crate) struct ReadAhead {
    jobs: SyncSender<Job>,
    bytes: u64,
}

impl ReadAhead {
    /// Starts so many threads, which go when this does. What is decoded ahead of one reader takes at most so much memory.
    pub(crate) fn start(threads: usize, memory_bytes: usize) -> io::Result<Self> {
        let (jobs, waiting) = sync_channel(WAITING_MAX);
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..threads {
            let waiting = waiting.clone();
            thread::Builder::new().name("read-ahead".into()).spawn(move || work(&waiting))?;
        }
        Ok(Self { jobs, bytes: AHEAD_BYTES_MAX.min(memory_bytes as u64) })
    }

    /// Notes that somebody reads this part of a file.
    pub(crate) fn follow(&self, file: &Arc<OpenFile>, offset: u64, bytes: u32) {
        let end = offset.saturating_add(u64::from(bytes));
        let Some((from, to)) = lock(&file.reading).note(offset, end, self.bytes) else { return };
        if from < file.reader.size() {
            // Where nobody has time for it, whoever reads decodes.
            let _ = self.jobs.try_send(Job { file: file.clone(), from, to });
        }
    }
}

fn work(waiting: &Mutex<Receiver<Job>>) {
    loop {
        let job = lock(waiting).recv();
        let Ok(Job { file, from, to }) = job else { return };
        file.reader.prepare(from, to);
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
            assert!(at < 3 || prepared >= end + AHEAD / 2, "request {at}");
        }
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
