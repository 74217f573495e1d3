//! The local catalog: the metadata chunks of a series' last snapshot, kept on a machine whose key cannot read them from
//! the repository.
//!
//! ```text
//! header    64 bytes   magic "SILTCATL" | version u64 | series [16] | salt [32]
//! pieces    one for each chunk, sealed: a zstd frame of its bytes
//! index     sealed: snapshot [32], then of each chunk: number u64, piece u32, plain bytes u32, offset u64, sealed u64
//! trailer   16 bytes   offset of the index u64 | its sealed bytes u64
//! ```
//! It is sealed under the local cache key, whole pieces under the salt of the file: without a password it tells nothing
//! but its size. The chunks of a number never change, so the file is either of the last snapshot, or of no use. It is
//! written beside its place while a backup runs and renamed once the snapshot stands; one that a crash tears does not
//! open.
//!
//! Cost: a catalog of 25 to 90 bytes an entry, compressed, written anew by each backup; 32 bytes of memory a chunk.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use crate::cache_file::CacheRefused;
use roaring::RoaringTreemap;
use siltstone_similar::region::plain;
use siltstone_store::sealed::{ObjectKey, PieceNumber, Salt, TAG_BYTES};
use siltstone_store::secrets::random_bytes;
use siltstone_store::{ChunkNumber, RepositoryKeys, SeriesId, SnapshotId, StoreError};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::NamedTempFile;

const MAGIC: &[u8; 8] = b"SILTCATL";
const VERSION: u64 = 1;
const FRONT_BYTES: usize = 32;
const HEADER_BYTES: u64 = FRONT_BYTES as u64 + 32;
const SNAPSHOT_BYTES: usize = 32;
const PLACE_BYTES: usize = 32;
const TRAILER_BYTES: u64 = 16;
/// The longest metadata chunk; longer ones are not of this program.
const CHUNK_BYTES_MAX: u32 = 16 << 20;
const LEVEL: i32 = 1;

/// The place of a chunk in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    piece: u32,
    plain_bytes: u32,
    offset: u64,
    sealed_bytes: u64,
}

type Places = BTreeMap<u64, Place>;

fn front(series: SeriesId) -> Vec<u8> {
    [MAGIC.as_slice(), &VERSION.to_le_bytes(), &series.0].concat()
}

/// The metadata chunks of a snapshot, in a file that stays open.
#[derive(Debug)]
pub(crate) struct CatalogFile {
    file: File,
    key: ObjectKey,
    places: Places,
}

impl CatalogFile {
    /// Opens the file at `path`, if it is of this snapshot.
    ///
    /// # Errors
    /// [`CacheRefused`]: there is none that can be used.
    pub(crate) fn open(
        path: &Path,
        keys: &RepositoryKeys,
        series: SeriesId,
        snapshot: SnapshotId,
    ) -> Result<Self, CacheRefused> {
        let file = File::open(path)?;
        let mut found = [0; FRONT_BYTES];
        file.read_exact_at(&mut found, 0)?;
        if found.as_slice() != front(series) {
            return Err(CacheRefused::Unknown);
        }
        let mut salt: Salt = [0; 32];
        file.read_exact_at(&mut salt, FRONT_BYTES as u64)?;
        let key = ObjectKey::of_cache(keys, series, salt).map_err(|_| CacheRefused::Damaged)?;
        let index = read_index(&file, &key)?;
        let (of, places) = index.split_first_chunk::<SNAPSHOT_BYTES>().ok_or(CacheRefused::Damaged)?;
        if *of != snapshot.0 {
            return Err(CacheRefused::OtherSnapshot);
        }
        Ok(Self { file, key, places: unpack(places)? })
    }

    /// Reads a chunk.
    ///
    /// # Errors
    /// [`StoreError::MissingChunk`] if the file has none of this number; damage of the file.
    pub(crate) fn load(&self, number: ChunkNumber) -> Result<Arc<[u8]>, StoreError> {
        let place = self.places.get(&number.0).ok_or(StoreError::MissingChunk { number })?;
        self.read(place).map(Arc::from)
    }

    fn read(&self, place: &Place) -> Result<Vec<u8>, StoreError> {
        let damaged = |reason: String| StoreError::damaged("the local catalog", "chunk", reason);
        let sealed_bytes = usize::try_from(place.sealed_bytes).map_err(|error| damaged(error.to_string()))?;
        let mut sealed = vec![0; sealed_bytes];
        self.file.read_exact_at(&mut sealed, place.offset).map_err(|error| damaged(error.to_string()))?;
        let frame = self.key.open_piece(PieceNumber(place.piece), "chunk", &mut sealed);
        let frame = frame.map_err(|_| damaged("its seal does not hold".to_owned()))?;
        plain::decompress(frame, place.plain_bytes as usize).map_err(|error| damaged(error.to_string()))
    }
}

fn read_index(file: &File, key: &ObjectKey) -> Result<Vec<u8>, CacheRefused> {
    let end = file.metadata()?.len().checked_sub(TRAILER_BYTES).ok_or(CacheRefused::Damaged)?;
    let (mut offset, mut bytes) = ([0; 8], [0; 8]);
    file.read_exact_at(&mut offset, end)?;
    file.read_exact_at(&mut bytes, end + 8)?;
    let (offset, bytes) = (u64::from_le_bytes(offset), u64::from_le_bytes(bytes));
    if offset < HEADER_BYTES || offset.checked_add(bytes) != Some(end) {
        return Err(CacheRefused::Damaged);
    }
    let mut sealed = vec![0; usize::try_from(bytes).map_err(|_| CacheRefused::Damaged)?];
    file.read_exact_at(&mut sealed, offset)?;
    let opened = key.open_piece(PieceNumber::INDEX, "index", &mut sealed).map_err(|_| CacheRefused::Damaged)?.len();
    sealed.truncate(opened);
    Ok(sealed)
}

fn pack(snapshot: SnapshotId, places: &Places) -> Vec<u8> {
    let mut index = snapshot.0.to_vec();
    for (number, Place { piece, plain_bytes, offset, sealed_bytes }) in places {
        index.extend_from_slice(&number.to_le_bytes());
        index.extend([piece, plain_bytes].into_iter().flat_map(|field| field.to_le_bytes()));
        index.extend([offset, sealed_bytes].into_iter().flat_map(|field| field.to_le_bytes()));
    }
    index
}

fn unpack(packed: &[u8]) -> Result<Places, CacheRefused> {
    let (packed, rest) = packed.as_chunks::<PLACE_BYTES>();
    let place = |packed: &[u8; PLACE_BYTES]| {
        let (number, rest) = packed.split_first_chunk::<8>()?;
        let (piece, rest) = rest.split_first_chunk::<4>()?;
        let (plain_bytes, rest) = rest.split_first_chunk::<4>()?;
        let (offset, rest) = rest.split_first_chunk::<8>()?;
        let place = Place {
            piece: u32::from_le_bytes(*piece),
            plain_bytes: u32::from_le_bytes(*plain_bytes),
            offset: u64::from_le_bytes(*offset),
            sealed_bytes: u64::from_le_bytes(*rest.first_chunk()?),
        };
        let is_sound = place.plain_bytes <= CHUNK_BYTES_MAX && place.sealed_bytes <= 2 * u64::from(CHUNK_BYTES_MAX);
        is_sound.then_some((u64::from_le_bytes(*number), place))
    };
    let places: Option<Places> = packed.iter().map(place).collect();
    places.filter(|_| rest.is_empty()).ok_or(CacheRefused::Damaged)
}

/// A file under way, and the one before it.
#[derive(Debug)]
pub(crate) struct CatalogDraft {
    before: Option<Arc<CatalogFile>>,
    key: ObjectKey,
    to: BufWriter<NamedTempFile>,
    path: PathBuf,
    places: Places,
    offset: u64,
    /// The first failure to write.
    failed: Option<io::Error>,
}

impl CatalogDraft {
    /// Begins a file that takes the place of the one at `path` when it is finished.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(crate) fn create(
        path: &Path,
        keys: &RepositoryKeys,
        series: SeriesId,
        before: Option<Arc<CatalogFile>>,
    ) -> io::Result<Self> {
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        let salt: Salt = random_bytes().map_err(io::Error::other)?;
        let key = ObjectKey::of_cache(keys, series, salt).map_err(io::Error::other)?;
        let mut to = BufWriter::new(NamedTempFile::new_in(folder)?);
        to.write_all(&front(series))?;
        to.write_all(&salt)?;
        let (path, places) = (path.to_owned(), Places::new());
        Ok(Self { before, key, to, path, places, offset: HEADER_BYTES, failed: None })
    }

    /// Adds a chunk, unless this file or the one before has it. That it cannot be written shows at the end.
    pub(crate) fn push(&mut self, number: ChunkNumber, bytes: &[u8]) {
        let is_before = self.before.as_ref().is_some_and(|before| before.places.contains_key(&number.0));
        if is_before || self.places.contains_key(&number.0) || self.failed.is_some() {
            return;
        }
        self.failed = self.write(number.0, bytes).err();
    }

    fn write(&mut self, number: u64, bytes: &[u8]) -> io::Result<()> {
        let piece = u32::try_from(self.places.len()).map_err(io::Error::other)?;
        let plain_bytes = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        let mut sealed = plain::compress(bytes, LEVEL).map_err(io::Error::other)?;
        self.key.seal_piece(PieceNumber(piece), &mut sealed, 0).map_err(io::Error::other)?;
        self.to.write_all(&sealed)?;
        let place = Place { piece, plain_bytes, offset: self.offset, sealed_bytes: sealed.len() as u64 };
        self.offset += place.sealed_bytes;
        self.places.insert(number, place);
        Ok(())
    }

    /// Puts the file in its place, with the chunks of `keep` as far as this one and the one before have them.
    ///
    /// # Errors
    /// It cannot be written; the file before stays then.
    pub(crate) fn finish(mut self, snapshot: SnapshotId, keep: &RoaringTreemap) -> io::Result<()> {
        if let Some(before) = self.before.take() {
            for (number, place) in before.places.iter().filter(|(number, _)| keep.contains(**number)) {
                let bytes = before.read(place).map_err(io::Error::other)?;
                self.push(ChunkNumber(*number), &bytes);
            }
        }
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.places.retain(|number, _| keep.contains(*number));
        let mut index = pack(snapshot, &self.places);
        self.key.seal_piece(PieceNumber::INDEX, &mut index, 0).map_err(io::Error::other)?;
        debug_assert!(index.len() >= TAG_BYTES);
        self.to.write_all(&index)?;
        self.to.write_all(&self.offset.to_le_bytes())?;
        self.to.write_all(&(index.len() as u64).to_le_bytes())?;
        let mut file = self.to.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        file.persist(&self.path)?;
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]
mod tests {
    use super::*;
    use siltstone_store::{MasterKey, RepositoryId};
    use tempfile::TempDir;

    const SERIES: SeriesId = SeriesId([3; 16]);

    fn keys(byte: u8) -> RepositoryKeys {
        RepositoryKeys::derive(&MasterKey::from_bytes([byte; 32]), RepositoryId([2; 16]))
    }

    fn bytes_of(number: u64) -> Vec<u8> {
        vec![number as u8; 1000 + number as usize]
    }

    fn snapshot(byte: u8) -> SnapshotId {
        SnapshotId([byte; 32])
    }

    fn write(path: &Path, before: Option<Arc<CatalogFile>>, new: &[u64], keep: &[u64], of: u8) {
        let mut draft = CatalogDraft::create(path, &keys(1), SERIES, before).unwrap();
        for number in new {
            draft.push(ChunkNumber(*number), &bytes_of(*number));
        }
        draft.finish(snapshot(of), &keep.iter().copied().collect()).unwrap();
    }

    fn open(path: &Path, of: u8) -> Result<CatalogFile, CacheRefused> {
        CatalogFile::open(path, &keys(1), SERIES, snapshot(of))
    }

    #[test]
    fn chunks_come_back_and_go_on_into_the_next_file() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("catalog");
        write(&path, None, &[1, 2, 3, 2], &[1, 2], 1);
        let first = open(&path, 1).unwrap();
        assert_eq!(*first.load(ChunkNumber(2)).unwrap(), *bytes_of(2));
        assert!(matches!(first.load(ChunkNumber(3)), Err(StoreError::MissingChunk { .. })), "it was not to be kept");
        write(&path, Some(Arc::new(first)), &[2, 4], &[2, 4], 2);
        let second = open(&path, 2).unwrap();
        assert_eq!(second.places.keys().copied().collect::<Vec<_>>(), [2, 4]);
        for number in [2, 4] {
            assert_eq!(*second.load(ChunkNumber(number)).unwrap(), *bytes_of(number));
        }
    }

    #[test]
    fn another_snapshot_series_or_key_is_refused() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("catalog");
        write(&path, None, &[1], &[1], 1);
        assert!(matches!(open(&path, 2), Err(CacheRefused::OtherSnapshot)));
        let other = CatalogFile::open(&path, &keys(1), SeriesId([4; 16]), snapshot(1));
        assert!(matches!(other, Err(CacheRefused::Unknown)));
        assert!(matches!(CatalogFile::open(&path, &keys(9), SERIES, snapshot(1)), Err(CacheRefused::Damaged)));
        assert!(matches!(open(&folder.path().join("none"), 1), Err(CacheRefused::Unreadable(_))));
    }

    #[test]
    fn every_flipped_byte_and_every_cut_is_found() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("catalog");
        write(&path, None, &[1], &[1], 1);
        let sound = std::fs::read(&path).unwrap();
        let read = || open(&path, 1).ok().and_then(|file| file.load(ChunkNumber(1)).ok());
        assert!(read().is_some());
        for at in 0..sound.len() {
            let mut flipped = sound.clone();
            flipped[at] ^= 1;
            for bytes in [&flipped, &sound[..at]] {
                std::fs::write(&path, bytes).unwrap();
                assert!(read().is_none(), "byte {at}");
            }
        }
    }

    #[test]
    fn nothing_of_a_chunk_stands_in_the_file() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("catalog");
        let mut draft = CatalogDraft::create(&path, &keys(1), SERIES, None).unwrap();
        draft.push(ChunkNumber(1), b"a name that nobody is to read");
        draft.finish(snapshot(1), &RoaringTreemap::from_iter([1])).unwrap();
        let file = std::fs::read(&path).unwrap();
        assert!(!file.windows(6).any(|bytes| bytes == b"nobody"));
    }
}
