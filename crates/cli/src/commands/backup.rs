//! `silt backup`: makes a snapshot of files, folders, or a stream.

use super::changes::ChangeArgs;
use super::layout::LayoutArgs;
use super::record::RecordArgs;
use super::sources::{ListArgs, StreamArgs, source_paths, stream};
use crate::context::Context;
use crate::environment;
use crate::error::{CliError, Done};
use crate::memory;
use crate::parse::{Checkpointing, ShrinkGuard, Size};
use crate::patterns::ExcludeArgs;
use crate::prices;
use crate::progress::{Counts, Progress, Work};
use crate::render::{Cost, StatisticsJson, Transfer, clock, counted, plural, rfc3339, size};
use crate::repository::{open_for_series, preset};
use crate::retry::while_locked;
use clap::Args;
use serde::Serialize;
use siltstone_engine::VerifyWritten;
use siltstone_engine::backup::{
    BackupOptions, BackupSummary, Borrow, Healed, Reused, SHRINK_SHARE_DEFAULT, Source, series_name,
};
use siltstone_engine::fs::ExcludeRules;
use siltstone_store::Time;
use siltstone_store::manifest::SnapshotStatistics;
use siltstone_store::repository::Repository;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Make a snapshot of files and folders, or of a stream
#[derive(Args, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct BackupArgs {
    /// Files and folders; with --stdin-from-command the command and its arguments
    #[arg(value_name = "PATH")]
    paths: Vec<OsString>,
    /// Series the snapshot belongs to [default: host and paths]
    #[arg(long, value_name = "NAME")]
    series: Option<String>,
    /// Record PATH, the mounted snapshot of a file system or part of it, under the path it is a snapshot of; patterns
    /// see that path, too
    #[arg(long, value_name = "PATH", conflicts_with_all = ["stdin", "stdin_from_command"])]
    as_path: Option<PathBuf>,
    #[command(flatten)]
    record: RecordArgs,
    /// Read all files again, also those that seem unchanged
    #[arg(short, long)]
    force: bool,
    /// Take files for unchanged whatever their change time
    #[arg(long)]
    ignore_ctime: bool,
    /// Take files for unchanged whatever their inode number (and change time)
    #[arg(long)]
    ignore_inode: bool,
    /// Make no snapshot if nothing changed since the previous one
    #[arg(long)]
    skip_if_unchanged: bool,
    /// Refuse to make a snapshot if more than this share of the files or bytes of the last one is gone, or `off`
    /// [default: $SILT_SHRINK_GUARD, or 50%]
    #[arg(long, value_name = "SHARE")]
    shrink_guard: Option<ShrinkGuard>,
    /// Make the snapshot however little is left of the source
    #[arg(long)]
    allow_shrink: bool,
    /// Save what is done so far as a partial snapshot after this long, every 4 GiB of new data and when interrupted, or
    /// `off`
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    checkpoint: Checkpointing,
    /// Do not scan ahead to estimate the remaining time
    #[arg(long)]
    no_scan: bool,
    /// Write nothing, only show what would be done
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Stay on the file systems of the paths given
    #[arg(short = 'x', long)]
    one_file_system: bool,
    #[command(flatten)]
    layout: LayoutArgs,
    /// With forward deltas, read nothing from a container that fewer than N chunks of a segment resemble: the dearer a
    /// read, the higher it should be
    #[arg(long, value_name = "N")]
    delta_threshold: Option<u32>,
    /// Read back what was written before it is committed (the default where the repository is not far away)
    #[arg(long, overrides_with = "no_verify_written")]
    verify_written: bool,
    /// Do not read back what was written
    #[arg(long)]
    no_verify_written: bool,
    /// Old data that is read back first, so that damage is met while the source can heal it; 0 for none [default: 8M,
    /// none where the repository is far away]
    #[arg(long, value_name = "SIZE")]
    verify_sample: Option<Size>,
    /// Use what another series of the repository has instead of storing it again: `auto` finds out whether one has much
    /// of it, `never` stores all, and a series' name asks that one
    #[arg(long, value_name = "SERIES", default_value = "auto", value_parser = borrow)]
    borrow: Borrow,
    /// Leave what this backup supersedes as it is, for 'silt maintain' to encode and lay out
    #[arg(long)]
    no_migrate: bool,
    #[command(flatten)]
    exclude: ExcludeArgs,
    #[command(flatten)]
    lists: ListArgs,
    #[command(flatten)]
    changes: ChangeArgs,
    #[command(flatten)]
    stream: StreamArgs,
}

pub(crate) fn run(arguments: &BackupArgs, context: &Context) -> Result<Done, CliError> {
    let mut options = options(arguments, context, arguments.exclude.rules()?)?;
    let takes_stdin = arguments.stream.takes_stdin() || arguments.lists.take_stdin() || arguments.changes.take_stdin();
    let paths =
        if arguments.stream.is_given() { Vec::new() } else { source_paths(&arguments.paths, &arguments.lists)? };
    let changed = arguments.changes.read(&arguments.lists, context.options.memory.0)?;
    // A stream's name is not known yet; a source that is not there is told later.
    let series = series_name(&paths, &options).ok();
    let repository = open_for_series(context, series.as_deref(), takes_stdin)?;
    options.exclude = without_own_folders(options.exclude, &repository, context);
    let reader = arguments.stream.is_given().then(|| stream(&arguments.stream, &arguments.paths)).transpose()?;

    let progress = Progress::begin(Work::Backup, context)?;
    let session = context.session(&repository, &progress);
    let summary = while_locked(context, || {
        let source = match (&reader, &changed) {
            (Some(stream), _) => Source::Stream { name: stream.name.clone(), reader: Box::new(stream.reader.clone()) },
            (None, Some(list)) => Source::Changes { paths: paths.clone(), list: list.clone() },
            (None, None) => Source::Paths(paths.clone()),
        };
        Ok(session.backup(source, &options)?)
    })?;
    let Counts { problems, sockets, .. } = progress.counts();
    progress.end();
    memory::renew(&repository, context);
    report(context, arguments.dry_run, &summary, sockets)?;

    let is_whole = summary.statistics.problems == 0 && summary.missing_sources == 0 && problems == 0;
    if !is_whole {
        context.output.warn("warning: some of the source could not be read whole; the rest is in the snapshot");
    }
    Ok(if is_whole { Done::Whole } else { Done::InPart })
}

/// The rules, with what the program itself writes to left out: the repository, the cache, the memory.
pub(super) fn without_own_folders(rules: ExcludeRules, repository: &Repository, context: &Context) -> ExcludeRules {
    let cache = context.cache_folder();
    // A folder has an identity only once it is there.
    let _ = cache.as_ref().map(std::fs::create_dir_all);
    let folders = [repository.storage().folder(), cache, environment::state_folder()];
    folders.into_iter().flatten().fold(rules, |rules, folder| rules.without_own_folder(&folder))
}

fn options(arguments: &BackupArgs, context: &Context, exclude: ExcludeRules) -> Result<BackupOptions, CliError> {
    let options = arguments.record.recorded(BackupOptions::default());
    Ok(options
        .with_series(arguments.series.clone())
        .with_exclude(exclude)
        .with_as_path(arguments.as_path.clone())
        .with_one_file_system(arguments.one_file_system)
        .with_force(arguments.force)
        .with_ignore_ctime(arguments.ignore_ctime || arguments.ignore_inode)
        .with_ignore_inode(arguments.ignore_inode)
        .with_dry_run(arguments.dry_run)
        .with_skip_if_unchanged(arguments.skip_if_unchanged)
        .with_borrow(arguments.borrow.clone())
        .with_checkpoint(arguments.checkpoint.0)
        .with_shrink_share(shrink_share(arguments)?)
        .with_estimate(!arguments.no_scan && (context.output.json || context.output.draws_progress()))
        .with_compression_level(context.compression_level()?)
        .with_deltas(arguments.layout.deltas(preset(context)?)?)
        .with_migrate(!arguments.no_migrate)
        .with_migrate_threshold(arguments.layout.threshold(preset(context)?))
        .with_delta_threshold(arguments.delta_threshold.unwrap_or(preset(context)?.delta_threshold()))
        .with_verify_written(match (arguments.verify_written, arguments.no_verify_written) {
            (true, _) => VerifyWritten::Always,
            (_, true) => VerifyWritten::Never,
            _ => VerifyWritten::Nearby,
        })
        .with_sample_bytes(arguments.verify_sample.map(|size| size.0)))
}

/// Reads whom to borrow of.
#[allow(clippy::unnecessary_wraps, reason = "the form that clap asks for")]
fn borrow(text: &str) -> Result<Borrow, String> {
    Ok(match text {
        "auto" => Borrow::Auto,
        "never" => Borrow::Never,
        series => Borrow::From(series.to_owned()),
    })
}

/// The share that the source may lose.
fn shrink_share(arguments: &BackupArgs) -> Result<Option<f64>, CliError> {
    if arguments.allow_shrink {
        return Ok(None);
    }
    let set = || environment::parsed::<ShrinkGuard>("SILT_SHRINK_GUARD");
    let guard = arguments.shrink_guard.map_or_else(set, |guard| Ok(Some(guard)))?;
    Ok(guard.map_or(Some(SHRINK_SHARE_DEFAULT), |guard| guard.0))
}

/// Reports what was done, and counts it; `sockets` were left out.
pub(super) fn report(context: &Context, dry_run: bool, summary: &BackupSummary, sockets: u64) -> Result<(), CliError> {
    count(summary, context);
    let (transfer, cost) = (Transfer::of(&context.traffic), prices::cost(&summary.usage, context)?);
    if context.output.json {
        let network = (transfer, cost);
        return context.output.json(&SummaryMessage::ended(dry_run, summary, sockets, network, environment::now()));
    }
    if !context.output.quiet {
        let cost = cost.map_or_else(String::new, |cost| cost.lines_below("about, without what is settled after it"));
        context.output.report(text(dry_run, summary, sockets, transfer) + &cost)?;
    }
    Ok(())
}

fn count(summary: &BackupSummary, context: &Context) {
    let all = &summary.statistics;
    context.figures.add([
        ("files_new", all.files_new),
        ("files_changed", all.files_changed),
        ("files_unmodified", all.files_unchanged),
        ("processed_bytes", all.logical_bytes),
        ("added_bytes", all.added_plain_bytes + all.metadata_bytes),
        ("stored_bytes", all.added_stored_bytes),
        ("problems", all.problems),
        ("snapshots_made", u64::from(summary.snapshot.is_some())),
    ]);
    summary.snapshot.iter().for_each(|id| context.figures.add_snapshot(id.to_string()));
}

/// restic's report, line by line, with one of ours where there is something to tell.
fn text(dry_run: bool, summary: &BackupSummary, sockets: u64, transfer: Transfer) -> String {
    let all = &summary.statistics;
    let parent = match &summary.parent {
        Some(parent) => format!("using parent snapshot {}", parent.short()),
        None => "no parent snapshot found, all files were read".to_owned(),
    };
    let verb = if dry_run { "Would add to" } else { "Added to" };
    let (added, stored) = (size(all.added_plain_bytes + all.metadata_bytes), size(all.added_stored_bytes));
    let left_out =
        if sockets > 0 { format!("Left out:    {sockets:5} {}\n", plural(sockets, "socket")) } else { String::new() };
    let reused = [duplicates(summary), borrowed(summary), healed(summary)].into_iter().flatten().collect::<String>();
    let deltas = deltas(summary).map_or_else(String::new, |deltas| format!("Deltas:      {deltas}\n"));
    let network = transfer.text().map_or_else(String::new, |text| format!("Network:     {text}\n"));
    let (read, took) = (size(all.logical_bytes), clock(Duration::from_millis(all.duration_ms)));
    let end = match (&summary.snapshot, dry_run) {
        (Some(snapshot), _) => format!("\nsnapshot {} saved", snapshot.short()),
        (None, true) => String::new(),
        (None, false) => "\nskipped creating snapshot: nothing changed".to_owned(),
    };
    format!(
        "{parent}\n\n\
         Files:       {:5} new, {:5} changed, {:5} unmodified\n\
         Dirs:        {:5}\n\
         {left_out}{verb} the repository: {added} ({stored} stored)\n\
         {reused}{deltas}{network}\n\
         processed {}, {read} in {took}{end}",
        all.files_new,
        all.files_changed,
        all.files_unchanged,
        all.directories,
        counted(all.files, "file"),
    )
}

/// Line about bytes that were read and stored already, here or in another series; `None` if there are none.
fn duplicates(summary: &BackupSummary) -> Option<String> {
    let all = &summary.statistics;
    let known = all.read_bytes.saturating_sub(all.added_plain_bytes);
    (known > 0).then(|| format!("Duplicates:  {} of {} read\n", size(known), size(all.read_bytes)))
}

/// Line about chunks that other series lend; `None` if there are none.
fn borrowed(summary: &BackupSummary) -> Option<String> {
    let Reused { chunks, plain_bytes } = summary.borrowed;
    let noun = plural(chunks, "chunk");
    (chunks > 0).then(|| format!("Borrowed:    {chunks:5} {noun} of other series ({})\n", size(plain_bytes)))
}

/// Line about chunks that were damaged and are whole again; `None` if there are none.
fn healed(summary: &BackupSummary) -> Option<String> {
    let Healed { chunks, plain_bytes } = summary.healed;
    let noun = plural(chunks, "damaged chunk");
    (chunks > 0).then(|| format!("Healed:      {chunks:5} {noun} ({})\n", size(plain_bytes)))
}

/// Counts of chunks that resemble others, and bytes moved after the backup; `None` if both are 0.
fn deltas(summary: &BackupSummary) -> Option<String> {
    let [kept, rejected, skipped] = delta_counts(summary);
    let moved = summary.migration.bytes_written;
    let counts = format!("{kept:5} kept, {rejected:5} rejected, {skipped:5} skipped");
    match (kept + rejected + skipped, moved) {
        (0, 0) => None,
        (_, 0) => Some(counts),
        (_, moved) => Some(format!("{counts}; moved {}", size(moved))),
    }
}

/// Chunks in deltas, those whose delta was not worth it, and those that the selector skipped: by the backup, and by the
/// migration after it.
fn delta_counts(summary: &BackupSummary) -> [u64; 3] {
    let (backup, migration) = (&summary.deltas, &summary.migration);
    [backup.kept + migration.deltas_kept, backup.rejected + migration.deltas_rejected, backup.skipped]
}

/// `message_type` `summary`.
#[derive(Serialize)]
struct SummaryMessage<'a> {
    message_type: &'static str,
    dry_run: bool,
    #[serde(flatten)]
    statistics: StatisticsJson,
    sockets_left_out: u64,
    bytes_read: u64,
    bytes_superseded: u64,
    chunks_borrowed: u64,
    bytes_borrowed: u64,
    chunks_healed: u64,
    bytes_healed: u64,
    backup_end: String,
    missing_sources: u64,
    series: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot_id: Option<String>,
    #[serde(flatten)]
    transfer: Transfer,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Cost>,
}

impl<'a> SummaryMessage<'a> {
    fn ended(
        dry_run: bool,
        summary: &'a BackupSummary,
        sockets: u64,
        (transfer, cost): (Transfer, Option<Cost>),
        end: Time,
    ) -> Self {
        let all = &summary.statistics;
        let [deltas_kept, deltas_rejected, deltas_skipped] = delta_counts(summary);
        let bytes_migrated = summary.migration.bytes_written;
        let counted = SnapshotStatistics { deltas_kept, deltas_rejected, deltas_skipped, bytes_migrated, ..*all };
        Self {
            message_type: "summary",
            dry_run,
            statistics: StatisticsJson::from(&counted),
            sockets_left_out: sockets,
            bytes_read: all.read_bytes,
            bytes_superseded: summary.migration.bytes_deleted,
            chunks_borrowed: summary.borrowed.chunks,
            bytes_borrowed: summary.borrowed.plain_bytes,
            chunks_healed: summary.healed.chunks,
            bytes_healed: summary.healed.plain_bytes,
            backup_end: rfc3339(end),
            missing_sources: summary.missing_sources,
            series: &summary.series,
            parent: summary.parent.map(|parent| parent.to_string()),
            snapshot_id: summary.snapshot.map(|snapshot| snapshot.to_string()),
            transfer,
            cost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_engine::backup::DeltaCounts;
    use siltstone_engine::maintain::MaintainSummary;
    use siltstone_engine::usage::Usage;
    use siltstone_store::SnapshotId;

    fn summary() -> BackupSummary {
        let statistics = SnapshotStatistics {
            files: 2,
            directories: 3,
            files_new: 2,
            logical_bytes: 20,
            added_plain_bytes: 1000,
            metadata_bytes: 56,
            added_stored_bytes: 838,
            duration_ms: 1500,
            ..SnapshotStatistics::default()
        };
        BackupSummary {
            snapshot: Some(SnapshotId([0x40; 32])),
            parent: None,
            series: "host:/source".into(),
            statistics,
            deltas: DeltaCounts { kept: 5, rejected: 4, skipped: 3 },
            reused: Reused::default(),
            borrowed: Reused::default(),
            healed: Healed::default(),
            migration: MaintainSummary { deltas_kept: 20, deltas_rejected: 10, ..MaintainSummary::default() },
            missing_sources: 0,
            usage: Usage::default(),
        }
    }

    #[test]
    fn the_report_reads_like_restics() {
        let expected = "\
no parent snapshot found, all files were read

Files:           2 new,     0 changed,     0 unmodified
Dirs:            3
Added to the repository: 1.031 KiB (838 B stored)
Deltas:         25 kept,    14 rejected,     3 skipped

processed 2 files, 20 B in 0:01
snapshot 40404040 saved";
        let text = |dry_run, summary: &BackupSummary| text(dry_run, summary, 0, Transfer::default());
        assert_eq!(text(false, &summary()), expected);
        let skipped = BackupSummary { snapshot: None, ..summary() };
        assert!(text(false, &skipped).ends_with("skipped creating snapshot: nothing changed"));
        let dry = text(true, &skipped);
        assert!(dry.contains("\nWould add to the repository: ") && dry.ends_with("0:01"), "{dry}");
        let sent = super::text(false, &summary(), 0, Transfer::new(2048, 1));
        assert!(sent.contains("skipped\nNetwork:     sent 2.000 KiB, received 1 B\n\nprocessed"), "{sent}");
    }

    #[test]
    fn duplicates_and_sockets_are_told_where_there_are_any() {
        let mut found = summary();
        found.statistics.read_bytes = 3048;
        let told = text(false, &found, 1, Transfer::default());
        let expected = "Left out:        1 socket\nAdded to the repository: 1.031 KiB (838 B stored)\n\
                        Duplicates:  2.000 KiB of 2.977 KiB read\n";
        assert!(told.contains(expected), "{told}");
    }

    #[test]
    fn deltas_are_told_where_there_is_something_to_tell() {
        let moved = MaintainSummary { bytes_written: 1_258_291, ..MaintainSummary::default() };
        let none = BackupSummary { deltas: DeltaCounts::default(), migration: MaintainSummary::default(), ..summary() };
        let line = |summary: &BackupSummary| {
            text(false, summary, 0, Transfer::default())
                .lines()
                .find(|line| line.starts_with("Deltas:"))
                .map(str::to_owned)
        };
        assert_eq!(line(&none), None);
        assert!(
            text(false, &none, 0, Transfer::default()).contains("(838 B stored)\n\nprocessed 2 files"),
            "restic's lines alone"
        );
        let expected = "Deltas:          5 kept,     4 rejected,     3 skipped; moved 1.200 MiB";
        assert_eq!(line(&BackupSummary { migration: moved, ..summary() }).as_deref(), Some(expected));
        let expected = "Deltas:          0 kept,     0 rejected,     0 skipped; moved 1.200 MiB";
        assert_eq!(line(&BackupSummary { migration: moved, ..none }).as_deref(), Some(expected));
    }

    #[test]
    fn the_summary_has_restics_fields() {
        let summary = summary();
        let json = serde_json::to_value(SummaryMessage::ended(
            false,
            &summary,
            7,
            (Transfer::new(5, 6), None),
            Time::default(),
        ))
        .expect("plain data");
        assert_eq!(json["message_type"], "summary");
        assert_eq!(json["data_added"], 1056);
        assert_eq!(json["data_added_packed"], 838);
        assert_eq!(json["total_duration"], 1.5);
        let counts = ["deltas_kept", "deltas_rejected", "deltas_skipped"].map(|field| json[field].as_u64());
        assert_eq!(counts, [25, 14, 3].map(Some), "of the backup and of the migration after it");
        assert_eq!(json["snapshot_id"].as_str().map(str::len), Some(64));
        assert_eq!((&json["bytes_sent"], &json["sockets_left_out"]), (&5.into(), &7.into()));
        assert!(json.get("parent").is_none());
    }
}
