//! Two stages: first every place where a cut may be, by many heads at once; then the cuts among them.
//!
//! Source: SS-CDC, SYSTOR'19, as `VectorCDC`, TOS'25, section 3.2 tells it. The cuts are those of `gear` and `crc`.
//!
//! ```text
//! stage 1   a segment of the data is parted into as many regions as a vector has words; each lane rolls over one of them,
//!           warmed up over the window before it, and a place below the threshold is marked in a bitmap, one bit per byte
//! stage 2   from the start of a chunk, the first mark from `first` on that lies before `max`; else `max`
//! ```
//!
//! Reasons:
//! 1. **Candidates do not depend on cuts**, for the hash is one of a whole window, so heads may start anywhere. What is
//!    lost is the skipping of bytes below the smallest size.
//! 2. **Gathers.** The heads are far apart, so their bytes come by a gather, four at a time; their table entries by
//!    another, every time. That is what bounds the speed: sixteen loads in disguise. Marks are rare and set one by one,
//!    where the paper scatters.
//! 3. **Segments** bound the bitmap and keep the second stage's marks in the cache. A chunk may span any number of
//!    them.
//!
//! A single [`cut`](Chunker::cut) has no segment to look at and rolls as the scalar form does; `cut_all` is where the
//! two stages are. Instruction sets without gathers do the same lane by lane.

use crate::crc::{self, CrcHash};
use crate::rolling::{CutHash, Rolling};
use crate::{Chunker, Isa, Sizes};
use alloc::vec;
use alloc::vec::Vec;
use siltstone_rolling::{Gear, RollingHash};
use siltstone_simd::{Kernel, Simd};

/// Bytes whose candidates are found before their cuts: their bitmap takes an eighth of it. A power of two would put the
/// sixteen heads into one set of a cache; so they are four lines apart.
const SEGMENT_BYTES: usize = (1 << 20) + 16 * 256;

/// A rolling hash in many lanes.
pub(crate) trait LanesHash: CutHash + RollingHash<Value = u32> {
    /// The values one byte on. The bytes are the lowest of each lane.
    fn slide_lanes<S: Simd>(&self, s: S, value: S::Word, leaving: S::Word, entering: S::Word) -> S::Word;

    /// Lanes whose h lies below the threshold.
    fn lanes_below<S: Simd>(s: S, value: S::Word, threshold: u32) -> u64;
}

impl LanesHash for Gear {
    #[inline(always)]
    fn slide_lanes<S: Simd>(&self, s: S, value: S::Word, _: S::Word, entering: S::Word) -> S::Word {
        s.words_add(s.words_add(value, value), s.words_lookup(self.table(), entering))
    }

    #[inline(always)]
    fn lanes_below<S: Simd>(s: S, value: S::Word, threshold: u32) -> u64 {
        s.words_lt(value, s.words_splat(threshold))
    }
}

impl LanesHash for CrcHash {
    #[inline(always)]
    fn slide_lanes<S: Simd>(&self, s: S, value: S::Word, leaving: S::Word, entering: S::Word) -> S::Word {
        let left = s.words_xor(s.words_shr::<8>(value), s.words_lookup(&crc::LEAVING, leaving));
        s.words_xor(left, s.words_lookup(&crc::ENTERING, s.words_xor(value, entering)))
    }

    #[inline(always)]
    fn lanes_below<S: Simd>(s: S, value: S::Word, threshold: u32) -> u64 {
        s.words_lt(s.words_splat(!threshold), value)
    }
}

/// The chunkers `ss-gear` and `ss-crc`.
#[derive(Clone, Debug)]
pub(crate) struct TwoStage<H: LanesHash> {
    rolling: Rolling<H>,
    isa: Isa,
    segment_bytes: usize,
}

impl<H: LanesHash> TwoStage<H> {
    /// The chunker that cuts by `hash`, in its form for `isa`, known by `name`.
    pub(crate) fn new(name: &'static str, hash: H, sizes: Sizes, isa: Isa) -> Self {
        Self { rolling: Rolling::new(name, hash, sizes), isa, segment_bytes: SEGMENT_BYTES }
    }

    /// Stage 1: marks the candidates among `count` lengths from `first` on.
    fn mark(&self, data: &[u8], first: usize, count: usize, marks: &mut Marks) {
        let Rolling { hash, threshold, .. } = &self.rolling;
        let data = &data[first - H::WINDOW_BYTES..first + count];
        marks.clear();
        let done = self.isa.run(MarkLanes { hash, threshold: *threshold, data, marks }).unwrap_or(0);
        let (before, after) = (&data[done..], &data[H::WINDOW_BYTES + done..]);
        let mut value = hash.of(&before[..H::WINDOW_BYTES]);
        for (at, (&leaving, &entering)) in before.iter().zip(after).enumerate() {
            if H::is_below(value, *threshold) {
                marks.set(done + at);
            }
            value = hash.slide(value, leaving, entering);
        }
    }
}

impl<H: LanesHash> Chunker for TwoStage<H> {
    fn name(&self) -> &'static str {
        self.rolling.name()
    }

    fn sizes(&self) -> Sizes {
        self.rolling.sizes()
    }

    fn cut(&self, data: &[u8]) -> usize {
        self.rolling.cut(data)
    }

    fn cut_all(&self, data: &[u8], each: &mut dyn FnMut(usize)) {
        let max = self.sizes().max();
        let mut marks = Marks::new(self.segment_bytes.min(data.len()));
        let mut start = 0;
        for segment in (H::WINDOW_BYTES..data.len()).step_by(self.segment_bytes) {
            let segment_end = data.len().min(segment + self.segment_bytes);
            self.mark(data, segment, segment_end - segment, &mut marks);
            loop {
                let (first, latest) = (start + self.rolling.first(), start.saturating_add(max));
                let end = segment_end.min(latest);
                let cut = match marks.first_in(first.max(segment) - segment, end.saturating_sub(segment)) {
                    Some(at) => segment + at,
                    None if latest <= segment_end => latest,
                    None => break,
                };
                each(cut - start);
                start = cut;
            }
        }
        if start < data.len() {
            each(data.len() - start);
        }
    }
}

/// One bit for each place of a segment.
struct Marks {
    words: Vec<u64>,
}

impl Marks {
    fn new(places: usize) -> Self {
        Self { words: vec![0; places.div_ceil(64)] }
    }

    fn clear(&mut self) {
        self.words.fill(0);
    }

    #[inline]
    fn set(&mut self, place: usize) {
        self.words[place / 64] |= 1 << (place % 64);
    }

    /// The first marked place in `from ..< end`.
    fn first_in(&self, from: usize, end: usize) -> Option<usize> {
        if from >= end {
            return None;
        }
        let mut index = from / 64;
        let mut word = self.words[index] & u64::MAX << (from % 64);
        while word == 0 {
            index += 1;
            if 64 * index >= end {
                return None;
            }
            word = self.words[index];
        }
        let place = 64 * index + word.trailing_zeros() as usize;
        (place < end).then_some(place)
    }
}

/// Marks all but the last few candidates, and says how many places were looked at. `data` begins a window before the
/// first.
struct MarkLanes<'d, H> {
    hash: &'d H,
    threshold: u32,
    data: &'d [u8],
    marks: &'d mut Marks,
}

impl<H: LanesHash> Kernel for MarkLanes<'_, H> {
    type Output = usize;

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // A segment is far smaller than 4 GiB.
    fn run<S: Simd>(self, s: S) -> usize {
        /// Bytes in a word.
        const STEP: usize = 4;
        let Self { hash, threshold, data, marks } = self;
        let entering_bytes = &data[H::WINDOW_BYTES..];
        let region = entering_bytes.len() / S::WORDS / STEP * STEP;
        let (mut values, mut places) = ([0; 16], [0; 16]);
        for lane in 0..S::WORDS {
            places[lane] = (lane * region) as u32;
            values[lane] = hash.of(&data[lane * region..][..H::WINDOW_BYTES]);
        }
        let (mut value, mut place) = (s.words_load(&values), s.words_load(&places));
        for done in (0..region).step_by(STEP) {
            let mut leaving = s.words_gather(data, place);
            let mut entering = s.words_gather(entering_bytes, place);
            for within in 0..STEP {
                let mut below = H::lanes_below(s, value, threshold);
                while below != 0 {
                    marks.set(below.trailing_zeros() as usize * region + done + within);
                    below &= below - 1;
                }
                value = hash.slide_lanes(s, value, leaving, entering);
                leaving = s.words_rotr::<8>(leaving);
                entering = s.words_rotr::<8>(entering);
            }
            place = s.words_add(place, s.words_splat(STEP as u32));
        }
        S::WORDS * region
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        blake3::Hasher::new().update(b"two stages").finalize_xof().fill(&mut bytes);
        bytes
    }

    fn lengths(chunker: &impl Chunker, data: &[u8]) -> Vec<usize> {
        let mut lengths = Vec::new();
        chunker.cut_all(data, &mut |length| lengths.push(length));
        lengths
    }

    fn segments_do_not_show<H: LanesHash + Clone>(hash: &H) {
        let sizes = [
            Sizes::new(64, 150, 300).unwrap(),
            Sizes::new(400, 600, 1300).unwrap(),
            Sizes::unlimited(128).unwrap(),
            Sizes::unlimited(1000).unwrap(),
        ];
        let data = [noise(2000), vec![7; 700], noise(900), vec![0; 1500], [1, 2, 3].repeat(500)].concat();
        for sizes in sizes {
            for isa in Isa::available() {
                for segment_bytes in [1, 7, 63, 64, 65, 300, 1000, 4096, 1 << 20] {
                    let chunker = TwoStage { segment_bytes, ..TwoStage::new("ss", hash.clone(), sizes, isa) };
                    let step = if segment_bytes < 64 { 411 } else { 37 };
                    for data in (0..data.len()).step_by(step).map(|len| &data[data.len() - len..]) {
                        let want = lengths(&chunker.rolling, data);
                        let context = (isa, sizes, segment_bytes, data.len());
                        assert_eq!(lengths(&chunker, data), want, "{context:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn segments_do_not_show_in_gear() {
        segments_do_not_show(&Gear::new());
    }

    #[test]
    fn segments_do_not_show_in_crc() {
        segments_do_not_show(&CrcHash);
    }

    #[test]
    fn several_whole_segments_are_cut_as_the_scalar_form_cuts() {
        let data = noise(3 * SEGMENT_BYTES + 12_345);
        let sizes = Sizes::quarter(8 << 10).unwrap();
        for isa in [Isa::SCALAR, Isa::best()] {
            for len in [SEGMENT_BYTES, SEGMENT_BYTES + 32, SEGMENT_BYTES + 49, data.len()] {
                let gear = TwoStage::new("ss", Gear::new(), sizes, isa);
                assert_eq!(lengths(&gear, &data[..len]), lengths(&gear.rolling, &data[..len]));
                let crc = TwoStage::new("ss", CrcHash, sizes, isa);
                assert_eq!(lengths(&crc, &data[..len]), lengths(&crc.rolling, &data[..len]));
            }
        }
    }
}
