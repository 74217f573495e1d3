//! The engine against a plain copy: random trees, random edits, backups, forgetting and restores, in two series at
//! once.
//!
//! After every step that writes to the repository each live snapshot restores to exactly the tree that was backed up,
//! `check` finds nothing reading all data, every chunk number is needed in one stretch of its series, and forgetting
//! left exactly the bytes that its dry run had stated. What is deleted and kept for some days holds exactly the bytes
//! that come back when those are over. Series borrow of each other, where loans are not refused, and each is forgotten
//! and maintained beside the others; what is borrowed is taken over now and then.
//!
//! `SILTSTONE_MODEL_CASES=500 cargo test -p siltstone-engine --test all model::` runs for longer.

use crate::common::guarded::refusing_after;
use crate::common::policy::CHUNK_BY_CHUNK;
use crate::common::{self, Sandbox, resources, tree};
use crate::edit::{Edit, Text, any_edits};
use proptest::prelude::*;
use proptest::sample::Index;
use siltstone_engine::backup::{self, BackupOptions, Borrow, Reused, Source};
use siltstone_engine::check::ReadData;
use siltstone_engine::delta::{DEPTH_DEFAULT, Deltas};
use siltstone_engine::forget::{ForgetOptions, ForgetSummary};
use siltstone_engine::maintain::{self, MIGRATE_THRESHOLD_DEFAULT, Recompression};
use siltstone_engine::restore::{self};
use siltstone_engine::{EntryAction, Notice, Observer, Resources};
use siltstone_store::catalog::EntryPath;
use siltstone_store::storage::{NameKind, SimulatedDisk};
use siltstone_store::{SnapshotId, Time};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;

/// Cases of an ordinary run; some 0.1 s each.
const CASES: u32 = 60;
const THRESHOLDS: [f64; 4] = [0.0, 0.2, 0.6, 1.0];
/// Which way deltas point, and when containers are split.
const LAYOUTS: [(Deltas, f64); 8] = [
    (Deltas::Reverse { depth: DEPTH_DEFAULT }, MIGRATE_THRESHOLD_DEFAULT),
    (Deltas::Reverse { depth: 2 }, 0.0),
    (Deltas::Reverse { depth: 1 }, 1.0),
    (Deltas::Off, 0.0),
    (Deltas::Off, 0.5),
    (Deltas::Forward { depth: 1 }, 0.0),
    (Deltas::Forward { depth: 3 }, MIGRATE_THRESHOLD_DEFAULT),
    (CHUNK_BY_CHUNK, 0.5),
];
const SERIES: [&str; 3] = ["one", "two", "three"];

#[derive(Clone, Debug)]
enum Step {
    /// Edit the tree of a series, then back it up.
    Backup {
        series: usize,
        edits: Vec<Edit>,
        force: bool,
        has_cache: bool,
        memory_mib: u64,
        layout: usize,
        migrate: bool,
        /// How many series further the one is that is borrowed of; 0: of none that is named.
        lender: usize,
        /// The storage takes no loan after so many.
        loans: u32,
    },
    /// All that a series has goes away, or comes back; then it is backed up.
    ComeOrGo { series: usize, has_cache: bool, layout: usize, migrate: bool, lender: usize },
    /// Settle what backups left behind; encode all once more at this level, unless that is 0.
    Maintain { layout: usize, owns: bool, level: u8 },
    /// Forget those live snapshots whose bit is set.
    Forget { chosen: u16, threshold: usize },
    /// Mark those live snapshots whose bit is set as deleted, for so many days.
    Mark { chosen: u16, days: i64, threshold: usize },
    /// Days go by; those whose time is over are removed by the next `forget`.
    PassDays { days: i64, threshold: usize },
    /// Bring those deleted snapshots back whose bit is set.
    Undelete { chosen: u16 },
    /// Restore a snapshot over what an earlier such step left, removing what does not belong.
    RestoreOver { chosen: Index },
    /// The index kept on this machine is lost.
    LoseCache,
}

fn any_step() -> impl Strategy<Value = Step> {
    let memory_mib = prop_oneof![Just(160u64), Just(200), Just(512)];
    let backup = (0..SERIES.len(), any_edits(), any::<bool>(), prop::bool::weighted(0.8), memory_mib, any_layout());
    let loans = prop_oneof![1 => 0..2u32, 4 => Just(u32::MAX)];
    let backup = (backup, prop::bool::weighted(0.8), 0..SERIES.len(), loans).prop_map(
        |((series, edits, force, has_cache, memory_mib, layout), migrate, lender, loans)| Step::Backup {
            series,
            edits,
            force,
            has_cache,
            memory_mib,
            layout,
            migrate,
            lender,
            loans,
        },
    );
    let forget = (any::<u16>(), 0..THRESHOLDS.len()).prop_map(|(chosen, threshold)| Step::Forget { chosen, threshold });
    let (is_likely, any_series) = (prop::bool::weighted(0.8), 0..SERIES.len());
    let come_or_go = (any_series.clone(), is_likely, any_layout(), is_likely, any_series).prop_map(
        |(series, has_cache, layout, migrate, lender)| Step::ComeOrGo { series, has_cache, layout, migrate, lender },
    );
    prop_oneof![
        14 => backup,
        8 => come_or_go,
        4 => forget,
        3 => (any::<u16>(), 0..5i64, 0..THRESHOLDS.len())
            .prop_map(|(chosen, days, threshold)| Step::Mark { chosen, days, threshold }),
        2 => (0..5i64, 0..THRESHOLDS.len()).prop_map(|(days, threshold)| Step::PassDays { days, threshold }),
        2 => any::<u16>().prop_map(|chosen| Step::Undelete { chosen }),
        2 => any::<Index>().prop_map(|chosen| Step::RestoreOver { chosen }),
        1 => Just(Step::LoseCache),
        4 => (any_layout(), any::<bool>(), prop_oneof![2 => Just(0), 1 => 1..=6u8])
            .prop_map(|(layout, owns, level)| Step::Maintain { layout, owns, level }),
    ]
}

/// Mostly what users have by default.
fn any_layout() -> impl Strategy<Value = usize> {
    prop_oneof![4 => Just(0), 3 => 1..LAYOUTS.len()]
}

/// Chunks that backups of all cases took back from snapshots before the last.
static TAKEN_BACK: AtomicU64 = AtomicU64::new(0);

/// Chunks that backups of all cases borrowed.
static BORROWED: AtomicU64 = AtomicU64::new(0);

/// Backups of all cases that ended because a loan was refused.
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// Series of all cases that took over what they had borrowed.
static TAKEN_OVER: AtomicU64 = AtomicU64::new(0);

/// Deleted snapshots whose space was stated and compared.
static HELD: AtomicU64 = AtomicU64::new(0);
/// Seconds.
const DAY: i64 = 24 * 60 * 60;
/// The first day, far ahead of the clock by which maintenance ends marks.
const FIRST_DAY: i64 = 1 << 24;

/// A live snapshot and the tree it must restore to.
struct Live {
    id: SnapshotId,
    series: usize,
    tree: tree::Tree,
}

struct Model {
    sandbox: Sandbox,
    disk: SimulatedDisk,
    live: Vec<Live>,
    /// Those marked as deleted, and the day from which on they may go.
    deleted: Vec<(Live, i64)>,
    /// The day it is.
    today: i64,
    /// Where snapshots are restored over one another.
    scratch: TempDir,
}

impl Model {
    fn new() -> Self {
        let disk = SimulatedDisk::new();
        let sandbox = Sandbox::on(Arc::new(disk.clone()));
        let model = Self { sandbox, disk, live: Vec::new(), deleted: Vec::new(), today: FIRST_DAY, scratch: folder() };
        for series in 0..SERIES.len() {
            std::fs::create_dir(model.source(series)).expect("a source");
        }
        model
    }

    fn source(&self, series: usize) -> PathBuf {
        self.sandbox.folder.path().join(SERIES[series])
    }

    fn run(&mut self, step: &Step) {
        match step {
            Step::Backup { series, edits, force, has_cache, memory_mib, layout, migrate, lender, loans } => {
                let source = self.source(*series);
                if *lender > 0 {
                    take_files(&self.source((series + lender) % SERIES.len()), &source);
                }
                for edit in edits {
                    edit.apply(&source);
                }
                let (deltas, migrate_threshold) = LAYOUTS[*layout];
                let options = self
                    .sandbox
                    .options()
                    .with_series(Some(SERIES[*series].into()))
                    .with_force(*force)
                    .with_deltas(deltas)
                    .with_migrate(*migrate)
                    .with_migrate_threshold(migrate_threshold)
                    .with_borrow(self.borrow(*series, *lender));
                let resources = resources().with_memory_bytes(memory_mib << 20);
                self.back_up(*series, &options, resources.with_cache(has_cache.then(|| self.cache())), *loans);
                self.verify();
            }
            Step::ComeOrGo { series, has_cache, layout, migrate, lender } => {
                come_or_go(&self.source(*series));
                let (deltas, migrate_threshold) = LAYOUTS[*layout];
                let options = self
                    .sandbox
                    .options()
                    .with_series(Some(SERIES[*series].into()))
                    .with_deltas(deltas)
                    .with_migrate(*migrate)
                    .with_migrate_threshold(migrate_threshold)
                    .with_borrow(self.borrow(*series, *lender));
                self.back_up(*series, &options, resources().with_cache(has_cache.then(|| self.cache())), u32::MAX);
                self.verify();
            }
            Step::Maintain { layout, owns, level } => {
                self.maintain(*layout, *owns, *level);
                self.verify();
            }
            Step::Forget { chosen, threshold } => {
                self.forget(*chosen, 0, THRESHOLDS[*threshold]);
                self.verify();
            }
            Step::Mark { chosen, days, threshold } => {
                self.forget(*chosen, *days, THRESHOLDS[*threshold]);
                self.verify();
            }
            Step::PassDays { days, threshold } => {
                self.today += days;
                self.forget(0, 0, THRESHOLDS[*threshold]);
                self.verify();
            }
            Step::Undelete { chosen } => {
                self.undelete(*chosen);
                self.verify();
            }
            Step::RestoreOver { chosen } if !self.live.is_empty() => {
                let live = &self.live[chosen.index(self.live.len())];
                let found = self.restored(live, self.scratch.path(), true);
                assert_same(&found, &live.tree, "restored over another snapshot");
            }
            Step::RestoreOver { .. } => {}
            Step::LoseCache => drop(std::fs::remove_dir_all(self.cache())),
        }
    }

    /// The series that a backup of this one borrows of: the one so much further, if that lends.
    fn borrow(&self, series: usize, lender: usize) -> Borrow {
        let name = SERIES[(series + lender) % SERIES.len()];
        let repository = self.sandbox.repository();
        let manifest = repository.manifest(repository.keys().series_id(name)).expect("readable");
        let lends = manifest.is_some_and(|manifest| manifest.lends);
        if lender > 0 && lends { Borrow::From(name.to_owned()) } else { Borrow::Auto }
    }

    fn cache(&self) -> PathBuf {
        self.sandbox.folder.path().join("cache")
    }

    fn maintain(&self, layout: usize, owns: bool, level: u8) {
        let (deltas, threshold) = LAYOUTS[layout];
        let options = self.sandbox.migrate_options().with_deltas(deltas).with_threshold(threshold).with_owns(owns);
        let recompression = (level > 0).then(|| Recompression::all_at(level.into()));
        let options = options.with_recompression(recompression);
        let borrowers = || {
            let manifests = self.sandbox.repository().manifests().expect("manifests");
            manifests.iter().filter(|manifest| !manifest.imports.is_empty()).count() as u64
        };
        TAKEN_OVER.fetch_add(if owns { borrowers() } else { 0 }, Ordering::Relaxed);
        let heard = resources().with_observer(Arc::new(Complain));
        maintain::maintain(&self.sandbox.repository(), &options, &heard).expect("maintenance");
        assert!(!owns || borrowers() == 0, "all is taken over");
        for manifest in self.sandbox.repository().manifests().expect("manifests") {
            assert_eq!(manifest.unsettled.len(), 0);
            assert!(manifest.containers.iter().all(|record| record.level >= level));
        }
    }

    /// Backs a series up, to a storage that takes so many loans.
    fn back_up(&mut self, series: usize, options: &BackupOptions, resources: Resources, loans: u32) {
        let resources = resources.with_observer(Arc::new(NoNotSettled));
        let source = self.source(series);
        let storage = refusing_after(loans, NameKind::Loan, self.disk.clone());
        let repository = self.sandbox.at(storage).repository();
        let backed_up = backup::backup(&repository, Source::Paths(vec![source.clone()]), options, &resources);
        if loans < u32::MAX && backed_up.is_err() {
            REFUSED.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let summary = backed_up.expect("a backup");
        assert_eq!(summary.statistics.problems, 0);
        BORROWED.fetch_add(summary.borrowed.chunks, Ordering::Relaxed);
        TAKEN_BACK.fetch_add(summary.reused.chunks, Ordering::Relaxed);
        assert!(options.deltas != CHUNK_BY_CHUNK || summary.reused == Reused::default());
        let id = summary.snapshot.expect("a snapshot");
        self.live.push(Live { id, series, tree: tree::read(&source) });
    }

    /// Forgets those chosen, and ends the marks that are over: at once, or marked for so many `days`.
    fn forget(&mut self, chosen: u16, days: i64, threshold: f64) {
        let (gone, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.live).into_iter().enumerate().partition(|(at, _)| chosen >> at & 1 == 1);
        let ids: Vec<_> = gone.iter().map(|(_, live)| live.id).collect();
        self.live = kept.into_iter().map(|(_, live)| live).collect();
        let ended = self.deleted.extract_if(.., |(_, until)| *until <= self.today).count() as u64;
        if days > 0 {
            self.deleted.extend(gone.into_iter().map(|(_, live)| (live, self.today + days)));
        }
        let marking = self.sandbox.marking(self.today * DAY, days.unsigned_abs() * DAY.unsigned_abs());
        let options = |dry_run, threshold| marking.clone().with_rewrite_threshold(threshold).with_dry_run(dry_run);
        let before = self.sandbox.bytes();
        let (removed, marked) = if days > 0 { (0, ids.len() as u64) } else { (ids.len() as u64, 0) };
        for other in THRESHOLDS {
            let stated = self.sandbox.try_forget(&ids, &options(true, other)).expect("a dry run");
            assert_eq!((stated.bytes_before, stated.snapshots_removed), (before, removed));
            assert_eq!((stated.snapshots_marked, stated.snapshots_ended), (marked, ended));
        }
        assert_eq!(self.sandbox.bytes(), before, "dry runs write nothing");
        let stated = self.sandbox.try_forget(&ids, &options(true, threshold)).expect("a dry run");
        let done = self.sandbox.try_forget(&ids, &options(false, threshold)).expect("forgetting");
        assert_eq!(done, stated);
        assert_eq!(self.sandbox.bytes(), stated.bytes_after);
        self.verify_held(&done, &options(false, threshold));
    }

    /// Bytes that deleted snapshots are said to hold are what would come back, were all of them to end now.
    fn verify_held(&self, done: &ForgetSummary, options: &ForgetOptions) {
        assert_eq!(done.held.snapshots, self.deleted.len() as u64);
        if done.held.snapshots == 0 {
            return;
        }
        let later = self.sandbox.at(common::faults::copy(&self.disk));
        let now = Time { seconds: i64::MAX, nanoseconds: 0 };
        let marking = options.marking.clone().with_now(now);
        let ended = later.try_forget(&[], &options.clone().with_marking(marking)).expect("ending all");
        assert_eq!((ended.snapshots_ended, ended.held.snapshots), (done.held.snapshots, 0));
        assert_eq!(Some(ended.bytes_returned()), done.held.bytes);
        HELD.fetch_add(done.held.snapshots, Ordering::Relaxed);
    }

    fn undelete(&mut self, chosen: u16) {
        let (back, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.deleted).into_iter().enumerate().partition(|(at, _)| chosen >> at & 1 == 1);
        self.deleted = kept.into_iter().map(|(_, deleted)| deleted).collect();
        let ids: Vec<_> = back.iter().map(|(_, (live, _))| live.id).collect();
        assert_eq!(self.sandbox.try_undelete(&ids).expect("undeleting"), ids.len() as u64);
        self.live.extend(back.into_iter().map(|(_, (live, _))| live));
    }

    /// All that holds after every step.
    fn verify(&self) {
        let report = self.sandbox.check(ReadData::All);
        assert_eq!(report.findings, []);
        let there = self.live.len() + self.deleted.len();
        assert_eq!((report.snapshots, report.orphans), (there as u64, 0));
        assert_eq!(
            (self.sandbox.snapshots().len(), self.sandbox.deleted().len()),
            (self.live.len(), self.deleted.len())
        );
        for manifest in self.sandbox.repository().manifests().expect("manifests") {
            manifest.verify_intervals().expect("the interval property");
            assert!(manifest.faults().is_empty());
            assert!(manifest.lease.is_none());
        }
        for live in &self.live {
            let target = folder();
            let found = self.restored(live, target.path(), false);
            assert_same(&found, &live.tree, "restored");
        }
    }

    /// Restores what lies below the source's folder, that folder becoming the target.
    fn restored(&self, live: &Live, target: &Path, delete: bool) -> tree::Tree {
        let below = common::entry_path(&self.source(live.series));
        let options = self.sandbox.restore_options(target).with_below(Some(below)).with_delete(delete);
        let view = self.sandbox.view(live.id);
        let summary = restore::restore(
            &self.sandbox.repository(),
            &view,
            &options,
            &resources().with_observer(Arc::new(Complain)),
        )
        .expect("a restore");
        assert_eq!(summary.problems, 0);
        tree::read(target)
    }
}

/// Nothing may keep a backup from settling what it leaves behind.
struct NoNotSettled;

impl Observer for NoNotSettled {
    fn notice(&self, notice: &Notice) {
        assert!(!matches!(notice, Notice::NotSettled { .. } | Notice::PassedOver { .. }), "{notice:?}");
    }
}

/// Tells problems to whoever reads a failed test.
struct Complain;

impl Observer for Complain {
    fn problem(&self, problem: &siltstone_engine::fs::Problem) {
        eprintln!("{problem}");
    }

    fn entry(&self, _: &EntryPath, _: EntryAction, _: u64) {}
}

/// Copies files into a tree that another one has at its top, where nothing is in their place.
fn take_files(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("a list") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        let is_free = std::fs::symlink_metadata(&target).is_err();
        if is_free && entry.file_type().expect("a type").is_file() {
            std::fs::write(target, std::fs::read(entry.path()).unwrap_or_default()).expect("written");
        }
    }
}

/// Moves all that is in the tree elsewhere, as if it were not mounted; or back, where its place is free, if something
/// is there.
fn come_or_go(root: &Path) {
    let away = root.with_extension("away");
    std::fs::create_dir_all(&away).expect("made");
    let names = |folder: &Path| -> Vec<_> {
        std::fs::read_dir(folder).expect("a list").map(|entry| entry.expect("an entry").file_name()).collect()
    };
    let (from, to, names) = match names(&away) {
        none if none.is_empty() => (root, away.as_path(), names(root)),
        some => (away.as_path(), root, some),
    };
    for name in names.iter().filter(|name| std::fs::symlink_metadata(to.join(name)).is_err()) {
        std::fs::rename(from.join(name), to.join(name)).expect("moved");
    }
}

fn folder() -> TempDir {
    TempDir::new().expect("a temporary folder")
}

/// Compares all but the folder itself, which the target was before.
fn assert_same(found: &tree::Tree, wanted: &tree::Tree, what: &str) {
    let mut differences = tree::differences(found, wanted);
    differences.retain(|line| !line.starts_with(": "));
    assert!(differences.is_empty(), "{what}:\n{}", differences.join("\n"));
}

/// Steps that borrow, are refused a loan, take over, take back and keep what is deleted, each for certain.
fn every_kind_of_step() -> Vec<Step> {
    let backup = |series, name, lender, loans| Step::Backup {
        series,
        edits: vec![Edit::Write { name, text: Text::noise(name as u64, 200_000) }],
        force: true,
        has_cache: true,
        memory_mib: 512,
        layout: 0,
        migrate: true,
        lender,
        loans,
    };
    let come_or_go = || Step::ComeOrGo { series: 0, has_cache: true, layout: 0, migrate: true, lender: 0 };
    vec![
        backup(0, 9, 0, u32::MAX),
        backup(2, 11, 1, 0),
        backup(2, 11, 1, u32::MAX),
        come_or_go(),
        come_or_go(),
        Step::Mark { chosen: 1, days: 3, threshold: 1 },
        Step::Maintain { layout: 0, owns: true, level: 3 },
    ]
}

#[test]
fn every_live_snapshot_is_what_was_backed_up() {
    let mut model = Model::new();
    for step in &every_kind_of_step() {
        model.run(step);
    }
    for (count, what) in [
        (&TAKEN_BACK, "taken back"),
        (&HELD, "kept though deleted"),
        (&BORROWED, "borrowed"),
        (&REFUSED, "refused a loan"),
        (&TAKEN_OVER, "taken over"),
    ] {
        assert!(count.load(Ordering::Relaxed) > 0, "nothing was ever {what}");
    }
    let steps = prop::collection::vec(any_step(), 1..18);
    common::for_each_drawn(common::random_steps(CASES), &steps, |steps| {
        let mut model = Model::new();
        for step in &steps {
            model.run(step);
        }
    });
}
