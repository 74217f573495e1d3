//! `silt dump`: writes a file of a snapshot to standard output, or a folder as an archive. `silt export`: writes an
//! archive of whatever is asked for.

use crate::choose::find;
use crate::context::Context;
use crate::error::{CliError, Done};
use crate::parse::{SnapshotReference, entry_path};
use crate::patterns::FilterArgs;
use crate::progress::{Progress, Work};
use crate::repository::open;
use clap::{Args, Subcommand, ValueEnum};
use siltstone_engine::browse::ls;
use siltstone_engine::dump;
use siltstone_engine::snapshots::SnapshotView;
use siltstone_engine::{EngineError, Session};
use siltstone_store::catalog::EntryPath;
use siltstone_store::repository::Repository;
use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// Write a file of a snapshot to standard output, a folder as an archive
///
/// Names in the archive are whole paths of the snapshot, whether a path is given behind the snapshot or beside it.
#[derive(Args, Debug)]
#[command(visible_alias = "cat")]
pub(crate) struct DumpArgs {
    /// Id, latest or latest~N, and maybe a path
    #[arg(value_name = "SNAPSHOT[:PATH]")]
    snapshot: OsString,
    /// File or folder, from the path given above or from the root; / for everything
    #[arg(value_name = "FILE")]
    path: Option<OsString>,
    /// File to write to instead of standard output, which - means too
    #[arg(short, long, value_name = "FILE")]
    target: Option<PathBuf>,
    /// Form of the archive of a folder
    #[arg(short, long, default_value = "tar")]
    archive: ArchiveArg,
    #[command(flatten)]
    filter: FilterArgs,
}

/// Write a snapshot, or part of it, as an archive that other programs read
#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    #[command(subcommand)]
    archive: Export,
}

#[derive(Subcommand, Debug)]
enum Export {
    /// As tar with PAX records: everything that a restore gives back, which 'silt import tar' takes as it was
    Tar(ExportedArgs),
    /// As zip: names, content, permissions, and times in seconds; tar keeps all the rest
    Zip(ExportedArgs),
}

/// What is exported, and where to.
#[derive(Args, Debug)]
struct ExportedArgs {
    /// Id, latest or latest~N, and maybe a path
    #[arg(value_name = "SNAPSHOT[:PATH]")]
    snapshot: OsString,
    /// File to write to, which gets its name when it is complete [default: -, standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    filter: FilterArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ArchiveArg {
    /// tar with PAX records: everything that a restore gives back
    Tar,
    /// zip: names, content, permissions, and times in seconds
    Zip,
}

impl From<ArchiveArg> for dump::Archive {
    fn from(argument: ArchiveArg) -> Self {
        match argument {
            ArchiveArg::Tar => Self::Tar,
            ArchiveArg::Zip => Self::Zip,
        }
    }
}

pub(crate) fn run(arguments: &DumpArgs, context: &Context) -> Result<Done, CliError> {
    let reference = SnapshotReference::from(arguments.snapshot.clone());
    let path = path(arguments, &reference)?;
    let (archive, target) = (arguments.archive.into(), file(arguments.target.as_deref()));
    let refused = CliError::ArchiveToTerminal { option: "--target" };
    let is_at_terminal = is_at_terminal(target);
    if is_at_terminal && path.is_none() {
        return Err(refused);
    }
    written((&reference, &arguments.filter), target, context, |session, view, output| {
        if is_at_terminal && is_folder(session.repository(), view, path.as_ref())? {
            return Err(refused);
        }
        Ok(session.dump(view, path.as_ref(), archive, output)?)
    })
}

pub(crate) fn export(arguments: &ExportArgs, context: &Context) -> Result<Done, CliError> {
    let (archive, arguments) = match &arguments.archive {
        Export::Tar(arguments) => (dump::Archive::Tar, arguments),
        Export::Zip(arguments) => (dump::Archive::Zip, arguments),
    };
    let target = file(arguments.output.as_deref());
    if is_at_terminal(target) {
        return Err(CliError::ArchiveToTerminal { option: "--output" });
    }
    let reference = SnapshotReference::from(arguments.snapshot.clone());
    let path = reference.entry_path()?;
    written((&reference, &arguments.filter), target, context, |session, view, output| {
        Ok(session.export(view, path.as_ref(), archive, output)?)
    })
}

/// The file to write to; `None` for standard output, which `-` means too.
fn file(target: Option<&Path>) -> Option<&Path> {
    target.filter(|path| *path != Path::new("-"))
}

/// Tells whether what is written there goes to a terminal.
fn is_at_terminal(target: Option<&Path>) -> bool {
    target.is_none() && io::stdout().is_terminal()
}

/// Tells whether there is a folder at this path, as there is without one.
fn is_folder(repository: &Repository, view: &SnapshotView, path: Option<&EntryPath>) -> Result<bool, EngineError> {
    let Some(path) = path else { return Ok(true) };
    let mut is_folder = false;
    ls(repository, view, Some(path), false, &mut |entry| {
        is_folder |= entry.path == *path && entry.is_directory();
        Ok(())
    })?;
    Ok(is_folder)
}

/// Writes something of a snapshot to a file, or to standard output.
fn written(
    (reference, filter): (&SnapshotReference, &FilterArgs),
    target: Option<&Path>,
    context: &Context,
    write: impl FnOnce(&Session<&Repository>, &SnapshotView, &mut Output) -> Result<(), CliError>,
) -> Result<Done, CliError> {
    let repository = open(context)?;
    let (view, found) = find(&repository, &reference.snapshot, &filter.filter(), context.output)?;
    let progress = Progress::begin(Work::Dump, context)?;
    let mut output = Output::open(target)?;
    let written = write(&context.session(&repository, &progress), &view, &mut output);
    let problems = progress.counts().problems;
    progress.end();
    output.end(written)?;
    if problems > 0 { Err(CliError::RestoreProblems { problems }) } else { Ok(found) }
}

/// The path after the snapshot and the path beside it, one below the other.
fn path(arguments: &DumpArgs, reference: &SnapshotReference) -> Result<Option<EntryPath>, CliError> {
    let below = arguments.path.as_deref().map(entry_path).transpose()?.flatten();
    Ok(match (reference.entry_path()?, below) {
        (Some(base), Some(below)) => Some(EntryPath::new([base.as_bytes(), b"/", below.as_bytes()].concat())?),
        (base, below) => base.or(below),
    })
}

/// Bytes gathered before they are written: headers are small.
const BUFFER_BYTES: usize = 256 << 10;

/// Where the bytes go; it keeps the error that broke it, so that it is told as what it is.
struct Output {
    to: BufWriter<File>,
    file: Option<PathBuf>,
    /// A file that gets its name when it is complete, so that one cut short does not pass for it.
    unfinished: Option<TempPath>,
    broken: Option<io::Error>,
}

impl Output {
    fn open(target: Option<&Path>) -> Result<Self, CliError> {
        let file = target.map(Path::to_owned);
        let (to, unfinished) = match &file {
            Some(path) => create(path).map_err(|source| CliError::OutputFile { path: path.clone(), source })?,
            // Past the buffer that `io::stdout` has, which looks for ends of lines.
            None => (File::from(io::stdout().as_fd().try_clone_to_owned().map_err(CliError::Output)?), None),
        };
        Ok(Self { to: BufWriter::with_capacity(BUFFER_BYTES, to), file, unfinished, broken: None })
    }

    fn end(mut self, dumped: Result<(), CliError>) -> Result<(), CliError> {
        let flushed = if dumped.is_ok() { self.flush() } else { Ok(()) };
        match (self.broken.or(flushed.err()), self.file) {
            (Some(source), Some(path)) => Err(CliError::OutputFile { path, source }),
            (Some(source), None) => Err(CliError::Output(source)),
            (None, file) => {
                dumped?;
                let (Some(unfinished), Some(path)) = (self.unfinished, file) else { return Ok(()) };
                let named = unfinished.persist(path.canonicalize().unwrap_or_else(|_| path.clone()));
                named.map_err(|error| CliError::OutputFile { path, source: error.error })
            }
        }
    }
}

/// Opens a file to write to: under another name first, unless it is a device or a pipe.
fn create(path: &Path) -> io::Result<(File, Option<TempPath>)> {
    if path.exists() && !path.is_file() {
        return Ok((File::options().write(true).open(path)?, None));
    }
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut temporary = tempfile::Builder::new();
    // As usual, less what the user's mask takes away.
    let temporary = temporary.prefix(".silt-dump-").permissions(Permissions::from_mode(0o666));
    let (file, unfinished) = temporary.tempfile_in(folder)?.into_parts();
    Ok((file, Some(unfinished)))
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(bytes).inspect_err(|error| {
            if error.kind() != io::ErrorKind::Interrupted {
                self.broken = Some(error.kind().into());
            }
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
