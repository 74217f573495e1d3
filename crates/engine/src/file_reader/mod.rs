//! Random access to the files of a snapshot, for programs that show them rather than restore them.
//!
//! A [`SnapshotReader`] finds entries; a [`FileReader`] reads one file, anywhere in it and from several threads. Both
//! read by chunk number, so that a writer beside them may move chunks; what was decoded is kept in one bounded
//! [`ReaderCache`].
//! Nothing is returned that was not verified against its fingerprint. To bring back whole trees use
//! [`crate::restore`], which reads by container.

mod cache;
mod extents;
mod group;

use crate::browse::{find, shown};
use crate::chunks::{ChunkSource, Resolved};
use crate::parallel::lock;
use crate::restore::manifest_of;
use crate::snapshots::SnapshotView;
use crate::{EngineError, Resources};
pub use cache::ReaderCache;
use cache::SourceCache;
use extents::{ByteSource, Extents};
use group::Group;
use roaring::RoaringTreemap;
use siltstone_store::catalog::{CatalogReader, Content, Entries, Entry, EntryPath};
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::{ChunkNumber, SeriesId, StoreError};
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex};

/// Container indexes kept open; one takes up to about 0.7 MB.
const READERS_MAX: usize = 48;

/// Bytes of two files that are compared at once.
const COMPARED_BYTES: usize = 256 << 10;

/// The most regions that are decoded for one chunk alone; where more are needed, what follows it comes with it.
const REGIONS_MAX: usize = 24;

/// The most entries behind a file that are looked at for content that comes with it.
const ENTRIES_MAX: usize = 4096;

/// Looks into one snapshot.
#[derive(Clone, Debug)]
pub struct SnapshotReader<'r> {
    source: Arc<Source<'r>>,
    snapshot: Arc<SnapshotView>,
}

/// Content of a series, by chunk number.
#[derive(Debug)]
struct Source<'r> {
    chunks: Arc<ChunkSource<'r>>,
    /// The state of the series when it was opened.
    manifest: Manifest,
    cache: SourceCache,
}

impl<'r> SnapshotReader<'r> {
    /// Returns a reader of `snapshot` with a cache of its own, of an eighth of the memory.
    ///
    /// # Errors
    /// The series cannot be read, or no longer has the snapshot.
    pub fn open(
        repository: &'r Repository,
        snapshot: &SnapshotView,
        resources: &Resources,
    ) -> Result<Self, EngineError> {
        Self::sharing(repository, snapshot, &ReaderCache::of(resources))
    }

    /// Returns a reader of `snapshot` that shares a cache with others.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn sharing(
        repository: &'r Repository,
        snapshot: &SnapshotView,
        cache: &ReaderCache,
    ) -> Result<Self, EngineError> {
        repository.require_reading("reading files of a snapshot")?;
        let manifest = manifest_of(repository, snapshot)?;
        let chunks = Arc::new(ChunkSource::sharing(repository, &manifest, READERS_MAX, cache.regions()));
        let source = Arc::new(Source { chunks, manifest, cache: cache.for_source() });
        Ok(Self { source, snapshot: Arc::new(snapshot.clone()) })
    }

    /// Returns a reader of another snapshot of the same series, which shares all that is kept; `None` if it is of
    /// another series. It goes by the state of the series that this reader goes by: of later snapshots it finds nothing.
    #[must_use]
    pub fn beside(&self, snapshot: &SnapshotView) -> Option<Self> {
        let is_same_series = snapshot.series == self.snapshot.series;
        is_same_series.then(|| Self { source: self.source.clone(), snapshot: Arc::new(snapshot.clone()) })
    }

    /// The snapshot.
    pub fn snapshot(&self) -> &SnapshotView {
        &self.snapshot
    }

    /// Returns the entry at `path`.
    ///
    /// # Errors
    /// [`EngineError::NoSuchPath`], or damage of the catalog.
    pub fn entry(&self, path: &EntryPath) -> Result<Entry, EngineError> {
        find(&self.catalog(), &self.snapshot, path)
    }

    /// Returns the entries right below a directory, or those at the top, in the order of their names.
    pub fn children(&self, directory: Option<&EntryPath>) -> impl Iterator<Item = Result<Entry, EngineError>> {
        self.catalog().children(directory).map(|entry| entry.map_err(EngineError::from))
    }

    /// Returns those of the [`children`](Self::children) that follow the one at `path`.
    pub fn children_past(
        &self,
        directory: Option<&EntryPath>,
        path: &EntryPath,
    ) -> impl Iterator<Item = Result<Entry, EngineError>> {
        let mut children = self.catalog().children(directory);
        children.skip_past(path);
        children.map(|entry| entry.map_err(EngineError::from))
    }

    /// Returns the entries behind this path, each directory before what lies in it, as their catalog has them in order.
    pub fn entries_past(&self, path: &EntryPath) -> impl Iterator<Item = Result<Entry, EngineError>> {
        let mut entries = self.catalog().entries();
        entries.skip_to(path);
        let path = path.clone();
        let behind = entries.skip_while(move |entry| entry.as_ref().is_ok_and(|entry| entry.path <= path));
        behind.map(|entry| entry.map_err(EngineError::from))
    }

    /// Returns a reader of the regular file at `path`.
    ///
    /// # Errors
    /// [`EngineError::NoSuchPath`], [`EngineError::NotAFile`], or damage of the catalog.
    pub fn file(&self, path: &EntryPath) -> Result<FileReader<'r>, EngineError> {
        self.open_file(&self.entry(path)?)
    }

    /// Returns a reader of an entry of this snapshot, which must be a regular file.
    ///
    /// # Errors
    /// [`EngineError::NotAFile`].
    pub fn open_file(&self, entry: &Entry) -> Result<FileReader<'r>, EngineError> {
        let Content::File { size, recipe } = &entry.content else {
            let (snapshot, path) = (self.snapshot.snapshot.id.short(), shown(&entry.path));
            return Err(EngineError::NotAFile { snapshot, path });
        };
        let extents = Mutex::new(Extents::new(&entry.path, *size, recipe.clone()));
        Ok(FileReader { snapshot: self.clone(), path: entry.path.clone(), size: *size, extents, position: 0 })
    }

    /// The series that the snapshot is of.
    pub(crate) fn series(&self) -> SeriesId {
        self.snapshot.series
    }

    /// All entries in order, or those at and below a path.
    pub(crate) fn entries(&self, below: Option<&EntryPath>) -> CatalogEntries<'_, 'r> {
        CatalogEntries(below.map_or_else(|| self.catalog().entries(), |path| self.catalog().under(path)))
    }

    /// The entries in these nodes of the catalog.
    pub(crate) fn entries_in(&self, nodes: RoaringTreemap) -> CatalogEntries<'_, 'r> {
        CatalogEntries(self.catalog().entries_in(nodes))
    }

    fn catalog(&self) -> CatalogReader<&ChunkSource<'r>> {
        CatalogReader::new(&*self.source.chunks, self.snapshot.snapshot.root)
    }
}

/// Entries of a snapshot, in order.
pub(crate) struct CatalogEntries<'s, 'r>(Entries<&'s ChunkSource<'r>>);

impl Iterator for CatalogEntries<'_, '_> {
    type Item = Result<Entry, EngineError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|entry| entry.map_err(EngineError::from))
    }
}

/// Reads one file of a snapshot.
///
/// [`read_at`](Self::read_at) takes `&self`: threads may share a reader. As [`Read`] and [`Seek`] it has a position of
/// its own.
#[derive(Debug)]
pub struct FileReader<'r> {
    snapshot: SnapshotReader<'r>,
    path: EntryPath,
    size: u64,
    extents: Mutex<Extents>,
    position: u64,
}

impl FileReader<'_> {
    /// Length of the file in bytes, holes included.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Fills `buffer` with the bytes from `offset` on, holes as zeros; returns how many there were, which is less than
    /// asked for only at the end of the file and before what cannot be read.
    ///
    /// # Errors
    /// The first byte asked for cannot be read. The error's source is a [`StoreError`] that names the object.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read_extent(offset.saturating_add(filled as u64), &mut buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                // What was read counts; whoever goes on meets the error.
                Err(_) if filled > 0 => break,
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(filled)
    }

    /// Decodes what lies between `offset` and `end`, as far as the cache has room, so that reading it soon after does
    /// not wait. Reading tells what is wrong with it.
    pub fn prepare(&self, mut offset: u64, end: u64) {
        while offset < end.min(self.size) {
            let found = lock(&self.extents).at(&self.source().chunks, offset);
            let Ok(Some((extent, ends))) = found else { return };
            if let ByteSource::Chunk { number, .. } = extent
                && self.prepare_chunk(number, offset).is_err()
            {
                return;
            }
            offset = ends;
        }
    }

    /// Tells whether another file has the same bytes. Both are read until they differ.
    ///
    /// # Errors
    /// Damage of either.
    pub(crate) fn has_bytes_of(&self, other: &FileReader<'_>) -> Result<bool, StoreError> {
        let mut buffers = [vec![0; COMPARED_BYTES], vec![0; COMPARED_BYTES]];
        let mut offset = 0;
        while self.size == other.size && offset < self.size {
            let [here, there] = &mut buffers;
            let count = self.fill(offset, here)?;
            if count == 0 || other.fill(offset, there)? != count || here.get(..count) != there.get(..count) {
                return Ok(false);
            }
            offset += count as u64;
        }
        Ok(self.size == other.size)
    }

    /// Fills a buffer, up to the end of the file.
    pub(crate) fn fill(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, StoreError> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.read_extent(offset.saturating_add(filled as u64), rest)? {
                0 => break,
                count => filled += count,
            }
        }
        Ok(filled)
    }

    /// Reads from one chunk or hole.
    fn read_extent(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, StoreError> {
        let Some((extent, ends)) = lock(&self.extents).at(&self.source().chunks, offset)? else {
            return Ok(0);
        };
        let count = usize::try_from(ends - offset).unwrap_or(usize::MAX).min(buffer.len());
        let buffer = &mut buffer[..count];
        match extent {
            ByteSource::Hole => buffer.fill(0),
            ByteSource::Chunk { number, skip } => {
                let differs = || StoreError::damaged(&format!("chunk {number}"), "length", "it differs from the index");
                self.with_chunk(number, offset, |chunk| {
                    let part = chunk.get(skip..skip + count).ok_or_else(differs)?;
                    buffer.copy_from_slice(part);
                    Ok::<_, StoreError>(())
                })??;
            }
        }
        Ok(count)
    }

    /// Gives the bytes of the chunk at `offset` to `use_bytes`, verified.
    fn with_chunk<R>(
        &self,
        number: ChunkNumber,
        offset: u64,
        mut use_bytes: impl FnMut(&[u8]) -> R,
    ) -> Result<R, StoreError> {
        let Source { chunks, cache, .. } = self.source();
        if let Some(result) = cache.with(number, &mut use_bytes) {
            return Ok(result);
        }
        if !cache.is_refused(number) {
            match chunks.with_chunk_within(number, REGIONS_MAX, &mut use_bytes)? {
                Resolved::Had(result) => return Ok(result),
                Resolved::TooMany(regions) => self.gather(number, offset, regions)?,
            }
            if let Some(result) = cache.with(number, &mut use_bytes) {
                return Ok(result);
            }
        }
        chunks.with_chunk(number, use_bytes)
    }

    /// Decodes the chunk at `offset`; reading verifies it.
    fn prepare_chunk(&self, number: ChunkNumber, offset: u64) -> Result<(), StoreError> {
        let Source { chunks, cache, .. } = self.source();
        if cache.has(number) {
            return Ok(());
        }
        let regions_max = if cache.is_refused(number) { usize::MAX } else { REGIONS_MAX };
        match chunks.decode_within(number, regions_max)? {
            Resolved::Had(()) => Ok(()),
            Resolved::TooMany(regions) => self.gather(number, offset, regions),
        }
    }

    /// Decodes the chunk at `offset` together with what follows it in the file, and in the next ones of the snapshot:
    /// content of about so many regions.
    fn gather(&self, number: ChunkNumber, offset: u64, regions: usize) -> Result<(), StoreError> {
        let source = self.source();
        let _mine = source.cache.turn();
        if source.cache.has(number) {
            return Ok(());
        }
        let mut group = Group::new(source, regions);
        group.add(&mut lock(&self.extents), offset);
        let mut entries = self.snapshot.entries_past(&self.path).take(ENTRIES_MAX);
        while !group.is_full()
            && let Some(Ok(entry)) = entries.next()
        {
            if let Content::File { size, recipe } = &entry.content {
                group.add(&mut Extents::new(&entry.path, *size, recipe.clone()), 0);
            }
        }
        group.decode()
    }

    fn source(&self) -> &Source<'_> {
        &self.snapshot.source
    }
}

impl Read for FileReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.read_at(self.position, buffer)?;
        self.position += count as u64;
        Ok(count)
    }
}

impl Seek for FileReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (from, by) = match to {
            SeekFrom::Start(offset) => (offset, 0),
            SeekFrom::Current(by) => (self.position, by),
            SeekFrom::End(by) => (self.size, by),
        };
        let before = || io::Error::new(io::ErrorKind::InvalidInput, "the place is before the file's begin or too far");
        self.position = from.checked_add_signed(by).ok_or_else(before)?;
        Ok(self.position)
    }
}
