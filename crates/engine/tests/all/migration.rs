//! State that backups leave behind, once it is settled: deltas, their depth, where things lie, and what becomes of
//! ghosts.

use crate::common::log::Log;
use crate::common::{Sandbox, noise, resources, tree, writer};
use roaring::RoaringTreemap;
use siltstone_engine::Notice;
use siltstone_engine::backup::{self, Source};
use siltstone_engine::check::ReadData;
use siltstone_engine::delta::Deltas;
use siltstone_engine::maintain::{self, MaintainSummary};
use siltstone_store::manifest::Manifest;
use siltstone_store::{SnapshotId, Time};
use std::collections::{BTreeMap, BTreeSet};

const FILE_BYTES: usize = 300_000;

/// Versions of a file, each with another small edit at the same place, and of a file that never changes.
struct History {
    sandbox: Sandbox,
    versions: Vec<(SnapshotId, tree::Tree)>,
    bytes: Vec<u8>,
}

impl History {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        sandbox.write("kept", &noise(2, 200_000));
        Self { sandbox, versions: Vec::new(), bytes: noise(1, FILE_BYTES) }
    }

    /// The next version, backed up.
    fn next(&mut self, deltas: Deltas, threshold: f64) -> MaintainSummary {
        self.edit();
        let options = self.sandbox.options().with_force(true).with_deltas(deltas).with_migrate_threshold(threshold);
        let summary = self.sandbox.try_backup(&options).expect("a backup");
        let id = summary.snapshot.expect("a snapshot");
        self.versions.push((id, tree::read(&self.sandbox.source())));
        summary.migration
    }

    /// Another edit at the same place.
    fn edit(&mut self) {
        let edit = noise(100 + self.versions.len() as u64, 3000);
        self.bytes[FILE_BYTES / 2..][..edit.len()].copy_from_slice(&edit);
        self.sandbox.write("edited", &self.bytes);
    }

    fn manifest(&self) -> Manifest {
        self.sandbox.manifest()
    }

    fn bytes(&self) -> u64 {
        self.sandbox.bytes()
    }

    fn assert_sound(&self) {
        assert_eq!(self.sandbox.check(ReadData::All).findings, []);
        for (id, tree) in &self.versions {
            assert!(self.sandbox.restored(*id) == *tree, "snapshot {} differs", id.short());
        }
    }

    /// Forgets the versions at these places.
    fn forget(&mut self, places: &[usize]) {
        let gone: Vec<_> = places.iter().map(|at| self.versions[*at].0).collect();
        self.sandbox.try_forget(&gone, &self.sandbox.forget_options(false)).expect("forgetting");
        self.versions.retain(|(id, _)| !gone.contains(id));
    }
}

/// Data chunks on which a chain of deltas of each length hangs, at most.
fn dependents_depths(manifest: &Manifest) -> Vec<u64> {
    manifest
        .dependents_depths
        .iter()
        .map(|of_depth| of_depth.iter().filter(|number| number >> 63 == 0).count() as u64)
        .collect()
}

#[test]
fn what_is_left_behind_becomes_deltas_and_the_newest_snapshot_stays_whole() {
    let mut history = History::new();
    let reverse = Deltas::Reverse { depth: 100 };
    history.next(reverse, 0.25);
    let first = history.bytes();
    for version in 1..6 {
        let migrated = history.next(reverse, 0.25);
        assert!(migrated.deltas_kept > 0, "version {version}: {migrated:?}");
    }
    history.assert_sound();
    assert!(history.bytes() < first + first / 4, "{} after {first}", history.bytes());
    let manifest = history.manifest();
    let last = manifest.snapshots().len() - 1;
    assert_eq!(manifest.necessary(last), manifest.direct(last), "nothing that the newest needs hangs on anything");
    assert!(manifest.necessary(0).len() > manifest.direct(0).len());
    assert_eq!(dependents_depths(&manifest).len(), 5, "the same chunk changed each time");
    assert!(manifest.unsettled.is_empty());
}

#[test]
fn what_was_found_elsewhere_does_not_hang_on_what_stands_at_its_place_now() {
    let sandbox = Sandbox::new();
    let (head, old) = (noise(1, 200_000), noise(2, 5_000_000));
    let mut edited = old.clone();
    edited.chunks_mut(6000).for_each(|part| part[..40].fill(7));
    sandbox.write("archive", &[&head[..], &old].concat());
    sandbox.try_backup(&sandbox.options()).expect("a backup");
    // Longer than a region: the old chunks and what stands at their place now lie in different ones.
    let inserted = noise(3, 4_000_000);
    sandbox.write("archive", &[head, inserted, edited].concat());
    let summary = sandbox.try_backup(&sandbox.options().with_force(true)).expect("a backup");
    assert!(summary.migration.deltas_kept > 0, "{summary:?}");
    let manifest = sandbox.manifest();
    let data = |numbers: RoaringTreemap| numbers.iter().filter(|number| number >> 63 == 0).collect::<BTreeSet<_>>();
    let (needed, new) = (data(manifest.necessary(0)), data(manifest.direct(1)));
    let bases = needed.intersection(&new).count();
    assert!(new.len() / 2 < bases && bases < new.len() * 3 / 4, "{bases} of {} are bases", new.len());
}

#[test]
fn chains_end_at_their_depth() {
    let mut history = History::new();
    for _ in 0..7 {
        history.next(Deltas::Reverse { depth: 2 }, 0.25);
    }
    history.assert_sound();
    assert!(dependents_depths(&history.manifest()).len() <= 2, "{:?}", dependents_depths(&history.manifest()));
    let mut unbounded = History::new();
    for _ in 0..7 {
        unbounded.next(Deltas::Reverse { depth: 100 }, 0.25);
    }
    assert!(dependents_depths(&unbounded.manifest()).len() > 2, "longer ones would come about");
}

#[test]
fn with_threshold_zero_no_container_mixes_lifecycles() {
    for deltas in [Deltas::Off, Deltas::Reverse { depth: 100 }] {
        let mut history = History::new();
        for version in 0..5 {
            history.sandbox.write(&format!("file-{}", version % 3), &noise(10 + version, 70_000));
            history.next(deltas, 0.0);
        }
        history.assert_sound();
        let manifest = history.manifest();
        let last = manifest.snapshots().len() - 1;
        let mut columns: BTreeMap<u64, usize> = BTreeMap::new();
        manifest.for_each_necessary(|position, necessary| {
            columns.extend(necessary.iter().map(|number| (number, position)));
        });
        for record in &manifest.containers {
            let numbers = record.chunks.iter().flat_map(|run| run.range());
            let found: BTreeSet<_> = numbers.filter_map(|number| columns.get(&number)).collect();
            assert!(found.len() == 1, "container {} spans the columns {found:?}, {deltas:?}", record.id);
            // Bases of deltas come to be needed by earlier snapshots where they lie.
            assert!(record.held == record.chunk_count() || found.contains(&last), "container {}", record.id);
        }
    }
}

#[test]
fn forgetting_the_middle_of_a_chain_leaves_ghosts_and_settling_eliminates_them() {
    let mut history = History::new();
    for _ in 0..8 {
        history.next(Deltas::Reverse { depth: 100 }, 0.25);
    }
    history.forget(&[2, 3, 5]);
    let ghosts = history.manifest().ghosts().len();
    assert!(ghosts > 0, "what was forgotten is needed by what was before it");
    history.assert_sound();
    let before = history.bytes();
    let options = history.sandbox.migrate_options().with_threshold(0.0);
    let eliminated = maintain::maintain(&history.sandbox.repository(), &options, &resources()).expect("maintenance");
    assert!(eliminated.ghosts_eliminated > 0, "{eliminated:?}");
    assert!(history.manifest().ghosts().len() < ghosts);
    assert!(history.bytes() < before, "{} of {before}", history.bytes());
    history.assert_sound();
    let again = maintain::maintain(&history.sandbox.repository(), &options, &resources()).expect("maintenance");
    assert_eq!(again, MaintainSummary::default());
}

#[test]
fn few_ghosts_are_left_alone_until_there_are_more() {
    let mut history = History::new();
    history.sandbox.write("large", &noise(3, 3_000_000));
    for _ in 0..5 {
        history.next(Deltas::Reverse { depth: 100 }, 0.25);
    }
    history.forget(&[2]);
    let ghosts = history.manifest().ghosts().len();
    assert!(ghosts > 0 && history.manifest().ghosts_due);
    let options = history.sandbox.migrate_options();
    let left = maintain::maintain(&history.sandbox.repository(), &options, &resources()).expect("maintenance");
    assert_eq!((left.ghosts_eliminated, history.manifest().ghosts().len()), (0, ghosts), "{left:?}");
    assert!(!history.manifest().ghosts_due, "it is not tried again until something else is forgotten");
    history.assert_sound();
}

#[test]
fn ghosts_that_were_not_worth_eliminating_are_left_alone_until_there_are_more() {
    let mut history = History::new();
    for _ in 0..8 {
        history.next(Deltas::Reverse { depth: 100 }, 0.25);
    }
    history.forget(&[2, 3, 5]);
    let ghosts = history.manifest().ghosts().len();
    let note = |bytes| {
        let repository = history.sandbox.repository();
        let mut writer = writer::acquire(&repository, writer::distant_holder(), false).expect("the lease");
        let mut next = writer.manifest().clone();
        (next.ghosts_kept, next.ghosts_due) = (bytes, true);
        writer.commit(next, false, Time::default()).expect("a commit");
    };
    let maintained = |threshold| {
        let options = history.sandbox.migrate_options().with_threshold(threshold);
        maintain::maintain(&history.sandbox.repository(), &options, &resources()).expect("maintenance")
    };
    note(1 << 40);
    assert_eq!(maintained(0.25).ghosts_eliminated, 0);
    let kept = history.manifest().ghosts_kept;
    assert!(kept > 0 && kept < 1 << 20, "as many as there are: {kept}");
    assert_eq!((history.manifest().ghosts().len(), history.manifest().ghosts_due), (ghosts, false));
    note(kept);
    assert_eq!((maintained(0.25).ghosts_eliminated, history.manifest().ghosts_kept), (0, kept));
    // An exact layout eliminates what it can, whatever it costs to try.
    note(kept);
    assert!(maintained(0.0).ghosts_eliminated > 0);
    assert_eq!(history.manifest().ghosts_kept, 0);
    history.assert_sound();
}

#[test]
fn many_small_containers_become_few() {
    let mut history = History::new();
    for version in 0..40 {
        history.sandbox.write("little", &noise(200 + version, 2000));
        history.next(Deltas::default(), 0.25);
    }
    history.assert_sound();
    let count = history.manifest().containers.len();
    assert!(count < 45, "{count} containers after 40 backups");
}

#[test]
fn a_series_settled_late_is_as_small_and_as_sound() {
    let mut history = History::new();
    for _ in 0..5 {
        history.sandbox.write("other", &noise(history.versions.len() as u64 + 50, 50_000));
        history.edit();
        let options = history.sandbox.options().with_force(true).with_migrate(false);
        let id = history.sandbox.try_backup(&options).expect("a backup").snapshot.expect("a snapshot");
        history.versions.push((id, tree::read(&history.sandbox.source())));
    }
    assert_eq!(history.manifest().unsettled.len(), 4);
    let before = history.bytes();
    let options = history.sandbox.migrate_options().with_threshold(0.0);
    let settled = maintain::maintain(&history.sandbox.repository(), &options, &resources()).expect("maintenance");
    assert_eq!(settled.settled, 4);
    assert!(settled.deltas_kept >= 4 && history.bytes() < before, "{settled:?}, {} of {before}", history.bytes());
    let data_depths = dependents_depths(&history.manifest());
    assert_eq!(data_depths.len(), 4, "{data_depths:?}");
    history.assert_sound();
}

/// A small container still holds a chunk of which another one answers for the delta. Merging both into one needs the
/// chunk twice.
#[test]
fn a_chunk_that_lies_in_two_small_containers_keeps_neither_from_being_merged() {
    let sandbox = Sandbox::new();
    let write = |round: u64, file: u64, changed: bool| {
        let mut bytes = noise(1000 * round + file, 1000);
        bytes[500] ^= u8::from(changed);
        sandbox.write(&format!("{round}/{file}"), &bytes);
    };
    let options = sandbox.options().with_force(true);
    let backup = || sandbox.try_backup(&options).expect("a backup").snapshot.expect("a snapshot");
    let mut snapshots = Vec::new();
    for round in 0..4 {
        (0..20).for_each(|file| write(round, file, false));
        snapshots.push(backup());
    }
    for file in 0..3 {
        (0..4).for_each(|round| write(round, file, true));
        snapshots.push(backup());
    }
    sandbox.forget(&snapshots[4..], false);
    (0..4).for_each(|round| (0..3).for_each(|file| write(round, file, false)));
    sandbox.write("new", &noise(9000, 1000));
    let log = Log::default();
    let source = Source::Paths(vec![sandbox.source()]);
    backup::backup(&sandbox.repository(), source, &options, &sandbox.heard_by(&log)).expect("a backup");
    assert!(!log.notices().iter().any(|notice| matches!(notice, Notice::NotSettled { .. })), "{:?}", log.notices());
    let manifest = sandbox.manifest();
    assert!(manifest.unsettled.is_empty() && !manifest.ghosts_due);
    maintain::maintain(&sandbox.repository(), &sandbox.migrate_options(), &sandbox.heard_by(&log)).expect("maintained");
    assert_eq!(log.problems(), [""; 0]);
    assert_eq!(sandbox.check(ReadData::All).findings, []);
}
