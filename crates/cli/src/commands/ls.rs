//! `silt ls`: lists what a snapshot holds.

use crate::choose::find;
use crate::context::Context;
use crate::error::{CliError, Done};
use crate::output::buffered;
use crate::parse::{SnapshotReference, entry_path};
use crate::patterns::FilterArgs;
use crate::render::{EntryJson, Path, SnapshotJson, describe, long_line};
use crate::repository::open;
use clap::Args;
use serde::Serialize;
use siltstone_engine::EngineError;
use siltstone_engine::browse::ls;
use siltstone_engine::snapshots::SnapshotView;
use siltstone_store::catalog::{Entry, EntryPath};
use std::ffi::OsString;
use std::io::{self, Write};

/// List what a snapshot holds
#[derive(Args, Debug)]
pub(crate) struct LsArgs {
    /// Id, latest or latest~N; with :PATH only what is at or below that path
    #[arg(value_name = "SNAPSHOT[:PATH]")]
    snapshot: OsString,
    /// Only these folders, without what their folders hold unless --recursive
    #[arg(value_name = "DIR")]
    folders: Vec<OsString>,
    /// With folders given, also what is below their folders
    #[arg(long)]
    recursive: bool,
    /// Show mode, owner, size and time
    #[arg(short, long)]
    long: bool,
    #[command(flatten)]
    filter: FilterArgs,
}

#[derive(Serialize)]
struct SnapshotLine {
    #[serde(flatten)]
    snapshot: SnapshotJson,
    message_type: &'static str,
    struct_type: &'static str,
}

pub(crate) fn run(arguments: &LsArgs, context: &Context) -> Result<Done, CliError> {
    let repository = open(context)?;
    let reference = SnapshotReference::from(arguments.snapshot.clone());
    let (view, found) = find(&repository, &reference.snapshot, &arguments.filter.filter(), context.output)?;
    let places = places(arguments, &reference)?;
    head(&view, context)?;

    let mut output = buffered();
    let mut failed = None;
    for (path, recursive) in places {
        let mut visit = |entry: &Entry| {
            print(&mut output, entry, arguments.long, context).map_err(|error| {
                failed = Some(error);
                EngineError::Interrupted
            })
        };
        let listed = ls(&repository, &view, path.as_ref(), recursive, &mut visit);
        if let Some(error) = failed {
            return Err(CliError::Output(error));
        }
        listed?;
    }
    output.flush().map_err(CliError::Output)?;
    Ok(found)
}

/// Where to list, and whether with all that is below.
fn places(arguments: &LsArgs, reference: &SnapshotReference) -> Result<Vec<(Option<EntryPath>, bool)>, CliError> {
    let base = reference.entry_path()?;
    if arguments.folders.is_empty() {
        return Ok(vec![(base, true)]);
    }
    let below = |folder: &OsString| {
        let path = match (entry_path(folder)?, &base) {
            (None, base) => base.clone(),
            (path, None) => path,
            (Some(path), Some(base)) => Some(EntryPath::new([base.as_bytes(), b"/", path.as_bytes()].concat())?),
        };
        Ok((path, arguments.recursive))
    };
    arguments.folders.iter().map(below).collect()
}

fn head(view: &SnapshotView, context: &Context) -> Result<(), CliError> {
    if context.output.json {
        let snapshot = SnapshotJson::from(view);
        return context.output.json(&SnapshotLine { snapshot, message_type: "snapshot", struct_type: "snapshot" });
    }
    context.output.report(format_args!("snapshot {}:", describe(view)))
}

fn print(output: &mut impl Write, entry: &Entry, long: bool, context: &Context) -> io::Result<()> {
    if context.output.json {
        serde_json::to_writer(&mut *output, &EntryJson::from(entry))?;
        return writeln!(output);
    }
    if long {
        writeln!(output, "{}", long_line(entry))
    } else {
        writeln!(output, "{}", Path::of(&entry.path).visible())
    }
}
