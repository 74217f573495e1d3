//! Containers prefetched, that is, opened before they are needed: the order is known beforehand, so other threads read,
//! decrypt and decompress the next ones while this one works on what it has. Every layout reads this way, in restores
//! and backups and when a store is put in order.
//!
//! Who has to wait opens containers too, so that all threads are at work, and a single thread opens each when it is
//! asked for. Memory holds a few containers for each further thread, whatever the length of the order. What is read,
//! and in which order, does not depend on the threads.

use super::choose::Container;
use super::container_store::{ContainerStore, Opened};
use anyhow::{Result, anyhow, ensure};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Containers that may be open, or being opened, for each thread beside the one that takes them.
const PER_THREAD: usize = 2;

/// Opens containers before they are asked for, in the order in which they will be.
pub(super) struct Prefetcher<'a> {
    container_store: &'a ContainerStore,
    order: &'a [Container],
    /// Number that may be open at once, the next one included.
    window: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Number that were taken.
    taken: usize,
    /// Number that someone opens or has opened.
    begun: usize,
    /// Opened and not taken, by place.
    ready: HashMap<usize, Result<Opened>>,
    is_over: bool,
}

/// Runs `work`, which asks for the containers of `order` in this order; `threads` is how many there are in all.
///
/// # Errors
/// Those of `work`.
pub(super) fn in_order<R>(
    container_store: &ContainerStore,
    order: &[Container],
    threads: usize,
    work: impl FnOnce(&Prefetcher<'_>) -> Result<R>,
) -> Result<R> {
    let helpers = threads.saturating_sub(1).min(order.len().saturating_sub(1));
    let window = 1 + helpers * PER_THREAD;
    let prefetcher = Prefetcher { container_store, order, window, state: Mutex::default(), changed: Condvar::new() };
    std::thread::scope(|scope| {
        // Ends the helpers however `work` ends.
        let _end = End(&prefetcher);
        for _ in 0..helpers {
            scope.spawn(|| prefetcher.help());
        }
        work(&prefetcher)
    })
}

struct End<'a>(&'a Prefetcher<'a>);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.state().is_over = true;
        self.0.changed.notify_all();
    }
}

impl Prefetcher<'_> {
    /// The next container of the order, which must be this one.
    ///
    /// # Errors
    /// If it cannot be read or decompressed, or another one is next.
    pub(super) fn next(&self, container: Container) -> Result<Opened> {
        let mut state = self.state();
        let at = state.taken;
        ensure!(self.order.get(at) == Some(&container), "container {container} is not the one that was foreseen");
        loop {
            if let Some(opened) = state.ready.remove(&at) {
                state.taken += 1;
                self.changed.notify_all();
                return opened;
            }
            state = self.open_or_wait(state);
        }
    }

    fn help(&self) {
        let mut state = self.state();
        while !state.is_over && state.begun < self.order.len() {
            state = self.open_or_wait(state);
        }
    }

    /// Opens the next container that nobody opens yet, or waits for a change where there is none.
    fn open_or_wait<'s>(&'s self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        match self.begin(&mut state) {
            Some(next) => {
                drop(state);
                self.open(next)
            }
            None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// The place of a container that nobody opens yet and that there is room for.
    fn begin(&self, state: &mut State) -> Option<usize> {
        let next = state.begun;
        let may = next < self.order.len() && next < state.taken + self.window;
        may.then(|| {
            state.begun += 1;
            next
        })
    }

    fn open(&self, at: usize) -> MutexGuard<'_, State> {
        let opened = catch_unwind(AssertUnwindSafe(|| self.container_store.open(self.order[at])))
            .unwrap_or_else(|_| Err(anyhow!("opening container {} panicked", self.order[at])));
        let mut state = self.state();
        state.ready.insert(at, opened);
        self.changed.notify_all();
        state
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use crate::store::container_store::{Stored, Writer};
    use crate::store::scale::Scale;

    /// A store of so many containers, each with one chunk that says which it is.
    fn container_store(folder: &std::path::Path, count: u32) -> (ContainerStore, Vec<Container>) {
        let container_store = ContainerStore::create(folder, &Scale::of(1 << 20, &Settings::default())).unwrap();
        let mut containers = Vec::new();
        for number in 0..count {
            let (mut writer, bytes) = (Writer::default(), number.to_le_bytes().repeat(100));
            let fingerprint = container_store.repository().keys().fingerprint(&bytes);
            writer.push(&container_store, Stored { number, fingerprint, bytes: &bytes }).unwrap();
            containers.extend(writer.finish(&container_store).unwrap().into_iter().map(|written| written.container));
        }
        container_store.barrier().unwrap();
        (container_store, containers)
    }

    #[test]
    fn every_container_comes_in_its_turn_whatever_the_threads() {
        let folder = tempfile::tempdir().unwrap();
        let (container_store, containers) = container_store(folder.path(), 7);
        let order: Vec<usize> = (0..40).map(|at| at * at % 7).collect();
        let wanted: Vec<Container> = order.iter().map(|which| containers[*which]).collect();
        for threads in [0, 1, 2, 5, 100] {
            let found = in_order(&container_store, &wanted, threads, |prefetcher| {
                let number = |container: &Container| {
                    let opened = prefetcher.next(*container)?;
                    let state = prefetcher.state();
                    assert!(state.ready.len() <= prefetcher.window && state.begun <= state.taken + prefetcher.window);
                    Ok(opened.chunks().next().unwrap().number as usize)
                };
                wanted.iter().map(number).collect::<Result<Vec<_>>>()
            });
            assert_eq!(found.unwrap(), order, "{threads}");
        }
    }

    #[test]
    fn who_goes_early_is_not_waited_for_and_errors_come_to_who_asks() {
        let folder = tempfile::tempdir().unwrap();
        let (container_store, mut order) = container_store(folder.path(), 5);
        for threads in [1, 3] {
            in_order(&container_store, &order, threads, |prefetcher| prefetcher.next(order[0]).map(drop)).unwrap();
            assert!(
                in_order(&container_store, &order, threads, |prefetcher| prefetcher.next(order[1]).map(drop)).is_err(),
                "not foreseen"
            );
        }
        order[1] = 1000;
        for threads in [1, 3] {
            let outcome = in_order(&container_store, &order, threads, |prefetcher| {
                prefetcher.next(order[0])?;
                assert!(prefetcher.next(order[1]).is_err());
                prefetcher.next(order[2])
            });
            assert!(outcome.is_ok());
        }
    }
}
