//! Chunks that a series borrows, as a source finds them: in containers of the lender, under numbers of the borrower.
//!
//! ```text
//! number here  ->  the import that has it  ->  the lender's newest manifest, read when it is first asked for
//!              ->  its containers, with their chunks under the numbers that they have here
//! ```
//! A chunk of the lender that is not borrowed, such as a base of one that is, gets a number that no series gives: the
//! lender's number above [`FOREIGN_SHIFT`] bits that say which lender. So all that reads chunks deals with one space of
//! numbers, and none but this module knows that there are others.

use roaring::RoaringTreemap;
use siltstone_store::container::{ContainerKind, ContainerRecord};
use siltstone_store::manifest::{BorrowedRun, Manifest};
use siltstone_store::{ChunkNumber, ChunkRun, SeriesId, StoreError};
use std::sync::Arc;

/// Bits of a lender's number in one that no series gives. A series that has had 2^56 chunks is beyond any disk.
const FOREIGN_SHIFT: u32 = 56;

/// A series that is borrowed of.
#[derive(Debug)]
pub(super) struct Lender {
    pub(super) series: SeriesId,
    /// The place among the lenders, from 1.
    place: u64,
    /// The borrowed chunks, by their numbers at the lender.
    runs: Vec<BorrowedRun>,
}

impl Lender {
    /// The number here of a chunk of the lender.
    pub(super) fn number_here(&self, there: ChunkNumber) -> ChunkNumber {
        if there.is_metadata() {
            return there;
        }
        let after = self.runs.partition_point(|run| run.first_there <= there);
        let run = after.checked_sub(1).and_then(|at| self.runs.get(at));
        let ahead = |run: &BorrowedRun| Some(there.0 - run.first_there.0).filter(|ahead| *ahead < run.chunks.count);
        match run.and_then(|run| Some(run.chunks.first.0 + ahead(run)?)) {
            Some(here) => ChunkNumber(here),
            None => ChunkNumber((self.place << FOREIGN_SHIFT) | (there.0 & ((1 << FOREIGN_SHIFT) - 1))),
        }
    }

    /// A container's record with the numbers here; none if it holds no data.
    pub(super) fn seen(&self, record: &ContainerRecord) -> Option<ContainerRecord> {
        if record.kind != ContainerKind::Data {
            return None;
        }
        let mut seen = record.clone();
        let mut pieces: Vec<(ChunkRun, u64)> = Vec::new();
        for run in &record.chunks {
            let bytes = record.bytes_of(*run).unwrap_or(0);
            self.cut(*run, |piece, there| pieces.push((piece, if there == *run { bytes } else { 0 })));
        }
        pieces.sort_unstable();
        (seen.chunks, seen.run_bytes) = pieces.into_iter().unzip();
        // A lender's container is in no lifecycle of the borrower, whatever its name is.
        seen.id.lease |= self.place << FOREIGN_SHIFT;
        Some(seen)
    }

    /// Cuts a run of the lender's numbers where the numbers here leap, and gives each piece's numbers here and there.
    fn cut(&self, run: ChunkRun, mut each: impl FnMut(ChunkRun, ChunkRun)) {
        let range = run.range();
        if range.is_empty() {
            return;
        }
        let (mut next, last) = (*range.start(), *range.end());
        loop {
            let after = self.runs.partition_point(|borrowed| borrowed.first_there.0 <= next);
            let within = after.checked_sub(1).and_then(|at| self.runs.get(at)).map(|borrowed| borrowed.there().range());
            let end = match within.filter(|within| within.contains(&next)) {
                Some(within) => *within.end(),
                None => self.runs.get(after).map_or(last, |following| following.first_there.0 - 1),
            };
            let end = end.min(last);
            let there = ChunkRun { first: ChunkNumber(next), count: end - next + 1 };
            each(ChunkRun { first: self.number_here(there.first), ..there }, there);
            if end == last {
                return;
            }
            next = end + 1;
        }
    }
}

/// State of a lender's manifest.
#[derive(Clone, Debug)]
enum State {
    Unread,
    Read { sequence: u64 },
    Unreadable { reason: String },
}

/// All series that are borrowed of.
#[derive(Clone, Debug, Default)]
pub(super) struct Lenders {
    known: Vec<(Arc<Lender>, State)>,
    /// First and last number here, and the lender's place in `known`; ascending.
    spans: Vec<(u64, u64, usize)>,
}

impl Lenders {
    /// The lenders of this manifest, to be read. Each keeps its place.
    pub(super) fn followed_by(&self, manifest: &Manifest) -> Self {
        let mut series: Vec<SeriesId> = self.known.iter().map(|(lender, _)| lender.series).collect();
        for lender in &manifest.lenders {
            if !series.contains(&lender.series) {
                series.push(lender.series);
            }
        }
        let mut spans = Vec::new();
        let known = series.into_iter().enumerate().map(|(at, series)| {
            let of_it = manifest.imports.iter().filter(|import| manifest.lender_of(import) == Some(series));
            let mut runs: Vec<BorrowedRun> = of_it.map(|import| import.run).collect();
            let ranges = runs.iter().map(|run| run.chunks.range());
            spans.extend(ranges.map(|range| (*range.start(), *range.end(), at)));
            runs.sort_unstable_by_key(|run| run.first_there);
            (Arc::new(Lender { series, place: at as u64 + 1, runs }), State::Unread)
        });
        let known = known.collect();
        spans.sort_unstable();
        Self { known, spans }
    }

    /// A lender whose manifest has to be read to find all of these chunks.
    pub(super) fn unread(&self, run: ChunkRun) -> Option<SeriesId> {
        let range = run.range();
        let from = self.spans.partition_point(|(_, last, _)| last < range.start());
        let mut met = self.spans.iter().skip(from).take_while(|(first, ..)| first <= range.end());
        met.find_map(|(.., at)| match self.known.get(*at)? {
            (lender, State::Unread) => Some(lender.series),
            _ => None,
        })
    }

    /// The numbers here of all that is borrowed.
    pub(super) fn numbers(&self) -> RoaringTreemap {
        let mut numbers = RoaringTreemap::new();
        for (first, last, _) in &self.spans {
            numbers.insert_range(*first..=*last);
        }
        numbers
    }

    /// All lenders whose manifests were not read yet.
    pub(super) fn all_unread(&self) -> Vec<SeriesId> {
        let unread =
            self.known.iter().filter(|(lender, state)| matches!(state, State::Unread) && !lender.runs.is_empty());
        unread.map(|(lender, _)| lender.series).collect()
    }

    /// The lenders whose manifests were read, and the numbers of these.
    pub(super) fn all_read(&self) -> Vec<(SeriesId, u64)> {
        let read = self.known.iter().filter_map(|(lender, state)| match state {
            State::Read { sequence } => Some((lender.series, *sequence)),
            _ => None,
        });
        read.collect()
    }

    /// Notes that a lender's manifest was read.
    pub(super) fn read(&mut self, series: SeriesId, sequence: u64) -> Option<Arc<Lender>> {
        let (lender, state) = self.known.iter_mut().find(|(lender, _)| lender.series == series)?;
        *state = State::Read { sequence };
        Some(lender.clone())
    }

    /// Notes that a lender's manifest cannot be read.
    pub(super) fn fail(&mut self, series: SeriesId, reason: String) {
        if let Some((_, state)) = self.known.iter_mut().find(|(lender, _)| lender.series == series) {
            *state = State::Unreadable { reason };
        }
    }

    /// The reason why a borrowed chunk is nowhere; none for one of the series' own.
    pub(super) fn fault(&self, number: ChunkNumber) -> Option<StoreError> {
        let after = self.spans.partition_point(|(first, ..)| *first <= number.0);
        let (.., at) = self.spans.get(after.checked_sub(1)?).filter(|(_, last, _)| number.0 <= *last)?;
        let (lender, state) = self.known.get(*at)?;
        let reason = match state {
            State::Unreadable { reason } => reason.clone(),
            State::Read { .. } | State::Unread => "its newest manifest does not have it".to_owned(),
        };
        Some(StoreError::NotLent { number, lender: lender.series, reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lender(runs: &[(u64, u64, u64)]) -> Lender {
        let run = |(here, there, count): &(u64, u64, u64)| BorrowedRun {
            chunks: ChunkRun { first: ChunkNumber(*here), count: *count },
            first_there: ChunkNumber(*there),
        };
        Lender { series: SeriesId([1; 16]), place: 1, runs: runs.iter().map(run).collect() }
    }

    #[test]
    fn runs_are_cut_where_numbers_leap() {
        let lender = lender(&[(100, 10, 5), (200, 15, 2), (50, 20, 1)]);
        let foreign = |number: u64| (1 << FOREIGN_SHIFT) | number;
        let mut pieces = Vec::new();
        let run = ChunkRun { first: ChunkNumber(8), count: 15 };
        lender.cut(run, |here, there| pieces.push((here.first.0, there.first.0, here.count)));
        let expected =
            [(foreign(8), 8, 2), (100, 10, 5), (200, 15, 2), (foreign(17), 17, 3), (50, 20, 1), (foreign(21), 21, 2)];
        assert_eq!(pieces, expected);
        for (here, there, count) in expected {
            for ahead in 0..count {
                assert_eq!(lender.number_here(ChunkNumber(there + ahead)), ChunkNumber(here + ahead));
            }
        }
    }
}
