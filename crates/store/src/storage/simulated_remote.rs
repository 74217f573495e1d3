//! An object store in memory, at a distance, that gives wrong or late answers on command: it gives what the contract of
//! [`Storage`] promises, and fails as requests over a network fail.
//!
//! **Model.** A request that is done is durable and visible at once. A barrier is no request, for nothing is ever
//! pending; `remove_unfinished` is none, for nothing is ever unfinished. Requests are counted from 0, those that only
//! read included, and kept as words for messages.
//!
//! | trouble | what the caller gets | what is done |
//! |---|---|---|
//! | answer lost | a timeout | what was asked for |
//! | late | a timeout | what was asked for, some requests later; a create only if its name is free by then |
//! | conflict | of a create: the name is taken | nothing |
//! | busy | errors for some requests in a row | nothing |
//! | short body | of a read: half of the bytes, as if they were all | nothing |
//! | stale lists | listings that miss the last changes | what was asked for |
//! | condition ignored | creates always succeed | they replace what is there |
//!
//! Clones are the same place. Whatever is late and never came [lands](SimulatedRemote::land) when a test says so.

use super::simulated::Bytes;
use super::{Capabilities, Latency, Listing, ObjectMeta, ObjectName, SimulatedDisk, Storage, StorageError};
use crate::ids::SeriesId;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Trouble, and when it comes. Requests are counted from 0, from the moment the trouble is set.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Trouble {
    /// None.
    #[default]
    None,
    /// The answer to the `nth` request is lost.
    AnswerLost {
        /// Number of the request.
        nth: u64,
    },
    /// The `nth` request is done too late for its sender, if it changes something; else its answer is lost.
    Late {
        /// Number of the request.
        nth: u64,
        /// Number of requests that are done before it.
        by: u64,
    },
    /// The `nth` request is refused as if its name were taken, if it creates.
    Conflict {
        /// Number of the request.
        nth: u64,
    },
    /// The `nth` request, if it writes an object, ends with the place's own word that its outcome is unknown.
    Unknown {
        /// Number of the request.
        nth: u64,
        /// Whether it was done.
        is_done: bool,
    },
    /// Requests from the `nth` on fail without effect.
    Busy {
        /// Number of the first request.
        nth: u64,
        /// Number of requests that fail.
        count: u64,
    },
    /// The `nth` request gets half of the bytes, if it reads.
    ShortBody {
        /// Number of the request.
        nth: u64,
    },
    /// Every listing misses the last changes.
    StaleLists {
        /// Number of changes that are missed.
        changes: usize,
    },
    /// Every create succeeds.
    ConditionIgnored,
}

/// A simulated object store.
#[derive(Clone, Default, Debug)]
pub struct SimulatedRemote {
    bucket: Arc<Mutex<Bucket>>,
}

#[derive(Clone, Default, Debug)]
struct Bucket {
    objects: BTreeMap<ObjectName, Bytes>,
    /// Changes in their order: a name, and what it named before.
    changes: Vec<(ObjectName, Option<Bytes>)>,
    trouble: Trouble,
    /// Requests since the trouble was set, in words.
    requests: Vec<String>,
    /// Changes under way, with the number of the request before which they land.
    under_way: Vec<(u64, Change)>,
}

#[derive(Clone, Debug)]
enum Change {
    Put(ObjectName, Bytes),
    Create(ObjectName, Bytes),
    Delete(Vec<ObjectName>),
}

impl SimulatedRemote {
    /// An empty place without trouble.
    pub fn new() -> Self {
        Self::default()
    }

    /// A place that holds what can be seen on a disk.
    ///
    /// # Panics
    /// If the disk does not give an object back.
    pub fn holding(disk: &SimulatedDisk) -> Self {
        let remote = Self::new();
        for name in disk.names() {
            let bytes = disk.read(&name, u64::MAX).unwrap_or_else(|error| panic!("{name}: {error}"));
            remote.lock().objects.insert(name, bytes.into());
        }
        remote
    }

    /// A disk that holds what lies here.
    ///
    /// # Panics
    /// Never: an empty disk takes every object.
    pub fn to_disk(&self) -> SimulatedDisk {
        let disk = SimulatedDisk::new();
        for (name, bytes) in &self.lock().objects {
            disk.create(name, bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        disk
    }

    /// Another place with the same objects and no trouble, where nothing is under way.
    #[must_use]
    pub fn copy(&self) -> Self {
        let bucket = Bucket { objects: self.lock().objects.clone(), ..Bucket::default() };
        Self { bucket: Arc::new(Mutex::new(bucket)) }
    }

    /// Another place with the same objects and no trouble, where the same changes are under way, to land when they are
    /// [let](SimulatedRemote::land).
    #[must_use]
    pub fn copy_with_what_is_under_way(&self) -> Self {
        let copy = self.copy();
        copy.lock().under_way = self.lock().under_way.iter().map(|(_, change)| (u64::MAX, change.clone())).collect();
        copy
    }

    /// Sets the trouble and starts counting requests from 0. What is under way lands as if nothing had been set.
    pub fn set_trouble(&self, trouble: Trouble) {
        let mut bucket = self.lock();
        let counted = bucket.requests.len() as u64;
        bucket.under_way.iter_mut().for_each(|(at, _)| *at = at.saturating_sub(counted));
        bucket.trouble = trouble;
        bucket.requests.clear();
    }

    /// The requests since the trouble was set, in words.
    pub fn requests(&self) -> Vec<String> {
        self.lock().requests.clone()
    }

    /// Lets everything that is under way land, and returns how much that was.
    pub fn land(&self) -> usize {
        let mut bucket = self.lock();
        let under_way = std::mem::take(&mut bucket.under_way);
        let count = under_way.len();
        for (_, change) in under_way {
            let _ = bucket.apply(change);
        }
        count
    }

    fn lock(&self) -> MutexGuard<'_, Bucket> {
        self.bucket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request that changes something.
    fn change(&self, operation: &'static str, name: &dyn ToString, change: Change) -> Result<(), StorageError> {
        let mut bucket = self.lock();
        let nth = bucket.begin(operation, name);
        match (bucket.trouble, &change) {
            (trouble, _) if trouble.is_busy(nth) => Err(no_answer(operation, name, "the place is too busy")),
            (Trouble::AnswerLost { nth: lost }, _) if lost == nth => {
                let _ = bucket.apply(change);
                Err(no_answer(operation, name, "timeout"))
            }
            (Trouble::Late { nth: late, by }, _) if late == nth => {
                bucket.under_way.push((nth + by + 1, change));
                Err(no_answer(operation, name, "timeout"))
            }
            (Trouble::Conflict { nth: met }, Change::Create(name, _)) if met == nth => {
                Err(StorageError::AlreadyExists { name: *name })
            }
            (Trouble::Unknown { nth: met, is_done }, Change::Create(name, _) | Change::Put(name, _)) if met == nth => {
                let (name, location) = (*name, self.location());
                if is_done {
                    let _ = bucket.apply(change);
                }
                Err(StorageError::OutcomeUnknown { name, location, reason: "timeout".to_owned() })
            }
            _ => bucket.apply(change),
        }
    }

    /// A request that changes nothing.
    fn look<T>(
        &self,
        operation: &'static str,
        name: &dyn ToString,
        look: impl FnOnce(&Bucket, bool) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        let mut bucket = self.lock();
        let nth = bucket.begin(operation, name);
        let is_lost = match bucket.trouble {
            Trouble::AnswerLost { nth: lost } | Trouble::Late { nth: lost, .. } => lost == nth,
            trouble => trouble.is_busy(nth),
        };
        if is_lost {
            return Err(no_answer(operation, name, "timeout"));
        }
        look(&bucket, matches!(bucket.trouble, Trouble::ShortBody { nth: short } if short == nth))
    }
}

impl Trouble {
    fn is_busy(self, request: u64) -> bool {
        matches!(self, Self::Busy { nth, count } if (nth..nth.saturating_add(count)).contains(&request))
    }
}

fn no_answer(operation: &'static str, name: &dyn ToString, reason: &'static str) -> StorageError {
    StorageError::Io { operation, name: name.to_string(), source: io::Error::other(reason) }
}

impl Bucket {
    /// Counts a request, before which lands what is due. Returns its number.
    fn begin(&mut self, operation: &'static str, name: &dyn ToString) -> u64 {
        let nth = self.requests.len() as u64;
        self.requests.push(format!("{operation} {}", name.to_string()));
        let due: Vec<_> = self.under_way.extract_if(.., |(at, _)| *at <= nth).collect();
        for (_, change) in due {
            let _ = self.apply(change);
        }
        nth
    }

    fn apply(&mut self, change: Change) -> Result<(), StorageError> {
        match change {
            Change::Create(name, _)
                if self.objects.contains_key(&name) && self.trouble != Trouble::ConditionIgnored =>
            {
                return Err(StorageError::AlreadyExists { name });
            }
            Change::Create(name, bytes) | Change::Put(name, bytes) => {
                let before = self.objects.insert(name, bytes);
                self.changes.push((name, before));
            }
            Change::Delete(names) => {
                for name in names {
                    let before = self.objects.remove(&name);
                    self.changes.push((name, before));
                }
            }
        }
        Ok(())
    }

    fn find(&self, name: &ObjectName) -> Result<&Bytes, StorageError> {
        self.objects.get(name).ok_or(StorageError::NotFound { name: *name })
    }

    fn list(&self, what: Listing) -> Vec<ObjectMeta> {
        let missed = match self.trouble {
            Trouble::StaleLists { changes } => changes,
            _ => 0,
        };
        let mut objects = self.objects.clone();
        for (name, before) in self.changes.iter().rev().take(missed) {
            match before {
                Some(bytes) => objects.insert(*name, Arc::clone(bytes)),
                None => objects.remove(name),
            };
        }
        let asked = objects.into_iter().filter(|(name, _)| what.holds(name));
        asked.map(|(name, bytes)| ObjectMeta { name, bytes: bytes.len() as u64 }).collect()
    }
}

/// The bytes, or half of them.
fn body(bytes: &[u8], is_short: bool) -> Vec<u8> {
    let length = if is_short { bytes.len() / 2 } else { bytes.len() };
    bytes.iter().copied().take(length).collect()
}

impl Storage for SimulatedRemote {
    fn read(&self, name: &ObjectName, bytes_max: u64) -> Result<Vec<u8>, StorageError> {
        self.look("read", name, |bucket, is_short| {
            let object = bucket.find(name)?;
            let bytes = object.len() as u64;
            if bytes > bytes_max {
                return Err(StorageError::TooLarge { name: *name, bytes, limit: bytes_max });
            }
            Ok(body(object, is_short))
        })
    }

    fn read_range(&self, name: &ObjectName, offset: u64, length: usize) -> Result<Vec<u8>, StorageError> {
        self.look("read a range of", name, |bucket, is_short| {
            let object = bucket.find(name)?;
            let (expected, found) = (offset.saturating_add(length as u64), object.len() as u64);
            let range = usize::try_from(offset).ok().and_then(|start| object.get(start..)?.get(..length));
            range.map(|range| body(range, is_short)).ok_or(StorageError::TooShort { name: *name, expected, found })
        })
    }

    fn size_of(&self, name: &ObjectName) -> Result<u64, StorageError> {
        self.look("ask the size of", name, |bucket, _| Ok(bucket.find(name)?.len() as u64))
    }

    fn put(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        if self.lock().objects.contains_key(name) {
            return Err(StorageError::AlreadyExists { name: *name });
        }
        self.change("put", name, Change::Put(*name, bytes.into()))
    }

    fn barrier(&self) -> Result<(), StorageError> {
        Ok(())
    }

    fn create(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        self.change("create", name, Change::Create(*name, bytes.into()))
    }

    fn delete(&self, name: &ObjectName) -> Result<(), StorageError> {
        self.change("delete", name, Change::Delete(vec![*name]))
    }

    fn delete_many(&self, names: &[ObjectName]) -> Result<(), StorageError> {
        let words: Vec<String> = names.iter().map(ToString::to_string).collect();
        self.change("delete", &words.join(" "), Change::Delete(names.to_vec()))
    }

    fn list(&self, what: Listing) -> Result<Vec<ObjectMeta>, StorageError> {
        self.look("list", &format!("{what:?}"), |bucket, _| Ok(bucket.list(what)))
    }

    fn remove_unfinished(&self, _: SeriesId, _: u64) -> Result<u64, StorageError> {
        Ok(0)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
            .with_reserve(false)
            .with_native_create(true)
            .with_batch_delete(true)
            .with_requests_in_flight(16)
            .with_latency(Latency::Network)
    }

    fn location(&self) -> String {
        "simulated remote place".to_owned()
    }
}
