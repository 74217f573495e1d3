//! Catalogs and recipes, whose nodes and parts are metadata chunks, and snapshot records.

use crate::{join, parts};
use siltstone_store::catalog::{
    CatalogReader, CatalogWriter, Content, Entry, EntryPath, Metadata, MetadataSink, MetadataSource,
};
use siltstone_store::manifest::SnapshotRecord;
use siltstone_store::recipe::{Piece, Recipe, RecipePart, RecipeReader};
use siltstone_store::{ChunkNumber, ChunkRun, StoreError};
use std::sync::Arc;

/// Entries, or pieces of a recipe, that are looked at: a few bytes of input may stand for any number of them.
const LOOKED_AT_MAX: usize = 10_000;
/// Entries that are looked for by their path.
const FOUND_MAX: usize = 8;

/// Metadata chunks, numbered in order.
struct Chunks(Vec<Arc<[u8]>>);

impl Chunks {
    fn new(data: &[u8]) -> Self {
        Self(parts(data).into_iter().map(Arc::from).collect())
    }
}

impl MetadataSource for Chunks {
    fn load(&self, number: ChunkNumber) -> Result<Arc<[u8]>, StoreError> {
        let at = number.0.checked_sub(ChunkNumber::METADATA_FIRST.0).and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.0.get(at)).cloned().ok_or(StoreError::MissingChunk { number })
    }
}

/// The metadata chunks of a catalog, the first one its root.
pub(crate) fn catalog(data: &[u8]) -> bool {
    let chunks = Chunks::new(data);
    let reader = CatalogReader::new(&chunks, ChunkNumber::METADATA_FIRST);
    let (mut paths, mut last): (Vec<EntryPath>, Option<EntryPath>) = (Vec::new(), None);
    for entry in reader.entries().take(LOOKED_AT_MAX).flatten() {
        assert!(last.is_none_or(|last| last < entry.path), "paths ascend");
        if let Content::File { recipe, .. } = &entry.content {
            RecipeReader::new(recipe, &chunks).take(FOUND_MAX).for_each(drop);
        }
        if paths.len() < FOUND_MAX {
            paths.push(entry.path.clone());
        }
        last = Some(entry.path);
    }
    for path in paths.iter().chain(&last) {
        let _ = reader.find(path);
        reader.under(path).take(FOUND_MAX).for_each(drop);
    }
    reader.children(None).take(LOOKED_AT_MAX).for_each(drop);
    reader.children(last.as_ref()).take(LOOKED_AT_MAX).for_each(drop);
    let mut visits = 0;
    reader.visit_chunks(&mut |_| visits += 1);
    // Every file may name the same recipe, and every visit costs a byte in it.
    assert!(visits <= (data.len() + 1) * (data.len() + 1), "{visits} visits");
    last.is_some()
}

/// The metadata chunks of a recipe, the first one its outermost list.
pub(crate) fn recipe(data: &[u8]) -> bool {
    let chunks = Chunks::new(data);
    let recipe = Recipe::Indirect(vec![RecipePart { chunk: ChunkNumber::METADATA_FIRST, bytes: 1 }]);
    let mut pieces = 0;
    RecipeReader::new(&recipe, &chunks).take(LOOKED_AT_MAX).flatten().for_each(|_| pieces += 1);
    let mut visits = 0;
    let visited = recipe.visit_chunks(&chunks, &mut |_| visits += 1);
    assert!(visits <= data.len() + 1, "{visits} visits for {} bytes", data.len());
    visited.is_ok() && pieces > 0
}

/// A snapshot record.
pub(crate) fn record(data: &[u8]) -> bool {
    let number = ChunkNumber(ChunkNumber::METADATA_FIRST.0 + 1);
    let Ok(record) = SnapshotRecord::decode(number, data) else { return false };
    assert!(SnapshotRecord::is_record(data));
    let again = SnapshotRecord::encode(&record.series_name, &record.snapshot).expect("what was read can be written");
    assert_eq!(SnapshotRecord::decode(number, &again).expect("and read again"), record);
    true
}

/// Chunks as they were written, for seeds.
impl MetadataSink for Chunks {
    fn store(&mut self, bytes: &[u8]) -> Result<ChunkNumber, StoreError> {
        self.0.push(Arc::from(bytes));
        // The root is written last and stands first.
        Ok(ChunkNumber(ChunkNumber::METADATA_FIRST.0 + self.0.len() as u64))
    }
}

/// A catalog of more than one node.
pub(crate) fn two_levels() -> Option<Vec<u8>> {
    let mut chunks = Chunks(Vec::new());
    let mut writer = CatalogWriter::new(&mut chunks);
    for number in 0..600 {
        let pieces = vec![Piece::Run(ChunkRun { first: ChunkNumber(number), count: 1 }), Piece::Hole(9)];
        let content = Content::File { size: 100, recipe: Recipe::Inline(pieces) };
        let path = EntryPath::new(format!("file {number:04}")).ok()?;
        let xattrs = vec![(b"user.name".to_vec(), number.to_le_bytes().to_vec())];
        let metadata = Metadata { mode: 0o644, links: 1, inode: number, xattrs, ..Metadata::default() };
        writer.push(&Entry { path, metadata, content }).ok()?;
    }
    writer.finish().ok()?;
    let root = chunks.0.pop()?;
    join([root].iter().chain(&chunks.0))
}

/// A recipe of pieces, and one of lists of them.
pub(crate) fn recipes() -> [Vec<Vec<u8>>; 2] {
    let pieces = vec![3, 2, 2 << 1, 8, 5 << 1 | 1];
    let lists = vec![4, 2, 2, 2, 10, 2, 10];
    [vec![pieces.clone()], vec![lists, pieces.clone(), pieces]]
}
