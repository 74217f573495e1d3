//! Inputs to begin with: the objects of a repository, opened, as the targets want them, and fresh ones of every kind.

use crate::container::ID;
use crate::sealing::{KEYS, REPOSITORY, SERIES, SLOT, whole_object};
use crate::{catalog, config, join, loan, manifest};
use anyhow::{Context, Result};
use siltstone_similar::Isa;
use siltstone_similar::delta::{ChunkDelta, CopyInsert, PoolWriter, Prefix};
use siltstone_similar::region::{Level, plain};
use siltstone_store::config::{ChunkerSettings, Config};
use siltstone_store::container::{ContainerBuilder, ContainerKind, ContainerReader, ContainerRecord};
use siltstone_store::manifest::{BODY_BYTES_MAX, Manifest, ManifestRoot, PartRecord, SnapshotRecord};
use siltstone_store::region::{ChunkEntry, EncodedRegion, RegionDecoder, RegionEncoder, split_region};
use siltstone_store::repository::Repository;
use siltstone_store::sealed::{ObjectKey, ObjectKind, PieceNumber, open_object};
use siltstone_store::storage::{Disk, Listing, ObjectName, Storage};
use siltstone_store::{ChunkNumber, RepositoryKeys, SeriesId, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// The inputs of each target, by its name.
pub type Seeds = BTreeMap<&'static str, BTreeSet<Vec<u8>>>;

/// No seed is larger: what is done with an input takes the longer the larger it is.
const SEED_BYTES_MAX: usize = 48 << 10;

/// The seeds of all targets, with those from the repository in this folder.
///
/// # Errors
/// It cannot be read with this password.
pub fn all(folder: &Path, password: &[u8]) -> Result<Seeds> {
    let mut seeds = Seeds::new();
    let disk = Arc::new(Disk::open(folder)?);
    let repository = Repository::open(disk.clone(), password).context("the repository of the seeds")?;
    for meta in disk.list(Listing::All)? {
        keep(&mut seeds, "names", meta.name.to_string().into_bytes());
        if let ObjectName::Loan(..) = meta.name {
            let object = disk.read(&meta.name, meta.bytes)?;
            keep(&mut seeds, "loan", open_object(repository.keys(), &meta.name, ObjectKind::Loan, object)?);
        }
        if let ObjectName::Key(_) = meta.name {
            keep(&mut seeds, "slot", [&[0], &disk.read(&meta.name, meta.bytes)?[..]].concat());
        }
    }
    for series in repository.series()? {
        manifests(&mut seeds, &repository, series)?;
    }
    fresh(&mut seeds)?;
    Ok(seeds)
}

/// The password of the golden repository.
pub const GOLDEN_PASSWORD: &[u8] = b"a password";

/// Writes the seeds of all targets below `corpus`, each under the hash of its content, with those from the golden
/// repository in the folder `golden`; and beside them the kept inputs, if `archives` is their folder.
///
/// # Errors
/// The repository or an archive cannot be read, or a seed cannot be written.
pub fn plant(golden: &Path, archives: Option<&Path>, corpus: &Path) -> Result<()> {
    for (target, seeds) in all(golden, GOLDEN_PASSWORD)? {
        let folder = corpus.join(target);
        fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        let kept = archives.map_or_else(|| Ok(Vec::new()), |archives| crate::corpus::inputs(archives, target))?;
        for input in seeds.into_iter().chain(kept) {
            fs::write(folder.join(name(&input)), input)?;
        }
    }
    Ok(())
}

/// Returns the name of an input's file.
pub(crate) fn name(input: &[u8]) -> String {
    blake3::hash(input).to_hex()[..16].to_owned()
}

fn keep(seeds: &mut Seeds, target: &'static str, seed: impl Into<Option<Vec<u8>>>) {
    if let Some(seed) = seed.into().filter(|seed| seed.len() <= SEED_BYTES_MAX) {
        seeds.entry(target).or_default().insert(seed);
    }
}

/// Seeds from the manifests of a series and from its containers.
fn manifests(seeds: &mut Seeds, repository: &Repository, series: SeriesId) -> Result<()> {
    let keys = repository.keys();
    for meta in repository.storage().list(Listing::Manifests(series))? {
        let object = repository.storage().read(&meta.name, meta.bytes)?;
        let content = open_object(keys, &meta.name, ObjectKind::Manifest, object)?;
        let texts = part_texts(repository, &meta.name, &content)?;
        keep(seeds, "manifest", manifest::taken_apart(&content, series, &texts));
    }
    let manifest = repository.manifest(series)?.context("a series without a manifest")?;
    for record in &manifest.containers {
        container(seeds, repository, series, record)?;
    }
    Ok(())
}

/// The texts of the parts of a manifest, in their order.
fn part_texts(repository: &Repository, name: &ObjectName, content: &[u8]) -> Result<Vec<Vec<u8>>> {
    let root = ManifestRoot::decode_within(name, content, BODY_BYTES_MAX as u64)?;
    let text = |part: &PartRecord| {
        let name = ObjectName::ManifestPart(root.series(), part.id);
        let object = repository.storage().read(&name, part.object_bytes())?;
        let content = open_object(repository.keys(), &name, ObjectKind::ManifestPart, object)?;
        let is_frame = part.content_bytes < part.plain_bytes;
        Ok(if is_frame { plain::decompress(&content, part.plain_bytes as usize)? } else { content })
    };
    root.parts().records().map(text).collect()
}

fn container(seeds: &mut Seeds, repository: &Repository, series: SeriesId, record: &ContainerRecord) -> Result<()> {
    let (storage, keys) = (repository.storage(), repository.keys());
    let object = storage.read(&record.object_name(series), record.object_bytes)?;
    let reader = ContainerReader::open(storage, keys, series, record)?;
    let (payloads, index) = taken_apart(keys, series, &reader, &object)?;
    let kind = u8::from(record.kind == ContainerKind::Metadata);
    let pieces = join(payloads.iter().chain([&index]));
    keep(seeds, "container", pieces.map(|pieces| [&[kind], &pieces[..]].concat()));
    let mut decoder = RegionDecoder::new();
    for (number, entry) in reader.index().regions().iter().enumerate() {
        let head = entry.plain_bytes.to_le_bytes();
        let bases = entry.bases.iter().map(|_| &b"a base"[..]);
        let pieces = join([&payloads[number][..]].into_iter().chain(bases));
        keep(seeds, "region", pieces.map(|pieces| [&head[..], &pieces].concat()));
        if record.kind == ContainerKind::Metadata && entry.bases.is_empty() {
            let plain = reader.read_region(storage, number, &mut decoder, &[])?;
            split_region(&entry.chunks, &plain).for_each(|(_, chunk)| metadata(seeds, chunk));
        }
    }
    Ok(())
}

/// A metadata chunk, for whoever reads such.
fn metadata(seeds: &mut Seeds, chunk: &[u8]) {
    let target = if SnapshotRecord::is_record(chunk) { "record" } else { "catalog" };
    match target {
        "record" => keep(seeds, target, chunk.to_vec()),
        _ => ["catalog", "recipe"].into_iter().for_each(|target| keep(seeds, target, join([chunk]))),
    }
}

/// Payloads of regions and the index of a container, opened.
fn taken_apart(
    keys: &RepositoryKeys,
    series: SeriesId,
    reader: &ContainerReader,
    object: &[u8],
) -> Result<(Vec<Vec<u8>>, Vec<u8>)> {
    let record = reader.record();
    let key = ObjectKey::open(keys, record.object_name(series), record.kind.object_kind(), object)?;
    let opened = |piece, at: u64, bytes: u32| -> Result<Vec<u8>> {
        let at = usize::try_from(at)?;
        let mut sealed = object.get(at..at + bytes as usize).context("an object that is too short")?.to_vec();
        Ok(key.open_piece(piece, "seed", &mut sealed)?.to_vec())
    };
    let regions = (0..).zip(reader.index().regions());
    let payloads = regions.map(|(number, region)| opened(PieceNumber(number), region.offset, region.sealed_bytes));
    let index = opened(PieceNumber::INDEX, record.index_offset, record.index_sealed_bytes)?;
    Ok((payloads.collect::<Result<_>>()?, index))
}

/// Payload and index of a container with one region of some pages.
pub(crate) fn small_container() -> (Vec<u8>, Vec<u8>) {
    let made = || -> Result<(Vec<u8>, Vec<u8>)> {
        let plain: Vec<u8> = (0..500u32).flat_map(|n| n.wrapping_mul(n).to_le_bytes()).collect();
        let (number, length) = (ChunkNumber(0), u32::try_from(plain.len())?);
        let chunk = ChunkEntry { number, fingerprint: KEYS.fingerprint_of(number, &plain), length };
        let mut builder = ContainerBuilder::new(&KEYS, SERIES, ID, ContainerKind::Data)?;
        builder.push(&EncodedRegion::encode(&mut RegionEncoder::fast(3), vec![chunk], &plain)?)?;
        let sealed = builder.finish()?;
        let reader = ContainerReader::from_object(&KEYS, SERIES, ContainerKind::Data, ID, &sealed.bytes)?;
        let (mut payloads, index) = taken_apart(&KEYS, SERIES, &reader, &sealed.bytes)?;
        Ok((payloads.pop().context("a region")?, index))
    };
    made().expect("a container can be made")
}

/// Inputs that are made here.
fn fresh(seeds: &mut Seeds) -> Result<()> {
    records_of_the_repository(seeds)?;
    deltas(seeds)?;
    slots_and_parity(seeds);
    keep(seeds, "loan", loan::seed());
    keep(seeds, "catalog", catalog::two_levels());
    for recipe in catalog::recipes() {
        keep(seeds, "recipe", join(recipe));
    }
    for (target, text) in TEXTS {
        keep(seeds, target, text.to_vec());
    }
    let acl = [&2u32.to_le_bytes()[..], &[1, 0, 7, 0, 255, 255, 255, 255], &[2, 0, 5, 0, 232, 3, 0, 0]].concat();
    keep(seeds, "acl", acl);
    keep(seeds, "tar", archive());
    for (mode, record) in [(0, vec![1; 24]), (1, vec![2; 24]), (2, seen()), (3, vec![3; 28])] {
        keep(seeds, "cache", [&[mode], &record[..]].concat());
        keep(seeds, "cache", [&[mode | 4], &record[..]].concat());
    }
    Ok(())
}

/// An archive with a member of each sort, its records before them.
fn archive() -> Vec<u8> {
    let records: [&[u8]; 5] = [
        b"30 mtime=1700000000.123456789\n",
        b"27 SCHILY.xattr.user.a=b=c\n",
        b"22 GNU.sparse.major=1\n",
        b"22 GNU.sparse.minor=0\n",
        b"28 GNU.sparse.realsize=9000\n",
    ];
    let records = records.concat();
    let members: [(&str, u8, &[u8]); 9] = [
        ("comment", b'g', b"13 comment=x\n"),
        ("records", b'x', &records),
        ("holes", b'0', b"1\n512\n5\n"),
        ("long", b'L', b"a/long/name\0"),
        ("short", b'0', b"content"),
        ("folder/", b'5', b""),
        ("link", b'1', b""),
        ("device", b'3', b""),
        ("old", b'S', b""),
    ];
    let mut archive = Vec::new();
    for (name, letter, content) in members {
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        header[156] = letter;
        header[157..162].copy_from_slice(b"short");
        let gnu = letter == b'S';
        header[257..265].copy_from_slice(if gnu { b"ustar  \0" } else { b"ustar\x0000" });
        archive.extend_from_slice(&header);
        archive.extend_from_slice(content);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive
}

/// A series as the memory of history holds it.
fn seen() -> Vec<u8> {
    let mut record = vec![0; 159];
    (record[0], record[81], record[82]) = (1, 1, b't');
    record
}

fn records_of_the_repository(seeds: &mut Seeds) -> Result<()> {
    let chunker = ChunkerSettings { name: "gear".into(), min_bytes: 4096, average_bytes: 16384, max_bytes: 65536 };
    let mut first = Config { sequence: 1, ..Config::new(REPOSITORY, chunker, Time::default(), SLOT) };
    first.series.insert(SERIES, "home".to_owned());
    first.settings.insert("of a later program".to_owned(), vec![1, 2, 3]);
    let first_content = content(&first)?;
    let previous = *blake3::hash(&whole_object(first.object_name(), ObjectKind::Config, &first_content)).as_bytes();
    let second_content = content(&Config { sequence: 2, previous, ..first.clone() })?;
    keep(seeds, "config", content(&Config { sequence: config::SEQUENCE, ..first })?);
    let mut manifest = Manifest::new(SERIES, "home");
    manifest.sequence = 1;
    let objects =
        [(0, 1, first_content), (0, 2, second_content.clone()), (4, 2, second_content), (2, 1, manifest.encode()?)];
    let parts = objects.into_iter().map(|(what, number, content)| [&[what, number], &content[..]].concat());
    keep(seeds, "repository", join(parts));
    manifest.sequence = manifest::SEQUENCE;
    keep(seeds, "manifest", [&[0], &manifest.encode()?[..]].concat());
    Ok(())
}

fn content(config: &Config) -> Result<Vec<u8>> {
    Ok(open_object(&KEYS, &config.object_name(), ObjectKind::Config, config.seal(&KEYS)?)?)
}

/// Chunks and regions as their difference from bases.
fn deltas(seeds: &mut Seeds) -> Result<()> {
    let base: Vec<u8> = (0..2000u32).flat_map(|n| n.wrapping_mul(n).to_le_bytes()).collect();
    let mut target = base.clone();
    target.splice(300..310, *b"an edit in the middle");
    let length = u32::try_from(target.len())?.to_le_bytes();
    let kept = |delta: &[u8]| join([&base[..], delta]).map(|pieces| [&length[..], &pieces].concat());
    let mut copied = Vec::new();
    CopyInsert::new(Isa::best()).encode(&base, &target, target.len(), &mut copied)?;
    let mut prefixed = Vec::new();
    Prefix::new(Level::Zstd(3))?.encode(&base, &target, target.len(), &mut prefixed)?;
    let mut pooled = Vec::new();
    let mut pool = PoolWriter::new(Isa::best(), Level::Zstd(3))?;
    pool.add(&base, &target, target.len())?;
    pool.add(&target, &base, target.len())?;
    pool.finish(&mut pooled);
    for delta in [&copied, &prefixed, &pooled] {
        keep(seeds, "delta", kept(delta));
    }
    let mut payload = Vec::new();
    RegionEncoder::fast(3).encode(&[&base], &[&target], &mut payload);
    keep(seeds, "region", join([&payload, &base]).map(|pieces| [&length[..], &pieces].concat()));
    Ok(())
}

fn slots_and_parity(seeds: &mut Seeds) {
    let cost = [8u32, 1, 1].map(u32::to_le_bytes).concat();
    let label = b"\x80\x01\0\x04host\x04user";
    keep(seeds, "slot", [&[1], &cost[..], &[5; 16 + 64], label].concat());
    keep(seeds, "parity", vec![0, 9, 1, 3, 200, 4, 1]);
    let fields = [&12_288u64.to_le_bytes()[..], &192u32.to_le_bytes(), &4u32.to_le_bytes()].concat();
    keep(seeds, "parity", [&[1], &fields[..], &[0; 2000]].concat());
    keep(seeds, "parity", [&[3], &fields[..], &[0; 2000]].concat());
    keep(seeds, "recovery_key", [&[1], &[8; 52][..]].concat());
}

const TEXTS: [(&str, &[u8]); 7] = [
    ("names", b"aside/series.07070707070707070707070707070707.0000000000000005.00000000"),
    ("names", b"copies/config/0000000000000007"),
    ("names", b"reserve"),
    ("changed_list", b"\0/home/ann/a\n/home/ann/b\t0\t4096\n/home/ann/b\t8192\t100\n"),
    ("changed_list", b"\x02/home/ann/a\0/b\0"),
    ("patterns", b"home/ann/a.o\n*.o\n/home/*/[a-z]?\n!b\n**/x/"),
    ("patterns", b"a\n# no\n{a,b}c\n\\!x\nname:header"),
];
