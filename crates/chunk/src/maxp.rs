//! MAXP: a chunk ends with a byte that exceeds all w bytes before it and all w bytes after it.
//!
//! Sources: Bjorner, Blass, Gurevich: "Content-dependent chunking for differential compression, the local maximum approach"
//! (Journal of Computer and System Sciences 2010); `VectorCDC`, TOS'25, sections 2.1 and 4.3. The definition, which is format; a
//! chunk's first position is 0, `b(i)` the byte at position i:
//!
//! ```text
//! peak   a position q with b(q) > b(i) for all other i in q - w ..= q + w, all of which lie in the chunk's stretch:
//!        from its beginning up to max or the end of the stream
//! cut    q + 1 for the least peak q >= min - 1;  max, or the end of the stream, if there is none
//! ```
//!
//! **Cuts are those of the whole stream** if there are no limits: two peaks are more than w apart, as each must exceed the
//! other otherwise. So the left window of the next peak begins after the cut, and lies in the next chunk by itself.
//!
//! **Window.** Peaks have the density `P = sum over v of (1/256) (v/256)^(2w)` on random bytes; `w` is the least that makes the
//! mean distance `1 / P` the expected size (less `min`).
//!
//! **Strides.** A vector form needs no sliding maximum. Let all positions before `from` be decided, and look at the w + 1
//! positions `from ..= from + w`. Any two of them lie in each other's windows. So with M their largest byte and q its last
//! position among them:
//! 1. all of them but q are no peaks: q reaches each of them;
//! 2. let r be the first position in `from + w + 1 ..= q + w` whose byte is M or more. If there is one, q is no peak, and nor is any
//!    position between q and r: q exceeds it. Go on with `from = r`;
//! 3. otherwise all of `q + 1 ..= q + w` are exceeded by q. If all of `q - w .. q` are too, q is a peak; else go on with
//!    `from = q + w + 1`.
//!
//! `from` moves by at least w + 1 each time, at most w bytes are read again at each of: finding q, looking left of it.
//!
//! Cost: at most four looks at each byte, whatever the data; on most data hardly more than two, and only the first one
//! from memory.

use crate::average::{least_reaching, power};
use crate::scan::{first_reaching, largest, last_equal};
use crate::{Chunker, Isa, Sizes};
use siltstone_simd::{Kernel, Simd};

/// The chunker `maxp`.
#[derive(Clone, Copy, Debug)]
pub struct Maxp {
    name: &'static str,
    sizes: Sizes,
    window: usize,
    isa: Isa,
}

impl Maxp {
    /// The chunker in its form for `isa`, known by `name`.
    pub fn new(name: &'static str, sizes: Sizes, isa: Isa) -> Self {
        let goal = (sizes.expected() - sizes.min()) as u32;
        let window = least_reaching(1, goal, f64::from(goal), |window| 1.0 / peaks_per_byte(window));
        Self { name, sizes, window: window as usize, isa }
    }

    /// Bytes on each side that a peak must exceed.
    pub fn window(&self) -> usize {
        self.window
    }
}

impl Chunker for Maxp {
    fn name(&self) -> &'static str {
        self.name
    }

    fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn cut(&self, data: &[u8]) -> usize {
        let data = &data[..data.len().min(self.sizes.max())];
        let (window, from) = (self.window, self.window.max(self.sizes.min().saturating_sub(1)));
        let peak = self.isa.run(Peak { data, window, from }).unwrap_or_else(|| peak_scalar(data, window, from));
        peak.map_or(data.len(), |peak| peak + 1)
    }
}

/// The first peak from `from` on, by strides.
#[inline(always)]
fn peak(
    data: &[u8],
    window: usize,
    mut from: usize,
    last_largest: impl Fn(&[u8]) -> (usize, u8),
    first_reaching: impl Fn(&[u8], u8) -> Option<usize>,
) -> Option<usize> {
    while let Some(stretch) = data.get(from..=from + window) {
        let (at, byte) = last_largest(stretch);
        let peak = from + at;
        // A window that leaves the data belongs to no peak, nor does that of any later position.
        let ahead = data.get(from + window + 1..=peak + window)?;
        from = match first_reaching(ahead, byte) {
            Some(beyond) => from + window + 1 + beyond,
            None if first_reaching(&data[peak - window..peak], byte).is_none() => return Some(peak),
            None => peak + window + 1,
        };
    }
    None
}

fn peak_scalar(data: &[u8], window: usize, from: usize) -> Option<usize> {
    let last_largest = |stretch: &[u8]| {
        stretch.iter().enumerate().fold((0, 0), |most, (at, byte)| if *byte >= most.1 { (at, *byte) } else { most })
    };
    peak(data, window, from, last_largest, |bytes, byte| bytes.iter().position(|other| *other >= byte))
}

struct Peak<'d> {
    data: &'d [u8],
    window: usize,
    from: usize,
}

impl Kernel for Peak<'_> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Option<usize> {
        let last_largest = |stretch: &[u8]| {
            let byte = largest(s, stretch);
            (last_equal(s, stretch, byte).unwrap_or(0), byte)
        };
        peak(self.data, self.window, self.from, last_largest, |bytes, byte| first_reaching(s, bytes, byte))
    }
}

/// The share of positions that are peaks on random bytes.
fn peaks_per_byte(window: u32) -> f64 {
    (0..256).map(|byte| power(f64::from(byte) / 256.0, 2 * window)).sum::<f64>() / 256.0
}
