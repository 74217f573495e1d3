//! `dump`: the content of a file, or an archive of a folder, as one stream.
//!
//! The catalog is walked in order and cut into portions of about one region of content (`prefetch`), which are worked
//! on in groups (`group`): workers decode and verify ahead what comes next while what came before is written. Of an old
//! snapshot, whose regions hang on many others, all of a group is decoded together, each region once. What is damaged
//! ends the dump: a stream that promised a size cannot leave anything out.

mod group;
mod kept;
mod prefetch;
mod tar;
mod zip;

use crate::chunks::{ChunkSource, RegionCache};
use crate::decode::Gatherer;
use crate::fs::Extent;
use crate::parallel::Pool;
use crate::resources::shares::DumpShares;
use crate::restore::manifest_of;
use crate::snapshots::SnapshotView;
use crate::{EngineError, Resources};
use group::{PortionGroup, TASK_BYTES_MIN, Task};
use prefetch::{AtHand, Portions, ReadContent, Step};
use siltstone_store::catalog::{CatalogReader, Content, Entry, EntryPath};
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use std::cell::Cell;
use std::collections::HashMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

/// Container indexes kept open.
const READERS_MAX: usize = 48;
/// Zeros written at once for a hole.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// The form of the archive of a folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Archive {
    /// tar with PAX records: everything a snapshot knows.
    #[default]
    Tar,
    /// zip: names, content, permissions and times in seconds.
    Zip,
}

/// Writes the content of a file; of a directory (or, without a path, of everything), an archive of it and all below it.
///
/// # Errors
/// [`EngineError::NoSuchPath`], [`EngineError::NotDumpable`], damage, or [`EngineError::Target`] if the output fails.
/// What was written before stands.
pub fn dump(
    repository: &Repository,
    snapshot: &SnapshotView,
    path: Option<&EntryPath>,
    archive: Archive,
    output: &mut dyn Write,
    resources: &Resources,
) -> Result<(), EngineError> {
    write_out(repository, snapshot, (path, true), archive, output, resources)
}

/// Writes an archive of an entry and all below it, or, without a path, of everything; but of a file, if `is_plain`, its
/// content.
///
/// # Errors
/// Those of [`dump()`]; [`EngineError::NotDumpable`] only if `is_plain`.
pub(crate) fn write_out(
    repository: &Repository,
    snapshot: &SnapshotView,
    (path, is_plain): (Option<&EntryPath>, bool),
    archive: Archive,
    output: &mut dyn Write,
    resources: &Resources,
) -> Result<(), EngineError> {
    repository.require_reading("writing files of a snapshot")?;
    let manifest = manifest_of(repository, snapshot)?;
    let observer = &*resources.observer;
    let shares = resources.dump_shares();
    let regions = RegionCache::new(shares.region_bytes);
    let chunks = Arc::new(ChunkSource::sharing(repository, &manifest, READERS_MAX, &regions));
    let catalog = CatalogReader::new(&*chunks, snapshot.snapshot.root);
    let entry = path.map(|path| crate::browse::find(&catalog, snapshot, path)).transpose()?;
    let work = Work { chunks: &chunks, regions: &regions, manifest: &manifest, shares, resources };
    match entry {
        Some(entry) if is_plain && matches!(entry.content, Content::File { .. }) => {
            work.run(Portions::of(&chunks, std::iter::once(Ok(entry))), &mut Plain { output })
        }
        Some(entry) if is_plain && !entry.is_directory() => {
            let path = crate::browse::shown(&entry.path);
            Err(EngineError::NotDumpable { snapshot: snapshot.snapshot.id.short(), path })
        }
        _ => {
            let entries = path.map_or_else(|| catalog.entries(), |path| catalog.under(path));
            let portions = Portions::of(&chunks, entries);
            match archive {
                Archive::Tar => work.run(portions.with_links_and_extents(), &mut tar::Tar::new(output, observer)),
                Archive::Zip => work.run(portions, &mut zip::Zip::new(output, observer)),
            }
        }
    }
}

/// Where entries and their content go, one after the other.
trait Sink {
    /// An entry whose content follows: of one with holes, if they can be told, what is none.
    fn begin(&mut self, entry: &Entry, data: Option<&[Extent]>) -> io::Result<()>;
    /// A further name of an entry that came before.
    fn link(&mut self, entry: &Entry, first: &EntryPath) -> io::Result<()>;
    /// Content of the entry begun.
    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// A hole in it.
    fn hole(&mut self, bytes: u64) -> io::Result<()>;
    /// The entry is complete.
    fn end(&mut self) -> io::Result<()>;
    /// Nothing comes after.
    fn finish(&mut self) -> io::Result<()>;
}

/// A dump under way.
struct Work<'w, 'r> {
    chunks: &'w Arc<ChunkSource<'r>>,
    /// Regions that `chunks` keeps decoded.
    regions: &'w RegionCache,
    manifest: &'r Manifest,
    shares: DumpShares,
    resources: &'r Resources,
}

impl<'w, 'r> Work<'w, 'r> {
    fn run(
        &self,
        mut portions: Portions<'w, 'r, impl Iterator<Item = Result<Entry, siltstone_store::StoreError>>>,
        sink: &mut dyn Sink,
    ) -> Result<(), EngineError> {
        let (chunks, fetches): (&ChunkSource<'_>, _) = (self.chunks, self.resources.fetches);
        let DumpShares { region_bytes, region_bytes_of_deltas, kept_bytes, bytes_ahead, .. } = self.shares;
        let DumpShares { group_bytes, held_bytes, waiting_bytes, .. } = self.shares;
        let folder = self.resources.scratch_of(chunks.repository());
        std::thread::scope(|scope| {
            let (source, manifest, resources) = (self.chunks.clone(), self.manifest, self.resources);
            let gatherer = Gatherer::start(scope, fetches, source, manifest, waiting_bytes, folder, resources)?;
            let pool = Pool::start(scope, "dump", fetches, bytes_ahead / TASK_BYTES_MIN, || Ok(()))?;
            while let Some(group) = PortionGroup::next(&mut portions, group_bytes) {
                self.resources.unless_cancelled()?;
                let has_deltas = group.has_deltas(chunks);
                self.regions.hold_at_most(if has_deltas { region_bytes_of_deltas } else { region_bytes });
                let gathered =
                    if has_deltas { gatherer.spilled(&group.numbers(), held_bytes)?.0 } else { HashMap::new() };
                self.resources.unless_cancelled()?;
                // What could not be gathered is read again, to tell why.
                let at_hand = Arc::new(AtHand { gathered, ..AtHand::default() });
                let tasks = if has_deltas {
                    group.into_reads()
                } else {
                    group.into_tasks(bytes_ahead, region_bytes / 2, kept_bytes, chunks)
                };
                let run = move |(): &mut (), task: Task| task.run(chunks, &at_hand);
                for steps in pool.in_order_by_weight(tasks, bytes_ahead, Task::weight, run) {
                    self.write(steps?, sink)?;
                }
            }
            sink.finish().map_err(output_failed)
        })
    }

    fn write(&self, steps: Vec<Step<ReadContent>>, sink: &mut dyn Sink) -> Result<(), EngineError> {
        for step in steps {
            self.resources.unless_cancelled()?;
            let written = match step {
                Step::Begin(entry, data) => sink.begin(&entry, data.as_deref()),
                Step::Link(entry, first) => sink.link(&entry, &first),
                Step::Content(read) => {
                    self.resources.observer.advance(0, read.bytes().len() as u64);
                    let written = sink.bytes(read.bytes());
                    if let ReadContent::InRegion(plain, _) = read {
                        self.regions.recycle(plain);
                    }
                    written
                }
                Step::Hole(bytes) => sink.hole(bytes),
                Step::End => sink.end(),
                Step::Failed(error) => return Err(error.into()),
            };
            written.map_err(output_failed)?;
        }
        Ok(())
    }
}

fn output_failed(source: io::Error) -> EngineError {
    EngineError::Target { path: PathBuf::from("the output"), source }
}

/// Writes zeros.
fn write_zeros(output: &mut dyn Write, mut bytes: u64) -> io::Result<()> {
    while bytes > 0 {
        let count = usize::try_from(bytes).unwrap_or(usize::MAX).min(ZEROS.len());
        output.write_all(&ZEROS[..count])?;
        bytes -= count as u64;
    }
    Ok(())
}

/// The output of an archive until it is shut. The writers of archives complete what they have when they are dropped; a
/// dump that was cut short must not look whole.
struct Gate<'o> {
    output: &'o mut dyn Write,
    is_shut: Rc<Cell<bool>>,
}

impl Write for Gate<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_shut.get() { Ok(bytes.len()) } else { self.output.write(bytes) }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.is_shut.get() { Ok(()) } else { self.output.flush() }
    }
}

/// The content of one file and nothing else.
struct Plain<'o> {
    output: &'o mut dyn Write,
}

impl Sink for Plain<'_> {
    fn begin(&mut self, _: &Entry, _: Option<&[Extent]>) -> io::Result<()> {
        Ok(())
    }

    fn link(&mut self, _: &Entry, _: &EntryPath) -> io::Result<()> {
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.output.write_all(bytes)
    }

    fn hole(&mut self, bytes: u64) -> io::Result<()> {
        write_zeros(self.output, bytes)
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}
