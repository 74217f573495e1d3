//! The command line as a whole: the list of commands, and what stands below every help text.

use crate::commands;
use crate::context::GlobalArgs;
use clap::{Parser, Subcommand};

/// Text below the long help of the program.
const AFTER_HELP: &str = "\
Environment (an option given wins; an invalid value is an error):
  SILT_REPOSITORY, SILT_REPOSITORY_FILE                    where the repository is
  SILT_PASSWORD, SILT_PASSWORD_FILE, SILT_PASSWORD_COMMAND where its password comes from
  SILT_KEY_HINT                                            as --key-hint
  SILT_PROFILE                                             as --profile
  SILT_FROM_REPOSITORY, SILT_FROM_REPOSITORY_FILE, SILT_FROM_PASSWORD, SILT_FROM_PASSWORD_FILE,
  SILT_FROM_PASSWORD_COMMAND, SILT_FROM_KEY_HINT           the same of the repository that 'silt copy' reads
  SILT_CACHE_DIR, SILT_COMPRESSION, SILT_DELTAS,
  SILT_HOST, SILT_PRESET                                   as --cache-dir, --compression, --deltas, --host, --preset
  SILT_STATE_DIR                                           where it is kept what was seen of repositories [default:
                                                           siltstone in the user's state folder]
  AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN,
  AWS_PROFILE, AWS_DEFAULT_REGION                          credentials and region of s3:
  GOOGLE_APPLICATION_CREDENTIALS                           file with the credentials of gs:
  AZURE_ACCOUNT_NAME, AZURE_ACCOUNT_KEY, AZURE_ACCOUNT_SAS credentials of az:
  SILT_SFTP_COMMAND, SILT_SFTP_ARGS                        as --sftp-command, --sftp-args
  SILT_RCLONE_PROGRAM, SILT_RCLONE_ARGS,
  SILT_RCLONE_ONE_WRITER                                   as --rclone-program, --rclone-args, --rclone-one-writer
  SILT_LIMIT_UPLOAD, SILT_LIMIT_DOWNLOAD                   as --limit-upload, --limit-download
  SILT_PRICES                                              as --prices
  SILT_TOKEN, SILT_TOKEN_FILE, SILT_CACERT                 token of silt:, and a certificate it is trusted by
  SILT_APPEND_ONLY                                         with 1: delete nothing in a bucket that does not allow it
  SILT_PROGRESS_FPS                                        progress updates per second, also where there is no terminal
  SILT_ISA                                                 instruction set to use, lower than the best one

Exit status:
  0    done
  1    failed
  3    done in part: something of the source could not be read whole, some snapshots could not be removed or copied, or
       some series are damaged; each is named, the rest is done
  10   there is no repository at that place
  11   another process is writing to the series
  12   wrong password
  13   history is lost or rolled back: more was there before
  14   refused by a guard: it is probably a mistake, and an option allows it
  15   the key adds backups and reads none
  130  interrupted";

/// Fast, encrypted, deduplicating backups.
#[derive(Parser, Debug)]
#[command(name = "silt", version, after_long_help = AFTER_HELP, max_term_width = 120, disable_help_subcommand = false)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Init(commands::init::InitArgs),
    Backup(Box<commands::backup::BackupArgs>),
    Copy(Box<commands::copy::CopyArgs>),
    Import(commands::import::ImportArgs),
    Snapshots(commands::snapshots::SnapshotsArgs),
    Ls(commands::ls::LsArgs),
    Find(commands::find::FindArgs),
    Diff(commands::diff::DiffArgs),
    History(commands::history::HistoryArgs),
    Restore(Box<commands::restore::RestoreArgs>),
    Dump(commands::dump::DumpArgs),
    Export(commands::dump::ExportArgs),
    Mount(commands::mount::MountArgs),
    Forget(Box<commands::forget::ForgetArgs>),
    Undelete(commands::undelete::UndeleteArgs),
    Tag(commands::label::TagArgs),
    Describe(commands::label::DescribeArgs),
    Rewrite(commands::rewrite::RewriteArgs),
    Policy(commands::policy::PolicyArgs),
    Maintain(commands::maintain::MaintainArgs),
    Prune(commands::prune::PruneArgs),
    Check(commands::check::CheckArgs),
    Repair(commands::repair::RepairArgs),
    Stats(commands::stats::StatsArgs),
    Key(commands::key::KeyArgs),
    Unlock(commands::unlock::UnlockArgs),
    Schedule(commands::schedule::ScheduleArgs),
    Serve(Box<commands::serve::ServeArgs>),
    ShowConfig(commands::show_config::ShowConfigArgs),
    Version(commands::version::VersionArgs),
    Generate(commands::generate::GenerateArgs),
}

/// Text below the long help of `silt-import`.
const IMPORT_AFTER_HELP: &str = "\
Environment and exit status are those of 'silt --help'; of a restic repository also
  RESTIC_REPOSITORY, RESTIC_REPOSITORY_FILE                         where it is
  RESTIC_PASSWORD, RESTIC_PASSWORD_FILE, RESTIC_PASSWORD_COMMAND    where its password comes from";

/// Brings snapshots of another program's repository into one of silt.
#[derive(Parser, Debug)]
#[command(name = "silt-import", version, after_long_help = IMPORT_AFTER_HELP, max_term_width = 120)]
pub(crate) struct ImportCli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: ImportCommand,
}

/// The programs.
#[derive(Subcommand, Debug)]
pub(crate) enum ImportCommand {
    Restic(Box<commands::foreign::ResticArgs>),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use std::path::PathBuf;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
        ImportCli::command().debug_assert();
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
        let help = Cli::command().render_long_help().to_string();
        for code in ["0 ", "1 ", "3 ", "10 ", "11 ", "12 ", "13 ", "14 ", "15 ", "130 "] {
            assert!(help.contains(&format!("\n  {code}")), "{code} is missing");
        }
    }
}
