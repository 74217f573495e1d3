//! Chunkers: those that a new repository may choose, and the one that a repository has.

use crate::EngineError;
use siltstone_chunk::{Chunker, Sizes};
use siltstone_store::StoreError;
use siltstone_store::config::ChunkerSettings;
use siltstone_store::repository::Repository;
use std::ops::RangeInclusive;

/// Averages that a new repository may choose: below, the numbers outweigh what is found; above, a chunk outgrows a
/// region.
pub const CHUNK_BYTES_AVERAGE: RangeInclusive<u64> = 4 << 10..=1 << 20;

/// The chunker of new repositories.
pub fn default_chunker() -> ChunkerSettings {
    chunker(siltstone_chunk::DEFAULT_NAME)
}

/// The names a new repository may choose its chunker by: those whose cuts depend on its key.
pub fn chunker_names() -> impl Iterator<Item = &'static str> {
    siltstone_chunk::ALGORITHMS.iter().filter(|algorithm| algorithm.keyed).map(|algorithm| algorithm.name)
}

/// The chunker of this name with the usual sizes.
fn chunker(name: &str) -> ChunkerSettings {
    let bytes = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
    let sizes = Sizes::DEFAULT;
    ChunkerSettings {
        name: name.to_owned(),
        min_bytes: bytes(sizes.min()),
        average_bytes: bytes(sizes.expected()),
        max_bytes: bytes(sizes.max()),
    }
}

/// The chunker of this name for chunks of so many bytes on average: at least half of that, at most four times.
///
/// # Errors
/// An average outside of [`CHUNK_BYTES_AVERAGE`].
pub fn chunker_sized(name: &str, average_bytes: u64) -> Result<ChunkerSettings, EngineError> {
    let refused = || EngineError::BadChunkSize { given: average_bytes };
    let average = u32::try_from(average_bytes).ok().filter(|_| CHUNK_BYTES_AVERAGE.contains(&average_bytes));
    let average_bytes = average.ok_or_else(refused)?;
    let (min_bytes, max_bytes) = (average_bytes / 2, average_bytes * 4);
    Sizes::new(min_bytes, average_bytes, max_bytes).map_err(|_| refused())?;
    Ok(ChunkerSettings { name: name.to_owned(), min_bytes, average_bytes, max_bytes })
}

/// Opens the chunker that the repository was made with.
pub(super) fn open_chunker(repository: &Repository) -> Result<Box<dyn Chunker>, EngineError> {
    let config = repository.config();
    let settings = &config.chunker;
    let unknown = |feature| StoreError::UnknownFeature { object: "config".to_owned(), feature };
    if !chunker_names().any(|name| name == settings.name) {
        return Err(unknown(format!("the chunker {:?}", settings.name)).into());
    }
    let sizes = Sizes::new(settings.min_bytes, settings.average_bytes, settings.max_bytes);
    let chunker = sizes
        .and_then(|sizes| siltstone_chunk::by_name(&settings.name, sizes, &repository.keys().chunker_key()))
        .map_err(|error| unknown(error.to_string()))?;
    Ok(chunker)
}
