//! The errors of making and of applying deltas.

use core::fmt;

/// The reason why there is no delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// The delta would take more bytes than the caller allowed.
    NotWorthIt {
        /// The bytes that were allowed.
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

/// A fault of a delta.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeltaError {
    /// The delta's first byte names a version that this program does not know.
    UnknownVersion {
        /// The byte.
        version: u8,
    },
    /// The delta ends too early.
    Truncated,
    /// The delta goes on after the target is complete.
    TrailingBytes,
    /// A number in it takes more bytes than any that is written.
    NumberTooLong,
    /// The delta copies bytes that the base does not have.
    OutsideBase,
    /// The delta makes more bytes than it should, or fewer.
    WrongLength,
    /// The streams of the pool are longer than was allowed.
    PoolTooLong {
        /// The bytes that were allowed for the stream at hand.
        bytes_max: usize,
    },
    /// The compressed part of the delta is damaged.
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
