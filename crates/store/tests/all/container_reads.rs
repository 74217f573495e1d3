//! Tests of what reading containers and key slots asks of the storage: how many reads, how many bytes, and which error
//! for which loss.

use siltstone_store::container::{ContainerBuilder, ContainerKind, ContainerReader, SealedContainer};
use siltstone_store::keys::{Argon2Cost, KeyLabel, KeySlot, OpenOptions, Unlocked, unlock};
use siltstone_store::region::{ChunkEntry, EncodedRegion, RegionDecoder, RegionEncoder, ZSTD_LEVEL_DEFAULT};
use siltstone_store::storage::{ObjectName, Recorder, SimulatedDisk, SimulatedRemote, Storage as _};
use siltstone_store::{
    ChunkNumber, ContainerId, KeyId, MasterKey, RepositoryId, RepositoryKeys, SeriesId, StoreError, Time,
};

const SERIES: SeriesId = SeriesId([7; 16]);
const ID: ContainerId = ContainerId { lease: 1, serial: 0 };

fn keys() -> RepositoryKeys {
    RepositoryKeys::derive(&MasterKey::from_bytes([1; 32]), RepositoryId([2; 16]))
}

/// One chunk of bytes that do not compress.
fn region(number: u64) -> (EncodedRegion, Vec<u8>) {
    let mut bytes = vec![0; 100_000];
    blake3::Hasher::new().update(&number.to_le_bytes()).finalize_xof().fill(&mut bytes);
    let number = ChunkNumber(number);
    let chunk = ChunkEntry { number, fingerprint: keys().fingerprint_of(number, &bytes), length: 100_000 };
    (EncodedRegion::encode(&mut RegionEncoder::fast(ZSTD_LEVEL_DEFAULT), vec![chunk], &bytes).unwrap(), bytes)
}

fn stored() -> (Recorder<SimulatedDisk>, SealedContainer) {
    let mut builder = ContainerBuilder::new(&keys(), SERIES, ID, ContainerKind::Data).unwrap();
    for number in 0..8 {
        builder.push(&region(number).0).unwrap();
    }
    let container = builder.finish().unwrap();
    let storage = Recorder::new(SimulatedDisk::new());
    storage.put(&container.record.object_name(SERIES), &container.bytes).unwrap();
    storage.barrier().unwrap();
    storage.reset();
    (storage, container)
}

#[test]
fn an_index_and_each_region_cost_one_range_read_and_no_padding() {
    let (storage, SealedContainer { record, .. }) = stored();
    let reader = ContainerReader::open(&storage, &keys(), SERIES, &record).unwrap();
    let calls = storage.reset().total();
    assert_eq!((calls.range_reads, calls.bytes_read), (1, record.index_sealed_bytes.into()));
    assert_eq!((calls.reads, *reader.record() == record), (0, true));

    let plain = reader.read_region(&storage, 3, &mut RegionDecoder::new(), &[]).unwrap();
    assert_eq!(plain, region(3).1);
    reader.verify_region(&keys(), 3, &plain).unwrap();
    let calls = storage.reset().total();
    assert_eq!((calls.range_reads, calls.bytes_read), (1, 100_016));
}

#[test]
fn neighbouring_regions_come_by_one_read() {
    let (storage, SealedContainer { record, .. }) = stored();
    let reader = ContainerReader::open(&storage, &keys(), SERIES, &record).unwrap();
    storage.reset();
    let sealed = reader.read_sealed_run(&storage, 2..5).unwrap();
    assert_eq!(storage.reset().total().range_reads, 1);
    for (at, sealed) in (2..5).zip(sealed) {
        let plain = reader.open_region(at, sealed, &mut RegionDecoder::new(), &[]).unwrap();
        assert_eq!(plain, region(at as u64).1);
    }
    assert!(reader.read_sealed_run(&storage, 4..4).unwrap().is_empty());
    assert!(reader.read_sealed_run(&storage, 7..9).is_err());
    assert_eq!(reader.copy_region(&storage, 6).unwrap(), region(6).0);
}

/// Where a request takes longer than 128 KiB, a container below that costs one.
#[test]
fn a_small_container_at_a_distance_is_read_at_once_and_a_larger_one_is_not() {
    for (regions, requests) in [(1, 1), (2, 3)] {
        let mut builder = ContainerBuilder::new(&keys(), SERIES, ID, ContainerKind::Data).unwrap();
        (0..regions).for_each(|number| builder.push(&region(number).0).unwrap());
        let SealedContainer { record, bytes } = builder.finish().unwrap();
        let storage = Recorder::new(SimulatedRemote::new());
        storage.put(&record.object_name(SERIES), &bytes).unwrap();
        storage.reset();
        let reader = ContainerReader::open(&storage, &keys(), SERIES, &record).unwrap();
        for (place, number) in (0..regions).enumerate() {
            let plain = reader.read_region(&storage, place, &mut RegionDecoder::new(), &[]).unwrap();
            assert_eq!(plain, region(number).1);
        }
        assert_eq!(reader.read_sealed_run(&storage, 0..1).unwrap().len(), 1);
        let calls = storage.reset().total();
        assert_eq!(calls.range_reads + calls.reads, requests + u64::from(regions > 1), "{regions} regions");
        assert!(calls.bytes_read < 2 * record.object_bytes);
    }
}

#[test]
fn another_content_is_not_what_was_fingerprinted() {
    let (storage, SealedContainer { record, .. }) = stored();
    let reader = ContainerReader::open(&storage, &keys(), SERIES, &record).unwrap();
    let error = reader.verify_region(&keys(), 3, &region(4).1).unwrap_err().to_string();
    assert!(error.contains("region 3, chunk 3"), "{error}");
    assert!(reader.verify_region(&keys(), 3, &region(3).1[1..]).is_err());
}

#[test]
fn a_missing_or_cut_container_is_damage_that_names_it() {
    let (storage, SealedContainer { record, bytes }) = stored();
    let name = record.object_name(SERIES);
    let reader = ContainerReader::open(&storage, &keys(), SERIES, &record).unwrap();
    storage.delete(&name).unwrap();
    let missing = ContainerReader::open(&storage, &keys(), SERIES, &record).unwrap_err();
    assert!(missing.is_not_found() && missing.is_damage(), "{missing}");
    storage.put(&name, &bytes[..1000]).unwrap();
    storage.barrier().unwrap();
    let cut = ContainerReader::open(&storage, &keys(), SERIES, &record).unwrap_err();
    let region = reader.read_region(&storage, 0, &mut RegionDecoder::new(), &[]).unwrap_err();
    for error in [missing, cut, region] {
        assert!(error.is_damage() && error.to_string().contains(&name.to_string()), "{error}");
    }
}

fn slot(id: u8, password: &[u8]) -> (ObjectName, Vec<u8>) {
    let unlocked =
        Unlocked { slot: KeyId([id; 16]), master: MasterKey::from_bytes([1; 32]), repository: RepositoryId([2; 16]) };
    let label = KeyLabel { created: Time::default(), host: "granite".into(), user: "ada".into() };
    (ObjectName::Key(unlocked.slot), KeySlot::create(&unlocked, password, Argon2Cost::TEST, &label).unwrap())
}

#[test]
fn any_slot_unlocks_and_a_damaged_one_is_in_nobody_s_way() {
    let storage = SimulatedDisk::new();
    assert!(matches!(
        unlock(&storage, b"one", &OpenOptions::default(), |_| Ok(Some(()))),
        Err(StoreError::NoKeySlots { .. })
    ));
    let (one, mut broken) = slot(1, b"one");
    let (two, sound) = slot(2, b"two");
    broken[100] ^= 1;
    storage.create(&one, &broken).unwrap();
    storage.create(&two, &sound).unwrap();
    assert_eq!(unlock(&storage, b"two", &OpenOptions::default(), |_| Ok(Some(()))).unwrap().slot(), KeyId([2; 16]));
    let error = unlock(&storage, b"one", &OpenOptions::default(), |_| Ok(Some(()))).unwrap_err();
    assert!(error.is_damage() && error.to_string().contains(&one.to_string()), "{error}");
    storage.delete(&one).unwrap();
    assert!(matches!(
        unlock(&storage, b"one", &OpenOptions::default(), |_| Ok(Some(()))),
        Err(StoreError::WrongPassword { slots: 1, .. })
    ));
}

#[test]
fn slots_are_tried_in_the_order_of_the_hints_and_not_for_ever() {
    let storage = Recorder::new(SimulatedDisk::new());
    for id in 1..=25 {
        let (name, object) = slot(id, format!("password {id}").as_bytes());
        storage.create(&name, &object).unwrap();
    }
    let unlock = |number: u8, hints: &[&str]| {
        let options = OpenOptions::default().with_key_hints(hints.iter().map(ToString::to_string).collect());
        storage.reset();
        let unlocked = unlock(&storage, format!("password {number}").as_bytes(), &options, |_| Ok(Some(())));
        (unlocked.map(|unlocked| unlocked.slot()), storage.reset().total().reads)
    };
    assert_eq!((unlock(1, &[]).1, unlock(20, &[]).1), (1, 20));
    let (refused, reads) = unlock(21, &[]);
    assert!(matches!(refused, Err(StoreError::WrongPassword { slots: 20, untried: 5, .. })), "{refused:?}");
    assert!(reads == 20 && refused.unwrap_err().to_string().contains("name the right one"));
    for (number, hints, tried) in [(21, ["foreign", "1515"], 1), (22, ["15", "16"], 2)] {
        let (unlocked, reads) = unlock(number, &hints);
        assert_eq!((unlocked.unwrap(), reads), (KeyId([number; 16]), tried));
    }
}

#[test]
fn a_slot_that_demands_too_much_is_refused_by_name_before_it_is_paid_and_hinders_no_other() {
    let storage = SimulatedDisk::new();
    let (dear, mut object) = slot(1, b"one");
    // 4 GiB, 64 passes, 64 lanes, with a sound checksum.
    let cost: Vec<u8> = [4u32 << 20, 64, 64].into_iter().flat_map(u32::to_le_bytes).collect();
    object[64..76].copy_from_slice(&cost);
    let sum = blake3::hash(&object[64..92]);
    object[92..96].copy_from_slice(&sum.as_bytes()[..4]);
    storage.create(&dear, &object).unwrap();
    let (cheap, object) = slot(2, b"two");
    storage.create(&cheap, &object).unwrap();
    let unlock = |password: &[u8]| unlock(&storage, password, &OpenOptions::default(), |_| Ok(Some(())));
    assert_eq!(unlock(b"two").unwrap().slot(), KeyId([2; 16]));
    let error = unlock(b"one").unwrap_err();
    assert!(matches!(error, StoreError::KeyCost { .. }) && error.to_string().contains(&dear.to_string()), "{error}");
}
