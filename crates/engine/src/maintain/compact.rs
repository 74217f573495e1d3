//! Compacting a series: what is dead goes, whole containers at once, parts by rewriting the rest.

use super::dead::{left, object_bytes};
use super::rewrite::{Rewriting, Rewritten, replace, rewrite_intact};
use crate::lease::now;
use crate::written::{VerifyWritten, verify_written};
use crate::{EngineError, Resources};
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::series::SeriesWriter;

/// Rewrites containers whose dead share exceeds the threshold, and deletes dead ones, without forgetting anything. The
/// lease is kept. Gives the bytes written and those deleted; `note` is shown the manifest to be committed, and the
/// former.
pub(super) fn compact(
    repository: &Repository,
    writer: &mut SeriesWriter<'_>,
    rewriting: Rewriting,
    verify: VerifyWritten,
    resources: &Resources,
    note: impl FnOnce(&mut Manifest, u64),
) -> Result<(u64, u64), EngineError> {
    let plan = left(writer.manifest().clone(), rewriting.threshold);
    let Rewritten { old, new, is_whole } =
        rewrite_intact(repository, &plan.next, plan.to_rewrite, &plan.live, rewriting, writer, resources)?;
    if plan.dead.is_empty() && old.is_empty() {
        return if is_whole { Ok((0, 0)) } else { Ok(writer.sweep().map(|()| (0, 0))?) };
    }
    verify_written(verify, repository, plan.next.series, &new)?;
    let (written, mut next) = (object_bytes(&new), plan.next);
    replace(&mut next, &old, new);
    note(&mut next, written);
    writer.commit(next, true, now())?;
    let gone: Vec<_> = plan.dead.into_iter().chain(old).collect();
    writer.delete(&gone)?;
    if !is_whole {
        writer.sweep()?;
    }
    Ok((written, object_bytes(&gone)))
}
