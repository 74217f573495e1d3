//! The cache file of sketches: what the chunks of a series' last snapshot look like, kept on this machine from one
//! backup to the next.
//!
//! ```text
//! header    80 bytes   magic "SILTLIKE" | version u64 | series [16] | snapshot [32] | next data chunk u64 | next metadata chunk u64
//! records   60 each    chunk number u64 | depth u32 | features [12] u32; in any order
//! trailer   40 bytes   as of all cache files
//! ```
//!
//! The frame is that of [`crate::cache_file`]. *Depth* is the longest chain of deltas that a chunk hangs on, at most:
//! it may have become shorter since. It becomes longer only when another snapshot followed and what this one left
//! behind was settled; the next numbers then differ.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use crate::cache_file::{CacheRefused, CacheWriter, RecordFile};
use siltstone_similar::sketch::{Shape, Sketch};
use siltstone_store::{ChunkNumber, SeriesId, SnapshotId};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

const MAGIC: &[u8; 8] = b"SILTLIKE";
const VERSION: u64 = 1;
const RECORD_BYTES: usize = 60;

/// The state of a series that a file describes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SketchesIdentity {
    pub(super) series: SeriesId,
    /// Its last snapshot.
    pub(super) snapshot: SnapshotId,
    /// The numbers that the next new chunks get, data and metadata.
    pub(super) next: (ChunkNumber, ChunkNumber),
}

impl SketchesIdentity {
    fn header(&self) -> Vec<u8> {
        let numbers = [self.next.0.0.to_le_bytes(), self.next.1.0.to_le_bytes()];
        [MAGIC.as_slice(), &VERSION.to_le_bytes(), &self.series.0, &self.snapshot.0, numbers.as_flattened()].concat()
    }
}

/// Sketch of a chunk, as the file has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SketchRecord {
    pub(super) number: ChunkNumber,
    /// The longest chain of deltas it hangs on, at most.
    pub(super) depth: u32,
    pub(super) sketch: Sketch,
}

impl SketchRecord {
    fn pack(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.number.0.to_le_bytes());
        to.extend_from_slice(&self.depth.to_le_bytes());
        self.sketch.features().iter().for_each(|feature| to.extend_from_slice(&feature.to_le_bytes()));
    }

    fn unpack(packed: &[u8; RECORD_BYTES]) -> Option<Self> {
        let (number, rest) = packed.split_first_chunk()?;
        let (depth, rest) = rest.split_first_chunk()?;
        let (features, _) = rest.as_chunks();
        let features: Vec<u32> = features.iter().map(|feature| u32::from_le_bytes(*feature)).collect();
        Some(Self {
            number: ChunkNumber(u64::from_le_bytes(*number)),
            depth: u32::from_le_bytes(*depth),
            sketch: Sketch::from_features(&features, Shape::DEFAULT),
        })
    }
}

/// Records that lie in a file, which stays open.
#[derive(Debug)]
pub(super) struct SketchRecords(RecordFile<RECORD_BYTES>);

impl SketchRecords {
    /// Opens the file at `path` and shows every record in it. Whether the file can be trusted is known only afterwards.
    ///
    /// # Errors
    /// [`CacheRefused`]: it is not to be used, nor anything of what was shown.
    pub(super) fn open(
        path: &Path,
        identity: &SketchesIdentity,
        key: &[u8; 32],
        mut each: impl FnMut(SketchRecord),
    ) -> Result<Self, CacheRefused> {
        let header = identity.header();
        let file = RecordFile::open(path, &header)?;
        file.verify(&header, key, |block| {
            block.iter().filter_map(SketchRecord::unpack).for_each(&mut each);
            Ok(())
        })?;
        Ok(Self(file))
    }
}

/// Records on their way into a nameless file.
#[derive(Debug)]
pub(super) struct SketchDraft {
    to: BufWriter<File>,
    packed: Vec<u8>,
    count: u64,
}

impl SketchDraft {
    /// An empty one in this folder.
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        let file = tempfile::tempfile_in(folder)?;
        Ok(Self { to: BufWriter::with_capacity(1 << 16, file), packed: Vec::new(), count: 0 })
    }

    pub(super) fn push(&mut self, record: &SketchRecord) -> io::Result<()> {
        self.packed.clear();
        record.pack(&mut self.packed);
        self.count += 1;
        self.to.write_all(&self.packed)
    }

    /// Gives the records that were pushed.
    pub(super) fn finish(self) -> io::Result<SketchRecords> {
        let file = self.to.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(SketchRecords(RecordFile::bare(file, self.count)))
    }
}

/// Writes those of the records that `keep` asks for, part after part, as a file in place of the one at `path`.
pub(super) fn save(
    path: &Path,
    identity: &SketchesIdentity,
    key: &[u8; 32],
    parts: &[&SketchRecords],
    keep: impl Fn(ChunkNumber) -> bool,
) -> io::Result<()> {
    let mut writer = CacheWriter::create(path, &identity.header(), key)?;
    for SketchRecords(part) in parts {
        part.blocks(|block| {
            let is_kept =
                |packed: &&[u8; RECORD_BYTES]| SketchRecord::unpack(packed).is_some_and(|found| keep(found.number));
            block.iter().filter(is_kept).try_for_each(|packed| writer.push(packed))
        })?;
    }
    writer.finish().map(drop)
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    const KEY: [u8; 32] = [9; 32];

    fn identity() -> SketchesIdentity {
        let next = (ChunkNumber(70), ChunkNumber::METADATA_FIRST);
        SketchesIdentity { series: SeriesId([1; 16]), snapshot: SnapshotId([2; 32]), next }
    }

    fn record(number: u64) -> SketchRecord {
        let feature = u32::try_from(number).expect("small");
        let sketch = Sketch::from_features(&[feature, 7, feature + 1], Shape::DEFAULT);
        SketchRecord { number: ChunkNumber(number), depth: feature % 9, sketch }
    }

    fn drafted(folder: &TempDir, numbers: impl Iterator<Item = u64>) -> SketchRecords {
        let mut draft = SketchDraft::new(folder.path()).expect("a file");
        numbers.for_each(|number| draft.push(&record(number)).expect("written"));
        draft.finish().expect("a file")
    }

    #[test]
    fn what_is_kept_of_several_parts_comes_back_in_their_order() {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("likes");
        let parts = [drafted(&folder, 10_000..20_000), drafted(&folder, 0..5000)];
        let keep = |number: ChunkNumber| number.0.is_multiple_of(3);
        save(&path, &identity(), &KEY, &[&parts[0], &parts[1]], keep).expect("saved");
        let mut found = Vec::new();
        let records = SketchRecords::open(&path, &identity(), &KEY, |record| found.push(record)).expect("genuine");
        let wanted: Vec<_> =
            (10_000..20_000).chain(0..5000).filter(|number| u64::is_multiple_of(*number, 3)).map(record).collect();
        assert_eq!((found, records.0.count()), (wanted.clone(), wanted.len() as u64));
        save(&path, &identity(), &KEY, &[&records], |_| true).expect("saved over the one that is being read");
        let mut count = 0;
        SketchRecords::open(&path, &identity(), &KEY, |_| count += 1).expect("genuine");
        assert_eq!(count, wanted.len());
    }

    #[test]
    fn a_file_of_another_state_or_another_key_is_refused() {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("likes");
        let part = drafted(&folder, 0..5);
        save(&path, &identity(), &KEY, &[&part], |_| true).expect("saved");
        let other = SketchesIdentity { next: (ChunkNumber(71), ChunkNumber::METADATA_FIRST), ..identity() };
        let refused = |identity, key| SketchRecords::open(&path, identity, key, |_| ()).expect_err("refused");
        assert!(matches!(refused(&other, &KEY), CacheRefused::OtherSnapshot));
        let other = SketchesIdentity { snapshot: SnapshotId([3; 32]), ..identity() };
        assert!(matches!(refused(&other, &KEY), CacheRefused::OtherSnapshot));
        assert!(matches!(refused(&identity(), &[8; 32]), CacheRefused::Damaged));
    }
}
