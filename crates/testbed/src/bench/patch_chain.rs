//! zstd as a program, each version against the one before (`--patch-from`): what whole files and a chain of deltas come
//! to.

use crate::archive;
use crate::install::{self, ZSTD};
use crate::program;
use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use tempfile::TempDir;

/// The chain so far.
pub struct PatchChain {
    /// Compressed bytes of the first version, and of each against the one before.
    pub bytes: u64,
    /// Time that took.
    pub seconds: f64,
    level: u8,
    before: Option<PathBuf>,
    folder: TempDir,
}

impl PatchChain {
    /// An empty chain at this level of zstd, its files below `work`.
    pub fn begin(level: u8, work: &Path) -> Result<Self> {
        install::ensure(&[ZSTD])?;
        let folder = tempfile::Builder::new().prefix("chain").tempdir_in(work)?;
        Ok(Self { bytes: 0, seconds: 0.0, level, before: None, folder })
    }

    /// The next version: a folder as the archive `tar` makes of it, a file as it is. A file has to stay until the next
    /// one was added. Returns how many bytes were encoded.
    pub fn add(&mut self, version: &Path) -> Result<u64> {
        if version.is_file() {
            self.encode(version.to_path_buf())?;
            return Ok(fs::metadata(version)?.len());
        }
        let mut bytes = Vec::new();
        archive::append(&mut bytes, version)?;
        self.add_bytes(&bytes)?;
        Ok(bytes.len() as u64)
    }

    /// The next version, as bytes.
    pub fn add_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        // Two files take turns: the version before is still needed.
        let (one, other) = (self.folder.path().join("one"), self.folder.path().join("other"));
        let this = if self.before.as_ref() == Some(&one) { other } else { one };
        fs::write(&this, bytes)?;
        self.encode(this)
    }

    fn encode(&mut self, version: PathBuf) -> Result<()> {
        let out = self.folder.path().join("out");
        let mut zstd = Command::new(ZSTD.program);
        zstd.arg(format!("-{}", self.level)).args(["-q", "-f", "--long=31", "-T1"]);
        if let Some(before) = &self.before {
            zstd.arg(format!("--patch-from={}", before.display()));
        }
        let begin = Instant::now();
        program::quietly(zstd.arg(&version).arg("-o").arg(&out))?;
        self.seconds += begin.elapsed().as_secs_f64();
        self.bytes += fs::metadata(&out)?.len();
        self.before = Some(version);
        Ok(())
    }
}
