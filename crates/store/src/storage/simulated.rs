//! A disk in memory that fails on command and can lose its power: it gives exactly what the contract of [`Storage`]
//! promises and not a bit more, so that what survives here survives anywhere.
//!
//! **Model.** `durable` is what a power loss cannot touch: objects under a passed barrier, and created ones. Every
//! other change is `pending` and belongs to the process that made it, until that process passes a barrier. Pending puts
//! are not yet visible (nobody may rely on seeing them early); pending deletes are.
//!
//! **Crash.** [`SimulatedDisk::crash`] gives the disk as found after the power came back: `durable`, and of each
//! pending change, independently (so in any order), a fate drawn by the seed:
//!
//! | pending | fates |
//! |---|---|
//! | put | whole; cut short; cut short and filled with zeros; absent; absent with an unfinished file left behind |
//! | put that was torn by the power loss | the same without whole |
//! | delete | done; undone |
//! | create under way | whole; absent |
//!
//! Two seeds are special: [`SimulatedDisk::NOTHING_REACHED`] loses every pending change, [`SimulatedDisk::ALL_REACHED`]
//! keeps all.
//!
//! A program that ends without a barrier leaves its changes pending: let the next run be
//! [`SimulatedDisk::another_process`], or a crash.
//!
//! It does not model bits rotting by themselves: tests do that by [`SimulatedDisk::damage`].

mod content;
mod crash;

use super::{Listing, ObjectMeta, ObjectName, Storage, StorageError};
use crate::ids::SeriesId;
pub(super) use content::Bytes;
use content::{Change, Creating, DiskContent, Pending};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A fault, and when it comes. Changing calls (`put`, `create`, `delete`, `barrier`, `remove_unfinished`) are counted
/// from 0, from the moment the fault is set.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// The `nth` changing call fails; the process goes on.
    FailWrite {
        /// Number of the call.
        nth: u64,
        /// Way in which it fails.
        failure: Failure,
    },
    /// The power goes during the `nth` changing call: it may have had its effect, or a part of it.
    Torn {
        /// Number of the call.
        nth: u64,
    },
    /// `writes` changing calls succeed; then the power is gone.
    PowerLossAfter {
        /// Number of calls that succeed.
        writes: u64,
    },
    /// Every put succeeds and stores another byte in the middle.
    WrongPuts,
}

/// The way in which a write fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// No space: without effect. The storage stays usable, except after a barrier.
    Full,
    /// An I/O error without effect; the process may write no more.
    Io,
    /// An I/O error reported after the effect took place (a folder that could not be synced): whether it lasts is
    /// unknown. The process may write no more.
    IoTooLate,
}

/// Damage done to one object behind everyone's back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Damage {
    /// The object is gone.
    Delete,
    /// Only this many bytes are left (no effect if the object is not longer).
    Truncate {
        /// The new length in bytes.
        bytes: u64,
    },
    /// The bits of `mask` are inverted in the byte at `offset` (no effect if the object ends before).
    Flip {
        /// Offset of the byte.
        offset: u64,
        /// Bits to invert.
        mask: u8,
    },
    /// The disk answers every read of the object with an I/O error (no effect if it does not exist).
    Unreadable,
    /// Other content altogether; makes the object if it does not exist.
    Replace(Vec<u8>),
}

/// A simulated faulty disk, seen by one process. Clones are the same process; [`SimulatedDisk::another_process`] is
/// another one on the same disk.
#[derive(Clone, Debug)]
pub struct SimulatedDisk {
    content: Arc<Mutex<DiskContent>>,
    process: u32,
}

/// The extent to which a changing call is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reach {
    /// It does what it promises.
    Whole,
    /// It takes effect, but nothing is promised.
    Unsure,
    /// It is under way when the power goes.
    Torn,
}

impl Default for SimulatedDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl SimulatedDisk {
    /// The seed of [`SimulatedDisk::crash`] under which every pending change is lost.
    pub const NOTHING_REACHED: u64 = 0;
    /// The seed of [`SimulatedDisk::crash`] under which every pending change reached the disk whole, if it can.
    pub const ALL_REACHED: u64 = 1;

    /// An empty disk without faults or limits.
    pub fn new() -> Self {
        Self::of(DiskContent::default())
    }

    /// Returns this disk with this fault ahead.
    #[must_use]
    pub fn with_fault(self, fault: Fault) -> Self {
        self.set_fault(fault);
        self
    }

    /// Returns this disk, holding at most this many bytes.
    #[must_use]
    pub fn with_capacity(self, bytes: u64) -> Self {
        self.set_capacity(Some(bytes));
        self
    }

    /// Returns this disk as seen by another process: with pending changes and a poisoning of its own.
    #[must_use]
    pub fn another_process(&self) -> Self {
        let mut content = self.lock();
        content.processes += 1;
        Self { content: Arc::clone(&self.content), process: content.processes }
    }

    /// Sets the fault and starts counting changing calls from 0.
    pub fn set_fault(&self, fault: Fault) {
        let mut content = self.lock();
        content.fault = fault;
        content.writes = 0;
    }

    /// Sets how many bytes fit on the disk; `None` for no limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.lock().capacity_bytes = bytes;
    }

    /// Changing calls since the fault was set (or the disk made), failed ones included, those after a power loss not.
    pub fn writes(&self) -> u64 {
        self.lock().writes
    }

    /// Bytes the disk holds now, with pending puts and unfinished files.
    pub fn used_bytes(&self) -> u64 {
        self.lock().used_bytes()
    }

    /// The disk as found after its power was cut and came back: one process, no faults, the same capacity. `seed` draws
    /// the fates of pending changes; this disk is left as it is, so that many crashes can be tried from one moment.
    #[must_use]
    pub fn crash(&self, seed: u64) -> Self {
        Self::of(crash::after_power_loss(&self.lock(), seed))
    }

    /// Tells whether whoever comes next finds the same on both disks: the same objects, files left over and room, and
    /// nothing that is still under way. So that of equal ends of a run one is looked at.
    pub fn is_found_as(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.content, &other.content) || {
            let other = other.lock().clone();
            self.lock().is_found_as(&other)
        }
    }

    /// The names of all objects that can be seen, sorted.
    pub fn names(&self) -> Vec<ObjectName> {
        self.lock().visible().into_keys().collect()
    }

    /// Does damage to a durable object and says whether it changed anything. Not counted as a write.
    pub fn damage(&self, name: &ObjectName, damage: Damage) -> bool {
        let mut content = self.lock();
        let before = content.durable.get(name).cloned();
        let after = match (damage, &before) {
            (Damage::Replace(bytes), _) => Some(Bytes::from(bytes)),
            (Damage::Delete, _) | (_, None) => None,
            (Damage::Unreadable, Some(before)) => {
                let spoilt = Bytes::from(before.to_vec());
                content.unreadable.insert(*name, Arc::clone(&spoilt));
                content.durable.insert(*name, spoilt);
                return true;
            }
            (Damage::Truncate { bytes }, Some(before)) => {
                let length = usize::try_from(bytes).unwrap_or(usize::MAX).min(before.len());
                Some(before.iter().copied().take(length).collect())
            }
            (Damage::Flip { offset, mask }, Some(before)) => {
                let mut bytes = before.to_vec();
                if let Some(byte) = usize::try_from(offset).ok().and_then(|offset| bytes.get_mut(offset)) {
                    *byte ^= mask;
                }
                Some(Bytes::from(bytes))
            }
        };
        let changed = before != after;
        match after {
            Some(bytes) => content.durable.insert(*name, bytes),
            None => content.durable.remove(name),
        };
        changed
    }

    /// Gives each of two durable objects the other's content; `false` if one of them does not exist.
    pub fn swap(&self, one: &ObjectName, other: &ObjectName) -> bool {
        let mut content = self.lock();
        let (Some(first), Some(second)) = (content.durable.get(one).cloned(), content.durable.get(other).cloned())
        else {
            return false;
        };
        content.durable.insert(*one, second);
        content.durable.insert(*other, first);
        true
    }

    /// Begins a create that another process may meet while it is under way: the content lies in a temporary file.
    pub(super) fn begin_create(&self, name: &ObjectName) -> Result<(), StorageError> {
        let mut content = self.lock();
        content.check_power("create", name)?;
        content.creating.insert(self.process, Creating { name: *name, is_swept: false });
        Ok(())
    }

    fn of(content: DiskContent) -> Self {
        let process = content.processes;
        Self { content: Arc::new(Mutex::new(content)), process }
    }

    fn lock(&self) -> MutexGuard<'_, DiskContent> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One changing call: counts it, brings the fault about if this is its moment, and lets `apply` do as much as then
    /// happens.
    fn change<T>(
        &self,
        operation: &'static str,
        name: &dyn ToString,
        apply: impl FnOnce(&mut DiskContent, u32, Reach) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        let mut content = self.lock();
        content.check_power(operation, name)?;
        content.check_health(self.process)?;
        let nth = content.writes;
        if matches!(content.fault, Fault::PowerLossAfter { writes } if nth >= writes) {
            content.power_lost = true;
            return Err(power_lost(operation, name));
        }
        content.writes += 1;
        match content.fault {
            Fault::Torn { nth: torn } if torn == nth => {
                // A call that would have been refused loses its power all the same.
                let _ = apply(&mut content, self.process, Reach::Torn);
                content.power_lost = true;
                Err(power_lost(operation, name))
            }
            Fault::FailWrite { nth: failing, failure } if failing == nth => {
                if failure == Failure::IoTooLate {
                    apply(&mut content, self.process, Reach::Unsure)?;
                }
                if failure != Failure::Full || operation == BARRIER {
                    content.poisoned.insert(self.process);
                }
                Err(failure.error(operation, name))
            }
            _ => apply(&mut content, self.process, Reach::Whole),
        }
    }
}

const BARRIER: &str = "sync";

fn power_lost(operation: &'static str, name: &dyn ToString) -> StorageError {
    StorageError::Io { operation, name: name.to_string(), source: io::Error::other("power lost") }
}

impl Failure {
    fn error(self, operation: &'static str, name: &dyn ToString) -> StorageError {
        let source = match self {
            Self::Full => io::ErrorKind::StorageFull.into(),
            Self::Io | Self::IoTooLate => io::Error::other("simulated input/output error"),
        };
        StorageError::writing(operation, name, source)
    }
}

impl Storage for SimulatedDisk {
    fn read(&self, name: &ObjectName, bytes_max: u64) -> Result<Vec<u8>, StorageError> {
        let object = self.lock().read(name)?;
        let bytes = object.len() as u64;
        if bytes > bytes_max {
            return Err(StorageError::TooLarge { name: *name, bytes, limit: bytes_max });
        }
        Ok(object.to_vec())
    }

    fn read_range(&self, name: &ObjectName, offset: u64, length: usize) -> Result<Vec<u8>, StorageError> {
        let object = self.lock().read(name)?;
        let expected = offset.saturating_add(length as u64);
        let range = usize::try_from(offset).ok().and_then(|start| object.get(start..)?.get(..length));
        range.map(<[u8]>::to_vec).ok_or(StorageError::TooShort { name: *name, expected, found: object.len() as u64 })
    }

    fn put(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        self.change("write", name, |content, process, reach| {
            content.check_new("write", name, bytes)?;
            let mut bytes = Bytes::from(bytes);
            if content.fault == Fault::WrongPuts {
                let middle = bytes.len() / 2;
                Arc::make_mut(&mut bytes).iter_mut().skip(middle).take(1).for_each(|byte| *byte ^= 1);
            }
            let change = Change::Put { bytes, torn: reach == Reach::Torn };
            content.pending.push(Pending { process, name: *name, change });
            Ok(())
        })
    }

    fn barrier(&self) -> Result<(), StorageError> {
        self.change(BARRIER, &"earlier writes", |content, process, reach| {
            if reach == Reach::Whole {
                content.settle(process);
            }
            Ok(())
        })
    }

    fn create(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        self.change("create", name, |content, process, reach| {
            content.end_create(process)?;
            content.check_new("create", name, bytes)?;
            if reach == Reach::Whole {
                content.make_durable(*name, bytes.into());
            } else {
                let change = Change::Create { bytes: bytes.into() };
                content.pending.push(Pending { process, name: *name, change });
            }
            Ok(())
        })
    }

    fn delete(&self, name: &ObjectName) -> Result<(), StorageError> {
        self.change("delete", name, |content, process, _| {
            content.pending.push(Pending { process, name: *name, change: Change::Delete });
            Ok(())
        })
    }

    fn renew(&self, name: &ObjectName, before: Option<&ObjectName>) -> Result<(), StorageError> {
        let mut content = self.lock();
        content.check_power("renew", name)?;
        content.check_health(self.process)?;
        content.check_new("renew", name, &[])?;
        let process = self.process;
        let made = Pending { process, name: *name, change: Change::Create { bytes: Bytes::from([]) } };
        let removed = before.map(|before| Pending { process, name: *before, change: Change::Delete });
        content.pending.extend(std::iter::once(made).chain(removed));
        Ok(())
    }

    fn list(&self, what: Listing) -> Result<Vec<ObjectMeta>, StorageError> {
        let content = self.lock();
        content.check_power("list", &"objects")?;
        let asked = content.visible().into_iter().filter(|(name, _)| what.holds(name));
        Ok(asked.map(|(name, bytes)| ObjectMeta { name, bytes: bytes.len() as u64 }).collect())
    }

    fn remove_unfinished(&self, series: SeriesId, lease_last: u64) -> Result<u64, StorageError> {
        self.change("remove unfinished files of series", &series, |content, process, _| {
            Ok(content.remove_unfinished(process, series, lease_last))
        })
    }

    fn location(&self) -> String {
        "simulated disk".to_owned()
    }
}
