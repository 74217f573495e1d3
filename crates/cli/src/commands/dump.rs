//! `silt dump`: writes a file of a snapshot to standard output, or a folder as a tar archive.

use super::{Context, find};
use crate::error::{CliError, Done};
use crate::parse::{SnapshotReference, entry_path};
use crate::patterns::FilterArgs;
use crate::progress::{Progress, Work};
use crate::repository::open;
use clap::{Args, ValueEnum};
use siltstone_engine::EngineError;
use siltstone_engine::browse::dump;
use siltstone_store::catalog::EntryPath;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

/// Write a file of a snapshot to standard output, a folder as a tar archive
#[derive(Args, Debug)]
#[command(visible_alias = "cat")]
pub(crate) struct DumpArgs {
    /// Id, latest or latest~N, and maybe a path
    #[arg(value_name = "SNAPSHOT[:PATH]")]
    snapshot: OsString,
    /// File or folder, from the path given above or from the root; / for everything
    #[arg(value_name = "FILE")]
    path: Option<OsString>,
    /// File to write to instead of standard output
    #[arg(short, long, value_name = "FILE")]
    target: Option<PathBuf>,
    /// Form of the archive of a folder
    #[arg(short, long, default_value = "tar")]
    archive: Archive,
    #[command(flatten)]
    filter: FilterArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Archive {
    /// tar with PAX headers
    Tar,
}

pub(super) fn run(arguments: &DumpArgs, context: &Context) -> Result<Done, CliError> {
    let Archive::Tar = arguments.archive;
    let reference = SnapshotReference::from(arguments.snapshot.clone());
    let path = path(arguments, &reference)?;
    let repository = open(context)?;
    let (view, found) = find(&repository, &reference.snapshot, &arguments.filter.filter(), context.output)?;
    let progress = Progress::begin(Work::Dump, context.output)?;
    let mut output = Output::open(arguments)?;
    let dumped = dump(&repository, &view, path.as_ref(), &mut output, &progress);
    let problems = progress.counts().problems;
    progress.end();
    output.end(dumped)?;
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

/// Where the bytes go; it keeps the error that broke it, so that it is told as what it is.
struct Output {
    to: Box<dyn Write>,
    file: Option<PathBuf>,
    broken: Option<io::Error>,
}

impl Output {
    fn open(arguments: &DumpArgs) -> Result<Self, CliError> {
        let file = arguments.target.clone();
        let to: Box<dyn Write> = match &file {
            Some(path) => {
                Box::new(File::create(path).map_err(|source| CliError::OutputFile { path: path.clone(), source })?)
            }
            None => Box::new(io::stdout().lock()),
        };
        Ok(Self { to, file, broken: None })
    }

    fn end(mut self, dumped: Result<(), EngineError>) -> Result<(), CliError> {
        let flushed = if dumped.is_ok() { self.flush() } else { Ok(()) };
        match (self.broken.or(flushed.err()), self.file) {
            (Some(source), Some(path)) => Err(CliError::OutputFile { path, source }),
            (Some(source), None) => Err(CliError::Output(source)),
            (None, _) => Ok(dumped?),
        }
    }
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
