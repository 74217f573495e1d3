//! Ground on which contenders are compared: versions cut to chunks of one size, and the deltas that any of them asked
//! for. Each delta is encoded once, decoded and compared with what it is of, before its size is told.

use super::contender::{Contender, REFERENCE};
use super::found::{Bases, Found};
use super::parallel::in_parallel;
use super::versions::{Known, Order, Versions};
use crate::experiment::Input;
use anyhow::Result;
use siltstone_chunk::Isa;
use siltstone_similar::delta::{ChunkDelta, CopyInsert};
use siltstone_similar::sketch::{Shape, Sketch};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Deltas made with one codec, one after another: its memory is used again.
const RUN_DELTAS: usize = 64;

/// Numbers of base and target.
type Pair = (usize, usize);

/// Versions, cut and deduplicated.
pub(super) struct Ground<'i> {
    pub(super) versions: Versions<'i>,
    /// Bytes of a chunk, on average, as asked for.
    pub(super) expected_bytes: u32,
    /// All that were ever new.
    pub(super) chunks: Rc<Vec<&'i [u8]>>,
    /// Bytes of copies and insertions, not compressed; or why a delta is wrong.
    deltas: RefCell<HashMap<Pair, Result<u64, String>>>,
    reference_dcr: RefCell<Option<Result<f64, String>>>,
}

impl<'i> Ground<'i> {
    /// The versions of an input, in chunks of this size on average.
    ///
    /// # Errors
    /// If they cannot be read, or cut so.
    pub(super) fn of(input: &'i Input, expected_bytes: u32) -> Result<Rc<Self>> {
        let versions = Versions::of(input.data()?, expected_bytes, Order::OldestFirst, Known::AllBefore)?;
        let chunks = Rc::new((0..versions.chunks.len()).map(|number| versions.bytes(number)).collect());
        let (deltas, reference_dcr) = (RefCell::default(), RefCell::new(None));
        Ok(Rc::new(Self { versions, expected_bytes, chunks, deltas, reference_dcr }))
    }

    /// The sketch of every chunk.
    pub(super) fn sketches(&self, contender: &Contender) -> Vec<Option<Sketch>> {
        let chunks = self.chunks.as_slice();
        in_parallel(chunks.len(), |number| contender.grouped(chunks[number]))
    }

    /// Bytes of the deltas of these pairs; `Err` if one of them does not make its target again.
    pub(super) fn deltas(&self, pairs: &[Pair]) -> Result<Vec<u64>, String> {
        let (chunks, mut known) = (self.chunks.as_slice(), self.deltas.borrow_mut());
        let unknown: Vec<Pair> = pairs.iter().filter(|pair| !known.contains_key(pair)).copied().collect();
        let runs: Vec<&[Pair]> = unknown.chunks(RUN_DELTAS).collect();
        let made = in_parallel(runs.len(), |run| {
            let mut codec = CopyInsert::new(Isa::best());
            let delta = |(base, target): &Pair| delta_bytes(&mut codec, chunks[*base], chunks[*target]);
            runs[run].iter().map(delta).collect::<Vec<_>>()
        });
        known.extend(unknown.into_iter().zip(made.into_iter().flatten()));
        pairs.iter().map(|pair| known[pair].clone()).collect()
    }

    /// The DCR of the reference on this ground; `Err` if a delta is wrong.
    pub(super) fn reference_dcr(&self) -> Result<Result<f64, String>> {
        if let Some(known) = &*self.reference_dcr.borrow() {
            return Ok(known.clone());
        }
        let contender = Contender::named(REFERENCE, Shape::DEFAULT, Isa::SCALAR)?;
        let found = Found::of(self, &Bases::first_fit(self, &contender)).map(|found| found.dcr());
        *self.reference_dcr.borrow_mut() = Some(found.clone());
        Ok(found)
    }
}

/// Bytes of the copies and insertions that make `target` of `base`, decoded and compared.
fn delta_bytes(codec: &mut CopyInsert, base: &[u8], target: &[u8]) -> Result<u64, String> {
    let (mut delta, mut made) = (Vec::new(), Vec::new());
    codec.encode(base, target, usize::MAX, &mut delta).map_err(|error| error.to_string())?;
    codec.decode(base, &delta, target.len(), &mut made).map_err(|error| error.to_string())?;
    if made != target {
        return Err("a delta makes something else than what it is of".into());
    }
    Ok(delta.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delta_of_alike_chunks_is_small_and_of_nothing_whole() {
        let base = crate::deterministic::Sequence::new(6).bytes(8000);
        let mut target = base.clone();
        target[4000] ^= 1;
        let mut codec = CopyInsert::new(Isa::best());
        assert!(delta_bytes(&mut codec, &base, &target).unwrap() < 20);
        assert!(delta_bytes(&mut codec, &[], &target).unwrap() >= 8000);
    }
}
