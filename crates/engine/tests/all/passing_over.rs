//! Migration meets containers that are missing or damaged: it passes over them, tells each once, settles the rest,
//! leaves nothing of what it had to give up, and does not begin again at every turn.

use crate::common::faults::copy;
use crate::common::log::Log;
use crate::common::ruin::{Ruin, Shows, containers_of};
use crate::common::scene::Scene;
use crate::common::{PASSWORD, heard_by, noise};
use siltstone_engine::backup::{self, Source};
use siltstone_engine::check::ReadData;
use siltstone_engine::maintain::{self, MaintainSummary};
use siltstone_engine::{EngineError, Notice};
use siltstone_store::container::{ContainerKind, ContainerReader};
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::storage::{Damage, SimulatedDisk};
use std::sync::Arc;

/// Versions of a source, none of them settled.
struct Unsettled {
    scene: Scene,
}

impl Unsettled {
    fn new() -> Self {
        Self { scene: Scene { migrate: false, ..Scene::new() } }
    }

    fn write(&self, path: &str, seed: u64, bytes: usize, edit: &[u8]) {
        let mut content = noise(seed, bytes);
        content[bytes / 2..][..edit.len()].copy_from_slice(edit);
        self.scene.sandbox.write(path, &content);
    }

    /// A data container missing, with a byte flipped in its first region, and in its index.
    fn ruins(&self, at: usize) -> Vec<Ruin> {
        let repository = self.scene.sandbox.repository();
        let series = repository.keys().series_id("test");
        let record = containers_of(&repository, series, ContainerKind::Data)[at].clone();
        let reader = ContainerReader::open(&self.scene.disk, repository.keys(), series, &record).expect("it opens");
        let region = reader.index().regions()[0].offset;
        let flip = |offset| Damage::Flip { offset, mask: 4 };
        let damages =
            [("whole", Damage::Delete), ("region", flip(region + 50)), ("index", flip(record.index_offset + 3))];
        let name = record.object_name(series);
        damages
            .map(|(part, damage)| Ruin { name, damage, part: part.into(), shows: Shows::Never, both: false })
            .to_vec()
    }

    fn manifest(&self, disk: &SimulatedDisk) -> Manifest {
        self.scene.sandbox.at(disk.clone()).manifest()
    }

    fn maintain(&self, disk: &SimulatedDisk, threshold: f64, log: &Log) -> Result<MaintainSummary, EngineError> {
        let options = self.scene.sandbox.migrate_options().with_threshold(threshold);
        maintain::maintain(&Repository::open(Arc::new(disk.clone()), PASSWORD)?, &options, &heard_by(log))
    }

    /// That nothing is left to do or to be swept, and that with the container back all is as it was.
    fn assert_done(&self, disk: &SimulatedDisk, ruin: &Ruin) {
        let story = ruin.story();
        assert!(self.manifest(disk).unsettled.is_empty(), "{story}");
        let again = self.maintain(disk, 0.25, &Log::default()).expect("nothing to do");
        assert_eq!(again, MaintainSummary::default(), "{story}");
        ruin.mend(disk, &self.scene.disk);
        self.scene.assert_sound(disk, &story);
        assert_eq!(self.scene.sandbox.at(disk.clone()).check(ReadData::None).orphans, 0, "{story}");
    }
}

/// Names of what was passed over.
fn passed_over(log: &Log) -> Vec<String> {
    let named = |notice: Notice| match notice {
        Notice::PassedOver { object, .. } => Some(object),
        _ => None,
    };
    log.notices().into_iter().filter_map(named).collect()
}

#[test]
fn what_cannot_be_read_is_told_once_and_the_rest_is_settled() {
    let mut versions = Unsettled::new();
    versions.write("a", 1, 60_000, b"");
    versions.scene.backup();
    versions.write("b", 2, 60_000, b"");
    versions.scene.backup();
    versions.write("a", 1, 60_000, b"edit");
    versions.write("b", 2, 60_000, b"edit");
    versions.scene.backup();
    let sound = versions.maintain(&copy(&versions.scene.disk), 0.25, &Log::default()).expect("all is sound");
    assert_eq!((sound.settled, sound.passed_over), (2, 0), "{sound:?}");
    for at in [0, 1] {
        for ruin in versions.ruins(at) {
            let (disk, log) = (ruin.done_to(&versions.scene.disk), Log::default());
            let done = versions.maintain(&disk, 0.25, &log).unwrap_or_else(|error| panic!("{error}: {}", ruin.story()));
            assert_eq!(passed_over(&log), [ruin.name.to_string()], "{}", ruin.story());
            assert_eq!(log.problems(), [""; 0], "{}", ruin.story());
            assert_eq!((done.settled, done.passed_over), (1, 1), "it says how far it came: {done:?}, {}", ruin.story());
            assert!(done.deltas_kept > 0 && done.deltas_kept < sound.deltas_kept, "{done:?}, {}", ruin.story());
            versions.assert_done(&disk, &ruin);
        }
    }
}

/// Two containers are split into one that is full, and so handed over, before the third turns out to be damaged.
#[test]
fn what_was_written_before_damage_was_met_is_deleted() {
    let mut versions = Unsettled::new();
    versions.write("a", 1, 60_000, b"");
    versions.write("big", 2, 18 << 20, b"");
    versions.write("z", 3, 60_000, b"");
    versions.scene.backup();
    versions.write("b", 4, 60_000, b"");
    versions.scene.backup();
    for (seed, path) in [(1, "a"), (3, "z"), (4, "b")] {
        versions.write(path, seed, 60_000, b"edit");
    }
    versions.scene.backup();
    let data = containers_of(
        &versions.scene.sandbox.repository(),
        versions.scene.sandbox.repository().keys().series_id("test"),
        ContainerKind::Data,
    );
    assert_eq!(data.len(), 4, "two of the first backup, one of each of the others");
    let ruin = versions.ruins(2).swap_remove(1);
    let (disk, log) = (ruin.done_to(&versions.scene.disk), Log::default());
    let done = versions.maintain(&disk, 0.0, &log).expect("the rest is settled");
    assert_eq!(passed_over(&log), [ruin.name.to_string()]);
    assert!(done.deltas_kept > 0 && done.containers_deleted >= 2, "{done:?}");
    let orphans = versions.scene.sandbox.at(disk.clone()).check(ReadData::None).orphans;
    assert_eq!(orphans, 0, "what the first attempt wrote is gone");
    versions.assert_done(&disk, &ruin);
}

#[test]
fn of_many_small_containers_those_that_can_be_read_become_one() {
    const VERSIONS: u64 = 12;
    let mut versions = Unsettled::new();
    for version in 0..VERSIONS {
        versions.scene.sandbox.write(&format!("little-{version}"), &noise(version, 2000));
        versions.scene.backup();
    }
    for ruin in versions.ruins(5) {
        let (disk, log) = (ruin.done_to(&versions.scene.disk), Log::default());
        versions.maintain(&disk, 0.25, &log).unwrap_or_else(|error| panic!("{error}: {}", ruin.story()));
        assert_eq!(passed_over(&log), [ruin.name.to_string()], "{}", ruin.story());
        let left =
            versions.manifest(&disk).containers.iter().filter(|record| record.kind == ContainerKind::Data).count();
        assert_eq!(left, 2, "all but one became one: {}", ruin.story());
        for backups in 1..=2 {
            let later = Log::default();
            let options = versions.scene.sandbox.options().with_take_over(true);
            let repository = Repository::open(Arc::new(disk.clone()), PASSWORD).expect("it opens");
            let source = Source::Paths(vec![versions.scene.sandbox.source()]);
            backup::backup(&repository, source, &options, &versions.scene.sandbox.heard_by(&later)).expect("a backup");
            let is_stuck = later.notices().iter().any(|notice| matches!(notice, Notice::NotSettled { .. }));
            assert!(!is_stuck, "{:?} after {}", later.notices(), ruin.story());
            // The first may have stored anew what is missing, and so left it behind.
            assert!(backups == 1 || passed_over(&later).is_empty(), "{:?} after {}", later.notices(), ruin.story());
        }
        ruin.mend(&disk, &versions.scene.disk);
        versions.scene.assert_sound(&disk, &ruin.story());
    }
}
