//! A whole repository of hostile objects: the chain of records, key slots, the newest manifests, copies.

use crate::parts;
use crate::sealing::{REPOSITORY, SERIES, SLOT, master, whole_object};
use siltstone_store::keys::{Argon2Cost, KeyLabel, KeySlot, OpenOptions, Unlocked};
use siltstone_store::repository::Repository;
use siltstone_store::sealed::ObjectKind;
use siltstone_store::series::{manifest_faults, newest_manifest, verify_history};
use siltstone_store::storage::{ObjectName, Original, SimulatedDisk, Storage as _};
use siltstone_store::{KeyId, SeriesId, Time, salvage};
use std::sync::{Arc, LazyLock};

const PASSWORD: &[u8] = b"fuzz";
/// Memory to open with: no slot may ask for more.
const MEMORY_BYTES: u64 = 1 << 20;
/// Objects that are looked at.
const OBJECTS_MAX: usize = 32;

static SLOT_OBJECT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let unlocked = Unlocked { slot: SLOT, master: master(), repository: REPOSITORY };
    let label = KeyLabel { created: Time::default(), host: "host".into(), user: "user".into() };
    KeySlot::create(&unlocked, PASSWORD, Argon2Cost::TEST, &label).expect("a slot")
});

/// Objects: of each part the first byte says what it is, the second its number, the rest is its content.
pub(crate) fn repository(data: &[u8]) -> bool {
    let disk = Arc::new(SimulatedDisk::new());
    let _ = disk.create(&ObjectName::Key(SLOT), &SLOT_OBJECT);
    for part in parts(data).into_iter().take(OBJECTS_MAX) {
        if let Some((name, object)) = object(part) {
            // A name that is taken stays taken.
            let _ = disk.create(&name, &object);
        }
    }
    let options = OpenOptions::default().with_memory(MEMORY_BYTES);
    let Ok(repository) = Repository::open_with(disk, PASSWORD, &options) else { return false };
    let _ = (repository.record_faults(), repository.keep_record_copy(), repository.key_slots());
    let _ = (repository.lost_series(), repository.bytes(), repository.older_epoch_bytes());
    let series = repository.series().unwrap_or_default();
    series.iter().filter(|series| look(&repository, **series)).count() == series.len()
}

/// Reads a series as a check does; says whether it has a manifest.
fn look(repository: &Repository, series: SeriesId) -> bool {
    let _ = repository.series_words(series);
    for number in salvage::manifest_numbers(repository, series).unwrap_or_default() {
        let _ = salvage::manifest_at(repository, series, number);
    }
    let Ok(Some(stored)) = newest_manifest(repository, series) else { return false };
    let _ = (verify_history(repository, &stored.manifest), manifest_faults(repository, &stored));
    true
}

fn object(part: &[u8]) -> Option<(ObjectName, Vec<u8>)> {
    let ([what, number], content) = part.split_first_chunk()?;
    let sequence = u64::from(*number);
    let (original, kind) = match what & 3 {
        0 | 1 => (Original::Config(sequence), ObjectKind::Config),
        2 => (Original::Manifest(SERIES, sequence), ObjectKind::Manifest),
        _ => (Original::Key(KeyId([*number; 16])), ObjectKind::KeySlot),
    };
    let name = if what & 4 == 0 { original.name() } else { original.copy() };
    let is_sealed = what & 8 == 0 && kind != ObjectKind::KeySlot;
    let object = if is_sealed { whole_object(original.name(), kind, content) } else { content.to_vec() };
    Some((name, object))
}
