//! Resemblance and deltas: which stored chunks a new one is like, and how to store only the difference.
//!
//! A [`Sketcher`](sketch::Sketcher) sums a chunk up in a few features; chunks that share features share content. An
//! index finds, for a sketch, the stored chunk that is likest. A delta codec encodes one chunk against another, or a
//! region of chunks against many.

#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

pub mod aligned;
pub mod benefit;
mod compare;
pub mod delta;
pub mod index;
#[cfg(feature = "zstd")]
pub mod region;
pub mod sketch;

pub use siltstone_simd::Isa;
