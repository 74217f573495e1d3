//! Loans as a repair learns of them: what a series borrows, what others borrow of it, and which of its loans have to be
//! made anew.
//!
//! A loan has the numbers of both ends. So imports come back from loans where the manifest that named them is lost. A
//! loan of an interrupted run may give a number that a later run gave again: that of the later lease counts.

use super::RepairOptions;
use super::gather::Holdings;
use super::look::look;
use crate::borrowed::{self, answered_by, numbers_here, numbers_there, parts_of, runs_of, translated};
use crate::chunks::ChunkSource;
use crate::{EngineError, Resources};
use roaring::RoaringTreemap;
use siltstone_store::manifest::{BorrowedRun, LENDERS_MAX, Lender, Manifest};
use siltstone_store::repository::Repository;
use siltstone_store::series::SeriesWriter;
use siltstone_store::storage::{Listing, ObjectName};
use siltstone_store::{ChunkNumber, LoanId, SeriesId, StoreError};
use std::collections::{BTreeMap, BTreeSet};

/// Reads a loan; none if it is gone or damaged, and in the latter case a fault.
fn read_loan(
    repository: &Repository,
    name: &ObjectName,
    faults: &mut Vec<String>,
) -> Result<Option<Vec<BorrowedRun>>, StoreError> {
    match borrowed::read_loan(repository, name) {
        Ok(runs) => Ok(Some(runs)),
        Err(error) if error.is_not_found() || error.is_damage() => {
            faults.push(error.to_string());
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// All loans of the repository.
pub(super) fn all(repository: &Repository) -> Result<Vec<(SeriesId, LoanId)>, StoreError> {
    let listed = repository.storage().list(Listing::All)?.into_iter();
    let loans =
        listed.filter_map(|meta| if let ObjectName::Loan(lender, id) = meta.name { Some((lender, id)) } else { None });
    Ok(loans.collect())
}

/// Borrowed chunks of one lender, numbers on end, and the lease of the loan that says so.
#[derive(Clone, Copy, Debug)]
struct Borrowing {
    lender: SeriesId,
    run: BorrowedRun,
    /// None if a manifest says so.
    loan: Option<LoanId>,
}

/// Chunks that a series borrows, as loans and an older manifest say.
#[derive(Debug, Default)]
pub(super) struct Borrowed {
    borrowings: Vec<Borrowing>,
    /// Chunks that their lenders do not have any more.
    pub(super) lost: RoaringTreemap,
    /// Loans that cannot be read.
    pub(super) faults: Vec<String>,
}

impl Borrowed {
    /// Collects what the series borrows: what the seed says, then what loans say, the newest first.
    pub(super) fn find(
        repository: &Repository,
        series: SeriesId,
        seed: Option<&Manifest>,
    ) -> Result<Self, EngineError> {
        let mut found = Self::default();
        let mut taken = RoaringTreemap::new();
        for import in seed.iter().flat_map(|seed| &seed.imports) {
            if let Some(lender) = seed.and_then(|seed| seed.lender_of(import)) {
                found.add(Borrowing { lender, run: import.run, loan: None }, &mut taken);
            }
        }
        let mut loans = all(repository)?;
        loans.retain(|(lender, id)| id.borrower == series && *lender != series);
        loans.sort_by_key(|(_, id)| std::cmp::Reverse((id.lease, id.serial)));
        for (lender, id) in loans {
            let runs = read_loan(repository, &ObjectName::Loan(lender, id), &mut found.faults)?;
            for run in runs.into_iter().flatten() {
                found.add(Borrowing { lender, run, loan: Some(id) }, &mut taken);
            }
        }
        Ok(found)
    }

    /// Adds what of it nothing before has.
    fn add(&mut self, borrowing: Borrowing, taken: &mut RoaringTreemap) {
        let free = numbers_here(&[borrowing.run]) - &*taken;
        *taken |= &free;
        let Borrowing { lender, run, loan } = borrowing;
        self.borrowings.extend(parts_of(run, &free).map(|run| Borrowing { lender, run, loan }));
    }

    /// Drops containers that no manifest names and that were left by a run whose numbers a later one gave to chunks
    /// that it borrowed, with all else of those runs.
    pub(super) fn drop_leftovers(&self, holdings: &mut Holdings) {
        let mut failed = BTreeSet::new();
        for holding in holdings.readable.iter().filter(|holding| !holding.is_named) {
            let lease = holding.reader.record().id.lease;
            let later =
                self.borrowings.iter().filter(|borrowing| borrowing.loan.is_some_and(|loan| loan.lease > lease));
            let numbers = numbers_here(&later.map(|borrowing| borrowing.run).collect::<Vec<_>>());
            if holding.reader.index().places().iter().any(|place| numbers.contains(place.chunk.number.0)) {
                failed.insert(lease);
            }
        }
        holdings.readable.retain(|holding| holding.is_named || !failed.contains(&holding.reader.record().id.lease));
    }

    /// Finds out what lenders do not have any more. One that cannot be read may be repaired.
    pub(super) fn look_at_lenders(&mut self, repository: &Repository) -> Result<(), EngineError> {
        let lenders: BTreeSet<SeriesId> = self.borrowings.iter().map(|borrowing| borrowing.lender).collect();
        for lender in lenders {
            let there = match repository.manifest(lender) {
                Ok(manifest) => manifest.map(|manifest| answered_by(&manifest) - &manifest.damaged).unwrap_or_default(),
                Err(error) if error.is_damage() => continue,
                Err(error) => return Err(error.into()),
            };
            for borrowing in self.borrowings.iter().filter(|borrowing| borrowing.lender == lender) {
                let run = [borrowing.run];
                self.lost |= translated(&run, &(numbers_there(&run) - &there));
            }
        }
        Ok(())
    }

    /// The numbers of all chunks that it borrows.
    pub(super) fn numbers(&self) -> RoaringTreemap {
        borrowed::numbers(self.borrowings.iter().map(|borrowing| borrowing.run.chunks))
    }

    /// Adds lenders and imports to a manifest, but for the chunks that it has of its own. Chunks of a lender that two
    /// loans give different numbers keep the one of the later.
    pub(super) fn add_to(&self, manifest: &mut Manifest, seed: Option<&Manifest>, own: &RoaringTreemap) {
        manifest.lenders = seed.map(|seed| seed.lenders.clone()).unwrap_or_default();
        let mut given: BTreeMap<SeriesId, RoaringTreemap> = BTreeMap::new();
        for Borrowing { lender, run, loan } in &self.borrowings {
            let given = given.entry(*lender).or_default();
            let free = numbers_there(&[*run]) - &*given;
            let free = translated(&[*run], &free) - own;
            if free.is_empty() {
                continue;
            }
            let runs: Vec<BorrowedRun> = parts_of(*run, &free).collect();
            let is_known = manifest.lenders.iter().any(|known| known.series == *lender);
            if !is_known && manifest.lenders.len() >= LENDERS_MAX {
                continue;
            }
            if !is_known {
                manifest.lenders.push(Lender { series: *lender, loans: BTreeSet::new(), has_surplus: true });
            }
            if let Some(known) = manifest.lenders.iter_mut().find(|known| known.series == *lender) {
                known.loans.extend(*loan);
                known.has_surplus = true;
            }
            *given |= numbers_there(&runs);
            manifest.add_imports(*lender, &runs);
        }
    }

    /// The last number that any of them has.
    pub(super) fn last(&self) -> Option<ChunkNumber> {
        self.borrowings.iter().map(|borrowing| ChunkNumber(*borrowing.run.chunks.range().end())).max()
    }
}

/// The chunks of a series that others have borrowed, as far as their loans can be read, and whether all can.
pub(super) fn claimed(repository: &Repository, lender: SeriesId) -> Result<(RoaringTreemap, bool), EngineError> {
    let (mut claimed, mut faults) = (RoaringTreemap::new(), Vec::new());
    for meta in repository.storage().list(Listing::Loans(lender)).map_err(StoreError::from)? {
        claimed |= numbers_there(&read_loan(repository, &meta.name, &mut faults)?.unwrap_or_default());
    }
    Ok((claimed, faults.is_empty()))
}

/// Findings on what a series borrows.
#[derive(Debug, Default)]
pub(super) struct LoanFindings {
    pub(super) faults: Vec<String>,
    /// Chunks, by their numbers here, that cannot be read where they lie.
    pub(super) lost: RoaringTreemap,
    /// Lenders of which a loan is missing or damaged.
    pub(super) renewed: BTreeSet<SeriesId>,
    /// Loans of lenders of which the manifest knows nothing.
    pub(super) unknown: Vec<(SeriesId, LoanId)>,
}

/// Looks at the lenders of a series: at the containers that hold what is borrowed, and at the loans. `loans` are all
/// that are there.
pub(super) fn look_at(
    repository: &Repository,
    manifest: &Manifest,
    loans: &[(SeriesId, LoanId)],
    options: &RepairOptions,
    resources: &Resources,
) -> Result<LoanFindings, EngineError> {
    let mut found = LoanFindings::default();
    for lender in &manifest.lenders {
        let borrowed = manifest.borrowed_of(lender.series);
        let mut held = RoaringTreemap::new();
        for id in &lender.loans {
            match read_loan(repository, &ObjectName::Loan(lender.series, *id), &mut found.faults)? {
                Some(runs) => held |= numbers_there(&runs),
                None => drop(found.renewed.insert(lender.series)),
            }
        }
        if !borrowed.is_subset(&held) {
            found.renewed.insert(lender.series);
        }
        if !borrowed.is_empty() {
            let lost = lost_at(repository, lender.series, &borrowed, options, resources)?;
            let lost = translated(&runs_of(manifest, lender.series), &lost);
            if !lost.is_empty() {
                let words = repository.series_words(lender.series);
                found.faults.push(format!("{} chunks that are borrowed of series {words} are lost there", lost.len()));
            }
            found.lost |= lost;
        }
    }
    let is_known = |lender: &SeriesId| manifest.lenders.iter().any(|known| known.series == *lender);
    let own = loans.iter().filter(|(lender, id)| id.borrower == manifest.series && !is_known(lender));
    found.unknown = own.copied().collect();
    let told = |(lender, id): &(SeriesId, LoanId)| format!("{}: nothing needs it", ObjectName::Loan(*lender, *id));
    found.faults.extend(found.unknown.iter().map(told));
    Ok(found)
}

/// The chunks of these that a lender has lost, by its numbers. Of one that cannot be read nothing is known before it is
/// repaired.
fn lost_at(
    repository: &Repository,
    lender: SeriesId,
    borrowed: &RoaringTreemap,
    options: &RepairOptions,
    resources: &Resources,
) -> Result<RoaringTreemap, EngineError> {
    let mut manifest = match repository.manifest(lender) {
        Ok(Some(manifest)) => manifest,
        Ok(None) => return Ok(borrowed.clone()),
        Err(error) if error.is_damage() => return Ok(RoaringTreemap::new()),
        Err(error) => return Err(error.into()),
    };
    let chunks = ChunkSource::new(repository, &manifest);
    let missing = borrowed - answered_by(&manifest);
    let known = manifest.damaged.clone();
    let needed = chunks.closure(&(borrowed - &missing)).unwrap_or_else(|_| borrowed.clone());
    manifest.containers.retain(|record| !record.numbers().is_disjoint(&needed));
    let listed = repository.storage().list_containers(lender).map_err(StoreError::from)?;
    let mut lost = look(repository, &manifest, &listed, options, resources)?.lost | known;
    chunks.add_dependents(&mut lost)?;
    Ok((lost | missing) & borrowed)
}

/// Makes loans of all that is borrowed of these lenders, in place of those that cannot be read. What a lender does not
/// grant is lost.
pub(super) fn renew(
    repository: &Repository,
    writer: &SeriesWriter<'_>,
    next: &mut Manifest,
    lenders: &BTreeSet<SeriesId>,
) -> Result<(), EngineError> {
    for series in lenders {
        let runs = runs_of(next, *series);
        let mut loans = BTreeSet::new();
        let mut lost = RoaringTreemap::new();
        let Some(known) = next.lenders.iter().find(|known| known.series == *series) else { continue };
        if !runs.is_empty() {
            let loan = writer.borrow_chunks(*series, &runs)?;
            lost = translated(&runs, &(next.borrowed_of(*series) - &loan.granted));
            if !lost.is_empty() {
                for id in &known.loans {
                    let is_sound = read_loan(repository, &ObjectName::Loan(*series, *id), &mut Vec::new())?.is_some();
                    loans.extend(is_sound.then_some(*id));
                }
            }
            loans.insert(loan.id);
        }
        next.damaged |= lost & next.live();
        if let Some(known) = next.lenders.iter_mut().find(|known| known.series == *series) {
            known.has_surplus = loans.len() > 1;
            known.loans = loans;
        }
    }
    Ok(())
}
