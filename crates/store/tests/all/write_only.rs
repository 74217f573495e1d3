//! Sealing and opening with the real keys of a write-only client: what it can do, and what it cannot.

use siltstone_store::config::{ChunkerSettings, Config};
use siltstone_store::container::{ContainerBuilder, ContainerKind, ContainerReader, SealedContainer};
use siltstone_store::region::{ChunkEntry, EncodedRegion, RegionEncoder};
use siltstone_store::sealed::{KeyMode, ObjectHeader, ObjectKey, ObjectKind, open_object, seal_object};
use siltstone_store::storage::ObjectName;
use siltstone_store::{
    ChunkNumber, ContainerId, Epoch, KeyId, MasterKey, RepositoryId, RepositoryKeys, SeriesId, StoreError, Time,
};

const REPOSITORY: RepositoryId = RepositoryId([2; 16]);
const ID: ContainerId = ContainerId { lease: 3, serial: 1 };

fn master(byte: u8) -> MasterKey {
    MasterKey::from_bytes([byte; 32])
}

fn full() -> RepositoryKeys {
    RepositoryKeys::derive(&master(1), REPOSITORY)
}

fn client_of(keys: &RepositoryKeys, series: &str) -> RepositoryKeys {
    let chunker = ChunkerSettings { name: "lagged".into(), min_bytes: 64, average_bytes: 128, max_bytes: 256 };
    let config = Config::new(REPOSITORY, chunker, Time::default(), KeyId([1; 16]));
    keys.write_only(series, &config).unwrap().keys()
}

fn container(keys: &RepositoryKeys, series: SeriesId) -> Result<SealedContainer, StoreError> {
    let bytes = vec![7; 5000];
    let chunk = ChunkEntry { number: ChunkNumber(0), fingerprint: keys.fingerprint(&bytes), length: 5000 };
    let mut builder = ContainerBuilder::new(keys, series, ID, ContainerKind::Data)?;
    builder.push(&EncodedRegion::encode(&mut RegionEncoder::fast(1), vec![chunk], &bytes)?)?;
    builder.finish()
}

fn whole(keys: &RepositoryKeys, series: SeriesId, object: &[u8]) -> Result<ContainerReader, StoreError> {
    ContainerReader::from_object(keys, series, ContainerKind::Data, ID, object)
}

#[test]
fn names_and_fingerprints_are_those_of_the_repository() {
    let (full, client) = (full(), client_of(&full(), "home"));
    assert_eq!(client.series_id("home"), full.series_id("home"));
    assert_ne!(client.series_id("other"), full.series_id("other"));
    assert_eq!(client.fingerprint(b"x"), full.fingerprint(b"x"));
    assert_eq!(client.metadata_fingerprint(b"x"), full.metadata_fingerprint(b"x"));
    assert_eq!((client.chunker_key(), client.cache_key()), (full.chunker_key(), full.cache_key()));
    assert_eq!(client.write_only_series(), Some((full.series_id("home"), "home")));
    assert!(full.write_only_series().is_none());
}

#[test]
fn what_a_client_seals_opens_with_the_master_key_and_for_itself_while_it_runs() {
    let (full, client) = (full(), client_of(&full(), "home"));
    let series = full.series_id("home");
    let SealedContainer { bytes, record } = container(&client, series).unwrap();
    assert_eq!((record.mode, record.epoch), (KeyMode::Recipient, Epoch::FIRST));
    let header = ObjectHeader::parse(&"it", &bytes).unwrap();
    assert_eq!((header.mode, header.salt), (KeyMode::Recipient, record.salt));
    assert_eq!(*whole(&full, series, &bytes).unwrap().record(), record);
    assert!(ContainerReader::open_in(&full, series, &record, &bytes).is_ok());
    assert!(ContainerReader::open_in(&client, series, &record, &bytes).is_ok(), "it reads back what it wrote");
    let later = client_of(&full, "home");
    assert!(matches!(whole(&later, series, &bytes), Err(StoreError::WriteOnly { .. })));
    let rotated = RepositoryKeys::derive_all(&[master(1)], &master(9), REPOSITORY);
    assert_eq!(whole(&rotated, series, &bytes).unwrap().record().epoch, Epoch(1));
    let after = container(&client_of(&rotated, "home"), series).unwrap();
    assert_eq!(whole(&rotated, series, &after.bytes).unwrap().record().epoch, Epoch(2));
}

#[test]
fn what_a_client_seals_is_nothing_under_another_series_name_or_in_another_repository() {
    let (full, client) = (full(), client_of(&full(), "home"));
    let (own, other) = (full.series_id("home"), full.series_id("other"));
    let sealed = container(&client, own).unwrap();
    assert!(matches!(whole(&full, other, &sealed.bytes), Err(StoreError::Misplaced { .. })));
    let opened = ContainerReader::open_in(&full, other, &sealed.record, &sealed.bytes);
    assert!(opened.is_err_and(|error| error.is_damage()));
    assert!(matches!(container(&client, other), Err(StoreError::WriteOnly { .. })));
    let elsewhere = RepositoryKeys::derive(&master(1), RepositoryId([3; 16]));
    assert!(matches!(whole(&elsewhere, own, &sealed.bytes), Err(StoreError::Misplaced { .. })));
    // A public key that was found is of no use without the write key: the write key of the other series is another.
    let of_other = container(&client_of(&full, "other"), other).unwrap();
    assert!(matches!(whole(&full, own, &of_other.bytes), Err(StoreError::Misplaced { .. })));
}

#[test]
fn a_record_that_states_the_other_mode_opens_nothing() {
    let (full, client) = (full(), client_of(&full(), "home"));
    let series = full.series_id("home");
    for keys in [&client, &full] {
        let sealed = container(keys, series).unwrap();
        let mut record = sealed.record.clone();
        record.mode = if record.mode == KeyMode::Derived { KeyMode::Recipient } else { KeyMode::Derived };
        assert!(ContainerReader::open_in(&full, series, &record, &sealed.bytes).is_err_and(|error| error.is_damage()));
    }
}

#[test]
fn of_what_is_sealed_whole_a_client_has_the_manifests_of_its_series_alone() {
    let (full, client) = (full(), client_of(&full(), "home"));
    let (own, other) = (full.series_id("home"), full.series_id("other"));
    let manifest = |series| (ObjectName::Manifest(series, 1), ObjectKind::Manifest);
    let (name, kind) = manifest(own);
    let by_client = seal_object(&client, &name, kind, b"content").unwrap();
    assert_eq!(open_object(&full, &name, kind, by_client).unwrap(), b"content");
    let by_full = seal_object(&full, &name, kind, b"content").unwrap();
    assert_eq!(open_object(&client, &name, kind, by_full.clone()).unwrap(), b"content");
    let stranger = client_of(&RepositoryKeys::derive(&master(5), REPOSITORY), "home");
    assert!(open_object(&stranger, &name, kind, by_full).is_err());
    for (name, kind) in [manifest(other), (ObjectName::Config(1), ObjectKind::Config)] {
        let object = seal_object(&full, &name, kind, b"content").unwrap();
        assert!(matches!(open_object(&client, &name, kind, object), Err(StoreError::WriteOnly { .. })));
        assert!(matches!(seal_object(&client, &name, kind, b"forged"), Err(StoreError::WriteOnly { .. })));
    }
    let data = container(&full, own).unwrap();
    assert!(matches!(whole(&client, own, &data.bytes), Err(StoreError::WriteOnly { .. })));
    let parity = ObjectKey::create(&client, ObjectName::Parity(own, ID), ObjectKind::Parity).unwrap();
    assert_eq!(parity.header().mode, KeyMode::Recipient);
}

#[test]
fn manifests_of_earlier_master_keys_open_with_a_new_key() {
    let rotated = RepositoryKeys::derive_all(&[master(1)], &master(9), REPOSITORY);
    let series = rotated.series_id("home");
    let (name, kind) = (ObjectName::Manifest(series, 1), ObjectKind::Manifest);
    let before = seal_object(&full(), &name, kind, b"before").unwrap();
    let (old, new) = (client_of(&full(), "home"), client_of(&rotated, "home"));
    assert_eq!(open_object(&new, &name, kind, before).unwrap(), b"before");
    let after = seal_object(&new, &name, kind, b"after").unwrap();
    assert_eq!(open_object(&rotated, &name, kind, after.clone()).unwrap(), b"after");
    assert!(matches!(open_object(&old, &name, kind, after), Err(StoreError::Misplaced { .. })));
}

#[test]
fn key_mode_1_of_any_other_kind_is_refused_by_name() {
    let keys = full();
    let name = ObjectName::Manifest(keys.series_id("home"), 1);
    let mut object = seal_object(&keys, &name, ObjectKind::Manifest, b"content").unwrap();
    object[11] = 1;
    let sum = blake3::hash(&object[..60]);
    object[60..64].copy_from_slice(&sum.as_bytes()[..4]);
    let error = open_object(&keys, &name, ObjectKind::Manifest, object).unwrap_err();
    assert!(matches!(&error, StoreError::UnknownFeature { feature, .. } if feature.contains('1')), "{error}");
}
