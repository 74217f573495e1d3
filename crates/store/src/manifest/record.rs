//! Snapshot records: what a manifest says of a snapshot, once more among the snapshot's own metadata chunks. A series
//! whose manifests are all lost is rebuilt from its containers, and these say what the catalogs found there are.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::Snapshot;
use crate::encoding;
use crate::error::StoreError;
use crate::ids::ChunkNumber;
use serde::{Deserialize, Serialize};

/// The first byte of the metadata chunk.
const TAG_SNAPSHOT: u8 = 5;
/// The largest record in bytes; the sources' paths are left out of one that would be larger.
pub const RECORD_BYTES_MAX: usize = 4 << 20;

/// A snapshot and the name of its series.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SnapshotRecord {
    /// The name of its series.
    pub series_name: String,
    /// The snapshot as it was known when its catalog was finished, live; the number of the record itself is 0.
    pub snapshot: Snapshot,
}

impl SnapshotRecord {
    /// The bytes of the metadata chunk.
    ///
    /// # Errors
    /// [`StoreError::Limit`] if it is too large even without paths.
    pub fn encode(series_name: &str, snapshot: &Snapshot) -> Result<Vec<u8>, StoreError> {
        let snapshot = Snapshot { record: ChunkNumber(0), deleted: None, ..snapshot.clone() };
        let mut record = Self { series_name: series_name.to_owned(), snapshot };
        let bytes = encoding::append(&record, vec![TAG_SNAPSHOT])?;
        if bytes.len() <= RECORD_BYTES_MAX {
            return Ok(bytes);
        }
        record.snapshot.paths.clear();
        let bytes = encoding::append(&record, vec![TAG_SNAPSHOT])?;
        let limit = RECORD_BYTES_MAX as u64;
        let too_large = || StoreError::limit(&"a snapshot's record", "its size", bytes.len() as u64, limit);
        if bytes.len() <= RECORD_BYTES_MAX { Ok(bytes) } else { Err(too_large()) }
    }

    /// Tells whether a metadata chunk is a snapshot record, by its first byte.
    pub fn is_record(bytes: &[u8]) -> bool {
        bytes.first() == Some(&TAG_SNAPSHOT)
    }

    /// Reads the metadata chunk of this number.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if it is no snapshot record.
    pub fn decode(number: ChunkNumber, bytes: &[u8]) -> Result<Self, StoreError> {
        let object = format!("chunk {number}");
        let Some((&TAG_SNAPSHOT, rest)) = bytes.split_first().filter(|_| bytes.len() <= RECORD_BYTES_MAX) else {
            return Err(StoreError::damaged(&object, "snapshot record", "it is something else"));
        };
        let mut record: Self = encoding::decode(&object, "snapshot record", rest)?;
        if record.snapshot.deleted.is_some() {
            return Err(StoreError::damaged(&object, "snapshot record", "it is of a deleted snapshot"));
        }
        record.snapshot.record = number;
        Ok(record)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::super::SnapshotStatistics;
    use super::*;
    use crate::ids::{SnapshotId, Time};

    fn snapshot(paths: Vec<Vec<u8>>) -> Snapshot {
        Snapshot {
            id: SnapshotId([7; 32]),
            time: Time { seconds: 1_700_000_000, nanoseconds: 5 },
            made: Time { seconds: 1_700_000_001, nanoseconds: 6 },
            host: "kasimir".into(),
            user: "ann".into(),
            paths,
            tags: vec!["weekly".into()],
            description: Some("before the move".into()),
            program: "silt".into(),
            root: ChunkNumber::METADATA_FIRST,
            record: ChunkNumber(ChunkNumber::METADATA_FIRST.0 + 1),
            statistics: SnapshotStatistics { files: 3, ..SnapshotStatistics::default() },
            partial: true,
            deleted: None,
        }
    }

    #[test]
    fn a_record_gives_the_snapshot_and_its_number_back() {
        let snapshot = snapshot(vec![b"/home".to_vec()]);
        let bytes = SnapshotRecord::encode("work", &snapshot).unwrap();
        assert!(SnapshotRecord::is_record(&bytes));
        let expected = SnapshotRecord { series_name: "work".into(), snapshot: snapshot.clone() };
        assert_eq!(SnapshotRecord::decode(snapshot.record, &bytes).unwrap(), expected);
    }

    #[test]
    fn a_record_cut_short_or_made_longer_is_damage() {
        let bytes = SnapshotRecord::encode("work", &snapshot(vec![b"/home".to_vec()])).unwrap();
        let is_damage = |bytes: &[u8]| SnapshotRecord::decode(ChunkNumber(0), bytes).unwrap_err().is_damage();
        assert!((0..bytes.len()).all(|end| is_damage(&bytes[..end])));
        assert!(is_damage(&[&bytes[..], b"x"].concat()));
        assert!(is_damage(&[b"\x01", &bytes[1..]].concat()));
    }

    #[test]
    fn paths_that_make_a_record_too_large_are_left_out() {
        let many = snapshot(vec![vec![b'p'; 4096]; 1100]);
        let bytes = SnapshotRecord::encode("work", &many).unwrap();
        let read = SnapshotRecord::decode(many.record, &bytes).unwrap();
        assert_eq!(read.snapshot, Snapshot { paths: Vec::new(), ..many });
    }
}
