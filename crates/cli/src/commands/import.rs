//! `silt import`: makes snapshots of what other programs have kept.

use super::backup::report;
use super::copying::WritingArgs;
use super::record::RecordArgs;
use crate::context::Context;
use crate::error::{CliError, Done};
use crate::memory;
use crate::parse::entry_path;
use crate::progress::{Progress, Work};
use crate::repository::open_for_series;
use crate::retry::while_locked;
use clap::{Args, Subcommand};
use siltstone_engine::backup::{BackupOptions, BackupSummary};
use siltstone_engine::import::{ImportOptions, TarBytes};
use siltstone_store::Time;
use siltstone_store::repository::Repository;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Make snapshots of what other programs have kept
///
/// A program of its own, 'silt-import restic', brings the snapshots of a restic repository over.
#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    #[command(subcommand)]
    from: From,
}

#[derive(Subcommand, Debug)]
enum From {
    Tar(Box<TarArgs>),
}

/// Make a snapshot of each tar archive, in the order given
///
/// Names, content, holes, hard links, owners, permissions, times, attributes and access control lists are kept as
/// tar, GNU tar, bsdtar, `borg export-tar` and `silt dump` write them. A snapshot has the time at which its archive was
/// written. Archives may be compressed by gzip or zstd. One that is compressed or comes from standard input is copied
/// to the folder for temporary files first.
#[derive(Args, Debug)]
struct TarArgs {
    /// Archives, oldest first; - for standard input
    #[arg(value_name = "ARCHIVE", required = true)]
    archives: Vec<PathBuf>,
    /// Series the snapshots belong to
    #[arg(long, value_name = "NAME")]
    series: String,
    /// Folder that the names of the archive are put below, as if it had been backed up there [default: /]
    #[arg(long, value_name = "PATH")]
    as_path: Option<OsString>,
    #[command(flatten)]
    record: RecordArgs,
    /// Make no snapshot if nothing changed since the previous one
    #[arg(long)]
    skip_if_unchanged: bool,
    /// Write nothing, only show what would be done
    #[arg(short = 'n', long)]
    dry_run: bool,
    #[command(flatten)]
    writing: WritingArgs,
}

pub(crate) fn run(arguments: &ImportArgs, context: &Context) -> Result<Done, CliError> {
    match &arguments.from {
        From::Tar(arguments) => run_tar(arguments, context),
    }
}

fn run_tar(arguments: &TarArgs, context: &Context) -> Result<Done, CliError> {
    let options = options(arguments, context)?;
    let takes_stdin = arguments.archives.iter().any(|archive| is_stdin(archive));
    if options.backup.time.is_some() && arguments.archives.len() > 1 {
        return Err(CliError::TimeOfSeveral);
    }
    let repository = open_for_series(context, Some(&arguments.series), takes_stdin)?;
    let mut is_whole = true;
    for archive in &arguments.archives {
        if arguments.archives.len() > 1 {
            context.output.report(format!("{}:", archive.display()))?;
        }
        let (summary, problems) = import(&repository, archive, &options, context)?;
        report(context, arguments.dry_run, &summary, 0)?;
        is_whole &= problems == 0 && summary.statistics.problems == 0;
    }
    memory::renew(&repository, context);
    if !is_whole {
        context.output.warn("warning: something of the archives could not be kept; the rest is in the snapshots");
    }
    Ok(if is_whole { Done::Whole } else { Done::InPart })
}

/// Imports an archive; and how many problems there were.
fn import(
    repository: &Repository,
    archive: &Path,
    options: &ImportOptions,
    context: &Context,
) -> Result<(BackupSummary, u64), CliError> {
    let (name, bytes, written) = open(archive)?;
    let time = options.backup.time.or(written);
    let options = options.clone().with_backup(options.backup.clone().with_time(time));
    let progress = Progress::begin(Work::Import, context)?;
    let session = context.session(repository, &progress);
    let archive = session.open_tar(&name, bytes)?;
    let summary = while_locked(context, || Ok(session.import_tar(&archive, &options)?))?;
    let problems = progress.counts().problems;
    progress.end();
    Ok((summary, problems))
}

fn is_stdin(archive: &Path) -> bool {
    archive.as_os_str() == "-"
}

/// Opens an archive: what to call it, its bytes, and when it was written if that is known.
fn open(archive: &Path) -> Result<(String, TarBytes, Option<Time>), CliError> {
    if is_stdin(archive) {
        let input = io::stdin().as_fd().try_clone_to_owned();
        let input = input.map_err(|source| CliError::Archive { path: "standard input".into(), source })?;
        return Ok(("standard input".to_owned(), TarBytes::Stream(Box::new(File::from(input))), None));
    }
    let failed = |source| CliError::Archive { path: archive.to_owned(), source };
    let file = File::open(archive).map_err(failed)?;
    let status = file.metadata().map_err(failed)?;
    if status.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    let written = Time { seconds: status.mtime(), nanoseconds: u32::try_from(status.mtime_nsec()).unwrap_or(0) };
    let name = archive.display().to_string();
    let is_file = status.is_file();
    let bytes = if is_file { TarBytes::File(file) } else { TarBytes::Stream(Box::new(file)) };
    Ok((name, bytes, is_file.then_some(written)))
}

fn options(arguments: &TarArgs, context: &Context) -> Result<ImportOptions, CliError> {
    let backup = arguments
        .record
        .recorded(BackupOptions::default())
        .with_series(Some(arguments.series.clone()))
        .with_dry_run(arguments.dry_run)
        .with_skip_if_unchanged(arguments.skip_if_unchanged);
    let backup = arguments.writing.put_into(backup, context)?;
    let below = arguments.as_path.as_deref().map(entry_path).transpose()?.flatten();
    Ok(ImportOptions::default().with_backup(backup).with_below(below))
}
