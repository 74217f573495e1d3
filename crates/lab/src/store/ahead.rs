//! Containers opened ahead of who needs them: the order is known beforehand, so other threads read, decrypt and
//! decompress the next ones while this one works on what it has. Every layout reads this way, in restores and backups
//! and when a store is put in order.
//!
//! Who has to wait opens containers too, so that all threads are at work, and a single thread opens each when it is
//! asked for. Memory holds a few containers for each further thread, whatever the length of the order. What is read,
//! and in which order, does not depend on the threads.

use super::choose::Container;
use super::shelf::{Opened, Shelf};
use anyhow::{Result, anyhow, ensure};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Containers that may be open, or being opened, for each thread beside the one that takes them.
const PER_THREAD: usize = 2;

/// Containers in the order in which they will be asked for.
pub(super) struct Ahead<'a> {
    shelf: &'a Shelf,
    order: &'a [Container],
    /// How many may be open at once, the next one included.
    window: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// How many were taken.
    taken: usize,
    /// How many someone opens or has opened.
    begun: usize,
    /// Opened and not taken, by place.
    ready: HashMap<usize, Result<Opened>>,
    is_over: bool,
}

/// Does `work`, which asks for the containers of `order` in this order, with so many threads in all.
///
/// # Errors
/// Those of `work`.
pub(super) fn opening<R>(
    shelf: &Shelf,
    order: &[Container],
    threads: usize,
    work: impl FnOnce(&Ahead<'_>) -> Result<R>,
) -> Result<R> {
    let helpers = threads.saturating_sub(1).min(order.len().saturating_sub(1));
    let window = 1 + helpers * PER_THREAD;
    let ahead = Ahead { shelf, order, window, state: Mutex::default(), changed: Condvar::new() };
    std::thread::scope(|scope| {
        // Ends the helpers however `work` ends.
        let _end = End(&ahead);
        for _ in 0..helpers {
            scope.spawn(|| ahead.help());
        }
        work(&ahead)
    })
}

struct End<'a>(&'a Ahead<'a>);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.state().is_over = true;
        self.0.changed.notify_all();
    }
}

impl Ahead<'_> {
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
            state = match self.begin(&mut state) {
                Some(next) => {
                    drop(state);
                    self.open(next)
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn help(&self) {
        let mut state = self.state();
        while !state.is_over && state.begun < self.order.len() {
            state = match self.begin(&mut state) {
                Some(next) => {
                    drop(state);
                    self.open(next)
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
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
        let opened = catch_unwind(AssertUnwindSafe(|| self.shelf.open(self.order[at])))
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
    use crate::store::scale::Scale;
    use crate::store::shelf::{Stored, Writer};

    /// A shelf with so many containers, each with one chunk that says which it is.
    fn shelf(folder: &std::path::Path, count: u32) -> (Shelf, Vec<Container>) {
        let shelf = Shelf::create(folder, &Scale::of(1 << 20, &Settings::default())).unwrap();
        let mut containers = Vec::new();
        for number in 0..count {
            let (mut writer, bytes) = (Writer::default(), number.to_le_bytes().repeat(100));
            let fingerprint = shelf.repository().keys().fingerprint(&bytes);
            writer.push(&shelf, Stored { number, fingerprint, bytes: &bytes }).unwrap();
            containers.extend(writer.finish(&shelf).unwrap().into_iter().map(|written| written.container));
        }
        shelf.barrier().unwrap();
        (shelf, containers)
    }

    #[test]
    fn every_container_comes_in_its_turn_whatever_the_threads() {
        let folder = tempfile::tempdir().unwrap();
        let (shelf, containers) = shelf(folder.path(), 7);
        let order: Vec<usize> = (0..40).map(|at| at * at % 7).collect();
        let wanted: Vec<Container> = order.iter().map(|which| containers[*which]).collect();
        for threads in [0, 1, 2, 5, 100] {
            let found = opening(&shelf, &wanted, threads, |ahead| {
                let number = |container: &Container| {
                    let opened = ahead.next(*container)?;
                    let state = ahead.state();
                    assert!(state.ready.len() <= ahead.window && state.begun <= state.taken + ahead.window);
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
        let (shelf, mut order) = shelf(folder.path(), 5);
        for threads in [1, 3] {
            opening(&shelf, &order, threads, |ahead| ahead.next(order[0]).map(drop)).unwrap();
            assert!(opening(&shelf, &order, threads, |ahead| ahead.next(order[1]).map(drop)).is_err(), "not foreseen");
        }
        order[1] = 1000;
        for threads in [1, 3] {
            let outcome = opening(&shelf, &order, threads, |ahead| {
                ahead.next(order[0])?;
                assert!(ahead.next(order[1]).is_err());
                ahead.next(order[2])
            });
            assert!(outcome.is_ok());
        }
    }
}
