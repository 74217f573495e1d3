//! Which snapshots a command is about, and what is told where series that might hold them cannot be read.

use crate::error::{CliError, Done};
use crate::hint;
use crate::output::Output;
use siltstone_engine::snapshots::{SnapshotFilter, SnapshotKey, SnapshotView, list_readable, resolve};
use siltstone_store::StoreError;
use siltstone_store::repository::Repository;

/// Tells what is wrong with the series that could not be read: what was done is done without them.
pub(crate) fn without(damaged: &[StoreError], output: Output) -> Done {
    for error in damaged {
        output.error(hint::added_to(error.to_string(), hint::of_store(error)));
    }
    if damaged.is_empty() { Done::Whole } else { Done::InPart }
}

/// The snapshot meant. If it is the latest of some series only, the others are told.
pub(crate) fn find(
    repository: &Repository,
    wanted: &str,
    filter: &SnapshotFilter,
    output: Output,
) -> Result<(SnapshotView, Done), CliError> {
    let (view, damaged) = resolve(repository, wanted, filter)?;
    let done = without(&damaged, output);
    if done == Done::InPart {
        output.warn(format_args!("warning: '{wanted}' is chosen among the other series: {}", view.snapshot.id.short()));
    }
    Ok((view, done))
}

/// The snapshots meant, in this order.
pub(crate) fn find_all(
    repository: &Repository,
    wanted: &[String],
    filter: &SnapshotFilter,
    output: Output,
) -> Result<(Vec<SnapshotView>, Done), CliError> {
    let mut done = Done::Whole;
    let found = wanted.iter().map(|wanted| {
        let (view, found) = find(repository, wanted, filter, output)?;
        done = done.and(found);
        Ok(view)
    });
    let views = found.collect::<Result<_, CliError>>()?;
    Ok((views, done))
}

/// The snapshots meant; where none is named, all that pass the filter. A series that cannot be read is told, and does
/// not hide the others.
pub(crate) fn find_all_or_list(
    repository: &Repository,
    wanted: &[String],
    filter: &SnapshotFilter,
    output: Output,
) -> Result<(Vec<SnapshotView>, Done), CliError> {
    if wanted.is_empty() {
        let (views, damaged) = list_readable(repository, filter)?;
        return Ok((views, without(&damaged, output)));
    }
    find_all(repository, wanted, filter, output)
}

/// The keys of snapshots.
pub(crate) fn keys(views: &[SnapshotView]) -> Vec<SnapshotKey> {
    views.iter().map(|view| (view.series, view.snapshot.id)).collect()
}
