//! Commits to a place that falls silent at any moment: what is acknowledged stands, what is refused does not, and where
//! nobody can tell, the error says so. The next writer goes on from what is there.

use crate::common::{self, holder, open};
use siltstone_store::repository::Repository;
use siltstone_store::series::{LeaseRequest, SeriesWriter, newest_manifest};
use siltstone_store::storage::{Call, Guarded, Listing, Outcome, SimulatedRemote, Storage, StorageError};
use siltstone_store::{ChunkNumber, StoreError, Time};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Next chunk number that the commit sets.
const NEXT: ChunkNumber = ChunkNumber(77);

/// A place that falls silent after so many requests. The last of them is done, and its answer is lost.
fn falls_silent(place: &SimulatedRemote, left: &Arc<AtomicU64>) -> Guarded<SimulatedRemote> {
    let left = Arc::clone(left);
    Guarded::new(place.clone(), move |call| {
        if matches!(call, Call::Barrier | Call::RemoveUnfinished(_)) {
            return Outcome::Made;
        }
        let source = io::ErrorKind::TimedOut.into();
        let timeout = StorageError::Io { operation: "ask", name: "the place".into(), source };
        match left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) {
            Ok(1) => Outcome::AnswerLost(timeout),
            Ok(_) => Outcome::Made,
            Err(_) => Outcome::Refused(timeout),
        }
    })
}

fn init() -> SimulatedRemote {
    let place = SimulatedRemote::new();
    common::init(Arc::new(place.clone()));
    place
}

fn acquire(repository: &Repository) -> Result<SeriesWriter<'_>, StoreError> {
    let request = LeaseRequest { take_over: true, ..LeaseRequest::new("series", holder(1), "backup") };
    SeriesWriter::acquire(repository, &request)
}

/// Commits over a place that falls silent after so many requests of the commit.
fn commit(place: &SimulatedRemote, requests: u64) -> Result<(), StoreError> {
    let left = Arc::new(AtomicU64::new(u64::MAX));
    let repository = open(Arc::new(falls_silent(place, &left)));
    let mut writer = acquire(&repository)?;
    let mut next = writer.manifest().clone();
    next.next_data = NEXT;
    left.store(requests, Ordering::SeqCst);
    writer.commit(next, false, Time::default())
}

/// Reads the next chunk number of the series, which tells whether the commit was done.
fn next_data(place: &SimulatedRemote) -> ChunkNumber {
    let repository = open(Arc::new(place.clone()));
    let found = newest_manifest(&repository, repository.keys().series_id("series")).expect("it reads");
    found.expect("a manifest").manifest.next_data
}

#[test]
fn a_commit_is_acknowledged_refused_or_said_to_be_unknown() {
    let empty = init();
    let (mut unknown_and_done, mut unknown_and_not, mut requests) = (0, 0, 0);
    loop {
        let place = empty.copy();
        let outcome = commit(&place, requests);
        let is_done = next_data(&place) == NEXT;
        match &outcome {
            Ok(()) => assert!(is_done, "{requests}"),
            Err(StoreError::OutcomeUnknown { object, .. }) => {
                assert!(object.starts_with("series/"), "{object}");
                if is_done { unknown_and_done += 1 } else { unknown_and_not += 1 }
            }
            Err(error) => assert!(!is_done, "{requests}: {error}"),
        }
        let repository = open(Arc::new(place.clone()));
        let mut writer = acquire(&repository).expect("the next writer takes over");
        assert_eq!(writer.manifest().next_data == NEXT, is_done, "it goes on from what is there");
        let mut next = writer.manifest().clone();
        next.next_data = ChunkNumber(NEXT.0 + 1);
        writer.commit(next, false, Time::default()).expect("its commit");
        assert_eq!(next_data(&place), ChunkNumber(NEXT.0 + 1));
        if outcome.is_ok() {
            break;
        }
        requests += 1;
    }
    assert!(unknown_and_done > 0 && unknown_and_not > 0, "{unknown_and_done} done, {unknown_and_not} not");
}

/// The number that it takes is free, because the manifest that had it was superseded and removed.
#[test]
fn a_commit_that_comes_too_late_is_taken_back_with_its_copy() {
    let place = init();
    let open = || open(Arc::new(place.clone()));
    let (slow, quick) = (open(), open());
    let mut late = acquire(&slow).expect("a lease");
    let number = late.stored().manifest.sequence + 1;
    let series = quick.keys().series_id("series");
    let is_there = || {
        let both = place.list_both([Listing::Manifests(series), Listing::ManifestCopies(series)]).expect("lists");
        both.concat().iter().any(|object| object.name.sequence() == Some(number))
    };
    // Older manifests are removed many at a time.
    for _ in 0..6 {
        let mut writer = acquire(&quick).expect("it takes over");
        let next = writer.manifest().clone();
        writer.commit(next, false, Time::default()).expect("a commit");
    }
    assert!(!is_there(), "the number is free");
    let next = late.manifest().clone();
    let error = late.commit(next, false, Time::default()).expect_err("others have gone on");
    assert!(matches!(error, StoreError::Fenced { .. }), "{error}");
    assert!(!is_there());
}

/// The original of the newest manifest is lost, and its copy stands: who was fenced off finds the number free.
#[test]
fn a_commit_whose_number_is_another_one_s_by_its_copy_is_taken_back() {
    let place = init();
    let open = || open(Arc::new(place.clone()));
    let (slow, quick) = (open(), open());
    let mut late = acquire(&slow).expect("a lease");
    let winner = acquire(&quick).expect("it takes over");
    let won = winner.stored().clone();
    assert_eq!(won.manifest.sequence, late.stored().manifest.sequence + 1);
    place.delete(&won.manifest.object_name()).expect("the original is lost");
    let next = late.manifest().clone();
    let error = late.commit(next, false, Time::default()).expect_err("the number is taken");
    assert!(matches!(error, StoreError::Fenced { .. }), "{error}");
    for repository in [&open(), &slow] {
        let newest = newest_manifest(repository, won.manifest.series).expect("it reads").expect("a manifest");
        assert_eq!((newest.manifest.sequence, newest.hash), (won.manifest.sequence, won.hash));
    }
}
