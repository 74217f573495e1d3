//! Content-defined chunking: where a stream of bytes is cut, and nothing else.
//!
//! A [`Chunker`] finds the end of the first chunk of a slice. [`SliceChunks`] and [`StreamChunker`] repeat that over a
//! whole slice or reader. Each algorithm is one file named after it; all its forms give the same cuts on every input
//! and every machine, for ever, because stored data is only found again where it is cut again in the same places.
//!
//! | name | algorithm | source |
//! |---|---|---|
//! | `gear-nc2` | [`GearNc2`]: Gear hash, normalised chunking level 2, keyed table | `FastCDC`, ATC'16 and TPDS'20 |
//!
//! ```
//! use siltstone_chunk::{SliceChunks, Sizes, by_name};
//! let chunker = by_name("gear-nc2", Sizes::DEFAULT, &[0; 32])?;
//! let data = vec![7; 100_000];
//! assert_eq!(SliceChunks::new(&chunker, &data).map(<[u8]>::len).sum::<usize>(), data.len());
//! # Ok::<(), siltstone_chunk::ChunkerError>(())
//! ```

mod gear_nc2;
mod sizes;
mod slice;
mod stream;

pub use gear_nc2::GearNc2;
pub use sizes::Sizes;
pub use slice::SliceChunks;
pub use stream::{StreamBuffer, StreamChunker};

use std::{fmt, sync::Arc};

/// Finds where the first chunk of some bytes ends.
pub trait Chunker: Send + Sync {
    /// The name under which [`by_name`] makes this chunker.
    fn name(&self) -> &'static str;

    /// The sizes this chunker was made for.
    fn sizes(&self) -> Sizes;

    /// Length in bytes of the first chunk of `data`: 0 if `data` is empty, else 1 ..= `sizes().max()`.
    ///
    /// `data` must hold at least `sizes().max()` bytes or reach to the end of the stream; the result then depends on
    /// nothing beyond the chunk itself. Only the last chunk of a stream may be shorter than `sizes().min()`.
    fn cut(&self, data: &[u8]) -> usize;
}

macro_rules! chunker_behind_pointer {
    ($($pointer:ty),*) => {$(
        impl<C: Chunker + ?Sized> Chunker for $pointer {
            fn name(&self) -> &'static str {
                (**self).name()
            }
            fn sizes(&self) -> Sizes {
                (**self).sizes()
            }
            fn cut(&self, data: &[u8]) -> usize {
                (**self).cut(data)
            }
        }
    )*};
}
chunker_behind_pointer!(&C, Box<C>, Arc<C>);

/// Every name that [`by_name`] knows, the default first.
pub const CHUNKER_NAMES: &[&str] = &[GearNc2::NAME];

/// Makes the chunker of that name. `key` decides where it cuts; chunkers without a key ignore it.
///
/// # Errors
/// [`ChunkerError::UnknownName`] if no chunker has that name.
pub fn by_name(name: &str, sizes: Sizes, key: &[u8; 32]) -> Result<Box<dyn Chunker>, ChunkerError> {
    match name {
        GearNc2::NAME => Ok(Box::new(GearNc2::new(sizes, key))),
        _ => Err(ChunkerError::UnknownName { name: name.to_owned() }),
    }
}

/// Why a chunker could not be made.
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
}

impl fmt::Display for ChunkerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownName { name } => {
                write!(f, "no chunker is named {name:?}; choose one of: {}", CHUNKER_NAMES.join(", "))
            }
            Self::BadSizes { min, expected, max, rule } => {
                write!(f, "chunk sizes min {min}, expected {expected}, max {max} bytes do not work: {rule}")
            }
        }
    }
}

impl std::error::Error for ChunkerError {}
