//! A repository far away with a cache of its sealed objects on this machine: results are those without one, whatever
//! becomes of the cache.

use crate::common::faults::forget_parity;
use crate::common::{self, Sandbox, noise};
use siltstone_engine::VerifyWritten;
use siltstone_engine::check::ReadData;
use siltstone_engine::delta::Deltas;
use siltstone_store::SnapshotId;
use siltstone_store::storage::{Cached, NameKind, Recorder, SimulatedDisk};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

const CACHE_BYTES: u64 = 64 << 20;

struct Scene {
    sandbox: Sandbox,
    far: Arc<Recorder<SimulatedDisk>>,
    cache: TempDir,
    /// Snapshots, with the source as it was.
    made: Vec<(SnapshotId, common::tree::Tree)>,
}

impl Scene {
    /// Three versions, each encoded against the one before, written through a cache.
    fn new() -> Self {
        let far = Arc::new(Recorder::new(SimulatedDisk::new()));
        let cache = TempDir::new().expect("a folder");
        let near = Cached::open(far.clone(), cache.path(), CACHE_BYTES).expect("a cache");
        let sandbox = Sandbox::on(Arc::new(near));
        let mut scene = Self { sandbox, far, cache, made: Vec::new() };
        let mut edited = noise(9, 400_000);
        for round in 0..3usize {
            edited[round * 100_000..][..4].copy_from_slice(b"edit");
            scene.sandbox.write("edited", &edited);
            scene.sandbox.write(&format!("folder/{round}"), &noise(round as u64, 50_000));
            scene.backup();
        }
        scene
    }

    fn backup(&mut self) {
        let options = self.sandbox.options().with_force(true).with_deltas(Deltas::Forward { depth: 8 });
        let options = options.with_verify_written(VerifyWritten::Never).with_sample_bytes(Some(0));
        let id = self.sandbox.try_backup(&options).expect("a backup").snapshot.expect("a snapshot");
        self.made.push((id, common::tree::read(&self.sandbox.source())));
    }

    /// Another process with the same cache.
    fn next_process(&self) -> Sandbox {
        self.sandbox.at(Cached::open(self.far.clone(), self.cache.path(), CACHE_BYTES).expect("a cache"))
    }

    fn assert_whole(&self, story: &str) {
        let process = self.next_process();
        for (id, tree) in &self.made {
            assert_eq!(process.restored(*id), *tree, "{story}");
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Writes an entry of the cache; the one before may have been thrown away with its folder.
fn put_back(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
    fs::write(path, bytes).expect("written");
}

#[test]
fn what_a_backup_wrote_is_read_from_this_machine() {
    let mut scene = Scene::new();
    scene.far.reset();
    scene.sandbox.write("edited", &noise(9, 400_000));
    scene.sandbox = scene.next_process();
    scene.backup();
    scene.assert_whole("after a later backup");
    let containers = scene.far.reset().of_kind(NameKind::Container);
    assert_eq!((containers.reads, containers.range_reads), (0, 0), "containers were fetched");
    fs::remove_dir_all(scene.cache.path()).expect("no cache");
    scene.assert_whole("without the cache");
    assert!(scene.far.reset().of_kind(NameKind::Container).bytes_read > 400_000);
}

#[test]
fn a_damaged_cache_hurts_no_restore() {
    let scene = Scene::new();
    forget_parity(scene.far.inner());
    let sound: Vec<_> =
        files(scene.cache.path()).into_iter().map(|path| (fs::read(&path).expect("read"), path)).collect();
    assert!(sound.len() >= 6, "{}", sound.len());
    for (bytes, path) in &sound {
        let places = (0..bytes.len()).step_by(bytes.len() / 5 + 1);
        for at in places {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            put_back(path, &flipped);
            scene.assert_whole(&format!("{} flipped at {at}", path.display()));
        }
        put_back(path, &bytes[..bytes.len() / 2]);
        scene.assert_whole(&format!("{} cut", path.display()));
    }
    assert_eq!(scene.next_process().check(ReadData::All).findings.len(), 0);
}

#[test]
fn a_cache_of_what_was_is_not_what_is() {
    let mut scene = Scene::new();
    let gone = scene.made.remove(0).0;
    // Another machine, without the cache.
    scene.sandbox.at(scene.far.clone()).forget(&[gone], false);
    scene.assert_whole("after another machine forgot");
    assert_eq!(scene.next_process().snapshots().len(), 2);
}
