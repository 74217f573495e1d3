//! SWPR: windows that roll side by side, each a subwindow of several bytes at a time.
//!
//! Source: Odess, TOS, section 3.4, and Table 3 for the numbers of windows. The definition, which is format; W windows
//! (2, 4 or 8) make values of B = 128 / W bits:
//!
//! ```text
//! v(L)   the subwindow of W bytes that end at L, as a big-endian number, its parts of B bits added:
//!        W = 2, 4: the number itself;  W = 8: the sum of four numbers of 16 bits
//! h(L)   (h(L - W) << 4) + v(L)         (mod 2^B)
//!      = sum over j in 0 .. B / 4 of v(L - W j) << 4 j:  the 32 bytes before L, whatever W is
//! ```
//!
//! Reasons:
//! 1. **Bytes that are not there are 0**, as in the paper's algorithms, so every place of a chunk has a value.
//!    Algorithm 1 also takes the first byte of a chunk for one that is not there, Algorithm 2 does not; nor do we.
//! 2. **W = 8**: the paper says that eight bytes are mapped to 16 bits, not how. A sum lets all of them count.
//! 3. **Vectors need no rolling**: the sum is a FIR filter, which gives the values of many neighbouring places at once,
//!    the same to the bit ([`Roll`] by words, for four windows; [`CandidateFilter`] the highest bytes only, by bytes).

mod filter;
mod vectors;

pub use filter::CandidateFilter;
pub use vectors::{GROUP, Group, Roll};

/// Bytes that decide on a value.
pub const WINDOW_BYTES: usize = 32;

/// `h(end)` for so many windows, summed from its terms.
///
/// # Panics
/// If `end` is not in `32 ..= data.len()`.
#[inline(always)]
pub fn hash<const WINDOWS: usize>(data: &[u8], end: usize) -> u64 {
    let window = &data[end - WINDOW_BYTES..end];
    let word = |word: &[u8]| word.first_chunk().map_or(0, |word| u32::from_be_bytes(*word));
    let eight = |eight: &[u8]| eight.first_chunk().map_or(0, |eight| u64::from_be_bytes(*eight));
    match WINDOWS {
        2 => window.chunks_exact(8).map(eight).fold(0, |sum: u64, eight| (sum << 16).wrapping_add(four_terms(eight))),
        4 => window.chunks_exact(4).map(word).fold(0, |sum: u32, word| (sum << 4).wrapping_add(word)).into(),
        _ => {
            // The sums of every other part stay below 2^30: they are added at the end.
            let parts = window
                .chunks_exact(8)
                .map(eight)
                .fold(0, |sum: u64, eight| (sum << 4) + (eight & EVERY_OTHER) + (eight >> 16 & EVERY_OTHER));
            (parts + (parts >> 32)) & 0xFFFF
        }
    }
}

/// Mask of the first and third of four numbers of 16 bits.
const EVERY_OTHER: u64 = 0x0000_FFFF_0000_FFFF;

/// Four subwindows of two bytes, the last one lowest, each four bits higher than the next.
#[inline(always)]
fn four_terms(subwindows: u64) -> u64 {
    let pairs = (subwindows & EVERY_OTHER) + ((subwindows >> 16 & EVERY_OTHER) << 4);
    (pairs & 0xFFFF_FFFF) + (pairs >> 32 << 8)
}

/// The values of one place after another, `WINDOWS` rolling in turn: the definition word for word.
#[derive(Clone, Debug)]
pub struct RollingWindows<const WINDOWS: usize> {
    /// The last value of each window.
    values: [u64; WINDOWS],
    /// Number of the window whose turn it is.
    turn: usize,
    /// The bytes before, the last one lowest.
    bytes: u64,
}

impl<const WINDOWS: usize> RollingWindows<WINDOWS> {
    /// Bits of a value.
    pub const BITS: u32 = 128 >> WINDOWS.ilog2();

    /// Creates the hash with no bytes before.
    pub fn new() -> Self {
        Self { values: [0; WINDOWS], turn: 0, bytes: 0 }
    }

    /// The value of the place after `byte`.
    #[inline(always)]
    pub fn next(&mut self, byte: u8) -> u64 {
        self.bytes = self.bytes << 8 | u64::from(byte);
        self.turn = (self.turn + 1) % WINDOWS;
        let value = (self.values[self.turn] << 4).wrapping_add(self.subwindow()) & u64::MAX >> (64 - Self::BITS);
        self.values[self.turn] = value;
        value
    }

    #[inline(always)]
    fn subwindow(&self) -> u64 {
        let bytes = self.bytes & u64::MAX >> (64 - 8 * WINDOWS);
        if WINDOWS < 8 {
            return bytes;
        }
        (0..4).fold(0, |sum, part| sum + (bytes >> (16 * part) & 0xFFFF))
    }
}

impl<const WINDOWS: usize> Default for RollingWindows<WINDOWS> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use siltstone_simd::{Isa, Kernel, Simd};

    fn noise(len: usize) -> Vec<u8> {
        let mut bytes = alloc::vec![0; len];
        blake3::Hasher::new().update(b"swpr").finalize_xof().fill(&mut bytes);
        bytes
    }

    /// `h(end)` of the definition's last line.
    fn defined(windows: usize, data: &[u8], end: usize) -> u64 {
        let bits = 128 / windows;
        let byte = |at: usize| if at < 64 { 0 } else { u128::from(data[at - 64]) };
        let value = |j: usize| {
            let last = 64 + end - windows * j;
            let number = (last - windows..last).fold(0, |number, at| number << 8 | byte(at));
            if windows == 8 { (0..4).map(|part| number >> (16 * part) & 0xFFFF).sum() } else { number }
        };
        let sum = (0..bits / 4).fold(0, |sum: u128, j| sum + (value(j) << (4 * j)));
        u64::try_from(sum % (1 << bits)).unwrap()
    }

    fn rolls_as_defined<const WINDOWS: usize>() {
        let data = noise(100);
        let mut rolled = RollingWindows::<WINDOWS>::new();
        for end in 1..=100 {
            assert_eq!(rolled.next(data[end - 1]), defined(WINDOWS, &data, end), "{WINDOWS} windows, {end}");
        }
    }

    #[test]
    fn rolled_values_are_those_of_the_definition() {
        rolls_as_defined::<2>();
        rolls_as_defined::<4>();
        rolls_as_defined::<8>();
    }

    #[test]
    fn the_sum_of_terms_is_the_rolled_value() {
        let data = [noise(200), alloc::vec![255; 50]].concat();
        for end in WINDOW_BYTES..=data.len() {
            assert_eq!(hash::<2>(&data, end), defined(2, &data, end));
            assert_eq!(hash::<4>(&data, end), defined(4, &data, end));
            assert_eq!(hash::<8>(&data, end), defined(8, &data, end));
        }
    }

    /// Every value found by words.
    struct Values<'d>(&'d [u8]);

    impl Kernel for Values<'_> {
        type Output = ();

        #[inline(always)]
        fn run<S: Simd>(self, s: S) {
            let data = &[&[0; WINDOW_BYTES], self.0].concat()[..];
            let values: Vec<u64> = (WINDOW_BYTES..data.len()).map(|at| hash::<4>(data, at + 1)).collect();
            let mut roll = Roll::new(s);
            for (group, values) in values.chunks_exact(GROUP).enumerate() {
                let at = WINDOW_BYTES + group * GROUP;
                let hashes = roll.next(s, &data[at - 3..at + GROUP]);
                for (hash, values) in hashes.into_iter().zip(values.chunks(S::WORDS)) {
                    let mut words = [0; 16];
                    s.words_store(hash, &mut words);
                    assert!(words.iter().map(|word| u64::from(*word)).zip(values).all(|(a, b)| a == *b), "{}", S::ISA);
                }
            }
        }
    }

    /// Checks that no value above a boundary is missed by bytes.
    struct Missed<'d, const WINDOWS: usize>(&'d [u8]);

    impl<const WINDOWS: usize> Kernel for Missed<'_, WINDOWS> {
        type Output = ();

        #[inline(always)]
        #[allow(clippy::cast_precision_loss)]
        fn run<S: Simd>(self, s: S) {
            let data = &[&[0; WINDOW_BYTES], self.0].concat()[..];
            let values: Vec<u64> = (WINDOW_BYTES..data.len()).map(|at| hash::<WINDOWS>(data, at + 1)).collect();
            let greatest = u64::MAX >> (64 - RollingWindows::<WINDOWS>::BITS);
            let before = CandidateFilter::<S, WINDOWS>::BEFORE;
            let some = (0..225).map(|part| greatest / 225 * part);
            for boundary in some.chain([greatest - greatest / 32, greatest - greatest / 128, greatest]) {
                let mut filter = CandidateFilter::<S, WINDOWS>::new(s, boundary);
                let mut let_through = 0;
                for (vector, values) in values.chunks_exact(S::LANES).enumerate() {
                    let at = WINDOW_BYTES + vector * S::LANES;
                    let mask = filter.next(s, &data[at - before..at + S::LANES]);
                    let_through += mask.count_ones();
                    for (lane, value) in values.iter().enumerate() {
                        assert!(mask >> lane & 1 == 1 || *value < boundary, "{}, {boundary:x}: {value:x}", S::ISA);
                    }
                }
                let most = (greatest - boundary) as f64 / greatest as f64 + 0.02;
                if self.0.iter().any(|byte| (1..255).contains(byte)) {
                    let share = f64::from(let_through) / values.len() as f64;
                    assert!(share < most, "{WINDOWS} windows, {}, {boundary:x}: {share}", S::ISA);
                }
            }
        }
    }

    #[test]
    fn vectors_find_the_same_on_every_instruction_set() {
        let len = if cfg!(target_arch = "x86_64") { 20_000 } else { 4000 };
        let extremes = noise(len).into_iter().map(|byte| if byte % 2 == 0 { 0 } else { 255 }).collect::<Vec<_>>();
        for isa in Isa::available() {
            for data in [&noise(len), &extremes] {
                isa.run(Values(data));
                isa.run(Missed::<2>(data));
                isa.run(Missed::<4>(data));
                isa.run(Missed::<8>(data));
            }
        }
    }
}
