//! `silt ls`: lists what a snapshot holds.

use crate::choose::find;
use crate::context::Context;
use crate::error::{CliError, Done};
use crate::output::buffered;
use crate::parse::{SnapshotReference, entry_path};
use crate::patterns::FilterArgs;
use crate::render::{EntryJson, Path, SnapshotJson, describe, long_line};
use crate::repository::open;
use clap::{Args, ValueEnum};
use serde::Serialize;
use siltstone_engine::EngineError;
use siltstone_engine::browse::ls;
use siltstone_engine::snapshots::SnapshotView;
use siltstone_store::catalog::{Content, Entry, EntryPath};
use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

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
    /// Order by this; all is listed in memory first
    #[arg(short, long, value_name = "BY")]
    sort: Option<SortBy>,
    /// The other way round
    #[arg(long)]
    reverse: bool,
    #[command(flatten)]
    filter: FilterArgs,
}

/// Order of entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum SortBy {
    /// Path
    Name,
    /// Size, smallest first
    Size,
    /// Time of modification, oldest first
    #[value(alias = "mtime")]
    Time,
    /// What follows the last dot of the name
    Extension,
}

impl SortBy {
    /// The order of two entries; equal ones keep that of their paths.
    fn order(self, one: &Entry, other: &Entry) -> Ordering {
        let size = |entry: &Entry| if let Content::File { size, .. } = entry.content { size } else { 0 };
        match self {
            Self::Name => one.path.cmp(&other.path),
            Self::Size => size(one).cmp(&size(other)),
            Self::Time => one.metadata.modified.cmp(&other.metadata.modified),
            Self::Extension => extension(one).cmp(extension(other)),
        }
    }
}

fn extension(entry: &Entry) -> &[u8] {
    std::path::Path::new(OsStr::from_bytes(entry.path.name())).extension().unwrap_or_default().as_bytes()
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
    let is_ordered = arguments.sort.is_some() || arguments.reverse;
    let mut ordered: Vec<Entry> = Vec::new();
    for (path, recursive) in places {
        let mut visit = |entry: &Entry| {
            if is_ordered {
                ordered.push(entry.clone());
                return Ok(());
            }
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
    ordered.sort_by(|one, other| arguments.sort.unwrap_or(SortBy::Name).order(one, other));
    if arguments.reverse {
        ordered.reverse();
    }
    for entry in &ordered {
        print(&mut output, entry, arguments.long, context).map_err(CliError::Output)?;
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
