//! Bytes and requests that commits of a large series write: a manifest of 60 000 containers, 1 TB.

use crate::common::{self, holder, init, open};
use siltstone_store::container::{ContainerKind, ContainerRecord};
use siltstone_store::manifest::{Manifest, Snapshot};
use siltstone_store::repository::Repository;
use siltstone_store::sealed::{KeyMode, sealed_object_bytes};
use siltstone_store::series::{LeaseRequest, SeriesWriter, newest_manifest};
use siltstone_store::storage::{Cached, NameKind, Recorder, SimulatedRemote};
use siltstone_store::{ChunkNumber, ChunkRun, ContainerId, Epoch, SnapshotId, Time};
use std::sync::Arc;
use tempfile::TempDir;

const CONTAINERS: u32 = 60_000;
/// Chunks of a container.
const CHUNKS: u64 = 1000;

fn acquire(repository: &Repository) -> SeriesWriter<'_> {
    SeriesWriter::acquire(repository, &LeaseRequest::new("large", holder(1), "backup")).expect("the lease")
}

/// A container as a manifest records it. Every third was rewritten, and answers for some of its chunks.
fn record(id: ContainerId, first: u64) -> ContainerRecord {
    let run = |first, count| ChunkRun { first: ChunkNumber(first), count };
    let chunks = if id.serial.is_multiple_of(3) {
        (0..8).map(|part| run(first + part * 125, 40 + (first / CHUNKS + part) % 80)).collect()
    } else {
        vec![run(first, CHUNKS)]
    };
    let noise = blake3::hash(&[id.lease.to_le_bytes(), first.to_le_bytes()].concat());
    let jitter = u64::from(noise.as_bytes()[0]) << 8 | u64::from(noise.as_bytes()[1]);
    ContainerRecord {
        id,
        kind: ContainerKind::Data,
        salt: *noise.as_bytes(),
        epoch: Epoch::FIRST,
        mode: KeyMode::Derived,
        object_bytes: 1 << 24,
        index_offset: (1 << 24) - (1 << 17) - jitter,
        index_sealed_bytes: 20_000 + u32::from(noise.as_bytes()[2]),
        held: CHUNKS,
        has_deltas: false,
        level: 0,
        run_bytes: chunks.iter().map(|run| run.count * 16_384).collect(),
        chunks,
    }
}

/// The manifest with more containers, and a snapshot that needs all but the first chunks of some older ones.
fn grown(manifest: &Manifest, writer: &SeriesWriter<'_>, containers: u32, snapshot: u8) -> Manifest {
    let mut next = manifest.clone();
    for _ in 0..containers {
        let first = next.next_data.0;
        next.next_data = ChunkNumber(first + CHUNKS);
        next.containers.push(record(writer.new_container_id(), first));
    }
    let mut needs = next.containers.iter().flat_map(|record| &record.chunks).map(|run| run.range()).fold(
        roaring::RoaringTreemap::new(),
        |mut needs, range| {
            needs.insert_range(range);
            needs
        },
    );
    for place in 0..u64::from(snapshot) * 10 {
        needs.remove_range(place * 3_000_000 / 7..place * 3_000_000 / 7 + 20);
    }
    let snapshot = Snapshot { paths: vec![b"/home".to_vec()], ..common::snapshot(SnapshotId([snapshot; 32])) };
    next.push_snapshot(snapshot, &needs, &needs);
    next
}

#[test]
fn a_backup_into_a_large_series_writes_the_parts_that_changed() {
    let recorder = Arc::new(Recorder::new(SimulatedRemote::new()));
    let repository = init(recorder.clone());
    let mut writer = acquire(&repository);
    let first = grown(writer.manifest(), &writer, CONTAINERS, 1);
    writer.commit(first, false, Time::default()).expect("a first commit");
    recorder.reset();
    let mut writer = acquire(&repository);
    let next = grown(writer.manifest(), &writer, 60, 2);
    writer.commit(next.clone(), false, Time::default()).expect("a commit");
    let calls = recorder.reset();
    let kinds = [NameKind::Manifest, NameKind::ManifestPart, NameKind::Copy].map(|kind| calls.of_kind(kind));
    let bytes: u64 = kinds.iter().map(|calls| calls.bytes_written).sum();
    let requests: u64 = kinds.iter().map(|calls| calls.puts + calls.creates).sum();
    let stored = newest_manifest(&repository, writer.series()).expect("it reads").expect("a manifest");
    assert!(stored.manifest.containers == next.containers && stored.manifest.snapshots().len() == 2);
    // The lease and the snapshot, each with its copy.
    let whole = 4 * sealed_object_bytes(next.encode().expect("a manifest").len() as u64);
    let parts = stored.parts.table.ids().len();
    eprintln!("{bytes} bytes in {requests} requests, of {parts} parts; {whole} in 4 without parts");
    assert!(parts > 15 && requests < 24, "{requests} requests for some of {parts} parts");
    assert!(bytes * 8 < whole, "{bytes} bytes are written, {whole} would be without parts");
}

#[test]
fn a_machine_with_a_cache_fetches_the_parts_that_it_lacks() {
    let recorder = Arc::new(Recorder::new(SimulatedRemote::new()));
    let mut writer_repository = init(recorder.clone());
    let mut writer = acquire(&writer_repository);
    let first = grown(writer.manifest(), &writer, CONTAINERS, 1);
    writer.commit(first, false, Time::default()).expect("a first commit");
    let series = writer.series();
    drop(writer);
    let folder = TempDir::new().expect("a folder");
    let parts_read = || {
        let cached = Cached::open(recorder.clone(), folder.path(), 1 << 30).expect("a cache");
        let repository = open(Arc::new(cached));
        recorder.reset();
        newest_manifest(&repository, series).expect("it reads").expect("a manifest");
        recorder.reset().of_kind(NameKind::ManifestPart).reads
    };
    let all = parts_read();
    assert!(all > 15 && parts_read() == 0, "what was read once is here");
    writer_repository = open(recorder.clone());
    let mut writer = acquire(&writer_repository);
    let next = grown(writer.manifest(), &writer, 60, 2);
    writer.commit(next, false, Time::default()).expect("a commit");
    let again = parts_read();
    assert!(again > 0 && again < all / 2, "{again} of {all} parts are new");
}
