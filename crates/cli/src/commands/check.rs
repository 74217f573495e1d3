//! `silt check`: looks for damage.

use crate::context::Context;
use crate::environment;
use crate::error::{CliError, Done};
use crate::parse::{Duration, Subset};
use crate::progress::{Progress, Work};
use crate::render::{Path, counted, size};
use crate::repository::open_uncached;
use clap::Args;
use serde::Serialize;
use siltstone_engine::check::{
    CheckOptions, CheckReport, DamageRecord, Finding, Help, ReadData, RecordOutcome, RestoreSample, SampleOutcome,
    SampledFile,
};
use siltstone_store::repository::Repository;
use siltstone_store::secrets::random_bytes;
use siltstone_store::storage::{Listing, ObjectName};
use std::collections::BTreeSet;

/// Look for damage
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// Read all data, and hold every chunk against its fingerprint
    #[arg(long, conflicts_with = "read_data_subset")]
    read_data: bool,
    /// Read part of the data: n/t for the n-th of t parts, x% or a size for a random share
    #[arg(long, value_name = "SUBSET")]
    read_data_subset: Option<Subset>,
    /// Read all data but what this machine read within this time and found sound, such as 30d
    #[arg(long, value_name = "TIME")]
    max_age: Option<Duration>,
    /// Read all data, what was not read for longest first, and stop after this time: another check goes on there
    #[arg(long, value_name = "TIME")]
    max_duration: Option<Duration>,
    /// Restore N files of each series, drawn at random, into nothing, and compare them with their fingerprints and with
    /// the source
    #[arg(long, value_name = "N")]
    restore_sample: Option<usize>,
    /// Draw the files by this number, as an earlier check printed it
    #[arg(long, value_name = "SEED", requires = "restore_sample")]
    seed: Option<u64>,
    /// Draw the files from this snapshot only, given by the beginning of its id (may be repeated)
    #[arg(long = "sample-from", value_name = "ID", requires = "restore_sample")]
    sample_from: Vec<String>,
    /// Do not record in the repository which chunks are damaged; the next backup then does not store them again
    #[arg(long)]
    no_record: bool,
    /// Accepted for the sake of scripts
    #[arg(long, hide = true)]
    with_cache: bool,
}

pub(crate) fn run(arguments: &CheckArgs, context: &Context) -> Result<Done, CliError> {
    let mut repository = open_uncached(context)?;
    let read_data = match (arguments.read_data, arguments.read_data_subset) {
        (true, _) => ReadData::All,
        (false, Some(subset)) => part(subset, &repository)?,
        (false, None) if arguments.max_age.is_some() || arguments.max_duration.is_some() => ReadData::All,
        (false, None) => ReadData::None,
    };
    let sample = arguments.restore_sample.map(|files| sample(files, arguments)).transpose()?;
    let progress = Progress::begin(Work::Check, context)?;
    let options = CheckOptions::default()
        .with_read_data(read_data)
        .with_record((!arguments.no_record).then(environment::user))
        .with_max_age(arguments.max_age.map(|age| age.0))
        .with_max_duration(arguments.max_duration.map(|most| most.0))
        .with_state(environment::state_folder())
        .with_restore_sample(sample);
    let report = context.session(&repository, &progress).check(&options)?;
    progress.end();
    repository.was_told(report.findings.iter().map(|finding| finding.object.clone()));
    context.figures.add([("problems", report.findings.len() as u64)]);
    let seed = options.restore_sample.as_ref().map(|sample| sample.seed);
    let told = if context.output.json { tell_json(&report, seed, context) } else { tell(&report, seed, context) };
    told?;
    match report.findings.len() {
        0 => Ok(Done::Whole),
        findings => Err(CliError::Damaged { findings }),
    }
}

fn sample(files: usize, arguments: &CheckArgs) -> Result<RestoreSample, CliError> {
    let seed = match arguments.seed {
        Some(seed) => seed,
        None => u64::from_le_bytes(random_bytes()?),
    };
    Ok(RestoreSample::new(files, seed, environment::host()).with_snapshots(arguments.sample_from.clone()))
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

fn tell(report: &CheckReport, seed: Option<u64>, context: &Context) -> Result<(), CliError> {
    let output = context.output;
    output.report(format_args!(
        "checked {}, {}, {}",
        counted(report.series, "series"),
        counted(report.snapshots, "snapshot"),
        counted(report.containers, "container")
    ))?;
    if report.containers_read > 0 {
        output.report(format_args!(
            "read {}, {}",
            counted(report.containers_read, "container"),
            size(report.bytes_read)
        ))?;
    }
    if report.containers_fresh > 0 {
        output.report(format_args!(
            "not read again, because they were within that time: {}",
            counted(report.containers_fresh, "container")
        ))?;
    }
    if report.containers_left > 0 {
        output.report(format_args!(
            "the time is over; left for the next check: {}, {}",
            counted(report.containers_left, "container"),
            size(report.bytes_left)
        ))?;
    }
    if let Some(reason) = &report.not_remembered {
        output
            .warn(format_args!("warning: what was read cannot be remembered, the next check reads it again: {reason}"));
    }
    report.sample.iter().try_for_each(|file| output.report(sampled(file)))?;
    if let Some(seed) = seed {
        output.report(format_args!(
            "restored {} into nothing (--seed {seed})",
            counted(report.sample.len() as u64, "file")
        ))?;
    }
    if report.orphans > 0 {
        output.report(format_args!(
            "left by a run that was interrupted or may not delete: {} ({}); the next 'silt maintain', or \
             backup or forget of that series, that may delete removes what is left",
            counted(report.orphans, "object"),
            size(report.orphan_bytes)
        ))?;
    }
    if report.unprotected > 0 {
        output.report(format_args!(
            "without the parity that is wanted: {}; 'silt maintain' makes it",
            counted(report.unprotected, "container")
        ))?;
    }
    report.findings.iter().for_each(|finding| output.warn(format_args!("error: {}", line(finding))));
    for finding in &report.harmless {
        output.warn(format_args!("{}; no snapshot needs what was hit there", line(finding)));
    }
    report.records.iter().for_each(|record| output.warn(recorded(record)));
    for line in advice(&report.findings) {
        output.warn(line);
    }
    if report.findings.is_empty() { output.report("\nno errors were found") } else { Ok(()) }
}

fn line(finding: &Finding) -> String {
    let affected = match finding.snapshots.as_slice() {
        [] => String::new(),
        [snapshot] => format!(" (affects the snapshot {snapshot})"),
        snapshots => format!(" (affects the snapshots {})", snapshots.join(", ")),
    };
    if finding.what.starts_with(&finding.object) {
        return format!("{}{affected}", finding.what);
    }
    format!("{}: {}{affected}", finding.object, finding.what)
}

/// The command that helps, as it is typed.
fn command(help: Help) -> &'static str {
    match help {
        Help::Repair => "silt repair",
        Help::RepairReadData => "silt repair --read-data",
        Help::Backup => "silt backup --force",
        Help::Forget => "silt forget",
        Help::KeyAdd => "silt key add",
        Help::AcceptRollback => "--accept-rollback",
        Help::NewSeries => "silt backup --series",
        Help::NewerProgram => "a newer silt",
        Help::LookAfterPlace => "silt check",
    }
}

/// A line for each kind of help.
fn advice(findings: &[Finding]) -> Vec<String> {
    let kinds: BTreeSet<Help> = findings.iter().map(|finding| finding.help).collect();
    let line = |help: &Help| {
        let of_kind: Vec<_> = findings.iter().filter(|finding| finding.help == *help).collect();
        let snapshots: BTreeSet<&str> =
            of_kind.iter().flat_map(|finding| &finding.snapshots).map(String::as_str).collect();
        let (count, command) = (of_kind.len(), command(*help));
        let snapshots = snapshots.into_iter().collect::<Vec<_>>().join(" ");
        match help {
            Help::Repair => format!("'{command}' mends {count} of these from what else is there"),
            Help::RepairReadData => format!("'{command}' mends {count} of these: no chunk is lost by them"),
            Help::Backup => format!("'{command}' stores again what the source still has of {count} of these"),
            Help::Forget => format!(
                "only the source could bring back {count} of these, and it changed since: \
                 'restore' gives what is left, '{command} {snapshots}' drops the snapshots"
            ),
            Help::KeyAdd => format!("nothing brings back {count} key slots: their users need new ones, by '{command}'"),
            Help::AcceptRollback => format!("{count} series are gone: {command} goes on without them"),
            Help::NewerProgram => format!("{command} reads {count} of these; nothing is known to be wrong with them"),
            Help::LookAfterPlace => format!(
                "look after the place, and run '{command}' again: what {count} of these are about is not given out"
            ),
            Help::NewSeries => {
                format!("'{command} NAME' begins a new series beside one that contradicts itself; {count} of these")
            }
        }
    };
    kinds.iter().map(line).collect()
}

/// Outcome of a file that was restored into nothing, in words.
fn sampled(file: &SampledFile) -> String {
    let what = match &file.outcome {
        SampleOutcome::Sound => "sound",
        SampleOutcome::SameAsSource => "sound, and as the source",
        SampleOutcome::Wrong { .. } => "WRONG",
    };
    format!("{} {}: {what} ({})", file.snapshot, Path::of(&file.path).visible(), size(file.bytes))
}

#[derive(Serialize)]
struct SampleMessage<'a> {
    message_type: &'static str,
    snapshot: &'a str,
    path: String,
    bytes: u64,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

impl<'a> SampleMessage<'a> {
    fn new(file: &'a SampledFile) -> Self {
        let (outcome, reason) = match &file.outcome {
            SampleOutcome::Sound => ("sound", None),
            SampleOutcome::SameAsSource => ("same_as_source", None),
            SampleOutcome::Wrong { reason } => ("wrong", Some(reason.as_str())),
        };
        let path = Path::of(&file.path).lossy();
        Self { message_type: "sample", snapshot: &file.snapshot, path, bytes: file.bytes, outcome, reason }
    }
}

/// Record of a series' damage, in words.
fn recorded(record: &DamageRecord) -> String {
    let DamageRecord { series, damaged, sound, outcome } = record;
    let what = match (damaged, sound) {
        (damaged, 0) => format!("damaged: {}", counted(*damaged, "chunk")),
        (0, sound) => format!("readable again: {}", counted(*sound, "chunk")),
        (damaged, sound) => {
            format!("damaged: {}, readable again: {}", counted(*damaged, "chunk"), counted(*sound, "chunk"))
        }
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
    help: &'static str,
}

impl<'a> FindingMessage<'a> {
    fn new(message_type: &'static str, finding: &'a Finding) -> Self {
        let Finding { object, what, snapshots, help } = finding;
        Self { message_type, message: line(finding), object, what, snapshots, help: command(*help) }
    }
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
    containers_fresh: u64,
    containers_left: u64,
    bytes_left: u64,
    files_sampled: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    orphans: u64,
    orphan_bytes: u64,
    suggest_repair_index: bool,
    suggest_prune: bool,
}

fn tell_json(report: &CheckReport, seed: Option<u64>, context: &Context) -> Result<(), CliError> {
    for finding in &report.harmless {
        context.output.json(&FindingMessage::new("harmless", finding))?;
    }
    for finding in &report.findings {
        context.output.json(&FindingMessage::new("error", finding))?;
    }
    report.sample.iter().try_for_each(|file| context.output.json(&SampleMessage::new(file)))?;
    report.records.iter().try_for_each(|record| context.output.json(&RecordMessage::new(record)))?;
    context.output.json(&SummaryMessage {
        message_type: "summary",
        num_errors: report.findings.len(),
        series: report.series,
        snapshots: report.snapshots,
        containers: report.containers,
        containers_read: report.containers_read,
        bytes_read: report.bytes_read,
        containers_fresh: report.containers_fresh,
        containers_left: report.containers_left,
        bytes_left: report.bytes_left,
        files_sampled: report.sample.len(),
        seed,
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
        let snapshots = vec!["ab".into(), "cd".into()];
        let finding = Finding { object: "config".into(), what: "is missing".into(), snapshots, help: Help::Forget };
        assert_eq!(line(&finding), "config: is missing (affects the snapshots ab, cd)");
        assert_eq!(line(&Finding { snapshots: Vec::new(), ..finding }), "config: is missing");
    }

    #[test]
    fn each_kind_of_help_is_told_once_with_what_it_takes() {
        let finding = |help, id: &str| Finding {
            object: "data/x".into(),
            what: "is damaged".into(),
            snapshots: vec![id.into()],
            help,
        };
        let findings = [
            finding(Help::Forget, "cd"),
            finding(Help::Repair, "x"),
            finding(Help::Forget, "ab"),
            finding(Help::Forget, "cd"),
        ];
        let [repair, forget] = advice(&findings).try_into().expect("two kinds");
        assert!(repair.contains("'silt repair'") && repair.contains("1 of these"), "{repair}");
        assert!(forget.contains("'silt forget ab cd'") && forget.contains("3 of these"), "{forget}");
    }
}
