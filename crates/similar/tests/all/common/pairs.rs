//! Helpers of the tests of chunk deltas: pairs of chunks of every kind, and the lines of the golden files.

pub mod golden;

pub use super::{cases, random_bytes};

use proptest::prelude::*;
use siltstone_similar::delta::{ChunkDelta, CopyInsert, DeltaError, Prefix};
use siltstone_similar::{Isa, region::Level};

/// A base and a target.
pub type Pair = (Vec<u8>, Vec<u8>);

/// All codecs there are.
pub fn codecs() -> Vec<Box<dyn ChunkDelta>> {
    let prefix = |level| Prefix::new(Level::Zstd(level)).expect("a level");
    vec![Box::new(CopyInsert::new(Isa::highest())), Box::new(prefix(1)), Box::new(prefix(3))]
}

/// The delta of a pair, however long.
pub fn delta(codec: &mut dyn ChunkDelta, (base, target): &Pair) -> Vec<u8> {
    let mut delta = Vec::new();
    codec.encode(base, target, usize::MAX, &mut delta).expect("short enough");
    delta
}

/// Returns the target that a delta makes of a base.
pub fn target(codec: &mut dyn ChunkDelta, base: &[u8], delta: &[u8], bytes: usize) -> Result<Vec<u8>, DeltaError> {
    let mut target = vec![7];
    let result = codec.decode(base, delta, bytes, &mut target);
    assert_eq!(
        target.len(),
        if result.is_ok() { 1 + bytes } else { 1 },
        "what was there stays, and nothing but the target is added"
    );
    result.map(|()| target.split_off(1))
}

/// Random, constant, periodic and few-valued bytes, and words again and again, mixed.
pub fn any_data(part_bytes_max: usize) -> impl Strategy<Value = Vec<u8>> {
    const WORDS: [&str; 10] =
        ["the ", "quick ", "brown ", "fox ", "    ", "\n", "int ", "return ", "0x00000000", "= 2026;"];
    let words = prop::collection::vec(prop::sample::select(&WORDS[..]), 0..part_bytes_max / 4)
        .prop_map(|words| words.concat().into_bytes());
    let part = prop_oneof![4 => super::any_part(part_bytes_max), 1 => words];
    prop::collection::vec(part, 0..4).prop_map(|parts| parts.concat())
}

/// A change to a chunk; places and lengths are taken modulo what there is.
#[derive(Clone, Debug)]
pub enum Edit {
    Insert(usize, Vec<u8>),
    Delete(usize, usize),
    Replace(usize, Vec<u8>),
    Move(usize, usize, usize),
    Repeat(usize, usize),
}

pub fn any_edit() -> impl Strategy<Value = Edit> {
    let place = || any::<u16>().prop_map(usize::from);
    let length = || prop_oneof![0..8usize, 0..70usize, 0..1000usize];
    let bytes = || prop_oneof![prop::collection::vec(any::<u8>(), 0..6), any_data(100)];
    prop_oneof![
        (place(), bytes()).prop_map(|(at, bytes)| Edit::Insert(at, bytes)),
        (place(), length()).prop_map(|(at, bytes)| Edit::Delete(at, bytes)),
        (place(), bytes()).prop_map(|(at, bytes)| Edit::Replace(at, bytes)),
        (place(), length(), place()).prop_map(|(at, bytes, to)| Edit::Move(at, bytes, to)),
        (place(), length()).prop_map(|(at, bytes)| Edit::Repeat(at, bytes)),
    ]
}

/// The chunk after the change.
pub fn edited(mut data: Vec<u8>, edit: &Edit) -> Vec<u8> {
    let stretch = |data: &[u8], at: usize, bytes: usize| {
        let at = at % (data.len() + 1);
        at..at + bytes.min(data.len() - at)
    };
    match edit {
        Edit::Insert(at, bytes) => {
            let place = stretch(&data, *at, 0);
            data.splice(place, bytes.iter().copied());
        }
        Edit::Delete(at, bytes) => {
            data.drain(stretch(&data, *at, *bytes));
        }
        Edit::Replace(at, bytes) => {
            let place = stretch(&data, *at, bytes.len());
            data.splice(place, bytes.iter().copied());
        }
        Edit::Move(at, bytes, to) => {
            let moved: Vec<u8> = data.drain(stretch(&data, *at, *bytes)).collect();
            let place = stretch(&data, *to, 0);
            data.splice(place, moved);
        }
        Edit::Repeat(at, bytes) => {
            let place = stretch(&data, *at, *bytes);
            let repeated = data[place.clone()].to_vec();
            data.splice(place.end..place.end, repeated);
        }
    }
    data
}

/// A chunk and what some changes make of it; or two that have nothing in common.
pub fn any_pair() -> impl Strategy<Value = Pair> {
    let similar = (any_data(6000), prop::collection::vec(any_edit(), 0..12)).prop_map(|(base, edits)| {
        let target = edits.iter().fold(base.clone(), edited);
        (base, target)
    });
    prop_oneof![8 => similar, 1 => (any_data(3000), any_data(3000))]
}
