//! Sending requests ahead changes no answer, and makes no request more.

use crate::ids::{KeyId, SeriesId};
use crate::storage::{Listing, ObjectName, Prefetch, ReadRequest, SimulatedRemote, Storage, StorageError, Trouble};
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const SERIES: SeriesId = SeriesId([7; 16]);
const CONFIGS: [Listing; 2] = [Listing::Configs, Listing::ConfigCopies];
const MANIFESTS: [Listing; 2] = [Listing::Manifests(SERIES), Listing::ManifestCopies(SERIES)];

fn manifest(number: u64) -> ObjectName {
    ObjectName::Manifest(SERIES, number)
}

struct Scene {
    place: SimulatedRemote,
    cache: TempDir,
}

impl Scene {
    fn new() -> Self {
        let scene = Self { place: SimulatedRemote::new(), cache: TempDir::new().expect("a folder") };
        for name in [ObjectName::Config(1), manifest(1), manifest(2)] {
            scene.place.create(&name, name.to_string().as_bytes()).expect("an object");
        }
        scene
    }

    /// Begins a run, when nothing was asked for yet.
    fn run(&self, purpose: &str) -> Prefetch {
        self.place.set_trouble(Trouble::None);
        Prefetch::start(Arc::new(self.place.clone()), &self.cache.path().join("requests"), purpose.as_bytes())
    }

    /// The requests of the place, sorted, once there are so many; or as many as there are after some time.
    fn requests(&self, count: usize) -> Vec<String> {
        let began = Instant::now();
        while self.place.requests().len() < count && began.elapsed() < Duration::from_secs(5) {
            thread::sleep(Duration::from_millis(1));
        }
        let mut requests = self.place.requests();
        requests.sort();
        requests
    }

    fn files(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.cache.path().join("requests")).expect("a folder");
        files.map(|file| file.expect("a file").path()).collect()
    }
}

/// Opens as a repository is opened, and reads a manifest.
fn open(storage: &dyn Storage, number: u64) {
    assert!(storage.list_both(CONFIGS).expect("listed").concat().len() == 1);
    read(storage, &ObjectName::Config(1));
    storage.list_both(MANIFESTS).expect("listed");
    read(storage, &manifest(number));
}

fn read(storage: &dyn Storage, name: &ObjectName) {
    assert_eq!(storage.read(name, 100).expect("an object"), name.to_string().as_bytes());
}

#[test]
fn what_a_run_asked_for_is_sent_ahead_by_the_next_one_and_once() {
    let scene = Scene::new();
    open(&scene.run("a"), 2);
    let asked = scene.requests(6);
    assert_eq!(asked.len(), 6, "{asked:#?}");
    let next = scene.run("a");
    assert_eq!(scene.requests(6), asked, "before anybody asks");
    open(&next, 2);
    assert_eq!(scene.requests(6), asked, "and not again");
    open(&next, 2);
    assert_eq!(scene.requests(12).len(), 12, "each answer is given once");
}

#[test]
fn a_run_with_another_purpose_sends_ahead_what_opens_the_repository() {
    let scene = Scene::new();
    open(&scene.run("a"), 2);
    let other = scene.run("b");
    assert_eq!(scene.requests(3).len(), 3);
    open(&other, 1);
    assert_eq!(scene.requests(6).len(), 6);
    drop(other);
    // Neither pushed out the other one.
    let _again = scene.run("a");
    assert!(scene.requests(6).iter().any(|request| request.contains("0000000000000002")));
}

#[test]
fn what_a_run_committed_is_expected_by_the_next_one() {
    let scene = Scene::new();
    let first = scene.run("a");
    open(&first, 2);
    read(&first, &manifest(1));
    for number in [3, 4] {
        first.create(&manifest(number), manifest(number).to_string().as_bytes()).expect("created");
    }
    drop(first);
    let next = scene.run("a");
    let sent = scene.requests(7);
    assert!(sent.iter().any(|request| request.ends_with(&manifest(4).to_string())), "{sent:#?}");
    assert!(sent.iter().any(|request| request.ends_with(&manifest(3).to_string())), "{sent:#?}");
    open(&next, 4);
    assert_eq!(scene.requests(7), sent);
}

#[test]
fn a_repository_that_a_run_made_is_opened_by_what_it_created() {
    let scene = Scene::new();
    let first = scene.run("init");
    first.list(Listing::All).expect("listed");
    let (key, config) = (ObjectName::Key(KeyId([5; 16])), ObjectName::Config(2));
    for name in [key, config] {
        first.create(&name, name.to_string().as_bytes()).expect("created");
    }
    drop(first);
    let next = scene.run("a");
    assert_eq!(scene.requests(5).len(), 5, "before anybody asks");
    next.list_both(CONFIGS).expect("listed");
    next.list(Listing::Keys).expect("listed");
    read(&next, &config);
    read(&next, &key);
    assert_eq!(scene.requests(5).len(), 5, "and not again");
}

#[test]
fn of_a_series_that_a_run_began_the_next_one_expects_the_newest_manifests() {
    let scene = Scene::new();
    let begun = SeriesId([8; 16]);
    let first = scene.run("a");
    let all = [Listing::Manifests(begun), Listing::ManifestCopies(begun)];
    assert!(first.list_both(all).expect("listed").concat().is_empty());
    for number in [1, 2, 3] {
        let name = ObjectName::Manifest(begun, number);
        first.create(&name, name.to_string().as_bytes()).expect("created");
    }
    drop(first);
    let next = scene.run("a");
    let sent = scene.requests(4);
    for number in [2, 3] {
        let name = ObjectName::Manifest(begun, number);
        assert!(sent.iter().any(|request| request.ends_with(&name.to_string())), "{sent:#?}");
        read(&next, &name);
    }
    assert_eq!(scene.requests(4), sent);
}

#[test]
fn after_a_write_all_is_asked_for_anew() {
    let scene = Scene::new();
    open(&scene.run("a"), 2);
    let next = scene.run("a");
    scene.requests(6);
    next.create(&manifest(3), b"another").expect("created");
    let listed = next.list(Listing::Manifests(SERIES)).expect("listed");
    assert!(listed.iter().any(|object| object.name == manifest(3)), "its own write is seen");
    next.delete(&manifest(3)).expect("deleted");
    assert!(next.read(&manifest(3), 100).expect_err("gone").is_not_found());
}

/// A writer that begins in between would be taken for a manifest that was lost.
#[test]
fn a_manifest_is_read_after_the_containers_that_it_is_held_against_were_listed() {
    let scene = Scene::new();
    open(&scene.run("a"), 2);
    let next = scene.run("a");
    scene.requests(6);
    scene.place.create(&manifest(3), b"a lease").expect("created");
    next.list_containers(SERIES).expect("listed");
    let listed = next.list_both(MANIFESTS).expect("listed").concat();
    assert!(listed.iter().any(|object| object.name == manifest(3)), "{listed:?}");
}

#[test]
fn what_was_not_found_or_is_too_large_is_asked_for_again() {
    let scene = Scene::new();
    open(&scene.run("a"), 2);
    scene.place.delete(&manifest(2)).expect("deleted");
    let next = scene.run("a");
    scene.requests(6);
    scene.place.create(&manifest(2), manifest(2).to_string().as_bytes()).expect("created since");
    assert!(matches!(next.read(&ObjectName::Config(1), 3), Err(StorageError::TooLarge { .. })));
    read(&next, &manifest(2));
}

#[test]
fn many_are_answered_each_at_its_place() {
    let scene = Scene::new();
    open(&scene.run("a"), 1);
    let next = scene.run("a");
    let names = [manifest(2), manifest(1), ObjectName::Config(1), manifest(9)];
    let mut answers = [const { None }; 4];
    next.read_many(&names.map(|name| ReadRequest::whole(name, 100)), &mut |place, answer| {
        assert!(answers[place].replace(answer).is_none());
        ControlFlow::Continue(())
    });
    for (name, answer) in names.iter().zip(answers).take(3) {
        assert_eq!(answer.expect("an answer").expect("an object"), name.to_string().as_bytes());
    }
}

#[test]
fn a_file_that_makes_no_sense_is_no_file() {
    let scene = Scene::new();
    open(&scene.run("a"), 2);
    for file in scene.files() {
        let text = fs::read_to_string(&file).expect("text");
        let heading = text.lines().next().expect("a heading");
        let planted = "read data/x\nlist data\nread\n\nlist \nread config/1\nlist series/\u{1F600}\n";
        fs::write(&file, format!("{heading}\n{planted}")).expect("written");
    }
    let next = scene.run("a");
    open(&next, 2);
    assert_eq!(scene.requests(6).len(), 6, "nothing was sent ahead");
    drop(next);
    for file in scene.files() {
        fs::write(file, [0xff; 9000]).expect("written");
    }
    open(&scene.run("a"), 2);
}
