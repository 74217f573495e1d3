#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

mod ae;
mod aes16;
mod algorithms;
mod average;
mod crc;
mod error;
mod fastcdc;
mod fingerprint;
mod fixed;
mod gear_nc2;
mod lagged;
mod maxp;
mod normalised;
mod ram;
mod rolling;
mod scalar;
mod scan;
mod seqcdc;
mod sizes;
mod slice;
#[cfg(feature = "std")]
mod stream;
mod swpr;
mod tttd;
mod two_stage;

pub use ae::{Ae, AeOpt1, AeOpt2, Extreme, Value};
pub use aes16::Aes16;
pub use algorithms::{ALGORITHMS, Algorithm, DEFAULT_NAME, by_name, names};
pub use error::ChunkerError;
pub use fingerprint::Fingerprinter;
#[cfg(feature = "references")]
pub use fingerprint::Reference;
pub use gear_nc2::GearNc2;
pub use lagged::{Lagged, Sample};
pub use maxp::Maxp;
pub use ram::Ram;
pub use siltstone_simd::Isa;
pub use sizes::Sizes;
pub use slice::SliceChunks;
#[cfg(feature = "std")]
pub use stream::{StreamBuffer, StreamChunker};
pub use swpr::Swpr;

use alloc::{boxed::Box, sync::Arc};

/// Finds where the first chunk of some bytes ends.
pub trait Chunker: Send + Sync {
    /// The name under which [`by_name`] makes this chunker.
    fn name(&self) -> &'static str;

    /// The sizes this chunker was made for.
    fn sizes(&self) -> Sizes;

    /// Length in bytes of the first chunk of `data`: 0 if `data` is empty, else 1 ..= `sizes().max()`.
    ///
    /// `data` is taken to reach to the end of the stream. Where it does not, a result is still final if it is less than
    /// `data.len()` or equal to `sizes().max()`: it stays the same whatever follows. Only the last chunk of a stream
    /// may be shorter than `sizes().min()`.
    fn cut(&self, data: &[u8]) -> usize;

    /// Calls `each` with the length of every chunk of `data`, in order, as [`SliceChunks`] would find them. Algorithms
    /// that look at a whole segment before they cut do that here.
    fn cut_all(&self, data: &[u8], each: &mut dyn FnMut(usize)) {
        let mut rest = data;
        while !rest.is_empty() {
            let length = self.cut(rest);
            each(length);
            rest = &rest[length..];
        }
    }
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
            fn cut_all(&self, data: &[u8], each: &mut dyn FnMut(usize)) {
                (**self).cut_all(data, each);
            }
        }
    )*};
}
chunker_behind_pointer!(&C, Box<C>, Arc<C>);
