//! RAM, the rapid asymmetric maximum: a chunk ends with the first byte after a window that reaches the window's
//! largest.
//!
//! Sources: RAM (Widodo, Lim, Atiquzzaman, Future Generation Computer Systems 2017); `VectorCDC`, TOS'25, sections 2.1
//! and 4.3. The definition, which is format; a chunk's first position is 0, `b(i)` the byte at position i:
//!
//! ```text
//! M      the largest of b(min) .. b(min + w - 1)
//! cut    i + 1 for the least i >= min + w with b(i) >= M;  max, or the end of the stream, if there is none before
//! ```
//!
//! **Window.** On random bytes M is at most m with probability `((m + 1) / 256)^w`, and the search after the window
//! takes `256 / (256 - M)` bytes on average. `w` is the least that makes the sum of both the expected size (less
//! `min`). For w far above 256 it comes to `w + 256`.
//!
//! **Vectors.** Two scans, as `VectorCDC` has them: the largest byte of a window, the first that reaches a threshold.
//! The first one ends where it meets a 255: nothing can exceed it, so the rest of the window need not be read. On
//! random bytes that leaves some 500 bytes of a chunk to look at, whatever its size.
//!
//! Cost: each byte is read at most once.

use crate::average::{least_reaching, power};
use crate::scalar::first;
use crate::scan::{first_reaching, largest};
use crate::{Chunker, Isa, Sizes};
use siltstone_simd::{Kernel, Simd};

/// The chunker `ram`.
#[derive(Clone, Copy, Debug)]
pub struct Ram {
    name: &'static str,
    sizes: Sizes,
    window: usize,
    isa: Isa,
}

impl Ram {
    /// The chunker in its form for `isa`, known by `name`.
    pub fn new(name: &'static str, sizes: Sizes, isa: Isa) -> Self {
        let goal = sizes.searched();
        let window = least_reaching(1, goal, f64::from(goal), mean);
        Self { name, sizes, window: window as usize, isa }
    }

    /// Bytes whose largest must be reached.
    pub fn window(&self) -> usize {
        self.window
    }
}

impl Chunker for Ram {
    fn name(&self) -> &'static str {
        self.name
    }

    fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn cut(&self, data: &[u8]) -> usize {
        self.sizes.cut(data, |searched| {
            let (window, rest) = searched.split_at_checked(self.window)?;
            let found = self.isa.run(Search { window, rest }).unwrap_or_else(|| search_scalar(window, rest));
            found.map(|at| self.window + at + 1)
        })
    }
}

/// The first position in `rest` whose byte reaches the largest of the window.
fn search_scalar(window: &[u8], rest: &[u8]) -> Option<usize> {
    let (mut largest, mut at) = (*window.first()?, 0);
    while let Some(next) = first(window, at + 1, |_, byte: u8| byte > largest) {
        (largest, at) = (window[next], next);
    }
    first(rest, 0, |_, byte: u8| byte >= largest)
}

struct Search<'d> {
    window: &'d [u8],
    rest: &'d [u8],
}

impl Kernel for Search<'_> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Option<usize> {
        first_reaching(s, self.rest, largest(s, self.window))
    }
}

/// Mean chunk length on random bytes.
fn mean(window: u32) -> f64 {
    let (mut below, mut wait) = (0.0, 0.0);
    for largest in 0..256 {
        let at_most = power(f64::from(largest + 1) / 256.0, window);
        wait += (at_most - below) * 256.0 / f64::from(256 - largest);
        below = at_most;
    }
    f64::from(window) + wait
}
