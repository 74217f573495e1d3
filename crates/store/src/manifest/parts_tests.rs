//! Manifests in parts.

use super::parts::{Outline, PartTable, text_of};
use super::*;
use crate::catalog::wire::mix;
use crate::container::ContainerKind;
use crate::error::StoreError;
use crate::ids::PartId;
use crate::testing::container;
use proptest::prelude::*;
use std::collections::HashMap;

const PART_BYTES: usize = 4096;

/// A manifest with this many containers, of a thousand chunks each, all of one snapshot.
fn manifest(containers: u32) -> Manifest {
    let mut manifest = Manifest::new(SeriesId([7; 16]), "quarry");
    manifest.sequence = 9;
    (0..containers).for_each(|serial| add_container(&mut manifest, serial));
    let live = (0..manifest.next_data.0).collect();
    manifest.push_snapshot(snapshot(1), &live, &live);
    let is_base = |number: &u64| mix(*number).is_multiple_of(32);
    manifest.dependents_depths = vec![live.iter().filter(is_base).collect()];
    manifest
}

fn add_container(manifest: &mut Manifest, serial: u32) {
    let first = manifest.next_data;
    manifest.next_data = ChunkNumber(first.0 + 1000);
    manifest.containers.push(ContainerRecord {
        salt: *blake3::hash(&serial.to_le_bytes()).as_bytes(),
        object_bytes: 1 << 24,
        index_offset: (1 << 24) - (1 << 15) - u64::from(serial % 997),
        index_sealed_bytes: 20_000,
        has_deltas: serial.is_multiple_of(3),
        run_bytes: vec![16_000_000],
        ..container(serial, ContainerKind::Data, first.0, 1000)
    });
}

fn snapshot(serial: u8) -> Snapshot {
    Snapshot {
        id: SnapshotId([serial; 32]),
        time: Time::default(),
        made: Time::default(),
        host: "quarry".to_owned(),
        user: "mason".to_owned(),
        paths: Vec::new(),
        tags: Vec::new(),
        description: None,
        program: "silt".to_owned(),
        root: ChunkNumber::METADATA_FIRST,
        record: ChunkNumber::METADATA_FIRST,
        statistics: SnapshotStatistics::default(),
        partial: false,
        deleted: None,
    }
}

/// A place for parts, which counts what is written.
#[derive(Default)]
struct Place {
    parts: HashMap<PartId, Vec<u8>>,
    written: usize,
    next: u32,
}

impl Place {
    /// Writes a manifest, and returns the bytes of its object and its parts.
    fn write(&mut self, manifest: &Manifest, before: &PartTable) -> (Vec<u8>, PartTable) {
        let mut outline = Outline::in_parts(manifest, PART_BYTES, before).unwrap();
        self.written = 0;
        for part in outline.take_new() {
            let id = PartId { lease: 9, serial: self.next };
            self.next += 1;
            self.written += 1;
            outline.name(&part, id);
            self.parts.insert(id, part.content);
        }
        (manifest.encode_root(&outline).unwrap(), outline.table().clone())
    }

    fn texts(&self, root: &ManifestRoot) -> Vec<Vec<u8>> {
        let text = |record| text_of(&"a part", record, self.parts[&record.id].clone()).unwrap();
        root.parts().records().map(text).collect()
    }

    fn read(&self, manifest: &Manifest, bytes: &[u8]) -> Result<Manifest, StoreError> {
        let name = manifest.object_name();
        let root = ManifestRoot::decode_within(&name, bytes, BODY_BYTES_MAX as u64)?;
        let texts = self.texts(&root);
        root.complete(&name, texts)
    }
}

#[test]
fn a_manifest_in_parts_is_read_as_it_was_written() {
    let manifest = manifest(1500);
    let mut place = Place::default();
    let (bytes, table) = place.write(&manifest, &PartTable::default());
    assert!(table.of_lists.iter().filter(|parts| parts.len() > 3).count() >= 3, "{table:?}");
    assert_eq!(place.read(&manifest, &bytes).unwrap(), manifest);
    assert!(bytes.len() < 8192, "{} bytes of the manifest itself", bytes.len());
    assert!(Manifest::decode(&manifest.object_name(), &bytes).unwrap_err().is_damage(), "its parts are needed");
}

#[test]
fn a_small_manifest_has_no_parts() {
    let manifest = manifest(20);
    let (bytes, table) = Place::default().write(&manifest, &PartTable::default());
    assert!(table.is_empty());
    assert_eq!(bytes, manifest.encode().unwrap());
}

#[test]
fn a_commit_writes_the_parts_that_changed() {
    let mut manifest = manifest(3000);
    let mut place = Place::default();
    let (_, first) = place.write(&manifest, &PartTable::default());
    let all = place.written;
    let (_, same) = place.write(&manifest, &first);
    assert!(place.written == 0 && same == first, "nothing changed");
    // A snapshot and its container.
    add_container(&mut manifest, 3000);
    let live = (1000..manifest.next_data.0).collect();
    manifest.push_snapshot(snapshot(2), &live, &live);
    let (_, added) = place.write(&manifest, &first);
    assert!(all > 60 && (1..=3).contains(&place.written), "{} of {all}", place.written);
    // A container that goes from the middle.
    manifest.containers.remove(1234);
    let (bytes, _) = place.write(&manifest, &added);
    assert!((1..=6).contains(&place.written), "{} of {all}", place.written);
    assert_eq!(place.read(&manifest, &bytes).unwrap(), manifest);
}

#[test]
fn texts_that_are_the_same_make_one_part() {
    let mut manifest = manifest(600);
    manifest.containers.iter_mut().for_each(|record| record.salt = [0; 32]);
    let mut place = Place::default();
    let (bytes, table) = place.write(&manifest, &PartTable::default());
    let hashes: BTreeSet<_> = table.records().map(|record| record.hash).collect();
    assert_eq!((place.written, table.ids().len()), (hashes.len(), hashes.len()));
    assert_eq!(place.read(&manifest, &bytes).unwrap(), manifest);
}

#[test]
fn sizes_do_not_depend_on_salts_and_names() {
    let mut manifest = manifest(2000);
    let (bytes, table) = Place::default().write(&manifest, &PartTable::default());
    manifest.containers.iter_mut().for_each(|record| record.salt = *blake3::hash(&record.salt).as_bytes());
    let (again, others) = Place { next: 1 << 20, ..Place::default() }.write(&manifest, &PartTable::default());
    let sizes = |table: &PartTable| table.records().map(PartRecord::object_bytes).collect::<Vec<_>>();
    assert_eq!((again.len(), sizes(&others)), (bytes.len(), sizes(&table)));
}

#[test]
fn a_part_that_is_not_the_one_named_is_refused() {
    let manifest = manifest(1500);
    let mut place = Place::default();
    let (_, table) = place.write(&manifest, &PartTable::default());
    let records: Vec<_> = table.records().collect();
    for (record, other) in records.iter().zip(records.iter().skip(1)) {
        let read = |content| text_of(&"a part", record, content);
        let content = place.parts[&record.id].clone();
        assert!(read(content.clone()).is_ok());
        assert!(read(place.parts[&other.id].clone()).unwrap_err().is_damage());
        assert!(read(content[1..].to_vec()).unwrap_err().is_damage());
        assert!(read([&[content[0] ^ 1], &content[1..]].concat()).unwrap_err().is_damage());
    }
}

#[test]
fn parts_count_for_the_memory_that_is_allowed() {
    let manifest = manifest(1500);
    let (bytes, table) = Place::default().write(&manifest, &PartTable::default());
    let read = |limit| ManifestRoot::decode_within(&manifest.object_name(), &bytes, limit);
    assert!(matches!(read(table.plain_bytes()), Err(StoreError::NeedsMemory { .. })));
    assert!(read(table.plain_bytes() + 8192).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn damage_of_a_manifest_in_parts_is_no_reason_to_panic(place: prop::sample::Index, flip in 1u8.., cut: bool) {
        let manifest = manifest(300);
        let (mut bytes, _) = Place::default().write(&manifest, &PartTable::default());
        let place = place.index(bytes.len());
        if cut { bytes.truncate(place) } else { bytes[place] ^= flip }
        let read = ManifestRoot::decode_within(&manifest.object_name(), &bytes, BODY_BYTES_MAX as u64);
        prop_assert!(!cut || read.is_err_and(|error| error.is_damage()));
    }
}
