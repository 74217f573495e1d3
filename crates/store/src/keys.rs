//! Key slots: the master key wrapped by a password, once per password. Any slot opens the repository; changing a
//! password touches its slot and nothing else.
//!
//! ```text
//! header | Argon2id cost and salt, plain, with checksum | sealed {master key, repository id} | sealed label
//! ```
//! The wrapping key is Argon2id of the password, with the cost written in the slot, so that costs can grow with
//! machines. A slot without a cost is opened by the line of a [`KeyFile`], which nobody can guess. A wrong password
//! shows in the header's key commitment before anything is decrypted. The label (who made the slot, when, where) is
//! sealed under the metadata key: listing slots needs an open repository, and a stranger learns nothing from them. With
//! it is sealed a hash of all that comes before, so that a check finds damage of a slot whose password it does not
//! know.
//!
//! The slot of a write-only client is an object of another kind in the same place. It wraps a [`WriteOnlyKey`] in place
//! of the master key, of a length that stands before it.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use crate::encoding;
use crate::error::StoreError;
use crate::header::{Fields, checksum};
use crate::ids::{KeyId, RepositoryId, Time};
use crate::key_file::KeyFile;
use crate::sealed::{
    HEADER_BYTES, KeyMode, ObjectHeader, ObjectKey, ObjectKind, PieceNumber, Salt, TAG_BYTES, append_padded,
    open_padded,
};
use crate::secrets::{MasterKey, PurposeKey, RepositoryKeys, random_bytes};
use crate::series::LeaseTerms;
use crate::storage::{Listing, ObjectMeta, ObjectName, Original, Storage};
use crate::write_only::{KEY_BYTES_MAX, WriteOnlyKey};
use rayon::iter::{IntoParallelIterator as _, ParallelExtend as _, ParallelIterator as _};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, Instant};
use zeroize::{Zeroize as _, Zeroizing};

/// The most slots that a password is tried on: each try costs what its slot demands.
const TRIES_MAX: usize = 20;
/// The most passes over the whole of the memory allowed that a slot may demand: 8 GiB hashed for 512 MiB, a few
/// seconds.
const FULL_PASSES_MAX: u64 = 16;
/// The least memory that calibration chooses, in KiB: OWASP's recommendation of 2023, 19 MiB, in powers of two.
const CALIBRATED_MEMORY_KIB_MIN: u32 = 32 << 10;

/// Bytes of the plain cost box: memory, passes, lanes (4 each), salt 16, checksum 4.
const COST_BYTES: usize = 32;
const SECRET_PLAIN_BYTES: usize = MasterKey::BYTES + 16;
const SECRET_BYTES: usize = SECRET_PLAIN_BYTES + TAG_BYTES;
/// Bytes of the length before the secret of a write-only client's slot.
const SECRET_LENGTH_BYTES: usize = 4;

/// The cost of guessing a password: the parameters of Argon2id (RFC 9106).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Argon2Cost {
    /// Memory in KiB.
    pub memory_kib: u32,
    /// Passes over that memory.
    pub passes: u32,
    /// Lanes, which run on as many threads as there are cores.
    pub lanes: u32,
}

impl Argon2Cost {
    /// The cost for new slots: RFC 9106's second recommendation, 64 MiB, 3 passes and 4 lanes; about 0.15 s of
    /// processor time.
    pub const DEFAULT: Self = Self { memory_kib: 64 << 10, passes: 3, lanes: 4 };
    /// The cost for tests only: no protection at all.
    pub const TEST: Self = Self { memory_kib: 8, passes: 1, lanes: 1 };
    /// The most accepted from a slot: a planted slot must not be able to eat the machine.
    pub const MAX: Self = Self { memory_kib: 4 << 20, passes: 64, lanes: 64 };

    /// Checks the cost against [`Argon2Cost::MAX`] and against what Argon2 itself demands.
    ///
    /// # Errors
    /// [`StoreError::Limit`] or [`StoreError::Damaged`], naming the object.
    pub fn validate(self, object: &impl fmt::Display) -> Result<(), StoreError> {
        let limits = [
            ("the password hash's memory in KiB", self.memory_kib, Self::MAX.memory_kib),
            ("the password hash's passes", self.passes, Self::MAX.passes),
            ("the password hash's lanes", self.lanes, Self::MAX.lanes),
        ];
        for (what, found, limit) in limits {
            if found > limit {
                return Err(StoreError::limit(object, what, found.into(), limit.into()));
            }
        }
        let sound = self.lanes >= 1 && self.passes >= 1 && self.memory_kib >= self.lanes.saturating_mul(8);
        if sound { Ok(()) } else { Err(StoreError::damaged(object, "cost", "Argon2 does not accept it")) }
    }

    /// Refuses a cost that takes more memory than this, or more time than sixteen passes over all of it.
    ///
    /// # Errors
    /// [`StoreError::KeyCost`], naming the object.
    pub fn afford(self, object: &impl fmt::Display, memory_bytes: u64) -> Result<(), StoreError> {
        let needed = u64::from(self.memory_kib) << 10;
        let hashed = needed.saturating_mul(self.passes.into());
        if needed <= memory_bytes && hashed <= memory_bytes.saturating_mul(FULL_PASSES_MAX) {
            return Ok(());
        }
        Err(StoreError::KeyCost {
            object: object.to_string(),
            demand: self.to_string(),
            needed_mib: needed.max(hashed.div_ceil(FULL_PASSES_MAX)).div_ceil(1 << 20),
            allowed_mib: memory_bytes >> 20,
        })
    }

    /// The cost closest to this one that takes about `target` to pay: more or fewer passes, and where a single pass
    /// takes longer, half the memory, and half of that, but not less than 32 MiB. `measure` pays a cost and says how
    /// long it took.
    pub fn calibrated(
        self,
        target: Duration,
        mut measure: impl FnMut(Self) -> Result<Duration, StoreError>,
    ) -> Result<Self, StoreError> {
        let mut cost = Self { passes: 1, ..self };
        loop {
            let once = measure(cost)?.max(Duration::from_micros(1));
            if once > target && cost.memory_kib / 2 >= CALIBRATED_MEMORY_KIB_MIN {
                cost.memory_kib /= 2;
                continue;
            }
            let passes = u32::try_from(target.as_micros() / once.as_micros()).unwrap_or(u32::MAX);
            return Ok(Self { passes: passes.clamp(1, Self::MAX.passes), ..cost });
        }
    }

    /// Pays the cost once, for a password that is none.
    pub fn pay(self) -> Result<(), StoreError> {
        self.hash(b"", &[0; 16]).map(drop)
    }

    fn hash(self, password: &[u8], salt: &[u8; 16]) -> Result<PurposeKey, StoreError> {
        let machine =
            |error: argon2::Error| StoreError::Machine { operation: "hashing the password", reason: error.to_string() };
        let parameters = argon2::Params::new(self.memory_kib, self.passes, self.lanes, Some(32)).map_err(machine)?;
        let block_count = parameters.block_count();
        let argon2 = argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, parameters);
        let mut key = Zeroizing::new([0; 32]);
        let hash = || {
            // The system clears each page when it is first written, which takes a third of all the time: the threads
            // share that too.
            let mut blocks = Vec::new();
            blocks.try_reserve_exact(block_count).map_err(|_| argon2::Error::OutOfMemory)?;
            blocks.par_extend((0..block_count).into_par_iter().map(|_| argon2::Block::default()));
            argon2.hash_password_into_with_memory(password, salt, key.as_mut_slice(), blocks)
        };
        let began = Instant::now();
        in_threads(self.lanes, hash).map_err(machine)?;
        let (Self { memory_kib, passes, lanes }, milliseconds) = (self, began.elapsed().as_secs_f64() * 1e3);
        tracing::debug!(memory_kib, passes, lanes, milliseconds = milliseconds.round(), "hashed a password");
        Ok(PurposeKey::from_bytes(key))
    }
}

/// Runs what rayon spreads over threads: one for each lane, at most one for each core. Where the system gives none, the
/// calling thread does it alone; rayon's own pool would panic there.
fn in_threads<T: Send>(lanes: u32, work: impl FnOnce() -> T + Send) -> T {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = usize::try_from(lanes).map_or(cores, |lanes| lanes.min(cores));
    match rayon::ThreadPoolBuilder::new().num_threads(threads).build() {
        Ok(pool) => pool.install(work),
        Err(_) => {
            // It makes this thread a pool of one, which it stays; so a second time it is one already, and this fails.
            let _alone = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
            work()
        }
    }
}

impl fmt::Display for Argon2Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = match self.memory_kib {
            kib if kib.is_multiple_of(1024) => format!("{} MiB", kib >> 10),
            kib => format!("{kib} KiB"),
        };
        write!(f, "{memory} x {}, {} lanes", self.passes, self.lanes)
    }
}

/// Options for opening a repository.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OpenOptions {
    /// Memory to stay below, in bytes. It bounds what trying a password may cost, and a quarter of it what a manifest
    /// may take.
    pub memory_bytes: u64,
    /// Ids of the slots to try first, or beginnings of ids, in this order.
    pub key_hints: Vec<String>,
    /// Terms on which leases are held and watched.
    pub lease_terms: LeaseTerms,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { memory_bytes: 512 << 20, key_hints: Vec::new(), lease_terms: LeaseTerms::default() }
    }
}

impl OpenOptions {
    /// Returns these options with this much memory, bytes.
    #[must_use]
    pub fn with_memory(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// Returns these options with these slots to try first.
    #[must_use]
    pub fn with_key_hints(mut self, hints: Vec<String>) -> Self {
        self.key_hints = hints;
        self
    }

    /// Returns these options with leases held and watched on these terms.
    #[must_use]
    pub fn with_lease_terms(mut self, terms: LeaseTerms) -> Self {
        self.lease_terms = terms;
        self
    }

    /// The order in which slots are tried.
    fn order(&self, slots: &BTreeSet<KeyId>) -> Vec<KeyId> {
        let rank = |id: &KeyId| {
            let text = id.to_string();
            self.key_hints.iter().position(|hint| text.starts_with(hint.as_str())).unwrap_or(usize::MAX)
        };
        let mut order: Vec<KeyId> = slots.iter().copied().collect();
        order.sort_by_key(rank);
        order
    }
}

/// The label of a slot: by whom it was made, when and where.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeyLabel {
    /// Time at which the slot was made.
    pub created: Time,
    /// Name of the host.
    pub host: String,
    /// Name of the user.
    pub user: String,
}

/// A label with the BLAKE3 of the bytes before it.
#[derive(Serialize, Deserialize)]
struct SealedLabel {
    label: KeyLabel,
    front: [u8; 32],
}

/// An opened slot: the keys it gives to whoever knows its password.
#[derive(Clone, Debug)]
pub struct Unlocked {
    /// The slot that opened.
    pub slot: KeyId,
    /// The master key.
    pub master: MasterKey,
    /// The repository it is of.
    pub repository: RepositoryId,
}

impl Unlocked {
    /// The keys of its own master key: enough to open the record, which knows the older ones.
    pub fn keys(&self) -> RepositoryKeys {
        self.all_keys(&[])
    }

    /// The keys to work with, given the master keys before this one.
    pub fn all_keys(&self, older: &[MasterKey]) -> RepositoryKeys {
        RepositoryKeys::derive_all(older, &self.master, self.repository)
    }
}

/// The secret that a slot gives to whoever knows its password.
#[derive(Clone, Debug)]
pub enum SlotSecret {
    /// The master key.
    Full(Unlocked),
    /// The keys of a write-only client.
    WriteOnly(Box<WriteOnlyKey>),
}

/// A slot that opened, and what was made of its keys.
#[derive(Debug)]
pub enum Opened<T> {
    /// One with the master key, and what was accepted of it.
    Full(Unlocked, T),
    /// That of a write-only client.
    WriteOnly(KeyId, Box<WriteOnlyKey>),
}

impl<T> Opened<T> {
    /// Returns the id of the slot.
    pub fn slot(&self) -> KeyId {
        match self {
            Self::Full(unlocked, _) => unlocked.slot,
            Self::WriteOnly(slot, _) => *slot,
        }
    }
}

/// A key slot as read, its plain parts checked.
#[derive(Debug)]
pub struct KeySlot {
    name: ObjectName,
    id: KeyId,
    header: ObjectHeader,
    front: Front,
    secret: Zeroizing<Vec<u8>>,
    label: Vec<u8>,
    /// BLAKE3 of the bytes before the label.
    hash: [u8; 32],
}

/// The plain bytes between header and secret, which are authenticated with the secret.
#[derive(Clone, Debug)]
struct Front {
    /// `None` in a slot that a key file opens.
    cost: Option<Argon2Cost>,
    salt: [u8; 16],
    bytes: Vec<u8>,
}

/// Secret that opens a slot: a password, or the bits of a key file.
enum Secret<'p> {
    Password(&'p [u8]),
    KeyFile(KeyFile),
}

impl<'p> Secret<'p> {
    fn parse(given: &'p [u8]) -> Result<Self, StoreError> {
        Ok(KeyFile::parse(given)?.map_or(Self::Password(given), Self::KeyFile))
    }

    /// The purpose key that a slot's secret is wrapped with; `None` if the slot is for the other kind of secret, which
    /// costs nothing to find out.
    fn wrapping(&self, front: &Front) -> Result<Option<PurposeKey>, StoreError> {
        match (self, front.cost) {
            (Self::Password(password), Some(cost)) => cost.hash(password, &front.salt).map(Some),
            (Self::KeyFile(key), None) => Ok(Some(key.wrapping(&front.salt))),
            (Self::Password(_), None) | (Self::KeyFile(_), Some(_)) => Ok(None),
        }
    }

    /// The cost of a new slot for it, where one for a password is to have this.
    fn cost(&self, of_password: Argon2Cost) -> Option<Argon2Cost> {
        match self {
            Self::Password(_) => Some(of_password),
            Self::KeyFile(_) => None,
        }
    }
}

impl Front {
    fn new(cost: Option<Argon2Cost>, kind: ObjectKind, secret_bytes: usize) -> Result<Self, StoreError> {
        let salt = random_bytes()?;
        let mut bytes = cost_box(cost, &salt).to_vec();
        if kind == ObjectKind::WriteOnlySlot {
            let secret_bytes = u32::try_from(secret_bytes + TAG_BYTES).unwrap_or(u32::MAX);
            bytes.extend_from_slice(&secret_bytes.to_le_bytes());
        }
        Ok(Self { cost, salt, bytes })
    }
}

impl KeySlot {
    /// The bytes of a new slot; the password is taken as it is, byte by byte. In its place may stand the line of a
    /// [`KeyFile`]: then the slot has no cost.
    ///
    /// # Errors
    /// [`StoreError::KeyFile`] for a damaged line; a cost that Argon2 does not accept.
    pub fn create(
        unlocked: &Unlocked,
        password: &[u8],
        cost: Argon2Cost,
        label: &KeyLabel,
    ) -> Result<Vec<u8>, StoreError> {
        let plain = Zeroizing::new([unlocked.master.bytes().as_slice(), &unlocked.repository.0].concat());
        let secret = (ObjectKind::KeySlot, plain.as_slice());
        Self::wrap(unlocked.slot, secret, password, cost, (label, &unlocked.keys()))
    }

    /// The bytes of a new slot of a write-only client. `keys` are those of the newest master key: they seal the label.
    ///
    /// # Errors
    /// [`StoreError::Limit`] if the series' name is too long.
    pub fn create_write_only(
        id: KeyId,
        key: &WriteOnlyKey,
        password: &[u8],
        cost: Argon2Cost,
        (label, keys): (&KeyLabel, &RepositoryKeys),
    ) -> Result<Vec<u8>, StoreError> {
        Self::wrap(id, (ObjectKind::WriteOnlySlot, &key.encode()?), password, cost, (label, keys))
    }

    fn wrap(
        id: KeyId,
        (kind, plain): (ObjectKind, &[u8]),
        password: &[u8],
        cost: Argon2Cost,
        (label, keys): (&KeyLabel, &RepositoryKeys),
    ) -> Result<Vec<u8>, StoreError> {
        let name = ObjectName::Key(id);
        cost.validate(&name)?;
        let secret = Secret::parse(password)?;
        let front = Front::new(secret.cost(cost), kind, plain.len())?;
        let salt: Salt = random_bytes()?;
        let wrapping = wrapping_key((name, kind), &secret, salt, &front)?;
        let wrapping = wrapping.ok_or_else(|| StoreError::SelfCheck { what: name.to_string() })?;

        let mut object = [wrapping.header().to_bytes().as_slice(), &front.bytes].concat();
        let start = object.len();
        object.reserve_exact(plain.len() + TAG_BYTES);
        object.extend_from_slice(plain);
        wrapping.seal_piece(PieceNumber::CONTENT, &mut object, start)?;

        let label = encoding::encode(&SealedLabel { label: label.clone(), front: *blake3::hash(&object).as_bytes() })?;
        append_padded(&label_key(keys, name, kind, salt)?, PieceNumber::LABEL, &label, &mut object)?;
        Ok(object)
    }

    /// Reads a slot's plain parts.
    ///
    /// # Errors
    /// Damage, a cost beyond [`Argon2Cost::MAX`], an unknown version.
    pub fn parse(id: KeyId, object: &[u8]) -> Result<Self, StoreError> {
        let name = ObjectName::Key(id);
        let header = ObjectHeader::parse(&name, object)?;
        if !matches!(header.kind, ObjectKind::KeySlot | ObjectKind::WriteOnlySlot) {
            return Err(StoreError::Misplaced { object: name.to_string() });
        }
        let mut fields = Fields(object);
        let cut = |part: &str| StoreError::damaged(&name, part, "the object ends within it");
        fields.take::<HEADER_BYTES>().ok_or_else(|| cut("header"))?;
        let cost_box: [u8; COST_BYTES] = fields.take().ok_or_else(|| cut("cost"))?;
        let cost = parse_cost(&name, &cost_box)?;
        let salt = Fields(&cost_box).skip(12).take().unwrap_or_default();
        let mut front = Front { cost, salt, bytes: cost_box.to_vec() };
        let mut secret_bytes = SECRET_BYTES;
        if header.kind == ObjectKind::WriteOnlySlot {
            let length: [u8; SECRET_LENGTH_BYTES] = fields.take().ok_or_else(|| cut("length of the secret"))?;
            secret_bytes = secret_length(&name, length)?;
            front.bytes.extend_from_slice(&length);
        }
        let (secret, label) = fields.0.split_at_checked(secret_bytes).ok_or_else(|| cut("secret"))?;
        let hashed = object.get(..object.len().saturating_sub(label.len())).unwrap_or_default();
        let hash = *blake3::hash(hashed).as_bytes();
        let (secret, label) = (Zeroizing::new(secret.to_vec()), label.to_vec());
        Ok(Self { name, id, header, front, secret, label, hash })
    }

    /// The slot's identity.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Returns the cost of guessing its password; `None` if a key file opens it.
    pub fn cost(&self) -> Option<Argon2Cost> {
        self.front.cost
    }

    /// Tries a password, or the line of a key file; `None` if it is not this slot's. Takes as long as the slot's cost
    /// says.
    ///
    /// # Errors
    /// Damage of the secret; [`StoreError::KeyFile`] for a damaged line.
    pub fn open(&self, password: &[u8]) -> Result<Option<SlotSecret>, StoreError> {
        self.open_with(&Secret::parse(password)?)
    }

    fn open_with(&self, secret: &Secret<'_>) -> Result<Option<SlotSecret>, StoreError> {
        let named = (self.name, self.header.kind);
        let wrapping = wrapping_key(named, secret, self.header.salt, &self.front)?;
        let Some(wrapping) = wrapping.filter(|wrapping| *wrapping.header() == self.header) else { return Ok(None) };
        let mut secret = self.secret.clone();
        let plain = wrapping.open_piece(PieceNumber::CONTENT, "secret", secret.as_mut_slice())?;
        if self.header.kind == ObjectKind::WriteOnlySlot {
            return Ok(Some(SlotSecret::WriteOnly(Box::new(WriteOnlyKey::decode(&self.name, plain)?))));
        }
        let mut fields = Fields(plain);
        let parts = fields.take().zip(fields.take());
        let (mut master, repository) = parts.ok_or_else(|| StoreError::damaged(&self.name, "secret", "too short"))?;
        let unlocked =
            Unlocked { slot: self.id, master: MasterKey::from_bytes(master), repository: RepositoryId(repository) };
        master.zeroize();
        Ok(Some(SlotSecret::Full(unlocked)))
    }

    /// The slot's label, after a look at the slot as a whole.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] of any part, also for a slot of another repository.
    pub fn label(&self, keys: &RepositoryKeys) -> Result<KeyLabel, StoreError> {
        let key = label_key(keys, self.name, self.header.kind, self.header.salt)?;
        let plain = open_padded(&key, PieceNumber::LABEL, "label", self.label.clone())?;
        let SealedLabel { label, front } = encoding::decode(&self.name, "label", &plain)?;
        if front != self.hash {
            return Err(StoreError::damaged(&self.name, "secret", "it is not what was sealed with the label"));
        }
        Ok(label)
    }
}

/// Tries the password on the slots of the repository, hinted ones first and `TRIES_MAX` at most, until one opens that
/// `accept` returns something for, or one of a write-only client.
///
/// # Errors
/// [`StoreError::NoKeySlots`]; [`StoreError::KeyInvalid`] if the password's slot was not accepted;
/// [`StoreError::WrongPassword`] if it opens none; if a slot was damaged in both copies or demands too much and no
/// other opened, that, for it may have been the right one.
pub fn unlock<T>(
    storage: &dyn Storage,
    password: &[u8],
    options: &OpenOptions,
    mut accept: impl FnMut(&Unlocked) -> Result<Option<T>, StoreError>,
) -> Result<Opened<T>, StoreError> {
    let secret = Secret::parse(password)?;
    let mut slots = BTreeSet::new();
    let (mut damage, mut refused, mut tries) = (None, None, TRIES_MAX);
    // What is named in full needs no listing; and copies are looked for only if no original opens.
    for look in [Look::Hints, Look::Originals, Look::Copies] {
        let found: BTreeSet<KeyId> = look.find(storage, options)?.difference(&slots).copied().collect();
        for id in options.order(&found).iter().take(tries) {
            match open_slot(storage, *id, &secret, options.memory_bytes) {
                Ok(Some(SlotSecret::WriteOnly(key))) => return Ok(Opened::WriteOnly(*id, key)),
                Ok(Some(SlotSecret::Full(unlocked))) => match accept(&unlocked)? {
                    Some(accepted) => return Ok(Opened::Full(unlocked, accepted)),
                    None => refused = Some(*id),
                },
                Ok(None) => {}
                // Removed since it was listed, or named in vain.
                Err(error) if error.is_not_found() => continue,
                Err(error) if error.is_damage() || matches!(error, StoreError::KeyCost { .. }) => {
                    damage = damage.or(Some(error));
                }
                Err(error) => return Err(error),
            }
            tries -= 1;
            slots.insert(*id);
        }
        if look != Look::Hints {
            slots.extend(found);
        }
    }
    let location = storage.location();
    Err(match (damage, refused) {
        (_, Some(id)) => StoreError::KeyInvalid {
            object: ObjectName::Key(id).to_string(),
            reason: "it was removed, or the master key was changed since it was made",
        },
        (Some(error), None) => error,
        (None, None) if slots.is_empty() => StoreError::NoKeySlots { location },
        (None, None) => {
            let tried = slots.len().min(TRIES_MAX);
            StoreError::WrongPassword { location, slots: tried, untried: slots.len() - tried }
        }
    })
}

/// A way to find key slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Look {
    Hints,
    Originals,
    Copies,
}

impl Look {
    fn find(self, storage: &dyn Storage, options: &OpenOptions) -> Result<BTreeSet<KeyId>, StoreError> {
        let listing = match self {
            Self::Hints => return Ok(options.key_hints.iter().filter_map(|hint| KeyId::from_hex(hint)).collect()),
            Self::Originals => Listing::Keys,
            Self::Copies => Listing::KeyCopies,
        };
        Ok(slots_in(&storage.list(listing)?))
    }
}

/// The slots that lie there, by original or copy, whether or not they count.
pub fn slot_ids(storage: &dyn Storage) -> Result<BTreeSet<KeyId>, StoreError> {
    Ok(slots_in(&storage.list_both([Listing::Keys, Listing::KeyCopies])?.concat()))
}

fn slots_in(listed: &[ObjectMeta]) -> BTreeSet<KeyId> {
    let id = |meta: &ObjectMeta| match meta.name {
        ObjectName::Key(id) | ObjectName::Copy(Original::Key(id)) => Some(id),
        _ => None,
    };
    listed.iter().filter_map(id).collect()
}

/// Reads a slot, or the copy of one, as the slot it is of.
pub(crate) fn read_slot(storage: &dyn Storage, id: KeyId, name: &ObjectName) -> Result<KeySlot, StoreError> {
    KeySlot::parse(id, &storage.read(name, name.bytes_max())?)
}

/// Tries a secret on a slot; on its copy if the slot is missing or damaged.
fn open_slot(
    storage: &dyn Storage,
    id: KeyId,
    secret: &Secret<'_>,
    memory_bytes: u64,
) -> Result<Option<SlotSecret>, StoreError> {
    let original = Original::Key(id);
    let open = |name| {
        let slot = read_slot(storage, id, &name)?;
        if let (Secret::Password(_), Some(cost)) = (secret, slot.front.cost) {
            cost.afford(&slot.name, memory_bytes)?;
        }
        slot.open_with(secret)
    };
    let first = match open(original.name()) {
        Err(error) if error.is_damage() => error,
        result => return result,
    };
    open(original.copy()).map_err(|error| if error.is_not_found() { first } else { error })
}

/// The key of a slot's secret; `None` if the slot is not for this kind of secret. No repository identity is known
/// before a slot is open: the wrapping key is bound to zeros in its place.
fn wrapping_key(
    (name, kind): (ObjectName, ObjectKind),
    secret: &Secret<'_>,
    salt: Salt,
    front: &Front,
) -> Result<Option<ObjectKey>, StoreError> {
    let Some(purpose) = secret.wrapping(front)? else { return Ok(None) };
    let nobody = RepositoryId([0; 16]);
    ObjectKey::derive(&purpose, nobody, name, (kind, KeyMode::Derived), salt, &front.bytes).map(Some)
}

fn label_key(keys: &RepositoryKeys, name: ObjectName, kind: ObjectKind, salt: Salt) -> Result<ObjectKey, StoreError> {
    ObjectKey::with_salt(keys, name, kind, salt, keys.epoch())
}

fn secret_length(name: &ObjectName, bytes: [u8; SECRET_LENGTH_BYTES]) -> Result<usize, StoreError> {
    let limit = KEY_BYTES_MAX + TAG_BYTES;
    match usize::try_from(u32::from_le_bytes(bytes)) {
        Ok(length) if length <= limit => Ok(length),
        _ => Err(StoreError::damaged(name, "length of the secret", "it is more than a secret can have")),
    }
}

/// No cost, that of a slot which a key file opens, is all zeros.
fn cost_box(cost: Option<Argon2Cost>, salt: &[u8; 16]) -> [u8; COST_BYTES] {
    let mut bytes = [0; COST_BYTES];
    let numbers = cost.map_or([0; 3], |cost| [cost.memory_kib, cost.passes, cost.lanes]);
    bytes.iter_mut().zip(numbers.into_iter().flat_map(u32::to_le_bytes).chain(*salt)).for_each(|(to, from)| *to = from);
    let sum = checksum(bytes.split_last_chunk::<4>().map_or(&[], |(front, _)| front));
    if let Some(last) = bytes.last_chunk_mut() {
        *last = sum;
    }
    bytes
}

fn parse_cost(name: &ObjectName, cost_box: &[u8; COST_BYTES]) -> Result<Option<Argon2Cost>, StoreError> {
    let damaged = || StoreError::damaged(name, "cost", "its checksum does not match");
    let (front, sum) = cost_box.split_last_chunk::<4>().ok_or_else(damaged)?;
    if checksum(front) != *sum {
        return Err(damaged());
    }
    let mut fields = Fields(front);
    let [memory_kib, passes, lanes] = [(); 3].map(|()| fields.take_u32()).map(Option::unwrap_or_default);
    if [memory_kib, passes, lanes] == [0; 3] {
        return Ok(None);
    }
    let cost = Argon2Cost { memory_kib, passes, lanes };
    cost.validate(name)?;
    Ok(Some(cost))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use crate::config::{ChunkerSettings, Config};

    fn unlocked() -> Unlocked {
        Unlocked { slot: KeyId([9; 16]), master: MasterKey::from_bytes([3; 32]), repository: RepositoryId([4; 16]) }
    }

    fn label() -> KeyLabel {
        KeyLabel {
            created: Time { seconds: 1_700_000_000, nanoseconds: 5 },
            host: "granite".into(),
            user: "ada".into(),
        }
    }

    fn full(slot: &KeySlot, password: &[u8]) -> Option<Unlocked> {
        match slot.open(password).unwrap()? {
            SlotSecret::Full(unlocked) => Some(unlocked),
            SlotSecret::WriteOnly(_) => None,
        }
    }

    fn write_only_key() -> WriteOnlyKey {
        let chunker = ChunkerSettings { name: "lagged".into(), min_bytes: 64, average_bytes: 128, max_bytes: 256 };
        let config = Config::new(unlocked().repository, chunker, Time::default(), unlocked().slot);
        unlocked().keys().write_only("home", &config).unwrap()
    }

    fn write_only_slot() -> Vec<u8> {
        let sealed = (&label(), &unlocked().keys());
        KeySlot::create_write_only(KeyId([9; 16]), &write_only_key(), b"pw", Argon2Cost::TEST, sealed).unwrap()
    }

    fn slot(password: &[u8]) -> Vec<u8> {
        KeySlot::create(&unlocked(), password, Argon2Cost::TEST, &label()).unwrap()
    }

    #[test]
    fn a_slot_opens_with_its_password_only() {
        let slot = KeySlot::parse(KeyId([9; 16]), &slot(b"correct horse\n")).unwrap();
        let opened = full(&slot, b"correct horse\n").unwrap();
        assert_eq!(opened.master.bytes(), unlocked().master.bytes());
        assert_eq!(opened.repository, unlocked().repository);
        assert_eq!(slot.label(&opened.keys()).unwrap(), label());
        assert_eq!(slot.cost(), Some(Argon2Cost::TEST));
        for wrong in [&b"correct horse"[..], b"", b"Correct horse\n", b"correct horse\n\0"] {
            assert!(slot.open(wrong).unwrap().is_none());
        }
    }

    #[test]
    fn an_empty_password_works() {
        let slot = KeySlot::parse(KeyId([9; 16]), &slot(b"")).unwrap();
        assert!(slot.open(b"").unwrap().is_some() && slot.open(b" ").unwrap().is_none());
    }

    #[test]
    fn a_slot_of_a_key_file_has_no_cost_and_opens_with_its_line_only() {
        let (line, other) = (KeyFile::random().unwrap().line(), KeyFile::random().unwrap().line());
        let object = slot(line.as_bytes());
        let parsed = KeySlot::parse(KeyId([9; 16]), &object).unwrap();
        assert_eq!(parsed.cost(), None);
        let opened = full(&parsed, line.as_bytes()).unwrap();
        assert_eq!(opened.master.bytes(), unlocked().master.bytes());
        assert_eq!(parsed.label(&opened.keys()).unwrap(), label());
        for wrong in [other.as_bytes(), b"pw", b""] {
            assert!(parsed.open(wrong).unwrap().is_none());
        }
        assert!(matches!(parsed.open(&line.as_bytes()[..40]), Err(StoreError::KeyFile)));
        let of_password = KeySlot::parse(KeyId([9; 16]), &slot(b"pw")).unwrap();
        assert!(of_password.open(line.as_bytes()).unwrap().is_none());
    }

    #[test]
    fn a_slot_whose_cost_was_taken_away_opens_with_nothing() {
        let mut object = slot(b"pw");
        object[HEADER_BYTES..HEADER_BYTES + COST_BYTES].copy_from_slice(&cost_box(None, &[0; 16]));
        let planted = KeySlot::parse(KeyId([9; 16]), &object).unwrap();
        assert!(planted.open(b"pw").unwrap().is_none());
        assert!(planted.open(KeyFile::random().unwrap().line().as_bytes()).unwrap().is_none());
    }

    #[test]
    fn a_slot_does_not_open_under_another_name() {
        let slot = KeySlot::parse(KeyId([8; 16]), &slot(b"pw")).unwrap();
        assert!(slot.open(b"pw").unwrap().is_none());
    }

    #[test]
    fn a_planted_cost_is_refused_before_it_is_paid() {
        let mut object = slot(b"pw");
        for (cost, word) in [
            (Argon2Cost { memory_kib: u32::MAX, ..Argon2Cost::TEST }, "memory"),
            (Argon2Cost { passes: 65, ..Argon2Cost::TEST }, "passes"),
            (Argon2Cost { lanes: 1 << 20, ..Argon2Cost::TEST }, "lanes"),
            (Argon2Cost { memory_kib: 7, ..Argon2Cost::TEST }, "Argon2"),
            (Argon2Cost { lanes: 0, ..Argon2Cost::TEST }, "Argon2"),
        ] {
            object[HEADER_BYTES..HEADER_BYTES + COST_BYTES].copy_from_slice(&cost_box(Some(cost), &[0; 16]));
            let error = KeySlot::parse(KeyId([9; 16]), &object).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("keys/"), "{error}");
        }
    }

    #[test]
    fn what_a_slot_may_cost_grows_with_the_memory_allowed() {
        let name = ObjectName::Key(KeyId([9; 16]));
        let cost = |memory_mib: u32, passes| Argon2Cost { memory_kib: memory_mib << 10, passes, lanes: 4 };
        let afford = |cost: Argon2Cost, mib: u64| cost.afford(&name, mib << 20);
        assert!(afford(Argon2Cost::DEFAULT, 64).is_ok() && afford(Argon2Cost::DEFAULT, 63).is_err());
        assert!(afford(cost(512, 16), 512).is_ok() && afford(cost(512, 17), 512).is_err());
        let error = afford(cost(4096, 64), 512).unwrap_err().to_string();
        for part in ["keys/0909", "4096 MiB x 64", "512 MiB", "16384 MiB", "another key"] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn calibration_takes_more_passes_on_a_fast_machine_and_less_memory_on_a_slow_one() {
        let per_mib =
            |micros: u64| move |cost: Argon2Cost| Ok(Duration::from_micros(micros * u64::from(cost.memory_kib >> 10)));
        let (target, start) = (Duration::from_millis(500), Argon2Cost::DEFAULT);
        let calibrated = |micros| start.calibrated(target, per_mib(micros)).unwrap();
        assert_eq!(calibrated(1000), Argon2Cost { passes: 7, ..start });
        assert_eq!(calibrated(1), Argon2Cost { passes: 64, ..start });
        assert_eq!(calibrated(10_000), Argon2Cost { passes: 1, memory_kib: 32 << 10, ..start });
        assert_eq!(calibrated(1_000_000), Argon2Cost { passes: 1, memory_kib: 32 << 10, ..start });
    }

    #[test]
    fn every_flipped_byte_and_every_cut_is_an_error_naming_the_slot() {
        let try_all = |object: &[u8]| -> Result<KeyLabel, StoreError> {
            let slot = KeySlot::parse(KeyId([9; 16]), object)?;
            slot.open(b"pw")?.ok_or(StoreError::Misplaced { object: slot.name.to_string() })?;
            slot.label(&unlocked().keys())
        };
        for object in [slot(b"pw"), write_only_slot()] {
            every_flip_and_cut_fails(&object, try_all);
        }
    }

    fn every_flip_and_cut_fails(object: &[u8], try_all: impl Fn(&[u8]) -> Result<KeyLabel, StoreError>) {
        assert!(try_all(object).is_ok());
        for at in 0..object.len() {
            let mut flipped = object.to_vec();
            flipped[at] ^= 1 << (at % 8);
            let flip = try_all(&flipped).unwrap_err();
            let cut = try_all(&object[..at]).unwrap_err();
            for error in [flip, cut] {
                assert!(matches!(error, StoreError::Damaged { .. }), "byte {at}: {error:?}");
                assert!(error.to_string().contains("keys/09"), "{error}");
            }
        }
    }

    #[test]
    fn the_slot_of_a_write_only_client_gives_its_key_and_no_master_key() {
        let slot = KeySlot::parse(KeyId([9; 16]), &write_only_slot()).unwrap();
        let Some(SlotSecret::WriteOnly(key)) = slot.open(b"pw").unwrap() else { panic!("another secret") };
        assert_eq!(*key, write_only_key());
        assert!(slot.open(b"pW").unwrap().is_none());
        assert_eq!(slot.label(&unlocked().keys()).unwrap(), label());
        assert!(matches!(slot.label(&key.keys()), Err(StoreError::WriteOnly { .. })));
    }

    #[test]
    fn a_slot_does_not_tell_how_long_the_series_name_is() {
        let key = |name: &str| WriteOnlyKey { series_name: name.to_owned(), ..write_only_key() };
        let bytes = |name: &str| key(name).encode().unwrap().len();
        assert_eq!(bytes("a"), bytes("a name of forty letters or thereabouts, ok"));
        assert!(matches!(key(&"x".repeat(40_000)).encode(), Err(StoreError::Limit { .. })));
    }

    #[test]
    fn slots_are_padded_and_never_alike() {
        let (one, two) = (slot(b"pw"), slot(b"pw"));
        assert_ne!(one[HEADER_BYTES..], two[HEADER_BYTES..]);
        assert_eq!(one.len() as u64, crate::pad::padded(one.len() as u64));
    }
}
