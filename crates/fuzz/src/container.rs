//! Containers: trailer, index, regions.

use crate::parts;
use crate::sealing::{KEYS, SERIES, object_key, seal};
use siltstone_store::ContainerId;
use siltstone_store::container::{ContainerKind, ContainerReader, TRAILER_BYTES};
use siltstone_store::region::RegionDecoder;
use siltstone_store::sealed::PieceNumber;
use siltstone_store::storage::ObjectName;

/// Which container it is.
pub(crate) const ID: ContainerId = ContainerId { lease: 1, serial: 2 };
/// Bytes that are decoded: a few of input may stand for any number.
const PLAIN_BYTES_MAX: u64 = 64 << 20;
/// Stands for the bytes of each base.
const BASE: &[u8] = b"the bytes of some base, which no delta was made against";

/// A container from the plain bytes of its pieces: the kind, then the payloads of its regions, the last part its index.
pub(crate) fn container(data: &[u8]) -> bool {
    let Some((kind, data)) = data.split_first() else { return false };
    let kind = if kind & 1 == 0 { ContainerKind::Data } else { ContainerKind::Metadata };
    let pieces = parts(data);
    let Some((index, regions)) = pieces.split_last() else { return false };
    let object = sealed_container(kind, regions, index);
    let Ok(reader) = ContainerReader::from_object(&KEYS, SERIES, kind, ID, &object) else { return false };
    assert_eq!(reader.record().kind, kind);
    assert!(reader.index().places().len() <= index.len(), "as many chunks as were paid for");
    let listed = ContainerReader::open_in(&KEYS, SERIES, reader.record(), &object).expect("its own record is of it");
    assert_eq!(listed.index(), reader.index());
    decode(&reader, &object)
}

/// Decodes all regions; says whether they could be.
fn decode(reader: &ContainerReader, object: &[u8]) -> bool {
    let mut decoder = RegionDecoder::new();
    let regions = reader.index().regions();
    if regions.iter().map(|region| u64::from(region.plain_bytes)).sum::<u64>() > PLAIN_BYTES_MAX {
        return false;
    }
    let _ = ContainerReader::check(&KEYS, SERIES, reader.record(), object, &mut decoder);
    let mut decoded = 0;
    for (number, region) in regions.iter().enumerate() {
        let bases = vec![BASE; region.bases.len()];
        let sealed = reader.sealed_in(object, number).expect("a region lies in its container").to_vec();
        if let Ok(plain) = reader.open_region(number, sealed, &mut decoder, &bases) {
            assert_eq!(plain.len(), region.plain_bytes as usize);
            let _ = reader.verify_region(&KEYS, number, &plain);
            decoded += 1;
        }
    }
    decoded > 0
}

/// Seals the pieces, with a trailer that fits.
pub(crate) fn sealed_container(kind: ContainerKind, regions: &[&[u8]], index: &[u8]) -> Vec<u8> {
    let key = object_key(ObjectName::Container(kind, SERIES, ID), kind.object_kind());
    let mut object = key.header().to_bytes().to_vec();
    for (number, payload) in (0..).zip(regions) {
        seal(&key, PieceNumber(number), payload, &mut object);
    }
    let offset = object.len() as u64;
    seal(&key, PieceNumber::INDEX, index, &mut object);
    let index_bytes = object.len() as u64 - offset;
    seal(&key, PieceNumber::PADDING, &[], &mut object);
    let object_bytes = (object.len() + TRAILER_BYTES) as u64;
    let trailer: Vec<u8> = [offset, index_bytes, object_bytes, 0].into_iter().flat_map(u64::to_le_bytes).collect();
    seal(&key, PieceNumber::TRAILER, &trailer, &mut object);
    object
}
