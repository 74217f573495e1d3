//! Editing one percent of a tree, the same way for every tool and every machine: of the small files one in a hundred
//! gets a line inserted in its middle; of the large files one in a hundred 64-KiB blocks is overwritten in place, as a
//! database does.

use crate::deterministic::Sequence;
use crate::tree;
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A file from here on is edited by blocks, a smaller one as a whole.
const LARGE_FILE_BYTES: u64 = 1 << 20;
/// Bytes overwritten at once in a large file.
const BLOCK_BYTES: u64 = 64 << 10;

/// Changes one percent of the tree at `root`, at least one file or block of it; `seed` says which.
pub fn one_percent(root: &Path, seed: u64) -> Result<()> {
    let mut sequence = Sequence::new(seed);
    let mut small = Vec::new();
    for path in tree::files(root)? {
        if fs::metadata(&path)?.len() >= LARGE_FILE_BYTES {
            overwrite_blocks(&path, &mut sequence)?;
        } else {
            small.push(path);
        }
    }
    for _ in 0..small.len().div_ceil(100) {
        let path = small.swap_remove(sequence.index(small.len()));
        insert_line(&path, &mut sequence).with_context(|| format!("{} cannot be edited", path.display()))?;
    }
    Ok(())
}

fn insert_line(path: &Path, sequence: &mut Sequence) -> Result<()> {
    let mut content = fs::read(path)?;
    let middle = content.len() / 2;
    content.splice(middle..middle, format!("\nedited {:016x}\n", sequence.next()).into_bytes());
    Ok(fs::write(path, content)?)
}

fn overwrite_blocks(path: &Path, sequence: &mut Sequence) -> Result<()> {
    let file = File::options().read(true).write(true).open(path)?;
    let blocks = file.metadata()?.len() / BLOCK_BYTES;
    let mut block = vec![0; 64 << 10];
    for _ in 0..blocks.div_ceil(100) {
        let offset = sequence.below(blocks) * BLOCK_BYTES;
        file.read_exact_at(&mut block, offset)?;
        // One byte in 32 changes: nothing of the block can be found again, and it compresses much as before.
        let change = u8::try_from(1 + sequence.below(255)).expect("below 256");
        block.iter_mut().step_by(32).for_each(|byte| *byte ^= change);
        file.write_all_at(&block, offset)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_percent_of_small_files_and_of_large_files_blocks_changes() {
        let folder = tempfile::tempdir().unwrap();
        let small: Vec<_> = (0..300).map(|number| folder.path().join(format!("small{number}"))).collect();
        for path in &small {
            fs::write(path, "some\ntext\n").unwrap();
        }
        let large = folder.path().join("large");
        let before = Sequence::new(7).bytes(64 << 20);
        fs::write(&large, &before).unwrap();
        one_percent(folder.path(), 1).unwrap();
        let changed = small.iter().filter(|path| fs::metadata(path).unwrap().len() != 10).count();
        assert_eq!(changed, 3);
        let after = fs::read(&large).unwrap();
        let differing = before.chunks(64 << 10).zip(after.chunks(64 << 10)).filter(|(one, other)| one != other).count();
        assert!((5..=11).contains(&differing), "{differing} of 1024 blocks");
    }
}
