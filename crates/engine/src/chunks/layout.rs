//! Where the chunks of a series lie, as one manifest says, and the newest manifests of the series that it borrows of.

use super::lenders::{Lender, Lenders};
use siltstone_store::container::ContainerRecord;
use siltstone_store::manifest::Manifest;
use siltstone_store::storage::ObjectName;
use siltstone_store::{ChunkNumber, ChunkRun, SeriesId, StoreError};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// A container, of the series itself or of one that it borrows of.
#[derive(Clone, Debug)]
pub(super) struct Held {
    /// Its record. That of a lender's has the numbers that the borrower knows its chunks by, and an identity that no
    /// container has.
    pub(super) record: Arc<ContainerRecord>,
    pub(super) name: ObjectName,
    /// The lender, and the record that it keeps.
    pub(super) lent: Option<(Arc<Lender>, Arc<ContainerRecord>)>,
}

/// Which container answers for which number.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    /// Number of the manifest that says so.
    pub(super) sequence: u64,
    /// Counts the manifests, of any series, that it has followed.
    pub(super) generation: u64,
    /// The containers of that manifest, behind those of the manifests before it: an index stays true when the source
    /// moves on.
    pub(super) held: Vec<Held>,
    /// First number, last number, index into `held`; ascending, of the newest manifests only.
    spans: Vec<(u64, u64, usize)>,
    /// The series that are borrowed of.
    pub(super) lenders: Lenders,
}

impl Layout {
    /// The layout after this manifest of the series. Those of the lenders are to be read again.
    pub(super) fn followed_by(&self, manifest: &Manifest) -> Self {
        let mut next = Self {
            sequence: manifest.sequence,
            generation: self.generation + 1,
            held: self.held.clone(),
            spans: Vec::new(),
            lenders: self.lenders.followed_by(manifest),
        };
        next.add(manifest.containers.iter().map(|record| Held {
            record: Arc::new(record.clone()),
            name: record.object_name(manifest.series),
            lent: None,
        }));
        next
    }

    /// The layout with this manifest of a lender.
    pub(super) fn with_lender(&self, lender: SeriesId, manifest: &Manifest) -> Self {
        let mut next = Self { generation: self.generation + 1, ..self.clone() };
        let Some(lender) = next.lenders.read(lender, manifest.sequence) else { return next };
        let is_of = |held: &Held| held.lent.as_ref().is_some_and(|(of, _)| of.series == lender.series);
        next.spans.retain(|(.., at)| !next.held.get(*at).is_some_and(is_of));
        next.add(manifest.containers.iter().filter_map(|record| {
            let seen = lender.seen(record)?;
            let lent = Some((lender.clone(), Arc::new(record.clone())));
            Some(Held { record: Arc::new(seen), name: record.object_name(lender.series), lent })
        }));
        next
    }

    /// The layout, given that a lender's manifest cannot be read.
    pub(super) fn without_lender(&self, lender: SeriesId, reason: String) -> Self {
        let mut next = Self { generation: self.generation + 1, ..self.clone() };
        next.lenders.fail(lender, reason);
        next
    }

    fn add(&mut self, held: impl Iterator<Item = Held>) {
        for held in held {
            let at = self.held.len();
            let ranges = held.record.chunks.iter().map(|run| run.range());
            self.spans.extend(ranges.map(|range| (*range.start(), *range.end(), at)));
            self.held.push(held);
        }
        self.spans.sort_unstable();
    }

    /// The error for a number that no container answers for.
    fn missing(&self, number: ChunkNumber) -> StoreError {
        self.lenders.fault(number).unwrap_or(StoreError::MissingChunk { number })
    }

    /// Which container answers for the number.
    pub(super) fn container_of(&self, number: ChunkNumber) -> Result<usize, StoreError> {
        let after = self.spans.partition_point(|(first, ..)| *first <= number.0);
        match after.checked_sub(1).and_then(|at| self.spans.get(at)) {
            Some((_, last, container)) if number.0 <= *last => Ok(*container),
            _ => Err(self.missing(number)),
        }
    }

    /// The chunks at the begin of a run that one container answers for in one run of its record, and their bytes, if
    /// they are that run and the record knows them.
    pub(super) fn run_from(&self, run: ChunkRun) -> Option<(ChunkRun, Option<u64>)> {
        let after = self.spans.partition_point(|(first, ..)| *first <= run.first.0);
        let (_, span_last, container) = self.spans.get(after.checked_sub(1)?)?;
        let last = (*run.range().end()).min(*span_last);
        let count = last.checked_sub(run.first.0)?.checked_add(1)?;
        let part = ChunkRun { first: run.first, count };
        Some((part, self.held.get(*container)?.record.bytes_of(part)))
    }

    /// The numbers of a run, if a container answers for each. A hostile catalog has runs of more numbers than any
    /// memory can mark.
    pub(super) fn answered(&self, run: ChunkRun) -> Result<RangeInclusive<u64>, StoreError> {
        let range = run.range();
        if range.is_empty() {
            return Err(self.missing(run.first));
        }
        let mut next = *range.start();
        let before = self.spans.partition_point(|(first, ..)| *first <= next).saturating_sub(1);
        for (first, last, _) in self.spans.iter().skip(before) {
            if !(*first..=*last).contains(&next) {
                break;
            }
            match last.checked_add(1) {
                Some(after) if after <= *range.end() => next = after,
                _ => return Ok(range),
            }
        }
        Err(self.missing(ChunkNumber(next)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_answered_for_if_each_of_its_numbers_is() {
        let layout =
            Layout { spans: vec![(0, 4, 0), (5, 9, 1), (20, 29, 2), (u64::MAX, u64::MAX, 3)], ..Layout::default() };
        let answered = |first, count| layout.answered(ChunkRun { first: ChunkNumber(first), count }).ok();
        assert_eq!(answered(0, 10), Some(0..=9));
        assert_eq!(answered(3, 4), Some(3..=6));
        assert_eq!(answered(20, 10), Some(20..=29));
        assert_eq!(answered(u64::MAX, 1), Some(u64::MAX..=u64::MAX));
        for (first, count) in [(0, 11), (9, 2), (10, 1), (19, 2), (29, 2), (30, 1), (0, 1 << 62), (u64::MAX, 2)] {
            assert_eq!(answered(first, count), None, "{count} from {first}");
        }
        assert!(Layout::default().answered(ChunkRun { first: ChunkNumber(0), count: 1 }).is_err());
    }
}
