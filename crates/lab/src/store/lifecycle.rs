//! Containers by the lifecycles of their chunks: the layout of MFD and MeGA (MeGA, ATC 2022, sections 3.3, 3.4, 4.3 and
//! 4.4).
//!
//! ```text
//! category (x, y)   chunks that versions x ..= y need, as content or as a base, and no others
//! back up n         new chunks: category (n, n)
//! settle n          column n - 1: what n needs too moves from (x, n - 1) to (x, n); a container of which all moves, or nothing, stays as it is
//! restore k         categories x <= k <= y, columns forwards, rows, containers and chunks backwards: deltas always come before their bases
//! forget k          categories that no version left needs go, unread: of the oldest version its column
//! ```
//! A restore reads each container once: see `placing`. Versions go in any order but the newest: which containers are
//! left can be told from the versions that are, and deleting writes nothing.

use super::cache::Reads;
use super::choose::Container;
use super::container_store::{Writer, Written};
use super::incremental::Changes;
use super::placing::Placing;
use super::prefetch::{self, Prefetcher};
use super::recipe::Number;
use super::stored::{BackedUp, Restored, Store, Upkeep, necessary};
use anyhow::{Context, Result};
use siltstone_store::container::ContainerKind;
use std::collections::{BTreeMap, BTreeSet, HashSet};
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

    /// Backs up the version with this number, one more than the last, as [`Store::back_up`] does.
    ///
    /// # Errors
    /// As [`Store::back_up`].
    pub(super) fn back_up(&mut self, version: usize, bytes: &[u8], changes: Option<&Changes>) -> Result<BackedUp> {
        let done = self.store.back_up(version, bytes, changes)?;
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
        let rows = self.rows(version.checked_sub(1).context("versions are counted from 1")?);
        let rows: Vec<Vec<_>> =
            rows.iter().map(|row| row.iter().map(|one| self.leaving(*one, &needed)).collect()).collect();
        let split: Vec<_> = rows.iter().flatten().filter(|one| one.is_split()).map(|one| one.container).collect();
        let mut moved = Moved { upkeep: Upkeep { read_bytes, ..Upkeep::default() }, ..Moved::default() };
        prefetch::in_order(&self.store.disk, &split, self.store.scale.threads, |prefetcher| {
            rows.iter().try_for_each(|row| self.settle_row(version, row, &needed, prefetcher, &mut moved))
        })?;
        let Moved { old, categories, written, mut upkeep } = moved;
        self.categories.extend(categories);
        self.store.note(written);
        self.categories.retain(|container, _| !old.contains(container));
        let last_table = self.write_table(&mut upkeep)?;
        // What is new is durable before what is old goes.
        self.store.disk.barrier()?;
        last_table.into_iter().try_for_each(|table| self.store.disk.delete(ContainerKind::Metadata, table))?;
        self.store.remove(old)?;
        self.store.disk.barrier()?;
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

    fn leaving(&self, container: Container, needed: &HashSet<Number>) -> Leaving {
        let members = &self.store.containers[&container].members;
        let going = members.iter().filter(|number| needed.contains(number)).count();
        Leaving { container, going, staying: members.len() - going }
    }

    fn settle_row(
        &self,
        version: usize,
        row: &[Leaving],
        needed: &HashSet<Number>,
        prefetcher: &Prefetcher<'_>,
        moved: &mut Moved,
    ) -> Result<()> {
        let container_store = &self.store.disk;
        let Some((first, last)) = row.first().map(|one| self.categories[&one.container]) else { return Ok(()) };
        // What stays, what goes on.
        let categories = [(first, last), (first, version)];
        let mut writers = [Writer::default(), Writer::default()];
        for one in row {
            let (container, side) = (one.container, usize::from(one.going > 0));
            moved.upkeep.containers += 1;
            if !one.is_split() && self.may_pass(&writers[side], container) {
                // Chunks lie by number within a category: what waits comes first.
                moved.note(writers[side].finish(container_store)?, categories[side]);
                moved.categories.push((container, categories[side]));
                moved.upkeep.untouched += 1;
                continue;
            }
            let opened = if one.is_split() { prefetcher.next(container)? } else { container_store.open(container)? };
            moved.upkeep.read_bytes += opened.object_bytes;
            for chunk in opened.chunks() {
                writers[usize::from(needed.contains(&chunk.number))].push(container_store, chunk)?;
            }
            for (writer, category) in writers.iter_mut().zip(categories) {
                moved.note(writer.flush(container_store)?, category);
            }
            moved.old.insert(container);
        }
        for (writer, category) in writers.iter_mut().zip(categories) {
            moved.note(writer.finish(container_store)?, category);
        }
        Ok(())
    }

    /// Tells whether a container that is not split stays as it is: unless it has room for what waits to be laid down
    /// before it.
    fn may_pass(&self, writer: &Writer, container: Container) -> bool {
        let held = writer.held_bytes();
        let together = held + self.store.containers[&container].plain_bytes;
        held == 0 || together as u64 > self.store.scale.container_bytes
    }

    /// Writes down which container is of which category; gives the table that this one replaces.
    fn write_table(&mut self, upkeep: &mut Upkeep) -> Result<Option<Container>> {
        let number = |number: usize| u32::try_from(number).map(u32::to_le_bytes);
        let mut table = Vec::with_capacity(self.categories.len() * 12);
        for (container, (first, last)) in &self.categories {
            table.extend_from_slice(&container.to_le_bytes());
            table.extend_from_slice(&number(*first)?);
            table.extend_from_slice(&number(*last)?);
        }
        let written = self.store.disk.write_metadata(&table)?;
        upkeep.written_bytes += written.object_bytes;
        Ok(self.table.replace(written.container))
    }

    /// Forgets a version: no container is read, none is rewritten.
    ///
    /// # Errors
    /// If something cannot be removed.
    pub(super) fn forget(&mut self, version: usize) -> Result<Upkeep> {
        let begin = Instant::now();
        self.store.drop_recipe(version)?;
        let left = &self.store.recipes;
        let is_needed = |(first, last): Category| left.range(first..=last).next().is_some();
        let gone: Vec<_> = self
            .categories
            .iter()
            .filter(|(_, category)| !is_needed(**category))
            .map(|(container, _)| *container)
            .collect();
        let mut upkeep = Upkeep { containers: gone.len() as u64, ..Upkeep::default() };
        for container in &gone {
            self.categories.remove(container);
        }
        self.store.remove(gone)?;
        self.store.disk.barrier()?;
        upkeep.seconds = begin.elapsed().as_secs_f64();
        Ok(upkeep)
    }

    /// Restores a version into a new file, each container read once: *always forward reference* and *delta prewriting*.
    ///
    /// # Errors
    /// If what is stored cannot be read or decoded, or the file cannot be written.
    pub(super) fn restore(&self, version: usize, into: &Path) -> Result<Restored> {
        // Other methods' restores have a cache of this size; this one needs none but for deltas.
        self.restore_within(version, into, self.store.scale.cache_bytes)
    }

    /// Restores with so many bytes of memory in which deltas wait for their bases: the others are prewritten.
    ///
    /// # Errors
    /// As [`Self::restore`].
    pub(super) fn restore_within(&self, version: usize, into: &Path, waiting_bytes: usize) -> Result<Restored> {
        let begin = Instant::now();
        let (recipe, _) = self.store.recipe(version)?;
        let scale = &self.store.scale;
        let mut placing = Placing::create(into, &recipe, self.store.isa, waiting_bytes)?;
        let mut reads = Reads::default();
        let order = self.traversal(version);
        prefetch::in_order(&self.store.disk, &order, scale.threads, |prefetcher| {
            order.iter().try_for_each(|container| {
                let opened = prefetcher.next(*container)?;
                reads.count(&opened);
                // Each is read once, and all of it is needed.
                reads.count_first(&opened, opened.object_bytes);
                placing.place(&opened)
            })
        })?;
        let prewritten_bytes = placing.prewritten_bytes();
        Ok(Restored { seconds: begin.elapsed().as_secs_f64(), reads, prewritten_bytes })
    }

    /// The containers of a version, deltas before their bases (MeGA, ATC 2022, section 4.4).
    pub(super) fn traversal(&self, version: usize) -> Vec<Container> {
        let needs = |(_, (first, last)): &(&Container, &Category)| (*first..=*last).contains(&version);
        let mut containers: Vec<_> = self.categories.iter().filter(needs).collect();
        containers.sort_unstable_by_key(|(container, (first, last))| {
            (*last, std::cmp::Reverse(*first), std::cmp::Reverse(self.first_number(**container)))
        });
        containers.into_iter().map(|(container, _)| *container).collect()
    }
}

/// A container, and how many of its chunks go on to the newest version.
struct Leaving {
    container: Container,
    going: usize,
    staying: usize,
}

impl Leaving {
    /// Tells whether only some go on.
    fn is_split(&self) -> bool {
        self.going > 0 && self.staying > 0
    }
}

/// Changes made by settling a version.
#[derive(Default)]
struct Moved {
    /// Containers that are no longer needed.
    old: BTreeSet<Container>,
    /// Which containers are of which category now.
    categories: Vec<(Container, Category)>,
    written: Vec<Written>,
    upkeep: Upkeep,
}

impl Moved {
    fn note(&mut self, written: Vec<Written>, category: Category) {
        self.upkeep.written_bytes += written.iter().map(|one| one.object_bytes).sum::<u64>();
        self.categories.extend(written.iter().map(|one| (one.container, category)));
        self.written.extend(written);
    }
}
