//! The record of the repository as a chain: `config/1`, `config/2`, ...; the highest number is the truth.
//!
//! Each commit is a new object under the next number, by put-if-absent, so of two who change the record at once one
//! loses, reads what the other wrote and tries again. The object is then put a second time, under `copies/`; a reader
//! whose original is missing or damaged reads that. A copy without an original counts as the commit it is of. The
//! predecessor of the newest stays, older ones go.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::Config;
use crate::created::{Created, create_ours};
use crate::error::StoreError;
use crate::salvage::number_after;
use crate::sealed::ObjectHeader;
use crate::secrets::RepositoryKeys;
use crate::storage::{Listing, ObjectMeta, ObjectName, Original, Storage};
use std::collections::BTreeSet;

/// Times that a reader looks again when the newest record vanishes between listing and reading.
const READ_ATTEMPTS_MAX: u32 = 16;

/// A record as read, with what the next one must say of it.
#[derive(Clone, Debug)]
pub(crate) struct StoredConfig {
    pub(crate) config: Config,
    /// BLAKE3 of the whole object.
    pub(crate) hash: [u8; 32],
    /// False if it is known to be without a copy.
    pub(crate) has_copy: bool,
}

impl StoredConfig {
    fn open(keys: &RepositoryKeys, sequence: u64, object: Vec<u8>) -> Result<Self, StoreError> {
        let hash = *blake3::hash(&object).as_bytes();
        Ok(Self { config: Config::open(keys, sequence, object)?, hash, has_copy: true })
    }
}

/// The newest record as it lies there: of a known version, but not yet opened, for that takes a key.
#[derive(Debug)]
pub(crate) struct Newest {
    pub(crate) sequence: u64,
    /// False if an interrupted commit left it without a copy.
    pub(crate) has_copy: bool,
    object: Vec<u8>,
    is_copy: bool,
}

impl Newest {
    /// Finds the newest record.
    ///
    /// # Errors
    /// [`StoreError::NotARepository`]; an unknown version; [`StoreError::BothDamaged`] if neither original nor copy has
    /// a sound header; [`StoreError::ListedAndMissing`].
    pub(crate) fn find(storage: &dyn Storage) -> Result<Self, StoreError> {
        let mut attempt = 1;
        loop {
            let listed = listed(storage)?;
            let sequence = listed.iter().filter_map(number).max().ok_or_else(|| none(storage))?;
            let has_copy = listed.iter().any(|meta| meta.name == Original::Config(sequence).copy());
            match Self::at(storage, sequence) {
                // Superseded since it was listed.
                Err(error) if error.is_not_found() && attempt < READ_ATTEMPTS_MAX => attempt += 1,
                Err(error) if error.is_not_found() => return Err(listed_and_missing(storage, sequence)),
                other => return other.map(|newest| Self { has_copy, ..newest }),
            }
        }
    }

    /// The record of this number, whether it is the newest or not. It is not found if it is at neither place.
    pub(crate) fn at(storage: &dyn Storage, sequence: u64) -> Result<Self, StoreError> {
        let original = Original::Config(sequence);
        let first = match read(storage, original.name()) {
            Ok(object) => return Ok(Self { sequence, has_copy: true, object, is_copy: false }),
            Err(error @ StoreError::UnknownVersion { .. }) => return Err(error),
            Err(error) => error,
        };
        match read(storage, original.copy()) {
            Ok(object) => Ok(Self { sequence, has_copy: true, object, is_copy: true }),
            Err(copy) if copy.is_not_found() && first.is_not_found() => Err(first),
            // The place itself fails: it does not tell what lies there.
            Err(_) if !first.is_damage() => Err(first),
            Err(copy) if !copy.is_damage() => Err(copy),
            Err(_) => Err(StoreError::both_damaged(original, &first)),
        }
    }

    /// Opens it: what was read of it, or else what lies at its other place.
    ///
    /// # Errors
    /// [`StoreError::Misplaced`] if it is sealed under another master key, an unknown feature,
    /// [`StoreError::BothDamaged`]; that of the storage if the other place cannot be read.
    pub(crate) fn open(&self, storage: &dyn Storage, keys: &RepositoryKeys) -> Result<StoredConfig, StoreError> {
        let open = |object| {
            let stored = StoredConfig::open(keys, self.sequence, object)?;
            Ok::<_, StoreError>(StoredConfig { has_copy: self.has_copy, ..stored })
        };
        let original = Original::Config(self.sequence);
        let first = match open(self.object.clone()) {
            Err(error) if error.is_damage() => error,
            result => return result,
        };
        let other = if self.is_copy { original.name() } else { original.copy() };
        let second = match read(storage, other).and_then(open) {
            Err(error) => error,
            result => return result,
        };
        Err(match first {
            StoreError::Misplaced { .. } | StoreError::UnknownFeature { .. } => first,
            _ if !second.is_damage() => second,
            damage => StoreError::both_damaged(original, &damage),
        })
    }
}

/// The error of a place that lists a record or its copy, and says that neither is there.
fn listed_and_missing(storage: &dyn Storage, sequence: u64) -> StoreError {
    let object = Original::Config(sequence).name().to_string();
    StoreError::ListedAndMissing { object, location: storage.location() }
}

/// Refuses to take a record for lost of which the place lists an original or a copy that it says is not there.
///
/// # Errors
/// [`StoreError::ListedAndMissing`]; those of the storage.
pub(crate) fn refuse_contradiction(storage: &dyn Storage, sequence: u64) -> Result<(), StoreError> {
    let mut missing = Original::Config(sequence).places().to_vec();
    missing.retain(|place| storage.read_range(place, 0, 1).is_err_and(|error| error.is_not_found()));
    if !missing.is_empty() && listed(storage)?.iter().any(|meta| missing.contains(&meta.name)) {
        return Err(listed_and_missing(storage, sequence));
    }
    Ok(())
}

/// The newest record, opened.
pub(crate) fn newest(storage: &dyn Storage, keys: &RepositoryKeys) -> Result<StoredConfig, StoreError> {
    Newest::find(storage)?.open(storage, keys)
}

/// Lists the faults of the newest record: its original or its copy cannot be opened, or it does not follow from its
/// predecessor.
pub(crate) fn faults(storage: &dyn Storage, keys: &RepositoryKeys) -> Result<Vec<StoreError>, StoreError> {
    let mut faults = Vec::new();
    let Some(sequence) = numbers(storage)?.into_iter().max() else { return Err(none(storage)) };
    for name in [Original::Config(sequence).name(), Original::Config(sequence).copy()] {
        let opened = read(storage, name).and_then(|object| StoredConfig::open(keys, sequence, object));
        match opened.map_err(|error| error.found_in(&name)) {
            // Whoever was interrupted before it made the copy left it to the next writer.
            Err(error) if error.is_not_found() && name.original().is_none() => {}
            Ok(stored) => faults.extend(fault_before(storage, &stored)),
            Err(error) => faults.push(error),
        }
    }
    faults.dedup_by_key(|error| error.to_string());
    // Somebody who commits meanwhile makes all of it look wrong.
    if is_overtaken(storage, sequence)? { Ok(Vec::new()) } else { Ok(faults) }
}

/// The newest record and the one before, each with BLAKE3 of the object as it was written.
pub(crate) fn last_two(storage: &dyn Storage, keys: &RepositoryKeys) -> Result<Vec<(Original, [u8; 32])>, StoreError> {
    let StoredConfig { config, hash, .. } = newest(storage, keys)?;
    let before = config.sequence.checked_sub(1).filter(|before| *before > 0);
    let before = before.map(|before| (Original::Config(before), config.previous));
    Ok(std::iter::once((Original::Config(config.sequence), hash)).chain(before).collect())
}

/// Makes the copy of a record, where an interrupted commit left none.
pub(crate) fn keep_copy(storage: &dyn Storage, keys: &RepositoryKeys, known: u64) -> Result<(), StoreError> {
    let original = Original::Config(known);
    let object = match read(storage, original.name()) {
        Ok(object) => object,
        // Superseded meanwhile.
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(error),
    };
    StoredConfig::open(keys, known, object.clone())?;
    match create_ours(storage, &original.copy(), &object) {
        Err(error) if error.is_full() => Ok(()),
        other => other.map(drop),
    }
}

/// Tells whether what lies there as predecessor, by original or copy, is another one.
fn fault_before(storage: &dyn Storage, stored: &StoredConfig) -> Option<StoreError> {
    let before = Original::Config(stored.config.sequence.checked_sub(1)?);
    let hashes: Vec<[u8; 32]> = [before.name(), before.copy()]
        .iter()
        .filter_map(|name| Some(*blake3::hash(&storage.read(name, name.bytes_max()).ok()?).as_bytes()))
        .collect();
    let is_other = !hashes.is_empty() && !hashes.contains(&stored.config.previous);
    is_other.then(|| StoreError::BrokenHistory {
        object: stored.config.object_name().to_string(),
        before: before.name().to_string(),
    })
}

/// The outcome of a commit.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The record counts.
    Committed(StoredConfig),
    /// Somebody else came first, and nothing was changed.
    Lost,
    /// Others have gone on so far that nothing tells whether they built on it; the error says so.
    Untold(StoreError),
}

/// Commits `next` as the successor of `before`, sealed under `keys`.
pub(crate) fn commit(
    storage: &dyn Storage,
    keys: &RepositoryKeys,
    before: Option<&StoredConfig>,
    mut next: Config,
) -> Result<Outcome, StoreError> {
    next.sequence = match before.map(|stored| stored.config.sequence) {
        Some(before) => number_after(&Original::Config(before).name(), before)?,
        None => 1,
    };
    next.previous = before.map_or([0; 32], |stored| stored.hash);
    let original = Original::Config(next.sequence);
    let object = next.seal(keys)?;
    let mut stored = StoredConfig::open(keys, next.sequence, object.clone())?;
    if stored.config != next {
        return Err(StoreError::SelfCheck { what: original.name().to_string() });
    }
    let name = original.name();
    if create_ours(storage, &name, &object)? == Created::Taken {
        return Ok(Outcome::Lost);
    }
    // A number may be free only because others have gone further and tidied up.
    let unknown = |error: &StoreError| StoreError::outcome_unknown(&name, error);
    let listed = listed(storage).map_err(|error| unknown(&error))?;
    let is_overtaken = listed.iter().filter_map(number).any(|other| other > next.sequence);
    if is_overtaken {
        match is_built_on(storage, keys, &stored) {
            Ok(true) => {}
            Ok(false) => {
                storage.delete(&name)?;
                storage.barrier()?;
                return Ok(Outcome::Lost);
            }
            // It is older than the predecessor of the newest by now, and goes with the next commit.
            Err(error) if error.is_not_found() => return Ok(Outcome::Untold(unknown(&error))),
            Err(error) => return Err(unknown(&error)),
        }
    }
    // The commit stands from here on, also if its copy cannot be made: the next record has both places again. Older
    // records stay then.
    if !matches!(create_ours(storage, &original.copy(), &object), Ok(Created::Ours)) {
        stored.has_copy = false;
        return Ok(Outcome::Committed(stored));
    }
    // What cannot be tidied up now the next one removes.
    let below = |meta: &&ObjectMeta| number(meta).is_some_and(|other| other < next.sequence.saturating_sub(1));
    let older: Vec<ObjectName> = listed.iter().filter(below).map(|meta| meta.name).collect();
    if !older.is_empty() {
        let _ = storage.delete_many(&older);
    }
    Ok(Outcome::Committed(stored))
}

/// Tells whether the record after this one, which was just created, follows from it.
///
/// # Errors
/// The record after it cannot be read or is gone, so that nothing tells. Of the first record it is known all the same:
/// nobody else has the keys of a repository that is being made.
fn is_built_on(storage: &dyn Storage, keys: &RepositoryKeys, stored: &StoredConfig) -> Result<bool, StoreError> {
    let sequence = stored.config.sequence;
    let next = Newest::at(storage, sequence.saturating_add(1)).and_then(|next| next.open(storage, keys));
    match next {
        Ok(next) => Ok(next.config.previous == stored.hash),
        Err(error) if sequence == 1 && (error.is_not_found() || matches!(error, StoreError::Misplaced { .. })) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

fn is_overtaken(storage: &dyn Storage, sequence: u64) -> Result<bool, StoreError> {
    Ok(numbers(storage)?.into_iter().any(|other| other > sequence))
}

fn listed(storage: &dyn Storage) -> Result<Vec<ObjectMeta>, StoreError> {
    Ok(storage.list_both([Listing::Configs, Listing::ConfigCopies])?.concat())
}

/// The numbers of the records there are, sound or not, highest first.
pub(crate) fn sequences(storage: &dyn Storage) -> Result<Vec<u64>, StoreError> {
    let sequences: BTreeSet<u64> = numbers(storage)?.into_iter().collect();
    Ok(sequences.into_iter().rev().collect())
}

fn numbers(storage: &dyn Storage) -> Result<Vec<u64>, StoreError> {
    Ok(listed(storage)?.iter().filter_map(number).collect())
}

fn number(meta: &ObjectMeta) -> Option<u64> {
    match meta.name {
        ObjectName::Config(sequence) | ObjectName::Copy(Original::Config(sequence)) => Some(sequence),
        _ => None,
    }
}

/// Reads a record or its copy, and its header as the record's.
fn read(storage: &dyn Storage, name: ObjectName) -> Result<Vec<u8>, StoreError> {
    let object = storage.read(&name, name.bytes_max())?;
    ObjectHeader::parse(&name, &object)?;
    Ok(object)
}

/// The error of having no record: either there is no repository at all, or one that lost it.
pub(crate) fn none(storage: &dyn Storage) -> StoreError {
    match storage.list(Listing::AllManifests) {
        Ok(manifests) if !manifests.is_empty() => StoreError::RecordLost { location: storage.location() },
        _ => StoreError::NotARepository { location: storage.location() },
    }
}
