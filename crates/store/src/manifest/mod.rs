//! The commit record of a series: its live snapshots, which chunks each needs, and the containers that hold them.
//!
//! The manifest with the highest sequence number is the truth; all else in the repository follows from it. It knows
//! lifecycles, not data: what a deletion frees is set algebra on its bitmaps (module `necessary`), and which object
//! goes is told by the runs in its container records. How it is written is in module `codec`, how a large one is cut
//! into parts in module `parts`; how it is sealed and committed is not decided here.

mod bottom_k;
mod check;
mod codec;
mod cut;
mod lease;
mod lists;
mod necessary;
pub(crate) mod parts;
#[cfg(test)]
mod parts_tests;
mod record;
mod sharing;
mod snapshot;
#[cfg(test)]
mod tests;

pub use bottom_k::{BOTTOM_K, BottomK};
pub use codec::{BODY_BYTES_MAX, LEASE_BYTES_MAX, ManifestRoot};
pub use lease::{Lease, LeaseHolder};
pub use necessary::NecessaryChunks;
pub use parts::{PART_BYTES_MAX, PART_OBJECT_BYTES_MAX, PartRecord, PartTable};
pub use record::{RECORD_BYTES_MAX, SnapshotRecord};
pub(crate) use sharing::chunks_in;
pub use sharing::{BORROWED_CHUNKS_MAX, BorrowedRun, Import, LENDERS_MAX, Lender};
pub use snapshot::{Deleted, Snapshot, SnapshotStatistics};

use crate::{
    container::ContainerRecord,
    ids::{ChunkNumber, SeriesId, SnapshotId, Time},
    storage::ObjectName,
};
use roaring::RoaringTreemap;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The state of a series as one commit leaves it.
#[derive(Clone, PartialEq, Debug)]
pub struct Manifest {
    /// The series it belongs to.
    pub series: SeriesId,
    /// The name the series was given; its identity is the keyed hash of it.
    pub name: String,
    /// Number of the commit, from 1; also in the object's name.
    pub sequence: u64,
    /// BLAKE3 of the whole object of the manifest before; zeros in the first. A store that was rolled back breaks this
    /// chain.
    pub previous: [u8; 32],
    /// Time at which it was committed, by the writer's clock.
    pub committed: Time,
    /// Lease of the one who may write now; `None` between runs.
    pub lease: Option<Lease>,
    /// The number the next new data chunk gets. It never falls, so that numbers are never reused.
    pub next_data: ChunkNumber,
    /// The number the next new metadata chunk gets.
    pub next_metadata: ChunkNumber,
    /// All containers that count. Any other object in the series' folder is left over from a run that never committed.
    pub containers: Vec<ContainerRecord>,
    /// Snapshots whose chunks that the next snapshot no longer needs have yet to be migrated.
    pub unsettled: BTreeSet<SnapshotId>,
    /// Lengths of the chains of deltas that hang on whole chunks that live snapshots need: the chunks on which one of
    /// length `i +
    /// 1` hangs, at most. A number is in at most one of them.
    pub dependents_depths: Vec<RoaringTreemap>,
    /// True if snapshots were forgotten since ghosts were last eliminated, or containers left by a writer that may not
    /// delete.
    pub ghosts_due: bool,
    /// Bytes, about, of ghosts of which it was last found that eliminating them frees less than it costs; 0 if none
    /// were. While there are hardly more, it is not tried again.
    pub ghosts_kept: u64,
    /// Snapshots for which a shortcut past them was weighed, so that no delta of an older one hangs on chunks that the
    /// next one no longer needs: the bytes that it took, about, or `None` if it was not worth it.
    pub shortcuts: BTreeMap<SnapshotId, Option<u64>>,
    /// Chunks that a check found unreadable where they lie. A backup that meets their content stores it again.
    pub damaged: RoaringTreemap,
    /// True if the repository's list of series is known to name this one.
    pub listed: bool,
    /// True if other series may borrow of this one. It stays so for ever: nobody knows what they have borrowed.
    pub lends: bool,
    /// Chunks that no live snapshot needs but that other series have borrowed, with all their bases.
    pub lent: RoaringTreemap,
    /// Chunks that were kept until now and of which it is not known yet whether others have borrowed them. Containers
    /// still answer for them, and none of those is deleted.
    pub(crate) unclaimed: RoaringTreemap,
    /// A sample of the series' own chunks that live snapshots need, by which others find what they share with it.
    pub sketch: BottomK,
    /// The series that this one borrows of.
    pub lenders: Vec<Lender>,
    /// The chunks that it borrows, by ascending number.
    pub imports: Vec<Import>,
    snapshots: Vec<Snapshot>,
    necessary: NecessaryChunks,
    /// Chunks that each snapshot's catalog refers to, without the bases. It has gaps where a chunk was away for a
    /// while.
    direct: NecessaryChunks,
}

impl Manifest {
    /// The manifest of a series that has no snapshot yet. Its sequence is 0, which is never written: the first commit
    /// is 1.
    pub fn new(series: SeriesId, name: impl Into<String>) -> Self {
        Self {
            series,
            name: name.into(),
            sequence: 0,
            previous: [0; 32],
            committed: Time::default(),
            lease: None,
            next_data: ChunkNumber(0),
            next_metadata: ChunkNumber::METADATA_FIRST,
            containers: Vec::new(),
            unsettled: BTreeSet::new(),
            dependents_depths: Vec::new(),
            ghosts_due: false,
            ghosts_kept: 0,
            shortcuts: BTreeMap::new(),
            damaged: RoaringTreemap::new(),
            listed: false,
            lends: false,
            lent: RoaringTreemap::new(),
            unclaimed: RoaringTreemap::new(),
            sketch: BottomK::default(),
            lenders: Vec::new(),
            imports: Vec::new(),
            snapshots: Vec::new(),
            necessary: NecessaryChunks::default(),
            direct: NecessaryChunks::default(),
        }
    }

    /// The name of its object.
    pub fn object_name(&self) -> ObjectName {
        ObjectName::Manifest(self.series, self.sequence)
    }

    /// The objects that it names: its containers, and the parity of each.
    pub fn named_objects(&self) -> HashSet<ObjectName> {
        let both =
            |record: &ContainerRecord| [record.object_name(self.series), ObjectName::Parity(self.series, record.id)];
        self.containers.iter().flat_map(both).collect()
    }

    /// The snapshots in the order they were committed, those marked as deleted among them.
    pub fn snapshots(&self) -> &[Snapshot] {
        &self.snapshots
    }

    /// A snapshot, to change its tags, description or mark, or to add to its statistics.
    pub fn snapshot_mut(&mut self, id: &SnapshotId) -> Option<&mut Snapshot> {
        self.snapshots.iter_mut().find(|snapshot| snapshot.id == *id)
    }

    /// The position of a snapshot.
    pub fn position(&self, id: &SnapshotId) -> Option<usize> {
        self.snapshots.iter().position(|snapshot| snapshot.id == *id)
    }

    /// Adds a snapshot behind all others, with the chunks it needs, data and metadata: those that its catalog refers
    /// to, and with them all their bases, the whole closure. What only snapshots further back need of them, those
    /// between are from now on said to need too.
    pub fn push_snapshot(&mut self, snapshot: Snapshot, direct: &RoaringTreemap, necessary: &RoaringTreemap) {
        self.snapshots.push(snapshot);
        self.direct.push(direct);
        self.necessary.push(necessary);
        self.necessary = std::mem::take(&mut self.necessary).hull();
    }

    /// Takes snapshots out, wherever they stand, and returns them. Identities that are not there are passed over. The
    /// containers are left as they are: see [`Manifest::dead_after_removal`].
    pub fn remove_snapshots(&mut self, ids: &BTreeSet<SnapshotId>) -> Vec<Snapshot> {
        let positions = self.positions(ids);
        self.necessary = self.necessary.without(&positions);
        self.direct = self.direct.without(&positions);
        let (removed, kept) =
            std::mem::take(&mut self.snapshots).into_iter().partition(|snapshot| ids.contains(&snapshot.id));
        self.snapshots = kept;
        self.unsettled.retain(|id| !ids.contains(id));
        self.shortcuts.retain(|id, _| !ids.contains(id));
        // What the last snapshot needs is not left behind.
        if let Some(last) = self.snapshots.last() {
            self.unsettled.remove(&last.id);
        }
        self.drop_dead_notes();
        removed
    }

    /// Drops what is noted of chunks that no snapshot needs: damage, places in the sketch, imports.
    fn drop_dead_notes(&mut self) {
        self.forget_dead_damage();
        if !self.sketch.is_empty() || !self.imports.is_empty() {
            let live = self.live();
            self.sketch.keep(&live);
            self.keep_imports(&live);
        }
    }

    /// Puts other snapshots in the place of those at these positions, each with the chunks that its catalog refers to.
    /// `needs` is shown the chunks that every catalog refers to, and gives them with all their bases.
    ///
    /// # Panics
    /// If `needs` does not give as many sets as there are snapshots.
    pub fn replace_snapshots(
        &mut self,
        mut others: BTreeMap<usize, (Snapshot, RoaringTreemap)>,
        needs: impl FnOnce(&Self) -> NecessaryChunks,
    ) {
        let (mut direct, mut before) = (NecessaryChunks::default(), RoaringTreemap::new());
        let (snapshots, unsettled, shortcuts) = (&mut self.snapshots, &mut self.unsettled, &mut self.shortcuts);
        self.direct.for_each(|position, of_old| {
            let now = match others.remove(&position).zip(snapshots.get_mut(position)) {
                Some(((new, of_new), snapshot)) => {
                    if unsettled.remove(&snapshot.id) {
                        unsettled.insert(new.id);
                    }
                    if let Some(weighed) = shortcuts.remove(&snapshot.id) {
                        shortcuts.insert(new.id, weighed);
                    }
                    *snapshot = new;
                    of_new
                }
                None => of_old.clone(),
            };
            direct.push_after(&before, &now);
            before = now;
        });
        self.direct = direct;
        let needs = needs(self);
        self.replace_necessary(needs);
        self.drop_dead_notes();
    }

    /// Damage of what no snapshot needs is of no interest.
    fn forget_dead_damage(&mut self) {
        if !self.damaged.is_empty() {
            self.damaged &= self.necessary.live();
        }
    }

    /// Gives every live snapshot further chunks that it needs: bases of chunks that it needed before. `more` is shown
    /// each snapshot's position and what it needs, in order, and gives what comes to it.
    ///
    /// # Complexity
    /// One pass over the differences; two bitmaps at a time are in memory.
    pub fn extend_necessary(&mut self, more: impl FnMut(usize, &RoaringTreemap) -> RoaringTreemap) {
        self.necessary = self.necessary.extended(more);
    }

    /// Returns the difference of the snapshot at each position from the one before: the chunks that only it needs, and
    /// those that only the one before needs.
    pub fn differences(&self) -> impl ExactSizeIterator<Item = (&RoaringTreemap, &RoaringTreemap)> {
        self.necessary.steps()
    }

    /// Returns these differences of the chunks that the catalogs refer to. One may be added a second time.
    pub fn direct_differences(&self) -> impl ExactSizeIterator<Item = (&RoaringTreemap, &RoaringTreemap)> {
        self.direct.steps()
    }

    /// Shows the chunks that each snapshot's catalog refers to, in order; one bitmap at a time is in memory.
    pub fn for_each_direct(&self, visit: impl FnMut(usize, &RoaringTreemap)) {
        self.direct.for_each(visit);
    }

    /// Tells whether a snapshot may be said to need what it does not need itself: chunks that were away for a while are
    /// counted in between, and longer than that from when a snapshot that had them was forgotten until ghosts are
    /// looked for.
    pub fn has_hulls(&self) -> bool {
        self.ghosts_due || !self.direct.returning().is_empty()
    }

    /// The chunks that the snapshot at this position needs; none beyond the last.
    ///
    /// # Complexity
    /// The differences of all snapshots up to it: to look at many, use [`Manifest::for_each_necessary`].
    pub fn necessary(&self, position: usize) -> RoaringTreemap {
        self.necessary.at(position)
    }

    /// The chunks that each snapshot needs.
    pub fn necessary_chunks(&self) -> &NecessaryChunks {
        &self.necessary
    }

    /// Shows the chunks that each snapshot needs, in order; one bitmap at a time is in memory.
    pub fn for_each_necessary(&self, visit: impl FnMut(usize, &RoaringTreemap)) {
        self.necessary.for_each(visit);
    }

    /// The chunks that the catalog of the snapshot at this position refers to; none beyond the last.
    pub fn direct(&self, position: usize) -> RoaringTreemap {
        self.direct.at(position)
    }

    /// The chunks that live snapshots need as bases only.
    pub fn ghosts(&self) -> RoaringTreemap {
        self.necessary.live() - self.direct.live()
    }

    /// Says anew what each snapshot needs, given what each needs itself: the chunks that its catalog refers to, with
    /// all their bases.
    ///
    /// # Panics
    /// If that is not as many sets as there are snapshots.
    pub fn replace_necessary(&mut self, needs: NecessaryChunks) {
        assert_eq!(needs.len(), self.snapshots.len(), "a set for each snapshot");
        self.necessary = needs.hull();
        self.forget_dead_damage();
    }

    /// The chunks that any live snapshot needs.
    pub fn live(&self) -> RoaringTreemap {
        self.necessary.live()
    }

    /// The chunks that only these snapshots need: dead once they are removed.
    pub fn dead_after_removal(&self, ids: &BTreeSet<SnapshotId>) -> RoaringTreemap {
        self.live() - self.necessary.without(&self.positions(ids)).live()
    }

    fn positions(&self, ids: &BTreeSet<SnapshotId>) -> BTreeSet<usize> {
        let positions = self.snapshots.iter().enumerate().filter(|(_, snapshot)| ids.contains(&snapshot.id));
        positions.map(|(position, _)| position).collect()
    }
}
