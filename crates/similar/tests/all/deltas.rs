//! Deltas make what they were made of, and are the same on every instruction set.

use crate::common::pairs::{Edit, any_edit, any_pair, cases, codecs, delta, edited, random_bytes, target};
use proptest::prelude::*;
use siltstone_similar::Isa;
use siltstone_similar::delta::{
    CopyInsert, EncodeError, INPUT_BYTES_MAX, POOL_BYTES_MAX, Parts, PoolReader, PoolWriter,
};
use siltstone_similar::region::Level;

/// Bytes of the longest run of the base of 20 000 bytes below that the index has no word of.
const NEVER_FOUND_BYTES_MAX: usize = 59;

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn a_delta_makes_its_target(pair in any_pair()) {
        for mut codec in codecs() {
            let delta = delta(&mut *codec, &pair);
            let target = target(&mut *codec, &pair.0, &delta, pair.1.len());
            prop_assert_eq!(target.as_ref(), Ok(&pair.1), "{}", codec.name());
        }
    }

    #[test]
    fn every_instruction_set_writes_the_same_delta(pair in any_pair()) {
        let scalar = delta(&mut CopyInsert::new(Isa::SCALAR), &pair);
        for isa in Isa::available() {
            prop_assert_eq!(&delta(&mut CopyInsert::new(isa), &pair), &scalar, "{}", isa);
        }
    }

    #[test]
    fn what_was_encoded_before_does_not_matter(pairs in prop::collection::vec(any_pair(), 1..6)) {
        for mut used in codecs() {
            for pair in &pairs {
                let expected = delta(&mut *used, pair);
                let mut fresh = codecs().into_iter().filter(|codec| codec.name() == used.name());
                prop_assert!(fresh.any(|mut codec| delta(&mut *codec, pair) == expected), "{}", used.name());
            }
        }
    }

    #[test]
    fn a_delta_that_is_too_long_is_not_made(pair in any_pair(), allowed in 0..100usize) {
        for mut codec in codecs() {
            let needed = delta(&mut *codec, &pair).len();
            let bytes_max = needed * allowed / 90;
            let mut out = vec![1, 2, 3];
            match codec.encode(&pair.0, &pair.1, bytes_max, &mut out) {
                Ok(()) => prop_assert!(needed <= bytes_max && out.len() == 3 + needed, "{}", codec.name()),
                Err(error) => {
                    prop_assert_eq!(error, EncodeError::NotWorthIt { bytes_max }, "{}", codec.name());
                    prop_assert!(needed > bytes_max && out == [1, 2, 3], "{}", codec.name());
                }
            }
        }
    }

    #[test]
    fn a_pool_gives_back_every_target(pairs in prop::collection::vec(any_pair(), 0..8)) {
        let mut writer = PoolWriter::new(Isa::highest(), Level::Zstd(3)).expect("a level");
        for (base, target) in &pairs {
            writer.add(base, target, usize::MAX).expect("room");
        }
        let (bytes, mut pool) = (writer.bytes(), Vec::new());
        writer.finish(&mut pool);
        prop_assert!(pool.len() <= bytes + 16);
        prop_assert_eq!(writer.bytes(), 0);
        let mut reader = PoolReader::new();
        let mut deltas = reader.open(&pool, bytes).expect("what was written");
        for (base, target) in &pairs {
            let mut made = vec![7];
            deltas.next(target.len()).expect("a delta").decode(base, target.len(), &mut made).expect("a target");
            prop_assert_eq!(&made[1..], target);
        }
        prop_assert!(deltas.instructions.is_empty() && deltas.literals.is_empty());
        prop_assert!(bytes == 0 || PoolReader::new().open(&pool, bytes - 1).is_err());
    }

    #[test]
    fn one_edit_costs_its_bytes_and_little_more(edit in any_edit()) {
        let base = random_bytes("base", 20_000);
        let changed = edited(base.clone(), &edit);
        // The index keeps one word of those whose hashes meet. So it may have none of a short run, which is then
        // inserted although the base has it; a move gives two such runs, what is moved and what it passes.
        let inserted = match &edit {
            Edit::Insert(_, bytes) | Edit::Replace(_, bytes) => bytes.len(),
            Edit::Delete(..) => 0,
            Edit::Repeat(..) => NEVER_FOUND_BYTES_MAX,
            Edit::Move(..) => 2 * NEVER_FOUND_BYTES_MAX,
        };
        let delta = delta(&mut CopyInsert::new(Isa::highest()), &(base, changed));
        prop_assert!(delta.len() <= inserted + 32, "{} bytes", delta.len());
    }
}

#[test]
fn chunks_of_all_small_lengths_are_encoded() {
    let data = random_bytes("small", 300);
    for mut codec in codecs() {
        for base_bytes in 0..150 {
            for target_bytes in (0..150).step_by(1 + base_bytes % 7) {
                let pair = (data[..base_bytes].to_vec(), data[base_bytes / 3..][..target_bytes].to_vec());
                let delta = delta(&mut *codec, &pair);
                assert_eq!(target(&mut *codec, &pair.0, &delta, target_bytes).as_ref(), Ok(&pair.1));
            }
        }
    }
}

#[test]
fn identical_chunks_cost_a_record_of_two_bytes() {
    let data = random_bytes("same", 8192);
    let delta = delta(&mut CopyInsert::new(Isa::highest()), &(data.clone(), data));
    assert_eq!(delta, [1, 2, 0, 0]);
}

#[test]
fn the_longest_inputs_are_encoded_and_longer_ones_refused() {
    let base: Vec<u8> = random_bytes("long", INPUT_BYTES_MAX);
    let target = [&base[1 << 23..], b"between", &base[..1 << 23]].concat();
    let mut codec = CopyInsert::new(Isa::highest());
    let mut parts = Parts::default();
    let refused = codec.encode_apart(&base, &target, usize::MAX, &mut parts);
    assert_eq!(refused, Err(EncodeError::TooLong { bytes: INPUT_BYTES_MAX + 7 }));
    let target = &target[..INPUT_BYTES_MAX];
    codec.encode_apart(&base, target, usize::MAX, &mut parts).expect("short enough");
    assert!(parts.bytes() < 2000, "{} bytes", parts.bytes());
    let mut made = Vec::new();
    parts.as_slices().decode(&base, target.len(), &mut made).expect("a target");
    assert!(made == target);
}

#[test]
fn a_full_pool_takes_no_more_and_keeps_what_it_has() {
    let target = random_bytes("large", INPUT_BYTES_MAX);
    let mut writer = PoolWriter::new(Isa::highest(), Level::Zstd(1)).expect("a level");
    for _ in 0..POOL_BYTES_MAX / INPUT_BYTES_MAX - 1 {
        writer.add(&[], &target, usize::MAX).expect("room");
    }
    let bytes = writer.bytes();
    assert_eq!(writer.add(&[], &target, usize::MAX), Err(EncodeError::PoolFull));
    assert_eq!(writer.add(&[], &target, 5), Err(EncodeError::NotWorthIt { bytes_max: 5 }));
    assert_eq!(writer.bytes(), bytes);
    writer.add(&target, &target, 2).expect("room for a record");
}
