//! Counts made while the engine works.

use crate::render::Transfer;
use siltstone_engine::fs::ProblemKind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// How many minor problems of one kind are told one by one: a restore without root's rights has one for every file.
const TOLD_MAX: u64 = 10;

/// A reading of the counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) files_total: u64,
    pub(crate) bytes_total: u64,
    /// True if the totals are final.
    pub(crate) is_total_known: bool,
    pub(crate) files_done: u64,
    pub(crate) bytes_done: u64,
    /// Bytes read that were stored already.
    pub(crate) bytes_duplicate: u64,
    /// Bytes of containers that are settled after the snapshot stands, and those that are to be.
    pub(crate) bytes_settled: u64,
    pub(crate) bytes_to_settle: u64,
    /// Sockets that were left out.
    pub(crate) sockets: u64,
    /// Problems with content.
    pub(crate) problems: u64,
    /// Problems with owners, attributes, permissions and times only.
    pub(crate) minor_problems: u64,
    /// Bytes that went over the network.
    pub(crate) transfer: Transfer,
}

/// Counters that any thread may move.
#[derive(Default)]
pub(super) struct Counters {
    files_total: AtomicU64,
    bytes_total: AtomicU64,
    is_total_known: AtomicBool,
    files_done: AtomicU64,
    bytes_done: AtomicU64,
    bytes_duplicate: AtomicU64,
    bytes_settled: AtomicU64,
    bytes_to_settle: AtomicU64,
    sockets: AtomicU64,
    problems: AtomicU64,
    minor_problems: AtomicU64,
}

impl Counters {
    pub(super) fn estimate(&self, files: u64, bytes: u64, complete: bool) {
        self.files_total.store(files, Relaxed);
        self.bytes_total.store(bytes, Relaxed);
        self.is_total_known.fetch_or(complete, Relaxed);
    }

    pub(super) fn advance(&self, files: u64, bytes: u64) {
        self.files_done.fetch_add(files, Relaxed);
        self.bytes_done.fetch_add(bytes, Relaxed);
    }

    pub(super) fn duplicate(&self, bytes: u64) {
        self.bytes_duplicate.fetch_add(bytes, Relaxed);
    }

    pub(super) fn settle(&self, done: u64, found: u64) {
        self.bytes_settled.fetch_add(done, Relaxed);
        self.bytes_to_settle.fetch_add(found, Relaxed);
    }

    pub(super) fn socket(&self) {
        self.sockets.fetch_add(1, Relaxed);
    }

    pub(super) fn problem(&self, is_minor: bool) {
        if is_minor { &self.minor_problems } else { &self.problems }.fetch_add(1, Relaxed);
    }

    pub(super) fn read(&self, transfer: Transfer) -> Counts {
        Counts {
            files_total: self.files_total.load(Relaxed),
            bytes_total: self.bytes_total.load(Relaxed),
            is_total_known: self.is_total_known.load(Relaxed),
            files_done: self.files_done.load(Relaxed),
            bytes_done: self.bytes_done.load(Relaxed),
            bytes_duplicate: self.bytes_duplicate.load(Relaxed),
            bytes_settled: self.bytes_settled.load(Relaxed),
            bytes_to_settle: self.bytes_to_settle.load(Relaxed),
            sockets: self.sockets.load(Relaxed),
            problems: self.problems.load(Relaxed),
            minor_problems: self.minor_problems.load(Relaxed),
            transfer,
        }
    }
}

/// Which minor problems were told, and how many were not.
#[derive(Default)]
pub(super) struct Minor(Mutex<Vec<(ProblemKind, u64)>>);

impl Minor {
    /// Counts a problem; whether it is to be told by itself.
    pub(super) fn is_told(&self, kind: ProblemKind) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = seen.iter().position(|(known, _)| *known == kind).unwrap_or_else(|| {
            seen.push((kind, 0));
            seen.len() - 1
        });
        seen[at].1 += 1;
        seen[at].1 <= TOLD_MAX
    }

    /// The kinds of which some were not told, with how many; empty when asked again.
    pub(super) fn take_untold(&self) -> Vec<(ProblemKind, u64)> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let untold = std::mem::take(&mut *seen).into_iter();
        untold.filter(|(_, count)| *count > TOLD_MAX).map(|(kind, count)| (kind, count - TOLD_MAX)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_few_minor_problems_are_told() {
        let minor = Minor::default();
        let told = (0..25).filter(|_| minor.is_told(ProblemKind::Owner)).count();
        assert_eq!(told, 10);
        assert!(minor.is_told(ProblemKind::Times));
        assert_eq!(minor.take_untold(), [(ProblemKind::Owner, 15)]);
        assert_eq!(minor.take_untold(), []);
    }
}
