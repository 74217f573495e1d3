//! Content of made files: four kinds, of which the first three compress, to a third or a fifth, and the
//! last does not. Kinds and their shares are our choice.
//!
//! ```text
//! text      sentences of a skewed vocabulary
//! records   lines of a log: a time that counts up, few names, words, a random token
//! binary    structures of 64 bytes: counters, small numbers, a padded word, a float's noise
//! packed    random bytes, as pictures and archives are to who deduplicates them
//! ```
//!
//! And two that fill a whole file, for those who look for cuts where nothing is remarkable:
//!
//! ```text
//! low entropy   in stretches of 1 to 256 KiB: zeros (more than anything else), runs of another byte, short patterns again and again,
//!               two values only, and pages of text thinly strewn over zeros
//! mixed         records, and among them runs of one byte, 256 bytes to 64 KiB long, that are a given share of it: what AE (TC'17,
//!               Table 5) counts
//! ```

use super::draw::skewed;
use crate::deterministic::Sequence;
use std::io::{self, Write};
use std::sync::LazyLock;

/// A kind of content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Content {
    Text,
    Records,
    Binary,
    Packed,
    LowEntropy,
    Mixed {
        /// Percent of the bytes that lie in runs, 1 to 100.
        runs_percent: u64,
    },
}

impl Content {
    /// One of them: of twenty, eight are text, five records, three binary, four packed.
    pub(crate) fn drawn(sequence: &mut Sequence) -> Self {
        match sequence.below(20) {
            0..8 => Self::Text,
            8..13 => Self::Records,
            13..16 => Self::Binary,
            _ => Self::Packed,
        }
    }

    /// Returns the extension of names of such files.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Text => "txt",
            Self::Records => "log",
            Self::Binary => "dat",
            Self::Packed => "zip",
            Self::LowEntropy | Self::Mixed { .. } => "bin",
        }
    }

    /// Writes so many bytes of it, a buffer at a time.
    pub(crate) fn write(self, sequence: Sequence, bytes: u64, out: &mut impl Write) -> io::Result<()> {
        self.generator(sequence).write(bytes, out)
    }

    /// So many bytes of it.
    pub(crate) fn bytes(self, sequence: Sequence, bytes: usize) -> Vec<u8> {
        let mut all = Vec::with_capacity(bytes);
        self.write(sequence, bytes as u64, &mut all).expect("a vector takes every write");
        all
    }

    fn generator(self, mut sequence: Sequence) -> Generator {
        let is_counted = !matches!(self, Self::Packed | Self::LowEntropy);
        let counter = if is_counted { sequence.below(1 << 30) } else { 0 };
        Generator { content: self, sequence, counter, until_run: 0 }
    }
}

/// Words of 2 to 12 letters, made once.
static VOCABULARY: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut sequence = Sequence::new(20);
    let letter = |sequence: &mut Sequence| char::from(b"etaoinshrdlucmfw"[sequence.index(16)]);
    (0..8000).map(|_| (0..2 + sequence.below(11)).map(|_| letter(&mut sequence)).collect()).collect()
});

/// One of the words, some more often.
pub(super) fn word(sequence: &mut Sequence) -> &'static str {
    &VOCABULARY[skewed(sequence, VOCABULARY.len())]
}

struct Generator {
    content: Content,
    sequence: Sequence,
    counter: u64,
    /// Bytes before the next run.
    until_run: u64,
}

impl Generator {
    fn write(&mut self, bytes: u64, out: &mut impl Write) -> io::Result<()> {
        const BUFFER_BYTES: usize = 64 << 10;
        let mut buffer = Vec::with_capacity(2 * BUFFER_BYTES);
        let mut left = bytes;
        while left > 0 {
            buffer.clear();
            while buffer.len() < BUFFER_BYTES && (buffer.len() as u64) < left {
                self.append(&mut buffer)?;
            }
            let taken = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
            out.write_all(&buffer[..taken])?;
            left -= taken as u64;
        }
        Ok(())
    }

    /// A sentence, a line, a structure or a block.
    fn append(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        self.counter += 1;
        match self.content {
            Content::Text => self.append_sentence(buffer),
            Content::Records => self.append_line(buffer)?,
            Content::Binary => self.append_structure(buffer),
            Content::Packed => buffer.extend(self.sequence.bytes(4096)),
            Content::LowEntropy => append_stretch(buffer, &mut self.sequence),
            Content::Mixed { .. } if self.until_run > 0 => {
                let begin = buffer.len();
                self.append_line(buffer)?;
                self.until_run = self.until_run.saturating_sub((buffer.len() - begin) as u64);
            }
            Content::Mixed { runs_percent } => {
                let length = 256 << self.sequence.below(9);
                let byte = self.sequence.bytes(1)[0];
                buffer.resize(buffer.len() + length, byte);
                self.until_run = length as u64 * (100 - runs_percent.min(100)) / runs_percent.max(1);
            }
        }
        Ok(())
    }

    fn append_sentence(&mut self, buffer: &mut Vec<u8>) {
        let begin = buffer.len();
        for _ in 0..5 + self.sequence.below(15) {
            buffer.extend_from_slice(word(&mut self.sequence).as_bytes());
            buffer.push(b' ');
        }
        buffer[begin].make_ascii_uppercase();
        buffer.pop();
        buffer.extend_from_slice(if self.sequence.below(4) == 0 { b".\n" } else { b". " });
    }

    fn append_line(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        const LEVELS: [&str; 4] = ["info", "debug", "warning", "error"];
        let seconds = 1_500_000_000 + self.counter;
        let level = LEVELS[skewed(&mut self.sequence, LEVELS.len())];
        let host = skewed(&mut self.sequence, 24);
        let (first, second, third) = (word(&mut self.sequence), word(&mut self.sequence), word(&mut self.sequence));
        let (bytes, token) = (self.sequence.below(100_000), self.sequence.next() >> 32);
        writeln!(buffer, "{seconds} host-{host:02} {level} {first} {second} {third} bytes={bytes} request={token:08x}")
    }

    fn append_structure(&mut self, buffer: &mut Vec<u8>) {
        let begin = buffer.len();
        let kind = u32::try_from(skewed(&mut self.sequence, 12)).expect("it is small");
        buffer.extend_from_slice(&self.counter.to_le_bytes());
        buffer.extend_from_slice(&kind.to_le_bytes());
        buffer.extend_from_slice(&[0; 4]);
        buffer.extend_from_slice(&(self.counter * 40 + self.sequence.below(40)).to_le_bytes());
        buffer.extend_from_slice(&(self.sequence.next() >> 24).to_le_bytes());
        buffer.extend_from_slice(word(&mut self.sequence).as_bytes());
        buffer.resize(begin + 64, 0);
    }
}

/// A stretch of low entropy.
fn append_stretch(bytes: &mut Vec<u8>, sequence: &mut Sequence) {
    let length = 1024 << sequence.below(9);
    match sequence.below(8) {
        0..3 => bytes.resize(bytes.len() + length, 0),
        3 => bytes.resize(bytes.len() + length, sequence.bytes(1)[0]),
        4 | 5 => {
            let period = 2 + sequence.index(62);
            let pattern = sequence.bytes(period);
            bytes.extend(pattern.iter().cycle().take(length));
        }
        6 => bytes.extend(sequence.bytes(length).iter().map(|byte| byte & 1)),
        _ => append_sparse_pages(bytes, length, sequence),
    }
}

/// Pages of 4 KiB, one in four with some letters at its begin.
fn append_sparse_pages(bytes: &mut Vec<u8>, length: usize, sequence: &mut Sequence) {
    for _ in 0..length.div_ceil(4096) {
        let mut page = vec![0; 4096];
        if sequence.below(4) == 0 {
            let written = 64 + sequence.index(1024);
            for byte in &mut page[..written] {
                *byte = b'a' + sequence.bytes(1)[0] % 26;
            }
        }
        bytes.extend(page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    const ALL: [Content; 6] = [
        Content::Text,
        Content::Records,
        Content::Binary,
        Content::Packed,
        Content::LowEntropy,
        Content::Mixed { runs_percent: 10 },
    ];

    #[test]
    fn more_of_it_begins_with_less_of_it() {
        for content in ALL {
            let long = content.bytes(Sequence::new(3), 200_000);
            assert_eq!(long.len(), 200_000);
            assert_eq!(content.bytes(Sequence::new(3), 70_001), long[..70_001]);
            assert!(content.bytes(Sequence::new(4), 200_000) != long);
        }
    }

    /// Entropy of single bytes, bits per byte.
    #[allow(clippy::cast_precision_loss)]
    fn entropy(bytes: &[u8]) -> f64 {
        let mut counts = HashMap::new();
        for byte in bytes {
            *counts.entry(byte).or_insert(0_u32) += 1;
        }
        let share = |count: &u32| f64::from(*count) / bytes.len() as f64;
        counts.values().map(|count| -share(count) * share(count).log2()).sum()
    }

    #[test]
    fn only_packed_content_is_without_pattern() {
        let found = [0, 1, 2, 3].map(|at: usize| entropy(&ALL[at].bytes(Sequence::new(5), 300_000)));
        assert!(found[..3].iter().all(|bits| (2.0..6.0).contains(bits)) && found[3] > 7.99, "{found:?}");
    }

    #[test]
    fn low_entropy_is_mostly_repetition() {
        let bytes = Content::LowEntropy.bytes(Sequence::new(2), 3_000_000);
        let repeated = bytes.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert!((40..90).contains(&(repeated * 100 / bytes.len())), "{repeated}");
    }

    #[test]
    fn as_much_of_mixed_content_lies_in_runs_as_asked_for() {
        for runs_percent in [1, 10, 50] {
            let bytes = Content::Mixed { runs_percent }.bytes(Sequence::new(3), 20_000_000);
            let runs = bytes.chunk_by(|one, next| one == next).filter(|run| run.len() >= 256);
            let found = runs.map(<[u8]>::len).sum::<usize>() as u64 * 1000 / bytes.len() as u64;
            assert!((runs_percent * 8..=runs_percent * 12).contains(&found), "{found} of 1000");
        }
    }
}
