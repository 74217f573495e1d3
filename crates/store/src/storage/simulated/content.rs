//! The content of a simulated disk: the durable objects, the pending changes of every process, and what each process
//! knows of them.

use super::{Failure, Fault, power_lost};
use crate::ids::SeriesId;
use crate::storage::{ObjectName, StorageError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(in crate::storage) type Bytes = Arc<[u8]>;

#[derive(Clone, Default, Debug)]
pub(super) struct DiskContent {
    pub(super) durable: BTreeMap<ObjectName, Bytes>,
    /// Contents that the disk cannot read; others written in their place it can.
    pub(super) unreadable: BTreeMap<ObjectName, Bytes>,
    /// Pending changes, in the order of the calls.
    pub(super) pending: Vec<Pending>,
    /// Lengths of the temporary files that crashes left behind.
    pub(super) unfinished: Vec<(ObjectName, u64)>,
    pub(super) processes: u32,
    /// Processes that may write no more.
    pub(super) poisoned: BTreeSet<u32>,
    /// Processes whose unfinished puts another one removed, with one of these.
    pub(super) robbed: BTreeMap<u32, ObjectName>,
    /// Objects that processes have begun to create, for those that do it in two steps.
    pub(super) creating: BTreeMap<u32, Creating>,
    pub(super) fault: Fault,
    pub(super) writes: u64,
    pub(super) power_lost: bool,
    pub(super) capacity_bytes: Option<u64>,
}

#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) process: u32,
    pub(super) name: ObjectName,
    pub(super) change: Change,
}

/// A create under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Creating {
    pub(super) name: ObjectName,
    /// True if another process has removed its temporary file.
    pub(super) is_swept: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Change {
    Put { bytes: Bytes, torn: bool },
    Create { bytes: Bytes },
    Delete,
}

impl DiskContent {
    pub(super) fn check_power(&self, operation: &'static str, name: &dyn ToString) -> Result<(), StorageError> {
        if self.power_lost { Err(power_lost(operation, name)) } else { Ok(()) }
    }

    /// A process that lost an unfinished put learns it at its next changing call, as on a real disk.
    pub(super) fn check_health(&self, process: u32) -> Result<(), StorageError> {
        if self.poisoned.contains(&process) {
            return Err(StorageError::Poisoned);
        }
        self.robbed.get(&process).map_or(Ok(()), |name| Err(StorageError::Swept { name: *name }))
    }

    /// The end of a create, which fails if its temporary file is gone.
    pub(super) fn end_create(&mut self, process: u32) -> Result<(), StorageError> {
        match self.creating.remove(&process) {
            Some(Creating { name, is_swept: true }) => Err(StorageError::Swept { name }),
            _ => Ok(()),
        }
    }

    /// Returns the objects that readers see: durable objects with the pending deletes and creates applied.
    pub(super) fn visible(&self) -> BTreeMap<ObjectName, Bytes> {
        let mut objects = self.durable.clone();
        for pending in &self.pending {
            match &pending.change {
                Change::Put { .. } => {}
                Change::Create { bytes } => drop(objects.insert(pending.name, Arc::clone(bytes))),
                Change::Delete => drop(objects.remove(&pending.name)),
            }
        }
        objects
    }

    pub(super) fn find(&self, name: &ObjectName) -> Option<Bytes> {
        let last = self.pending.iter().rev().find(|p| p.name == *name && !matches!(p.change, Change::Put { .. }));
        match last.map(|pending| &pending.change) {
            Some(Change::Create { bytes }) => Some(Arc::clone(bytes)),
            Some(_) => None,
            None => self.durable.get(name).cloned(),
        }
    }

    /// Tells whether the next process finds the same on both. Two changes under way are never the same.
    pub(super) fn is_found_as(&self, other: &Self) -> bool {
        let is_settled = |disk: &Self| disk.pending.is_empty() && disk.creating.is_empty() && !disk.power_lost;
        let same_objects = |ours: &BTreeMap<ObjectName, Bytes>, theirs: &BTreeMap<ObjectName, Bytes>| {
            let is_same = |(one, other): (&Bytes, &Bytes)| Arc::ptr_eq(one, other) || one == other;
            ours.len() == theirs.len()
                && ours.iter().zip(theirs).all(|(our, their)| our.0 == their.0 && is_same((our.1, their.1)))
        };
        is_settled(self)
            && is_settled(other)
            && (self.fault, self.capacity_bytes) == (other.fault, other.capacity_bytes)
            && self.unfinished == other.unfinished
            && same_objects(&self.durable, &other.durable)
            && same_objects(&self.unreadable, &other.unreadable)
    }

    /// The content of an object, for a reader.
    pub(super) fn read(&self, name: &ObjectName) -> Result<Bytes, StorageError> {
        self.check_power("read", name)?;
        let object = self.find(name).ok_or(StorageError::NotFound { name: *name })?;
        if self.unreadable.get(name).is_some_and(|spoilt| Arc::ptr_eq(spoilt, &object)) {
            return Err(StorageError::reading("read", name, rustix::io::Errno::IO.into()));
        }
        Ok(object)
    }

    pub(super) fn used_bytes(&self) -> u64 {
        let puts = self.pending.iter().map(|pending| match &pending.change {
            Change::Put { bytes, .. } => bytes.len() as u64,
            Change::Create { .. } | Change::Delete => 0,
        });
        let visible: u64 = self.visible().values().map(|bytes| bytes.len() as u64).sum();
        visible + puts.sum::<u64>() + self.unfinished.iter().map(|(_, bytes)| bytes).sum::<u64>()
    }

    /// Tells whether an object has the name, or will have it after a barrier.
    fn is_taken(&self, name: &ObjectName) -> bool {
        match self.pending.iter().rfind(|pending| pending.name == *name) {
            Some(pending) => !matches!(pending.change, Change::Delete),
            None => self.durable.contains_key(name),
        }
    }

    /// Refuses a new object whose name is taken or which does not fit.
    pub(super) fn check_new(
        &self,
        operation: &'static str,
        name: &ObjectName,
        bytes: &[u8],
    ) -> Result<(), StorageError> {
        if self.is_taken(name) {
            return Err(StorageError::AlreadyExists { name: *name });
        }
        match self.capacity_bytes {
            Some(capacity) if self.used_bytes() + bytes.len() as u64 > capacity => {
                Err(Failure::Full.error(operation, name))
            }
            _ => Ok(()),
        }
    }

    /// Makes the pending changes of one process durable, in their order.
    pub(super) fn settle(&mut self, process: u32) {
        let own: Vec<Pending> = self.pending.extract_if(.., |pending| pending.process == process).collect();
        for Pending { name, change, .. } in own {
            match change {
                Change::Put { bytes, .. } | Change::Create { bytes } => self.make_durable(name, bytes),
                Change::Delete => {
                    // It deleted what it saw: a create of unsure outcome, too.
                    self.pending.retain(|other| other.name != name || !matches!(other.change, Change::Create { .. }));
                    self.durable.remove(&name);
                }
            }
        }
    }

    /// Makes an object durable; what was pending for its name came before it.
    pub(super) fn make_durable(&mut self, name: ObjectName, bytes: Bytes) {
        self.pending.retain(|pending| pending.name != name);
        self.durable.insert(name, bytes);
    }

    /// Drops the unfinished files of a series and its leases up to this one, and robs the other processes of theirs.
    pub(super) fn remove_unfinished(&mut self, process: u32, series: SeriesId, lease_last: u64) -> u64 {
        let before = self.unfinished.len() + self.pending.len();
        self.unfinished.retain(|(name, _)| !name.is_of(series, lease_last));
        for (other, creating) in &mut self.creating {
            creating.is_swept |= *other != process && creating.name.is_of(series, lease_last);
        }
        let robbed = &mut self.robbed;
        self.pending.retain(|pending| {
            let is_put = matches!(pending.change, Change::Put { .. });
            let keep = !is_put || pending.process == process || !pending.name.is_of(series, lease_last);
            if !keep {
                robbed.insert(pending.process, pending.name);
            }
            keep
        });
        (before - self.unfinished.len() - self.pending.len()) as u64
    }
}
