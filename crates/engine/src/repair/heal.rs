//! Containers that their parity heals, written anew.
//!
//! A name is used once, so a healed container gets another: its regions are sealed into a new one as they are, and the
//! next manifest names that in its place. Readers and crashes then meet nothing that forgetting would not show them. It
//! costs no more than the container's bytes.

use crate::chunks::ChunkSource;
use crate::maintain::repack::{Class, Effort, RepackOptions, Repacker};
use crate::written::{VerifyWritten, verify_written};
use crate::{EngineError, Resources};
use siltstone_store::ContainerId;
use siltstone_store::container::ContainerRecord;
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::salvage::set_aside;
use siltstone_store::series::SeriesWriter;
use siltstone_store::storage::Replaced;
use std::collections::HashSet;
use std::sync::Arc;

/// Level of zstd: regions are copied, but a worker has to have one.
const OPTIONS: RepackOptions = RepackOptions { effort: Effort::Usual(3), is_exact: false };

/// Puts these containers a second time under new names, read back and with parity, keeps the damaged bytes aside, and
/// lets `next` name the new ones. Gives those that `next` no longer names.
pub(super) fn rewrite(
    repository: &Repository,
    writer: &SeriesWriter<'_>,
    healed: &[ContainerId],
    next: &mut Manifest,
    resources: &Resources,
) -> Result<Vec<ContainerRecord>, EngineError> {
    let wanted: HashSet<_> = healed.iter().collect();
    let manifest = writer.manifest();
    let chunks = Arc::new(ChunkSource::new(repository, manifest));
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for (at, record) in manifest.containers.iter().enumerate().filter(|(_, record)| wanted.contains(&record.id)) {
        new.extend(copy(writer, &chunks, at, record, resources)?);
        old.push(record.clone());
        next.damaged -= record.numbers();
    }
    verify_written(VerifyWritten::Always, repository, manifest.series, &new)?;
    for record in &old {
        set_aside(repository.storage(), Replaced::Container(record.kind, manifest.series, record.id))?;
    }
    next.containers.retain(|record| !wanted.contains(&record.id));
    next.containers.extend(new);
    Ok(old)
}

/// The regions of one container that anything needs, in a new one.
fn copy(
    writer: &SeriesWriter<'_>,
    chunks: &Arc<ChunkSource<'_>>,
    container: usize,
    record: &ContainerRecord,
    resources: &Resources,
) -> Result<Vec<ContainerRecord>, EngineError> {
    let served = record.numbers();
    // As of open chunks, so that a region of which others answer for a part is copied too.
    let class = Class { kind: record.kind, is_open: true, rows: 0 };
    let mut made = std::thread::scope(|scope| {
        let mut repacker = Repacker::start(scope, chunks, writer.manifest(), writer, OPTIONS, resources)?;
        repacker.move_container(container, 1.0, |number| served.contains(number.0).then_some(class))?;
        Ok::<_, EngineError>(repacker.finish()?.packed.containers)
    })?;
    for made in &mut made {
        made.change_numbers(|numbers| numbers & &served);
    }
    Ok(made)
}
