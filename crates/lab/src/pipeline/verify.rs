//! Reading back: every version, from what lies on disk alone, compared byte by byte.

use super::container::{StoredMember, StoredRegion, container_path, next_recipe, next_region, recipes_path};
use super::stream::Stream;
use anyhow::{Context, Result, ensure};
use siltstone_similar::Isa;
use siltstone_similar::delta::{ChunkDelta, CopyInsert};
use siltstone_similar::region::RegionDecoder;
use std::fs;
use std::ops::Range;
use std::path::Path;

/// Counts of what was found on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Found {
    /// Chunks of all versions.
    pub(super) chunks: u64,
    /// Chunks that are stored.
    pub(super) unique: u64,
    /// Their bytes.
    pub(super) unique_bytes: u64,
    /// Number of them stored as deltas.
    pub(super) deltas: u64,
    /// Bytes of all files: containers with what they say of their chunks, and recipes.
    pub(super) stored_bytes: u64,
}

/// Reads everything back and compares it with the stream.
///
/// # Errors
/// If a file is not there, what it holds makes no sense, or a version is not what it was.
pub(super) fn read_back(folder: &Path, stream: &Stream<'_>) -> Result<Found> {
    let mut store = Store::default();
    for number in 0.. {
        let path = container_path(folder, number);
        // They are numbered without gaps.
        if !path.exists() {
            break;
        }
        let bytes = fs::read(&path).with_context(|| format!("{} could not be read", path.display()))?;
        store.add(&bytes).with_context(|| format!("{} is damaged", path.display()))?;
    }
    let path = recipes_path(folder);
    let bytes = fs::read(&path).with_context(|| format!("{} could not be read", path.display()))?;
    store.found.stored_bytes += bytes.len() as u64;
    let mut recipes = &bytes[..];
    for (number, version) in stream.versions.iter().enumerate() {
        let recipe = next_recipe(&mut recipes)?.with_context(|| format!("version {number} has no recipe"))?;
        store.compare(&recipe, version).with_context(|| format!("version {number} came back otherwise"))?;
        store.found.chunks += recipe.len() as u64;
    }
    ensure!(recipes.is_empty(), "there are more recipes than versions");
    Ok(store.found)
}

/// The chunks that were read back.
struct Store {
    bytes: Vec<u8>,
    /// Place of each chunk, by its number.
    chunks: Vec<Range<usize>>,
    found: Found,
    regions: RegionDecoder,
    deltas: CopyInsert,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            chunks: Vec::new(),
            found: Found::default(),
            regions: RegionDecoder::new(),
            deltas: CopyInsert::new(Isa::best()),
        }
    }
}

impl Store {
    fn add(&mut self, container: &[u8]) -> Result<()> {
        self.found.stored_bytes += container.len() as u64;
        let mut rest = container;
        while let Some(region) = next_region(&mut rest)? {
            let StoredRegion { members, form, text_bytes, payload } = region;
            let mut text = self.regions.decode(form, &[], payload, text_bytes)?;
            for member in &members {
                let number = self.chunks.len();
                let (stored, others) = text.split_at_checked(member.stored_bytes).context("a region is too short")?;
                text = others;
                let place = self.bytes.len();
                restore(&mut self.bytes, &self.chunks, &mut self.deltas, member, stored)
                    .with_context(|| format!("chunk {number} could not be restored"))?;
                self.chunks.push(place..self.bytes.len());
                self.found.unique += 1;
                self.found.unique_bytes += member.bytes as u64;
                self.found.deltas += u64::from(member.base.is_some());
            }
            ensure!(text.is_empty(), "a region is longer than its chunks");
        }
        Ok(())
    }

    fn compare(&self, recipe: &[u32], version: &[u8]) -> Result<()> {
        let mut rest = version;
        for number in recipe {
            let place = self.chunks.get(*number as usize).with_context(|| format!("there is no chunk {number}"))?;
            rest = rest
                .strip_prefix(&self.bytes[place.clone()])
                .with_context(|| format!("byte {} or one soon after it", version.len() - rest.len()))?;
        }
        ensure!(rest.is_empty(), "{} bytes are missing at its end", rest.len());
        Ok(())
    }
}

/// Appends the chunk to the bytes of all chunks.
fn restore(
    bytes: &mut Vec<u8>,
    chunks: &[Range<usize>],
    deltas: &mut CopyInsert,
    member: &StoredMember,
    stored: &[u8],
) -> Result<()> {
    let Some(base) = member.base else {
        ensure!(stored.len() == member.bytes, "it is stored whole, but of another length");
        bytes.extend_from_slice(stored);
        return Ok(());
    };
    let place =
        chunks.get(base as usize).with_context(|| format!("its base, chunk {base}, does not come before it"))?;
    let mut chunk = Vec::with_capacity(stored.len());
    deltas.decode(&bytes[place.clone()], stored, member.bytes, &mut chunk)?;
    bytes.extend_from_slice(&chunk);
    Ok(())
}
