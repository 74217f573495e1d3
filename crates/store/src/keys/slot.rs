//! A key slot: made, read, opened with a secret.

use super::cost::Argon2Cost;
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
use crate::storage::ObjectName;
use crate::write_only::{KEY_BYTES_MAX, WriteOnlyKey};
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize as _, Zeroizing};

/// Bytes of the plain cost box: memory, passes, lanes (4 each), salt 16, checksum 4.
pub(super) const COST_BYTES: usize = 32;
const SECRET_PLAIN_BYTES: usize = MasterKey::BYTES + 16;
const SECRET_BYTES: usize = SECRET_PLAIN_BYTES + TAG_BYTES;
/// Bytes of the length before the secret of a write-only client's slot.
const SECRET_LENGTH_BYTES: usize = 4;

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
pub(super) enum Secret<'p> {
    Password(&'p [u8]),
    KeyFile(KeyFile),
}

impl<'p> Secret<'p> {
    pub(super) fn parse(given: &'p [u8]) -> Result<Self, StoreError> {
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

    /// Opens the slot with this secret, unless it demands more than so much memory affords.
    pub(super) fn open_within(&self, secret: &Secret<'_>, memory_bytes: u64) -> Result<Option<SlotSecret>, StoreError> {
        if let (Secret::Password(_), Some(cost)) = (secret, self.front.cost) {
            cost.afford(&self.name, memory_bytes)?;
        }
        self.open_with(secret)
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
pub(super) fn cost_box(cost: Option<Argon2Cost>, salt: &[u8; 16]) -> [u8; COST_BYTES] {
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
