//! Loans: runs of chunks that a hostile holder of the key names, and what a lender and a repair make of them.

use crate::sealing::{KEYS, SERIES, whole_object};
use siltstone_store::sealed::ObjectKind;
use siltstone_store::series::loan_chunks;
use siltstone_store::storage::ObjectName;
use siltstone_store::{LoanId, SeriesId};

/// The series that lends in all inputs.
const LENDER: SeriesId = SeriesId([8; 16]);
/// The name that all inputs are read under.
pub(crate) const NAME: ObjectName = ObjectName::Loan(LENDER, LoanId { borrower: SERIES, lease: 5, serial: 1 });

/// The plain content of a loan: the ids of both series, then runs.
pub(crate) fn loan(data: &[u8]) -> bool {
    let object = whole_object(NAME, ObjectKind::Loan, data);
    let Ok(runs) = loan_chunks(&KEYS, &NAME, object) else { return false };
    let count = runs.iter().map(|run| run.chunks.count).sum::<u64>();
    assert!(count <= siltstone_store::manifest::BORROWED_CHUNKS_MAX, "what is marked is bounded");
    for run in &runs {
        let (here, there) = (run.chunks.range(), run.there().range());
        assert!(!here.is_empty() && here.end() - here.start() == there.end() - there.start());
    }
    true
}

/// The content of a loan with these ids and runs in front: two runs, the second of one chunk.
pub(crate) fn seed() -> Vec<u8> {
    let runs: [u8; 7] = [2, 10, 5, 100, 40, 1, 7];
    [&LENDER.0[..], &SERIES.0, &runs].concat()
}
