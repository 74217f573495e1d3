//! Reading a file of which only ranges changed: chunks that lie between them are kept by number, unread.
//!
//! A *window* around a change begins at the start of the previous chunk that covers its first byte, or ends right
//! before it, and goes on behind its last byte until a new cut falls on a border between previous chunks. A chunk's end
//! depends only on the bytes since the cut before it, so from there on the cuts of a full reading are the previous
//! ones, up to the next change. Before the window they are so as well: the recipe is the one a full reading would make,
//! as far as the file system tells the same holes.
//!
//! ```text
//! previous   |----|------|---|-----|----|---|
//! changed               ####
//! window          [------------->|            read: one chunk before, the change, what follows until the cuts agree
//! recipe     |----|---|----|-----|----|---|   kept: 1 and 5, 6; new: what lies between
//! ```
//! Holes are the file system's within windows, the previous ones outside. Beyond the end of the shorter of both
//! versions all is changed.

use super::layout::{Layout, PreviousExtent, PreviousKind};
use crate::backup::flow::{Disconnected, Part, Patch};
use crate::backup::piece::PieceWriter;
use crate::fs::{Extent, SourceFile};
use siltstone_store::ChunkRun;
use std::io;
use std::iter::Peekable;
use std::ops::Range;
use std::vec::IntoIter;

/// Result of reading: the size reached and the bytes read.
type Outcome = io::Result<(u64, u64)>;

struct Reread<'w, 's, 'a, 'env> {
    out: &'w mut PieceWriter<'s, 'a, 'env>,
    source: &'w SourceFile,
    previous: Layout<'a, 'a>,
    changes: Peekable<IntoIter<Range<u64>>>,
    /// All before this place is in the recipe.
    done: u64,
    /// Chunks kept that are not yet handed on, and their bytes.
    kept: Option<(ChunkRun, u64)>,
    read_bytes: u64,
}

/// How a window ended.
enum End {
    /// From here on the previous extents hold again, or the file ends.
    Agreed,
    /// The file ends before its size.
    Short,
}

impl PieceWriter<'_, '_, '_> {
    /// As reading the whole file, for a file of which most is known.
    pub(in crate::backup) fn read_changed(
        &mut self,
        source: &SourceFile,
        patch: &Patch,
    ) -> Result<Outcome, Disconnected> {
        let previous = Layout::new(&patch.recipe, self.stage.chunks);
        let changes = changes(patch, source.size()).into_iter().peekable();
        Reread { out: self, source, previous, changes, done: 0, kept: None, read_bytes: 0 }.run()
    }
}

/// Returns the ranges that changed, as far as the file still reaches, and those that changed with its length.
fn changes(patch: &Patch, size: u64) -> Vec<Range<u64>> {
    let clipped = patch.changed.iter().map(|range| range.start..range.end.min(size));
    let mut changes: Vec<_> = clipped.filter(|range| range.start < range.end).collect();
    // Of a file that was cut off no byte changed, and yet its last chunk did: hence also an empty range.
    if patch.size != size {
        changes.push(patch.size.min(size)..size);
    }
    changes.sort_unstable_by_key(|range| (range.start, range.end));
    changes
}

impl Reread<'_, '_, '_, '_> {
    fn run(mut self) -> Result<Outcome, Disconnected> {
        let size = self.source.size();
        while self.done < size {
            let change = self.changes.next();
            self.keep_until(change.as_ref().map(|change| change.start))?;
            match self.window(change.map_or(size, |change| change.end))? {
                Ok(End::Agreed) => {}
                Ok(End::Short) => break,
                Err(error) => return Ok(Err(error)),
            }
        }
        self.flush_kept()?;
        Ok(Ok((self.done, self.read_bytes)))
    }

    /// Keeps previous extents up to where the window of a change begins; without a change ahead, to the end of the
    /// file.
    fn keep_until(&mut self, change: Option<u64>) -> Result<(), Disconnected> {
        let size = self.source.size();
        // The last chunk and the holes behind it: where a change makes data of a hole, that data continues the chunk.
        let mut held: Vec<PreviousExtent> = Vec::new();
        let mut place = self.done;
        self.previous.seek(place);
        loop {
            self.check_cancelled()?;
            let current = self.previous.current().filter(|extent| extent.start == place);
            let Some(extent) = current else {
                // What is known ends: rightly at the end of the file, or because it cannot be read.
                return if place == size { self.keep(&mut held) } else { Ok(()) };
            };
            if change.map_or(extent.end > size, |change| extent.end >= change) {
                return if extent.is_hole() { Ok(()) } else { self.keep(&mut held) };
            }
            if !extent.is_hole() {
                self.keep(&mut held)?;
            }
            held.push(extent);
            place = extent.end;
            self.previous.advance();
        }
    }

    fn keep(&mut self, extents: &mut Vec<PreviousExtent>) -> Result<(), Disconnected> {
        for PreviousExtent { start, end, kind } in extents.drain(..) {
            let bytes = end - start;
            match (kind, &mut self.kept) {
                (PreviousKind::Hole, _) => {
                    self.flush_kept()?;
                    self.out.add_hole(bytes)?;
                }
                (PreviousKind::Chunk(number), Some((run, kept)))
                    if run.first.0.checked_add(run.count) == Some(number.0) =>
                {
                    run.count += 1;
                    *kept += bytes;
                }
                (PreviousKind::Chunk(first), _) => {
                    self.flush_kept()?;
                    self.kept = Some((ChunkRun { first, count: 1 }, bytes));
                }
            }
            self.done = end;
        }
        Ok(())
    }

    fn flush_kept(&mut self) -> Result<(), Disconnected> {
        match self.kept.take() {
            Some((run, bytes)) => self.out.add(Part::Kept { run, bytes }),
            None => Ok(()),
        }
    }

    /// Reads and cuts from `done` on, to `goal` and further until the cuts agree with the previous ones.
    fn window(&mut self, mut goal: u64) -> Result<io::Result<End>, Disconnected> {
        let size = self.source.size();
        if self.done < size {
            self.flush_kept()?;
        }
        while self.done < size {
            let extent = match self.data_from(self.done) {
                Ok(extent) => extent,
                Err(error) => return Ok(Err(error)),
            };
            let data = extent.map_or(size, |extent| extent.offset);
            if data > self.done {
                if self.agrees(&mut goal, true) {
                    return Ok(Ok(End::Agreed));
                }
                self.out.add_hole(data - self.done)?;
                self.done = data;
            }
            let Some(extent) = extent else { break };
            if self.agrees(&mut goal, false) {
                return Ok(Ok(End::Agreed));
            }
            match self.read_extent(extent.end(), &mut goal)? {
                Ok(None) => {}
                Ok(Some(end)) => return Ok(Ok(end)),
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(End::Agreed))
    }

    /// Reads the data up to `end`, behind which lies a hole or nothing. Stops before it where the cuts agree.
    fn read_extent(&mut self, end: u64, goal: &mut u64) -> Result<io::Result<Option<End>>, Disconnected> {
        // Behind the change the next cut may be the last: little is read at a time.
        let step = self.out.stage.chunker.sizes().expected();
        while self.done < end {
            self.check_cancelled()?;
            let at = self.done + self.out.uncut_bytes();
            let to_goal = usize::try_from(goal.saturating_sub(at)).unwrap_or(usize::MAX);
            let to_end = usize::try_from(end - at).unwrap_or(usize::MAX);
            let most = if to_goal == 0 { step } else { to_goal }.min(to_end);
            let source = self.source;
            let count = match self.out.take_in(most, &mut |buffer| source.read_at(buffer, at))? {
                Ok(0) => {
                    self.out.cut_rest()?;
                    self.done = at;
                    return Ok(Ok(Some(End::Short)));
                }
                Ok(count) => count as u64,
                Err(error) => {
                    self.out.cut_rest()?;
                    return Ok(Err(error));
                }
            };
            self.read_bytes += count;
            while let Some(length) = self.out.cut_if_final(at + count == end) {
                self.done += length as u64;
                if self.done < end && self.agrees(goal, false) {
                    self.out.forget_uncut();
                    return Ok(Ok(Some(End::Agreed)));
                }
            }
        }
        Ok(Ok(None))
    }

    /// Tells whether the previous extents hold from `done` on: the change is behind, and what begins here began here
    /// before, and is data or a hole as it was.
    fn agrees(&mut self, goal: &mut u64, is_hole: bool) -> bool {
        let place = self.done;
        while let Some(change) = self.changes.next_if(|change| change.start <= place) {
            *goal = change.end.max(*goal);
        }
        if place < *goal {
            return false;
        }
        self.previous.seek(place);
        self.previous.current().is_some_and(|extent| extent.start == place && extent.is_hole() == is_hole)
    }

    /// The next data, as a full reading sees it.
    fn data_from(&self, offset: u64) -> io::Result<Option<Extent>> {
        if self.source.may_have_holes() {
            return self.source.next_data(offset);
        }
        Ok(Some(Extent { offset, bytes: self.source.size().saturating_sub(offset) }))
    }

    fn check_cancelled(&self) -> Result<(), Disconnected> {
        if self.out.stage.observer.is_cancelled() { Err(Disconnected) } else { Ok(()) }
    }
}
