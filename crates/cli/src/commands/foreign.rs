//! `silt-import`: brings snapshots of another program's repository over.

use super::copy::{Words, report};
use super::copying::CopyingArgs;
use crate::context::Context;
use crate::error::{CliError, Done};
use crate::from::FromResticArgs;
use crate::memory;
use crate::password::{PasswordSource, Whose};
use crate::patterns::FilterArgs;
use crate::progress::{Progress, Work};
use crate::render::{counted, size};
use crate::repository::{Opened, address_by, open};
use crate::retry::while_locked;
use clap::Args;
use serde::Serialize;
use siltstone_engine::import::{ForeignRepository, VerifySummary};
use siltstone_engine::snapshots::SnapshotView;
use std::path::{Path, PathBuf};

const IMPORT: Words = ["import", "imported"];

/// Opens the repository of another program in a folder by a password.
pub type OpenForeign = fn(&Path, &[u8]) -> Result<Box<dyn ForeignRepository>, OpenError>;

/// Reason why the repository of another program was not opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OpenError {
    /// There is none.
    NotThere(String),
    /// The password opens none of its keys.
    WrongPassword,
    /// It cannot be read.
    Unreadable(String),
}

/// Bring snapshots of a restic repository over, oldest first
///
/// Each becomes a snapshot with its time, host, user, paths and tags, and with all that restic keeps of files: owners,
/// permissions, times, links, attributes, access control lists, devices. It goes into the series of its host and paths:
/// the one to which 'silt backup' of these paths on that host adds. Its id begins as it does in restic. Snapshots that
/// are here already are skipped, so that an import can be stopped and run again. The restic repository is only read;
/// one that rustic wrote is read as well.
#[derive(Args, Debug)]
pub(crate) struct ResticArgs {
    /// Only snapshots whose ids begin so [default: all that pass the filters]
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    filter: FilterArgs,
    /// Write nothing, only show which snapshots would come
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Then read back what has come, now or before, and compare it with the hashes and metadata that restic keeps
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    copying: CopyingArgs,
    #[command(flatten)]
    from: FromResticArgs,
}

pub(crate) fn run(arguments: &ResticArgs, open_foreign: OpenForeign, context: &Context) -> Result<Done, CliError> {
    let options = arguments.copying.options(arguments.dry_run, context)?;
    let source = open_source(arguments, open_foreign)?;
    let wanted = wanted(arguments, source.snapshots())?;
    let destination = open(context)?;
    let progress = Progress::begin(Work::Import, context)?;
    let session = context.session(&destination, &progress);
    let summary = while_locked(context, || Ok(session.import_snapshots(&*source, &wanted, &options)?))?;
    let took = progress.elapsed();
    progress.end();
    memory::renew(&destination, context);
    report(context, IMPORT, arguments.dry_run, &summary, took)?;
    if summary.failed + summary.incomplete > 0 {
        let text = "warning: something of the restic repository cannot be read: 'restic check --read-data' tells what; \
                    --skip-damaged imports snapshots without it";
        context.output.warn(text);
    }
    let mut is_whole = summary.failed + summary.incomplete == 0;
    if arguments.verify && !arguments.dry_run {
        is_whole &= verify(&*source, &wanted, &destination, context)?;
    }
    Ok(if is_whole { Done::Whole } else { Done::InPart })
}

/// Compares what has come with its originals; tells whether all is there and the same.
fn verify(
    source: &dyn ForeignRepository,
    originals: &[SnapshotView],
    destination: &Opened,
    context: &Context,
) -> Result<bool, CliError> {
    let progress = Progress::begin(Work::Import, context)?;
    let summary = context.session(destination, &progress).verify_snapshots(source, originals)?;
    progress.end();
    let VerifySummary { snapshots, same, missing, entries, read_bytes } = summary;
    let message = VerifyMessage { message_type: "verify_summary", snapshots, same, missing, entries, read_bytes };
    let absent = if missing > 0 { format!(", {missing} are not here") } else { String::new() };
    let read = size(read_bytes);
    let text = format!(
        "verified {}: {same} are the same as in restic{absent} ({}, {read} read)",
        counted(snapshots, "snapshot"),
        counted(entries, "entry")
    );
    context.output.json_or_report(&message, text)?;
    Ok(missing == 0 && same == snapshots)
}

/// `message_type` `verify_summary`.
#[derive(Serialize)]
struct VerifyMessage {
    message_type: &'static str,
    snapshots: u64,
    same: u64,
    missing: u64,
    entries: u64,
    read_bytes: u64,
}

fn open_source(arguments: &ResticArgs, open_foreign: OpenForeign) -> Result<Box<dyn ForeignRepository>, CliError> {
    let folder = folder(&arguments.from)?;
    if !folder.join("config").exists() {
        return Err(CliError::NoResticRepository { folder, reason: "it has no file config".to_owned() });
    }
    let password = PasswordSource::choose_from_restic(&arguments.from)?.read(Whose::Restic)?;
    open_foreign(&folder, &password).map_err(|error| match error {
        OpenError::NotThere(reason) => CliError::NoResticRepository { folder, reason },
        OpenError::WrongPassword => CliError::ResticPassword { folder },
        OpenError::Unreadable(reason) => CliError::ResticUnreadable { folder, reason },
    })
}

/// The folder of the restic repository.
fn folder(from: &FromResticArgs) -> Result<PathBuf, CliError> {
    let given = (from.from_repo.clone(), from.from_repository_file.clone());
    let (options, variables) =
        (["--from-repo", "--from-repository-file"], ["RESTIC_REPOSITORY", "RESTIC_REPOSITORY_FILE"]);
    let address = address_by(given, options, variables)?.ok_or(CliError::NoResticRepositoryGiven)?;
    let text = address.to_string_lossy();
    if let Some(folder) = text.strip_prefix("local:") {
        return Ok(folder.into());
    }
    let elsewhere = ["sftp:", "rest:", "s3:", "swift:", "b2:", "azure:", "gs:", "rclone:"];
    if elsewhere.iter().any(|scheme| text.starts_with(scheme)) {
        return Err(CliError::ResticElsewhere { address: text.into_owned() });
    }
    Ok(address)
}

/// The snapshots asked for.
fn wanted(arguments: &ResticArgs, all: &[SnapshotView]) -> Result<Vec<SnapshotView>, CliError> {
    let begins = |view: &SnapshotView, wanted: &str| view.snapshot.id.to_string().starts_with(wanted);
    if let Some(wanted) = arguments.ids.iter().find(|wanted| !all.iter().any(|view| begins(view, wanted))) {
        return Err(CliError::NoResticSnapshot { wanted: wanted.clone() });
    }
    let filter = arguments.filter.filter();
    let is_named = |view: &SnapshotView| arguments.ids.iter().any(|wanted| begins(view, wanted));
    let passes = |view: &&SnapshotView| if arguments.ids.is_empty() { filter.matches(view) } else { is_named(view) };
    Ok(all.iter().filter(passes).cloned().collect())
}
