//! Memory that this machine keeps of a repository: tested when it is opened, renewed after something was committed.

use crate::context::Context;
use crate::environment;
use crate::error::CliError;
use siltstone_engine::EngineError;
use siltstone_engine::seen::{self, Memory, Subject};
use siltstone_store::SeriesId;
use siltstone_store::repository::Repository;
use std::collections::BTreeMap;
use std::fmt::Display;

/// Holds what is there against what was seen here, and remembers it: of the series alone that the command concerns, if
/// it is one.
///
/// # Errors
/// [`EngineError::HistoryLost`], unless the user accepts that. Where nothing can be remembered, that is told and is no
/// failure.
pub(crate) fn test(repository: &Repository, series: Option<&str>, context: &Context) -> Result<(), CliError> {
    if context.options.accept_rollback {
        accept_lost_series(repository, context)?;
    }
    let Some(mut memory) = open(repository, context) else { return Ok(()) };
    for title in memory.out_of_reach() {
        let text =
            format_args!("warning: {title} was seen here and is out of this token's reach: its loss would not show");
        context.output.warn(text);
    }
    let tested = match series.filter(|_| !context.options.accept_rollback) {
        Some(name) => memory.test_series(series_of(repository, name)),
        None => memory.test(),
    };
    match tested {
        Err(EngineError::HistoryLost { losses }) if context.options.accept_rollback => {
            for loss in &losses {
                context.output.warn(format_args!("warning: accepted: {loss}"));
            }
            told(memory.accept(), context)
        }
        tested => {
            tested?;
            told(memory.remember(), context)
        }
    }
}

/// The newest commit of each series that was seen here.
pub(crate) fn commits(repository: &Repository, context: &Context) -> BTreeMap<SeriesId, u64> {
    open(repository, context).map(|memory| memory.commits()).unwrap_or_default()
}

/// Remembers what a repair made of these histories. What else this machine saw and is not there is told, and stays
/// refused.
pub(crate) fn accept_repaired(repository: &Repository, rebuilt: &[Subject], context: &Context) -> Result<(), CliError> {
    let Some(mut memory) = open(repository, context) else { return Ok(()) };
    if !rebuilt.is_empty() {
        told(memory.accept_only(rebuilt), context)?;
    }
    if let Err(EngineError::HistoryLost { losses }) = memory.test() {
        for loss in &losses {
            let text = format_args!("warning: not repaired: {loss}; --accept-rollback goes on with what is there");
            context.output.warn(text);
        }
    }
    Ok(())
}

/// Takes lost series off the list, and names them.
fn accept_lost_series(repository: &Repository, context: &Context) -> Result<(), CliError> {
    for (name, is_unlisted) in seen::accept_lost_series(repository)? {
        let listed = if is_unlisted { "" } else { "; the repository is read-only here and still lists it" };
        context.output.warn(format_args!("warning: accepted: the series '{name}' is lost{listed}"));
    }
    Ok(())
}

/// Remembers what was committed.
pub(crate) fn renew(repository: &Repository, context: &Context) {
    if let Some(mut memory) = open(repository, context)
        && let Err(error) = memory.remember()
    {
        warn(&error, context);
    }
}

fn open<'r>(repository: &'r Repository, context: &Context) -> Option<Memory<'r>> {
    let memory = Memory::open(repository, &environment::state_folder()?);
    let memory = memory.map_err(|error| warn(&error, context)).ok()?;
    if memory.is_begun_anew {
        let text = "warning: what this machine remembered of the repository was damaged, and is begun anew: a loss up to now would not show";
        context.output.warn(text);
    }
    Some(memory)
}

fn told(result: Result<(), EngineError>, context: &Context) -> Result<(), CliError> {
    match result {
        Err(EngineError::Local { source }) => warn(&source, context),
        other => other?,
    }
    Ok(())
}

fn warn(error: &dyn Display, context: &Context) {
    let why = "a repository that is rolled back will not be noticed; SILT_STATE_DIR names another folder";
    context.output.warn(format_args!("warning: what was seen of the repository cannot be kept: {error}; {why}"));
}

/// The series of this name; with a write-only key, the one that it writes to.
fn series_of(repository: &Repository, name: &str) -> SeriesId {
    let keys = repository.keys();
    keys.write_only_series().map_or_else(|| keys.series_id(name), |(own, _)| own)
}
