//! Sources of the loop: made once, and changed before each backup.

use anyhow::Result;
use siltstone_testbed::deterministic::Sequence;
use siltstone_testbed::tree;
use std::fs;
use std::path::Path;

/// Files of many sizes, half of whose bytes compress.
pub(crate) fn generate(source: &Path, megabytes: u64, sequence: &mut Sequence) -> Result<()> {
    let mut left = megabytes * 1_000_000;
    let mut number = 0_u64;
    while left > 0 {
        let folder = source.join(format!("folder{}", number % 23));
        fs::create_dir_all(&folder)?;
        let bytes = (1 << sequence.below(22)).min(left);
        fs::write(folder.join(format!("file{number}")), content(usize::try_from(bytes)?, sequence))?;
        left -= bytes;
        number += 1;
    }
    Ok(())
}

fn content(bytes: usize, sequence: &mut Sequence) -> Vec<u8> {
    let mut content = sequence.bytes(bytes);
    content.chunks_mut(1 << 10).step_by(2).for_each(|block| block.fill(b'.'));
    content
}

/// Rewrites, renames and adds a few files.
pub(super) fn change(source: &Path, sequence: &mut Sequence) -> Result<()> {
    let files = tree::files(source)?;
    for _ in 0..=files.len() / 50 {
        let path = &files[sequence.index(files.len())];
        let bytes = 1 << sequence.below(20);
        fs::write(path, content(bytes, sequence))?;
    }
    let removed = &files[sequence.index(files.len())];
    fs::rename(removed, removed.with_extension(sequence.below(1000).to_string()))?;
    let bytes = 1 << sequence.below(21);
    fs::write(source.join(format!("new{}", sequence.below(1_000_000))), content(bytes, sequence))?;
    Ok(())
}
