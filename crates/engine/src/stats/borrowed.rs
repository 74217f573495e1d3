//! Figures of what a series borrows, and of what it keeps for others.

use super::BorrowedFigures;
use crate::borrowed::answered_by;
use crate::chunks::ChunkSource;
use crate::snapshots::name_of;
use roaring::RoaringTreemap;
use siltstone_store::StoreError;
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;

/// Chunks that a series borrows, of each lender.
pub(super) fn figures(repository: &Repository, manifest: &Manifest) -> Result<Vec<BorrowedFigures>, StoreError> {
    let mut all = Vec::new();
    for lender in &manifest.lenders {
        let borrowed = manifest.borrowed_of(lender.series);
        if borrowed.is_empty() {
            continue;
        }
        let mut figures = BorrowedFigures {
            series: manifest.name.clone(),
            lender: name_of(repository, lender.series),
            chunks: borrowed.len(),
            plain_bytes: 0,
            only_for_others: 0,
        };
        match repository.manifest(lender.series) {
            Ok(Some(there)) => {
                let borrowed = borrowed & answered_by(&there);
                figures.only_for_others = borrowed.intersection_len(&there.lent);
                match plain_bytes(&ChunkSource::new(repository, &there), &there, &borrowed) {
                    Err(error) if error.is_damage() || error.is_not_found() => {}
                    bytes => figures.plain_bytes = bytes?,
                }
            }
            Ok(None) => {}
            Err(error) if error.is_damage() => {}
            Err(error) => return Err(error),
        }
        all.push(figures);
    }
    Ok(all)
}

/// Bytes of chunks that containers of this series answer for. Where a container's record does not tell, its index does.
pub(super) fn plain_bytes(
    chunks: &ChunkSource<'_>,
    manifest: &Manifest,
    wanted: &RoaringTreemap,
) -> Result<u64, StoreError> {
    let mut bytes = 0;
    for (at, record) in manifest.containers.iter().enumerate() {
        let answered = record.numbers() & wanted;
        if answered.is_empty() {
            continue;
        }
        let reader = chunks.reader(at)?;
        let places = reader.index().places();
        let of_these = places.iter().filter(|place| answered.contains(place.chunk.number.0));
        bytes += of_these.map(|place| u64::from(place.chunk.length)).sum::<u64>();
    }
    Ok(bytes)
}
