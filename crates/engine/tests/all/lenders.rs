//! Series that borrow, when something goes wrong: with the lender's objects, with the loans, with the borrower's
//! manifests, or in the middle of a run. What is lost is told for all who need it, nothing else is lost, and what a
//! repair can bring back comes back.

use crate::common::faults::{at_every_write, copy, without_parity};
use crate::common::log::Log;
use crate::common::repair::{open, repair_options, try_repair};
use crate::common::ruin::{Ruin, Shows, Trial, containers_of, manifest_of, ruins_of, ruins_of_container};
use crate::common::scene::Scene;
use crate::common::{self, PASSWORD, noise, resources};
use siltstone_engine::EngineError;
use siltstone_engine::backup::{self, Borrow, Source};
use siltstone_engine::check::{self, CheckOptions, CheckReport, Finding, Help, ReadData};
use siltstone_engine::maintain;
use siltstone_engine::repair;
use siltstone_engine::stats;
use siltstone_store::container::{ContainerKind, ContainerReader};
use siltstone_store::directory::{Directory, DirectoryEntry};
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::storage::{
    Damage, Disk, Listing, ObjectMeta, ObjectName, Original, SimulatedDisk, Storage, StorageError,
};
use siltstone_store::{LoanId, SeriesId, SnapshotId};
use std::sync::Arc;

/// Ruins something on a disk.
type Ruining<'r> = &'r dyn Fn(&SimulatedDisk);

/// A series that lends and one that borrows, with a snapshot each.
struct Pair {
    scene: Scene,
    lender: SnapshotId,
    borrower: SnapshotId,
}

const FILES: u64 = 24;

impl Pair {
    fn new() -> Self {
        let (mut scene, lender) = lending();
        scene.sandbox.write("own", &noise(1000, 20_000));
        let borrower = back_up(&scene, &scene.disk, "second").expect("a backup");
        scene.trees.insert(borrower, scene.source());
        let pair = Self { scene, lender, borrower };
        assert!(pair.manifest(&pair.scene.disk, "second").imported().len() >= FILES);
        pair
    }

    fn disk(&self) -> SimulatedDisk {
        without_parity(&self.scene.disk)
    }

    fn series(&self, name: &str) -> SeriesId {
        self.scene.sandbox.repository().keys().series_id(name)
    }

    fn manifest(&self, disk: &SimulatedDisk, series: &str) -> Manifest {
        open(disk).manifest(self.series(series)).expect("readable").expect("a manifest")
    }

    fn check(&self, disk: &SimulatedDisk, read_data: ReadData) -> CheckReport {
        self.scene.sandbox.at(disk.clone()).check(read_data)
    }

    fn assert_restores(&self, disk: &SimulatedDisk, id: SnapshotId, story: &str) {
        let restored = self.scene.sandbox.at(disk.clone()).restored(id);
        assert!(restored == self.scene.trees[&id], "snapshot {} differs after {story}", id.short());
    }

    fn forget(&self, disk: &SimulatedDisk, id: SnapshotId) {
        try_forget(&self.scene, disk, id).expect("forgetting");
    }

    fn loans(disk: &SimulatedDisk) -> Vec<ObjectName> {
        disk.names().into_iter().filter(|name| matches!(name, ObjectName::Loan(..))).collect()
    }

    /// Every manifest of a series, copies included, meets this.
    fn damage_manifests(&self, disk: &SimulatedDisk, series: &str, damage: &Damage) {
        for name in self.manifests_of(disk, series) {
            disk.damage(&name, damage.clone());
        }
    }

    /// The names of all manifests of a series, and of their copies.
    fn manifests_of(&self, disk: &SimulatedDisk, series: &str) -> Vec<ObjectName> {
        let series = self.series(series);
        let is_manifest = |name: &ObjectName| {
            let original = name.original().map_or(*name, Original::name);
            matches!(original, ObjectName::Manifest(of, _) if of == series)
                || matches!(name, ObjectName::Copy(Original::Manifest(of, _)) if *of == series)
        };
        disk.names().into_iter().filter(is_manifest).collect()
    }

    fn delete_containers(&self, disk: &SimulatedDisk, series: &str) {
        let series = self.series(series);
        for record in containers_of(&open(disk), series, ContainerKind::Data) {
            assert!(disk.damage(&record.object_name(series), Damage::Delete));
        }
    }
}

/// A scene with a snapshot of the series that lends.
fn lending() -> (Scene, SnapshotId) {
    let mut scene = Scene::new();
    for file in 0..FILES {
        scene.sandbox.write(&format!("shared/{file}"), &noise(file, 4000));
    }
    std::thread::sleep(std::time::Duration::from_millis(60));
    let lender = back_up(&scene, &scene.disk, "first").expect("a backup");
    scene.trees.insert(lender, scene.source());
    (scene, lender)
}

fn try_forget(scene: &Scene, disk: &SimulatedDisk, id: SnapshotId) -> Result<(), EngineError> {
    let options = scene.sandbox.forget_options(false).with_take_over(true).with_rewrite_threshold(0.0);
    scene.sandbox.at(disk.clone()).try_forget(&[id], &options).map(drop)
}

fn back_up(scene: &Scene, disk: &SimulatedDisk, series: &str) -> Result<SnapshotId, EngineError> {
    let borrow = if series == "first" { Borrow::Never } else { Borrow::From("first".to_owned()) };
    let options = scene.sandbox.options().with_series(Some(series.to_owned())).with_borrow(borrow);
    let options = options.with_take_over(true).with_force(true);
    let source = Source::Paths(vec![scene.sandbox.source()]);
    let repository = Repository::open(Arc::new(disk.clone()), PASSWORD)?;
    let summary = backup::backup(&repository, source, &options, &resources())?;
    Ok(summary.snapshot.expect("a snapshot"))
}

fn tells(finding: &Finding, text: &str) -> bool {
    finding.object.contains(text) || finding.what.contains(text)
}

/// Every damage to a container that holds what is borrowed is told for both series, and neither container is read
/// twice.
#[test]
fn damage_of_a_lenders_container_is_told_for_the_borrower_too() {
    let pair = Pair::new();
    let good = pair.disk();
    let record = &containers_of(&open(&good), pair.series("first"), ContainerKind::Data)[0];
    for ruin in ruins_of_container(&good, &open(&good), pair.series("first"), record) {
        let disk = ruin.done_to(&good);
        for read_data in [ReadData::None, ReadData::All] {
            let report = pair.check(&disk, read_data);
            let story = format!("{read_data:?} after {}: {:?}", ruin.story(), report.findings);
            let is_told = |id: SnapshotId| {
                let told = |finding: &&Finding| finding.snapshots.contains(&id.short());
                report.findings.iter().filter(|finding| tells(finding, &ruin.name.to_string())).any(|f| told(&f))
            };
            let is_seen = match ruin.shows {
                Shows::InListing | Shows::WhenOpened => true,
                Shows::WhenRead => read_data == ReadData::All && ruin.part == "region",
                Shows::Never => false,
            };
            assert_eq!(is_told(pair.lender), is_told(pair.borrower), "{story}");
            assert!(!is_seen || is_told(pair.borrower), "{story}");
            assert!(report.containers_read <= report.containers, "{story}");
        }
        // What was not hit restores; nothing is said to be whole that is not.
        let log = Log::default();
        let again = pair.scene.sandbox.at(disk.clone());
        let options =
            again.options().with_series(Some("second".to_owned())).with_borrow(Borrow::Never).with_force(true);
        let source = Source::Paths(vec![again.source()]);
        let summary = backup::backup(&open(&disk), source, &options, &common::heard_by(&log)).expect("a backup");
        let id = summary.snapshot.expect("a snapshot");
        if ruin.shows != Shows::WhenRead {
            assert!(again.restored(id) == pair.scene.source(), "what cannot be read is stored again: {}", ruin.story());
        }
        ruin.mend(&disk, &good);
        assert!(pair.scene.assert_sound(&disk, &ruin.story()).contains(&pair.borrower));
    }
}

#[test]
fn a_lender_that_is_gone_or_unreadable_is_told_by_name_with_all_snapshots_that_need_it() {
    let pair = Pair::new();
    let ruins: [(&str, Ruining<'_>); 3] = [
        ("manifests deleted", &|disk| pair.damage_manifests(disk, "first", &Damage::Delete)),
        ("manifests flipped", &|disk| pair.damage_manifests(disk, "first", &Damage::Flip { offset: 80, mask: 1 })),
        ("all deleted", &|disk| {
            pair.delete_containers(disk, "first");
            pair.damage_manifests(disk, "first", &Damage::Delete);
        }),
    ];
    for (story, ruin) in ruins {
        let disk = pair.disk();
        ruin(&disk);
        let findings = pair.check(&disk, ReadData::All).findings;
        let told: Vec<_> =
            findings.iter().filter(|finding| finding.what.contains("\"first\", of which chunks")).collect();
        assert_eq!(told.len(), 1, "{findings:?} after {story}");
        assert_eq!((&told[0].snapshots, told[0].help), (&vec![pair.borrower.short()], Help::Backup), "after {story}");
        // Whoever still has the content stores it again.
        let id = back_up_alone(&pair, &disk);
        let trial = Trial { scene: &pair.scene, disk, story: story.to_owned() };
        let (tree, log) = trial.restore(id).unwrap_or_else(|error| panic!("{error} after {story}"));
        assert!(tree == pair.scene.source() && log.problems().is_empty(), "after {story}: {:?}", log.problems());
    }
}

/// An object as a program of the next version of the format would write it, by what its header says.
fn of_newer_format(mut object: Vec<u8>) -> Vec<u8> {
    // The version stands at 8, the header's checksum at 60.
    object[8] += 1;
    let sum = blake3::hash(&object[..60]);
    object[60..64].copy_from_slice(&sum.as_bytes()[..4]);
    object
}

#[test]
fn a_lender_of_a_newer_format_is_told_and_nothing_of_it_is_replaced() {
    let pair = Pair::new();
    let disk = pair.disk();
    for name in pair.manifests_of(&disk, "first") {
        let newer = of_newer_format(disk.read(&name, u64::MAX).expect("a manifest"));
        assert!(disk.damage(&name, Damage::Replace(newer)));
    }
    let options = CheckOptions::reading(ReadData::All).with_record(Some("user".into()));
    let findings = check::check(&open(&disk), &options, &resources()).expect("a check").findings;
    let told = findings.iter().find(|finding| finding.what.contains("\"first\", of which chunks")).expect("a finding");
    assert!(told.what.contains("use a newer Siltstone"), "{told:?}");
    assert_eq!((&told.snapshots, told.help), (&vec![pair.borrower.short()], Help::NewerProgram));
    assert!(findings.iter().all(|finding| finding.help == Help::NewerProgram), "{findings:?}");
    assert!(pair.manifest(&disk, "second").damaged.is_empty(), "nothing is known to be lost");

    let before = copy(&disk);
    let refused = try_repair(&disk, &repair_options()).expect_err("a newer program may repair it");
    assert!(refused.to_string().contains("use a newer Siltstone"), "{refused}");
    assert!(disk.is_found_as(&before), "a repair replaces nothing that it does not know");
    let id = back_up_alone(&pair, &disk);
    let trial = Trial { scene: &pair.scene, disk, story: "a newer format".to_owned() };
    let (tree, log) = trial.restore(id).expect("a backup stores what it cannot borrow");
    assert!(tree == pair.scene.source() && log.problems().is_empty(), "{:?}", log.problems());
}

/// A backup of the borrower that borrows nothing new.
fn back_up_alone(pair: &Pair, disk: &SimulatedDisk) -> SnapshotId {
    let options = pair.scene.sandbox.options().with_series(Some("second".to_owned())).with_borrow(Borrow::Never);
    let source = Source::Paths(vec![pair.scene.sandbox.source()]);
    let options = options.with_take_over(true).with_force(true);
    let summary = backup::backup(&open(disk), source, &options, &resources()).expect("a backup");
    summary.snapshot.expect("a snapshot")
}

#[test]
fn a_lender_that_was_rolled_back_is_told() {
    let mut pair = Pair::new();
    let before = copy(&pair.scene.disk);
    pair.scene.sandbox.write("later", &noise(2000, 30_000));
    let disk = copy(&pair.scene.disk);
    back_up(&pair.scene, &disk, "first").expect("a backup");
    pair.borrower = back_up(&pair.scene, &disk, "second").expect("a backup");
    let lender = pair.series("first");
    for name in disk.names() {
        let is_lenders = name.series() == Some(lender) && !matches!(name, ObjectName::Loan(..));
        match before.read(&name, u64::MAX) {
            _ if !is_lenders => {}
            Ok(bytes) => drop(disk.damage(&name, Damage::Replace(bytes))),
            Err(_) => assert!(disk.damage(&name, Damage::Delete)),
        }
    }
    for name in before.names().into_iter().filter(|name| name.series() == Some(lender) && !disk.names().contains(name))
    {
        disk.put(&name, &before.read(&name, u64::MAX).expect("read")).expect("put");
    }
    disk.barrier().expect("durable");
    let findings = pair.check(&disk, ReadData::None).findings;
    let told = findings.iter().find(|finding| finding.what.contains("no longer has")).expect("a finding");
    assert!(told.snapshots == [pair.borrower.short()], "{findings:?}");
}

/// Damages of a loan, with what a check says.
#[test]
fn a_loan_that_is_lost_or_damaged_is_told_and_a_repair_makes_another() {
    let pair = Pair::new();
    let good = pair.disk();
    let name = Pair::loans(&good)[0];
    let parts = [("magic", 0), ("version", 8), ("kind", 10), ("salt", 20), ("commitment", 50), ("content", 70)];
    for ruin in ruins_of(&good, name, &parts.map(|(part, offset)| (part, offset, Shows::WhenOpened))) {
        let (disk, story) = (ruin.done_to(&good), ruin.story());
        let findings = pair.check(&disk, ReadData::All).findings;
        assert_eq!(findings.len(), 1, "{findings:?} after {story}");
        assert!(tells(&findings[0], &name.to_string()), "{findings:?} after {story}");
        assert_eq!((&findings[0].snapshots, findings[0].help), (&vec![pair.borrower.short()], Help::Repair), "{story}");
        for id in [pair.lender, pair.borrower] {
            pair.assert_restores(&disk, id, &story);
        }
        if ruin.damage != Damage::Delete {
            // Nobody knows what it holds, so nothing that may be borrowed goes.
            assert!(try_forget(&pair.scene, &disk, pair.lender).is_err(), "{story}");
            pair.assert_restores(&disk, pair.borrower, &story);
        }
        try_repair(&disk, &repair_options()).unwrap_or_else(|error| panic!("{error} after {story}"));
        assert_eq!(pair.check(&disk, ReadData::All).findings, [], "after {story}");
        assert_eq!(Pair::loans(&disk).len(), 1, "after {story}");
        let _ = try_forget(&pair.scene, &disk, pair.lender);
        pair.assert_restores(&disk, pair.borrower, &story);
        assert!(!planned(&disk), "nothing is left to do after {story}");
    }
}

fn planned(disk: &SimulatedDisk) -> bool {
    repair::plan(&open(disk), &repair_options(), &resources()).expect("a plan").has_steps()
}

#[test]
fn a_loan_that_comes_back_holds_chunks_until_a_repair_removes_it() {
    let pair = Pair::new();
    let disk = pair.disk();
    let name = Pair::loans(&disk)[0];
    let bytes = disk.read(&name, u64::MAX).expect("a loan");
    pair.forget(&disk, pair.borrower);
    maintain::maintain(&open(&disk), &pair.scene.sandbox.migrate_options(), &resources()).expect("maintained");
    assert_eq!(Pair::loans(&disk), []);
    disk.put(&name, &bytes).expect("put");
    // Under the name of a loan of another series, it is none.
    let ObjectName::Loan(lender, id) = name else { unreachable!() };
    let forged = ObjectName::Loan(lender, LoanId { borrower: lender, ..id });
    disk.put(&forged, &bytes).expect("put");
    disk.barrier().expect("durable");
    let report = pair.check(&disk, ReadData::None);
    assert_eq!(report.findings, []);
    assert_eq!(report.harmless.len() as u64 + report.orphans, 2, "{report:?}");
    try_repair(&disk, &repair_options()).expect("repaired");
    assert_eq!(Pair::loans(&disk), []);
    pair.forget(&disk, pair.lender);
    assert_eq!(pair.check(&disk, ReadData::All).findings, []);
}

#[test]
fn imports_come_back_from_loans_when_all_manifests_of_the_borrower_are_lost() {
    let pair = Pair::new();
    let before = pair.manifest(&pair.scene.disk, "second");
    for damage in [Damage::Delete, Damage::Flip { offset: 80, mask: 1 }, Damage::Truncate { bytes: 100 }] {
        let (disk, story) = (pair.disk(), format!("{damage:?} of all manifests"));
        pair.damage_manifests(&disk, "second", &damage);
        try_repair(&disk, &repair_options()).unwrap_or_else(|error| panic!("{error} after {story}"));
        let after = pair.manifest(&disk, "second");
        assert_eq!(after.imports, before.imports, "{story}");
        assert!(after.damaged.is_empty() && after.faults().is_empty(), "{story}");
        let ids = pair.scene.assert_sound(&disk, &story);
        assert!(ids.contains(&pair.lender) && ids.contains(&pair.borrower), "{story}");
        pair.forget(&disk, pair.lender);
        pair.assert_restores(&disk, pair.borrower, &story);
        let again = back_up(&pair.scene, &disk, "second").expect("a backup");
        assert!(pair.scene.assert_sound(&disk, &story).contains(&again), "{story}");
    }
}

/// On a folder each kind of object lies in its own place, and all of them are looked through.
#[test]
fn imports_come_back_from_loans_that_lie_in_a_folder() {
    let pair = Pair::new();
    let (good, before) = (pair.disk(), pair.manifest(&pair.scene.disk, "second"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let disk = Disk::create(folder.path()).expect("a folder");
    let lost = pair.manifests_of(&good, "second");
    for name in good.names().into_iter().filter(|name| !lost.contains(name)) {
        disk.create(&name, &good.read(&name, u64::MAX).expect("read")).expect("created");
    }
    let sandbox = pair.scene.sandbox.at(disk);
    let plan = repair::plan(&sandbox.repository(), &repair_options(), &resources()).expect("a plan");
    let (_, errors) = repair::execute(&sandbox.repository(), plan, &repair_options(), &resources()).expect("repaired");
    assert!(errors.is_empty(), "{errors:?}");
    let after = sandbox.repository().manifest(pair.series("second")).expect("readable").expect("a manifest");
    assert_eq!(after.imports, before.imports);
    assert!(after.damaged.is_empty() && after.faults().is_empty());
    assert!(sandbox.restored(pair.borrower) == pair.scene.trees[&pair.borrower]);
    assert_eq!(sandbox.check(ReadData::All).findings, []);
}

/// A disk of which one series is reached, as with a token for it.
#[derive(Debug)]
struct Scoped {
    disk: SimulatedDisk,
    series: SeriesId,
}

impl Storage for Scoped {
    fn read(&self, name: &ObjectName, bytes_max: u64) -> Result<Vec<u8>, StorageError> {
        self.disk.read(name, bytes_max)
    }

    fn read_range(&self, name: &ObjectName, offset: u64, length: usize) -> Result<Vec<u8>, StorageError> {
        self.disk.read_range(name, offset, length)
    }

    fn put(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        self.disk.put(name, bytes)
    }

    fn barrier(&self) -> Result<(), StorageError> {
        self.disk.barrier()
    }

    fn create(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        self.disk.create(name, bytes)
    }

    fn delete(&self, name: &ObjectName) -> Result<(), StorageError> {
        self.disk.delete(name)
    }

    fn list(&self, what: Listing) -> Result<Vec<ObjectMeta>, StorageError> {
        let mut listed = self.disk.list(what)?;
        let is_lent = |name: ObjectName| matches!(name, ObjectName::Loan(lender, _) if lender == self.series);
        listed.retain(|meta| meta.name.series().is_none_or(|series| self.reaches(series)) || is_lent(meta.name));
        Ok(listed)
    }

    fn remove_unfinished(&self, series: SeriesId, lease_last: u64) -> Result<u64, StorageError> {
        self.disk.remove_unfinished(series, lease_last)
    }

    fn reaches(&self, series: SeriesId) -> bool {
        series == self.series
    }

    fn location(&self) -> String {
        self.disk.location()
    }
}

/// Nothing is known of the others: they may lend as before.
#[test]
fn maintenance_that_reaches_one_series_keeps_the_others_in_the_directory() {
    let pair = Pair::new();
    let (disk, lender) = (pair.disk(), pair.series("first"));
    let entry = DirectoryEntry { series: SeriesId([9; 16]), sketch: pair.manifest(&disk, "first").sketch };
    let repository = open(&disk);
    let written = Directory::newest(&repository).expect("readable").with(&repository, &entry).expect("written");
    assert!(written.is_some());
    let is_known = || Directory::newest(&open(&disk)).expect("readable").entries.contains(&entry);
    assert!(is_known());
    let maintain = |repository: &Repository| {
        maintain::maintain(repository, &pair.scene.sandbox.migrate_options(), &resources()).expect("maintained")
    };
    let scoped = Scoped { disk: disk.clone(), series: lender };
    maintain(&Repository::open(Arc::new(scoped), PASSWORD).expect("the repository opens"));
    assert!(is_known(), "it is out of reach");
    maintain(&open(&disk));
    assert!(!is_known(), "there is no such series");
}

#[test]
fn without_manifests_and_loans_what_was_borrowed_is_noted_and_stored_again() {
    let pair = Pair::new();
    for damage in [Damage::Delete, Damage::Flip { offset: 80, mask: 1 }] {
        let (disk, story) = (pair.disk(), format!("{damage:?}"));
        pair.damage_manifests(&disk, "second", &Damage::Delete);
        assert!(disk.damage(&Pair::loans(&disk)[0], damage));
        try_repair(&disk, &repair_options()).unwrap_or_else(|error| panic!("{error} after {story}"));
        let after = pair.manifest(&disk, "second");
        assert!(after.imports.is_empty() && after.damaged.len() >= FILES, "{story}");
        let again = back_up_alone(&pair, &disk);
        assert!(pair.scene.sandbox.at(disk.clone()).restored(again) == pair.scene.source(), "{story}");
    }
}

#[test]
fn what_the_lender_has_lost_is_noted_and_the_next_backup_stores_it_as_its_own() {
    let pair = Pair::new();
    let disk = pair.disk();
    // The index tells which number a content had.
    let (repository, lender) = (open(&disk), pair.series("first"));
    for record in containers_of(&repository, lender, ContainerKind::Data) {
        let reader = ContainerReader::open(&disk, repository.keys(), lender, &record).expect("an index");
        for region in reader.index().regions() {
            let damage = Damage::Flip { offset: region.offset, mask: 1 };
            assert!(disk.damage(&record.object_name(lender), damage));
        }
    }
    let options = repair_options().with_read_data(true);
    let plan = repair::plan(&open(&disk), &options, &resources()).expect("a plan");
    assert!(plan.series.iter().any(|series| series.damaged.iter().any(|hurt| hurt.snapshot.id == pair.borrower)));
    let (_, errors) = repair::execute(&open(&disk), plan, &options, &resources()).expect("repaired");
    assert!(errors.is_empty(), "{errors:?}");
    let noted = pair.manifest(&disk, "second");
    assert_eq!(noted.damaged, noted.imported(), "all that was borrowed");
    let again = back_up(&pair.scene, &disk, "second").expect("a backup");
    let after = pair.manifest(&disk, "second");
    assert!(after.imports.is_empty() && after.damaged.is_empty() && after.faults().is_empty());
    for id in [pair.borrower, again] {
        assert!(pair.scene.sandbox.at(disk.clone()).restored(id) == pair.scene.trees[&pair.borrower]);
    }
}

/// Nothing tells which number a content had: what is new gets new numbers.
#[test]
fn a_backup_after_the_lenders_containers_are_gone_is_whole() {
    let pair = Pair::new();
    let disk = pair.disk();
    pair.delete_containers(&disk, "first");
    try_repair(&disk, &repair_options()).expect("repaired");
    assert!(pair.manifest(&disk, "second").damaged.len() >= FILES);
    let again = back_up(&pair.scene, &disk, "second").expect("a backup");
    assert!(pair.scene.sandbox.at(disk).restored(again) == pair.scene.trees[&pair.borrower]);
}

#[test]
fn a_check_records_what_the_lender_has_lost_and_that_it_is_back() {
    let pair = Pair::new();
    let good = pair.disk();
    let disk = copy(&good);
    pair.delete_containers(&disk, "first");
    let check = |disk: &SimulatedDisk| {
        let options = CheckOptions::reading(ReadData::All).with_record(Some("user".into()));
        check::check(&open(disk), &options, &resources()).expect("a check")
    };
    let records = check(&disk).records;
    assert_eq!(records.iter().map(|record| record.series.as_str()).collect::<Vec<_>>().len(), 2, "{records:?}");
    assert_eq!(pair.manifest(&disk, "second").damaged, pair.manifest(&disk, "second").imported());
    for record in containers_of(&open(&good), pair.series("first"), ContainerKind::Data) {
        let name = record.object_name(pair.series("first"));
        disk.put(&name, &good.read(&name, u64::MAX).expect("a container")).expect("put");
    }
    disk.barrier().expect("durable");
    assert_eq!(check(&disk).findings, []);
    assert!(pair.manifest(&disk, "second").damaged.is_empty() && pair.manifest(&disk, "first").damaged.is_empty());
}

#[test]
fn a_lender_whose_manifests_are_lost_keeps_what_is_borrowed() {
    let pair = Pair::new();
    let disk = pair.disk();
    pair.forget(&disk, pair.lender);
    assert!(!pair.manifest(&disk, "first").lent.is_empty());
    pair.damage_manifests(&disk, "first", &Damage::Delete);
    // Without a snapshot nothing but the list of series tells its name.
    match try_repair(&disk, &repair_options()) {
        Ok(_) => {}
        Err(error) => panic!("{error}"),
    }
    if let Ok(Some(manifest)) = open(&disk).manifest(pair.series("first")) {
        assert!(manifest.lends && manifest.lent.len() >= FILES);
        pair.assert_restores(&disk, pair.borrower, "a repair of the lender");
    }
    let disk = pair.disk();
    pair.damage_manifests(&disk, "first", &Damage::Delete);
    try_repair(&disk, &repair_options()).expect("repaired");
    assert!(pair.manifest(&disk, "first").lends);
    pair.forget(&disk, pair.lender);
    maintain::maintain(&open(&disk), &pair.scene.sandbox.migrate_options(), &resources()).expect("maintained");
    pair.assert_restores(&disk, pair.borrower, "a repair, and a forget");
    assert_eq!(pair.check(&disk, ReadData::All).findings, []);
}

#[test]
fn figures_tell_who_borrows_of_whom() {
    let pair = Pair::new();
    let figures = |disk: &SimulatedDisk| stats::stats(&open(disk), &|_| true).expect("figures").0;
    let before = figures(&pair.scene.disk);
    let [borrowed] = &before.borrowed[..] else { panic!("{:?}", before.borrowed) };
    assert_eq!((borrowed.series.as_str(), borrowed.lender.as_str()), ("second", "first"));
    assert_eq!((borrowed.plain_bytes, borrowed.only_for_others), (FILES * 4000, 0));
    assert_eq!(before.lent_bytes, 0);
    let disk = pair.disk();
    pair.forget(&disk, pair.lender);
    let after = figures(&disk);
    assert_eq!(after.lent_bytes, FILES * 4000);
    assert_eq!(after.borrowed[0].only_for_others, after.borrowed[0].chunks);
}

#[test]
fn a_borrowing_backup_hit_at_any_write_costs_no_snapshot() {
    let (scene, lender) = lending();
    at_every_write(
        &scene.disk,
        |disk| back_up(&scene, disk, "second"),
        |found| {
            let (disk, story) = (&found.disk, &found.story);
            let ids = scene.assert_sound(disk, story);
            assert!(ids.contains(&lender), "after {story}");
            assert!(found.result.as_ref().is_ok_and(|id| ids.contains(id)) || found.result.is_err(), "after {story}");
            if found.recover {
                let again = back_up(&scene, disk, "second").unwrap_or_else(|error| panic!("{error} after {story}"));
                try_forget(&scene, disk, lender).unwrap_or_else(|error| panic!("{error} after {story}"));
                assert!(scene.assert_sound(disk, story).contains(&again), "after {story}");
                assert_eq!(scene.sandbox.at(disk.clone()).check(ReadData::None).orphans, 0, "after {story}");
                let loans = disk.names().into_iter().filter(|name| matches!(name, ObjectName::Loan(..))).count();
                assert_eq!(loans, 1, "after {story}");
            }
        },
    );
}

#[test]
fn a_lenders_forget_hit_at_any_write_costs_the_borrower_nothing() {
    let pair = Pair::new();
    at_every_write(
        &pair.scene.disk,
        |disk| try_forget(&pair.scene, disk, pair.lender),
        |found| {
            let (disk, story) = (&found.disk, &found.story);
            let ids = pair.scene.assert_sound(disk, story);
            assert!(ids.contains(&pair.borrower), "after {story}");
            if found.recover && ids.contains(&pair.lender) {
                pair.forget(disk, pair.lender);
                assert_eq!(pair.scene.assert_sound(disk, story), [pair.borrower].into(), "after {story}");
            }
        },
    );
}

#[test]
fn a_borrowers_forget_hit_at_any_write_costs_the_lender_nothing() {
    let pair = Pair::new();
    at_every_write(
        &pair.scene.disk,
        |disk| try_forget(&pair.scene, disk, pair.borrower),
        |found| {
            let (disk, story) = (&found.disk, &found.story);
            let ids = pair.scene.assert_sound(disk, story);
            assert!(ids.contains(&pair.lender), "after {story}");
            if found.recover {
                back_up(&pair.scene, disk, "second").unwrap_or_else(|error| panic!("{error} after {story}"));
                pair.scene.assert_sound(disk, story);
                assert_eq!(pair.scene.sandbox.at(disk.clone()).check(ReadData::None).orphans, 0, "after {story}");
            }
        },
    );
}

/// The manifest of the lender, its copies and the loans: each ruined alone hinders nothing but what needs it.
#[test]
fn a_lenders_manifest_damaged_in_one_place_hinders_no_borrower() {
    let pair = Pair::new();
    let good = pair.disk();
    let ObjectName::Manifest(series, newest) = manifest_of(&good, pair.series("first")) else { unreachable!() };
    let places = [Original::Manifest(series, newest).name(), Original::Manifest(series, newest).copy()];
    let parts = [("salt", 20, Shows::WhenOpened), ("content", 70, Shows::WhenOpened)];
    for ruin in places.into_iter().flat_map(|name| ruins_of(&good, name, &parts)) {
        let disk = Ruin { both: false, ..ruin.clone() }.done_to(&good);
        pair.assert_restores(&disk, pair.borrower, &ruin.story());
        let id = back_up(&pair.scene, &disk, "second").unwrap_or_else(|error| panic!("{error} after {}", ruin.story()));
        assert!(pair.scene.sandbox.at(disk.clone()).restored(id) == pair.scene.source(), "after {}", ruin.story());
    }
}

/// The lender would not see that anything is borrowed.
#[test]
fn maintenance_makes_a_loan_anew_that_is_lost() {
    let pair = Pair::new();
    let disk = &pair.scene.disk;
    let loans = || disk.names().into_iter().filter(|name| matches!(name, ObjectName::Loan(..))).collect::<Vec<_>>();
    let lost = loans();
    assert!(!lost.is_empty() && lost.iter().all(|name| disk.damage(name, Damage::Delete)));
    let (options, resources) = (pair.scene.sandbox.migrate_options(), pair.scene.sandbox.resources());
    maintain::maintain(&open(disk), &options, &resources).expect("maintained");
    assert!(loans().len() == lost.len() && loans() != lost);
    try_forget(&pair.scene, disk, pair.lender).expect("forgotten");
    assert_eq!(pair.scene.assert_sound(disk, "the lender has forgotten").len(), 1);
}
