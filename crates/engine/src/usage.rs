//! Usage of a place: requests, by the classes that stores charge for, and bytes. It is what a dry run expects of the
//! run: its own reading, which the run does too, and what the run would do beyond it.

mod prices;

pub use prices::{Estimate, Prices};

use crate::EngineError;
use crate::protect::wanted_bytes;
use siltstone_store::PartId;
use siltstone_store::container::ContainerRecord;
use siltstone_store::manifest::PartTable;
use siltstone_store::repository::Repository;
use siltstone_store::series::CommitSizes;
use siltstone_store::storage::{Latency, Recorder, StorageCalls};
use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::Arc;

/// Requests and bytes, made or expected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Usage {
    /// Requests that write an object.
    pub puts: u64,
    /// Requests that list objects; one for each listing, however many pages it has.
    pub lists: u64,
    /// Requests that read an object, or a part of one, or ask for its length.
    pub gets: u64,
    /// Objects that are deleted.
    pub deletes: u64,
    /// Bytes of the objects written.
    pub bytes_sent: u64,
    /// Bytes read.
    pub bytes_received: u64,
    /// Bytes that lie there more afterwards, or less.
    pub bytes_kept: i64,
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.puts += other.puts;
        self.lists += other.lists;
        self.gets += other.gets;
        self.deletes += other.deletes;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.bytes_kept += other.bytes_kept;
    }
}

impl From<&StorageCalls> for Usage {
    /// Takes the calls to a storage for requests. What is kept is not known from them.
    fn from(calls: &StorageCalls) -> Self {
        let all = calls.total();
        Self {
            puts: all.puts + all.creates,
            lists: calls.lists,
            gets: all.reads + all.range_reads + all.sizes,
            deletes: all.deletes,
            bytes_sent: all.bytes_written,
            bytes_received: all.bytes_read,
            bytes_kept: 0,
        }
    }
}

/// Manifests that a run commits at most, beside those of rewriting: the lease, what was done, the end of the lease.
const COMMITS_MAX: u64 = 3;
/// Every manifest lies there twice.
const COPIES: u64 = 2;
/// Bytes by which a lease makes a manifest longer, at most.
const LEASE_BYTES_MAX: u64 = 4 << 10;
/// Requests of a run that writes, at most, which its dry run does not make: listings of manifests for the lease, the
/// predecessor, and a look at a name whose answer was lost. Renewals of the lease, one in half a minute, are not known.
const FOR_THE_LEASE: Usage =
    Usage { puts: 0, lists: 4, gets: 4, deletes: 0, bytes_sent: 0, bytes_received: 0, bytes_kept: 0 };

/// Requests of the first run of a series, at most: what an earlier one of its name may have left is looked for, and the
/// config names the series, in two objects of few bytes.
const FOR_A_NEW_SERIES: Usage =
    Usage { puts: 2, lists: 8, gets: 4, deletes: 2, bytes_sent: 8 << 10, bytes_received: 16 << 10, bytes_kept: 0 };

impl Usage {
    /// Usage for committing, this often more than a run does that rewrites nothing. The manifests grow to this size.
    pub(crate) fn of_commits(more: u64, manifest_bytes: u64) -> Self {
        let manifests = COPIES * (COMMITS_MAX + more);
        let bytes_each = manifest_bytes + LEASE_BYTES_MAX;
        Self {
            puts: manifests,
            deletes: manifests,
            bytes_sent: manifests * bytes_each,
            bytes_received: FOR_THE_LEASE.gets * bytes_each,
            ..FOR_THE_LEASE
        }
    }

    /// Usage for writing the parts of these commits that are not there yet, and for deleting as many.
    pub(crate) fn of_new_parts(there: &PartTable, commits: &[&CommitSizes]) -> Self {
        let there = there.ids();
        let named = commits.iter().flat_map(|commit| commit.parts.records());
        let new = named.filter(|part| !there.contains(&part.id)).map(|part| (part.id, part.object_bytes()));
        let new: BTreeMap<PartId, u64> = new.collect();
        let objects = COPIES * new.len() as u64;
        Self { puts: objects, deletes: objects, bytes_sent: COPIES * new.values().sum::<u64>(), ..Self::default() }
    }

    /// Usage for beginning a series.
    pub(crate) fn of_new_series() -> Self {
        FOR_A_NEW_SERIES
    }

    /// Usage for writing containers with the parity that the repository wants. What is kept is not part of it.
    pub(crate) fn of_containers(repository: &Repository, records: &[ContainerRecord]) -> Self {
        let parity = records.iter().map(|record| wanted_bytes(repository, record));
        let each = records.iter().map(|record| record.object_bytes).chain(parity).filter(|&bytes| bytes > 0);
        Self { puts: each.clone().count() as u64, bytes_sent: each.sum(), ..Self::default() }
    }
}

/// Tells whether requests to the place of a repository are worth counting.
pub(crate) fn is_counted(repository: &Repository) -> bool {
    repository.storage().capabilities().latency == Latency::Network
}

/// Does work that reads a repository, and returns what it asked of the place; nothing where that is not counted.
pub(crate) fn measured<T>(
    repository: &Repository,
    work: impl FnOnce(&Repository) -> Result<T, EngineError>,
) -> Result<(T, Usage), EngineError> {
    if !is_counted(repository) {
        return Ok((work(repository)?, Usage::default()));
    }
    let mut recorder = None;
    let recorded = repository.over(|below| recorder.insert(Arc::new(Recorder::new(below))).clone());
    let done = work(&recorded)?;
    Ok((done, recorder.map_or_else(Usage::default, |recorder| Usage::from(&recorder.calls()))))
}
