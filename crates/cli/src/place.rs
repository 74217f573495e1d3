//! From the address of a repository to its storage, with every call logged.

use crate::context::Context;
use crate::environment;
use crate::error::CliError;
use crate::parse::Rate;
use clap::Args;
use siltstone_remote::{
    Bucket, ConnectError, Limits, ObjectStorage, Place, Programs, Retries, Server, ServerAddress, Traffic,
    connect_server,
};
use siltstone_store::storage::{Disk, Storage, Traced};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

/// The programs that reach servers.
#[derive(Args, Debug, Default)]
pub(crate) struct ProgramArgs {
    /// Command that speaks SFTP on its standard input and output, instead of ssh, for a place sftp:...
    /// [default: $SILT_SFTP_COMMAND]
    #[arg(long, global = true, value_name = "COMMAND")]
    sftp_command: Option<String>,
    /// More arguments of ssh, for a place sftp:... [default: $SILT_SFTP_ARGS]
    #[arg(long, global = true, value_name = "ARGS", allow_hyphen_values = true)]
    sftp_args: Option<String>,
    /// The program rclone, for a place rclone:... [default: $SILT_RCLONE_PROGRAM, or rclone]
    #[arg(long, global = true, value_name = "PROGRAM")]
    rclone_program: Option<String>,
    /// Arguments of rclone before the place, which make it serve SFTP on its standard input and output
    /// [default: $SILT_RCLONE_ARGS]
    #[arg(long, global = true, value_name = "ARGS", allow_hyphen_values = true)]
    rclone_args: Option<String>,
    /// Promise that never two processes write to this repository at once: rclone cannot keep their commits apart
    /// [default: $SILT_RCLONE_ONE_WRITER is 1]
    #[arg(long, global = true)]
    rclone_one_writer: bool,
}

impl ProgramArgs {
    /// These programs, and those of the environment where an option is not given.
    fn over(&self, mut programs: Programs) -> Programs {
        let given = |option: &Option<String>, set: Option<String>| option.clone().or(set);
        programs.sftp_command = given(&self.sftp_command, programs.sftp_command);
        programs.sftp_arguments = given(&self.sftp_args, programs.sftp_arguments);
        programs.rclone_program = given(&self.rclone_program, programs.rclone_program);
        programs.rclone_arguments = given(&self.rclone_args, programs.rclone_arguments);
        programs.rclone_has_one_writer |= self.rclone_one_writer;
        programs
    }
}

/// Greatest rates to and from places over a network.
#[derive(Args, Debug, Default)]
pub(crate) struct LimitArgs {
    /// Greatest rate at which data is sent, as 500K or 2M; a number alone is of KiB per second. It holds for places
    /// over a network, not for a folder [default: $SILT_LIMIT_UPLOAD, or none]
    #[arg(long, global = true, value_name = "RATE")]
    limit_upload: Option<Rate>,
    /// Greatest rate at which data is received, as --limit-upload [default: $SILT_LIMIT_DOWNLOAD, or none]
    #[arg(long, global = true, value_name = "RATE")]
    limit_download: Option<Rate>,
}

impl LimitArgs {
    /// These limits, and those of the environment where an option is not given.
    ///
    /// # Errors
    /// A variable is set to something that is no rate.
    pub(crate) fn limits(&self) -> Result<Limits, CliError> {
        let rate = |option: Option<Rate>, name| match option {
            Some(rate) => Ok(Some(rate.0)),
            None => environment::parsed::<Rate>(name).map(|set| set.map(|rate| rate.0)),
        };
        Ok(Limits {
            upload: rate(self.limit_upload, "SILT_LIMIT_UPLOAD")?,
            download: rate(self.limit_download, "SILT_LIMIT_DOWNLOAD")?,
        })
    }

    /// Tells whether a limit was asked for, and nothing went where it holds.
    pub(crate) fn are_unused(&self, traffic: &Traffic) -> bool {
        let is_given = self.limit_upload.is_some() || self.limit_download.is_some();
        is_given && traffic.bytes_sent() == 0 && traffic.bytes_received() == 0
    }
}

/// Opens a place. A folder must be there; a server of this program is asked what its token may do, any other place
/// nothing yet.
pub(crate) fn open(place: &Place, context: &Context) -> Result<Arc<dyn Storage>, CliError> {
    Ok(match place {
        Place::Folder(path) => traced(Disk::open(path)?),
        Place::Bucket(bucket) => probed_once(connect(bucket, context)?, context),
        Place::Server(server) => probed_once(reach(server, context, connect_server)?, context),
        Place::Served(address) => traced(connect_served(address, context)?),
    })
}

/// A place that this machine probes once: the cache remembers it.
fn probed_once(storage: ObjectStorage, context: &Context) -> Arc<dyn Storage> {
    match probe_marker(&storage, context) {
        Some(marker) => traced(storage.with_probe_marker(marker)),
        None => traced(storage),
    }
}

/// A place for a new repository: it is probed whatever the cache remembers of it, which remembers that from then on.
pub(crate) fn probed_anew(storage: ObjectStorage, context: &Context) -> ObjectStorage {
    let Some(marker) = probe_marker(&storage, context) else { return storage };
    let _ = fs::remove_file(&marker);
    storage.with_probe_marker(marker)
}

/// The file of the cache that says that a place was probed.
fn probe_marker(storage: &ObjectStorage, context: &Context) -> Option<PathBuf> {
    let file = storage.location().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    Some(context.cache_folder()?.join("probed").join(file))
}

/// Connects a bucket with the credentials of the environment.
pub(crate) fn connect(bucket: &Bucket, context: &Context) -> Result<ObjectStorage, CliError> {
    Ok(siltstone_remote::connect(bucket, &environment::variables(), &context.traffic)?)
}

/// Connects a server, or makes the folder of a new repository there, by the programs of options and environment.
pub(crate) fn reach(
    server: &Server,
    context: &Context,
    how: fn(&Server, &Programs, Retries, &Traffic) -> Result<ObjectStorage, ConnectError>,
) -> Result<ObjectStorage, CliError> {
    let programs = Programs::of(&environment::variables()).with_variables(environment::added());
    let programs = context.options.programs.over(programs);
    Ok(how(server, &programs, Retries::default(), &context.traffic)?)
}

/// Connects a server of this program with the token of the environment.
pub(crate) fn connect_served(address: &ServerAddress, context: &Context) -> Result<ObjectStorage, CliError> {
    let variables = environment::variables().with_certificates(context.options.cacert.as_deref());
    Ok(siltstone_remote::connect_served(address, &variables, &context.traffic)?)
}

/// Logs the calls to a storage.
pub(crate) fn traced(storage: impl Storage + 'static) -> Arc<dyn Storage> {
    Arc::new(Traced::new(storage))
}
