//! Numbers of borrowed chunks at both ends, for whoever checks or repairs what series borrow.

use roaring::RoaringTreemap;
use siltstone_store::manifest::{BorrowedRun, Manifest};
use siltstone_store::repository::Repository;
use siltstone_store::series::loan_chunks;
use siltstone_store::storage::ObjectName;
use siltstone_store::{ChunkNumber, ChunkRun, SeriesId, StoreError};

/// Chunks that a series borrows of another one.
pub(crate) fn runs_of(manifest: &Manifest, lender: SeriesId) -> Vec<BorrowedRun> {
    let of_it = manifest.imports.iter().filter(|import| manifest.lender_of(import) == Some(lender));
    of_it.map(|import| import.run).collect()
}

/// The chunks that containers of a series answer for.
pub(crate) fn answered_by(manifest: &Manifest) -> RoaringTreemap {
    manifest.containers.iter().fold(RoaringTreemap::new(), |all, record| all | record.numbers())
}

/// The borrower's numbers of these runs.
pub(crate) fn numbers_here(runs: &[BorrowedRun]) -> RoaringTreemap {
    numbers(runs.iter().map(|run| run.chunks))
}

/// The lender's numbers of these runs.
pub(crate) fn numbers_there(runs: &[BorrowedRun]) -> RoaringTreemap {
    numbers(runs.iter().map(BorrowedRun::there))
}

/// The numbers of the chunks in these runs.
pub(crate) fn numbers(runs: impl IntoIterator<Item = ChunkRun>) -> RoaringTreemap {
    let mut numbers = RoaringTreemap::new();
    for run in runs {
        numbers.insert_range(run.range());
    }
    numbers
}

/// The borrower's numbers of those of a lender's chunks that are in the runs.
pub(crate) fn translated(runs: &[BorrowedRun], there: &RoaringTreemap) -> RoaringTreemap {
    let mut here = RoaringTreemap::new();
    for run in runs {
        let wanted = numbers_there(std::slice::from_ref(run)) & there;
        here.extend(wanted.iter().map(|number| number - run.first_there.0 + run.chunks.first.0));
    }
    here
}

/// The parts of a run that have these numbers at the borrower, all of which are in it.
pub(crate) fn parts_of(run: BorrowedRun, here: &RoaringTreemap) -> impl Iterator<Item = BorrowedRun> + use<> {
    ChunkRun::runs_of(here).into_iter().map(move |chunks| BorrowedRun {
        chunks,
        first_there: ChunkNumber(run.first_there.0 + (chunks.first.0 - run.chunks.first.0)),
    })
}

/// Reads a loan.
///
/// # Errors
/// It is gone or damaged; those of the storage.
pub(crate) fn read_loan(repository: &Repository, name: &ObjectName) -> Result<Vec<BorrowedRun>, StoreError> {
    let object = repository.storage().read(name, name.bytes_max())?;
    loan_chunks(repository.keys(), name, object)
}
