//! Chunks that cross series: what a series borrows of others, and what others have of it.
//!
//! A *borrower* uses chunks of another series, the *lender*, as if they were its own: it gives them numbers of its own,
//! and its manifest says which number of the lender each stands for (an [`Import`]). A *loan*, an object under the
//! lender's name, tells the lender that they are needed. Who writes what in which order is in `series/loans.rs`.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::Manifest;
use crate::error::StoreError;
use crate::ids::{ChunkNumber, ChunkRun, LoanId, SeriesId};
use crate::storage::ObjectName;
use roaring::RoaringTreemap;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The most chunks that a loan is of, and that a series borrows: 16 TiB of 16 KiB each, marked in 128 MiB.
pub const BORROWED_CHUNKS_MAX: u64 = 1 << 30;

/// The most lenders of a series.
pub const LENDERS_MAX: usize = 64;

/// A series that another one borrows of, or may have begun to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Lender {
    /// The series that lends.
    pub series: SeriesId,
    /// The loans that the borrower's imports rest on.
    pub loans: BTreeSet<LoanId>,
    /// True if these may be of more than is still imported.
    pub has_surplus: bool,
}

/// Consecutive chunks of data that are borrowed, under consecutive numbers at both ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BorrowedRun {
    /// Their numbers in the series that borrows.
    pub chunks: ChunkRun,
    /// The lender's number of the first.
    pub first_there: ChunkNumber,
}

/// Chunks that a manifest says are borrowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Import {
    /// Place of the lender in the manifest's list of lenders.
    pub lender: u32,
    /// The chunks.
    pub run: BorrowedRun,
}

impl BorrowedRun {
    /// Their numbers in the lender.
    pub fn there(&self) -> ChunkRun {
        ChunkRun { first: self.first_there, count: self.chunks.count }
    }

    /// The part of the run whose numbers here are these.
    fn part(&self, here: ChunkRun) -> Self {
        let ahead = here.first.0.saturating_sub(self.chunks.first.0);
        Self { chunks: here, first_there: ChunkNumber(self.first_there.0.saturating_add(ahead)) }
    }

    /// Tells whether the numbers at both ends are of data chunks.
    pub(crate) fn is_sound(&self) -> bool {
        let is_of_data = |run: ChunkRun| !run.range().is_empty() && !ChunkNumber(*run.range().end()).is_metadata();
        is_of_data(self.chunks) && is_of_data(self.there())
    }
}

impl Manifest {
    /// The chunks that are not to be deleted, as far as this manifest knows: those that a live snapshot needs, and
    /// those that others have borrowed. With each of them all its bases are among them.
    pub fn kept(&self) -> RoaringTreemap {
        self.live() | &self.lent
    }

    /// The chunks of data that were kept until now, and of which it is not known yet whether others have borrowed them.
    pub fn unclaimed(&self) -> &RoaringTreemap {
        &self.unclaimed
    }

    /// The chunks that other series may borrow, if they may at all: the series' own that are kept, but for damaged
    /// ones. What is borrowed is not lent again.
    pub fn lendable(&self) -> RoaringTreemap {
        if !self.lends {
            return RoaringTreemap::new();
        }
        let mut lendable = self.kept() - self.imported() - &self.damaged;
        lendable.remove_range(ChunkNumber::METADATA_FIRST.0..);
        lendable
    }

    /// The numbers here of all chunks that are borrowed.
    pub fn imported(&self) -> RoaringTreemap {
        let mut imported = RoaringTreemap::new();
        for import in &self.imports {
            imported.insert_range(import.run.chunks.range());
        }
        imported
    }

    /// The lender's numbers of all chunks that are borrowed of it.
    pub fn borrowed_of(&self, lender: SeriesId) -> RoaringTreemap {
        let mut borrowed = RoaringTreemap::new();
        for import in &self.imports {
            if self.lender_of(import) == Some(lender) {
                borrowed.insert_range(import.run.there().range());
            }
        }
        borrowed
    }

    /// The lender, and its number of a chunk that is borrowed; `None` for a chunk of the series' own.
    pub fn origin_of(&self, number: ChunkNumber) -> Option<(SeriesId, ChunkNumber)> {
        let after = self.imports.partition_point(|import| import.run.chunks.first <= number);
        let import = self.imports.get(after.checked_sub(1)?)?;
        let BorrowedRun { chunks, first_there } = import.run;
        let ahead = number.0.checked_sub(chunks.first.0).filter(|ahead| *ahead < chunks.count)?;
        Some((self.lender_of(import)?, ChunkNumber(first_there.0.checked_add(ahead)?)))
    }

    /// The series that an import is of.
    pub fn lender_of(&self, import: &Import) -> Option<SeriesId> {
        let place = usize::try_from(import.lender).ok()?;
        self.lenders.get(place).map(|lender| lender.series)
    }

    /// Adds chunks that are borrowed of a series. Their numbers here are ones that nothing has yet.
    ///
    /// # Panics
    /// If the series is not among the lenders.
    #[expect(clippy::expect_used, reason = "a caller that adds no lender is wrong")]
    pub fn add_imports(&mut self, lender: SeriesId, runs: &[BorrowedRun]) {
        let place = self.lenders.iter().position(|known| known.series == lender);
        let lender = place.and_then(|place| u32::try_from(place).ok()).expect("the lender was added");
        self.imports.extend(runs.iter().map(|run| Import { lender, run: *run }));
        self.imports.sort_unstable_by_key(|import| import.run.chunks.first);
    }

    /// Returns the lenders that nothing is borrowed of any more.
    pub fn idle_lenders(&self) -> BTreeSet<SeriesId> {
        let used: BTreeSet<u32> = self.imports.iter().map(|import| import.lender).collect();
        let idle = (0u32..).zip(&self.lenders).filter(|(at, lender)| !used.contains(at) && lender.loans.is_empty());
        idle.map(|(_, lender)| lender.series).collect()
    }

    /// Drops lenders that nothing is borrowed of any more. That is for a writer who has listed their loans and removed
    /// those that the manifest does not name: whoever comes later looks for them no more.
    pub fn drop_idle_lenders(&mut self) {
        let idle = self.idle_lenders();
        let mut places = BTreeMap::new();
        let mut kept = Vec::new();
        for (place, lender) in (0u32..).zip(std::mem::take(&mut self.lenders)) {
            if !idle.contains(&lender.series) {
                places.insert(place, u32::try_from(kept.len()).unwrap_or(u32::MAX));
                kept.push(lender);
            }
        }
        self.lenders = kept;
        for import in &mut self.imports {
            import.lender = places.get(&import.lender).copied().unwrap_or(u32::MAX);
        }
    }

    /// Drops imports of chunks that are not among these. Of a lender that nothing is borrowed of then, no loan is named
    /// any more.
    pub fn keep_imports(&mut self, numbers: &RoaringTreemap) {
        let count = |manifest: &Self| {
            let mut count: BTreeMap<u32, u64> = BTreeMap::new();
            for import in &manifest.imports {
                let of_lender = count.entry(import.lender).or_default();
                *of_lender = of_lender.saturating_add(import.run.chunks.count);
            }
            count
        };
        let before = count(self);
        let kept = self.imports.iter().flat_map(|import| {
            let mut here = RoaringTreemap::new();
            here.insert_range(import.run.chunks.range());
            let runs = ChunkRun::runs_of(&(here & numbers));
            runs.into_iter().map(|run| Import { run: import.run.part(run), ..*import }).collect::<Vec<_>>()
        });
        self.imports = kept.collect();
        let after = count(self);
        for (place, lender) in (0u32..).zip(&mut self.lenders) {
            match (before.get(&place), after.get(&place)) {
                (before, Some(after)) => lender.has_surplus |= before != Some(after),
                (_, None) => {
                    lender.loans.clear();
                    lender.has_surplus = false;
                }
            }
        }
    }

    /// Checks lenders and imports by themselves. Nobody marks the chunks of a hostile list before they were counted.
    pub(super) fn check_sharing(&self, object: &ObjectName) -> Result<(), StoreError> {
        let damaged = |reason| Err(super::codec::damaged(object, reason));
        let series: BTreeSet<SeriesId> = self.lenders.iter().map(|lender| lender.series).collect();
        if self.lenders.len() > LENDERS_MAX || series.len() < self.lenders.len() || series.contains(&self.series) {
            return damaged("it borrows of itself, of a series twice, or of too many");
        }
        if self.lenders.iter().flat_map(|lender| &lender.loans).any(|loan| loan.borrower != self.series) {
            return damaged("a loan that it names is another series'");
        }
        if chunks_in(self.imports.iter().map(|import| &import.run)) > BORROWED_CHUNKS_MAX {
            return damaged("it borrows too many chunks");
        }
        let mut free = 0;
        for import in &self.imports {
            if !import.run.is_sound() || import.run.chunks.first.0 < free || self.lender_of(import).is_none() {
                return damaged("its list of borrowed chunks is not sound");
            }
            free = import.run.chunks.range().end().saturating_add(1);
        }
        for lender in &series {
            let of_lender = self.imports.iter().filter(|import| self.lender_of(import) == Some(*lender));
            let count = of_lender.fold(0u64, |count, import| count.saturating_add(import.run.chunks.count));
            if self.borrowed_of(*lender).len() != count {
                return damaged("it borrows a chunk twice");
            }
        }
        if !self.sketch.is_sound() {
            return damaged("its sketch is not sound");
        }
        let is_of_data = |numbers: &RoaringTreemap| numbers.max().is_none_or(|last| !ChunkNumber(last).is_metadata());
        if !(self.lends || self.lent.is_empty() && self.unclaimed.is_empty()) {
            return damaged("it lends chunks that nobody may borrow");
        }
        if !is_of_data(&self.lent) || !is_of_data(&self.unclaimed) {
            return damaged("it lends chunks of catalogs");
        }
        Ok(())
    }
}

/// The number of chunks in these runs.
pub(crate) fn chunks_in<'r>(runs: impl IntoIterator<Item = &'r BorrowedRun>) -> u64 {
    runs.into_iter().fold(0, |count, run| count.saturating_add(run.chunks.count))
}
