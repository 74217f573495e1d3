//! The system as a whole: everything comes back, and nothing hangs.

use super::delta::BaseLimits;
use super::fingerprint::Hash;
use super::silt::Silt;
use super::stages::Stage;
use super::stream::Stream;
use super::system::{Compression, System};
use super::verify::{Found, read_back};
use crate::chunk::method::Method;
use crate::deterministic::Sequence;
use crate::sketch::own::Own;
use siltstone_chunk::{Chunker, Isa, Lagged, Sizes, by_name};
use siltstone_engine::delta::Deltas;
use siltstone_similar::sketch::{self, METHODS, Shape, Sketch, Sketcher};
use std::fs;

const LIMITS: BaseLimits = BaseLimits { chunks: 4096, bytes: 1 << 20 };

/// Three versions: text of a few words, noise, a run, with some bytes changed from one to the next; and one of no
/// bytes.
fn versions() -> Vec<Vec<u8>> {
    let mut sequence = Sequence::new(5);
    let mut version = sequence.bytes(200_000);
    version.extend((0..60_000).map(|_| b"abcdefgh "[sequence.index(9)]));
    version.resize(version.len() + 40_000, 0);
    let mut versions = Vec::new();
    for _ in 0..3 {
        versions.push(version.clone());
        for _ in 0..20 {
            let place = sequence.index(version.len());
            version.splice(place..place, sequence.bytes(5));
        }
    }
    versions.push(Vec::new());
    versions
}

fn stream(versions: &[Vec<u8>]) -> Stream<'_> {
    Stream { versions: versions.iter().map(Vec::as_slice).collect() }
}

fn chunker(name: &str) -> Box<dyn Chunker> {
    by_name(name, Sizes::around(2048).unwrap(), &[0; 32]).unwrap()
}

fn reduced(system: &System<'_>, versions: &[Vec<u8>]) -> Found {
    let folder = tempfile::tempdir().unwrap();
    let took = system.run(&stream(versions), folder.path()).unwrap();
    assert!(took.busy.iter().all(|busy| busy.time <= took.wall * busy.threads));
    read_back(folder.path(), &stream(versions)).unwrap()
}

#[test]
fn every_chunker_gives_all_back() {
    let versions = versions();
    for method in Method::all() {
        let chunker = method.chunker(2048, Isa::best()).unwrap();
        for (hash, compression, threads) in [(Hash::Sha1, Compression::None, 1), (Hash::Blake3, Compression::Zstd, 3)] {
            let system = System { chunker: chunker.as_ref(), hash, sketcher: None, compression, threads };
            let found = reduced(&system, &versions);
            assert!(found.chunks > found.unique && found.deltas == 0, "{}: {found:?}", method.name());
        }
    }
}

#[test]
fn every_sketch_gives_all_back_and_finds_bases() {
    let versions = versions();
    let chunker = chunker("fastcdc-2016-nc2");
    let lagged = Lagged::new(Sizes::around(2048).unwrap(), &[0; 32], Isa::best());
    let own = Own::new(lagged, Shape::DEFAULT, Isa::best());
    let mut sketchers: Vec<Box<dyn Sketcher>> = vec![Box::new(own)];
    sketchers.extend(METHODS.iter().map(|method| method.make(Shape::DEFAULT, Isa::best())));
    for sketcher in &sketchers {
        for (hash, compression, threads) in [(Hash::Sha1, Compression::None, 1), (Hash::Blake3, Compression::Zstd, 3)] {
            let sketcher = Some((sketcher.as_ref(), LIMITS));
            let system = System { chunker: chunker.as_ref(), hash, sketcher, compression, threads };
            let found = reduced(&system, &versions);
            assert!(found.deltas > 0 && found.stored_bytes < found.unique_bytes, "{found:?}");
        }
    }
}

#[test]
fn threads_and_hashes_do_not_change_what_is_stored() {
    let versions = versions();
    let chunker = chunker("lagged");
    let sketcher = sketch::by_name("odess", Shape::DEFAULT).unwrap();
    for sketcher in [None, Some((sketcher.as_ref(), LIMITS))] {
        let found = [(Hash::Sha1, 1), (Hash::Blake3, 1), (Hash::Blake3, 4)].map(|(hash, threads)| {
            let compression = Compression::Zstd;
            reduced(&System { chunker: chunker.as_ref(), hash, sketcher, compression, threads }, &versions)
        });
        // Names differ in their bits, but not in their lengths.
        assert_eq!(found[0], found[1]);
        assert_eq!(found[1], found[2]);
    }
}

#[test]
fn forgotten_bases_are_not_used() {
    let versions = versions();
    let chunker = chunker("lagged");
    let sketcher = sketch::by_name("odess", Shape::DEFAULT).unwrap();
    let found = |bytes| {
        let sketcher = Some((sketcher.as_ref(), BaseLimits { bytes, ..LIMITS }));
        let (hash, compression) = (Hash::Blake3, Compression::None);
        reduced(&System { chunker: chunker.as_ref(), hash, sketcher, compression, threads: 1 }, &versions)
    };
    assert_eq!(found(0).deltas, 0);
    assert!(found(1 << 20).deltas > found(10_000).deltas);
}

#[test]
fn what_is_damaged_is_not_taken_for_right() {
    let versions = versions();
    let chunker = chunker("lagged");
    let (hash, compression) = (Hash::Blake3, Compression::None);
    let system = System { chunker: chunker.as_ref(), hash, sketcher: None, compression, threads: 1 };
    let folder = tempfile::tempdir().unwrap();
    system.run(&stream(&versions), folder.path()).unwrap();
    for name in ["container-000000", "recipes"] {
        let path = folder.path().join(name);
        let sound = fs::read(&path).unwrap();
        let mut flipped = sound.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 1;
        for damaged in [&flipped, &sound[..sound.len() - 1], &sound[..middle], &[][..]] {
            fs::write(&path, damaged).unwrap();
            assert!(read_back(folder.path(), &stream(&versions)).is_err(), "{name}, {} bytes", damaged.len());
        }
        fs::write(&path, &sound).unwrap();
        assert!(read_back(folder.path(), &stream(&versions)).is_ok());
    }
    let other = [&versions[..2], &versions[3..]].concat();
    assert!(read_back(folder.path(), &stream(&other)).is_err());
}

/// Panics at the first sketch that it is asked for.
struct Panics;

impl Sketcher for Panics {
    fn name(&self) -> &'static str {
        "panics"
    }

    fn shape(&self) -> Shape {
        Shape::DEFAULT
    }

    fn sketch(&self, _: &[u8]) -> Option<Sketch> {
        panic!("no sketch today")
    }
}

impl Chunker for Panics {
    fn name(&self) -> &'static str {
        "panics"
    }

    fn sizes(&self) -> Sizes {
        Sizes::DEFAULT
    }

    fn cut(&self, _: &[u8]) -> usize {
        panic!("no cut today")
    }
}

#[test]
fn a_stage_that_panics_ends_the_run_and_is_named() {
    // Far more than all queues hold.
    let versions = vec![Sequence::new(1).bytes(24 << 20)];
    let chunker = chunker("ram");
    let (hash, compression, threads) = (Hash::Blake3, Compression::Zstd, 2);
    let sketcher: Option<(&dyn Sketcher, BaseLimits)> = Some((&Panics, LIMITS));
    for (system, stage, said) in [
        (System { chunker: &Panics, hash, sketcher: None, compression, threads }, Stage::Chunk, "no cut today"),
        (System { chunker: &chunker, hash, sketcher, compression, threads }, Stage::Sketch, "no sketch today"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let error = format!("{:#}", system.run(&stream(&versions), folder.path()).unwrap_err());
        assert!(error.contains(stage.name()) && error.contains(said), "{error}");
    }
}

#[test]
fn a_folder_that_is_gone_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let chunker = chunker("ram");
    let (hash, compression) = (Hash::Sha1, Compression::None);
    let system = System { chunker: chunker.as_ref(), hash, sketcher: None, compression, threads: 1 };
    let versions = vec![Sequence::new(1).bytes(8 << 20)];
    let error = system.run(&stream(&versions), &folder.path().join("gone")).unwrap_err();
    assert!(format!("{error:#}").contains("gone"), "{error:#}");
}

#[test]
fn silt_gives_all_back() {
    let versions = versions();
    let folder = tempfile::tempdir().unwrap();
    let silt = Silt::create(folder.path(), 4096, Deltas::default(), 256 << 20).unwrap();
    silt.back_up(&stream(&versions)).unwrap();
    let found = silt.read_back(&stream(&versions)).unwrap();
    assert!(found.stored_bytes > 0 && found.unique > 0, "{found:?}");
    assert!(silt.read_back(&stream(&versions[1..])).is_err());
    let other: Vec<Vec<u8>> = versions.iter().rev().cloned().collect();
    assert!(silt.read_back(&stream(&other)).is_err());
}
