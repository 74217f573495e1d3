//! Siltstone's own sketch as a [`Sketcher`], to stand beside the others.

use siltstone_chunk::Lagged;
use siltstone_similar::sketch::{SampleSketch, Shape, Sketch, Sketcher};

/// Of the samples of the default chunker.
pub(super) struct Own {
    chunker: Lagged,
    empty: SampleSketch,
    shape: Shape,
}

impl Own {
    pub(super) fn new(chunker: Lagged, shape: Shape) -> Self {
        Self { chunker, empty: SampleSketch::new(shape), shape }
    }
}

impl Sketcher for Own {
    fn name(&self) -> &'static str {
        "samples"
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
