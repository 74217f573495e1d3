//! Chunks, and the stage that cuts them out of pieces.
//!
//! The stream comes in pieces whose ends mean nothing. A chunk that lies in one piece stays where it is; one that
//! reaches into the next is put together first. So the cuts are those of each version as a whole, and almost nothing is
//! copied.

use super::stages::send;
use anyhow::Result;
use crossbeam_channel::{Receiver, Sender};
use siltstone_chunk::Chunker;
use std::mem;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A part of a version.
pub(super) struct StreamPart {
    pub(super) bytes: Vec<u8>,
    /// True if the version ends with it.
    pub(super) ends_version: bool,
}

/// A chunk, where it lies.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    whole: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl Deref for Chunk {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.whole[self.range.clone()]
    }
}

impl Chunk {
    /// Copies the bytes to where nothing else lies, so that they do not keep a whole piece in memory.
    pub(super) fn apart(&self) -> Self {
        Self { whole: Arc::new(self.to_vec()), range: 0..self.len() }
    }
}

/// The chunks that end in one piece.
pub(super) struct Chunks {
    pub(super) chunks: Vec<Chunk>,
    /// True if a version ends with the last.
    pub(super) ends_version: bool,
}

/// The stage: from pieces to chunks.
pub(super) fn chunk(chunker: &dyn Chunker, pieces: &Receiver<StreamPart>, to: &Sender<Chunks>) -> Result<()> {
    let mut cutter = Cutter { chunker, tail: Vec::new() };
    for piece in pieces {
        let ends_version = piece.ends_version;
        send(to, Chunks { chunks: cutter.cut(piece), ends_version })?;
    }
    Ok(())
}

struct Cutter<'c> {
    chunker: &'c dyn Chunker,
    /// Bytes after the last cut.
    tail: Vec<u8>,
}

impl Cutter<'_> {
    /// The chunks that end in the next piece.
    fn cut(&mut self, piece: StreamPart) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        let Some(mut from) = self.cut_seam(&piece, &mut chunks) else { return chunks };
        let whole = Arc::new(piece.bytes);
        let first = chunks.len();
        self.chunker.cut_all(&whole[from..], &mut |length| {
            chunks.push(Chunk { whole: Arc::clone(&whole), range: from..from + length });
            from += length;
        });
        let is_final = |chunk: &Chunk| piece.ends_version || chunk.len() == self.chunker.sizes().max();
        if let Some(last) = chunks[first..].last().filter(|last| !is_final(last)) {
            self.tail = last.to_vec();
            chunks.pop();
        }
        chunks
    }

    /// Cuts what is left from before, with as much of the piece as it takes; gives where in the piece the last cut
    /// lies, or `None` if all of it is taken and the end of the chunk is still not known.
    fn cut_seam(&mut self, piece: &StreamPart, chunks: &mut Vec<Chunk>) -> Option<usize> {
        let mut seam = mem::take(&mut self.tail);
        let (before, max) = (seam.len(), self.chunker.sizes().max());
        let mut cuts = vec![0];
        let mut start = 0;
        while start < before {
            let length = self.chunker.cut(&seam[start..]);
            let is_all = seam.len() == before + piece.bytes.len();
            if length < seam.len() - start || length == max || (is_all && piece.ends_version) {
                start += length;
                cuts.push(start);
            } else if is_all {
                self.tail = seam.split_off(start);
                break;
            } else {
                let wanted = (seam.len() - start).max(self.chunker.sizes().expected());
                let taken = seam.len() - before;
                seam.extend_from_slice(&piece.bytes[taken..piece.bytes.len().min(taken + wanted)]);
            }
        }
        let whole = Arc::new(seam);
        chunks.extend(cuts.windows(2).map(|cut| Chunk { whole: Arc::clone(&whole), range: cut[0]..cut[1] }));
        start.checked_sub(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::method::Method;
    use crate::deterministic::Sequence;
    use siltstone_chunk::Isa;

    /// Half of it noise, and runs of one byte, which hashless chunkers without a largest chunk take long to end.
    fn version(seed: u64) -> Vec<u8> {
        let mut sequence = Sequence::new(seed);
        let mut bytes = Vec::new();
        for _ in 0..6 {
            let (noise, run) = (sequence.index(9000), sequence.index(9000));
            bytes.extend(sequence.bytes(noise));
            bytes.resize(bytes.len() + run, 7);
        }
        bytes
    }

    #[test]
    fn pieces_do_not_matter() {
        for method in Method::all() {
            let chunker = method.chunker(1 << 10, Isa::best()).unwrap();
            for (seed, piece_bytes) in [(1, 500), (2, 1500), (3, 10_000), (4, 1 << 20)] {
                let version = version(seed);
                let mut expected = Vec::new();
                chunker.cut_all(&version, &mut |length| expected.push(length));
                let mut cutter = Cutter { chunker: chunker.as_ref(), tail: Vec::new() };
                let (mut found, mut bytes) = (Vec::new(), Vec::new());
                let mut rest = &version[..];
                while !rest.is_empty() {
                    let (piece, others) = rest.split_at(rest.len().min(piece_bytes));
                    rest = others;
                    for chunk in cutter.cut(StreamPart { bytes: piece.to_vec(), ends_version: rest.is_empty() }) {
                        found.push(chunk.len());
                        bytes.extend_from_slice(&chunk);
                    }
                }
                assert!(found == expected && bytes == version, "{} in pieces of {piece_bytes}", method.name());
                assert!(cutter.tail.is_empty(), "{}", method.name());
            }
        }
    }
}
