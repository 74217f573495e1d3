//! Options of commands that make snapshots of other snapshots.

use super::layout::LayoutArgs;
use crate::context::Context;
use crate::environment;
use crate::error::CliError;
use crate::parse::Checkpointing;
use crate::repository::preset;
use clap::Args;
use siltstone_engine::VerifyWritten;
use siltstone_engine::backup::BackupOptions;
use siltstone_engine::copy::CopyOptions;

/// How snapshots are made of others.
#[derive(Args, Debug)]
pub(crate) struct CopyingArgs {
    /// Copy a snapshot of which something is damaged without that, instead of leaving the snapshot out
    #[arg(long)]
    skip_damaged: bool,
    /// Save what is done so far after this long, every 4 GiB of new data and when interrupted, or `off`
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    checkpoint: Checkpointing,
    #[command(flatten)]
    layout: LayoutArgs,
    /// Leave what each snapshot supersedes as it is, for 'silt maintain' to encode and lay out
    #[arg(long)]
    no_migrate: bool,
    /// Do not read back what was written before it is committed
    #[arg(long)]
    no_verify_written: bool,
}

impl CopyingArgs {
    pub(super) fn options(&self, dry_run: bool, context: &Context) -> Result<CopyOptions, CliError> {
        let options = CopyOptions::default().with_backup(self.backup(context)?);
        Ok(options.with_dry_run(dry_run).with_skip_damaged(self.skip_damaged))
    }

    fn backup(&self, context: &Context) -> Result<BackupOptions, CliError> {
        let profile = preset(context)?;
        let verify = if self.no_verify_written { VerifyWritten::Never } else { VerifyWritten::Nearby };
        Ok(BackupOptions::default()
            .with_user(environment::user())
            .with_program(environment::program())
            .with_checkpoint(self.checkpoint.0)
            .with_compression_level(context.compression_level()?)
            .with_deltas(self.layout.deltas(profile)?)
            .with_migrate(!self.no_migrate)
            .with_migrate_threshold(self.layout.threshold(profile))
            .with_delta_threshold(profile.delta_threshold())
            .with_verify_written(verify))
    }
}
