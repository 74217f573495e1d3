//! Odess+ as its paper rolls it (Odess, Algorithm 2 and Table 3): a vector of 128 bits has as many lanes as windows
//! roll side by side. Sixteen bytes are loaded at once, moved to the lanes that need them, and each lane takes its hash
//! further by one subwindow: `(hash << 4) + subwindow`.
//!
//! ```text
//! windows   lanes            steps for 16 bytes
//! 2         2 of 64 bits     8
//! 4         4 of 32 bits     4
//! 8         8 of 16 bits     2, of four parts each: the sum of a subwindow's four numbers of 16 bits
//! ```
//!
//! Its sketches are those of `odess-plus`, whose form for vectors goes another way (see there). The SSE instructions
//! of the paper are those up to SSE 4.2 here; on ARM it is NEON.

use fearless_simd::prelude::*;
use fearless_simd::{Level, u8x16, u16x8, u32x4, u64x2};
use siltstone_similar::sketch::{OdessPlus, Shape, Sketch, Sketcher, Windows};

/// Its name in tables.
pub(super) const NAME: &str = "odess-plus-words";
/// Bytes loaded at once.
const LOAD_BYTES: usize = 16;
/// Bytes before a load of which its first subwindow still has some, at most.
const BACK: usize = 7;
/// An index that chooses no byte.
const NO_BYTE: u8 = 0xFF;

/// The sketcher.
pub(super) struct WordLanes {
    rules: OdessPlus,
    windows: Windows,
    level: Level,
}

impl WordLanes {
    /// The form that finds what `rules` say, with so many windows; `None` where there are no vectors of 128 bits.
    pub(super) fn new(rules: OdessPlus, windows: Windows) -> Option<Self> {
        let level = Level::new();
        isa_name(level).map(|_| Self { rules, windows, level })
    }

    /// The instruction set it runs on.
    pub(super) fn isa_name(&self) -> &'static str {
        isa_name(self.level).unwrap_or("scalar")
    }

    fn sampled(&self, chunk: &[u8]) -> Vec<u32> {
        #[cfg(target_arch = "x86_64")]
        if let Some(sse) = self.level.as_sse4_2() {
            return sse.vectorize(
                #[inline(always)]
                || self.sampled_by(sse, chunk),
            );
        }
        #[cfg(target_arch = "aarch64")]
        if let Some(neon) = self.level.as_neon() {
            return neon.vectorize(
                #[inline(always)]
                || self.sampled_by(neon, chunk),
            );
        }
        unreachable!("it is made where there are such vectors only: {} bytes", chunk.len())
    }

    #[inline(always)]
    fn sampled_by<S: Simd>(&self, s: S, chunk: &[u8]) -> Vec<u32> {
        let (places, boundary) = (&chunk[..OdessPlus::places(chunk)], self.rules.boundary());
        // Twice as many as are sampled at the usual rate.
        let mut sample = Vec::with_capacity(places.len() / 64);
        match self.windows {
            Windows::Two => two(s, places, boundary, &mut sample),
            Windows::Four => four(s, places, boundary, &mut sample),
            Windows::Eight => eight(s, places, boundary, &mut sample),
        }
        sample
    }
}

/// The instruction set of vectors of 128 bits, where there are some.
fn isa_name(level: Level) -> Option<&'static str> {
    #[cfg(target_arch = "x86_64")]
    return level.as_sse4_2().map(|_| "sse4.2");
    #[cfg(target_arch = "aarch64")]
    return level.as_neon().map(|_| "neon");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return {
        let _ = level;
        None
    };
}

impl Sketcher for WordLanes {
    fn name(&self) -> &'static str {
        NAME
    }

    fn shape(&self) -> Shape {
        self.rules.shape()
    }

    fn sketch(&self, chunk: &[u8]) -> Option<Sketch> {
        self.rules.of_sample(&self.sampled(chunk))
    }
}

/// Which bytes of a load make the subwindows of a step: byte `b` of lane `k` is the one `b + 2 part` places before the
/// lane's own, as far as `bytes` of a lane have one. The first step looks into a load that begins [`BACK`] bytes
/// earlier.
const fn shuffle(windows: usize, bytes: usize, step: usize, part: usize) -> [u8; LOAD_BYTES] {
    let mut indices = [NO_BYTE; LOAD_BYTES];
    let lane_bytes = LOAD_BYTES / windows;
    let first = if step == 0 { BACK } else { step * windows };
    let mut lane = 0;
    while lane < windows {
        let mut byte = 0;
        while byte < bytes {
            #[allow(clippy::cast_possible_truncation)] // Below 16.
            let at = (first + lane - byte - 2 * part) as u8;
            indices[lane * lane_bytes + byte] = at;
            byte += 1;
        }
        lane += 1;
    }
    indices
}

macro_rules! roll {
    ($name:ident: $windows:literal windows, $bytes:literal bytes of $parts:literal parts in $vector:ident of $number:ty;
     $splat:ident $add:ident $shl:ident $ge:ident $mask:ident) => {
        #[inline(always)]
        // Boundaries have the bits of a lane, and functions take the low half of a hash.
        #[allow(clippy::cast_possible_truncation, clippy::cast_lossless)]
        fn $name<S: Simd>(s: S, places: &[u8], boundary: u64, sample: &mut Vec<u32>) {
            const STEPS: usize = LOAD_BYTES / $windows;
            const SHUFFLES: [[[u8; LOAD_BYTES]; $parts]; STEPS] = {
                let mut all = [[[0; LOAD_BYTES]; $parts]; STEPS];
                let mut step = 0;
                while step < STEPS {
                    let mut part = 0;
                    while part < $parts {
                        all[step][part] = shuffle($windows, $bytes, step, part);
                        part += 1;
                    }
                    step += 1;
                }
                all
            };
            let shuffles = SHUFFLES.map(|parts| parts.map(|indices| u8x16::simd_from(s, indices)));
            let least = s.$splat(boundary as $number);
            let (mut hashes, mut before) = (s.$splat(0), s.splat_u8x16(0));
            for load in places.chunks_exact(LOAD_BYTES) {
                let data = u8x16::from_slice(s, load);
                let back = s.slide_u8x16::<{ LOAD_BYTES - BACK }>(before, data);
                // All are written, and none is read again but where it is sampled: the lanes stay in their register.
                let (mut rolled, mut sampled) = ([[0; $windows]; STEPS], 0_u64);
                for (step, parts) in shuffles.iter().enumerate() {
                    let source = if step == 0 { back } else { data };
                    let subwindow = |indices| -> $vector<S> { s.swizzle_dyn_precise_u8x16(source, indices).bitcast() };
                    let mut value = subwindow(parts[0]);
                    for indices in &parts[1..] {
                        value = s.$add(value, subwindow(*indices));
                    }
                    hashes = s.$add(s.$shl(hashes, 4), value);
                    rolled[step] = hashes.into();
                    sampled |= s.$mask(s.$ge(hashes, least)) << (step * $windows);
                }
                while sampled != 0 {
                    let place = sampled.trailing_zeros() as usize;
                    let hash: $number = rolled[place / $windows][place % $windows];
                    sample.push(hash as u32);
                    sampled &= sampled - 1;
                }
                before = data;
            }
        }
    };
}

roll!(two: 2 windows, 2 bytes of 1 parts in u64x2 of u64;
      splat_u64x2 add_u64x2 shl_u64x2 simd_ge_u64x2 to_bitmask_mask64x2);
roll!(four: 4 windows, 4 bytes of 1 parts in u32x4 of u32;
      splat_u32x4 add_u32x4 shl_u32x4 simd_ge_u32x4 to_bitmask_mask32x4);
roll!(eight: 8 windows, 2 bytes of 4 parts in u16x8 of u16;
      splat_u16x8 add_u16x8 shl_u16x8 simd_ge_u16x8 to_bitmask_mask16x8);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deterministic::Sequence;
    use siltstone_chunk::Isa;
    use siltstone_similar::sketch::Rate;

    #[test]
    fn word_lanes_find_what_the_definition_finds() {
        let mut sequence = Sequence::new(12);
        for windows in [Windows::Two, Windows::Four, Windows::Eight] {
            for length in (0..200).chain([1000, 4097, 8192, 20_000]) {
                let chunk = sequence.bytes(length);
                let rules = |isa| OdessPlus::new("odess-plus", windows, Rate::DEFAULT, Shape::DEFAULT, isa);
                let Some(lanes) = WordLanes::new(rules(Isa::best()), windows) else { return };
                let expected = rules(Isa::SCALAR).sketch(&chunk);
                assert_eq!(lanes.sketch(&chunk), expected, "{windows:?}, {length} bytes");
            }
        }
    }
}
