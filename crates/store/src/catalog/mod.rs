//! A snapshot's tree: path -> metadata and recipe, cut into metadata chunks that successive snapshots share.

mod entry;
mod fields;
mod node;
mod path;
mod reader;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod walk;
pub(crate) mod wire;
mod writer;

pub use entry::{Content, Entry, Metadata, Name, Xattr};
pub use node::NODE_BYTES_MAX;
pub use path::{EntryPath, PATH_BYTES_MAX};
pub use reader::{CatalogReader, Children, Entries};
pub use writer::{CatalogWriter, ENTRY_BYTES_MAX};

use crate::{error::StoreError, ids::ChunkNumber};
use std::sync::Arc;

/// A receiver of new metadata chunks. An implementation finds out whether it holds the same bytes already and then
/// returns the number they have: that is what lets snapshots share the unchanged parts of their catalogs.
pub trait MetadataSink {
    /// Keeps a metadata chunk and returns its number.
    fn store(&mut self, bytes: &[u8]) -> Result<ChunkNumber, StoreError>;
}

impl<S: MetadataSink + ?Sized> MetadataSink for &mut S {
    fn store(&mut self, bytes: &[u8]) -> Result<ChunkNumber, StoreError> {
        (**self).store(bytes)
    }
}

/// A source of metadata chunks.
pub trait MetadataSource {
    /// The bytes of a metadata chunk, verified.
    fn load(&self, number: ChunkNumber) -> Result<Arc<[u8]>, StoreError>;
}

impl<S: MetadataSource + ?Sized> MetadataSource for &S {
    fn load(&self, number: ChunkNumber) -> Result<Arc<[u8]>, StoreError> {
        (**self).load(number)
    }
}

impl<S: MetadataSource + ?Sized> MetadataSource for Arc<S> {
    fn load(&self, number: ChunkNumber) -> Result<Arc<[u8]>, StoreError> {
        (**self).load(number)
    }
}
