//! A run: records sorted by fingerprint, no fingerprint twice, in memory or in a file.
//!
//! Looking up: the highest bits of the fingerprint choose two neighbouring fences, between which about
//! [`RECORDS_PER_FENCE`] records lie; halving goes on only if there are many more than a block holds (a small budget
//! allows few fences), then one block is read and searched. Interpolation was the alternative: without fences its first
//! guess is off by the square root of the number of records, 3000 of 10 million, so it takes several reads; the fences
//! cost 1/8 byte per record.

use super::record::{Packed, RECORD_BYTES, Record};
use siltstone_store::{ChunkNumber, Fingerprint};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Records read at once: 24 KiB when walking over a run.
const BLOCK_RECORDS: u64 = 1024;
/// Records read at once when looking one up.
const LOOKUP_RECORDS: usize = 256;
const RECORDS_PER_FENCE: u64 = 64;
const FENCE_BITS_MAX: u32 = 32;

#[derive(Debug)]
pub(super) struct Run {
    body: Body,
    fences: Fences,
}

#[derive(Debug)]
enum Body {
    Memory(Vec<Packed>),
    File {
        file: File,
        /// Where the first record begins, bytes.
        start: u64,
        records: u64,
    },
}

impl Run {
    pub(super) fn in_memory(records: Vec<Packed>, fences: Fences) -> Self {
        Self { body: Body::Memory(records), fences }
    }

    /// The sorted records of a small run that is only walked over.
    pub(super) fn unfenced(records: Vec<Packed>) -> Self {
        let fences = FenceBuilder::new(0, 0).finish(records.len() as u64);
        Self::in_memory(records, fences)
    }

    pub(super) fn in_file(file: File, start: u64, records: u64, fences: Fences) -> Self {
        Self { body: Body::File { file, start, records }, fences }
    }

    pub(super) fn len(&self) -> u64 {
        match &self.body {
            Body::Memory(records) => records.len() as u64,
            Body::File { records, .. } => *records,
        }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        let records = match &self.body {
            Body::Memory(records) => records.len() * RECORD_BYTES,
            Body::File { .. } => 0,
        };
        (records + self.fences.starts.len() * size_of::<u64>()) as u64
    }

    pub(super) fn find(&self, fingerprint: &Fingerprint) -> io::Result<Option<ChunkNumber>> {
        let mut range = self.fences.around(fingerprint);
        match &self.body {
            Body::Memory(records) => Ok(search(&records[index(range.start)..index(range.end)], fingerprint)),
            Body::File { file, start, .. } => {
                while range.end - range.start > LOOKUP_RECORDS as u64 {
                    let middle = range.start + (range.end - range.start) / 2;
                    let [packed] = read_records::<1>(file, *start, middle)?;
                    match Record::unpack(&packed) {
                        record if record.fingerprint <= *fingerprint => range.start = middle,
                        _ => range.end = middle,
                    }
                }
                let mut block = [[0; RECORD_BYTES]; LOOKUP_RECORDS];
                let block = &mut block[..index(range.end - range.start)];
                file.read_exact_at(block.as_flattened_mut(), offset(*start, range.start))?;
                Ok(search(block, fingerprint))
            }
        }
    }

    /// Reads `block` full of the records from `first` on, shortening it at the end of the run.
    fn read_block(&self, first: u64, block: &mut Vec<Packed>) -> io::Result<()> {
        let range = first..self.len().min(first + BLOCK_RECORDS);
        block.clear();
        match &self.body {
            Body::Memory(records) => block.extend_from_slice(&records[index(range.start)..index(range.end)]),
            Body::File { file, start, .. } => {
                block.resize(index(range.end - range.start), [0; RECORD_BYTES]);
                file.read_exact_at(block.as_flattened_mut(), offset(*start, range.start))?;
            }
        }
        Ok(())
    }
}

fn search(records: &[Packed], fingerprint: &Fingerprint) -> Option<ChunkNumber> {
    let found = records.binary_search_by_key(fingerprint, |packed| Record::unpack(packed).fingerprint).ok()?;
    records.get(found).map(|packed| Record::unpack(packed).number)
}

fn read_records<const N: usize>(file: &File, start: u64, first: u64) -> io::Result<[Packed; N]> {
    let mut records = [[0; RECORD_BYTES]; N];
    file.read_exact_at(records.as_flattened_mut(), offset(start, first))?;
    Ok(records)
}

fn offset(start: u64, record: u64) -> u64 {
    start + record * RECORD_BYTES as u64
}

/// A position in a run whose records, or whose block, lie in memory.
fn index(record: u64) -> usize {
    usize::try_from(record).expect("what lies in memory has a usize of records")
}

/// Walks over a run in order, a block at a time.
#[derive(Debug)]
pub(super) struct Cursor<'r> {
    run: &'r Run,
    /// Records before the end of `block`.
    read: u64,
    block: Vec<Packed>,
    /// Records of `block` already given out.
    given: usize,
}

impl<'r> Cursor<'r> {
    pub(super) fn new(run: &'r Run) -> Self {
        Self { run, read: 0, block: Vec::new(), given: 0 }
    }

    pub(super) fn next(&mut self) -> io::Result<Option<Record>> {
        if self.given == self.block.len() {
            self.run.read_block(self.read, &mut self.block)?;
            self.read += self.block.len() as u64;
            self.given = 0;
        }
        let record = self.block.get(self.given).map(Record::unpack);
        self.given += usize::from(record.is_some());
        Ok(record)
    }
}

/// Where in a run the fingerprints with certain highest bits begin.
#[derive(Debug)]
pub(super) struct Fences {
    bits: u32,
    /// For each value of the highest bits the position of the first record at or above it; last the number of records.
    starts: Vec<u64>,
}

impl Fences {
    fn around(&self, fingerprint: &Fingerprint) -> Range<u64> {
        let prefix = prefix(fingerprint, self.bits);
        self.starts[prefix]..self.starts[prefix + 1]
    }
}

/// Takes the fingerprints of a run in order, to make its fences.
#[derive(Debug)]
pub(super) struct FenceBuilder {
    bits: u32,
    starts: Vec<u64>,
    position: u64,
}

impl FenceBuilder {
    /// For a run of about that many records; the fences take at most `bytes_max`, but never less than 24 bytes.
    pub(super) fn new(records: u64, bytes_max: u64) -> Self {
        let wanted = (records / RECORDS_PER_FENCE).min((bytes_max / size_of::<u64>() as u64).saturating_sub(1));
        let bits = wanted.checked_ilog2().unwrap_or(0).clamp(1, FENCE_BITS_MAX);
        Self { bits, starts: Vec::with_capacity((1 << bits) + 1), position: 0 }
    }

    pub(super) fn push(&mut self, fingerprint: &Fingerprint) {
        let prefix = prefix(fingerprint, self.bits);
        while self.starts.len() <= prefix {
            self.starts.push(self.position);
        }
        self.position += 1;
    }

    pub(super) fn finish(mut self, records: u64) -> Fences {
        self.starts.resize((1 << self.bits) + 1, records);
        Fences { bits: self.bits, starts: self.starts }
    }
}

/// The highest `bits` (1 ..= 32) of a fingerprint.
fn prefix(fingerprint: &Fingerprint, bits: u32) -> usize {
    let [a, b, c, d, ..] = fingerprint.0;
    (u32::from_be_bytes([a, b, c, d]) >> (u32::BITS - bits)) as usize
}

/// Writes a run into a nameless file.
pub(super) struct RunWriter {
    file: BufWriter<File>,
    fences: FenceBuilder,
    records: u64,
}

impl RunWriter {
    /// A run of at most `records_max` records in a file that vanishes with the process.
    pub(super) fn create(dir: &Path, records_max: u64, fence_bytes_max: u64) -> io::Result<Self> {
        Ok(Self {
            file: BufWriter::new(tempfile::tempfile_in(dir)?),
            fences: FenceBuilder::new(records_max, fence_bytes_max),
            records: 0,
        })
    }

    pub(super) fn push_all(&mut self, records: impl Iterator<Item = io::Result<Record>>) -> io::Result<()> {
        for record in records {
            let record = record?;
            self.file.write_all(&record.pack())?;
            self.fences.push(&record.fingerprint);
            self.records += 1;
        }
        Ok(())
    }

    pub(super) fn finish(self) -> io::Result<Run> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(Run::in_file(file, 0, self.records, self.fences.finish(self.records)))
    }
}
