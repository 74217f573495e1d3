//! Snapshots whose regions are deltas of others': restored in any memory, with every container visited once per batch;
//! damaged, forged and checked.

use crate::common::log::Log;
use crate::common::scene::Scene;
use crate::common::{self, heard_by, noise, resources, tree, writer};
use siltstone_engine::check::{CheckReport, ReadData};
use siltstone_engine::dump::{self, Archive};
use siltstone_engine::restore::{self, RestoreSummary};
use siltstone_store::container::{ContainerBuilder, ContainerKind, ContainerReader, ContainerRecord};
use siltstone_store::manifest::Manifest;
use siltstone_store::region::EncodedRegion;
use siltstone_store::repository::Repository;
use siltstone_store::storage::{Damage, Recorder};
use siltstone_store::{ChunkNumber, SeriesId, SnapshotId, Time};
use std::collections::BTreeSet;
use std::sync::Arc;
use tempfile::TempDir;

const VERSIONS: u64 = 5;

/// Five snapshots of three files that change a little each time, and one that the first alone has.
fn versions() -> Scene {
    let mut scene = Scene::new();
    scene.sandbox.write("gone", &noise(77, 50_000));
    for version in 0..VERSIONS {
        for file in 0..3 {
            let mut content = noise(file, 400_000);
            for edit in 0..4 {
                let at = usize::try_from(edit * 90_000 + version * 3000).expect("small");
                content[at..at + 64].copy_from_slice(&noise(1000 + version * 10 + file, 64));
            }
            scene.sandbox.write(&format!("file{file}"), &content);
        }
        scene.backup();
        if version == 0 {
            scene.sandbox.remove("gone");
        }
    }
    scene
}

fn series(repository: &Repository) -> SeriesId {
    repository.keys().series_id("test")
}

fn manifest(repository: &Repository) -> Manifest {
    repository.manifest(series(repository)).expect("a manifest").expect("a manifest")
}

fn data(manifest: &Manifest) -> impl Iterator<Item = &ContainerRecord> {
    manifest.containers.iter().filter(|record| record.kind == ContainerKind::Data)
}

/// Restores what lies below the source; gives the tree, and what was said.
fn restored(scene: &Scene, id: SnapshotId, memory_bytes: u64) -> (tree::Tree, RestoreSummary, Log) {
    let (target, log) = (TempDir::new().expect("a folder"), Log::default());
    let below = Some(common::entry_path(&scene.sandbox.source()));
    let options = scene.sandbox.restore_options(&target.path().join("new"));
    let options = options.with_below(below);
    let resources = heard_by(&log).with_memory_bytes(memory_bytes);
    let (repository, view) = (scene.sandbox.repository(), scene.sandbox.view(id));
    let summary = restore::restore(&repository, &view, &options, &resources).expect("a restore");
    (tree::read(&target.path().join("new")), summary, log)
}

#[test]
fn every_snapshot_restores_in_any_memory() {
    let scene = versions();
    assert!(data(&manifest(&scene.sandbox.repository())).any(|record| record.has_deltas), "there are deltas to decode");
    let mut prewritten = 0;
    for (age, id) in scene.ids.iter().rev().enumerate() {
        let mut read = Vec::new();
        for memory_bytes in [0, 30_000, 256 << 20] {
            let (tree, summary, log) = restored(&scene, *id, memory_bytes);
            assert!(tree == scene.trees[id], "snapshot {age} back, {memory_bytes} bytes: {:?}", log.problems());
            assert_eq!(summary.problems, 0, "{:?}", log.problems());
            assert_eq!(summary.files_verified, summary.files_restored);
            assert!(summary.containers_needed > 0 && summary.containers_read >= summary.containers_needed);
            assert!(memory_bytes < 256 << 20 || summary.bytes_prewritten == 0, "{age} back: {summary:?}");
            prewritten += summary.bytes_prewritten;
            read.push((summary.containers_read, summary.bytes_read));
        }
        assert!(read[0] > read[2], "tiny batches visit containers again: {read:?}");
        let whole = restored(&scene, *id, 256 << 20).1;
        assert_eq!(whole.containers_read, whole.containers_needed, "in one batch each container is visited once");
    }
    assert!(prewritten > 0, "without memory something waits in the temporary file");
}

#[test]
fn every_version_can_be_dumped_in_any_memory() {
    let scene = versions();
    let repository = scene.sandbox.repository();
    let path = common::entry_path(&scene.sandbox.source().join("file1"));
    for id in &scene.ids {
        for memory_bytes in [0, 200_000, 256 << 20] {
            let (mut out, resources) = (Vec::new(), resources().with_memory_bytes(memory_bytes));
            dump::dump(&repository, &scene.sandbox.view(*id), Some(&path), Archive::Tar, &mut out, &resources)
                .expect("a dump");
            assert!(out == scene.trees[id][&b"file1"[..]].content, "{memory_bytes} bytes");
        }
    }
}

#[test]
fn a_dump_of_the_oldest_snapshot_visits_each_container_once() {
    let mut scene = versions();
    let recorder = Arc::new(Recorder::new(scene.disk.clone()));
    scene.sandbox.storage = recorder.clone();
    let (repository, view) = (scene.sandbox.repository(), scene.sandbox.view(scene.ids[0]));
    let path = common::entry_path(&scene.sandbox.source());
    recorder.reset();
    let mut out = Vec::new();
    dump::dump(&repository, &view, Some(&path), Archive::Tar, &mut out, &resources()).expect("a dump");
    let calls = recorder.reset();
    for record in data(&manifest(&repository)) {
        let reads = calls.of(&record.object_name(view.series)).range_reads;
        assert!(reads <= 2, "its index and what is needed of it: {reads} reads of {}", record.id);
    }
}

#[test]
fn what_comes_again_in_a_dump_is_not_decoded_again() {
    let mut scene = Scene::new();
    let once = noise(1, 24 << 20);
    let again = once.chunks(1 << 20).flat_map(|part| &part[..100_000]).copied();
    let twice: Vec<u8> = once.iter().copied().chain(again).collect();
    scene.sandbox.write("once", &once);
    scene.backup();
    // In a backup of its own: else what is cut otherwise would lie in the regions of what it resembles.
    scene.sandbox.write("twice", &twice);
    scene.backup();
    let recorder = Arc::new(Recorder::new(scene.disk.clone()));
    scene.sandbox.storage = recorder.clone();
    let (repository, view) = (scene.sandbox.repository(), scene.sandbox.view(scene.ids[1]));
    // Memory for the chunks, and not for all regions.
    let resources = resources().with_fetches(1).with_memory_bytes(64 << 20);
    let reads_of = |name: &str, content: &[u8]| -> u64 {
        let path = common::entry_path(&scene.sandbox.source().join(name));
        let mut out = Vec::new();
        recorder.reset();
        dump::dump(&repository, &view, Some(&path), Archive::Tar, &mut out, &resources).expect("a dump");
        assert!(out == content, "{name}");
        let calls = recorder.reset();
        data(&manifest(&repository)).map(|record| calls.of(&record.object_name(view.series)).range_reads).sum()
    };
    let (reads, reads_twice) = (reads_of("once", &once), reads_of("twice", &twice));
    assert!(reads > 8 && reads_twice <= reads + 2, "{reads} reads, and {reads_twice}");
}

#[test]
fn the_oldest_snapshot_costs_each_container_one_visit_and_each_byte_one_read() {
    let mut scene = versions();
    let recorder = Arc::new(Recorder::new(scene.disk.clone()));
    scene.sandbox.storage = recorder.clone();
    let (repository, view) = (scene.sandbox.repository(), scene.sandbox.view(scene.ids[0]));
    let target = TempDir::new().expect("a folder");
    // Gaps are read over, so that a visit is one read.
    let options = scene.sandbox.restore_options(target.path()).with_gap_bytes(u64::MAX);
    recorder.reset();
    let summary = restore::restore(&repository, &view, &options, &resources()).expect("a restore");
    assert_eq!(summary.problems, 0);
    let calls = recorder.reset();
    let (mut visited, mut bytes) = (0, 0);
    for record in data(&manifest(&repository)) {
        let of_this = calls.of(&record.object_name(view.series));
        if of_this.range_reads > 0 {
            assert_eq!(of_this.range_reads, 2, "its index and what is needed of it: {}", record.id);
            visited += 1;
            bytes += of_this.bytes_read - u64::from(record.index_sealed_bytes);
        }
    }
    assert!(visited > 1);
    assert_eq!((summary.containers_read, summary.containers_needed, summary.bytes_read), (visited, visited, bytes));
}

#[test]
fn one_file_costs_only_what_it_and_its_bases_lie_in() {
    let mut scene = versions();
    // The snapshot before the last needs what the last has: eight megabytes that did not change, and the bases of
    // file1.
    scene.sandbox.write("large", &noise(500, 8_000_000));
    let id = scene.backup();
    scene.sandbox.write("file1", &[noise(1, 400_000), noise(9, 5000)].concat());
    scene.backup();
    let below = Some(common::entry_path(&scene.sandbox.source().join("file1")));
    let target = TempDir::new().expect("a folder");
    let options = scene.sandbox.restore_options(target.path()).with_below(below);
    let (repository, view) = (scene.sandbox.repository(), scene.sandbox.view(id));
    let part = restore::restore(&repository, &view, &options, &resources()).expect("a restore");
    let all = restored(&scene, id, 256 << 20).1;
    assert_eq!((part.problems, part.files_restored), (0, 1));
    assert!(part.bytes_read < all.bytes_read / 2, "{} of {}", part.bytes_read, all.bytes_read);
}

/// A region: its container, its place there, and its index entry's bases and chunks.
type Region = (ContainerRecord, usize, Vec<ChunkNumber>, Vec<ChunkNumber>);

/// Every region of data.
fn regions(repository: &Repository) -> Vec<Region> {
    let mut regions = Vec::new();
    for record in data(&manifest(repository)) {
        let reader =
            ContainerReader::open(repository.storage(), repository.keys(), series(repository), record).expect("opens");
        for (at, region) in reader.index().regions().iter().enumerate() {
            let chunks = region.chunks.iter().map(|chunk| chunk.number).collect();
            regions.push((record.clone(), at, region.bases.clone(), chunks));
        }
    }
    regions
}

fn answers(record: &ContainerRecord, chunks: &[ChunkNumber]) -> bool {
    chunks.iter().any(|number| record.chunks.iter().any(|run| run.range().contains(&number.0)))
}

/// A plain region that others hang on.
fn base(all: &[Region]) -> &Region {
    let used: BTreeSet<ChunkNumber> = all.iter().flat_map(|(.., bases, _)| bases.clone()).collect();
    let is_base = |(record, _, bases, chunks): &&Region| {
        bases.is_empty() && answers(record, chunks) && chunks.iter().any(|chunk| used.contains(chunk))
    };
    all.iter().find(is_base).expect("a plain region that is a base")
}

/// The damage of a base is told for its container, that of its dependents for theirs, and both with the snapshots they
/// touch.
#[test]
fn a_damaged_base_costs_its_dependents_and_nothing_else() {
    let scene = versions();
    let repository = scene.sandbox.repository();
    let all = regions(&repository);
    let (record, at, ..) = base(&all);
    let name = record.object_name(series(&repository));
    let reader =
        ContainerReader::open(repository.storage(), repository.keys(), series(&repository), record).expect("opens");
    let entry = &reader.index().regions()[*at];
    let disk = scene.disk.clone();
    disk.damage(&name, Damage::Flip { offset: entry.offset + 20, mask: 4 });

    let manifest = manifest(&repository);
    for (position, id) in scene.ids.iter().enumerate() {
        let necessary = manifest.necessary(position);
        let (tree, summary, log) = restored(&scene, *id, 256 << 20);
        let is_hit = entry.chunks.iter().any(|chunk| necessary.contains(chunk.number.0));
        assert_eq!(summary.problems > 0, is_hit, "{:?}", log.problems());
        assert!(log.problems().iter().all(|problem| problem.contains(&name.to_string())), "{:?}", log.problems());
        for (path, node) in scene.trees[id].iter().filter(|(_, node)| node.kind == 0o100_000) {
            let text = path.escape_ascii().to_string();
            assert!(tree.get(path) == Some(node) || log.tells_of(&text), "{text} differs without a word");
        }
        assert!(tree.get(&b"gone"[..]) == scene.trees[id].get(&b"gone"[..]), "it needs nothing of what was hit");
    }

    let report = scene.sandbox.check(ReadData::All);
    let here: Vec<_> = report.findings.iter().filter(|finding| finding.object == name.to_string()).collect();
    assert!(here.iter().any(|finding| finding.what.contains("seal")), "{:?}", report.findings);
    let is_dependent = |finding: &&siltstone_engine::check::Finding| finding.what.contains("for want of");
    assert!(report.findings.iter().filter(is_dependent).all(|finding| finding.what.contains(&name.to_string())));
    assert!(report.findings.iter().any(|finding| is_dependent(&finding)), "{:?}", report.findings);
    let touched: BTreeSet<String> = here.iter().flat_map(|finding| finding.snapshots.clone()).collect();
    let needing = |(position, _): &(usize, &SnapshotId)| {
        let necessary = manifest.necessary(*position);
        entry.chunks.iter().any(|chunk| necessary.contains(chunk.number.0))
    };
    let expected: BTreeSet<String> = scene.ids.iter().enumerate().filter(needing).map(|(_, id)| id.short()).collect();
    assert_eq!(touched, expected);
    assert_eq!(scene.sandbox.check(ReadData::None).findings, [], "indexes are sound");
}

#[test]
fn a_missing_container_of_bases_is_told_with_its_dependents_without_reading_data() {
    let scene = versions();
    let repository = scene.sandbox.repository();
    let all = regions(&repository);
    let (record, ..) = base(&all);
    let name = record.object_name(series(&repository));
    scene.disk.damage(&name, Damage::Delete);
    for read_data in [ReadData::None, ReadData::All] {
        let findings = scene.sandbox.check(read_data).findings;
        assert!(findings.iter().any(|f| f.object == name.to_string() && f.what.contains("missing")), "{findings:?}");
        let dependents: Vec<_> = findings.iter().filter(|f| f.what.contains("for want of")).collect();
        assert!(!dependents.is_empty() && dependents.iter().all(|f| f.object != name.to_string()), "{findings:?}");
        let objects: BTreeSet<_> = dependents.iter().map(|f| &f.object).collect();
        assert_eq!(objects.len(), dependents.len(), "one for each container: {findings:?}");
    }
}

/// Writes all containers of data anew with their regions changed, as no writer would.
fn forge(scene: &Scene, change: &dyn Fn(&ContainerRecord, usize, &mut EncodedRegion)) {
    let repository = scene.sandbox.repository();
    let mut writer = writer::acquire(&repository, writer::distant_holder(), true).expect("the lease");
    let mut next = writer.manifest().clone();
    for record in next.containers.iter_mut().filter(|record| record.kind == ContainerKind::Data) {
        let reader =
            ContainerReader::open(repository.storage(), repository.keys(), writer.series(), record).expect("opens");
        let (keys, id) = (repository.keys(), writer.new_container_id());
        let mut builder = ContainerBuilder::new(keys, writer.series(), id, ContainerKind::Data).expect("a builder");
        for at in 0..reader.index().regions().len() {
            let mut region = reader.copy_region(repository.storage(), at).expect("a region");
            change(record, at, &mut region);
            builder.push(&region).expect("a region that fits");
        }
        let sealed = builder.finish().expect("a container");
        writer.put(&sealed).expect("stored");
        let (chunks, run_bytes) = (record.chunks.clone(), record.run_bytes.clone());
        *record = ContainerRecord { chunks, run_bytes, ..sealed.record };
    }
    writer.commit(next, false, Time::default()).expect("committed");
}

fn findings(report: &CheckReport) -> Vec<String> {
    report
        .findings
        .iter()
        .map(|finding| format!("{}: {} ({:?})", finding.object, finding.what, finding.snapshots))
        .collect()
}

#[test]
fn forged_bases_are_errors_that_cost_only_what_hangs_on_them() {
    let scene = versions();
    let repository = scene.sandbox.repository();
    let all = regions(&repository);
    let newest = base(&all).3[0];
    let cycle = |_: &ContainerRecord, _: usize, region: &mut EncodedRegion| {
        if region.bases.contains(&newest) || !region.bases.is_empty() {
            return;
        }
        if region.chunks.iter().any(|chunk| chunk.number == newest) {
            // What hangs on it is now what it hangs on.
            let dependent = all.iter().find(|(record, _, bases, chunks)| {
                answers(record, chunks)
                    && bases.iter().any(|base| region.chunks.iter().any(|chunk| chunk.number == *base))
            });
            region.bases = dependent.map(|(.., chunks)| chunks[..1].to_vec()).unwrap_or_default();
        }
    };
    forge(&scene, &cycle);
    for read_data in [ReadData::None, ReadData::All] {
        let report = scene.sandbox.check(read_data);
        let told = findings(&report).iter().filter(|finding| finding.contains("lead back")).count();
        assert!(told > 0, "{:?}", findings(&report));
    }
    let (tree, _, log) = restored(&scene, scene.ids[0], 256 << 20);
    assert!(log.tells_of("lead back"), "{:?}", log.problems());
    assert!(tree.get(&b"gone"[..]) == scene.trees[&scene.ids[0]].get(&b"gone"[..]));
}

#[test]
fn a_base_that_is_nowhere_costs_its_region() {
    let scene = versions();
    let nowhere = ChunkNumber(1 << 40);
    let target = std::sync::Mutex::new(None);
    forge(&scene, &|record, _, region| {
        let mut target = target.lock().expect("sound");
        let chunks: Vec<_> = region.chunks.iter().map(|chunk| chunk.number).collect();
        if target.is_none() && !region.bases.is_empty() && answers(record, &chunks) {
            region.bases.push(nowhere);
            *target = Some(chunks);
        }
    });
    for read_data in [ReadData::None, ReadData::All] {
        let told = findings(&scene.sandbox.check(read_data));
        assert!(told.iter().any(|finding| finding.contains(&format!("chunk {nowhere}"))), "{told:?}");
        assert!(told.iter().any(|finding| finding.contains("for want of")), "{told:?}");
    }
    let last = *scene.ids.last().expect("snapshots");
    let (tree, summary, log) = restored(&scene, last, 256 << 20);
    assert!(tree == scene.trees[&last] && summary.problems == 0, "{:?}", log.problems());
}

#[test]
fn a_base_that_no_snapshot_is_said_to_need_is_told() {
    let scene = versions();
    let repository = scene.sandbox.repository();
    let manifest = manifest(&repository);
    let (first, last) = (manifest.necessary(0), manifest.necessary(manifest.snapshots().len() - 1));
    // A chunk that the last snapshot does not need, to be the base of a region that it needs.
    let dead = (&first - &last).iter().map(ChunkNumber).find(|number| {
        !number.is_metadata()
            && regions(&repository).iter().any(|(.., bases, chunks)| bases.is_empty() && chunks.contains(number))
    });
    let dead = dead.expect("a chunk of the file that is gone, which is plain");
    forge(&scene, &|record, _, region| {
        let chunks: Vec<_> = region.chunks.iter().map(|chunk| chunk.number).collect();
        let is_of_last = chunks.iter().any(|number| last.contains(number.0));
        if is_of_last && answers(record, &chunks) && !chunks.contains(&dead) {
            region.bases = vec![dead];
        }
    });
    let told = findings(&scene.sandbox.check(ReadData::None));
    assert!(told.iter().any(|finding| finding.contains("that it is not said to need")), "{told:?}");
}

#[test]
fn superseded_copies_need_no_bases() {
    let scene = versions();
    let (repository, disk) = (scene.sandbox.repository(), &scene.disk);
    let mut writer = writer::acquire(&repository, writer::distant_holder(), true).expect("the lease");
    let mut next = writer.manifest().clone();
    let record = data(&next).find(|record| record.has_deltas).expect("deltas").clone();
    let reader = ContainerReader::open(disk, repository.keys(), writer.series(), &record).expect("opens");
    let id = writer.new_container_id();
    let mut builder =
        ContainerBuilder::new(repository.keys(), writer.series(), id, ContainerKind::Data).expect("a builder");
    let delta = reader.index().regions().iter().position(|region| !region.bases.is_empty()).expect("a delta");
    let mut region = reader.copy_region(disk, delta).expect("a region");
    region.bases.push(ChunkNumber(1 << 40));
    builder.push(&region).expect("a region that fits");
    // Something plain that it answers for, beside the copy that it does not.
    let number = next.next_data;
    let plain = writer::container(&repository, &writer);
    let of_plain = ContainerReader::from_object(
        repository.keys(),
        writer.series(),
        ContainerKind::Data,
        plain.record.id,
        &plain.bytes,
    )
    .expect("opens");
    builder
        .push(&of_plain.unseal_region(0, of_plain.sealed_in(&plain.bytes, 0).expect("it").to_vec()).expect("it"))
        .expect("fits");
    let sealed = builder.finish().expect("a container");
    writer.put(&sealed).expect("stored");
    let chunks = vec![siltstone_store::ChunkRun { first: number, count: 1 }];
    next.next_data = ChunkNumber(number.0 + 1);
    next.containers.push(ContainerRecord { chunks, run_bytes: vec![0], ..sealed.record });
    writer.commit(next, false, Time::default()).expect("committed");
    for read_data in [ReadData::None, ReadData::All] {
        let told = findings(&scene.sandbox.check(read_data));
        assert!(told.iter().all(|finding| !finding.contains("want of")), "{told:?}");
    }
    for id in &scene.ids {
        assert!(restored(&scene, *id, 256 << 20).0 == scene.trees[id]);
    }
}
