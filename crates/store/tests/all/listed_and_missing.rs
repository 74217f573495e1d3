//! A place that contradicts itself: it lists objects, and says that they are not there when they are read. A cluster of
//! MinIO was seen to do so for many seconds after all its nodes were killed and started again.

use crate::common::{holder, init, open};
use siltstone_store::manifest::BorrowedRun;
use siltstone_store::repository::Repository;
use siltstone_store::series::{LeaseRequest, SeriesWriter, claimed_chunks, newest_manifest};
use siltstone_store::storage::{Call, Guarded, ObjectName, Original, Outcome, SimulatedDisk, Storage, StorageError};
use siltstone_store::{ChunkNumber, ChunkRun, StoreError, Time};
use std::sync::Arc;

/// A disk that has no manifest for those who read.
fn contradicting(disk: &SimulatedDisk) -> Guarded<SimulatedDisk> {
    Guarded::new(disk.clone(), |call| match call {
        Call::Read(name @ (ObjectName::Manifest(..) | ObjectName::Copy(Original::Manifest(..)))) => {
            Outcome::Refused(StorageError::NotFound { name: *name })
        }
        _ => Outcome::Made,
    })
}

#[test]
fn a_manifest_that_is_listed_and_missing_is_told_as_such_and_not_to_be_repaired() {
    let disk = SimulatedDisk::new();
    let repository = init(Arc::new(disk.clone()));
    let writer = SeriesWriter::acquire(&repository, &LeaseRequest::new("series", holder(1), "backup"));
    let series = writer.expect("the lease").series();

    let contradicting = open(Arc::new(contradicting(&disk)));
    let error = newest_manifest(&contradicting, series).expect_err("it cannot be read");
    let text = error.to_string();
    assert!(error.is_damage() && !error.is_not_found(), "{text}");
    let StoreError::UnreadableSeries { source, .. } = error else { panic!("{text}") };
    assert!(matches!(*source, StoreError::ListedAndMissing { .. }), "{text}");
    assert!(text.contains("series/") && text.contains("run again") && !text.contains("silt repair"), "{text}");
    assert!(newest_manifest(&open(Arc::new(disk)), series).expect("it reads").is_some());
}

/// The lender would take what it cannot see for given back, and delete what is borrowed.
#[test]
fn a_loan_that_is_listed_and_missing_is_not_taken_for_given_back() {
    let disk = SimulatedDisk::new();
    let repository = init(Arc::new(disk.clone()));
    let acquire = |name| SeriesWriter::acquire(&repository, &LeaseRequest::new(name, holder(1), "backup"));
    let mut lender = acquire("lender").expect("the lease");
    let mut next = lender.manifest().clone();
    next.lends = true;
    lender.commit(next, true, Time::default()).expect("a commit");
    let mut borrower = acquire("borrower").expect("the lease");
    borrower.add_lender(lender.series(), Time::default()).expect("a commit");
    let chunks = ChunkRun { first: ChunkNumber(0), count: 3 };
    borrower.borrow_chunks(lender.series(), &[BorrowedRun { chunks, first_there: ChunkNumber(5) }]).expect("a loan");
    let claimed = |repository: &Repository| claimed_chunks(repository, lender.series());
    assert_eq!(claimed(&repository).expect("loans").iter().collect::<Vec<_>>(), [5, 6, 7]);

    let denying = Guarded::new(disk.clone(), |call| match call {
        Call::Read(name @ ObjectName::Loan(..)) => Outcome::Refused(StorageError::NotFound { name: *name }),
        _ => Outcome::Made,
    });
    let error = claimed(&open(Arc::new(denying))).expect_err("nobody knows what is claimed");
    assert!(matches!(error, StoreError::ListedAndMissing { .. }), "{error}");

    // One that goes between the list and the read was given back.
    let going = Guarded::new(disk.clone(), move |call| {
        if let Call::Read(name @ ObjectName::Loan(..)) = call {
            disk.delete(name).expect("deleted");
        }
        Outcome::Made
    });
    assert!(claimed(&open(Arc::new(going))).expect("loans").is_empty());
}
