//! The writes that were accepted and not yet carried out, and whether writing may go on.
//!
//! Every put holds a ticket until the place has answered; a barrier waits for the tickets given out before it. After a
//! failed put nothing more is written: what reached the place is unknown to the layers above. Who asks first is told
//! the failure.

use siltstone_store::storage::{ObjectName, StorageError, WriteHealth};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes that are queued at most; one object may be larger.
pub(super) const WRITE_BYTES_MAX: usize = 64 << 20;
/// Objects that are queued at most.
const WRITES_MAX: usize = 16;

/// See the module.
#[derive(Default, Debug)]
pub(super) struct WriteQueue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default, Debug)]
struct State {
    next_ticket: u64,
    under_way: BTreeMap<u64, Write>,
    bytes: usize,
    health: WriteHealth,
}

#[derive(Clone, Copy, Debug)]
struct Write {
    name: ObjectName,
    bytes: usize,
}

/// The right to write an object. A ticket that is dropped before its end counts as a failure.
#[derive(Debug)]
pub(super) struct Ticket {
    queue: Arc<WriteQueue>,
    number: u64,
    name: ObjectName,
    has_ended: bool,
}

impl State {
    fn has_room_for(&self, bytes: usize) -> bool {
        self.under_way.is_empty() || self.under_way.len() < WRITES_MAX && self.bytes + bytes <= WRITE_BYTES_MAX
    }
}

impl WriteQueue {
    /// Takes a ticket for a put; waits while the queue is full.
    pub(super) fn begin(self: &Arc<Self>, name: ObjectName, bytes: usize) -> Result<Ticket, StorageError> {
        let mut state = self.lock_when(|state| state.has_room_for(bytes) || !state.health.is_sound());
        state.health.check()?;
        if state.under_way.values().any(|write| write.name == name) {
            return Err(StorageError::AlreadyExists { name });
        }
        let number = state.next_ticket;
        state.next_ticket += 1;
        state.bytes += bytes;
        state.under_way.insert(number, Write { name, bytes });
        Ok(Ticket { queue: Arc::clone(self), number, name, has_ended: false })
    }

    /// Waits until no put of such a name is under way.
    pub(super) fn wait_for(&self, concerns: impl Fn(&ObjectName) -> bool) -> Result<(), StorageError> {
        let is_free = |state: &State| !state.under_way.values().any(|write| concerns(&write.name));
        self.lock_when(is_free).health.check()
    }

    /// Waits until every put before the call is carried out.
    pub(super) fn barrier(&self) -> Result<(), StorageError> {
        let asked = self.lock().next_ticket;
        let settled = |state: &State| state.under_way.keys().next().is_none_or(|first| *first >= asked);
        self.lock_when(|state| settled(state) || !state.health.is_sound()).health.check()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_when(&self, ready: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        self.changed.wait_while(self.lock(), |state| !ready(state)).unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, number: u64, result: Result<(), StorageError>) {
        let mut state = self.lock();
        if let Some(write) = state.under_way.remove(&number) {
            state.bytes -= write.bytes;
        }
        if let Err(error) = result {
            state.health.fail(error);
        }
        drop(state);
        self.changed.notify_all();
    }
}

impl Ticket {
    /// Gives the ticket back with what came of it.
    pub(super) fn end(mut self, result: Result<(), StorageError>) {
        self.has_ended = true;
        self.queue.end(self.number, result);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.has_ended {
            let source = io::Error::other("the work was broken off");
            let error = StorageError::Io { operation: "write", name: self.name.to_string(), source };
            self.queue.end(self.number, Err(error));
        }
    }
}
