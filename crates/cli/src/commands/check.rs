//! `silt check`: looks for damage.

use super::Context;
use crate::environment;
use crate::error::{CliError, Done};
use crate::parse::Subset;
use crate::progress::{Progress, Work};
use crate::render::size;
use crate::repository::open;
use clap::Args;
use serde::Serialize;
use siltstone_engine::check::{CheckOptions, CheckReport, DamageRecord, Finding, ReadData, RecordOutcome, check};
use siltstone_store::repository::Repository;
use siltstone_store::storage::{Listing, ObjectName};

/// Look for damage
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// Read all data, and hold every chunk against its fingerprint
    #[arg(long, conflicts_with = "read_data_subset")]
    read_data: bool,
    /// Read part of the data: n/t for the n-th of t parts, x% or a size for a random share
    #[arg(long, value_name = "SUBSET")]
    read_data_subset: Option<Subset>,
    /// Do not record in the repository which chunks are damaged; the next backup then does not store them again
    #[arg(long)]
    no_record: bool,
    /// Accepted for the sake of scripts
    #[arg(long, hide = true)]
    with_cache: bool,
}

pub(super) fn run(arguments: &CheckArgs, context: &Context) -> Result<Done, CliError> {
    let repository = open(context)?;
    let read_data = match (arguments.read_data, arguments.read_data_subset) {
        (true, _) => ReadData::All,
        (false, Some(subset)) => part(subset, &repository)?,
        (false, None) => ReadData::None,
    };
    let progress = Progress::begin(Work::Check, context.output)?;
    let options = CheckOptions { read_data, record: (!arguments.no_record).then(environment::user) };
    let report = check(&repository, &options, &progress)?;
    progress.end();
    let told = if context.output.json { tell_json(&report, context) } else { tell(&report, context) };
    told?;
    match report.findings.len() {
        0 => Ok(Done::Whole),
        findings => Err(CliError::Damaged { findings }),
    }
}

fn part(subset: Subset, repository: &Repository) -> Result<ReadData, CliError> {
    Ok(match subset {
        Subset::Part { part, parts } => ReadData::Subset { part, parts },
        Subset::Percent(percent) => ReadData::Percent(percent),
        Subset::Bytes(bytes) => share(bytes, container_bytes(repository)?),
    })
}

fn container_bytes(repository: &Repository) -> Result<u64, CliError> {
    let objects = repository.storage().list(Listing::All)?;
    let containers = objects.iter().filter(|object| matches!(object.name, ObjectName::Container(..)));
    Ok(containers.map(|object| object.bytes).sum())
}

#[allow(clippy::cast_precision_loss, reason = "the share is a chance, not a count")]
fn share(bytes: u64, of: u64) -> ReadData {
    if bytes >= of { ReadData::All } else { ReadData::Percent(100.0 * bytes as f64 / of as f64) }
}

fn tell(report: &CheckReport, context: &Context) -> Result<(), CliError> {
    let output = context.output;
    output.report(format_args!(
        "checked {} series, {} snapshots, {} containers",
        report.series, report.snapshots, report.containers
    ))?;
    if report.containers_read > 0 {
        output.report(format_args!("read {} containers, {}", report.containers_read, size(report.bytes_read)))?;
    }
    if report.orphans > 0 {
        output.report(format_args!(
            "{} objects ({}) were left by an interrupted run; the next backup or forget of their series removes them",
            report.orphans,
            size(report.orphan_bytes)
        ))?;
    }
    report.findings.iter().for_each(|finding| output.warn(format_args!("error: {}", line(finding))));
    for finding in &report.harmless {
        output.warn(format_args!("{}; no snapshot needs what was hit there", line(finding)));
    }
    report.records.iter().for_each(|record| output.warn(recorded(record)));
    if report.findings.is_empty() { output.report("\nno errors were found") } else { Ok(()) }
}

fn line(finding: &Finding) -> String {
    let affected = match finding.snapshots.as_slice() {
        [] => String::new(),
        snapshots => format!(" (affects the snapshots {})", snapshots.join(", ")),
    };
    format!("{}: {}{affected}", finding.object, finding.what)
}

/// What was recorded of a series' damage, in words.
fn recorded(record: &DamageRecord) -> String {
    let DamageRecord { series, damaged, sound, outcome } = record;
    let what = match (damaged, sound) {
        (damaged, 0) => format!("{damaged} chunks are damaged"),
        (0, sound) => format!("{sound} chunks are readable again"),
        (damaged, sound) => format!("{damaged} chunks are damaged, {sound} are readable again"),
    };
    match outcome {
        RecordOutcome::Recorded if *damaged > 0 => {
            format!("series {series}: {what}; recorded: the next backup stores again what the source still has of it")
        }
        RecordOutcome::Recorded => format!("series {series}: {what}; recorded"),
        RecordOutcome::NotAsked => {
            format!("series {series}: {what}; not recorded, as asked: backups do not know of it")
        }
        RecordOutcome::Failed { reason } => {
            format!("series {series}: {what}; not recorded, so backups do not know of it: {reason}")
        }
    }
}

#[derive(Serialize)]
struct RecordMessage<'a> {
    message_type: &'static str,
    series: &'a str,
    chunks_damaged: u64,
    chunks_sound: u64,
    recorded: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

impl<'a> RecordMessage<'a> {
    fn new(record: &'a DamageRecord) -> Self {
        let reason = match &record.outcome {
            RecordOutcome::Recorded => None,
            RecordOutcome::NotAsked => Some("--no-record"),
            RecordOutcome::Failed { reason } => Some(reason.as_str()),
        };
        Self {
            message_type: "record",
            series: &record.series,
            chunks_damaged: record.damaged,
            chunks_sound: record.sound,
            recorded: record.outcome == RecordOutcome::Recorded,
            reason,
        }
    }
}

#[derive(Serialize)]
struct FindingMessage<'a> {
    message_type: &'static str,
    message: String,
    object: &'a str,
    what: &'a str,
    snapshots: &'a [String],
}

#[derive(Serialize)]
struct SummaryMessage {
    message_type: &'static str,
    num_errors: usize,
    series: u64,
    snapshots: u64,
    containers: u64,
    containers_read: u64,
    bytes_read: u64,
    orphans: u64,
    orphan_bytes: u64,
    suggest_repair_index: bool,
    suggest_prune: bool,
}

fn tell_json(report: &CheckReport, context: &Context) -> Result<(), CliError> {
    for finding in &report.harmless {
        context.output.json(&FindingMessage {
            message_type: "harmless",
            message: line(finding),
            object: &finding.object,
            what: &finding.what,
            snapshots: &finding.snapshots,
        })?;
    }
    for finding in &report.findings {
        context.output.json(&FindingMessage {
            message_type: "error",
            message: line(finding),
            object: &finding.object,
            what: &finding.what,
            snapshots: &finding.snapshots,
        })?;
    }
    report.records.iter().try_for_each(|record| context.output.json(&RecordMessage::new(record)))?;
    context.output.json(&SummaryMessage {
        message_type: "summary",
        num_errors: report.findings.len(),
        series: report.series,
        snapshots: report.snapshots,
        containers: report.containers,
        containers_read: report.containers_read,
        bytes_read: report.bytes_read,
        orphans: report.orphans,
        orphan_bytes: report.orphan_bytes,
        suggest_repair_index: false,
        suggest_prune: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_becomes_a_share() {
        assert_eq!(share(10, 40), ReadData::Percent(25.0));
        assert_eq!(share(50, 40), ReadData::All);
        assert_eq!(share(1, 0), ReadData::All);
    }

    #[test]
    fn a_finding_names_object_damage_and_snapshots() {
        let finding =
            Finding { object: "config".into(), what: "is missing".into(), snapshots: vec!["ab".into(), "cd".into()] };
        assert_eq!(line(&finding), "config: is missing (affects the snapshots ab, cd)");
        assert_eq!(line(&Finding { snapshots: Vec::new(), ..finding }), "config: is missing");
    }
}
