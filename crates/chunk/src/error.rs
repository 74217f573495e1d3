//! The error of asking for a chunker that cannot be made.

use crate::names;
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// The error of asking for a chunker that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChunkerError {
    /// No chunker has this name.
    UnknownName {
        /// The name asked for.
        name: String,
    },
    /// The sizes do not fit together.
    BadSizes {
        /// Smallest chunk asked for, bytes.
        min: u32,
        /// Average chunk asked for, bytes.
        expected: u32,
        /// Largest chunk asked for, bytes.
        max: u32,
        /// The rule they break.
        rule: &'static str,
    },
    /// The environment variable `SILT_ISA` names no instruction set of this CPU.
    #[cfg(feature = "std")]
    UnknownIsa(siltstone_simd::UnknownIsa),
}

impl ChunkerError {
    pub(crate) fn unknown_name(name: &str) -> Self {
        Self::UnknownName { name: name.to_owned() }
    }
}

impl fmt::Display for ChunkerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownName { name } => {
                let known = names().collect::<Vec<_>>().join(", ");
                write!(f, "no chunker is named {name:?}; choose one of: {known}")
            }
            Self::BadSizes { min, expected, max, rule } => {
                write!(f, "chunk sizes min {min}, expected {expected}, max {max} bytes do not work: {rule}")
            }
            #[cfg(feature = "std")]
            Self::UnknownIsa(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ChunkerError {}
