//! Snapshots of an unchanged source: they share one record, and need no container.

use crate::common::faults::forget_parity;
use crate::common::{Sandbox, noise, resources};
use siltstone_engine::backup::{self, BackupOptions, Source};
use siltstone_engine::check::ReadData;
use siltstone_engine::repair::{self, RepairOptions};
use siltstone_store::manifest::{Manifest, Snapshot};
use siltstone_store::storage::{Damage, SimulatedDisk};
use siltstone_store::{SnapshotId, Time};
use std::io::Cursor;
use std::sync::Arc;

struct Scene {
    sandbox: Sandbox,
    disk: SimulatedDisk,
}

impl Scene {
    fn new() -> Self {
        let disk = SimulatedDisk::new();
        Self { sandbox: Sandbox::on(Arc::new(disk.clone())), disk }
    }

    fn options(&self) -> BackupOptions {
        self.sandbox.options().with_time(Some(Time::default()))
    }

    /// Backs up a stream; folders above a source of paths would change by themselves.
    fn back_up(&self, seed: u64, options: &BackupOptions) -> SnapshotId {
        let source = Source::Stream { name: "stream".into(), reader: Box::new(Cursor::new(noise(seed, 90_000))) };
        let summary = backup::backup(&self.sandbox.repository(), source, options, &self.sandbox.resources());
        summary.expect("a backup").snapshot.expect("a snapshot")
    }

    fn manifest(&self) -> Manifest {
        let repository = self.sandbox.repository();
        let series = repository.series().expect("a list")[0];
        repository.manifest(series).expect("it reads").expect("the series")
    }

    fn snapshots(&self) -> Vec<Snapshot> {
        self.manifest().snapshots().to_vec()
    }

    fn assert_sound(&self) {
        assert_eq!(self.sandbox.check(ReadData::All).findings, []);
    }
}

#[test]
fn they_share_the_record_of_the_first_and_add_no_container() {
    let scene = Scene::new();
    let options = scene.options();
    scene.back_up(1, &options);
    let containers = scene.manifest().containers.len();
    scene.back_up(1, &options);
    scene.back_up(1, &options);
    let [first, second, third] = &scene.snapshots()[..] else { panic!("three snapshots") };
    assert_eq!((first.record, first.record), (second.record, third.record));
    assert_eq!(scene.manifest().containers.len(), containers);
    scene.assert_sound();
    // One that tells more, or of something else, has a record of its own.
    scene.back_up(1, &options.clone().with_tags(vec!["weekly".into()]));
    scene.back_up(2, &options);
    scene.back_up(1, &options);
    let records: Vec<_> = scene.snapshots().iter().map(|snapshot| snapshot.record).collect();
    assert!(records[2..].is_sorted_by(|before, after| before < after), "{records:?}");
    scene.assert_sound();
}

#[test]
fn the_content_comes_back_under_the_first_when_all_manifests_are_lost() {
    let scene = Scene::new();
    let options = scene.options();
    let first = scene.back_up(1, &options);
    scene.back_up(1, &options);
    scene.sandbox.forget(&[first], false);
    scene.assert_sound();
    let root = scene.snapshots()[0].root;
    for name in scene.disk.names().into_iter().filter(|name| name.to_string().contains("series/")) {
        scene.disk.damage(&name, Damage::Delete);
    }
    let (repository, options) = (scene.sandbox.repository(), RepairOptions::default().with_take_over(true));
    let plan = repair::plan(&repository, &options, &resources()).expect("a plan");
    repair::execute(&repository, plan, &options, &resources()).expect("a repair");
    let found: Vec<_> = scene.snapshots().iter().map(|snapshot| (snapshot.id, snapshot.root)).collect();
    assert_eq!(found, [(first, root)]);
    scene.assert_sound();
}

#[test]
fn a_record_that_is_damaged_is_not_shared() {
    let scene = Scene::new();
    let options = scene.options();
    scene.back_up(1, &options);
    forget_parity(&scene.disk);
    let before = scene.manifest();
    let record = before.snapshots()[0].record;
    let container = before.containers.iter().find(|container| container.numbers().contains(record.0));
    let name = container.expect("it is in a container").object_name(before.series);
    scene.disk.damage(&name, Damage::Delete);
    scene.back_up(1, &options.with_force(true));
    let after = scene.snapshots();
    assert!(after[1].record > record, "{after:?}");
}
