//! `silt check`: looks for damage.

use super::Context;
use crate::error::{CliError, Done};
use crate::parse::Subset;
use crate::progress::{Progress, Work};
use crate::render::size;
use crate::repository::open;
use clap::Args;
use serde::Serialize;
use siltstone_engine::check::{CheckReport, Finding, ReadData, check};
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
    let report = check(&repository, read_data, &progress)?;
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
    if report.findings.is_empty() { output.report("\nno errors were found") } else { Ok(()) }
}

fn line(finding: &Finding) -> String {
    let affected = match finding.snapshots.as_slice() {
        [] => String::new(),
        snapshots => format!(" (affects the snapshots {})", snapshots.join(", ")),
    };
    format!("{}: {}{affected}", finding.object, finding.what)
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
    for finding in &report.findings {
        context.output.json(&FindingMessage {
            message_type: "error",
            message: line(finding),
            object: &finding.object,
            what: &finding.what,
            snapshots: &finding.snapshots,
        })?;
    }
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
