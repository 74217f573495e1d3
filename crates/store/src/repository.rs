//! A repository, opened: its storage, its keys, its record. Key slots come and go here; series are written in
//! [`crate::series`].
//!
//! A key slot counts only while the newest record lists it. So whoever changes slots commits a record, and of two who
//! do so at once the second sees what the first did: the slot one works with must still be listed, which keeps two
//! holders from removing each other.

use crate::config::chain::{self, Newest, Outcome, StoredConfig};
use crate::config::{ChunkerSettings, Config, ParitySettings};
use crate::container::{ContainerKind, ContainerRecord};
use crate::created::create_same;
pub use crate::keys::OpenOptions;
use crate::keys::{Argon2Cost, KeyLabel, KeySlot, Opened, SlotSecret, Unlocked, read_slot, slot_ids, unlock};
use crate::manifest::Manifest;
use crate::parity::Healer;
use crate::secrets::{MasterKey, RepositoryKeys, random_bytes};
use crate::series::newest::{
    StoredRoot, manifest_numbered, newest_sequence, numbers_of_all, read_ahead, summary_numbered,
};
use crate::series::remembered::RememberedManifests;
use crate::series::{LeaseTerms, SeriesSummary, StoredManifest, keep_reserve, newest_manifest, older_parts_bytes};
use crate::storage::{Latency, Listing, MANIFEST_BYTES_MAX, ObjectName, Original, Storage};
use crate::write_only::WriteOnlyKey;
use crate::{Epoch, KeyId, RecoveryKey, RepositoryId, SeriesId, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Times that a change of the record is tried again because others changed it first.
const AMEND_ATTEMPTS_MAX: u32 = 64;
/// Age of a listing that a command may take once more.
const LISTING_AGE_MAX: Duration = Duration::from_secs(10);
/// Manifests that are read at the same time, at a distance.
pub const MANIFESTS_AT_ONCE: usize = 64;
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
    /// Numbers of the manifests that were the newest when they were last listed: whoever only reads may begin there.
    numbers: Mutex<BTreeMap<SeriesId, u64>>,
    /// Series that the next call for them takes as they were listed last.
    listed_ahead: Mutex<ListedAhead>,
    /// The moment at which all series were listed last.
    listed_at: Mutex<Option<Instant>>,
    /// Manifests that were read or committed, where reading one again would take a round trip.
    remembered: Mutex<RememberedManifests>,
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

/// Series that were listed ahead of their use.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum ListedAhead {
    #[default]
    Nothing,
    One(SeriesId),
    All,
}

/// A key slot as listed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeySlotView {
    /// Id of the slot.
    pub id: KeyId,
    /// Label: when, on which host and by whom it was made.
    pub label: KeyLabel,
    /// Cost of trying a password on it; `None` if a key file opens it.
    pub cost: Option<Argon2Cost>,
    /// True if the repository was opened with it.
    pub current: bool,
    /// The series of a write-only client's key: its name, or its id where the record does not tell.
    pub write_only: Option<String>,
}

/// The outcome of a change of the master key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rotation {
    /// The one slot that counts.
    pub slot: KeyId,
    /// The epoch of the new master key.
    pub epoch: Epoch,
    /// The slots of others that no longer count; they were of the old master key.
    pub invalidated: BTreeSet<KeyId>,
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

/// Tells whether this master key is the newest of the repository.
///
/// # Errors
/// As [`find`], and damage of the record.
pub fn check_recovery(storage: &dyn Storage, key: &RecoveryKey) -> Result<bool, StoreError> {
    let keys = RepositoryKeys::derive(&key.master, key.repository);
    match Newest::find(storage)?.open(storage, &keys) {
        Ok(_) => Ok(true),
        Err(StoreError::Misplaced { .. }) => Ok(false),
        Err(error) => Err(error),
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
            numbers: Mutex::default(),
            listed_ahead: Mutex::default(),
            listed_at: Mutex::default(),
            remembered: Mutex::default(),
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
            numbers: Mutex::default(),
            listed_ahead: Mutex::default(),
            listed_at: Mutex::default(),
            remembered: Mutex::default(),
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

    /// Reads the newest record, changes it and commits it; begins anew if somebody else came first, or if others have
    /// gone on so far that nothing tells whether it counts. So `change` may be called several times, also on a record
    /// that has the change. What changes nothing commits nothing.
    ///
    /// # Errors
    /// Those of `change`, then nothing was committed; [`StoreError::OutcomeUnknown`] where that is not sure;
    /// [`StoreError::KeyInvalid`] if the master key was changed meanwhile; [`StoreError::WriteOnly`].
    pub fn amend(&self, change: impl FnMut(&mut Config) -> Result<(), StoreError>) -> Result<Arc<Config>, StoreError> {
        self.amend_under(&self.keys, None, change)
    }

    /// Amends as [`Repository::amend`] does, sealing the next record under these keys. It is tried first on a record
    /// that is `known`, without reading the newest.
    fn amend_under(
        &self,
        keys: &RepositoryKeys,
        mut known: Option<StoredConfig>,
        mut change: impl FnMut(&mut Config) -> Result<(), StoreError>,
    ) -> Result<Arc<Config>, StoreError> {
        self.require_reading("changing the record of the repository")?;
        let mut untold = None;
        for _ in 0..AMEND_ATTEMPTS_MAX {
            match self.try_amend(keys, known.take(), &mut change) {
                Ok(Outcome::Committed(stored)) => return Ok(self.keep(stored)),
                Ok(Outcome::Lost) => {}
                Ok(Outcome::Untold(error)) => untold = Some(error),
                // What was committed before may count all the same.
                Err(error) => return Err(untold.unwrap_or(error)),
            }
        }
        let (what, reason) =
            ("changing the record of the repository".to_owned(), "others keep changing it; try again".to_owned());
        Err(untold.unwrap_or(StoreError::Refused { what, reason }))
    }

    fn try_amend(
        &self,
        keys: &RepositoryKeys,
        known: Option<StoredConfig>,
        change: &mut impl FnMut(&mut Config) -> Result<(), StoreError>,
    ) -> Result<Outcome, StoreError> {
        let stored = match known {
            Some(known) => known,
            None => chain::newest(self.storage(), &self.keys).map_err(|error| self.told(error))?,
        };
        let mut next = stored.config.clone();
        change(&mut next)?;
        if next == stored.config {
            return Ok(Outcome::Committed(stored));
        }
        chain::commit(self.storage(), keys, Some(&stored), next)
    }

    /// Makes the copy of the newest record where an interrupted commit left none.
    pub fn keep_record_copy(&self) -> Result<(), StoreError> {
        if self.lacks_record_copy.load(Ordering::Relaxed) {
            chain::keep_copy(self.storage(), &self.keys, self.config().sequence)?;
            self.lacks_record_copy.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Lists the faults of the newest record and its copy.
    ///
    /// # Errors
    /// Errors of the storage; [`StoreError::WriteOnly`].
    pub fn record_faults(&self) -> Result<Vec<StoreError>, StoreError> {
        self.require_reading("checking the record of the repository")?;
        chain::faults(self.storage(), &self.keys)
    }

    pub(crate) fn keep(&self, stored: StoredConfig) -> Arc<Config> {
        self.lacks_record_copy.store(!stored.has_copy, Ordering::Relaxed);
        let config = Arc::new(stored.config);
        *self.record.lock().unwrap_or_else(PoisonError::into_inner) = (Arc::clone(&config), stored.hash);
        config
    }

    /// A record under a master key that is not ours can only be a newer one: ours opened one before.
    fn told(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Misplaced { .. } => self.invalid("the master key was changed meanwhile"),
            other => other,
        }
    }

    fn invalid(&self, reason: &'static str) -> StoreError {
        StoreError::KeyInvalid { object: ObjectName::Key(self.key_in_use()).to_string(), reason }
    }

    /// Adds a series to the record's list, so that its loss shows.
    pub fn register_series(&self, id: SeriesId, name: &str) -> Result<(), StoreError> {
        // The record as it was read last is most likely the newest still; where it is not, the commit fails and the
        // newest is read. Nothing is taken off the list, so what stands on an older one needs no look.
        let known = Some(self.stored_record());
        self.amend_under(&self.keys, known, |config| {
            config.series.entry(id).or_insert_with(|| name.to_owned());
            Ok(())
        })
        .map(drop)
    }

    /// The record as it was read last.
    fn stored_record(&self) -> StoredConfig {
        let (config, hash) = self.record();
        let has_copy = !self.lacks_record_copy.load(Ordering::Relaxed);
        StoredConfig { config: config.as_ref().clone(), hash, has_copy }
    }

    /// The key slots that count, oldest first. What of them cannot be read, original or copy, is an error of its own
    /// and returned beside.
    pub fn key_slots(&self) -> Result<(Vec<KeySlotView>, Vec<StoreError>), StoreError> {
        self.require_reading("listing keys")?;
        let (mut slots, mut damaged) = (Vec::new(), Vec::new());
        let config = self.config();
        for id in &config.all_keys() {
            let label_in = |name| {
                let read = read_slot(self.storage(), *id, &name);
                let label = read.and_then(|slot| Ok((slot.label(&self.keys)?, slot.cost())));
                label.map_err(|error| error.found_in(&name))
            };
            let (original, copy) = (Original::Key(*id).name(), Original::Key(*id).copy());
            let (first, second) = (label_in(original), label_in(copy));
            if let Some((label, cost)) = first.as_ref().ok().or(second.as_ref().ok()).cloned() {
                let series = config.write_only.get(id);
                let write_only =
                    series.map(|series| config.series.get(series).cloned().unwrap_or_else(|| series.to_string()));
                slots.push(KeySlotView { id: *id, label, cost, current: *id == self.key_in_use(), write_only });
            }
            damaged.extend([first.err(), second.err()].into_iter().flatten());
        }
        slots.sort_by_key(|slot| (slot.label.created, slot.id));
        Ok((slots, damaged))
    }

    /// Key slots that lie there and do not count: left by an interrupted run, or put back. They open nothing.
    pub fn key_slots_unlisted(&self) -> Result<Vec<KeyId>, StoreError> {
        let listed = self.config().all_keys();
        Ok(slot_ids(self.storage())?.into_iter().filter(|id| !listed.contains(id)).collect())
    }

    /// Adds a key slot for another password: the slot is durable, twice, before the record lists it.
    pub fn add_key(&self, password: &[u8], label: &KeyLabel, cost: Argon2Cost) -> Result<KeyId, StoreError> {
        let id = KeyId(random_bytes()?);
        self.put_key(id, password, label, cost, |_| {})?;
        Ok(id)
    }

    /// Adds the key of a client that can add backups to a series and read none. The record lists the series by then,
    /// and it has a manifest: such a client can do neither.
    ///
    /// # Errors
    /// [`StoreError::KeyInvalid`] if the slot in use was removed meanwhile; [`StoreError::Refused`] if the series has
    /// no manifest; [`StoreError::Limit`] if its name is too long.
    pub fn add_write_only_key(
        &self,
        series_name: &str,
        password: &[u8],
        label: &KeyLabel,
        cost: Argon2Cost,
    ) -> Result<KeyId, StoreError> {
        let series = self.keys.series_id(series_name);
        if self.manifest(series)?.is_none() {
            let what = format!("making a key for the series \"{series_name}\"");
            return Err(StoreError::Refused { what, reason: "there is no such series".to_owned() });
        }
        let id = KeyId(random_bytes()?);
        let key = self.keys.write_only(series_name, &self.config())?;
        let object = KeySlot::create_write_only(id, &key, password, cost, (label, &self.keys))?;
        match KeySlot::parse(id, &object)?.open(password)? {
            Some(SlotSecret::WriteOnly(opened)) if *opened == key => {}
            _ => return Err(StoreError::SelfCheck { what: ObjectName::Key(id).to_string() }),
        }
        create_slot(self.storage(), id, &object)?;
        self.list_key(id, &object, |config| {
            config.write_only.insert(id, series);
        })?;
        Ok(id)
    }

    /// Makes a slot and lists it, with what else is to change in the record.
    fn put_key(
        &self,
        id: KeyId,
        password: &[u8],
        label: &KeyLabel,
        cost: Argon2Cost,
        also: impl Fn(&mut Config),
    ) -> Result<(), StoreError> {
        let unlocked = Unlocked { slot: id, ..self.full("making a key")?.clone() };
        let object = write_slot(self.storage(), &unlocked, password, label, cost)?;
        self.list_key(id, &object, |config| {
            config.key_slots.insert(id);
            also(config);
        })
    }

    /// Lists a slot that was made.
    fn list_key(&self, id: KeyId, object: &[u8], list: impl Fn(&mut Config)) -> Result<(), StoreError> {
        let listed = self.amend(|config| {
            self.require_listed(config)?;
            list(config);
            Ok(())
        });
        if let Err(error) = listed {
            // Only where it is sure that no record lists it; else it must stay, and if none does it opens nothing.
            if matches!(error, StoreError::KeyInvalid { .. }) {
                let _ = delete_slot(self.storage(), id);
            }
            return Err(error);
        }
        // Whoever cleared away slots that are not listed may have taken it for one before it was.
        create_slot(self.storage(), id, object)
    }

    /// Removes a key slot: the record lists it no more before it is deleted.
    ///
    /// # Errors
    /// [`StoreError::Refused`] for the slot this repository was opened with: the last way in must not be lost by a
    /// slip. [`StoreError::KeyInvalid`] if that one was removed meanwhile: whoever did so relies on the other.
    pub fn remove_key(&self, id: KeyId) -> Result<(), StoreError> {
        if id == self.key_in_use() {
            return Err(StoreError::Refused {
                what: format!("removing {}", ObjectName::Key(id)),
                reason: "it is the key in use; open the repository with another password first".to_owned(),
            });
        }
        self.amend(|config| {
            self.require_listed(config)?;
            config.key_slots.remove(&id);
            config.write_only.remove(&id);
            Ok(())
        })?;
        delete_slot(self.storage(), id)
    }

    /// Puts a new password in place of the one the repository was opened with: the new slot counts from the same commit
    /// on from which the old one does not.
    ///
    /// # Errors
    /// [`StoreError::KeyInvalid`] if the old one was removed meanwhile.
    pub fn change_password(
        &mut self,
        password: &[u8],
        label: &KeyLabel,
        cost: Argon2Cost,
    ) -> Result<KeyId, StoreError> {
        let unlocked = self.full("changing a password")?.clone();
        let (id, old) = (KeyId(random_bytes()?), unlocked.slot);
        self.put_key(id, password, label, cost, |config| {
            config.key_slots.remove(&old);
        })?;
        self.access = Access::Full(Unlocked { slot: id, ..unlocked });
        delete_slot(self.storage(), old)?;
        Ok(id)
    }

    /// Makes a new master key: what is written from now on is sealed under it, and a new slot with this password is the
    /// only one that counts. What is there stays as it is, and can be read by whoever knows the old one until it is
    /// written anew.
    ///
    /// # Errors
    /// [`StoreError::KeyInvalid`] if the slot in use was removed meanwhile, or the master key changed.
    pub fn rotate(&mut self, password: &[u8], label: &KeyLabel, cost: Argon2Cost) -> Result<Rotation, StoreError> {
        let before = self.full("changing the master key")?.clone();
        let slot = KeyId(random_bytes()?);
        let next = Unlocked { slot, master: MasterKey::random()?, repository: self.id() };
        write_slot(self.storage(), &next, password, label, cost)?;
        let mut invalidated = BTreeSet::new();
        let amended = self.amend_under(&next.keys(), None, |config| {
            self.require_listed(config)?;
            invalidated = config.all_keys();
            config.key_slots = BTreeSet::from([slot]);
            config.write_only.clear();
            config.older_masters.push(before.master.clone());
            Ok(())
        });
        let config = match amended {
            Err(error @ StoreError::KeyInvalid { .. }) => {
                delete_slot(self.storage(), slot)?;
                return Err(error);
            }
            other => other?,
        };
        self.keys = next.all_keys(&config.older_masters);
        self.access = Access::Full(next);
        invalidated.iter().try_for_each(|id| delete_slot(self.storage(), *id))?;
        invalidated.remove(&before.slot);
        Ok(Rotation { slot, epoch: self.keys.epoch(), invalidated })
    }

    /// Returns the key that opens the repository without a password: to be kept on paper.
    ///
    /// # Errors
    /// [`StoreError::WriteOnly`].
    pub fn recovery_key(&self) -> Result<RecoveryKey, StoreError> {
        let master = self.full("making a recovery key")?.master.clone();
        Ok(RecoveryKey { repository: self.id(), epoch: self.keys.epoch(), master })
    }

    /// Opens a repository by its master key, and makes a key slot with this password.
    ///
    /// # Errors
    /// [`StoreError::Misplaced`] if the master key is not the newest of this repository.
    pub fn recover(
        storage: Arc<dyn Storage>,
        key: &RecoveryKey,
        password: &[u8],
        label: &KeyLabel,
        cost: Argon2Cost,
    ) -> Result<Self, StoreError> {
        let slot = KeyId(random_bytes()?);
        let unlocked = Unlocked { slot, master: key.master.clone(), repository: key.repository };
        let stored = Newest::find(storage.as_ref())?.open(storage.as_ref(), &unlocked.keys())?;
        write_slot(storage.as_ref(), &unlocked, password, label, cost)?;
        let repository = Self::assemble(storage, unlocked, stored, &OpenOptions::default());
        repository.amend(|config| {
            config.key_slots.insert(slot);
            Ok(())
        })?;
        Ok(repository)
    }

    fn require_listed(&self, config: &Config) -> Result<(), StoreError> {
        if config.key_slots.contains(&self.key_in_use()) {
            Ok(())
        } else {
            Err(self.invalid("it was removed meanwhile"))
        }
    }

    /// Returns the words for a series in messages: its name in quotation marks where the record tells it, else its id.
    pub fn series_words(&self, id: SeriesId) -> String {
        self.config().series.get(&id).map_or_else(|| id.to_string(), |name| format!("\"{name}\""))
    }

    /// The series within reach that have a manifest, or a copy of one, and those that the record lists.
    pub fn series(&self) -> Result<Vec<SeriesId>, StoreError> {
        if self.take_listed_ahead() != ListedAhead::All {
            self.list_series()?;
        }
        let series: BTreeSet<_> = self.lock_numbers().keys().chain(self.series_recorded().keys()).copied().collect();
        Ok(series.into_iter().filter(|series| self.reaches(*series)).collect())
    }

    /// Lists the series as [`Repository::series`] does. Its next call, or the next writer of a series, takes what this
    /// one found, without a look: so a program that tests what it opens, and then goes on at once, looks once.
    ///
    /// # Errors
    /// Those of the storage.
    pub fn list_series_ahead(&self) -> Result<(), StoreError> {
        self.list_series()?;
        *self.lock_listed_ahead() = ListedAhead::All;
        Ok(())
    }

    /// Lets the next call of [`Repository::series`], or the next writer of a series, take what the last one found, as
    /// [`Repository::list_series_ahead`] does, if that was moments ago: for a command that asks several times. Where
    /// listing costs little, each call lists.
    pub fn reuse_listing(&self) {
        let listed_at = *self.listed_at.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_near() && listed_at.is_some_and(|at| at.elapsed() < LISTING_AGE_MAX) {
            *self.lock_listed_ahead() = ListedAhead::All;
        }
    }

    /// Lists one series, for its next writer, as [`Repository::list_series_ahead`] lists all: the cost does not grow
    /// with their number.
    ///
    /// # Errors
    /// Those of the storage.
    pub fn list_one_ahead(&self, series: SeriesId) -> Result<(), StoreError> {
        let newest = newest_sequence(self, series)?;
        match newest {
            Some(sequence) => self.lock_numbers().insert(series, sequence),
            None => self.lock_numbers().remove(&series),
        };
        *self.lock_listed_ahead() = ListedAhead::One(series);
        Ok(())
    }

    /// Tells, once, whether the series was listed ahead.
    pub(crate) fn was_listed_ahead(&self, series: SeriesId) -> bool {
        [ListedAhead::All, ListedAhead::One(series)].contains(&self.take_listed_ahead())
    }

    fn take_listed_ahead(&self) -> ListedAhead {
        std::mem::take(&mut *self.lock_listed_ahead())
    }

    fn lock_listed_ahead(&self) -> MutexGuard<'_, ListedAhead> {
        self.listed_ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn list_series(&self) -> Result<(), StoreError> {
        let began = Instant::now();
        *self.lock_numbers() = numbers_of_all(self)?;
        *self.listed_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(began);
        Ok(())
    }

    /// The series whose manifests this process has listed, read or committed.
    pub fn series_known(&self) -> Vec<SeriesId> {
        self.lock_numbers().keys().copied().filter(|series| self.reaches(*series)).collect()
    }

    /// The number of the newest manifest of a series, when the series were listed last, or of this process's own.
    pub fn number_listed(&self, series: SeriesId) -> Option<u64> {
        self.lock_numbers().get(&series).copied()
    }

    /// Remembers a manifest that is the newest of its series.
    pub(crate) fn note_manifest(&self, stored: &StoredManifest) {
        self.lock_numbers().insert(stored.manifest.series, stored.manifest.sequence);
        if !self.is_near() {
            self.lock_remembered().keep(stored);
        }
    }

    /// Remembers the object of a manifest that is the newest of its series.
    pub(crate) fn note_opened(&self, opened: StoredRoot) {
        self.lock_numbers().insert(opened.series(), opened.sequence());
        if !self.is_near() {
            self.lock_remembered().keep_opened(opened);
        }
    }

    /// Returns the manifest of this number, if it is remembered.
    pub(crate) fn manifest_at_hand(&self, series: SeriesId, sequence: u64) -> Option<StoredManifest> {
        self.lock_remembered().get(series, sequence).cloned()
    }

    /// Returns the object of the manifest of this number, if that is what is remembered of it.
    pub(crate) fn opened_at_hand(&self, series: SeriesId, sequence: u64) -> Option<StoredRoot> {
        self.lock_remembered().opened(series, sequence).cloned()
    }

    /// Returns the summary of the manifest of this number, if it or its object is remembered.
    pub(crate) fn summary_at_hand(&self, series: SeriesId, sequence: u64) -> Option<SeriesSummary> {
        self.lock_remembered().summary(series, sequence)
    }

    /// Tells whether the manifest of this number, or its object, is remembered.
    pub(crate) fn has_at_hand(&self, series: SeriesId, sequence: u64) -> bool {
        self.lock_remembered().has(series, sequence)
    }

    /// Remembers the object of a manifest that was read ahead of its use; `false`, and nothing is done, where there is
    /// no room.
    pub(crate) fn remember_opened(&self, opened: StoredRoot) -> bool {
        let mut remembered = self.lock_remembered();
        let has_room = remembered.has_room(opened.bytes());
        if has_room {
            remembered.keep_opened(opened);
        }
        has_room
    }

    /// Makes room for manifests that are read ahead.
    pub(crate) fn make_room_for_manifests(&self) {
        self.lock_remembered().make_room();
    }

    fn lock_remembered(&self) -> MutexGuard<'_, RememberedManifests> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_numbers(&self) -> MutexGuard<'_, BTreeMap<SeriesId, u64>> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The series that the record lists and that have no manifest, with their names.
    pub fn lost_series(&self) -> Result<Vec<(SeriesId, String)>, StoreError> {
        let mut lost = Vec::new();
        for (id, name) in self.series_recorded() {
            match newest_manifest(self, id) {
                Err(StoreError::LostSeries { .. }) => lost.push((id, name)),
                Err(error) if !error.is_damage() => return Err(error),
                _ => {}
            }
        }
        Ok(lost)
    }

    /// Takes a series off the record's list: its loss is accepted.
    pub fn unlist_series(&self, id: SeriesId) -> Result<(), StoreError> {
        self.amend(|config| {
            config.series.remove(&id);
            Ok(())
        })
        .map(drop)
    }

    /// The newest manifest of a series.
    pub fn manifest(&self, series: SeriesId) -> Result<Option<Manifest>, StoreError> {
        Ok(newest_manifest(self, series)?.map(|stored| stored.manifest))
    }

    /// The manifest of a series that was the newest when the series were last listed, without looking for a newer one
    /// as long as it is there: for readers, who find out by what they miss. The newest, if they were not listed.
    ///
    /// # Errors
    /// As [`newest_manifest`].
    pub fn manifest_listed(&self, series: SeriesId) -> Result<Option<Manifest>, StoreError> {
        Ok(self.stored_listed(series)?.map(|stored| stored.manifest))
    }

    /// As [`Repository::manifest_listed`], with what the next manifest must say of it.
    ///
    /// # Errors
    /// As [`newest_manifest`].
    pub fn stored_listed(&self, series: SeriesId) -> Result<Option<StoredManifest>, StoreError> {
        manifest_numbered(self, series, self.number_listed(series))
    }

    /// The summary of what [`Repository::manifest_listed`] returns. Parts of the manifest are not read.
    ///
    /// # Errors
    /// As [`newest_manifest`].
    pub fn summary_listed(&self, series: SeriesId) -> Result<Option<SeriesSummary>, StoreError> {
        summary_numbered(self, series, self.number_listed(series))
    }

    /// The newest manifests of all series.
    ///
    /// # Errors
    /// The damage of any of them: [`Repository::visit_manifests`] does the rest.
    pub fn manifests(&self) -> Result<Vec<Manifest>, StoreError> {
        let mut manifests = Vec::new();
        for series in self.series()? {
            manifests.extend(self.manifest(series)?);
        }
        Ok(manifests)
    }

    /// Reads the newest manifests of these series ahead of their use, at the same time, where each takes a round trip;
    /// those that were listed, and as far as there is room for them in memory. Their parts, and what fails, are left to
    /// the use.
    pub fn read_manifests_ahead(&self, series: &[SeriesId]) {
        if !self.is_near() {
            read_ahead(self, series);
        }
    }

    /// Shows the manifests of these series, the newest when they were listed, one at a time, and returns what is wrong
    /// with those that cannot be read.
    ///
    /// # Errors
    /// Errors of the repository as a whole, and whatever `visit` returns. If there are series and none can be read,
    /// the damage of the first: nothing can be done then.
    pub fn visit_manifests<E: From<StoreError>>(
        &self,
        series: impl IntoIterator<Item = SeriesId>,
        visit: impl FnMut(Manifest) -> Result<(), E>,
    ) -> Result<Vec<StoreError>, E> {
        self.visit_each(series, |series| self.manifest_listed(series), visit)
    }

    /// Shows the summaries of these manifests, as [`Repository::visit_manifests`] shows all of each. No part of a
    /// manifest is read, and damage of parts does not show.
    ///
    /// # Errors
    /// As [`Repository::visit_manifests`].
    pub fn visit_summaries<E: From<StoreError>>(
        &self,
        series: impl IntoIterator<Item = SeriesId>,
        visit: impl FnMut(SeriesSummary) -> Result<(), E>,
    ) -> Result<Vec<StoreError>, E> {
        self.visit_each(series, |series| self.summary_listed(series), visit)
    }

    fn visit_each<T, E: From<StoreError>>(
        &self,
        series: impl IntoIterator<Item = SeriesId>,
        read: impl Fn(SeriesId) -> Result<Option<T>, StoreError>,
        mut visit: impl FnMut(T) -> Result<(), E>,
    ) -> Result<Vec<StoreError>, E> {
        let (mut readable, mut unreadable) = (0u64, Vec::new());
        let series: Vec<SeriesId> = series.into_iter().collect();
        for batch in series.chunks(MANIFESTS_AT_ONCE) {
            self.read_manifests_ahead(batch);
            for series in batch {
                match read(*series) {
                    Ok(None) => {}
                    Ok(Some(found)) => {
                        readable += 1;
                        visit(found)?;
                    }
                    Err(error) if error.is_damage() => unreadable.push(error),
                    Err(error) => return Err(error.into()),
                }
            }
        }
        if unreadable.is_empty() || readable > 0 { Ok(unreadable) } else { Err(unreadable.swap_remove(0).into()) }
    }

    /// Returns the bytes of containers, and of parts of manifests with their copies, that are sealed under a master key
    /// before the newest one, as far as manifests can be read.
    ///
    /// # Errors
    /// Those of the storage.
    pub fn older_epoch_bytes(&self) -> Result<u64, StoreError> {
        let mut bytes = 0;
        for series in self.series()? {
            match self.manifest(series) {
                Ok(None) => {}
                Ok(Some(manifest)) => {
                    let older = manifest.containers.iter().filter(|record| record.epoch < self.keys.epoch());
                    bytes += older.map(|record| record.object_bytes).sum::<u64>();
                    bytes += older_parts_bytes(self, &manifest)?;
                }
                Err(error) if error.is_damage() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(bytes)
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

/// Writes a slot and its copy after opening what was made: a slot that does not open would be found out too late.
fn write_slot(
    storage: &dyn Storage,
    unlocked: &Unlocked,
    password: &[u8],
    label: &KeyLabel,
    cost: Argon2Cost,
) -> Result<Vec<u8>, StoreError> {
    let object = KeySlot::create(unlocked, password, cost, label)?;
    let is_same = |opened: &Unlocked| opened.master == unlocked.master && opened.repository == unlocked.repository;
    let opened = KeySlot::parse(unlocked.slot, &object)?.open(password)?;
    if !matches!(opened, Some(SlotSecret::Full(opened)) if is_same(&opened)) {
        return Err(StoreError::SelfCheck { what: ObjectName::Key(unlocked.slot).to_string() });
    }
    create_slot(storage, unlocked.slot, &object)?;
    Ok(object)
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

/// Makes a slot and its copy, as far as they are not there.
fn create_slot(storage: &dyn Storage, id: KeyId, object: &[u8]) -> Result<(), StoreError> {
    Original::Key(id).places().iter().try_for_each(|name| create_same(storage, name, object))
}

/// Deletes a slot, durably, and its copy.
fn delete_slot(storage: &dyn Storage, id: KeyId) -> Result<(), StoreError> {
    storage.delete(&Original::Key(id).name())?;
    storage.delete(&Original::Key(id).copy())?;
    Ok(storage.barrier()?)
}
