//! Manifests that this process has read or committed: at a distance, reading one again takes a round trip. What has a
//! number never changes. Of one whose snapshots alone were asked for, its object is remembered, and its parts are read
//! when the rest is.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::newest::StoredRoot;
use super::{SeriesSummary, StoredManifest};
use crate::SeriesId;
use std::collections::BTreeMap;

/// Bytes of the objects, with parts, of all manifests that are remembered; that of a series of 1 TB has 4 MiB.
const REMEMBERED_BYTES_MAX: u64 = 16 << 20;
/// Bytes of the objects of a manifest that is remembered.
const MANIFEST_BYTES_MAX: u64 = 4 << 20;

/// A manifest that is remembered.
#[derive(Debug)]
enum Known {
    Whole(Box<StoredManifest>),
    /// Its object; what lies in parts is not read.
    Opened(Box<StoredRoot>),
}

impl Known {
    fn bytes(&self) -> u64 {
        match self {
            Self::Whole(stored) => stored.bytes(),
            Self::Opened(opened) => opened.bytes(),
        }
    }

    fn series(&self) -> SeriesId {
        match self {
            Self::Whole(stored) => stored.manifest.series,
            Self::Opened(opened) => opened.series(),
        }
    }

    fn sequence(&self) -> u64 {
        match self {
            Self::Whole(stored) => stored.manifest.sequence,
            Self::Opened(opened) => opened.sequence(),
        }
    }
}

/// The manifests, one of each series.
#[derive(Debug, Default)]
pub(crate) struct RememberedManifests {
    of: BTreeMap<SeriesId, Known>,
    bytes: u64,
}

impl RememberedManifests {
    /// Remembers a manifest if it is small. Where there is no room, the others are forgotten.
    pub(crate) fn keep(&mut self, stored: &StoredManifest) {
        self.forget(stored.manifest.series);
        if stored.bytes() <= MANIFEST_BYTES_MAX {
            self.insert(Known::Whole(Box::new(stored.clone())));
        }
    }

    /// Remembers a manifest's object as [`RememberedManifests::keep`] does a manifest.
    pub(crate) fn keep_opened(&mut self, opened: StoredRoot) {
        self.forget(opened.series());
        if opened.bytes() <= MANIFEST_BYTES_MAX {
            self.insert(Known::Opened(Box::new(opened)));
        }
    }

    fn insert(&mut self, known: Known) {
        if !self.has_room(known.bytes()) {
            *self = Self::default();
        }
        self.bytes += known.bytes();
        self.of.insert(known.series(), known);
    }

    fn forget(&mut self, series: SeriesId) {
        let before = self.of.remove(&series);
        self.bytes -= before.map_or(0, |before| before.bytes());
    }

    /// Tells whether a manifest of so many bytes can be kept beside the others.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        bytes <= MANIFEST_BYTES_MAX && self.bytes + bytes <= REMEMBERED_BYTES_MAX
    }

    /// Forgets all if the room for more is less than the half.
    pub(crate) fn make_room(&mut self) {
        if self.bytes > REMEMBERED_BYTES_MAX / 2 {
            *self = Self::default();
        }
    }

    /// Returns the manifest of this number, if it is the one that is remembered of its series.
    pub(crate) fn get(&self, series: SeriesId, sequence: u64) -> Option<&StoredManifest> {
        match self.known(series, sequence)? {
            Known::Whole(stored) => Some(stored),
            Known::Opened(_) => None,
        }
    }

    /// Returns the object of the manifest of this number, if that is what is remembered.
    pub(crate) fn opened(&self, series: SeriesId, sequence: u64) -> Option<&StoredRoot> {
        match self.known(series, sequence)? {
            Known::Whole(_) => None,
            Known::Opened(opened) => Some(opened),
        }
    }

    /// Returns the summary of the manifest of this number, if it or its object is remembered.
    pub(crate) fn summary(&self, series: SeriesId, sequence: u64) -> Option<SeriesSummary> {
        Some(match self.known(series, sequence)? {
            Known::Whole(stored) => stored.summary(),
            Known::Opened(opened) => opened.summary(),
        })
    }

    /// Tells whether the manifest of this number, or its object, is remembered.
    pub(crate) fn has(&self, series: SeriesId, sequence: u64) -> bool {
        self.known(series, sequence).is_some()
    }

    fn known(&self, series: SeriesId, sequence: u64) -> Option<&Known> {
        self.of.get(&series).filter(|known| known.sequence() == sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Manifest;
    use crate::series::StoredParts;

    fn stored(series: u8, sequence: u64, object_bytes: u64) -> StoredManifest {
        let mut manifest = Manifest::new(SeriesId([series; 16]), "series");
        manifest.sequence = sequence;
        StoredManifest { manifest, object_bytes, hash: [0; 32], from_copy: None, parts: StoredParts::default() }
    }

    fn has(remembered: &RememberedManifests, series: u8, sequence: u64) -> bool {
        remembered.get(SeriesId([series; 16]), sequence).is_some()
    }

    #[test]
    fn the_last_of_each_series_is_remembered_within_the_bound() {
        let mut remembered = RememberedManifests::default();
        for series in 0..4 {
            remembered.keep(&stored(series, 1, MANIFEST_BYTES_MAX));
        }
        remembered.keep(&stored(2, 2, MANIFEST_BYTES_MAX));
        assert!(has(&remembered, 0, 1) && has(&remembered, 2, 2) && !has(&remembered, 2, 1));
        assert!(!remembered.has_room(1));
        remembered.keep(&stored(9, 1, 1));
        assert!(has(&remembered, 9, 1) && !has(&remembered, 0, 1), "no room: the others go");
        remembered.keep(&stored(9, 2, MANIFEST_BYTES_MAX + 1));
        assert!(!has(&remembered, 9, 1) && !has(&remembered, 9, 2), "too large");
        assert_eq!(remembered.bytes, 0);
    }
}
