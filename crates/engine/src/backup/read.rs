//! The stage that reads: files, or a stream, become pieces (module `piece`); the pool behind it fingerprints each piece
//! while the next is read.

use super::flow::{Disconnected, FileEnd, Item, Job, Part, ReadyPiece, ToRead};
use super::piece::{PIECE_BYTES, PieceWriter, ReadStage};
use crate::fs::{Problem, ProblemKind, SourceFile};
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
    fn read_content(&mut self, source: &SourceFile) -> Result<io::Result<(u64, u64)>, Disconnected> {
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
                    return Err(Disconnected);
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
