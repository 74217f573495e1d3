//! A storage that asks before each call what is to become of it: for tests of what happens between two calls, of rights
//! that are missing, and of answers that are lost.

use super::{Capabilities, Listing, ObjectMeta, ObjectName, Storage, StorageError};
use crate::ids::SeriesId;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A call that is about to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call<'a> {
    /// [`Storage::read`] or [`Storage::read_range`] of this object.
    Read(&'a ObjectName),
    /// [`Storage::put`] of this object.
    Put(&'a ObjectName),
    /// [`Storage::barrier`].
    Barrier,
    /// [`Storage::create`] of this object.
    Create(&'a ObjectName),
    /// [`Storage::delete`] of this object.
    Delete(&'a ObjectName),
    /// [`Storage::renew`] to this object.
    Renew(&'a ObjectName),
    /// [`Storage::list`].
    List(Listing),
    /// [`Storage::remove_unfinished`] of this series.
    RemoveUnfinished(SeriesId),
}

/// Outcome that a call is given.
#[derive(Debug)]
pub enum Outcome {
    /// It is made.
    Made,
    /// It is not made; the caller is told this.
    Refused(StorageError),
    /// It is made; the caller is told this where it succeeds.
    AnswerLost(StorageError),
}

/// A function that says what becomes of a call. It may do something else before.
type Judge = dyn Fn(Call<'_>) -> Outcome + Send + Sync;

/// An action that is done once, between two calls of others.
pub struct Action {
    calls_left: AtomicU64,
    act: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Action {
    /// Returns an action to be done at the [step](Action::step) of this number, from 0.
    pub fn at(nth: u64, act: impl FnOnce() + Send + 'static) -> Arc<Self> {
        Arc::new(Self { calls_left: AtomicU64::new(nth), act: Mutex::new(Some(Box::new(act))) })
    }

    /// Counts a step. When it returns, the action is done if this was its step.
    pub fn step(&self) {
        let left = self.calls_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        let act = if left.is_err() { self.act.lock().unwrap_or_else(PoisonError::into_inner).take() } else { None };
        if let Some(act) = act {
            act();
        }
    }

    /// Tells whether it is done or being done.
    pub fn is_done(&self) -> bool {
        self.act.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Action")
            .field("calls_left", &self.calls_left)
            .field("is_done", &self.is_done())
            .finish_non_exhaustive()
    }
}

/// A storage before which a function stands.
pub struct Guarded<S> {
    storage: S,
    judge: Box<Judge>,
    capabilities: Option<Capabilities>,
}

impl<S: Storage> Guarded<S> {
    /// Puts `judge` before `storage`.
    pub fn new(storage: S, judge: impl Fn(Call<'_>) -> Outcome + Send + Sync + 'static) -> Self {
        Self { storage, judge: Box::new(judge), capabilities: None }
    }

    /// Makes it tell these capabilities instead of the storage's own.
    #[must_use]
    pub fn with_capabilities(self, capabilities: Capabilities) -> Self {
        Self { capabilities: Some(capabilities), ..self }
    }

    fn ask<T>(&self, call: Call<'_>, make: impl FnOnce(&S) -> Result<T, StorageError>) -> Result<T, StorageError> {
        match (self.judge)(call) {
            Outcome::Made => make(&self.storage),
            Outcome::Refused(error) => Err(error),
            Outcome::AnswerLost(error) => make(&self.storage).and(Err(error)),
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for Guarded<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Guarded").field(&self.storage).finish()
    }
}

impl<S: Storage> Storage for Guarded<S> {
    fn read(&self, name: &ObjectName, bytes_max: u64) -> Result<Vec<u8>, StorageError> {
        self.ask(Call::Read(name), |storage| storage.read(name, bytes_max))
    }

    fn read_range(&self, name: &ObjectName, offset: u64, length: usize) -> Result<Vec<u8>, StorageError> {
        self.ask(Call::Read(name), |storage| storage.read_range(name, offset, length))
    }

    fn put(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        self.ask(Call::Put(name), |storage| storage.put(name, bytes))
    }

    fn barrier(&self) -> Result<(), StorageError> {
        self.ask(Call::Barrier, Storage::barrier)
    }

    fn create(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        self.ask(Call::Create(name), |storage| storage.create(name, bytes))
    }

    fn delete(&self, name: &ObjectName) -> Result<(), StorageError> {
        self.ask(Call::Delete(name), |storage| storage.delete(name))
    }

    fn renew(&self, name: &ObjectName, before: Option<&ObjectName>) -> Result<(), StorageError> {
        self.ask(Call::Renew(name), |storage| storage.renew(name, before))
    }

    fn list(&self, what: Listing) -> Result<Vec<ObjectMeta>, StorageError> {
        self.ask(Call::List(what), |storage| storage.list(what))
    }

    fn remove_unfinished(&self, series: SeriesId, lease_last: u64) -> Result<u64, StorageError> {
        self.ask(Call::RemoveUnfinished(series), |storage| storage.remove_unfinished(series, lease_last))
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities.unwrap_or_else(|| self.storage.capabilities())
    }

    fn below(&self) -> Option<&dyn Storage> {
        Some(&self.storage)
    }
}
