//! The threads of a backup: starts every stage, joins them, and says which error is the one to tell.
//!
//! A stage that fails or is told to stop drops its ends of the queues; its neighbours find them gone and stop too. The
//! error that began it is the one returned, the packer's before all others.

use super::assemble::{Assembled, ChunkStore, Handed, Outlet, Unusable};
use super::checkpoint::{Checkpoints, Pace};
use super::entries::{Entries, Tally};
use super::heal::Healer;
use super::notes::{Noted, Notes};
use super::older::Older;
use super::plan::{self, Item, Planned, Planner, Step};
use super::previous;
use super::read::{Buffers, FileEnd, ReadStage};
use super::regions::Regions;
use super::select::{Draft, Filling, Known, Segments, Selector};
use super::{Source, Task};
use crate::EngineError;
use crate::chunks::ChunkSource;
use crate::decode::{Gatherer, Order};
use crate::delta::{SimilarIndex, sketcher};
use crate::fs::{FileKind, ScanDetail, ScanItem, ScanOptions, Scanner};
use crate::index::FingerprintIndex;
use crate::lease::now;
use crate::observer::EntryAction;
use crate::pack::{ContainerSink, Packed, Packer};
use crate::parallel::{Pool, cores, spawn_named};
use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};
use roaring::RoaringTreemap;
use siltstone_chunk::Fingerprinter;
use siltstone_store::catalog::{Content, EntryPath, Metadata, MetadataSink};
use siltstone_store::manifest::{Manifest, Snapshot, SnapshotRecord};
use siltstone_store::region::{RegionDecoder, RegionEncoder};
use std::convert::Infallible;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{Scope, ScopedJoinHandle};

/// Steps planned ahead of the assembling stage; a job of small files holds up to a mebibyte or two.
const STEPS_AHEAD_MAX: usize = 12;
/// Regions between assembling and packing.
const REGIONS_AHEAD_MAX: usize = 6;

/// A selector at work; ends with how many chunks were left whole because reading their bases would not pay.
type Selecting<'scope> = ScopedJoinHandle<'scope, Result<u64, EngineError>>;

/// What went through the stages.
pub(super) struct Flow {
    pub(super) planned: Planned,
    pub(super) entries: Tally,
    /// The snapshot to be, with its catalog's root and its record; what the rest of the backup did is not in its
    /// statistics yet.
    pub(super) snapshot: Snapshot,
    pub(super) assembled: Assembled,
    pub(super) packed: Packed,
    pub(super) noted: Noted,
    /// Chunks that were found damaged where they lie.
    pub(super) found: RoaringTreemap,
}

/// What encoding new chunks against old ones needs.
pub(super) struct Selection<'s> {
    /// What they may be encoded against.
    pub(super) known: Known,
    /// Where that is read.
    pub(super) chunks: Arc<ChunkSource<'s>>,
    /// Of a segment.
    pub(super) segment_bytes: usize,
    /// What may wait for its bases in memory, bytes; the rest goes to a temporary file in the folder.
    pub(super) waiting_bytes: u64,
    pub(super) spill_folder: PathBuf,
    /// For the new chunks' sketches, if the next backup is to have them.
    pub(super) draft: Option<Draft>,
}

/// All that the stages share.
pub(super) struct Stages<'s, 't, 'w> {
    pub(super) task: &'s Task<'t>,
    pub(super) manifest: &'s Manifest,
    pub(super) chunks: &'s ChunkSource<'t>,
    pub(super) unusable: &'s Unusable,
    pub(super) sink: &'s dyn ContainerSink,
    /// What commits checkpoints, unless none are to be made.
    pub(super) checkpoints: Option<&'s Checkpoints<'w, 't>>,
    /// The memory for sketches of new chunks, if old ones will be encoded against them.
    pub(super) similar_bytes: Option<u64>,
}

impl Stages<'_, '_, '_> {
    /// Runs all stages to the end of the source. With a `selection`, new chunks are encoded against old ones.
    pub(super) fn run(
        &self,
        source: Source,
        known: (FingerprintIndex, Option<Older<'_>>),
        selection: Option<&mut Selection<'_>>,
    ) -> Result<Flow, EngineError> {
        let workers = cores();
        let keys = self.task.repository.keys();
        let buffers = Buffers::new(self.task.chunker.sizes().max());
        let level = self.task.options.compression_level;
        std::thread::scope(|scope| {
            let (packer_in, packer_out) = bounded::<Handed>(REGIONS_AHEAD_MAX);
            let (draft, selection) = match selection {
                Some(selection) => (selection.draft.take(), Some(&*selection)),
                None => (None, None),
            };
            let similar = self.similar_bytes.map(SimilarIndex::within);
            let notes = Notes::new(similar, selection.map(|selection| &selection.known), draft, self.task.observer);
            let packer = spawn_named(scope, "pack", move || self.pack(&packer_out, notes))?;
            let encoders = Pool::start(scope, "encode", workers, workers, || Ok(RegionEncoder::fast(level)))?;
            let hashers =
                Pool::start(scope, "hash", workers, workers, || Ok(Fingerprinter::best(&keys.fingerprint_key())))?;
            let (steps_in, steps_out) = bounded(STEPS_AHEAD_MAX);
            // Dropping the one end tells every thread that holds the other that assembling has ended.
            let (assembler, assembling) = bounded::<Infallible>(0);
            let while_assembling = assembling.clone();
            let stage = ReadStage {
                chunker: self.task.chunker,
                buffers: &buffers,
                hashers,
                observer: self.task.observer,
                chunks: self.chunks,
                assembling,
            };
            let next = (self.manifest.next_data, self.manifest.next_metadata);
            let healer = Healer::new(level, packer_in.clone());
            let (outlet, selecting) = self.outlet(scope, selection, encoders, packer_in)?;
            let store = ChunkStore::new(keys, known, self.unusable, next, (outlet, healer));

            let list = if let Source::Changes { list, .. } = &source { Some(Arc::clone(list)) } else { None };
            let has_list = list.is_some();
            let has_estimate = self.task.options.estimate && !has_list;
            let assembled = match source {
                Source::Paths(paths) | Source::Changes { paths, .. } => {
                    let (jobs_in, jobs_out) = bounded(workers);
                    for number in 0..workers.max(2) {
                        let (stage, jobs_out) = (stage.clone(), jobs_out.clone());
                        match spawn_named(scope, &format!("read-{number}"), move || stage.run(&jobs_out)) {
                            Err(error) if number == 0 => return Err(error.into()),
                            // Fewer do as well.
                            _ => {}
                        }
                    }
                    drop((stage, jobs_out));
                    let planner = spawn_named(scope, "plan", move || {
                        // A list of changes says what differs from the last whole snapshot.
                        let mut roots = previous::roots(self.manifest);
                        roots.drain(..if list.is_some() { roots.len().saturating_sub(1) } else { 0 });
                        let Self { task, chunks, unusable, .. } = *self;
                        let planner =
                            Planner::new(task.options, task.observer, chunks, roots, unusable, steps_in, jobs_in);
                        match list {
                            Some(list) => self.plan_changes(&paths, &list, planner),
                            None => planner.run(self.scanner(&paths, ScanDetail::Full)?),
                        }
                    })?;
                    if has_estimate {
                        // Without it there is less to see.
                        let _ = spawn_named(scope, "estimate", move || self.estimate(&while_assembling));
                    }
                    let pace = self.pace(!has_list);
                    let assembled = self.assemble(store, steps_out, &buffers, pace);
                    drop(assembler);
                    joined(planner).and_then(|planned| Ok((planned, assembled?)))
                }
                Source::Stream { name, reader } => {
                    let (pieces_in, pieces_out) = bounded(STEPS_AHEAD_MAX);
                    let (above, path, end) = self.stream_entries(&name)?;
                    let _ = steps_in.send(Step::Items(above)).and_then(|()| steps_in.send(Step::Pieces(pieces_out)));
                    drop(steps_in);
                    let reader = spawn_named(scope, "read", move || stage.run_stream(reader, path, end, pieces_in))?;
                    let pace = self.pace(true);
                    let assembled = self.assemble(store, steps_out, &buffers, pace);
                    drop(assembler);
                    // A failed stream looks like an empty one to the stages behind it: its outcome must be known before
                    // any commit.
                    let failed = |source| EngineError::Stream { name: name.display().to_string(), source };
                    let read = joined(reader).map_err(failed);
                    assembled.and_then(|assembled| read.map(|()| (Planned::default(), assembled)))
                }
            };
            // What a later stage met comes first: it makes the stages before it stop.
            let selected = selecting.map(joined);
            let (packed, mut noted) = joined(packer)?;
            if self.task.observer.is_cancelled() {
                return Err(EngineError::Interrupted);
            }
            noted.deltas.skipped = selected.transpose()?.unwrap_or(0);
            let (planned, (entries, snapshot, assembled)) = assembled?;
            Ok(Flow { planned, entries, snapshot, assembled, packed, noted, found: RoaringTreemap::new() })
        })
    }

    /// Where new chunks go: to a selector, which then runs, or into regions as they come.
    fn outlet<'scope, 'env: 'scope>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        selection: Option<&'env Selection<'env>>,
        encoders: Pool<'env, RegionEncoder>,
        packer: Sender<Handed>,
    ) -> Result<(Outlet<'env>, Option<Selecting<'scope>>), EngineError> {
        let Some(selection) = selection else {
            let sketcher = self.similar_bytes.map(|_| sketcher());
            return Ok((Outlet::Regions(Regions::new(encoders, sketcher, packer)), None));
        };
        let workers = cores();
        let gatherer = Gatherer {
            chunks: selection.chunks.clone(),
            order: Order::new(self.manifest),
            pool: Pool::start(scope, "unfold", workers, workers, || Ok(RegionDecoder::new()))?,
            workers,
            waiting_bytes: selection.waiting_bytes,
            spill_folder: selection.spill_folder.clone(),
            tally: Arc::default(),
            observer: self.task.observer,
        };
        let selector = Selector {
            known: &selection.known,
            gatherer,
            encoders,
            sketcher: sketcher(),
            packer,
            threshold: self.task.options.delta_threshold,
            observer: self.task.observer,
            filling: Filling::default(),
        };
        // No queue: one segment is gathered while another is looked at.
        let (segments_in, segments_out) = bounded(0);
        let selecting = spawn_named(scope, "select", move || selector.run(&segments_out))?;
        Ok((Outlet::Segments(Segments::new(selection.segment_bytes, segments_in)), Some(selecting)))
    }

    fn scanner(&self, paths: &[PathBuf], detail: ScanDetail) -> Result<Scanner, EngineError> {
        let options = self.task.options;
        let options =
            ScanOptions { exclude: options.exclude.clone(), one_file_system: options.one_file_system, detail };
        Scanner::new(paths, options)
            .map_err(|source| EngineError::NoSource { path: paths.first().cloned().unwrap_or_default(), source })
    }

    /// Counts what there is, for the observer, until it is done or no longer of use.
    fn estimate(&self, while_assembling: &Receiver<Infallible>) {
        let Ok(scanner) = self.scanner(&paths_of(&self.task.paths), ScanDetail::StatusOnly) else {
            return;
        };
        let (mut files, mut bytes) = (0u64, 0u64);
        for item in scanner {
            if while_assembling.try_recv() == Err(TryRecvError::Disconnected) {
                return;
            }
            if let ScanItem::Entry(found) = item {
                files += 1;
                if let FileKind::File { size, .. } = found.kind {
                    bytes += size;
                }
                if files.is_multiple_of(1024) {
                    self.task.observer.estimate(files, bytes, false);
                }
            }
        }
        self.task.observer.estimate(files, bytes, true);
    }

    fn pack(&self, handed: &Receiver<Handed>, mut notes: Notes<'_>) -> Result<(Packed, Noted), EngineError> {
        let mut packer = Packer::new(self.task.repository.keys(), self.manifest.series, self.sink);
        for next in handed {
            match next {
                Handed::Region(kind, ticket) => {
                    let encoded = ticket.wait()??;
                    packer.push(kind, &encoded.region)?;
                    notes.take(&encoded);
                }
                Handed::Checkpoint(reached) => {
                    let packed = packer.flush()?;
                    if let Some(checkpoints) = self.checkpoints {
                        self.task.commit_checkpoint(checkpoints, self.manifest, &reached, packed, notes.so_far())?;
                    }
                }
            }
        }
        Ok((packer.finish()?, notes.finish()))
    }

    fn assemble(
        &self,
        mut store: ChunkStore<'_, '_>,
        steps: Receiver<Step>,
        buffers: &Buffers,
        mut pace: Pace,
    ) -> Result<(Tally, Snapshot, Assembled), EngineError> {
        let mut entries = Entries::new(&mut store, self.task.observer);
        match self.take_steps(&mut entries, steps, buffers, &mut pace) {
            Err(EngineError::Interrupted) if pace.is_worth_it(entries.new_bytes()) => {
                self.checkpoint(&mut entries, true)?;
                return Err(EngineError::Interrupted);
            }
            other => other?,
        }
        let (tally, root) = entries.finish()?;
        let snapshot = self.task.snapshot(root, tally.statistics)?;
        let is_unwanted = self.task.is_unwanted(root, self.manifest);
        let snapshot = if is_unwanted { snapshot } else { self.recorded(snapshot, &mut store)? };
        Ok((tally, snapshot, store.finish()?))
    }

    /// Takes what the stages before bring, with a checkpoint wherever one is due.
    fn take_steps(
        &self,
        entries: &mut Entries<'_, '_, '_>,
        steps: Receiver<Step>,
        buffers: &Buffers,
        pace: &mut Pace,
    ) -> Result<(), EngineError> {
        for step in steps {
            self.check_cancelled()?;
            match step {
                Step::Items(items) => items.into_iter().try_for_each(|item| entries.item(item))?,
                Step::Pieces(pieces) => {
                    for ticket in pieces {
                        let piece = ticket.wait()?;
                        entries.piece(piece.parts, &piece.bytes)?;
                        buffers.give_back(piece.bytes);
                        self.check_cancelled()?;
                        if pace.is_due(entries.new_bytes()) {
                            self.checkpoint(entries, false)?;
                        }
                    }
                }
            }
        }
        // Readers that were asked to stop end as if they were done.
        self.check_cancelled()
    }

    fn check_cancelled(&self) -> Result<(), EngineError> {
        if self.task.observer.is_cancelled() { Err(EngineError::Interrupted) } else { Ok(()) }
    }

    /// When checkpoints are due, if any are to be made.
    fn pace(&self, is_wanted: bool) -> Pace {
        Pace::new(self.task.options.checkpoint.filter(|_| is_wanted && self.checkpoints.is_some()))
    }

    /// Hands on a checkpoint of what is assembled so far.
    fn checkpoint(&self, entries: &mut Entries<'_, '_, '_>, is_last: bool) -> Result<(), EngineError> {
        entries.checkpoint(is_last, |root, statistics, store| {
            let snapshot = Snapshot { partial: true, ..self.task.snapshot(root, statistics)? };
            self.recorded(snapshot, store)
        })
    }

    /// Puts the snapshot's record behind its catalog.
    fn recorded(&self, snapshot: Snapshot, store: &mut ChunkStore<'_, '_>) -> Result<Snapshot, EngineError> {
        let record = store.store(&SnapshotRecord::encode(self.task.series, &snapshot)?)?;
        Ok(Snapshot { record, ..snapshot })
    }

    /// What a stream is recorded as: a regular file of now, for its owner alone, and the directories that its name puts
    /// above it.
    fn stream_entries(
        &self,
        name: &Path,
    ) -> Result<(Vec<Item>, EntryPath, impl FnOnce(u64) -> FileEnd + Send + use<>), EngineError> {
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
        let (action, name) = (EntryAction::New, path.clone());
        let end =
            move |size| FileEnd { path, metadata, action, size, read_bytes: size, is_complete: true, problem: None };
        Ok((above, name, end))
    }
}

fn paths_of(paths: &[Vec<u8>]) -> Vec<PathBuf> {
    paths.iter().map(|path| PathBuf::from(OsStr::from_bytes(path))).collect()
}

/// The result of a stage; a panic in it goes on here.
fn joined<R>(stage: ScopedJoinHandle<'_, R>) -> R {
    stage.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
