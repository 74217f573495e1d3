//! A series whose manifest can be read, and whose containers may not be all there: what is lost with them, and who needs it.

use super::{Basis, FILES_NAMED_MAX, Hurt, RepairOptions, SeriesPlan, Step};
use crate::chunks::ChunkSource;
use crate::repack::numbers_of;
use crate::{EngineError, Observer};
use roaring::RoaringTreemap;
use siltstone_store::catalog::{CatalogReader, Content};
use siltstone_store::manifest::{Manifest, Snapshot};
use siltstone_store::recipe::Recipe;
use siltstone_store::repository::Repository;
use siltstone_store::storage::{ObjectMeta, ObjectName};
use siltstone_store::{ContainerId, StoreError};
use std::collections::HashMap;

/// What to do about the containers of a series that are missing or cannot be opened, and about chunks that a check found unreadable; `None` if
/// there are none.
pub(super) fn plan(
    repository: &Repository,
    manifest: &Manifest,
    listed: &[ObjectMeta],
    options: &RepairOptions,
    observer: &dyn Observer,
) -> Result<Option<SeriesPlan>, EngineError> {
    let chunks = ChunkSource::new(repository, manifest);
    let live = manifest.live();
    let (mut faults, mut lost) = containers(&chunks, manifest, listed, observer)?;
    let known = &manifest.damaged & &live;
    if !known.is_empty() {
        faults.push(format!("{} chunks are known to be damaged", known.len()));
    }
    lost |= known;
    lost &= &live;
    if lost.is_empty() {
        return Ok(None);
    }
    chunks.add_dependents(&mut lost)?;
    lost &= &live;
    let mut hurt_ones = Vec::new();
    for (position, snapshot) in manifest.snapshots().iter().enumerate() {
        let of_snapshot = manifest.direct(position) & &lost;
        if !of_snapshot.is_empty() {
            hurt_ones.push(hurt(&chunks, snapshot, &of_snapshot));
        }
    }
    let dropped = hurt_ones.iter().filter(|_| options.drop_damaged).map(|hurt| hurt.snapshot.id).collect();
    let is_noted = lost.is_subset(&manifest.damaged) && (hurt_ones.is_empty() || !options.drop_damaged);
    let snapshots = manifest.snapshots().len() - if options.drop_damaged { hurt_ones.len() } else { 0 };
    let note = Step::Note { series_name: manifest.name.clone(), lost, dropped };
    Ok(Some(SeriesPlan {
        series: manifest.series,
        name: Some(manifest.name.clone()),
        faults,
        basis: Basis::Newest,
        snapshots: snapshots as u64,
        found: Vec::new(),
        hurt: hurt_ones,
        drops_hurt: options.drop_damaged,
        aside: Vec::new(),
        is_beyond_repair: false,
        step: if is_noted { Step::Nothing } else { note },
    }))
}

/// What is wrong with the containers, and the chunks they answer for.
fn containers(
    chunks: &ChunkSource<'_>,
    manifest: &Manifest,
    listed: &[ObjectMeta],
    observer: &dyn Observer,
) -> Result<(Vec<String>, RoaringTreemap), EngineError> {
    let sizes: HashMap<ContainerId, u64> = listed
        .iter()
        .filter_map(|meta| match meta.name {
            ObjectName::Container(_, id) => Some((id, meta.bytes)),
            _ => None,
        })
        .collect();
    let (mut faults, mut lost) = (Vec::new(), RoaringTreemap::new());
    for (at, record) in manifest.containers.iter().enumerate() {
        if observer.is_cancelled() {
            return Err(EngineError::Interrupted);
        }
        let fault = match sizes.get(&record.id) {
            None => Some(format!("{} is missing", record.object_name(manifest.series))),
            Some(bytes) if *bytes != record.object_bytes => Some(format!(
                "{} is {bytes} bytes long instead of {}",
                record.object_name(manifest.series),
                record.object_bytes
            )),
            Some(_) => match chunks.reader(at) {
                Ok(_) => None,
                Err(error) if error.is_damage() => Some(error.to_string()),
                Err(error) => return Err(error.into()),
            },
        };
        if let Some(fault) = fault {
            faults.push(fault);
            lost |= numbers_of(record);
        }
        observer.advance(1, record.object_bytes);
    }
    Ok((faults, lost))
}

/// What a snapshot loses with the chunks of it that are `lost`.
pub(super) fn hurt(chunks: &ChunkSource<'_>, snapshot: &Snapshot, lost: &RoaringTreemap) -> Hurt {
    let mut hurt = Hurt {
        snapshot: snapshot.clone(),
        chunks_lost: lost.len(),
        catalog_is_hurt: false,
        files: Vec::new(),
        files_hurt: 0,
    };
    for entry in CatalogReader::new(chunks, snapshot.root).entries() {
        match entry {
            Err(_) => hurt.catalog_is_hurt = true,
            Ok(entry) => {
                if let Content::File { recipe, .. } = &entry.content
                    && needs_any(chunks, recipe, lost)
                {
                    hurt.files_hurt += 1;
                    if hurt.files.len() < FILES_NAMED_MAX {
                        hurt.files.push(entry.path.as_bytes().to_vec());
                    }
                }
            }
        }
    }
    hurt
}

/// Whether a file needs any of these chunks, or it cannot be told.
fn needs_any(chunks: &ChunkSource<'_>, recipe: &Recipe, lost: &RoaringTreemap) -> bool {
    let mut needs = false;
    let visited: Result<(), StoreError> =
        recipe.visit_chunks(chunks, &mut |run| needs |= lost.range_cardinality(run.range()) > 0);
    needs || visited.is_err()
}
