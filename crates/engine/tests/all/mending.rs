//! Mending of what is there twice, or with parity: byte for byte where a name stays, under a new name where a
//! container is healed.

use crate::common::faults::{at_every_write, copy};
use crate::common::repair::{open, repair_options, series_of};
use crate::common::ruin::{Ruin, Shows, containers_of, ruins_of_container};
use crate::common::scene::Scene;
use crate::common::{self, PASSWORD, noise, resources};
use siltstone_engine::EngineError;
use siltstone_engine::check::ReadData;
use siltstone_engine::repair::{self, ObjectRepair, RepairOptions, RepairSummary};
use siltstone_store::config::older::OlderRecord;
use siltstone_store::container::{ContainerKind, ContainerRecord};
use siltstone_store::keys::{Argon2Cost, OpenOptions};
use siltstone_store::repository::Repository;
use siltstone_store::storage::{
    Call, Damage, Guarded, Listing, ObjectName, Original, Outcome, SimulatedDisk, Storage, StorageError,
};
use siltstone_store::{SeriesId, SnapshotId, StoreError};
use std::io;
use std::sync::Arc;

fn options() -> RepairOptions {
    repair_options().with_read_data(true)
}

fn try_repair(disk: &SimulatedDisk) -> Result<RepairSummary, EngineError> {
    let repository = Repository::open(Arc::new(disk.clone()), PASSWORD)?;
    let plan = repair::plan(&repository, &options(), &resources())?;
    let (summary, mut errors) = repair::execute(&repository, plan, &options(), &resources())?;
    errors.pop().map_or(Ok(summary), Err)
}

/// Both places of everything that is kept twice, as far as it counts.
fn places(disk: &SimulatedDisk) -> Vec<ObjectName> {
    let names = disk.names().into_iter();
    names.filter(|name| name.original().is_some() || matches!(name, ObjectName::Copy(_))).collect()
}

fn bytes(disk: &SimulatedDisk, name: &ObjectName) -> Vec<u8> {
    disk.read(name, u64::MAX).unwrap_or_else(|error| panic!("{error}"))
}

fn aside(disk: &SimulatedDisk) -> Vec<Vec<u8>> {
    disk.list(Listing::Aside).expect("a list").iter().map(|meta| bytes(disk, &meta.name)).collect()
}

const DAMAGES: [Damage; 4] =
    [Damage::Delete, Damage::Truncate { bytes: 70 }, Damage::Flip { offset: 90, mask: 4 }, Damage::Unreadable];

#[test]
fn whatever_is_kept_twice_is_written_anew_from_its_other_place() {
    let scene = Scene::with_two_snapshots();
    open(&scene.disk).add_key(b"another", &common::label(), Argon2Cost::TEST).expect("a key");
    let all = places(&scene.disk);
    assert!(all.len() >= 12, "two records, two slots, two manifests: {all:?}");
    for place in &all {
        for damage in DAMAGES {
            let (disk, story) = (copy(&scene.disk), format!("{damage:?} of {place}"));
            assert!(disk.damage(place, damage.clone()), "{story}");
            let hurt = disk.read(place, u64::MAX).ok();
            let plan = repair::plan(&open(&disk), &options(), &resources()).expect("a plan");
            let [object] = plan.objects.as_slice() else { panic!("one object: {plan:?} after {story}") };
            assert!(matches!(object.repair, ObjectRepair::From(other) if other != *place), "{story}");
            assert_eq!(try_repair(&disk).expect("a repair").objects_mended, 1, "{story}");
            assert_eq!(bytes(&disk, place), bytes(&scene.disk, place), "{story}");
            assert!(hurt.is_none_or(|hurt| aside(&disk).contains(&hurt)), "what was damaged is kept: {story}");
            assert_eq!(scene.assert_sound(&disk, &story).len(), 2);
            let again = repair::plan(&open(&disk), &options(), &resources()).expect("a plan");
            assert!(again.objects.is_empty() && again.series.is_empty(), "{story}");
        }
    }
}

#[test]
fn a_predecessor_lost_in_both_places_is_put_aside() {
    let scene = Scene::with_two_snapshots();
    let manifests = scene.disk.list(Listing::Manifests(series_of(&scene.disk))).expect("a list");
    let before = manifests[manifests.len() - 2].name;
    let configs = scene.disk.list(Listing::Configs).expect("a list");
    for name in [before, configs[configs.len() - 2].name] {
        let disk = copy(&scene.disk);
        for place in name.original().expect("kept twice").places() {
            assert!(disk.damage(&place, Damage::Flip { offset: 90, mask: 1 }));
        }
        assert_eq!(try_repair(&disk).expect("a repair").objects_mended, 1, "{name}");
        assert!(!disk.names().contains(&name) && !aside(&disk).is_empty(), "{name}");
        assert_eq!(scene.assert_sound(&disk, &format!("{name} was lost")).len(), 2);
    }
}

#[test]
fn a_key_slot_lost_in_both_places_is_told_and_the_other_keys_open() {
    let scene = Scene::with_two_snapshots();
    let id = open(&scene.disk).add_key(b"another", &common::label(), Argon2Cost::TEST).expect("a key");
    for place in siltstone_store::storage::Original::Key(id).places() {
        scene.disk.damage(&place, Damage::Flip { offset: 90, mask: 1 });
    }
    let plan = repair::plan(&open(&scene.disk), &options(), &resources()).expect("a plan");
    assert_eq!(plan.objects[0].repair, ObjectRepair::Nothing);
    assert!(plan.objects[0].faults[0].contains(&id.to_string()) && plan.has_losses() && !plan.has_steps());
}

#[test]
fn mending_hit_at_any_write_can_be_done_again() {
    let scene = Scene::with_two_snapshots();
    let damaged = copy(&scene.disk);
    for (at, place) in places(&scene.disk).iter().enumerate() {
        // Of each object one place, by turns.
        let is_copy = matches!(place, ObjectName::Copy(_));
        let number = place.sequence().unwrap_or(at as u64) % 2;
        if (number == 0) == is_copy && !matches!(place, ObjectName::Key(_)) {
            damaged.damage(place, Damage::Flip { offset: 90, mask: 4 });
        }
    }
    at_every_write(&damaged, try_repair, |found| {
        try_repair(&found.disk).unwrap_or_else(|error| panic!("{error} after {}", found.story));
        assert_eq!(scene.assert_sound(&found.disk, &found.story).len(), 2);
        for place in places(&scene.disk).iter().filter(|place| place.series().is_none()) {
            assert_eq!(bytes(&found.disk, place), bytes(&scene.disk, place), "{place} after {}", found.story);
        }
    });
}

/// Two snapshots with parity, and what is made of a damage.
fn protected() -> (Scene, SeriesId) {
    let scene = Scene::with_two_snapshots();
    let repository = open(&scene.disk);
    let wanted = |config: &mut siltstone_store::config::Config| {
        config.parity.data_percent = 5;
        Ok(())
    };
    repository.amend(wanted).expect("a record");
    siltstone_engine::protect::protect(&repository, "user", &resources()).expect("parity is made");
    let series = series_of(&scene.disk);
    (scene, series)
}

fn containers(disk: &SimulatedDisk, series: SeriesId) -> Vec<ContainerRecord> {
    let of = |kind| containers_of(&open(disk), series, kind);
    [of(ContainerKind::Data), of(ContainerKind::Metadata)].concat()
}

/// A flip in each part of a container.
fn flips(scene: &Scene, series: SeriesId, record: &ContainerRecord) -> Vec<Ruin> {
    let ruins = ruins_of_container(&scene.disk, &open(&scene.disk), series, record);
    ruins.into_iter().filter(|ruin| matches!(ruin.damage, Damage::Flip { .. })).collect()
}

fn assert_mended(scene: &Scene, disk: &SimulatedDisk, ids: &[SnapshotId], story: &str) {
    let found = scene.assert_sound(disk, story);
    assert!(ids.len() == found.len() && ids.iter().all(|id| found.contains(id)), "{story}: {found:?}");
    let sandbox = scene.sandbox.at(disk.clone());
    let report = sandbox.check(ReadData::All);
    assert_eq!((report.orphans, report.unprotected), (0, 0), "{story}");
    let again = repair::plan(&open(disk), &options(), &resources()).expect("a plan");
    assert!(again.objects.is_empty() && again.series.is_empty(), "{story}: {again:?}");
}

#[test]
fn what_parity_heals_is_written_anew_and_the_damaged_bytes_are_kept() {
    let (scene, series) = protected();
    for record in containers(&scene.disk, series) {
        for ruin in flips(&scene, series, &record) {
            let disk = ruin.done_to(&scene.disk);
            let hurt = bytes(&disk, &ruin.name);
            let summary = try_repair(&disk).expect("a repair");
            assert_eq!(
                (summary.containers_healed, summary.snapshots_damaged, summary.objects_aside),
                (1, 0, 1),
                "{}",
                ruin.story()
            );
            assert!(!disk.names().contains(&ruin.name) && aside(&disk).contains(&hurt), "{}", ruin.story());
            assert_mended(&scene, &disk, &scene.ids, &ruin.story());
        }
    }
}

#[test]
fn without_reading_data_only_what_indexes_show_is_healed() {
    let (scene, series) = protected();
    let record = &containers(&scene.disk, series)[0];
    for ruin in flips(&scene, series, record) {
        let quick = options().with_read_data(false);
        let plan = repair::plan(&open(&ruin.done_to(&scene.disk)), &quick, &resources()).expect("a plan");
        assert_eq!(plan.has_steps(), ruin.shows == Shows::WhenOpened, "{}", ruin.story());
    }
}

#[test]
fn healing_hit_at_any_write_can_be_done_again() {
    let (scene, series) = protected();
    let record = &containers(&scene.disk, series)[0];
    let ruin = flips(&scene, series, record).into_iter().find(|ruin| ruin.part == "region").expect("a flip");
    let damaged = ruin.done_to(&scene.disk);
    at_every_write(&damaged, try_repair, |found| {
        try_repair(&found.disk).unwrap_or_else(|error| panic!("{error} after {}", found.story));
        assert_eq!(scene.assert_sound(&found.disk, &found.story).len(), 2);
        if found.recover {
            let sandbox = scene.sandbox.at(found.disk.clone());
            let backup = sandbox.options().with_take_over(true).with_force(true);
            sandbox.try_backup(&backup).expect("a backup");
            assert_eq!(scene.assert_sound(&found.disk, &format!("{}, and a backup", found.story)).len(), 3);
        }
    });
}

#[test]
fn parity_that_is_missing_or_damaged_is_made_again() {
    let (scene, series) = protected();
    let name = ObjectName::Parity(series, containers(&scene.disk, series)[0].id);
    let length = bytes(&scene.disk, &name).len() as u64;
    for damage in DAMAGES.into_iter().chain([Damage::Flip { offset: length - 100, mask: 1 }]) {
        let disk = copy(&scene.disk);
        assert!(disk.damage(&name, damage.clone()));
        assert_eq!(try_repair(&disk).expect("a repair").containers_protected, 1, "{damage:?}");
        assert_mended(&scene, &disk, &scene.ids, &format!("{damage:?}"));
    }
}

#[test]
fn without_any_manifest_parity_still_heals() {
    let (scene, series) = protected();
    for record in containers(&scene.disk, series) {
        for ruin in flips(&scene, series, &record) {
            let disk = ruin.done_to(&scene.disk);
            for name in disk.names().into_iter().filter(|name| name.to_string().contains("series/")) {
                disk.damage(&name, Damage::Delete);
            }
            let summary = try_repair(&disk).expect("a repair");
            assert_eq!((summary.snapshots_found, summary.snapshots_damaged), (2, 0), "{}", ruin.story());
            assert_mended(&scene, &disk, &scene.ids, &format!("{}, and no manifest", ruin.story()));
        }
    }
}

/// Without parity, what a flip costs is noted chunk by chunk, so that the next backup stores it again.
#[test]
fn damage_that_only_reading_finds_is_noted_for_the_next_backup() {
    let mut scene = Scene::new();
    scene.sandbox.write("file", &noise(1, 200_000));
    scene.backup();
    let series = series_of(&scene.disk);
    let record = containers_of(&open(&scene.disk), series, ContainerKind::Data)[0].clone();
    let ruin = flips(&scene, series, &record).into_iter().find(|ruin| ruin.part == "region").expect("a flip");
    let disk = ruin.done_to(&scene.disk);
    let summary = try_repair(&disk).expect("a repair");
    assert_eq!((summary.series_repaired, summary.snapshots_damaged), (1, 1));
    let sandbox = scene.sandbox.at(disk.clone());
    sandbox.try_backup(&sandbox.options().with_take_over(true)).expect("a backup");
    assert_eq!(scene.assert_sound(&disk, "a repair and a backup").len(), 2);
}

/// The newest record, damaged in both places.
fn without_newest_config(disk: &SimulatedDisk) -> u64 {
    let newest = disk.list(Listing::Configs).expect("a list").pop().expect("a record").name;
    for place in newest.original().expect("kept twice").places() {
        assert!(disk.damage(&place, Damage::Flip { offset: 90, mask: 1 }));
    }
    let ObjectName::Config(sequence) = newest else { unreachable!() };
    sequence
}

fn older(disk: &SimulatedDisk, password: &[u8]) -> Result<Option<OlderRecord>, StoreError> {
    let storage: Arc<dyn Storage> = Arc::new(disk.clone());
    older_at(&storage, password)
}

fn older_at(storage: &Arc<dyn Storage>, password: &[u8]) -> Result<Option<OlderRecord>, StoreError> {
    OlderRecord::open(storage, password, &OpenOptions::default())
}

#[test]
fn an_older_config_stands_in_for_one_that_is_lost_only_if_that_is_asked_for() {
    let scene = Scene::with_two_snapshots();
    let added = open(&scene.disk).add_key(b"kept", &common::label(), Argon2Cost::TEST).expect("a key");
    let removed = open(&scene.disk).add_key(b"removed", &common::label(), Argon2Cost::TEST).expect("a key");
    open(&scene.disk).remove_key(removed).expect("removed");
    assert!(older(&scene.disk, PASSWORD).expect("it opens").is_none(), "the newest can be read");
    let lost = without_newest_config(&scene.disk);
    assert!(Repository::open(Arc::new(scene.disk.clone()), PASSWORD).is_err());
    let names = scene.disk.names();
    let found = older(&scene.disk, PASSWORD).expect("it opens").expect("an older record");
    assert_eq!((found.newest(), found.repository().config().sequence), (lost, lost - 1));
    assert!(found.repository().config().key_slots.contains(&removed), "it was not removed yet");
    assert_eq!(scene.disk.names(), names, "looking changes nothing");
    let config = found.restore().expect("a new record").config();
    assert_eq!(config.sequence, lost + 2, "twice, so that the lost one is not its predecessor");
    assert!(config.key_slots.contains(&added) && !config.key_slots.contains(&removed), "its file is gone");
    assert_eq!(aside(&scene.disk).len(), 1, "the same bytes are kept once");
    assert_eq!(scene.assert_sound(&scene.disk, "an older config").len(), 2);
    assert!(repair::plan(&open(&scene.disk), &options(), &resources()).expect("a plan").objects.is_empty());
    assert!(Repository::open(Arc::new(scene.disk.clone()), b"removed").is_err());
}

#[test]
fn a_series_begun_since_the_older_config_is_listed_again() {
    let scene = Scene::with_two_snapshots();
    let other = scene.sandbox.options().with_series(Some("other".into()));
    scene.sandbox.try_backup(&other).expect("a backup");
    without_newest_config(&scene.disk);
    let config = older(&scene.disk, PASSWORD).expect("it opens").expect("one").restore().expect("a record").config();
    assert_eq!(
        config.series.values().cloned().collect::<std::collections::BTreeSet<_>>(),
        ["other", "test"].map(String::from).into()
    );
}

#[test]
fn going_on_from_an_older_config_can_be_done_again_wherever_it_was_hit() {
    let scene = Scene::with_two_snapshots();
    open(&scene.disk).add_key(b"another", &common::label(), Argon2Cost::TEST).expect("a key");
    without_newest_config(&scene.disk);
    let run = |disk: &SimulatedDisk| older(disk, PASSWORD)?.map_or(Ok(()), |older| older.restore().map(drop));
    at_every_write(&scene.disk, run, |found| {
        run(&found.disk).unwrap_or_else(|error| panic!("{error} after {}", found.story));
        try_repair(&found.disk).unwrap_or_else(|error| panic!("{error} after {}", found.story));
        assert_eq!(scene.assert_sound(&found.disk, &found.story).len(), 2);
    });
}

/// A disk that gives nothing of these places, for this reason.
fn withholding(
    disk: &SimulatedDisk,
    places: Vec<ObjectName>,
    reason: fn(&ObjectName) -> StorageError,
) -> Arc<dyn Storage> {
    Arc::new(Guarded::new(disk.clone(), move |call| match call {
        Call::Read(name) if places.contains(name) => Outcome::Refused(reason(name)),
        _ => Outcome::Made,
    }))
}

fn out_of_reach(name: &ObjectName) -> StorageError {
    StorageError::Io { operation: "read", name: name.to_string(), source: io::ErrorKind::TimedOut.into() }
}

fn missing(name: &ObjectName) -> StorageError {
    StorageError::NotFound { name: *name }
}

/// The copy of a config is most likely sound where it cannot be reached: to go on from an older one would destroy it.
#[test]
fn a_config_whose_copy_is_out_of_reach_is_not_lost() {
    let scene = Scene::with_two_snapshots();
    let newest = scene.disk.list(Listing::Configs).expect("a list").pop().expect("a record").name;
    let [one, other] = newest.original().expect("kept twice").places();
    for damage in [Damage::Delete, Damage::Truncate { bytes: 20 }, Damage::Flip { offset: 90, mask: 1 }] {
        for (damaged, away) in [(one, other), (other, one)] {
            let (disk, story) = (copy(&scene.disk), format!("{damage:?} of {damaged}, and {away} is out of reach"));
            assert!(disk.damage(&damaged, damage.clone()), "{story}");
            let place = withholding(&disk, vec![away], out_of_reach);
            for error in [
                Repository::open(Arc::clone(&place), PASSWORD).map(drop).expect_err("it cannot be read"),
                older_at(&place, PASSWORD).map(drop).expect_err("it is not lost"),
            ] {
                assert!(matches!(error, StoreError::Storage(StorageError::Io { .. })), "{error} after {story}");
            }
            assert!(older(&disk, PASSWORD).expect("it opens").is_none(), "{story}");
        }
    }
}

#[test]
fn a_config_that_is_listed_and_missing_is_told_as_such_and_not_lost() {
    let scene = Scene::with_two_snapshots();
    let newest = scene.disk.list(Listing::Configs).expect("a list").pop().expect("a record").name;
    let [original, other] = newest.original().expect("kept twice").places();
    let contradicts = |error: &StoreError| matches!(error, StoreError::ListedAndMissing { .. });
    let place = withholding(&scene.disk, vec![original, other], missing);
    let error = Repository::open(Arc::clone(&place), PASSWORD).map(drop).expect_err("it cannot be read");
    assert!(contradicts(&error) && error.to_string().contains(&newest.to_string()), "{error}");
    let error = older_at(&place, PASSWORD).map(drop).expect_err("it is not lost");
    assert!(contradicts(&error), "{error}");

    assert!(scene.disk.damage(&original, Damage::Flip { offset: 90, mask: 1 }));
    let place = withholding(&scene.disk, vec![other], missing);
    let error = older_at(&place, PASSWORD).map(drop).expect_err("as its copy");
    assert!(contradicts(&error), "{error}");
    assert!(older(&scene.disk, PASSWORD).expect("it opens").is_none());
}

#[test]
fn a_config_that_can_be_read_again_is_not_replaced() {
    let scene = Scene::with_two_snapshots();
    let newest = ObjectName::Config(open(&scene.disk).config().sequence);
    let spare = newest.original().expect("kept twice").copy();
    let sound = bytes(&scene.disk, &spare);
    without_newest_config(&scene.disk);
    let found = older(&scene.disk, PASSWORD).expect("it opens").expect("an older record");
    scene.disk.delete(&spare).and_then(|()| scene.disk.barrier()).expect("deleted");
    scene.disk.create(&spare, &sound).expect("brought back");
    let names = scene.disk.names();
    let error = found.restore().map(drop).expect_err("it is not lost");
    assert!(matches!(error, StoreError::Refused { .. }) && error.to_string().contains("again"), "{error}");
    assert_eq!(scene.disk.names(), names, "nothing was changed");
    assert_eq!(ObjectName::Config(open(&scene.disk).config().sequence), newest);
}

/// Somebody made a file whose name has the last number there is.
#[test]
fn a_name_without_a_number_beyond_it_is_told_and_nothing_is_changed() {
    let scene = Scene::with_two_snapshots();
    let last = u64::MAX;
    for (number, is_far) in [(last, false), (last - 1, false), (last - 15, false), (last - 16, true)] {
        let (disk, name) = (copy(&scene.disk), ObjectName::Manifest(series_of(&scene.disk), number));
        disk.create(&name, b"").expect("made");
        let names = disk.names();
        if is_far {
            try_repair(&disk).expect("a repair");
        } else {
            let error = try_repair(&disk).expect_err("no number is left").to_string();
            assert!(error.contains(&name.to_string()) && error.contains("move it away"), "{error}");
            assert_eq!(disk.names(), names, "{name}");
            disk.delete(&name).and_then(|()| disk.barrier()).expect("moved away");
        }
        assert_eq!(scene.assert_sound(&disk, &format!("{name} was made")).len(), 2);
    }

    let config = Original::Config(last);
    scene.disk.create(&config.name(), b"").expect("made");
    let names = scene.disk.names();
    let found = older(&scene.disk, PASSWORD).expect("it opens").expect("an older record");
    let error = found.restore().map(drop).expect_err("no number is left").to_string();
    assert!(error.contains(&config.name().to_string()) && error.contains("move it away"), "{error}");
    assert_eq!(scene.disk.names(), names);
    scene.disk.delete(&config.name()).and_then(|()| scene.disk.barrier()).expect("moved away");
    assert_eq!(scene.assert_sound(&scene.disk, "the last config was made").len(), 2);
}
