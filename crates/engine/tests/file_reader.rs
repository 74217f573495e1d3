//! Random access gives the bytes that were backed up, wherever it looks, and beside writers; damage is an error.

mod common;

use common::{Sandbox, entry_path, noise};
use proptest::prelude::*;
use siltstone_engine::EngineError;
use siltstone_engine::file_reader::{CACHE_BYTES_DEFAULT, FileReader, SnapshotReader};
use siltstone_store::SnapshotId;
use siltstone_store::catalog::{Content, EntryPath};
use siltstone_store::recipe::Recipe;
use siltstone_store::repository::Repository;
use siltstone_store::storage::{Damage, Listing, SimulatedDisk};
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::Arc;

/// The path of a file of the source in its snapshots.
fn path_of(sandbox: &Sandbox, name: &str) -> EntryPath {
    entry_path(&sandbox.source().join(name))
}

fn reader<'r>(sandbox: &Sandbox, repository: &'r Repository, id: SnapshotId) -> SnapshotReader<'r> {
    SnapshotReader::open(repository, &sandbox.view(id), CACHE_BYTES_DEFAULT).expect("the snapshot")
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
        for object in repository.storage().list(Listing::Containers(series)).expect("a list") {
            let middle = object.bytes / 2;
            assert!(disk.damage(&object.name, Damage::Flip { offset: middle, mask: 1 }));
        }
    }
    let mut all = vec![0; content.len()];
    let count = file.read_at(0, &mut all).expect("what comes before the damage");
    assert!(count < content.len(), "a flipped byte of incompressible data cannot be read");
    assert!(all[..count] == content[..count]);
    let error = file.read_at(count as u64, &mut all).expect_err("there is the damage");
    assert!(error.to_string().contains("containers/"), "{error}");
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
