//! Borrowed chunks: loans of more than is needed shrink, and what is borrowed is taken over where that is asked for.

use super::damage::PassedOver;
use super::options::{MaintainSummary, Maintenance};
use crate::EngineError;
use crate::chunks::ChunkSource;
use crate::lease::now;
use crate::pack::{Packed, Packer};
use crate::written::verify_written;
use roaring::RoaringTreemap;
use siltstone_store::container::ContainerKind;
use siltstone_store::manifest::{BorrowedRun, Lender, Manifest};
use siltstone_store::region::{ChunkEntry, EncodedRegion, RegionEncoder, split_region};
use siltstone_store::repository::Repository;
use siltstone_store::series::SeriesWriter;
use siltstone_store::storage::{Listing, ObjectName};
use siltstone_store::{ChunkNumber, SeriesId, StoreError};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Tells whether there is anything to do for what a series borrows.
pub(super) fn is_due(loans: &mut Loans<'_>, manifest: &Manifest, owns: bool) -> Result<bool, StoreError> {
    let is_idle = manifest.lenders.iter().any(|lender| lender.has_surplus || lender.loans.is_empty());
    Ok(is_idle || (owns && !manifest.imports.is_empty()) || !loans.lost(manifest)?.is_empty())
}

/// The loans that there are, listed once for each lender.
pub(super) struct Loans<'r> {
    repository: &'r Repository,
    listed: HashMap<SeriesId, HashSet<ObjectName>>,
}

impl<'r> Loans<'r> {
    pub(super) fn new(repository: &'r Repository) -> Self {
        Self { repository, listed: HashMap::new() }
    }

    /// The lenders of which a loan that the manifest names is lost: they would delete what is borrowed.
    fn lost(&mut self, manifest: &Manifest) -> Result<BTreeSet<SeriesId>, StoreError> {
        let mut lost = BTreeSet::new();
        for lender in &manifest.lenders {
            let names = match self.listed.entry(lender.series) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => {
                    let listed = self.repository.storage().list(Listing::Loans(lender.series))?;
                    unknown.insert(listed.into_iter().map(|meta| meta.name).collect())
                }
            };
            if !lender.loans.iter().all(|loan| names.contains(&ObjectName::Loan(lender.series, *loan))) {
                lost.insert(lender.series);
            }
        }
        Ok(lost)
    }
}

/// Makes a loan of what is still borrowed in place of those that may be of more, or that are lost, for each lender that
/// keeps all of it. The commit that is made next drops lenders that nothing is borrowed of.
pub(super) fn renew_loans(repository: &Repository, writer: &mut SeriesWriter<'_>) -> Result<(), EngineError> {
    let mut next = writer.manifest().clone();
    let lost = Loans::new(repository).lost(&next)?;
    let is_wanted = |lender: &&Lender| lender.has_surplus || lost.contains(&lender.series);
    let wanted: Vec<_> = next.lenders.iter().filter(is_wanted).map(|lender| lender.series).collect();
    for series in wanted {
        let of_it = next.imports.iter().filter(|import| next.lender_of(import) == Some(series));
        let runs: Vec<BorrowedRun> = of_it.map(|import| import.run).collect();
        let loan = writer.borrow_chunks(series, &runs)?;
        let is_whole = next.borrowed_of(series).is_subset(&loan.granted);
        match next.lenders.iter_mut().find(|lender| lender.series == series) {
            Some(lender) if is_whole => {
                lender.loans = [loan.id].into();
                lender.has_surplus = false;
            }
            _ => writer.give_back(series, &[loan.id])?,
        }
    }
    writer.drop_idle_lenders(&mut next)?;
    if next.lenders != writer.manifest().lenders {
        writer.commit(next, true, now())?;
    }
    Ok(())
}

/// Stores what is borrowed in containers of the series' own, under the numbers that it has, and borrows it no more.
/// What cannot be read stays borrowed.
pub(super) fn take_over(work: Maintenance<'_>, writer: &mut SeriesWriter<'_>) -> Result<MaintainSummary, EngineError> {
    let passed_over = PassedOver::new(work.resources);
    let mut summary = MaintainSummary::default();
    let manifest = writer.manifest().clone();
    let chunks = ChunkSource::new(work.repository, &manifest);
    chunks.read_lenders()?;
    let (imported, own) = (manifest.imported(), chunks.own_records().len());
    let records = chunks.records().into_iter().enumerate().skip(own);
    let mut lent = records.filter(|(_, record)| !record.numbers().is_disjoint(&imported)).peekable();
    while lent.peek().is_some() {
        let mut taking = Taking::new(work);
        let mut packer = Packer::new(work.repository, manifest.series, &*writer);
        let mut read_bytes = 0;
        while let Some((at, record)) = lent.next_if(|_| read_bytes < work.options.piece_bytes) {
            work.resources.unless_cancelled()?;
            read_bytes += record.object_bytes;
            match taking.add_container(&chunks, at, &(record.numbers() & &imported), &mut packer) {
                Ok(()) => {}
                Err(EngineError::Store(error)) if error.is_damage() => {
                    passed_over.tell(chunks.object_name(at).to_string(), &error);
                    summary.passed_over += 1;
                }
                Err(error) => return Err(error),
            }
        }
        taking.flush(&mut packer)?;
        let packed = packer.finish()?;
        summary.add(&commit(work, writer, packed, &taking.taken)?);
    }
    Ok(summary)
}

fn commit(
    work: Maintenance<'_>,
    writer: &mut SeriesWriter<'_>,
    packed: Packed,
    taken: &RoaringTreemap,
) -> Result<MaintainSummary, EngineError> {
    if taken.is_empty() {
        return Ok(MaintainSummary::default());
    }
    verify_written(work.options.verify_written, work.repository, writer.series(), &packed.containers)?;
    let summary = MaintainSummary {
        bytes_written: packed.object_bytes(),
        containers_written: packed.containers.len() as u64,
        ..MaintainSummary::default()
    };
    let mut next = writer.manifest().clone();
    next.containers.extend(packed.containers);
    let left = next.imported() - taken;
    next.keep_imports(&left);
    writer.commit(next, true, now())?;
    Ok(summary)
}

/// Chunks on their way into containers of the series' own.
struct Taking<'m> {
    work: Maintenance<'m>,
    encoder: RegionEncoder,
    /// Chunks that do not fill a region yet; numbers ascend within one.
    open: BTreeMap<ChunkNumber, (ChunkEntry, Vec<u8>)>,
    open_bytes: usize,
    taken: RoaringTreemap,
}

impl<'m> Taking<'m> {
    fn new(work: Maintenance<'m>) -> Self {
        let encoder = RegionEncoder::fast(work.options.compression_level);
        Self { work, encoder, open: BTreeMap::new(), open_bytes: 0, taken: RoaringTreemap::new() }
    }

    fn add_container(
        &mut self,
        chunks: &ChunkSource<'_>,
        container: usize,
        wanted: &RoaringTreemap,
        packer: &mut Packer<'_>,
    ) -> Result<(), EngineError> {
        let reader = chunks.reader(container)?;
        let mut damage = None;
        for (region, entry) in reader.index().regions().iter().enumerate() {
            if !entry.chunks.iter().any(|chunk| wanted.contains(chunk.number.0)) {
                continue;
            }
            let plain = match chunks.region(container, region) {
                Err(error) if error.is_damage() => {
                    damage = Some(error);
                    continue;
                }
                other => other?,
            };
            for (chunk, bytes) in split_region(&entry.chunks, &plain) {
                if !wanted.contains(chunk.number.0) {
                    continue;
                }
                let keys = self.work.repository.keys();
                if keys.fingerprint_of(chunk.number, bytes) != chunk.fingerprint {
                    let part = format!("region {region}, chunk {}", chunk.number);
                    let reason = "its content does not match its fingerprint";
                    damage = Some(StoreError::damaged(&chunks.object_name(container), part, reason));
                    continue;
                }
                self.push(chunk, bytes, packer)?;
            }
        }
        damage.map_or(Ok(()), |error| Err(error.into()))
    }

    fn push(&mut self, chunk: ChunkEntry, bytes: &[u8], packer: &mut Packer<'_>) -> Result<(), EngineError> {
        if self.open_bytes > 0 && self.open_bytes + bytes.len() > ContainerKind::Data.region_bytes_target() {
            self.flush(packer)?;
        }
        self.open_bytes += bytes.len();
        self.taken.insert(chunk.number.0);
        self.open.insert(chunk.number, (chunk, bytes.to_vec()));
        Ok(())
    }

    fn flush(&mut self, packer: &mut Packer<'_>) -> Result<(), EngineError> {
        let mut plain = Vec::with_capacity(std::mem::take(&mut self.open_bytes));
        let open = std::mem::take(&mut self.open).into_values();
        let chunks: Vec<ChunkEntry> = open
            .map(|(chunk, bytes)| {
                plain.extend_from_slice(&bytes);
                chunk
            })
            .collect();
        if !chunks.is_empty() {
            packer.push(ContainerKind::Data, &EncodedRegion::encode(&mut self.encoder, chunks, &plain)?)?;
        }
        Ok(())
    }
}
