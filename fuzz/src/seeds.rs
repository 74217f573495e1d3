//! Seeds for the fuzzer: the golden repository's objects, opened, as the targets want them.
//!
//!     seeds GOLDEN_REPOSITORY CORPUS_FOLDER

use siltstone_fuzz::join;
use siltstone_store::container::{ContainerKind, ContainerReader};
use siltstone_store::repository::Repository;
use siltstone_store::sealed::{ObjectKey, ObjectKind, PieceNumber, open_object};
use siltstone_store::storage::{Disk, Listing, ObjectName, Storage};
use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::Arc;

const PASSWORD: &[u8] = b"a password";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let (golden, corpus) = arguments.next().zip(arguments.next()).ok_or("seeds GOLDEN_REPOSITORY CORPUS_FOLDER")?;
    let corpus = Path::new(&corpus);
    let disk = Arc::new(Disk::open(&golden)?);
    let repository = Repository::open(disk.clone(), PASSWORD)?;
    for meta in disk.list(Listing::All)? {
        let object = fs::read(Path::new(&golden).join(meta.name.to_string()))?;
        match meta.name {
            ObjectName::Key(_) => keep(corpus, "slot", &object)?,
            ObjectName::Manifest(..) => {
                keep(corpus, "manifest", &open_object(repository.keys(), &meta.name, ObjectKind::Manifest, object)?)?;
            }
            _ => {}
        }
    }
    for manifest in repository.manifests()? {
        for record in &manifest.containers {
            let name = ObjectName::Container(manifest.series, record.id);
            let object = fs::read(Path::new(&golden).join(name.to_string()))?;
            let reader = ContainerReader::open(disk.as_ref(), repository.keys(), manifest.series, record)?;
            let key = ObjectKey::open(repository.keys(), name, record.kind.object_kind(), &object)?;
            let index = opened(&key, PieceNumber::INDEX, &object, record.index_offset, record.index_sealed_bytes)?;
            let mut payloads = Vec::new();
            for (number, region) in reader.index().regions().iter().enumerate() {
                let number = PieceNumber(u32::try_from(number)?);
                payloads.push(opened(&key, number, &object, region.offset, region.sealed_bytes)?);
            }
            let kind = u8::from(record.kind == ContainerKind::Metadata);
            let pieces = payloads.iter().chain([&index]).map(Vec::as_slice);
            keep(corpus, "container", &[vec![kind], join(pieces)].concat())?;
            regions(corpus, disk.as_ref(), &reader, &payloads)?;
        }
    }
    keep(corpus, "changed_list", b"/home/ann/a\n/home/ann/b\t0\t4096\n/home/ann/b\t8192\t100\n")?;
    keep(corpus, "changed_list", b"/home/ann/a\0/home/ann/b\0")
}

fn opened(key: &ObjectKey, piece: PieceNumber, object: &[u8], at: u64, bytes: u32) -> Result<Vec<u8>, Box<dyn Error>> {
    let at = usize::try_from(at)?;
    let mut sealed = object.get(at..at + bytes as usize).ok_or("an object that is too short")?.to_vec();
    Ok(key.open_piece(piece, "seed", &mut sealed)?.to_vec())
}

/// The payload of each region as a seed, and the chunks of plain regions of metadata as catalogs.
fn regions(
    corpus: &Path,
    storage: &dyn Storage,
    reader: &ContainerReader,
    payloads: &[Vec<u8>],
) -> Result<(), Box<dyn Error>> {
    let mut decoder = siltstone_store::region::RegionDecoder::new()?;
    for (number, entry) in reader.index().regions().iter().enumerate() {
        let text = u16::try_from(entry.plain_bytes.div_ceil(16)).unwrap_or(u16::MAX).to_le_bytes();
        let head = vec![0, text[0], text[1]];
        keep(corpus, "region", &[head.clone(), join([payloads[number].as_slice(), b"a base"])].concat())?;
        keep(corpus, "delta", &[head[1..].to_vec(), join([b"a base".as_slice(), &payloads[number]])].concat())?;
        if reader.record().kind == ContainerKind::Metadata && entry.bases.is_empty() {
            let plain = reader.read_region(storage, number, &mut decoder, &[])?;
            for (_, chunk) in siltstone_store::region::split_region(&entry.chunks, &plain) {
                keep(corpus, "catalog", &join([chunk]))?;
            }
        }
    }
    Ok(())
}

/// Writes a seed under the name of its content.
fn keep(corpus: &Path, target: &str, seed: &[u8]) -> Result<(), Box<dyn Error>> {
    let folder = corpus.join(target);
    fs::create_dir_all(&folder)?;
    Ok(fs::write(folder.join(&blake3::hash(seed).to_hex()[..16]), seed)?)
}
