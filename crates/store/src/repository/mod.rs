//! A repository, opened: its storage, its keys, its record. Series are written in [`crate::series`].
//!
//! | file | what |
//! |---|---|
//! | `record.rs` | the record of the repository: changed by commits |
//! | `key_slots.rs` | passwords, the master key: slots come and go |
//! | `manifests.rs` | the series and their newest manifests: listed, read and remembered |

mod key_slots;
mod manifests;
mod record;

pub use crate::keys::OpenOptions;
pub use key_slots::{KeySlotView, Rotation, check_recovery};
pub use manifests::MANIFESTS_AT_ONCE;

use crate::config::chain::{self, Newest, Outcome, StoredConfig};
use crate::config::{ChunkerSettings, Config, ParitySettings};
use crate::container::{ContainerKind, ContainerRecord};
use crate::keys::{Argon2Cost, KeyLabel, Opened, Unlocked, unlock};
use crate::parity::Healer;
use crate::secrets::{MasterKey, RepositoryKeys, random_bytes};
use crate::series::{LeaseTerms, keep_reserve};
use crate::storage::{Latency, Listing, MANIFEST_BYTES_MAX, ObjectName, Original, Storage};
use crate::write_only::WriteOnlyKey;
use crate::{KeyId, RepositoryId, SeriesId, StoreError};
use key_slots::{delete_slot, write_slot};
use manifests::KnownSeries;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The least bound of a manifest, however little memory there is.
const MANIFEST_BYTES_LEAST: u64 = 16 << 20;

/// An open repository.
#[derive(Debug)]
pub struct Repository {
    storage: Arc<dyn Storage>,
    access: Access,
    keys: RepositoryKeys,
    /// The newest record this process has read, and BLAKE3 of its object.
    record: Mutex<(Arc<Config>, [u8; 32])>,
    /// True if that record is known to be without a copy.
    lacks_record_copy: AtomicBool,
    known: KnownSeries,
    manifest_bytes_max: u64,
    lease_terms: LeaseTerms,
    healer: Healer,
}

/// The key that a repository was opened with.
#[derive(Clone, Debug)]
enum Access {
    Full(Unlocked),
    /// One of a write-only client, by its slot.
    WriteOnly(KeyId),
}

/// A repository that is there and not yet opened.
#[derive(Debug)]
pub struct FoundRepository {
    storage: Arc<dyn Storage>,
    newest: Newest,
}

/// Finds a repository, before anybody is asked for a password.
///
/// # Errors
/// As [`Repository::open`], as far as they show without a key.
pub fn find(storage: Arc<dyn Storage>) -> Result<FoundRepository, StoreError> {
    Ok(FoundRepository { newest: Newest::find(storage.as_ref())?, storage })
}

impl FoundRepository {
    /// Opens the repository with the password of any of its key slots. After a wrong one it can be tried again.
    ///
    /// # Errors
    /// As [`Repository::open`].
    pub fn open(&mut self, password: &[u8], options: &OpenOptions) -> Result<Repository, StoreError> {
        let storage = self.storage.as_ref();
        loop {
            match unlock(storage, password, options, |unlocked| accept(storage, &self.newest, unlocked)) {
                Ok(Opened::Full(unlocked, stored)) => {
                    return Ok(Repository::assemble(Arc::clone(&self.storage), unlocked, stored, options));
                }
                Ok(Opened::WriteOnly(slot, key)) => {
                    return Repository::assemble_write_only(Arc::clone(&self.storage), slot, &key, options);
                }
                Err(refused @ StoreError::KeyInvalid { .. }) => {
                    // It may have been added since the record was read.
                    let now = Newest::find(storage)?;
                    if now.sequence == self.newest.sequence {
                        return Err(refused);
                    }
                    self.newest = now;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl Repository {
    /// Makes a repository: a key slot first, then the first record, whose creation is the commit. Of two who do so at
    /// once one wins, and the other takes its own slot back. What an interrupted attempt left is never touched: it may
    /// be somebody's at work.
    ///
    /// # Errors
    /// [`StoreError::AlreadyARepository`] if there is a record, or anything else but key slots, already.
    pub fn init(
        storage: Arc<dyn Storage>,
        password: &[u8],
        label: &KeyLabel,
        cost: Argon2Cost,
        chunker: ChunkerSettings,
    ) -> Result<Self, StoreError> {
        let exists = || StoreError::AlreadyARepository { location: storage.location() };
        // Beside a manifest or a container, slots may be the last way into a repository that lost its record.
        let is_beginning = |name: &ObjectName| {
            matches!(name, ObjectName::Key(_) | ObjectName::Copy(Original::Key(_)) | ObjectName::Reserve)
        };
        if !storage.list(Listing::All)?.iter().all(|meta| is_beginning(&meta.name)) {
            return Err(exists());
        }
        let unlocked = Unlocked {
            slot: KeyId(random_bytes()?),
            master: MasterKey::random()?,
            repository: RepositoryId(random_bytes()?),
        };
        let keys = unlocked.keys();
        let slot = write_slot(storage.as_ref(), &unlocked, password, label, cost)?;
        refuse_overwriting(storage.as_ref(), &ObjectName::Key(unlocked.slot), &slot)?;
        let first = Config::new(unlocked.repository, chunker, label.created, unlocked.slot);
        let stored = match chain::commit(storage.as_ref(), &keys, None, first)? {
            Outcome::Committed(stored) => stored,
            Outcome::Untold(error) => return Err(error),
            Outcome::Lost => {
                delete_slot(storage.as_ref(), unlocked.slot)?;
                return Err(exists());
            }
        };
        let repository = Self::assemble(storage, unlocked, stored, &OpenOptions::default());
        keep_reserve(&repository, 0)?;
        Ok(repository)
    }

    /// Opens a repository with the password of any of its key slots.
    ///
    /// # Errors
    /// [`StoreError::NotARepository`], [`StoreError::WrongPassword`], [`StoreError::KeyInvalid`] for the password of a
    /// slot that the newest record does not list, an unknown version or feature by name, or damage.
    pub fn open(storage: Arc<dyn Storage>, password: &[u8]) -> Result<Self, StoreError> {
        Self::open_with(storage, password, &OpenOptions::default())
    }

    /// Opens as [`Repository::open`] does, with options.
    pub fn open_with(storage: Arc<dyn Storage>, password: &[u8], options: &OpenOptions) -> Result<Self, StoreError> {
        find(storage)?.open(password, options)
    }

    pub(crate) fn assemble(
        storage: Arc<dyn Storage>,
        unlocked: Unlocked,
        stored: StoredConfig,
        options: &OpenOptions,
    ) -> Self {
        let keys = unlocked.all_keys(&stored.config.older_masters);
        Self::with_record(storage, (Access::Full(unlocked), keys), stored, options)
    }

    /// A repository as a write-only client has it, with what its key says in place of the record.
    fn assemble_write_only(
        storage: Arc<dyn Storage>,
        slot: KeyId,
        key: &WriteOnlyKey,
        options: &OpenOptions,
    ) -> Result<Self, StoreError> {
        let stored = StoredConfig { config: key.config(slot)?, hash: [0; 32], has_copy: true };
        Ok(Self::with_record(storage, (Access::WriteOnly(slot), key.keys()), stored, options))
    }

    fn with_record(
        storage: Arc<dyn Storage>,
        (access, keys): (Access, RepositoryKeys),
        stored: StoredConfig,
        options: &OpenOptions,
    ) -> Self {
        let manifest_bytes_max = (options.memory_bytes / 4).clamp(MANIFEST_BYTES_LEAST, MANIFEST_BYTES_MAX);
        Self {
            storage,
            access,
            keys,
            record: Mutex::new((Arc::new(stored.config), stored.hash)),
            lacks_record_copy: AtomicBool::new(!stored.has_copy),
            known: KnownSeries::default(),
            manifest_bytes_max,
            lease_terms: options.lease_terms,
            healer: Healer::default(),
        }
    }

    /// Returns this repository over another storage that is made of its own, such as one that holds more.
    #[must_use]
    pub fn over(&self, storage: impl FnOnce(Arc<dyn Storage>) -> Arc<dyn Storage>) -> Self {
        Self {
            storage: storage(self.storage.clone()),
            access: self.access.clone(),
            keys: self.keys.clone(),
            record: Mutex::new(self.record()),
            lacks_record_copy: AtomicBool::new(self.lacks_record_copy.load(Ordering::Relaxed)),
            known: KnownSeries::default(),
            manifest_bytes_max: self.manifest_bytes_max,
            lease_terms: self.lease_terms,
            healer: Healer::default(),
        }
    }

    /// Identity of the repository.
    pub fn id(&self) -> RepositoryId {
        self.keys.repository()
    }

    /// Returns the storage of its objects.
    pub fn storage(&self) -> &dyn Storage {
        self.storage.as_ref()
    }

    /// Tells whether it costs little to look closely: to list what need not have changed, or to look for what need not
    /// be there. At a distance every request costs a round trip, and listings cost money.
    pub(crate) fn is_near(&self) -> bool {
        self.storage.capabilities().latency == Latency::Disk
    }

    /// Tells whether containers and manifests may be deleted with the rights that this program has.
    pub fn may_delete(&self) -> bool {
        self.storage.capabilities().deletes
    }

    /// Tells whether the record and key slots may be written with the rights and the key that this program has.
    pub(crate) fn may_amend(&self) -> bool {
        self.may_read() && self.storage.capabilities().amends
    }

    /// Tells whether the key opens more than the manifests of one series.
    pub fn may_read(&self) -> bool {
        matches!(self.access, Access::Full(_))
    }

    /// Refuses what takes a key that reads; `what` is that, as "restoring a snapshot".
    ///
    /// # Errors
    /// [`StoreError::WriteOnly`] with the key of a write-only client.
    pub fn require_reading(&self, what: &str) -> Result<(), StoreError> {
        self.full(what).map(drop)
    }

    fn full(&self, what: &str) -> Result<&Unlocked, StoreError> {
        match &self.access {
            Access::Full(unlocked) => Ok(unlocked),
            Access::WriteOnly(_) => Err(StoreError::WriteOnly { what: what.to_owned() }),
        }
    }

    /// Tells whether a series is within reach of the place and of the key.
    pub fn reaches(&self, series: SeriesId) -> bool {
        self.storage.reaches(series) && self.keys.write_only_series().is_none_or(|(own, _)| own == series)
    }

    /// Refuses what cannot be done without deleting; `what` is that, as "forgetting snapshots".
    ///
    /// # Errors
    /// [`StoreError::NoRight`] if nothing may be deleted.
    pub fn require_deletes(&self, what: &'static str) -> Result<(), StoreError> {
        if self.may_delete() {
            return Ok(());
        }
        let location = self.storage.location();
        Err(StoreError::NoRight { what: what.to_owned(), location, right: "the right to delete there" })
    }

    /// Refuses to work on a series whose objects are out of reach.
    pub(crate) fn require_reach(&self, series: SeriesId, name: &str) -> Result<(), StoreError> {
        if self.reaches(series) {
            return Ok(());
        }
        if let Some((_, own)) = self.keys.write_only_series() {
            let reason = format!("the key adds backups to the series \"{own}\" alone");
            return Err(StoreError::Refused { what: format!("writing to the series \"{name}\""), reason });
        }
        let (what, location) = (format!("writing to the series \"{name}\", {series}"), self.storage.location());
        Err(StoreError::NoRight { what, location, right: "a token for this series" })
    }

    /// The series that the record lists and that are within reach, with their names.
    pub fn series_recorded(&self) -> BTreeMap<SeriesId, String> {
        let mut series = self.config().series.clone();
        series.retain(|id, _| self.reaches(*id));
        series
    }

    /// The storage, for a thread that outlives the borrow.
    pub(crate) fn storage_shared(&self) -> Arc<dyn Storage> {
        Arc::clone(&self.storage)
    }

    /// The key slot it was opened with.
    pub fn key_in_use(&self) -> KeyId {
        match &self.access {
            Access::Full(unlocked) => unlocked.slot,
            Access::WriteOnly(slot) => *slot,
        }
    }

    /// The keys derived from its master key.
    pub fn keys(&self) -> &RepositoryKeys {
        &self.keys
    }

    /// Returns its record: the newest this process has read.
    pub fn config(&self) -> Arc<Config> {
        self.record().0
    }

    /// Returns its record with BLAKE3 of the record's object.
    pub fn record(&self) -> (Arc<Config>, [u8; 32]) {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the parity that new containers get.
    pub fn parity(&self) -> ParitySettings {
        self.config().parity
    }

    /// Returns the bytes that new containers of this kind are filled to.
    pub fn container_bytes(&self, kind: ContainerKind) -> u64 {
        self.config().container_bytes(kind)
    }

    /// The bytes of a damaged container as its parity restores them, verified; `None` if it has none, or too little.
    pub fn heal(&self, series: SeriesId, record: &ContainerRecord) -> Option<Arc<[u8]>> {
        self.healer.heal(self.storage(), &self.keys, series, record)
    }

    /// The containers that were read with their parity since the repository was opened: they are damaged until it is
    /// repaired.
    pub fn healed(&self) -> Vec<ObjectName> {
        self.healer.healed()
    }

    /// The greatest size in bytes of a manifest that is read, and of its body once decompressed.
    pub fn manifest_bytes_max(&self) -> u64 {
        self.manifest_bytes_max
    }

    /// Returns the terms on which this process holds leases and watches those of others.
    pub fn lease_terms(&self) -> LeaseTerms {
        self.lease_terms
    }

    /// The bytes of all objects.
    pub fn bytes(&self) -> Result<u64, StoreError> {
        Ok(self.storage.list(Listing::All)?.iter().map(|meta| meta.bytes).sum())
    }
}

/// The newest record, if the slot that was opened counts by it. One under another master key is no reason to fail:
/// another slot may be of that key.
pub(crate) fn accept(
    storage: &dyn Storage,
    newest: &Newest,
    unlocked: &Unlocked,
) -> Result<Option<StoredConfig>, StoreError> {
    match newest.open(storage, &unlocked.keys()) {
        Ok(stored) => Ok(Some(stored).filter(|stored| stored.config.key_slots.contains(&unlocked.slot))),
        Err(StoreError::Misplaced { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Creates an object that is there once more with other bytes, which must be refused: on a place that does it
/// nevertheless two writers would overwrite each other's commits. (The same bytes might pass for a lost answer.)
fn refuse_overwriting(storage: &dyn Storage, name: &ObjectName, object: &[u8]) -> Result<(), StoreError> {
    match storage.create(name, &[object, b"again"].concat()) {
        Err(error) if error.is_already_exists() => Ok(()),
        Err(error) => Err(error.into()),
        Ok(()) => Err(StoreError::Refused {
            what: format!("making a repository at {}", storage.location()),
            reason: "the place replaces objects that it was told not to replace (it ignores conditional writes), \
                     so that two writers would lose each other's commits; use another place"
                .to_owned(),
        }),
    }
}
