//! Series that borrow of each other: what one machine has stored others do not store again, and nobody loses anything
//! by what another forgets.

use crate::checkpoints::StopsAfter;
use crate::common::log::Log;
use crate::common::tree::{self, Tree};
use crate::common::{Sandbox, noise};
use siltstone_engine::backup::{self, BackupOptions, BackupSummary, Borrow, CheckpointRule, Source};
use siltstone_engine::check::ReadData;
use siltstone_engine::forget::ForgetSummary;
use siltstone_engine::maintain::maintain;
use siltstone_engine::snapshots::SnapshotFilter;
use siltstone_engine::{Command, EngineError, Notice};
use siltstone_store::SnapshotId;
use siltstone_store::container::{CONTAINER_BYTES_DEFAULT, ContainerKind};
use siltstone_store::directory::Directory;
use siltstone_store::manifest::Manifest;
use siltstone_store::series::claimed_chunks;
use siltstone_store::storage::{Listing, ObjectName, SimulatedDisk, Storage};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Two machines with much in common, and what each of their snapshots had.
struct Machines {
    disk: SimulatedDisk,
    sandbox: Sandbox,
    trees: BTreeMap<SnapshotId, Tree>,
    log: Log,
}

/// Bytes of the files that both have.
const SHARED_BYTES: usize = 12 << 20;

impl Machines {
    fn new() -> Self {
        let disk = SimulatedDisk::new();
        let sandbox = Sandbox::on(Arc::new(disk.clone()));
        for file in 0..24 {
            sandbox.write(&format!("shared/{file}"), &noise(file, SHARED_BYTES / 24));
        }
        Self { disk, sandbox, trees: BTreeMap::new(), log: Log::default() }
    }

    fn options(&self, series: &str) -> BackupOptions {
        self.sandbox.options().with_series(Some(series.to_owned())).with_ignore_ctime(true)
    }

    fn back_up(&mut self, series: &str) -> BackupSummary {
        self.try_back_up(&self.options(series)).expect("a backup")
    }

    fn try_back_up(&mut self, options: &BackupOptions) -> Result<BackupSummary, EngineError> {
        let source = Source::Paths(vec![self.sandbox.source()]);
        let heard = self.sandbox.heard_by(&self.log);
        let summary = backup::backup(&self.sandbox.repository(), source, options, &heard)?;
        if let Some(id) = summary.snapshot {
            self.trees.insert(id, tree::read(&self.sandbox.source()));
        }
        Ok(summary)
    }

    fn manifest(&self, series: &str) -> Manifest {
        let repository = self.sandbox.repository();
        repository.manifest(repository.keys().series_id(series)).expect("readable").expect("a manifest")
    }

    fn data_bytes(&self, series: &str) -> u64 {
        let containers = self.manifest(series).containers.into_iter();
        containers.filter(|record| record.kind == ContainerKind::Data).map(|record| record.object_bytes).sum()
    }

    fn loans(&self) -> Vec<ObjectName> {
        let is_loan = |name: &ObjectName| matches!(name, ObjectName::Loan(..));
        self.disk.names().into_iter().filter(is_loan).collect()
    }

    fn forget(&mut self, ids: &[SnapshotId]) {
        self.sandbox.forget(ids, false);
        for id in ids {
            self.trees.remove(id);
        }
    }

    /// All snapshots restore to what they were made of, and a check finds nothing.
    fn assert_sound(&self) {
        for (id, tree) in &self.trees {
            assert_eq!(tree::differences(&self.sandbox.restored(*id), tree), [""; 0]);
        }
        assert_eq!(self.sandbox.check(ReadData::All).findings, []);
    }
}

#[test]
fn a_second_machine_stores_what_is_its_own() {
    let mut machines = Machines::new();
    machines.back_up("first");
    machines.sandbox.write("own", &noise(100, 300_000));
    let summary = machines.back_up("second");
    assert_eq!(summary.borrowed.plain_bytes, SHARED_BYTES as u64, "what came before the lender was known had waited");
    assert_eq!(summary.statistics.added_plain_bytes, 300_000);
    assert!(machines.data_bytes("second") < 310_000);
    let notices = machines.log.notices();
    assert!(notices.contains(&Notice::Borrowing { series: "first".to_owned() }), "{notices:?}");
    assert_eq!(machines.loans().len(), 1, "the loan of all is replaced by one of what is used");
    let (lender, borrower) = (machines.manifest("first"), machines.manifest("second"));
    assert!(lender.lends && borrower.imported().len() == summary.borrowed.chunks);
    machines.assert_sound();

    // The third finds the first, which stored what both have; what the second has of its own is too little to look for.
    let third = machines.back_up("third");
    assert!(third.statistics.added_plain_bytes < 300_000 + SHARED_BYTES as u64 / 5);
    assert_eq!(machines.manifest("third").lenders.len(), 1);
    assert_eq!(machines.loans().len(), 2);
    machines.assert_sound();
}

/// The first files are not the lender's, and there is more of them than may wait.
#[test]
fn what_waits_in_vain_is_stored_in_its_order() {
    let mut machines = Machines::new();
    machines.back_up("first");
    machines.sandbox.write("own/1", &noise(101, 3 << 20));
    machines.sandbox.write("own/2", &noise(102, 3 << 20));
    let options = machines.options("second");
    let (source, heard) = (Source::Paths(vec![machines.sandbox.source()]), machines.sandbox.heard_by(&machines.log));
    let resources = heard.with_memory_bytes(Command::Backup.memory_bytes_min(CONTAINER_BYTES_DEFAULT));
    let summary = backup::backup(&machines.sandbox.repository(), source, &options, &resources).expect("a backup");
    machines.trees.insert(summary.snapshot.expect("a snapshot"), tree::read(&machines.sandbox.source()));
    assert!(summary.borrowed.plain_bytes > SHARED_BYTES as u64 * 8 / 10, "{:?}", summary.borrowed);
    let all = summary.borrowed.plain_bytes + summary.statistics.added_plain_bytes;
    assert_eq!(all, (SHARED_BYTES + (6 << 20)) as u64);
    machines.assert_sound();
}

/// Nine series have a little of what a machine begins with; the tenth has all the rest.
#[test]
fn the_one_that_has_much_is_asked_after_many_that_have_little() {
    let mut machines = Machines::new();
    let (little, parts) = (800_000, 0..9);
    machines.sandbox.remove("shared");
    for part in parts.clone() {
        machines.sandbox.write("part", &noise(800 + part, little));
        machines.back_up(&format!("part {part}"));
    }
    machines.sandbox.remove("part");
    (0..24).for_each(|file| machines.sandbox.write(&format!("shared/{file}"), &noise(file, SHARED_BYTES / 24)));
    machines.back_up("much");
    for part in parts {
        machines.sandbox.write(&format!("parts/{part}"), &noise(800 + part, little));
    }
    let summary = machines.back_up("all");
    let most = (SHARED_BYTES + 8 * little) as u64;
    assert!(summary.borrowed.plain_bytes > most - most / 10, "{:?} of {most}", summary.borrowed);
    assert_eq!(machines.manifest("all").lenders.len(), 9, "eight that have little, and the one");
    machines.assert_sound();
}

#[test]
fn later_backups_go_on_with_what_is_borrowed() {
    let mut machines = Machines::new();
    machines.back_up("first");
    let borrowed = machines.back_up("second").borrowed;
    let again = machines.back_up("second");
    assert_eq!((again.statistics.chunks_new, again.borrowed.chunks), (0, 0));
    machines.sandbox.write("shared/3", &noise(200, 100_000));
    machines.sandbox.remove("shared/4");
    let changed = machines.back_up("second");
    assert!(changed.statistics.added_plain_bytes < 200_000, "{:?}", changed.statistics);
    std::fs::remove_dir_all(machines.sandbox.cache()).expect("a cache");
    let without_cache = machines.back_up("second");
    assert_eq!(without_cache.statistics.chunks_new, 0, "the index is read from the lender's containers");
    assert_eq!(machines.manifest("second").imported().len(), borrowed.chunks);
    machines.assert_sound();
}

#[test]
fn nothing_is_borrowed_if_it_is_not_wanted() {
    let mut machines = Machines::new();
    machines.back_up("first");
    let options = machines.options("second").with_borrow(Borrow::Never);
    let summary = machines.try_back_up(&options).expect("a backup");
    assert_eq!(summary.borrowed.chunks, 0);
    assert!(machines.data_bytes("second") > SHARED_BYTES as u64);
    assert_eq!(machines.loans(), []);
    let options = machines.options("third").with_borrow(Borrow::From("fourth".to_owned()));
    assert!(matches!(machines.try_back_up(&options), Err(EngineError::NoLender { .. })));
    let options = machines.options("third").with_borrow(Borrow::From("second".to_owned()));
    let summary = machines.try_back_up(&options).expect("a backup");
    assert_eq!(summary.statistics.added_plain_bytes, 0, "a lender that is named is asked from the first chunk on");
    machines.assert_sound();
}

#[test]
fn a_dry_run_makes_no_loan() {
    let mut machines = Machines::new();
    machines.back_up("first");
    let before = machines.disk.names();
    let options = machines.options("second").with_dry_run(true);
    let dry = machines.try_back_up(&options).expect("a dry run");
    assert_eq!(machines.disk.names(), before);
    let real = machines.back_up("second");
    assert_eq!(dry.borrowed, real.borrowed);
    // The identity of a snapshot is random, and its time another: compressed they differ by some bytes.
    let (dry, real) = (dry.statistics.added_stored_bytes, real.statistics.added_stored_bytes);
    assert!(dry.abs_diff(real) <= 128, "{dry} {real}");
}

#[test]
fn what_is_lent_outlives_the_lender_and_goes_with_the_last_who_needs_it() {
    let mut machines = Machines::new();
    let first = machines.back_up("first").snapshot.expect("a snapshot");
    let second = machines.back_up("second").snapshot.expect("a snapshot");
    machines.sandbox.remove("shared/7");
    let later = machines.back_up("second").snapshot.expect("a snapshot");
    machines.forget(&[first]);
    machines.assert_sound();
    assert!(machines.data_bytes("first") > SHARED_BYTES as u64 * 8 / 10);
    machines.forget(&[second]);
    machines.assert_sound();
    machines.forget(&[later]);
    assert_eq!(machines.loans(), []);
    assert_eq!(machines.data_bytes("first"), 0, "the lender's own forget is not waited for");
    assert!(machines.manifest("second").imports.is_empty());
    let repository = machines.sandbox.repository();
    assert!(claimed_chunks(&repository, repository.keys().series_id("first")).expect("listed").is_empty());
}

fn every_two_mebibytes() -> CheckpointRule {
    let every = std::time::Duration::from_secs(1 << 20);
    CheckpointRule::DEFAULT.with_every(every).with_bytes(2 << 20).with_bytes_least(1)
}

#[test]
fn checkpoints_name_what_they_borrow() {
    let mut machines = Machines::new();
    machines.back_up("first");
    machines.sandbox.write("zz", &noise(300, 8 << 20));
    let options = machines.options("second").with_checkpoint(Some(every_two_mebibytes()));
    let summary = machines.try_back_up(&options).expect("a backup");
    assert!(machines.log.notices().iter().any(|notice| matches!(notice, Notice::Checkpoint { .. })));
    assert!(summary.borrowed.chunks > 0);
    assert_eq!(machines.loans().len(), 1);
    machines.assert_sound();
    assert_eq!(machines.disk.list(Listing::Loans(machines.manifest("first").series)).expect("listed").len(), 1);
}

/// The checkpoint of a run that goes on covers the one that it began with, and needs what that one had borrowed.
#[test]
fn a_borrower_that_goes_on_from_a_checkpoint_keeps_what_it_borrowed() {
    let mut machines = Machines::new();
    machines.back_up("first");
    machines.sandbox.write("zz", &noise(300, 8 << 20));
    let options = machines.options("second").with_checkpoint(Some(every_two_mebibytes()));
    let source = || Source::Paths(vec![machines.sandbox.source()]);
    let stops = Arc::new(StopsAfter::bytes(SHARED_BYTES + (4 << 20)));
    let heard = machines.sandbox.resources().with_observer(stops);
    let error = backup::backup(&machines.sandbox.repository(), source(), &options, &heard).expect_err("interrupted");
    assert!(matches!(error, EngineError::Interrupted), "{error}");
    let borrowed = machines.manifest("second").imported().len();
    assert!(borrowed > 100, "{borrowed}");
    machines.assert_sound();

    let summary = machines.try_back_up(&options).expect("a backup");
    assert!(machines.log.notices().iter().any(|notice| matches!(notice, Notice::Checkpoint { .. })));
    assert!(summary.statistics.added_plain_bytes < 9 << 20, "{:?}", summary.statistics);
    assert_eq!(machines.manifest("second").imported().len(), borrowed);
    machines.assert_sound();
}

/// A borrowed chunk is alive in the lender for longer than it is needed there, and dies when that is found. The commit
/// then keeps it, and the same run rewrites the container that it is in.
#[test]
fn what_others_have_borrowed_survives_the_rewriting_of_its_container() {
    let mut machines = Machines::new();
    machines.sandbox.remove("shared");
    let write = |machines: &Machines, name: &str, seed, bytes| machines.sandbox.write(name, &noise(seed, bytes));
    write(&machines, "away", 901, 720_000);
    write(&machines, "kept/1", 902, 660_000);
    write(&machines, "kept/2", 903, 4_600_000);
    let mut ids = vec![machines.back_up("lender").snapshot.expect("a snapshot")];
    machines.sandbox.remove("away");
    write(&machines, "new", 904, 600_000);
    ids.push(machines.back_up("lender").snapshot.expect("a snapshot"));
    write(&machines, "away", 901, 720_000);
    ids.push(machines.back_up("lender").snapshot.expect("a snapshot"));
    machines.sandbox.remove("kept");
    machines.sandbox.remove("new");
    let options = machines.options("borrower").with_borrow(Borrow::From("lender".to_owned()));
    assert!(machines.try_back_up(&options).expect("a backup").borrowed.chunks > 0);

    machines.forget(&[ids[0], ids[2]]);
    let maintained = |machines: &Machines| {
        let (options, resources) = (machines.sandbox.migrate_options(), machines.sandbox.resources());
        maintain(&machines.sandbox.repository(), &options, &resources).expect("maintained");
    };
    maintained(&machines);
    machines.assert_sound();
    machines.sandbox.remove("away");
    write(&machines, "kept/2", 903, 4_600_000);
    write(&machines, "newer", 905, 300_000);
    machines.back_up("lender");
    machines.assert_sound();
    machines.forget(&[ids[1]]);
    machines.assert_sound();
    maintained(&machines);
    machines.assert_sound();
}

#[test]
fn a_checkpoint_stores_what_waits() {
    let mut machines = Machines::new();
    machines.back_up("first");
    machines.sandbox.write("aa", &noise(300, 5 << 20));
    let options = machines.options("second").with_checkpoint(Some(every_two_mebibytes()));
    let summary = machines.try_back_up(&options).expect("a backup");
    let notices = machines.log.notices();
    assert!(notices.iter().any(|notice| matches!(notice, Notice::Checkpoint { .. })), "{notices:?}");
    assert!(summary.borrowed.plain_bytes > SHARED_BYTES as u64 * 9 / 10, "then nothing waits: {:?}", summary.borrowed);
    machines.assert_sound();
}

#[test]
fn one_object_tells_whom_to_ask() {
    let mut machines = Machines::new();
    let directories = |machines: &Machines| machines.disk.list(Listing::Directories).expect("listed");
    machines.back_up("first");
    assert_eq!(directories(&machines).len(), 1);
    machines.back_up("second");
    machines.back_up("first");
    assert_eq!(directories(&machines)[0].name, ObjectName::Directory(1), "a borrower and a later backup add nothing");
    machines.sandbox.write("much", &noise(400, 20 << 20));
    machines.back_up("third");
    assert_eq!(directories(&machines).iter().map(|meta| meta.name).collect::<Vec<_>>(), [ObjectName::Directory(2)]);
    machines.disk.delete(&ObjectName::Directory(2)).expect("deleted");
    let summary = machines.back_up("fourth");
    assert_eq!(summary.borrowed.chunks, 0, "nobody is known any more");
    machines.back_up("fifth");
    machines.assert_sound();
}

#[test]
fn a_directory_that_is_damaged_is_passed_over_and_made_anew() {
    let mut machines = Machines::new();
    machines.back_up("first");
    machines.disk.delete(&ObjectName::Directory(1)).expect("deleted");
    machines.disk.put(&ObjectName::Directory(7), b"no directory").expect("put");
    machines.disk.barrier().expect("durable");
    assert_eq!(machines.back_up("second").borrowed.chunks, 0);
    let listed = machines.disk.list(Listing::Directories).expect("listed");
    assert_eq!(listed.iter().map(|meta| meta.name).collect::<Vec<_>>(), [ObjectName::Directory(8)]);
    assert!(machines.back_up("third").borrowed.chunks > 0);
    machines.assert_sound();
}

#[test]
fn a_loan_is_of_little_more_than_what_is_used() {
    let mut machines = Machines::new();
    machines.back_up("first");
    (0..12).for_each(|file| machines.sandbox.remove(&format!("shared/{file}")));
    machines.back_up("second");
    let repository = machines.sandbox.repository();
    let claimed = claimed_chunks(&repository, repository.keys().series_id("first")).expect("listed").len();
    let used = machines.manifest("second").imported().len();
    assert!(used > 100 && claimed <= used + (used / 16).max(64), "{claimed} claimed, {used} used");
    assert!(machines.manifest("first").lendable().len() > 3 * claimed / 2);
    assert!(!machines.manifest("second").lenders[0].has_surplus);
    machines.assert_sound();
}

#[test]
fn maintenance_makes_a_lost_directory_anew() {
    let mut machines = Machines::new();
    let first = machines.back_up("first").snapshot.expect("a snapshot");
    machines.back_up("second");
    let listed = |machines: &Machines| {
        let listed = machines.disk.list(Listing::Directories).expect("listed");
        listed.iter().map(|meta| meta.name).collect::<Vec<_>>()
    };
    machines.maintain();
    assert_eq!(listed(&machines), [ObjectName::Directory(1)], "it is what it should be");
    machines.disk.delete(&ObjectName::Directory(1)).expect("deleted");
    machines.disk.barrier().expect("durable");
    machines.maintain();
    assert_eq!(listed(&machines), [ObjectName::Directory(1)]);
    assert!(machines.back_up("third").borrowed.chunks > 0);
    machines.forget(&[first]);
    machines.maintain();
    let entries = Directory::newest(&machines.sandbox.repository()).expect("readable").entries;
    assert!(entries.is_empty(), "whoever has nothing left is not asked: {entries:?}");
    machines.assert_sound();
}

#[test]
fn what_is_borrowed_can_be_taken_over() {
    let mut machines = Machines::new();
    let first = machines.back_up("first").snapshot.expect("a snapshot");
    machines.back_up("second");
    let options = machines.sandbox.migrate_options().with_owns(true).with_piece_bytes(4 << 20);
    let summary =
        maintain(&machines.sandbox.repository(), &options, &machines.sandbox.resources()).expect("maintained");
    assert!(summary.bytes_written > SHARED_BYTES as u64 * 8 / 10);
    let borrower = machines.manifest("second");
    assert!(borrower.imports.is_empty() && borrower.lenders.is_empty());
    assert_eq!(machines.loans(), []);
    machines.assert_sound();
    machines.forget(&[first]);
    machines.assert_sound();
    assert_eq!(machines.data_bytes("first"), 0, "nobody needs it any more");
}

#[test]
fn maintenance_gives_back_what_is_needed_no_more() {
    let mut machines = Machines::new();
    machines.back_up("first");
    let all = machines.back_up("second").snapshot.expect("a snapshot");
    (0..12).for_each(|file| machines.sandbox.remove(&format!("shared/{file}")));
    machines.back_up("second");
    machines.forget(&[all]);
    let claimed = |machines: &Machines| {
        let repository = machines.sandbox.repository();
        claimed_chunks(&repository, repository.keys().series_id("first")).expect("listed").len()
    };
    let before = claimed(&machines);
    assert!(machines.manifest("second").lenders[0].has_surplus);
    machines.maintain();
    assert!(claimed(&machines) < before * 2 / 3);
    assert_eq!(claimed(&machines), machines.manifest("second").imported().len());
    assert!(!machines.manifest("second").lenders[0].has_surplus);
    machines.assert_sound();
}

impl Machines {
    /// Forgets, and holds what comes back against what was stated before.
    fn forget_as_stated(&mut self, ids: &[SnapshotId]) -> ForgetSummary {
        let stated = self.sandbox.forget(ids, true);
        let done = self.sandbox.forget(ids, false);
        assert_eq!((stated.bytes_before, stated.bytes_after), (done.bytes_before, done.bytes_after));
        assert_eq!(stated.containers_deleted, done.containers_deleted);
        let bytes: u64 = self.disk.list(Listing::All).expect("listed").iter().map(|meta| meta.bytes).sum();
        assert_eq!(bytes, done.bytes_after);
        for id in ids {
            self.trees.remove(id);
        }
        done
    }

    fn maintain(&self) {
        let (options, resources) = (self.sandbox.migrate_options(), self.sandbox.resources());
        maintain(&self.sandbox.repository(), &options, &resources).expect("maintained");
    }
}

#[test]
fn a_lender_gives_back_exactly_what_nobody_claims() {
    let mut machines = Machines::new();
    machines.sandbox.write("of the first alone", &noise(500, 6 << 20));
    let first = machines.back_up("first").snapshot.expect("a snapshot");
    machines.sandbox.remove("of the first alone");
    let second = machines.back_up("second").snapshot.expect("a snapshot");
    let done = machines.forget_as_stated(&[first]);
    let returned = done.bytes_before - done.bytes_after;
    assert!(returned > 6 << 20, "{returned}");
    let lender = machines.manifest("first");
    let borrowed = machines.manifest("second").borrowed_of(lender.series);
    assert_eq!(lender.lent, borrowed, "what is lent is what is claimed");
    machines.assert_sound();
    machines.maintain();
    assert_eq!(machines.manifest("first").lent, borrowed);
    machines.assert_sound();
    machines.forget_as_stated(&[second]);
    machines.maintain();
    assert!(machines.manifest("first").containers.is_empty() && machines.manifest("first").lent.is_empty());
    assert_eq!(machines.loans(), []);
    machines.assert_sound();
}

/// Ten versions of a tree, of which each fourth is another machine's first backup.
#[test]
fn borrowers_outlive_the_oldest_nine_tenths_of_their_lender_and_then_the_lender() {
    let mut machines = Machines::new();
    let (mut lent, mut borrowers) = (Vec::new(), Vec::new());
    for version in 0..10 {
        machines.sandbox.write(&format!("shared/{version}"), &noise(700 + version, SHARED_BYTES / 24));
        lent.push(machines.back_up("first").snapshot.expect("a snapshot"));
        if version % 4 == 1 {
            let summary = machines.back_up(&format!("borrower {version}"));
            assert!(summary.borrowed.plain_bytes > SHARED_BYTES as u64 / 2, "{:?}", summary.borrowed);
            borrowers.extend(summary.snapshot);
        }
    }
    assert_eq!(borrowers.len(), 3);
    machines.assert_sound();
    let (newest, oldest) = lent.split_last().expect("ten");
    let done = machines.forget_as_stated(oldest);
    assert!(done.bytes_after < done.bytes_before, "{done:?}");
    machines.assert_sound();
    machines.forget_as_stated(&[*newest]);
    machines.assert_sound();
    assert_eq!(machines.trees.len(), 3, "all borrowers restore");
    machines.forget_as_stated(&borrowers);
    machines.maintain();
    machines.assert_sound();
    assert_eq!((machines.data_bytes("first"), machines.loans()), (0, Vec::new()));
}

#[test]
fn what_is_lent_moves_with_its_container() {
    let mut machines = Machines::new();
    let first = machines.back_up("first").snapshot.expect("a snapshot");
    // Every second file is what the borrower needs, so that containers of the lender die in part.
    (0..24).step_by(2).for_each(|file| machines.sandbox.remove(&format!("shared/{file}")));
    machines.back_up("second");
    machines.sandbox.remove("shared");
    machines.sandbox.write("little", &noise(600, 400_000));
    machines.back_up("first");
    let ids = [first];
    let options = machines.sandbox.forget_options(false).with_rewrite_threshold(0.0);
    let done = machines.sandbox.try_forget(&ids, &options).expect("forgotten");
    machines.trees.remove(&first);
    assert!(done.containers_rewritten > 0);
    assert!(!machines.manifest("first").lent.is_empty());
    machines.assert_sound();
    machines.maintain();
    machines.assert_sound();
}

#[test]
fn what_is_lent_becomes_no_delta() {
    let mut machines = Machines::new();
    machines.back_up("first");
    machines.back_up("second");
    for file in 0..24 {
        let mut content = noise(file, SHARED_BYTES / 24);
        (0..content.len()).step_by(9000).for_each(|at| content[at] ^= 1);
        machines.sandbox.write(&format!("shared/{file}"), &content);
    }
    let summary = machines.back_up("first");
    let depth = summary.migration.deltas_kept;
    let all = machines.manifest("second").imported().len();
    assert!(depth * 4 < all, "{depth} of {all} became deltas");
    machines.assert_sound();
}

impl Machines {
    /// Takes `shared` out of the snapshots that the filter lets through, and holds what comes back against what was
    /// stated before.
    fn rewrite_as_stated(&mut self, filter: &SnapshotFilter) -> ForgetSummary {
        let options = self.sandbox.forget_options(false);
        let plan = self.sandbox.plan_rewrite_of(filter, "shared", &options).expect("a plan");
        let repository = self.sandbox.repository();
        let stated = plan.forecast(&repository, &self.sandbox.resources()).expect("stated");
        let done = plan.execute(&repository, &self.sandbox.resources()).expect("done");
        assert_eq!(stated, done);
        let bytes: u64 = self.disk.list(Listing::All).expect("listed").iter().map(|meta| meta.bytes).sum();
        assert_eq!(bytes, done.bytes_after);
        for view in self.sandbox.snapshots() {
            let id = view.snapshot.id;
            if let Some(old) = self.trees.keys().find(|old| old.0[..16] == id.0[..16] && **old != id).copied() {
                let mut tree = self.trees.remove(&old).expect("its tree");
                tree.retain(|name, _| !name.starts_with(b"shared"));
                self.trees.insert(id, tree);
            }
        }
        done
    }
}

/// The loan is of more than that: of what stays, too. Maintenance makes it smaller, and then the lender lets go.
#[test]
fn a_path_taken_out_of_borrower_and_lender_is_gone_from_both() {
    let mut machines = Machines::new();
    machines.sandbox.write("own", &noise(100, 3_000_000));
    machines.back_up("first");
    machines.back_up("second");
    let done = machines.rewrite_as_stated(&SnapshotFilter::default());
    assert_eq!(done.snapshots_rewritten, 2);
    machines.assert_sound();
    machines.maintain();
    machines.maintain();
    assert!(machines.manifest("first").lent.is_empty());
    assert!(machines.data_bytes("first") + machines.data_bytes("second") < 5_000_000);
    machines.assert_sound();
}

#[test]
fn a_path_taken_out_of_the_lender_alone_stays_with_the_borrower() {
    let mut machines = Machines::new();
    machines.sandbox.write("own", &noise(100, 300_000));
    machines.back_up("first");
    machines.sandbox.write("own", &noise(101, 300_000));
    machines.back_up("second");
    let only = |name: &str| SnapshotFilter::default().with_series(vec![name.to_owned()]);
    machines.rewrite_as_stated(&only("first"));
    let lender = machines.manifest("first");
    let borrowed = machines.manifest("second").borrowed_of(lender.series);
    assert!(!borrowed.is_empty() && borrowed.is_subset(&lender.lent), "what is borrowed stays");
    machines.assert_sound();
    let done = machines.rewrite_as_stated(&only("second"));
    assert!(done.bytes_returned() > i64::try_from(SHARED_BYTES).expect("few"), "{done:?}");
    assert!(machines.manifest("first").lent.is_empty(), "the lender lets go in the same run");
    machines.assert_sound();
}
