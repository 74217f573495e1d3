//! Whole commands at both ends of a loan, beside each other in random orders of their calls, some of them killed: no
//! snapshot of any series ever loses a chunk, and what nobody needs any more goes with the next maintenance.

use crate::common::faults::{copy, is_full};
use crate::common::scene::Scene;
use crate::common::{PASSWORD, noise, resources};
use siltstone_engine::EngineError;
use siltstone_engine::backup::{self, Borrow, Source};
use siltstone_engine::check::ReadData;
use siltstone_engine::forget;
use siltstone_engine::maintain;
use siltstone_engine::snapshots::{self, SnapshotView};
use siltstone_store::SnapshotId;
use siltstone_store::repository::Repository;
use siltstone_store::storage::scheduled::{Bounds, Program, Schedule, explore_at_random};
use siltstone_store::storage::{ObjectName, SimulatedDisk};

const FILES: u64 = 16;
/// Schedules of an ordinary run, and where all is asked for, as `cargo xtask test --full` does.
const SCHEDULES: [u64; 2] = [25, 1000];
const BOUNDS: Bounds = Bounds { preemptions: 60, stops: 1 };

/// A command on the repository as a process of its own finds it.
type Command<'s> = &'s (dyn Fn(&Repository) -> Result<(), EngineError> + Sync);

/// A lender with two snapshots that have half their files in common, and a series that borrows what the newer has.
struct Lent {
    scene: Scene,
    old: SnapshotId,
    new: SnapshotId,
    borrower: SnapshotId,
}

impl Lent {
    fn new() -> Self {
        let mut scene = Scene::new();
        let snapshot = |scene: &mut Scene, series: &str, seed: u64| {
            for file in 0..FILES {
                let seed = if file % 2 == 0 { file } else { seed + file };
                scene.sandbox.write(&format!("shared/{file}"), &noise(seed, 4000));
            }
            let id = back_up(scene, series, &scene.sandbox.repository()).expect("a backup");
            scene.trees.insert(id, scene.source());
            id
        };
        let old = snapshot(&mut scene, "lender", 100);
        let new = snapshot(&mut scene, "lender", 200);
        let borrower = snapshot(&mut scene, "borrower", 200);
        Self { scene, old, new, borrower }
    }

    fn forget(&self, repository: &Repository, ids: &[SnapshotId]) -> Result<(), EngineError> {
        let views = snapshots::list(repository, &snapshots::SnapshotFilter::default())?;
        let keys: Vec<_> = views.iter().filter(|view| ids.contains(&view.snapshot.id)).map(SnapshotView::key).collect();
        let options = self.scene.sandbox.forget_options(false).with_allow_remove_all(true).with_rewrite_threshold(0.0);
        forget::forget(repository, &keys, &options, &resources()).map(drop)
    }

    fn maintain(&self, repository: &Repository, owns: bool) -> Result<(), EngineError> {
        let options = self.scene.sandbox.migrate_options().with_owns(owns).with_take_over(true);
        maintain::maintain(repository, &options, &resources()).map(drop)
    }

    /// Runs commands beside each other. `taken` are the snapshots that they remove; all others must be there.
    fn beside<const ACTORS: usize>(&self, commands: [Command<'_>; ACTORS], taken: &[SnapshotId]) {
        explore_at_random(BOUNDS, SCHEDULES[usize::from(is_full())], |schedule| {
            let disk = copy(&self.scene.disk);
            let results = run(schedule, &disk, commands);
            let story = || format!("they ended in {results:?}, under this schedule:\n{}", schedule.story());
            for error in results.iter().filter_map(|result| result.as_ref().err()) {
                let lost_the_race = matches!(error, EngineError::Store(error) if error.is_lost_race());
                let was_killed = format!("{error:?}").contains("the process was killed");
                assert!(lost_the_race || was_killed, "{}", story());
            }
            for found in [disk.another_process(), disk.crash(SimulatedDisk::NOTHING_REACHED), disk.crash(7)] {
                let there = self.scene.assert_sound(&found, &story());
                let lost = self.scene.trees.keys().find(|id| !there.contains(id) && !taken.contains(id));
                assert!(lost.is_none(), "{lost:?} is lost; {}", story());
                self.assert_nothing_leaks(&found, &story());
            }
        });
    }

    /// Once all snapshots are forgotten and all series maintained, no container and no loan is left.
    fn assert_nothing_leaks(&self, disk: &SimulatedDisk, story: &str) {
        let sandbox = self.scene.sandbox.at(disk.clone());
        let repository = sandbox.repository();
        let all: Vec<_> = sandbox.snapshots().iter().map(|view| view.snapshot.id).collect();
        // Whoever was killed may have left a lease and a loan, which the next writer of its series removes.
        back_up(&self.scene, "third", &repository).expect("a backup");
        let all: Vec<_> = sandbox.snapshots().iter().map(|view| view.snapshot.id).chain(all).collect();
        self.maintain(&repository, false).expect("maintained");
        self.forget(&repository, &all).expect("forgotten");
        // The first round gives loans back, the second what was kept for them.
        (0..2).for_each(|_| self.maintain(&repository, false).expect("maintained"));
        let is_left = |name: &ObjectName| matches!(name, ObjectName::Container(..) | ObjectName::Loan(..));
        let left: Vec<ObjectName> = disk.names().into_iter().filter(is_left).collect();
        assert!(left.is_empty(), "{left:?} are left; {story}");
        assert_eq!(sandbox.check(ReadData::All).findings, [], "{story}");
    }
}

/// Runs the commands to their ends, each as a process of its own.
fn run<const ACTORS: usize>(
    schedule: &mut Schedule,
    disk: &SimulatedDisk,
    commands: [Command<'_>; ACTORS],
) -> Vec<Result<(), EngineError>> {
    let handles = schedule.handles::<ACTORS>(disk);
    let repositories = handles.map(|handle| Repository::open(handle, PASSWORD).expect("the repository opens"));
    let mut results = [const { None }; ACTORS];
    let mut programs = Vec::new();
    for ((repository, command), result) in repositories.iter().zip(commands).zip(&mut results) {
        programs.push(Box::new(move || *result = Some(command(repository))) as Program<'_>);
    }
    schedule.run::<ACTORS>(programs.try_into().unwrap_or_else(|_| unreachable!("one for each")));
    results.into_iter().flatten().collect()
}

fn back_up(scene: &Scene, series: &str, repository: &Repository) -> Result<SnapshotId, EngineError> {
    let borrow = if series == "lender" { Borrow::Never } else { Borrow::From("lender".to_owned()) };
    let options = scene.sandbox.options().with_series(Some(series.to_owned())).with_borrow(borrow);
    let options = options.with_take_over(true).with_force(true);
    let source = Source::Paths(vec![scene.sandbox.source()]);
    let summary = backup::backup(repository, source, &options, &resources())?;
    Ok(summary.snapshot.expect("a snapshot"))
}

#[test]
fn a_backup_that_borrows_beside_a_lender_that_forgets_all() {
    let lent = Lent::new();
    let (scene, gone) = (&lent.scene, [lent.old, lent.new]);
    lent.beside(
        [&|repository| back_up(scene, "third", repository).map(drop), &|repository| lent.forget(repository, &gone)],
        &gone,
    );
}

#[test]
fn borrowers_that_come_and_go_beside_a_lender_that_forgets() {
    let lent = Lent::new();
    let (scene, lenders, gone) = (&lent.scene, [lent.old, lent.new], [lent.borrower]);
    lent.beside(
        [
            &|repository| back_up(scene, "third", repository).map(drop),
            &|repository| lent.forget(repository, &gone),
            &|repository| lent.forget(repository, &lenders),
        ],
        &[lent.old, lent.new, lent.borrower],
    );
}

#[test]
fn handing_over_beside_a_lender_that_forgets_all() {
    let lent = Lent::new();
    let (scene, gone) = (&lent.scene, [lent.old, lent.new]);
    lent.beside(
        [&|repository| lent.maintain(repository, true), &|repository| lent.forget(repository, &gone), &|repository| {
            back_up(scene, "borrower", repository).map(drop)
        }],
        &gone,
    );
}
