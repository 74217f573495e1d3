//! The chunks of a reader, in bounded memory.
//!
//! The buffer is filled until it holds the largest possible chunk or the reader ends; then the next cut is sought. A
//! chunker without a largest chunk gets what there is, and more if it finds no cut in that: memory is then a few times
//! the longest chunk. Either way a cut is taken only when it is final, so the cuts are those of the whole stream in one
//! slice, however the reader slices it. Left-over bytes move to the front when the buffer has run low: with a buffer of
//! several largest chunks a byte is moved less than once in the mean.

use crate::{Chunker, Sizes};
use std::io::{self, ErrorKind, Read};

/// The buffer holds this many largest chunks, but at least [`BUFFER_BYTES_LEAST`].
const CHUNKS_BUFFERED: usize = 4;
const BUFFER_BYTES_LEAST: usize = 256 << 10;
/// Without a largest chunk, this many expected ones are at hand before a cut is sought.
const EXPECTED_AT_HAND: usize = 8;

/// Memory for [`StreamChunker`], kept from one stream to the next: a fresh one per small file costs more than cutting
/// it.
#[derive(Debug, Default)]
pub struct StreamBuffer {
    bytes: Vec<u8>,
}

/// Cuts what a reader gives into chunks.
#[derive(Debug)]
pub struct StreamChunker<C, R> {
    chunker: C,
    reader: R,
    buffer: StreamBuffer,
    /// The bytes read and not yet given out are `buffer.bytes[start..end]`.
    start: usize,
    end: usize,
    reader_ended: bool,
}

impl<C: Chunker, R: Read> StreamChunker<C, R> {
    /// The chunks of all that `reader` will give.
    pub fn new(chunker: C, reader: R) -> Self {
        Self::with_buffer(chunker, reader, StreamBuffer::default())
    }

    /// Creates a stream that uses memory got back from an earlier one by [`into_buffer`](Self::into_buffer).
    pub fn with_buffer(chunker: C, reader: R, mut buffer: StreamBuffer) -> Self {
        let bytes = (at_hand(chunker.sizes()) * CHUNKS_BUFFERED).max(BUFFER_BYTES_LEAST);
        if buffer.bytes.len() < bytes {
            buffer.bytes = vec![0; bytes];
        }
        Self { chunker, reader, buffer, start: 0, end: 0, reader_ended: false }
    }

    /// The next chunk, never empty; `None` at the end of the stream.
    ///
    /// # Errors
    /// Errors of the reader, but for `Interrupted`, which is tried again. After an error nothing is lost: a further
    /// call reads on.
    pub fn next_chunk(&mut self) -> io::Result<Option<&[u8]>> {
        let mut wanted = at_hand(self.chunker.sizes());
        loop {
            if !self.reader_ended && self.end - self.start < wanted {
                self.fill(wanted)?;
            }
            let unread = self.end - self.start;
            if unread == 0 {
                return Ok(None);
            }
            let length = self.chunker.cut(&self.buffer.bytes[self.start..self.end]);
            if self.reader_ended || length < unread || length == self.chunker.sizes().max() {
                self.start += length;
                return Ok(Some(&self.buffer.bytes[self.start - length..self.start]));
            }
            wanted = 2 * unread;
        }
    }

    /// Gives the memory back for the next stream. Bytes not yet given out are dropped.
    pub fn into_buffer(self) -> StreamBuffer {
        self.buffer
    }

    /// Reads until the buffer is full, which is at least `wanted` bytes, or the reader ends.
    fn fill(&mut self, wanted: usize) -> io::Result<()> {
        self.buffer.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.bytes.len() < wanted {
            self.buffer.bytes.resize(wanted, 0);
        }
        while self.end < self.buffer.bytes.len() {
            match self.reader.read(&mut self.buffer.bytes[self.end..]) {
                Ok(0) => {
                    self.reader_ended = true;
                    break;
                }
                Ok(bytes) => self.end += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Returns the bytes that are to be at hand before a cut is sought.
fn at_hand(sizes: Sizes) -> usize {
    if sizes.max() == usize::MAX { sizes.expected() * EXPECTED_AT_HAND } else { sizes.max() }
}
