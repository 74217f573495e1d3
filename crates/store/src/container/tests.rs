//! Containers as a whole: round trips, and every way in which their bytes can be wrong.

#![allow(clippy::unwrap_used)]

mod bases;

use super::*;
use crate::ids::{Fingerprint, RepositoryId};
use crate::region::{ChunkEntry, Codec, EncodedRegion, RegionDecoder, RegionEncoder, ZSTD_LEVEL_DEFAULT, split_region};
use crate::secrets::{MasterKey, RepositoryKeys};
use crate::testing::{keys, noise};
use proptest::prelude::*;

const SERIES: SeriesId = SeriesId([7; 16]);
const ID: ContainerId = ContainerId { lease: 3, serial: 5 };

/// A region of chunks with these numbers and contents.
fn region(chunks: &[(u64, Vec<u8>)]) -> EncodedRegion {
    let entry = |(number, bytes): &(u64, Vec<u8>)| ChunkEntry {
        number: ChunkNumber(*number),
        fingerprint: keys().fingerprint_of(ChunkNumber(*number), bytes),
        length: u32::try_from(bytes.len()).unwrap(),
    };
    let plain: Vec<u8> = chunks.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
    EncodedRegion::encode(&mut RegionEncoder::fast(ZSTD_LEVEL_DEFAULT), chunks.iter().map(entry).collect(), &plain)
        .unwrap()
}

fn container(id: ContainerId, kind: ContainerKind, regions: &[EncodedRegion]) -> SealedContainer {
    let mut builder = ContainerBuilder::new(&keys(), SERIES, id, kind).unwrap();
    for region in regions {
        builder.push(region).unwrap();
    }
    let planned_bytes = builder.planned_bytes();
    let container = builder.finish().unwrap();
    assert_eq!(container.bytes.len() as u64, planned_bytes);
    assert_eq!(container.record.object_bytes, planned_bytes);
    assert_eq!(crate::pad::padded(planned_bytes), planned_bytes);
    container
}

/// Two regions, one compressible and one not, with gaps in the numbers and the later numbers first.
fn small() -> SealedContainer {
    let text = region(&[(10, b"layer ".repeat(100)), (11, b"stone ".repeat(50)), (20, vec![0; 300])]);
    let noise = region(&[(1, noise(1, 200)), (2, noise(2, 1))]);
    assert_eq!((text.codec, noise.codec), (Codec::Zstd, Codec::Raw));
    container(ID, ContainerKind::Data, &[text, noise])
}

fn check(record: &ContainerRecord, object: &[u8]) -> Vec<ContainerDamage> {
    ContainerReader::check(&keys(), SERIES, record, object, &mut RegionDecoder::new())
}

/// All plain regions, read as recovery would.
fn recover(object: &[u8]) -> Result<Vec<Vec<u8>>, StoreError> {
    recover_of(ContainerKind::Data, object)
}

fn recover_of(kind: ContainerKind, object: &[u8]) -> Result<Vec<Vec<u8>>, StoreError> {
    let reader = ContainerReader::from_object(&keys(), SERIES, kind, ID, object)?;
    let mut decoder = RegionDecoder::new();
    let read = |(at, entry): (usize, &RegionEntry)| {
        let start = usize::try_from(entry.offset).unwrap();
        let plain =
            reader.open_region(at, object[start..start + entry.sealed_bytes as usize].to_vec(), &mut decoder, &[])?;
        reader.verify_region(&keys(), at, &plain).map(|()| plain)
    };
    reader.index().regions().iter().enumerate().map(read).collect()
}

#[test]
fn chunks_come_back_by_number() {
    let SealedContainer { bytes, record } = small();
    let run = |first, count| ChunkRun { first: ChunkNumber(first), count };
    assert_eq!(record.chunks, [run(1, 2), run(10, 2), run(20, 1)]);
    assert_eq!(record.chunk_count(), 5);
    assert_eq!(record.run_bytes, [201, 900, 300]);
    assert_eq!((record.bytes_of(run(10, 2)), record.bytes_of(run(10, 1))), (Some(900), None));

    let reader = ContainerReader::from_object(&keys(), SERIES, ContainerKind::Data, ID, &bytes).unwrap();
    assert_eq!(*reader.record(), record);
    let regions = recover(&bytes).unwrap();
    for (number, expected) in [(1, noise(1, 200)), (11, b"stone ".repeat(50)), (20, vec![0; 300])] {
        let place = reader.index().find(ChunkNumber(number)).unwrap();
        assert_eq!(place.of(&regions[place.region]), Some(expected.as_slice()));
    }
    assert_eq!(reader.index().find(ChunkNumber(12)), None);
    assert!(check(&record, &bytes).is_empty());
}

#[test]
fn a_record_survives_serialization_but_for_its_salt() {
    let record = small().record;
    let bytes = crate::encoding::encode(&record).unwrap();
    let decoded: ContainerRecord = crate::encoding::decode(&"record", "all", &bytes).unwrap();
    assert_eq!(ContainerRecord { salt: record.salt, ..decoded }, record);
}

#[test]
fn a_copied_region_is_sealed_again_without_recompression() {
    let SealedContainer { bytes, record } = small();
    let reader = ContainerReader::from_object(&keys(), SERIES, ContainerKind::Data, ID, &bytes).unwrap();
    let sealed = |at: usize| {
        let entry = &reader.index().regions()[at];
        let start = usize::try_from(entry.offset).unwrap();
        bytes[start..start + entry.sealed_bytes as usize].to_vec()
    };
    let copies = [reader.unseal_region(0, sealed(0)).unwrap(), reader.unseal_region(1, sealed(1)).unwrap()];
    let copy = container(ID, ContainerKind::Data, &copies);
    assert_eq!(copy.record.chunks, record.chunks);
    assert_eq!(recover(&copy.bytes).unwrap(), recover(&bytes).unwrap());
    assert!(reader.unseal_region(0, sealed(1)).is_err() && reader.unseal_region(2, sealed(1)).is_err());
}

#[test]
fn an_empty_container_and_one_huge_chunk_are_fine() {
    let empty = container(ID, ContainerKind::Data, &[]);
    assert!(check(&empty.record, &empty.bytes).is_empty());
    let huge = region(&[(0, noise(9, crate::region::CHUNK_BYTES_MAX))]);
    assert!(ContainerBuilder::new(&keys(), SERIES, ID, ContainerKind::Data).unwrap().fits(&huge));
    let huge = container(ID, ContainerKind::Data, &[huge]);
    assert!(check(&huge.record, &huge.bytes).is_empty());
}

#[test]
fn a_container_filled_while_it_fits_has_the_target_size() {
    let filled_to = |asked: u64| {
        let builder = ContainerBuilder::new(&keys(), SERIES, ID, ContainerKind::Data).unwrap();
        let mut builder = if asked == 0 { builder } else { builder.filled_to(asked) };
        for at in 0.. {
            let region = region(&(at * 64..at * 64 + 64).map(|n| (n, noise(n, 4000))).collect::<Vec<_>>());
            if !builder.fits(&region) {
                break;
            }
            builder.push(&region).unwrap();
        }
        let planned = builder.planned_bytes();
        assert_eq!(builder.finish().unwrap().bytes.len() as u64, planned);
        planned
    };
    assert_eq!(filled_to(0), CONTAINER_BYTES_DEFAULT);
    assert_eq!(filled_to(1), CONTAINER_BYTES_DEFAULT, "no less");
    assert_eq!(filled_to(32 << 20), 32 << 20);
}

#[test]
fn an_index_costs_less_than_twenty_bytes_per_chunk() {
    let regions: Vec<_> =
        (0..4).map(|r| region(&(r * 64..r * 64 + 64).map(|n| (n, noise(n, 16_400))).collect::<Vec<_>>())).collect();
    let record = container(ID, ContainerKind::Data, &regions).record;
    assert!(record.index_sealed_bytes < 256 * 20, "{} bytes", record.index_sealed_bytes);
}

#[test]
fn what_does_not_belong_is_refused() {
    let data = region(&[(1, vec![1; 10])]);
    let metadata = region(&[(ChunkNumber::METADATA_FIRST.0, vec![1; 10])]);
    let mut builder = ContainerBuilder::new(&keys(), SERIES, ID, ContainerKind::Data).unwrap();
    assert!(matches!(builder.push(&metadata), Err(StoreError::Refused { .. })));
    builder.push(&data).unwrap();
    builder.push(&data).unwrap();
    assert!(matches!(builder.finish(), Err(StoreError::Refused { .. })), "a number twice");
}

#[test]
fn a_container_under_another_name_series_kind_or_repository_is_misplaced() {
    let SealedContainer { bytes, record } = small();
    let other_id = ContainerId { serial: 6, ..ID };
    let other_keys = RepositoryKeys::derive(&MasterKey::from_bytes([1; 32]), RepositoryId([3; 16]));
    for result in [
        ContainerReader::from_object(&keys(), SERIES, ContainerKind::Data, other_id, &bytes),
        ContainerReader::from_object(&keys(), SeriesId([8; 16]), ContainerKind::Data, ID, &bytes),
        ContainerReader::from_object(&other_keys, SERIES, ContainerKind::Data, ID, &bytes),
        ContainerReader::from_object(&keys(), SERIES, ContainerKind::Metadata, ID, &bytes),
    ] {
        assert!(matches!(result, Err(StoreError::Misplaced { .. })), "{result:?}");
    }
    // The same name from a diverged copy of the repository: only the salt in the manifest tells.
    let twin = small();
    assert!(ContainerReader::from_object(&keys(), SERIES, ContainerKind::Data, ID, &twin.bytes).is_ok());
    assert!(!check(&record, &twin.bytes).is_empty());
}

#[test]
fn every_flipped_byte_is_found_and_costs_no_more_than_its_region() {
    let SealedContainer { bytes, record } = small();
    let index = usize::try_from(record.index_offset).unwrap();
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        let error = recover(&flipped).unwrap_err();
        assert!(error.is_damage() && error.to_string().contains("data/"), "byte {at}: {error}");

        let found = check(&record, &flipped);
        assert_eq!(found.len(), 1, "byte {at}: {found:?}");
        let lost: u64 = found[0].chunks.iter().map(|run| run.count).sum();
        let in_index = (index..index + record.index_sealed_bytes as usize).contains(&at);
        assert!(if in_index { lost == 5 } else { lost < 5 }, "byte {at} costs {lost} chunks: {found:?}");
    }
}

#[test]
fn every_cut_and_every_addition_is_found() {
    let SealedContainer { bytes, record } = small();
    for length in 0..bytes.len() {
        let error = recover(&bytes[..length]).unwrap_err();
        assert!(error.is_damage() && error.to_string().contains("data/"), "{length}: {error}");
        assert!(!check(&record, &bytes[..length]).is_empty(), "{length}");
    }
    let longer = [bytes.as_slice(), &[0]].concat();
    assert!(recover(&longer).is_err() && !check(&record, &longer).is_empty());
}

#[test]
fn swapped_regions_are_found() {
    let regions = [region(&[(1, noise(1, 100))]), region(&[(2, noise(2, 100))])];
    let SealedContainer { mut bytes, record } = container(ID, ContainerKind::Data, &regions);
    let (first, second) = bytes[crate::sealed::HEADER_BYTES..].split_at_mut(116);
    first.swap_with_slice(&mut second[..116]);
    assert_eq!(check(&record, &bytes).len(), 2);
}

#[test]
fn a_hostile_record_is_refused() {
    let good = small().record;
    let name = good.object_name(SERIES);
    assert!(good.validate(&name).is_ok());
    let run = |first, count| ChunkRun { first: ChunkNumber(first), count };
    let bad = [
        ContainerRecord { object_bytes: CONTAINER_BYTES_MAX + 1, ..good.clone() },
        ContainerRecord { object_bytes: 0, ..good.clone() },
        ContainerRecord { index_offset: u64::MAX, ..good.clone() },
        ContainerRecord { index_offset: 0, ..good.clone() },
        ContainerRecord { index_sealed_bytes: u32::MAX, ..good.clone() },
        ContainerRecord { run_bytes: vec![0; 2], ..good.clone() },
        ContainerRecord { run_bytes: vec![1, 0, 0], ..good.clone() },
        ContainerRecord { run_bytes: vec![0, 0, u64::MAX], ..good.clone() },
        ContainerRecord { chunks: vec![run(5, 0)], run_bytes: vec![0], ..good.clone() },
        ContainerRecord { chunks: vec![run(5, 2), run(7, 1)], run_bytes: vec![0; 2], ..good.clone() },
        ContainerRecord { chunks: vec![run(5, 2), run(1, 1)], run_bytes: vec![0; 2], ..good.clone() },
        ContainerRecord { chunks: vec![run(5, u64::MAX)], run_bytes: vec![0], ..good.clone() },
        ContainerRecord { chunks: vec![run(ChunkNumber::METADATA_FIRST.0 - 1, 2)], run_bytes: vec![0], ..good.clone() },
        ContainerRecord { kind: ContainerKind::Metadata, ..good.clone() },
    ];
    for record in bad {
        assert!(record.validate(&name).unwrap_err().is_damage(), "{record:?}");
    }
}

proptest! {
    #[test]
    fn any_container_comes_back(
        lengths in prop::collection::vec(prop::collection::vec((1u64..5, 1usize..2000, any::<bool>()), 1..20), 0..6),
        metadata in any::<bool>(),
    ) {
        let mut number = if metadata { ChunkNumber::METADATA_FIRST.0 } else { 0 };
        let kind = ContainerKind::of(ChunkNumber(number));
        let contents: Vec<Vec<(u64, Vec<u8>)>> = lengths.iter().map(|chunks| chunks.iter().map(|(gap, length, flat)| {
            number += gap;
            (number, if *flat { vec![7; *length] } else { noise(number, *length) })
        }).collect()).collect();
        let regions: Vec<_> = contents.iter().map(|chunks| region(chunks)).collect();
        let sealed = container(ID, kind, &regions);
        prop_assert!(check(&sealed.record, &sealed.bytes).is_empty());
        let plain = recover_of(kind, &sealed.bytes).unwrap();
        let reader = ContainerReader::from_object(&keys(), SERIES, kind, ID, &sealed.bytes).unwrap();
        for ((entry, plain), chunks) in reader.index().regions().iter().zip(&plain).zip(&contents) {
            let read: Vec<_> = split_region(&entry.chunks, plain).map(|(chunk, bytes)| (chunk.number.0, bytes.to_vec())).collect();
            prop_assert_eq!(&read, chunks);
        }
    }

    #[test]
    fn no_index_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), end in 64u64..5000) {
        let name = ObjectName::Container(ContainerKind::Data, SERIES, ID);
        let _ = ContainerIndex::decode(&name, ContainerKind::Data, end, &bytes);
    }

    #[test]
    fn no_altered_index_makes_the_reader_panic(at in 0usize..200, byte in any::<u8>(), cut in 0usize..200) {
        let name = ObjectName::Container(ContainerKind::Data, SERIES, ID);
        let region = region(&[(10, b"layer ".repeat(100)), (11, b"stone ".repeat(50)), (20, vec![0; 300])]);
        let mut index = crate::encoding::encode(&super::index::StoredRegion::of(&region).unwrap()).unwrap();
        index.truncate(cut.max(1));
        let at = at % index.len();
        index[at] = byte;
        if let Ok(index) = ContainerIndex::decode(&name, ContainerKind::Data, 64 + 16 + region.payload.len() as u64, &index) {
            prop_assert_eq!(index.places().len(), index.regions().iter().map(|region| region.chunks.len()).sum::<usize>());
        }
    }
}

#[test]
fn an_index_full_of_huge_counts_costs_nothing() {
    let name = ObjectName::Container(ContainerKind::Data, SERIES, ID);
    // payload 0, raw, no bases, one run of 2^64-1 numbers, one length, one fingerprint.
    let hostile =
        crate::encoding::encode(&(0u32, Codec::Raw, [0u8; 0].as_slice(), [(1u64, u64::MAX)].as_slice())).unwrap();
    let rest = crate::encoding::encode(&([1u32].as_slice(), [Fingerprint([0; 16])].as_slice())).unwrap();
    let error = ContainerIndex::decode(&name, ContainerKind::Data, 80, &[hostile, rest].concat()).unwrap_err();
    assert!(error.to_string().contains("runs of numbers"), "{error}");
    let lengths = [0, 0, 0, 0, 255, 255, 255, 255, 15];
    assert!(ContainerIndex::decode(&name, ContainerKind::Data, 80, &lengths).is_err());
}
