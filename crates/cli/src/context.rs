//! Values that every command is given: the options that any command takes, and where to print.

use crate::environment;
use crate::error::CliError;
use crate::output::Output;
use crate::parse::{Compression, Duration, Preset, Size};
use crate::password::Password;
use crate::place::{LimitArgs, ProgramArgs};
use crate::profile::ProfileArgs;
use crate::progress::Progress;
use crate::run::{Figures, WatchArgs};
use clap::{ArgAction, Args};
use siltstone_engine::{Resources, Session};
use siltstone_remote::Traffic;
use siltstone_store::repository::Repository;
use std::cell::OnceCell;
use std::path::PathBuf;

/// Requests in flight at most, whatever a place could bear: each has a buffer and a thread.
const FETCHES_MAX: usize = 16;

/// Options of every command.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Global options")]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct GlobalArgs {
    /// Place of the repository: a folder, sftp:user@host:/folder, s3:https://host/bucket/prefix, gs:bucket:/prefix,
    /// az:container:/prefix, silt:https://host:port/ or rclone:remote:folder
    /// [default: $SILT_REPOSITORY]
    #[arg(short, long, global = true, value_name = "REPOSITORY")]
    pub(crate) repo: Option<PathBuf>,
    /// File that holds the place of the repository [default: $SILT_REPOSITORY_FILE]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) repository_file: Option<PathBuf>,
    /// File that holds the password [default: $SILT_PASSWORD_FILE]
    #[arg(short, long, global = true, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// Command that prints the password [default: $SILT_PASSWORD_COMMAND]
    #[arg(long, global = true, value_name = "COMMAND")]
    pub(crate) password_command: Option<String>,
    /// Use an empty password; it must then be given with every command (insecure)
    #[arg(long, global = true)]
    pub(crate) insecure_no_password: bool,
    /// Key to try the password on first: its id, or the beginning of that [default: $SILT_KEY_HINT]
    #[arg(long, global = true, value_name = "ID")]
    pub(crate) key_hint: Option<String>,
    /// Certificates, as PEM, that a server of silt: is trusted by beside those of the system [default: $SILT_CACERT]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// Print JSON: one document for lists, a message per line for long work
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print no progress and no report
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Print a line for every file that changed; twice, for unchanged ones too, and log what is done to the repository
    #[arg(short, long, global = true, action = ArgAction::Count, conflicts_with = "quiet")]
    pub(crate) verbose: u8,
    /// Keep no local index; it is rebuilt from the repository each time
    #[arg(long, global = true)]
    pub(crate) no_cache: bool,
    /// Folder of the local index [default: $SILT_CACHE_DIR, or siltstone in the user's cache folder]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) cache_dir: Option<PathBuf>,
    /// Bytes that the cache of objects of a repository over a network takes at most [default: 4G]
    #[arg(long, global = true, value_name = "SIZE")]
    pub(crate) cache_size: Option<Size>,
    /// Go on although history is lost or rolled back (exit status 13): what is there counts as what was seen from now
    /// on
    #[arg(long, global = true)]
    pub(crate) accept_rollback: bool,
    /// Keep trying for this long (as 5m or 1h30m) while another process writes to the series
    #[arg(long, global = true, value_name = "DURATION")]
    pub(crate) retry_lock: Option<Duration>,
    /// Watch the lease of a writer that cannot be seen from here, as in another container, for this long before it is
    /// taken over
    #[arg(long, global = true, value_name = "DURATION", default_value = "5m")]
    pub(crate) lease_timeout: Duration,
    /// Time between two renewals of an own lease; 0 for none
    #[arg(long, global = true, value_name = "DURATION", default_value = "30s", hide = true)]
    pub(crate) lease_renewal: Duration,
    /// Memory to stay below
    #[arg(long, global = true, value_name = "SIZE", default_value = "512M")]
    pub(crate) memory: Size,
    /// off, fastest, auto, better, max, or a level of zstd [default: $SILT_COMPRESSION, or auto]
    #[arg(long, global = true, value_name = "MODE", allow_hyphen_values = true)]
    pub(crate) compression: Option<Compression>,
    /// Cost of reading and moving bytes where the repository lies: local, s3-region or s3-internet; it chooses
    /// --deltas, --migrate-threshold, --delta-threshold and which gaps are read rather than asked around [default:
    /// $SILT_PRESET, or local for a folder and s3-internet for all else]
    #[arg(long, global = true, value_name = "PLACE")]
    pub(crate) preset: Option<Preset>,
    /// Prices by which dry runs estimate money, by name, as s3-standard-ia [default: $SILT_PRICES, or by the place]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) prices: Option<String>,
    /// Which profile
    #[command(flatten)]
    pub(crate) profile: ProfileArgs,
    /// Who is told of runs
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
    /// Programs that reach servers
    #[command(flatten)]
    pub(crate) programs: ProgramArgs,
    /// Greatest rates to and from places over a network
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// Accepted for the sake of scripts: reading takes no lock
    #[arg(long, global = true, hide = true)]
    pub(crate) no_lock: bool,
}

/// Values that every command is given.
pub(crate) struct Context {
    /// Options that any command takes.
    pub(crate) options: GlobalArgs,
    /// Where to print.
    pub(crate) output: Output,
    /// Bytes sent and received by all storages of the command.
    pub(crate) traffic: Traffic,
    /// The password that was asked for, for what else the command does with the repository.
    pub(crate) answer: OnceCell<Password>,
    /// Counts of the command.
    pub(crate) figures: Figures,
}

impl Context {
    pub(crate) fn new(options: GlobalArgs) -> Self {
        let output = Output { json: options.json, quiet: options.quiet, verbosity: options.verbose };
        let (traffic, answer, figures) = (Traffic::default(), OnceCell::new(), Figures::default());
        Self { options, output, traffic, answer, figures }
    }

    /// Returns this context, whose storages keep to the limits of options and environment.
    ///
    /// # Errors
    /// A variable is set to something that is no rate.
    pub(crate) fn within_limits(self) -> Result<Self, CliError> {
        let traffic = Traffic::new(self.options.limits.limits()?);
        Ok(Self { traffic, ..self })
    }

    /// Warns of limits that were asked for where none holds.
    pub(crate) fn tell_unused_limits(&self) {
        if self.options.limits.are_unused(&self.traffic) {
            self.output.warn("warning: --limit-upload and --limit-download hold for places over a network alone");
        }
    }

    /// Folder of the local index, unless none is wanted.
    pub(crate) fn cache_folder(&self) -> Option<PathBuf> {
        let chosen = || self.options.cache_dir.clone().or_else(environment::cache_folder);
        if self.options.no_cache { None } else { chosen() }
    }

    /// Resources of the command: memory, cache, and the system's folder for temporary files, which `TMPDIR` names.
    pub(crate) fn resources(&self) -> Resources {
        Resources::default().with_memory_bytes(self.options.memory.0).with_cache(self.cache_folder())
    }

    /// Those, with as many fetches as the place takes.
    pub(crate) fn resources_for(&self, repository: &Repository) -> Resources {
        let fetches = repository.storage().capabilities().requests_in_flight.clamp(1, FETCHES_MAX);
        let resources = self.resources();
        let fetches = resources.fetches.max(fetches);
        resources.with_fetches(fetches)
    }

    /// A session whose work is shown.
    pub(crate) fn session<'r>(&self, repository: &'r Repository, progress: &Progress) -> Session<&'r Repository> {
        Session::new(repository, self.resources_for(repository).with_observer(progress.observer()))
    }

    /// Level of zstd.
    pub(crate) fn compression_level(&self) -> Result<i32, CliError> {
        let set = || environment::parsed::<Compression>("SILT_COMPRESSION");
        let mode = self.options.compression.map_or_else(set, |mode| Ok(Some(mode)))?;
        Ok(mode.unwrap_or_default().level())
    }
}
