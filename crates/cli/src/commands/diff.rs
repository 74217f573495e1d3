//! `silt diff`: shows how two snapshots differ, or a snapshot and what lies on disk.

use super::backup::without_own_folders;
use crate::choose::find;
use crate::context::Context;
use crate::error::{CliError, Done};
use crate::output::buffered;
use crate::parse::SnapshotReference;
use crate::patterns::{ExcludeArgs, FilterArgs};
use crate::render::{Path, describe, modifier, size};
use crate::repository::{Opened, open};
use clap::Args;
use serde::Serialize;
use siltstone_engine::EngineError;
use siltstone_engine::compare::{Change, Difference, Live, Seen, Side, compare, compare_live};
use siltstone_engine::fs::ScanOptions;
use siltstone_store::repository::Repository;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Show how two snapshots differ, or a snapshot and what lies on disk
///
/// One line for each path: + added, - removed, M its content is another one, T it is of another kind, U only owner,
/// permissions, time or attributes differ (with --metadata). Files are compared by their content.
#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    /// Id, latest or latest~N; with :PATH only what is at or below that path
    #[arg(value_name = "SNAPSHOT[:PATH]")]
    first: OsString,
    /// What it is compared with
    #[arg(value_name = "SNAPSHOT[:PATH]", required_unless_present = "live")]
    second: Option<OsString>,
    /// Compare with what lies on disk now; say what is left out with the --exclude options of the backup
    #[arg(long, conflicts_with = "second")]
    live: bool,
    /// With --live, take files for the same whose size, times and inode are as they were
    #[arg(long, requires = "live")]
    trust_times: bool,
    /// With --live, stay on the file systems of the sources
    #[arg(short = 'x', long, requires = "live")]
    one_file_system: bool,
    #[command(flatten)]
    exclude: ExcludeArgs,
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
    /// None if it was compared with what lies on disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    target_snapshot: Option<String>,
    #[serde(flatten)]
    totals: Totals,
}

pub(crate) fn run(arguments: &DiffArgs, context: &Context) -> Result<Done, CliError> {
    let repository = open(context)?;
    let (first, found) = side(&arguments.first, arguments, &repository, context)?;
    let Some(second) = &arguments.second else {
        return with_disk(arguments, &first, &repository, context).map(|done| found.and(done));
    };
    if !arguments.exclude.is_empty() {
        return Err(CliError::ExcludesNothing);
    }
    let (second, also_found) = side(second, arguments, &repository, context)?;
    let target = second.snapshot.snapshot.id.to_string();
    show(arguments, &first, (&describe(&second.snapshot), Some(target)), context, |visit| {
        Ok(compare(&repository, &first, &second, &context.resources_for(&repository), visit)?)
    })?;
    Ok(found.and(also_found))
}

/// Compares with what lies on disk.
fn with_disk(arguments: &DiffArgs, side: &Side, repository: &Opened, context: &Context) -> Result<Done, CliError> {
    let exclude = without_own_folders(arguments.exclude.rules()?, repository, context);
    let sources: Vec<PathBuf> = match &side.below {
        Some(path) => vec![std::path::Path::new("/").join(OsStr::from_bytes(path.as_bytes()))],
        None => side.snapshot.snapshot.paths.iter().map(|path| OsStr::from_bytes(path).into()).collect(),
    };
    if let Some(path) = sources.iter().find(|path| !path.is_absolute()) {
        return Err(CliError::NotOnDisk { path: path.clone() });
    }
    let scan = ScanOptions { exclude, one_file_system: arguments.one_file_system, ..ScanOptions::default() };
    let live = Live { sources, scan, trusts_status: arguments.trust_times };
    let problems = show(arguments, side, ("what is on disk", None), context, |visit| {
        Ok(compare_live(repository, &side.snapshot, &live, &context.resources_for(repository), visit)?)
    })?;
    for problem in &problems {
        context.output.error(problem);
    }
    Ok(if problems.is_empty() { Done::Whole } else { Done::InPart })
}

/// Prints what `compare` shows, and the sums.
fn show<R>(
    arguments: &DiffArgs,
    first: &Side,
    (with, target_snapshot): (&str, Option<String>),
    context: &Context,
    compare: impl FnOnce(Visit<'_>) -> Result<R, CliError>,
) -> Result<R, CliError> {
    let before = describe(&first.snapshot);
    context.output.report(format_args!("comparing {before}\nwith      {with}\n"))?;

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
    let compared = compare(&mut visit);
    if let Some(error) = failed {
        return Err(CliError::Output(error));
    }
    let compared = compared?;
    output.flush().map_err(CliError::Output)?;
    drop(output);
    let source_snapshot = first.snapshot.snapshot.id.to_string();
    let (message_type, text) = ("statistics", totals.text());
    let message = StatisticsJson { message_type, source_snapshot, target_snapshot, totals };
    context.output.json_or_report(&message, text)?;
    Ok(compared)
}

/// Takes differences as they are found.
type Visit<'v> = &'v mut dyn FnMut(Difference) -> Result<(), EngineError>;

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
            if let Some(seen) = entry.filter(|_| *change != Change::Metadata) {
                amount.add(seen, counts);
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
    fn add(&mut self, seen: Seen, counts: bool) {
        let count = u64::from(counts);
        match seen {
            Seen::Directory => self.dirs += count,
            Seen::File { bytes } => {
                self.files += count;
                self.bytes += bytes;
            }
            Seen::Other => self.others += count,
        }
    }
}

fn print(output: &mut impl Write, difference: &Difference, context: &Context) -> io::Result<()> {
    let path = Path::of(&difference.path);
    let is_directory = difference.after.or(difference.before) == Some(Seen::Directory);
    let (slash, modifier) = (if is_directory { "/" } else { "" }, modifier(difference.change));
    if !context.output.json {
        return writeln!(output, "{modifier:5}{}{slash}", path.visible());
    }
    let path_raw = path.raw();
    let path = format!("{}{slash}", path.lossy());
    serde_json::to_writer(&mut *output, &ChangeJson { message_type: "change", path, path_raw, modifier })?;
    writeln!(output)
}
