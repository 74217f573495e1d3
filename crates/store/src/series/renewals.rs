//! Renewals: how the holder of a lease shows from time to time that it is alive, and how others see it.
//!
//! While a writer holds a lease, a thread of its own makes an empty object `renewals/<series>/<lease>-<count>` every
//! [`LeaseTerms::renewed_every`], and removes the one before. The lease says in its manifest that it is renewed, and
//! how often. Who meets a lease whose holder cannot be seen looks at these names again and again ([`Watch`]): when they
//! change, or a newer manifest comes, the holder is alive. If they stay as they are for long enough by the watcher's
//! own clock, the holder is taken for dead. No clock's value is stored or compared between machines.
//!
//! The judgement may be wrong: a holder may sleep, or be cut off from the storage. Fencing keeps the data safe then, as
//! whenever a lease is taken over; the old holder's run is lost. For the same reason a renewal that fails is no error
//! of the writer.
//!
//! The first renewal comes after one period, so that a short run makes none. Each costs two requests; a look of the
//! watcher two listings.

use crate::manifest::{Lease, Manifest};
use crate::repository::Repository;
use crate::storage::{Listing, ObjectMeta, ObjectName, Storage};
use crate::{RenewalId, SeriesId, StoreError};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time between two renewals of a lease unless told otherwise: rare enough to cost nothing, often enough for one who
/// waits.
pub const RENEWED_EVERY_DEFAULT: Duration = Duration::from_secs(30);
/// Time for which a lease is watched unless told otherwise: ten renewals that do not come.
pub const PATIENCE_DEFAULT: Duration = Duration::from_mins(5);
/// Renewals that fail to come before a lease may be taken over, at least: one may be late for a slow or busy storage,
/// and then another.
pub const RENEWALS_MISSED_MIN: u32 = 4;

/// The terms of leases: how this process shows that it holds one, and how long it watches those of others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LeaseTerms {
    /// Time between two renewals; `None` for a lease that is not renewed: nobody takes it over without being told to.
    pub renewed_every: Option<Duration>,
    /// Time for which a lease is watched before it is taken over, but never less than [`RENEWALS_MISSED_MIN`] times
    /// what its holder says.
    pub patience: Duration,
}

impl Default for LeaseTerms {
    fn default() -> Self {
        Self { renewed_every: Some(RENEWED_EVERY_DEFAULT), patience: PATIENCE_DEFAULT }
    }
}

impl LeaseTerms {
    /// Returns these terms with this time between two renewals.
    #[must_use]
    pub fn with_renewed_every(mut self, every: Option<Duration>) -> Self {
        self.renewed_every = every;
        self
    }

    /// Returns these terms with this patience.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }
}

/// The thread that renews a lease until the lease is given back or the writer goes.
#[derive(Debug)]
pub(super) struct Renewals {
    /// Sends the number of the lease once; the end of the channel ends the thread.
    lease: Sender<u64>,
    /// Ends with the name of the last renewal.
    thread: JoinHandle<Option<ObjectName>>,
}

impl Renewals {
    /// Makes the thread, which waits for the lease; `None` if the system gives none. So a lease says that it is renewed
    /// only if it is.
    pub(super) fn prepare(repository: &Repository, series: SeriesId, every: Duration) -> Option<Self> {
        let storage = repository.storage_shared();
        let (lease, granted) = channel();
        let renew = move || renew_until_the_end(storage.as_ref(), series, every, &granted);
        let thread = thread::Builder::new().name("renewals".into()).spawn(renew).ok()?;
        Some(Self { lease, thread })
    }

    /// Begins to renew the lease of this number.
    pub(super) fn begin(&self, lease: u64) {
        // The thread waits for this, so the channel is open.
        let _ = self.lease.send(lease);
    }

    /// Ends the thread and removes the last renewal. If that fails the next writer removes it.
    pub(super) fn end(self, storage: &dyn Storage) {
        drop(self.lease);
        if let Ok(Some(last)) = self.thread.join() {
            let _ = storage.delete(&last);
        }
    }
}

fn renew_until_the_end(
    storage: &dyn Storage,
    series: SeriesId,
    every: Duration,
    granted: &Receiver<u64>,
) -> Option<ObjectName> {
    let lease = granted.recv().ok()?;
    let (mut count, mut last) = (0u32, None);
    while granted.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
        let name = ObjectName::Renewal(series, RenewalId { lease, count });
        // A name may be taken, by a history that was rolled back, or a call fail half done: next time it is the next
        // count's turn.
        if storage.renew(&name, last.as_ref()).is_ok() {
            last = Some(name);
        }
        count = count.wrapping_add(1);
    }
    last
}

/// Milliseconds as a lease records them: 0 if it is not renewed.
pub(super) fn recorded(every: Option<Duration>) -> u32 {
    every.map_or(0, |every| u32::try_from(every.as_millis()).unwrap_or(u32::MAX).max(1))
}

/// Removes those of these renewals that are of leases before this one.
pub(super) fn sweep(storage: &dyn Storage, listed: &[ObjectMeta], lease: u64) -> Result<(), StoreError> {
    let mut earlier = listed.iter().filter(|meta| meta.name.sequence() < Some(lease));
    Ok(earlier.try_for_each(|meta| storage.delete(&meta.name))?)
}

/// A lease as it was found, to be held against how it looks later.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Watch {
    series: SeriesId,
    lease: Lease,
    /// The number of the manifest.
    sequence: u64,
    renewals: Vec<ObjectName>,
}

impl Watch {
    /// Begins to watch the lease that a manifest records; `None` if it records none, or one that is not renewed.
    ///
    /// # Errors
    /// Those of the storage.
    pub fn begin(repository: &Repository, manifest: &Manifest) -> Result<Option<Self>, StoreError> {
        let Some(lease) = manifest.lease.clone().filter(|lease| lease.renewed_every_ms > 0) else {
            return Ok(None);
        };
        let renewals = renewals_of(repository, manifest.series, lease.number)?;
        Ok(Some(Self { series: manifest.series, lease, sequence: manifest.sequence, renewals }))
    }

    /// Tells whether there was a sign of life since: the lease was renewed, or a newer manifest is there, by which the
    /// lease may be over.
    ///
    /// # Errors
    /// Those of the storage.
    pub fn has_changed(&self, repository: &Repository) -> Result<bool, StoreError> {
        let manifests = repository.storage().list(Listing::Manifests(self.series))?;
        if manifests.iter().any(|meta| meta.name.sequence() > Some(self.sequence)) {
            return Ok(true);
        }
        Ok(renewals_of(repository, self.series, self.lease.number)? != self.renewals)
    }

    /// The lease.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// The number of the manifest that records it.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Returns the time to watch, for one who would wait for `wanted`.
    pub fn patience(&self, wanted: Duration) -> Duration {
        wanted.max(Duration::from_millis(self.lease.renewed_every_ms.into()) * RENEWALS_MISSED_MIN)
    }
}

/// The renewals of one lease there are. Others may be of a holder that was fenced off and does not know it yet.
fn renewals_of(repository: &Repository, series: SeriesId, lease: u64) -> Result<Vec<ObjectName>, StoreError> {
    let listed = repository.storage().list(Listing::Renewals(series))?;
    Ok(listed.into_iter().map(|meta| meta.name).filter(|name| name.sequence() == Some(lease)).collect())
}
