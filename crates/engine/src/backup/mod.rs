//! Backup: plan -> read -> fingerprint -> assemble -> encode -> pack -> commit, one file per stage.
//!
//! ```text
//! plan       1 thread    walks the source beside the previous catalog; batches of entries, jobs for what must be read
//! read       n threads   open, read, cut                                    (one job each, in parallel)
//! hash       n threads   fingerprints of a piece                            (tickets keep the order)
//! assemble   1 thread    known or new? numbers, recipes, catalog, regions   (in stream order)
//! select     1 thread    what to encode against what: `forward`, `paper`    (in stream order)
//! encode     n threads   compress, decompress, compare                      (tickets keep the order)
//! pack       1 thread    containers, storage
//! ```
//! Every queue is bounded; together they hold some 100 MiB whatever the source, the rest of the budget is the index's.
//! This file says what is asked for and begins and ends it; `stages` starts the threads and joins them.

mod assemble;
mod begin;
mod changed;
mod checkpoint;
mod commit;
mod entries;
mod heal;
mod notes;
mod older;
mod plan;
mod previous;
mod read;
mod regions;
mod sample;
mod select;
mod shrunk;
mod stages;

use crate::delta::{Deltas, SimilarIndex};
use crate::fs::{ExcludeRules, absolute_source};
use crate::lease::{Purpose, acquire, now};
use crate::maintain::{self, MigrateOptions, MigrateSummary};
use crate::observer::Notice;
use crate::pack::{DrySink, Packed};
use crate::written::verify_written;
use crate::{EngineError, Observer};
use assemble::Account;
pub use changed::ChangedList;
pub use checkpoint::CheckpointRule;
use checkpoint::Checkpoints;
use entries::Tally;
use notes::Noted;
pub use select::{DELTA_THRESHOLD_DEFAULT, SEGMENT_BYTES_DEFAULT};
pub use shrunk::SHRINK_SHARE_DEFAULT;
use siltstone_chunk::{Chunker, Sizes};
use siltstone_store::config::ChunkerSettings;
use siltstone_store::manifest::{Manifest, SnapshotStatistics};
use siltstone_store::repository::Repository;
use siltstone_store::series::{ReserveUse, SeriesWriter, lost_containers, newest_manifest};
use siltstone_store::storage::Listing;
use siltstone_store::{ChunkNumber, SnapshotId, StoreError, Time};
use stages::Flow;
use std::io::Read;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// What the queues, buffers and compressors take; the rest of the budget is the index's.
const FIXED_MEMORY_BYTES: u64 = 144 << 20;
/// The least the index can work with.
const INDEX_MEMORY_BYTES_MIN: u64 = 16 << 20;
/// The least a backup can work with.
const MEMORY_BYTES_MIN: u64 = FIXED_MEMORY_BYTES + INDEX_MEMORY_BYTES_MIN;
/// The averages a new repository may choose: below, the numbers outweigh what is found; above, a chunk outgrows a
/// region.
pub const CHUNK_BYTES_AVERAGE: RangeInclusive<u64> = 4 << 10..=1 << 20;
/// Old data read back at each backup, unless asked otherwise: four regions or more, some hundredths of a second.
pub const SAMPLE_BYTES_DEFAULT: u64 = 8 << 20;
/// What is backed up.
pub enum Source {
    /// Files and folders.
    Paths(Vec<PathBuf>),
    /// The same, but only what is listed is looked at; the rest is as in the series' last snapshot, which must be of
    /// the same paths.
    Changes {
        /// The files and folders.
        paths: Vec<PathBuf>,
        /// What changed in them.
        list: Arc<ChangedList>,
    },
    /// One stream, stored as a regular file of this name. A read error fails the backup as a whole (so a reader that
    /// stands for a command reports the command's failure as its last read).
    Stream {
        /// Its path in the snapshot, such as `/stdin`.
        name: PathBuf,
        /// The bytes.
        reader: Box<dyn Read + Send>,
    },
}

/// How to back up.
#[derive(Clone, Debug)]
pub struct BackupOptions {
    /// Series name; by default host and paths.
    pub series: Option<String>,
    /// Host recorded.
    pub host: String,
    /// User recorded.
    pub user: String,
    /// Tags recorded.
    pub tags: Vec<String>,
    /// Note recorded.
    pub description: Option<String>,
    /// Time recorded instead of now.
    pub time: Option<Time>,
    /// Name and version of the program, recorded.
    pub program: String,
    /// What to leave out.
    pub exclude: ExcludeRules,
    /// Stay on the file systems of the source paths.
    pub one_file_system: bool,
    /// Read files again even if they seem unchanged.
    pub force: bool,
    /// Leave the change time out of the comparison.
    pub ignore_ctime: bool,
    /// Leave the inode number out of the comparison.
    pub ignore_inode: bool,
    /// Do everything but write.
    pub dry_run: bool,
    /// The share of its files or bytes that a source may lose since the last snapshot (0 ..= 1); `None`: any. Beyond,
    /// no snapshot is made.
    pub shrink_share: Option<f64>,
    /// Make no snapshot if it would equal the previous one.
    pub skip_if_unchanged: bool,
    /// Commit what is done so far now and then, and when interrupted; `None`: only the whole.
    pub checkpoint: Option<CheckpointRule>,
    /// Run a scan ahead, for an estimate of the whole.
    pub estimate: bool,
    /// Bytes of memory to stay below.
    pub memory_bytes: u64,
    /// Folder for the local index; `None`: no cache is kept.
    pub cache: Option<PathBuf>,
    /// Compression level of zstd.
    pub compression_level: i32,
    /// Take over a lease whose holder cannot be seen from here.
    pub take_over: bool,
    /// Which way deltas point.
    pub deltas: Deltas,
    /// Settle at once what this backup leaves behind; otherwise the next [`maintain::maintain`] does.
    pub migrate: bool,
    /// The share of a container that may be superseded or dead before it is split (0 ..= 1).
    pub migrate_threshold: f64,
    /// References from one segment of new data into a container below which no base is read from it.
    pub delta_threshold: u32,
    /// New data that is looked at together for this, bytes; less where memory is short.
    pub segment_bytes: u64,
    /// Read back what was written, before it is committed.
    pub verify_written: bool,
    /// Old data of the last snapshot that is read back first, bytes; [`SAMPLE_BYTES_DEFAULT`].
    pub sample_bytes: u64,
}

/// What became of new chunks that resemble old ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeltaCounts {
    /// Chunks in deltas.
    pub kept: u64,
    /// Chunks that stay whole because their delta saves too little.
    pub rejected: u64,
    /// Chunks that stay whole because their bases lie where too few others do.
    pub skipped: u64,
}

/// Chunks that the last snapshot lacked, but an older live one had: used again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TakenBack {
    /// How many, data and metadata.
    pub chunks: u64,
    /// Their bytes.
    pub plain_bytes: u64,
}

/// Chunks that could not be read and were stored again under their numbers, because the source still had their content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Healed {
    /// How many, data and metadata.
    pub chunks: u64,
    /// Their bytes.
    pub plain_bytes: u64,
}

/// What a backup did.
#[derive(Clone, Debug)]
pub struct BackupSummary {
    /// The snapshot made; `None` in a dry run, or if skipped as unchanged.
    pub snapshot: Option<SnapshotId>,
    /// The snapshot it was compared with.
    pub parent: Option<SnapshotId>,
    /// The series' name.
    pub series: String,
    /// Counts and bytes, as they stand with the snapshot: what was settled after it is part of them.
    pub statistics: SnapshotStatistics,
    /// What was encoded against the snapshot before.
    pub deltas: DeltaCounts,
    /// What snapshots before the one before had.
    pub taken_back: TakenBack,
    /// What was damaged and is whole again.
    pub healed: Healed,
    /// What was moved once the snapshot stood.
    pub migration: MigrateSummary,
    /// Sources given that could not be looked at at all; they count as problems too.
    pub missing_sources: u64,
}

/// The chunker of new repositories.
pub fn default_chunker() -> ChunkerSettings {
    chunker(siltstone_chunk::DEFAULT_NAME)
}

/// The names a new repository may choose its chunker by: those whose cuts depend on its key.
pub fn chunker_names() -> impl Iterator<Item = &'static str> {
    siltstone_chunk::ALGORITHMS.iter().filter(|algorithm| algorithm.keyed).map(|algorithm| algorithm.name)
}

/// The chunker of this name with the usual sizes.
fn chunker(name: &str) -> ChunkerSettings {
    let bytes = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
    let sizes = Sizes::DEFAULT;
    ChunkerSettings {
        name: name.to_owned(),
        min_bytes: bytes(sizes.min()),
        average_bytes: bytes(sizes.expected()),
        max_bytes: bytes(sizes.max()),
    }
}

/// The chunker of this name for chunks of so many bytes on average: at least half of that, at most four times.
///
/// # Errors
/// An average outside of [`CHUNK_BYTES_AVERAGE`].
pub fn chunker_sized(name: &str, average_bytes: u64) -> Result<ChunkerSettings, EngineError> {
    let refused = || EngineError::BadChunkSize { given: average_bytes };
    let average = u32::try_from(average_bytes).ok().filter(|_| CHUNK_BYTES_AVERAGE.contains(&average_bytes));
    let average_bytes = average.ok_or_else(refused)?;
    let (min_bytes, max_bytes) = (average_bytes / 2, average_bytes * 4);
    Sizes::new(min_bytes, average_bytes, max_bytes).map_err(|_| refused())?;
    Ok(ChunkerSettings { name: name.to_owned(), min_bytes, average_bytes, max_bytes })
}

/// The name of the series a backup of these absolute paths on this host goes to unless another is given.
pub fn default_series_name(host: &str, paths: &[Vec<u8>]) -> String {
    let mut name = host.to_owned();
    for path in paths {
        name.push(':');
        name.push_str(&path.escape_ascii().to_string());
    }
    name
}

/// Makes a snapshot of `source`.
///
/// # Errors
/// What stops the backup as a whole: nothing to back up, the stream failed, the repository is missing, locked, damaged
/// or full, the user interrupted it. Then there is no new snapshot, and all others are as before.
pub fn backup(
    repository: &Repository,
    source: Source,
    options: &BackupOptions,
    observer: &dyn Observer,
) -> Result<BackupSummary, EngineError> {
    let started = Instant::now();
    let least = MEMORY_BYTES_MIN;
    if options.memory_bytes < least {
        return Err(EngineError::MemoryTooSmall { given_mib: options.memory_bytes >> 20, least_mib: least >> 20 });
    }
    let chunker = open_chunker(repository)?;
    let paths = source_paths(&source)?;
    let series = options.series.clone().unwrap_or_else(|| default_series_name(&options.host, &paths));
    let mut list_bytes = 0;
    if let Source::Changes { list, .. } = &source {
        // Before anything is written; the planning stage, which holds the lease, looks at the base again.
        list.check(&paths, options.memory_bytes)?;
        list_bytes = list.memory_bytes();
        let stored = newest_manifest(repository, repository.keys().series_id(&series))?;
        changed::base(stored.as_ref().map(|stored| &stored.manifest), &series, &paths)?;
    }
    let shrink_share = shrunk::share_of(&source, options);
    let (chunker, series) = (chunker.as_ref(), series.as_str());
    let task = Task { repository, chunker, options, observer, started, paths, shrink_share, list_bytes, series };
    if options.dry_run {
        return task.dry_run(source);
    }
    let mut writer = task.acquire()?;
    match task.run_and_commit(source, &mut writer) {
        Ok((summary, similar)) if summary.snapshot.is_some() => Ok(task.settle(writer, summary, similar)),
        Ok((summary, _)) => {
            writer.abandon(now())?;
            Ok(summary)
        }
        Err(error) => {
            // The first error is the one to tell; a lease left behind is taken over by the next run.
            let _ = writer.abandon(now());
            Err(error)
        }
    }
}

fn open_chunker(repository: &Repository) -> Result<Box<dyn Chunker>, EngineError> {
    let config = repository.config();
    let settings = &config.chunker;
    let unknown = |feature| StoreError::UnknownFeature { object: "config".to_owned(), feature };
    if !chunker_names().any(|name| name == settings.name) {
        return Err(unknown(format!("the chunker {:?}", settings.name)).into());
    }
    let sizes = Sizes::new(settings.min_bytes, settings.average_bytes, settings.max_bytes);
    let chunker = sizes
        .and_then(|sizes| siltstone_chunk::by_name(&settings.name, sizes, &repository.keys().chunker_key()))
        .map_err(|error| unknown(error.to_string()))?;
    Ok(chunker)
}

/// The absolute source paths as bytes, each once, sorted; at least one must exist.
fn source_paths(source: &Source) -> Result<Vec<Vec<u8>>, EngineError> {
    let bytes = |path: PathBuf| std::os::unix::ffi::OsStringExt::into_vec(path.into_os_string());
    let given = match source {
        Source::Stream { name, .. } => {
            let absolute = PathBuf::from("/").join(name);
            return Ok(vec![bytes(absolute)]);
        }
        Source::Paths(given) | Source::Changes { paths: given, .. } => given,
    };
    let is_looked_at = matches!(source, Source::Paths(_));
    let no_source = |path: &PathBuf, source| EngineError::NoSource { path: path.clone(), source };
    let mut paths = Vec::new();
    let mut first_missing = None;
    let mut found = false;
    for path in given {
        let absolute = absolute_source(path).map_err(|error| no_source(path, error))?;
        match std::fs::symlink_metadata(&absolute) {
            _ if !is_looked_at => found = true,
            Ok(_) => found = true,
            // Whatever else is wrong (a path too long for one call, say) is told by the walk.
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => found = true,
            Err(error) => first_missing = first_missing.or(Some(no_source(path, error))),
        }
        paths.push(bytes(absolute));
    }
    match first_missing {
        Some(error) if !found => return Err(error),
        _ => {}
    }
    if paths.is_empty() {
        let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, "no path was given");
        return Err(EngineError::NoSource { path: PathBuf::new(), source });
    }
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// One backup, as asked for.
struct Task<'t> {
    repository: &'t Repository,
    chunker: &'t dyn Chunker,
    options: &'t BackupOptions,
    observer: &'t dyn Observer,
    started: Instant,
    paths: Vec<Vec<u8>>,
    /// The share that the source may lose.
    shrink_share: Option<f64>,
    /// What a list of changes takes of the memory.
    list_bytes: u64,
    series: &'t str,
}

impl<'t> Task<'t> {
    fn acquire(&self) -> Result<SeriesWriter<'t>, EngineError> {
        let BackupOptions { user, take_over, .. } = self.options;
        let purpose = Purpose { name: "backup", user, take_over: *take_over, reserve: ReserveUse::Keep };
        acquire(self.repository, self.series, &purpose, self.observer)
    }

    fn dry_run(&self, source: Source) -> Result<BackupSummary, EngineError> {
        let id = self.repository.keys().series_id(self.series);
        let stored = newest_manifest(self.repository, id)?;
        let manifest = stored.map_or_else(|| Manifest::new(id, self.series), |stored| stored.manifest);
        let listed = self.repository.storage().list(Listing::Containers(id)).map_err(StoreError::from)?;
        let lost = lost_containers(self.repository, &manifest, &listed);
        let sink = DrySink::new(manifest.sequence + 1);
        let (flow, _) = self.run(source, &manifest, &lost, (&sink, None))?;
        self.refuse_shrunk(&manifest, &flow.entries.statistics)?;
        Ok(self.summary(None, &manifest, &flow))
    }

    fn run_and_commit(
        &self,
        source: Source,
        writer: &mut SeriesWriter<'t>,
    ) -> Result<(BackupSummary, Option<SimilarIndex>), EngineError> {
        let manifest = writer.manifest().clone();
        self.warn_of_clock(&manifest);
        let lost = writer.lost.clone();
        let checkpoints = Checkpoints::new(&mut *writer);
        let (mut flow, known) = self.run(source, &manifest, &lost, (&checkpoints, Some(&checkpoints)))?;
        if self.options.verify_written {
            verify_written(self.repository, manifest.series, &flow.packed.containers)?;
        }
        self.refuse_shrunk(&manifest, &flow.entries.statistics)?;
        if self.is_unwanted(flow.snapshot.root, &manifest) {
            if !flow.assembled.healed.is_empty() {
                self.commit_healed(writer, &flow)?;
            }
            return Ok((self.summary(None, &manifest, &flow), None));
        }
        let mut summary = self.summary(None, &manifest, &flow);
        // What an interrupted run stored was not looked at by this one: what resembles what is then found anew.
        let similar = flow.noted.similar.take().filter(|_| previous::partial(&manifest).next().is_none());
        summary.snapshot = Some(self.commit(writer, &manifest, flow, known.as_ref(), summary.statistics)?);
        Ok((summary, similar))
    }

    /// Whether a snapshot with this root is not to be made, for the last live one has the same.
    fn is_unwanted(&self, root: ChunkNumber, manifest: &Manifest) -> bool {
        self.options.skip_if_unchanged && previous::last_live(manifest).is_some_and(|parent| parent.root == root)
    }

    /// Settles what the backup leaves behind, if asked to, and gives the lease back. The snapshot stands: whatever goes
    /// wrong here is told, and left to the next [`maintain::maintain`].
    fn settle(
        &self,
        mut writer: SeriesWriter<'t>,
        mut summary: BackupSummary,
        similar: Option<SimilarIndex>,
    ) -> BackupSummary {
        if !self.options.migrate {
            return summary;
        }
        let options = MigrateOptions {
            deltas: self.options.deltas,
            threshold: self.options.migrate_threshold,
            compression_level: self.options.compression_level,
            memory_bytes: self.options.memory_bytes,
            piece_bytes: maintain::PIECE_BYTES_DEFAULT,
            verify_written: self.options.verify_written,
            take_over: false,
            user: self.options.user.clone(),
        };
        let result = maintain::settle(self.repository, &mut writer, similar, &options, self.observer);
        let made = writer.manifest().snapshots().iter().find(|made| Some(made.id) == summary.snapshot);
        summary.statistics = made.map_or(summary.statistics, |made| made.statistics);
        let end = match &result {
            Ok(_) => {
                let settled = writer.manifest().clone();
                writer.commit(settled, false, now()).map_err(EngineError::from)
            }
            Err(_) => writer.abandon(now()).map_err(EngineError::from),
        };
        match result.and_then(|migration| end.map(|()| migration)) {
            Ok(migration) => summary.migration = migration,
            Err(error) => self.observer.notice(&Notice::NotSettled { reason: error.to_string() }),
        }
        summary
    }

    fn warn_of_clock(&self, manifest: &Manifest) {
        let last = manifest.snapshots().iter().map(|snapshot| snapshot.made.seconds).max();
        let behind = last.map_or(0, |last| last.saturating_sub(now().seconds));
        if behind > 0 {
            self.observer.notice(&Notice::ClockBehind { seconds: behind });
        }
    }

    fn statistics(&self, account: &Account, tally: &Tally, packed: &Packed, noted: &Noted) -> SnapshotStatistics {
        SnapshotStatistics {
            added_plain_bytes: account.data_plain_bytes,
            added_stored_bytes: packed.object_bytes(),
            metadata_bytes: account.metadata_plain_bytes,
            chunks_new: account.chunks_new,
            deltas_kept: noted.deltas.kept,
            deltas_rejected: noted.deltas.rejected,
            deltas_skipped: noted.deltas.skipped,
            duration_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            ..tally.statistics
        }
    }

    fn summary(&self, snapshot: Option<SnapshotId>, manifest: &Manifest, flow: &Flow) -> BackupSummary {
        let account = &flow.assembled.account;
        let mut statistics = self.statistics(account, &flow.entries, &flow.packed, &flow.noted);
        statistics.problems += flow.planned.problems;
        BackupSummary {
            snapshot,
            parent: manifest.snapshots().last().map(|snapshot| snapshot.id),
            series: self.series.to_owned(),
            statistics,
            deltas: flow.noted.deltas,
            taken_back: account.taken_back,
            healed: account.healed,
            migration: MigrateSummary::default(),
            missing_sources: flow.planned.missing_sources,
        }
    }
}
