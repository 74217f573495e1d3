//! Pieces in the making: what is read of files and streams is cut into chunks and handed on to be fingerprinted, about
//! a mebibyte at a time.
//!
//! Many small files share a piece; a large one makes many. A chunk never spans two pieces: what is not cut yet moves on
//! to the next.

use super::flow::{Disconnected, Part, ReadyPiece};
use crate::Observer;
use crate::chunks::ChunkSource;
use crate::parallel::{Pool, Ticket, lock};
use crossbeam_channel::{Receiver, Sender, select};
use siltstone_chunk::{Chunker, Fingerprinter};
use siltstone_store::Fingerprint;
use std::convert::Infallible;
use std::io;
use std::sync::Mutex;

/// A piece holds this many bytes, and one of the largest chunks that was not cut off in the piece before.
pub(super) const PIECE_BYTES: usize = 1 << 20;
/// A piece with less room than this left is handed on before the next read.
const READ_BYTES_MIN: usize = 64 << 10;
/// A piece with more parts than this is handed on, however small: it bounds what a piece weighs.
const PARTS_MAX: usize = 4096;

/// Buffers that go round between readers and the assembling stage.
pub(super) struct Buffers {
    free: Mutex<Vec<Vec<u8>>>,
    bytes: usize,
}

impl Buffers {
    pub(super) fn new(chunk_bytes_max: usize) -> Self {
        Self { free: Mutex::default(), bytes: PIECE_BYTES + chunk_bytes_max }
    }

    fn take(&self) -> Vec<u8> {
        let free = lock(&self.free).pop();
        free.unwrap_or_else(|| vec![0; self.bytes])
    }

    pub(super) fn give_back(&self, buffer: Vec<u8>) {
        if buffer.len() == self.bytes {
            lock(&self.free).push(buffer);
        }
    }
}

/// Values that all readers share.
#[derive(Clone)]
pub(super) struct ReadStage<'a, 'env> {
    pub(super) chunker: &'a dyn Chunker,
    pub(super) buffers: &'a Buffers,
    pub(super) hashers: Pool<'env, Fingerprinter>,
    pub(super) observer: &'a dyn Observer,
    /// Chunks of earlier snapshots, for files of which only ranges changed.
    pub(super) chunks: &'a ChunkSource<'a>,
    /// Disconnected once the assembling stage has ended. Its end alone would not show here: a queue of steps that
    /// nobody takes any more still holds the receivers of their pieces, as long as the planner holds the queue.
    pub(super) assembling: Receiver<Infallible>,
}

/// A piece in the making.
pub(super) struct PieceWriter<'s, 'a, 'env> {
    pub(super) stage: &'s ReadStage<'a, 'env>,
    out: Sender<Ticket<ReadyPiece>>,
    bytes: Vec<u8>,
    filled: usize,
    /// Bytes before this are cut into chunks.
    cut: usize,
    parts: Vec<Part>,
}

impl<'s, 'a, 'env> PieceWriter<'s, 'a, 'env> {
    pub(super) fn new(stage: &'s ReadStage<'a, 'env>, out: Sender<Ticket<ReadyPiece>>) -> Self {
        Self { stage, out, bytes: stage.buffers.take(), filled: 0, cut: 0, parts: Vec::new() }
    }

    pub(super) fn add(&mut self, part: Part) -> Result<(), Disconnected> {
        self.parts.push(part);
        if self.parts.len() >= PARTS_MAX { self.hand_on() } else { Ok(()) }
    }

    pub(super) fn add_hole(&mut self, bytes: u64) -> Result<(), Disconnected> {
        if bytes == 0 { Ok(()) } else { self.add(Part::Hole(bytes)) }
    }

    /// Reads once, at most `most` bytes, and cuts what can be cut without knowing what follows.
    pub(super) fn fill(
        &mut self,
        most: usize,
        read: &mut dyn FnMut(&mut [u8]) -> io::Result<usize>,
    ) -> Result<io::Result<usize>, Disconnected> {
        let outcome = self.take_in(most, read)?;
        let most = self.stage.chunker.sizes().max();
        while self.filled - self.cut >= most {
            self.cut_one();
        }
        Ok(outcome)
    }

    /// Reads once, at most `most` bytes.
    pub(super) fn take_in(
        &mut self,
        most: usize,
        read: &mut dyn FnMut(&mut [u8]) -> io::Result<usize>,
    ) -> Result<io::Result<usize>, Disconnected> {
        if self.bytes.len() - self.filled < READ_BYTES_MIN.min(most) || self.parts.len() >= PARTS_MAX {
            self.hand_on()?;
        }
        let end = self.bytes.len().min(self.filled.saturating_add(most));
        let outcome = read(&mut self.bytes[self.filled..end]);
        self.filled += outcome.as_ref().map_or(0, |count| *count);
        Ok(outcome)
    }

    /// Bytes read and not yet cut.
    pub(super) fn uncut_bytes(&self) -> u64 {
        (self.filled - self.cut) as u64
    }

    /// Gives up what is read and not yet cut.
    pub(super) fn forget_uncut(&mut self) {
        self.filled = self.cut;
    }

    /// Cuts one chunk and gives its length, if it stays the same whatever follows; at the end of the data nothing does.
    pub(super) fn cut_if_final(&mut self, is_end: bool) -> Option<usize> {
        let data = &self.bytes[self.cut..self.filled];
        let length = self.stage.chunker.cut(data);
        let is_final = is_end || length < data.len() || data.len() >= self.stage.chunker.sizes().max();
        let is_chunk = is_final && length > 0;
        if is_chunk {
            self.push_chunk(length);
        }
        is_chunk.then_some(length)
    }

    /// Cuts all that is left: the file, or a stretch of its data, ends here.
    pub(super) fn cut_rest(&mut self) -> Result<(), Disconnected> {
        while self.cut < self.filled {
            self.cut_one();
        }
        if self.parts.len() >= PARTS_MAX { self.hand_on() } else { Ok(()) }
    }

    fn cut_one(&mut self) {
        self.push_chunk(self.stage.chunker.cut(&self.bytes[self.cut..self.filled]));
    }

    fn push_chunk(&mut self, length: usize) {
        self.parts.push(Part::Chunk { start: self.cut, length, fingerprint: Fingerprint([0; 16]) });
        self.cut += length;
    }

    /// Hands the piece on to be fingerprinted; what is not cut begins the next one.
    pub(super) fn hand_on(&mut self) -> Result<(), Disconnected> {
        let mut next = self.stage.buffers.take();
        let rest = &self.bytes[self.cut..self.filled];
        next[..rest.len()].copy_from_slice(rest);
        self.filled = rest.len();
        self.cut = 0;
        let bytes = std::mem::replace(&mut self.bytes, next);
        let mut parts = std::mem::take(&mut self.parts);
        let ticket = self.stage.hashers.submit(move |fingerprinter| {
            fingerprint_chunks(fingerprinter, &bytes, &mut parts);
            ReadyPiece { bytes, parts }
        });
        select! {
            send(self.out, ticket) -> sent => sent.map_err(|_| Disconnected),
            recv(self.stage.assembling) -> _ => Err(Disconnected),
        }
    }
}

impl Drop for PieceWriter<'_, '_, '_> {
    fn drop(&mut self) {
        self.stage.buffers.give_back(std::mem::take(&mut self.bytes));
    }
}

/// Fingerprints the chunks of a piece together: one by one they would leave most lanes of the hash idle.
fn fingerprint_chunks(fingerprinter: &Fingerprinter, bytes: &[u8], parts: &mut [Part]) {
    let chunk = |part: &Part| match part {
        Part::Chunk { start, length, .. } => Some(*start..*start + *length),
        _ => None,
    };
    let chunks: Vec<&[u8]> = parts.iter().filter_map(chunk).map(|range| &bytes[range]).collect();
    let mut hashes = Vec::with_capacity(chunks.len());
    fingerprinter.fingerprints(&chunks, &mut hashes);
    let mut hashes = hashes.iter();
    for part in parts {
        if let Part::Chunk { fingerprint, .. } = part {
            *fingerprint = hashes.next().map(Fingerprint::of_hash).expect("one hash for each chunk");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_store::{MasterKey, RepositoryId, RepositoryKeys};

    #[test]
    fn chunks_fingerprinted_together_are_those_fingerprinted_alone() {
        let keys = RepositoryKeys::derive(&MasterKey::from_bytes([1; 32]), RepositoryId([2; 16]));
        let bytes: Vec<u8> = (0..300_000u32).map(|i| i.wrapping_mul(i).to_le_bytes()[1]).collect();
        let (mut parts, mut start) = (Vec::new(), 0);
        for length in [0, 1, 1024, 9000, 20_000, 700, 65_536, 8191, 100_000] {
            parts.extend([Part::Chunk { start, length, fingerprint: Fingerprint([0; 16]) }, Part::Hole(7)]);
            start += length;
        }
        fingerprint_chunks(&Fingerprinter::best(&keys.fingerprint_key()), &bytes, &mut parts);
        for part in parts {
            if let Part::Chunk { start, length, fingerprint } = part {
                assert_eq!(fingerprint, keys.fingerprint(&bytes[start..start + length]), "{length} bytes");
            }
        }
    }
}
