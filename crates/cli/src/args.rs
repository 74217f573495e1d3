//! The command line as a whole: the options every command takes, and the list of commands.

use crate::commands;
use crate::parse::{Compression, Duration, Preset, Size};
use clap::{ArgAction, Args, Parser, Subcommand};
use std::path::PathBuf;

/// What stands below every help text.
const AFTER_HELP: &str = "\
Environment (an option given wins; an invalid value is an error):
  SILT_REPOSITORY, SILT_REPOSITORY_FILE                    where the repository is
  SILT_PASSWORD, SILT_PASSWORD_FILE, SILT_PASSWORD_COMMAND where its password comes from
  SILT_KEY_HINT                                            as --key-hint
  SILT_CACHE_DIR, SILT_COMPRESSION, SILT_DELTAS,
  SILT_HOST, SILT_PRESET                                   as --cache-dir, --compression, --deltas, --host, --preset
  SILT_STATE_DIR                                           where it is kept what was seen of repositories [default: siltstone in the
                                                           user's state folder]
  SILT_PROGRESS_FPS                                        progress updates per second, also where there is no terminal
  SILT_ISA                                                 instruction set to use, lower than the best one

Exit status:
  0    done
  1    failed
  3    done in part: something of the source could not be read whole, some snapshots could not be removed, or some
       series are damaged; each is named, the rest is done
  10   there is no repository at that place
  11   another process is writing to the series
  12   wrong password
  13   history is lost or rolled back: more was there before
  14   refused by a guard: it is probably a mistake, and an option allows it
  130  interrupted";

/// Fast, encrypted, deduplicating backups.
#[derive(Parser, Debug)]
#[command(name = "silt", version, after_help = AFTER_HELP, max_term_width = 120, disable_help_subcommand = false)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Global options")]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct GlobalArgs {
    /// Folder of the repository [default: $SILT_REPOSITORY]
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
    /// Print JSON: one document for lists, a message per line for long work
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print no progress and no report
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Print a line for every file
    #[arg(short, long, global = true, action = ArgAction::Count, conflicts_with = "quiet")]
    pub(crate) verbose: u8,
    /// Keep no local index; it is rebuilt from the repository each time
    #[arg(long, global = true)]
    pub(crate) no_cache: bool,
    /// Folder of the local index [default: $SILT_CACHE_DIR, or siltstone in the user's cache folder]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) cache_dir: Option<PathBuf>,
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
    /// What reading and moving bytes costs where the repository lies: local, s3-region or s3-internet; it chooses
    /// --deltas, --migrate-threshold, --delta-threshold and which gaps are read rather than asked around [default:
    /// $SILT_PRESET, or local]
    #[arg(long, global = true, value_name = "PLACE")]
    pub(crate) preset: Option<Preset>,
    /// Accepted for the sake of scripts: reading takes no lock
    #[arg(long, global = true, hide = true)]
    pub(crate) no_lock: bool,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Init(commands::init::InitArgs),
    Backup(Box<commands::backup::BackupArgs>),
    Snapshots(commands::snapshots::SnapshotsArgs),
    Ls(commands::ls::LsArgs),
    Restore(Box<commands::restore::RestoreArgs>),
    Dump(commands::dump::DumpArgs),
    Forget(Box<commands::forget::ForgetArgs>),
    Undelete(commands::undelete::UndeleteArgs),
    Maintain(commands::maintain::MaintainArgs),
    Prune(commands::prune::PruneArgs),
    Check(commands::check::CheckArgs),
    Repair(commands::repair::RepairArgs),
    Stats(commands::stats::StatsArgs),
    Key(commands::key::KeyArgs),
    Unlock(commands::unlock::UnlockArgs),
    Version(commands::version::VersionArgs),
    Generate(commands::generate::GenerateArgs),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn global_options_stand_before_or_after_the_command() {
        for line in ["silt -r /repo --json snapshots", "silt snapshots -r /repo --json"] {
            let cli = Cli::try_parse_from(line.split(' ')).expect("a valid line");
            assert_eq!(cli.global.repo, Some(PathBuf::from("/repo")), "{line}");
            assert!(cli.global.json);
        }
    }

    #[test]
    fn help_ends_with_the_exit_codes() {
        let help = Cli::command().render_help().to_string();
        for code in ["0 ", "1 ", "3 ", "10 ", "11 ", "12 ", "13 ", "14 ", "130 "] {
            assert!(help.contains(&format!("\n  {code}")), "{code} is missing");
        }
    }
}
