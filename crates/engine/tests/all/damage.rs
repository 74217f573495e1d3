//! The damage matrix: every kind of object is deleted, cut and flipped in every part, and then the repository is used.
//! Whatever happens: the damage is told, naming the object; what it did not hit restores identically; nothing that is
//! still needed is deleted, so once the original bytes are brought back, all is as if nothing had been; and nothing
//! panics.
//!
//! Of each part of an object one or two bits are flipped here, by place; the store's own tests flip every byte of every
//! format.

use crate::common;
use crate::common::faults::{copy, without_parity};
use crate::common::log::Log;
use crate::common::ruin::{Ruin, Shows, Trial, config_of, containers_of, manifest_of, ruins_of, ruins_of_container};
use crate::common::scene::Scene;
use siltstone_engine::check::ReadData;
use siltstone_engine::{EngineError, Notice};
use siltstone_store::container::ContainerKind;
use siltstone_store::repository::Repository;
use siltstone_store::storage::{Damage, Listing, ObjectName, Original, SimulatedDisk, Storage};
use siltstone_store::{ContainerId, SeriesId, SnapshotId};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Two snapshots in the series "test", one in the series "other".
struct Matrix {
    scene: Scene,
    good: SimulatedDisk,
    repository: Repository,
    series: SeriesId,
    other: SnapshotId,
}

impl Matrix {
    fn new() -> Self {
        let mut scene = Scene::with_two_snapshots();
        let options = scene.sandbox.options().with_series(Some("other".into()));
        let other = scene.sandbox.try_backup(&options).expect("a backup").snapshot.expect("a snapshot");
        scene.trees.insert(other, scene.source());
        let good = without_parity(&scene.disk);
        let repository = Repository::open(Arc::new(good.clone()), common::PASSWORD).expect("the repository opens");
        let series = repository.keys().series_id("test");
        Self { scene, good, repository, series, other }
    }

    fn trial(&self, ruin: &Ruin) -> Trial<'_> {
        Trial { scene: &self.scene, disk: ruin.done_to(&self.good), story: ruin.story() }
    }

    fn container(&self, kind: ContainerKind, at: usize) -> siltstone_store::container::ContainerRecord {
        containers_of(&self.repository, self.series, kind)[at].clone()
    }

    /// Whether the snapshot needs anything of the object.
    fn needs(&self, id: SnapshotId, object: &ObjectName) -> bool {
        let manifest = self.repository.manifest(self.series).expect("a manifest").expect("a manifest");
        let Some(position) = manifest.position(&id) else { return false };
        match object {
            ObjectName::Container(_, _, container) => {
                let record = manifest.containers.iter().find(|record| record.id == *container).expect("the container");
                let necessary = manifest.necessary(position);
                record.chunks.iter().any(|run| necessary.range_cardinality(run.range()) > 0)
            }
            _ => true,
        }
    }

    /// All snapshots found restore as far as the damage lets them.
    fn assert_restores(&self, trial: &Trial<'_>, ruin: &Ruin, ids: &[SnapshotId]) {
        for id in ids {
            trial.assert_restores(*id, &self.scene.trees[id], self.needs(*id, &ruin.name), &ruin.name);
        }
    }

    /// With the original bytes back, everything restores and checks clean.
    fn assert_mended(&self, trial: &Trial<'_>, ruin: &Ruin, ids: &[SnapshotId]) {
        let is_dead = matches!(ruin.name, ObjectName::Manifest(series, sequence)
        if trial.disk.list(Listing::Manifests(series)).expect("a list").iter().any(|meta| {
            matches!(meta.name, ObjectName::Manifest(_, newer) if newer > sequence)
        }));
        if !is_dead {
            ruin.mend(&trial.disk, &self.good);
        }
        let story = format!("{}, mended", trial.story);
        let found = self.scene.assert_sound(&trial.disk, &story);
        assert!(ids.iter().all(|id| found.contains(id)), "{story}");
    }

    fn all_ids(&self) -> Vec<SnapshotId> {
        self.scene.ids.iter().copied().chain([self.other]).collect()
    }

    /// Every command on a repository in which one container is damaged.
    fn try_container(&self, ruin: &Ruin) {
        self.try_check(ruin);
        let trial = self.trial(ruin);
        self.assert_restores(&trial, ruin, &self.all_ids());
        self.try_backup(ruin);
        for threshold in [0.2, 0.0] {
            self.try_forget(ruin, threshold);
        }
    }

    fn try_check(&self, ruin: &Ruin) {
        let trial = self.trial(ruin);
        let names = trial.disk.names();
        for read_data in [ReadData::None, ReadData::All] {
            let report = trial.check(read_data).unwrap_or_else(|error| panic!("{error} after {}", trial.story));
            let must_find = match ruin.shows {
                Shows::InListing | Shows::WhenOpened => true,
                Shows::WhenRead => read_data == ReadData::All,
                Shows::Never => false,
            };
            let story = format!("check {read_data:?} after {}: {:?}", trial.story, report.findings);
            let name = ruin.name.to_string();
            let named = report.findings.iter().filter(|f| f.object.contains(&name) || f.what.contains(&name));
            let touched: BTreeSet<_> = named.clone().flat_map(|finding| finding.snapshots.clone()).collect();
            assert_eq!(named.count() > 0, must_find || !report.findings.is_empty(), "{story}");
            assert!(!must_find || !report.findings.is_empty(), "{story}");
            let untouched = self.all_ids().into_iter().filter(|id| !self.needs(*id, &ruin.name));
            assert!(untouched.into_iter().all(|id| !touched.contains(&id.short())), "{story}");
        }
        assert_eq!(trial.disk.names(), names, "a check changes nothing");
    }

    fn try_backup(&self, ruin: &Ruin) {
        let (trial, log) = (self.trial(ruin), Log::default());
        let id = trial.backup("test", &log).unwrap_or_else(|error| panic!("backup: {error} after {}", trial.story));
        let manifest = trial.open().and_then(|repository| repository.manifest(self.series)).expect("a manifest");
        let is_settled = !log.notices().iter().any(|notice| matches!(notice, Notice::NotSettled { .. }));
        assert!(is_settled, "what can be is settled: {:?} after {}", log.notices(), trial.story);
        let faults = manifest.expect("a manifest").faults();
        assert!(faults.is_empty(), "what settling moves is all there: {faults:?} after {}", trial.story);
        self.assert_restores(&trial, ruin, &self.all_ids());
        // What is damaged is stored again: what the listing tells, what cannot be opened, all of the previous catalog,
        // for it is read; and of its content as much as the sample takes, here everything.
        trial.assert_restores(id, &self.scene.source(), false, &ruin.name);
        let ids: Vec<_> = self.all_ids().into_iter().chain([id]).collect();
        self.assert_mended(&trial, ruin, &ids);
    }

    fn try_forget(&self, ruin: &Ruin, threshold: f64) {
        let (mut trial, log) = (self.trial(ruin), Log::default());
        trial.story = format!("{}, forgetting with threshold {threshold}", trial.story);
        let [gone, kept] = [self.scene.ids[0], self.scene.ids[1]];
        trial
            .forget(self.series, gone, threshold, &log)
            .unwrap_or_else(|error| panic!("{error} after {}", trial.story));
        assert!(log.problems().iter().all(|problem| trial.tells(problem, &ruin.name)), "{:?}", log.problems());
        self.assert_restores(&trial, ruin, &[kept, self.other]);
        self.assert_mended(&trial, ruin, &[kept, self.other]);
    }

    /// Every command on a repository that cannot be opened fails, names the object and changes nothing.
    fn try_closed(&self, ruin: &Ruin) {
        let (trial, log) = (self.trial(ruin), Log::default());
        let names = trial.disk.names();
        let results = [
            ("backup", trial.backup("test", &log).map(drop)),
            ("check", trial.check(ReadData::None).map(drop)),
            ("restore", trial.restore(self.scene.ids[0]).map(drop)),
            ("forget", trial.forget(self.series, self.scene.ids[0], 0.2, &log)),
            ("init", common::init(Arc::new(trial.disk.clone())).map(drop)),
        ];
        for (command, result) in results {
            let error = result.expect_err(command).to_string();
            let is_told = trial.tells(&error, &ruin.name) || (command == "init" && error.contains("already holds"));
            assert!(is_told, "{command}: {error} after {}", trial.story);
        }
        assert_eq!(trial.disk.names(), names, "{}", trial.story);
        self.assert_mended(&trial, ruin, &self.all_ids());
    }
}

/// Damages of the newest record, or of its copy.
fn ruins_of_config(matrix: &Matrix, name: ObjectName) -> Vec<Ruin> {
    let bytes = matrix.good.read(&name, u64::MAX).expect("the config").len() as u64;
    let parts = [
        ("magic", 0, Shows::WhenOpened),
        ("version", 8, Shows::WhenOpened),
        ("kind", 10, Shows::WhenOpened),
        ("salt", 20, Shows::WhenOpened),
        ("commitment", 50, Shows::WhenOpened),
        ("content", 70, Shows::WhenOpened),
        ("tag", bytes - 1, Shows::WhenOpened),
    ];
    ruins_of(&matrix.good, name, &parts)
}

#[test]
fn a_config_damaged_in_one_copy_is_found_by_check_and_hinders_nothing() {
    let matrix = Matrix::new();
    let original = config_of(&matrix.good);
    let copy = original.original().expect("kept twice").copy();
    for ruin in [original, copy].into_iter().flat_map(|name| ruins_of_config(&matrix, name)) {
        // A copy that is not there is what an interrupted commit leaves; the next writer makes it.
        let is_unfinished = ruin.name == copy && ruin.damage == Damage::Delete;
        matrix.try_beside(&if is_unfinished { Ruin { shows: Shows::Never, ..ruin } } else { ruin });
    }
}

#[test]
fn a_config_damaged_in_both_copies_is_told_by_every_command_and_nothing_is_touched() {
    let matrix = Matrix::new();
    for ruin in ruins_of_config(&matrix, config_of(&matrix.good)) {
        // Where both are gone the record before is the newest: that tells who saw this one.
        if ruin.damage != Damage::Delete {
            matrix.try_closed(&Ruin { both: true, ..ruin });
        }
    }
}

#[test]
fn the_only_key_slot_damaged_in_both_copies_is_told_by_every_command_and_nothing_is_touched() {
    let matrix = Matrix::new();
    let name = matrix.good.list(Listing::Keys).expect("a list")[0].name;
    let parts = [("magic", 0), ("version", 8), ("salt", 20), ("cost", 66), ("cost", 80), ("secret", 110)];
    let parts = parts.map(|(part, offset)| (part, offset, Shows::WhenOpened));
    for ruin in ruins_of(&matrix.good, name, &parts) {
        let both = Ruin { both: true, ..ruin.clone() };
        // Cut within its label, the slot still opens: that is for the check to find.
        let opens = matrix.trial(&both).open().is_ok();
        if opens { matrix.try_beside(&ruin) } else { matrix.try_closed(&both) }
    }
}

#[test]
fn a_key_slot_damaged_in_one_copy_is_found_by_check_and_hinders_nothing() {
    let matrix = Matrix::new();
    let original = matrix.good.list(Listing::Keys).expect("a list")[0];
    let parts = [("salt", 20), ("cost", 66), ("secret", 110), ("label", original.bytes - 1)];
    let parts = parts.map(|(part, offset)| (part, offset, Shows::WhenOpened));
    for name in [original.name, original.name.original().expect("kept twice").copy()] {
        for ruin in ruins_of(&matrix.good, name, &parts) {
            matrix.try_beside(&ruin);
        }
    }
}

impl Matrix {
    /// Every command on a repository in which something that no snapshot needs is damaged.
    fn try_beside(&self, ruin: &Ruin) {
        self.try_check_beside(ruin);
        let (trial, log) = (self.trial(ruin), Log::default());
        let id = trial.backup("test", &log).expect("a backup");
        trial.forget(self.series, self.scene.ids[0], 0.0, &log).expect("forgetting");
        assert!(log.problems().is_empty(), "{:?} after {}", log.problems(), trial.story);
        let trees = &self.scene.trees;
        for (id, tree) in [
            (self.scene.ids[1], &trees[&self.scene.ids[1]]),
            (self.other, &trees[&self.other]),
            (id, &self.scene.source()),
        ] {
            trial.assert_restores(id, tree, false, &ruin.name);
        }
    }

    fn try_check_beside(&self, ruin: &Ruin) {
        let trial = self.trial(ruin);
        let findings = trial.check(ReadData::None).expect("a check").findings;
        let name = ruin.name.to_string();
        let named = findings.iter().any(|f| f.object.contains(&name) || f.what.contains(&name));
        assert_eq!(named, ruin.shows != Shows::Never, "{findings:?} after {}", trial.story);
        assert_eq!(findings.len(), usize::from(named), "{findings:?} after {}", trial.story);
    }
}

#[test]
fn a_damaged_reserve_hinders_nothing_and_the_next_backup_puts_it_back() {
    let matrix = Matrix::new();
    for ruin in ruins_of(&matrix.good, ObjectName::Reserve, &[("bytes", 100, Shows::Never)]) {
        let ruin = Ruin { shows: Shows::Never, ..ruin };
        matrix.try_beside(&ruin);
        let (trial, log) = (matrix.trial(&ruin), Log::default());
        trial.backup("test", &log).expect("a backup");
        if ruin.damage == Damage::Unreadable {
            continue; // Nobody reads it: it keeps its room free all the same.
        }
        let size = |disk: &SimulatedDisk| disk.read(&ObjectName::Reserve, u64::MAX).map(|bytes| bytes.len()).ok();
        assert_eq!(size(&trial.disk), size(&matrix.good), "{}", trial.story);
    }
}

const MANIFEST_PARTS: [(&str, u64, Shows); 5] = [
    ("magic", 3, Shows::WhenOpened),
    ("version", 8, Shows::WhenOpened),
    ("salt", 20, Shows::WhenOpened),
    ("content", 70, Shows::WhenOpened),
    ("content", 700, Shows::WhenOpened),
];

/// The newest manifest of a series, the one before, and their copies.
fn manifests_of(matrix: &Matrix) -> [Original; 2] {
    let ObjectName::Manifest(series, newest) = manifest_of(&matrix.good, matrix.series) else { unreachable!() };
    [newest, newest - 1].map(|sequence| Original::Manifest(series, sequence))
}

/// The story: one flipped bit in the newest manifest made a series unreadable.
#[test]
fn one_damaged_manifest_is_told_by_check_and_hinders_nothing() {
    let matrix = Matrix::new();
    let [newest, before] = manifests_of(&matrix);
    for name in [newest.name(), newest.copy(), before.name(), before.copy()] {
        for ruin in ruins_of(&matrix.good, name, &MANIFEST_PARTS) {
            // A copy that is gone is what a run leaves that was cut short.
            let is_copy = matches!(name, ObjectName::Copy(_));
            let shows = if is_copy && ruin.damage == Damage::Delete { Shows::Never } else { ruin.shows };
            matrix.try_beside(&Ruin { shows, ..ruin });
        }
    }
}

#[test]
fn a_backup_that_reads_a_manifest_from_its_copy_says_so_and_writes_it_twice_again() {
    let matrix = Matrix::new();
    let [newest, _] = manifests_of(&matrix);
    for ruin in ruins_of(&matrix.good, newest.name(), &MANIFEST_PARTS) {
        let (trial, log) = (matrix.trial(&ruin), Log::default());
        trial.backup("test", &log).expect("a backup");
        let is_told = |notice: &Notice| matches!(notice, Notice::ReadFromCopy { reason } if reason.contains("series/"));
        assert!(log.notices().iter().any(is_told), "{:?} after {}", log.notices(), trial.story);
        assert_eq!(matrix.scene.assert_sound(&trial.disk, &trial.story).len(), 4);
    }
}

/// Never silently an older state: the newest manifest stands for the series.
#[test]
fn a_manifest_damaged_in_both_copies_is_told_by_every_command_and_costs_no_other_series() {
    let matrix = Matrix::new();
    let [newest, _] = manifests_of(&matrix);
    let (name, copy) = (newest.name(), newest.copy());
    for (ruin, other) in
        ruins_of(&matrix.good, name, &MANIFEST_PARTS).iter().zip(ruins_of(&matrix.good, copy, &MANIFEST_PARTS))
    {
        let (trial, log) = (matrix.trial(ruin), Log::default());
        assert!(trial.disk.damage(&copy, other.damage.clone()));
        let names = trial.disk.names();
        let is_told = |error: &EngineError| {
            let text = error.to_string();
            (trial.tells(&text, &name) && text.contains("silt repair")) || text.contains("manifests are missing")
        };
        let is_deleted = ruin.damage == Damage::Delete;
        match trial.restore(matrix.scene.ids[0]) {
            // The one before is the newest then, and it has all snapshots; but nothing is written.
            Ok(_) => assert!(is_deleted, "{}", trial.story),
            Err(error) => assert!(is_told(&error), "restore: {error} after {}", trial.story),
        }
        if !is_deleted {
            let error = trial.backup("test", &log).expect_err("a backup");
            assert!(is_told(&error), "backup: {error} after {}", trial.story);
            let error = trial.forget(matrix.series, matrix.scene.ids[0], 0.0, &log).expect_err("forgetting");
            assert!(is_told(&error), "forget: {error} after {}", trial.story);
            let findings = trial.check(ReadData::None).expect("a check").findings;
            let folder = format!("series/{}", matrix.series);
            assert!(findings.iter().any(|finding| finding.object.starts_with(&folder)), "{findings:?} {}", trial.story);
            assert_eq!(trial.disk.names(), names, "nothing is touched: {}", trial.story);
        }
        trial.assert_restores(matrix.other, &matrix.scene.trees[&matrix.other], false, &name);
        trial.backup("other", &log).expect("a backup of another series");
        if !is_deleted {
            ruin.mend(&trial.disk, &matrix.good);
            Ruin { name: copy, ..ruin.clone() }.mend(&trial.disk, &matrix.good);
            assert!(matrix.scene.assert_sound(&trial.disk, &trial.story).len() > 3);
        }
    }
}

/// The containers of the first backup hold what both snapshots need, in part; those of the second what only it needs.
#[test]
fn a_damaged_data_container_costs_no_more_than_what_was_hit() {
    let matrix = Matrix::new();
    for at in [0, 1] {
        let record = matrix.container(ContainerKind::Data, at);
        for ruin in ruins_of_container(&matrix.good, &matrix.repository, matrix.series, &record) {
            matrix.try_container(&ruin);
        }
    }
}

#[test]
fn a_damaged_metadata_container_costs_no_more_than_what_was_hit() {
    let matrix = Matrix::new();
    let record = matrix.container(ContainerKind::Metadata, 1);
    for ruin in ruins_of_container(&matrix.good, &matrix.repository, matrix.series, &record) {
        matrix.try_container(&ruin);
    }
}

/// The source has not changed, so the new catalog is the old one node by node, and its fingerprints stand in the local
/// index.
#[test]
fn a_catalog_found_damaged_by_a_backup_is_stored_anew() {
    let mut scene = Scene::new();
    scene.sandbox.write("folder/file", &common::noise(1, 50_000));
    scene.backup();
    let repository = scene.sandbox.repository();
    let series = repository.keys().series_id("test");
    let record = &containers_of(&repository, series, ContainerKind::Metadata)[0];
    let bare = without_parity(&scene.disk);
    let ruins = ruins_of_container(&bare, &repository, series, record);
    let ruin = ruins.iter().find(|ruin| ruin.part == "region").expect("a flip in a region");
    let sandbox = scene.sandbox.at(ruin.done_to(&bare));
    for force in [false, true] {
        let options = sandbox.options().with_force(force);
        let id = sandbox.try_backup(&options).expect("a backup").snapshot.expect("a snapshot");
        assert_eq!(sandbox.restored(id), scene.source());
    }
}

#[test]
fn swapped_objects_are_told_apart() {
    let matrix = Matrix::new();
    let series = matrix.series;
    let name = |kind, at| matrix.container(kind, at).object_name(series);
    let (data, metadata) = (ContainerKind::Data, ContainerKind::Metadata);
    let other = matrix.repository.keys().series_id("other");
    let manifests = (manifest_of(&matrix.good, series), manifest_of(&matrix.good, other));
    let swaps = [
        (name(data, 0), name(data, 1)),
        (name(data, 0), name(metadata, 0)),
        (name(metadata, 0), name(metadata, 1)),
        manifests,
        (name(data, 1), config_of(&matrix.good)),
        (manifests.0, config_of(&matrix.good)),
    ];
    for (one, two) in swaps {
        let disk = copy(&matrix.good);
        assert!(disk.swap(&one, &two));
        let trial = Trial { scene: &matrix.scene, disk, story: format!("swapping {one} and {two}") };
        match trial.check(ReadData::All) {
            Err(error) => panic!("{error} after {}", trial.story),
            Ok(report) => {
                for name in [one, two].map(|name| name.to_string()) {
                    let folder = name.rsplit_once('/').expect("a folder").0;
                    let tells =
                        |text: &str| text.contains(&name) || (name.starts_with("series") && text.contains(folder));
                    let named = report.findings.iter().any(|finding| tells(&finding.object) || tells(&finding.what));
                    assert!(named, "{name} is not named: {:?} after {}", report.findings, trial.story);
                }
            }
        }
        for id in matrix.all_ids() {
            match trial.restore(id) {
                Err(error) => {
                    assert!(error.to_string().contains('/') || error.to_string().contains("config"), "{error}");
                }
                Ok((tree, log)) => {
                    let differs = tree != matrix.scene.trees[&id];
                    assert!(
                        !differs || !log.problems().is_empty(),
                        "{} without a word after {}",
                        id.short(),
                        trial.story
                    );
                }
            }
        }
        assert!(trial.disk.swap(&one, &two));
        assert_eq!(matrix.scene.assert_sound(&trial.disk, &trial.story).len(), 3);
    }
}

/// A container of another copy of the same repository, that went its own way under the same lease number.
#[test]
fn a_container_of_a_diverged_copy_is_refused() {
    // Nothing is settled, so that the first snapshot hangs on nothing of the second.
    let mut scene = Scene { migrate: false, ..Scene::new() };
    scene.sandbox.write("file", &common::noise(1, 50_000));
    scene.backup();
    let diverged = copy(&scene.disk);
    scene.sandbox.write("file", &common::noise(2, 50_000));
    let options = scene.sandbox.options().with_force(true).with_migrate(false);
    scene.sandbox.at(diverged.clone()).try_backup(&options).expect("a backup");
    let id = scene.backup();
    let newest = |disk: &SimulatedDisk| -> Vec<(ObjectName, ContainerId)> {
        let containers = disk.names().into_iter().filter_map(|name| match name {
            ObjectName::Container(_, _, id) => Some((name, id)),
            _ => None,
        });
        let all: Vec<_> = containers.collect();
        let lease = all.iter().map(|(_, id)| id.lease).max();
        all.into_iter().filter(|(_, id)| Some(id.lease) == lease).collect()
    };
    let (ours, theirs) = (newest(&scene.disk), newest(&diverged));
    assert_eq!(ours, theirs, "the same names");
    for (name, _) in &theirs {
        scene.disk.damage(name, Damage::Replace(diverged.read(name, u64::MAX).expect("their container")));
    }
    let trial = Trial { scene: &scene, disk: copy(&scene.disk), story: "mixing copies".into() };
    let findings = trial.check(ReadData::None).expect("a check").findings;
    assert!(ours.iter().all(|(name, _)| findings.iter().any(|f| f.object == name.to_string())), "{findings:?}");
    let complains = match trial.restore(id) {
        Ok((_, log)) => !log.problems().is_empty(),
        Err(_) => true,
    };
    assert!(complains);
    trial.assert_restores(scene.ids[0], &scene.trees[&scene.ids[0]], false, &ours[0].0);
}
