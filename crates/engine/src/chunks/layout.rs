//! Where the chunks of a series lie, as one manifest says.

use siltstone_store::container::ContainerRecord;
use siltstone_store::manifest::Manifest;
use siltstone_store::{ChunkNumber, StoreError};
use std::sync::Arc;

/// Which container answers for which number.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// Number of the manifest that says so.
    pub(super) sequence: u64,
    /// The containers of that manifest, behind those of the manifests before it: an index stays true when the source moves on.
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
}
