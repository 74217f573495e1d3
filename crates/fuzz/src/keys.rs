//! Key slots, and the text of a recovery key.

use crate::filled;
use crate::sealing::{KEYS, SLOT, checksum, object_key, seal_with_length};
use siltstone_store::keys::KeySlot;
use siltstone_store::sealed::{ObjectKind, PieceNumber};
use siltstone_store::storage::ObjectName;
use siltstone_store::{Epoch, MasterKey, RecoveryKey, RepositoryId};

/// Cost and salt of a slot's password hash, without their checksum.
const COST_BYTES: usize = 28;
/// The wrapped master key, sealed.
const SECRET_BYTES: usize = 64;

/// A key slot: as it lies there, or its fields with the checksums and seals that belong to them. No password is tried:
/// that costs what the slot says, which is bounded before.
pub(crate) fn slot(data: &[u8]) -> bool {
    let Some((mode, data)) = data.split_first() else { return false };
    let kind = if mode & 4 == 0 { ObjectKind::KeySlot } else { ObjectKind::WriteOnlySlot };
    let object = if mode & 1 == 0 { data.to_vec() } else { sealed_slot(data, kind, mode & 2 == 0) };
    let Ok(slot) = KeySlot::parse(SLOT, &object) else { return false };
    if let Some(cost) = slot.cost() {
        cost.validate(&"a slot").expect("a slot with an absurd cost is refused");
        let afforded = cost.afford(&"a slot", 1 << 20).is_ok();
        assert!(!afforded || cost.memory_kib <= 1024, "no more memory than allowed");
    }
    slot.label(&KEYS).is_ok()
}

/// A slot with these bytes for cost, secret and label, in this order; that of a write-only client with the length of
/// the secret before it, which is seldom another than it has. The label's seal names what comes before it, if asked
/// for.
fn sealed_slot(data: &[u8], kind: ObjectKind, names_front: bool) -> Vec<u8> {
    let key = object_key(ObjectName::Key(SLOT), kind);
    let field = |from: usize, bytes: usize| filled(data.get(from..).unwrap_or_default(), bytes);
    let cost = field(0, COST_BYTES);
    let mut object = [&key.header().to_bytes()[..], &cost, &checksum::<4>(&cost)].concat();
    if kind == ObjectKind::WriteOnlySlot {
        let is_another = data.first() == Some(&0xff);
        let length = if is_another { field(COST_BYTES, 4) } else { 64u32.to_le_bytes().to_vec() };
        object.extend(length);
    }
    object.extend(field(COST_BYTES, SECRET_BYTES));
    let mut label = data.get(COST_BYTES + SECRET_BYTES..).unwrap_or_default().to_vec();
    if names_front {
        label.extend(blake3::hash(&object).as_bytes());
    }
    seal_with_length(&key, PieceNumber::LABEL, &label, &mut object);
    object
}

/// A recovery key: text as it was typed, or a sound one with some bytes typed over.
pub(crate) fn recovery_key(data: &[u8]) -> bool {
    let Some((mode, data)) = data.split_first() else { return false };
    let text = if mode & 1 == 0 { data.to_vec() } else { mistyped(data) };
    let Ok(key) = String::from_utf8_lossy(&text).parse::<RecoveryKey>() else { return false };
    let again: RecoveryKey = key.groups().join("-").parse().expect("the groups of a key are a key");
    assert_eq!(again, key);
    true
}

/// The groups of the key that is in the first 52 bytes, with bytes replaced: a place, and what is typed there.
fn mistyped(data: &[u8]) -> Vec<u8> {
    let key = filled(data, 52);
    let (master, rest) = key.split_first_chunk().expect("52 bytes");
    let (repository, epoch) = rest.split_first_chunk().expect("20 bytes");
    let epoch = u32::from_le_bytes(*epoch.first_chunk().expect("4 bytes"));
    let key = RecoveryKey {
        repository: RepositoryId(*repository),
        epoch: Epoch(epoch),
        master: MasterKey::from_bytes(*master),
    };
    let mut text = key.groups().join("-").into_bytes();
    for [place, typed] in data.get(52..).unwrap_or_default().as_chunks().0 {
        let place = usize::from(*place) % text.len();
        text[place] = *typed;
    }
    text
}
