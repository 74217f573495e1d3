//! Containers by the lifecycles of their chunks: the layout of MFD and MeGA (MeGA, ATC 2022, sections 3.3, 3.4, 4.3 and 4.4).
//!
//! ```text
//! category (x, y)   chunks that versions x ..= y need, as content or as a base, and no others
//! back up n         new chunks: category (n, n)
//! settle n          column n - 1: what n needs too moves from (x, n - 1) to (x, n); a container of which all moves, or nothing, stays as it is
//! restore k         categories x <= k <= y, columns forwards, rows, containers and chunks backwards: deltas always come before their bases
//! forget            of the oldest version: its column goes, unread
//! ```
//! A restore reads each container once: a delta is written where its chunk goes, and read back from there when its base comes.

use super::cache::{Cache, Reads};
use super::choose::Container;
use super::recipe::{Item, Number};
use super::shelf::{Writer, Written};
use super::stored::{BackedUp, Restored, Store, Upkeep, necessary};
use anyhow::{Context, Result};
use siltstone_similar::delta::{ChunkDelta, CopyInsert};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

/// First and last of the versions that need a category.
type Category = (usize, usize);

/// A store with this layout.
pub(super) struct Lifecycles {
    pub(super) store: Store,
    categories: BTreeMap<Container, Category>,
    /// Where it is written down which container is of which category.
    table: Option<Container>,
}

impl Lifecycles {
    /// One on an empty store.
    pub(super) fn new(store: Store) -> Self {
        Self { store, categories: BTreeMap::new(), table: None }
    }

    /// Backs up the version with this number, one more than the last.
    ///
    /// # Errors
    /// If what is stored cannot be read, or nothing can be written.
    pub(super) fn back_up(&mut self, version: usize, bytes: &[u8]) -> Result<BackedUp> {
        let done = self.store.back_up(version, bytes)?;
        for container in self.store.containers.keys() {
            self.categories.entry(*container).or_insert((version, version));
        }
        Ok(done)
    }

    /// Moves what this version needs of what the one before it needed: MeGA's *maintenance*.
    ///
    /// # Errors
    /// If what is stored cannot be read, or nothing can be written.
    pub(super) fn settle(&mut self, version: usize) -> Result<Upkeep> {
        let begin = Instant::now();
        let (recipe, read_bytes) = self.store.recipe(version)?;
        let needed = necessary(&recipe);
        let mut upkeep = Upkeep { read_bytes, ..Upkeep::default() };
        let mut old = Vec::new();
        for row in self.rows(version.checked_sub(1).context("versions are counted from 1")?) {
            self.settle_row(version, &row, &needed, &mut old, &mut upkeep)?;
        }
        self.store.shelf.barrier()?;
        self.write_table(&mut upkeep)?;
        self.remove(&old)?;
        self.store.shelf.barrier()?;
        upkeep.seconds = begin.elapsed().as_secs_f64();
        Ok(upkeep)
    }

    /// Containers whose chunks are needed up to this version: row by row, in the order of their chunks.
    fn rows(&self, last: usize) -> Vec<Vec<Container>> {
        let mut rows: BTreeMap<usize, Vec<Container>> = BTreeMap::new();
        for (container, category) in self.categories.iter().filter(|(_, category)| category.1 == last) {
            rows.entry(category.0).or_default().push(*container);
        }
        let mut rows: Vec<_> = rows.into_values().collect();
        for row in &mut rows {
            row.sort_unstable_by_key(|container| self.first_number(*container));
        }
        rows
    }

    fn first_number(&self, container: Container) -> Option<Number> {
        self.store.containers.get(&container)?.members.first().copied()
    }

    fn settle_row(
        &mut self,
        version: usize,
        row: &[Container],
        needed: &HashSet<Number>,
        old: &mut Vec<Container>,
        upkeep: &mut Upkeep,
    ) -> Result<()> {
        // What stays, what goes on.
        let mut writers = [Writer::default(), Writer::default()];
        for container in row {
            let (first, last) = self.categories[container];
            let categories = [(first, last), (first, version)];
            let members = &self.store.containers[container].members;
            let going = members.iter().filter(|number| needed.contains(number)).count();
            upkeep.containers += 1;
            let whole = [(0, 0), (members.len(), 1)].into_iter().find(|(count, _)| *count == going);
            if let Some((_, side)) = whole.filter(|(_, side)| self.may_pass(&writers[*side])) {
                // Chunks lie by number within a category: what waits comes first.
                let written = writers[side].finish(&mut self.store.shelf)?;
                self.note(written, categories[side], upkeep);
                self.categories.insert(*container, categories[side]);
                upkeep.untouched += 1;
                continue;
            }
            let opened = self.store.shelf.open(*container)?;
            upkeep.read_bytes += opened.object_bytes;
            for chunk in opened.chunks() {
                writers[usize::from(needed.contains(&chunk.number))].push(&self.store.shelf, chunk)?;
            }
            for (writer, category) in writers.iter_mut().zip(categories) {
                let written = writer.lay_down(&mut self.store.shelf)?;
                self.note(written, category, upkeep);
            }
            old.push(*container);
        }
        let Some((first, _)) = row.first().map(|container| self.categories[container]) else { return Ok(()) };
        for (writer, last) in writers.iter_mut().zip([version - 1, version]) {
            let written = writer.finish(&mut self.store.shelf)?;
            self.note(written, (first, last), upkeep);
        }
        Ok(())
    }

    /// Whether what waits in a writer is nothing, or enough for a container of its own.
    fn may_pass(&self, writer: &Writer) -> bool {
        let held = writer.held_bytes() as u64;
        held == 0 || held >= self.store.scale.container_bytes / 2
    }

    fn note(&mut self, written: Vec<Written>, category: Category, upkeep: &mut Upkeep) {
        for one in &written {
            upkeep.written_bytes += one.object_bytes;
            self.categories.insert(one.container, category);
        }
        self.store.note(written);
    }

    fn write_table(&mut self, upkeep: &mut Upkeep) -> Result<()> {
        let number = |number: usize| u32::try_from(number).map(u32::to_le_bytes);
        let mut table = Vec::with_capacity(self.categories.len() * 12);
        for (container, (first, last)) in &self.categories {
            table.extend_from_slice(&container.to_le_bytes());
            table.extend_from_slice(&number(*first)?);
            table.extend_from_slice(&number(*last)?);
        }
        let written = self.store.shelf.write_metadata(&table)?;
        upkeep.written_bytes += written.object_bytes;
        match self.table.replace(written.container) {
            Some(before) => self.store.shelf.delete(before),
            None => Ok(()),
        }
    }

    fn remove(&mut self, containers: &[Container]) -> Result<()> {
        for container in containers {
            self.categories.remove(container);
        }
        self.store.remove(containers)
    }

    /// Forgets the oldest version: no container is read, none is rewritten.
    ///
    /// # Errors
    /// If something cannot be removed.
    pub(super) fn forget_oldest(&mut self, version: usize) -> Result<Upkeep> {
        let begin = Instant::now();
        self.store.drop_recipe(version)?;
        let gone =
            self.categories.iter().filter(|(_, category)| category.1 <= version).map(|(container, _)| *container);
        let gone: Vec<_> = gone.collect();
        let mut upkeep = Upkeep { containers: gone.len() as u64, ..Upkeep::default() };
        self.remove(&gone)?;
        self.write_table(&mut upkeep)?;
        self.store.shelf.barrier()?;
        upkeep.seconds = begin.elapsed().as_secs_f64();
        Ok(upkeep)
    }

    /// Restores a version into a new file, each container read once: *always forward reference* and *delta prewriting*.
    ///
    /// # Errors
    /// If what is stored cannot be read or decoded, or the file cannot be written.
    pub(super) fn restore(&self, version: usize, into: &Path) -> Result<Restored> {
        let begin = Instant::now();
        let (recipe, _) = self.store.recipe(version)?;
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(into)?;
        let mut placing = Placing { table: table(&recipe), file, codec: CopyInsert::new(self.store.isa) };
        let mut reads = Reads::default();
        for container in self.traversal(version) {
            let mut once = Cache::new(0);
            let opened = once.get(&self.store.shelf, container)?;
            let read = once.reads();
            reads.involved += 1;
            reads.containers += read.containers;
            reads.bytes += read.bytes;
            reads.seconds += read.seconds;
            for chunk in opened.chunks().rev() {
                placing.place(chunk.number, chunk.bytes)?;
            }
        }
        Ok(Restored { seconds: begin.elapsed().as_secs_f64(), reads })
    }

    /// The containers of a version, deltas before their bases (MeGA, ATC 2022, section 4.4).
    fn traversal(&self, version: usize) -> Vec<Container> {
        let needs = |(_, (first, last)): &(&Container, &Category)| (*first..=*last).contains(&version);
        let mut containers: Vec<_> = self.categories.iter().filter(needs).collect();
        containers.sort_unstable_by_key(|(container, (first, last))| {
            (*last, std::cmp::Reverse(*first), std::cmp::Reverse(self.first_number(**container)))
        });
        containers.into_iter().map(|(container, _)| *container).collect()
    }
}

/// Where a chunk goes, and what waits for it: an entry of the *offset hash table*.
#[derive(Debug, Default)]
struct Entry {
    bytes: usize,
    base: Option<Number>,
    offsets: Vec<u64>,
    /// Deltas of which it is the base.
    deltas: Vec<Number>,
    /// Bytes of its delta that were written at its first place.
    prewritten: Option<usize>,
}

fn table(recipe: &[Item]) -> HashMap<Number, Entry> {
    let mut table: HashMap<Number, Entry> = HashMap::new();
    let mut offset = 0;
    for item in recipe {
        let entry = table.entry(item.number).or_default();
        entry.bytes = item.bytes as usize;
        entry.base = item.base;
        entry.offsets.push(offset);
        offset += u64::from(item.bytes);
        if let (Some(base), 1) = (item.base, entry.offsets.len()) {
            table.entry(base).or_default().deltas.push(item.number);
        }
    }
    table
}

/// A file that chunks and deltas are placed in.
struct Placing {
    table: HashMap<Number, Entry>,
    file: File,
    codec: CopyInsert,
}

impl Placing {
    fn place(&mut self, number: Number, stored: &[u8]) -> Result<()> {
        let entry = self.table.get_mut(&number).with_context(|| format!("chunk {number} is read in vain"))?;
        if entry.base.is_some() {
            entry.prewritten = Some(stored.len());
            return Ok(self.file.write_all_at(stored, entry.offsets[0])?);
        }
        for offset in &entry.offsets {
            self.file.write_all_at(stored, *offset)?;
        }
        let (mut delta, mut decoded) = (Vec::new(), Vec::new());
        for number in std::mem::take(&mut entry.deltas) {
            let entry = &self.table[&number];
            let bytes = entry.prewritten.with_context(|| format!("delta {number} comes after its base"))?;
            delta.resize(bytes, 0);
            self.file.read_exact_at(&mut delta, entry.offsets[0])?;
            decoded.clear();
            let what = || format!("chunk {number} does not decode");
            self.codec.decode(stored, &delta, entry.bytes, &mut decoded).with_context(what)?;
            for offset in &entry.offsets {
                self.file.write_all_at(&decoded, *offset)?;
            }
        }
        Ok(())
    }
}
