//! New chunks gathered into segments, which a selector looks at one by one.

use super::flow::{Gathered, Reached, Segment};
use crate::EngineError;
use crossbeam_channel::Sender;
use siltstone_store::region::ChunkEntry;

/// Gathers new chunks into segments.
#[derive(Debug)]
pub(super) struct Segments {
    open: Segment,
    bytes: usize,
    to: Sender<Gathered>,
}

impl Segments {
    /// Gathers segments of so many bytes, or of one longer chunk, and sends them `to` a selector.
    pub(super) fn new(bytes: usize, to: Sender<Gathered>) -> Self {
        Self { open: Segment { chunks: Vec::new(), plain: Vec::new() }, bytes, to }
    }

    pub(super) fn push(&mut self, chunk: ChunkEntry, bytes: &[u8]) -> Result<(), EngineError> {
        if !self.open.chunks.is_empty() && self.open.plain.len() + bytes.len() > self.bytes {
            self.hand_on()?;
        }
        self.open.chunks.push(chunk);
        self.open.plain.extend_from_slice(bytes);
        Ok(())
    }

    fn hand_on(&mut self) -> Result<(), EngineError> {
        let next = Segment { chunks: Vec::new(), plain: Vec::with_capacity(self.open.plain.capacity()) };
        let full = std::mem::replace(&mut self.open, next);
        // The selector goes away only after an error of its own, which is the one told.
        self.to.send(Gathered::Segment(full)).map_err(|_| EngineError::Interrupted)
    }

    /// Hands on what is open, and the checkpoint behind it.
    pub(super) fn checkpoint(&mut self, reached: Reached) -> Result<(), EngineError> {
        if !self.open.chunks.is_empty() {
            self.hand_on()?;
        }
        self.to.send(Gathered::Checkpoint(Box::new(reached))).map_err(|_| EngineError::Interrupted)
    }

    /// Hands on what is left.
    pub(super) fn finish(mut self) -> Result<(), EngineError> {
        if self.open.chunks.is_empty() { Ok(()) } else { self.hand_on() }
    }
}
