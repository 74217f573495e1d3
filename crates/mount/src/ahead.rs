//! Decoding ahead of whoever reads, by threads of its own: within a file that is read from front to back, and from file
//! to file where a tree is read in the order of its catalog, as `tar`, `cp -r` and `grep -r` do.
//!
//! Small files that are decoded ahead are given to the kernel too, some at a time. The first that is not is asked for,
//! which tells how far the reader is, and the next are given.

use crate::content::OpenFile;
use crate::snapshots::lock;
use siltstone_engine::file_reader::SnapshotReader;
use siltstone_engine::snapshots::SnapshotKey;
use siltstone_store::catalog::{Content, EntryPath};
use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

/// Bytes that are decoded before they are asked for, at most.
const AHEAD_BYTES_MAX: u64 = 8 << 20;
/// Parts of files, and walks, that wait to be decoded.
const WAITING_MAX: usize = 16;
/// Files read one after the other in a folder, after which the next ones are expected.
const STREAK_MIN: u32 = 2;
/// Entries between the file that is read and those decoded ahead of it.
const ENTRIES_MAX: usize = 4096;
/// Files given to the kernel when one is read, at most, and bytes of all of them.
const GIVEN_MAX: usize = 32;
const GIVEN_BYTES_MAX: u64 = 1 << 20;

/// Threads that decode what will be read.
pub(crate) struct ReadAhead {
    jobs: SyncSender<Job>,
    bytes_max: u64,
    walk: Arc<Mutex<Walk>>,
}

enum Job {
    /// Decodes a part of a file.
    Part { file: Arc<OpenFile>, from: u64, to: u64 },
    /// Decodes the files that follow one.
    Files { snapshot: SnapshotReader<'static>, next: Next },
    /// Gives the kernel the files that follow one and are decoded, in this walk.
    Give { file: Arc<OpenFile>, walk: u64 },
}

/// Where decoding ahead of a walk goes on.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Next {
    /// Number of the walk.
    walk: u64,
    /// The entry decoded last.
    after: EntryPath,
}

/// Where the files of a snapshot are read one after the other.
#[derive(Debug, Default)]
struct Walk {
    /// Counts walks: decoding for one that has ended stops.
    number: u64,
    snapshot: Option<SnapshotKey>,
    /// The first file read, and the last in the catalog's order.
    reached: Option<(EntryPath, EntryPath)>,
    streak: u32,
    /// Entries behind those, up to the last one decoded, and how many bytes of each were.
    ahead: VecDeque<(EntryPath, u64)>,
    ahead_bytes: u64,
    /// A thread decodes for it.
    is_busy: bool,
    /// A thread gives files to the kernel for it.
    is_giving: bool,
}

impl ReadAhead {
    /// Starts so many threads, which go when this does. What is decoded ahead of one reader takes at most so much
    /// memory.
    pub(crate) fn start(threads: usize, memory_bytes: usize) -> io::Result<Self> {
        let (jobs, waiting) = sync_channel(WAITING_MAX);
        let (waiting, walk) = (Arc::new(Mutex::new(waiting)), Arc::default());
        let bytes_max = AHEAD_BYTES_MAX.min(memory_bytes as u64);
        for _ in 0..threads {
            let (waiting, walk) = (waiting.clone(), Arc::clone(&walk));
            let decode = move || work(&waiting, &walk, bytes_max);
            thread::Builder::new().name("read-ahead".into()).spawn(decode)?;
        }
        Ok(Self { jobs, bytes_max, walk })
    }

    /// Notes that somebody reads this part of a file. Where no thread has time to decode ahead, whoever reads decodes.
    pub(crate) fn follow(&self, file: &Arc<OpenFile>, offset: u64, bytes: u32) {
        if let Some((from, to)) = file.note(offset, bytes, self.bytes_max) {
            let _ = self.jobs.try_send(Job::Part { file: file.clone(), from, to });
        }
        if offset > 0 {
            return;
        }
        let mut walk = lock(&self.walk);
        let next = walk.note(file.snapshot.snapshot().key(), &file.path, self.bytes_max);
        let giving = if file.pages.is_some() { walk.begin_giving(&file.path) } else { None };
        drop(walk);
        // What is decoded already is wanted first.
        if let Some(walk) = giving {
            self.send(Job::Give { file: file.clone(), walk });
        }
        if let Some(next) = next {
            self.send(Job::Files { snapshot: file.snapshot.clone(), next });
        }
    }

    fn send(&self, job: Job) {
        match self.jobs.try_send(job) {
            Err(TrySendError::Full(Job::Files { next, .. })) => lock(&self.walk).rest(next.walk),
            Err(TrySendError::Full(Job::Give { walk, .. })) => lock(&self.walk).end_giving(walk),
            _ => {}
        }
    }
}

impl Walk {
    /// Notes that a file is read from its beginning; returns where to go on decoding, when half of `bytes_max` is left.
    fn note(&mut self, snapshot: SnapshotKey, path: &EntryPath, bytes_max: u64) -> Option<Next> {
        let is_same = self.snapshot == Some(snapshot);
        let Some((first, last)) = self.reached.as_mut().filter(|_| is_same) else {
            self.begin(snapshot, path);
            return None;
        };
        if (&*first..=&*last).contains(&path) {
            // Several threads that read one tree get out of step.
            return None;
        }
        let is_ahead = self.ahead.back().is_some_and(|(end, _)| path <= end);
        if path < last || !(is_ahead || path.parent() == last.parent()) {
            self.begin(snapshot, path);
            return None;
        }
        *last = path.clone();
        while let Some((_, bytes)) = self.ahead.pop_front_if(|(ahead, _)| *ahead <= *path) {
            self.ahead_bytes -= bytes;
        }
        self.streak += 1;
        let has_enough = self.ahead_bytes > bytes_max / 2 || self.ahead.len() > ENTRIES_MAX / 2;
        if self.is_busy || self.streak < STREAK_MIN || has_enough {
            return None;
        }
        self.is_busy = true;
        let after = self.ahead.back().map_or(path, |(end, _)| end).clone();
        Some(Next { walk: self.number, after })
    }

    /// A walk may begin with this file.
    fn begin(&mut self, snapshot: SnapshotKey, path: &EntryPath) {
        let reached = Some((path.clone(), path.clone()));
        *self = Self { number: self.number + 1, snapshot: Some(snapshot), reached, ..Self::default() };
    }

    /// Takes an entry of so many bytes to be decoded; returns how many of them, `None` if that is enough for now.
    fn take(&mut self, number: u64, path: &EntryPath, bytes: u64, bytes_max: u64) -> Option<u64> {
        if number != self.number || self.ahead_bytes >= bytes_max || self.ahead.len() >= ENTRIES_MAX {
            return None;
        }
        // Whoever reads was faster.
        if self.reached.as_ref().is_some_and(|(_, last)| *path <= *last) {
            return Some(0);
        }
        let bytes = bytes.min(bytes_max - self.ahead_bytes);
        self.ahead.push_back((path.clone(), bytes));
        self.ahead_bytes += bytes;
        Some(bytes)
    }

    /// Notes that no thread decodes for this walk any more.
    fn rest(&mut self, number: u64) {
        self.is_busy &= number != self.number;
    }

    /// Files that follow this one, which was just read, may be given to the kernel; returns the number of the walk if
    /// some are decoded and nobody does it.
    fn begin_giving(&mut self, path: &EntryPath) -> Option<u64> {
        let is_last = self.reached.as_ref().is_some_and(|(_, last)| last == path);
        if self.is_giving || !is_last || self.ahead.is_empty() {
            return None;
        }
        self.is_giving = true;
        Some(self.number)
    }

    /// Tells what to do with a file of so many bytes that may be given to the kernel.
    fn gives(&self, number: u64, path: &EntryPath, bytes: u64) -> Giving {
        if number != self.number {
            return Giving::End;
        }
        if self.reached.as_ref().is_some_and(|(_, last)| path <= last) {
            return Giving::Skip;
        }
        match self.ahead.binary_search_by(|(ahead, _)| ahead.cmp(path)).map(|at| self.ahead.get(at)) {
            Ok(Some((_, decoded))) if *decoded == bytes => Giving::Give,
            _ => Giving::End,
        }
    }

    /// Notes that no thread gives files of this walk to the kernel any more.
    fn end_giving(&mut self, number: u64) {
        self.is_giving &= number != self.number;
    }
}

/// Decision on a file that follows the one read, and may be given to the kernel.
#[derive(Debug, PartialEq, Eq)]
enum Giving {
    Give,
    /// It was read before.
    Skip,
    /// Neither it nor what follows it is given now.
    End,
}

fn work(waiting: &Mutex<Receiver<Job>>, walk: &Mutex<Walk>, bytes_max: u64) {
    loop {
        let job = lock(waiting).recv();
        match job {
            Ok(Job::Part { file, from, to }) => file.prepare(from, to),
            Ok(Job::Files { snapshot, next }) => {
                prepare_files(&snapshot, &next, walk, bytes_max);
                lock(walk).rest(next.walk);
            }
            Ok(Job::Give { file, walk: number }) => {
                give_files(&file, number, walk);
                lock(walk).end_giving(number);
            }
            Err(_) => return,
        }
    }
}

/// Decodes what follows, as far as the walk takes it. What cannot be read is told to whoever gets there.
fn prepare_files(snapshot: &SnapshotReader<'_>, next: &Next, walk: &Mutex<Walk>, bytes_max: u64) {
    for entry in snapshot.entries_past(&next.after) {
        let Ok(entry) = entry else { return };
        let size = if let Content::File { size, .. } = entry.content { size } else { 0 };
        let Some(bytes) = lock(walk).take(next.walk, &entry.path, size, bytes_max) else { return };
        if bytes > 0
            && let Ok(file) = snapshot.open_file(&entry)
        {
            file.prepare(0, bytes);
        }
    }
}

/// Gives the kernel files that follow one, as far as they are decoded, small, and known to it.
fn give_files(after: &OpenFile, number: u64, walk: &Mutex<Walk>) {
    let Some(pages) = &after.pages else { return };
    let (mut files, mut bytes) = (0, 0);
    for entry in after.snapshot.entries_past(&after.path) {
        let Ok(entry) = entry else { return };
        let size = if let Content::File { size, .. } = entry.content { size } else { 0 };
        if size == 0 {
            continue;
        }
        match lock(walk).gives(number, &entry.path, size) {
            Giving::Give => {}
            Giving::Skip => continue,
            Giving::End => return,
        }
        (files, bytes) = (files + 1, bytes + size);
        let is_given = files <= GIVEN_MAX
            && bytes <= GIVEN_BYTES_MAX
            && after.snapshot.open_file(&entry).is_ok_and(|file| pages.give(&entry, &file));
        if !is_given {
            return;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use siltstone_store::{SeriesId, SnapshotId};

    const BYTES_MAX: u64 = 1000;
    const SIZE: u64 = 100;

    fn snapshot(number: u8) -> SnapshotKey {
        (SeriesId([number; 16]), SnapshotId([number; 32]))
    }

    fn path(number: usize) -> EntryPath {
        EntryPath::new(format!("folder{:03}/file{:03}", number / 4, number % 4)).unwrap()
    }

    /// Decodes as a thread would, of files of [`SIZE`] bytes; returns the numbers of those taken.
    fn decode(walk: &mut Walk, next: &Next, mut number: usize) -> Vec<usize> {
        let mut taken = Vec::new();
        while let Some(bytes) = walk.take(next.walk, &path(number), SIZE, BYTES_MAX) {
            taken.extend((bytes > 0).then_some(number));
            number += 1;
        }
        walk.rest(next.walk);
        taken
    }

    #[test]
    fn a_walk_is_decoded_ahead_of_from_folder_to_folder_and_nothing_twice() {
        let (mut walk, mut decoded) = (Walk::default(), Vec::new());
        for at in 0..100 {
            if let Some(next) = walk.note(snapshot(1), &path(at), BYTES_MAX) {
                let number = (0..200).find(|number| path(*number) > next.after).unwrap();
                decoded.extend(decode(&mut walk, &next, number));
            }
            assert!(at < 3 || decoded.last().is_some_and(|last| (at + 5..at + 11).contains(last)), "file {at}");
        }
        assert!(decoded.is_sorted_by(|before, after| before < after));
    }

    #[test]
    fn files_here_and_there_are_no_walk() {
        let mut walk = Walk::default();
        for at in [0, 50, 7, 90, 33, 61, 12, 88] {
            assert_eq!(walk.note(snapshot(1), &path(at), BYTES_MAX), None);
        }
        for at in 0..20 {
            assert_eq!(walk.note(snapshot(at % 2), &path(at.into()), BYTES_MAX), None);
        }
    }

    #[test]
    fn threads_that_read_one_tree_out_of_step_are_one_walk() {
        let mut walk = Walk::default();
        let asked: Vec<_> = [0, 1, 3, 2].map(|at| walk.note(snapshot(1), &path(at), BYTES_MAX)).into();
        assert_eq!(asked, [None, None, Some(Next { walk: 1, after: path(3) }), None]);
    }

    #[test]
    fn one_thread_decodes_for_a_walk_and_stops_when_it_has_ended() {
        let mut walk = Walk::default();
        let asked: Vec<_> = (0..3).map(|at| walk.note(snapshot(1), &path(at), BYTES_MAX)).collect();
        let Some(next) = &asked[2] else { panic!("{asked:?}") };
        assert_eq!(walk.note(snapshot(1), &path(3), BYTES_MAX), None, "a thread is at it");
        assert_eq!(walk.take(next.walk, &path(3), SIZE, BYTES_MAX), Some(0), "it was read before");
        assert_eq!(walk.note(snapshot(2), &path(50), BYTES_MAX), None);
        assert_eq!(walk.take(next.walk, &path(4), SIZE, BYTES_MAX), None, "its walk has ended");
        walk.rest(next.walk);
        assert!(!walk.is_busy);
    }

    #[test]
    fn what_is_decoded_ahead_is_given_once_and_by_one_thread() {
        let mut walk = Walk::default();
        let asked: Vec<_> = (0..3).filter_map(|at| walk.note(snapshot(1), &path(at), BYTES_MAX)).collect();
        assert_eq!(walk.begin_giving(&path(2)), None, "nothing is decoded");
        let decoded = decode(&mut walk, &asked[0], 3);
        assert_eq!(walk.begin_giving(&path(1)), None, "somebody has read past it");
        assert_eq!((walk.begin_giving(&path(2)), walk.begin_giving(&path(2))), (Some(1), None), "a thread is at it");
        walk.note(snapshot(1), &path(3), BYTES_MAX);
        assert_eq!(walk.gives(1, &path(3), SIZE), Giving::Skip);
        assert_eq!(walk.gives(1, &path(4), SIZE), Giving::Give);
        assert_eq!(walk.gives(1, &path(4), SIZE + 1), Giving::End, "a part of it is decoded");
        assert_eq!(walk.gives(1, &path(decoded.len() + 3), SIZE), Giving::End, "it is not decoded");
        walk.note(snapshot(2), &path(50), BYTES_MAX);
        assert_eq!(walk.gives(1, &path(4), SIZE), Giving::End, "its walk has ended");
        walk.end_giving(1);
        assert!(!walk.is_giving);
    }

    #[test]
    fn of_a_large_file_its_beginning_is_decoded_and_of_many_small_entries_not_all() {
        let mut walk = Walk::default();
        for at in 0..3 {
            walk.note(snapshot(1), &path(at), BYTES_MAX);
        }
        assert_eq!(walk.take(1, &path(3), 1 << 40, BYTES_MAX), Some(BYTES_MAX));
        assert_eq!(walk.take(1, &path(4), 1, BYTES_MAX), None);
        walk.rest(1);
        assert_eq!(walk.note(snapshot(1), &path(3), BYTES_MAX), Some(Next { walk: 1, after: path(3) }));
        let taken = (4..3 * ENTRIES_MAX).take_while(|at| walk.take(1, &path(*at), 0, BYTES_MAX).is_some()).count();
        assert_eq!(taken, ENTRIES_MAX);
    }
}
