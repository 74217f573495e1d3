//! Names of chunks by their content, and the stage that tells known chunks from new ones.

use super::chunk::{Chunk, Chunks};
use super::container::RecipeWriter;
use super::region::{Gatherer, Member};
use super::stages::{Ordered, send};
use anyhow::{Context, Result};
use crossbeam_channel::Sender;
use siltstone_chunk::{Fingerprinter, Reference};
use std::collections::HashMap;

/// Name of a chunk: the first half of its fingerprint, as `silt` keeps it too.
pub(super) type Name = [u8; 16];

/// The hash that fingerprints are made by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Hash {
    /// SHA-1, as AE's and Odess's systems take it.
    Sha1,
    /// Hash of `silt`: keyed BLAKE3, the chunks of a piece together.
    Blake3,
}

impl Hash {
    /// As in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Blake3 => "blake3",
        }
    }
}

/// Chunks and their names.
pub(super) struct Named {
    chunks: Chunks,
    names: Vec<Name>,
}

/// The work of the stage: the names of the chunks of a piece.
pub(super) fn fingerprint(hash: Hash) -> impl FnMut(Chunks) -> Result<Named> {
    let fingerprinter = Fingerprinter::best(&[0; 32]);
    move |chunks| {
        let slices: Vec<&[u8]> = chunks.chunks.iter().map(|chunk| &**chunk).collect();
        let mut fingerprints = Vec::with_capacity(slices.len());
        match hash {
            Hash::Sha1 => fingerprints.extend(slices.iter().map(|chunk| Reference::Sha1.hash(chunk))),
            Hash::Blake3 => fingerprinter.fingerprints(&slices, &mut fingerprints),
        }
        let names = fingerprints.iter().map(first_half).collect();
        Ok(Named { chunks, names })
    }
}

fn first_half(fingerprint: &[u8; 32]) -> Name {
    let (first, _) = fingerprint.split_at(size_of::<Name>());
    first.try_into().unwrap_or_default()
}

/// A chunk that is stored.
#[derive(Clone, Debug)]
pub(super) struct New {
    /// A serial from 0.
    pub(super) number: u32,
    pub(super) name: Name,
    pub(super) chunk: Chunk,
}

/// Where new chunks go.
pub(super) enum NewTo {
    /// To where sketches are made.
    Sketch(Sender<Vec<New>>),
    /// Into regions.
    Regions(Gatherer),
}

impl NewTo {
    fn hand_on(&mut self, new: Vec<New>) -> Result<()> {
        match self {
            Self::Sketch(to) => send(to, new),
            Self::Regions(gatherer) => new.into_iter().try_for_each(|new| gatherer.push(Member::whole(new))),
        }
    }

    fn finish(self) -> Result<()> {
        match self {
            Self::Sketch(_) => Ok(()),
            Self::Regions(gatherer) => gatherer.finish(),
        }
    }
}

/// The stage: hands on what is new, and writes down what the versions are made of. The index is in memory, and of all
/// chunks.
pub(super) fn index(named: &Ordered<Named>, mut recipes: RecipeWriter, mut to: NewTo) -> Result<()> {
    let mut index: HashMap<Name, u32> = HashMap::new();
    while let Some(Named { chunks, names }) = named.next()? {
        let mut new = Vec::new();
        let (mut bytes, mut new_bytes) = (0, 0);
        for (chunk, name) in chunks.chunks.into_iter().zip(names) {
            let next = u32::try_from(index.len()).context("the stream has more chunks than numbers have 32 bits")?;
            bytes += chunk.len();
            let number = *index.entry(name).or_insert(next);
            recipes.push(number)?;
            if number == next {
                new_bytes += chunk.len();
                new.push(New { number, name, chunk });
            }
        }
        if chunks.ends_version {
            recipes.end_version()?;
        }
        if new_bytes * 2 < bytes {
            for new in &mut new {
                new.chunk = new.chunk.apart();
            }
        }
        to.hand_on(new)?;
    }
    to.finish()?;
    recipes.finish()
}
