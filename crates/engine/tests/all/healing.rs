//! A chunk found damaged is stored again under its number while the source still has its content: the next snapshot is
//! whole, and so are the older ones that need it, and what hangs on it.

use crate::checkpoints::every_piece;
use crate::common::faults::{copy, without_parity};
use crate::common::log::Log;
use crate::common::scene::Scene;
use crate::common::writer::{acquire, distant_holder};
use crate::common::{self, Sandbox, heard_by, noise, resources};
use siltstone_engine::VerifyWritten;
use siltstone_engine::backup::{self, BackupOptions, BackupSummary, Source};
use siltstone_engine::check::{self, CheckOptions, CheckReport, ReadData, RecordOutcome};
use siltstone_engine::delta::Deltas;
use siltstone_engine::maintain::{self};
use siltstone_engine::{EngineError, Notice};
use siltstone_store::container::{ContainerKind, ContainerReader, ContainerRecord};
use siltstone_store::manifest::Manifest;
use siltstone_store::storage::{Damage, Fault, SimulatedDisk, Storage};
use siltstone_store::{SeriesId, SnapshotId, StoreError, Time};

/// Three snapshots whose data fills several regions; the second and third differ from the one before in a few bytes, so
/// that what they replaced hangs on them as deltas. The source is as in the last.
fn scene(deltas: Deltas) -> Scene {
    let mut scene = Scene::new();
    for number in 0..6 {
        scene.sandbox.write(&format!("noise/{number}"), &noise(number, 700_000));
    }
    let mut edited = noise(9, 400_000);
    for round in 0..3usize {
        edited[round * 100_000..][..4].copy_from_slice(b"edit");
        scene.sandbox.write("edited", &edited);
        let options = scene.sandbox.options().with_force(true).with_deltas(deltas);
        // What changed just before a backup is taken for changed by the next.
        std::thread::sleep(std::time::Duration::from_millis(60));
        let id = scene.sandbox.try_backup(&options).expect("a backup").snapshot.expect("a snapshot");
        scene.ids.push(id);
        scene.trees.insert(id, scene.source());
    }
    scene
}

/// The options of a backup that looks at nothing old by itself, so that only what is recorded counts.
fn unsuspecting(sandbox: &Sandbox) -> BackupOptions {
    sandbox.options().with_force(true).with_sample_bytes(Some(0))
}

fn manifest(sandbox: &Sandbox) -> Manifest {
    let repository = sandbox.repository();
    let series = repository.keys().series_id("test");
    repository.manifest(series).expect("a manifest").expect("a manifest")
}

fn recording(sandbox: &Sandbox, read_data: ReadData) -> CheckReport {
    let options = CheckOptions::reading(read_data).with_record(Some("user".into()));
    check::check(&sandbox.repository(), &options, &resources()).expect("a check")
}

/// Every region of the series' containers, with the numbers it answers for.
fn regions(sandbox: &Sandbox) -> Vec<(ContainerRecord, u64, Vec<u64>)> {
    let repository = sandbox.repository();
    let manifest = manifest(sandbox);
    let mut regions = Vec::new();
    for record in &manifest.containers {
        let reader = ContainerReader::open(repository.storage(), repository.keys(), manifest.series, record);
        for entry in reader.expect("the container opens").index().regions() {
            let numbers = entry.chunks.iter().map(|chunk| chunk.number.0);
            let answered = numbers.filter(|number| record.chunks.iter().any(|run| run.range().contains(number)));
            regions.push((record.clone(), entry.offset + 20, answered.collect()));
        }
    }
    regions
}

fn flipped(disk: &SimulatedDisk, series: SeriesId, record: &ContainerRecord, offset: u64) -> SimulatedDisk {
    let disk = without_parity(disk);
    assert!(disk.damage(&record.object_name(series), Damage::Flip { offset, mask: 4 }));
    disk
}

/// Whether the snapshot restores to what it was made of.
fn restores(sandbox: &Sandbox, scene: &Scene, id: SnapshotId) -> bool {
    let target = tempfile::TempDir::new().expect("a temporary folder");
    let log = Log::default();
    let view = sandbox.view(id);
    let result = siltstone_engine::restore::restore(
        &sandbox.repository(),
        &view,
        &sandbox.restore_options(target.path()),
        &heard_by(&log),
    );
    let below = target.path().join(sandbox.source().strip_prefix("/").expect("an absolute path"));
    result.is_ok()
        && log.problems().is_empty()
        && common::tree::read(&below) == scene.trees.get(&id).cloned().unwrap_or_else(|| scene.source())
}

fn snapshot(summary: Result<BackupSummary, EngineError>) -> SnapshotId {
    summary.expect("a backup").snapshot.expect("a snapshot")
}

/// Flips every region there is in turn, has a check find it, and backs up.
fn heal_every_region(deltas: Deltas, has_cache: bool) {
    let scene = scene(deltas);
    let series = manifest(&scene.sandbox).series;
    let last = manifest(&scene.sandbox).direct(2);
    let (mut healed, mut beyond_help) = (0, 0);
    for (record, offset, numbers) in regions(&scene.sandbox) {
        let sandbox = scene.sandbox.at(flipped(&scene.disk, series, &record, offset));
        let story = format!("{deltas:?}, cache {has_cache}: {} at {offset}", record.id);
        let report = recording(&sandbox, ReadData::All);
        let is_needed = !numbers.is_empty();
        assert_eq!(report.findings.is_empty(), !is_needed, "{story}");
        assert_eq!(report.harmless.is_empty(), is_needed, "{story}");
        assert_eq!(manifest(&sandbox).damaged.iter().collect::<Vec<_>>(), numbers, "{story}");

        let resources = if has_cache { sandbox.resources() } else { resources() };
        let options = unsuspecting(&sandbox).with_deltas(deltas);
        let summary =
            sandbox.try_backup_within(&options, &resources).unwrap_or_else(|error| panic!("{error}: {story}"));
        let id = summary.snapshot.expect("a snapshot");
        assert!(restores(&sandbox, &scene, id), "the new snapshot is whole: {story}");
        assert_eq!(manifest(&sandbox).faults().len(), 0, "{story}");
        // Nodes of a catalog hold the times of folders that others use too: they may be other nodes by now.
        if record.kind == ContainerKind::Data && numbers.iter().all(|number| last.contains(*number)) {
            assert!(!is_needed || summary.healed.chunks >= numbers.len() as u64, "{story}");
            assert!(scene.ids.iter().all(|id| restores(&sandbox, &scene, *id)), "older snapshots are whole: {story}");
            assert_eq!(manifest(&sandbox).damaged.len(), 0, "{story}");
            assert_eq!(recording(&sandbox, ReadData::All).findings, [], "{story}");
            healed += 1;
        } else {
            beyond_help += 1;
        }
    }
    assert!(healed > 3 && beyond_help > 0, "{healed} healed, {beyond_help} not: the scene shows both");
}

#[test]
fn every_region_that_the_source_still_has_is_healed() {
    heal_every_region(Deltas::default(), true);
}

#[test]
fn every_region_is_healed_by_a_machine_that_has_no_index_of_its_own() {
    heal_every_region(Deltas::default(), false);
}

#[test]
fn every_region_is_healed_where_new_chunks_hang_on_old_ones() {
    heal_every_region(Deltas::Forward { depth: 4 }, true);
}

/// A region of data that the last snapshot needs, in the first container.
fn some_region(scene: &Scene) -> (SeriesId, ContainerRecord, u64) {
    let last = manifest(&scene.sandbox).direct(scene.ids.len() - 1);
    let is_hit = |(record, _, numbers): &(ContainerRecord, u64, Vec<u64>)| {
        record.kind == ContainerKind::Data && !numbers.is_empty() && numbers.iter().all(|number| last.contains(*number))
    };
    let (record, offset, _) = regions(&scene.sandbox).into_iter().find(is_hit).expect("a region");
    (manifest(&scene.sandbox).series, record, offset)
}

#[test]
fn files_that_seem_unchanged_are_read_again_where_their_chunks_are_damaged() {
    let scene = scene(Deltas::default());
    let (series, record, offset) = some_region(&scene);
    let sandbox = scene.sandbox.at(flipped(&scene.disk, series, &record, offset));
    recording(&sandbox, ReadData::All);
    let id = snapshot(sandbox.try_backup(&unsuspecting(&sandbox).with_force(false)));
    assert!(restores(&sandbox, &scene, id));
    assert!(scene.ids.iter().all(|id| restores(&sandbox, &scene, *id)));
}

/// Backs up a stream; the same bytes always give the same catalog.
fn stream(sandbox: &Sandbox, skip_if_unchanged: bool) -> BackupSummary {
    let reader = Box::new(std::io::Cursor::new(noise(1, 3_000_000)));
    let source = Source::Stream { name: "stream".into(), reader };
    let options = unsuspecting(sandbox).with_skip_if_unchanged(skip_if_unchanged).with_time(Some(Time::default()));
    backup::backup(&sandbox.repository(), source, &options, &sandbox.resources()).expect("a backup")
}

#[test]
fn data_and_catalogs_are_healed_whether_or_not_a_snapshot_is_made_of_it() {
    let scene = Scene::new();
    let first = stream(&scene.sandbox, false).snapshot.expect("a snapshot");
    let series = manifest(&scene.sandbox).series;
    let restored = |sandbox: &Sandbox, id| {
        let target = tempfile::TempDir::new().expect("a temporary folder");
        sandbox.restore(id, target.path()).expect("a restore");
        std::fs::read(target.path().join("stream")).expect("the stream")
    };
    for skip_if_unchanged in [false, true] {
        for (record, offset, numbers) in regions(&scene.sandbox) {
            let sandbox = scene.sandbox.at(flipped(&scene.disk, series, &record, offset));
            recording(&sandbox, ReadData::All);
            let summary = stream(&sandbox, skip_if_unchanged);
            assert_eq!(summary.snapshot.is_none(), skip_if_unchanged);
            // The record of a snapshot is in no other: it stays damaged, and only it.
            let own = u64::from(numbers.contains(&manifest(&scene.sandbox).snapshots()[0].record.0));
            assert_eq!(summary.healed.chunks, numbers.len() as u64 - own, "{:?}", record.kind);
            assert!([first].iter().chain(&summary.snapshot).all(|id| restored(&sandbox, *id) == noise(1, 3_000_000)));
            assert_eq!(sandbox.check(ReadData::All).findings.is_empty(), own == 0);
            assert!(manifest(&sandbox).lease.is_none() && manifest(&sandbox).damaged.len() == own);
        }
    }
}

#[test]
fn damage_that_no_check_has_seen_is_met_by_the_sample_and_healed() {
    let scene = scene(Deltas::default());
    let (series, record, offset) = some_region(&scene);
    let sandbox = scene.sandbox.at(flipped(&scene.disk, series, &record, offset));
    let (options, log) = (sandbox.options(), Log::default());
    let source = Source::Paths(vec![sandbox.source()]);
    let summary = backup::backup(&sandbox.repository(), source, &options, &sandbox.heard_by(&log)).expect("a backup");
    assert!(log.notices().iter().any(|notice| matches!(notice, Notice::DamageMet { .. })), "{:?}", log.notices());
    assert!(summary.healed.chunks > 0);
    assert!(scene.ids.iter().chain(&summary.snapshot).all(|id| restores(&sandbox, &scene, *id)));
}

#[test]
fn of_text_that_compresses_well_the_sample_meets_damage_in_what_it_does_not_decode() {
    let mut scene = Scene::new();
    for number in 0..8 {
        scene.sandbox.write(&format!("text/{number}"), &noise(number, 500).repeat(5000));
    }
    scene.backup();
    let series = manifest(&scene.sandbox).series;
    let regions = regions(&scene.sandbox);
    let data: Vec<_> = regions.iter().filter(|(record, ..)| record.kind == ContainerKind::Data).collect();
    assert!(data.len() >= 6, "{} regions", data.len());
    for (record, offset, _) in data {
        let sandbox = scene.sandbox.at(flipped(&scene.disk, series, record, *offset));
        // Four times as much text is decoded: two or three regions.
        let (options, log) = (sandbox.options().with_force(true).with_sample_bytes(Some(1 << 20)), Log::default());
        let source = Source::Paths(vec![sandbox.source()]);
        backup::backup(&sandbox.repository(), source, &options, &sandbox.heard_by(&log)).expect("a backup");
        assert!(log.notices().iter().any(|notice| matches!(notice, Notice::DamageMet { .. })), "at {offset}");
    }
}

#[test]
fn what_the_sample_met_and_the_source_lacks_is_recorded() {
    let scene = scene(Deltas::default());
    let (series, record, offset) = some_region(&scene);
    let sandbox = scene.sandbox.at(flipped(&scene.disk, series, &record, offset));
    let held = scene.sandbox.source().join("noise");
    let aside = scene.sandbox.folder.path().join("aside");
    std::fs::rename(&held, &aside).expect("moved aside");
    let (options, log) = (sandbox.options(), Log::default());
    let source = Source::Paths(vec![sandbox.source()]);
    let summary = backup::backup(&sandbox.repository(), source, &options, &sandbox.heard_by(&log)).expect("a backup");
    assert!(restores(&sandbox, &scene, summary.snapshot.expect("a snapshot")));
    assert!(!manifest(&sandbox).damaged.is_empty());
    assert!(log.notices().iter().any(|notice| matches!(notice, Notice::DamageLeft { .. })), "{:?}", log.notices());

    // It comes back: only older snapshots know its chunks, and they are healed all the same.
    std::fs::rename(&aside, &held).expect("moved back");
    let id = snapshot(sandbox.try_backup(&unsuspecting(&sandbox)));
    assert!(manifest(&sandbox).damaged.is_empty());
    assert!(scene.ids.iter().chain([&id]).all(|id| restores(&sandbox, &scene, *id)));
    assert_eq!(sandbox.check(ReadData::All).findings, []);
}

#[test]
fn forgetting_what_is_damaged_ends_the_record_of_it() {
    let scene = scene(Deltas::default());
    let live = manifest(&scene.sandbox).direct(2);
    let is_old =
        |(_, _, numbers): &(ContainerRecord, u64, Vec<u64>)| numbers.iter().any(|number| !live.contains(*number));
    let (record, offset, _) = regions(&scene.sandbox).into_iter().find(is_old).expect("a region of old chunks");
    let series = manifest(&scene.sandbox).series;
    let sandbox = scene.sandbox.at(flipped(&scene.disk, series, &record, offset));
    recording(&sandbox, ReadData::All);
    assert!(!manifest(&sandbox).damaged.is_empty());
    sandbox.forget(&scene.ids[..2], false);
    assert!(manifest(&sandbox).damaged.is_subset(&manifest(&sandbox).live()));
}

#[test]
fn a_second_check_finds_the_same_and_commits_nothing() {
    let scene = scene(Deltas::default());
    let (series, record, offset) = some_region(&scene);
    let disk = flipped(&scene.disk, series, &record, offset);
    let sandbox = scene.sandbox.at(disk.clone());
    let first = recording(&sandbox, ReadData::All);
    assert_eq!(first.records.len(), 1);
    assert!(first.records[0].damaged > 0 && first.records[0].outcome == RecordOutcome::Recorded);
    let names = disk.names();
    let second = recording(&sandbox, ReadData::All);
    assert_eq!((first.findings, second.records), (second.findings, Vec::new()));
    assert_eq!(disk.names(), names);

    // Without reading, nothing speaks for or against it.
    assert_eq!(recording(&sandbox, ReadData::None).records, []);
    disk.damage(
        &record.object_name(series),
        Damage::Replace(scene.disk.read(&record.object_name(series), u64::MAX).expect("it")),
    );
    assert_eq!(recording(&sandbox, ReadData::None).records, []);
    let mended = recording(&sandbox, ReadData::All);
    assert_eq!(mended.findings, []);
    assert!(mended.records[0].sound > 0 && manifest(&sandbox).damaged.is_empty());
}

#[test]
fn damage_that_cannot_be_recorded_is_told_all_the_same() {
    let scene = scene(Deltas::default());
    let (series, record, offset) = some_region(&scene);
    let sandbox = scene.sandbox.at(flipped(&scene.disk, series, &record, offset));
    let report = sandbox.check(ReadData::All);
    assert_eq!(report.records[0].outcome, RecordOutcome::NotAsked);
    let repository = sandbox.repository();
    let writer = acquire(&repository, distant_holder(), false).expect("the lease");
    let report = recording(&sandbox, ReadData::All);
    let RecordOutcome::Failed { reason } = &report.records[0].outcome else { panic!("{:?}", report.records) };
    assert!(reason.contains("elsewhere"), "{reason}");
    assert!(!report.findings.is_empty() && manifest(&sandbox).damaged.is_empty());
    drop(writer);
}

#[test]
fn what_reads_back_otherwise_than_it_was_written_is_not_committed() {
    let scene = Scene::with_two_snapshots();
    let disk = copy(&scene.disk);
    let sandbox = scene.sandbox.at(disk.clone());
    disk.set_fault(Fault::WrongPuts);
    let error = sandbox.try_backup(&sandbox.options()).expect_err("a faulty disk");
    assert!(matches!(error, EngineError::Store(StoreError::WrittenWrong { .. })), "{error}");
    disk.set_fault(Fault::None);
    assert_eq!(scene.assert_sound(&disk, "a faulty disk").len(), 2);
    disk.set_fault(Fault::WrongPuts);
    let options = sandbox.options().with_verify_written(VerifyWritten::Never).with_migrate(false);
    let id = snapshot(sandbox.try_backup(&options));
    assert!(!restores(&sandbox, &scene, id), "without reading back nobody notices");
}

#[test]
fn what_a_checkpoint_would_commit_is_read_back_too() {
    let scene = Scene::with_two_snapshots();
    let disk = copy(&scene.disk);
    let sandbox = scene.sandbox.at(disk.clone());
    sandbox.write("new/file", &noise(7, 300_000));
    disk.set_fault(Fault::WrongPuts);
    let options = sandbox.options().with_checkpoint(Some(every_piece()));
    let error = sandbox.try_backup(&options).expect_err("a faulty disk");
    assert!(matches!(error, EngineError::Store(StoreError::WrittenWrong { .. })), "{error}");
    disk.set_fault(Fault::None);
    assert_eq!(scene.assert_sound(&disk, "a faulty disk").len(), 2, "no partial snapshot stands");
}

#[test]
fn what_settling_writes_and_reads_back_otherwise_is_not_committed() {
    let scene = Scene::unsettled();
    let disk = copy(&scene.disk);
    let sandbox = scene.sandbox.at(disk.clone());
    disk.set_fault(Fault::WrongPuts);
    let options = sandbox.migrate_options().with_threshold(0.0);
    let log = Log::default();
    maintain::maintain(&sandbox.repository(), &options, &heard_by(&log)).expect("what cannot be settled is told");
    disk.set_fault(Fault::None);
    assert!(log.tells_of("does not read back"), "{:?}", log.problems());
    assert!(!manifest(&sandbox).unsettled.is_empty(), "it is left to the next run");
    assert_eq!(scene.assert_sound(&disk, "a faulty disk").len(), 2);
    maintain::maintain(&sandbox.repository(), &options, &resources()).expect("a sound disk");
    assert!(manifest(&sandbox).unsettled.is_empty());
}

#[test]
fn what_forgetting_rewrites_and_reads_back_otherwise_takes_nothing_away() {
    let scene = Scene::unsettled();
    let disk = copy(&scene.disk);
    let sandbox = scene.sandbox.at(disk.clone());
    disk.set_fault(Fault::WrongPuts);
    let options = sandbox.forget_options(false).with_rewrite_threshold(0.0);
    let error = sandbox.try_forget(&[scene.ids[0]], &options).expect_err("a faulty disk");
    assert!(matches!(error, EngineError::Store(StoreError::WrittenWrong { .. })), "{error}");
    disk.set_fault(Fault::None);
    assert_eq!(scene.assert_sound(&disk, "a faulty disk").len(), 1);
}
