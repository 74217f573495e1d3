//! Pairs of chunks as a backup finds them: each new chunk of a version and the chunk of an earlier one that has the
//! most features in common with it.

use super::candidates::candidates;
use anyhow::Result;
use siltstone_lab::sketch::parallel::in_parallel;
use siltstone_lab::sketch::versions::Versions;
use siltstone_similar::delta::{ChunkDelta, Prefix};
use siltstone_similar::region::{Level, RegionEncoder};

/// Neighbours that are taken or left out together: deltas of neighbours are alike.
const RUN_PAIRS: usize = 64;
/// The level that decides which pairs are worth a delta.
const LEVEL: i32 = 3;

/// A chunk and its base.
#[derive(Clone, Copy)]
pub(super) struct Pair<'d> {
    pub(super) base: &'d [u8],
    pub(super) target: &'d [u8],
    /// True if a delta costs less than half of the chunk alone, both by zstd.
    pub(super) is_accepted: bool,
}

/// Runs of pairs evenly taken from all there are, of about so many bytes in all.
pub(super) fn find<'d>(versions: &Versions<'d>, bytes_max: u64) -> Result<Vec<Pair<'d>>> {
    let numbers = taken(versions, &alike(versions), bytes_max);
    let pairs = in_parallel(numbers.len(), |at| {
        let (base, target) = numbers[at];
        pair(versions.bytes(base), versions.bytes(target))
    });
    pairs.into_iter().collect()
}

/// Base and target of every chunk that resembles one of an earlier version; what is offered for its place alone has no
/// weight.
fn alike(versions: &Versions) -> Vec<(usize, usize)> {
    let numbered = candidates(versions).into_iter().enumerate();
    let pairs = numbered.filter_map(|(target, offers)| {
        let likest = offers.first().filter(|offer| offer.weight > 0)?;
        Some((likest.number, target))
    });
    pairs.collect()
}

fn taken(versions: &Versions, all: &[(usize, usize)], bytes_max: u64) -> Vec<(usize, usize)> {
    let bytes: u64 = all.iter().map(|(_, target)| versions.bytes(*target).len() as u64).sum();
    // In thousandths, so that runs are left out evenly.
    let step = (1000 * bytes).div_ceil(bytes_max).max(1000);
    let is_taken = |run: u64| (run * 1000) % step < 1000;
    let runs = all.chunks(RUN_PAIRS).zip(0..).filter(|(_, run)| is_taken(*run));
    runs.flat_map(|(pairs, _)| pairs).copied().collect()
}

fn pair<'d>(base: &'d [u8], target: &'d [u8]) -> Result<Pair<'d>> {
    let mut whole = Vec::new();
    RegionEncoder::new(Level::Zstd(LEVEL))?.encode(&[], &[target], &mut whole);
    let is_accepted = Prefix::new(Level::Zstd(LEVEL))?.encode(base, target, whole.len() / 2, &mut Vec::new()).is_ok();
    Ok(Pair { base, target, is_accepted })
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_lab::sketch::versions::{Known, Order};
    use siltstone_testbed::data::Data;
    use siltstone_testbed::deterministic::Sequence;

    #[test]
    fn a_changed_chunk_is_paired_with_what_it_was() {
        let first = Sequence::new(5).bytes(400_000);
        let mut second = first.clone();
        second[200_000..200_010].fill(7);
        let bytes = [first, second].concat();
        let data = Data { ends: vec![400_000, 800_000], ..Data::single("d", String::new(), bytes) };
        let versions = Versions::of(&data, 8192, Order::OldestFirst, Known::VersionBefore).unwrap();
        let pairs = find(&versions, u64::MAX / 1000).unwrap();
        assert!((1..4).contains(&pairs.len()), "{}", pairs.len());
        assert!(pairs.iter().any(|pair| pair.is_accepted));
    }
}
