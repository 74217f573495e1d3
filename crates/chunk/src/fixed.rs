//! Fixed: a cut after every `expected` bytes.
//!
//! The oldest way and the bound of the others: nothing is looked at, so nothing is faster, and one inserted byte moves
//! all cuts after it (LBFS, SOSP'01, section 3.1, gives this as the reason for cutting by content). The definition,
//! which is format:
//!
//! ```text
//! cut = expected; the end of the stream if that comes first
//! ```

use crate::{Chunker, Sizes};

/// The chunker `fixed`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fixed {
    name: &'static str,
    sizes: Sizes,
}

impl Fixed {
    /// The chunker, known by `name`.
    pub(crate) const fn new(name: &'static str, sizes: Sizes) -> Self {
        Self { name, sizes }
    }
}

impl Chunker for Fixed {
    fn name(&self) -> &'static str {
        self.name
    }

    fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn cut(&self, data: &[u8]) -> usize {
        data.len().min(self.sizes.expected())
    }
}
