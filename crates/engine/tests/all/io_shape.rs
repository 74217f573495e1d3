//! How often the storage is asked: a restore reads every needed region once, forgetting whole containers reads none of
//! them.

use crate::common::scene::Scene;
use crate::common::{self, resources};
use siltstone_engine::VerifyWritten;
use siltstone_engine::restore::{self};
use siltstone_store::container::{ContainerKind, ContainerReader};
use siltstone_store::storage::{NameKind, RESERVE_MANIFESTS, Recorder, SimulatedDisk};
use std::sync::Arc;
use tempfile::TempDir;

type Recorded = Arc<Recorder<SimulatedDisk>>;

/// A scene whose storage counts.
fn recorded() -> (Scene, Recorded) {
    let mut scene = Scene::new();
    let recorder = Arc::new(Recorder::new(scene.disk.clone()));
    scene.sandbox.storage = recorder.clone();
    (scene, recorder)
}

#[test]
fn a_restore_reads_each_region_and_each_index_once() {
    let (mut scene, recorder) = recorded();
    // Several regions, chunks that occur in several files and in distant regions, and a second snapshot's containers
    // beside.
    let (one, two) = (common::noise(1, 5_000_000), common::noise(2, 3_000_000));
    scene.sandbox.write("a", &one);
    scene.sandbox.write("b", &two);
    scene.sandbox.write("c/both", &[two.as_slice(), &one].concat());
    scene.backup();
    scene.sandbox.write("d", &common::noise(3, 2_400_000));
    let id = scene.backup();

    let target = TempDir::new().expect("a temporary folder");
    let (repository, view) = (scene.sandbox.repository(), scene.sandbox.view(id));
    let options = scene.sandbox.restore_options(target.path()).with_verify(false);
    recorder.reset();
    let summary = restore::restore(&repository, &view, &options, &resources()).expect("a restore");
    assert_eq!((summary.problems, summary.files_restored), (0, 4));
    let calls = recorder.reset();

    let manifest = repository.manifest(view.series).expect("a manifest").expect("a manifest");
    let mut regions_of_data = 0;
    for record in &manifest.containers {
        let reader =
            ContainerReader::open(repository.storage(), repository.keys(), view.series, record).expect("opens");
        let regions = reader.index().regions().len() as u64;
        let of_this = calls.of(&record.object_name(view.series));
        assert_eq!(of_this.reads, 0, "no container is read whole: {}", record.id);
        if record.kind == ContainerKind::Data {
            let reads = 2..=1 + regions;
            assert!(reads.contains(&of_this.range_reads), "its index and its regions, each once: {}", record.id);
            assert!(of_this.bytes_read < record.object_bytes, "{}", record.id);
            regions_of_data += regions;
        } else {
            assert!(of_this.range_reads <= 1 + regions, "{}: {}", record.id, of_this.range_reads);
        }
    }
    assert!(regions_of_data >= 5, "{regions_of_data} regions");
    assert_eq!(calls.of_kind(NameKind::Manifest).reads, 1);
    assert_eq!(calls.of_kind(NameKind::Config).reads + calls.of_kind(NameKind::Key).reads, 0);
    let total = calls.total();
    assert_eq!((total.puts, total.creates, total.deletes), (0, 0, 0), "a restore writes nothing");
}

#[test]
fn restoring_one_file_reads_only_the_regions_it_needs() {
    let (mut scene, recorder) = recorded();
    scene.sandbox.write("large", &common::noise(1, 7_000_000));
    scene.sandbox.write("small", b"a few bytes");
    let id = scene.backup();
    let target = TempDir::new().expect("a temporary folder");
    let (repository, view) = (scene.sandbox.repository(), scene.sandbox.view(id));
    let path = scene.sandbox.source().join("small");
    let path = path.strip_prefix("/").expect("an absolute path").to_string_lossy().into_owned();
    let below = siltstone_store::catalog::EntryPath::new(path.into_bytes()).expect("a path");
    let options = scene.sandbox.restore_options(target.path()).with_below(Some(below));
    recorder.reset();
    let summary = restore::restore(&repository, &view, &options, &resources()).expect("a restore");
    assert_eq!((summary.problems, summary.files_restored), (0, 1));
    let calls = recorder.reset();
    assert!(calls.of_kind(NameKind::Container).bytes_read < 2_400_000, "{:?}", calls.of_kind(NameKind::Container));
}

#[test]
fn forgetting_whole_containers_reads_none_of_them() {
    let (mut scene, recorder) = recorded();
    // Where the tree of one snapshot hangs on that of the next, a part of what is forgotten stays.
    scene.migrate = false;
    for version in 0..3 {
        scene.sandbox.write("file", &common::noise(version, 300_000));
        scene.backup();
    }
    recorder.reset();
    let summary = scene.sandbox.forget(&scene.ids[1..2], false);
    assert_eq!((summary.containers_deleted, summary.containers_rewritten), (2, 0));
    let containers = recorder.reset().of_kind(NameKind::Container);
    assert_eq!((containers.reads, containers.range_reads, containers.deletes), (0, 0, 2));
    assert_eq!(scene.assert_sound(&scene.disk, "forgetting the second").len(), 2);
}

#[test]
fn a_backup_without_changes_reads_no_file_content_and_writes_one_small_container() {
    let (mut scene, recorder) = recorded();
    scene.sandbox.write("file", &common::noise(1, 900_000));
    scene.backup();
    recorder.reset();
    let options = scene.sandbox.options().with_sample_bytes(Some(0)).with_verify_written(VerifyWritten::Never);
    scene.sandbox.try_backup(&options).expect("a backup");
    let containers = recorder.reset().of_kind(NameKind::Container);
    assert!(containers.bytes_written < 16 << 10, "{containers:?}");
    assert!(containers.bytes_read < 64 << 10, "{containers:?}");
}

#[test]
fn a_sample_of_old_data_ends_where_it_is_told_to() {
    let (mut scene, recorder) = recorded();
    for number in 0..8 {
        scene.sandbox.write(&format!("file{number}"), &common::noise(number, 2_000_000));
    }
    scene.backup();
    let [none, little, more] = [0, 1, 5 << 20].map(|sample_bytes| {
        recorder.reset();
        let options =
            scene.sandbox.options().with_sample_bytes(Some(sample_bytes)).with_verify_written(VerifyWritten::Never);
        scene.sandbox.try_backup(&options).expect("a backup");
        recorder.reset().of_kind(NameKind::Container).bytes_read
    });
    assert!(none < 1 << 20, "{none}");
    assert!(little > none + (1 << 20) && little < none + (3 << 20), "one region: {little}");
    assert!(more > 5 << 20 && more < none + (8 << 20), "as many as it takes: {more}");
}

#[test]
fn settling_reads_of_the_new_snapshot_only_what_was_not_read_back() {
    let range_reads = |verify: VerifyWritten| {
        let (mut scene, recorder) = recorded();
        let mut content = common::noise(1, 3_000_000);
        scene.sandbox.write("file", &content);
        scene.backup();
        content.iter_mut().step_by(20_000).for_each(|byte| *byte ^= 1);
        scene.sandbox.write("file", &content);
        recorder.reset();
        let options = scene.sandbox.options().with_sample_bytes(Some(0)).with_verify_written(verify);
        let id = scene.sandbox.try_backup(&options).expect("a backup").snapshot.expect("a snapshot");
        let calls = recorder.reset();
        let view = scene.sandbox.view(id);
        let manifest = scene.sandbox.repository().manifest(view.series).expect("a manifest").expect("a manifest");
        assert!(manifest.unsettled.is_empty() && !manifest.dependents_depths.is_empty(), "old chunks are deltas");
        let needed = manifest.direct(1);
        let new = manifest.containers.iter().filter(|record| record.answers_for_any(&needed));
        let new = new.filter(|record| record.kind == ContainerKind::Data);
        new.map(|record| calls.of(&record.object_name(view.series)).range_reads).sum::<u64>()
    };
    assert_eq!(range_reads(VerifyWritten::Always), 1, "the index");
    assert!(range_reads(VerifyWritten::Never) > 1, "and bases");
}

#[test]
fn the_reserve_has_room_for_all_manifests_of_a_forget_that_rewrites() {
    let scene = Scene::unsettled();
    let recorder = Arc::new(Recorder::new(scene.disk.clone()));
    let sandbox = scene.sandbox.at(recorder.clone());
    let options = sandbox.forget_options(false).with_rewrite_threshold(0.0);
    let summary = sandbox.try_forget(&scene.ids[..1], &options).expect("forgetting");
    assert!(summary.containers_rewritten > 0);
    let calls = recorder.reset();
    let written = calls.of_kind(NameKind::Manifest).creates + calls.of_kind(NameKind::Copy).creates;
    assert!(written > 4 && written <= RESERVE_MANIFESTS, "{written}");
}
