//! Ghosts: chunks that no live snapshot refers to, but that others hang on as deltas. Forgetting the middle of a chain
//! makes them.
//!
//! Eliminating them: what hangs on a ghost is encoded against what the ghost itself hangs on (module `rebase`), and the
//! ghost goes. It is done only if it frees more than it costs; a ghost that is stored whole stays, there being nothing
//! to put in its place. Few ghosts are left alone until there are more. Where much hangs on them a sample is encoded
//! first. What did not pay is noted in the manifest, and tried again when there are a quarter more: who forgets every
//! day would else encode the same again each day, only to throw it away.
//!
//! Before that, hulls are shrunk (module `hulls`); what nothing needs then goes without being eliminated.

use super::commit::{commit, credit_last};
use super::dead::object_bytes;
use super::hulls::shrink_hulls;
use super::options::{MaintainSummary, Maintenance};
use super::rebase::{Dependent, Rebasing, Weight, stored_bytes};
use crate::EngineError;
use crate::chunks::ChunkSource;
use crate::pack::DrySink;
use roaring::RoaringTreemap;
use siltstone_store::StoreError;
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::series::SeriesWriter;
use std::sync::Arc;

/// Ghosts that take less than one byte in so many of the series are left alone.
const GHOSTS_ONE_IN: u64 = 64;
/// Growth by one byte in so many, after which what did not pay is tried again.
const AGAIN_ONE_IN: u64 = 4;

/// Tells whether encoding these dependents anew frees something, if the ghosts' bytes are theirs in proportion.
fn pays(elimination: &Rebasing, dependents: &[&Dependent], written: u64) -> bool {
    let (all, these) = (elimination.stored_bytes(), stored_bytes(dependents));
    u128::from(written) * u128::from(all) < u128::from(these) * u128::from(all + elimination.passed_bytes)
}

/// Tells whether it is worth trying to eliminate ghosts of so many bytes: they are no small part of the series, and
/// clearly more than when it last did not pay.
fn is_worth_trying(manifest: &Manifest, ghost_bytes: u64) -> bool {
    let kept = manifest.ghosts_kept;
    ghost_bytes >= object_bytes(&manifest.containers) / GHOSTS_ONE_IN
        && ghost_bytes >= kept.saturating_add(kept / AGAIN_ONE_IN)
}

/// About how many bytes are held by ghosts that are to be eliminated where that pays, and by those that nothing hangs
/// on.
pub(crate) fn ghost_bytes(repository: &Repository, manifest: &Manifest) -> Result<u64, StoreError> {
    let live = manifest.live();
    let chunks = ChunkSource::new(repository, manifest);
    let ghosts = manifest.ghosts() - chunks.closure(&manifest.lent)?;
    if ghosts.is_empty() {
        return Ok(0);
    }
    let needed = chunks.base_graph()?.closure(&(&live - &ghosts));
    let in_deltas = Rebasing::past(&(ghosts & &needed), &chunks, &needed)?.passed_bytes;
    let to_try = if is_worth_trying(manifest, in_deltas) { in_deltas } else { 0 };
    Ok(to_try + bytes_of(&chunks, &(live - needed))?)
}

/// About how many bytes these chunks take.
fn bytes_of(chunks: &ChunkSource<'_>, numbers: &RoaringTreemap) -> Result<u64, StoreError> {
    let mut bytes = 0;
    for (at, record) in chunks.own_records() {
        let here = record.numbers() & numbers;
        if here.is_empty() {
            continue;
        }
        let reader = chunks.reader(at)?;
        let weight = Weight::in_container(&record, reader.index());
        for entry in reader.index().regions() {
            bytes += weight.bytes(entry, entry.chunks.iter().filter(|chunk| here.contains(chunk.number.0)));
        }
    }
    Ok(bytes)
}

/// Shrinks the hulls of a series, and eliminates its ghosts if that frees more than it costs. The lease is kept,
/// and the series is still said to be looked at: what is dead now lies there yet.
pub(super) fn eliminate(work: Maintenance<'_>, writer: &mut SeriesWriter<'_>) -> Result<MaintainSummary, EngineError> {
    let repository = work.repository;
    let manifest = writer.manifest().clone();
    let chunks = Arc::new(ChunkSource::new(repository, &manifest));
    let mut next = manifest.clone();
    shrink_hulls(repository, &chunks, &manifest, &mut next)?;
    // What others have borrowed may hang on a ghost, too, and is not encoded anew.
    let of_lent = chunks.closure(&next.lent)?;
    let ghosts = next.ghosts() - &of_lent;
    if ghosts.is_empty() {
        next.ghosts_kept = 0;
        return commit(work, writer, next);
    }
    let elimination = Rebasing::past(&ghosts, &chunks, &next.live())?;
    let ghost_bytes = elimination.passed_bytes;
    // Of fewer than there were, a quarter more is less.
    next.ghosts_kept = next.ghosts_kept.min(ghost_bytes);
    let gone = elimination.passed.in_deltas().clone();
    let is_exact = work.options.threshold <= 0.0;
    if gone.is_empty() || !(is_exact || is_worth_trying(&next, ghost_bytes)) {
        return commit(work, writer, next);
    }
    if let Some(sample) = elimination.sample().filter(|_| !is_exact) {
        let nowhere = DrySink::new(writer.manifest().sequence);
        let tried = elimination.encode(work, &chunks, &nowhere, &next, &sample)?;
        if !pays(&elimination, &sample, tried.packed.object_bytes()) {
            next.ghosts_kept = ghost_bytes;
            return commit(work, writer, next);
        }
    }
    let all = elimination.all();
    let repacked = elimination.encode(work, &chunks, writer, &next, &all)?;
    let written = repacked.packed.object_bytes();
    if !pays(&elimination, &all, written) {
        next.ghosts_kept = ghost_bytes;
        let summary = commit(work, writer, next)?;
        writer.sweep()?;
        return Ok(summary);
    }
    next.ghosts_kept = 0;
    let mut summary = MaintainSummary {
        bytes_written: written,
        containers_written: repacked.packed.containers.len() as u64,
        ghosts_eliminated: gone.len(),
        ..MaintainSummary::default()
    };
    elimination.apply(repository, repacked, gone, &of_lent, &mut next)?;
    credit_last(&mut next, &summary);
    summary.add(&commit(work, writer, next)?);
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maintain::rebase::testing::dependent;
    use siltstone_store::SeriesId;

    fn elimination(dependents: usize, ghost_bytes: u64) -> Rebasing {
        let dependents = (0..dependents).map(|_| dependent(1 << 20, 100_000)).collect();
        Rebasing { dependents, passed_bytes: ghost_bytes, ..Rebasing::default() }
    }

    #[test]
    fn what_did_not_pay_is_tried_again_when_there_are_a_quarter_more() {
        let mut manifest = Manifest::new(SeriesId([0; 16]), "test");
        assert!(is_worth_trying(&manifest, 1));
        manifest.ghosts_kept = 1000;
        assert!(!is_worth_trying(&manifest, 1000) && !is_worth_trying(&manifest, 1249));
        assert!(is_worth_trying(&manifest, 1250));
        // A manifest may hold any number.
        manifest.ghosts_kept = u64::MAX;
        assert!(!is_worth_trying(&manifest, 1250));
    }

    #[test]
    fn a_sample_pays_if_all_would_at_the_same_rate() {
        let much = elimination(160, 1_600_000);
        let (sample, all) = (much.sample().expect("much"), much.all());
        // 10 % more are freed by the ghosts: so much more may be written.
        assert!(pays(&much, &sample, 439_999) && !pays(&much, &sample, 440_000));
        assert!(pays(&much, &all, 17_599_999) && !pays(&much, &all, 17_600_000));
        assert!(!pays(&elimination(160, 0), &all, 16_000_000));
    }
}
