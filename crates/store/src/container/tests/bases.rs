//! Regions with bases, and containers that no longer answer for all they hold.

use super::super::index::StoredRegion;
use super::*;
use crate::region::Base;

/// A delta of these chunks against those.
fn delta(bases: &[(u64, Vec<u8>)], chunks: &[(u64, Vec<u8>)]) -> EncodedRegion {
    let plain = region(chunks);
    let bytes: Vec<u8> = chunks.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
    let bases: Vec<_> = bases.iter().map(|(number, bytes)| Base { number: ChunkNumber(*number), bytes }).collect();
    EncodedRegion::encode_against(&mut RegionEncoder::fast(ZSTD_LEVEL_DEFAULT), &bases, plain.chunks, &[&bytes])
        .unwrap()
}

/// A plain region, and two deltas against chunks inside and outside of the container.
fn with_deltas() -> SealedContainer {
    let (a, b, c) = (noise(1, 900), noise(2, 700), noise(3, 800));
    let regions = [
        region(&[(10, a.clone()), (12, b.clone())]),
        delta(&[(10, a.clone()), (40, c.clone())], &[(11, [&a[..], b"edit"].concat()), (20, c[5..].to_vec())]),
        delta(&[(12, b.clone())], &[(13, [b"edit", &b[..]].concat())]),
    ];
    container(ID, ContainerKind::Data, &regions)
}

fn reader(sealed: &SealedContainer) -> ContainerReader {
    ContainerReader::from_object(&keys(), SERIES, ContainerKind::Data, ID, &sealed.bytes).unwrap()
}

/// Opens the container as its manifest would.
fn from_index(record: &ContainerRecord, sealed: &SealedContainer) -> Result<ContainerReader, StoreError> {
    let start = usize::try_from(sealed.record.index_offset).unwrap();
    let index = sealed.bytes[start..start + sealed.record.index_sealed_bytes as usize].to_vec();
    ContainerReader::from_index(&keys(), SERIES, record, index)
}

#[test]
fn bases_come_back_from_the_index_and_deltas_with_them() {
    let sealed = with_deltas();
    assert!(sealed.record.has_deltas && !small().record.has_deltas);
    let reader = reader(&sealed);
    let bases: Vec<Vec<u64>> =
        reader.index().regions().iter().map(|region| region.bases.iter().map(|base| base.0).collect()).collect();
    assert_eq!(bases, [vec![], vec![10, 40], vec![12]]);
    assert_eq!(reader.index().places().len(), 5, "bases are no chunks of the container");
    let mut decoder = RegionDecoder::new();
    let read = |at: usize, decoder: &mut RegionDecoder, bases: &[&[u8]]| {
        reader.open_region(at, reader.sealed_in(&sealed.bytes, at).unwrap().to_vec(), decoder, bases)
    };
    let (a, c) = (noise(1, 900), noise(3, 800));
    let plain = read(1, &mut decoder, &[&a, &c]).unwrap();
    reader.verify_region(&keys(), 1, &plain).unwrap();
    assert_eq!(plain, [&a[..], b"edit", &c[5..]].concat());
    assert!(matches!(read(1, &mut decoder, &[&a]), Err(StoreError::Refused { .. })));
    let swapped = read(1, &mut decoder, &[&c, &a]);
    assert!(swapped.is_err() || reader.verify_region(&keys(), 1, &swapped.unwrap()).is_err());
}

#[test]
fn a_check_without_bases_sees_every_flipped_byte_of_a_delta() {
    let sealed = with_deltas();
    assert!(check(&sealed.record, &sealed.bytes).is_empty());
    let entry = reader(&sealed).index().regions()[1].clone();
    let start = usize::try_from(entry.offset).unwrap();
    for at in start..start + entry.sealed_bytes as usize {
        let mut flipped = sealed.bytes.clone();
        flipped[at] ^= 1;
        let found = check(&sealed.record, &flipped);
        assert_eq!(found.len(), 1, "byte {at}");
        assert_eq!(found[0].chunks.iter().map(|run| run.first.0).collect::<Vec<_>>(), [11, 20]);
    }
}

#[test]
fn the_frame_is_checked_apart_from_the_regions() {
    let sealed = with_deltas();
    let reader = reader(&sealed);
    reader.check_frame(&sealed.bytes).unwrap();
    let regions = crate::sealed::HEADER_BYTES..usize::try_from(sealed.record.index_offset).unwrap();
    for at in 0..sealed.bytes.len() {
        let mut flipped = sealed.bytes.clone();
        flipped[at] ^= 1;
        assert_eq!(reader.check_frame(&flipped).is_ok(), regions.contains(&at), "byte {at}");
    }
    assert!(reader.check_frame(&sealed.bytes[..sealed.bytes.len() - 1]).is_err());
}

#[test]
fn a_container_may_answer_for_less_than_it_holds_and_for_no_more() {
    let sealed = with_deltas();
    let run = |first, count| ChunkRun { first: ChunkNumber(first), count };
    assert_eq!((sealed.record.held, &sealed.record.chunks[..]), (5, &[run(10, 4), run(20, 1)][..]));
    let record = |chunks: &[ChunkRun]| {
        let (chunks, run_bytes) = (chunks.to_vec(), vec![0; chunks.len()]);
        ContainerRecord { chunks, run_bytes, ..sealed.record.clone() }
    };
    for chunks in [&[][..], &[run(10, 1)], &[run(11, 2), run(20, 1)], &[run(10, 4), run(20, 1)]] {
        let reader = from_index(&record(chunks), &sealed).unwrap();
        assert_eq!(reader.record().chunks, chunks);
        assert_eq!(reader.index().places().len(), 5, "what is superseded is still there to be read");
    }
    for chunks in [&[run(9, 2)][..], &[run(10, 5)], &[run(13, 1), run(19, 2)], &[run(40, 1)], &[run(20, 2)]] {
        assert!(from_index(&record(chunks), &sealed).unwrap_err().is_damage(), "{chunks:?}");
    }
    for held in [4, 6, u64::MAX] {
        let record = ContainerRecord { held, ..sealed.record.clone() };
        assert!(from_index(&record, &sealed).unwrap_err().is_damage(), "{held}");
    }
    let run_bytes = sealed.record.run_bytes.iter().map(|bytes| bytes + 1).collect();
    let record = ContainerRecord { run_bytes, ..sealed.record.clone() };
    assert!(from_index(&record, &sealed).unwrap_err().is_damage());
    let record = ContainerRecord { has_deltas: false, ..sealed.record.clone() };
    assert!(from_index(&record, &sealed).unwrap_err().is_damage());
}

#[test]
fn lists_of_bases_that_cannot_be_are_refused_by_the_writer() {
    let good = delta(&[(1, noise(1, 100))], &[(5, noise(1, 100)), (6, noise(2, 50))]);
    let metadata = ChunkNumber::METADATA_FIRST;
    for bases in [
        vec![ChunkNumber(2), ChunkNumber(1)],
        vec![ChunkNumber(1); 2],
        vec![ChunkNumber(5)],
        vec![ChunkNumber(1), metadata],
    ] {
        let mut builder = ContainerBuilder::new(&keys(), SERIES, ID, ContainerKind::Data).unwrap();
        assert!(builder.push(&EncodedRegion { bases: bases.clone(), ..good.clone() }).is_err(), "{bases:?}");
        assert!(builder.is_empty());
    }
}

/// An index of one region with these bases, as they lie on disk, that holds the chunks 5 and 6.
fn hostile(bases: &[(u64, u64)]) -> Result<ContainerIndex, StoreError> {
    let good = region(&[(5, noise(1, 100)), (6, noise(2, 50))]);
    let mut bytes = crate::encoding::encode(&StoredRegion::of(&good).unwrap()).unwrap();
    let head = crate::encoding::encode(&(u32::try_from(good.payload.len()).unwrap(), good.codec)).unwrap();
    // Behind the head comes an empty list of bases, one byte.
    let rest = bytes.split_off(head.len() + 1);
    let index = [head, crate::encoding::encode(&bases.to_vec()).unwrap(), rest].concat();
    let end = (crate::sealed::HEADER_BYTES + good.payload.len() + crate::sealed::TAG_BYTES) as u64;
    ContainerIndex::decode(&ObjectName::Container(ContainerKind::Data, SERIES, ID), ContainerKind::Data, end, &index)
}

#[test]
fn lists_of_bases_that_cannot_be_are_refused_by_the_reader() {
    let index = hostile(&[(2, 2), (4, 1)]).unwrap();
    assert_eq!(index.regions()[0].bases, [2, 3, 7].map(ChunkNumber));
    assert!(index.has_deltas());
    let metadata = ChunkNumber::METADATA_FIRST.0;
    let bad: [(&str, &[(u64, u64)]); 9] = [
        ("twice", &[(2, 1), (0, 1)]),
        ("a member", &[(6, 1)]),
        ("a member within a run", &[(1, 9)]),
        ("of the other kind", &[(metadata, 1)]),
        ("partly of the other kind", &[(metadata - 1, 2)]),
        ("an empty run", &[(7, 0)]),
        ("past the end of numbers", &[(u64::MAX, 1), (1, 1)]),
        ("too many", &[(7, BASES_MAX as u64 + 1)]),
        ("far too many", &[(7, u64::MAX), (7, u64::MAX)]),
    ];
    for (what, bases) in bad {
        let error = hostile(bases).expect_err(what);
        assert!(error.is_damage(), "{what}: {error}");
    }
    assert_eq!(hostile(&[(7, BASES_MAX as u64)]).unwrap().regions()[0].bases.len(), BASES_MAX);
}

proptest! {
    #[test]
    fn no_altered_index_with_bases_makes_the_reader_panic(changes in prop::collection::vec((0usize..300, any::<u8>()), 1..4)) {
        let name = ObjectName::Container(ContainerKind::Data, SERIES, ID);
        let delta = delta(&[(1, noise(1, 300)), (4, noise(4, 30))], &[(10, noise(1, 300)), (12, noise(2, 100))]);
        let mut index = crate::encoding::encode(&StoredRegion::of(&delta).unwrap()).unwrap();
        let length = index.len();
        for (at, byte) in changes {
            index[at % length] = byte;
        }
        let end = (crate::sealed::HEADER_BYTES + delta.payload.len() + crate::sealed::TAG_BYTES) as u64;
        if let Ok(index) = ContainerIndex::decode(&name, ContainerKind::Data, end, &index) {
            for region in index.regions() {
                prop_assert!(region.bases.is_sorted_by(|a, b| a < b) && region.bases.len() <= BASES_MAX);
            }
        }
    }
}
