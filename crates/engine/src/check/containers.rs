//! Looks at every container of a series: its size, its index, whether its bases are there; and at all of it where that
//! is asked for.

use super::help::Help;
use super::options::ReadData;
use super::report::{CheckReport, Finding};
use super::series::{ContainerDamage, Cost, SeriesCheck};
use crate::EngineError;
use crate::chunks::ChunkSource;
use crate::parallel::Pool;
use roaring::RoaringTreemap;
use siltstone_store::container::{ContainerReader, ContainerRecord};
use siltstone_store::storage::ObjectName;
use siltstone_store::{ChunkRun, StoreError};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

impl SeriesCheck<'_> {
    fn is_chosen(&self, at: usize) -> Result<bool, EngineError> {
        Ok(match self.asked.options.read_data {
            ReadData::None => false,
            ReadData::All => true,
            ReadData::Subset { part, parts } => {
                at as u64 % u64::from(parts.max(1)) == u64::from(part.saturating_sub(1))
            }
            ReadData::Percent(percent) => {
                let random =
                    getrandom::u32().map_err(|error| EngineError::Local { source: std::io::Error::other(error) })?;
                f64::from(random) / f64::from(u32::MAX) * 100.0 < percent
            }
        })
    }

    /// Looks at every container: its size, its index, whether its bases are there; and all of it if it is chosen. Gives
    /// too the chunks of those that were read.
    pub(super) fn check_containers(
        &self,
        report: &mut CheckReport,
    ) -> Result<(Vec<ContainerDamage>, RoaringTreemap), EngineError> {
        let records = &self.manifest.containers;
        let mut chosen = Vec::new();
        for at in 0..records.len() {
            chosen.push(self.is_chosen(at)?);
        }
        let bytes = records.iter().zip(&chosen).filter(|(_, chosen)| **chosen);
        self.resources.observer.estimate(chosen.len() as u64, bytes.map(|(record, _)| record.object_bytes).sum(), true);
        // A place that is away for one is so for the others, after many tries each.
        let has_failed = &AtomicBool::new(false);
        let results: Vec<(Vec<ContainerDamage>, bool)> = std::thread::scope(|scope| {
            let pool = Pool::start(scope, "check", self.resources.fetches, self.resources.fetches, || Ok(()))?;
            let submit = |(record, chosen): (&ContainerRecord, bool)| {
                let record = record.clone();
                pool.submit(move |()| {
                    if has_failed.load(Ordering::Relaxed) {
                        return Ok((Vec::new(), false));
                    }
                    let looked = self.check_container(&record);
                    if looked.is_err() {
                        has_failed.store(true, Ordering::Relaxed);
                    }
                    if !(chosen && matches!(looked, Ok((_, true)))) {
                        self.resources.observer.advance(1, 0);
                    }
                    looked
                })
            };
            let tickets: Vec<_> = records.iter().zip(chosen.iter().copied()).map(submit).collect();
            tickets.into_iter().map(|ticket| ticket.wait()?).collect::<Result<_, StoreError>>()
        })?;
        self.unless_cancelled()?;
        let (mut damage, mut open) = (Vec::new(), Vec::new());
        for (found, is_open) in results {
            damage.extend(found);
            open.push(is_open);
        }
        let chunks = Arc::new(ChunkSource::new(self.repository, self.manifest));
        damage.extend(self.check_bases(&chunks, &open));
        let whole = (0..records.len()).filter(|at| chosen[*at] && open[*at]).collect();
        let (found, read_whole) = self.check_data(&chunks, whole, report)?;
        damage.extend(found);
        let mut read = RoaringTreemap::new();
        for run in read_whole.iter().flat_map(|at| &records[*at].chunks) {
            read.insert_range(run.range());
        }
        Ok((damage, read))
    }

    /// Looks for a container, its size and its index; `true` if the index is sound.
    ///
    /// # Errors
    /// Those of a place that is away.
    fn check_container(&self, record: &ContainerRecord) -> Result<(Vec<ContainerDamage>, bool), StoreError> {
        if self.resources.observer.is_cancelled() {
            return Ok((Vec::new(), false));
        }
        let damaged = |error: String| self.damaged(record, error, record.chunks.clone());
        let Some(found) = self.sizes.get(&record.object_name(self.manifest.series)) else {
            return Ok(self.unless_healed(record, vec![damaged("it is missing".to_owned())], false));
        };
        let mut damage = Vec::new();
        if *found != record.object_bytes {
            damage.push(damaged(format!("it has {found} bytes instead of {}", record.object_bytes)));
        }
        let (storage, keys) = (self.repository.storage(), self.repository.keys());
        let opened = ContainerReader::open(storage, keys, self.manifest.series, record);
        let is_open = opened.is_ok();
        match opened {
            Err(error) if error.is_outage() => return Err(error),
            Err(error) if !error.is_damage() => {
                return Ok((vec![ContainerDamage { cost: Cost::Unseen, ..damaged(error.to_string()) }], false));
            }
            opened => damage.extend(opened.err().map(|error| damaged(error.to_string()))),
        }
        Ok(self.unless_healed(record, damage, is_open))
    }

    /// Returns the damage of a container, and whether it can be opened: nothing, and yes, if its parity heals it. That
    /// is told apart from what is lost.
    pub(super) fn unless_healed(
        &self,
        record: &ContainerRecord,
        damage: Vec<ContainerDamage>,
        is_open: bool,
    ) -> (Vec<ContainerDamage>, bool) {
        if !damage.is_empty() && self.repository.heal(self.manifest.series, record).is_some() {
            return (Vec::new(), true);
        }
        (damage, is_open)
    }

    /// The containers that were read with their parity: damaged, and nothing is lost.
    pub(super) fn healed(&self) -> impl Iterator<Item = Finding> {
        let names: BTreeSet<ObjectName> = self.repository.healed().into_iter().collect();
        let records = self.manifest.containers.iter().map(|record| record.object_name(self.manifest.series));
        records.filter(move |name| names.contains(name)).map(|name| Finding {
            object: name.to_string(),
            what: "it is damaged, and its parity makes it good: run 'silt repair --read-data'".to_owned(),
            snapshots: Vec::new(),
            help: Help::RepairReadData,
        })
    }

    pub(super) fn damaged(&self, record: &ContainerRecord, error: String, chunks: Vec<ChunkRun>) -> ContainerDamage {
        ContainerDamage {
            object: record.object_name(self.manifest.series).to_string(),
            error,
            chunks,
            cost: Cost::Lost,
        }
    }
}
