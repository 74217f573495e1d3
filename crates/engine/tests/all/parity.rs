//! Parity: what it heals costs no command anything but a word, and is made, counted and removed with its container.

use crate::common::faults::copy;
use crate::common::log::Log;
use crate::common::ruin::{Ruin, Shows, Trial, containers_of, ruins_of_container};
use crate::common::scene::Scene;
use crate::common::{self, PASSWORD, heard_by, resources};
use siltstone_engine::backup::{self, Source};
use siltstone_engine::check::{CheckOptions, ReadData};
use siltstone_engine::forget::{self};
use siltstone_engine::maintain;
use siltstone_engine::protect::{ProtectSummary, protect};
use siltstone_engine::{EngineError, Notice, Observer};
use siltstone_store::config::Config;
use siltstone_store::container::{ContainerKind, ContainerRecord};
use siltstone_store::parity::Layout;
use siltstone_store::repository::Repository;
use siltstone_store::storage::{Damage, ObjectName, SimulatedDisk, Storage, StorageError};
use siltstone_store::{ContainerId, SeriesId};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The repository with so much parity wanted from now on.
fn open(disk: &SimulatedDisk, data_percent: u8) -> Repository {
    let repository = Repository::open(Arc::new(disk.clone()), PASSWORD).expect("the repository opens");
    let wanted = |config: &mut Config| {
        config.parity.data_percent = data_percent;
        Ok(())
    };
    repository.amend(wanted).expect("a record");
    repository
}

fn read(disk: &SimulatedDisk, name: &ObjectName) -> Result<Vec<u8>, StorageError> {
    disk.read(name, name.bytes_max())
}

/// Two snapshots, all containers protected.
struct Protected {
    scene: Scene,
    series: SeriesId,
}

impl Protected {
    fn new(percent: u8) -> Self {
        let scene = Scene::with_two_snapshots();
        let repository = open(&scene.disk, percent);
        protect(&repository, "user", &resources()).expect("parity is made");
        let series = repository.keys().series_id("test");
        Self { scene, series }
    }

    fn containers(&self) -> Vec<ContainerRecord> {
        let repository = open(&self.scene.disk, 5);
        let of = |kind| containers_of(&repository, self.series, kind);
        of(ContainerKind::Data).into_iter().chain(of(ContainerKind::Metadata)).collect()
    }

    fn parity(&self, disk: &SimulatedDisk) -> BTreeSet<ContainerId> {
        let of_series = |name: &ObjectName| matches!(name, ObjectName::Parity(series, _) if *series == self.series);
        disk.names().iter().filter(|name| of_series(name)).filter_map(ObjectName::container).collect()
    }

    /// Damage that the parity of a container heals: a flip anywhere, and the end cut off.
    fn healed_ruins(&self, record: &ContainerRecord) -> Vec<Ruin> {
        let repository = open(&self.scene.disk, 5);
        let percent = repository.parity().percent(record.kind);
        let layout = Layout::plan(record.object_bytes, percent).expect("parity");
        let healed_bytes = u64::from(layout.parity_shards) * u64::from(layout.shard_bytes);
        let ruins = ruins_of_container(&self.scene.disk, &repository, self.series, record);
        let is_healed = |ruin: &Ruin| match &ruin.damage {
            Damage::Flip { .. } => true,
            Damage::Truncate { bytes } => record.object_bytes - bytes < healed_bytes,
            _ => healed_bytes >= record.object_bytes,
        };
        ruins.into_iter().filter(is_healed).collect()
    }
}

/// The heart of it: whatever a flipped bit hits, no command loses anything, and check says what to do.
#[test]
fn damage_that_parity_heals_costs_no_command_anything() {
    let protected = Protected::new(5);
    let (scene, mut tried) = (&protected.scene, 0);
    for record in protected.containers() {
        for ruin in protected.healed_ruins(&record) {
            tried += 1;
            let trial = || Trial { scene, disk: ruin.done_to(&scene.disk), story: ruin.story() };
            assert_check_names_it(&trial(), &ruin);
            for id in &scene.ids {
                trial().assert_restores(*id, &scene.trees[id], false, &ruin.name);
            }
            assert_backs_up(&trial(), &ruin);
            for threshold in [0.2, 0.0] {
                let (trial, log) = (trial(), Log::default());
                trial.forget(protected.series, scene.ids[0], threshold, &log).expect("forgetting");
                assert_eq!(log.problems(), Vec::<String>::new(), "{}", trial.story);
                trial.assert_restores(scene.ids[1], &scene.trees[&scene.ids[1]], false, &ruin.name);
            }
        }
    }
    assert!(tried >= 4 * 8, "{tried} damages were tried");
}

fn assert_check_names_it(trial: &Trial<'_>, ruin: &Ruin) {
    let names = trial.disk.names();
    let findings = trial.check(ReadData::All).expect("a check").findings;
    let [finding] = findings.as_slice() else { panic!("one finding: {findings:?} after {}", trial.story) };
    assert_eq!(finding.object, ruin.name.to_string(), "{}", trial.story);
    assert!(finding.what.contains("silt repair") && finding.snapshots.is_empty(), "{finding:?}");
    assert_eq!(trial.disk.names(), names, "a check changes nothing");
}

/// A backup, settling what it leaves behind, sees nothing of the damage.
fn assert_backs_up(trial: &Trial<'_>, ruin: &Ruin) {
    let log = Log::default();
    let id = trial.backup("test", &log).unwrap_or_else(|error| panic!("{error} after {}", trial.story));
    let lost = |notice: &Notice| {
        matches!(
            notice,
            Notice::PassedOver { .. }
                | Notice::NotSettled { .. }
                | Notice::ContainersLost { .. }
                | Notice::IndexUnreadable { .. }
        )
    };
    assert!(!log.notices().iter().any(lost), "{:?} after {}", log.notices(), trial.story);
    assert_eq!(log.problems(), Vec::<String>::new(), "{}", trial.story);
    trial.assert_restores(id, &trial.scene.source(), false, &ruin.name);
    for id in &trial.scene.ids {
        trial.assert_restores(*id, &trial.scene.trees[id], false, &ruin.name);
    }
}

#[test]
fn a_repository_tells_which_containers_were_read_with_their_parity() {
    let protected = Protected::new(5);
    let record = &protected.containers()[0];
    let ruin = protected.healed_ruins(record).into_iter().find(|ruin| ruin.part == "region").expect("a flip");
    let disk = ruin.done_to(&protected.scene.disk);
    let repository = open(&disk, 5);
    assert!(repository.healed().is_empty());
    siltstone_engine::check::check(&repository, &CheckOptions::reading(ReadData::All), &resources()).expect("a check");
    assert_eq!(repository.healed(), [ruin.name]);
}

#[test]
fn more_damage_than_parity_heals_is_told_as_without_parity() {
    let protected = Protected::new(5);
    let (scene, record) = (&protected.scene, &protected.containers()[0]);
    let disk = copy(&scene.disk);
    let name = record.object_name(protected.series);
    disk.damage(&name, Damage::Truncate { bytes: record.object_bytes / 3 });
    let trial = Trial { scene, disk, story: "most of a container is gone".into() };
    let findings = trial.check(ReadData::All).expect("a check").findings;
    assert!(findings.iter().any(|f| f.object == name.to_string() && !f.snapshots.is_empty()), "{findings:?}");
    for id in &scene.ids {
        trial.assert_restores(*id, &scene.trees[id], true, &name);
    }
}

#[test]
fn damaged_parity_is_found_by_reading_everything_and_hinders_nothing() {
    let protected = Protected::new(5);
    let (scene, record) = (&protected.scene, &protected.containers()[0]);
    let name = ObjectName::Parity(protected.series, record.id);
    let bytes = read(&scene.disk, &name).expect("parity").len() as u64;
    for damage in [
        Damage::Flip { offset: 20, mask: 1 },
        Damage::Flip { offset: 70, mask: 1 },
        Damage::Flip { offset: 200, mask: 1 },
        Damage::Flip { offset: bytes - 100, mask: 1 },
        Damage::Truncate { bytes: bytes - 1 },
    ] {
        let story = format!("{damage:?}");
        let disk = copy(&scene.disk);
        assert!(disk.damage(&name, damage));
        let trial = Trial { scene, disk, story };
        let findings = trial.check(ReadData::All).expect("a check").findings;
        let named: Vec<_> = findings.iter().map(|finding| finding.object.clone()).collect();
        assert_eq!(named, [name.to_string()], "{findings:?} after {}", trial.story);
        assert_backs_up(
            &trial,
            &Ruin { name, damage: Damage::Delete, part: String::new(), shows: Shows::Never, both: false },
        );
    }
}

#[test]
fn parity_is_made_for_what_lacks_it_changed_with_the_share_and_removed_when_unwanted() {
    let protected = Protected::new(5);
    let (disk, all) = (copy(&protected.scene.disk), protected.containers());
    let ids: BTreeSet<_> = all.iter().map(|record| record.id).collect();
    assert_eq!(protected.parity(&disk), ids);
    let again = protect(&open(&disk, 5), "user", &resources()).expect("nothing to do");
    assert_eq!(again, ProtectSummary::default());

    let more = open(&disk, 100);
    let changed = protect(&more, "user", &resources()).expect("parity is made");
    let data = all.iter().filter(|record| record.kind == ContainerKind::Data).count() as u64;
    assert_eq!(changed.protected, data);
    for record in &all {
        let bytes = read(&disk, &ObjectName::Parity(protected.series, record.id)).expect("parity").len() as u64;
        assert_eq!(bytes, more.parity().object_bytes(record.kind, record.object_bytes));
    }
    protect(&open(&disk, 0), "user", &resources()).expect("parity is removed");
    assert_eq!(protected.parity(&disk).len() as u64, all.len() as u64 - data);
    protected.scene.assert_sound(&disk, "changing parity");
}

/// Says stop after so many containers.
struct StopsAfter(AtomicU32);

impl Observer for StopsAfter {
    fn advance(&self, _: u64, _: u64) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

#[test]
fn making_parity_goes_on_where_it_was_stopped() {
    let scene = Scene::with_two_snapshots();
    let stopped =
        protect(&open(&scene.disk, 5), "user", &resources().with_observer(Arc::new(StopsAfter(AtomicU32::new(1)))));
    assert!(matches!(stopped, Err(EngineError::Interrupted)), "{stopped:?}");
    let left = protect(&open(&scene.disk, 5), "user", &resources()).expect("the rest");
    let manifest = open(&scene.disk, 5).manifests().expect("manifests").pop().expect("one");
    let data = manifest.containers.iter().filter(|record| record.kind == ContainerKind::Data).count() as u64;
    assert_eq!(left.protected, data - 1);
    scene.assert_sound(&scene.disk, "a stop");
}

/// Parity made of damaged bytes would keep the damage for ever.
#[test]
fn no_parity_is_made_of_a_damaged_container() {
    let scene = Scene::with_two_snapshots();
    let repository = open(&scene.disk, 5);
    let series = repository.keys().series_id("test");
    let record = containers_of(&repository, series, ContainerKind::Data)[0].clone();
    let ruins = ruins_of_container(&scene.disk, &repository, series, &record);
    let disk = ruins.iter().find(|ruin| ruin.part == "region").expect("a flip").done_to(&scene.disk);
    let log = Log::default();
    let summary = protect(&open(&disk, 5), "user", &heard_by(&log)).expect("the others are protected");
    assert_eq!(summary.passed_over, 1);
    let named = |notice: &Notice| matches!(notice, Notice::PassedOver { object, .. } if *object == record.object_name(series).to_string());
    assert!(log.notices().iter().any(named), "{:?}", log.notices());
    assert!(!disk.names().contains(&ObjectName::Parity(series, record.id)));
}

/// A dry run states the bytes that come back, those of parity made with another share than now included.
#[test]
fn forgetting_returns_the_bytes_of_parity_and_says_so_beforehand() {
    for (made_with, now) in [(5, 5), (50, 5), (5, 0)] {
        let protected = Protected::new(made_with);
        let disk = &protected.scene.disk;
        let key = [(protected.series, protected.scene.ids[0])];
        for threshold in [0.2, 0.0] {
            let disk = copy(disk);
            let options = protected.scene.sandbox.forget_options(true).with_rewrite_threshold(threshold);
            let said = forget::forget(&open(&disk, now), &key, &options, &resources()).expect("a dry run");
            let before = disk.used_bytes();
            let options = options.with_dry_run(false);
            let done = forget::forget(&open(&disk, now), &key, &options, &resources()).expect("forgetting");
            assert_eq!(said.bytes_after, done.bytes_after, "made with {made_with} %, now {now} %, {threshold}");
            assert_eq!(before - done.bytes_after, said.bytes_before - said.bytes_after);
            let named: BTreeSet<_> =
                open(&disk, now).manifests().expect("manifests")[0].containers.iter().map(|record| record.id).collect();
            assert!(protected.parity(&disk).is_subset(&named), "no parity is left without its container");
        }
    }
}

/// Containers that backups, settling, and forgetting write have parity from the start.
#[test]
fn whatever_writes_containers_writes_their_parity() {
    let mut scene = Scene { migrate: false, ..Scene::new() };
    let series = open(&scene.disk, 3).keys().series_id("test");
    for version in 0..4u8 {
        let mut bytes = common::noise(7, 90_000);
        bytes[40_000] = version;
        scene.sandbox.write("file", &bytes);
        scene.sandbox.write(&format!("only{version}"), &common::noise(100 + u64::from(version), 9000));
        let options = scene.sandbox.options().with_force(true).with_migrate(version % 2 == 1);
        let sources = Source::Paths(vec![scene.sandbox.source()]);
        let id = backup::backup(&open(&scene.disk, 3), sources, &options, &scene.sandbox.resources())
            .expect("a backup")
            .snapshot
            .expect("one");
        scene.ids.push(id);
        scene.trees.insert(id, scene.source());
        assert_all_protected(&scene, &open(&scene.disk, 3), series);
    }
    maintain::maintain(&open(&scene.disk, 3), &scene.sandbox.migrate_options(), &resources()).expect("settled");
    assert_all_protected(&scene, &open(&scene.disk, 3), series);
    let options = scene.sandbox.forget_options(false).with_rewrite_threshold(0.0);
    forget::forget(&open(&scene.disk, 3), &[(series, scene.ids[1])], &options, &resources()).expect("forgetting");
    assert_all_protected(&scene, &open(&scene.disk, 3), series);
}

fn assert_all_protected(scene: &Scene, repository: &Repository, series: SeriesId) {
    let manifest = repository.manifest(series).expect("a manifest").expect("a manifest");
    let parity = |name: &ObjectName| matches!(name, ObjectName::Parity(..)).then(|| name.container()).flatten();
    let there: BTreeSet<ContainerId> = scene.disk.names().iter().filter_map(parity).collect();
    assert_eq!(there, manifest.containers.iter().map(|record| record.id).collect());
    let report = siltstone_engine::check::check(repository, &CheckOptions::reading(ReadData::All), &resources())
        .expect("a check");
    assert_eq!((report.findings, report.unprotected), (Vec::new(), 0));
}
