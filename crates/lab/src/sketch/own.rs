//! Siltstone's own sketch as a [`Sketcher`], to stand beside the others: of what the chunker `lagged` would sample,
//! whoever cut the chunk.

use siltstone_chunk::{Isa, Lagged};
use siltstone_similar::sketch::{SampleSketch, Shape, Sketch, Sketcher};

/// Its name in tables.
pub const NAME: &str = "samples";

/// Sketches made of the samples of the default chunker.
pub struct Own {
    chunker: Lagged,
    empty: SampleSketch,
    shape: Shape,
}

impl Own {
    /// Makes sketches of what this chunker samples, in the form for `isa`.
    pub fn new(chunker: Lagged, shape: Shape, isa: Isa) -> Self {
        Self { chunker, empty: SampleSketch::with_isa(shape, isa), shape }
    }
}

impl Sketcher for Own {
    fn name(&self) -> &'static str {
        NAME
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn sketch(&self, chunk: &[u8]) -> Option<Sketch> {
        let mut sketch = self.empty.clone();
        self.chunker.samples(chunk, |sample| sketch.add(sample.hash));
        sketch.finish()
    }
}
