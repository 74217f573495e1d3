//! Hashes of sliding windows: what both cutting and sketching look at data through.
//!
//! | file | window, bytes | hash |
//! |---|---|---|
//! | `rabin.rs` | 48, 32, any | polynomial over GF(2), 64 bits |
//! | `gear.rs` | 32 | sum of shifted table entries, 32 bits; and the tables of random numbers themselves |
//! | `swpr.rs` | 32 | sum of shifted words, 16, 32 or 64 bits, and its vector forms |
//!
//! Only hashes: which of their values end a chunk is said in crate `chunk`, which of them describe one in crate
//! `similar`. Values are format for both, on every machine, for ever.

#![no_std]

extern crate alloc;

mod gear;
mod rabin;
pub mod swpr;

pub use gear::{Gear, table};
pub use rabin::Rabin;

/// A hash of the last `WINDOW_BYTES` bytes, kept up as the window slides.
pub trait RollingHash: Send + Sync {
    /// Bytes that decide on a value.
    const WINDOW_BYTES: usize;

    /// Value of the hash; of no bytes at all it is the default.
    type Value: Copy + Default + Send + Sync;

    /// The value one byte on. Bytes that were never there are left as 0.
    fn slide(&self, value: Self::Value, leaving: u8, entering: u8) -> Self::Value;

    /// The value of a whole window.
    fn of(&self, window: &[u8]) -> Self::Value {
        window.iter().fold(Self::Value::default(), |value, &byte| self.slide(value, 0, byte))
    }
}
