//! Options that name a second repository, which is only read.

use clap::Args;
use std::path::PathBuf;

/// The repository that is copied from.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Source repository")]
#[allow(clippy::struct_field_names, reason = "they are the names of the options")]
pub(crate) struct FromArgs {
    /// Place of the repository to copy from, as --repo [default: $SILT_FROM_REPOSITORY]
    #[arg(long, value_name = "REPOSITORY")]
    pub(crate) from_repo: Option<PathBuf>,
    /// File that holds the place of the repository to copy from [default: $SILT_FROM_REPOSITORY_FILE]
    #[arg(long, value_name = "FILE")]
    pub(crate) from_repository_file: Option<PathBuf>,
    /// File that holds its password [default: $SILT_FROM_PASSWORD_FILE]
    #[arg(long, value_name = "FILE")]
    pub(crate) from_password_file: Option<PathBuf>,
    /// Command that prints its password [default: $SILT_FROM_PASSWORD_COMMAND]
    #[arg(long, value_name = "COMMAND")]
    pub(crate) from_password_command: Option<String>,
    /// Use an empty password for it (insecure)
    #[arg(long)]
    pub(crate) from_insecure_no_password: bool,
    /// Key of it to try the password on first [default: $SILT_FROM_KEY_HINT]
    #[arg(long, value_name = "ID")]
    pub(crate) from_key_hint: Option<String>,
}

/// The restic repository that is imported from.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Source repository")]
#[allow(clippy::struct_field_names, reason = "they are the names of the options")]
pub(crate) struct FromResticArgs {
    /// Folder of the restic repository [default: $RESTIC_REPOSITORY]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) from_repo: Option<PathBuf>,
    /// File that holds the path of that folder [default: $RESTIC_REPOSITORY_FILE]
    #[arg(long, value_name = "FILE")]
    pub(crate) from_repository_file: Option<PathBuf>,
    /// File that holds its password [default: $RESTIC_PASSWORD_FILE]
    #[arg(long, value_name = "FILE")]
    pub(crate) from_password_file: Option<PathBuf>,
    /// Command that prints its password [default: $RESTIC_PASSWORD_COMMAND]
    #[arg(long, value_name = "COMMAND")]
    pub(crate) from_password_command: Option<String>,
    /// Use an empty password for it
    #[arg(long)]
    pub(crate) from_insecure_no_password: bool,
}
