//! Virtual full backups: a full snapshot made of the previous one and a list of what changed since (`MeGA`, ATC'22,
//! section 4.5).
//!
//! ```text
//! merge      previous catalog beside what the walk of the listed paths finds: copied, replaced, or gone
//! layout     a file's previous recipe as extents with their places
//! reread     a file of which ranges changed: previous chunks kept, cut anew around the ranges only
//! ```
//! What the list does not mention is neither read nor looked at: that it did not change is the list's word. Cost: the
//! previous catalog is read and written once, the list is held in memory, up to a share of the memory that the backup
//! may take; beyond that only what changed.

mod layout;
mod merge;
mod reread;

use super::changed_list::ChangedList;
use super::outcome::Planned;
use super::plan::Planner;
use super::previous::{is_last_latest, last_whole};
use super::run::BackupRun;
use crate::EngineError;
use crate::fs::{Problem, ProblemKind, ScanDetail, Scanner};
use siltstone_store::manifest::{Manifest, Snapshot};
use std::path::PathBuf;

/// The snapshot that a list of changes builds on: the series' last, which must be of the same sources.
pub(super) fn base<'m>(
    manifest: Option<&'m Manifest>,
    series: &str,
    paths: &[Vec<u8>],
) -> Result<&'m Snapshot, EngineError> {
    let last = manifest.and_then(last_whole);
    let last = last.ok_or_else(|| EngineError::NoPreviousSnapshot { series: series.to_owned() })?;
    if last.paths != paths {
        let shown = |paths: &[Vec<u8>]| {
            let shown: Vec<_> = paths.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect();
            shown.join(", ")
        };
        return Err(EngineError::OtherSources { previous: shown(&last.paths), given: shown(paths) });
    }
    if !manifest.is_some_and(is_last_latest) {
        let reason = "it was stored last, but is older than another one, and the list says nothing of what is between";
        return Err(EngineError::PreviousUnusable { reason: reason.to_owned() });
    }
    Ok(last)
}

/// Runs the planning stage for a list of changes within the sources.
pub(super) fn plan_changes(
    run: &BackupRun<'_>,
    manifest: &Manifest,
    sources: &[PathBuf],
    list: &ChangedList,
    planner: Planner<'_, '_>,
) -> Result<Planned, EngineError> {
    let base = base(Some(manifest), run.series, &run.paths)?;
    let options = run.scan_options(ScanDetail::Full);
    let no_source = |source| EngineError::NoSource { path: sources.first().cloned().unwrap_or_default(), source };
    if list.is_everything() {
        return planner.run(&mut Scanner::new(sources, options).map_err(no_source)?);
    }
    let scanner = Scanner::of_chosen(sources, list.paths(), options).map_err(no_source)?;
    let mut planned = planner.run_changes(scanner, list)?;
    let problems = base.statistics.problems;
    if problems > 0 {
        planned.problems += problems;
        let reason =
            format!("{problems} entries could not be read or changed meanwhile, until a full backup reads them");
        let object = format!("snapshot {}, on which the list builds", base.id.short());
        run.resources.observer.problem(&Problem::object(object, ProblemKind::Incomplete, reason));
    }
    Ok(planned)
}
