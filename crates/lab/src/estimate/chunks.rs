//! Deduplication as restic does it.

use super::Keeper;
use super::chain::failed;
use crate::tree;
use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use siltstone_chunk::{ALGORITHMS, Chunker, Isa, Sizes, SliceChunks};
use std::collections::HashSet;
use std::fs;
use std::path::Path;
use zstd_safe::CCtx;

/// Its chunks: smallest, expected, largest.
const SIZES: (u32, u32, u32) = (512 << 10, 1 << 20, 8 << 20);
/// Bytes beside the content of each stored chunk: 16 of nonce and 16 of tag, 41 of the pack's header.
const CHUNK_BYTES_BESIDE: u64 = 73;
/// Level at which restic compresses unless it is told otherwise.
const LEVEL: i32 = 3;

/// Bytes stored so far.
pub(super) struct Restic {
    chunker: Box<dyn Chunker>,
    known: HashSet<[u8; 32]>,
    context: CCtx<'static>,
    stored: u64,
}

impl Restic {
    pub(super) fn create() -> Result<Self> {
        let rabin = ALGORITHMS.iter().find(|algorithm| algorithm.name == "rabin").context("Rabin is a chunker")?;
        let (min, expected, max) = SIZES;
        let chunker = rabin.make(Sizes::new(min, expected, max)?, &[0; 32], Isa::best());
        let context = CCtx::try_create().context("zstd gives no context")?;
        Ok(Self { chunker, known: HashSet::new(), context, stored: 0 })
    }
}

impl Keeper for Restic {
    fn name(&self) -> &'static str {
        "restic-like"
    }

    /// Every file is cut by itself.
    fn keep(&mut self, version: &Path, _: &[u8]) -> Result<()> {
        let files = if version.is_dir() { tree::readable_files(version).0 } else { vec![version.to_path_buf()] };
        let mut compressed = Vec::new();
        for file in files {
            let content = fs::read(&file).with_context(|| format!("{} cannot be read", file.display()))?;
            for chunk in SliceChunks::new(&self.chunker, &content) {
                if self.known.insert(Sha256::digest(chunk).into()) {
                    compressed.clear();
                    compressed.reserve(zstd_safe::compress_bound(chunk.len()));
                    let length = self.context.compress(&mut compressed, chunk, LEVEL).map_err(failed)?;
                    // What does not become smaller is stored as it is.
                    self.stored += length.min(chunk.len()) as u64 + CHUNK_BYTES_BESIDE;
                }
            }
        }
        Ok(())
    }

    fn stored(&self) -> Result<u64> {
        Ok(self.stored)
    }
}
