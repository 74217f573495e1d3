//! One commit: the next manifest under a number that is free, a second copy of it, and what it lets go of.

use super::reserve::create_from_reserve;
use super::{ReserveUse, StoredManifest};
use crate::manifest::Manifest;
use crate::repository::Repository;
use crate::sealed::{ObjectKind, seal_object};
use crate::storage::{Listing, ObjectMeta, ObjectName, Original, StorageError};
use crate::{StoreError, Time};

/// A commit that stands, and the work that it leaves to do.
pub(crate) struct Committed {
    pub(crate) stored: StoredManifest,
    /// The size of the reserve, if it was used up.
    pub(crate) reserve_spent: Option<u64>,
    object: Vec<u8>,
    /// Objects of manifests before the predecessor.
    older: Vec<ObjectName>,
}

/// Commits `manifest` as the successor of `previous` and makes sure that it is the newest.
pub(crate) fn commit_after(
    repository: &Repository,
    previous: Option<&StoredManifest>,
    mut manifest: Manifest,
    now: Time,
    reserve: ReserveUse,
) -> Result<Committed, StoreError> {
    manifest.sequence = previous.map_or(1, |stored| stored.manifest.sequence + 1);
    manifest.previous = previous.map_or([0; 32], |stored| stored.hash);
    manifest.committed = now;
    let name = manifest.object_name();
    let plain = manifest.encode()?;
    if Manifest::decode(&name, &plain)? != manifest {
        return Err(StoreError::SelfCheck { what: name.to_string() });
    }
    let object = seal_object(repository.keys(), &name, ObjectKind::Manifest, &plain)?;
    let fenced = || StoreError::Fenced { series: manifest.name.clone() };
    // The newest number and the one before are never free, but an older one may be. A writer that slept for so long
    // finds the newer ones now, or right after, and then takes its own back.
    if is_overtaken(&manifest, &repository.storage().list(Listing::Manifests(manifest.series))?) {
        return Err(fenced());
    }
    let reserve_spent = match create_from_reserve(repository, &name, &object, reserve) {
        Err(StoreError::Storage(StorageError::AlreadyExists { .. } | StorageError::Swept { .. })) => {
            return Err(fenced());
        }
        other => other?,
    };
    let mut listed = repository.storage().list(Listing::Manifests(manifest.series))?;
    listed.extend(repository.storage().list(Listing::ManifestCopies(manifest.series))?);
    if is_overtaken(&manifest, &listed) {
        repository.storage().delete(&name)?;
        repository.storage().barrier()?;
        return Err(fenced());
    }
    let (hash, object_bytes) = (*blake3::hash(&object).as_bytes(), object.len() as u64);
    let older = before_predecessor(manifest.sequence, &listed);
    let (snapshots, containers) = (manifest.snapshots().len(), manifest.containers.len());
    let (series, sequence, is_leased) = (&manifest.name, manifest.sequence, manifest.lease.is_some());
    tracing::debug!(?series, sequence, snapshots, containers, is_leased, "committed");
    let stored = StoredManifest { manifest, object_bytes, hash, from_copy: None };
    Ok(Committed { stored, reserve_spent, object, older })
}

/// Tells whether there is a manifest beyond this one, or a copy of another one of its number: its own has none yet.
fn is_overtaken(manifest: &Manifest, listed: &[ObjectMeta]) -> bool {
    let copy = Original::Manifest(manifest.series, manifest.sequence).copy();
    listed.iter().any(|meta| meta.name == copy || meta.name.sequence() > Some(manifest.sequence))
}

/// Lists the objects of manifests before the predecessor; copies first, so that none is ever left without its original.
fn before_predecessor(sequence: u64, listed: &[ObjectMeta]) -> Vec<ObjectName> {
    let is_older = |name: &ObjectName| name.sequence().is_some_and(|older| older + 1 < sequence);
    let mut older: Vec<_> = listed.iter().map(|meta| meta.name).filter(is_older).collect();
    older.sort_unstable_by_key(|name| !matches!(name, ObjectName::Copy(_)));
    older
}

impl Committed {
    /// Writes the second copy, and then removes older manifests. The commit stands whatever comes of this: where there
    /// is no room for the copy the older ones stay, and the next commit has both places again.
    pub(crate) fn settle(&self, repository: &Repository) -> Result<(), StoreError> {
        let (storage, manifest) = (repository.storage(), &self.stored.manifest);
        let copy = Original::Manifest(manifest.series, manifest.sequence).copy();
        match storage.create(&copy, &self.object) {
            Err(error) if !error.is_already_exists() => return Err(error.into()),
            _ => {}
        }
        for name in &self.older {
            storage.delete(name)?;
        }
        Ok(())
    }
}
