//! Compacting a series: what is dead goes, whole containers at once, parts by rewriting the rest.

use super::commit::credit_last;
use super::dead::{left, object_bytes};
use super::options::{MaintainOptions, MaintainSummary, Maintenance};
use super::rewrite::{Rewriting, Rewritten, replace, rewrite_intact};
use crate::EngineError;
use crate::lease::now;
use crate::written::verify_written;
use siltstone_store::series::SeriesWriter;

/// Rewrites containers whose dead share exceeds the threshold, and deletes dead ones, without forgetting anything. The
/// lease is kept.
pub(super) fn compact(work: Maintenance<'_>, writer: &mut SeriesWriter<'_>) -> Result<MaintainSummary, EngineError> {
    let Maintenance { repository, resources, options } = work;
    let MaintainOptions { threshold, compression_level, verify_written: verify, .. } = *options;
    let rewriting = Rewriting { threshold, compression_level };
    let plan = left(writer.manifest().clone(), threshold);
    let Rewritten { old, new, is_whole } =
        rewrite_intact(repository, &plan.next, plan.to_rewrite, &plan.live, rewriting, writer, resources)?;
    if plan.dead.is_empty() && old.is_empty() {
        if !is_whole {
            writer.sweep()?;
        }
        return Ok(MaintainSummary::default());
    }
    verify_written(verify, repository, plan.next.series, &new)?;
    let mut summary = MaintainSummary { bytes_written: object_bytes(&new), ..MaintainSummary::default() };
    let mut next = plan.next;
    replace(&mut next, &old, new);
    credit_last(&mut next, &summary);
    writer.commit(next, true, now())?;
    let gone: Vec<_> = plan.dead.into_iter().chain(old).collect();
    writer.delete(&gone)?;
    if !is_whole {
        writer.sweep()?;
    }
    summary.bytes_deleted = object_bytes(&gone);
    Ok(summary)
}
