//! Nodes of catalogs that are written anew: those that the series has already are used again, the others are stored in
//! containers of their own.

use crate::chunks::ChunkSource;
use crate::pack::{ContainerSink, Packer};
use roaring::RoaringTreemap;
use siltstone_store::catalog::MetadataSink;
use siltstone_store::container::{ContainerKind, ContainerRecord};
use siltstone_store::manifest::Manifest;
use siltstone_store::region::{ChunkEntry, EncodedRegion, RegionEncoder};
use siltstone_store::secrets::RepositoryKeys;
use siltstone_store::{ChunkNumber, Fingerprint, SnapshotId, StoreError};
use std::collections::HashMap;

/// Bytes of a fingerprint.
const FINGERPRINT_BYTES: usize = 16;

/// Stores metadata chunks, each once.
pub(super) struct Nodes<'a> {
    keys: &'a RepositoryKeys,
    /// The numbers of the metadata chunks that there are.
    known: HashMap<Fingerprint, ChunkNumber>,
    next: ChunkNumber,
    /// The region that is being filled.
    chunks: Vec<ChunkEntry>,
    plain: Vec<u8>,
    encoder: RegionEncoder,
    packer: Packer<'a>,
    /// Metadata chunks that the current snapshot uses.
    used: RoaringTreemap,
    /// Hash of all that it was given so far.
    given: [u8; FINGERPRINT_BYTES],
}

impl<'a> Nodes<'a> {
    /// Knows what the snapshots of this manifest have. A container whose index cannot be read is passed over: then some
    /// nodes are stored again.
    pub(super) fn new(
        chunks: &ChunkSource<'a>,
        manifest: &Manifest,
        compression_level: i32,
        sink: &'a dyn ContainerSink,
    ) -> Result<Self, StoreError> {
        let repository = chunks.repository();
        let sound = manifest.live() - &manifest.damaged;
        let mut known = HashMap::new();
        for (at, record) in chunks.own_records() {
            if record.kind != ContainerKind::Metadata {
                continue;
            }
            let served = record.numbers() & &sound;
            let Some(reader) = chunks.sound_reader(at)? else { continue };
            let places = reader.index().places().iter().map(|place| place.chunk);
            for chunk in places.filter(|chunk| served.contains(chunk.number.0)) {
                known.entry(chunk.fingerprint).or_insert(chunk.number);
            }
        }
        Ok(Self {
            keys: repository.keys(),
            known,
            next: manifest.next_metadata,
            chunks: Vec::new(),
            plain: Vec::new(),
            encoder: RegionEncoder::fast(compression_level),
            packer: Packer::new(repository, manifest.series, sink),
            used: RoaringTreemap::new(),
            given: [0; FINGERPRINT_BYTES],
        })
    }

    /// Begins with the next snapshot.
    pub(super) fn begin(&mut self) {
        self.used.clear();
        self.given = [0; FINGERPRINT_BYTES];
    }

    /// The chunks that the current snapshot uses.
    pub(super) fn used(&self) -> &RoaringTreemap {
        &self.used
    }

    /// Returns a hash of the identity of the snapshot before, and of all nodes that the current one uses, and of their
    /// numbers.
    pub(super) fn identity(&self, before: &SnapshotId) -> [u8; FINGERPRINT_BYTES] {
        let own = [before.0.as_slice(), &self.given, &self.next.0.to_le_bytes()].concat();
        self.keys.metadata_fingerprint(&own).0
    }

    /// Hands on what is left. Gives the containers, and the number that the next metadata chunk gets.
    pub(super) fn finish(mut self) -> Result<(Vec<ContainerRecord>, ChunkNumber), StoreError> {
        self.flush()?;
        Ok((self.packer.finish()?.containers, self.next))
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        if self.chunks.is_empty() {
            return Ok(());
        }
        let region = EncodedRegion::encode(&mut self.encoder, std::mem::take(&mut self.chunks), &self.plain)?;
        self.plain.clear();
        self.packer.push(ContainerKind::Metadata, &region)
    }

    /// Puts a chunk that there is not yet into the region.
    fn push(&mut self, fingerprint: Fingerprint, bytes: &[u8]) -> Result<ChunkNumber, StoreError> {
        if self.plain.len() + bytes.len() > ContainerKind::Metadata.region_bytes_target() {
            self.flush()?;
        }
        let refused = |_| StoreError::limit("a chunk", "its length", bytes.len() as u64, u32::MAX.into());
        let length = u32::try_from(bytes.len()).map_err(refused)?;
        let number = self.next;
        self.chunks.push(ChunkEntry { number, fingerprint, length });
        self.plain.extend_from_slice(bytes);
        self.next.0 += 1;
        self.known.insert(fingerprint, number);
        Ok(number)
    }
}

impl MetadataSink for Nodes<'_> {
    fn store(&mut self, bytes: &[u8]) -> Result<ChunkNumber, StoreError> {
        let fingerprint = self.keys.metadata_fingerprint(bytes);
        let number = match self.known.get(&fingerprint) {
            Some(number) => *number,
            None => self.push(fingerprint, bytes)?,
        };
        self.used.insert(number.0);
        let given = [self.given.as_slice(), &fingerprint.0, &number.0.to_le_bytes()].concat();
        self.given = self.keys.metadata_fingerprint(&given).0;
        Ok(number)
    }
}
