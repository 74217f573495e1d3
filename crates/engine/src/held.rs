//! Bytes that wait in memory, compressed where that makes them much smaller.
//!
//! Text that compresses well (tables of a database, logs) takes a tenth of the memory when LZ4 has compressed it, which
//! costs less than writing it to a temporary file, and less than decoding its region once more.

use crate::decode::Bytes;
use siltstone_store::StoreError;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes that are let pass after some that gained nothing by being compressed.
const PASSED_OVER: u32 = 15;

/// Bytes in memory.
#[derive(Clone, Debug)]
pub(crate) enum HeldBytes {
    /// As they are.
    Plain(Bytes),
    /// A block of LZ4.
    Compressed { block: Bytes, plain_bytes: usize },
}

impl HeldBytes {
    /// Compresses bytes, if that makes them at most half as many.
    pub(crate) fn compressed(plain: &[u8]) -> Option<Self> {
        thread_local! {
            static ROOM: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        ROOM.with_borrow_mut(|room| {
            let most = lz4_flex::block::get_maximum_output_size(plain.len());
            if room.len() < most {
                room.resize(most, 0);
            }
            let block_bytes = lz4_flex::block::compress_into(plain, room).ok()?;
            let block = room.get(..block_bytes).filter(|block| 2 * block.len() <= plain.len())?;
            Some(Self::Compressed { block: Bytes::copy_from_slice(block), plain_bytes: plain.len() })
        })
    }

    /// Returns the memory that they take, bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.as_held().len() as u64
    }

    /// Returns the bytes as they are held.
    pub(crate) fn as_held(&self) -> &Bytes {
        let (Self::Plain(held) | Self::Compressed { block: held, .. }) = self;
        held
    }

    /// Returns the room that [`bytes_in`](Self::bytes_in) needs, bytes.
    pub(crate) fn room_bytes(&self) -> usize {
        match self {
            Self::Plain(_) => 0,
            Self::Compressed { plain_bytes, .. } => *plain_bytes,
        }
    }

    /// Returns the bytes themselves, decompressed into the front of a room, and the rest of that.
    ///
    /// # Errors
    /// Those of [`bytes`](Self::bytes).
    ///
    /// # Panics
    /// If the room is too short.
    pub(crate) fn bytes_in<'b>(&'b self, room: &'b mut [u8]) -> Result<(&'b [u8], &'b mut [u8]), StoreError> {
        match self {
            Self::Plain(bytes) => Ok((bytes, room)),
            Self::Compressed { block, plain_bytes } => {
                let (plain, rest) = room.split_at_mut(*plain_bytes);
                decompress(block, plain)?;
                Ok((plain, rest))
            }
        }
    }

    /// Returns the bytes themselves.
    ///
    /// # Errors
    /// [`StoreError::Machine`] if they cannot be decompressed: memory did not keep them.
    pub(crate) fn bytes(self) -> Result<Bytes, StoreError> {
        match self {
            Self::Plain(bytes) => Ok(bytes),
            Self::Compressed { block, plain_bytes } => {
                let mut plain = vec![0; plain_bytes];
                decompress(&block, &mut plain)?;
                Ok(plain.into())
            }
        }
    }
}

/// Decompresses a block that holds as many bytes as there are to be.
fn decompress(block: &[u8], plain: &mut [u8]) -> Result<(), StoreError> {
    let operation = "decompressing bytes held in memory";
    let failed = |found: String| StoreError::Machine { operation, reason: format!("{found}; memory may be faulty") };
    match lz4_flex::block::decompress_into(block, plain) {
        Ok(bytes) if bytes == plain.len() => Ok(()),
        Ok(bytes) => Err(failed(format!("they are {bytes} instead of {}", plain.len()))),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Compresses bytes one after another, and lets some pass where it gains nothing.
#[derive(Debug, Default)]
pub(crate) struct Compressor {
    to_pass: AtomicU32,
}

impl Compressor {
    /// Compresses bytes, if it is their turn and makes them at most half as many.
    pub(crate) fn compress(&self, plain: &[u8]) -> Option<HeldBytes> {
        let passed = self.to_pass.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if passed.is_ok() {
            return None;
        }
        let compressed = HeldBytes::compressed(plain);
        if compressed.is_none() {
            self.to_pass.store(PASSED_OVER, Ordering::Relaxed);
        }
        compressed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunks::testing::noise;

    #[test]
    fn what_repeats_is_compressed_and_comes_back_and_noise_is_not() {
        for plain in [vec![7; 40_000], noise(1, 50).repeat(900), b"ab".repeat(30)] {
            let held = HeldBytes::compressed(&plain).expect("smaller");
            assert!(held.memory_bytes() * 2 <= plain.len() as u64);
            assert_eq!(held.bytes().expect("sound"), plain);
        }
        assert!(HeldBytes::compressed(&noise(2, 40_000)).is_none() && HeldBytes::compressed(&[]).is_none());
    }

    #[test]
    fn what_memory_did_not_keep_is_an_error() {
        let plain = noise(1, 50).repeat(900);
        let Some(HeldBytes::Compressed { block, plain_bytes }) = HeldBytes::compressed(&plain) else {
            panic!("not compressed")
        };
        let cut = HeldBytes::Compressed { block: block.slice(..block.len() / 2), plain_bytes };
        let longer = HeldBytes::Compressed { block, plain_bytes: plain_bytes + 1 };
        for wrong in [cut, longer] {
            assert!(matches!(wrong.bytes(), Err(StoreError::Machine { .. })));
        }
    }

    #[test]
    fn after_bytes_that_gain_nothing_some_are_let_pass() {
        let compressor = Compressor::default();
        let (poor, good) = (noise(1, 9000), vec![1; 9000]);
        assert!(
            compressor.compress(&good).is_some()
                && compressor.compress(&good).is_some()
                && compressor.compress(&poor).is_none()
        );
        let tried: Vec<bool> = (0..=PASSED_OVER + 1).map(|_| compressor.compress(&good).is_some()).collect();
        assert_eq!(tried.iter().position(|compressed| *compressed), Some(PASSED_OVER as usize));
        assert!(tried.ends_with(&[true, true]));
    }
}
