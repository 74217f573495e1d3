//! Sketches: from bytes to features.
//!
//! A *feature* is the extreme of one function over all windows of a chunk. Two chunks have the same feature with the
//! probability that is their resemblance: the windows they share over all they have (Broder's theorem; Odess, TOS,
//! section 2.3). A *sketch* is some features by as many functions; a *super-feature* is a hash of several features,
//! equal only where all of them are.
//!
//! | file | holds |
//! |---|---|
//! | `methods.rs` | every method by name |
//! | `ntransform.rs`, `finesse.rs`, `odess.rs`, `odess_plus.rs` | a method each |
//! | `samples.rs` | Siltstone's own: of what the chunker sampled |
//! | `transforms.rs`, `rate.rs` | what methods share: the functions, the rates of sampling |
//! | `groups.rs` | super-features |
//!
//! Short chunks: one of no bytes never has a sketch; any byte is enough for N-Transform, one byte a feature for
//! Finesse; Odess, Odess+ (from 17 bytes on) and Siltstone's own (from 32) have one if anything is sampled, which is
//! likely from a few hundred bytes on. Of equal bytes, or equal periods, a chunk has the same few hashes however long
//! it is.
//!
//! ```
//! use siltstone_similar::sketch::{Shape, by_name};
//! let sketcher = by_name("odess-plus", Shape::DEFAULT)?;
//! let old: Vec<u8> = (0..8000_u32).flat_map(|number| (number * number).to_le_bytes()).collect();
//! let new = [&old[..9000], b"inserted", &old[9000..]].concat();
//! let sketches = [old, new].map(|chunk| sketcher.sketch(&chunk).expect("long enough to be sampled"));
//! assert!(sketches[0].matches(&sketches[1]) >= 10);
//! # Ok::<(), siltstone_similar::sketch::SketchError>(())
//! ```

mod error;
mod finesse;
mod groups;
mod methods;
mod ntransform;
mod odess;
mod odess_plus;
mod rate;
mod samples;
mod transforms;

pub use error::SketchError;
pub use finesse::Finesse;
pub use groups::{Grouping, SuperFeatures};
pub use methods::{METHODS, Method, by_name, names};
pub use ntransform::NTransform;
pub use odess::Odess;
pub use odess_plus::{OdessPlus, Windows};
pub use rate::Rate;
pub use samples::SampleSketch;
pub use transforms::Extreme;

/// The most features a sketch can hold.
pub const FEATURES_MAX: usize = 32;

/// The shape of a sketch: its number of features, and the number of super-features they are grouped into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    features: u8,
    super_features: u8,
}

impl Shape {
    /// 12 features, 3 super-features of 4: what Finesse (section 5) and Odess (section 4.3) take.
    pub const DEFAULT: Self = Self { features: 12, super_features: 3 };

    /// Creates the shape of `features` features in `super_features` groups of equal size.
    ///
    /// # Errors
    /// [`SketchError::BadShape`] if there is no feature, more than [`FEATURES_MAX`], or the groups do not divide them.
    pub fn new(features: usize, super_features: usize) -> Result<Self, SketchError> {
        let bad = SketchError::BadShape { features, super_features };
        if features == 0 || features > FEATURES_MAX || super_features == 0 || features % super_features != 0 {
            return Err(bad);
        }
        match (u8::try_from(features), u8::try_from(super_features)) {
            (Ok(features), Ok(super_features)) => Ok(Self { features, super_features }),
            _ => Err(bad),
        }
    }

    /// Returns the number of features.
    pub fn features(self) -> usize {
        usize::from(self.features)
    }

    /// Returns the number of super-features.
    pub fn super_features(self) -> usize {
        usize::from(self.super_features)
    }
}

/// The features of one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sketch {
    /// Features; those beyond the shape are 0.
    features: [u32; FEATURES_MAX],
    shape: Shape,
}

impl Sketch {
    /// Creates a sketch with this feature in each place, asked for in their order.
    fn new(shape: Shape, mut feature: impl FnMut(usize) -> u32) -> Self {
        let mut features = [0; FEATURES_MAX];
        features.iter_mut().take(shape.features()).enumerate().for_each(|(i, place)| *place = feature(i));
        Self { features, shape }
    }

    /// The sketch with these features: as many as the shape has, 0 where too few are given.
    pub fn from_features(features: &[u32], shape: Shape) -> Self {
        Self::new(shape, |i| features.get(i).copied().unwrap_or_default())
    }

    /// The features, in the order of their functions.
    pub fn features(&self) -> &[u32] {
        &self.features[..self.shape.features()]
    }

    /// Returns the number of features and of groups.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Counts the features that are the same in the same place. Over the number of features this estimates the
    /// resemblance of two chunks; sketches by [`Finesse`] are [grouped](Self::grouped) first.
    pub fn matches(&self, other: &Self) -> usize {
        self.features().iter().zip(other.features()).filter(|(one, other)| one == other).count()
    }
}

/// Sums chunks up in sketches.
pub trait Sketcher: Send + Sync {
    /// The name under which [`by_name`] makes it.
    fn name(&self) -> &'static str;

    /// Returns the number of features and super-features.
    fn shape(&self) -> Shape;

    /// Returns the rule by which features make super-features.
    fn grouping(&self) -> Grouping {
        Grouping::Consecutive
    }

    /// The sketch of a chunk; `None` if nothing in it was sampled: then nothing can be said to resemble it. Equal
    /// chunks have equal sketches, on every machine.
    fn sketch(&self, chunk: &[u8]) -> Option<Sketch>;
}
