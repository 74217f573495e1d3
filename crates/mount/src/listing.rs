//! Open directories: their names from any place on, read in batches.

use crate::folders::Place;
use crate::snapshots::lock;
use siltstone_engine::EngineError;
use siltstone_engine::file_reader::SnapshotReader;
use siltstone_store::catalog::{Entry, EntryPath};
use std::collections::VecDeque;
use std::sync::Mutex;

/// Entries read at once.
const BATCH: usize = 512;

/// A name in a directory.
#[derive(Clone, Debug)]
pub(crate) enum Listed {
    /// The directory itself.
    Itself,
    /// The directory it is in.
    Parent,
    /// In a folder above the snapshots.
    Place(Vec<u8>, Place),
    /// In a snapshot.
    Entry(Entry),
}

impl Listed {
    /// The name.
    pub(crate) fn name(&self) -> &[u8] {
        match self {
            Self::Itself => b".",
            Self::Parent => b"..",
            Self::Place(name, _) => name,
            Self::Entry(entry) => entry.path.name(),
        }
    }
}

/// Names that every directory has first.
const DOTS: [Listed; 2] = [Listed::Itself, Listed::Parent];

/// A directory that is open.
pub(crate) enum OpenDirectory {
    /// One above the snapshots, as it was when it was opened.
    Above(Vec<(Vec<u8>, Place)>),
    /// One in a snapshot.
    Inside(Box<Inside>),
}

/// A directory in a snapshot, its topmost without a path.
pub(crate) struct Inside {
    reader: SnapshotReader<'static>,
    path: Option<EntryPath>,
    state: Mutex<State>,
}

/// Where the reading of a directory is.
#[derive(Default)]
struct State {
    /// How many entries come before those that wait.
    position: u64,
    waiting: VecDeque<Entry>,
    /// The last that was read, unless none was.
    last: Option<EntryPath>,
    is_at_end: bool,
}

impl OpenDirectory {
    pub(crate) fn inside(reader: SnapshotReader<'static>, path: Option<EntryPath>) -> Self {
        Self::Inside(Box::new(Inside { reader, path, state: Mutex::default() }))
    }

    /// Shows the names from the `offset`-th on, each with the offset of the next, until `add` has no more room.
    pub(crate) fn read(&self, offset: u64, mut add: impl FnMut(&Listed, u64) -> bool) -> Result<(), EngineError> {
        let mut next = offset;
        while let Some(dot) = usize::try_from(next).ok().and_then(|at| DOTS.get(at)) {
            next += 1;
            if add(dot, next) {
                return Ok(());
            }
        }
        let from = next - DOTS.len() as u64;
        match self {
            Self::Above(places) => {
                for (name, place) in places.iter().skip(usize::try_from(from).unwrap_or(usize::MAX)) {
                    next += 1;
                    if add(&Listed::Place(name.clone(), place.clone()), next) {
                        break;
                    }
                }
                Ok(())
            }
            Self::Inside(inside) => {
                let Inside { reader, path, state } = &**inside;
                let mut state = lock(state);
                state.go_to(from, reader, path.as_ref())?;
                while let Some(entry) = state.first(reader, path.as_ref())? {
                    next += 1;
                    if add(&Listed::Entry(entry), next) {
                        break;
                    }
                    state.pass();
                }
                Ok(())
            }
        }
    }
}

impl State {
    /// Goes to the `position`-th entry, from the first on if it is behind us.
    fn go_to(
        &mut self,
        position: u64,
        reader: &SnapshotReader<'_>,
        path: Option<&EntryPath>,
    ) -> Result<(), EngineError> {
        if position < self.position {
            *self = Self::default();
        }
        while self.position < position && self.first(reader, path)?.is_some() {
            self.pass();
        }
        Ok(())
    }

    /// The entry that comes next.
    fn first(&mut self, reader: &SnapshotReader<'_>, path: Option<&EntryPath>) -> Result<Option<Entry>, EngineError> {
        if self.waiting.is_empty() && !self.is_at_end {
            let batch: Vec<Entry> = match &self.last {
                None => reader.children(path).take(BATCH).collect::<Result<_, _>>()?,
                Some(last) => reader.children_past(path, last).take(BATCH).collect::<Result<_, _>>()?,
            };
            self.is_at_end = batch.len() < BATCH;
            self.last = batch.last().map(|entry| entry.path.clone()).or(self.last.take());
            self.waiting = batch.into();
        }
        Ok(self.waiting.front().cloned())
    }

    fn pass(&mut self) {
        self.position += u64::from(self.waiting.pop_front().is_some());
    }
}
