//! Containers with region deltas, and snapshots, made by hand, for tests.

use crate::backup::default_chunker;
use siltstone_store::container::{ContainerBuilder, ContainerKind};
use siltstone_store::keys::{Argon2Cost, KeyLabel};
use siltstone_store::manifest::{Manifest, Snapshot, SnapshotStatistics};
use siltstone_store::region::{Base, ChunkEntry, EncodedRegion, RegionEncoder};
use siltstone_store::repository::Repository;
use siltstone_store::storage::{Recorder, SimulatedDisk, Storage};
use siltstone_store::{ChunkNumber, ContainerId, SeriesId, SnapshotId, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A repository with a manifest that was never written, to read from.
pub(crate) struct Bench {
    pub(crate) repository: Repository,
    pub(crate) disk: Arc<Recorder<SimulatedDisk>>,
    pub(crate) manifest: Manifest,
    /// Content of each chunk.
    pub(crate) contents: BTreeMap<u64, Vec<u8>>,
    encoder: RegionEncoder,
}

impl Bench {
    pub(crate) fn new(contents: impl IntoIterator<Item = (u64, Vec<u8>)>) -> Self {
        let disk = Arc::new(Recorder::new(SimulatedDisk::new()));
        let label = KeyLabel { created: Time::default(), host: "host".into(), user: "user".into() };
        let chunker = default_chunker();
        let repository =
            Repository::init(disk.clone(), b"password", &label, Argon2Cost::TEST, chunker).expect("a repository");
        let manifest = Manifest::new(SeriesId([7; 16]), "test");
        let encoder = RegionEncoder::fast(1);
        Self { repository, disk, manifest, contents: contents.into_iter().collect(), encoder }
    }

    /// A chain: chunk `n` differs little from chunk `n + 1`, which it is encoded against; the last is plain. A region
    /// each, in containers of `per_container`; `backwards`, the plain one lies first.
    pub(crate) fn chain(length: u64, per_container: u64, backwards: bool) -> Self {
        let content = |number: u64| {
            let mut bytes = noise(1, 3000);
            bytes[..8].copy_from_slice(&number.to_le_bytes());
            bytes
        };
        let mut bench = Self::new((0..length).map(|number| (number, content(number))));
        let mut numbers: Vec<u64> = (0..length).collect();
        if backwards {
            numbers.reverse();
        }
        for of_one in numbers.chunks(usize::try_from(per_container).expect("small")) {
            let region = |bench: &mut Self, number: u64| {
                let bases = if number + 1 < length { vec![number + 1] } else { Vec::new() };
                bench.region(&[number], &bases)
            };
            let regions: Vec<_> = of_one.iter().map(|number| region(&mut bench, *number)).collect();
            bench.container(&regions);
        }
        bench
    }

    /// A region of these chunks against those.
    pub(crate) fn region(&mut self, chunks: &[u64], bases: &[u64]) -> EncodedRegion {
        let keys = self.repository.keys();
        let entry = |number: &u64| {
            let (number, bytes) = (ChunkNumber(*number), &self.contents[number]);
            let length = u32::try_from(bytes.len()).expect("short");
            ChunkEntry { number, fingerprint: keys.fingerprint_of(number, bytes), length }
        };
        let base = |number: &u64| Base { number: ChunkNumber(*number), bytes: &self.contents[number] };
        let members: Vec<&[u8]> = chunks.iter().map(|number| self.contents[number].as_slice()).collect();
        let (chunks, bases): (Vec<_>, Vec<_>) = (chunks.iter().map(entry).collect(), bases.iter().map(base).collect());
        EncodedRegion::encode_against(&mut self.encoder, &bases, chunks, &members).expect("a region")
    }

    /// Stores a container; gives its place in the manifest.
    pub(crate) fn container(&mut self, regions: &[EncodedRegion]) -> usize {
        let serial = u32::try_from(self.manifest.containers.len()).expect("few");
        let (keys, series) = (self.repository.keys(), self.manifest.series);
        let id = ContainerId { lease: 1, serial };
        let mut builder = ContainerBuilder::new(keys, series, id, ContainerKind::Data).expect("a builder");
        for region in regions {
            builder.push(region).expect("a region that fits");
        }
        let container = builder.finish().expect("a container");
        self.disk.put(&container.record.object_name(series), &container.bytes).expect("stored");
        self.disk.barrier().expect("stored");
        self.manifest.containers.push(container.record);
        self.manifest.containers.len() - 1
    }
}

/// Adds a snapshot that refers to these chunks and needs no others. Its id is its place in every byte.
pub(crate) fn add_snapshot(manifest: &mut Manifest, numbers: impl IntoIterator<Item = u64>) {
    let place = u8::try_from(manifest.snapshots().len()).expect("few");
    let snapshot = Snapshot {
        id: SnapshotId([place; 32]),
        time: Time::default(),
        made: Time::default(),
        host: String::new(),
        user: String::new(),
        paths: Vec::new(),
        tags: Vec::new(),
        description: None,
        program: String::new(),
        root: ChunkNumber::METADATA_FIRST,
        record: ChunkNumber::METADATA_FIRST,
        statistics: SnapshotStatistics::default(),
        partial: false,
        deleted: None,
    };
    let numbers = numbers.into_iter().collect();
    manifest.push_snapshot(snapshot, &numbers, &numbers);
}

/// Bytes that do not compress, the same for the same seed.
pub(crate) fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut noise = vec![0; bytes];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut noise);
    noise
}
