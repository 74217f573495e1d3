//! The directory of lenders, as backups and maintenance keep it: which series are in it, and when it is out of date.

use siltstone_store::StoreError;
use siltstone_store::container::ContainerKind;
use siltstone_store::directory::{Directory, DirectoryEntry};
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;

/// Bytes that a series has stored of its own, beside what it borrows, to be in the directory.
pub(crate) const OWN_BYTES_MIN: u64 = 2 << 20;
/// Chunks that it needs of its own for that.
pub(crate) const OWN_CHUNKS_MIN: u64 = 32;

/// Tells whether a series is in a directory with a sketch that is still much like its own.
pub(crate) fn knows(entries: &[DirectoryEntry], entry: &DirectoryEntry) -> bool {
    let known = entries.iter().find(|known| known.series == entry.series);
    known.is_some_and(|known| 2 * known.sketch.in_common(&entry.sketch) > entry.sketch.len())
}

/// Returns the entry of a series that has much of its own to lend.
pub(crate) fn entry_of(manifest: &Manifest) -> Option<DirectoryEntry> {
    let data = manifest.containers.iter().filter(|record| record.kind == ContainerKind::Data);
    let is_original =
        manifest.lenders.is_empty() || data.map(|record| record.object_bytes).sum::<u64>() > OWN_BYTES_MIN;
    let is_much = manifest.sketch.chunks() >= OWN_CHUNKS_MIN;
    let entry = || DirectoryEntry { series: manifest.series, sketch: manifest.sketch.clone() };
    (manifest.lends && is_original && is_much).then(entry)
}

/// Writes the directory anew if it lacks any of these, of all series that are reached, or names others of them. Of
/// series out of reach nothing is known: they stay.
///
/// # Errors
/// Those of the storage.
pub(crate) fn mend_directory(repository: &Repository, wanted: &[DirectoryEntry]) -> Result<(), StoreError> {
    let directory = Directory::newest(repository)?;
    let is_wanted = |known: &DirectoryEntry| wanted.iter().any(|entry| entry.series == known.series);
    let stays = |known: &DirectoryEntry| !repository.reaches(known.series) || is_wanted(known);
    if wanted.iter().all(|entry| knows(&directory.entries, entry)) && directory.entries.iter().all(stays) {
        return Ok(());
    }
    directory.changed(repository, |entries| {
        entries.retain(|known| !repository.reaches(known.series));
        entries.extend_from_slice(wanted);
    })?;
    Ok(())
}
