//! AE-Opt2: AE-Max that cuts runs of equal values short.
//!
//! Source: AE, TC'17, section 3.3, Algorithm 3. The definition, which is format; v, w and AE-Max's cut as in `mod.rs`:
//!
//! ```text
//! cut    min + LEST if v(min) = v(min + 1) = .. = v(min + LEST - 1);  otherwise that of AE-Max
//! LEST   the expected size divided by 2, 4 or 8, and less than w
//! ```
//!
//! The paper's three thresholds are three rows; it recommends 1/8. Random bytes hold no such runs, so the window and
//! the average are those of AE-Max.
//!
//! Algorithm 3 keeps a least value beside the greatest and asks at LEST whether they are the same. The vector form asks
//! that question first, of the bytes themselves: it goes no further than their first difference, and then all is
//! AE-Max. Eight-byte values are equal exactly if all their bytes are, since neighbouring values share seven.

use super::{Ae, Extreme, Value, cut};
use crate::scalar::{Number, first};
use crate::{Chunker, Isa, Sizes};
use siltstone_simd::{Kernel, Simd};

/// The chunkers `ae-opt2-*` and `ae8-opt2-*`.
#[derive(Clone, Copy, Debug)]
pub struct AeOpt2 {
    ae: Ae,
    lest: usize,
}

impl AeOpt2 {
    /// The chunker in its form for `isa`, known by `name`. LEST, the "low-entropy-string threshold", is the expected
    /// size divided by `divisor`.
    pub fn new(name: &'static str, value: Value, divisor: usize, sizes: Sizes, isa: Isa) -> Self {
        let ae = Ae::new(name, Extreme::Max, value, sizes, isa);
        Self { ae, lest: (sizes.expected() / divisor).min(ae.window() - 1) }
    }

    /// Bytes in a chunk cut from a run of equal values, beyond `min`.
    pub fn lest(&self) -> usize {
        self.lest
    }

    /// Tells whether the first LEST values are equal.
    fn begins_with_run(&self, isa: Isa, searched: &[u8]) -> bool {
        let run_bytes = match self.ae.value {
            Value::Byte => self.lest,
            Value::EightBytes => self.lest + u64::BYTES - 1,
        };
        searched.get(..run_bytes).is_some_and(|bytes| isa.run(AllEqual { bytes }).unwrap_or(false))
    }
}

impl Chunker for AeOpt2 {
    fn name(&self) -> &'static str {
        self.ae.name
    }

    fn sizes(&self) -> Sizes {
        self.ae.sizes
    }

    fn cut(&self, data: &[u8]) -> usize {
        let Ae { sizes, value, window, isa, .. } = self.ae;
        let cut_by_vectors = |searched: &[u8]| {
            let is_run = self.begins_with_run(isa, searched);
            if is_run { self.lest } else { cut(searched, window, Extreme::Max, value, isa) }
        };
        sizes.cut(data, |searched| match value {
            _ if isa != Isa::SCALAR => Some(cut_by_vectors(searched)),
            Value::Byte => cut_scalar::<u8>(searched, window, self.lest),
            Value::EightBytes => cut_scalar::<u64>(searched, window, self.lest),
        })
    }
}

/// Algorithm 3: three questions of each value.
fn cut_scalar<N: Number>(data: &[u8], window: usize, lest: usize) -> Option<usize> {
    let mut i = 0;
    let mut greatest = (N::count(data) > 0).then(|| N::read(data, 0))?;
    let (mut least, mut last) = (greatest, window);
    loop {
        // Only equal values have a cut at LEST, which is before the end of the first window.
        let end = if least == greatest { lest - 1 } else { last };
        i = first(data, i + 1, |i, value: N| value > greatest || value < least || i == end)?;
        let value = N::read(data, i);
        if value > greatest {
            (greatest, last) = (value, i + window);
        } else if value < least && i != last {
            // Also where all values before were equal, and this one would have been the last of LEST.
            least = value;
        } else {
            return Some(i + 1);
        }
    }
}

struct AllEqual<'d> {
    bytes: &'d [u8],
}

impl Kernel for AllEqual<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> bool {
        let Some((first, rest)) = self.bytes.split_first() else { return true };
        let wanted = s.splat(*first);
        let mut vectors = rest.chunks_exact(S::LANES);
        vectors.by_ref().all(|vector| {
            let difference = s.xor(s.load(vector, 0), wanted);
            !s.any_gt(difference, s.splat(0))
        }) && vectors.remainder().iter().all(|byte| byte == first)
    }
}
