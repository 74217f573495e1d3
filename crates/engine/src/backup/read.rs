//! The stage that reads and cuts: files (or a stream) become pieces of about a mebibyte, cut into chunks; the pool
//! behind it fingerprints each piece while the next is read.
//!
//! Many small files share a piece; a large one makes many. A chunk never spans two pieces: what is not cut yet moves on
//! to the next.

use super::changed::Patch;
use super::plan::Item;
use crate::Observer;
use crate::chunks::ChunkSource;
use crate::fs::{FileHandle, Problem, ProblemKind, SourceFile};
use crate::lease::now;
use crate::observer::EntryAction;
use crate::parallel::{Pool, Ticket};
use crossbeam_channel::{Receiver, Sender, select};
use siltstone_chunk::{Chunker, Fingerprinter};
use siltstone_store::catalog::{EntryPath, Metadata};
use siltstone_store::{ChunkRun, Fingerprint, Time};
use std::convert::Infallible;
use std::io::{self, ErrorKind, Read};
use std::sync::{Mutex, PoisonError};

/// A piece holds this many bytes, and one of the largest chunks that was not cut off in the piece before.
const PIECE_BYTES: usize = 1 << 20;
/// A piece with less room than this left is handed on before the next read.
const READ_BYTES_MIN: usize = 64 << 10;
/// A piece with more parts than this is handed on, however small: it bounds what a piece weighs.
const PARTS_MAX: usize = 4096;
/// A file whose inode changed so shortly before it was read may be changed again without its time telling so: the clock
/// that stamps inodes ticks every 1 to 10 ms. It is read again next time.
const TICK_NANOSECONDS: i128 = 20_000_000;
/// The same for file systems that keep whole seconds, or even ones (FAT).
const COARSE_TICK_NANOSECONDS: i128 = 2_000_000_000;

/// A file to be read.
pub(super) struct ToRead {
    pub(super) path: EntryPath,
    pub(super) metadata: Metadata,
    pub(super) size: u64,
    pub(super) handle: FileHandle,
    pub(super) action: EntryAction,
    /// If only ranges of it changed.
    pub(super) patch: Option<Box<Patch>>,
}

/// A batch of items for one reader, and where its pieces go.
pub(super) struct Job {
    pub(super) items: Vec<Item>,
    pub(super) pieces: Sender<Ticket<ReadyPiece>>,
}

/// A piece, read, cut and fingerprinted.
pub(super) struct ReadyPiece {
    pub(super) bytes: Vec<u8>,
    pub(super) parts: Vec<Part>,
}

/// What a piece is made of, in stream order.
pub(super) enum Part {
    /// An item that needed no reading.
    Item(Item),
    /// A large file begins; told of files that a checkpoint may meet half read.
    Begin(EntryPath),
    /// The next chunk of the current file.
    Chunk { start: usize, length: usize, fingerprint: Fingerprint },
    /// The next chunks of the current file, known from the previous snapshot and not read, with their bytes.
    Kept { run: ChunkRun, bytes: u64 },
    /// The next hole of the current file.
    Hole(u64),
    /// The current file ends.
    End(Box<FileEnd>),
}

/// How the reading of a file ended.
pub(super) struct FileEnd {
    pub(super) path: EntryPath,
    pub(super) metadata: Metadata,
    pub(super) action: EntryAction,
    /// Bytes read and holes passed over.
    pub(super) size: u64,
    /// Bytes read.
    pub(super) read_bytes: u64,
    /// Whether there is content to keep.
    pub(super) is_complete: bool,
    pub(super) problem: Option<Problem>,
}

/// Buffers that go round between readers and the assembling stage.
pub(super) struct Buffers {
    free: Mutex<Vec<Vec<u8>>>,
    bytes: usize,
}

impl Buffers {
    pub(super) fn new(chunk_bytes_max: usize) -> Self {
        Self { free: Mutex::default(), bytes: PIECE_BYTES + chunk_bytes_max }
    }

    fn take(&self) -> Vec<u8> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        free.unwrap_or_else(|| vec![0; self.bytes])
    }

    pub(super) fn give_back(&self, buffer: Vec<u8>) {
        if buffer.len() == self.bytes {
            self.free.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
        }
    }
}

/// What all readers share.
#[derive(Clone)]
pub(super) struct ReadStage<'a, 'env> {
    pub(super) chunker: &'a dyn Chunker,
    pub(super) buffers: &'a Buffers,
    pub(super) hashers: Pool<'env, Fingerprinter>,
    pub(super) observer: &'a dyn Observer,
    /// What earlier snapshots hold, for files of which only ranges changed.
    pub(super) chunks: &'a ChunkSource<'a>,
    /// Disconnected once the assembling stage has ended. Its end alone would not show here: a queue of steps that
    /// nobody takes any more still holds the receivers of their pieces, as long as the planner holds the queue.
    pub(super) assembling: Receiver<Infallible>,
}

/// The stage after has gone away; it has the error to tell.
pub(super) struct Stopped;

impl ReadStage<'_, '_> {
    /// Works off jobs until there are no more.
    pub(super) fn run(&self, jobs: &Receiver<Job>) {
        for job in jobs {
            let mut piece = PieceWriter::new(self, job.pieces);
            let done = job.items.into_iter().try_for_each(|item| match item {
                Item::Read(file) => piece.read_file(file),
                other => piece.add(Part::Item(other)),
            });
            if done.is_err() || piece.hand_on().is_err() {
                return;
            }
        }
    }

    /// Reads a stream to its end as the one file of a job.
    ///
    /// # Errors
    /// Of the stream; the file then has no end and must not be kept.
    pub(super) fn run_stream(
        &self,
        mut stream: Box<dyn Read + Send>,
        path: EntryPath,
        end: impl FnOnce(u64) -> FileEnd,
        pieces: Sender<Ticket<ReadyPiece>>,
    ) -> io::Result<()> {
        let mut piece = PieceWriter::new(self, pieces);
        let mut bytes = 0;
        let _ = piece.add(Part::Begin(path));
        loop {
            if self.observer.is_cancelled() {
                return Err(ErrorKind::Interrupted.into());
            }
            match piece.fill(usize::MAX, &mut |buffer| stream.read(buffer)) {
                Ok(Ok(0)) => break,
                Ok(Ok(count)) => bytes += count as u64,
                Ok(Err(error)) if error.kind() == ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Err(error),
                Err(Stopped) => return Ok(()),
            }
        }
        let finished = piece.cut_rest().and_then(|()| piece.add(Part::End(Box::new(end(bytes)))));
        let _ = finished.and_then(|()| piece.hand_on());
        Ok(())
    }
}

/// A piece in the making.
pub(super) struct PieceWriter<'s, 'a, 'env> {
    pub(super) stage: &'s ReadStage<'a, 'env>,
    out: Sender<Ticket<ReadyPiece>>,
    bytes: Vec<u8>,
    filled: usize,
    /// Bytes before this are cut into chunks.
    cut: usize,
    parts: Vec<Part>,
}

impl<'s, 'a, 'env> PieceWriter<'s, 'a, 'env> {
    fn new(stage: &'s ReadStage<'a, 'env>, out: Sender<Ticket<ReadyPiece>>) -> Self {
        Self { stage, out, bytes: stage.buffers.take(), filled: 0, cut: 0, parts: Vec::new() }
    }

    pub(super) fn add(&mut self, part: Part) -> Result<(), Stopped> {
        self.parts.push(part);
        if self.parts.len() >= PARTS_MAX { self.hand_on() } else { Ok(()) }
    }

    fn read_file(&mut self, file: ToRead) -> Result<(), Stopped> {
        let ToRead { path, mut metadata, handle, action, patch, .. } = file;
        let end = |metadata: Metadata, size, read_bytes, is_complete, problem| {
            Part::End(Box::new(FileEnd {
                path: path.clone(),
                metadata,
                action,
                size,
                read_bytes,
                is_complete,
                problem,
            }))
        };
        let source = match handle.open(&path) {
            Ok(source) => source,
            Err(problem) => return self.add(end(metadata, 0, 0, false, Some(problem))),
        };
        source.update(&mut metadata);
        distrust_fresh(&mut metadata, now());
        if source.size() > PIECE_BYTES as u64 {
            self.add(Part::Begin(path.clone()))?;
        }
        let outcome = match patch {
            Some(patch) => self.read_changed(&source, &patch)?,
            None => self.read_content(&source)?,
        };
        let part = match outcome {
            Err(error) => end(metadata, 0, 0, false, Some(Problem::entry(&path, ProblemKind::Unreadable, error))),
            Ok((size, read_bytes)) => {
                let changed = size != source.size() || source.changed_since_open().unwrap_or(true);
                let reason = "what was read is stored, and may be a mixture of before and after";
                let problem = changed.then(|| Problem::entry(&path, ProblemKind::ChangedWhileRead, reason));
                end(metadata, size, read_bytes, true, problem)
            }
        };
        self.add(part)
    }

    /// Reads the stretches of data up to the size at opening; gives the size reached and the bytes read.
    fn read_content(&mut self, source: &SourceFile) -> Result<io::Result<(u64, u64)>, Stopped> {
        let (mut at, mut read_bytes) = (0u64, 0u64);
        for extent in source.data_extents() {
            let extent = match extent {
                Ok(extent) => extent,
                Err(error) => return Ok(Err(error)),
            };
            self.add_hole(extent.offset.saturating_sub(at))?;
            at = extent.offset;
            while at < extent.end() {
                if self.stage.observer.is_cancelled() {
                    return Err(Stopped);
                }
                let left = usize::try_from(extent.end() - at).unwrap_or(usize::MAX);
                match self.fill(left, &mut |buffer| source.read_at(buffer, at))? {
                    Ok(0) => {
                        // It has become shorter.
                        self.cut_rest()?;
                        return Ok(Ok((at, read_bytes)));
                    }
                    Ok(count) => {
                        at += count as u64;
                        read_bytes += count as u64;
                    }
                    Err(error) => {
                        self.cut_rest()?;
                        return Ok(Err(error));
                    }
                }
            }
            self.cut_rest()?;
        }
        self.add_hole(source.size().saturating_sub(at))?;
        Ok(Ok((source.size(), read_bytes)))
    }

    pub(super) fn add_hole(&mut self, bytes: u64) -> Result<(), Stopped> {
        if bytes == 0 { Ok(()) } else { self.add(Part::Hole(bytes)) }
    }

    /// Reads once, at most `most` bytes, and cuts what can be cut without knowing what follows.
    fn fill(
        &mut self,
        most: usize,
        read: &mut dyn FnMut(&mut [u8]) -> io::Result<usize>,
    ) -> Result<io::Result<usize>, Stopped> {
        let outcome = self.take_in(most, read)?;
        let most = self.stage.chunker.sizes().max();
        while self.filled - self.cut >= most {
            self.cut_one();
        }
        Ok(outcome)
    }

    /// Reads once, at most `most` bytes.
    pub(super) fn take_in(
        &mut self,
        most: usize,
        read: &mut dyn FnMut(&mut [u8]) -> io::Result<usize>,
    ) -> Result<io::Result<usize>, Stopped> {
        if self.bytes.len() - self.filled < READ_BYTES_MIN.min(most) || self.parts.len() >= PARTS_MAX {
            self.hand_on()?;
        }
        let end = self.bytes.len().min(self.filled.saturating_add(most));
        let outcome = read(&mut self.bytes[self.filled..end]);
        self.filled += outcome.as_ref().map_or(0, |count| *count);
        Ok(outcome)
    }

    /// Bytes read and not yet cut.
    pub(super) fn uncut_bytes(&self) -> u64 {
        (self.filled - self.cut) as u64
    }

    /// Gives up what is read and not yet cut.
    pub(super) fn forget_uncut(&mut self) {
        self.filled = self.cut;
    }

    /// Cuts one chunk and gives its length, if it stays the same whatever follows; at the end of the data nothing does.
    pub(super) fn cut_if_final(&mut self, is_end: bool) -> Option<usize> {
        let data = &self.bytes[self.cut..self.filled];
        let length = self.stage.chunker.cut(data);
        let is_final = is_end || length < data.len() || data.len() >= self.stage.chunker.sizes().max();
        let is_chunk = is_final && length > 0;
        if is_chunk {
            self.push_chunk(length);
        }
        is_chunk.then_some(length)
    }

    /// Cuts all that is left: the file, or a stretch of its data, ends here.
    pub(super) fn cut_rest(&mut self) -> Result<(), Stopped> {
        while self.cut < self.filled {
            self.cut_one();
        }
        if self.parts.len() >= PARTS_MAX { self.hand_on() } else { Ok(()) }
    }

    fn cut_one(&mut self) {
        self.push_chunk(self.stage.chunker.cut(&self.bytes[self.cut..self.filled]));
    }

    fn push_chunk(&mut self, length: usize) {
        self.parts.push(Part::Chunk { start: self.cut, length, fingerprint: Fingerprint([0; 16]) });
        self.cut += length;
    }

    /// Hands the piece on to be fingerprinted; what is not cut begins the next one.
    fn hand_on(&mut self) -> Result<(), Stopped> {
        let mut next = self.stage.buffers.take();
        let rest = &self.bytes[self.cut..self.filled];
        next[..rest.len()].copy_from_slice(rest);
        self.filled = rest.len();
        self.cut = 0;
        let bytes = std::mem::replace(&mut self.bytes, next);
        let mut parts = std::mem::take(&mut self.parts);
        let ticket = self.stage.hashers.submit(move |fingerprinter| {
            fingerprint_chunks(fingerprinter, &bytes, &mut parts);
            ReadyPiece { bytes, parts }
        });
        select! {
            send(self.out, ticket) -> sent => sent.map_err(|_| Stopped),
            recv(self.stage.assembling) -> _ => Err(Stopped),
        }
    }
}

impl Drop for PieceWriter<'_, '_, '_> {
    fn drop(&mut self) {
        self.stage.buffers.give_back(std::mem::take(&mut self.bytes));
    }
}

/// Fingerprints the chunks of a piece together: one by one they would leave most lanes of the hash idle.
fn fingerprint_chunks(fingerprinter: &Fingerprinter, bytes: &[u8], parts: &mut [Part]) {
    let chunk = |part: &Part| match part {
        Part::Chunk { start, length, .. } => Some(*start..*start + *length),
        _ => None,
    };
    let chunks: Vec<&[u8]> = parts.iter().filter_map(chunk).map(|range| &bytes[range]).collect();
    let mut hashes = Vec::with_capacity(chunks.len());
    fingerprinter.fingerprints(&chunks, &mut hashes);
    let mut hashes = hashes.iter();
    for part in parts {
        if let Part::Chunk { fingerprint, .. } = part {
            *fingerprint = hashes.next().map(Fingerprint::of_hash).expect("one hash for each chunk");
        }
    }
}

/// Forgets the change time of an inode changed within the last tick before it was opened, so that the next backup reads
/// the file again.
fn distrust_fresh(metadata: &mut Metadata, opened: Time) {
    let nanoseconds = |time: Time| i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanoseconds);
    let age = nanoseconds(opened) - nanoseconds(metadata.changed);
    let tick = if metadata.changed.nanoseconds == 0 { COARSE_TICK_NANOSECONDS } else { TICK_NANOSECONDS };
    if age < tick {
        metadata.changed = Time::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_store::{MasterKey, RepositoryId, RepositoryKeys};

    #[test]
    fn chunks_fingerprinted_together_are_those_fingerprinted_alone() {
        let keys = RepositoryKeys::derive(&MasterKey::from_bytes([1; 32]), RepositoryId([2; 16]));
        let bytes: Vec<u8> = (0..300_000u32).map(|i| i.wrapping_mul(i).to_le_bytes()[1]).collect();
        let (mut parts, mut start) = (Vec::new(), 0);
        for length in [0, 1, 1024, 9000, 20_000, 700, 65_536, 8191, 100_000] {
            parts.extend([Part::Chunk { start, length, fingerprint: Fingerprint([0; 16]) }, Part::Hole(7)]);
            start += length;
        }
        fingerprint_chunks(&Fingerprinter::best(&keys.fingerprint_key()), &bytes, &mut parts);
        for part in parts {
            if let Part::Chunk { start, length, fingerprint } = part {
                assert_eq!(fingerprint, keys.fingerprint(&bytes[start..start + length]), "{length} bytes");
            }
        }
    }
}
