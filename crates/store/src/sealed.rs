//! Objects that only the key holder can read, and that say so when a bit of them changed.
//!
//! Every object begins with a plain header: magic, version, kind, a salt. Salt, object name and repository give
//! the object its own AES-256-GCM key, so nonces are plain piece numbers and can never repeat under a key. The same
//! derivation yields a *key commitment* kept in the header: AES-GCM alone commits to no key, and with it a wrong key is
//! told from damage before anything is decrypted. A plain checksum tells a damaged header from a foreign one. Version,
//! kind, repository, name and piece number are authenticated with every piece, so nothing sealed can stand in for
//! anything else.
//!
//! Cost: one BLAKE3 of ~200 bytes and one AES key schedule per object, 16 bytes per piece.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use crate::error::StoreError;
use crate::header::{Commitment, Fields};
pub use crate::header::{FORMAT_VERSION, HEADER_BYTES, KeyMode, ObjectHeader, ObjectKind, Salt};
use crate::ids::{RepositoryId, SeriesId};
use crate::pad::padded;
use crate::secrets::{Derivation, Epoch, NewKey, PurposeKey, RepositoryKeys};
use crate::storage::ObjectName;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use std::fmt;
use zeroize::Zeroizing;

/// Bytes that sealing adds to a piece.
pub const TAG_BYTES: usize = 16;
/// Bytes of the length in front of padded content.
const LENGTH_BYTES: usize = 8;
const KEY_CONTEXT: &[u8] = b"siltstone v1 object key\0";

/// The number of a piece of an object: the nonce of its sealing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PieceNumber(pub u32);

impl PieceNumber {
    /// The content of an object sealed whole.
    pub const CONTENT: Self = Self(0);
    /// The label of a key slot.
    pub const LABEL: Self = Self(1);
    /// The padding of a container.
    pub const PADDING: Self = Self(u32::MAX - 2);
    /// The index of a container.
    pub const INDEX: Self = Self(u32::MAX - 1);
    /// The trailer of a container.
    pub const TRAILER: Self = Self(u32::MAX);

    fn nonce(self) -> Nonce {
        let mut nonce = [0; 12];
        nonce.iter_mut().zip(self.0.to_le_bytes()).for_each(|(to, from)| *to = from);
        Nonce::assume_unique_for_key(nonce)
    }
}

/// The key of one object. Each piece number is to be sealed once only.
pub struct ObjectKey {
    key: LessSafeKey,
    header: ObjectHeader,
    name: ObjectName,
    epoch: Epoch,
    /// Header, repository and name: the authenticated facts common to all pieces.
    facts: Vec<u8>,
}

impl ObjectKey {
    /// The key for a new object, with a fresh salt.
    ///
    /// # Errors
    /// [`StoreError::WriteOnly`] with the keys of a write-only client, of what is not its own to write.
    pub fn create(keys: &RepositoryKeys, name: ObjectName, kind: ObjectKind) -> Result<Self, StoreError> {
        let NewKey { purpose, salt, mode } = keys.create(&name, kind)?;
        let key = Self::derive(&purpose, keys.repository(), name, (kind, mode), salt, &[])?;
        Ok(Self { epoch: keys.epoch(), ..key })
    }

    /// The key of the object that begins with these bytes.
    ///
    /// # Errors
    /// [`StoreError::Misplaced`] if none of the keys opens it; damage of the header; [`StoreError::WriteOnly`].
    pub fn open(keys: &RepositoryKeys, name: ObjectName, kind: ObjectKind, object: &[u8]) -> Result<Self, StoreError> {
        let header = ObjectHeader::parse(&name, object)?;
        for epoch in keys.epochs() {
            let derivation = Derivation { epoch, mode: header.mode };
            match Self::with_derivation(keys, name, kind, header.salt, derivation) {
                Ok(key) if key.header == header => return Ok(key),
                Ok(_) | Err(StoreError::Misplaced { .. }) => {}
                Err(error) => return Err(error),
            }
            // What says which keys count is never that of somebody who knows an older one only.
            if kind == ObjectKind::Config {
                break;
            }
        }
        Err(StoreError::Misplaced { object: name.to_string() })
    }

    /// The key of an object of key mode 0 whose salt and epoch are known.
    ///
    /// # Errors
    /// As [`ObjectKey::with_derivation`].
    pub fn with_salt(
        keys: &RepositoryKeys,
        name: ObjectName,
        kind: ObjectKind,
        salt: Salt,
        epoch: Epoch,
    ) -> Result<Self, StoreError> {
        Self::with_derivation(keys, name, kind, salt, Derivation::of_master(epoch))
    }

    /// The key of an object whose salt and derivation are known from elsewhere; its header need not be read.
    ///
    /// # Errors
    /// Damage if there is no such epoch; [`StoreError::Misplaced`] if nobody can have sealed it with that salt;
    /// [`StoreError::WriteOnly`].
    pub fn with_derivation(
        keys: &RepositoryKeys,
        name: ObjectName,
        kind: ObjectKind,
        salt: Salt,
        derivation: Derivation,
    ) -> Result<Self, StoreError> {
        let misplaced = || StoreError::Misplaced { object: name.to_string() };
        if !kind.allows(derivation.mode) {
            return Err(misplaced());
        }
        let purpose = keys.open(&name, kind, &salt, derivation)?.ok_or_else(misplaced)?;
        let key = Self::derive(&purpose, keys.repository(), name, (kind, derivation.mode), salt, &[])?;
        Ok(Self { epoch: derivation.epoch, ..key })
    }

    /// The key of a file that this machine keeps for itself of a series, and never stores.
    ///
    /// # Errors
    /// None on a sound machine.
    pub fn of_cache(keys: &RepositoryKeys, series: SeriesId, salt: Salt) -> Result<Self, StoreError> {
        // No manifest has the number 0.
        let (name, kind) = (ObjectName::Manifest(series, 0), (ObjectKind::Manifest, KeyMode::Derived));
        Self::derive(keys.cache_purpose(), keys.repository(), name, kind, salt, b"local cache")
    }

    /// `more` is authenticated beside header, repository and name.
    pub(crate) fn derive(
        purpose: &PurposeKey,
        repository: RepositoryId,
        name: ObjectName,
        (kind, mode): (ObjectKind, KeyMode),
        salt: Salt,
        more: &[u8],
    ) -> Result<Self, StoreError> {
        let name_text = name.to_string();
        let mut hasher = purpose.hasher();
        hasher.update(KEY_CONTEXT).update(&repository.0).update(&salt).update(name_text.as_bytes());
        let mut output = hasher.finalize_xof();
        let mut secret = Zeroizing::new([0; 32]);
        let mut commitment = Commitment::default();
        output.fill(secret.as_mut_slice());
        output.fill(&mut commitment);

        let header = ObjectHeader { kind, mode, salt, commitment };
        let key = UnboundKey::new(&AES_256_GCM, secret.as_slice()).map_err(|_| refused("making a key"))?;
        let facts = [header.to_bytes().as_slice(), &repository.0, more, name_text.as_bytes()].concat();
        Ok(Self { key: LessSafeKey::new(key), header, name, epoch: Epoch::FIRST, facts })
    }

    /// The master key that it derives from, and how.
    pub fn derivation(&self) -> Derivation {
        Derivation { epoch: self.epoch, mode: self.header.mode }
    }

    /// The header that the object begins with.
    pub fn header(&self) -> &ObjectHeader {
        &self.header
    }

    /// The object's name.
    pub fn name(&self) -> &ObjectName {
        &self.name
    }

    /// Seals what `bytes` hold from `start` on, in place, and appends the tag.
    pub fn seal_piece(&self, piece: PieceNumber, bytes: &mut Vec<u8>, start: usize) -> Result<(), StoreError> {
        let plain = bytes.get_mut(start..).ok_or_else(|| refused("sealing"))?;
        let tag = self
            .key
            .seal_in_place_separate_tag(piece.nonce(), Aad::from(self.facts_of(piece)), plain)
            .map_err(|_| refused("sealing"))?;
        bytes.extend_from_slice(tag.as_ref());
        Ok(())
    }

    /// Opens a sealed piece in place and returns its plain bytes; `part` names it in the error.
    pub fn open_piece<'b>(
        &self,
        piece: PieceNumber,
        part: &str,
        sealed: &'b mut [u8],
    ) -> Result<&'b mut [u8], StoreError> {
        self.key
            .open_in_place(piece.nonce(), Aad::from(self.facts_of(piece)), sealed)
            .map(|plain| &mut *plain)
            .map_err(|_| StoreError::damaged(&self.name, part, "its seal does not hold"))
    }

    fn facts_of(&self, piece: PieceNumber) -> Vec<u8> {
        [self.facts.as_slice(), &piece.0.to_le_bytes()].concat()
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectKey({}, secret)", self.name)
    }
}

fn refused(operation: &'static str) -> StoreError {
    StoreError::Machine { operation, reason: "the cipher refused".into() }
}

/// The bytes of an object sealed whole, from the bytes of its content.
pub const fn sealed_object_bytes(content_bytes: u64) -> u64 {
    padded(content_bytes.saturating_add((HEADER_BYTES + LENGTH_BYTES + TAG_BYTES) as u64))
}

/// Seals an object whole: header, then one piece holding length, content and zeros up to a Padmé size.
pub fn seal_object(
    keys: &RepositoryKeys,
    name: &ObjectName,
    kind: ObjectKind,
    content: &[u8],
) -> Result<Vec<u8>, StoreError> {
    let key = ObjectKey::create(keys, *name, kind)?;
    let mut object = key.header().to_bytes().to_vec();
    append_padded(&key, PieceNumber::CONTENT, content, &mut object)?;
    Ok(object)
}

/// Opens an object sealed whole and returns its content.
///
/// # Errors
/// [`StoreError::Damaged`], [`StoreError::Misplaced`], an unknown version or key mode; each names the object.
pub fn open_object(
    keys: &RepositoryKeys,
    name: &ObjectName,
    kind: ObjectKind,
    mut object: Vec<u8>,
) -> Result<Vec<u8>, StoreError> {
    let key = ObjectKey::open(keys, *name, kind, &object)?;
    object.drain(..HEADER_BYTES);
    open_padded(&key, PieceNumber::CONTENT, "content", object)
}

/// Appends a sealed piece of length, content and zeros, so that the whole of `object` ends at a Padmé size.
pub(crate) fn append_padded(
    key: &ObjectKey,
    piece: PieceNumber,
    content: &[u8],
    object: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let start = object.len();
    let least_bytes = (start + LENGTH_BYTES + content.len() + TAG_BYTES) as u64;
    let plain_end = usize::try_from(padded(least_bytes)).map_err(|_| refused("padding"))? - TAG_BYTES;
    object.reserve_exact(plain_end + TAG_BYTES - start);
    object.extend_from_slice(&(content.len() as u64).to_le_bytes());
    object.extend_from_slice(content);
    object.resize(plain_end, 0);
    key.seal_piece(piece, object, start)
}

/// Opens what [`append_padded`] appended.
pub(crate) fn open_padded(
    key: &ObjectKey,
    piece: PieceNumber,
    part: &str,
    mut sealed: Vec<u8>,
) -> Result<Vec<u8>, StoreError> {
    let plain = key.open_piece(piece, part, &mut sealed)?;
    let damaged = |reason: &str| StoreError::damaged(key.name(), part, reason);
    let mut fields = Fields(plain);
    let length = fields.take_u64().ok_or_else(|| damaged("too short for its length"))?;
    let length = usize::try_from(length).ok().filter(|length| *length <= fields.0.len());
    let length = length.ok_or_else(|| damaged("its length reaches past its end"))?;
    if fields.0.iter().skip(length).any(|byte| *byte != 0) {
        return Err(damaged("its padding is not zero"));
    }
    sealed.truncate(LENGTH_BYTES + length);
    sealed.drain(..LENGTH_BYTES);
    Ok(sealed)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use crate::secrets::MasterKey;
    use crate::testing::keys;
    use proptest::prelude::*;

    fn name(sequence: u64) -> ObjectName {
        ObjectName::Manifest(SeriesId([5; 16]), sequence)
    }

    fn seal(content: &[u8]) -> Vec<u8> {
        seal_object(&keys(), &name(1), ObjectKind::Manifest, content).unwrap()
    }

    fn open(object: &[u8]) -> Result<Vec<u8>, StoreError> {
        open_object(&keys(), &name(1), ObjectKind::Manifest, object.to_vec())
    }

    #[test]
    fn the_key_of_an_object_never_changes() {
        let key = ObjectKey::with_salt(&keys(), name(1), ObjectKind::Manifest, [9; 32], Epoch::FIRST).unwrap();
        let mut bytes = b"content".to_vec();
        key.seal_piece(PieceNumber(3), &mut bytes, 0).unwrap();
        let digest = blake3::Hasher::new().update(&key.header().to_bytes()).update(&bytes).finalize();
        assert_eq!(digest.to_hex().as_str(), "644c88dd34ff437fd4f71fdc1b7cc35363459e400b4d584c6a9280cb0d10a505");
    }

    #[test]
    fn the_header_lies_as_the_format_says() {
        let object = seal(b"");
        assert_eq!(&object[..12], b"SILTSTNE\x01\x00\x03\x00");
        assert_eq!(object[60..64], crate::header::checksum(&object[..60]));
    }

    #[test]
    fn objects_have_padme_sizes_known_beforehand() {
        for bytes in [0, 1, 100, 1000, 70_000] {
            let object = seal(&vec![3; bytes]);
            assert_eq!(object.len() as u64, sealed_object_bytes(bytes as u64));
            assert_eq!(object.len() as u64, padded(object.len() as u64));
        }
    }

    #[test]
    fn every_flipped_byte_and_every_cut_is_an_error_naming_the_object() {
        let object = seal(b"some content");
        for at in 0..object.len() {
            let mut flipped = object.clone();
            flipped[at] ^= 1 << (at % 8);
            for error in [open(&flipped).unwrap_err(), open(&object[..at]).unwrap_err()] {
                assert!(matches!(error, StoreError::Damaged { .. }), "byte {at}: {error:?}");
                assert!(error.to_string().contains("series/05"), "{error}");
            }
        }
        assert!(open(&[object.as_slice(), &[0]].concat()).is_err());
    }

    #[test]
    fn objects_of_older_epochs_open_and_new_ones_are_of_the_newest() {
        let master = |byte| MasterKey::from_bytes([byte; 32]);
        let id = RepositoryId([2; 16]);
        let rotated = RepositoryKeys::derive_all(&[master(1)], &master(9), id);
        let (old, new) = (seal(b"old"), seal_object(&rotated, &name(1), ObjectKind::Manifest, b"new").unwrap());
        let open_under = |keys: &RepositoryKeys, object: &[u8]| {
            open_object(keys, &name(1), ObjectKind::Manifest, object.to_vec()).ok()
        };
        assert_eq!(open_under(&rotated, &old).unwrap(), b"old");
        assert_eq!(open_under(&rotated, &new).unwrap(), b"new");
        assert_eq!(open_under(&RepositoryKeys::derive(&master(9), id), &new).unwrap(), b"new");
        assert_eq!(open_under(&keys(), &new), None);
        assert_eq!(
            ObjectKey::open(&rotated, name(1), ObjectKind::Manifest, &old).unwrap().derivation(),
            Derivation::of_master(Epoch(1))
        );
        let config = seal_object(&keys(), &ObjectName::Config(1), ObjectKind::Config, b"forged").unwrap();
        assert!(open_object(&rotated, &ObjectName::Config(1), ObjectKind::Config, config).is_err());
    }

    #[test]
    fn an_object_of_another_name_kind_or_repository_is_misplaced() {
        let object = seal(b"content");
        let other = RepositoryKeys::derive(&MasterKey::from_bytes([1; 32]), RepositoryId([3; 16]));
        for result in [
            open_object(&keys(), &name(2), ObjectKind::Manifest, object.clone()),
            open_object(&keys(), &name(1), ObjectKind::Config, object.clone()),
            open_object(&other, &name(1), ObjectKind::Manifest, object.clone()),
        ] {
            assert!(matches!(result, Err(StoreError::Misplaced { .. })), "{result:?}");
        }
    }

    #[test]
    fn newer_versions_and_unknown_key_modes_are_refused_by_name() {
        let restated = |at: usize, byte: u8| {
            let mut object = seal(b"content");
            object[at] = byte;
            let sum = crate::header::checksum(&object[..60]);
            object[60..64].copy_from_slice(&sum);
            open(&object).unwrap_err()
        };
        assert!(matches!(restated(8, 2), StoreError::UnknownVersion { found: 2, supported: 1, .. }));
        assert!(matches!(restated(11, 1), StoreError::UnknownFeature { .. }));
        assert!(matches!(restated(8, 0), StoreError::Damaged { .. }));
        assert!(matches!(restated(10, 77), StoreError::Damaged { .. }));
        assert!(matches!(restated(10, 1), StoreError::Misplaced { .. }));
    }

    proptest! {
        #[test]
        fn content_comes_back(content in prop::collection::vec(any::<u8>(), 0..3000)) {
            prop_assert_eq!(open(&seal(&content)).unwrap(), content);
        }

        #[test]
        fn no_bytes_make_opening_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(open(&bytes).is_err());
            prop_assert!(open(&[seal(b"")[..64].to_vec(), bytes].concat()).is_err());
        }
    }
}
