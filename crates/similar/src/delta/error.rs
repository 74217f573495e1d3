//! Why a delta was not made, or cannot be applied.

use core::fmt;

/// Why there is no delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// The delta would take more bytes than the caller allowed.
    NotWorthIt {
        /// What was allowed.
        bytes_max: usize,
    },
    /// Base or target is longer than what is encoded.
    TooLong {
        /// The length of the longer of the two.
        bytes: usize,
    },
    /// The pool that it was to be added to would be too long.
    PoolFull,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotWorthIt { bytes_max } => write!(f, "the delta would take more than {bytes_max} bytes"),
            Self::TooLong { bytes } => {
                write!(f, "{bytes} bytes are too many for a chunk delta, which takes up to {}", super::INPUT_BYTES_MAX)
            }
            Self::PoolFull => f.write_str("the pool is full; finish it and begin another"),
        }
    }
}

impl core::error::Error for EncodeError {}

/// What is wrong with a delta.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeltaError {
    /// Its first byte names a version that this program does not know.
    UnknownVersion {
        /// The byte.
        version: u8,
    },
    /// It ends too early.
    Truncated,
    /// It goes on after the target is complete.
    TrailingBytes,
    /// A number in it takes more bytes than any that is written.
    NumberTooLong,
    /// It copies bytes that the base does not have.
    OutsideBase,
    /// It makes more bytes than it should, or fewer.
    WrongLength,
    /// The streams of the pool are longer than was allowed.
    PoolTooLong {
        /// What was allowed for the stream at hand.
        bytes_max: usize,
    },
    /// What was compressed in it is damaged.
    #[cfg(feature = "zstd")]
    Payload(crate::region::RegionError),
}

impl fmt::Display for DeltaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownVersion { version } => {
                write!(f, "the delta has version {version}, which this program does not know")
            }
            Self::Truncated => f.write_str("the delta ends too early"),
            Self::TrailingBytes => f.write_str("the delta goes on after its target is complete"),
            Self::NumberTooLong => f.write_str("the delta holds a number that is too long"),
            Self::OutsideBase => f.write_str("the delta copies from outside its base"),
            Self::WrongLength => f.write_str("the delta does not make as many bytes as its target has"),
            Self::PoolTooLong { bytes_max } => {
                write!(f, "a stream of the pool has more than the {bytes_max} bytes allowed")
            }
            #[cfg(feature = "zstd")]
            Self::Payload(_) => f.write_str("what is compressed in the delta is damaged"),
        }
    }
}

impl core::error::Error for DeltaError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            #[cfg(feature = "zstd")]
            Self::Payload(reason) => Some(reason),
            _ => None,
        }
    }
}
