//! Runs of chunks compressed together, alone or against a set of other chunks.
//!
//! The unit of compression is the *region*, not the chunk: the members of a region, one after another, are its text. A
//! *plain* region is compressed alone. A region *delta* is one zstd frame that begins with the region's bases, one
//! after another, as its past: matches cross the borders of chunks, one base serves many members, one entropy coder
//! serves all. The definition, which is format:
//!
//! ```text
//! prefix         the bases, in the order in which they are listed
//! text           the members, in theirs
//! Raw            payload = text
//! Zstd, plain    payload = one frame as RFC 8878 has it
//! Zstd, delta    payload = one frame as RFC 8878 has it, without the magic number, without content size, dictionary
//!                identifier and checksum; its matches may reach back into the prefix, which lies before the text; its
//!                window is at most the power of two that is not less than the bytes of prefix and text, and 1024
//! ```
//!
//! The holder of a region knows whether it is plain, how long the text is, and which chunks are bases: the payload does
//! not say. Encoders may change, decoding may not.
//!
//! Speeds and sizes here were measured on the new chunks, 16 KiB on average, of successive versions of
//! sources (OpenSSL), dumps (Redis), binaries (the packages of numpy) and a database (pages of sqlite), named in this
//! order: 44, 17, 13 and 17 MB of text. Beside zstd's level 3 with the prefix as an application would give it, in
//! regions of 256 KiB, one core's time, copying bases and members counted (November 2026; `cargo xtask bench similar
//! --only regions` measures all sizes and levels):
//!
//! ```text
//!               sources            dumps              binaries           database
//!               MB/s   % of text   MB/s   % of text   MB/s   % of text   MB/s   % of text
//! level 3        512     4.16       595     3.90       429     8.93       744     1.92       separate slices, zstd's tables
//! Zstd(3)        616     4.14       829     3.90       543     8.92       791     1.91       one slice, tables as in `levels.rs`
//! Fast           764     3.69      1364     3.90       583     8.76      1145     2.03       `search`
//! decoding      4215              6513              2321              6625                 of Fast
//! ```
//!
//! `Fast` has since learnt to look before it goes on at the last distance (`search`), for databases whose pages are
//! rewritten. On smaller data of the same kinds (`--quick`; 4.6, 8.2, 5.1 and 8.1 MB), in regions of 512 KiB, on an AMD
//! EPYC with AVX-512:
//!
//! ```text
//!               sources            dumps              binaries           database
//! Zstd(3)       1071     1.03       934     3.92      1377     0.68       715     8.78
//! Fast          1504     0.74      1375     3.86      1215     0.66       822     8.79
//! ```
//!
//! Tables are not shared between neighbouring regions: each has its own bases, and learning them takes a tenth of the
//! time.

mod bases;
mod decoder;
mod delta;
mod encoder;
mod error;
mod kernel;
mod levels;
pub mod plain;
mod search;

pub use bases::{Offer, choose_bases};
pub use decoder::RegionDecoder;
pub use encoder::RegionEncoder;
pub use error::RegionError;
pub use levels::Level;
pub use plain::ZSTD_LEVEL_DEFAULT;

use alloc::vec::Vec;

/// The most bytes that the bases and members of a region can have together: the largest window that a zstd decoder
/// takes by default.
pub const REGION_BYTES_MAX: usize = 128 << 20;

/// The encoding of a region's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Codec {
    /// The payload is the text.
    Raw,
    /// The payload is one zstd frame: of a plain region an ordinary one, of a delta one without its magic number.
    Zstd,
}

/// Returns the base-two logarithm of the window for `bytes`.
fn window_log(bytes: usize) -> u32 {
    bytes.max(1 << 10).next_power_of_two().ilog2()
}

/// Puts the parts one after another into the front of `whole`, and returns how many bytes they have.
fn concatenate(whole: &mut [u8], parts: &[&[u8]]) -> usize {
    let mut rest = whole;
    let mut bytes = 0;
    for part in parts {
        let (front, back) = rest.split_at_mut(part.len());
        front.copy_from_slice(part);
        bytes += part.len();
        rest = back;
    }
    bytes
}

/// The sum of the lengths.
fn length(parts: &[&[u8]]) -> usize {
    parts.iter().fold(0, |sum, part| sum.saturating_add(part.len()))
}

/// Makes room for `bytes`. The bytes that lie there stay: only new ones are written to.
fn grow(whole: &mut Vec<u8>, bytes: usize) {
    if whole.len() < bytes {
        whole.resize(bytes, 0);
    }
}
