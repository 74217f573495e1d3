//! The chunks of bytes that already lie in memory: a slice, or a mapped file.

use crate::Chunker;

/// Iterates over the chunks of a slice; together they are the slice. An empty slice has none.
#[derive(Clone, Debug)]
pub struct SliceChunks<'d, C> {
    chunker: C,
    rest: &'d [u8],
}

impl<'d, C: Chunker> SliceChunks<'d, C> {
    /// The chunks of `data`, taken as a whole stream.
    pub fn new(chunker: C, data: &'d [u8]) -> Self {
        Self { chunker, rest: data }
    }
}

impl<'d, C: Chunker> Iterator for SliceChunks<'d, C> {
    type Item = &'d [u8];

    fn next(&mut self) -> Option<&'d [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let (chunk, rest) = self.rest.split_at(self.chunker.cut(self.rest));
        self.rest = rest;
        Some(chunk)
    }
}
