//! Options that say what a new snapshot records beside its content.

use crate::environment;
use crate::parse::{Moment, TagList};
use clap::Args;
use siltstone_engine::backup::BackupOptions;

/// Options for what a new snapshot records.
#[derive(Args, Debug)]
pub(super) struct RecordArgs {
    /// Tags of the snapshot, `tag[,tag,...]` (may be repeated)
    #[arg(long = "tag", value_name = "TAGS")]
    tags: Vec<TagList>,
    /// Name of the host to record [default: $SILT_HOST, or this machine's name]
    #[arg(short = 'H', long, value_name = "HOST")]
    host: Option<String>,
    /// Note to record
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Time to record, such as '2012-11-01 22:08:41' [default: now]
    #[arg(long, value_name = "TIME")]
    time: Option<Moment>,
}

impl RecordArgs {
    /// Puts what is to be recorded into options.
    pub(super) fn recorded(&self, options: BackupOptions) -> BackupOptions {
        options
            .with_host(self.host.clone().unwrap_or_else(environment::host))
            .with_user(environment::user())
            .with_tags(TagList::flatten(&self.tags))
            .with_description(self.description.clone())
            .with_time(self.time.map(|moment| moment.0))
            .with_program(environment::program())
    }
}
