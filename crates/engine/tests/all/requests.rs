//! The number of requests that each command makes of a place at a distance, where each costs a round trip and money:
//! upper bounds, on a repository that is open. Containers, their parity, and what is read of them by what was asked for
//! come on top where it is said so.

use crate::common::{self, Sandbox, noise, resources};
use siltstone_engine::VerifyWritten;
use siltstone_engine::backup::{self, BackupOptions, Source};
use siltstone_engine::check::{self, CheckOptions};
use siltstone_engine::forget::policy::KeepPolicy;
use siltstone_engine::forget::{SnapshotSelection, plan_forget};
use siltstone_engine::restore;
use siltstone_engine::seen::Memory;
use siltstone_engine::snapshots::{self, SnapshotFilter};
use siltstone_store::container::ContainerKind;
use siltstone_store::repository::Repository;
use siltstone_store::series::{newest_manifest, parts_kept};
use siltstone_store::storage::{
    Listing, NameKind, ObjectName, Recorder, SimulatedRemote, Storage, StorageCalls, Trouble,
};
use siltstone_store::{PartId, SnapshotId, Time};
use std::collections::BTreeSet;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// Requests of a new series: it is looked for, its config is committed, on the record that was read when the repository
/// was opened, and what an earlier series may have left is swept. Containers are listed once, those of data and of
/// metadata at the same time. The directory of lenders is listed, and written with the series in it.
const FIRST_BACKUP: usize = 18;
/// Originals and copies of the manifests are listed, the newest is read.
const UNCHANGED_BACKUP: usize = 3;
/// Requests as above, the predecessor; the lease and the snapshot, each created, looked after and copied.
const UNSETTLED_BACKUP: usize = 10;
/// As an unchanged backup, the predecessor; one commit, created, looked after and copied: it needs no lease.
const UNCHANGED_AND_KEPT: usize = 7;
/// Two more commits, one of what was settled and one that gives the lease back, and a deletion. The loans are listed
/// before anything becomes a delta.
const LATER_BACKUP: usize = 18;
/// Originals and copies of the manifests are listed, the newest is read.
const SNAPSHOTS: usize = 3;
/// As listing snapshots; then two containers of catalogs, which are small and come at once each, and of one of data the
/// index and a region. A file may lie in two regions that are not neighbours.
const RESTORE_ONE: usize = SNAPSHOTS + 5;
/// Requests of a restore from several containers: as many, for their regions are neighbours.
const RESTORE_ALL: usize = SNAPSHOTS + 5;
/// As listing snapshots; the predecessor; two commits, as the lease is given back after containers are deleted; two
/// deletions. As the series lends: the loans are listed, one commit more says what is going, and they are listed again.
const FORGET_ONE: usize = SNAPSHOTS + 14;

struct Place {
    remote: SimulatedRemote,
    sandbox: Sandbox,
}

impl Place {
    /// A place with a source of some folders, whose files fit into a few containers.
    fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    /// A place as [`Place::new`] makes it, in a folder below this one.
    fn below(parent: &Path) -> Self {
        let remote = SimulatedRemote::new();
        let sandbox = Sandbox::below(parent, Arc::new(remote.clone()));
        for number in 0..60 {
            sandbox.write(&format!("folder{}/file{number}", number % 6), &noise(number, 50_000));
        }
        Self { remote, sandbox }
    }

    /// Does something with the open repository, and returns the requests that it took.
    fn requests<T>(&self, deed: impl FnOnce(&Repository) -> T) -> (T, Vec<String>) {
        let repository = self.sandbox.repository();
        self.remote.set_trouble(Trouble::None);
        let result = deed(&repository);
        (result, self.remote.requests())
    }

    fn options(&self) -> BackupOptions {
        self.sandbox
            .options()
            .with_skip_if_unchanged(true)
            .with_sample_bytes(Some(0))
            .with_verify_written(VerifyWritten::Never)
    }

    /// Backs up what changed. The source is left to age first: what changed just before a backup is read again by the
    /// next one.
    fn backup(&self, options: &BackupOptions) -> (Option<SnapshotId>, Vec<String>) {
        std::thread::sleep(Duration::from_millis(60));
        let source = || Source::Paths(vec![self.sandbox.source()]);
        let (summary, requests) =
            self.requests(|repository| backup::backup(repository, source(), options, &self.sandbox.resources()));
        (summary.expect("a backup").snapshot, requests)
    }

    fn change(&self, seed: u64) {
        self.sandbox.write("folder1/file1", &noise(100 + seed, 60_000));
    }
}

/// The requests that are not about the bytes of containers.
fn beside_containers(requests: &[String]) -> Vec<String> {
    let is_of_container = |request: &&String| {
        let folders = ["data/", "metadata/", "parity/"];
        ["put ", "read a range of ", "read "]
            .iter()
            .filter_map(|call| request.strip_prefix(call))
            .any(|name| folders.iter().any(|folder| name.starts_with(folder)))
    };
    requests.iter().filter(|request| !is_of_container(request)).cloned().collect()
}

fn assert_at_most(most: usize, what: &str, requests: &[String]) {
    assert!(requests.len() <= most, "{what} takes {} requests:\n{}", requests.len(), requests.join("\n"));
}

#[test]
fn opening_asks_for_the_config_and_one_key() {
    let place = Place::new();
    place.remote.set_trouble(Trouble::None);
    place.sandbox.repository();
    // Configs and their copies are listed, the newest is read; the keys are listed, one is read.
    assert_at_most(5, "opening", &place.remote.requests());
}

#[test]
fn backups_ask_for_little_beside_their_containers() {
    let place = Place::new();
    let options = place.options();
    let (_, first) = place.backup(&options);
    assert_at_most(FIRST_BACKUP, "the first backup", &beside_containers(&first));

    place.change(1);
    let (_, later) = place.backup(&options);
    assert_at_most(LATER_BACKUP, "a later backup, with settling", &beside_containers(&later));

    place.change(2);
    let (_, unsettled) = place.backup(&options.with_migrate(false));
    assert_at_most(UNSETTLED_BACKUP, "a later backup", &beside_containers(&unsettled));
    for requests in [first, later, unsettled] {
        assert!(!requests.iter().any(|request| request == "list All"), "{requests:#?}");
    }
}

/// A stream, for folders above a source of paths are backed up with it, and other programs change those.
#[test]
fn an_unchanged_backup_writes_nothing() {
    let place = Place::new();
    let options = place.options().with_time(Some(Time::default()));
    let back_up = || {
        let source =
            Source::Stream { name: "stream".into(), reader: Box::new(std::io::Cursor::new(noise(7, 900_000))) };
        let (summary, requests) =
            place.requests(|repository| backup::backup(repository, source, &options, &place.sandbox.resources()));
        (summary.expect("a backup").snapshot, requests)
    };
    assert!(back_up().0.is_some());
    let (snapshot, unchanged) = back_up();
    assert_eq!(snapshot, None);
    let written = unchanged.iter().filter(|request| !request.starts_with("list") && !request.starts_with("read"));
    assert_eq!(written.count(), 0, "{unchanged:#?}");
    assert_at_most(UNCHANGED_BACKUP, "an unchanged backup", &beside_containers(&unchanged));
}

/// A place whose source was backed up twice, unchanged, and the requests of the second time. The folders above the
/// source are in its catalog: where something was made in one of them meanwhile, as in the folder of temporary files,
/// it is done again.
fn backed_up_twice() -> (Place, Vec<String>) {
    const ATTEMPTS: usize = 50;
    for _ in 0..ATTEMPTS {
        let place = Place::below(env!("CARGO_TARGET_TMPDIR").as_ref());
        let above = |place: &Place| {
            let modified = |folder: &Path| folder.metadata().and_then(|folder| folder.modified()).ok();
            place.sandbox.folder.path().ancestors().skip(1).map(modified).collect::<Vec<_>>()
        };
        let options = place.options();
        let before = above(&place);
        place.backup(&options);
        let (_, kept) = place.backup(&options.with_skip_if_unchanged(false));
        if above(&place) == before {
            return (place, kept);
        }
    }
    panic!("the folders above the source do not stay unchanged");
}

#[test]
fn a_snapshot_that_leaves_nothing_behind_is_settled_by_its_own_commit() {
    let (place, kept) = backed_up_twice();
    assert_at_most(UNCHANGED_AND_KEPT, "an unchanged backup that is kept", &beside_containers(&kept));
    assert!(!kept.iter().any(|request| request.starts_with("put ")), "it needs no container: {kept:#?}");
    let commits = kept.iter().filter(|request| request.starts_with("create series/")).count();
    assert_eq!(commits, 1, "the snapshot: {kept:#?}");
    let repository = place.sandbox.repository();
    let series = repository.series().expect("a list")[0];
    let manifest = repository.manifest(series).expect("it reads").expect("the series");
    assert!(manifest.unsettled.is_empty() && manifest.lease.is_none());
    assert_eq!(place.sandbox.check(siltstone_engine::check::ReadData::All).findings, []);
}

/// A lease that was given back says that nothing is left to be deleted: at a distance nobody looks for it then. So a
/// backup that heals keeps its lease until what it replaced is gone, also where there is nothing else to settle.
#[test]
fn what_healing_replaced_is_deleted_before_the_lease_is_given_back() {
    let place = Place::new();
    let options = place.options().with_time(Some(Time::default())).with_skip_if_unchanged(false);
    let back_up = || {
        let reader = Box::new(Cursor::new(noise(7, 30_000)));
        let source = Source::Stream { name: "stream".into(), reader };
        let back_up = |repository: &Repository| {
            backup::backup(repository, source, &options, &place.sandbox.resources()).expect("a backup")
        };
        place.requests(back_up)
    };
    back_up();
    let repository = place.sandbox.repository();
    let series = repository.series().expect("a list")[0];
    let manifest = repository.manifest(series).expect("it reads").expect("the series");
    let data = manifest.containers.iter().find(|record| record.kind == ContainerKind::Data).expect("a container");
    let lost = data.object_name(series);
    place.remote.delete_many(&[ObjectName::Parity(series, data.id), lost]).expect("deleted");
    let check = CheckOptions::default().with_record(Some("user".into()));
    assert!(!check::check(&repository, &check, &resources()).expect("a check").findings.is_empty());

    let (summary, requests) = back_up();
    assert!(summary.healed.chunks > 0, "{summary:?}");
    let place_of = |wanted: &dyn Fn(&str) -> bool| requests.iter().rposition(|request| wanted(request));
    let deleted = place_of(&|request| request.starts_with("delete") && request.contains(&lost.to_string()));
    let given_back = place_of(&|request| request.starts_with("create series/"));
    assert!(deleted.is_some() && deleted < given_back, "{requests:#?}");
    let repository = place.sandbox.repository();
    let manifest = repository.manifest(series).expect("it reads").expect("the series");
    assert!(manifest.lease.is_none() && manifest.unsettled.is_empty());
}

/// A program that tests what it opens lists the manifests once, for the test and for what comes after it.
#[test]
fn what_a_memory_lists_is_not_listed_again() {
    let place = Place::new();
    let options = place.options();
    let folder = TempDir::new().expect("a folder");
    let remember = |repository: &Repository| {
        let mut memory = Memory::open(repository, folder.path()).expect("a memory");
        memory.test().expect("what was seen");
        memory.remember().expect("remembered");
    };
    let ((), first) = place.requests(|repository| {
        remember(repository);
        let source = Source::Paths(vec![place.sandbox.source()]);
        backup::backup(repository, source, &options, &place.sandbox.resources()).expect("a backup");
    });
    assert_at_most(FIRST_BACKUP, "testing and the first backup", &beside_containers(&first));
    place.requests(remember);
    let filter = SnapshotFilter::default();
    let ((), listing) = place.requests(|repository| {
        remember(repository);
        snapshots::list(repository, &filter).expect("a list");
    });
    assert_at_most(SNAPSHOTS, "testing and listing", &listing);
    place.change(1);
    let source = Source::Paths(vec![place.sandbox.source()]);
    let ((), later) = place.requests(|repository| {
        remember(repository);
        backup::backup(repository, source, &options.with_migrate(false), &place.sandbox.resources()).expect("a backup");
    });
    assert_at_most(UNSETTLED_BACKUP, "testing and a later backup", &beside_containers(&later));
}

/// A client's backup asks nothing of the series of others.
#[test]
fn a_backup_costs_no_more_beside_many_series() {
    let requests_beside = |others: usize| {
        let recorder = Arc::new(Recorder::new(SimulatedRemote::new()));
        let sandbox = Sandbox::on(recorder.clone());
        let folder = TempDir::new().expect("a folder");
        let back_up = |series: &str, seed: u64| {
            let repository = sandbox.repository();
            let mut memory = Memory::open(&repository, folder.path()).expect("a memory");
            recorder.reset();
            memory.test_series(repository.keys().series_id(series)).expect("what was seen");
            memory.remember().expect("remembered");
            let source = Source::Stream { name: "stream".into(), reader: Box::new(Cursor::new(noise(seed, 1000))) };
            let options = sandbox.options().with_series(Some(series.to_owned()));
            backup::backup(&repository, source, &options, &sandbox.resources()).expect("a backup");
            memory.remember().expect("remembered");
            let calls = recorder.reset();
            (calls.lists, calls.read_batches, calls.of_kind(NameKind::Manifest).reads)
        };
        for number in 0..=others {
            back_up(&format!("series {number}"), number as u64);
        }
        back_up("series 0", u64::MAX)
    };
    assert_eq!(requests_beside(12), requests_beside(0));
}

/// Parts of a manifest are read by whoever needs chunks or containers, and by nobody else.
#[test]
fn listing_snapshots_reads_no_part_of_a_manifest() {
    let recorder = Arc::new(Recorder::new(SimulatedRemote::new()));
    let sandbox = Sandbox::on(recorder.clone());
    sandbox.cut_into_parts();
    for seed in 0..2 {
        sandbox.write("file", &noise(seed, 100_000));
        sandbox.backup();
    }
    let folder = TempDir::new().expect("a folder");
    let repository = sandbox.repository();
    recorder.reset();
    let mut memory = Memory::open(&repository, folder.path()).expect("a memory");
    memory.test().expect("what was seen");
    memory.remember().expect("remembered");
    let filter = SnapshotFilter::default();
    let views = snapshots::list(&repository, &filter).expect("a list");
    let (latest, _) = snapshots::resolve(&repository, "latest", &filter).expect("the latest");
    assert_eq!((views.len(), latest.key()), (2, views[1].key()));
    let calls = recorder.reset();
    let read = |calls: &StorageCalls, kind| calls.of_kind(kind).reads + calls.of_kind(kind).range_reads;
    assert_eq!((read(&calls, NameKind::Manifest), read(&calls, NameKind::ManifestPart)), (1, 0));

    let manifest = repository.manifest_listed(latest.series).expect("it reads").expect("a manifest");
    assert!(manifest.containers.len() > 1);
    let calls = recorder.reset();
    assert_eq!(read(&calls, NameKind::Manifest), 0, "what was read of it is at hand");
    assert!(read(&calls, NameKind::ManifestPart) > 3);
    // Once it was read whole, its summary is at hand.
    assert_eq!(snapshots::list(&repository, &filter).expect("a list").len(), 2);
    assert_eq!(recorder.reset().of_kind(NameKind::ManifestPart).reads, 0);
}

/// As many at a time as a place takes, where one after the other would take a round trip for each of them.
#[test]
fn manifests_of_many_series_are_read_at_the_same_time_and_once() {
    const SERIES: usize = 20;
    let recorder = Arc::new(Recorder::new(SimulatedRemote::new()));
    let sandbox = Sandbox::on(recorder.clone());
    let repository = sandbox.repository();
    for number in 0..SERIES {
        let reader = Box::new(Cursor::new(noise(number as u64, 1000)));
        let source = Source::Stream { name: "stream".into(), reader };
        let options = sandbox.options().with_series(Some(format!("series {number}")));
        backup::backup(&repository, source, &options, &sandbox.resources()).expect("a backup");
    }
    let folder = TempDir::new().expect("a folder");
    let listed = || {
        let repository = sandbox.repository();
        recorder.reset();
        let mut memory = Memory::open(&repository, folder.path()).expect("a memory");
        memory.test().expect("what was seen");
        memory.remember().expect("remembered");
        let views = snapshots::list(&repository, &SnapshotFilter::default()).expect("a list");
        assert_eq!(views.len(), SERIES);
        recorder.reset()
    };
    for meeting in ["the first", "the second"] {
        let calls = listed();
        let read = calls.of_kind(NameKind::Manifest).reads;
        assert_eq!((read, calls.read_batches, calls.lists), (SERIES as u64, 1, 2), "{meeting}");
    }
}

#[test]
fn reading_asks_for_the_newest_manifest_and_what_is_wanted() {
    let place = Place::new();
    let (id, _) = place.backup(&place.options());
    place.change(1);
    place.backup(&place.options());
    let filter = SnapshotFilter::default();
    let (views, listing) = place.requests(|repository| snapshots::list(repository, &filter).expect("a list"));
    assert_at_most(SNAPSHOTS, "listing snapshots", &listing);

    let view = views.into_iter().find(|view| Some(view.snapshot.id) == id).expect("the snapshot");
    let target = TempDir::new().expect("a folder");
    let below = common::entry_path(&place.sandbox.source().join("folder2/file2"));
    let options = place.sandbox.restore_options(target.path()).with_verify(false).with_below(Some(below));
    let (_, one) = place.requests(|repository| {
        snapshots::list(repository, &filter).expect("a list");
        restore::restore(repository, &view, &options, &resources()).expect("a restore")
    });
    assert_at_most(RESTORE_ONE, "restoring one file", &one);

    let options = place.sandbox.restore_options(&target.path().join("all")).with_verify(false);
    let options = options.with_below(Some(common::entry_path(&place.sandbox.source())));
    let (_, all) = place.requests(|repository| {
        snapshots::list(repository, &filter).expect("a list");
        restore::restore(repository, &view, &options, &resources()).expect("a restore")
    });
    assert_at_most(RESTORE_ALL, "restoring all", &all);
}

#[test]
fn forgetting_asks_for_the_manifest_and_commits() {
    let place = Place::new();
    let options = place.options().with_migrate(false);
    for version in 0..3 {
        place.change(version);
        place.backup(&options);
    }
    let (_, requests) = place.requests(|repository| {
        let filter = SnapshotFilter::default();
        let policy = KeepPolicy::default().with_last(Some(2));
        let selection = SnapshotSelection::ByPolicy { filter, group_by: Vec::new(), policy, now: jiff::Zoned::now() };
        let plan = plan_forget(repository, selection, &place.sandbox.forget_options(false)).expect("a plan");
        plan.execute(repository, &resources()).expect("forgetting")
    });
    assert_at_most(FORGET_ONE, "forgetting one of three", &beside_containers(&requests));
    assert!(!requests.iter().any(|request| request == "list All"), "{requests:#?}");
    assert_eq!(place.sandbox.snapshots().len(), 2);
    assert_eq!(place.sandbox.check(siltstone_engine::check::ReadData::All).findings, []);
}

/// At a distance a backup leaves the manifests before the predecessor to a later one, which removes many by one
/// request. Parts never wait: whatever lies there is named by the newest manifest or its predecessor.
#[test]
fn older_manifests_go_many_at_a_time_and_no_part_is_left_with_them() {
    for in_parts in [false, true] {
        let place = Place::new();
        if in_parts {
            place.sandbox.cut_into_parts();
        }
        let options = place.options().with_migrate(false);
        let (mut deletions, mut most) = (0, 0);
        for version in 0..12 {
            place.change(version);
            let (_, requests) = place.backup(&options);
            deletions += requests.iter().filter(|request| request.starts_with("delete")).count();
            let repository = place.sandbox.repository();
            let series = repository.series().expect("a list")[0];
            let listed = |what| repository.storage().list(what).expect("a list");
            let manifests = listed(Listing::Manifests(series));
            most = most.max(manifests.len());
            assert!(manifests.len() >= 2, "the newest and its predecessor");
            let newest = newest_manifest(&repository, series).expect("it reads").expect("a manifest");
            let kept = parts_kept(&repository, &newest).expect("they read");
            let parts: BTreeSet<PartId> =
                listed(Listing::ManifestParts(series)).iter().filter_map(|meta| meta.name.part()).collect();
            assert_eq!(parts, kept);
            assert_eq!(in_parts, !parts.is_empty());
        }
        assert!(most <= 10, "{most} manifests lie there");
        assert!(in_parts || (1..=4).contains(&deletions), "{deletions} deletions in twelve runs");
    }
}
