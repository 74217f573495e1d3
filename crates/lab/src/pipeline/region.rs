//! Regions: what is stored of consecutive new chunks, gathered until there is enough to be compressed together, as
//! `silt` does.

use super::chunk::Chunk;
use super::fingerprint::{Name, New};
use super::stages::{Ordered, send};
use anyhow::Result;
use crossbeam_channel::{Receiver, Sender};
use siltstone_similar::region::{Codec, Level, RegionEncoder};
use siltstone_store::region::{DATA_REGION_BYTES_TARGET, ZSTD_LEVEL_DEFAULT};

/// Chunks that are stored together.
#[derive(Default)]
pub(super) struct Region {
    pub(super) members: Vec<Member>,
    /// Compressed form that is written instead of the members' stored bytes.
    pub(super) compressed: Option<(Codec, Vec<u8>)>,
}

/// A chunk of a region.
pub(super) struct Member {
    pub(super) name: Name,
    /// Length of the chunk.
    pub(super) bytes: usize,
    pub(super) stored: Stored,
}

/// Stored form of a chunk.
pub(super) enum Stored {
    /// All of it.
    Whole(Chunk),
    /// Difference from a base.
    Delta {
        /// The base's number.
        base: u32,
        delta: Vec<u8>,
    },
}

impl Member {
    /// A chunk that is stored whole.
    pub(super) fn whole(new: New) -> Self {
        Self { name: new.name, bytes: new.chunk.len(), stored: Stored::Whole(new.chunk) }
    }

    /// Returns the bytes stored of it.
    pub(super) fn stored_bytes(&self) -> &[u8] {
        match &self.stored {
            Stored::Whole(chunk) => chunk,
            Stored::Delta { delta, .. } => delta,
        }
    }
}

impl Region {
    /// Returns the bytes stored of each member.
    pub(super) fn slices(&self) -> impl Iterator<Item = &[u8]> {
        self.members.iter().map(Member::stored_bytes)
    }

    /// Returns the sum of the bytes stored of the members.
    pub(super) fn text_bytes(&self) -> usize {
        self.slices().map(<[u8]>::len).sum()
    }
}

/// Makes regions of members, and hands on those that are full.
pub(super) struct Gatherer {
    to: Sender<Region>,
    region: Region,
    bytes: usize,
}

impl Gatherer {
    /// One that hands on to this channel.
    pub(super) fn new(to: Sender<Region>) -> Self {
        Self { to, region: Region::default(), bytes: 0 }
    }

    /// Adds a member.
    pub(super) fn push(&mut self, member: Member) -> Result<()> {
        self.bytes += member.stored_bytes().len();
        self.region.members.push(member);
        if self.bytes < DATA_REGION_BYTES_TARGET {
            return Ok(());
        }
        self.bytes = 0;
        send(&self.to, std::mem::take(&mut self.region))
    }

    /// Hands on what is left.
    pub(super) fn finish(self) -> Result<()> {
        if self.region.members.is_empty() { Ok(()) } else { send(&self.to, self.region) }
    }
}

/// The work of a stage: compresses a region, at `silt`'s level.
pub(super) fn compress() -> Result<impl FnMut(Region) -> Result<Region>> {
    let mut encoder = RegionEncoder::new(Level::Zstd(ZSTD_LEVEL_DEFAULT))?;
    Ok(move |mut region: Region| {
        let mut payload = Vec::new();
        let form = encoder.encode(&[], &region.slices().collect::<Vec<_>>(), &mut payload);
        region.compressed = Some((form, payload));
        Ok(region)
    })
}

/// Where regions come from when they are to be written.
pub(super) enum Regions {
    /// As they were gathered.
    Gathered(Receiver<Region>),
    /// From several threads that compressed them.
    Compressed(Ordered<Region>),
}

impl Regions {
    /// The next, or `None` at the end.
    pub(super) fn next(&self) -> Result<Option<Region>> {
        match self {
            Self::Gathered(regions) => Ok(regions.recv().ok()),
            Self::Compressed(regions) => regions.next(),
        }
    }
}
