#![doc = include_str!("../README.md")]
#![cfg(target_os = "linux")]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

mod ahead;
mod attributes;
mod content;
mod error;
mod filesystem;
mod folders;
mod listing;
mod nodes;
mod page_cache;
mod snapshots;
mod told;
pub mod webdav;

pub use error::MountError;

use filesystem::Snapshots;
use fuser::{BackgroundSession, Config, INodeNo, MountOption, Notifier, Session, SessionACL};
use nodes::Nodes;
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use siltstone_engine::Resources;
use siltstone_engine::snapshots::SnapshotFilter;
use siltstone_store::repository::Repository;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

/// Told what cannot be read, a line each.
pub type Tell = Arc<dyn Fn(&str) + Send + Sync>;

/// Name that the list of mounts has for ours.
const NAME: &str = "siltstone";
/// Bytes of memory that what the kernel has a number of takes, about.
const NODE_BYTES: usize = 256;
/// Time between two looks whether there are too many.
const LOOK: Duration = Duration::from_millis(500);
/// Requests answered at the same time, unless asked otherwise.
pub const THREADS_DEFAULT: usize = 4;

/// How to mount.
#[derive(Clone)]
#[non_exhaustive]
pub struct MountOptions {
    /// Snapshots to show.
    pub filter: SnapshotFilter,
    /// Other users may look into it, too.
    pub allow_others: bool,
    /// Permissions, as the snapshots have them, are heeded.
    pub check_permissions: bool,
    /// All is shown as owned by root.
    pub owned_by_root: bool,
    /// Memory to stay below, of which decoded data takes up to three eighths; folders of temporary files; threads that
    /// decode what one reader waits for.
    pub resources: Resources,
    /// Requests answered at the same time.
    pub threads: usize,
    /// Told what cannot be read.
    pub tell: Tell,
}

impl Default for MountOptions {
    fn default() -> Self {
        Self {
            filter: SnapshotFilter::default(),
            allow_others: false,
            check_permissions: false,
            owned_by_root: false,
            resources: Resources::default(),
            threads: THREADS_DEFAULT,
            tell: Arc::new(|_| {}),
        }
    }
}

/// Programs that unmount for other users than root.
const HELPERS: [&str; 2] = ["fusermount3", "fusermount"];

/// A mounted file system. It ends when it is unmounted, here or by `umount`.
#[derive(Debug)]
pub struct Mount {
    session: BackgroundSession,
    folder: PathBuf,
}

/// An eighth of the memory, bytes.
fn eighth(resources: &Resources) -> usize {
    usize::try_from(resources.memory_bytes / 8).unwrap_or(usize::MAX)
}

/// Mounts the snapshots of a repository on an empty folder, or over what one holds.
///
/// # Errors
/// [`MountError::NotADirectory`]; [`MountError::NoFuse`], [`MountError::NotAllowed`], [`MountError::Mount`]; those of
/// listing the snapshots.
pub fn mount(repository: &'static Repository, folder: &Path, options: MountOptions) -> Result<Mount, MountError> {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    if !folder.is_dir() {
        return Err(MountError::NotADirectory { folder });
    }
    if !Path::new(error::DEVICE).exists() {
        return Err(MountError::NoFuse);
    }
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(NAME.to_owned()),
        MountOption::Subtype(NAME.to_owned()),
        MountOption::RO,
        MountOption::NoDev,
        MountOption::NoSuid,
        MountOption::NoAtime,
    ];
    if options.check_permissions {
        config.mount_options.push(MountOption::DefaultPermissions);
    }
    config.acl = if options.allow_others { SessionACL::All } else { SessionACL::Owner };
    config.n_threads = Some(options.threads.max(1));
    config.clone_fd = true;
    let nodes_max = eighth(&options.resources) / NODE_BYTES;
    let shown = Snapshots::new(repository, options)?;
    let nodes = Arc::downgrade(shown.nodes());
    let page_cache = shown.page_cache().clone();
    let refused = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => MountError::NotAllowed { folder: folder.clone() },
        // The helper's words come with an escaped end of line.
        _ => match error.to_string().strip_suffix("\\n") {
            Some(words) => MountError::Mount { folder: folder.clone(), source: io::Error::other(words) },
            None => MountError::Mount { folder: folder.clone(), source: error },
        },
    };
    let session = Session::new(shown, &folder, &config).map_err(refused)?;
    let session = session.spawn().map_err(refused)?;
    let notifier = session.notifier();
    page_cache.open(notifier.clone());
    let bound = move || bound_nodes(&nodes, nodes_max, &notifier);
    let thread = thread::Builder::new().name("bound".into()).spawn(bound);
    thread.map_err(|source| MountError::Threads { source })?;
    Ok(Mount { session, folder })
}

/// Asks the kernel to forget names while it has too many, until the file system is gone.
fn bound_nodes(nodes: &Weak<Nodes>, most: usize, notifier: &Notifier) {
    loop {
        thread::sleep(LOOK);
        let Some(nodes) = nodes.upgrade() else { return };
        for (parent, name) in nodes.surplus(most) {
            // What is in use stays.
            let _ = notifier.inval_entry(INodeNo(parent), OsStr::from_bytes(&name));
        }
    }
}

impl Mount {
    /// Tells whether it was unmounted, and nothing uses it any more.
    pub fn has_ended(&self) -> bool {
        self.session.guard.is_finished()
    }

    /// Unmounts it. Programs that have files of it open read on, and it ends with the last of them.
    ///
    /// # Errors
    /// [`MountError::Unmount`].
    pub fn unmount(&self) -> Result<(), MountError> {
        match rustix::mount::unmount(&self.folder, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
            // It was unmounted by somebody else.
            Ok(()) | Err(Errno::INVAL | Errno::NOENT) => Ok(()),
            Err(Errno::PERM) => self.unmount_by_helper(),
            Err(source) => Err(MountError::Unmount { source: source.into() }),
        }
    }

    fn unmount_by_helper(&self) -> Result<(), MountError> {
        let run = |helper| Command::new(helper).args(["-u", "-z", "-q", "--"]).arg(&self.folder).status();
        let mut ended = run(HELPERS[0]);
        if ended.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            ended = run(HELPERS[1]);
        }
        match ended {
            Ok(status) if status.success() || self.has_ended() => Ok(()),
            Ok(status) => Err(MountError::Unmount { source: io::Error::other(format!("{}: {status}", HELPERS[0])) }),
            Err(source) => Err(MountError::Unmount { source }),
        }
    }
}
