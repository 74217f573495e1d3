//! The plain header every object begins with: what it is, of which version, and what its key was derived with.
//!
//! ```text
//! magic 8 | version 2 | kind 1 | key mode 1 | salt 32 | key commitment 16 | checksum 4
//! ```

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use crate::error::StoreError;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The version of every object this program writes, and the newest it reads.
pub const FORMAT_VERSION: u16 = 1;
/// Bytes of the plain header every object begins with.
pub const HEADER_BYTES: usize = 64;
const MAGIC: [u8; 8] = *b"SILTSTNE";
/// The random bytes that make an object's key its own.
pub type Salt = [u8; 32];
/// Bytes that show that a key is the object's own.
pub(crate) type Commitment = [u8; 16];

/// The way an object's key is made.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[repr(u8)]
pub enum KeyMode {
    /// From a purpose key that holders of the master key derive, and a random salt.
    #[default]
    Derived = 0,
    /// From what a write-only client and the holders of the master key agree on; the salt is the client's ephemeral
    /// public key.
    Recipient = 1,
}

impl KeyMode {
    fn from_byte(byte: u8) -> Option<Self> {
        [Self::Derived, Self::Recipient].into_iter().find(|mode| *mode as u8 == byte)
    }
}

/// The kind of an object, as its header states it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ObjectKind {
    /// The repository's settings.
    Config = 1,
    /// A master key wrapped by a password.
    KeySlot = 2,
    /// A commit of a series.
    Manifest = 3,
    /// Chunks of files.
    DataContainer = 4,
    /// Chunks of catalogs.
    MetadataContainer = 5,
    /// Parity of a container.
    Parity = 6,
    /// A part of a manifest's lists.
    ManifestPart = 7,
    /// The keys of a write-only client wrapped by a password.
    WriteOnlySlot = 8,
    /// Chunks of a series that another one borrows.
    Loan = 9,
    /// The series that others may borrow of.
    Directory = 10,
}

impl ObjectKind {
    fn from_byte(byte: u8) -> Option<Self> {
        let kinds = [
            Self::Config,
            Self::KeySlot,
            Self::Manifest,
            Self::DataContainer,
            Self::MetadataContainer,
            Self::Parity,
            Self::ManifestPart,
            Self::WriteOnlySlot,
            Self::Loan,
            Self::Directory,
        ];
        kinds.into_iter().find(|kind| *kind as u8 == byte)
    }

    /// Tells whether objects of this kind are sealed in this mode: write-only clients seal containers and their parity.
    pub fn allows(self, mode: KeyMode) -> bool {
        mode == KeyMode::Derived || matches!(self, Self::DataContainer | Self::MetadataContainer | Self::Parity)
    }
}

/// The plain start of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObjectHeader {
    /// Kind of the object.
    pub kind: ObjectKind,
    /// The way its key is made.
    pub mode: KeyMode,
    /// Salt that its key was derived with.
    pub salt: Salt,
    pub(crate) commitment: Commitment,
}

impl ObjectHeader {
    /// The header's 64 bytes: magic 8, version 2, kind 1, key mode 1, salt 32, commitment 16, checksum 4.
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let fields = MAGIC
            .into_iter()
            .chain(FORMAT_VERSION.to_le_bytes())
            .chain([self.kind as u8, self.mode as u8])
            .chain(self.salt)
            .chain(self.commitment);
        bytes.iter_mut().zip(fields).for_each(|(to, from)| *to = from);
        let sum = checksum(bytes.split_last_chunk::<4>().map_or(&[], |(front, _)| front));
        if let Some(last) = bytes.last_chunk_mut() {
            *last = sum;
        }
        bytes
    }

    /// Reads the header at the start of an object.
    ///
    /// # Errors
    /// Damage, an unknown version, kind or key mode. Magic, version and checksum keep their places in all versions, so
    /// a flipped version is told from a newer one.
    pub fn parse(object: &dyn fmt::Display, bytes: &[u8]) -> Result<Self, StoreError> {
        let damaged = |reason: &str| StoreError::damaged(object, "header", reason);
        let header: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or_else(|| damaged("the object ends within it"))?;
        let mut rest = Fields(header);
        if rest.take::<8>() != Some(MAGIC) {
            return Err(damaged("it does not begin with Siltstone's magic"));
        }
        let (front, sum) = header.split_last_chunk::<4>().ok_or_else(|| damaged("too short"))?;
        if checksum(front) != *sum {
            return Err(damaged("its checksum does not match"));
        }
        let (version, kind_and_mode) = (rest.take().map(u16::from_le_bytes), rest.take::<2>());
        match version {
            Some(FORMAT_VERSION) => {}
            Some(found) if found > FORMAT_VERSION => {
                return Err(StoreError::UnknownVersion {
                    object: object.to_string(),
                    found,
                    supported: FORMAT_VERSION,
                });
            }
            _ => return Err(damaged("version 0 does not exist")),
        }
        let [kind, mode] = kind_and_mode.unwrap_or_default();
        let known = ObjectKind::from_byte(kind);
        let Some(mode) = KeyMode::from_byte(mode).filter(|mode| known.is_none_or(|kind| kind.allows(*mode))) else {
            let feature = format!("key mode {mode}");
            return Err(StoreError::UnknownFeature { object: object.to_string(), feature });
        };
        let kind = known.ok_or_else(|| damaged("no object is of its kind"))?;
        let (salt, commitment) = rest.take().zip(rest.take()).ok_or_else(|| damaged("too short"))?;
        Ok(Self { kind, mode, salt, commitment })
    }
}

/// Takes fixed-size fields off the front of bytes.
pub(crate) struct Fields<'b>(pub(crate) &'b [u8]);

impl Fields<'_> {
    /// The next `N` bytes; `None` once they do not suffice.
    pub(crate) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    /// Returns the fields that remain after `bytes` more; none if there are not so many.
    pub(crate) fn skip(self, bytes: usize) -> Self {
        Self(self.0.get(bytes..).unwrap_or_default())
    }

    /// The next eight bytes as a little-endian number.
    pub(crate) fn take_u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    /// The next four bytes as a little-endian number.
    pub(crate) fn take_u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }
}

/// The first four bytes of BLAKE3: against accidents only, never against an attacker.
pub(crate) fn checksum(bytes: &[u8]) -> [u8; 4] {
    let mut reader = blake3::Hasher::new().update(bytes).finalize_xof();
    let mut sum = [0; 4];
    reader.fill(&mut sum);
    sum
}
