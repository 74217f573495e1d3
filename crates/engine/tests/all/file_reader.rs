//! Random access gives the bytes that were backed up, wherever it looks, and beside writers; damage is an error.

use crate::common::{Sandbox, entry_path, noise, resources, writer};
use proptest::prelude::*;
use siltstone_engine::check::ReadData;
use siltstone_engine::file_reader::{FileReader, SnapshotReader};
use siltstone_engine::{EngineError, Resources};
use siltstone_store::catalog::{Content, EntryPath};
use siltstone_store::container::ContainerKind;
use siltstone_store::manifest::Manifest;
use siltstone_store::recipe::Recipe;
use siltstone_store::repository::Repository;
use siltstone_store::storage::{Damage, ObjectName, Recorder, SimulatedDisk};
use siltstone_store::{SnapshotId, Time};
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::Arc;

/// The path of a file of the source in its snapshots.
fn path_of(sandbox: &Sandbox, name: &str) -> EntryPath {
    entry_path(&sandbox.source().join(name))
}

fn reader<'r>(sandbox: &Sandbox, repository: &'r Repository, id: SnapshotId) -> SnapshotReader<'r> {
    SnapshotReader::open(repository, &sandbox.view(id), &resources()).expect("the snapshot")
}

fn at(file: &FileReader<'_>, offset: usize, bytes: usize) -> Vec<u8> {
    let mut buffer = vec![0xA5; bytes];
    let count = file.read_at(offset as u64, &mut buffer).expect("bytes");
    buffer.truncate(count);
    buffer
}

/// The bytes that a read of so many from there on gives.
fn expected(content: &[u8], offset: usize, bytes: usize) -> &[u8] {
    let begin = offset.min(content.len());
    &content[begin..offset.saturating_add(bytes).min(content.len())]
}

/// A file of 24 MiB of which every second stretch was changed between two snapshots, so that its recipe has parts.
fn changed_everywhere() -> (Sandbox, [(SnapshotId, Vec<u8>); 2]) {
    let sandbox = Sandbox::new();
    let before = noise(1, 24 << 20);
    sandbox.write("file", &before);
    let first = sandbox.backup();
    let mut after = before.clone();
    for (seed, start) in (0..after.len()).step_by(36 << 10).enumerate() {
        let end = (start + 100).min(after.len());
        after[start..end].copy_from_slice(&noise(100 + seed as u64, end - start));
    }
    sandbox.write("file", &after);
    let second = sandbox.backup();
    (sandbox, [(first, before), (second, after)])
}

#[test]
fn a_recipe_of_many_parts_is_read_anywhere_in_the_newest_snapshot_and_in_an_older_one() {
    let (sandbox, versions) = changed_everywhere();
    let repository = sandbox.repository();
    let mut has_parts = false;
    for (id, content) in &versions {
        let snapshot = reader(&sandbox, &repository, *id);
        let entry = snapshot.entry(&path_of(&sandbox, "file")).expect("the file");
        has_parts |= matches!(entry.content, Content::File { recipe: Recipe::Indirect(_), .. });
        let file = snapshot.open_file(&entry).expect("a file");
        for step in 0..200_usize {
            let offset = (step * 7_919_001) % content.len();
            let bytes = 1 + (step * 31_337) % 100_000;
            assert_eq!(at(&file, offset, bytes), expected(content, offset, bytes), "{bytes} bytes from {offset}");
        }
        assert_eq!(at(&file, content.len() - 5, 10), content[content.len() - 5..]);
    }
    assert!(has_parts, "1300 pieces do not stand in the entry itself");
}

const PIECE: usize = 12 << 10;
const PIECES: usize = 512;

/// A repository, what is read of it, and a snapshot with its content.
type Shuffled<C> = (Sandbox, Arc<Recorder<SimulatedDisk>>, (SnapshotId, C));

/// The oldest of four versions of 6 MiB in pieces that change a little, and change places, so that each region of them
/// hangs on most others; `write` makes files of the pieces.
fn shuffled(write: impl Fn(&Sandbox, &[Vec<u8>])) -> Shuffled<Vec<Vec<u8>>> {
    let recorder = Arc::new(Recorder::new(SimulatedDisk::new()));
    let sandbox = Sandbox::on(recorder.clone());
    let mut pieces: Vec<Vec<u8>> = (0..PIECES).map(|seed| noise(seed as u64, PIECE)).collect();
    let mut versions = (0..4).map(|version| {
        let content = pieces.clone();
        write(&sandbox, &content);
        let id = sandbox.backup();
        for (at, piece) in pieces.iter_mut().enumerate() {
            let seed = (10_000 * (version + 1) + at) as u64;
            piece[100..140].copy_from_slice(&noise(seed, 40));
            piece[PIECE / 2..PIECE / 2 + 40].copy_from_slice(&noise(seed + 5000, 40));
        }
        pieces = (0..PIECES).map(|at| std::mem::take(&mut pieces[at * 197 % PIECES])).collect();
        (id, content)
    });
    let oldest = versions.next().expect("the oldest");
    versions.for_each(drop);
    (sandbox, recorder, oldest)
}

/// They are one file.
fn shuffled_in_a_file() -> Shuffled<Vec<u8>> {
    let (sandbox, recorder, (oldest, pieces)) = shuffled(|sandbox, pieces| sandbox.write("file", &pieces.concat()));
    (sandbox, recorder, (oldest, pieces.concat()))
}

/// Name of the file that one piece is.
fn name_of(piece: usize) -> String {
    format!("folder{}/file{:03}", piece / 100, piece)
}

#[test]
fn what_hangs_on_much_else_is_decoded_together_and_kept() {
    let (sandbox, recorder, (oldest, content)) = shuffled_in_a_file();
    let repository = sandbox.repository();
    // Neither do the regions fit into memory, nor all of the content into temporary files.
    let resources = resources().with_memory_bytes(4 << 20);
    let snapshot = SnapshotReader::open(&repository, &sandbox.view(oldest), &resources).expect("the snapshot");
    let file = snapshot.file(&path_of(&sandbox, "file")).expect("a file");
    let read = |offset: usize, bytes: usize| {
        assert_eq!(at(&file, offset, bytes), expected(&content, offset, bytes), "from {offset}");
    };
    recorder.reset();
    (0..content.len()).step_by(100_000).for_each(|offset| read(offset, 100_000));
    let in_order = recorder.reset().total().range_reads;
    (0..40).for_each(|step| read((step * 7_919_001) % content.len(), 5000));
    let here_and_there = recorder.reset().total().range_reads;
    // One by one they take 389 and 1249 reads.
    assert!(in_order < 60 && here_and_there < 200, "{in_order} and {here_and_there} reads");
}

#[test]
fn small_files_that_hang_on_much_else_are_decoded_together() {
    let (sandbox, recorder, (oldest, pieces)) = shuffled(|sandbox, pieces| {
        pieces.iter().enumerate().for_each(|(at, piece)| sandbox.write(&name_of(at), piece));
    });
    let repository = sandbox.repository();
    let resources = resources().with_memory_bytes(4 << 20);
    let snapshot = SnapshotReader::open(&repository, &sandbox.view(oldest), &resources).expect("the snapshot");
    recorder.reset();
    for (number, piece) in pieces.iter().enumerate() {
        let file = snapshot.file(&path_of(&sandbox, &name_of(number))).expect("a file");
        assert_eq!(at(&file, 0, PIECE + 1), *piece, "{}", name_of(number));
    }
    let reads = recorder.reset().total().range_reads;
    assert!(reads < 60, "{reads} reads");
}

#[test]
fn entries_go_on_past_any_path() {
    let sandbox = Sandbox::new();
    for name in ["a/b/c", "a.b", "a/x", "z"] {
        sandbox.write(name, b"text");
    }
    let id = sandbox.backup();
    let repository = sandbox.repository();
    let snapshot = reader(&sandbox, &repository, id);
    let past = |path: &EntryPath| -> Vec<EntryPath> {
        snapshot.entries_past(path).map(|entry| entry.expect("an entry").path).collect()
    };
    let names = ["a", "a/b", "a/b/c", "a/x", "a.b", "z"];
    let all: Vec<EntryPath> = names.iter().map(|name| path_of(&sandbox, name)).collect();
    assert_eq!(past(&entry_path(&sandbox.source())), all);
    (0..all.len()).for_each(|at| assert_eq!(past(&all[at]), all[at + 1..]));
    assert_eq!(past(&path_of(&sandbox, "b")), all[5..], "one that is not there");
}

#[test]
fn what_cannot_be_decoded_together_is_read_alone_or_is_damage() {
    let (sandbox, _, (oldest, content)) = shuffled_in_a_file();
    let repository = sandbox.repository();
    let nowhere = resources().with_memory_bytes(4 << 20).with_scratch("/nonexistent".into());
    let read_with = |resources: &Resources| {
        let snapshot = SnapshotReader::open(&repository, &sandbox.view(oldest), resources).expect("the snapshot");
        let file = snapshot.file(&path_of(&sandbox, "file")).expect("a file");
        let read = (0..content.len()).step_by(400_000).map(|offset| {
            let mut buffer = vec![0; 3000];
            let count = file.read_at(offset as u64, &mut buffer).map_err(|error| error.to_string())?;
            assert_eq!(&buffer[..count], expected(&content, offset, count), "from {offset}");
            Ok(count)
        });
        read.collect::<Vec<Result<usize, String>>>()
    };
    assert!(read_with(&nowhere).into_iter().all(|read| read == Ok(3000)));

    let manifest = manifest_of(&repository);
    let newest = manifest.containers.iter().filter(|record| record.kind == ContainerKind::Data && !record.has_deltas);
    let lost: Vec<ObjectName> = newest.map(|record| record.object_name(manifest.series)).collect();
    sandbox.storage.delete_many(&lost).expect("deleted");
    let parity = manifest.containers.iter().map(|record| ObjectName::Parity(manifest.series, record.id));
    sandbox.storage.delete_many(&parity.collect::<Vec<_>>()).expect("deleted");
    for read in read_with(&resources()) {
        let error = read.expect_err("all hangs on what is lost");
        assert!(lost.iter().any(|name| error.contains(&name.to_string())), "{error}");
    }
}

fn manifest_of(repository: &Repository) -> Manifest {
    let series = repository.series().expect("a list")[0];
    repository.manifest(series).expect("a manifest").expect("a series")
}

/// The containers of data whose index or regions were read, of those of a repository.
fn data_containers_read(recorder: &Recorder<SimulatedDisk>, manifest: &Manifest) -> Vec<bool> {
    let calls = recorder.calls();
    let data = manifest.containers.iter().filter(|record| record.kind == ContainerKind::Data);
    data.map(|record| calls.of(&record.object_name(manifest.series)).range_reads > 0).collect()
}

#[test]
fn a_read_near_an_end_of_a_large_file_opens_the_container_there_and_no_other() {
    let recorder = Arc::new(Recorder::new(SimulatedDisk::new()));
    let sandbox = Sandbox::on(recorder.clone());
    // The file begins and ends within containers that hold other files' chunks too.
    let content = noise(21, 60 << 20);
    sandbox.write("a-before", &noise(20, 3 << 20));
    sandbox.write("large", &content);
    sandbox.write("z-after", &noise(22, 3 << 20));
    let id = sandbox.backup();
    let repository = sandbox.repository();
    let manifest = manifest_of(&repository);
    for (offset, is_last) in [(content.len() - 100_000, true), (100_000, false)] {
        let file = reader(&sandbox, &repository, id).file(&path_of(&sandbox, "large")).expect("a file");
        recorder.reset();
        assert_eq!(at(&file, offset, 1000), expected(&content, offset, 1000));
        let read = data_containers_read(&recorder, &manifest);
        // What follows the file has a container of its own.
        let at = if is_last { 3 } else { 0 };
        assert_eq!(read.len(), 5);
        assert!(read.iter().enumerate().all(|(container, is_read)| *is_read == (container == at)), "{read:?}");
    }
    // In the middle one end is looked at too, for the file begins and ends within a container.
    let file = reader(&sandbox, &repository, id).file(&path_of(&sandbox, "large")).expect("a file");
    recorder.reset();
    let middle = content.len() / 2;
    assert_eq!(at(&file, middle, 1000), expected(&content, middle, 1000));
    let read = data_containers_read(&recorder, &manifest).into_iter().filter(|is_read| *is_read).count();
    assert_eq!(read, 2);
}

/// Bytes of runs of each container of data as a writer says them: given its place among those, and the truth.
fn say(sandbox: &Sandbox, truth: &[Vec<u64>], said: impl Fn(usize, u64) -> u64) {
    let repository = sandbox.repository();
    let mut writer = writer::acquire(&repository, writer::distant_holder(), true).expect("the lease");
    let mut next = writer.manifest().clone();
    let data = next.containers.iter_mut().filter(|record| record.kind == ContainerKind::Data);
    for ((at, record), truth) in data.enumerate().zip(truth) {
        record.run_bytes = truth.iter().map(|bytes| said(at, *bytes)).collect();
    }
    writer.commit(next, false, Time::default()).expect("committed");
}

#[test]
fn runs_of_unknown_bytes_are_summed_up_and_false_ones_never_give_wrong_bytes() {
    let sandbox = Sandbox::new();
    let content = noise(23, 40 << 20);
    sandbox.write("large", &content);
    let id = sandbox.backup();
    let records = manifest_of(&sandbox.repository()).containers;
    let data = records.into_iter().filter(|record| record.kind == ContainerKind::Data);
    let truth: Vec<Vec<u64>> = data.map(|record| record.run_bytes).collect();
    assert_eq!((truth.len(), truth.iter().flatten().sum::<u64>()), (3, 40 << 20));
    let read = || {
        let repository = sandbox.repository();
        let file = reader(&sandbox, &repository, id).file(&path_of(&sandbox, "large")).expect("a file");
        [0, 17 << 20, 33 << 20, content.len() - 10].map(|offset| {
            let mut bytes = vec![0; 10];
            let found = file.read_at(offset as u64, &mut bytes);
            found.map(|_| assert_eq!(bytes, expected(&content, offset, 10), "at {offset}")).is_ok()
        })
    };
    assert_eq!(read(), [true; 4]);
    let unknown: [fn(usize) -> bool; 3] = [|_| true, |at| at == 1, |at| at != 1];
    for unknown in unknown {
        say(&sandbox, &truth, |at, bytes| if unknown(at) { 0 } else { bytes });
        assert_eq!(read(), [true; 4]);
        assert_eq!(sandbox.check(ReadData::None).findings, []);
    }
    say(&sandbox, &truth, |at, bytes| bytes + u64::from(at == 1) * 4096);
    assert_eq!(read(), [false; 4], "they do not make the file's size");
    assert_ne!(sandbox.check(ReadData::None).findings, []);
    say(&sandbox, &truth, |at, bytes| u64::from(at == 1) * (bytes + 4096));
    assert!(!read()[1], "the index there says otherwise");
}

#[test]
fn threads_share_a_reader() {
    let (sandbox, [_, (id, content)]) = changed_everywhere();
    let repository = sandbox.repository();
    let file = reader(&sandbox, &repository, id).file(&path_of(&sandbox, "file")).expect("a file");
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            let (file, content) = (&file, &content);
            scope.spawn(move || {
                for step in 0..60_usize {
                    let offset = (thread * 5_000_003 + step * 3_000_017) % content.len();
                    assert_eq!(at(file, offset, 50_000), expected(content, offset, 50_000));
                }
            });
        }
    });
}

#[test]
fn holes_are_zeros_and_the_end_is_the_end() {
    let sandbox = Sandbox::new();
    let mut sparse = std::fs::File::create(sandbox.source().join("sparse")).expect("a file");
    sparse.write_all(&noise(3, 50_000)).expect("written");
    sparse.seek(SeekFrom::Start(5 << 20)).expect("there");
    sparse.write_all(&noise(4, 70_000)).expect("written");
    sparse.set_len(9 << 20).expect("longer");
    drop(sparse);
    sandbox.write("empty", b"");
    let content = std::fs::read(sandbox.source().join("sparse")).expect("content");
    let id = sandbox.backup();
    let repository = sandbox.repository();
    let snapshot = reader(&sandbox, &repository, id);
    let mut file = snapshot.file(&path_of(&sandbox, "sparse")).expect("a file");
    assert_eq!(file.size(), 9 << 20);
    for offset in [0, 49_990, (5 << 20) - 10, (5 << 20) + 69_990, (9 << 20) - 10, 9 << 20, usize::MAX] {
        assert_eq!(at(&file, offset, 20), expected(&content, offset, 20), "at {offset}");
    }
    let mut all = Vec::new();
    file.read_to_end(&mut all).expect("the whole");
    assert!(all == content);
    assert_eq!(file.seek(SeekFrom::End(-7)).expect("there"), (9 << 20) - 7);
    assert_eq!(file.read(&mut [1; 100]).expect("the rest"), 7);
    assert!(file.seek(SeekFrom::Current(-(10 << 20))).is_err(), "no place before the begin");
    assert_eq!(at(&snapshot.file(&path_of(&sandbox, "empty")).expect("a file"), 0, 10), b"");
}

#[test]
fn only_regular_files_have_bytes() {
    let sandbox = Sandbox::new();
    sandbox.write("folder/file", b"content");
    sandbox.symlink("link", "folder/file");
    let id = sandbox.backup();
    let repository = sandbox.repository();
    let snapshot = reader(&sandbox, &repository, id);
    for name in ["folder", "link"] {
        let refused = snapshot.file(&path_of(&sandbox, name)).expect_err("no bytes");
        assert!(matches!(refused, EngineError::NotAFile { .. }), "{refused}");
    }
    let missing = snapshot.file(&path_of(&sandbox, "nothing")).expect_err("not there");
    assert!(matches!(missing, EngineError::NoSuchPath { .. }), "{missing}");
    let source = entry_path(&sandbox.source());
    let names = snapshot.children(Some(&source)).map(|entry| entry.expect("an entry").path.name().to_vec());
    assert_eq!(names.collect::<Vec<_>>(), [b"folder".to_vec(), b"link".to_vec()]);
}

#[test]
fn a_reader_goes_on_where_a_writer_moved_what_it_reads() {
    let (sandbox, [(first, before), _]) = changed_everywhere();
    let repository = sandbox.repository();
    let file = reader(&sandbox, &repository, first).file(&path_of(&sandbox, "file")).expect("a file");
    assert_eq!(at(&file, 1 << 20, 1000), expected(&before, 1 << 20, 1000));
    // What the first snapshot alone needs becomes deltas against a third version.
    let mut third = before.clone();
    for start in (0..third.len()).step_by(200_000) {
        third[start] ^= 1;
    }
    sandbox.write("file", &third);
    let newest = sandbox.backup();
    sandbox.forget(&[newest], false);
    for offset in (0..before.len()).step_by(1_000_003) {
        assert_eq!(at(&file, offset, 30_000), expected(&before, offset, 30_000), "at {offset}");
    }
}

#[test]
fn damage_is_an_error_after_what_comes_before_it() {
    let disk = SimulatedDisk::new();
    let sandbox = Sandbox::on(Arc::new(disk.clone()));
    let content = noise(8, 4 << 20);
    sandbox.write("file", &content);
    let id = sandbox.backup();
    let repository = sandbox.repository();
    let file = reader(&sandbox, &repository, id).file(&path_of(&sandbox, "file")).expect("a file");
    assert_eq!(at(&file, 0, 10), content[..10]);
    for series in repository.series().expect("a series") {
        for object in repository.storage().list_containers(series).expect("a list") {
            let middle = object.bytes / 2;
            assert!(disk.damage(&object.name, Damage::Flip { offset: middle, mask: 1 }));
        }
    }
    let mut all = vec![0; content.len()];
    let count = file.read_at(0, &mut all).expect("what comes before the damage");
    assert!(count < content.len(), "a flipped byte of incompressible data cannot be read");
    assert!(all[..count] == content[..count]);
    let error = file.read_at(count as u64, &mut all).expect_err("there is the damage");
    assert!(error.to_string().contains("data/"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_stretch_of_a_file_is_what_was_stored(offset in 0..3_100_000_usize, bytes in 0..400_000_usize) {
        thread_local! {
            static STORED: (Sandbox, Repository, SnapshotId, Vec<u8>) = {
                let (sandbox, content) = (Sandbox::new(), noise(5, 3_000_000));
                sandbox.write("file", &content);
                let id = sandbox.backup();
                let repository = sandbox.repository();
                (sandbox, repository, id, content)
            };
        }
        STORED.with(|(sandbox, repository, id, content)| {
            let file = reader(sandbox, repository, *id).file(&path_of(sandbox, "file")).expect("a file");
            prop_assert_eq!(&at(&file, offset, bytes)[..], expected(content, offset, bytes));
            Ok(())
        })?;
    }
}
