//! Shrinking hulls: nothing is counted for longer than it is needed.
//!
//! A chunk that was away for a while is counted as necessary in between. When the last snapshot that had it again, or
//! the one that had it first, is forgotten, it is counted for longer than it is needed.

use super::lent::keep_lent;
use crate::chunks::ChunkSource;
use siltstone_store::StoreError;
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;

/// Says anew what each snapshot needs in `manifest`, which is to follow `before`; `chunks` are those of `before`.
pub(super) fn shrink_hulls(
    repository: &Repository,
    chunks: &ChunkSource<'_>,
    before: &Manifest,
    manifest: &mut Manifest,
) -> Result<(), StoreError> {
    manifest.replace_necessary(chunks.base_graph()?.needs(manifest));
    // A hull may have held a base of what others have borrowed.
    keep_lent(repository, before, manifest)?;
    let live = manifest.kept();
    for record in manifest.containers.iter_mut().filter(|record| record.has_deltas) {
        // What is dead may hang on what goes now: nobody can decode it any more.
        if !record.numbers().is_subset(&live) {
            record.change_numbers(|numbers| numbers & &live);
        }
    }
    manifest.containers.retain(|record| !record.chunks.is_empty());
    Ok(())
}
