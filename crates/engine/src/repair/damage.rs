//! A series whose manifest can be read, and whose containers may not be all there: what parity heals, what is lost, and
//! who needs that.

use super::loans::{self, LoanFindings};
use super::look::{Looked, look};
use super::{Basis, DamagedSnapshot, FILES_NAMED_MAX, Mending, RepairOptions, SeriesPlan, Step};
use crate::chunks::ChunkSource;
use crate::{EngineError, Resources};
use roaring::RoaringTreemap;
use siltstone_store::catalog::{CatalogReader, Content};
use siltstone_store::container::ContainerRecord;
use siltstone_store::manifest::{Manifest, Snapshot};
use siltstone_store::recipe::Recipe;
use siltstone_store::repository::Repository;
use siltstone_store::storage::ObjectMeta;
use siltstone_store::{LoanId, SeriesId, StoreError};
use std::collections::BTreeSet;

/// Plans the repair of containers of a series that are missing or cannot be read, of missing parity, and of chunks that
/// a check found unreadable; `None` if there are none.
pub(super) fn plan(
    repository: &Repository,
    manifest: &Manifest,
    listed: &[ObjectMeta],
    all_loans: &[(SeriesId, LoanId)],
    options: &RepairOptions,
    resources: &Resources,
) -> Result<Option<SeriesPlan>, EngineError> {
    let chunks = ChunkSource::new(repository, manifest);
    let live = manifest.live();
    let Looked { mut faults, mut lost, healed, unprotected } = look(repository, manifest, listed, options, resources)?;
    let of_healed =
        manifest.containers.iter().filter(|record| healed.contains(&record.id)).map(ContainerRecord::numbers);
    let known = of_healed.fold(&manifest.damaged & &live, |known, healed| known - healed);
    if !known.is_empty() {
        faults.push(format!("{} chunks are known to be damaged", known.len()));
    }
    lost |= known;
    let LoanFindings { faults: of_loans, lost: at_lenders, renewed, unknown } =
        loans::look_at(repository, manifest, all_loans, options, resources)?;
    faults.extend(of_loans);
    lost |= at_lenders;
    lost &= &live;
    let has_loans_to_mend = !renewed.is_empty() || !unknown.is_empty();
    if lost.is_empty() && healed.is_empty() && unprotected.is_empty() && !has_loans_to_mend {
        return Ok(None);
    }
    chunks.add_dependents(&mut lost)?;
    lost &= &live;
    let mut damaged = Vec::new();
    for (position, snapshot) in manifest.snapshots().iter().enumerate().filter(|_| !lost.is_empty()) {
        let of_snapshot = manifest.direct(position) & &lost;
        if !of_snapshot.is_empty() {
            damaged.push(damaged_by(&chunks, snapshot, &of_snapshot));
        }
    }
    let dropped: BTreeSet<_> =
        damaged.iter().filter(|_| options.drop_damaged).map(|damaged| damaged.snapshot.id).collect();
    let is_noted = lost.is_subset(&manifest.damaged) && dropped.is_empty();
    let snapshots = manifest.snapshots().len() - dropped.len();
    let to_heal = manifest.containers.iter().filter(|record| healed.contains(&record.id));
    let aside = to_heal.map(|record| record.object_name(manifest.series)).collect();
    let protected = unprotected.len() as u64;
    let has_nothing_to_do = is_noted && healed.is_empty() && unprotected.is_empty() && !has_loans_to_mend;
    let mending = Mending { series_name: manifest.name.clone(), lost, dropped, healed, unprotected, renewed, unknown };
    Ok(Some(SeriesPlan {
        series: manifest.series,
        name: Some(manifest.name.clone()),
        faults,
        basis: Basis::Newest,
        snapshots: snapshots as u64,
        found: Vec::new(),
        damaged,
        drops_damaged: options.drop_damaged,
        aside,
        protected,
        is_beyond_repair: false,
        step: if has_nothing_to_do { Step::Nothing } else { Step::Mend(mending) },
    }))
}

/// Returns the loss of a snapshot through the chunks of it that are `lost`.
pub(super) fn damaged_by(chunks: &ChunkSource<'_>, snapshot: &Snapshot, lost: &RoaringTreemap) -> DamagedSnapshot {
    let mut damaged = DamagedSnapshot {
        snapshot: snapshot.clone(),
        chunks_lost: lost.len(),
        catalog_is_damaged: false,
        files: Vec::new(),
        files_damaged: 0,
    };
    for entry in CatalogReader::new(chunks, snapshot.root).entries() {
        match entry {
            Err(_) => damaged.catalog_is_damaged = true,
            Ok(entry) => {
                if let Content::File { recipe, .. } = &entry.content
                    && needs_any(chunks, recipe, lost)
                {
                    damaged.files_damaged += 1;
                    if damaged.files.len() < FILES_NAMED_MAX {
                        damaged.files.push(entry.path.as_bytes().to_vec());
                    }
                }
            }
        }
    }
    damaged
}

/// Tells whether a file needs any of these chunks; also `true` if that cannot be known.
fn needs_any(chunks: &ChunkSource<'_>, recipe: &Recipe, lost: &RoaringTreemap) -> bool {
    let mut needs = false;
    let visited: Result<(), StoreError> =
        recipe.visit_chunks(chunks, &mut |run| needs |= lost.range_cardinality(run.range()) > 0);
    needs || visited.is_err()
}
