//! The cache in front of a storage: what it saves, what it never believes, and how large it gets.

use super::*;
use crate::ids::ContainerId;
use crate::storage::{Cached, Recorder};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const BOUND: u64 = 1 << 20;

struct Scene {
    far: Arc<Recorder<SimulatedDisk>>,
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        Self { far: Arc::new(Recorder::new(SimulatedDisk::new())), folder: tempfile::tempdir().unwrap() }
    }

    /// Another process with the same cache.
    fn cached(&self) -> Cached {
        Cached::open(self.far.clone(), self.folder.path(), BOUND).unwrap()
    }

    /// Reads that came as far as the storage since the last call.
    fn far_reads(&self) -> u64 {
        let calls = self.far.reset().total();
        calls.reads + calls.range_reads
    }

    /// All files of the cache.
    fn entries(&self) -> Vec<PathBuf> {
        files(self.folder.path())
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Bytes of a pattern: nothing in an object is looked at.
fn object(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| u8::try_from(at % 251).unwrap()).collect()
}

#[test]
fn what_was_read_or_written_once_is_not_fetched_again() {
    let scene = Scene::new();
    let far = &scene.far;
    let metadata = object(3000);
    far.create(&metadata_container(0), &metadata).unwrap();
    far.create(&container(1), &object(5000)).unwrap();
    let read = |cached: &Cached| {
        (cached.read(&metadata_container(0), 3000).unwrap(), cached.read_kept(&container(1), 4000, 500).unwrap())
    };
    let first = read(&scene.cached());
    assert_eq!(scene.far_reads(), 2);
    assert_eq!(read(&scene.cached()), first);
    assert_eq!(scene.far_reads(), 0);
    assert_eq!(first, (metadata, far.read_range(&container(1), 4000, 500).unwrap()));

    let written = object(9000);
    let writer = scene.cached();
    writer.put(&metadata_container(2), &written).unwrap();
    scene.far_reads();
    let reader = scene.cached();
    assert_eq!(reader.read(&metadata_container(2), u64::MAX).unwrap(), written);
    assert_eq!(reader.read_range(&metadata_container(2), 8000, 1000).unwrap(), written[8000..]);
    assert_eq!(scene.far_reads(), 0);
}

#[test]
fn ranges_of_data_are_not_kept_and_nothing_but_containers_is() {
    let scene = Scene::new();
    scene.far.create(&container(1), &object(5000)).unwrap();
    let cached = scene.cached();
    cached.create(&manifest(1), b"manifest").unwrap();
    let parity = ObjectName::Parity(SERIES, ContainerId { lease: 1, serial: 1 });
    cached.put(&parity, b"old").unwrap();
    cached.barrier().unwrap();
    for _ in 0..2 {
        cached.read_range(&container(1), 100, 200).unwrap();
        cached.read(&manifest(1), 100).unwrap();
        cached.read(&parity, 100).unwrap();
    }
    assert_eq!(scene.far_reads(), 6);
    assert_eq!(scene.entries(), Vec::<PathBuf>::new());
}

#[test]
fn an_entry_that_is_damaged_cut_or_of_another_name_is_fetched_anew() {
    let scene = Scene::new();
    let whole =
        |name: ObjectName| scene.folder.path().join("metadata").join(name.to_string().replace('/', ".")).join("whole");
    let [first, second] = [metadata_container(1), metadata_container(2)];
    let bytes = object(100);
    scene.far.create(&first, &bytes).unwrap();
    scene.far.create(&second, &object(110)).unwrap();
    for name in [first, second] {
        scene.cached().read(&name, 1000).unwrap();
    }
    let sound = fs::read(whole(first)).unwrap();
    let mut damages: Vec<Vec<u8>> = (0..sound.len()).map(|length| sound[..length].to_vec()).collect();
    damages.extend((0..sound.len()).map(|at| {
        let mut flipped = sound.clone();
        flipped[at] ^= 1;
        flipped
    }));
    damages.push(fs::read(whole(second)).unwrap());
    for damage in damages {
        fs::write(whole(first), damage).unwrap();
        assert_eq!(scene.cached().read(&first, 1000).unwrap(), bytes);
        assert_eq!(fs::read(whole(first)).unwrap(), sound);
    }
}

#[test]
fn what_is_deleted_or_dropped_is_asked_of_the_storage() {
    let scene = Scene::new();
    let cached = scene.cached();
    let bytes = object(100);
    cached.create(&metadata_container(1), &bytes).unwrap();
    cached.create(&metadata_container(2), &bytes).unwrap();
    cached.delete(&metadata_container(1)).unwrap();
    assert!(!exists(&cached, &metadata_container(1)));
    scene.far_reads();
    assert!(cached.drop_cached(&metadata_container(2)));
    assert!(!cached.drop_cached(&metadata_container(2)));
    assert_eq!(cached.read(&metadata_container(2), 100).unwrap(), bytes);
    assert_eq!(scene.far_reads(), 1);
    assert!(matches!(
        cached.read(&metadata_container(2), 99),
        Err(crate::storage::StorageError::TooLarge { bytes: 100, .. })
    ));
}

#[test]
fn a_cache_keeps_its_bound_and_lets_data_go_before_metadata() {
    let scene = Scene::new();
    let bytes_of = |paths: Vec<PathBuf>| paths.iter().map(|path| fs::metadata(path).unwrap().len()).sum::<u64>();
    for process in 0..8u32 {
        let cached = scene.cached();
        cached.put(&metadata_container(process * 100), &object(40_000)).unwrap();
        for serial in 1..40 {
            cached.put(&container(process * 100 + serial), &object(50_000)).unwrap();
            assert!(bytes_of(scene.entries()) <= BOUND);
        }
        cached.barrier().unwrap();
    }
    assert!(bytes_of(scene.entries()) > BOUND / 2, "the room is used");
    scene.far_reads();
    for process in 0..8u32 {
        scene.cached().read(&metadata_container(process * 100), u64::MAX).unwrap();
    }
    assert_eq!(scene.far_reads(), 0, "no metadata went");
    // Of 39 containers each process may add half of the bound.
    let last = (1..40).filter(|serial| scene.cached().read(&container(700 + serial), u64::MAX).is_ok()).count();
    assert_eq!((last, scene.far_reads()), (39, 39 - BOUND / 2 / 50_000));
}

#[test]
fn a_cache_that_cannot_be_written_costs_nothing_but_speed() {
    let scene = Scene::new();
    let cached = scene.cached();
    fs::remove_dir_all(scene.folder.path()).unwrap();
    fs::write(scene.folder.path(), b"in the way").unwrap();
    cached.create(&container(1), b"one").unwrap();
    assert_eq!(cached.read(&container(1), 100).unwrap(), b"one");
    fs::remove_file(scene.folder.path()).unwrap();
}
