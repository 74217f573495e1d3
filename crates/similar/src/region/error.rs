//! Why a region cannot be encoded or decoded.

use super::REGION_BYTES_MAX;
use core::fmt;

/// Why a region cannot be encoded or decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegionError {
    /// There is no such level.
    BadLevel {
        /// The level asked for.
        level: i32,
    },
    /// Bases and members are more than [`REGION_BYTES_MAX`] together.
    TooLong {
        /// How many bytes they are.
        bytes: usize,
    },
    /// The payload is no frame of this text: damaged, of another text or other bases, or made to mislead.
    BadFrame {
        /// What is wrong.
        reason: &'static str,
    },
    /// The text ends elsewhere.
    WrongLength {
        /// The bytes it should have.
        expected: usize,
        /// The bytes it has.
        found: usize,
    },
}

impl fmt::Display for RegionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadLevel { level } => write!(f, "there is no zstd level {level} for regions: take 1 to 19"),
            Self::TooLong { bytes } => {
                write!(
                    f,
                    "a region of {bytes} bytes with its bases is longer than {REGION_BYTES_MAX}: make it of fewer chunks"
                )
            }
            Self::BadFrame { reason } => write!(f, "the payload is no frame of this region: {reason}"),
            Self::WrongLength { expected, found } => {
                write!(f, "the region decodes to {found} bytes instead of {expected}")
            }
        }
    }
}

impl core::error::Error for RegionError {}
