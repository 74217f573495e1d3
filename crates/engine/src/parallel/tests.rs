//! Order, bounds, and what happens where threads are refused or lost.

use super::*;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

thread_local! {
    /// How many more threads this thread may start.
    static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Runs something that may start so many threads, and no more.
pub(crate) fn with_threads<R>(threads: usize, run: impl FnOnce() -> R) -> R {
    LEFT.set(threads);
    let result = run();
    LEFT.set(usize::MAX);
    result
}

/// The system's word when there are no more threads.
pub(super) fn refusal() -> io::Result<()> {
    let left = LEFT.get().checked_sub(1).ok_or(io::ErrorKind::WouldBlock)?;
    LEFT.set(left);
    Ok(())
}

#[test]
fn items_are_worked_on_ahead_of_their_results_but_not_far() {
    let begun = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let pool = Pool::start(scope, "test", 3, 4, || Ok(())).expect("threads");
        let results = pool.in_order(0..100usize, 5, |(), n| {
            begun.fetch_add(1, Ordering::Relaxed);
            n * n
        });
        for (n, result) in results.enumerate() {
            assert_eq!(result.expect("done"), n * n);
            assert!(begun.load(Ordering::Relaxed) <= n + 5);
        }
    });
    assert_eq!(begun.into_inner(), 100);
}

#[test]
fn heavy_items_are_fewer_ahead_than_light_ones() {
    let begun = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let pool = Pool::start(scope, "test", 1, 16, || Ok(())).expect("a thread");
        let count = |(): &mut (), _| begun.fetch_add(1, Ordering::Relaxed);
        let weight = |n: &usize| if *n < 10 { 5 } else { 1 };
        let mut results = pool.in_order_by_weight(0..40, 10, weight, count);
        for n in 0..40 {
            assert_eq!(results.next().expect("a result").expect("done"), n);
            let ahead = begun.load(Ordering::Relaxed) - n;
            assert!(ahead <= if n < 8 { 2 } else { 10 }, "{ahead} from {n}");
        }
        assert!(results.next().is_none());
    });
}

#[test]
fn tickets_give_results_in_the_order_they_are_waited_for() {
    for threads in [usize::MAX, 2, 1] {
        std::thread::scope(|scope| {
            let pool = with_threads(threads, || Pool::start(scope, "test", 3, 4, || Ok(0u64))).expect("threads");
            let tickets: Vec<_> = (0..100u64).map(|n| pool.submit(move |_| n * n)).collect();
            let results: Vec<_> = tickets.into_iter().map(|ticket| ticket.wait().expect("done")).collect();
            assert_eq!(results, (0..100).map(|n| n * n).collect::<Vec<_>>());
        });
    }
}

#[test]
fn a_pool_without_a_single_worker_is_an_error_that_says_what_to_do() {
    let error = std::thread::scope(|scope| {
        with_threads(0, || Pool::start(scope, "test", 3, 4, || Ok(()))).map(|_| ()).expect_err("no threads")
    });
    assert!(error.to_string().contains("ulimit -u"), "{error}");
    assert!(!error.is_damage());
}

#[test]
fn what_a_panicking_worker_had_taken_is_an_error_and_so_is_what_nobody_is_left_for() {
    std::thread::scope(|scope| {
        let pool = Pool::start(scope, "test", 1, 4, || Ok(())).expect("a thread");
        let done = pool.submit(|()| 1);
        let lost = pool.submit(|()| -> u32 { panic!("on purpose") });
        let never = pool.submit(|()| 3);
        assert_eq!(done.wait().expect("done"), 1);
        assert!(matches!(lost.wait(), Err(StoreError::Machine { .. })));
        assert!(never.wait().is_err());
        assert!(pool.submit(|()| 4).wait().is_err());
    });
}
