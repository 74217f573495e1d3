//! Work that is done in each of many series. At a distance most of it is waiting for answers, so several series are
//! worked on at once, as far as memory allows; on a disk one after the other.

use crate::parallel::lock;
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::storage::Latency;
use std::sync::{Condvar, Mutex, PoisonError};

/// Series that are worked on at once, at most.
const AT_ONCE_MAX: usize = 32;
/// Bytes of memory that work in a series takes, however small it is.
pub(crate) const SERIES_BYTES_MIN: u64 = 8 << 20;

/// Bounds of the work in many series.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ManySeries {
    at_once: usize,
    memory_bytes: u64,
}

impl ManySeries {
    /// Returns the bounds for series of this repository, in so much memory.
    pub(crate) fn of(repository: &Repository, memory_bytes: u64) -> Self {
        let is_near = repository.storage().capabilities().latency == Latency::Disk;
        Self { at_once: if is_near { 1 } else { AT_ONCE_MAX }, memory_bytes }
    }

    /// Does the work on each item; results are in the order of the items. Items weigh the bytes of memory that work on
    /// them may take: one that weighs more than there is has the memory to itself.
    ///
    /// # Errors
    /// An error of the work; nothing is begun after it.
    pub(crate) fn each<T: Send, R: Send, E: Send>(
        self,
        items: Vec<T>,
        weigh: impl Fn(&T) -> u64 + Sync,
        work: impl Fn(T) -> Result<R, E> + Sync,
    ) -> Result<Vec<R>, E> {
        let threads = self.at_once.min(items.len());
        if threads <= 1 {
            return items.into_iter().map(work).collect();
        }
        let desk = Desk { state: Mutex::new(State::new(items)), changed: Condvar::new(), bytes_max: self.memory_bytes };
        let run = || {
            let _end = EndOnPanic(&desk);
            while let Some((at, item, weight)) = desk.take(&weigh) {
                let result = work(item);
                desk.give_back(at, weight, result);
            }
        };
        std::thread::scope(|scope| {
            // A thread that cannot start leaves its work to the others, this one at least.
            for _ in 1..threads {
                let _ = std::thread::Builder::new().name("series".to_owned()).spawn_scoped(scope, run);
            }
            run();
        });
        desk.state.into_inner().unwrap_or_else(PoisonError::into_inner).into_results()
    }
}

/// Bytes of memory that work in a series may take: what it holds bounds what is read of it.
pub(crate) fn weight(manifest: &Manifest) -> u64 {
    let stored: u64 = manifest.containers.iter().map(|record| record.object_bytes).sum();
    stored.saturating_mul(4).max(SERIES_BYTES_MIN)
}

/// Items that wait, and results of those that are done.
struct Desk<T, R, E> {
    state: Mutex<State<T, R, E>>,
    changed: Condvar,
    bytes_max: u64,
}

struct State<T, R, E> {
    /// The next is the last.
    waiting: Vec<(usize, T)>,
    bytes: u64,
    done: Vec<(usize, R)>,
    failed: Option<E>,
}

impl<T, R, E> State<T, R, E> {
    fn new(items: Vec<T>) -> Self {
        let mut waiting: Vec<(usize, T)> = items.into_iter().enumerate().collect();
        waiting.reverse();
        Self { waiting, bytes: 0, done: Vec::new(), failed: None }
    }

    fn into_results(mut self) -> Result<Vec<R>, E> {
        self.done.sort_unstable_by_key(|(at, _)| *at);
        match self.failed {
            Some(error) => Err(error),
            None => Ok(self.done.into_iter().map(|(_, result)| result).collect()),
        }
    }
}

impl<T, R, E> Desk<T, R, E> {
    /// Takes the next item, with its place and weight, as soon as there is memory for it; none after a failure.
    fn take(&self, weigh: impl Fn(&T) -> u64) -> Option<(usize, T, u64)> {
        let mut state = lock(&self.state);
        loop {
            if state.failed.is_some() {
                return None;
            }
            let weight = weigh(&state.waiting.last()?.1);
            if state.bytes == 0 || state.bytes.saturating_add(weight) <= self.bytes_max {
                let (at, item) = state.waiting.pop()?;
                state.bytes = state.bytes.saturating_add(weight);
                return Some((at, item, weight));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn give_back(&self, at: usize, weight: u64, result: Result<R, E>) {
        let mut state = lock(&self.state);
        state.bytes = state.bytes.saturating_sub(weight);
        match result {
            Ok(result) => state.done.push((at, result)),
            Err(error) => state.failed = state.failed.take().or(Some(error)),
        }
        drop(state);
        self.changed.notify_all();
    }
}

/// Ends the work of all threads where that of one panics: the memory it took is never given back, and the others would
/// wait for it.
struct EndOnPanic<'d, T, R, E>(&'d Desk<T, R, E>);

impl<T, R, E> Drop for EndOnPanic<'_, T, R, E> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(&self.0.state).waiting.clear();
            self.0.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    const DISTANT: ManySeries = ManySeries { at_once: 4, memory_bytes: 100 };

    #[test]
    fn results_are_in_the_order_of_the_items() {
        for many in [DISTANT, ManySeries { at_once: 1, ..DISTANT }] {
            let doubled = many.each((0..50).collect(), |_| 1, |item: u32| Ok::<_, ()>(item * 2));
            assert_eq!(doubled, Ok((0..50).map(|item| item * 2).collect()));
            assert_eq!(many.each(Vec::new(), |_| 1, |item: u32| Ok::<_, ()>(item)), Ok(Vec::new()));
        }
    }

    #[test]
    fn as_many_as_there_is_memory_for_are_worked_on_at_once() {
        // Each waits for three others: it would hang if they were not begun.
        let met = Barrier::new(4);
        let all = DISTANT.each((0..8).collect(), |_| 25, |_: u32| Ok::<_, ()>(met.wait().is_leader()));
        assert_eq!(all.map(|leaders| leaders.into_iter().filter(|leads| *leads).count()), Ok(2));
        let (bytes, most) = (AtomicU64::new(0), AtomicU64::new(0));
        let weights = vec![60, 30, 500, 10, 70, 30, 90];
        let work = |weight: u64| {
            most.fetch_max(bytes.fetch_add(weight, Ordering::SeqCst) + weight, Ordering::SeqCst);
            std::thread::yield_now();
            bytes.fetch_sub(weight, Ordering::SeqCst);
            Ok::<_, ()>(weight)
        };
        assert_eq!(DISTANT.each(weights.clone(), |weight| *weight, work), Ok(weights));
        assert_eq!(most.into_inner(), 500, "the heavy one had it all to itself");
    }

    #[test]
    fn nothing_is_begun_after_a_failure() {
        let begun = AtomicUsize::new(0);
        let work = |item: u32| {
            begun.fetch_add(1, Ordering::SeqCst);
            if item == 0 { Err("failed") } else { Ok(()) }
        };
        assert_eq!(DISTANT.each((0..1000).collect(), |_| 100, work), Err("failed"));
        assert_eq!(begun.into_inner(), 1, "each takes all the memory");
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_panic_ends_the_others_and_is_not_waited_for() {
        // Whoever begins second waits for memory that the first never gives back.
        let begun = AtomicUsize::new(0);
        let work = |_: u32| -> Result<(), ()> {
            begun.fetch_add(1, Ordering::SeqCst);
            assert!(std::thread::current().name() != Some("series"), "in a thread");
            while begun.load(Ordering::SeqCst) < 2 {
                std::thread::yield_now();
            }
            Ok(())
        };
        let weigh = |item: &u32| if *item < 2 { 1 } else { 3 };
        let _ = ManySeries { at_once: 2, memory_bytes: 3 }.each((0..8).collect(), weigh, work);
    }
}
