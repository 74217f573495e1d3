//! Content of a snapshot's files, from front to back: asked for by the backup's readers, fetched by one thread.
//!
//! Small files share a portion that is fetched when the first of them is read and kept until the last is. A large file
//! has a window of its own, which moves. Readers know chunk numbers only; what they get is verified.

use crate::backup::source::{ContentReader, FileContent, Span};
use crate::decode::Bytes;
use crossbeam_channel::{Sender, bounded};
use siltstone_store::catalog::EntryPath;
use siltstone_store::recipe::{Piece, Recipe};
use siltstone_store::{ChunkNumber, ChunkRun, StoreError};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, OnceLock};
use std::vec::IntoIter;

/// A chunk's bytes, or why there are none.
pub(super) type Fetched = Result<Bytes, Arc<StoreError>>;

/// Consecutive pieces of a long recipe, and the offset in the file at which they begin; `None` past its end.
pub(super) type RecipePart = Result<Option<(u64, Vec<Piece>)>, Arc<StoreError>>;

/// Work for the thread that fetches, and where the answer goes.
pub(super) enum Request {
    /// Chunks of these runs, in order, as many as fit into so many bytes; at least one.
    Chunks { runs: Vec<ChunkRun>, bytes_max: u64, reply: Sender<Vec<(ChunkNumber, Fetched)>> },
    /// The pieces of a long recipe around an offset.
    Part { recipe: Recipe, offset: u64, reply: Sender<RecipePart> },
}

/// Failure of the source as a whole, such as a place that does not answer: nothing more is read of it.
#[derive(Clone, Default)]
pub(super) struct Outage(Arc<OnceLock<Arc<StoreError>>>);

impl Outage {
    /// Takes note of an error that is no damage of single objects.
    pub(super) fn note(&self, error: &Arc<StoreError>) {
        if !error.is_damage() {
            let _ = self.0.set(error.clone());
        }
    }

    /// Returns the failure, if there was one.
    pub(super) fn failure(&self) -> Option<Arc<StoreError>> {
        self.0.get().cloned()
    }
}

/// The way to the thread that fetches.
#[derive(Clone)]
pub(super) struct Fetches {
    pub(super) asked: Sender<Request>,
    /// Bytes of content that a portion or a window holds at most.
    pub(super) ahead_bytes: u64,
}

impl Fetches {
    fn chunks(&self, runs: Vec<ChunkRun>) -> io::Result<Vec<(ChunkNumber, Fetched)>> {
        self.ask(|reply| Request::Chunks { runs, bytes_max: self.ahead_bytes, reply })
    }

    fn part(&self, recipe: &Recipe, offset: u64) -> io::Result<RecipePart> {
        self.ask(|reply| Request::Part { recipe: recipe.clone(), offset, reply })
    }

    fn ask<R>(&self, request: impl FnOnce(Sender<R>) -> Request) -> io::Result<R> {
        let gone = || io::Error::other("the thread that reads the source repository ended");
        let (reply, answer) = bounded(1);
        self.asked.send(request(reply)).map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())
    }
}

/// Chunks of several files, fetched together when the first is wanted.
pub(super) struct Portion {
    runs: Vec<ChunkRun>,
    chunks: OnceLock<HashMap<ChunkNumber, Fetched>>,
}

impl Portion {
    pub(super) fn new(runs: Vec<ChunkRun>) -> Self {
        Self { runs, chunks: OnceLock::new() }
    }

    /// A chunk of the portion. One that it lacks is fetched by itself.
    fn get(&self, number: ChunkNumber, fetches: &Fetches) -> Option<Fetched> {
        let fetch = || fetches.chunks(self.runs.clone()).unwrap_or_default().into_iter().collect();
        self.chunks.get_or_init(fetch).get(&number).cloned()
    }
}

/// A file of a snapshot.
pub(super) struct StoredFile {
    pub(super) size: u64,
    pub(super) recipe: Recipe,
    /// The portion that its chunks are in.
    pub(super) portion: Option<Arc<Portion>>,
    pub(super) fetches: Fetches,
}

impl FileContent for StoredFile {
    fn open<'c>(&'c self, _: &EntryPath) -> io::Result<Box<dyn ContentReader + 'c>> {
        let pieces = match &self.recipe {
            Recipe::Inline(pieces) => pieces.clone(),
            Recipe::Indirect(_) => Vec::new(),
        };
        Ok(Box::new(StoredReader {
            file: self,
            at: 0,
            pieces: pieces.into_iter(),
            run: None,
            window: VecDeque::new(),
            chunk: Bytes::new(),
            used: 0,
        }))
    }
}

/// Reads a file of a snapshot.
struct StoredReader<'c> {
    file: &'c StoredFile,
    /// Offset of the next byte of the file.
    at: u64,
    /// Pieces behind the current run, as far as they are known.
    pieces: IntoIter<Piece>,
    /// Chunks of the current run still to come; never empty.
    run: Option<ChunkRun>,
    /// Chunks fetched ahead, in order.
    window: VecDeque<(ChunkNumber, Fetched)>,
    /// The current chunk, and how much of it has been read.
    chunk: Bytes,
    used: usize,
}

impl StoredReader<'_> {
    /// Sees to it that the next piece of a long recipe is known.
    fn refill(&mut self) -> io::Result<()> {
        let is_long = matches!(self.file.recipe, Recipe::Indirect(_));
        if !is_long || self.run.is_some() || !self.pieces.as_slice().is_empty() || self.at >= self.file.size {
            return Ok(());
        }
        if let Some((begins, pieces)) = self.file.fetches.part(&self.file.recipe, self.at)?.map_err(damaged)? {
            if begins != self.at || pieces.is_empty() {
                return Err(damaged(format!("its recipe says nothing of byte {}", self.at)));
            }
            self.pieces = pieces.into_iter();
        }
        Ok(())
    }

    /// Takes the number of the next chunk of the current span of data.
    fn next_number(&mut self) -> io::Result<Option<ChunkNumber>> {
        self.refill()?;
        if self.run.is_none()
            && let Some(Piece::Run(run)) = self.pieces.as_slice().first()
        {
            self.run = Some(*run).filter(|run| run.count > 0);
            self.pieces.next();
        }
        Ok(self.run.map(|run| run.first))
    }

    /// Passes over the first chunk of the run.
    fn pass(&mut self) {
        self.run = self.run.and_then(|run| {
            let count = run.count.checked_sub(1).filter(|count| *count > 0)?;
            Some(ChunkRun { first: ChunkNumber(run.first.0.checked_add(1)?), count })
        });
    }

    fn fetch(&mut self, number: ChunkNumber) -> io::Result<Bytes> {
        let StoredFile { portion, fetches, .. } = self.file;
        if let Some(fetched) = portion.as_ref().and_then(|portion| portion.get(number, fetches)) {
            return fetched.map_err(damaged);
        }
        if self.window.front().is_none_or(|(ahead, _)| *ahead != number) {
            let ahead = self.pieces.as_slice().iter();
            let runs = ahead.filter_map(|piece| if let Piece::Run(run) = piece { Some(*run) } else { None });
            self.window = fetches.chunks(self.run.into_iter().chain(runs).collect())?.into();
        }
        match self.window.pop_front() {
            Some((ahead, fetched)) if ahead == number => fetched.map_err(damaged),
            _ => Err(damaged(format!("chunk {number} cannot be read"))),
        }
    }

    /// Goes on to the next chunk; `false` if the span of data has ended.
    fn next_chunk(&mut self) -> io::Result<bool> {
        let Some(number) = self.next_number()? else { return Ok(false) };
        (self.chunk, self.used) = (self.fetch(number)?, 0);
        self.pass();
        if self.at.saturating_add(self.chunk.len() as u64) > self.file.size {
            return Err(damaged(format!("its recipe makes more than {} bytes", self.file.size)));
        }
        Ok(true)
    }
}

impl ContentReader for StoredReader<'_> {
    fn next_span(&mut self) -> io::Result<Option<Span>> {
        self.refill()?;
        match self.pieces.as_slice().first() {
            Some(Piece::Hole(bytes)) => {
                let bytes = *bytes;
                self.pieces.next();
                self.at = self.at.saturating_add(bytes);
                Ok(Some(Span::Hole(bytes)))
            }
            Some(Piece::Run(_)) => Ok(Some(Span::Data(self.file.size.saturating_sub(self.at)))),
            None => Ok(None),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.used >= self.chunk.len() {
            if !self.next_chunk()? {
                return Ok(0);
            }
        }
        let rest = self.chunk.get(self.used..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        let (Some(from), Some(to)) = (rest.get(..count), buffer.get_mut(..count)) else { return Ok(0) };
        to.copy_from_slice(from);
        self.used += count;
        self.at = self.at.saturating_add(count as u64);
        Ok(count)
    }
}

fn damaged(reason: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("in the source repository, {reason}"))
}
