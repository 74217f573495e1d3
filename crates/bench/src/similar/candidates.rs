//! Candidates that each new chunk may be encoded against: the chunks of earlier versions that share the most features
//! with it, then those of the version before that lie where it lies now.

use siltstone_lab::sketch::versions::Versions;
use siltstone_similar::aligned::{Place, aligned};
use siltstone_similar::index::{Fit, Index};
use siltstone_similar::region::Offer;
use siltstone_similar::sketch::{Shape, Sketch};
use std::collections::HashMap;

/// Taken of either kind.
const EACH: usize = 2;

/// By number of the chunk, likest first.
pub(super) fn candidates(versions: &Versions) -> Vec<Vec<Offer<usize>>> {
    let sketches = versions.sketches();
    let mut index = Index::new(Fit::Best, versions.chunks.len(), Shape::DEFAULT.features(), u32::MAX);
    let mut all = Vec::with_capacity(versions.chunks.len());
    for (version, new) in versions.new.iter().enumerate() {
        let by_place = by_place(versions, version, usize::max);
        for number in new.clone() {
            let beside = by_place.get(&number).into_iter().flatten().copied();
            all.push(offers(versions, &index, sketches[number].as_ref(), beside));
        }
        for number in new.clone() {
            if let Some(sketch) = &sketches[number] {
                index.insert(number as u64, sketch);
            }
        }
    }
    all
}

/// Returns what a chunk with this sketch may be encoded against, likest first: what the index finds, then what lies
/// `beside` it, which has no weight.
pub(super) fn offers(
    versions: &Versions,
    index: &Index,
    sketch: Option<&Sketch>,
    beside: impl Iterator<Item = usize>,
) -> Vec<Offer<usize>> {
    let found = sketch.map(|sketch| index.find_some(sketch, EACH)).unwrap_or_default();
    let found = found.iter().filter_map(|found| Some((usize::try_from(found.number).ok()?, found.matches)));
    let offer = |(number, matches): (usize, usize)| Offer {
        number,
        bytes: versions.bytes(number).len(),
        weight: u32::try_from(matches).unwrap_or(u32::MAX),
    };
    found.chain(beside.map(|number| (number, 0))).map(offer).collect()
}

/// Returns, for the chunks of a version, those of the version before that they lie over. Where that has a chunk at two
/// places, `choose` returns the one that counts.
pub(super) fn by_place(
    versions: &Versions,
    version: usize,
    choose: fn(usize, usize) -> usize,
) -> HashMap<usize, Vec<usize>> {
    let Some(before) = version.checked_sub(1).map(|before| &versions.recipes[before]) else {
        return HashMap::new();
    };
    let bytes = |number: &usize| versions.bytes(*number).len() as u64;
    let ends: Vec<u64> = before
        .iter()
        .scan(0, |end, number| {
            *end += bytes(number);
            Some(*end)
        })
        .collect();
    let mut places: HashMap<usize, usize> = HashMap::new();
    for (place, number) in before.iter().enumerate() {
        places.entry(*number).and_modify(|known| *known = choose(*known, place)).or_insert(place);
    }
    let recipe = &versions.recipes[version];
    let new: Vec<Place> =
        recipe.iter().map(|number| Place { bytes: bytes(number), old: places.get(number).copied() }).collect();
    let numbers = aligned(&new, &ends).into_iter().map(|over| before[over].iter().copied().take(EACH).collect());
    recipe.iter().copied().zip(numbers).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_lab::sketch::versions::{Known, Order};
    use siltstone_testbed::data::Data;
    use siltstone_testbed::deterministic::Sequence;

    #[test]
    fn a_changed_chunk_has_what_it_was_as_its_candidate() {
        let first = Sequence::new(5).bytes(400_000);
        let mut second = first.clone();
        second[200_000] ^= 1;
        let data = Data { ends: vec![400_000, 800_000], ..Data::single("d", String::new(), [first, second].concat()) };
        let versions = Versions::of(&data, 8192, Order::OldestFirst, Known::VersionBefore).unwrap();
        let candidates = candidates(&versions);
        let changed = versions.new[1].start;
        let base = candidates[changed].first().expect("a candidate").number;
        assert!(versions.bytes(base)[..100] == versions.bytes(changed)[..100]);
        assert!(candidates[..changed].iter().all(Vec::is_empty));
    }
}
