//! Asking for the lease of a series: for whom, and whose lease may be taken over for it.

use super::renewals::recorded;
use crate::Time;
use crate::manifest::{Lease, LeaseHolder};
use std::fmt;
use std::time::Duration;

/// The conduct of a writer when the disk has no room for its manifest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReserveUse {
    /// Fail: a run that only adds would fill the reserve's room and leave none for forgetting.
    Keep,
    /// Give the reserve up: what comes next makes room.
    Spend,
}

/// The request for a lease: who wants to write, and how to tell whether another writer is gone.
pub struct LeaseRequest<'a> {
    /// The series' name; the series is made if there is none.
    pub series_name: &'a str,
    /// This writer.
    pub holder: LeaseHolder,
    /// `backup`, `forget`, ...
    pub purpose: &'a str,
    /// Now.
    pub now: Time,
    /// Tells whether a holder is known to be dead, so that its lease may be taken over.
    pub is_dead: &'a (dyn Fn(&LeaseHolder) -> bool + Sync),
    /// Take the lease over whoever holds it.
    pub take_over: bool,
    /// Number of the manifest whose lease was watched for long enough without a sign of life: it may be taken over as
    /// long as no newer manifest is there.
    pub outlasted: Option<u64>,
    /// Time between two renewals of the lease, if it is to be renewed.
    pub renewed_every: Option<Duration>,
    /// Conduct on a full disk.
    pub reserve: ReserveUse,
    /// Look for what may have been left behind even where the last writer has ended well.
    pub looks_closely: bool,
}

impl fmt::Debug for LeaseRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseRequest").field("series_name", &self.series_name).field("purpose", &self.purpose).finish()
    }
}

impl<'a> LeaseRequest<'a> {
    /// A request of this writer, at time zero, that takes over from nobody, does not renew, and keeps the reserve.
    pub fn new(series_name: &'a str, holder: LeaseHolder, purpose: &'a str) -> Self {
        Self {
            series_name,
            holder,
            purpose,
            now: Time::default(),
            is_dead: &|_| false,
            take_over: false,
            outlasted: None,
            renewed_every: None,
            reserve: ReserveUse::Keep,
            looks_closely: false,
        }
    }

    /// Tells whether a lease that the manifest of this number records may be taken over.
    pub(super) fn may_take_over(&self, lease: &Lease, sequence: u64) -> bool {
        self.take_over || self.outlasted == Some(sequence) || (self.is_dead)(&lease.holder)
    }

    /// The lease asked for, as the manifest that grants it records it.
    pub(super) fn lease(&self, number: u64, is_renewed: bool) -> Lease {
        Lease {
            holder: self.holder.clone(),
            since: self.now,
            purpose: self.purpose.to_owned(),
            number,
            renewed_every_ms: recorded(self.renewed_every.filter(|_| is_renewed)),
        }
    }
}
