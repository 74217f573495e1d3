//! Bases that a sketch finds in versions, the papers' way (Finesse, section 5; Odess, section 4.3.1): every chunk is
//! held against the chunks stored whole before it; one that finds a base is stored as a delta, whatever it costs, and
//! is nobody's base.
//!
//! ```text
//! GCR   bytes of all versions / bytes stored: deduplication and deltas together
//! DCR   bytes of unique chunks / bytes stored, a detected chunk as its delta, the others as they are
//! DCE   mean over detected chunks of 1 - delta / chunk
//! SCR   detected chunks / chunks that resemble nothing
//! SER   chunks without a sketch / chunks
//! ```
//!
//! Deltas are copies and insertions only, as there: no compression inside a chunk blurs what detection is worth.

use super::contender::Contender;
use super::ground::Ground;
use crate::table::as_float;
use siltstone_similar::index::{Fit, Index};
use siltstone_similar::sketch::{Grouping, Shape, Sketch};

/// Choice of a base among those that resemble a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Choice {
    /// Any that shares the first super-feature that anything shares, the newest of these (`FirstFit`).
    First,
    /// The one that shares most features, at least as many as make a super-feature (`BestFit`).
    Best,
}

impl Choice {
    /// Its name in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Best => "best",
        }
    }
}

/// For each chunk its base, if it has one.
pub(super) struct Bases {
    bases: Vec<Option<usize>>,
    unsampled: u64,
}

impl Bases {
    /// As the papers choose them.
    pub(super) fn first_fit(ground: &Ground, contender: &Contender) -> Self {
        Self::of(&ground.sketches(contender), contender.shape(), Choice::First)
    }

    /// By these sketches, whose features are grouped.
    pub(super) fn of(sketches: &[Option<Sketch>], shape: Shape, choice: Choice) -> Self {
        let (fit, keys) = match choice {
            Choice::First => (Fit::First(Grouping::Consecutive), shape.super_features()),
            Choice::Best => (Fit::Best, shape.features()),
        };
        let mut index = Index::new(fit, sketches.len(), keys, u32::MAX);
        let mut found = Self { bases: Vec::with_capacity(sketches.len()), unsampled: 0 };
        for (number, sketch) in sketches.iter().enumerate() {
            let base = sketch.as_ref().and_then(|sketch| {
                let base = usize::try_from(index.find(sketch)?.number).ok()?;
                // An index compares parts of hashes only.
                choice.is_alike(sketch, sketches[base].as_ref()?).then_some(base)
            });
            if let (None, Some(sketch)) = (base, sketch) {
                index.insert(number as u64, sketch);
            }
            found.unsampled += u64::from(sketch.is_none());
            found.bases.push(base);
        }
        found
    }

    /// Base and target of each chunk that has a base.
    pub(super) fn pairs(&self) -> Vec<(usize, usize)> {
        self.bases.iter().enumerate().filter_map(|(target, base)| Some(((*base)?, target))).collect()
    }
}

impl Choice {
    fn is_alike(self, one: &Sketch, other: &Sketch) -> bool {
        match self {
            Self::First => {
                let super_features = |sketch: &Sketch| sketch.super_features(Grouping::Consecutive);
                super_features(one).iter().zip(super_features(other).iter()).any(|(one, other)| one == other)
            }
            Self::Best => one.matches(other) >= one.shape().features() / one.shape().super_features(),
        }
    }
}

/// Bases that were found, and what they are worth.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Found {
    given_bytes: u64,
    unique_bytes: u64,
    stored_bytes: u64,
    detected: u64,
    whole: u64,
    unsampled: u64,
    saved_shares: f64,
}

impl Found {
    /// Weighs what these bases are worth; `Err` if a delta is wrong.
    pub(super) fn of(ground: &Ground, bases: &Bases) -> Result<Self, String> {
        let pairs = bases.pairs();
        let deltas = ground.deltas(&pairs)?;
        let unique_bytes = ground.versions.unique_bytes();
        let given_bytes = ground.versions.given_bytes();
        let mut found = Self { given_bytes, unique_bytes, stored_bytes: unique_bytes, ..Self::default() };
        for ((_, target), delta) in pairs.iter().zip(deltas) {
            let bytes = ground.chunks[*target].len() as u64;
            found.stored_bytes = found.stored_bytes - bytes + delta;
            found.saved_shares += 1.0 - as_float(delta) / as_float(bytes);
        }
        found.detected = pairs.len() as u64;
        found.whole = bases.bases.len() as u64 - found.detected;
        found.unsampled = bases.unsampled;
        Ok(found)
    }

    /// Bytes before over bytes after.
    pub(super) fn dcr(&self) -> f64 {
        as_float(self.unique_bytes) / as_float(self.stored_bytes).max(1.0)
    }

    /// All measures, by name.
    pub(super) fn values(&self) -> [(&'static str, f64); 7] {
        [
            ("gcr", as_float(self.given_bytes) / as_float(self.stored_bytes).max(1.0)),
            ("dcr", self.dcr()),
            ("dce", self.saved_shares / as_float(self.detected).max(1.0)),
            ("scr", as_float(self.detected) / as_float(self.whole).max(1.0)),
            ("ser", as_float(self.unsampled) / as_float(self.detected + self.whole).max(1.0)),
            ("unique_bytes", as_float(self.unique_bytes)),
            ("stored_bytes", as_float(self.stored_bytes)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sketch(features: [u32; 12]) -> Sketch {
        Sketch::from_features(&features, Shape::DEFAULT)
    }

    #[test]
    fn only_chunks_stored_whole_are_bases() {
        let one = sketch([1; 12]);
        let mut alike = one;
        for at in 0..3 {
            let mut features = [1; 12];
            features[4 * at] = 2;
            alike = sketch(features);
            let sketches = [Some(one), None, Some(alike), Some(alike)];
            let bases = Bases::of(&sketches, Shape::DEFAULT, Choice::First);
            assert_eq!((bases.pairs(), bases.unsampled), (vec![(0, 2), (0, 3)], 1));
        }
        assert!(Choice::First.is_alike(&one, &alike));
    }

    #[test]
    fn the_first_fit_needs_a_whole_super_feature_and_the_best_as_many_features() {
        let scattered = sketch([1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0]);
        let sketches = [Some(sketch([1; 12])), Some(scattered)];
        assert!(Bases::of(&sketches, Shape::DEFAULT, Choice::First).pairs().is_empty());
        assert_eq!(Bases::of(&sketches, Shape::DEFAULT, Choice::Best).pairs(), [(0, 1)]);
        let fewer = sketch([1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]);
        assert!(Bases::of(&[sketches[0], Some(fewer)], Shape::DEFAULT, Choice::Best).pairs().is_empty());
    }
}
