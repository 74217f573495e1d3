//! Finesse: one feature from each of equal parts of a chunk, no functions at all.
//!
//! Source: Finesse, FAST'19, section 4 and Algorithm 2. The definition, which is format; N features of a chunk of L
//! bytes:
//!
//! ```text
//! part k      bytes k floor(L / N) ..< (k + 1) floor(L / N);  the last L mod N bytes belong to none
//! feature k   the greatest x_j mod 2^32 for all bytes j of part k;  x_j as in ntransform.rs, windows of 48 bytes
//! ```
//!
//! Features say where they come from, so an insertion moves some of them to the neighbour's place. Groups are therefore
//! made by rank ([`Grouping::ByRank`]), and resemblance is estimated from sketches [grouped](Sketch::grouped) so
//! (Odess, TOS, sections 2.4 and 4.2.1). A chunk of fewer than N bytes has no sketch.
//!
//! Cost: a Rabin step and a comparison per byte.

use super::ntransform::slide;
use super::{Grouping, Shape, Sketch, Sketcher};

const WINDOW_BYTES: usize = 48;

/// The sketcher `finesse`.
#[derive(Clone, Copy, Debug)]
pub struct Finesse {
    name: &'static str,
    shape: Shape,
}

impl Finesse {
    /// The sketcher, known by `name`.
    pub fn new(name: &'static str, shape: Shape) -> Self {
        Self { name, shape }
    }
}

impl Sketcher for Finesse {
    fn name(&self) -> &'static str {
        self.name
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn grouping(&self) -> Grouping {
        Grouping::ByRank
    }

    fn sketch(&self, chunk: &[u8]) -> Option<Sketch> {
        let part_bytes = chunk.len() / self.shape.features();
        if part_bytes == 0 {
            return None;
        }
        let mut fingerprint = 0;
        Some(Sketch::new(self.shape, |part| {
            let mut greatest = 0;
            let range = part * part_bytes..(part + 1) * part_bytes;
            slide::<WINDOW_BYTES>(chunk, range, &mut fingerprint, |hash| greatest = greatest.max(hash));
            greatest
        }))
    }
}
