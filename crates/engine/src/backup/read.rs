//! The stage that reads: files, or a stream, become pieces (module `piece`); the pool behind it fingerprints each piece
//! while the next is read.

use super::flow::{Disconnected, FileEnd, Item, Job, Part, Patch, ReadyPiece, ToRead};
use super::fresh::distrust_fresh;
use super::piece::{PIECE_BYTES, PieceWriter, ReadStage};
use super::source::{ContentReader, FileContent, FileRead, Span, Unread, disk_reader};
use crate::fs::{FileHandle, Problem, ProblemKind, SourceFile};
use crate::lease::now;
use crate::parallel::Ticket;
use crossbeam_channel::{Receiver, Sender};
use siltstone_store::Time;
use siltstone_store::catalog::{EntryPath, Metadata};
use std::io::{self, ErrorKind, Read};

/// Files of up to this many bytes are read before they are looked at; they fit into what every piece has room for.
const AS_SEEN_BYTES_MAX: usize = 64 << 10;
/// Content of a file that says it is empty is below this.
const UNSIZED_BYTES_MAX: u64 = 64 << 20;

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
        let ToRead { path, mut metadata, size, unread, action, patch, is_remembered } = file;
        let read = match unread {
            Unread::OnDisk(handle) => self.read_on_disk(&path, &mut metadata, size, &handle, patch.as_deref())?,
            Unread::Described(described) => self.read_described(&path, size, &*described.content)?,
        };
        let is_complete = read.is_ok();
        let nothing = |problem| FileRead { size: 0, read_bytes: 0, problem: Some(problem) };
        let FileRead { size, read_bytes, problem } = read.unwrap_or_else(nothing);
        let end = FileEnd { path, metadata, action, size, read_bytes, is_complete, problem, is_remembered };
        self.add(Part::End(Box::new(end)))
    }

    /// Reads a file on disk.
    fn read_on_disk(
        &mut self,
        path: &EntryPath,
        metadata: &mut Metadata,
        size: u64,
        handle: &FileHandle,
        patch: Option<&Patch>,
    ) -> Result<Result<FileRead, Problem>, Disconnected> {
        if patch.is_none()
            && let Some(read) = self.read_as_seen(metadata, size, handle)?
        {
            return Ok(Ok(read));
        }
        self.read_with_care(path, metadata, handle, patch)
    }

    /// Reads a small file with as few system calls as can be: that it is the one the scan saw, and as it was then, is
    /// looked at once, when all is read; of one that says it is empty, that there is nothing to be read. `None` if
    /// anything is in the way: then nothing is kept of what was read.
    fn read_as_seen(
        &mut self,
        metadata: &mut Metadata,
        size: u64,
        handle: &FileHandle,
    ) -> Result<Option<FileRead>, Disconnected> {
        let Some(most) = usize::try_from(size).ok().filter(|size| *size <= AS_SEEN_BYTES_MAX) else { return Ok(None) };
        let begun = now();
        let Ok(source) = handle.open_as_seen() else { return Ok(None) };
        let xattrs = if handle.xattrs_later() { source.xattrs().map(Some) } else { Ok(None) };
        let (Ok(xattrs), false) = (xattrs, source.may_have_holes()) else { return Ok(None) };
        let is_whole = if most == 0 {
            source.read_on(&mut [0]).is_ok_and(|count| count == 0)
        } else {
            match self.take_in(most, &mut |buffer| source.read_at(buffer, 0))? {
                Ok(count) => count == most,
                Err(_) => false,
            }
        };
        if !is_whole || !source.is_as_opened().unwrap_or(false) {
            self.forget_uncut();
            return Ok(None);
        }
        self.cut_rest()?;
        if let Some(xattrs) = xattrs {
            metadata.xattrs = xattrs;
        }
        distrust_fresh(metadata, begun);
        Ok(Some(FileRead { size, read_bytes: size, problem: None }))
    }

    /// Reads a file that is looked at when it is opened. Its metadata are brought up to that moment.
    fn read_with_care(
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
        let lacking = handle.xattrs_later().then(|| read_xattrs(path, metadata, &source)).flatten();
        self.begin(path, source.size())?;
        let outcome = match patch {
            _ if source.size() == 0 => self.read_unsized(path, &source)?,
            Some(patch) => self.read_changed(&source, patch)?,
            None => self.read_content(&mut disk_reader(&source))?,
        };
        Ok(match outcome {
            Err(error) => Err(Problem::entry(path, ProblemKind::Unreadable, error)),
            Ok((size, read_bytes)) => {
                let changed = size < source.size() || source.changed_since_open().unwrap_or(true);
                let reason = "what was read is stored, and may be a mixture of before and after";
                let problem = changed.then(|| Problem::entry(path, ProblemKind::ChangedWhileRead, reason));
                Ok(FileRead { size, read_bytes, problem: problem.or(lacking) })
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
                Ok(Some(Span::Data(most))) => match self.read_data(&mut |buffer| source.read(buffer), most)? {
                    Err(error) => return Ok(Err(error)),
                    Ok(bytes) => (size, read_bytes) = (size.saturating_add(bytes), read_bytes + bytes),
                },
            }
        }
    }

    /// Reads a file that says it is empty to where nothing follows; gives the size reached and the bytes read. In
    /// `/proc` there are some that hardly end.
    fn read_unsized(&mut self, path: &EntryPath, source: &SourceFile) -> Result<io::Result<(u64, u64)>, Disconnected> {
        // It may turn out to be large.
        self.add(Part::Begin(path.clone()))?;
        let read = self.read_data(&mut |buffer| source.read_on(buffer), UNSIZED_BYTES_MAX)?;
        let too_much = || io::Error::other("its size is said to be 0, and there is far too much in it for that");
        Ok(read.and_then(|bytes| if bytes < UNSIZED_BYTES_MAX { Ok((bytes, bytes)) } else { Err(too_much()) }))
    }

    /// Reads a span of data to its end; gives its bytes.
    fn read_data(
        &mut self,
        read: &mut dyn FnMut(&mut [u8]) -> io::Result<usize>,
        most: u64,
    ) -> Result<io::Result<u64>, Disconnected> {
        let mut bytes = 0;
        let outcome = loop {
            if bytes >= most {
                break Ok(bytes);
            }
            if self.stage.observer.is_cancelled() {
                return Err(Disconnected);
            }
            let left = usize::try_from(most - bytes).unwrap_or(usize::MAX);
            match self.fill(left, read)? {
                Ok(0) => break Ok(bytes),
                Ok(count) => bytes += count as u64,
                Err(error) => break Err(error),
            }
        };
        self.cut_rest()?;
        Ok(outcome)
    }
}

/// Reads the extended attributes of an open file. If they cannot be had, the next backup reads the file again.
fn read_xattrs(path: &EntryPath, metadata: &mut Metadata, source: &SourceFile) -> Option<Problem> {
    match source.xattrs() {
        Ok(xattrs) => {
            metadata.xattrs = xattrs;
            None
        }
        Err(error) => {
            metadata.changed = Time::default();
            Some(Problem::xattrs(path, &error))
        }
    }
}
