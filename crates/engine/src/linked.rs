//! Files with several names, in the order of a catalog: which entry is a further name of one that came before.

use siltstone_store::Time;
use siltstone_store::catalog::{Content, Entry, EntryPath};
use std::collections::HashMap;

/// Files with several names that came by under their first, by device and inode. Forgets those of which all names have
/// come by.
#[derive(Debug, Default)]
pub(crate) struct Linked(HashMap<(u64, u64), First>);

#[derive(Debug)]
struct First {
    path: EntryPath,
    /// How many names are to come.
    names: u64,
    /// Kind that must agree with a further name's: an inode's number may have been given anew during the backup.
    kind: std::mem::Discriminant<Content>,
    size: u64,
    modified: Time,
}

impl Linked {
    /// The first name of what this is a further name of.
    pub(crate) fn first_name(&mut self, entry: &Entry) -> Option<EntryPath> {
        let inode = (entry.metadata.device, entry.metadata.inode);
        let first = self.0.get_mut(&inode).filter(|first| first.is_same_as(entry))?;
        first.names -= 1;
        if first.names > 0 {
            return Some(first.path.clone());
        }
        self.0.remove(&inode).map(|first| first.path)
    }

    /// Keeps an entry with several names as the first of them, under this path.
    pub(crate) fn remember(&mut self, path: &EntryPath, entry: &Entry) {
        let metadata = &entry.metadata;
        if metadata.links > 1 && !entry.is_directory() {
            self.0.entry((metadata.device, metadata.inode)).or_insert_with(|| First {
                path: path.clone(),
                names: metadata.links - 1,
                kind: std::mem::discriminant(&entry.content),
                size: size_of(&entry.content),
                modified: metadata.modified,
            });
        }
    }
}

impl First {
    fn is_same_as(&self, entry: &Entry) -> bool {
        self.kind == std::mem::discriminant(&entry.content)
            && self.size == size_of(&entry.content)
            && self.modified == entry.metadata.modified
    }
}

fn size_of(content: &Content) -> u64 {
    if let Content::File { size, .. } = content { *size } else { 0 }
}
