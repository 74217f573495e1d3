//! A series that borrows chunks beside the lender that deletes them: in every order, and with either of them killed,
//! what a borrower's snapshot needs is there; and once nobody needs it, nothing is left.

use super::series::{acquire_named, container, with_snapshot};
use super::{assert_under, found};
use crate::common::{init, open, snapshot};
use roaring::RoaringTreemap;
use siltstone_store::container::ContainerRecord;
use siltstone_store::manifest::{BorrowedRun, Import, Manifest};
use siltstone_store::repository::Repository;
use siltstone_store::series::{claimed_chunks, newest_manifest};
use siltstone_store::storage::scheduled::{Bounds, Schedule, explore_at_random, explore_one_in};
use siltstone_store::storage::{ObjectName, SimulatedDisk};
use siltstone_store::{ChunkNumber, ChunkRun, SeriesId, SnapshotId, StoreError, Time};
use std::sync::Arc;

const LENDER: &str = "lender";
const BORROWER: &str = "borrower";
/// The lender's snapshots, each with a chunk of its own.
const OLD: SnapshotId = SnapshotId([7; 32]);
const NEW: SnapshotId = SnapshotId([8; 32]);
const BORROWED: SnapshotId = SnapshotId([1; 32]);
/// The number of chunks that the lender has at first.
const CHUNKS: u64 = 2;

type Work = fn(&Repository) -> Result<(), StoreError>;

const BORROW: Work = |repository| borrow(repository, false);
const BORROW_TAKING_OVER: Work = |repository| borrow(repository, true);
const FORGET_OLD: Work = |repository| forget(repository, LENDER, &[OLD], false);
const FORGET_BOTH: Work = |repository| forget(repository, LENDER, &[OLD, NEW], false);
const FORGET_BOTH_TAKING_OVER: Work = |repository| forget(repository, LENDER, &[OLD, NEW], true);
const REPLACE: Work = replace_loan;
const FORGET_BORROWED: Work = |repository| forget(repository, BORROWER, &[BORROWED], false);

fn lender_with_snapshots() -> SimulatedDisk {
    let disk = SimulatedDisk::new();
    let repository = init(Arc::new(disk.clone()));
    for id in [OLD, NEW] {
        let mut writer = acquire_named(LENDER, &repository, 5, false).expect("a lease");
        let container = container(&repository, &writer).expect("a container");
        writer.put(&container).expect("a put");
        let mut next = with_snapshot(writer.manifest(), id, container.record);
        next.lends = true;
        writer.commit(next, false, Time::default()).expect("a commit");
    }
    disk
}

fn lender(repository: &Repository) -> SeriesId {
    repository.keys().series_id(LENDER)
}

/// A backup of what the lender has: what it may borrow it borrows, the rest it stores itself.
fn borrow(repository: &Repository, take_over: bool) -> Result<(), StoreError> {
    let mut writer = acquire_named(BORROWER, repository, 1, take_over)?;
    let lender = lender(repository);
    writer.add_lender(lender, Time::default())?;
    let first = writer.manifest().next_data;
    let wanted = BorrowedRun { chunks: ChunkRun { first, count: CHUNKS }, first_there: ChunkNumber(0) };
    let loan = writer.borrow_chunks(lender, &[wanted])?;
    let mut next = writer.manifest().clone();
    let mut needs = RoaringTreemap::new();
    for there in &loan.granted {
        let chunks = ChunkRun { first: next.next_data, count: 1 };
        next.imports.push(Import { lender: 0, run: BorrowedRun { chunks, first_there: ChunkNumber(there) } });
        needs.insert(next.next_data.0);
        next.next_data.0 += 1;
    }
    let place = next.lenders.iter_mut().find(|known| known.series == lender).expect("it was added");
    if loan.granted.is_empty() {
        Default::default()
    } else {
        place.loans.insert(loan.id)
    };
    next.push_snapshot(snapshot(BORROWED), &needs, &needs);
    writer.commit(next, false, Time::default())?;
    if loan.granted.is_empty() { writer.give_back(lender, &[loan.id]) } else { Ok(()) }
}

/// Makes a loan in place of the one that there is, of the same chunks.
fn replace_loan(repository: &Repository) -> Result<(), StoreError> {
    let mut writer = acquire_named(BORROWER, repository, 1, false)?;
    let lender = lender(repository);
    let runs: Vec<BorrowedRun> = writer.manifest().imports.iter().map(|import| import.run).collect();
    let loan = writer.borrow_chunks(lender, &runs)?;
    let mut next = writer.manifest().clone();
    let is_whole = next.borrowed_of(lender).is_subset(&loan.granted);
    let place = next.lenders.iter_mut().find(|known| known.series == lender).expect("it lends");
    let gone = if is_whole { std::mem::replace(&mut place.loans, [loan.id].into()) } else { [loan.id].into() };
    writer.commit(next, false, Time::default())?;
    writer.give_back(lender, &gone.into_iter().collect::<Vec<_>>())
}

/// Forgets snapshots, and what neither the series nor others need any more.
fn forget(repository: &Repository, series: &str, ids: &[SnapshotId], take_over: bool) -> Result<(), StoreError> {
    let mut writer = acquire_named(series, repository, 9, take_over)?;
    let mut next = writer.manifest().clone();
    next.remove_snapshots(&ids.iter().copied().collect());
    next.lent = (claimed_chunks(repository, writer.series())? & writer.manifest().kept()) - next.live();
    let kept = next.kept();
    next.keep_imports(&kept);
    let mut returned = Vec::new();
    for lender in next.lenders.iter_mut().filter(|_| next.imports.is_empty()) {
        returned.push((lender.series, std::mem::take(&mut lender.loans).into_iter().collect::<Vec<_>>()));
    }
    let is_kept = |record: &ContainerRecord| !record.numbers().is_disjoint(&kept);
    let (kept, dead) = next.containers.into_iter().partition(is_kept);
    next.containers = kept;
    writer.commit(next, false, Time::default())?;
    writer.delete(&dead)?;
    returned.iter().try_for_each(|(lender, loans)| writer.give_back(*lender, loans))
}

fn manifest_of(repository: &Repository, series: &str) -> Result<Option<Manifest>, StoreError> {
    Ok(newest_manifest(repository, repository.keys().series_id(series))?.map(|stored| stored.manifest))
}

/// The chunks that a borrower's snapshots lack.
fn lacking(repository: &Repository) -> Result<Vec<String>, StoreError> {
    let (Some(lender), Some(borrower)) = (manifest_of(repository, LENDER)?, manifest_of(repository, BORROWER)?) else {
        return Ok(Vec::new());
    };
    let mut lacking: Vec<String> = lender.faults().iter().chain(&borrower.faults()).map(ToString::to_string).collect();
    for number in borrower.live() {
        let Some((_, there)) = borrower.origin_of(ChunkNumber(number)) else { continue };
        let holds = |record: &&ContainerRecord| record.numbers().contains(there.0);
        let object = lender.containers.iter().find(holds).map(|record| record.object_name(lender.series));
        let is_there = object.is_some_and(|name| repository.storage().read(&name, name.bytes_max()).is_ok());
        if !is_there {
            lacking.push(format!("the lender's chunk {there}"));
        }
    }
    Ok(lacking)
}

/// Names the containers and loans that are left once both series have forgotten everything.
fn left_behind(disk: &SimulatedDisk, repository: &Repository) -> Result<Vec<ObjectName>, StoreError> {
    forget(repository, BORROWER, &[BORROWED], true)?;
    forget(repository, LENDER, &[OLD, NEW], true)?;
    let is_left = |name: &ObjectName| matches!(name, ObjectName::Container(..) | ObjectName::Loan(..));
    Ok(disk.names().into_iter().filter(is_left).collect())
}

/// Runs programs beside each other, and looks at what a borrower has then, also after the lender has forgotten all.
fn side_by_side<const ACTORS: usize>(schedule: &mut Schedule, before: &SimulatedDisk, works: [Work; ACTORS]) {
    let disk = before.crash(SimulatedDisk::ALL_REACHED);
    let repositories = schedule.handles::<ACTORS>(&disk).map(|handle| open(handle));
    let mut results: [Option<Result<(), StoreError>>; ACTORS] = [const { None }; ACTORS];
    let mut programs = Vec::new();
    for ((repository, work), result) in repositories.iter().zip(works).zip(&mut results) {
        programs.push(Box::new(move || *result = Some(work(repository))) as Box<dyn FnOnce() + Send + '_>);
    }
    schedule.run::<ACTORS>(programs.try_into().unwrap_or_else(|_| unreachable!("one for each")));
    let story = format!("they ended in {results:?}");
    for error in results.iter().flatten().filter_map(|result| result.as_ref().err()) {
        let lost_the_race = matches!(error, StoreError::LeaseHeld { .. } | StoreError::Fenced { .. });
        let was_killed = format!("{error:?}").contains("the process was killed");
        assert_under(schedule, lost_the_race || was_killed, &story);
    }
    for disk in found(&disk) {
        let repository = open(Arc::new(disk.clone()));
        let at_once = lacking(&repository);
        assert_under(schedule, matches!(&at_once, Ok(none) if none.is_empty()), &format!("{story}, {at_once:?}"));
        let later = forget(&repository, LENDER, &[OLD, NEW], true).and_then(|()| lacking(&repository));
        assert_under(schedule, matches!(&later, Ok(none) if none.is_empty()), &format!("{story}, later {later:?}"));
        let left = left_behind(&disk, &repository);
        assert_under(schedule, matches!(&left, Ok(none) if none.is_empty()), &format!("{story}, left: {left:?}"));
    }
}

fn every_order(before: &SimulatedDisk, works: [Work; 2]) {
    let trial = |schedule: &mut Schedule| side_by_side(schedule, before, works);
    // All where this is set, as `cargo xtask test --full` does.
    let one_in = if std::env::var_os("SILTSTONE_FULL").is_some() { 1 } else { 8 };
    let schedules = explore_one_in(one_in, super::ALIVE, trial) + explore_one_in(one_in, super::KILLED, trial);
    assert!(schedules > 100, "{schedules}");
    explore_at_random(Bounds { preemptions: 20, stops: 1 }, 100, trial);
    eprintln!("{schedules} schedules and 100 at random");
}

#[test]
fn a_borrower_beside_a_lender_that_forgets() {
    every_order(&lender_with_snapshots(), [BORROW, FORGET_OLD]);
}

#[test]
fn a_borrower_beside_a_lender_that_forgets_all() {
    every_order(&lender_with_snapshots(), [FORGET_BOTH, BORROW]);
}

#[test]
fn a_borrower_that_forgets_beside_its_lender() {
    let disk = lender_with_snapshots();
    borrow(&open(Arc::new(disk.clone())), false).expect("a backup");
    every_order(&disk, [FORGET_BORROWED, FORGET_BOTH]);
}

#[test]
fn a_loan_that_is_replaced_beside_its_lender() {
    let disk = lender_with_snapshots();
    borrow(&open(Arc::new(disk.clone())), false).expect("a backup");
    every_order(&disk, [REPLACE, FORGET_BOTH]);
}

#[test]
fn writers_that_take_over_at_both_ends() {
    let disk = lender_with_snapshots();
    let works = [BORROW, BORROW_TAKING_OVER, FORGET_OLD, FORGET_BOTH_TAKING_OVER];
    explore_at_random(Bounds { preemptions: 40, stops: 2 }, 400, |schedule| side_by_side(schedule, &disk, works));
}
