//! Which files with several names are being read, so that a further name takes what its first name brings.
//!
//! The planner alone decides that, counts the names, and says which files it has forgotten: the assembling stage keeps
//! what was read of a file exactly as long. A name that comes after that is read again, which stores nothing twice, and
//! has the same device and inode in the catalog, by which a restore makes one file of both.

use siltstone_store::Time;
use siltstone_store::catalog::Metadata;
use std::collections::HashMap;

/// Memory that a file takes while further names are expected, bytes: here, and its metadata and a short recipe in the
/// assembling stage.
const LINK_BYTES: u64 = 512;

/// Device and number of an inode.
pub(super) type Inode = (u64, u64);

/// Returns the inode that metadata is of.
pub(super) fn inode_of(metadata: &Metadata) -> Inode {
    (metadata.device, metadata.inode)
}

/// State of an inode when the walk met it. The number of one that is gone may be given to a new file during the backup:
/// that one differs in this.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Seen {
    size: u64,
    modified: Time,
    changed: Time,
}

impl Seen {
    pub(super) fn new(metadata: &Metadata, size: u64) -> Self {
        Self { size, modified: metadata.modified, changed: metadata.changed }
    }
}

#[derive(Debug)]
struct Reading {
    seen: Seen,
    names_left: u64,
    /// Its place among all of them.
    place: usize,
}

/// Files with several names of which one is being read.
#[derive(Debug, Default)]
pub(super) struct Links {
    reading: HashMap<Inode, Reading>,
    /// Those, in no order.
    all: Vec<Inode>,
    /// Chooses what is forgotten where there are too many. All of one tree come before all further names in another:
    /// if the oldest went, each would be gone before it is asked for.
    dice: u64,
    /// How many there may be.
    most: usize,
    keeps_all: bool,
    forgotten: Vec<Inode>,
}

impl Links {
    /// Makes an empty table for so much memory, that of the assembling stage included.
    pub(super) fn within(bytes: u64) -> Self {
        Self { most: usize::try_from(bytes / LINK_BYTES).unwrap_or(usize::MAX), ..Self::default() }
    }

    /// Forgets nothing from now on: names come that cannot be read.
    pub(super) fn keep_all(&mut self) {
        self.keeps_all = true;
    }

    /// Tells whether a file is being read under another name.
    pub(super) fn has(&self, inode: Inode) -> bool {
        self.reading.contains_key(&inode)
    }

    /// Tells whether a name is a further one of a file that is being read, and counts it. `seen` is the state of its
    /// inode; `None` if that need not be compared.
    pub(super) fn take(&mut self, inode: Inode, seen: Option<Seen>) -> bool {
        let is_same = |reading: &&mut Reading| seen.is_none_or(|seen| seen == reading.seen);
        let Some(reading) = self.reading.get_mut(&inode).filter(is_same) else { return false };
        reading.names_left = reading.names_left.saturating_sub(1);
        if reading.names_left == 0 && !self.keeps_all {
            self.forget(inode);
        }
        true
    }

    /// Remembers that a file of so many names is being read under the first of them. It takes the place of another one
    /// that had its inode's number.
    pub(super) fn remember(&mut self, inode: Inode, seen: Seen, names: u64) {
        self.remove(inode);
        if self.all.len() >= self.most
            && !self.keeps_all
            && let Some(other) = self.any()
        {
            self.forget(other);
        }
        let reading = Reading { seen, names_left: names.saturating_sub(1), place: self.all.len() };
        self.reading.insert(inode, reading);
        self.all.push(inode);
    }

    /// Any of the files.
    fn any(&mut self) -> Option<Inode> {
        // A linear congruential generator: Knuth's, of which the high bits are good.
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = (self.dice >> 32) % (self.all.len() as u64).max(1);
        self.all.get(usize::try_from(at).unwrap_or(0)).copied()
    }

    /// Takes a file out; true if it was there.
    fn remove(&mut self, inode: Inode) -> bool {
        let Some(Reading { place, .. }) = self.reading.remove(&inode) else { return false };
        self.all.swap_remove(place);
        if let Some(moved) = self.all.get(place).and_then(|moved| self.reading.get_mut(moved)) {
            moved.place = place;
        }
        true
    }

    /// Forgets a file, if it is known.
    pub(super) fn forget(&mut self, inode: Inode) {
        if self.remove(inode) {
            self.forgotten.push(inode);
        }
    }

    /// Returns a file that was forgotten since this was asked last.
    pub(super) fn next_forgotten(&mut self) -> Option<Inode> {
        self.forgotten.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(size: u64, seconds: i64) -> Seen {
        let time = Time { seconds, nanoseconds: 0 };
        Seen { size, modified: time, changed: time }
    }

    fn forgotten(links: &mut Links) -> Vec<Inode> {
        std::iter::from_fn(|| links.next_forgotten()).collect()
    }

    #[test]
    fn a_file_is_forgotten_with_the_last_of_its_names() {
        let mut links = Links::within(1 << 20);
        links.remember((1, 7), seen(5, 5), 3);
        assert!(!links.take((2, 7), Some(seen(5, 5))), "of another device");
        assert!(links.take((1, 7), Some(seen(5, 5))) && links.has((1, 7)));
        assert!(forgotten(&mut links).is_empty());
        assert!(links.take((1, 7), None));
        assert_eq!(forgotten(&mut links), [(1, 7)]);
        assert!(!links.take((1, 7), None), "one name more, as by a mount of the same file system, is read again");
    }

    #[test]
    fn a_number_that_was_given_anew_is_of_another_file() {
        let mut links = Links::within(1 << 20);
        links.remember((1, 7), seen(5, 5), 2);
        for other in [seen(5, 6), seen(6, 5)] {
            assert!(!links.take((1, 7), Some(other)), "{other:?}");
        }
        links.remember((1, 7), seen(5, 6), 2);
        assert!(!links.take((1, 7), Some(seen(5, 5))) && links.take((1, 7), Some(seen(5, 6))));
        assert_eq!(forgotten(&mut links), [(1, 7)]);
    }

    #[test]
    fn beyond_the_memory_some_are_forgotten_the_last_one_never() {
        let mut links = Links::within(30 * LINK_BYTES);
        for inode in 0..100 {
            links.remember((1, inode), seen(5, 5), 2);
            assert!(links.has((1, inode)));
        }
        assert_eq!((forgotten(&mut links).len(), links.reading.len(), links.all.len()), (70, 30, 30));
        assert!(links.all.iter().zip(0..).all(|(inode, place)| links.reading[inode].place == place));
        // In another tree all come once more, in the same order.
        let again = (0..100).filter(|inode| {
            let is_known = links.take((1, *inode), None);
            if !is_known {
                links.remember((1, *inode), seen(5, 5), 2);
            }
            is_known
        });
        let again = again.count();
        assert!(again > 0, "{again} are known");
        let mut links = Links::within(0);
        links.keep_all();
        for inode in 0..10 {
            links.remember((1, inode), seen(5, 5), 2);
            assert!(links.take((1, inode), None) && links.take((1, inode), None));
        }
        assert!(forgotten(&mut links).is_empty());
    }
}
