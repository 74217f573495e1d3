//! The stage that reads: files, or a stream, become pieces (module `piece`); the pool behind it fingerprints each piece
//! while the next is read.

use super::flow::{Disconnected, FileEnd, Item, Job, Part, Patch, ReadyPiece, ToRead};
use super::piece::{PIECE_BYTES, PieceWriter, ReadStage};
use super::source::{ContentReader, FileContent, FileRead, Span, Unread, disk_reader};
use crate::fs::{FileHandle, Problem, ProblemKind};
use crate::lease::now;
use crate::parallel::Ticket;
use crossbeam_channel::{Receiver, Sender};
use siltstone_store::Time;
use siltstone_store::catalog::{EntryPath, Metadata};
use std::io::{self, ErrorKind, Read};

/// A file whose inode changed so shortly before it was read may be changed again without its time telling so: the clock
/// that stamps inodes ticks every 1 to 10 ms. It is read again next time.
const TICK_NANOSECONDS: i128 = 20_000_000;
/// Tick of file systems that keep whole seconds, or even ones (FAT).
const COARSE_TICK_NANOSECONDS: i128 = 2_000_000_000;

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
    /// Those of the stream; the file then has no end and must not be kept.
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
                Err(Disconnected) => return Ok(()),
            }
        }
        let finished = piece.cut_rest().and_then(|()| piece.add(Part::End(Box::new(end(bytes)))));
        let _ = finished.and_then(|()| piece.hand_on());
        Ok(())
    }
}

impl PieceWriter<'_, '_, '_> {
    fn read_file(&mut self, file: ToRead) -> Result<(), Disconnected> {
        let ToRead { path, mut metadata, size, unread, action, patch } = file;
        let read = match unread {
            Unread::OnDisk(handle) => self.read_on_disk(&path, &mut metadata, &handle, patch.as_deref())?,
            Unread::Described(described) => self.read_described(&path, size, &*described.content)?,
        };
        let is_complete = read.is_ok();
        let nothing = |problem| FileRead { size: 0, read_bytes: 0, problem: Some(problem) };
        let FileRead { size, read_bytes, problem } = read.unwrap_or_else(nothing);
        self.add(Part::End(Box::new(FileEnd { path, metadata, action, size, read_bytes, is_complete, problem })))
    }

    /// Reads a file on disk. Its metadata are brought up to the moment of opening.
    fn read_on_disk(
        &mut self,
        path: &EntryPath,
        metadata: &mut Metadata,
        handle: &FileHandle,
        patch: Option<&Patch>,
    ) -> Result<Result<FileRead, Problem>, Disconnected> {
        let source = match handle.open(path) {
            Ok(source) => source,
            Err(problem) => return Ok(Err(problem)),
        };
        source.update(metadata);
        distrust_fresh(metadata, now());
        self.begin(path, source.size())?;
        let outcome = match patch {
            Some(patch) => self.read_changed(&source, patch)?,
            None => self.read_content(&mut disk_reader(&source))?,
        };
        Ok(match outcome {
            Err(error) => Err(Problem::entry(path, ProblemKind::Unreadable, error)),
            Ok((size, read_bytes)) => {
                let changed = size != source.size() || source.changed_since_open().unwrap_or(true);
                let reason = "what was read is stored, and may be a mixture of before and after";
                let problem = changed.then(|| Problem::entry(path, ProblemKind::ChangedWhileRead, reason));
                Ok(FileRead { size, read_bytes, problem })
            }
        })
    }

    /// Reads content that its source describes: nothing of it changes, and it has the length that was said or is
    /// damaged.
    fn read_described(
        &mut self,
        path: &EntryPath,
        size: u64,
        content: &dyn FileContent,
    ) -> Result<Result<FileRead, Problem>, Disconnected> {
        self.begin(path, size)?;
        let outcome = match content.open(path) {
            Ok(mut reader) => self.read_content(&mut *reader)?,
            Err(error) => Err(error),
        };
        if self.stage.observer.is_cancelled() {
            return Err(Disconnected);
        }
        let unreadable = |reason: String| Problem::entry(path, ProblemKind::Unreadable, reason);
        Ok(match outcome {
            Err(error) => Err(unreadable(error.to_string())),
            Ok((read, read_bytes)) if read == size => Ok(FileRead { size, read_bytes, problem: None }),
            Ok((read, _)) => Err(unreadable(format!("it has {read} bytes instead of {size}"))),
        })
    }

    /// Tells of a large file before its first chunk.
    fn begin(&mut self, path: &EntryPath, size: u64) -> Result<(), Disconnected> {
        if size > PIECE_BYTES as u64 { self.add(Part::Begin(path.clone())) } else { Ok(()) }
    }

    /// Reads all spans of a file; gives the size reached and the bytes read.
    fn read_content(&mut self, source: &mut dyn ContentReader) -> Result<io::Result<(u64, u64)>, Disconnected> {
        let (mut size, mut read_bytes) = (0u64, 0u64);
        loop {
            match source.next_span() {
                Err(error) => return Ok(Err(error)),
                Ok(None) => return Ok(Ok((size, read_bytes))),
                Ok(Some(Span::Hole(bytes))) => {
                    self.add_hole(bytes)?;
                    size = size.saturating_add(bytes);
                }
                Ok(Some(Span::Data(most))) => match self.read_data(source, most)? {
                    Err(error) => return Ok(Err(error)),
                    Ok(bytes) => (size, read_bytes) = (size.saturating_add(bytes), read_bytes + bytes),
                },
            }
        }
    }

    /// Reads a span of data to its end; gives its bytes.
    fn read_data(&mut self, source: &mut dyn ContentReader, most: u64) -> Result<io::Result<u64>, Disconnected> {
        let mut bytes = 0;
        let outcome = loop {
            if bytes >= most {
                break Ok(bytes);
            }
            if self.stage.observer.is_cancelled() {
                return Err(Disconnected);
            }
            let left = usize::try_from(most - bytes).unwrap_or(usize::MAX);
            match self.fill(left, &mut |buffer| source.read(buffer))? {
                Ok(0) => break Ok(bytes),
                Ok(count) => bytes += count as u64,
                Err(error) => break Err(error),
            }
        };
        self.cut_rest()?;
        Ok(outcome)
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
