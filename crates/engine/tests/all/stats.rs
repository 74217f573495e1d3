//! Figures: each is summed up again here from the indexes of all containers, the slow way, and held against what a
//! restore really reads.

use crate::common::policy::CHUNK_BY_CHUNK;
use crate::common::{Sandbox, entry_path, noise, resources};
use siltstone_engine::backup::{BackupOptions, BackupSummary};
use siltstone_engine::delta::Deltas;
use siltstone_engine::maintain::{self};
use siltstone_engine::restore::{self, RestoreSummary};
use siltstone_engine::stats::{DeltaFigures, Reduction, SnapshotFigures, Stats, stats};
use siltstone_engine::{EngineError, Observer};
use siltstone_store::container::{ContainerKind, ContainerReader};
use siltstone_store::manifest::{Manifest, SnapshotStatistics};
use siltstone_store::storage::{Listing, ObjectMeta, ObjectName, Storage};
use siltstone_store::{ContainerId, SnapshotId};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

const FILE_BYTES: usize = 200_000;

/// Versions of a file with small edits, of one that is new each time, of one that compresses, and of one that never
/// changes.
struct History {
    sandbox: Sandbox,
    edited: Vec<u8>,
    version: u64,
}

impl History {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        sandbox.write("kept", &noise(2, 150_000));
        Self { sandbox, edited: noise(1, FILE_BYTES), version: 0 }
    }

    /// Changes the files to the next version.
    fn change(&mut self) {
        self.version += 1;
        let place = usize::try_from(self.version % 3).expect("small") * FILE_BYTES / 4;
        self.edited[place..place + 2000].copy_from_slice(&noise(100 + self.version, 2000));
        self.sandbox.write("folder/edited", &self.edited);
        self.sandbox.write("folder/new", &noise(200 + self.version, 60_000));
        let lines: Vec<String> = (0..4000).map(|line| format!("line {line} of version {}", self.version)).collect();
        self.sandbox.write("text", lines.join("\n").as_bytes());
    }

    fn next(&mut self, options: &BackupOptions) -> BackupSummary {
        self.change();
        self.sandbox.try_backup(options).expect("a backup")
    }

    fn of(versions: usize, deltas: Deltas, threshold: f64) -> (Self, Vec<BackupSummary>) {
        let mut history = Self::new();
        let options = history.sandbox.options().with_force(true).with_deltas(deltas).with_migrate_threshold(threshold);
        let summaries = (0..versions).map(|_| history.next(&options)).collect();
        (history, summaries)
    }

    fn stats(&self) -> Stats {
        stats(&self.sandbox.repository(), &|_| true).expect("figures").0
    }

    fn stored(&self) -> Vec<SnapshotStatistics> {
        self.sandbox.manifest().snapshots().iter().map(|snapshot| snapshot.statistics).collect()
    }

    fn restored(&self, id: SnapshotId) -> RestoreSummary {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let below = Some(entry_path(&self.sandbox.source()));
        let options = self.sandbox.restore_options(&folder.path().join("restored")).with_below(below);
        restore::restore(&self.sandbox.repository(), &self.sandbox.view(id), &options, &resources()).expect("a restore")
    }

    fn forget(&self, positions: &[usize]) {
        let manifest = self.sandbox.manifest();
        let ids: Vec<_> = positions.iter().map(|at| manifest.snapshots()[*at].id).collect();
        self.sandbox.forget(&ids, false);
    }
}

/// A chunk where it lies: its length, its region, and what that hangs on.
#[derive(Clone)]
struct Place {
    length: u64,
    region: (ContainerId, usize),
    kind: ContainerKind,
    sealed_bytes: u64,
    plain_bytes: u64,
    bases: Vec<u64>,
}

/// Every chunk that a container answers for, from all indexes.
fn places(sandbox: &Sandbox, manifest: &Manifest) -> HashMap<u64, Place> {
    let repository = sandbox.repository();
    let mut places = HashMap::new();
    for record in &manifest.containers {
        let reader = ContainerReader::open(repository.storage(), repository.keys(), manifest.series, record);
        for (at, entry) in reader.expect("an index").index().regions().iter().enumerate() {
            for chunk in &entry.chunks {
                if record.chunks.iter().any(|run| run.range().contains(&chunk.number.0)) {
                    let place = Place {
                        length: u64::from(chunk.length),
                        region: (record.id, at),
                        kind: record.kind,
                        sealed_bytes: u64::from(entry.sealed_bytes),
                        plain_bytes: entry.chunks.iter().map(|chunk| u64::from(chunk.length)).sum(),
                        bases: entry.bases.iter().map(|base| base.0).collect(),
                    };
                    assert!(places.insert(chunk.number.0, place).is_none(), "two containers answer for one");
                }
            }
        }
    }
    places
}

/// Bytes of these chunks, with all that they hang on.
fn reduced(places: &HashMap<u64, Place>, direct: &BTreeSet<u64>, kind: ContainerKind) -> (Reduction, usize) {
    let mut all: BTreeSet<u64> = BTreeSet::new();
    let mut pending: Vec<u64> = direct.iter().copied().filter(|number| places[number].kind == kind).collect();
    while let Some(number) = pending.pop() {
        if all.insert(number) {
            pending.extend(&places[&number].bases);
        }
    }
    let mut by_region: BTreeMap<(ContainerId, usize), Vec<u64>> = BTreeMap::new();
    for number in &all {
        by_region.entry(places[number].region).or_default().push(*number);
    }
    let mut sum = Reduction::default();
    for numbers in by_region.values() {
        let place = &places[&numbers[0]];
        let bytes: u64 = numbers.iter().map(|number| places[number].length).sum();
        let share = place.sealed_bytes * bytes / place.plain_bytes;
        sum.stored_bytes += share;
        if place.bases.is_empty() {
            sum.after_delta_bytes += bytes;
        } else {
            sum.after_delta_bytes += share;
            let deltas = DeltaFigures { chunks: numbers.len() as u64, plain_bytes: bytes, stored_bytes: share };
            sum.deltas = sum.deltas.and(deltas);
        }
        for number in numbers {
            let length = places[number].length;
            let (count, total) = if direct.contains(number) {
                (&mut sum.chunks, &mut sum.unique_bytes)
            } else {
                (&mut sum.bases, &mut sum.base_bytes)
            };
            *count += 1;
            *total += length;
        }
    }
    let containers: BTreeSet<_> = by_region.keys().map(|(id, _)| *id).collect();
    (sum, containers.len())
}

/// Holds all figures against sums over the indexes, and against a restore of each snapshot.
fn assert_true(history: &History) -> Stats {
    let (manifest, found) = (history.sandbox.manifest(), history.stats());
    let places = places(&history.sandbox, &manifest);
    let mut union = BTreeSet::new();
    assert_eq!(found.by_snapshot.len(), manifest.snapshots().len());
    for (position, figures) in found.by_snapshot.iter().enumerate() {
        let id = manifest.snapshots()[position].id;
        assert_eq!(figures.view.snapshot.id, id);
        let direct: BTreeSet<u64> = manifest.direct(position).iter().collect();
        let (data, containers) = reduced(&places, &direct, ContainerKind::Data);
        assert_eq!((figures.data, figures.containers_needed), (data, containers as u64), "snapshot {position}");
        let (metadata, containers) = reduced(&places, &direct, ContainerKind::Metadata);
        let found = (figures.metadata, figures.metadata_containers_needed);
        assert_eq!(found, (metadata, containers as u64), "snapshot {position}");
        union.extend(direct);

        let restored = history.restored(id);
        let reads = (restored.containers_needed, restored.bytes_read);
        assert_eq!((figures.containers_needed, figures.bytes_read), reads, "snapshot {position}");
        assert!(figures.read_amplification().expect("it needs some") >= 1.0);
        assert_eq!(restored.bytes_restored, figures.view.snapshot.statistics.logical_bytes);
    }
    for (kind, figures) in [(ContainerKind::Data, found.data), (ContainerKind::Metadata, found.metadata)] {
        assert_eq!(figures, reduced(&places, &union, kind).0, "{kind:?}");
    }
    assert!(found.data.stored_bytes <= found.data_container_bytes);
    assert!(found.metadata.stored_bytes <= found.metadata_container_bytes);
    found
}

#[test]
fn figures_are_those_of_the_indexes_and_of_restores() {
    let policies = [
        (Deltas::Off, 0.25),
        (Deltas::Reverse { depth: 100 }, 0.0),
        (Deltas::Reverse { depth: 2 }, 0.25),
        (Deltas::Forward { depth: 3 }, 1.0),
        (CHUNK_BY_CHUNK, 0.25),
    ];
    for (deltas, threshold) in policies {
        let (history, _) = History::of(6, deltas, threshold);
        let before = assert_true(&history);
        assert_eq!(before.data.deltas.chunks > 0, deltas != Deltas::Off, "{deltas:?}");
        assert_eq!(before.data.bases, 0, "all snapshots are there, and with them whatever is a base");
        let reduced = before.data;
        assert!(reduced.unique_bytes < before.restore_bytes && reduced.stored_bytes < reduced.after_delta_bytes);
        match reduced.deltas.efficiency() {
            Some(efficiency) => {
                assert!(reduced.after_delta_bytes < reduced.unique_bytes);
                assert!(efficiency > 0.5 && efficiency < 1.0, "{deltas:?}: {efficiency}");
            }
            None => assert_eq!((reduced.after_delta_bytes, deltas), (reduced.unique_bytes, Deltas::Off)),
        }
        // Now some bases may be all that is left of their snapshots.
        history.forget(&[1, 3]);
        let after = assert_true(&history);
        assert_eq!((after.snapshots, after.by_snapshot.len()), (4, 4));
    }
}

#[test]
fn what_is_kept_for_deltas_alone_is_told_apart() {
    let (history, _) = History::of(8, Deltas::Reverse { depth: 100 }, 0.25);
    history.forget(&[2, 3, 4, 5]);
    let found = assert_true(&history);
    assert!(found.data.bases > 0 && found.data.base_bytes > 0, "{:?}", found.data);
    let first = &found.by_snapshot[0];
    assert!(first.data.bases > 0, "the first hangs on some");
    let last = found.by_snapshot.last().expect("four");
    assert_eq!(last.data.bases, 0, "the last is whole");
}

#[test]
fn some_snapshots_are_counted_by_themselves() {
    let (history, _) = History::of(5, Deltas::Reverse { depth: 100 }, 0.25);
    let all = history.stats();
    let same = |one: &SnapshotFigures, other: &SnapshotFigures| {
        assert_eq!((one.data, one.metadata, one.bytes_read), (other.data, other.metadata, other.bytes_read));
        assert_eq!(one.containers_needed, other.containers_needed);
    };
    for (position, figures) in all.by_snapshot.iter().enumerate() {
        let one = stats(&history.sandbox.repository(), &|view| view.position == position).expect("figures").0;
        assert_eq!((one.snapshots, one.data, one.metadata), (1, figures.data, figures.metadata), "{position}");
        same(&one.by_snapshot[0], figures);
        assert_eq!(one.restore_bytes, figures.view.snapshot.statistics.logical_bytes);
        assert_eq!(one.repository_bytes, all.repository_bytes);
    }
    let ends = stats(&history.sandbox.repository(), &|view| view.position % 4 == 0).expect("figures").0;
    assert_eq!(ends.snapshots, 2);
    ends.by_snapshot.iter().zip([0, 4]).for_each(|(one, at)| same(one, &all.by_snapshot[at]));
    assert!(ends.data.unique_bytes > all.by_snapshot[0].data.unique_bytes);
    assert!(ends.data.unique_bytes < all.data.unique_bytes);
}

#[test]
fn no_snapshots_have_no_figures() {
    let sandbox = Sandbox::new();
    let found = stats(&sandbox.repository(), &|_| true).expect("figures").0;
    assert_eq!((found.snapshots, found.data, found.by_snapshot.len()), (0, Reduction::default(), 0));
    assert_eq!(found.data.deltas.efficiency(), None);
    assert!(found.repository_bytes > 0, "there are keys");
    // A snapshot without content needs nothing, so nothing is read beside it.
    sandbox.backup();
    let found = stats(&sandbox.repository(), &|_| true).expect("figures").0;
    assert_eq!((found.snapshots, found.data), (1, Reduction::default()));
    assert_eq!(found.by_snapshot[0].read_amplification(), None);
    assert!(found.metadata.chunks > 0);
}

#[test]
fn the_last_snapshot_reads_less_in_vain_where_dead_chunks_are_moved_away() {
    let of_last = |threshold| {
        let (history, _) = History::of(6, Deltas::Off, threshold);
        let figures = history.stats().by_snapshot.pop().expect("six");
        figures.read_amplification().expect("it needs some")
    };
    let (moved, left) = (of_last(0.0), of_last(1.0));
    assert!(moved < 1.02, "{moved}");
    assert!(left > 1.2, "{left}");
}

#[test]
fn what_backups_and_migration_did_stands_with_the_snapshots() {
    for deltas in [Deltas::Reverse { depth: 100 }, Deltas::Forward { depth: 3 }] {
        let (history, summaries) = History::of(5, deltas, 0.0);
        for (stored, summary) in history.stored().iter().zip(&summaries) {
            assert_eq!(*stored, summary.statistics, "{deltas:?}");
            assert_eq!(stored.deltas_kept, summary.deltas.kept + summary.migration.deltas_kept);
            assert_eq!(stored.deltas_rejected, summary.deltas.rejected + summary.migration.deltas_rejected);
            assert_eq!(stored.deltas_skipped, summary.deltas.skipped);
            assert_eq!(stored.bytes_migrated, summary.migration.bytes_written);
        }
        let found = history.stats();
        let sum = |of: fn(&SnapshotStatistics) -> u64| history.stored().iter().map(of).sum::<u64>();
        assert_eq!(found.deltas_kept, sum(|one| one.deltas_kept));
        assert_eq!(found.deltas_rejected, sum(|one| one.deltas_rejected));
        assert_eq!(found.deltas_skipped, sum(|one| one.deltas_skipped));
        assert_eq!(found.bytes_migrated, sum(|one| one.bytes_migrated));
        assert!(found.deltas_kept > 0 && found.bytes_migrated > 0, "{deltas:?}");
    }
}

/// Threads decide which chunks meet in a region: by one worker, there is one delta more or less at most.
#[test]
fn a_dry_run_tells_of_deltas_too() {
    let mut history = History::new();
    let options = history.sandbox.options().with_force(true).with_deltas(Deltas::Forward { depth: 3 });
    history.next(&options);
    history.change();
    let resources = history.sandbox.resources().with_workers(1);
    let back_up = |options: &BackupOptions| history.sandbox.try_backup_within(options, &resources).expect("a backup");
    let dry = back_up(&options.clone().with_dry_run(true));
    let done = back_up(&options);
    assert!(dry.statistics.deltas_kept > 0);
    let difference = dry.statistics.deltas_kept.abs_diff(done.deltas.kept);
    assert!(difference <= 1, "{:?} {:?}", dry.deltas, done.deltas);
}

#[test]
fn settling_late_counts_for_the_backups_that_left_it_to_be_done() {
    let mut history = History::new();
    let options = history.sandbox.options().with_force(true).with_migrate(false);
    (0..4).for_each(|_| drop(history.next(&options)));
    let before = history.stored();
    assert!(before.iter().all(|stored| stored.deltas_kept == 0 && stored.bytes_migrated == 0));
    let options = history.sandbox.migrate_options();
    let settled = maintain::maintain(&history.sandbox.repository(), &options, &resources()).expect("maintenance");
    let after = history.stored();
    let moved: Vec<u64> = after.iter().map(|stored| stored.bytes_migrated).collect();
    assert_eq!(moved[0], 0, "nothing was before it");
    assert!(moved[1..].iter().all(|bytes| *bytes > 0), "{moved:?}");
    assert_eq!(moved.iter().sum::<u64>(), settled.bytes_written);
    assert_eq!(after.iter().map(|stored| stored.deltas_kept).sum::<u64>(), settled.deltas_kept);
    for (before, after) in before.iter().zip(&after) {
        let unchanged = SnapshotStatistics { deltas_kept: 0, deltas_rejected: 0, bytes_migrated: 0, ..*after };
        assert_eq!(unchanged, *before, "nothing else changed");
    }
}

#[test]
fn eliminating_ghosts_counts_for_the_last_snapshot() {
    let (history, _) = History::of(10, Deltas::Reverse { depth: 100 }, 0.25);
    history.forget(&[1, 2, 3, 4, 5, 6, 7, 8]);
    let before = history.stored();
    let options = history.sandbox.migrate_options();
    let eliminated = maintain::maintain(&history.sandbox.repository(), &options, &resources()).expect("maintenance");
    assert!(eliminated.ghosts_eliminated > 0 && eliminated.bytes_written > 0, "{eliminated:?}");
    let after = history.stored();
    assert_eq!(after[0], before[0]);
    assert_eq!(after[1].bytes_migrated, before[1].bytes_migrated + eliminated.bytes_written);
}

#[test]
fn a_migration_that_is_interrupted_counts_what_it_committed() {
    let mut history = History::new();
    let options = history.sandbox.options().with_force(true).with_migrate(false);
    (0..4).for_each(|_| drop(history.next(&options)));
    let options = history.sandbox.migrate_options().with_piece_bytes(1);
    let impatient = Arc::new(Impatient::after(3, history.sandbox.storage.clone()));
    let error = maintain::maintain(&history.sandbox.repository(), &options, &resources().with_observer(impatient))
        .expect_err("interrupted");
    assert!(matches!(error, EngineError::Interrupted), "{error}");
    let manifest = history.sandbox.manifest();
    let lease = manifest.containers.iter().map(|record| record.id.lease).max().expect("containers");
    let written = manifest.containers.iter().filter(|record| record.id.lease == lease);
    let written: u64 = written.map(|record| record.object_bytes).sum();
    let moved: u64 = history.stored().iter().map(|stored| stored.bytes_migrated).sum();
    assert!(moved > 0);
    assert_eq!(moved, written);
    // The rest in pieces too.
    let settled = maintain::maintain(&history.sandbox.repository(), &options, &resources()).expect("maintenance");
    let all: u64 = history.stored().iter().map(|stored| stored.bytes_migrated).sum();
    assert_eq!(all, moved + settled.bytes_written);
}

/// Asks to stop once so many manifests were committed.
struct Impatient {
    storage: Arc<dyn Storage>,
    last: u64,
}

impl Impatient {
    fn after(manifests: u64, storage: Arc<dyn Storage>) -> Self {
        Self { last: newest(&*storage) + manifests, storage }
    }
}

/// The number of the newest manifest.
fn newest(storage: &dyn Storage) -> u64 {
    let number = |meta: ObjectMeta| match meta.name {
        ObjectName::Manifest(_, sequence) => Some(sequence),
        _ => None,
    };
    storage.list(Listing::All).expect("a list").into_iter().filter_map(number).max().expect("a manifest")
}

impl Observer for Impatient {
    fn is_cancelled(&self) -> bool {
        newest(&*self.storage) >= self.last
    }
}

#[test]
fn gaps_that_are_worth_a_second_read_are_not_counted() {
    let mut history = History::new();
    let options = history.sandbox.options().with_deltas(Deltas::Off).with_migrate_threshold(1.0);
    let mut large = noise(5, 12 << 20);
    for version in 0..3 {
        large[3 << 20..][..5 << 20].copy_from_slice(&noise(6 + version, 5 << 20));
        history.sandbox.write("large", &large);
        history.next(&options);
    }
    let found = assert_true(&history);
    let last = found.by_snapshot.last().expect("three");
    // Wherever the regions of 2 MiB begin, each of the two dead stretches holds one.
    assert!(last.bytes_read + (3 << 20) < found.data_container_bytes, "{} bytes", last.bytes_read);
}
