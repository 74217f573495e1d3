//! Containers in the order in which chunks arrive: the layout of Greedy, FGD and CLD (MeGA, ATC 2022, section 5.1).
//! Restores follow the recipe, with a cache of containers; what is deleted is found by marking what is alive, and
//! swept.

use super::cache::{Cache, Use};
use super::choose::Container;
use super::container_store::Writer;
use super::placing::RUN_BYTES_MAX;
use super::prefetch;
use super::recipe::Item;
use super::stored::{Restored, Store, Upkeep, necessary};
use crate::table::as_float;
use anyhow::{Context, Result};
use siltstone_similar::delta::{ChunkDelta, CopyInsert};
use siltstone_store::container::ContainerKind;
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

impl Store {
    /// Restores a version into a new file, chunk by chunk in the order of the recipe.
    ///
    /// # Errors
    /// If what is stored cannot be read or decoded, or the file cannot be written.
    pub(super) fn restore_in_order(&self, version: usize, into: &Path) -> Result<Restored> {
        let begin = Instant::now();
        let (recipe, _) = self.recipe(version)?;
        let mut cache = Cache::needing(self.scale.cache_bytes, necessary(&recipe));
        let misses = cache.misses(&self.uses(&recipe)?);
        let mut codec = CopyInsert::new(self.isa);
        let mut file = BufWriter::with_capacity(RUN_BYTES_MAX, File::create(into)?);
        let mut decoded = Vec::new();
        prefetch::in_order(&self.disk, &misses, self.scale.threads, |prefetcher| {
            for item in recipe {
                let opened = cache.get(prefetcher, self.container_of(item.number)?)?;
                let stored = opened.stored(item.number)?;
                let Some(base) = item.base else {
                    file.write_all(stored)?;
                    continue;
                };
                let under = cache.get(prefetcher, self.container_of(base)?)?;
                decoded.clear();
                codec
                    .decode(under.stored(base)?, stored, item.bytes as usize, &mut decoded)
                    .with_context(|| format!("chunk {} does not decode against chunk {base}", item.number))?;
                file.write_all(&decoded)?;
            }
            Ok(())
        })?;
        file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        Ok(Restored { seconds: begin.elapsed().as_secs_f64(), reads: cache.reads(), prewritten_bytes: 0 })
    }

    /// Uses of containers by a restore in the order of this recipe.
    fn uses(&self, recipe: &[Item]) -> Result<Vec<Use>> {
        let numbers = recipe.iter().flat_map(|item| [Some(item.number), item.base]).flatten();
        numbers.map(|number| self.use_of(self.container_of(number)?)).collect()
    }

    /// Containers that a restore of a version reads, in this order, some of them again.
    ///
    /// # Errors
    /// If the version is not stored.
    pub(super) fn reads_in_order(&self, version: usize) -> Result<Vec<Container>> {
        let (recipe, _) = self.recipe(version)?;
        Ok(Cache::new(self.scale.cache_bytes).misses(&self.uses(&recipe)?))
    }

    /// Forgets a version, then collects garbage: marks what the recipes left need, removes what is dead, and rewrites
    /// containers of whose chunks more than this share is dead (MeGA, ATC 2022, section 5.6).
    ///
    /// # Errors
    /// If what is stored cannot be read, or nothing can be written.
    pub(super) fn forget_and_collect(&mut self, version: usize, liveness_threshold: f64) -> Result<Upkeep> {
        let begin = Instant::now();
        self.drop_recipe(version)?;
        let mut upkeep = Upkeep::default();
        let mut live = HashSet::new();
        for version in self.recipes.keys() {
            let (recipe, bytes_read) = self.recipe(*version)?;
            upkeep.read_bytes += bytes_read;
            live.extend(necessary(&recipe));
        }
        let (mut rewritten, mut swept) = (Vec::new(), Vec::new());
        for (container, record) in &self.containers {
            let dead = record.members.iter().filter(|number| !live.contains(number)).count();
            let share = as_float(dead as u64) / as_float(record.members.len().max(1) as u64);
            upkeep.containers += 1;
            match dead {
                _ if share <= liveness_threshold => upkeep.untouched += 1,
                _ if dead == record.members.len() => swept.push(*container),
                _ => rewritten.push(*container),
            }
        }
        let written = prefetch::in_order(&self.disk, &rewritten, self.scale.threads, |prefetcher| {
            let (mut writer, mut written) = (Writer::default(), Vec::new());
            for container in &rewritten {
                let opened = prefetcher.next(*container)?;
                upkeep.read_bytes += opened.object_bytes;
                for chunk in opened.chunks().filter(|chunk| live.contains(&chunk.number)) {
                    writer.push(&self.disk, chunk)?;
                }
                written.extend(writer.flush(&self.disk)?);
            }
            written.extend(writer.finish(&self.disk)?);
            Ok(written)
        })?;
        swept.extend(rewritten);
        upkeep.written_bytes += written.iter().map(|one| one.object_bytes).sum::<u64>();
        self.disk.barrier()?;
        self.note(written);
        self.remove(swept)?;
        self.index.retain(|number| live.contains(&number));
        self.disk.barrier()?;
        upkeep.seconds = begin.elapsed().as_secs_f64();
        Ok(upkeep)
    }

    /// Removes containers that nothing needs.
    pub(super) fn remove(&mut self, containers: impl IntoIterator<Item = Container>) -> Result<()> {
        for container in containers {
            self.disk.delete(ContainerKind::Data, container)?;
            self.containers.remove(&container);
        }
        Ok(())
    }
}
