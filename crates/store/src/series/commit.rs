//! One commit: the parts that are new, the next manifest under a number that is free, a second copy of it, and what it
//! lets go of.
//!
//! A create that was refused or not answered may have been done: the bytes under the name tell (`created`). One that
//! was done may have come late, under a number that was free because others have gone further: then there are later
//! manifests, and the one right after tells by its *previous* whether it follows this one. If it does, the commit
//! stands, and it stays: it is the predecessor of what was built on it. If it does not, it is taken back.

use super::newest::{newest_sequence, read_either};
use super::parts::{self, PartNames, StoredParts};
use super::reserve::from_reserve;
use super::{ReserveUse, StoredManifest, newest_manifest};
use crate::created::{Created, create_ours, create_ours_and_list};
use crate::manifest::{BODY_BYTES_MAX, Manifest, ManifestRoot};
use crate::repository::Repository;
use crate::salvage::number_after;
use crate::sealed::{ObjectKind, seal_object};
use crate::secrets::Epoch;
use crate::storage::{Listing, ObjectMeta, ObjectName, Original, StorageError};
use crate::{PartId, SnapshotId, StoreError, Time};
use std::collections::BTreeSet;

/// Objects of manifests before the predecessor that may stay at a distance, copies among them, and bytes of the
/// originals.
const OLDER_OBJECTS_MAX: usize = 16;
const OLDER_BYTES_MAX: u64 = 256 << 10;

/// Fate at a distance, where each request takes long, of manifests before the predecessor of one that was just
/// committed, and of parts that they alone name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Older {
    /// They stay: the run goes on to commit.
    Stay,
    /// They go if there are many, or parts among them.
    GoIfMany,
    /// They go.
    Go,
}

/// Outcome of writing a commit's second copy; `None` if it was not tried yet.
type Copied = Option<Result<Created, StoreError>>;

/// A commit that stands, and the work that it leaves to do.
pub(crate) struct Committed {
    pub(crate) stored: StoredManifest,
    /// The size of the reserve, if it was used up.
    pub(crate) reserve_spent: Option<u64>,
    object: Vec<u8>,
    copied: Copied,
    /// Objects of manifests before the predecessor, and the bytes of those that were listed.
    older: Vec<ObjectName>,
    older_bytes: u64,
}

/// Commits `manifest` as the successor of `previous` and makes sure that it is the newest. Its long lists lie in parts
/// as far as `names` says how new ones are called.
///
/// # Errors
/// [`StoreError::Fenced`] if others have gone on without it: it was not committed. [`StoreError::OutcomeUnknown`] if
/// that cannot be told.
pub(crate) fn commit_after(
    repository: &Repository,
    previous: Option<&StoredManifest>,
    mut manifest: Manifest,
    now: Time,
    reserve: ReserveUse,
    names: Option<&PartNames>,
) -> Result<Committed, StoreError> {
    manifest.sequence = match previous.map(|stored| &stored.manifest) {
        Some(before) => number_after(&before.object_name(), before.sequence)?,
        None => 1,
    };
    manifest.previous = previous.map_or([0; 32], |stored| stored.hash);
    manifest.committed = now;
    let name = manifest.object_name();
    let before = previous.map(|stored| stored.parts.clone()).unwrap_or_default();
    let mut outline = parts::outline(repository, &manifest, &before, names.is_some())?;
    let spent = match names {
        Some(names) => parts::write(repository, &manifest, &mut outline, names, reserve)?,
        None => None,
    };
    let plain = manifest.encode_root(&outline)?;
    let root = ManifestRoot::decode_within(&name, &plain, BODY_BYTES_MAX as u64)?;
    if root.complete(&name, outline.texts())? != manifest {
        return Err(StoreError::SelfCheck { what: name.to_string() });
    }
    let object = seal_object(repository.keys(), &name, ObjectKind::Manifest, &plain)?;
    let fenced = || StoreError::Fenced { series: manifest.name.clone() };
    let create = || create_ours(repository.storage(), &name, &object);
    let reserve_spent = match from_reserve(repository, reserve, create) {
        Err(StoreError::Storage(StorageError::Swept { .. })) | Ok((Created::Taken, _)) => return Err(fenced()),
        other => spent.or(other?.1),
    };
    let (hash, object_bytes) = (*blake3::hash(&object).as_bytes(), object.len() as u64);
    // The newest number and the one before are never free, but an older one may be: whoever slept for so long, or whose
    // request came so late, finds the newer ones now.
    let (copied, listed) = copy_and_list(repository, &manifest, &object);
    let listed = listed.map_err(|error| StoreError::outcome_unknown(&name, &error))?;
    // The number's copy may stand though its original was lost. At a distance it is not listed: it refuses ours.
    let is_taken = matches!(copied, Some(Ok(Created::Taken)));
    if (is_taken || is_overtaken(&manifest, &listed)) && !is_built_on(repository, previous, &manifest, hash)? {
        // Where it cannot be taken back it stays, below the predecessor, where nothing reads it.
        if repository.may_delete() {
            if matches!(copied, Some(Ok(Created::Ours))) {
                repository.storage().delete(&Original::Manifest(manifest.series, manifest.sequence).copy())?;
            }
            repository.storage().delete(&name)?;
            repository.storage().barrier()?;
        }
        return Err(fenced());
    }
    let (older, older_bytes) = before_predecessor(&manifest, &listed);
    let (snapshots, containers) = (manifest.snapshots().len(), manifest.containers.len());
    let (series, sequence, is_leased) = (&manifest.name, manifest.sequence, manifest.lease.is_some());
    tracing::debug!(?series, sequence, snapshots, containers, is_leased, "committed");
    let table = outline.table().clone();
    let hurt = before.hurt.intersection(&table.ids()).copied().collect();
    let stored = StoredManifest { manifest, object_bytes, hash, from_copy: None, parts: StoredParts { table, hurt } };
    repository.note_manifest(&stored);
    Ok(Committed { stored, reserve_spent, object, copied, older, older_bytes })
}

/// Lists the manifests of the series after a commit. Their copies are listed where that costs little: they tell nothing
/// more, unless two originals in a row were lost. At a distance the copy of this one is written at the same time, which
/// saves a round trip.
fn copy_and_list(
    repository: &Repository,
    manifest: &Manifest,
    object: &[u8],
) -> (Copied, Result<Vec<ObjectMeta>, StorageError>) {
    let (storage, series) = (repository.storage(), manifest.series);
    if repository.is_near() {
        let both = storage.list_both([Listing::Manifests(series), Listing::ManifestCopies(series)]);
        return (None, both.map(|both| both.concat()));
    }
    let copy = Original::Manifest(series, manifest.sequence).copy();
    let (copied, listed) = create_ours_and_list(storage, &copy, object, Listing::Manifests(series));
    (Some(copied), listed)
}

/// Tells whether there is a manifest beyond this one, or a copy of another one of its number: its own has none yet.
fn is_overtaken(manifest: &Manifest, listed: &[ObjectMeta]) -> bool {
    let copy = Original::Manifest(manifest.series, manifest.sequence).copy();
    listed.iter().any(|meta| meta.name == copy || meta.name.sequence() > Some(manifest.sequence))
}

/// Tells whether what lies beyond this manifest, which was just created, follows from it.
///
/// # Errors
/// [`StoreError::OutcomeUnknown`] if what would tell cannot be read.
fn is_built_on(
    repository: &Repository,
    previous: Option<&StoredManifest>,
    manifest: &Manifest,
    hash: [u8; 32],
) -> Result<bool, StoreError> {
    let unknown = |error: &StoreError| StoreError::outcome_unknown(&manifest.object_name(), error);
    match read_either(repository, manifest.series, manifest.sequence.saturating_add(1)) {
        Ok(next) => return Ok(next.manifest.previous == hash),
        // It was superseded, too: by three commits at least since this one's turn.
        Err(error) if error.is_not_found() => {}
        Err(error) => return Err(unknown(&error)),
    }
    // What is remembered as the newest must not be the one that is taken back.
    let newest = newest_sequence(repository, manifest.series).map_err(|error| unknown(&error))?;
    if newest <= Some(manifest.sequence) {
        // A copy of the number was all there was; it is of another manifest.
        return Ok(false);
    }
    let before = previous.map(|stored| snapshot_ids(&stored.manifest)).unwrap_or_default();
    let added: BTreeSet<SnapshotId> = snapshot_ids(manifest).difference(&before).copied().collect();
    let newest = newest_manifest(repository, manifest.series).map_err(|error| unknown(&error))?;
    let Some(newest) = newest.map(|stored| stored.manifest).filter(|newest| newest.sequence > manifest.sequence) else {
        return Ok(false);
    };
    // What added no snapshot makes no difference any more: its writer has lost the lease in either case. Neither does
    // one whose snapshot others have forgotten since.
    Ok(!added.is_empty() && added.is_subset(&snapshot_ids(&newest)))
}

fn snapshot_ids(manifest: &Manifest) -> BTreeSet<SnapshotId> {
    manifest.snapshots().iter().map(|snapshot| snapshot.id).collect()
}

/// Lists the objects of manifests before the predecessor, copies first, so that none is ever left without its original;
/// and gives the bytes of those that were listed.
fn before_predecessor(manifest: &Manifest, listed: &[ObjectMeta]) -> (Vec<ObjectName>, u64) {
    let is_older =
        |meta: &&ObjectMeta| meta.name.sequence().is_some_and(|older| older.saturating_add(1) < manifest.sequence);
    let older: BTreeSet<u64> = listed.iter().filter(is_older).filter_map(|meta| meta.name.sequence()).collect();
    let bytes = listed.iter().filter(is_older).map(|meta| meta.bytes).sum();
    let originals = older.into_iter().map(|sequence| Original::Manifest(manifest.series, sequence));
    let (copies, originals): (Vec<_>, Vec<_>) = originals.map(|original| (original.copy(), original.name())).unzip();
    ([copies, originals].concat(), bytes)
}

impl Committed {
    /// Writes the second copy if that was not done, and then removes older manifests, and parts that they alone name:
    /// `parts`. Returns whether it removed them. The commit stands whatever comes of this: where there is no room for
    /// the copy, or another one lies there, the older ones stay, and the next commit has both places again. At a
    /// distance they go as `older` says; where nothing may be deleted they stay.
    pub(crate) fn settle(
        &mut self,
        repository: &Repository,
        older: Older,
        parts: &BTreeSet<PartId>,
    ) -> Result<bool, StoreError> {
        let (storage, manifest) = (repository.storage(), &self.stored.manifest);
        let copy = || {
            let name = Original::Manifest(manifest.series, manifest.sequence).copy();
            create_ours(storage, &name, &self.object)
        };
        let objects = [self.older.clone(), parts::places(manifest.series, parts.iter().copied())].concat();
        let is_due = match older {
            _ if repository.is_near() => true,
            Older::Stay => false,
            Older::GoIfMany => !parts.is_empty() || !older_may_stay(repository, self.older.len(), self.older_bytes),
            Older::Go => true,
        };
        let removes = !objects.is_empty() && repository.may_delete() && is_due;
        let removes = self.copied.take().unwrap_or_else(copy)? == Created::Ours && removes;
        if removes {
            storage.delete_many(&objects)?;
        }
        Ok(removes)
    }
}

/// Tells whether objects of manifests before the predecessor, copies among them, whose originals have so many bytes,
/// are so few and small that a later run may remove them: at a distance a request takes longer than they are worth.
/// Where the master key was changed, what the one before opens does not wait.
pub fn older_may_stay(repository: &Repository, objects: usize, bytes: u64) -> bool {
    let is_little = objects <= OLDER_OBJECTS_MAX && bytes <= OLDER_BYTES_MAX;
    is_little && !repository.is_near() && repository.keys().epoch() == Epoch::FIRST
}
