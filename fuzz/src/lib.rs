//! Every parser of outside bytes, given to a fuzzer that is guided by coverage.
//!
//! Most of what lies in a repository is sealed, and a flipped bit never passes a seal. So each target takes the *plain* bytes, seals
//! them with keys of its own where the parser wants a sealed object, and hands that over: what a hostile holder of the key could
//! write. A target may refuse its input as often as it likes; it must not panic, hang, or take memory that the input did not pay for.
//!
//! `cargo xtask fuzz` runs them, with seeds taken from the golden repository (`seeds.rs`) and the inputs that once failed
//! (`regressions/`).

use siltstone_engine::backup::ChangedList;
use siltstone_similar::Isa;
use siltstone_similar::delta::{ChunkDelta, CopyInsert, POOL_BYTES_MAX, PoolReader, Prefix};
use siltstone_similar::region::{Form, Level};
use siltstone_store::catalog::{CatalogReader, Content, MetadataSource};
use siltstone_store::container::{ContainerKind, ContainerReader};
use siltstone_store::keys::KeySlot;
use siltstone_store::manifest::Manifest;
use siltstone_store::recipe::RecipeReader;
use siltstone_store::region::RegionDecoder;
use siltstone_store::sealed::{ObjectKey, PieceNumber};
use siltstone_store::secrets::RepositoryKeys;
use siltstone_store::storage::ObjectName;
use siltstone_store::{ChunkNumber, ContainerId, KeyId, MasterKey, RepositoryId, SeriesId, StoreError};
use std::io::Cursor;
use std::sync::{Arc, LazyLock};

/// The series that all objects of the targets belong to.
pub const SERIES: SeriesId = SeriesId([7; 16]);
/// Pieces of a recipe that are looked at: a few bytes of input may stand for any number of chunks.
const PIECES_MAX: usize = 10_000;
/// Entries of a catalog that are looked at.
const ENTRIES_MAX: usize = 10_000;
/// The longest text that a decoder is asked for.
const TEXT_BYTES_MAX: usize = 1 << 20;

static KEYS: LazyLock<RepositoryKeys> =
    LazyLock::new(|| RepositoryKeys::derive(&MasterKey::from_bytes([3; 32]), RepositoryId([4; 16])));

/// Parts of an input: each has its length, two bytes, in front; the last one takes what is left.
pub fn parts(mut data: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    while let Some((length, rest)) = data.split_first_chunk() {
        let (part, rest) = rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
        parts.push(part);
        data = rest;
    }
    parts
}

/// Joins parts as [`parts`] takes them apart; a part that is too long is cut.
pub fn join<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> Vec<u8> {
    let mut data = Vec::new();
    for part in parts {
        let part = &part[..part.len().min(usize::from(u16::MAX))];
        data.extend_from_slice(&(part.len() as u16).to_le_bytes());
        data.extend_from_slice(part);
    }
    data
}

/// A key slot as it lies in the store. Its password hash is not paid for: the cost is bounded by other tests.
pub fn slot(data: &[u8]) {
    if let Ok(slot) = KeySlot::parse(KeyId([9; 16]), data) {
        let _ = (slot.cost(), slot.label(&KEYS));
    }
    if let Ok(text) = str::from_utf8(data)
        && let Some(name) = ObjectName::from_text(text)
    {
        assert_eq!(name.to_string(), text, "a name has one spelling");
    }
}

/// The plain content of a manifest.
pub fn manifest(data: &[u8]) {
    let name = ObjectName::Manifest(SERIES, 5);
    let Ok(manifest) = Manifest::decode(&name, data) else { return };
    let _ = (manifest.faults(), manifest.ghosts(), manifest.has_hulls(), manifest.live());
    let mut sets = 0;
    manifest.for_each_necessary(|_, _| sets += 1);
    assert_eq!(sets, manifest.snapshots().len());
    let again = manifest.encode().expect("what was decoded can be encoded");
    assert!(Manifest::decode(&name, &again).expect("and decoded again") == manifest);
}

/// A container from the plain bytes of its pieces: the payloads of its regions, the last part its index.
pub fn container(data: &[u8]) {
    let Some(object) = sealed_container(data) else { return };
    let (id, kind) = container_identity(data);
    let Ok(reader) = ContainerReader::from_object(&KEYS, SERIES, id, &object) else { return };
    assert_eq!(reader.record().kind, kind);
    let Ok(mut decoder) = RegionDecoder::new() else { return };
    let _ = ContainerReader::check(&KEYS, SERIES, reader.record(), &object, &mut decoder);
    let plain: usize = reader.index().regions().iter().map(|region| region.plain_bytes as usize).sum();
    assert!(reader.index().places().len() <= data.len(), "as many chunks as were paid for");
    let _ = plain;
}

fn container_identity(data: &[u8]) -> (ContainerId, ContainerKind) {
    let kind = if data.first().is_some_and(|byte| byte & 1 == 0) { ContainerKind::Data } else { ContainerKind::Metadata };
    (ContainerId { lease: 1, serial: 2 }, kind)
}

fn sealed_container(data: &[u8]) -> Option<Vec<u8>> {
    let (id, kind) = container_identity(data);
    let pieces = parts(data.get(1..)?);
    let (index, regions) = pieces.split_last()?;
    let name = ObjectName::Container(SERIES, id);
    let key = ObjectKey::with_salt(&KEYS, name, kind.object_kind(), [1; 32]).ok()?;
    let mut object = key.header().to_bytes().to_vec();
    let seal = |object: &mut Vec<u8>, number: PieceNumber, plain: &[u8]| {
        let start = object.len();
        object.extend_from_slice(plain);
        key.seal_piece(number, object, start).ok()
    };
    for (number, payload) in regions.iter().enumerate() {
        seal(&mut object, PieceNumber(number as u32), payload)?;
    }
    let offset = object.len() as u64;
    seal(&mut object, PieceNumber::INDEX, index)?;
    let index_bytes = object.len() as u64 - offset;
    seal(&mut object, PieceNumber::PADDING, &[])?;
    let object_bytes = object.len() as u64 + 48;
    let trailer: Vec<u8> = [offset, index_bytes, object_bytes, 0].into_iter().flat_map(u64::to_le_bytes).collect();
    seal(&mut object, PieceNumber::TRAILER, &trailer)?;
    Some(object)
}

/// Metadata chunks of a catalog: the parts of the input, the first one the root.
pub fn catalog(data: &[u8]) {
    struct Chunks<'d>(Vec<&'d [u8]>);
    impl MetadataSource for Chunks<'_> {
        fn load(&self, number: ChunkNumber) -> Result<Arc<[u8]>, StoreError> {
            let at = number.0.checked_sub(ChunkNumber::METADATA_FIRST.0).and_then(|at| usize::try_from(at).ok());
            let bytes = at.and_then(|at| self.0.get(at)).ok_or(StoreError::MissingChunk { number })?;
            Ok(Arc::from(*bytes))
        }
    }
    let chunks = Chunks(parts(data));
    let reader = CatalogReader::new(&chunks, ChunkNumber::METADATA_FIRST);
    let mut last = None;
    for entry in reader.entries().take(ENTRIES_MAX).flatten() {
        assert!(last.is_none_or(|last| last < entry.path), "paths ascend");
        if let Content::File { recipe, .. } = &entry.content {
            RecipeReader::new(recipe, &chunks).take(PIECES_MAX).for_each(drop);
        }
        let _ = reader.find(&entry.path);
        last = Some(entry.path);
    }
    if let Some(path) = last {
        reader.under(&path).take(ENTRIES_MAX).for_each(drop);
    }
    reader.children(None).take(ENTRIES_MAX).for_each(drop);
    let mut visits = 0;
    reader.visit_chunks(&mut |_| visits += 1);
    // A node may be named by several parents; each naming costs at least two bytes of input.
    assert!(visits <= 64 * (data.len() + 1) * (data.len() + 1));
}

/// A region's payload against bases: the text's length (three bytes), the payload, then the bases.
pub fn region(data: &[u8]) {
    let Some(([form, low, high], rest)) = data.split_first_chunk() else { return };
    let text_bytes = usize::from(u16::from_le_bytes([*low, *high])) * 16;
    let form = if form & 1 == 0 { Form::Zstd } else { Form::Raw };
    let pieces = parts(rest);
    let Some((payload, bases)) = pieces.split_first() else { return };
    let mut decoder = siltstone_similar::region::RegionDecoder::new();
    if let Ok(text) = decoder.decode(form, bases, payload, text_bytes) {
        assert_eq!(text.len(), text_bytes);
    }
}

/// A chunk's delta, in every codec, and a pool of them: the target's length (two bytes), the base, the delta.
pub fn delta(data: &[u8]) {
    let Some((length, rest)) = data.split_first_chunk() else { return };
    let target_bytes = (usize::from(u16::from_le_bytes(*length)) * 16).min(TEXT_BYTES_MAX);
    let pieces = parts(rest);
    let [base, delta, ..] = pieces.as_slice() else { return };
    let mut codecs: Vec<Box<dyn ChunkDelta>> = vec![Box::new(CopyInsert::new(Isa::best()))];
    codecs.extend(Prefix::new(Level::Zstd(3)).ok().map(|codec| Box::new(codec) as _));
    for codec in &mut codecs {
        let mut target = b"before".to_vec();
        match codec.decode(base, delta, target_bytes, &mut target) {
            Ok(()) => assert_eq!(target.len(), 6 + target_bytes),
            Err(_) => assert_eq!(target, b"before"),
        }
    }
    let _ = PoolReader::new().open(delta, POOL_BYTES_MAX.min(TEXT_BYTES_MAX));
}

/// A list of changes, as text and as raw paths.
pub fn changed_list(data: &[u8]) {
    let mut list = ChangedList::new(256 << 20);
    let _ = list.add_lines("the list", Cursor::new(data));
    let mut list = ChangedList::new(256 << 20);
    let _ = list.add_raw("the list", Cursor::new(data));
}
