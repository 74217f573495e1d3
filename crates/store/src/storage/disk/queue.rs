//! The puts that wait to be synced, the folders that wait for a barrier, and whether writing may go on.
//!
//! Every put holds a ticket from its beginning until its file has its name (or failed); a barrier waits for the tickets
//! given out before it. Waiting puts keep no memory but an open file each, and there are few ([`WAITING_PUTS_MAX`]).

use super::root::{self, Root};
use super::temporary::Temporary;
use crate::storage::{ObjectName, StorageError, WriteHealth};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Threads that sync. Two keep one sync's wait for the disk and another's rename overlapped; more gain nothing on one
/// disk.
const SYNC_THREADS: usize = 2;
/// Puts written but not yet taken by a sync thread; `put` blocks at this many. Bounds open files and dirty pages (64
/// MiB at 16 MiB per container).
const WAITING_PUTS_MAX: usize = 4;

/// See the module.
#[derive(Debug)]
pub(super) struct SyncQueue {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Held for a whole barrier: the folders one barrier has taken to sync must not be missing from another's promise.
    one_barrier: Mutex<()>,
}

/// The right to write an object; `abandon` or `submit` it.
#[derive(Debug)]
pub(super) struct Ticket(u64);

#[derive(Debug)]
struct Shared {
    root: Arc<Root>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default, Debug)]
struct State {
    next_ticket: u64,
    in_flight: BTreeMap<u64, ObjectName>,
    waiting: VecDeque<(Ticket, Temporary)>,
    changed_folders: BTreeSet<String>,
    health: WriteHealth,
    closing: bool,
}

impl State {
    fn is_in_flight(&self, name: &ObjectName) -> bool {
        self.in_flight.values().any(|flying| flying == name)
    }
}

impl SyncQueue {
    pub(super) fn new(root: Arc<Root>) -> Self {
        let shared = Arc::new(Shared { root, state: Mutex::default(), changed: Condvar::new() });
        Self { shared, threads: Mutex::default(), one_barrier: Mutex::default() }
    }

    /// Takes a ticket for a put.
    pub(super) fn begin(&self, name: &ObjectName) -> Result<Ticket, StorageError> {
        self.start_threads()?;
        let mut state = self.shared.lock();
        state.health.check()?;
        if state.is_in_flight(name) {
            return Err(StorageError::AlreadyExists { name: *name });
        }
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.in_flight.insert(ticket, *name);
        Ok(Ticket(ticket))
    }

    /// Gives a ticket back without having written.
    pub(super) fn abandon(&self, Ticket(ticket): Ticket) {
        self.shared.lock().in_flight.remove(&ticket);
        self.shared.changed.notify_all();
    }

    /// Hands a written file over to be synced and renamed; blocks while too many wait.
    pub(super) fn submit(&self, ticket: Ticket, temporary: Temporary) {
        let mut state = self.shared.lock_when(|state| state.waiting.len() < WAITING_PUTS_MAX);
        state.waiting.push_back((ticket, temporary));
        self.shared.changed.notify_all();
    }

    /// Waits until no put of this name is under way.
    pub(super) fn wait_for(&self, name: &ObjectName) -> Result<(), StorageError> {
        self.shared.lock_when(|state| !state.is_in_flight(name)).health.check()
    }

    /// Refuses where writing was stopped; the failure itself stays for whoever writes next.
    pub(super) fn refuse_if_poisoned(&self) -> Result<(), StorageError> {
        if self.shared.lock().health.is_sound() { Ok(()) } else { Err(StorageError::Poisoned) }
    }

    /// Notes that the entries of a folder changed.
    pub(super) fn folder_changed(&self, folder: &str) {
        self.shared.lock().changed_folders.insert(folder.to_owned());
    }

    /// Stops all further writing if the error does not pass the test; gives the error back.
    pub(super) fn poison_unless(&self, harmless: fn(&StorageError) -> bool, error: StorageError) -> StorageError {
        if !harmless(&error) {
            self.shared.lock().health.poison();
        }
        error
    }

    /// Waits until every put and folder change before the call is durable.
    pub(super) fn barrier(&self) -> Result<(), StorageError> {
        let _turn = self.one_barrier.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = self.shared.lock().next_ticket;
        let settled = |state: &State| state.in_flight.keys().next().is_none_or(|first| *first >= asked);
        let mut state = self.shared.lock_when(|state| settled(state) || !state.health.is_sound());
        state.health.check()?;
        let folders = std::mem::take(&mut state.changed_folders);
        drop(state);
        let mut syncs = folders.iter().map(|folder| self.shared.root.sync_folder(folder));
        syncs.try_for_each(|synced| synced.map_err(|error| self.poison_unless(|_| false, error)))
    }

    fn start_threads(&self) -> Result<(), StorageError> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        while threads.len() < SYNC_THREADS {
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new().name("sync".to_owned()).spawn(move || shared.work());
            match thread {
                Ok(thread) => threads.push(thread),
                // Fewer do as well.
                Err(_) if !threads.is_empty() => break,
                Err(source) => {
                    let name = self.shared.root.location().to_owned();
                    return Err(StorageError::Io { operation: "start a thread to sync", name, source });
                }
            }
        }
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_when(&self, ready: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let state = self.lock();
        self.changed.wait_while(state, |state| !ready(state)).unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        while let Some((ticket, temporary)) = self.next() {
            self.finish(&ticket, temporary);
        }
    }

    fn next(&self) -> Option<(Ticket, Temporary)> {
        let mut state = self.lock_when(|state| state.closing || !state.waiting.is_empty());
        let next = state.waiting.pop_front();
        self.changed.notify_all();
        next
    }

    /// Syncs and names one file. After a failure (its own or another's) the file is removed instead.
    fn finish(&self, ticket: &Ticket, temporary: Temporary) {
        let folder = root::folder_of(&temporary.name().to_string()).to_owned();
        let sound = self.lock().health.is_sound();
        let result = sound.then(|| temporary.sync().and_then(|()| temporary.publish()));
        let mut state = self.lock();
        match result {
            Some(Err(error)) => state.health.fail(error),
            Some(Ok(())) => drop(state.changed_folders.insert(folder)),
            None => {}
        }
        state.in_flight.remove(&ticket.0);
        drop(state);
        self.changed.notify_all();
    }
}

impl Drop for SyncQueue {
    /// Puts under way are finished, those waiting are dropped with their files: no barrier has vouched for them.
    fn drop(&mut self) {
        let dropped = {
            let mut state = self.shared.lock();
            state.closing = true;
            std::mem::take(&mut state.waiting)
        };
        self.shared.changed.notify_all();
        drop(dropped);
        let threads = self.threads.get_mut().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            // A panic of the thread was printed by it; there is nobody to tell more.
            let _ = thread.join();
        }
    }
}
