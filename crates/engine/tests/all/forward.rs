//! New chunks against old ones (policy `forward`, and chunk by chunk): that deltas are made and pay, that chains stay
//! as short as was asked for, and that whatever happens to what is known on this machine, or in the repository, every
//! snapshot restores.

use crate::common::faults::forget_parity;
use crate::common::log::Log;
use crate::common::policy::CHUNK_BY_CHUNK;
use crate::common::{Sandbox, noise, tree};
use siltstone_engine::Notice;
use siltstone_engine::backup::{self, BackupOptions, BackupSummary, Reused, Source};
use siltstone_engine::check::ReadData;
use siltstone_engine::delta::Deltas;
use siltstone_store::container::ContainerReader;
use siltstone_store::storage::{Damage, SimulatedDisk};
use siltstone_store::{ChunkNumber, SnapshotId};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

const FILE_BYTES: usize = 1 << 20;
const EDITS: usize = 30;

/// A repository, its disk, and what its snapshots must restore to.
struct History {
    sandbox: Sandbox,
    disk: SimulatedDisk,
    content: Vec<u8>,
    version: u64,
    trees: BTreeMap<SnapshotId, tree::Tree>,
    ids: Vec<SnapshotId>,
}

impl History {
    fn new() -> Self {
        let disk = SimulatedDisk::new();
        let sandbox = Sandbox::on(Arc::new(disk.clone()));
        let content = noise(77, FILE_BYTES);
        Self { sandbox, disk, content, version: 0, trees: BTreeMap::new(), ids: Vec::new() }
    }

    /// Some small changes, in other places each time.
    fn edit(&mut self, edits: usize) {
        self.version += 1;
        for (at, edit) in noise(self.version, edits * 4).chunks_exact(4).enumerate() {
            let place = FILE_BYTES / edits * at + usize::from(edit[0]) * 16;
            self.content[place..place + 4].copy_from_slice(edit);
        }
        self.sandbox.write("folder/file", &self.content);
        for number in 0..40 {
            self.sandbox.write(&format!("many/{number}"), &noise(self.version * 1000 + number, 50));
        }
    }

    fn options(&self, deltas: Deltas) -> BackupOptions {
        self.sandbox.options().with_force(true).with_deltas(deltas)
    }

    fn back_up_with(&mut self, options: &BackupOptions, log: &Log) -> BackupSummary {
        let source = Source::Paths(vec![self.sandbox.source()]);
        let summary =
            backup::backup(&self.sandbox.repository(), source, options, &self.sandbox.heard_by(log)).expect("a backup");
        let id = summary.snapshot.expect("a snapshot");
        self.trees.insert(id, tree::read(&self.sandbox.source()));
        self.ids.push(id);
        summary
    }

    fn back_up(&mut self, deltas: Deltas) -> BackupSummary {
        self.back_up_with(&self.options(deltas), &Log::default())
    }

    /// Six versions under one policy.
    fn of_six(deltas: Deltas) -> Self {
        let mut history = Self::new();
        for version in 0..6 {
            history.edit(EDITS);
            let summary = history.back_up(deltas);
            let makes_some = version > 0 && deltas != Deltas::Off;
            assert_eq!(summary.deltas.kept > 0, makes_some, "{deltas:?}, version {version}: {:?}", summary.deltas);
        }
        history
    }

    fn forget(&mut self, positions: &[usize]) {
        let ids: Vec<_> = positions.iter().map(|at| self.ids[*at]).collect();
        self.sandbox.forget(&ids, false);
        self.ids.retain(|id| !ids.contains(id));
    }

    fn assert_sound(&self) {
        let report = self.sandbox.check(ReadData::All);
        assert_eq!((report.findings, report.snapshots), (Vec::new(), self.ids.len() as u64));
        for id in &self.ids {
            self.assert_restores(*id);
        }
        for manifest in self.sandbox.repository().manifests().expect("manifests") {
            assert!(manifest.faults().is_empty(), "{:?}", manifest.faults());
        }
    }

    fn assert_restores(&self, id: SnapshotId) {
        let differences = tree::differences(&self.sandbox.restored(id), &self.trees[&id]);
        assert!(differences.is_empty(), "{}", differences.join("\n"));
    }

    /// The longest chain of deltas in any container, by the indexes.
    fn longest_chain(&self) -> u32 {
        let repository = self.sandbox.repository();
        let manifest = repository.manifests().expect("manifests").remove(0);
        let mut bases = HashMap::new();
        for record in &manifest.containers {
            let reader = ContainerReader::open(repository.storage(), repository.keys(), manifest.series, record);
            for region in reader.expect("an index").index().regions() {
                let answered = region.chunks.iter().map(|chunk| chunk.number.0);
                let answered = answered.filter(|number| record.chunks.iter().any(|run| run.range().contains(number)));
                bases.extend(answered.map(|number| (number, region.bases.clone())));
            }
        }
        let mut known = HashMap::new();
        bases.keys().map(|number| depth(*number, &bases, &mut known)).max().unwrap_or(0)
    }
}

/// Deltas between a chunk and what it hangs on; `known` keeps those of chunks, for many hang on the same.
fn depth(number: u64, bases: &HashMap<u64, Vec<ChunkNumber>>, known: &mut HashMap<u64, u32>) -> u32 {
    if let Some(depth) = known.get(&number) {
        return *depth;
    }
    let deepest = bases[&number].iter().map(|base| depth(base.0, bases, known) + 1).max().unwrap_or(0);
    known.insert(number, deepest);
    deepest
}

fn is_rebuilt(notice: &Notice) -> bool {
    matches!(notice, Notice::SketchesRebuilt { .. })
}

#[test]
fn six_versions_cost_little_and_chains_stay_as_short_as_asked_for() {
    let whole = History::of_six(Deltas::Off).sandbox.bytes();
    for (deltas, depth) in [
        (Deltas::Forward { depth: 1 }, 1),
        (Deltas::Forward { depth: 4 }, 4),
        (Deltas::Forward { depth: 16 }, 5),
        (CHUNK_BY_CHUNK, 1),
    ] {
        let history = History::of_six(deltas);
        assert_eq!(history.longest_chain(), depth, "{deltas:?}");
        assert!(history.sandbox.bytes() * 10 < whole * 9, "{deltas:?}: {} of {whole}", history.sandbox.bytes());
        history.assert_sound();
    }
}

#[test]
fn snapshots_are_forgotten_in_any_position() {
    for deltas in [Deltas::Forward { depth: 3 }, CHUNK_BY_CHUNK] {
        let mut history = History::of_six(deltas);
        history.forget(&[1, 2, 4]);
        history.assert_sound();
        history.edit(EDITS);
        assert!(history.back_up(deltas).deltas.kept > 0);
        history.forget(&[0]);
        history.assert_sound();
        history.forget(&[1, 2]);
        history.edit(EDITS);
        assert!(history.back_up(deltas).deltas.kept > 0);
        history.assert_sound();
        assert!(history.longest_chain() <= 3);
    }
}

#[test]
fn what_is_not_known_on_this_machine_is_read_again() {
    let deltas = Deltas::Forward { depth: 4 };
    let mut history = History::of_six(deltas);
    let cache = history.sandbox.folder.path().join("cache");
    for (loss, is_told) in [("none", false), ("all", true), ("a byte", true), ("none", false), ("kept nowhere", false)]
    {
        history.edit(EDITS);
        let options = history.options(deltas);
        match loss {
            "all" => std::fs::remove_dir_all(&cache).expect("removed"),
            "a byte" => {
                let folder = std::fs::read_dir(&cache).expect("a folder").next().expect("a folder").expect("a folder");
                let mut files =
                    std::fs::read_dir(folder.path()).expect("files").map(|file| file.expect("a file").path());
                let file = files.find(|file| file.extension().is_some_and(|kind| kind == "likes")).expect("a file");
                let mut bytes = std::fs::read(&file).expect("readable");
                bytes[100] ^= 1;
                std::fs::write(&file, bytes).expect("written");
            }
            "kept nowhere" => history.sandbox.has_cache = false,
            _ => {}
        }
        let log = Log::default();
        let summary = history.back_up_with(&options, &log);
        assert!(summary.deltas.kept > 0, "{loss}");
        assert_eq!(log.notices().iter().any(is_rebuilt), is_told, "{loss}: {:?}", log.notices());
        assert!(history.longest_chain() <= 4, "{loss}: depths are known again");
    }
    history.assert_sound();
}

#[test]
fn the_policy_may_change_from_one_backup_to_the_next() {
    let mut history = History::new();
    let policies = [
        Deltas::Forward { depth: 3 },
        Deltas::default(),
        CHUNK_BY_CHUNK,
        Deltas::Forward { depth: 2 },
        Deltas::Off,
        Deltas::Forward { depth: 3 },
        Deltas::Forward { depth: 1 },
        Deltas::default(),
        Deltas::default(),
        CHUNK_BY_CHUNK,
    ];
    for deltas in policies {
        history.edit(EDITS);
        history.back_up(deltas);
    }
    history.assert_sound();
    history.forget(&[1, 3, 9]);
    history.assert_sound();
    for deltas in policies {
        history.edit(EDITS);
        history.back_up(deltas);
        history.forget(&[0]);
    }
    history.assert_sound();
}

/// Content that comes back after a while, with an edit: a policy that looks at the last
/// snapshot only finds it to be like what that needs, no more.
#[test]
fn what_comes_back_is_used_again_and_what_resembles_it_is_a_delta() {
    for deltas in [Deltas::Forward { depth: 2 }, CHUNK_BY_CHUNK] {
        let mut history = History::new();
        history.edit(EDITS);
        history.back_up(deltas);
        let first = history.content.clone();
        history.edit(EDITS);
        assert_eq!(history.back_up(deltas).reused, Reused::default());
        history.content = first;
        history.edit(2);
        let summary = history.back_up(deltas);
        assert!(summary.deltas.kept > 0, "{deltas:?}");
        assert_eq!(summary.reused.chunks > 0, deltas != CHUNK_BY_CHUNK, "{deltas:?}: {:?}", summary.reused);
        history.assert_sound();
    }
}

#[test]
fn a_damaged_base_is_not_used() {
    let deltas = Deltas::Forward { depth: 4 };
    let mut history = History::new();
    history.edit(EDITS);
    history.back_up(deltas);
    let repository = history.sandbox.repository();
    let manifest = repository.manifests().expect("manifests").remove(0);
    for record in &manifest.containers {
        let name = record.object_name(manifest.series);
        assert!(history.disk.damage(&name, Damage::Flip { offset: record.index_offset / 2, mask: 1 }));
    }
    forget_parity(&history.disk);
    // Nothing stays as it was, and all resembles what was.
    history.content[FILE_BYTES - 1] ^= 1;
    history.edit(FILE_BYTES / 4096);
    let log = Log::default();
    // A sample would meet the damage before; here it is met when a base is read.
    let summary = history.back_up_with(&history.options(deltas).with_sample_bytes(Some(0)), &log);
    assert!(summary.deltas.rejected > 0 && summary.deltas.kept == 0, "{:?}", summary.deltas);
    assert!(log.notices().iter().any(|notice| matches!(notice, Notice::BaseUnreadable { .. })));
    history.assert_restores(history.ids[1]);
}

#[test]
fn what_hangs_on_a_lost_container_is_stored_again() {
    let deltas = Deltas::Forward { depth: 4 };
    for cache in [true, false] {
        let mut history = History::of_six(deltas);
        let repository = history.sandbox.repository();
        let manifest = repository.manifests().expect("manifests").remove(0);
        let first = manifest.containers.iter().find(|record| !record.has_deltas).expect("the first version");
        assert!(history.disk.damage(&first.object_name(manifest.series), Damage::Delete));
        let options = history.options(deltas);
        history.sandbox.has_cache = cache;
        history.back_up_with(&options, &Log::default());
        history.assert_restores(history.ids[6]);
        history.edit(EDITS);
        assert!(history.back_up_with(&options, &Log::default()).deltas.kept > 0);
        history.assert_restores(history.ids[7]);
    }
}

#[test]
fn bases_that_lie_alone_are_left_alone() {
    let deltas = Deltas::Forward { depth: 4 };
    let mut history = History::new();
    history.edit(EDITS);
    history.back_up(deltas);
    history.edit(EDITS);
    let options = history.options(deltas).with_delta_threshold(10_000);
    let summary = history.back_up_with(&options, &Log::default());
    assert!(summary.deltas.skipped > 0 && summary.deltas.kept == 0, "{:?}", summary.deltas);
    history.edit(EDITS);
    let options = history.options(deltas).with_delta_threshold(5).with_segment_bytes(1);
    let summary = history.back_up_with(&options, &Log::default());
    assert!(summary.deltas.skipped > 0 && summary.deltas.kept == 0, "a segment for each chunk: {:?}", summary.deltas);
    history.edit(EDITS);
    let options = history.options(deltas).with_delta_threshold(5);
    assert!(history.back_up_with(&options, &Log::default()).deltas.kept > 0);
    history.assert_sound();
}

#[test]
fn a_dry_run_counts_the_same_and_changes_nothing() {
    let deltas = Deltas::Forward { depth: 4 };
    let mut history = History::of_six(deltas);
    history.edit(EDITS);
    // What changed just now is recorded otherwise than what has aged a little.
    std::thread::sleep(std::time::Duration::from_millis(60));
    let before = history.sandbox.bytes();
    let options = history.options(deltas).with_dry_run(true);
    let dry = history.sandbox.try_backup(&options).expect("a dry run");
    assert_eq!(history.sandbox.bytes(), before);
    let log = Log::default();
    let done = history.back_up_with(&history.options(deltas), &log);
    assert_eq!(done.deltas, dry.deltas);
    assert!(!log.notices().iter().any(is_rebuilt));
}
