//! `silt maintain`: settles what backups left behind, where a backup was told not to or could not.

use super::layout::LayoutArgs;
use crate::context::Context;
use crate::environment;
use crate::error::{CliError, Done};
use crate::memory;
use crate::parse::Parity;
use crate::progress::{Progress, Work};
use crate::render::size;
use crate::repository::{open, preset};
use crate::retry::while_locked;
use clap::Args;
use serde::Serialize;
use siltstone_engine::maintain::{MaintainOptions, MaintainSummary};
use siltstone_engine::protect::ProtectSummary;

/// Encode and lay out what backups left behind, and end what was deleted; backups do the former themselves unless told
/// not to
#[derive(Args, Debug)]
pub(crate) struct MaintainArgs {
    #[command(flatten)]
    layout: LayoutArgs,

    /// Parity of files' data from now on, such as 5%, or `off`; containers that are there get it too. Without this
    /// option what parity is missing is made
    #[arg(long, value_name = "SHARE")]
    parity: Option<Parity>,
}

/// `message_type` `summary`.
#[derive(Serialize)]
struct SummaryMessage {
    message_type: &'static str,
    snapshots_settled: u64,
    snapshots_ended: u64,
    containers_passed_over: u64,
    bytes_migrated: u64,
    bytes_deleted: u64,
    containers_written: u64,
    containers_deleted: u64,
    deltas_kept: u64,
    deltas_rejected: u64,
    ghosts_eliminated: u64,
    containers_protected: u64,
    parity_bytes_written: u64,
    parity_bytes_deleted: u64,
}

pub(crate) fn run(arguments: &MaintainArgs, context: &Context) -> Result<Done, CliError> {
    let repository = open(context)?;
    let options = MaintainOptions::default()
        .with_deltas(arguments.layout.deltas(preset(context)?)?)
        .with_threshold(arguments.layout.threshold(preset(context)?))
        .with_compression_level(context.compression_level()?)
        .with_user(environment::user());
    if let Some(Parity(percent)) = arguments.parity {
        repository.amend(|config| {
            config.parity.data_percent = percent;
            Ok(())
        })?;
    }
    let progress = Progress::begin(Work::Maintain, context)?;
    let session = context.session(&repository, &progress);
    let summary = while_locked(context, || Ok(session.maintain(&options)?))?;
    let parity = while_locked(context, || Ok(session.protect(&options.user)?))?;
    let problems = progress.counts().problems;
    progress.end();
    memory::renew(&repository, context);
    report(context, &summary, &parity)?;
    Ok(if problems == 0 && summary.passed_over == 0 && parity.passed_over == 0 { Done::Whole } else { Done::InPart })
}

fn report(context: &Context, summary: &MaintainSummary, parity: &ProtectSummary) -> Result<(), CliError> {
    if context.output.json {
        return context.output.json(&SummaryMessage {
            message_type: "summary",
            snapshots_settled: summary.settled,
            snapshots_ended: summary.ended,
            containers_passed_over: summary.passed_over,
            bytes_migrated: summary.bytes_written,
            bytes_deleted: summary.bytes_deleted,
            containers_written: summary.containers_written,
            containers_deleted: summary.containers_deleted,
            deltas_kept: summary.deltas_kept,
            deltas_rejected: summary.deltas_rejected,
            ghosts_eliminated: summary.ghosts_eliminated,
            containers_protected: parity.protected,
            parity_bytes_written: parity.bytes_written,
            parity_bytes_deleted: parity.bytes_deleted,
        });
    }
    if *parity != ProtectSummary::default() {
        let [wrote, deleted] = [parity.bytes_written, parity.bytes_deleted].map(size);
        let protected = parity.protected;
        context.output.report(format_args!("parity of {protected} containers: wrote {wrote}, deleted {deleted}"))?;
    }
    context.output.report(text(summary))
}

fn text(summary: &MaintainSummary) -> String {
    if *summary == MaintainSummary::default() {
        return "nothing is left to do".to_owned();
    }
    let MaintainSummary { settled, deltas_kept, ghosts_eliminated, .. } = summary;
    let (wrote, deleted) = (size(summary.bytes_written), size(summary.bytes_deleted));
    let eliminated = match ghosts_eliminated {
        0 => String::new(),
        eliminated => format!(", {eliminated} chunks eliminated that only deltas needed"),
    };
    let ended = match summary.ended {
        0 => String::new(),
        ended => format!("removed {ended} deleted snapshots whose time was over; "),
    };
    let passed_over = match summary.passed_over {
        0 => String::new(),
        passed_over => format!("; {passed_over} containers could not be read and stay as they are"),
    };
    format!(
        "{ended}settled {settled} snapshots: wrote {wrote}, deleted {deleted}, {deltas_kept} chunks as deltas\
         {eliminated}{passed_over}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_told() {
        assert_eq!(text(&MaintainSummary::default()), "nothing is left to do");
        let settled = MaintainSummary { settled: 2, bytes_written: 1024, deltas_kept: 7, ..MaintainSummary::default() };
        let expected = "settled 2 snapshots: wrote 1.000 KiB, deleted 0 B, 7 chunks as deltas";
        assert_eq!(text(&settled), expected);
        let ended = MaintainSummary { ended: 3, ..settled };
        assert_eq!(text(&ended), format!("removed 3 deleted snapshots whose time was over; {expected}"));
        let eliminated = MaintainSummary { bytes_deleted: 2048, ghosts_eliminated: 3, ..MaintainSummary::default() };
        let expected = "settled 0 snapshots: wrote 0 B, deleted 2.000 KiB, 0 chunks as deltas, \
                        3 chunks eliminated that only deltas needed";
        assert_eq!(text(&eliminated), expected);
    }
}
