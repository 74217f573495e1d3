//! `silt diff`: shows how two snapshots differ.

use crate::choose::find;
use crate::context::Context;
use crate::error::{CliError, Done};
use crate::output::buffered;
use crate::parse::SnapshotReference;
use crate::patterns::FilterArgs;
use crate::render::{Path, describe, modifier, size};
use crate::repository::open;
use clap::Args;
use serde::Serialize;
use siltstone_engine::EngineError;
use siltstone_engine::compare::{Change, Difference, Side, compare};
use siltstone_engine::file_reader::CACHE_BYTES_DEFAULT;
use siltstone_store::catalog::{Content, Entry};
use siltstone_store::repository::Repository;
use std::ffi::OsString;
use std::io::{self, Write};

/// Show how two snapshots differ
///
/// One line for each path: + added, - removed, M its content is another one, T it is of another kind, U only owner,
/// permissions, time or attributes differ (with --metadata). Files are compared by their content.
#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    /// Id, latest or latest~N; with :PATH only what is at or below that path
    #[arg(value_name = "SNAPSHOT[:PATH]")]
    first: OsString,
    /// What it is compared with
    #[arg(value_name = "SNAPSHOT[:PATH]")]
    second: OsString,
    /// Also show paths of which only owner, permissions, time or attributes differ
    #[arg(long)]
    metadata: bool,
    #[command(flatten)]
    filter: FilterArgs,
}

/// Entries and bytes that one side has and the other lacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
struct Amount {
    files: u64,
    dirs: u64,
    others: u64,
    /// Bytes of these files, and of those whose content differs.
    bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
struct Totals {
    /// Files and others whose content or kind is another one.
    changed_files: u64,
    added: Amount,
    removed: Amount,
}

#[derive(Serialize)]
struct ChangeJson {
    message_type: &'static str,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_raw: Option<String>,
    modifier: &'static str,
}

#[derive(Serialize)]
struct StatisticsJson {
    message_type: &'static str,
    source_snapshot: String,
    target_snapshot: String,
    #[serde(flatten)]
    totals: Totals,
}

pub(crate) fn run(arguments: &DiffArgs, context: &Context) -> Result<Done, CliError> {
    let repository = open(context)?;
    let (first, found) = side(&arguments.first, arguments, &repository, context)?;
    let (second, also_found) = side(&arguments.second, arguments, &repository, context)?;
    let (before, after) = (describe(&first.snapshot), describe(&second.snapshot));
    context.output.report(format_args!("comparing {before}\nwith      {after}\n"))?;

    let mut output = buffered();
    let (mut totals, mut failed) = (Totals::default(), None);
    let mut visit = |difference: Difference| {
        if difference.change == Change::Metadata && !arguments.metadata {
            return Ok(());
        }
        totals.add(&difference);
        print(&mut output, &difference, context).map_err(|error| {
            failed = Some(error);
            EngineError::Interrupted
        })
    };
    let compared = compare(&repository, &first, &second, CACHE_BYTES_DEFAULT, &mut visit);
    if let Some(error) = failed {
        return Err(CliError::Output(error));
    }
    compared?;
    output.flush().map_err(CliError::Output)?;
    drop(output);
    let [source_snapshot, target_snapshot] = [&first, &second].map(|side| side.snapshot.snapshot.id.to_string());
    if context.output.json {
        let message_type = "statistics";
        context.output.json(&StatisticsJson { message_type, source_snapshot, target_snapshot, totals })?;
    } else {
        context.output.report(totals.text())?;
    }
    Ok(found.and(also_found))
}

fn side(
    reference: &OsString,
    arguments: &DiffArgs,
    repository: &Repository,
    context: &Context,
) -> Result<(Side, Done), CliError> {
    let reference = SnapshotReference::from(reference.clone());
    let (snapshot, found) = find(repository, &reference.snapshot, &arguments.filter.filter(), context.output)?;
    Ok((Side { snapshot, below: reference.entry_path()? }, found))
}

impl Totals {
    fn add(&mut self, difference: &Difference) {
        let Difference { change, before, after, .. } = difference;
        if matches!(change, Change::Content | Change::Kind) {
            self.changed_files += 1;
        }
        // What became another kind is counted as changed alone, with the bytes that came and went.
        let counts = matches!(change, Change::Added | Change::Removed);
        for (amount, entry) in [(&mut self.removed, before), (&mut self.added, after)] {
            if let Some(entry) = entry.as_ref().filter(|_| *change != Change::Metadata) {
                amount.add(entry, counts);
            }
        }
    }

    fn text(&self) -> String {
        let Self { changed_files, added, removed } = self;
        let line = |name: &str, new: u64, gone: u64| format!("{name:8}{new:>7} new, {gone:>7} removed");
        let files = line("Files:", added.files, removed.files);
        let (dirs, others) = (line("Dirs:", added.dirs, removed.dirs), line("Others:", added.others, removed.others));
        let (came, went) = (size(added.bytes), size(removed.bytes));
        format!("\n{files}, {changed_files:>7} changed\n{dirs}\n{others}\n  Added:   {came}\n  Removed: {went}")
    }
}

impl Amount {
    fn add(&mut self, entry: &Entry, counts: bool) {
        let count = u64::from(counts);
        match &entry.content {
            Content::Directory => self.dirs += count,
            Content::File { size, .. } => {
                self.files += count;
                self.bytes += size;
            }
            _ => self.others += count,
        }
    }
}

fn print(output: &mut impl Write, difference: &Difference, context: &Context) -> io::Result<()> {
    let path = Path::of(&difference.path);
    let is_directory = difference.after.as_ref().or(difference.before.as_ref()).is_some_and(Entry::is_directory);
    let (slash, modifier) = (if is_directory { "/" } else { "" }, modifier(difference.change));
    if !context.output.json {
        return writeln!(output, "{modifier:5}{}{slash}", path.visible());
    }
    let path_raw = path.raw();
    let path = format!("{}{slash}", path.lossy());
    serde_json::to_writer(&mut *output, &ChangeJson { message_type: "change", path, path_raw, modifier })?;
    writeln!(output)
}
