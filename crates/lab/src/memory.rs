//! The floors beneath every chunker: what reading the data alone takes. Eight vectors in flight hide the latency of the
//! loads.

use siltstone_simd::{Isa, Kernel, Simd};

const VECTORS: usize = 8;

/// The largest byte of the whole blocks of `data`, by the vectors of `isa`: a result that no byte can be left out of.
/// Without vectors, byte by byte.
pub fn largest(data: &[u8], isa: Isa) -> u8 {
    isa.run(Largest(data)).unwrap_or_else(|| data.iter().copied().max().unwrap_or_default())
}

struct Largest<'d>(&'d [u8]);

impl Kernel for Largest<'_> {
    type Output = u8;

    #[allow(clippy::inline_always)] // Only then is it compiled with the instructions of `S`.
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> u8 {
        let mut largest = [s.splat(0); VECTORS];
        let mut blocks = self.0.chunks_exact(VECTORS * S::LANES);
        for block in blocks.by_ref() {
            for (index, largest) in largest.iter_mut().enumerate() {
                *largest = s.max(*largest, s.load(block, index * S::LANES));
            }
        }
        let rest = blocks.remainder().iter().copied().max().unwrap_or_default();
        largest.into_iter().map(|lanes| s.reduce_max(lanes)).fold(rest, u8::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_byte_is_found_wherever_it_lies() {
        for isa in Isa::available() {
            for len in [0, 1, 63, 64, 511, 512, 1025] {
                for at in 0..len {
                    let mut data = vec![3; len];
                    data[at] = 9;
                    assert_eq!(largest(&data, isa), 9, "{isa}, {at} of {len}");
                }
            }
        }
    }
}
