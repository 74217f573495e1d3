//! Numbers of the chunks that a container answers for, as a bitmap.

use roaring::RoaringTreemap;
use siltstone_store::container::ContainerRecord;
use siltstone_store::{ChunkNumber, ChunkRun};

/// The numbers a container answers for.
pub(crate) fn numbers_of(record: &ContainerRecord) -> RoaringTreemap {
    let mut numbers = RoaringTreemap::new();
    for run in &record.chunks {
        numbers.insert_range(run.range());
    }
    numbers
}

/// Changes which numbers a container answers for.
pub(crate) fn keep_numbers(record: &mut ContainerRecord, change: impl FnOnce(RoaringTreemap) -> RoaringTreemap) {
    let mut runs: Vec<ChunkRun> = Vec::new();
    for number in change(numbers_of(record)) {
        match runs.last_mut() {
            Some(run) if run.first.0 + run.count == number => run.count += 1,
            _ => runs.push(ChunkRun { first: ChunkNumber(number), count: 1 }),
        }
    }
    record.chunks = runs;
}
