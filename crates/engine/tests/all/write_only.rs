//! Clients that can add backups and read none: their backups are whole to everybody else, and what they hold opens
//! nothing but the manifests of their series.

use crate::append_only::add_only;
use crate::common::log::Log;
use crate::common::tree::{self, Tree};
use crate::common::{PASSWORD, Sandbox, label, noise, resources};
use siltstone_engine::backup::{self, BackupOptions, BackupSummary, ChangedList, CheckpointRule, Source};
use siltstone_engine::check::{self, CheckOptions, ReadData};
use siltstone_engine::copy::{CopyOptions, Originals, copy};
use siltstone_engine::delta::Deltas;
use siltstone_engine::dump::{Archive, dump};
use siltstone_engine::file_reader::SnapshotReader;
use siltstone_engine::maintain;
use siltstone_engine::snapshots::{self, SnapshotFilter};
use siltstone_engine::write_only::add_write_only_key;
use siltstone_engine::{EngineError, Notice, browse, forget, protect, repair, restore, stats, undelete};
use siltstone_store::container::ContainerReader;
use siltstone_store::keys::Argon2Cost;
use siltstone_store::repository::Repository;
use siltstone_store::salvage::manifest_at;
use siltstone_store::sealed::KeyMode;
use siltstone_store::storage::{Listing, ObjectName, Original, SimulatedDisk, Storage};
use siltstone_store::{KeyId, SnapshotId, StoreError};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

const CLIENT_PASSWORD: &[u8] = b"of the client";

/// A client that adds to the series "test", a keeper who may do all, and the trees of all snapshots.
struct Pair {
    disk: SimulatedDisk,
    keeper: Sandbox,
    key: KeyId,
    trees: BTreeMap<SnapshotId, Tree>,
    log: Log,
}

impl Pair {
    fn new() -> Self {
        let disk = SimulatedDisk::new();
        let keeper = Sandbox::on(Arc::new(disk.clone()));
        let key = add_key(&keeper, "test");
        Self { disk, keeper, key, trees: BTreeMap::new(), log: Log::default() }
    }

    fn client(&self) -> Repository {
        Repository::open(Arc::new(self.disk.clone()), CLIENT_PASSWORD).expect("the client's key opens")
    }

    fn cache(&self) -> PathBuf {
        self.keeper.folder.path().join("cache of the client")
    }

    /// Change times count for nothing: those of the last milliseconds never pass for unchanged.
    fn options(&self) -> BackupOptions {
        self.keeper.options().with_series(None).with_ignore_ctime(true)
    }

    fn try_back_up(&mut self, options: &BackupOptions) -> Result<BackupSummary, EngineError> {
        self.log = Log::default();
        let resources = resources().with_cache(Some(self.cache())).with_observer((&self.log).into());
        let summary = backup::backup(&self.client(), Source::Paths(vec![self.keeper.source()]), options, &resources)?;
        self.trees.extend(summary.snapshot.map(|id| (id, tree::read(&self.keeper.source()))));
        Ok(summary)
    }

    fn back_up(&mut self) -> BackupSummary {
        let options = self.options();
        self.try_back_up(&options).expect("a backup")
    }

    /// Every snapshot restores to what its source was, and nothing is wrong anywhere.
    fn assert_sound(&self) {
        let there: Vec<SnapshotId> = self.keeper.snapshots().iter().map(|view| view.snapshot.id).collect();
        for (id, tree) in self.trees.iter().filter(|(id, _)| there.contains(id)) {
            let restored = self.keeper.restored(*id);
            assert!(restored == *tree, "{}: {:?}", id.short(), tree::differences(&restored, tree));
        }
        assert_eq!(self.keeper.check(ReadData::All).findings, []);
    }

    fn maintain(&self) {
        maintain::maintain(&self.keeper.repository(), &self.keeper.migrate_options(), &resources())
            .expect("maintained");
    }

    /// The modes of the containers of the series.
    fn modes(&self) -> Vec<KeyMode> {
        let manifest = self.keeper.repository().manifests().expect("manifests").swap_remove(0);
        manifest.containers.iter().map(|record| record.mode).collect()
    }
}

fn add_key(keeper: &Sandbox, series: &str) -> KeyId {
    let (repository, label) = (keeper.repository(), label());
    add_write_only_key(&repository, series, CLIENT_PASSWORD, (&label, Argon2Cost::TEST), &resources()).expect("a key")
}

fn plant(sandbox: &Sandbox) {
    for number in 0..40u64 {
        sandbox.write(&format!("folder {}/{number}", number % 3), &noise(number, 5000));
    }
    sandbox.write("large", &noise(100, 400_000));
}

fn names(disk: &SimulatedDisk, what: Listing) -> Vec<ObjectName> {
    disk.list(what).expect("a list").into_iter().map(|meta| meta.name).collect()
}

fn is_refused<T>(result: &Result<T, EngineError>) -> bool {
    matches!(result, Err(EngineError::Store(StoreError::WriteOnly { .. })))
}

#[test]
fn backups_are_incremental_and_restore_with_a_key_that_reads() {
    let mut pair = Pair::new();
    plant(&pair.keeper);
    let first = pair.back_up().statistics;
    assert_eq!((first.files_new, first.files_unchanged), (41, 0));
    assert_eq!(pair.log.notices(), []);

    pair.keeper.write("folder 1/new", &noise(200, 9000));
    pair.keeper.write("large", &[noise(100, 300_000), noise(7, 50_000)].concat());
    let second = pair.back_up().statistics;
    assert_eq!((second.files_new, second.files_changed, second.files_unchanged), (1, 1, 40));
    assert!(second.added_plain_bytes < 150_000, "what did not change of a file is not stored again: {second:?}");

    // Away and back: what only an older snapshot has is used again.
    let moved = pair.keeper.folder.path().join("away");
    std::fs::rename(pair.keeper.source().join("folder 2"), &moved).expect("moved");
    pair.back_up();
    std::fs::rename(&moved, pair.keeper.source().join("folder 2")).expect("moved");
    let back = pair.back_up();
    assert!(back.reused.chunks > 0 && back.statistics.added_plain_bytes == 0, "{back:?}");

    assert_eq!(pair.keeper.snapshots().len(), 4);
    assert!(pair.modes().iter().all(|mode| *mode == KeyMode::Recipient));
    assert_eq!(pair.log.notices(), []);
    pair.assert_sound();
}

#[test]
fn the_client_opens_nothing_but_the_manifests_of_its_series() {
    let mut pair = Pair::new();
    plant(&pair.keeper);
    pair.keeper.try_backup(&pair.keeper.options().with_series(Some("other".into()))).expect("a backup");
    pair.back_up();
    pair.keeper.backup();
    let client = pair.client();
    let views = snapshots::list(&client, &SnapshotFilter::default()).expect("its snapshots can be listed");
    assert_eq!(views.len(), 2, "and no others");

    let manifests = pair.keeper.repository().manifests().expect("manifests");
    for manifest in &manifests {
        for record in &manifest.containers {
            let opened = ContainerReader::open(&pair.disk, client.keys(), manifest.series, record);
            assert!(matches!(opened, Err(StoreError::WriteOnly { .. })), "{record:?}: {opened:?}");
        }
        let opened = manifest_at(&client, manifest.series, manifest.sequence);
        if manifest.name == "test" {
            assert_eq!(opened.expect("its own").manifest, *manifest);
        } else {
            assert!(matches!(opened, Err(StoreError::WriteOnly { .. })), "{opened:?}");
        }
    }
    for name in names(&pair.disk, Listing::Configs) {
        let ObjectName::Config(sequence) = name else { continue };
        let object = pair.disk.read(&name, name.bytes_max()).expect("a config");
        let opened = siltstone_store::config::Config::open(client.keys(), sequence, object);
        assert!(matches!(opened, Err(StoreError::WriteOnly { .. })), "{opened:?}");
    }
    for name in names(&pair.disk, Listing::Keys) {
        let ObjectName::Key(id) = name else { continue };
        let object = pair.disk.read(&name, name.bytes_max()).expect("a slot");
        let slot = siltstone_store::keys::KeySlot::parse(id, &object).expect("a slot");
        assert!(matches!(slot.label(client.keys()), Err(StoreError::WriteOnly { .. })));
    }
}

#[test]
fn what_takes_a_key_that_reads_is_refused_before_anything_changes() {
    let mut pair = Pair::new();
    plant(&pair.keeper);
    pair.back_up();
    pair.back_up();
    let (client, before) = (pair.client(), pair.disk.list(Listing::All).expect("a list"));
    let views = snapshots::list(&client, &SnapshotFilter::default()).expect("a list");
    let (view, keys) = (&views[0], [views[0].key()]);
    let target = pair.keeper.folder.path().join("restored");
    let (sandbox, resources) = (&pair.keeper, resources());
    assert!(is_refused(&restore::restore(&client, view, &sandbox.restore_options(&target), &resources)));
    assert!(is_refused(&dump(&client, view, None, Archive::Tar, &mut Vec::new(), &resources)));
    assert!(is_refused(&browse::ls(&client, view, None, true, &mut |_| Ok(()))));
    assert!(is_refused(&SnapshotReader::open(&client, view, &resources)));
    assert!(is_refused(&check::check(&client, &CheckOptions::default(), &resources)));
    assert!(is_refused(&stats::stats(&client, &|_| true)));
    for dry_run in [false, true] {
        assert!(is_refused(&forget::forget(&client, &keys, &sandbox.forget_options(dry_run), &resources)));
    }
    assert!(is_refused(&undelete::undelete(&client, &keys, &undelete::UndeleteOptions::default(), &resources)));
    assert!(is_refused(&maintain::maintain(&client, &sandbox.migrate_options(), &resources)));
    assert!(is_refused(&protect::protect(&client, "user", &resources)));
    assert!(is_refused(&repair::plan(&client, &repair::RepairOptions::default(), &resources)));
    let other = Sandbox::new();
    for (from, to) in [(&client, &other.repository()), (&other.repository(), &client)] {
        let originals = Originals { repository: from, snapshots: &views, fetches: 1 };
        assert!(is_refused(&copy(&originals, to, &CopyOptions::default(), &resources)));
    }
    let mut client = client;
    let write_only = |result: Result<(), StoreError>| assert!(matches!(result, Err(StoreError::WriteOnly { .. })));
    write_only(client.key_slots().map(drop));
    write_only(client.add_key(b"x", &label(), Argon2Cost::TEST).map(drop));
    write_only(client.add_write_only_key("test", b"x", &label(), Argon2Cost::TEST).map(drop));
    write_only(client.change_password(b"x", &label(), Argon2Cost::TEST).map(drop));
    write_only(client.rotate(b"x", &label(), Argon2Cost::TEST).map(drop));
    write_only(client.remove_key(KeyId([1; 16])));
    write_only(client.recovery_key().map(drop));
    write_only(client.amend(|_| Ok(())).map(drop));
    assert_eq!(pair.disk.list(Listing::All).expect("a list"), before);
    assert!(!target.exists());

    let elsewhere = pair.options().with_series(Some("other".into()));
    let refused = pair.try_back_up(&elsewhere).expect_err("another series").to_string();
    assert!(refused.contains("\"test\" alone"), "{refused}");
}

#[test]
fn without_its_cache_the_client_reads_and_stores_all_again_in_the_same_series() {
    let mut pair = Pair::new();
    plant(&pair.keeper);
    let first = pair.back_up().statistics;
    std::fs::remove_dir_all(pair.cache()).expect("removed");
    let again = pair.back_up().statistics;
    assert_eq!(pair.log.notices(), [Notice::CatalogLost, Notice::IndexLost][1..]);
    assert_eq!((again.files_unchanged, again.added_plain_bytes), (0, first.added_plain_bytes));

    // The catalog alone: files are read, and their chunks are known.
    let lost = |ending: &str| {
        let folder = std::fs::read_dir(pair.cache()).expect("read").next().expect("one").expect("a folder").path();
        let file = std::fs::read_dir(folder).expect("read").map(|file| file.expect("a file").path());
        let file = file.into_iter().find(|path| path.extension().is_some_and(|found| found == ending));
        std::fs::remove_file(file.expect("the file")).expect("removed");
    };
    lost("catalog");
    let read = pair.back_up().statistics;
    assert_eq!(pair.log.notices(), [Notice::CatalogLost]);
    assert_eq!((read.files_unchanged, read.added_plain_bytes), (0, 0));
    // The index alone: unchanged files keep their recipes.
    let folder = std::fs::read_dir(pair.cache()).expect("read").next().expect("one").expect("a folder").path();
    for file in std::fs::read_dir(folder).expect("read").map(|file| file.expect("a file").path()) {
        if file.extension().is_some_and(|found| found == "index") {
            std::fs::remove_file(file).expect("removed");
        }
    }
    let indexed = pair.back_up().statistics;
    assert_eq!(pair.log.notices(), [Notice::IndexLost]);
    assert_eq!((indexed.files_unchanged, indexed.added_plain_bytes), (41, 0));
    assert_eq!(pair.back_up().statistics.files_unchanged, 41);
    assert_eq!(pair.log.notices(), []);
    pair.assert_sound();
}

#[test]
fn whoever_reads_settles_and_forgets_between_backups_and_the_client_goes_on() {
    let mut pair = Pair::new();
    plant(&pair.keeper);
    let first = pair.back_up().snapshot.expect("a snapshot");
    for version in 0..3u64 {
        pair.keeper.write("large", &[noise(100, 200_000), noise(300 + version, 200_000)].concat());
        pair.back_up();
    }
    assert_eq!(pair.keeper.repository().manifests().expect("manifests")[0].unsettled.len(), 3);
    pair.maintain();
    assert_eq!(pair.keeper.repository().manifests().expect("manifests")[0].unsettled.len(), 0);
    assert!(pair.modes().contains(&KeyMode::Derived), "what is moved is sealed by the one who moves it");
    pair.assert_sound();
    let unchanged = pair.back_up().statistics;
    assert_eq!((unchanged.files_unchanged, unchanged.added_plain_bytes), (41, 0));
    assert_eq!(pair.log.notices(), []);

    pair.keeper.forget(&[first], false);
    pair.trees.remove(&first);
    pair.keeper.write("small", b"new");
    let after = pair.back_up();
    assert_eq!((after.statistics.files_new, after.statistics.files_unchanged), (1, 41));
    pair.maintain();
    pair.assert_sound();

    // Its last snapshot is gone: what the client remembers is of no use.
    let last = after.snapshot.expect("a snapshot");
    pair.keeper.forget(&[last], false);
    pair.trees.remove(&last);
    let anew = pair.back_up().statistics;
    assert_eq!((anew.files_unchanged, pair.log.notices().contains(&Notice::IndexLost)), (0, true));
    pair.maintain();
    pair.assert_sound();
}

#[test]
fn deltas_and_checkpoints_that_others_made_stand_in_nobody_s_way() {
    let mut pair = Pair::new();
    plant(&pair.keeper);
    // A series of somebody who reads, with forward deltas and a checkpoint, which the client takes over.
    let forward = pair.keeper.options().with_deltas(Deltas::Forward { depth: 16 });
    for version in 0..2u64 {
        pair.keeper.write("large", &[noise(100, 399_000), noise(400 + version, 1000)].concat());
        pair.keeper.try_backup(&forward).expect("a backup");
    }
    let rule = CheckpointRule::DEFAULT.with_bytes(0).with_bytes_least(1);
    let options = pair.options().with_deltas(Deltas::Forward { depth: 16 }).with_checkpoint(Some(rule));
    for version in 0..2u64 {
        pair.keeper.write("large", &[noise(100, 399_000), noise(500 + version, 1000)].concat());
        pair.try_back_up(&options).expect("a backup");
    }
    assert_eq!(pair.log.notices(), [], "the second goes on from the first");
    pair.assert_sound();
    pair.maintain();
    pair.assert_sound();
    pair.keeper.write("large", &[noise(100, 399_000), noise(600, 1000)].concat());
    pair.keeper.try_backup(&forward).expect("a backup on the client's");
    pair.assert_sound();
}

#[test]
fn a_client_that_may_not_delete_either_adds_and_leaves_the_rest() {
    let mut pair = Pair::new();
    plant(&pair.keeper);
    for version in 0..3u64 {
        pair.keeper.write("small", &noise(version, 1000));
        let place = Arc::new(add_only(pair.disk.clone()));
        let client = Repository::open(place, CLIENT_PASSWORD).expect("the client's key opens");
        let (options, resources) = (pair.options(), resources().with_cache(Some(pair.cache())));
        let source = Source::Paths(vec![pair.keeper.source()]);
        let summary = backup::backup(&client, source, &options, &resources).expect("a backup");
        pair.trees.extend(summary.snapshot.map(|id| (id, tree::read(&pair.keeper.source()))));
    }
    assert_eq!(pair.trees.len(), 3);
    pair.maintain();
    pair.assert_sound();
}

#[test]
fn a_list_of_changes_builds_on_the_catalog_that_the_client_keeps() {
    let mut pair = Pair::new();
    plant(&pair.keeper);
    pair.back_up();
    let large = [noise(100, 200_000), noise(9, 500), noise(100, 400_000)[200_500..].to_vec()].concat();
    pair.keeper.write("large", &large);
    pair.keeper.remove("folder 1/1");
    let lines = format!(
        "{source}/large\t200000\t500\n{source}/folder 1/1\n",
        source = pair.keeper.source().to_str().expect("text")
    );
    let with_list = |pair: &Pair| {
        let mut list = ChangedList::new(256 << 20);
        list.add_lines("the list", lines.as_bytes()).expect("a list");
        let source = Source::Changes { paths: vec![pair.keeper.source()], list: Arc::new(list) };
        let resources = resources().with_cache(Some(pair.cache()));
        backup::backup(&pair.client(), source, &pair.options(), &resources)
    };
    let summary = with_list(&pair).expect("a backup");
    assert!(summary.statistics.added_plain_bytes < 200_000, "{summary:?}");
    pair.trees.extend(summary.snapshot.map(|id| (id, tree::read(&pair.keeper.source()))));
    pair.assert_sound();
    std::fs::remove_dir_all(pair.cache()).expect("removed");
    let refused = with_list(&pair);
    assert!(matches!(refused, Err(EngineError::PreviousUnusable { .. })), "what it does not list would be gone");
}

#[test]
fn what_is_known_to_be_damaged_is_stored_again_where_the_client_has_it() {
    let mut pair = Pair::new();
    pair.keeper
        .repository()
        .amend(|config| {
            config.parity.data_percent = 0;
            Ok(())
        })
        .expect("no parity");
    plant(&pair.keeper);
    let first = pair.back_up().snapshot.expect("a snapshot");
    let manifest = pair.keeper.repository().manifests().expect("manifests").swap_remove(0);
    let data = manifest.containers.iter().find(|record| record.kind == siltstone_store::container::ContainerKind::Data);
    let name = data.expect("data").object_name(manifest.series);
    for name in names(&pair.disk, Listing::Parity(manifest.series)) {
        pair.disk.delete(&name).expect("deleted");
    }
    pair.disk.delete(&name).expect("deleted");
    let healed = pair.back_up();
    assert!(healed.healed.chunks > 0 && healed.statistics.files_unchanged == 0, "{healed:?}");
    assert!(pair.keeper.restored(first) == pair.trees[&first], "it is whole again");
    pair.maintain();
    assert_eq!(pair.keeper.check(ReadData::All).findings, []);
}

#[test]
fn parity_heals_what_a_client_wrote() {
    let mut pair = Pair::new();
    plant(&pair.keeper);
    pair.back_up();
    let manifest = pair.keeper.repository().manifests().expect("manifests").swap_remove(0);
    for name in manifest.containers.iter().map(|record| record.object_name(manifest.series)) {
        let mut object = pair.disk.read(&name, name.bytes_max()).expect("a container");
        object[200] ^= 1;
        pair.disk.delete(&name).expect("deleted");
        pair.disk.put(&name, &object).expect("put");
    }
    pair.disk.barrier().expect("durable");
    let parity = names(&pair.disk, Listing::Parity(manifest.series)).len();
    assert!(parity > 0);
    let metadata_only = parity < manifest.containers.len();
    for (id, tree) in pair.trees.iter().filter(|_| !metadata_only) {
        assert!(pair.keeper.restored(*id) == *tree);
    }
    assert!(!pair.keeper.check(ReadData::All).findings.is_empty(), "the damage is told");
}

#[test]
fn a_removed_key_opens_nothing_as_long_as_nobody_puts_it_back() {
    let mut pair = Pair::new();
    plant(&pair.keeper);
    pair.back_up();
    let keeper = pair.keeper.repository();
    let (listed, _) = keeper.key_slots().expect("slots");
    let of_client = listed.iter().find(|slot| slot.id == pair.key).expect("it is listed");
    assert_eq!(of_client.write_only.as_deref(), Some("test"));
    let name = ObjectName::Key(pair.key);
    let kept = pair.disk.read(&name, name.bytes_max()).expect("the slot");
    keeper.remove_key(pair.key).expect("removed");
    assert!(keeper.config().write_only.is_empty());
    let opened = Repository::open(Arc::new(pair.disk.clone()), CLIENT_PASSWORD);
    assert!(matches!(opened, Err(StoreError::WrongPassword { .. })), "{opened:?}");
    // The page says so: such a client cannot see whether its key counts.
    pair.disk.create(&name, &kept).expect("put back");
    assert_eq!(keeper.key_slots_unlisted().expect("slots"), [pair.key]);
    pair.back_up();
    pair.assert_sound();
}

#[test]
fn after_a_new_master_key_the_client_needs_a_new_one_and_goes_on_with_it() {
    let mut pair = Pair::new();
    plant(&pair.keeper);
    pair.back_up();
    let name = ObjectName::Key(pair.key);
    let kept = pair.disk.read(&name, name.bytes_max()).expect("the slot");
    let rotation = pair.keeper.repository().rotate(PASSWORD, &label(), Argon2Cost::TEST).expect("rotated");
    assert!(rotation.invalidated.contains(&pair.key));
    let opened = Repository::open(Arc::new(pair.disk.clone()), CLIENT_PASSWORD);
    assert!(matches!(opened, Err(StoreError::WrongPassword { .. })), "{opened:?}");
    pair.assert_sound();

    pair.key = add_key(&pair.keeper, "test");
    pair.keeper.write("new", b"new");
    let after = pair.back_up().statistics;
    assert_eq!((after.files_new, after.files_unchanged), (1, 41));
    let epochs: Vec<u32> =
        pair.keeper.repository().manifests().expect("manifests")[0].containers.iter().map(|r| r.epoch.0).collect();
    assert!(epochs.contains(&1) && epochs.contains(&2), "{epochs:?}");
    pair.assert_sound();

    // The old key, put back, cannot read what was committed since.
    pair.keeper.repository().remove_key(pair.key).expect("removed");
    pair.disk.create(&name, &kept).expect("put back");
    let options = pair.options();
    let error = pair.try_back_up(&options).expect_err("an old key");
    assert!(error.to_string().contains("another key"), "{error}");
    assert!(pair.disk.read(&Original::Key(pair.key).copy(), 1 << 20).is_err());
    pair.assert_sound();
}
