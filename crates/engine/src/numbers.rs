//! Numbers of the chunks that a container answers for, as a bitmap.

use roaring::RoaringTreemap;
use siltstone_store::container::{ContainerIndex, ContainerRecord};
use siltstone_store::{ChunkNumber, ChunkRun};

/// The numbers a container answers for.
pub(crate) fn numbers_of(record: &ContainerRecord) -> RoaringTreemap {
    let mut numbers = RoaringTreemap::new();
    for run in &record.chunks {
        numbers.insert_range(run.range());
    }
    numbers
}

/// The numbers as ascending runs.
pub(crate) fn runs_of(numbers: &RoaringTreemap) -> Vec<ChunkRun> {
    let mut runs: Vec<ChunkRun> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some(run) if run.range().end().checked_add(1) == Some(number) => run.count += 1,
            _ => runs.push(ChunkRun { first: ChunkNumber(number), count: 1 }),
        }
    }
    runs
}

/// Changes which numbers a container answers for. The bytes of runs that this cuts are known no longer.
pub(crate) fn keep_numbers(record: &mut ContainerRecord, change: impl FnOnce(RoaringTreemap) -> RoaringTreemap) {
    let chunks = runs_of(&change(numbers_of(record)));
    record.run_bytes = chunks.iter().map(|run| record.bytes_of(*run).unwrap_or(0)).collect();
    record.chunks = chunks;
}

/// Changes which numbers a container answers for, whose index is this one.
pub(crate) fn keep_numbers_by(record: &mut ContainerRecord, index: &ContainerIndex, numbers: &RoaringTreemap) {
    record.chunks = runs_of(numbers);
    record.run_bytes = record.chunks.iter().map(|run| index.bytes_of(*run)).collect();
}
