//! The versions of a history, one in memory at a time; and the page cache, emptied of what a store wrote.

use super::incremental::Inventory;
use crate::archive;
use crate::corpus::Corpus;
use crate::settings::Settings;
use crate::tree;
use anyhow::{Context, Result, ensure};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// With `quick`, as many of the first versions as make so many bytes.
const QUICK_BYTES_MAX: u64 = 60_000_000;
/// And no more of them.
const QUICK_VERSIONS_MAX: usize = 8;

/// Copies of the largest version while it is brought into memory.
const COPIES_IN_MEMORY: u64 = 2;
/// Memory that a method takes besides: its caches and tables, and what Siltstone's engine takes at least, MiB.
const MEMORY_MIB_BESIDE: u64 = 384;

/// Versions of a history, oldest first: two or more.
#[derive(Clone, Debug)]
pub(super) struct Versions {
    paths: Vec<PathBuf>,
    bytes: u64,
}

impl Versions {
    /// Those of a corpus.
    ///
    /// # Errors
    /// If there are fewer than two, one is too large for the memory there may be, or they cannot be looked at.
    pub(super) fn of(corpus: &Corpus, settings: &Settings) -> Result<Self> {
        let mut paths = Vec::new();
        let (mut bytes, mut largest) = (0, 0);
        for path in &corpus.versions {
            let more = if path.is_dir() { tree::bytes(path)? } else { fs::metadata(path)?.len() };
            let is_enough = bytes + more > QUICK_BYTES_MAX || paths.len() == QUICK_VERSIONS_MAX;
            if settings.quick && is_enough && paths.len() >= 2 {
                break;
            }
            paths.push(path.clone());
            bytes += more;
            largest = largest.max(more);
        }
        ensure!(paths.len() >= 2, "{} has {} versions; a history has two or more", corpus.name, paths.len());
        let needed_mib = ((largest * COPIES_IN_MEMORY) >> 20) + MEMORY_MIB_BESIDE;
        ensure!(
            needed_mib <= settings.memory_mib,
            "versions of {} MB take {needed_mib} MiB of memory, more than the {} MiB of --memory",
            largest / 1_000_000,
            settings.memory_mib
        );
        Ok(Self { paths, bytes })
    }

    /// Returns how many there are.
    pub(super) fn count(&self) -> usize {
        self.paths.len()
    }

    /// Bytes of a version in the mean.
    pub(super) fn mean_bytes(&self) -> u64 {
        self.bytes / self.paths.len() as u64
    }

    /// The bytes of a version, counted from 1; of a folder those of its archive.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(super) fn load(&self, version: usize) -> Result<Arc<[u8]>> {
        let path = self.path(version)?;
        let mut bytes = Vec::new();
        let append = if path.is_dir() { archive::append } else { archive::append_file };
        append(&mut bytes, path)?;
        Ok(bytes.into())
    }

    /// Returns what an incremental backup is told of a version, whose bytes these are: of a folder the files, of a file
    /// the blocks.
    ///
    /// # Errors
    /// If it cannot be read, or is no longer as it was.
    pub(super) fn inventory(&self, version: usize, bytes: &[u8]) -> Result<Inventory> {
        let path = self.path(version)?;
        if !path.is_dir() {
            return Ok(Inventory::of_blocks(bytes));
        }
        Inventory::of_archive(archive::entries(path)?, bytes)
    }

    fn path(&self, version: usize) -> Result<&Path> {
        let path = version.checked_sub(1).and_then(|at| self.paths.get(at));
        path.map(PathBuf::as_path).with_context(|| format!("there is no version {version}"))
    }
}

/// Hash by which a restore is judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Digest(blake3::Hash);

impl Digest {
    /// Returns that of bytes in memory.
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes))
    }

    /// Returns that of a file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(super) fn of_file(path: &Path) -> Result<Self> {
        let mut hasher = blake3::Hasher::new();
        let file = File::open(path).with_context(|| format!("{} cannot be opened", path.display()))?;
        hasher.update_reader(file).with_context(|| format!("{} cannot be read", path.display()))?;
        Ok(Self(hasher.finalize()))
    }
}

/// Asks the system to forget what it keeps in memory of the files below a folder, so that the next reads come from the
/// disk. What was written must be durable. Where there is no such call, or files lie in memory anyway, nothing happens.
///
/// # Errors
/// If the folder cannot be looked through.
pub(super) fn leave_page_cache(folder: &Path) -> Result<()> {
    for path in tree::files(folder)? {
        #[cfg(target_os = "linux")]
        rustix::fs::fadvise(File::open(&path)?, 0, None, rustix::fs::Advice::DontNeed)?;
        #[cfg(not(target_os = "linux"))]
        drop(path);
    }
    Ok(())
}
