//! Data that is away for a while and comes back: it is used again where an older live snapshot has it whole, counted as
//! necessary in between, and given back when nobody needs it. Wrong hints about it cost room, never bytes.

use crate::common::faults::copy;
use crate::common::policy::CHUNK_BY_CHUNK;
use crate::common::{Sandbox, noise, resources, tree};
use siltstone_engine::backup::{BackupOptions, BackupSummary, Reused};
use siltstone_engine::check::ReadData;
use siltstone_engine::delta::Deltas;
use siltstone_engine::index::{CacheIdentity, CacheKind, CachedRun, FingerprintIndex};
use siltstone_engine::maintain::{self, MaintainSummary};
use siltstone_store::container::{ContainerKind, ContainerReader};
use siltstone_store::storage::{Damage, SimulatedDisk};
use siltstone_store::{ChunkNumber, Fingerprint, SnapshotId};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

const AWAY_BYTES: u64 = 600_000;

/// So many bytes of the large file that comes and goes.
fn away(bytes: u64) -> Vec<u8> {
    noise(1, usize::try_from(bytes).expect("a small number"))
}

/// A tree part of which comes and goes, and what its snapshots must restore to.
struct History {
    sandbox: Sandbox,
    disk: SimulatedDisk,
    versions: Vec<(SnapshotId, tree::Tree)>,
    deltas: Deltas,
    threshold: f64,
}

impl History {
    fn new(deltas: Deltas, threshold: f64) -> Self {
        let disk = SimulatedDisk::new();
        let sandbox = Sandbox::on(Arc::new(disk.clone()));
        sandbox.write("here/kept", &noise(2, 300_000));
        let history = Self { sandbox, disk, versions: Vec::new(), deltas, threshold };
        history.bring();
        history
    }

    fn bring(&self) {
        self.sandbox.write("mounted/large", &away(AWAY_BYTES));
        (0..40).for_each(|at| self.sandbox.write(&format!("mounted/many/{at}"), &noise(300 + at, 3000)));
    }

    fn options(&self) -> BackupOptions {
        let (deltas, migrate_threshold) = (self.deltas, self.threshold);
        self.sandbox.options().with_force(true).with_deltas(deltas).with_migrate_threshold(migrate_threshold)
    }

    fn back_up_with(&mut self, options: &BackupOptions) -> BackupSummary {
        let summary = self.sandbox.try_backup(options).expect("a backup");
        let id = summary.snapshot.expect("a snapshot");
        self.versions.push((id, tree::read(&self.sandbox.source())));
        summary
    }

    fn back_up(&mut self) -> BackupSummary {
        self.back_up_with(&self.options())
    }

    /// There, away, there again; gives the last backup.
    fn there_and_back(&mut self) -> BackupSummary {
        self.back_up();
        self.sandbox.remove("mounted");
        self.back_up();
        self.bring();
        self.back_up()
    }

    fn assert_sound(&self) {
        assert_eq!(self.sandbox.check(ReadData::All).findings, []);
        for (id, tree) in &self.versions {
            assert!(self.sandbox.restored(*id) == *tree, "snapshot {} differs", id.short());
        }
    }

    fn maintain(&self) -> MaintainSummary {
        let (deltas, threshold) = (self.deltas, self.threshold);
        let options = self.sandbox.migrate_options().with_deltas(deltas).with_threshold(threshold);
        maintain::maintain(&self.sandbox.repository(), &options, &resources()).expect("maintenance")
    }

    /// Where the chunks are kept that only older snapshots have.
    fn older_cache(&self) -> PathBuf {
        let folder = self.sandbox.folder.path().join("cache").join(self.sandbox.repository().id().to_string());
        folder.join(format!("{}.older", self.sandbox.manifest().series))
    }
}

const POLICIES: [(Deltas, f64); 6] = [
    (Deltas::Off, 0.0),
    (Deltas::Off, 0.25),
    (Deltas::Reverse { depth: 100 }, 0.25),
    (Deltas::Reverse { depth: 100 }, 0.0),
    (Deltas::Forward { depth: 4 }, 0.25),
    (CHUNK_BY_CHUNK, 0.25),
];

#[test]
fn what_was_away_for_one_backup_is_stored_once_but_where_a_policy_does_not_reach_back() {
    for (deltas, threshold) in POLICIES {
        let mut history = History::new(deltas, threshold);
        history.back_up();
        history.sandbox.remove("mounted");
        history.back_up();
        let before = history.sandbox.bytes();
        history.bring();
        let summary = history.back_up();
        let (grown, stored) = (history.sandbox.bytes().saturating_sub(before), summary.statistics.added_plain_bytes);
        history.assert_sound();
        if deltas == CHUNK_BY_CHUNK {
            assert_eq!(summary.reused, Reused::default());
            assert!(stored >= AWAY_BYTES && grown > AWAY_BYTES / 2, "{grown} bytes more");
            continue;
        }
        assert_eq!(stored, 0, "{deltas:?}, {threshold}");
        assert!(summary.reused.plain_bytes > AWAY_BYTES, "{:?}", summary.reused);
        assert!(grown < 60_000, "{grown} bytes more, {deltas:?}, {threshold}");
        let manifest = history.sandbox.manifest();
        let between = manifest.necessary(1) - manifest.direct(1);
        assert!(between.len() >= summary.reused.chunks, "counted in between");
        assert!((between - manifest.necessary(2)).is_empty() && manifest.verify_intervals().is_ok());
        let last = (manifest.necessary(2), manifest.direct(2));
        let hangs_on_old = matches!(deltas, Deltas::Forward { .. });
        assert!(hangs_on_old || last.0 == last.1, "the newest snapshot is whole, {deltas:?}");
    }
}

#[test]
fn a_lost_cache_or_none_finds_the_same() {
    for has_cache in [true, false] {
        let mut history = History::new(Deltas::default(), 0.25);
        history.back_up();
        history.sandbox.remove("mounted");
        history.back_up();
        std::fs::remove_dir_all(history.sandbox.folder.path().join("cache")).expect("removed");
        history.bring();
        history.sandbox.has_cache = has_cache;
        let summary = history.back_up_with(&history.options());
        assert_eq!(summary.statistics.added_plain_bytes, 0);
        history.assert_sound();
    }
}

#[test]
fn it_may_be_away_for_long_and_come_and_go() {
    let mut history = History::new(Deltas::default(), 0.25);
    for version in 0..9u64 {
        match version {
            1 | 5 => history.sandbox.remove("mounted"),
            4 | 7 => history.bring(),
            _ => {}
        }
        history.sandbox.write("here/edited", &noise(50 + version, 20_000));
        let summary = history.back_up();
        assert_eq!(summary.reused.chunks > 0, version == 4 || version == 7, "version {version}");
        assert!(version == 0 || summary.statistics.added_plain_bytes < 30_000, "version {version}");
    }
    history.assert_sound();
}

/// In every way to forget some of four snapshots, of which the first, the third and the fourth have what is away in the
/// second: what comes back is what was stated, and once it is settled nothing is held that nobody needs.
#[test]
fn forgetting_gives_back_what_was_stated_and_settling_the_rest() {
    for (deltas, threshold) in [(Deltas::Off, 0.0), (Deltas::default(), 0.0), (Deltas::default(), 0.25)] {
        let mut history = History::new(deltas, threshold);
        history.there_and_back();
        history.sandbox.write("here/edited", &noise(9, 30_000));
        history.back_up();
        for chosen in 1u32..15 {
            let disk = copy(&history.disk);
            let sandbox = history.sandbox.at(disk.clone());
            let is_gone = |at: usize| chosen >> at & 1 == 1;
            let gone: Vec<_> = (0..4).filter(|at| is_gone(*at)).map(|at| history.versions[at].0).collect();
            let versions = (0..4).filter(|at| !is_gone(*at)).map(|at| history.versions[at].clone()).collect();
            let left = History { sandbox, disk, versions, deltas, threshold };
            let options = |dry_run| left.sandbox.forget_options(dry_run).with_rewrite_threshold(threshold);
            let before = left.sandbox.bytes();
            let stated = left.sandbox.try_forget(&gone, &options(true)).expect("a dry run");
            let done = left.sandbox.try_forget(&gone, &options(false)).expect("forgetting");
            assert_eq!((done, left.sandbox.bytes()), (stated, stated.bytes_after), "{chosen:b}");
            left.assert_sound();
            let held = left.sandbox.bytes();
            left.maintain();
            left.assert_sound();
            let manifest = left.sandbox.manifest();
            assert!(deltas != Deltas::Off || manifest.ghosts().is_empty(), "{chosen:b}");
            assert!(!manifest.ghosts_due);
            // Where only the second is left, nothing of what it lacks may be held.
            let nobody_has_it = (0..4).all(|at| is_gone(at) || at == 1);
            let room = left.sandbox.bytes();
            assert!(!nobody_has_it || before - room > AWAY_BYTES, "{chosen:b}: {before}, {held}, {room}");
            // Catalogs and indexes shrink too, and what is partly dead below the threshold stays.
            let (later, stated) = (held.saturating_sub(room), stated.ghost_bytes);
            assert!(later <= stated + held / 16 && stated <= later + held / 8, "{chosen:b}: {later}, {stated} stated");
            assert_eq!(left.maintain(), MaintainSummary::default());
        }
    }
}

fn length(bases: &BTreeMap<u64, Vec<u64>>, number: u64) -> usize {
    let of = bases.get(&number).into_iter().flatten();
    of.map(|base| 1 + length(bases, *base)).max().unwrap_or(0)
}

/// The longest chain of deltas on disk.
fn longest_chain(history: &History) -> usize {
    let (repository, manifest) = (history.sandbox.repository(), history.sandbox.manifest());
    let mut bases: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for record in manifest.containers.iter().filter(|record| record.kind == ContainerKind::Data) {
        let reader = ContainerReader::open(repository.storage(), repository.keys(), manifest.series, record);
        for entry in reader.expect("an index").index().regions() {
            for chunk in &entry.chunks {
                if record.chunks.iter().any(|run| run.range().contains(&chunk.number.0)) {
                    bases.insert(chunk.number.0, entry.bases.iter().map(|base| base.0).collect());
                }
            }
        }
    }
    bases.keys().map(|number| length(&bases, *number)).max().unwrap_or(0)
}

/// Deltas on a chunk still hang on it when it has been away: an edit, away and back, the next edit.
#[test]
fn chains_stay_as_short_as_asked_for_when_their_chunks_come_and_go() {
    let run = |depth: u32| {
        let mut history = History::new(Deltas::Reverse { depth }, 0.25);
        let mut edited = noise(5, 200_000);
        for version in 0..6u8 {
            edited[100_000] = version;
            history.sandbox.write("mounted/edited", &edited);
            history.back_up();
            history.sandbox.remove("mounted/edited");
            history.back_up();
            history.sandbox.write("mounted/edited", &edited);
            let summary = history.back_up();
            assert!(summary.reused.plain_bytes >= edited.len() as u64, "version {version}");
        }
        history.assert_sound();
        longest_chain(&history)
    };
    assert!(run(2) <= 2);
    assert!(run(100) > 2, "longer ones would come about");
}

/// At threshold 0 each container has chunks of one lifecycle, those taken back included.
#[test]
fn with_threshold_zero_no_container_mixes_lifecycles_of_what_came_back() {
    for deltas in [Deltas::Off, Deltas::Reverse { depth: 100 }] {
        let mut history = History::new(deltas, 0.0);
        history.back_up();
        for version in 0..6u64 {
            let mounted = history.sandbox.source().join("mounted");
            if mounted.exists() {
                history.sandbox.remove("mounted");
            } else {
                history.bring();
                // Not all of it comes back.
                history.sandbox.remove(&format!("mounted/many/{version}"));
                history.sandbox.write("mounted/large", &away(AWAY_BYTES / 2 + 50_000 * version));
            }
            history.sandbox.write(&format!("here/{}", version % 2), &noise(700 + version, 50_000));
            history.back_up();
        }
        history.assert_sound();
        let manifest = history.sandbox.manifest();
        assert!(manifest.has_hulls());
        let mut lifecycles: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
        manifest.for_each_necessary(|position, necessary| {
            for number in necessary {
                lifecycles.entry(number).or_insert((position, position)).1 = position;
            }
        });
        for record in &manifest.containers {
            let numbers = record.chunks.iter().flat_map(|run| run.range());
            let found: BTreeSet<_> = numbers.filter_map(|number| lifecycles.get(&number).copied()).collect();
            let columns: BTreeSet<_> = found.iter().map(|(_, column)| *column).collect();
            assert_eq!(columns.len(), 1, "container {} spans {found:?}, {deltas:?}", record.id);
            // Bases of deltas come to be needed by earlier snapshots where they lie.
            assert!(deltas != Deltas::Off || found.len() == 1, "container {} spans {found:?}", record.id);
        }
    }
}

/// Only that moves of a container of which little is taken back.
#[test]
fn what_comes_back_leaves_the_dead_where_they_are() {
    let mut history = History::new(Deltas::Off, 0.25);
    history.sandbox.write("mounted/other", &noise(4, 2_000_000));
    history.back_up();
    history.sandbox.remove("mounted");
    history.back_up();
    history.sandbox.write("mounted/many/3", &noise(303, 3000));
    history.sandbox.write("mounted/large", &away(AWAY_BYTES / 2));
    let summary = history.back_up();
    assert!(summary.reused.plain_bytes > AWAY_BYTES / 3, "{:?}", summary.reused);
    let moved = summary.migration.bytes_written;
    assert!(moved > 200_000 && moved < 900_000, "{moved} bytes moved, of 2.6 million dead ones and 0.3 living");
    history.assert_sound();
}

#[test]
fn an_unreadable_older_container_costs_room_and_nothing_else() {
    let mut history = History::new(Deltas::default(), 0.25);
    history.back_up();
    history.sandbox.remove("mounted");
    history.back_up();
    let manifest = history.sandbox.manifest();
    let dead = manifest.direct(0) - manifest.direct(1);
    for has_cache in [true, false] {
        for is_missing in [true, false] {
            let disk = copy(&history.disk);
            let mut hit = 0;
            for record in manifest.containers.iter().filter(|record| record.kind == ContainerKind::Data) {
                if record.chunks.iter().any(|run| dead.range_cardinality(run.range()) > 0) {
                    let damage = if is_missing {
                        Damage::Delete
                    } else {
                        Damage::Flip { offset: record.index_offset + 3, mask: 1 }
                    };
                    hit += usize::from(disk.damage(&record.object_name(manifest.series), damage));
                }
            }
            assert!(hit > 0);
            history.bring();
            let sandbox = Sandbox { has_cache, ..history.sandbox.at(disk) };
            let options = history.options().with_migrate(false);
            let summary = sandbox.try_backup(&options).expect("a backup");
            assert!(summary.statistics.added_plain_bytes >= AWAY_BYTES, "{:?}", summary.statistics);
            let id = summary.snapshot.expect("a snapshot");
            assert!(sandbox.restored(id) == tree::read(&sandbox.source()));
        }
    }
}

/// The index on this machine is authenticated; but suppose that what it says is wrong, as after the store was rolled
/// back and went another way: no number may come into a snapshot that is not that very chunk, whole and alive.
#[test]
fn a_lying_index_of_older_chunks_is_not_believed() {
    let mut history = History::new(Deltas::default(), 0.25);
    let mut edited = noise(6, 100_000);
    history.sandbox.write("here/edited", &edited);
    history.back_up();
    edited[50_000] ^= 1;
    history.sandbox.write("here/edited", &edited);
    history.sandbox.remove("mounted");
    history.back_up();
    let (repository, manifest) = (history.sandbox.repository(), history.sandbox.manifest());
    let keys = repository.keys();
    let mut fingerprints: BTreeMap<u64, Fingerprint> = BTreeMap::new();
    let mut deltas = BTreeSet::new();
    for record in &manifest.containers {
        let reader = ContainerReader::open(repository.storage(), keys, manifest.series, record).expect("an index");
        for entry in reader.index().regions() {
            fingerprints.extend(entry.chunks.iter().map(|chunk| (chunk.number.0, chunk.fingerprint)));
            if !entry.bases.is_empty() {
                deltas.extend(entry.chunks.iter().map(|chunk| chunk.number.0));
            }
        }
    }
    assert!(!deltas.is_empty());
    let numbers: Vec<u64> = fingerprints.keys().copied().chain([7_000_000, u64::MAX, (1 << 63) + 7_000_000]).collect();
    history.bring();
    edited[50_000] ^= 1;
    history.sandbox.write("here/edited", &edited);
    let last = manifest.snapshots().last().expect("a snapshot").id;
    let identity = CacheIdentity { kind: CacheKind::Older, series: manifest.series, snapshot: last };
    let spill = history.sandbox.folder.path().to_owned();
    for shift in 0..numbers.len().min(40) {
        let mut index = FingerprintIndex::open(CachedRun::empty(), 1 << 20, &spill);
        for (at, fingerprint) in fingerprints.values().enumerate() {
            let number = ChunkNumber(numbers[(at + shift) % numbers.len()]);
            index.insert(*fingerprint, number).expect("inserted");
        }
        index.into_runs().save(|_| true, &history.older_cache(), &identity, &keys.cache_key()).expect("saved");
        let sandbox = history.sandbox.at(copy(&history.disk));
        let summary = sandbox.try_backup(&history.options()).expect("a backup");
        // What is told truly is used, but for deltas.
        assert_eq!(summary.reused.chunks > 0, shift == 0, "{:?}", summary.reused);
        let id = summary.snapshot.expect("a snapshot");
        assert!(sandbox.restored(id) == tree::read(&sandbox.source()), "with numbers shifted by {shift}");
        assert_eq!(sandbox.check(ReadData::All).findings, []);
        let manifest = sandbox.manifest();
        assert!(manifest.direct(2).is_disjoint(&deltas.iter().copied().collect()), "no delta is taken back");
        // The backup has made the index of the last snapshot anew: the next trial begins where this one did.
        let cache = history.sandbox.folder.path().join("cache");
        std::fs::remove_dir_all(&cache).expect("removed");
    }
}

/// A cache of chunks that have been forgotten since.
#[test]
fn what_is_dead_is_not_taken_back() {
    let mut history = History::new(Deltas::Off, 1.0);
    history.back_up();
    history.sandbox.remove("mounted");
    history.back_up();
    let gone = history.versions.remove(0).0;
    let options = history.sandbox.forget_options(false).with_rewrite_threshold(1.0);
    history.sandbox.try_forget(&[gone], &options).expect("forgetting");
    history.back_up();
    history.bring();
    let summary = history.back_up();
    assert_eq!(summary.reused, Reused::default());
    history.assert_sound();
}
