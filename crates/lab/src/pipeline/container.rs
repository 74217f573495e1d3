//! Files on disk: containers of about 16 MiB, one region after another, and one file of recipes. Plain, so that
//! nothing but the reduction is measured: no encryption, no padding, no syncing. All numbers are little-endian.
//!
//! ```text
//! container   regions
//! region      members, form (0 raw, 1 zstd), text bytes, payload bytes    4 x u32
//!             member: name (16 bytes), bytes, base (or NONE), stored bytes   of each
//!             payload: what is stored of the members, one after another, compressed if its form is zstd
//! recipes     for each version the numbers of its chunks, then NONE          u32 each
//! ```
//! Members are numbered in the order in which they lie. Of a member without a base all bytes are stored, of one with a
//! base its delta.

use super::fingerprint::Name;
use super::region::{Region, Stored};
use anyhow::{Context, Result, anyhow};
use siltstone_similar::region::Codec;
use siltstone_store::container::CONTAINER_BYTES_DEFAULT;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Stands for no chunk.
const NONE: u32 = u32::MAX;
/// Collected before it is written.
const BUFFER_BYTES: usize = 256 << 10;

/// Where the recipes are.
pub(super) fn recipes_path(folder: &Path) -> PathBuf {
    folder.join("recipes")
}

/// Where the container of this number is.
pub(super) fn container_path(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("container-{number:06}"))
}

fn create(path: &Path) -> Result<BufWriter<File>> {
    let file = File::create(path).with_context(|| format!("{} could not be made", path.display()))?;
    Ok(BufWriter::with_capacity(BUFFER_BYTES, file))
}

/// Writes recipes.
pub(super) struct RecipeWriter(BufWriter<File>);

impl RecipeWriter {
    /// Creates the recipes of no version yet.
    pub(super) fn create(folder: &Path) -> Result<Self> {
        create(&recipes_path(folder)).map(Self)
    }

    /// The version goes on with this chunk.
    pub(super) fn push(&mut self, number: u32) -> Result<()> {
        self.0.write_all(&number.to_le_bytes()).context("the recipes could not be written")
    }

    /// The version is complete.
    pub(super) fn end_version(&mut self) -> Result<()> {
        self.push(NONE)
    }

    /// All are.
    pub(super) fn finish(mut self) -> Result<()> {
        self.0.flush().context("the recipes could not be written")
    }
}

/// Writes containers.
pub(super) struct ContainerWriter<'f> {
    folder: &'f Path,
    file: BufWriter<File>,
    /// Number of the container at work.
    number: u32,
    bytes: u64,
}

impl<'f> ContainerWriter<'f> {
    /// The first, still empty.
    pub(super) fn create(folder: &'f Path) -> Result<Self> {
        Ok(Self { folder, file: create(&container_path(folder, 0))?, number: 0, bytes: 0 })
    }

    /// Adds a region.
    pub(super) fn push(&mut self, region: &Region) -> Result<()> {
        if self.bytes >= CONTAINER_BYTES_DEFAULT {
            self.flush()?;
            self.number += 1;
            self.bytes = 0;
            self.file = create(&container_path(self.folder, self.number))?;
        }
        let (form, payload_bytes) = match &region.compressed {
            Some((form, payload)) => (*form, payload.len()),
            None => (Codec::Raw, region.text_bytes()),
        };
        let numbers = [region.members.len(), form_number(form), region.text_bytes(), payload_bytes];
        for number in numbers {
            self.write(&small(number)?.to_le_bytes())?;
        }
        for member in &region.members {
            let base = match &member.stored {
                Stored::Whole(_) => NONE,
                Stored::Delta { base, .. } => *base,
            };
            self.write(&member.name)?;
            for number in [small(member.bytes)?, base, small(member.stored_bytes().len())?] {
                self.write(&number.to_le_bytes())?;
            }
        }
        match &region.compressed {
            Some((_, payload)) => self.write(payload),
            None => region.slices().try_for_each(|slice| self.write(slice)),
        }
    }

    /// All regions are written.
    pub(super) fn finish(mut self) -> Result<()> {
        self.flush()
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes).with_context(|| self.trouble())
    }

    fn flush(&mut self) -> Result<()> {
        self.file.flush().with_context(|| self.trouble())
    }

    fn trouble(&self) -> String {
        format!("{} could not be written", container_path(self.folder, self.number).display())
    }
}

fn form_number(form: Codec) -> usize {
    match form {
        Codec::Raw => 0,
        Codec::Zstd => 1,
    }
}

fn small(number: usize) -> Result<u32> {
    u32::try_from(number).ok().filter(|number| *number != NONE).context("a region is too large: 4 GiB or more")
}

/// A region as it lies in a container.
pub(super) struct StoredRegion<'c> {
    pub(super) members: Vec<StoredMember>,
    pub(super) form: Codec,
    pub(super) text_bytes: usize,
    pub(super) payload: &'c [u8],
}

/// Record of a chunk in its region.
pub(super) struct StoredMember {
    /// Bytes of the chunk.
    pub(super) bytes: usize,
    /// The number of the chunk that it is a delta against.
    pub(super) base: Option<u32>,
    /// Bytes stored of it.
    pub(super) stored_bytes: usize,
}

/// Takes the first region off a container; `None` at its end.
pub(super) fn next_region<'c>(container: &mut &'c [u8]) -> Result<Option<StoredRegion<'c>>> {
    if container.is_empty() {
        return Ok(None);
    }
    let members = next_number(container)?;
    let form = match next_number(container)? {
        0 => Codec::Raw,
        1 => Codec::Zstd,
        other => return Err(anyhow!("a region has form {other}, which there is not")),
    };
    let (text_bytes, payload_bytes) = (next_size(container)?, next_size(container)?);
    let members = (0..members).map(|_| next_member(container)).collect::<Result<_>>()?;
    let payload = next_bytes(container, payload_bytes)?;
    Ok(Some(StoredRegion { members, form, text_bytes, payload }))
}

fn next_member(container: &mut &[u8]) -> Result<StoredMember> {
    next_bytes(container, size_of::<Name>())?;
    let bytes = next_size(container)?;
    let base = Some(next_number(container)?).filter(|base| *base != NONE);
    Ok(StoredMember { bytes, base, stored_bytes: next_size(container)? })
}

/// Takes the recipe of the first version off; `None` if there is no other.
pub(super) fn next_recipe(recipes: &mut &[u8]) -> Result<Option<Vec<u32>>> {
    if recipes.is_empty() {
        return Ok(None);
    }
    let mut numbers = Vec::new();
    loop {
        match next_number(recipes)? {
            NONE => return Ok(Some(numbers)),
            number => numbers.push(number),
        }
    }
}

fn next_size(bytes: &mut &[u8]) -> Result<usize> {
    Ok(usize::try_from(next_number(bytes)?)?)
}

fn next_number(bytes: &mut &[u8]) -> Result<u32> {
    Ok(u32::from_le_bytes(next_bytes(bytes, 4)?.try_into()?))
}

fn next_bytes<'b>(bytes: &mut &'b [u8], count: usize) -> Result<&'b [u8]> {
    let (first, rest) = bytes.split_at_checked(count).context("it ends too early")?;
    *bytes = rest;
    Ok(first)
}
