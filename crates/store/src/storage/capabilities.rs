//! The capabilities of a place: facts that the layers above need to be fast and thrifty there. What is *safe* is the
//! contract of [`Storage`](super::Storage) and the same everywhere.

/// The capabilities of a place. [`Capabilities::default`] is those of a folder on a local disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Capabilities {
    /// The place can run full, so that it pays to keep a reserve that `forget` gives up. A local disk runs full; an
    /// object store does not.
    pub keeps_reserve: bool,
    /// The place itself refuses a name that is taken, in one request, so that `create` leaves nothing unfinished.
    pub creates_natively: bool,
    /// One request deletes many objects.
    pub deletes_in_batches: bool,
    /// Requests that are usefully in flight at the same time; at least 1. It does not depend on the cores here.
    pub requests_in_flight: usize,
    /// Time that a request waits before its first byte comes.
    pub latency: Latency,
    /// Containers and manifests may be deleted with the rights that this program has there. Renewals always may.
    pub deletes: bool,
    /// The record of the repository and its key slots may be written with the rights that this program has there.
    pub amends: bool,
}

/// The time that a request waits before its first byte comes, by its order of magnitude.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Latency {
    /// Some microseconds to some milliseconds: a disk of this machine.
    Disk,
    /// Some milliseconds to some hundred: over a network. Requests cost more than the bytes between two of them.
    Network,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self {
            keeps_reserve: true,
            creates_natively: false,
            deletes_in_batches: false,
            requests_in_flight: 1,
            latency: Latency::Disk,
            deletes: true,
            amends: true,
        }
    }
}

impl Capabilities {
    /// Returns these capabilities, with or without a reserve.
    #[must_use]
    pub fn with_reserve(mut self, keeps_reserve: bool) -> Self {
        self.keeps_reserve = keeps_reserve;
        self
    }

    /// Returns these capabilities, with `create` done by the place itself or not.
    #[must_use]
    pub fn with_native_create(mut self, creates_natively: bool) -> Self {
        self.creates_natively = creates_natively;
        self
    }

    /// Returns these capabilities, with one request for many deletions or without.
    #[must_use]
    pub fn with_batch_delete(mut self, deletes_in_batches: bool) -> Self {
        self.deletes_in_batches = deletes_in_batches;
        self
    }

    /// Returns these capabilities with this number of useful requests in flight, 1 for 0.
    #[must_use]
    pub fn with_requests_in_flight(mut self, requests: usize) -> Self {
        self.requests_in_flight = requests.max(1);
        self
    }

    /// Returns these capabilities, with the right to delete or without.
    #[must_use]
    pub fn with_deletes(mut self, deletes: bool) -> Self {
        self.deletes = deletes;
        self
    }

    /// Returns these capabilities, with the right to write the record and key slots or without.
    #[must_use]
    pub fn with_amends(mut self, amends: bool) -> Self {
        self.amends = amends;
        self
    }

    /// Returns these capabilities with this latency.
    #[must_use]
    pub fn with_latency(mut self, latency: Latency) -> Self {
        self.latency = latency;
        self
    }
}
