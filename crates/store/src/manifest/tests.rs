use super::*;
use crate::container::ContainerKind;
use crate::error::StoreError;
use crate::testing::container;
use proptest::prelude::*;

const SERIES: SeriesId = SeriesId([7; 16]);

fn snapshot(serial: u8) -> Snapshot {
    Snapshot {
        id: SnapshotId([serial; 32]),
        time: Time { seconds: 1_700_000_000 + i64::from(serial), nanoseconds: 5 },
        made: Time { seconds: 1_700_000_009 + i64::from(serial), nanoseconds: 6 },
        host: "quarry".to_owned(),
        user: "mason".to_owned(),
        paths: vec![b"/home/mason".to_vec(), vec![b'/', 0xff]],
        tags: vec!["nightly".to_owned()],
        description: serial.is_multiple_of(2).then(|| "before the move".to_owned()),
        program: "silt 0.1.0".to_owned(),
        root: ChunkNumber(ChunkNumber::METADATA_FIRST.0 + u64::from(serial)),
        record: ChunkNumber(ChunkNumber::METADATA_FIRST.0 + u64::from(serial)),
        statistics: SnapshotStatistics {
            files: 12,
            logical_bytes: 1 << 33,
            deltas_kept: 560,
            deltas_rejected: 3,
            deltas_skipped: 12,
            bytes_migrated: 1 << 21,
            ..SnapshotStatistics::default()
        },
        partial: false,
        deleted: None,
    }
}

fn lease(host: &str) -> Lease {
    let holder = LeaseHolder {
        host: host.to_owned(),
        user: "mason".to_owned(),
        pid: 4711,
        boot: "b00f0c3e-6a4f-4b8e-9f57-0d1e2f3a4b5c".to_owned(),
        started_ticks: 1 << 40,
    };
    let since = Time { seconds: 1_700_000_000, nanoseconds: 0 };
    Lease { holder, since, purpose: "backup".to_owned(), number: 2, renewed_every_ms: 30_000 }
}

/// Snapshot i needs 50 chunks from 10 i on, and its catalog root.
fn manifest(snapshots: u8) -> Manifest {
    let mut manifest = Manifest::new(SERIES, "quarry:/home");
    manifest.sequence = 9;
    manifest.next_data = ChunkNumber(5000);
    manifest.next_metadata = ChunkNumber(ChunkNumber::METADATA_FIRST.0 + 300);
    manifest.containers.push(container(0, ContainerKind::Data, 0, 2000));
    manifest.containers.push(container(1, ContainerKind::Data, 2000, 3000));
    manifest.containers.push(container(2, ContainerKind::Metadata, ChunkNumber::METADATA_FIRST.0, 300));
    for serial in 0..snapshots {
        let first = u64::from(serial) * 10;
        let mut necessary: RoaringTreemap = (first..first + 50).collect();
        necessary.insert(ChunkNumber::METADATA_FIRST.0 + u64::from(serial));
        manifest.push_snapshot(snapshot(serial), &necessary, &necessary);
    }
    manifest
}

fn decode(manifest: &Manifest, bytes: &[u8]) -> Result<Manifest, StoreError> {
    Manifest::decode(&manifest.object_name(), bytes)
}

#[test]
fn what_was_encoded_is_decoded() {
    for count in [0, 1, 7] {
        let mut manifest = manifest(count);
        manifest.lease = (count > 0).then(|| lease("quarry"));
        let bytes = manifest.encode().unwrap();
        assert_eq!(decode(&manifest, &bytes).unwrap(), manifest);
        assert!(manifest.faults().is_empty(), "{:?}", manifest.faults());
    }
}

#[test]
fn what_is_noted_of_a_snapshot_goes_with_it_and_of_no_other_it_is_damage() {
    let mut manifest = manifest(4);
    let ids: Vec<_> = manifest.snapshots().iter().map(|snapshot| snapshot.id).collect();
    manifest.shortcuts = [(ids[1], Some(7)), (ids[2], None)].into();
    assert_eq!(decode(&manifest, &manifest.encode().unwrap()).unwrap(), manifest);
    let (before, gone) = (manifest.clone(), BTreeSet::from([ids[1]]));
    manifest.remove_snapshots(&gone);
    assert_eq!(manifest.shortcuts, [(ids[2], None)].into());
    let unsound = Manifest { shortcuts: before.shortcuts, ..manifest.clone() };
    assert!(decode(&unsound, &unsound.encode().unwrap()).is_err_and(|error| error.is_damage()));
    let unsound = Manifest { unsettled: gone, ..manifest };
    assert!(decode(&unsound, &unsound.encode().unwrap()).is_err_and(|error| error.is_damage()));
}

fn mark(at: i64, until: i64) -> Deleted {
    let time = |seconds| Time { seconds, nanoseconds: 999_999_999 };
    Deleted { at: time(at), until: time(until) }
}

#[test]
fn marks_of_deleted_snapshots_are_kept_and_their_times_do_not_change_the_size() {
    let mut manifest = manifest(4);
    let live = manifest.encode().unwrap().len();
    for at in [1, 3] {
        manifest.snapshots[at].deleted = Some(mark(5, 1_900_000_000));
    }
    let bytes = manifest.encode().unwrap();
    assert_eq!(decode(&manifest, &bytes).unwrap(), manifest);
    manifest.snapshots[1].deleted = Some(mark(i64::MIN, i64::MAX));
    assert_eq!(manifest.encode().unwrap().len(), bytes.len());
    assert_eq!(decode(&manifest, &manifest.encode().unwrap()).unwrap(), manifest);
    manifest.snapshots.iter_mut().for_each(|snapshot| snapshot.deleted = None);
    assert_eq!(manifest.encode().unwrap().len(), live, "nothing of a mark stays");
}

#[test]
fn marks_that_cannot_be_are_damage() {
    let mut manifest = manifest(2);
    let is_refused = |change: &dyn Fn(&mut Snapshot)| {
        let mut unsound = manifest.clone();
        change(&mut unsound.snapshots[1]);
        decode(&unsound, &unsound.encode().unwrap()).is_err_and(|error| error.is_damage())
    };
    assert!(is_refused(&|snapshot| snapshot.deleted = Some(mark(7, 6))), "it ends before it begins");
    assert!(is_refused(&|snapshot| {
        snapshot.deleted = Some(mark(6, 7));
        snapshot.partial = true;
    }));
    assert!(is_refused(&|snapshot| {
        let beyond = Time { seconds: 7, nanoseconds: 1_000_000_000 };
        snapshot.deleted = Some(Deleted { at: Time::default(), until: beyond });
    }));
    manifest.snapshots[1].deleted = Some(mark(6, 7));
    let bytes = manifest.encode().unwrap();
    for end in bytes.len() - 24..bytes.len() {
        assert!(decode(&manifest, &bytes[..end]).unwrap_err().is_damage(), "the mark is cut short");
    }
    assert!(decode(&manifest, &[&bytes[..], b"x"].concat()).unwrap_err().is_damage());
}

#[test]
fn a_mark_ends_with_its_time_and_never_by_a_clock_before_it() {
    let mark = mark(100, 200);
    let at = |seconds, nanoseconds| Time { seconds, nanoseconds };
    assert!(!mark.is_over(at(99, 0)) && !mark.is_over(at(200, 999_999_998)));
    assert!(mark.is_over(at(200, 999_999_999)) && mark.is_over(at(i64::MAX, 0)));
}

/// Statistics are the numbers that docs/FORMAT.md lists.
#[test]
fn statistics_are_eighteen_numbers_in_their_order() {
    let statistics = SnapshotStatistics {
        files: 1,
        directories: 2,
        others: 3,
        files_new: 4,
        files_changed: 5,
        files_unchanged: 6,
        logical_bytes: 7,
        read_bytes: 8,
        added_plain_bytes: 9,
        added_stored_bytes: 10,
        metadata_bytes: 11,
        chunks_new: 12,
        problems: 13,
        duration_ms: 14,
        deltas_kept: 15,
        deltas_rejected: 16,
        deltas_skipped: 17,
        bytes_migrated: 18,
    };
    assert_eq!(crate::encoding::encode(&statistics).unwrap(), (1..=18).collect::<Vec<u8>>());
}

#[test]
fn what_was_added_to_statistics_is_kept() {
    let mut manifest = manifest(3);
    manifest.snapshot_mut(&SnapshotId([1; 32])).expect("the second").statistics.bytes_migrated += 5;
    let decoded = decode(&manifest, &manifest.encode().unwrap()).unwrap();
    let moved: Vec<u64> = decoded.snapshots().iter().map(|snapshot| snapshot.statistics.bytes_migrated).collect();
    assert_eq!(moved, [1 << 21, (1 << 21) + 5, 1 << 21]);
}

#[test]
fn the_size_does_not_depend_on_what_is_random_or_late() {
    let mut manifest = manifest(5);
    let bytes = manifest.encode().unwrap().len();
    manifest.sequence = u64::MAX - 1;
    manifest.previous = [0xa7; 32];
    manifest.committed = Time { seconds: i64::MAX, nanoseconds: 999_999_999 };
    manifest.lease = Some(lease("a much longer name of a machine than before"));
    manifest.containers[1].salt = [0x5c; 32];
    assert_eq!(manifest.encode().unwrap().len(), bytes);
}

#[test]
fn a_lease_too_long_for_its_place_is_refused() {
    let mut manifest = manifest(1);
    manifest.lease = Some(lease(&"h".repeat(LEASE_BYTES_MAX)));
    assert!(matches!(manifest.encode(), Err(StoreError::Limit { .. })));
}

#[test]
fn a_body_beyond_the_memory_allowed_needs_more_of_it() {
    let manifest = manifest(1);
    let bytes = manifest.encode().unwrap();
    let decode = |body_bytes_max| Manifest::decode_within(&manifest.object_name(), &bytes, body_bytes_max);
    let Err(StoreError::NeedsMemory { found, limit: 1, .. }) = decode(1) else { panic!("a body was decompressed") };
    assert!(matches!(decode(found - 1), Err(StoreError::NeedsMemory { .. })) && decode(found).is_ok());
}

#[test]
fn a_manifest_in_anothers_place_is_refused() {
    let manifest = manifest(1);
    let bytes = manifest.encode().unwrap();
    for name in [ObjectName::Manifest(SERIES, 8), ObjectName::Manifest(SeriesId([8; 16]), 9)] {
        let error = Manifest::decode(&name, &bytes).unwrap_err();
        assert!(
            matches!(error, StoreError::Damaged { .. }) && error.to_string().contains(&name.to_string()),
            "{error}"
        );
    }
}

#[test]
fn removal_frees_what_only_the_removed_need() {
    let mut manifest = manifest(10);
    let ids = BTreeSet::from([SnapshotId([0; 32]), SnapshotId([4; 32]), SnapshotId([99; 32])]);
    let dead = manifest.dead_after_removal(&ids);
    let root = |serial: u64| ChunkNumber::METADATA_FIRST.0 + serial;
    // The first one alone needs its first ten; the fifth shares all its data with its neighbours.
    assert_eq!(dead, (0..10).chain([root(0), root(4)]).collect());
    let live = manifest.live();
    let removed = manifest.remove_snapshots(&ids);
    assert_eq!(removed.len(), 2);
    assert_eq!(manifest.snapshots().len(), 8);
    assert_eq!(manifest.live(), live - dead);
    assert!(manifest.verify_intervals().is_ok());
    assert_eq!(manifest.position(&SnapshotId([4; 32])), None);
    assert_eq!(manifest.necessary(3), (50..100).chain([root(5)]).collect());
    assert!(manifest.necessary(8).is_empty());
    assert!(manifest.faults().is_empty());
}

#[test]
fn what_comes_back_is_counted_in_between() {
    let mut manifest = manifest(5);
    let three = RoaringTreemap::from_iter([3, 44]);
    manifest.push_snapshot(snapshot(5), &three, &three);
    assert!(manifest.faults().is_empty(), "{:?}", manifest.faults());
    for position in 0..5 {
        let first = position * 10;
        let own: RoaringTreemap = (first..first + 50).chain([ChunkNumber::METADATA_FIRST.0 + position]).collect();
        let position = usize::try_from(position).unwrap();
        assert_eq!(manifest.direct(position), own, "what it refers to is as it was");
        assert_eq!(manifest.necessary(position), own | RoaringTreemap::from_iter([3]));
    }
    assert!(manifest.has_hulls());
    assert_eq!(decode(&manifest, &manifest.encode().unwrap()).unwrap(), manifest);
    // Without the one that had it again, those between are still said to need it, until that is said anew.
    manifest.remove_snapshots(&BTreeSet::from([SnapshotId([5; 32])]));
    assert!(manifest.necessary(4).contains(3) && manifest.faults().is_empty());
    let needs = manifest.direct.clone();
    manifest.replace_necessary(needs);
    assert_eq!(manifest.necessary(1), manifest.direct(1));
    assert!(!manifest.has_hulls());
}

#[test]
fn removing_all_leaves_nothing_necessary() {
    let mut manifest = manifest(4);
    let ids = manifest.snapshots().iter().map(|snapshot| snapshot.id).collect();
    assert_eq!(manifest.dead_after_removal(&ids), manifest.live());
    manifest.remove_snapshots(&ids);
    assert!(manifest.live().is_empty() && manifest.snapshots().is_empty());
    assert_eq!(decode(&manifest, &manifest.encode().unwrap()).unwrap(), manifest);
}

#[test]
fn contradictions_are_found() {
    type Break = fn(&mut Manifest);
    let breaks: [(&str, Break); 7] = [
        ("twice", |manifest| {
            manifest.containers[1].id = manifest.containers[0].id;
        }),
        ("later lease", |manifest| manifest.containers[1].id.lease = 10),
        ("another container", |manifest| {
            manifest.containers[1].chunks[0].first = ChunkNumber(1999);
        }),
        ("in no container", |manifest| drop(manifest.containers.remove(0))),
        ("never given out", |manifest| manifest.next_data = ChunkNumber(4999)),
        ("later manifest", |manifest| {
            manifest.lease = Some(Lease { number: manifest.sequence + 1, ..lease("quarry") });
        }),
        ("needed again", |manifest| {
            let three = RoaringTreemap::from_iter([3]);
            manifest.snapshots.push(snapshot(50));
            manifest.direct.push(&three);
            manifest.necessary.push(&three);
        }),
    ];
    for (expected, break_it) in breaks {
        let mut manifest = manifest(6);
        break_it(&mut manifest);
        let faults: Vec<String> = manifest.faults().iter().map(ToString::to_string).collect();
        assert!(faults.iter().any(|fault| fault.contains(expected)), "{expected}: {faults:?}");
    }
}

#[test]
fn differences_of_many_snapshots_stay_small() {
    let mut manifest = Manifest::new(SERIES, "large");
    // A million chunks, of which each snapshot replaces a thousand in a hundred places.
    let mut necessary = RoaringTreemap::new();
    necessary.insert_range(0..1_000_000);
    for serial in 0..100u8 {
        let fresh = 1_000_000 + u64::from(serial) * 1000;
        for place in 0..100 {
            let old = (u64::from(serial) * 7919 + place * 10_000) % 1_000_000;
            necessary.remove_range(old..old + 10);
        }
        necessary.insert_range(fresh..fresh + 1000);
        manifest.push_snapshot(snapshot(serial), &necessary, &necessary);
    }
    let bytes = manifest.encode().unwrap().len();
    assert!(bytes < 100_000, "{bytes} bytes");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn damage_gives_an_error_that_names_the_object(place: prop::sample::Index, flip in 1u8.., cut: bool) {
        let mut manifest = manifest(3);
        manifest.lease = Some(lease("quarry"));
        let mut bytes = manifest.encode().unwrap();
        let place = place.index(bytes.len());
        if cut { bytes.truncate(place) } else { bytes[place] ^= flip }
        match decode(&manifest, &bytes) {
            Ok(_) => prop_assert!(!cut),
            Err(error) => prop_assert!(error.to_string().contains("series/"), "{}", error),
        }
    }

    #[test]
    fn any_bitmaps_are_no_reason_to_panic(bytes: Vec<u8>) {
        let _ = codec::read_bitmap(&bytes, &ObjectName::Manifest(SERIES, 1));
    }
}

/// A run of 2^40 numbers takes ten bytes, and hours and all memory to mark number by number.
#[test]
fn a_container_that_cannot_hold_its_chunks_is_refused() {
    for count in [7710, 1 << 20, 1 << 40, u64::MAX >> 1] {
        let mut manifest = Manifest::new(SERIES, "series");
        manifest.sequence = 1;
        manifest.containers.push(container(0, ContainerKind::Data, 0, count));
        let read = Manifest::decode(&manifest.object_name(), &manifest.encode().unwrap());
        assert_eq!(read.is_ok(), count <= (1 << 17) / 17, "{count}: {read:?}");
    }
}
