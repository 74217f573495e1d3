//! `StreamChunker` gives the chunks of the same bytes in one slice.
#![allow(missing_docs)]

mod common;

use common::{lengths, random_bytes, sizes};
use proptest::prelude::*;
use siltstone_chunk::{Chunker, GearNc2, Sizes, StreamBuffer, StreamChunker};
use std::io::{self, ErrorKind, Read};

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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn cuts_do_not_depend_on_read_size(
        len in 0usize..1_500_000,
        mut reads in prop::collection::vec(prop_oneof![0usize..100, 1000..300_000usize], 1..8),
    ) {
        reads.push(7000);
        let data = random_bytes("stream", len);
        let chunker = GearNc2::new(Sizes::DEFAULT, &[2; 32]);
        let mut stream = StreamChunker::new(&chunker as &dyn Chunker, Slicing { data: &data, reads: &reads, turn: 0 });
        let chunks = stream_chunks(&mut stream);
        prop_assert_eq!(chunks.iter().map(Vec::len).collect::<Vec<_>>(), lengths(&chunker, &data));
        prop_assert_eq!(chunks.concat(), data);
    }
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
