//! The snapshots a backup builds on: the last whole one of the series, and the partial ones that interrupted runs have
//! left behind it.
//!
//! A partial snapshot ends where its run was interrupted. So their catalogs are read one behind the other, the newest
//! first, each going on where the one before it ended: what an interrupted run had done is taken from it, the rest from
//! what it was building on.

use crate::chunks::ChunkSource;
use crate::half_read::is_half_read;
use roaring::RoaringTreemap;
use siltstone_store::catalog::{CatalogReader, Entries, Entry, EntryPath};
use siltstone_store::container::ContainerRecord;
use siltstone_store::manifest::{Manifest, Snapshot};
use siltstone_store::{ChunkNumber, ContainerId, SnapshotId, StoreError};
use std::collections::{BTreeSet, HashSet};
use std::vec;

/// The last snapshot that is no checkpoint. It may be marked as deleted: what is stored of it serves all the same.
pub(crate) fn last_whole(manifest: &Manifest) -> Option<&Snapshot> {
    manifest.snapshots().iter().rev().find(|snapshot| !snapshot.partial)
}

/// The latest of those that users see: neither a checkpoint nor marked as deleted. What was brought along from
/// elsewhere may be older than what was stored before it.
pub(super) fn latest_live(manifest: &Manifest) -> Option<&Snapshot> {
    let live = manifest.snapshots().iter().filter(|snapshot| !snapshot.partial && snapshot.deleted.is_none());
    live.max_by_key(|snapshot| snapshot.dated())
}

/// Tells whether the last whole snapshot is the latest of all whole ones, too.
pub(super) fn is_last_latest(manifest: &Manifest) -> bool {
    let whole = manifest.snapshots().iter().filter(|snapshot| !snapshot.partial);
    let latest = whole.max_by_key(|snapshot| snapshot.dated());
    latest.map(|latest| latest.id) == last_whole(manifest).map(|last| last.id)
}

/// The last whole snapshot, if `next` differs from it by nothing but when and by which program it was made: then its
/// record serves for both, and a backup of an unchanged source needs no container.
pub(super) fn recorded_alike<'m>(manifest: &'m Manifest, next: &Snapshot) -> Option<&'m Snapshot> {
    last_whole(manifest).filter(|last| {
        let Snapshot { id, time, made, record, statistics, deleted, .. } = **last;
        let program = last.program.clone();
        **last == Snapshot { id, time, made, program, record, statistics, deleted, ..next.clone() }
    })
}

/// The positions of all checkpoints, in the order of their commits.
pub(super) fn partial(manifest: &Manifest) -> impl Iterator<Item = usize> + '_ {
    let numbered = manifest.snapshots().iter().enumerate();
    numbered.filter(|(_, snapshot)| snapshot.partial).map(|(position, _)| position)
}

/// The identities of all checkpoints.
pub(super) fn partial_ids(manifest: &Manifest) -> BTreeSet<SnapshotId> {
    manifest.snapshots().iter().filter(|snapshot| snapshot.partial).map(|snapshot| snapshot.id).collect()
}

/// Returns the chunks that a backup may refer to without storing them: those that the last whole snapshot's catalog
/// refers to, and those of checkpoints.
pub(super) fn known(manifest: &Manifest) -> RoaringTreemap {
    built_on(manifest).fold(RoaringTreemap::new(), |all, position| all | manifest.direct(position))
}

/// Returns the chunks of [`known`] with all their bases.
pub(super) fn needed(manifest: &Manifest) -> RoaringTreemap {
    built_on(manifest).fold(RoaringTreemap::new(), |all, position| all | manifest.necessary(position))
}

/// The positions of the last whole snapshot and of all checkpoints.
fn built_on(manifest: &Manifest) -> impl Iterator<Item = usize> + '_ {
    let whole = last_whole(manifest).and_then(|last| manifest.position(&last.id));
    whole.into_iter().chain(partial(manifest))
}

/// The roots of the catalogs to read one behind the other, those of checkpoints first.
pub(super) fn roots(manifest: &Manifest) -> Vec<ChunkNumber> {
    let partial = manifest.snapshots().iter().rev().filter(|snapshot| snapshot.partial);
    partial.chain(last_whole(manifest)).map(|snapshot| snapshot.root).collect()
}

/// Adds the containers that the manifest does not name yet.
pub(super) fn add_containers(manifest: &mut Manifest, containers: &[ContainerRecord]) {
    let named: HashSet<ContainerId> = manifest.containers.iter().map(|record| record.id).collect();
    manifest.containers.extend(containers.iter().filter(|record| !named.contains(&record.id)).cloned());
}

/// The entries of several catalogs, each going on behind where the one before it ended.
pub(super) struct Chained<'s, 'r> {
    source: &'s ChunkSource<'r>,
    roots: vec::IntoIter<ChunkNumber>,
    entries: Option<Entries<&'s ChunkSource<'r>>>,
    /// The last entry that was given, while there are further catalogs.
    last: Option<EntryPath>,
}

impl<'s, 'r> Chained<'s, 'r> {
    pub(super) fn new(source: &'s ChunkSource<'r>, roots: Vec<ChunkNumber>) -> Self {
        Self { source, roots: roots.into_iter(), entries: None, last: None }
    }

    /// Goes on to the next catalog.
    fn turn(&mut self) -> Option<()> {
        let mut entries = CatalogReader::new(self.source, self.roots.next()?).entries();
        if let Some(last) = &self.last {
            entries.skip_to(last);
        }
        self.entries = Some(entries);
        Some(())
    }
}

impl Iterator for Chained<'_, '_> {
    type Item = Result<Entry, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some(next) = self.entries.as_mut().and_then(Iterator::next) else {
                self.turn()?;
                continue;
            };
            let is_whole = self.roots.len() == 0;
            match &next {
                Ok(entry) if self.last.as_ref().is_some_and(|last| entry.path <= *last) => {}
                // What was half read is read again; its chunks are known.
                Ok(entry) if !is_whole && is_half_read(&entry.path) => {}
                Ok(entry) => {
                    self.last = if is_whole { None } else { Some(entry.path.clone()) };
                    return Some(next);
                }
                Err(_) => return Some(next),
            }
        }
    }
}
