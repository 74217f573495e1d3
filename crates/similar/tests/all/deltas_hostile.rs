//! A delta may say anything: it makes what was asked for, or an error, in bounded time and memory.

use crate::common::pairs::{any_pair, cases, codecs, delta, random_bytes, target};
use proptest::prelude::*;
use siltstone_similar::Isa;
use siltstone_similar::delta::{CopyInsert, DeltaError, PoolReader, PoolWriter, Slices};
use siltstone_similar::region::Level;

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn random_bytes_are_refused_or_make_a_target(
        base in prop::collection::vec(any::<u8>(), 0..300),
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        version in 0..5u8,
        target_bytes in prop_oneof![0..400usize, 0..2_000_000usize],
    ) {
        if let Some(first) = bytes.first_mut() {
            *first = version;
        }
        for mut codec in codecs() {
            // Lengths are checked in there.
            let _ = target(&mut *codec, &base, &bytes, target_bytes);
        }
        if let Ok(mut deltas) = PoolReader::new().open(&bytes, 10_000) {
            let _ = deltas.next(target_bytes);
        }
    }

    #[test]
    fn damaged_deltas_are_refused_or_make_a_target(pair in any_pair(), at in any::<u16>(), bit in 0..8u32, other_length in any::<u16>()) {
        for mut codec in codecs() {
            let mut delta = delta(&mut *codec, &pair);
            let at = usize::from(at) % delta.len();
            delta[at] ^= 1u8 << bit;
            let _ = target(&mut *codec, &pair.0, &delta, pair.1.len());
            delta[at] ^= 1u8 << bit;
            let _ = target(&mut *codec, &pair.0, &delta, usize::from(other_length));
            let _ = target(&mut *codec, &pair.0[..pair.0.len() / 2], &delta, pair.1.len());
        }
    }

    #[test]
    fn a_delta_cut_short_is_refused(pair in any_pair(), cut in any::<u16>()) {
        for mut codec in codecs() {
            let delta = delta(&mut *codec, &pair);
            let kept = usize::from(cut) % delta.len();
            prop_assert!(target(&mut *codec, &pair.0, &delta[..kept], pair.1.len()).is_err(), "{}", codec.name());
        }
    }

    #[test]
    fn a_copy_insert_delta_of_another_length_is_refused(pair in any_pair()) {
        let mut codec = CopyInsert::new(Isa::highest());
        let mut longer = delta(&mut codec, &pair);
        longer.push(0);
        prop_assert_eq!(target(&mut codec, &pair.0, &longer, pair.1.len()), Err(DeltaError::TrailingBytes));
    }

    #[test]
    fn a_damaged_pool_is_refused_or_gives_targets(pairs in prop::collection::vec(any_pair(), 1..4), at in any::<u32>(), bit in 0..8u32) {
        let mut writer = PoolWriter::new(Isa::highest(), Level::Zstd(1)).expect("a level");
        for (base, target) in &pairs {
            writer.add(base, target, usize::MAX).expect("room");
        }
        let mut pool = Vec::new();
        writer.finish(&mut pool);
        let at = at as usize % pool.len();
        pool[at] ^= 1u8 << bit;
        let mut reader = PoolReader::new();
        if let Ok(mut deltas) = reader.open(&pool, 1 << 20) {
            for (base, target) in &pairs {
                let Ok(delta) = deltas.next(target.len()) else { break };
                let mut made = Vec::new();
                if delta.decode(base, target.len(), &mut made).is_ok() {
                    prop_assert_eq!(made.len(), target.len());
                }
            }
        }
        pool.truncate(at);
        prop_assert!(reader.open(&pool, 1 << 20).is_err());
    }
}

/// Follows the instructions with 100 bytes of base and ten literals.
fn follow(instructions: &[u8], target_bytes: usize) -> Result<usize, DeltaError> {
    let (base, literals) = (random_bytes("base", 100), [5; 10]);
    let mut target = Vec::new();
    Slices { instructions, literals: &literals }.decode(&base, target_bytes, &mut target)?;
    Ok(target.len())
}

#[test]
fn instructions_that_reach_too_far_are_errors() {
    assert_eq!(follow(&[20, 0], 60), Ok(60));
    assert_eq!(follow(&[20, 90], 100), Ok(100));
    assert_eq!(follow(&[20, 0], 101), Err(DeltaError::OutsideBase), "beyond the end of the base");
    assert_eq!(follow(&[21, 20, 0], 30), Err(DeltaError::OutsideBase), "before its begin");
    assert_eq!(follow(&[21, 18, 0], 30), Ok(30), "at its begin");
    assert_eq!(follow(&[22, 0], 60), Err(DeltaError::Truncated), "more literals than there are");
    assert_eq!(follow(&[20, 51], 60), Err(DeltaError::WrongLength), "a copy that is too long");
    assert_eq!(follow(&[20], 9), Err(DeltaError::WrongLength), "literals that are too many");
    assert_eq!(follow(&[21], 10), Err(DeltaError::WrongLength), "a jump without a copy");
    assert_eq!(follow(&[18], 9), Err(DeltaError::TrailingBytes), "a literal is left");
    assert_eq!(follow(&[20, 0, 0], 60), Err(DeltaError::TrailingBytes), "an instruction is left");
    assert_eq!(follow(&[20, 10], 60), Err(DeltaError::Truncated));
    assert_eq!(follow(&[], 1), Err(DeltaError::Truncated));
    assert_eq!(follow(&[0x80, 0x80, 0x80, 0x80, 0x80, 1], 60), Err(DeltaError::NumberTooLong));
    assert_eq!(follow(&[0xFF, 0xFF, 0xFF, 0xFF, 0x7F], 60), Err(DeltaError::WrongLength));
    assert_eq!(follow(&[21, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0], 60), Err(DeltaError::OutsideBase));
    assert_eq!(follow(&[21, 0xFE, 0xFF, 0xFF, 0xFF, 0x7F, 0], 60), Err(DeltaError::OutsideBase));
}

#[test]
fn the_delta_of_another_codec_is_not_taken_for_its_own() {
    let pair = (random_bytes("base", 1000), random_bytes("base", 1000));
    let all: Vec<Vec<u8>> = codecs().iter_mut().map(|codec| delta(&mut **codec, &pair)).collect();
    let refused = target(&mut *codecs()[0], &pair.0, &all[1], 1000);
    assert_eq!(refused, Err(DeltaError::UnknownVersion { version: 2 }));
    let refused = target(&mut *codecs()[1], &pair.0, &all[0], 1000);
    assert_eq!(refused, Err(DeltaError::UnknownVersion { version: 1 }));
}

/// A few bytes that claim to be a stream of gigabytes.
#[test]
fn a_pool_that_claims_to_be_huge_is_refused_before_memory_is_asked_for() {
    let claim = [0xFF, 0xFF, 0xFF, 0xFF, 0x7F];
    let pool = [&[1][..], &claim, &[0], &[0, 0]].concat();
    let refused = PoolReader::new().open(&pool, usize::MAX).map(|_| ());
    assert!(matches!(refused, Err(DeltaError::PoolTooLong { .. })), "{refused:?}");
}
