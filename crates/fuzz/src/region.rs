//! Regions against bases, chunks against one base, and pools of deltas.

use crate::parts;
use siltstone_similar::Isa;
use siltstone_similar::delta::{ChunkDelta, CopyInsert, PoolReader, Prefix};
use siltstone_similar::region::{Codec, Level, RegionDecoder};

/// The longest text that a decoder is asked for.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// Deltas that are taken off a pool.
const DELTAS_MAX: usize = 256;

/// A region's payload, plain or against bases: codec and length of the text (four bytes), the payload, then the bases.
pub(crate) fn region(data: &[u8]) -> bool {
    let Some((head, rest)) = data.split_first_chunk() else { return false };
    let (text_bytes, flags) = text_bytes(*head);
    let codec = if flags & 1 == 0 { Codec::Zstd } else { Codec::Raw };
    let pieces = parts(rest);
    let Some((payload, bases)) = pieces.split_first() else { return false };
    let (mut decoder, mut plain) = (RegionDecoder::new(), Vec::new());
    let text = match bases {
        [] => decoder.decode_plain(codec, payload, text_bytes, &mut plain).map(|()| &plain[..]),
        bases => decoder.decode(codec, bases, payload, text_bytes),
    };
    let Ok(text) = text else { return false };
    assert_eq!(text.len(), text_bytes);
    true
}

/// A chunk's delta, in every codec, and a pool of them: the length of the target (four bytes), the base, the delta.
pub(crate) fn delta(data: &[u8]) -> bool {
    let Some((head, rest)) = data.split_first_chunk() else { return false };
    let (target_bytes, _) = text_bytes(*head);
    let pieces = parts(rest);
    let [base, delta, ..] = pieces.as_slice() else { return false };
    let mut codecs: Vec<Box<dyn ChunkDelta>> = vec![Box::new(CopyInsert::new(Isa::best()))];
    codecs.extend(Prefix::new(Level::Zstd(3)).ok().map(|codec| Box::new(codec) as _));
    let mut is_sound = false;
    for codec in &mut codecs {
        let mut target = b"before".to_vec();
        if codec.decode(base, delta, target_bytes, &mut target).is_ok() {
            assert_eq!(target.len(), 6 + target_bytes);
            is_sound = true;
        } else {
            assert_eq!(target, b"before");
        }
    }
    pool(base, delta, target_bytes) || is_sound
}

fn pool(base: &[u8], pool: &[u8], target_bytes: usize) -> bool {
    let mut reader = PoolReader::new();
    let Ok(mut deltas) = reader.open(pool, TEXT_BYTES_MAX) else { return false };
    for _ in 0..DELTAS_MAX {
        let Ok(delta) = deltas.next(target_bytes) else { break };
        let mut target = Vec::new();
        let _ = delta.decode(base, target_bytes, &mut target);
        if target_bytes == 0 {
            break;
        }
    }
    true
}

/// A length of three bytes, and flags.
fn text_bytes([low, middle, high, flags]: [u8; 4]) -> (usize, u8) {
    let bytes = u32::from_le_bytes([low, middle, high, 0]);
    (usize::try_from(bytes).unwrap_or(TEXT_BYTES_MAX).min(TEXT_BYTES_MAX), flags)
}
