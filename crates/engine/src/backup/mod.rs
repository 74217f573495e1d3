//! Backup: plan -> read -> fingerprint -> assemble -> encode -> pack -> commit, one file per stage.
//!
//! ```text
//! plan       1 thread    walks the source beside the previous catalog; batches of entries, jobs for what must be read
//! read       n threads   open, read, cut                                    (one job each, in parallel)
//! hash       n threads   fingerprints of a piece                            (tickets keep the order)
//! assemble   1 thread    known or new? numbers, recipes, catalog, regions   (in stream order)
//! encode     n threads   compress, decompress, compare                      (tickets keep the order)
//! pack       1 thread    containers, storage
//! ```
//! Every queue is bounded; together they hold some 100 MiB whatever the source, the rest of the budget is the index's.

mod assemble;
mod commit;
mod entries;
mod plan;
mod read;

use crate::chunks::ChunkSource;
use crate::fs::{ExcludeRules, ScanDetail, ScanItem, ScanOptions, Scanner, absolute_source};
use crate::index::FingerprintIndex;
use crate::lease::{is_dead, now, this_holder};
use crate::observer::{EntryAction, Notice};
use crate::pack::{ContainerSink, DrySink, Packed, Packer};
use crate::parallel::{Pool, cores, spawn_named};
use crate::{EngineError, Observer};
use assemble::{Assembled, ChunkStore, RegionTicket, Unusable};
use commit::{Cache, open_index};
use crossbeam_channel::{Receiver, bounded};
use entries::Entries;
use plan::{Item, Planned, Planner, Step};
use read::{Buffers, FileEnd, ReadStage};
use roaring::RoaringTreemap;
use siltstone_chunk::{Chunker, Sizes};
use siltstone_store::catalog::{Content, EntryPath, Metadata};
use siltstone_store::config::ChunkerSettings;
use siltstone_store::manifest::{Manifest, SnapshotStatistics};
use siltstone_store::region::RegionEncoder;
use siltstone_store::repository::Repository;
use siltstone_store::series::{LeaseRequest, ReserveUse, SeriesWriter, lost_containers, newest_manifest};
use siltstone_store::storage::Listing;
use siltstone_store::{ContainerId, SnapshotId, StoreError, Time};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What the queues, buffers and compressors take; the rest of the budget is the index's.
const FIXED_MEMORY_BYTES: u64 = 144 << 20;
/// The least the index can work with.
const INDEX_MEMORY_BYTES_MIN: u64 = 16 << 20;
/// Steps planned ahead of the assembling stage; a job of small files holds up to a mebibyte or two.
const STEPS_AHEAD_MAX: usize = 12;
/// Regions between assembling and packing.
const REGIONS_AHEAD_MAX: usize = 6;

/// What is backed up.
pub enum Source {
    /// Files and folders.
    Paths(Vec<PathBuf>),
    /// One stream, stored as a regular file of this name. A read error fails the backup as a whole (so a reader that stands for a
    /// command reports the command's failure as its last read).
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
    /// Make no snapshot if it would equal the previous one.
    pub skip_if_unchanged: bool,
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
    /// Counts and bytes.
    pub statistics: SnapshotStatistics,
    /// Sources given that could not be looked at at all; they count as problems too.
    pub missing_sources: u64,
}

/// The chunker of new repositories.
pub fn default_chunker() -> ChunkerSettings {
    let bytes = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
    let sizes = Sizes::DEFAULT;
    ChunkerSettings {
        name: siltstone_chunk::GearNc2::NAME.to_owned(),
        min_bytes: bytes(sizes.min()),
        average_bytes: bytes(sizes.expected()),
        max_bytes: bytes(sizes.max()),
    }
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
/// What stops the backup as a whole: nothing to back up, the stream failed, the repository is missing, locked, damaged or full, the
/// user interrupted it. Then there is no new snapshot, and all others are as before.
pub fn backup(
    repository: &Repository,
    source: Source,
    options: &BackupOptions,
    observer: &dyn Observer,
) -> Result<BackupSummary, EngineError> {
    let started = Instant::now();
    let least = FIXED_MEMORY_BYTES + INDEX_MEMORY_BYTES_MIN;
    if options.memory_bytes < least {
        return Err(EngineError::MemoryTooSmall { given_mib: options.memory_bytes >> 20, least_mib: least >> 20 });
    }
    let chunker = open_chunker(repository)?;
    let paths = source_paths(&source)?;
    let series = options.series.clone().unwrap_or_else(|| default_series_name(&options.host, &paths));
    let task = Task { repository, chunker: chunker.as_ref(), options, observer, started, paths, series: &series };
    if options.dry_run {
        return task.dry_run(source);
    }
    let mut writer = task.acquire()?;
    match task.run_and_commit(source, &mut writer) {
        Ok(summary) if summary.snapshot.is_some() => Ok(summary),
        Ok(summary) => {
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
    let settings = &repository.config().chunker;
    let sizes = Sizes::new(settings.min_bytes, settings.average_bytes, settings.max_bytes);
    let chunker = sizes
        .and_then(|sizes| siltstone_chunk::by_name(&settings.name, sizes, &repository.keys().chunker_key()))
        .map_err(|error| StoreError::UnknownFeature { object: "config".to_owned(), feature: error.to_string() })?;
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
        Source::Paths(given) => given,
    };
    let no_source = |path: &PathBuf, source| EngineError::NoSource { path: path.clone(), source };
    let mut paths = Vec::new();
    let mut first_missing = None;
    let mut found = false;
    for path in given {
        let absolute = absolute_source(path).map_err(|error| no_source(path, error))?;
        match std::fs::symlink_metadata(&absolute) {
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
    series: &'t str,
}

/// What went through the stages.
struct Flow {
    planned: Planned,
    entries: entries::Tally,
    root: siltstone_store::ChunkNumber,
    assembled: Assembled,
    packed: Packed,
}

impl<'t> Task<'t> {
    fn acquire(&self) -> Result<SeriesWriter<'t>, EngineError> {
        let request = LeaseRequest {
            series_name: self.series,
            holder: this_holder(&self.options.user),
            purpose: "backup",
            now: now(),
            is_dead: &is_dead,
            take_over: self.options.take_over,
            reserve: ReserveUse::Keep,
        };
        let writer = SeriesWriter::acquire(self.repository, &request)?;
        if let Some(lease) = &writer.taken_over {
            let holder = lease.holder.to_string();
            self.observer.notice(&Notice::LeaseTakenOver { holder, objects: writer.orphans_removed });
        }
        Ok(writer)
    }

    fn dry_run(&self, source: Source) -> Result<BackupSummary, EngineError> {
        let id = self.repository.keys().series_id(self.series);
        let stored = newest_manifest(self.repository, id)?;
        let manifest = stored.map_or_else(|| Manifest::new(id, self.series), |stored| stored.manifest);
        let listed = self.repository.storage().list(Listing::Containers(id)).map_err(StoreError::from)?;
        let lost = lost_containers(&manifest, &listed);
        let sink = DrySink::new(manifest.sequence + 1);
        let flow = self.run(source, &manifest, &lost, &sink)?;
        Ok(self.summary(None, &manifest, &flow))
    }

    fn run_and_commit(&self, source: Source, writer: &mut SeriesWriter<'t>) -> Result<BackupSummary, EngineError> {
        let manifest = writer.manifest().clone();
        self.warn_of_clock(&manifest);
        let flow = self.run(source, &manifest, &writer.lost, writer)?;
        let parent = manifest.snapshots().last();
        if self.options.skip_if_unchanged && parent.is_some_and(|parent| parent.root == flow.root) {
            return Ok(self.summary(None, &manifest, &flow));
        }
        let mut summary = self.summary(None, &manifest, &flow);
        summary.snapshot = Some(self.commit(writer, flow, summary.statistics)?);
        Ok(summary)
    }

    fn warn_of_clock(&self, manifest: &Manifest) {
        let last = manifest.snapshots().last().map(|snapshot| snapshot.time.seconds);
        let behind = last.map_or(0, |last| last.saturating_sub(now().seconds));
        if behind > 0 && self.options.time.is_none() {
            self.observer.notice(&Notice::ClockBehind { seconds: behind });
        }
    }

    fn summary(&self, snapshot: Option<SnapshotId>, manifest: &Manifest, flow: &Flow) -> BackupSummary {
        let account = &flow.assembled.account;
        let tally = &flow.entries;
        let statistics = SnapshotStatistics {
            added_plain_bytes: account.data_plain_bytes,
            added_stored_bytes: flow.packed.object_bytes(),
            metadata_bytes: account.metadata_plain_bytes,
            chunks_new: account.chunks_new,
            problems: flow.planned.problems + tally.statistics.problems,
            duration_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            ..tally.statistics
        };
        BackupSummary {
            snapshot,
            parent: manifest.snapshots().last().map(|snapshot| snapshot.id),
            series: self.series.to_owned(),
            statistics,
            missing_sources: flow.planned.missing_sources,
        }
    }

    /// Runs all stages to the end of the source.
    fn run(
        &self,
        source: Source,
        manifest: &Manifest,
        lost: &[ContainerId],
        sink: &dyn ContainerSink,
    ) -> Result<Flow, EngineError> {
        let chunks = ChunkSource::with_limits(self.repository, manifest, 8, 6);
        let mut lost = lost_numbers(manifest, lost);
        if !lost.is_empty() {
            self.observer.notice(&Notice::ContainersLost { chunks: lost.len() });
        }
        let spill = Cache::spill_dir(self.options.cache.as_deref(), self.repository);
        let index = self.index(manifest, &chunks, &mut lost, spill.as_ref())?;
        let unusable = Unusable { lost, ..Unusable::default() };
        let stages = Stages { task: self, manifest, chunks: &chunks, unusable: &unusable, sink };
        stages.run(source, index)
    }

    fn index(
        &self,
        manifest: &Manifest,
        chunks: &ChunkSource<'_>,
        lost: &mut RoaringTreemap,
        spill: &Path,
    ) -> Result<FingerprintIndex, EngineError> {
        let budget = self.options.memory_bytes - FIXED_MEMORY_BYTES;
        let cache = self.options.cache.as_deref().map(|folder| Cache::new(folder, self.repository, manifest.series));
        open_index(self.repository, manifest, cache.as_ref(), chunks, lost, budget, spill, self.observer)
    }
}

/// The chunk numbers of containers that the storage lost.
fn lost_numbers(manifest: &Manifest, lost: &[ContainerId]) -> RoaringTreemap {
    let mut numbers = RoaringTreemap::new();
    for record in manifest.containers.iter().filter(|record| lost.contains(&record.id)) {
        for run in &record.chunks {
            numbers.insert_range(run.range());
        }
    }
    numbers
}

/// All that the stages share.
struct Stages<'s, 't> {
    task: &'s Task<'t>,
    manifest: &'s Manifest,
    chunks: &'s ChunkSource<'t>,
    unusable: &'s Unusable,
    sink: &'s dyn ContainerSink,
}

impl Stages<'_, '_> {
    fn run(&self, source: Source, index: FingerprintIndex) -> Result<Flow, EngineError> {
        let workers = cores();
        let keys = self.task.repository.keys();
        let buffers = Buffers::new(self.task.chunker.sizes().max());
        let level = self.task.options.compression_level;
        std::thread::scope(|scope| {
            let (packer_in, packer_out) = bounded::<RegionTicket>(REGIONS_AHEAD_MAX);
            let packer = spawn_named(scope, "pack", move || self.pack(&packer_out));
            let encoders = Pool::start(scope, "encode", workers, workers, || RegionEncoder::new(level).ok());
            let hashers = Pool::start(scope, "hash", workers, workers, || ());
            let (steps_in, steps_out) = bounded(STEPS_AHEAD_MAX);
            let (assembler, assembling) = bounded(0);
            let stage = ReadStage {
                chunker: self.task.chunker,
                buffers: &buffers,
                keys,
                hashers,
                observer: self.task.observer,
                assembling,
            };
            let next = (self.manifest.next_data, self.manifest.next_metadata);
            let store = ChunkStore::new(keys, index, self.unusable, next, encoders, packer_in);

            let assembled = match source {
                Source::Paths(paths) => {
                    let (jobs_in, jobs_out) = bounded(workers);
                    for number in 0..workers.max(2) {
                        let (stage, jobs_out) = (stage.clone(), jobs_out.clone());
                        spawn_named(scope, &format!("read-{number}"), move || stage.run(&jobs_out));
                    }
                    drop((stage, jobs_out));
                    let planner = spawn_named(scope, "plan", move || {
                        let scanner = self.scanner(&paths, ScanDetail::Full)?;
                        let parent = self.manifest.snapshots().last();
                        let Self { task, chunks, unusable, .. } = *self;
                        Planner::new(task.options, task.observer, chunks, parent, unusable, steps_in, jobs_in)
                            .run(scanner)
                    });
                    if self.task.options.estimate {
                        let paths = paths_of(&self.task.paths);
                        spawn_named(scope, "estimate", move || self.estimate(&paths));
                    }
                    let assembled = self.assemble(store, steps_out, &buffers);
                    drop(assembler);
                    joined(planner).and_then(|planned| Ok((planned, assembled?)))
                }
                Source::Stream { name, reader } => {
                    let (pieces_in, pieces_out) = bounded(STEPS_AHEAD_MAX);
                    let (above, end) = self.stream_entries(&name)?;
                    let _ = steps_in.send(Step::Items(above)).and_then(|()| steps_in.send(Step::Pieces(pieces_out)));
                    drop(steps_in);
                    let reader = spawn_named(scope, "read", move || stage.run_stream(reader, end, pieces_in));
                    let assembled = self.assemble(store, steps_out, &buffers);
                    drop(assembler);
                    // A failed stream looks like an empty one to the stages behind it: its outcome must be known before any commit.
                    let failed = |source| EngineError::Stream { name: name.display().to_string(), source };
                    let read = joined(reader).map_err(failed);
                    assembled.and_then(|assembled| read.map(|()| (Planned::default(), assembled)))
                }
            };
            // What the packer met comes first: it makes the stages before it stop.
            let packed = joined(packer)?;
            if self.task.observer.is_cancelled() {
                return Err(EngineError::Interrupted);
            }
            let (planned, (entries, root, assembled)) = assembled?;
            Ok(Flow { planned, entries, root, assembled, packed })
        })
    }

    fn scanner(&self, paths: &[PathBuf], detail: ScanDetail) -> Result<Scanner, EngineError> {
        let options = self.task.options;
        let options =
            ScanOptions { exclude: options.exclude.clone(), one_file_system: options.one_file_system, detail };
        Scanner::new(paths, options)
            .map_err(|source| EngineError::NoSource { path: paths.first().cloned().unwrap_or_default(), source })
    }

    fn estimate(&self, paths: &[PathBuf]) {
        let Ok(scanner) = self.scanner(paths, ScanDetail::StatusOnly) else {
            return;
        };
        let (mut files, mut bytes) = (0u64, 0u64);
        for item in scanner {
            if self.task.observer.is_cancelled() {
                return;
            }
            if let ScanItem::Entry(found) = item {
                files += 1;
                if let crate::fs::FileKind::File { size, .. } = found.kind {
                    bytes += size;
                }
                if files.is_multiple_of(1024) {
                    self.task.observer.estimate(files, bytes, false);
                }
            }
        }
        self.task.observer.estimate(files, bytes, true);
    }

    fn pack(&self, regions: &Receiver<RegionTicket>) -> Result<Packed, EngineError> {
        let mut packer = Packer::new(self.task.repository.keys(), self.manifest.series, self.sink);
        for (kind, ticket) in regions {
            let region = ticket.wait().ok_or(EngineError::Interrupted)??;
            packer.push(kind, &region)?;
        }
        Ok(packer.finish()?)
    }

    fn assemble(
        &self,
        mut store: ChunkStore<'_, '_>,
        steps: Receiver<Step>,
        buffers: &Buffers,
    ) -> Result<(entries::Tally, siltstone_store::ChunkNumber, Assembled), EngineError> {
        let mut entries = Entries::new(&mut store, self.task.observer);
        for step in steps {
            if self.task.observer.is_cancelled() {
                return Err(EngineError::Interrupted);
            }
            match step {
                Step::Items(items) => items.into_iter().try_for_each(|item| entries.item(item))?,
                Step::Pieces(pieces) => {
                    for ticket in pieces {
                        let piece = ticket.wait().ok_or(EngineError::Interrupted)?;
                        entries.piece(piece.parts, &piece.bytes)?;
                        buffers.give_back(piece.bytes);
                    }
                }
            }
        }
        let (tally, root) = entries.finish()?;
        Ok((tally, root, store.finish()?))
    }

    /// What a stream is recorded as: a regular file of now, for its owner alone, and the directories that its name puts above it.
    fn stream_entries(
        &self,
        name: &Path,
    ) -> Result<(Vec<Item>, impl FnOnce(u64) -> FileEnd + Send + use<>), EngineError> {
        let bytes = self.task.paths.first().map(|path| path.strip_prefix(b"/").unwrap_or(path).to_vec());
        let invalid = || EngineError::NoSource {
            path: name.to_owned(),
            source: std::io::Error::new(std::io::ErrorKind::InvalidInput, "this is no name for a stream"),
        };
        let path = EntryPath::new(bytes.unwrap_or_default()).map_err(|_| invalid())?;
        let metadata = |mode| Metadata {
            mode,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            modified: self.task.options.time.unwrap_or_else(now),
            links: 1,
            ..Metadata::default()
        };
        let mut above: Vec<Item> = std::iter::successors(path.parent(), EntryPath::parent)
            .map(|path| plan::ready(path, metadata(0o700), Content::Directory, None))
            .collect();
        above.reverse();
        let metadata = metadata(0o600);
        let action = EntryAction::New;
        let end =
            move |size| FileEnd { path, metadata, action, size, read_bytes: size, is_complete: true, problem: None };
        Ok((above, end))
    }
}

fn paths_of(paths: &[Vec<u8>]) -> Vec<PathBuf> {
    paths
        .iter()
        .map(|path| PathBuf::from(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(path)))
        .collect()
}

/// The result of a stage; a panic in it goes on here.
fn joined<R>(stage: std::thread::ScopedJoinHandle<'_, R>) -> R {
    stage.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
