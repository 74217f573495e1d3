//! Knowledge of a store of its chunks and containers, and the recipes of its versions. All of it but the recipes can be
//! had again from the indexes of the containers, and so lies in memory only; recipes lie on disk, and are read from
//! there.

use super::cache::{Reads, Use};
use super::choose::{Container, Rule};
use super::container_store::{ContainerStore, Written};
use super::index::{Index, Likeness, Reach};
use super::recipe::{self, Item, Number};
use super::scale::Scale;
use anyhow::{Context, Result, anyhow};
use siltstone_chunk::{Chunker, Fingerprinter, Isa, Sizes};
use siltstone_similar::sketch::{Shape, Sketcher, by_name};
use siltstone_store::Fingerprint;
use siltstone_store::container::ContainerKind;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

/// All stores cut alike, in every run. (Siltstone's own cuts depend on the key of its repository, which is new each
/// time.)
const CHUNKER_KEY: [u8; 32] = [0; 32];
/// The method of sketches, that of the paper's group.
const SKETCHES: &str = "odess";

/// Way in which a store shares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Way {
    /// Reach of sharing.
    pub(super) reach: Reach,
    /// Rule by which references are refused.
    pub(super) rule: Rule,
    /// True if chunks are encoded against others that are like them.
    pub(super) has_deltas: bool,
}

/// A chunk as stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    /// Fingerprint of its content.
    pub(super) fingerprint: Fingerprint,
    /// Its length, bytes.
    pub(super) bytes: u32,
    /// Base it is encoded against.
    pub(super) base: Option<Number>,
    /// Super-features, where they were asked for.
    pub(super) likeness: Option<Likeness>,
    /// Where it lies; `None` before its container is written.
    pub(super) container: Option<Container>,
}

/// Sizes of what a store holds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Held {
    /// Bytes of everything on disk.
    pub(super) bytes: u64,
    /// Bytes of these that are not containers of data.
    pub(super) metadata_bytes: u64,
    /// Containers of data.
    pub(super) containers: u64,
}

/// A store of one of the papers' layouts.
pub(super) struct Store {
    pub(super) disk: ContainerStore,
    pub(super) scale: Scale,
    pub(super) way: Way,
    pub(super) index: Index,
    pub(super) chunks: Vec<Chunk>,
    pub(super) containers: BTreeMap<Container, Written>,
    pub(super) recipes: BTreeMap<usize, Container>,
    pub(super) chunker: Box<dyn Chunker>,
    pub(super) fingerprinter: Fingerprinter,
    pub(super) sketcher: Box<dyn Sketcher>,
    pub(super) isa: Isa,
}

impl Store {
    /// An empty one in this folder.
    pub(super) fn create(folder: &Path, way: Way, scale: Scale) -> Result<Self> {
        let disk = ContainerStore::create(folder, &scale)?;
        let (keys, config) = (disk.repository().keys(), disk.repository().config());
        let settings = &config.chunker;
        let sizes = Sizes::new(settings.min_bytes, settings.average_bytes, settings.max_bytes)?;
        let chunker = siltstone_chunk::by_name(&settings.name, sizes, &CHUNKER_KEY)?;
        let fingerprinter = Fingerprinter::best(&keys.fingerprint_key());
        let sketcher = by_name(SKETCHES, Shape::DEFAULT)?;
        let isa = Isa::chosen().map_err(|error| anyhow!("{error}"))?;
        Ok(Self {
            disk,
            scale,
            way,
            index: Index::new(way.reach),
            chunks: Vec::new(),
            containers: BTreeMap::new(),
            recipes: BTreeMap::new(),
            chunker,
            fingerprinter,
            sketcher,
            isa,
        })
    }

    /// A chunk by its number.
    ///
    /// # Errors
    /// If there never was one.
    pub(super) fn chunk(&self, number: Number) -> Result<&Chunk> {
        self.chunks.get(number as usize).with_context(|| format!("there is no chunk {number}"))
    }

    /// Where a chunk lies.
    ///
    /// # Errors
    /// If it lies nowhere.
    pub(super) fn container_of(&self, number: Number) -> Result<Container> {
        self.chunk(number)?.container.with_context(|| format!("chunk {number} is in no container"))
    }

    /// A use of a container, as a cache counts it.
    ///
    /// # Errors
    /// If there is no such container.
    pub(super) fn use_of(&self, container: Container) -> Result<Use> {
        let record = self.containers.get(&container).with_context(|| format!("there is no container {container}"))?;
        Ok((container, record.plain_bytes))
    }

    /// Containers were written: their chunks lie there now.
    pub(super) fn note(&mut self, written: Vec<Written>) {
        for one in written {
            for number in &one.members {
                self.chunks[*number as usize].container = Some(one.container);
            }
            self.containers.insert(one.container, one);
        }
    }

    /// The recipe of a version, from disk.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub(super) fn recipe(&self, version: usize) -> Result<(Vec<Item>, u64)> {
        let container = self.recipes.get(&version).with_context(|| format!("version {version} is not stored"))?;
        let (encoded, bytes_read) = self.disk.read_metadata(*container)?;
        Ok((recipe::decode(&encoded)?, bytes_read))
    }

    /// Removes the recipe of a version.
    pub(super) fn drop_recipe(&mut self, version: usize) -> Result<()> {
        let container = self.recipes.remove(&version).with_context(|| format!("version {version} is not stored"))?;
        self.disk.delete(ContainerKind::Metadata, container)
    }

    /// Returns what the store takes.
    pub(super) fn held(&self) -> Result<Held> {
        let bytes = self.disk.repository().bytes()?;
        let data_bytes: u64 = self.containers.values().map(|container| container.object_bytes).sum();
        let metadata_bytes = bytes.saturating_sub(data_bytes);
        Ok(Held { bytes, metadata_bytes, containers: self.containers.len() as u64 })
    }
}

/// The chunks a version needs: its own and their bases (MeGA, ATC 2022, section 3.3, *necessary chunks*).
pub(super) fn necessary(items: &[Item]) -> HashSet<Number> {
    items.iter().flat_map(|item| [Some(item.number), item.base]).flatten().collect()
}

/// Work beside backups and restores that keeps a store in order.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Upkeep {
    /// Time it took.
    pub(super) seconds: f64,
    /// Bytes read of containers.
    pub(super) read_bytes: u64,
    /// Bytes written to containers.
    pub(super) written_bytes: u64,
    /// Containers looked at.
    pub(super) containers: u64,
    /// Containers of these that were left as they are, or moved by name alone.
    pub(super) untouched: u64,
}

/// Bases that a backup wanted of one container.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BasesOfContainer {
    /// Different chunks.
    pub(super) bases: u64,
    /// Size of the container in memory, bytes.
    pub(super) bytes: usize,
}

/// Summary of a backup.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct BackedUp {
    /// Time it took, until all was durable.
    pub(super) seconds: f64,
    /// Reads to get bases.
    pub(super) bases: Reads,
    /// Containers in which bases were wanted; of the papers' methods only.
    pub(super) bases_by_container: Vec<BasesOfContainer>,
    /// Chunks stored as deltas.
    pub(super) deltas: u64,
    /// Bytes of the version that were read: all of them by a full backup.
    pub(super) read_bytes: u64,
}

/// Summary of a restore.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Restored {
    /// Time it took.
    pub(super) seconds: f64,
    /// Reads of containers.
    pub(super) reads: Reads,
    /// Bytes of deltas that had no room in memory and waited for their bases in the file.
    pub(super) prewritten_bytes: u64,
}
