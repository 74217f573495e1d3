//! Versions stored as regions, each encoded against the chunks its members resemble: what `silt` is to do, on data in
//! memory. Every region is decoded again and compared.

use super::candidates::{by_place, offers};
use super::costs::Costs;
use anyhow::{Result, ensure};
use siltstone_lab::sketch::versions::Versions;
use siltstone_similar::benefit::Benefit;
use siltstone_similar::index::{Fit, Index};
use siltstone_similar::region::{Level, Offer, RegionDecoder, RegionEncoder, choose_bases};
use siltstone_similar::sketch::{Shape, Sketch};
use std::collections::BTreeMap;
use std::mem;
use std::rc::Rc;

/// Bases of a region, in bytes of its text.
const BASES_OF_TEXT: usize = 3;

/// Parameters by which regions are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    /// The longest chain of deltas; none bounds it not.
    pub(super) depth: Option<u32>,
    /// Text of a region, bytes.
    pub(super) region_bytes: usize,
    /// Effort of the encoder.
    pub(super) level: Level,
}

/// Sums over all regions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Laid {
    pub(super) bytes: u64,
    /// Bytes of bases, read to encode.
    pub(super) base_bytes: u64,
    pub(super) deepest: u32,
}

/// A region being filled.
#[derive(Default)]
struct Open {
    members: Vec<usize>,
    bytes: usize,
    /// Bases offered to each member, likest first.
    offers: Vec<Vec<Offer<usize>>>,
}

struct Store<'v, 'd> {
    versions: &'v Versions<'d>,
    costs: &'v Costs<'v, 'd>,
    sketches: &'v [Option<Sketch>],
    chain: Chain,
    index: Index,
    /// Bases of each chunk's region.
    bases: Vec<Rc<[usize]>>,
    depth: Vec<u32>,
    encoder: RegionEncoder,
    decoder: RegionDecoder,
    laid: Laid,
}

/// Stores all versions so.
pub(super) fn lay(versions: &Versions, costs: &Costs, sketches: &[Option<Sketch>], chain: Chain) -> Result<Laid> {
    let count = versions.chunks.len();
    let mut store = Store {
        versions,
        costs,
        sketches,
        chain,
        index: Index::new(Fit::Best, count, Shape::DEFAULT.features(), 1),
        bases: vec![Rc::from([]); count],
        depth: vec![0; count],
        encoder: RegionEncoder::new(chain.level)?,
        decoder: RegionDecoder::new(),
        laid: Laid::default(),
    };
    for at in 0..versions.recipes.len() {
        store.add(at)?;
    }
    Ok(store.laid)
}

impl Store<'_, '_> {
    fn add(&mut self, version: usize) -> Result<()> {
        let (recipe, new) = (&self.versions.recipes[version], self.versions.new[version].clone());
        self.index.next_snapshot();
        let mut kept = vec![false; self.depth.len()];
        for number in recipe.iter().filter(|number| !new.contains(number)) {
            self.keep(*number, &mut kept);
        }
        let by_place = by_place(self.versions, version, usize::min);
        // Of each depth one: a region is as deep as its deepest base, and so is every member. And what little is
        // expected of stays apart, because a region is kept or not as a whole.
        let mut open: BTreeMap<(u32, bool), Open> = BTreeMap::new();
        for number in new {
            let offers = self.offers(number, by_place.get(&number));
            let open = open.entry(self.apart(&offers)).or_default();
            open.members.push(number);
            open.bytes += self.versions.bytes(number).len();
            open.offers.push(offers);
            if open.bytes >= self.chain.region_bytes {
                let full = mem::take(open);
                self.write(full, &mut kept)?;
            }
        }
        open.into_values().try_for_each(|open| self.write(open, &mut kept))
    }

    /// The depth of what is encoded against these, and whether it can be expected to pay; where chains are not bounded,
    /// only whether there are any.
    fn apart(&self, offers: &[Offer<usize>]) -> (u32, bool) {
        let deepest = offers.iter().map(|offer| self.depth[offer.number] + 1).max().unwrap_or(0);
        if self.chain.depth.is_none() {
            return (deepest.min(1), true);
        }
        let matches = offers.first().map_or(0, |first| first.weight as usize);
        (deepest, Benefit::DEFAULT.expects(matches, Shape::DEFAULT.features()))
    }

    /// The chunks to encode a new one against, likest first. Where chains are bounded, none deeper than the first.
    fn offers(&self, number: usize, by_place: Option<&Vec<usize>>) -> Vec<Offer<usize>> {
        let beside = by_place.into_iter().flatten().copied().filter(|base| self.may_be_base(*base));
        let mut offers = offers(self.versions, &self.index, self.sketches[number].as_ref(), beside);
        if self.chain.depth.is_some() {
            let depth = offers.first().map(|first| self.depth[first.number]);
            offers.retain(|offer| Some(self.depth[offer.number]) <= depth);
        }
        offers
    }

    fn may_be_base(&self, number: usize) -> bool {
        self.chain.depth.is_none_or(|depth| self.depth[number] < depth)
    }

    /// Encodes a region; where that does not pay, and chains are bounded, its chunks stay whole.
    fn write(&mut self, open: Open, kept: &mut [bool]) -> Result<()> {
        if open.members.is_empty() {
            return Ok(());
        }
        let offers: Vec<&[Offer<usize>]> = open.offers.iter().map(Vec::as_slice).collect();
        let bases = choose_bases(&offers, BASES_OF_TEXT * open.bytes);
        let payload = self.encode(&bases, &open.members)?;
        let plain: u64 = open.members.iter().map(|member| self.costs.plain(*member)).sum();
        let pays = self.chain.depth.is_none() || Benefit::DEFAULT.accepts(payload, plain);
        let (bases, payload) =
            if bases.is_empty() || pays { (bases, payload) } else { (Vec::new(), self.encode(&[], &open.members)?) };
        self.laid.bytes += payload;
        let depth = bases.iter().map(|base| self.depth[*base] + 1).max().unwrap_or(0);
        self.laid.deepest = self.laid.deepest.max(depth);
        let bases: Rc<[usize]> = bases.into();
        for number in open.members {
            self.depth[number] = depth;
            self.bases[number] = bases.clone();
            self.keep(number, kept);
            if let (Some(sketch), true) = (&self.sketches[number], self.may_be_base(number)) {
                self.index.insert(number as u64, sketch);
            }
        }
        Ok(())
    }

    fn encode(&mut self, bases: &[usize], members: &[usize]) -> Result<u64> {
        let bytes = |numbers: &[usize]| numbers.iter().map(|number| self.versions.bytes(*number)).collect::<Vec<_>>();
        let (bases, members) = (bytes(bases), bytes(members));
        let mut payload = Vec::new();
        let form = self.encoder.encode(&bases, &members, &mut payload);
        self.laid.base_bytes += bases.iter().map(|base| base.len() as u64).sum::<u64>();
        let text_bytes = members.iter().map(|member| member.len()).sum();
        let text = self.decoder.decode(form, &bases, &payload, text_bytes)?;
        ensure!(members.concat() == text, "a region of {text_bytes} bytes was decoded to something else");
        Ok(payload.len() as u64)
    }

    /// A chunk is needed with all it hangs on.
    fn keep(&mut self, number: usize, kept: &mut [bool]) {
        let mut needed = vec![number];
        while let Some(number) = needed.pop() {
            if !mem::replace(&mut kept[number], true) {
                self.index.keep(number as u64);
                needed.extend(self.bases[number].iter());
            }
        }
    }
}
