//! A virtual machine's disk, as one file: blocks are rewritten where they lie, mostly in the same regions each time,
//! and free blocks are filled. MeGA (ATC'22, sections 5.2 and 5.4) says of its machines that they change "the same
//! region in each backup"; AE (TC'17, Table 5) finds runs of one byte in such images.
//!
//! ```text
//! extents     of a log-normal number of bytes (as files of SYN: syn.rs), to whole blocks of 4 KiB; 30 % of them are free: zeros
//! regions     16, together 10 % of the disk, the same in all versions
//! rewritten   2 % of the blocks, in runs of 1 to 16: four fifths of the runs lie in the regions;
//!             half of the runs get new content, of the others 64 to 1023 bytes of each block change
//! filled      0.5 % of the blocks, which were free
//! ```
//!
//! Nothing moves: a cut that depends on content has no advantage here over one at every multiple of a size, and no
//! disadvantage. Shares without a source are ours.

use super::content::Content;
use super::draw::{log_normal, share};
use super::record::{Changes, Version, version_name};
use super::stop::go_on;
use crate::deterministic::Sequence;
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

const BLOCK_BYTES: u64 = 4096;
const FREE_PERCENT: u64 = 30;
const REGIONS: u64 = 16;
const REGIONS_PERCENT: u64 = 10;
const RUN_BLOCKS_MAX: u64 = 16;
/// The disk over its largest extent.
const DISK_OVER_EXTENT: u64 = 64;

/// Parameters of a disk image that ages.
#[derive(Clone, PartialEq, Debug, Serialize, clap::Args)]
pub struct Disk {
    /// Seed: the same gives the same bytes
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Versions
    #[arg(long, default_value_t = 20)]
    pub versions: u64,
    /// Bytes of the disk (as 40MB, 64MiB), to whole blocks of 4 KiB
    #[arg(long, default_value = "52MB", value_parser = super::parse_bytes)]
    pub size: u64,
    /// Blocks rewritten between versions, percent of all
    #[arg(long, default_value_t = 2.0)]
    pub rewritten_percent: f64,
    /// Free blocks filled between versions, percent of all
    #[arg(long, default_value_t = 0.5)]
    pub filled_percent: f64,
}

/// Blocks that hold one thing, or nothing.
struct Extent {
    begin: u64,
    blocks: u64,
    content: Option<Content>,
}

impl Disk {
    /// These versions, of this size, as the defaults change them.
    pub fn new(seed: u64, versions: u64, size: u64) -> Self {
        Self { seed, versions, size, rewritten_percent: 2.0, filled_percent: 0.5 }
    }

    pub(super) fn check(&self) -> Result<()> {
        let shares = [self.rewritten_percent, self.filled_percent];
        ensure!(shares.iter().all(|percent| (0.0..=100.0).contains(percent)), "shares are from 0 to 100 percent");
        Ok(())
    }

    fn blocks(&self) -> u64 {
        self.size.div_ceil(BLOCK_BYTES)
    }

    /// All versions into `folder`.
    pub(super) fn make(&self, folder: &Path) -> Result<Vec<Version>> {
        let mut sequence = Sequence::of(&[self.seed, 0x4449_534b]);
        let mut extents = self.extents(&mut sequence);
        let regions: Vec<u64> = (0..REGIONS).map(|_| sequence.below(self.blocks())).collect();
        let mut versions: Vec<Version> = Vec::new();
        for number in 0..self.versions {
            go_on()?;
            let name = format!("{}.img", version_name(number, self.versions));
            let path = folder.join(&name);
            let failed = || format!("{} cannot be written", path.display());
            let changes = match versions.last() {
                None => {
                    write_first(&path, &extents, &mut sequence).with_context(failed)?;
                    None
                }
                Some(before) => {
                    fs::copy(folder.join(&before.name), &path).with_context(failed)?;
                    let file = File::options().write(true).open(&path).with_context(failed)?;
                    let changed_bytes =
                        self.change(&file, &mut extents, &regions, &mut sequence).with_context(failed)?;
                    Some(Changes { modified: 1, changed_bytes, ..Changes::default() })
                }
            };
            versions.push(Version { name, bytes: self.blocks() * BLOCK_BYTES, files: 1, changes });
        }
        Ok(versions)
    }

    fn extents(&self, sequence: &mut Sequence) -> Vec<Extent> {
        let (all, mut begin) = (self.blocks(), 0);
        let most = (all / DISK_OVER_EXTENT).max(1);
        let mut extents = Vec::new();
        while begin < all {
            let blocks = log_normal(sequence, 9.48, 2.46).div_ceil(BLOCK_BYTES).min(most).min(all - begin);
            let is_free = sequence.below(100) < FREE_PERCENT;
            extents.push(Extent { begin, blocks, content: (!is_free).then(|| Content::drawn(sequence)) });
            begin += blocks;
        }
        extents
    }

    /// Changes the disk into its next version; returns the bytes written.
    fn change(&self, file: &File, extents: &mut [Extent], regions: &[u64], sequence: &mut Sequence) -> io::Result<u64> {
        let mut changed_bytes = 0;
        let mut left = share(sequence, self.blocks(), self.rewritten_percent);
        while left > 0 {
            let (begin, drawn) = (self.place(regions, sequence), 1 + sequence.below(RUN_BLOCKS_MAX));
            let blocks = drawn.min(left).min(self.blocks() - begin);
            left -= blocks;
            let at = extents.partition_point(|extent| extent.begin <= begin) - 1;
            let content = extents[at].content.unwrap_or(Content::Binary);
            changed_bytes += rewrite(file, begin, blocks, content, sequence)?;
        }
        let mut left = share(sequence, self.blocks(), self.filled_percent);
        let mut free: Vec<usize> = (0..extents.len()).filter(|&at| extents[at].content.is_none()).collect();
        while left > 0 && !free.is_empty() {
            let at = free.swap_remove(sequence.index(free.len()));
            let content = Content::drawn(sequence);
            extents[at].content = Some(content);
            let bytes = extents[at].blocks * BLOCK_BYTES;
            write_at(file, extents[at].begin * BLOCK_BYTES, bytes, content, sequence)?;
            changed_bytes += bytes;
            left = left.saturating_sub(extents[at].blocks);
        }
        Ok(changed_bytes)
    }

    /// A block to rewrite.
    fn place(&self, regions: &[u64], sequence: &mut Sequence) -> u64 {
        let region_blocks = (self.blocks() * REGIONS_PERCENT / 100 / REGIONS).max(1);
        if sequence.below(5) == 0 {
            return sequence.below(self.blocks());
        }
        (regions[sequence.index(regions.len())] + sequence.below(region_blocks)) % self.blocks()
    }
}

fn write_first(path: &Path, extents: &[Extent], sequence: &mut Sequence) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    for extent in extents {
        let bytes = extent.blocks * BLOCK_BYTES;
        match extent.content {
            Some(content) => content.write(Sequence::new(sequence.next()), bytes, &mut out)?,
            None => io::copy(&mut io::Read::take(io::repeat(0), bytes), &mut out).map(drop)?,
        }
    }
    out.flush()
}

fn rewrite(file: &File, begin: u64, blocks: u64, content: Content, sequence: &mut Sequence) -> io::Result<u64> {
    if sequence.below(2) == 0 {
        write_at(file, begin * BLOCK_BYTES, blocks * BLOCK_BYTES, content, sequence)?;
        return Ok(blocks * BLOCK_BYTES);
    }
    let mut changed_bytes = 0;
    for block in begin..begin + blocks {
        let bytes = 64 + sequence.below(960);
        let at = block * BLOCK_BYTES + sequence.below(BLOCK_BYTES - bytes + 1);
        write_at(file, at, bytes, content, sequence)?;
        changed_bytes += bytes;
    }
    Ok(changed_bytes)
}

/// New content at an offset. Extents are bounded by the disk's share of one, so it goes through memory piece by piece.
fn write_at(file: &File, offset: u64, bytes: u64, content: Content, sequence: &mut Sequence) -> io::Result<()> {
    content.write(Sequence::new(sequence.next()), bytes, &mut At { file, offset })
}

/// Writes on from an offset.
struct At<'f> {
    file: &'f File,
    offset: u64,
}

impl Write for At<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write_at(bytes, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::syn::digest;

    #[test]
    fn a_seed_gives_the_same_bytes_everywhere_and_for_ever() {
        let digests = [1, 2].map(|seed| {
            let folder = tempfile::tempdir().unwrap();
            Disk::new(seed, 3, 300_000).make(folder.path()).unwrap();
            digest(folder.path())
        });
        assert_eq!(digests[0], "e17f96a27623cdc9");
        assert_ne!(digests[0], digests[1]);
    }

    #[test]
    fn blocks_change_in_place_as_many_as_the_shares_say() {
        let folder = tempfile::tempdir().unwrap();
        let versions = Disk::new(3, 6, 8 << 20).make(folder.path()).unwrap();
        let read = |version: &Version| fs::read(folder.path().join(&version.name)).unwrap();
        let mut changed = 0;
        for pair in versions.windows(2) {
            let (old, new) = (read(&pair[0]), read(&pair[1]));
            assert_eq!(old.len(), 8 << 20);
            let differ = old.chunks(4096).zip(new.chunks(4096)).filter(|(old, new)| old != new).count();
            let bytes = old.iter().zip(&new).filter(|(old, new)| old != new).count() as u64;
            assert!(bytes <= pair[1].changes.as_ref().unwrap().changed_bytes);
            changed += differ;
        }
        // 2.5 % of 2048 blocks, five times; runs that meet are counted once, an extent that is filled may be larger
        // than asked for.
        assert!((150..400).contains(&changed), "{changed}");
        let zeros = read(&versions[0]).chunks(4096).filter(|block| block.iter().all(|byte| *byte == 0)).count();
        assert!((300..1000).contains(&zeros), "{zeros}");
    }
}
