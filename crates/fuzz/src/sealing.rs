//! Keys of the fuzzer's own, and sealing whatever it thinks of.

use siltstone_store::sealed::{ObjectKey, ObjectKind, PieceNumber, Salt};
use siltstone_store::storage::ObjectName;
use siltstone_store::{Epoch, KeyId, MasterKey, RepositoryId, RepositoryKeys, SeriesId};
use std::sync::LazyLock;

/// The series that all objects of the targets belong to.
pub(crate) const SERIES: SeriesId = SeriesId([7; 16]);
/// The repository they belong to.
pub(crate) const REPOSITORY: RepositoryId = RepositoryId([4; 16]);
/// The key slot that opens it.
pub(crate) const SLOT: KeyId = KeyId([9; 16]);
/// The salt of sealed objects, so that a target does the same with the same input each time.
const SALT: Salt = [1; 32];

/// The keys that objects are sealed with.
pub(crate) static KEYS: LazyLock<RepositoryKeys> = LazyLock::new(|| RepositoryKeys::derive(&master(), REPOSITORY));

pub(crate) fn master() -> MasterKey {
    MasterKey::from_bytes([3; 32])
}

/// The key of an object of this name.
pub(crate) fn object_key(name: ObjectName, kind: ObjectKind) -> ObjectKey {
    ObjectKey::with_salt(&KEYS, name, kind, SALT, Epoch::FIRST).expect("the keys have a first epoch")
}

/// Appends a sealed piece.
pub(crate) fn seal(key: &ObjectKey, piece: PieceNumber, plain: &[u8], object: &mut Vec<u8>) {
    let start = object.len();
    object.extend_from_slice(plain);
    key.seal_piece(piece, object, start).expect("a piece is short enough for the cipher");
}

/// Appends a sealed piece with its length within, as objects that are sealed whole have it, without padding.
pub(crate) fn seal_with_length(key: &ObjectKey, piece: PieceNumber, content: &[u8], object: &mut Vec<u8>) {
    seal(key, piece, &[&(content.len() as u64).to_le_bytes(), content].concat(), object);
}

/// An object sealed whole.
pub(crate) fn whole_object(name: ObjectName, kind: ObjectKind, content: &[u8]) -> Vec<u8> {
    let key = object_key(name, kind);
    let mut object = key.header().to_bytes().to_vec();
    seal_with_length(&key, PieceNumber::CONTENT, content, &mut object);
    object
}

/// The first bytes of BLAKE3, as plain checksums have them.
pub(crate) fn checksum<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut sum = [0; N];
    blake3::Hasher::new().update(bytes).finalize_xof().fill(&mut sum);
    sum
}
