//! Where the chunks of a series lie, as one manifest says.

use siltstone_store::container::ContainerRecord;
use siltstone_store::manifest::Manifest;
use siltstone_store::{ChunkNumber, ChunkRun, StoreError};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Which container answers for which number.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// Number of the manifest that says so.
    pub(super) sequence: u64,
    /// The containers of that manifest, behind those of the manifests before it: an index stays true when the source
    /// moves on.
    pub(super) records: Vec<Arc<ContainerRecord>>,
    /// First number, last number, index into `records`; ascending, of the newest manifest only.
    spans: Vec<(u64, u64, usize)>,
}

impl Layout {
    /// The layout after this manifest.
    pub(super) fn followed_by(&self, manifest: &Manifest) -> Self {
        let before = self.records.len();
        let added = manifest.containers.iter().cloned().map(Arc::new);
        let records: Vec<_> = self.records.iter().cloned().chain(added).collect();
        let spans_of = |(at, record): (usize, &Arc<ContainerRecord>)| {
            let ranges = record.chunks.iter().map(|run| run.range());
            ranges.map(|range| (*range.start(), *range.end(), at)).collect::<Vec<_>>()
        };
        let mut spans: Vec<_> = records.iter().enumerate().skip(before).flat_map(spans_of).collect();
        spans.sort_unstable();
        Self { sequence: manifest.sequence, records, spans }
    }

    /// Which container answers for the number.
    pub(super) fn container_of(&self, number: ChunkNumber) -> Result<usize, StoreError> {
        let after = self.spans.partition_point(|(first, ..)| *first <= number.0);
        match after.checked_sub(1).and_then(|at| self.spans.get(at)) {
            Some((_, last, container)) if number.0 <= *last => Ok(*container),
            _ => Err(StoreError::MissingChunk { number }),
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
        Some((part, self.records.get(*container)?.bytes_of(part)))
    }

    /// The numbers of a run, if a container answers for each. A hostile catalog has runs of more numbers than any
    /// memory can mark.
    pub(super) fn answered(&self, run: ChunkRun) -> Result<RangeInclusive<u64>, StoreError> {
        let range = run.range();
        if range.is_empty() {
            return Err(StoreError::MissingChunk { number: run.first });
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
        Err(StoreError::MissingChunk { number: ChunkNumber(next) })
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
