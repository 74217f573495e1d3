//! Copy and insert: deltas of chunks made fast, and made to be compressed many together.
//!
//! A delta says how the target is made: bytes that are inserted, then bytes that are copied from the base, and so on.
//! Bytes to insert (*literals*) and places to copy from (*instructions*) stand apart, because they compress apart:
//! those of many deltas together (`PoolWriter`), where an edit made in many chunks costs little after the first. The
//! definition, which is format:
//!
//! ```text
//! delta        = version (1 byte, 1), varint (bytes of instructions), instructions, literals
//! instructions = records until the target is complete; its length is known from elsewhere
//! record       = varint (2 inserted + is_jump), then, unless the target is complete,
//!                varint (jump) if is_jump, varint (copied)
//! inserted     = so many bytes are the next literals
//! copied       = so many bytes are copied from the base, from where on: where the last copy ended (0 before the first),
//!                + inserted, + jump; 0 stands for all that is still wanted
//! jump         = 0, 1, 2, 3, ... stand for -1, 1, -2, 2, ...
//! varint       = seven bits in each byte, the lowest first, the highest bit set if more follow; at most 5 bytes
//! ```
//!
//! The delta of a base and a target is the same on every machine and with every instruction set.
//!
//! Reasons:
//! 1. **The base is expected to go on after as many bytes as were inserted**, which is what a replacement leaves: in
//!    compiled programs, where addresses have changed everywhere, 19 records in 20 need no jump; in dumps of a
//!    key-value store 6 in 10, in pages of a database 4 in 10, in text 1 in 4.
//! 2. **Bytes, not bits**, and one stream of instructions: zstd at level 3 made of it what it made of three streams
//!    (lengths of literals, jumps, lengths of copies) within 0.5 % of the whole on text, 1.5 % on compiled programs,
//!    and less of it where pools are small; four other encodings lay between (source releases and wheels, pools of 128
//!    KiB to 16 MiB of targets, 2026-11).
//! 3. **Only copies that pay** (`encode.rs`): literals are compressed with those of many deltas. Down to 8 bytes the
//!    whole was 7 % larger on text than with 16 or more.
//!
//! Cost: comparing base and target once, 64 bytes at a time; where the base does not soon go on as expected, an index
//! of it (`index.rs`), and looking up what is not in it. Pairs whose differences are all replacements need none.

mod compare;
mod decode;
mod encode;
mod index;
mod record;

use super::{ChunkDelta, DeltaError, EncodeError, check_lengths, varint};
use alloc::vec::Vec;
use encode::Encode;
use index::Index;
use siltstone_simd::Isa;

const VERSION: u8 = 1;

/// The codec `copy-insert`.
#[derive(Clone)]
pub struct CopyInsert {
    isa: Isa,
    index: Index,
    parts: Parts,
}

/// The two streams of one delta, or of many one after another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Instructions: where to copy from, how much to insert.
    pub instructions: Vec<u8>,
    /// Literals: the bytes to insert.
    pub literals: Vec<u8>,
}

impl CopyInsert {
    /// The codec in its form for `isa`.
    pub fn new(isa: Isa) -> Self {
        Self { isa, index: Index::default(), parts: Parts::default() }
    }

    /// Encodes as [`ChunkDelta::encode`] does, with instructions and literals apart. If there is no delta, `parts` is
    /// as before.
    ///
    /// # Errors
    /// [`EncodeError::NotWorthIt`] and [`EncodeError::TooLong`].
    pub fn encode_apart(
        &mut self,
        base: &[u8],
        target: &[u8],
        bytes_max: usize,
        parts: &mut Parts,
    ) -> Result<(), EncodeError> {
        check_lengths(base, target)?;
        let before = (parts.instructions.len(), parts.literals.len());
        let index = &mut self.index;
        let is_made = match self.isa.run(Encode { base, target, bytes_max, index, parts }) {
            Some(is_made) => is_made,
            None => Encode { base, target, bytes_max, index, parts }.scalar(),
        };
        if is_made {
            return Ok(());
        }
        parts.instructions.truncate(before.0);
        parts.literals.truncate(before.1);
        Err(EncodeError::NotWorthIt { bytes_max })
    }
}

/// The two streams of one delta, or of many one after another, where they lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slices<'a> {
    /// Instructions: where to copy from, how much to insert.
    pub instructions: &'a [u8],
    /// Literals: the bytes to insert.
    pub literals: &'a [u8],
}

impl Slices<'_> {
    /// Takes the first delta off the fronts, whose target has `target_bytes`. Its base is not needed for that.
    ///
    /// # Errors
    /// [`DeltaError`] if there is none that makes so many bytes; then nothing is taken off.
    pub fn next(&mut self, target_bytes: usize) -> Result<Self, DeltaError> {
        decode::split(self, target_bytes)
    }

    /// Appends to `target` the `target_bytes` bytes that this delta, and no other, makes of its base. If it fails,
    /// `target` is as before.
    ///
    /// # Errors
    /// [`DeltaError`] if it is no delta that makes so many bytes of this base.
    pub fn decode(mut self, base: &[u8], target_bytes: usize, target: &mut Vec<u8>) -> Result<(), DeltaError> {
        let before = target.len();
        target.resize(before + target_bytes, 0);
        let mut result = decode::decode(base, &mut self, &mut target[before..]);
        if result.is_ok() && self != Self::default() {
            result = Err(DeltaError::TrailingBytes);
        }
        if result.is_err() {
            target.truncate(before);
        }
        result
    }
}

impl ChunkDelta for CopyInsert {
    fn name(&self) -> &'static str {
        "copy-insert"
    }

    fn encode(&mut self, base: &[u8], target: &[u8], bytes_max: usize, delta: &mut Vec<u8>) -> Result<(), EncodeError> {
        let mut parts = core::mem::take(&mut self.parts);
        parts.clear();
        let result = self.encode_apart(base, target, bytes_max, &mut parts).and_then(|()| {
            let before = delta.len();
            delta.push(VERSION);
            varint::write(delta, parts.instructions.len() as u64);
            if delta.len() - before + parts.bytes() > bytes_max {
                delta.truncate(before);
                return Err(EncodeError::NotWorthIt { bytes_max });
            }
            delta.extend_from_slice(&parts.instructions);
            delta.extend_from_slice(&parts.literals);
            Ok(())
        });
        self.parts = parts;
        result
    }

    fn decode(
        &mut self,
        base: &[u8],
        delta: &[u8],
        target_bytes: usize,
        target: &mut Vec<u8>,
    ) -> Result<(), DeltaError> {
        let (&version, mut rest) = delta.split_first().ok_or(DeltaError::Truncated)?;
        if version != VERSION {
            return Err(DeltaError::UnknownVersion { version });
        }
        let bytes = usize::try_from(varint::read(&mut rest)?).map_err(|_| DeltaError::Truncated)?;
        let (instructions, literals) = rest.split_at_checked(bytes).ok_or(DeltaError::Truncated)?;
        Slices { instructions, literals }.decode(base, target_bytes, target)
    }
}

impl Parts {
    /// Returns the bytes of both together.
    pub fn bytes(&self) -> usize {
        self.instructions.len() + self.literals.len()
    }

    /// Leaves nothing of both but their memory.
    pub fn clear(&mut self) {
        self.instructions.clear();
        self.literals.clear();
    }

    /// Both, to be read.
    pub fn as_slices(&self) -> Slices<'_> {
        Slices { instructions: &self.instructions, literals: &self.literals }
    }
}
