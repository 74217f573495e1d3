#![cfg_attr(feature = "zstd", doc = include_str!("../README.md"))]
#![cfg_attr(not(feature = "zstd"), doc = "Resemblance and deltas: which stored chunks a new one is like.")]
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

pub mod aligned;
pub mod anchors;
pub mod benefit;
mod compare;
pub mod delta;
pub mod index;
#[cfg(feature = "zstd")]
pub mod region;
pub mod sketch;

pub use siltstone_simd::Isa;
