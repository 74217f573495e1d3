//! Reading back a little of what is stored, before each backup: a flipped bit is met while the source still has the
//! content.
//!
//! Only what the last snapshot refers to is drawn, for that is what the new one will rely on. Which regions, the number
//! of the manifest tells: another backup draws others. Catalogs are not drawn, every backup reads the last one anyway.
//!
//! Seals find what a disk did to the bytes. Only decoding finds what was encoded wrongly, but that was checked when it
//! was encoded. So where little of what is stored is much text, some of it is decoded, and the rest is only unsealed.
//!
//! Cost: the indexes of at most [`CONTAINERS_MAX`] containers, and regions of as many bytes as asked for, of which
//! [`TEXT_OF_STORED`] times as much text is decoded.

use crate::EngineError;
use crate::chunks::{Address, ChunkSource, Probe};
use crate::parallel::Pool;
use siltstone_store::manifest::Manifest;
use siltstone_store::{ChunkNumber, ChunkRun};
use std::thread;

/// Containers whose indexes are read.
const CONTAINERS_MAX: usize = 8;
/// Bytes of text that are decoded for each byte read.
const TEXT_OF_STORED: u64 = 4;

/// Reads about so many bytes of regions that hold data of the last snapshot, with so many workers; at least one region,
/// but for 0 bytes.
///
/// # Errors
/// Errors of the storage. Damage is no error here.
pub(super) fn read_sample(
    chunks: &ChunkSource<'_>,
    manifest: &Manifest,
    bytes: u64,
    workers: usize,
) -> Result<Probe, EngineError> {
    let mut sampled = Probe::default();
    let Some(last) = manifest.snapshots().len().checked_sub(1).filter(|_| bytes > 0) else {
        return Ok(sampled);
    };
    let mut wanted = manifest.direct(last) - &manifest.damaged;
    wanted.remove_range(ChunkNumber::METADATA_FIRST.0..);
    let is_wanted = |run: &ChunkRun| wanted.range_cardinality(run.range()) > 0;
    let records = chunks.own_records().into_iter();
    let mut containers: Vec<_> = records.filter(|(_, record)| record.chunks.iter().any(is_wanted)).collect();
    shuffle(&mut containers, manifest.sequence);
    let mut regions = Vec::new();
    for (container, record) in containers.into_iter().take(CONTAINERS_MAX) {
        match chunks.reader(container) {
            Ok(reader) => {
                let entries = reader.index().regions().iter().enumerate();
                let drawn =
                    entries.filter(|(_, entry)| entry.chunks.iter().any(|chunk| wanted.contains(chunk.number.0)));
                regions.extend(drawn.map(|(region, _)| Address { container, region }));
            }
            Err(error) => sampled.note(error, &record, None)?,
        }
    }
    shuffle(&mut regions, manifest.sequence);
    let (mut stored, mut text) = (0, 0);
    let regions = regions.into_iter().map_while(|address| {
        let drawn = (stored < bytes).then_some((address, text < bytes.saturating_mul(TEXT_OF_STORED)));
        let (sealed_bytes, plain_bytes) = chunks.sizes(address).unwrap_or_default();
        stored += u64::from(sealed_bytes);
        text += u64::from(plain_bytes);
        drawn
    });
    let look = |(): &mut (), (address, is_decoded): (Address, bool)| {
        (address, if is_decoded { chunks.is_sound(address) } else { chunks.is_sealed(address) })
    };
    thread::scope(|scope| {
        let pool = Pool::start(scope, "sample", workers, workers, || Ok(()))?;
        for read in pool.in_order(regions, 2 * workers, look) {
            // Whatever is wrong with it, the probe finds it again and tells what is lost by it.
            if let (address, false) = read? {
                sampled.read(chunks, address)?;
            }
        }
        Ok(sampled)
    })
}

/// Another order for each seed, the same on every machine.
fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut random = blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof();
    for at in (1..items.len()).rev() {
        let mut bytes = [0; 8];
        random.fill(&mut bytes);
        let below = at as u64 + 1;
        items.swap(at, usize::try_from(u64::from_le_bytes(bytes) % below).unwrap_or(at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_gives_all_items_in_an_order_of_its_own() {
        let of = |seed| {
            let mut items: Vec<u32> = (0..20).collect();
            shuffle(&mut items, seed);
            items
        };
        assert_ne!(of(1), of(2));
        assert_eq!(of(3), of(3));
        let mut sorted = of(4);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..20).collect::<Vec<_>>());
        shuffle::<u32>(&mut [], 1);
    }
}
