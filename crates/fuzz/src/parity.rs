//! Parity objects: hostile layouts and shards, and damage of both a container and its parity.

use crate::container::{ID, sealed_container};
use crate::filled;
use crate::sealing::{KEYS, SERIES, checksum, object_key};
use crate::seeds;
use siltstone_store::container::{ContainerKind, ContainerReader, ContainerRecord};
use siltstone_store::parity::{self, Layout};
use siltstone_store::sealed::{HEADER_BYTES, ObjectKind};
use siltstone_store::storage::{ObjectName, SimulatedDisk, Storage as _};
use std::sync::LazyLock;

const NAME: ObjectName = ObjectName::Parity(SERIES, ID);
/// Share of parity of the container that is damaged.
const PERCENT: u8 = 20;
/// Larger layouts are left to the tests of layouts: they only take longer.
const CONTAINER_BYTES_MAX: u64 = 1 << 20;

/// A container and its parity.
static PROTECTED: LazyLock<(Vec<u8>, ContainerRecord, Vec<u8>)> = LazyLock::new(|| {
    let (payload, index) = seeds::small_container();
    let object = sealed_container(ContainerKind::Data, &[&payload], &index);
    let reader =
        ContainerReader::from_object(&KEYS, SERIES, ContainerKind::Data, ID, &object).expect("a sound container");
    let parity = parity::protect(&KEYS, SERIES, ID, &object, PERCENT).expect("parity").expect("a share of it");
    (object, reader.record().clone(), parity)
});

/// Places to damage in a container and its parity, two bytes each and what is added there; or a parity object of one's
/// own: its layout before the checksum, then what follows it.
pub(crate) fn parity(data: &[u8]) -> bool {
    let Some((mode, data)) = data.split_first() else { return false };
    if mode & 1 == 0 { damaged(data) } else { hostile(data, mode & 2 == 0) }
}

fn damaged(data: &[u8]) -> bool {
    let (mut container, record, mut parity) = PROTECTED.clone();
    let sound = container.clone();
    let bytes = container.len();
    for [low, high, change] in data.as_chunks().0 {
        let at = usize::from(u16::from_le_bytes([*low, *high])) % (bytes + parity.len());
        let byte = if at < bytes { &mut container[at] } else { &mut parity[at - bytes] };
        *byte = byte.wrapping_add(*change);
    }
    let whole = parity::check(&KEYS, SERIES, ID, &sound, &parity).is_ok();
    assert_eq!(whole, parity == PROTECTED.2, "all damage of parity is seen");
    heals(&container, &parity, &record).is_some_and(|healed| {
        assert_eq!(healed, sound, "what is healed is what was written");
        true
    })
}

fn hostile(data: &[u8], at_front: bool) -> bool {
    let fields = filled(data, 16);
    let layout = [&fields[..], &checksum::<16>(&fields)].concat();
    let body = data.get(16..).unwrap_or_default();
    let header = object_key(NAME, ObjectKind::Parity).header().to_bytes();
    let object = if at_front { [&header[..], &layout, body] } else { [&header[..], body, &layout] }.concat();
    assert!(object.len() >= HEADER_BYTES);
    let Ok(layout) = Layout::find(&NAME, &object) else { return false };
    if layout.container_bytes > CONTAINER_BYTES_MAX {
        return false;
    }
    let (container, record, _) = &*PROTECTED;
    let record = ContainerRecord { object_bytes: layout.container_bytes, ..record.clone() };
    let _ = parity::check(&KEYS, SERIES, ID, container, &object);
    let healed = heals(container, &object, &record);
    assert!(healed.is_none_or(|healed| healed == *container), "nothing else passes for the container");
    true
}

fn heals(container: &[u8], parity: &[u8], record: &ContainerRecord) -> Option<Vec<u8>> {
    let disk = SimulatedDisk::new();
    disk.put(&ObjectName::Container(ContainerKind::Data, SERIES, ID), container).ok()?;
    disk.put(&NAME, parity).ok()?;
    disk.barrier().ok()?;
    parity::heal(&disk, &KEYS, SERIES, record).ok()
}
