//! Loans: how a series borrows chunks of another one, and how the lender deletes beside that, without a lock and
//! without a clock.
//!
//! ```text
//! borrower   loan L created, durable  ->  lender's newest manifest read anew  ->  what it keeps of L is used  ->
//! commit lender     commit: X is unclaimed, not kept  ->  loans listed, read  ->  commit without X's containers  ->
//! deletion
//! ```
//! If L is created before the lender lists, the lender sees it, and X stays: it is lent. If L is created after, the
//! lender's commit was before that, so the borrower, who reads later still, sees that X is not kept any more. Either
//! way nothing that is used is deleted. Both need a storage whose listings and reads show what was written before.
//!
//! A loan that is used is given back after another one is made in its place, and only if the lender keeps all of that
//! one: else a lender that listed the first, and finds it gone, may not have seen the second.
//!
//! A lender that stops anywhere leaves a manifest that says what is unclaimed, with containers that answer for it; its
//! next writer lists the loans in its turn. A borrower that stops leaves a loan that its manifest does not name; its
//! next writer removes it. So the manifest names a lender before the first loan of it is made.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::{SeriesWriter, newest_manifest};
use crate::created::{Created, create_ours};
use crate::encoding;
use crate::error::StoreError;
use crate::ids::{LoanId, SeriesId, Time};
use crate::manifest::{BORROWED_CHUNKS_MAX, BorrowedRun, Lender, Manifest, chunks_in};
use crate::repository::Repository;
use crate::sealed::{ObjectKind, open_object, seal_object};
use crate::secrets::RepositoryKeys;
use crate::storage::{Listing, ObjectName, ReadRequest};
use roaring::RoaringTreemap;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

/// The content of a loan's object. The borrower's numbers are in it so that its manifest can be made anew.
#[derive(Serialize, Deserialize)]
struct Content<'c> {
    lender: SeriesId,
    borrower: SeriesId,
    chunks: Cow<'c, [BorrowedRun]>,
}

/// A loan that was made.
#[derive(Clone, PartialEq, Debug)]
pub struct Loan {
    /// Its identity; the manifest whose imports rest on it names it.
    pub id: LoanId,
    /// The lender's numbers of the chunks that may be used: those that it still keeps.
    pub granted: RoaringTreemap,
}

/// Returns the numbers of all chunks of a series that others have borrowed, or are about to.
///
/// # Errors
/// Those of reading a loan: without it nobody can tell what it holds.
pub fn claimed_chunks(repository: &Repository, lender: SeriesId) -> Result<RoaringTreemap, StoreError> {
    let storage = repository.storage();
    let listed = storage.list(Listing::Loans(lender))?;
    let requests: Vec<ReadRequest> =
        listed.iter().map(|meta| ReadRequest::whole(meta.name, meta.name.bytes_max())).collect();
    let keys = repository.keys();
    let (mut claimed, mut failure) = (RoaringTreemap::new(), None);
    let mut missing = BTreeSet::new();
    storage.read_many(&requests, &mut |at, object| {
        let Some(request) = requests.get(at) else { return ControlFlow::Continue(()) };
        let chunks = object.map_err(StoreError::from).and_then(|object| loan_chunks(keys, &request.name, object));
        match chunks {
            Ok(chunks) => claimed |= numbers_there(&chunks),
            Err(error) if error.is_not_found() => drop(missing.insert(request.name)),
            Err(error) => drop(failure.get_or_insert(error)),
        }
        ControlFlow::Continue(())
    });
    if let Some(error) = failure {
        return Err(error);
    }
    // They were given back since they were listed, or the place denies what it has.
    if !missing.is_empty()
        && let Some(denied) = storage.list(Listing::Loans(lender))?.iter().find(|meta| missing.contains(&meta.name))
    {
        return Err(StoreError::ListedAndMissing { object: denied.name.to_string(), location: storage.location() });
    }
    Ok(claimed)
}

/// Opens a loan's object of this name: the chunks that are borrowed, under their numbers at both ends.
///
/// # Errors
/// [`StoreError::Damaged`] if it is not the loan of that name, or not sound.
pub fn loan_chunks(keys: &RepositoryKeys, name: &ObjectName, object: Vec<u8>) -> Result<Vec<BorrowedRun>, StoreError> {
    let content = open_object(keys, name, ObjectKind::Loan, object)?;
    let Content { lender, borrower, chunks } = encoding::decode(name, "loan", &content)?;
    let is_named = matches!(name, ObjectName::Loan(of, id) if *of == lender && id.borrower == borrower);
    let is_bounded = chunks_in(chunks.iter()) <= BORROWED_CHUNKS_MAX;
    if !is_named || !is_bounded || !chunks.iter().all(BorrowedRun::is_sound) {
        return Err(StoreError::damaged(name, "loan", "its chunks or its series are not sound"));
    }
    Ok(chunks.into_owned())
}

/// The lender's numbers of these chunks.
fn numbers_there(chunks: &[BorrowedRun]) -> RoaringTreemap {
    let mut numbers = RoaringTreemap::new();
    for run in chunks {
        numbers.insert_range(run.there().range());
    }
    numbers
}

/// Returns the manifests that committing `next` after `before` writes, in their order: where chunks are kept no longer
/// that others may have borrowed, and `before` does not say so yet, one that does comes first. `claimed` is given that
/// one, to be made durable, and gives what loans name then. A container of `before` goes on answering for what is lent
/// and in no container of `next`.
///
/// # Errors
/// Those of `claimed`.
pub fn manifests_of_commit<E>(
    before: &Manifest,
    mut next: Manifest,
    claimed: impl FnOnce(Option<&Manifest>) -> Result<RoaringTreemap, E>,
) -> Result<Vec<Manifest>, E> {
    next.unclaimed = unclaimed_after(before, &next);
    let lent = in_no_container(&next, &next.lent);
    if !lent.is_empty() {
        next = holding(before, &next, lent);
    }
    let going = in_no_container(&next, &next.unclaimed);
    if going.is_empty() {
        return Ok(vec![next]);
    }
    let holding = holding(before, &next, going.clone());
    if going.is_subset(&before.unclaimed) {
        let claimed = claimed(None)?;
        // Of what goes only now, others may have borrowed since the loans were listed.
        let later = &next.unclaimed - &before.unclaimed;
        return Ok(vec![settled(next, later, holding, &claimed)]);
    }
    let claimed = claimed(Some(&holding))?;
    Ok(vec![holding.clone(), settled(next, RoaringTreemap::new(), holding, &claimed)])
}

/// Those of these chunks that no container of the manifest answers for.
fn in_no_container(manifest: &Manifest, chunks: &RoaringTreemap) -> RoaringTreemap {
    let mut left = chunks.clone();
    if !left.is_empty() {
        for record in &manifest.containers {
            left -= record.numbers();
        }
    }
    left
}

/// Returns `next` with all that was kept and is no longer, until somebody looks who has borrowed it.
pub(super) fn with_all_unclaimed(before: &Manifest, mut next: Manifest) -> Manifest {
    next.unclaimed = unclaimed_after(before, &next);
    let going = in_no_container(&next, &(&next.unclaimed | &next.lent));
    holding(before, &next, going)
}

/// The chunks of which it has to be found out whether others have borrowed them, once `next` follows `before`: those
/// that are kept no longer. Nobody can have borrowed of a series that does not lend.
fn unclaimed_after(before: &Manifest, next: &Manifest) -> RoaringTreemap {
    if !before.lends {
        return RoaringTreemap::new();
    }
    let mut unclaimed = (before.kept() | &before.unclaimed) - next.kept() - before.imported();
    unclaimed.remove_range(crate::ChunkNumber::METADATA_FIRST.0..);
    unclaimed
}

/// Returns `next` with containers of `before` that answer for what is `left`.
fn holding(before: &Manifest, next: &Manifest, mut left: RoaringTreemap) -> Manifest {
    let mut holding = next.clone();
    for record in &before.containers {
        let held = record.numbers() & &left;
        if held.is_empty() {
            continue;
        }
        left -= &held;
        match holding.containers.iter_mut().find(|kept| kept.id == record.id) {
            Some(kept) => kept.change_numbers(|numbers| numbers | &held),
            None => {
                let mut record = record.clone();
                record.change_numbers(|_| held);
                holding.containers.push(record);
            }
        }
    }
    holding
}

/// Returns the manifest to be committed now that it is known which chunks others have borrowed: `next`, of which only
/// `later` is unclaimed then, or if that would take some of them away, `holding`, which then lends all that was
/// unclaimed.
fn settled(mut next: Manifest, later: RoaringTreemap, mut holding: Manifest, claimed: &RoaringTreemap) -> Manifest {
    if next.unclaimed.is_disjoint(claimed) {
        next.unclaimed = later;
        return next;
    }
    // Bases of what is claimed are among what else was kept.
    holding.lent |= std::mem::take(&mut holding.unclaimed);
    holding
}

impl SeriesWriter<'_> {
    /// Notes that the series is going to borrow of another one, by a commit, unless that is known: loans of a run that
    /// is interrupted are looked for there.
    ///
    /// # Errors
    /// Those of [`SeriesWriter::commit`].
    pub fn add_lender(&mut self, lender: SeriesId, now: Time) -> Result<(), StoreError> {
        let mut next = self.manifest().clone();
        if next.lenders.iter().any(|known| known.series == lender) {
            return Ok(());
        }
        next.lenders.push(Lender { series: lender, loans: BTreeSet::new(), has_surplus: false });
        self.commit(next, true, now)
    }

    /// Makes a loan of chunks, durable on return, and finds out which of them may be used. It counts once a commit
    /// names it; until then it is one that nobody needs.
    ///
    /// # Errors
    /// Those of storing it, and of reading the lender's newest manifest. The lender may have none.
    ///
    /// # Panics
    /// If no manifest of this writer names the lender.
    pub fn borrow_chunks(&self, lender: SeriesId, chunks: &[BorrowedRun]) -> Result<Loan, StoreError> {
        let manifest = &self.stored.manifest;
        assert!(manifest.lenders.iter().any(|known| known.series == lender), "the lender was not added");
        let borrower = self.series();
        let count = chunks_in(chunks);
        if count > BORROWED_CHUNKS_MAX {
            return Err(StoreError::limit(&manifest.object_name(), "chunks of a loan", count, BORROWED_CHUNKS_MAX));
        }
        let serial = self.next_serial.fetch_add(1, Ordering::Relaxed);
        let id = LoanId { borrower, lease: self.lease_sequence, serial };
        let content = encoding::encode(&Content { lender, borrower, chunks: Cow::Borrowed(chunks) })?;
        let name = ObjectName::Loan(lender, id);
        // A run that gives up looks for what it leaves behind.
        self.has_put.store(true, Ordering::Relaxed);
        let object = seal_object(self.repository.keys(), &name, ObjectKind::Loan, &content)?;
        if object.len() as u64 > name.bytes_max() {
            return Err(StoreError::limit(&name, "its size", object.len() as u64, name.bytes_max()));
        }
        if create_ours(self.repository.storage(), &name, &object)? == Created::Taken {
            return Err(StoreError::Fenced { series: manifest.name.clone() });
        }
        let lendable = newest_manifest(self.repository, lender)?.map(|stored| stored.manifest.lendable());
        Ok(Loan { id, granted: numbers_there(chunks) & lendable.unwrap_or_default() })
    }

    /// Gives loans back that the newest manifest does not name. Where nothing may be deleted they stay for a writer
    /// that may.
    ///
    /// # Panics
    /// If it does name one.
    pub fn give_back(&self, lender: SeriesId, loans: &[LoanId]) -> Result<(), StoreError> {
        let named = self.stored.manifest.lenders.iter().filter(|known| known.series == lender);
        let is_named = |id: &LoanId| named.clone().any(|lender| lender.loans.contains(id));
        assert!(!loans.iter().any(is_named), "a loan is in use");
        let names: Vec<ObjectName> = loans.iter().map(|id| ObjectName::Loan(lender, *id)).collect();
        if names.is_empty() || !self.repository.may_delete() {
            return Ok(());
        }
        Ok(self.repository.storage().delete_many(&names)?)
    }

    /// Gives back the loans that `before` named and the newest manifest does not. What cannot be deleted now a later
    /// sweep removes.
    pub(super) fn give_back_unnamed(&self, before: &Manifest) {
        for lender in &before.lenders {
            let now = self.stored.manifest.lenders.iter().find(|now| now.series == lender.series);
            let is_named = |loan: &LoanId| now.is_some_and(|now| now.loans.contains(loan));
            let unnamed: Vec<LoanId> = lender.loans.iter().filter(|loan| !is_named(loan)).copied().collect();
            let _ = self.give_back(lender.series, &unnamed);
        }
    }

    /// Drops the lenders that nothing is borrowed of any more from `next`, which is to follow the newest manifest.
    /// Loans of them that could not be given back go before: whoever comes later looks for none.
    ///
    /// # Errors
    /// Those of listing the loans, and of deleting.
    pub fn drop_idle_lenders(&self, next: &mut Manifest) -> Result<(), StoreError> {
        let idle = next.idle_lenders();
        self.sweep_loans_of(|lender| idle.contains(&lender))?;
        next.drop_idle_lenders();
        Ok(())
    }

    /// Gives back the loans of interrupted runs. Returns how many there were.
    pub(super) fn sweep_loans(&self) -> Result<u64, StoreError> {
        self.sweep_loans_of(|_| true)
    }

    fn sweep_loans_of(&self, is_swept: impl Fn(SeriesId) -> bool) -> Result<u64, StoreError> {
        let mut swept = 0;
        let lenders = self.stored.manifest.lenders.iter().filter(|lender| is_swept(lender.series));
        for Lender { series: lender, loans, .. } in lenders {
            let listed = self.repository.storage().list(Listing::Loans(*lender))?;
            let own = listed.iter().filter(|meta| meta.name.is_of(self.series(), self.lease_sequence));
            let ids = own.filter_map(|meta| if let ObjectName::Loan(_, id) = meta.name { Some(id) } else { None });
            let orphans: Vec<LoanId> = ids.filter(|id| !loans.contains(id)).collect();
            self.give_back(*lender, &orphans)?;
            swept += orphans.len() as u64;
        }
        Ok(swept)
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use crate::container::ContainerKind::Data;
    use crate::testing::container;

    fn numbers(numbers: &[u64]) -> RoaringTreemap {
        numbers.iter().copied().collect()
    }

    /// A lender with containers of the chunks 10 and 20 to 21, of which these are lent and these unclaimed.
    fn lender(lent: &[u64], unclaimed: &[u64]) -> Manifest {
        let mut manifest = Manifest::new(SeriesId([1; 16]), "lender");
        manifest.lends = true;
        manifest.containers = vec![container(1, Data, 10, 1), container(2, Data, 20, 2)];
        (manifest.lent, manifest.unclaimed) = (numbers(lent), numbers(unclaimed));
        manifest
    }

    fn held(manifest: &Manifest) -> RoaringTreemap {
        manifest.containers.iter().fold(RoaringTreemap::new(), |all, record| all | record.numbers())
    }

    #[test]
    fn a_container_that_went_by_mistake_goes_on_answering_for_what_is_lent() {
        let before = lender(&[20], &[]);
        let mut next = before.clone();
        next.containers = vec![container(1, Data, 10, 1), container(3, Data, 21, 1)];
        let commits = manifests_of_commit::<()>(&before, next.clone(), |_| panic!("nothing goes")).expect("manifests");
        let [last] = &commits[..] else { panic!("{commits:?}") };
        assert_eq!(held(last), numbers(&[10, 20, 21]));
        assert_eq!(last.containers[2].id, before.containers[1].id);
        assert_eq!(held(&with_all_unclaimed(&before, next)), numbers(&[10, 20, 21]));
    }

    /// Whoever reads the lender's manifest until the next commit may still borrow it, after the loans were listed.
    #[test]
    fn what_goes_only_now_stays_unclaimed_where_no_commit_said_so_before_the_loans_were_listed() {
        let before = lender(&[20], &[10]);
        let mut next = before.clone();
        next.lent.clear();
        next.containers.remove(0);
        let commits = manifests_of_commit::<()>(&before, next.clone(), |first| {
            assert!(first.is_none(), "all that goes was said to");
            Ok(numbers(&[]))
        });
        let commits = commits.expect("manifests");
        assert_eq!((commits.len(), &commits[0].unclaimed), (1, &numbers(&[20])));

        // It is asked for when its container goes, and by a commit of its own first if another one goes with it.
        let (before, mut next) = (commits[0].clone(), commits[0].clone());
        next.containers.clear();
        let commits = manifests_of_commit::<()>(&before, next, |first| {
            assert!(first.is_none());
            Ok(numbers(&[20]))
        });
        let commits = commits.expect("manifests");
        assert_eq!((held(&commits[0]), &commits[0].lent), (numbers(&[20]), &numbers(&[20])));
    }
}
