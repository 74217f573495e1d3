//! `silt history`: the versions of a file.

use crate::choose::without;
use crate::context::Context;
use crate::error::{CliError, Done};
use crate::output::buffered;
use crate::parse::entry_path;
use crate::patterns::FilterArgs;
use crate::render::{EntryJson, local, long_line, modifier, rfc3339, visible};
use crate::repository::open;
use clap::Args;
use serde::Serialize;
use siltstone_engine::EngineError;
use siltstone_engine::compare::{PathChange, path_changes};
use siltstone_engine::snapshots::list_readable;
use siltstone_store::SeriesId;
use std::io::{self, Write};
use std::path::PathBuf;

/// Show the versions of a file or folder
///
/// One line for each snapshot in which it is another than in the one before: + it was added, - removed, M has another
/// content, T is of another kind, U only owner, permissions, time or attributes differ.
#[derive(Args, Debug)]
pub(crate) struct HistoryArgs {
    /// The file or folder; a path from the current folder on, or from the root
    #[arg(value_name = "PATH")]
    path: PathBuf,
    #[command(flatten)]
    filter: FilterArgs,
}

/// A version, in JSON.
#[derive(Serialize)]
struct VersionJson<'v> {
    message_type: &'static str,
    series: &'v str,
    snapshot: String,
    time: String,
    modifier: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<EntryJson>,
}

pub(crate) fn run(arguments: &HistoryArgs, context: &Context) -> Result<Done, CliError> {
    let absolute = std::path::absolute(&arguments.path).unwrap_or_else(|_| arguments.path.clone());
    let path = entry_path(absolute.as_os_str())?.ok_or(CliError::RootHasNoHistory)?;
    let repository = open(context)?;
    let (views, damaged) = list_readable(&repository, &arguments.filter.filter())?;
    let done = without(&damaged, context.output);
    let mut shown = Shown { output: buffered(), json: context.output.json, series: None };
    let mut failed = None;
    let damage = path_changes(&repository, &views, &path, &context.resources_for(&repository), &mut |change| {
        shown.print(&change).map_err(|error| {
            failed = Some(error);
            EngineError::Interrupted
        })
    });
    if let Some(error) = failed {
        return Err(CliError::Output(error));
    }
    let damage = damage?;
    shown.output.flush().map_err(CliError::Output)?;
    let done = done.and(without(&damage, context.output));
    if shown.series.is_none() && damage.is_empty() {
        return Err(CliError::NoSnapshotHas { path: arguments.path.clone() });
    }
    Ok(done)
}

/// Prints versions, each series below its name.
struct Shown<W> {
    output: W,
    json: bool,
    series: Option<SeriesId>,
}

impl<W: Write> Shown<W> {
    fn print(&mut self, change: &PathChange<'_>) -> io::Result<()> {
        let PathChange { snapshot: view, change, entry } = change;
        let modifier = modifier(*change);
        let is_new = self.series.replace(view.series) != Some(view.series);
        if self.json {
            let version = VersionJson {
                message_type: "version",
                series: &view.series_name,
                snapshot: view.snapshot.id.to_string(),
                time: rfc3339(view.snapshot.time),
                modifier,
                entry: entry.as_ref().map(EntryJson::from),
            };
            serde_json::to_writer(&mut self.output, &version)?;
            return writeln!(self.output);
        }
        if is_new {
            writeln!(self.output, "series {}:", visible(view.series_name.as_bytes()))?;
        }
        let (id, time) = (view.snapshot.id.short(), local(view.snapshot.time));
        match entry {
            Some(entry) => writeln!(self.output, "{time}  {id}  {modifier}  {}", long_line(entry)),
            None => writeln!(self.output, "{time}  {id}  {modifier}"),
        }
    }
}
