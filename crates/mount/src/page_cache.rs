//! Giving the kernel the content of files before a program asks for it. What is in its page cache is read without a
//! request to us, which takes as long as everything else about a small file.

use crate::nodes::{Node, Nodes, Top};
use crate::snapshots::lock;
use fuser::{INodeNo, Notifier};
use siltstone_engine::file_reader::FileReader;
use siltstone_store::catalog::Entry;
use std::sync::{Arc, Mutex};

/// The kernel's page cache for the files of one mount.
#[derive(Debug, Clone, Default)]
pub(crate) struct PageCache {
    nodes: Arc<Nodes>,
    /// Missing until the file system is mounted.
    notifier: Arc<Mutex<Option<Notifier>>>,
}

impl PageCache {
    pub(crate) fn new(nodes: Arc<Nodes>) -> Self {
        Self { nodes, notifier: Arc::default() }
    }

    /// The file system is mounted, and hears this.
    pub(crate) fn open(&self, notifier: Notifier) {
        *lock(&self.notifier) = Some(notifier);
    }

    /// The part of it for one tree.
    pub(crate) fn of(&self, top: Arc<Top>) -> TreePages {
        TreePages { cache: self.clone(), top }
    }
}

/// The kernel's page cache for the files of a snapshot in one of the folders that show it.
#[derive(Debug)]
pub(crate) struct TreePages {
    cache: PageCache,
    top: Arc<Top>,
}

impl TreePages {
    /// Gives the kernel all of a file; returns whether it has it now. The kernel takes nothing of a file that it has no
    /// number of.
    ///
    /// Never call it while answering a request: it waits until the kernel is done with the file's pages, and so for
    /// requests that nobody may be left to answer.
    pub(crate) fn give(&self, entry: &Entry, file: &FileReader<'_>) -> bool {
        let PageCache { nodes, notifier } = &self.cache;
        let number = nodes.number(&Node::entry(&self.top, entry));
        let Some(notifier) = lock(notifier).clone().filter(|_| nodes.has(number)) else { return false };
        let mut content = vec![0; usize::try_from(file.size()).unwrap_or(usize::MAX)];
        let is_whole = file.read_at(0, &mut content).is_ok_and(|bytes| bytes == content.len());
        is_whole && notifier.store(INodeNo(number), 0, &content).is_ok()
    }
}
