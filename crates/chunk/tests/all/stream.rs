//! `StreamChunker` gives the chunks of the same bytes in one slice.

use crate::common::{algorithm, cases, lengths, random_bytes, sizes};
use proptest::prelude::*;
use siltstone_chunk::{ALGORITHMS, Chunker, GearNc2, Isa, Sizes, StreamBuffer, StreamChunker};
use std::io::{self, ErrorKind, Read};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Gives at most `reads[i]` bytes at the i-th read (in turn), with an `Interrupted` wherever that is 0.
struct Slicing<'a> {
    data: &'a [u8],
    reads: &'a [usize],
    turn: usize,
}

impl Read for Slicing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = self.reads[self.turn % self.reads.len()];
        self.turn += 1;
        if most == 0 {
            return Err(ErrorKind::Interrupted.into());
        }
        let len = most.min(buffer.len()).min(self.data.len());
        buffer[..len].copy_from_slice(&self.data[..len]);
        self.data = &self.data[len..];
        Ok(len)
    }
}

fn stream_chunks<R: Read>(stream: &mut StreamChunker<&dyn Chunker, R>) -> Vec<Vec<u8>> {
    let mut chunks = Vec::new();
    while let Some(chunk) = stream.next_chunk().expect("the reader works") {
        chunks.push(chunk.to_vec());
    }
    chunks
}

/// Bytes of each kind: cuts at usual places, at few places, nowhere or everywhere.
fn kinds(len: usize) -> [Vec<u8>; 3] {
    let random = random_bytes("stream", len);
    let few = random.iter().enumerate().map(|(i, byte)| byte & (i / 40_000).to_le_bytes()[0]).collect();
    [random, few, vec![0; len]]
}

proptest! {
    #![proptest_config(cases(10))]

    #[test]
    fn cuts_do_not_depend_on_read_size(
        len in 0usize..700_000,
        mut reads in prop::collection::vec(prop_oneof![0usize..100, 1000..300_000usize], 1..8),
    ) {
        reads.push(7000);
        for algorithm in ALGORITHMS {
            let chunker = algorithm.make(algorithm.usual_sizes(4 << 10).unwrap(), &[2; 32], Isa::best());
            for data in kinds(len) {
                let slicing = Slicing { data: &data, reads: &reads, turn: 0 };
                let mut stream = StreamChunker::new(&*chunker as &dyn Chunker, slicing);
                let chunks = stream_chunks(&mut stream);
                let found: Vec<usize> = chunks.iter().map(Vec::len).collect();
                prop_assert_eq!(found, lengths(&chunker, &data), "{}", algorithm.name);
                prop_assert_eq!(chunks.concat(), data, "{}", algorithm.name);
            }
        }
    }
}

/// Gives zeros, and knows how large the buffer is that it fills, as long as nothing is taken out of it.
struct Zeros<'a> {
    left: usize,
    given: usize,
    buffer_bytes_max: &'a AtomicUsize,
}

impl Read for Zeros<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.buffer_bytes_max.fetch_max(self.given + buffer.len(), Relaxed);
        let len = buffer.len().min(self.left).min(50_000);
        buffer[..len].fill(0);
        self.given += len;
        self.left -= len;
        Ok(len)
    }
}

/// Counts how often a cut is sought.
struct Counting<C>(C, AtomicUsize);

impl<C: Chunker> Chunker for Counting<C> {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn sizes(&self) -> Sizes {
        self.0.sizes()
    }
    fn cut(&self, data: &[u8]) -> usize {
        self.1.fetch_add(1, Relaxed);
        self.0.cut(data)
    }
}

#[test]
fn a_stream_without_cuts_is_one_chunk_in_twice_its_memory() {
    const LEN: usize = 5_000_000;
    let maxp = algorithm("maxp");
    let sizes = Sizes::unlimited(8 << 10).unwrap();
    let chunker = Counting(maxp.make(sizes, &[0; 32], Isa::best()), AtomicUsize::new(0));
    let buffer_bytes_max = AtomicUsize::new(0);
    let zeros = Zeros { left: LEN, given: 0, buffer_bytes_max: &buffer_bytes_max };
    let mut stream = StreamChunker::new(&chunker as &dyn Chunker, zeros);
    let chunks = stream_chunks(&mut stream);
    assert!(chunks.len() == 1 && chunks[0] == vec![0; LEN]);
    let (buffer_bytes, sought) = (buffer_bytes_max.into_inner(), chunker.1.into_inner());
    assert!((LEN..=2 * LEN).contains(&buffer_bytes), "{buffer_bytes} bytes for a chunk of {LEN}");
    // What is at hand doubles from one time to the next: all bytes looked at are less than twice the chunk.
    assert!(sought <= 8, "a cut was sought {sought} times");
}

#[test]
fn every_length_around_the_buffer_comes_back_whole() {
    let chunker = GearNc2::new(sizes(16 << 10, 32 << 10, 64 << 10), &[2; 32]);
    let data = random_bytes("buffer", (256 << 10) + 2);
    for len in (0..3).chain((64 << 10) - 1..=(64 << 10) + 1).chain((256 << 10) - 1..=(256 << 10) + 2) {
        let mut stream = StreamChunker::new(&chunker as &dyn Chunker, &data[..len]);
        assert_eq!(stream_chunks(&mut stream).concat(), data[..len]);
        assert!(stream.next_chunk().expect("the reader works").is_none(), "the end stays the end");
    }
}

#[test]
fn memory_serves_one_stream_after_another() {
    let data = random_bytes("memory", 700_000);
    let mut buffer = StreamBuffer::default();
    for (expected, len) in [(16 << 10, 700_000), (1 << 10, 90_000), (256 << 10, 0), (64 << 10, 650_000)] {
        let chunker = GearNc2::new(Sizes::around(expected).expect("sizes"), &[4; 32]);
        let mut stream = StreamChunker::with_buffer(&chunker as &dyn Chunker, &data[..len], buffer);
        let found: Vec<_> = stream_chunks(&mut stream).iter().map(Vec::len).collect();
        assert_eq!(found, lengths(&chunker, &data[..len]));
        buffer = stream.into_buffer();
    }
}

#[test]
fn an_error_is_reported_and_nothing_is_lost() {
    struct FailsOnce<'a>(&'a [u8], bool);
    impl Read for FailsOnce<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0.len() < 60_000 && !std::mem::replace(&mut self.1, true) {
                return Err(ErrorKind::TimedOut.into());
            }
            let most = buffer.len().min(10_000);
            self.0.read(&mut buffer[..most])
        }
    }
    let chunker = GearNc2::new(Sizes::DEFAULT, &[2; 32]);
    let data = random_bytes("error", 400_000);
    let mut stream = StreamChunker::new(&chunker as &dyn Chunker, FailsOnce(&data, false));
    let (mut found, mut errors) = (Vec::new(), 0);
    loop {
        match stream.next_chunk() {
            Ok(Some(chunk)) => found.push(chunk.len()),
            Ok(None) => break,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::TimedOut);
                errors += 1;
            }
        }
    }
    assert_eq!((found, errors), (lengths(&chunker, &data), 1));
}
