//! `silt mount`: shows snapshots as a file system.

use crate::context::Context;
use crate::error::{CliError, Done};
use crate::interrupt::{self, Working};
use crate::patterns::FilterArgs;
use crate::render::visible;
use crate::repository::{Opened, open, place};
use clap::Args;
use serde::Serialize;
use siltstone_mount::{MountOptions, mount};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Time between two looks whether the program is asked to end, or the folder was unmounted.
const LOOK: Duration = Duration::from_millis(50);

/// Show snapshots as a read-only file system, until Ctrl-C or umount
///
/// In the folder: latest; snapshots, with all of them by their times; series, hosts and tags, with those of each; ids.
#[derive(Args, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct MountArgs {
    /// Folder to mount on
    #[arg(value_name = "MOUNTPOINT")]
    folder: PathBuf,
    /// Let other users look into it; permissions are then heeded
    #[arg(long)]
    allow_other: bool,
    /// With --allow-other, let everybody read everything
    #[arg(long, requires = "allow_other")]
    no_default_permissions: bool,
    /// Show all files as owned by root
    #[arg(long)]
    owner_root: bool,
    #[command(flatten)]
    filter: FilterArgs,
}

/// `message_type` `mounted`.
#[derive(Serialize)]
struct Mounted<'a> {
    message_type: &'static str,
    repository: &'a str,
    mountpoint: &'a str,
}

pub(crate) fn run(arguments: &MountArgs, context: &Context) -> Result<Done, CliError> {
    // The file system may ask until the very end of the process.
    let repository: &'static Opened = Box::leak(Box::new(open(context)?));
    let output = context.output;
    let mut options = MountOptions::default();
    options.filter = arguments.filter.filter();
    options.allow_others = arguments.allow_other;
    options.check_permissions = arguments.allow_other && !arguments.no_default_permissions;
    options.owned_by_root = arguments.owner_root;
    options.resources = context.resources_for(repository);
    options.tell = Arc::new(move |problem| output.error(problem));
    let _working = Working::begin(|| ());
    let mounted = mount(repository, &arguments.folder, options)?;
    let (repository_place, folder) =
        (place(&context.options)?.to_string(), visible(arguments.folder.as_os_str().as_bytes()));
    let unmount = if rustix::process::geteuid().is_root() { "umount" } else { "fusermount3 -u" };
    let message = Mounted { message_type: "mounted", repository: &repository_place, mountpoint: &folder };
    let end = format_args!("mounted {repository_place} on {folder}; Ctrl-C or '{unmount} {folder}' ends it");
    output.json_or_report(&message, end)?;
    let mut is_told = false;
    while !mounted.has_ended() {
        if interrupt::is_asked() && !is_told {
            mounted.unmount()?;
            is_told = true;
        }
        std::thread::sleep(LOOK);
    }
    repository.tell_healed();
    Ok(Done::Whole)
}
