//! The error of regions.

use super::REGION_BYTES_MAX;
use core::fmt;

/// The reason why a region cannot be encoded or decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegionError {
    /// There is no such level.
    BadLevel {
        /// The level asked for.
        level: i32,
    },
    /// Bases and members have more than [`REGION_BYTES_MAX`] together.
    TooLong {
        /// The bytes they have.
        bytes: usize,
    },
    /// The payload is no frame of this text: damaged, of another text or other bases, or made to mislead.
    BadFrame {
        /// The fault, in the library's words.
        reason: &'static str,
    },
    /// The text ends elsewhere.
    WrongLength {
        /// The bytes it should have.
        expected: usize,
        /// The bytes it has.
        found: usize,
    },
    /// A payload just made does not decode to its text: a fault of memory, processor or library.
    CheckFailed,
    /// The library failed: memory ran out.
    Failed {
        /// The library's complaint.
        reason: &'static str,
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
            Self::BadFrame { reason } => write!(f, "the payload is no frame of this text: {reason}"),
            Self::WrongLength { expected, found } => {
                write!(f, "the payload decodes to {found} bytes instead of {expected}")
            }
            Self::CheckFailed => f.write_str("a region just encoded does not decode to its text"),
            Self::Failed { reason } => write!(f, "zstd failed: {reason}"),
        }
    }
}

impl core::error::Error for RegionError {}
