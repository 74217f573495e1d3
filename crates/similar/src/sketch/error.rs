//! The error of asking for a sketcher that there is not.

use super::names;
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// The reason why there is no such sketcher.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SketchError {
    /// No method has this name.
    UnknownName {
        /// The name asked for.
        name: String,
    },
    /// The numbers asked for make no groups.
    BadShape {
        /// Features asked for.
        features: usize,
        /// Super-features asked for.
        super_features: usize,
    },
    /// The environment variable `SILT_ISA` names no instruction set of this CPU.
    #[cfg(feature = "std")]
    UnknownIsa(siltstone_simd::UnknownIsa),
}

impl SketchError {
    pub(super) fn unknown_name(name: &str) -> Self {
        Self::UnknownName { name: name.to_owned() }
    }
}

impl fmt::Display for SketchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownName { name } => {
                let known = names().collect::<Vec<_>>().join(", ");
                write!(f, "no sketch is named {name:?}; choose one of: {known}")
            }
            Self::BadShape { features, super_features } => {
                let most = super::FEATURES_MAX;
                write!(
                    f,
                    "{features} features cannot make {super_features} super-features: take 1 to {most} features, and a number that divides them"
                )
            }
            #[cfg(feature = "std")]
            Self::UnknownIsa(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for SketchError {}
