//! AE-Opt1: AE with fewer questions per byte, for scalar code.
//!
//! Source: AE, TC'17, section 3.3, Algorithm 2. Cuts are those of AE-Max (the definition is in `mod.rs`); only the way
//! to them differs. No chunk ends before the `w` positions after the record have been looked at, so the inner loop asks
//! one question of each: is its value beyond the record?
//!
//! As printed, Algorithm 2 leaves the inner loop at a value *equal* to the record too, and then ends the chunk at
//! `record + w` without having looked at what lies between. That contradicts Algorithm 1 and the claim of equal
//! deduplication. Here the inner loop goes on at equal values, which gives the cuts of Algorithm 1. Nor does a chunk
//! reach beyond its stream, as the printed one does if the stream ends inside a window.

use super::{Value, window};
use crate::scalar::{Number, first};
use crate::{Chunker, Sizes};

/// The chunkers `ae-opt1`, `ae8-opt1`.
#[derive(Clone, Copy, Debug)]
pub struct AeOpt1 {
    name: &'static str,
    value: Value,
    sizes: Sizes,
    window: usize,
}

impl AeOpt1 {
    /// The chunker, known by `name`.
    pub fn new(name: &'static str, value: Value, sizes: Sizes) -> Self {
        Self { name, value, sizes, window: window(value, sizes) }
    }
}

impl Chunker for AeOpt1 {
    fn name(&self) -> &'static str {
        self.name
    }

    fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn cut(&self, data: &[u8]) -> usize {
        self.sizes.cut(data, |searched| match self.value {
            Value::Byte => cut::<u8>(searched, self.window),
            Value::EightBytes => cut::<u64>(searched, self.window),
        })
    }
}

/// Algorithm 2: one question of each value.
fn cut<N: Number>(data: &[u8], window: usize) -> Option<usize> {
    let mut at = 0;
    // Up to the last value of the window.
    while let Some(searched) = data.get(..at + window + N::BYTES) {
        let record = N::read(data, at);
        match first(searched, at + 1, |_, value: N| value > record) {
            Some(next) => at = next,
            None => return Some(at + window + 1),
        }
    }
    None
}
