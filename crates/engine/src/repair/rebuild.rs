//! A new manifest for a series whose newest one cannot be read: from the newest that can be, if there is one, and from
//! what the containers hold.

use super::choose::{Answers, choose};
use super::damage::damaged_by;
use super::gather::{Holding, Holdings, gather};
use super::loans::{self, Borrowed};
use super::{Basis, DamagedSnapshot, RepairOptions, SeriesPlan, Step, refuse_at_work};
use crate::chunks::ChunkSource;
use crate::{EngineError, Resources};
use roaring::RoaringTreemap;
use siltstone_store::catalog::{CatalogReader, MetadataSource};
use siltstone_store::container::ContainerKind;
use siltstone_store::manifest::{Manifest, Snapshot, SnapshotRecord};
use siltstone_store::repository::Repository;
use siltstone_store::salvage::{manifest_at, manifest_numbers, require_numbers_after};
use siltstone_store::storage::{ObjectName, Replaced};
use siltstone_store::{ChunkNumber, SeriesId, StoreError};
use std::collections::HashSet;

/// Plans the repair of a series whose manifest has this fault.
pub(super) fn plan(
    repository: &Repository,
    series: SeriesId,
    fault: &StoreError,
    options: &RepairOptions,
    resources: &Resources,
) -> Result<SeriesPlan, EngineError> {
    let manifests = Manifests::find(repository, series)?;
    if let Some(seed) = &manifests.seed {
        refuse_at_work(seed, options)?;
    }
    let mut holdings = gather(repository, series, manifests.seed.as_ref(), resources)?;
    let mut borrowed = Borrowed::find(repository, series, manifests.seed.as_ref())?;
    borrowed.drop_leftovers(&mut holdings);
    borrowed.look_at_lenders(repository)?;
    match Rebuild::new(repository, series, &manifests, &holdings, &borrowed) {
        Some(rebuild) => {
            let claimed = loans::claimed(repository, series)?;
            rebuild.plan(fault, claimed, options, resources)
        }
        None => {
            let name = repository.config().series.get(&series).cloned();
            Ok(SeriesPlan { name, ..without_name(series, &manifests, &holdings, fault) })
        }
    }
}

/// A plan that says what is wrong, with a step that concerns no snapshot.
fn blank(series: SeriesId, manifests: &Manifests, fault: &StoreError, step: Step) -> SeriesPlan {
    let seed = manifests.seed.as_ref();
    SeriesPlan {
        series,
        name: seed.map(|seed| seed.name.clone()),
        faults: vec![fault.to_string()],
        basis: seed.map_or(Basis::Containers, |seed| Basis::Older(seed.sequence)),
        snapshots: seed.map_or(0, |seed| seed.snapshots().len() as u64),
        found: Vec::new(),
        damaged: Vec::new(),
        drops_damaged: false,
        aside: Vec::new(),
        protected: 0,
        is_beyond_repair: false,
        step,
    }
}

fn clear(unreadable: Vec<Replaced>) -> Step {
    Step::Clear { unreadable }
}

/// Neither a manifest nor a snapshot's record says what the series is. If it has no containers, it never had a
/// snapshot.
fn without_name(series: SeriesId, manifests: &Manifests, holdings: &Holdings, fault: &StoreError) -> SeriesPlan {
    if manifests.are_all(holdings) {
        let aside = manifests.unreadable.iter().map(|what| what.name()).collect();
        return SeriesPlan { aside, ..blank(series, manifests, fault, clear(manifests.unreadable.clone())) };
    }
    SeriesPlan { is_beyond_repair: true, ..blank(series, manifests, fault, Step::Nothing) }
}

/// The manifests of a series.
struct Manifests {
    /// The newest that can be read.
    seed: Option<Manifest>,
    /// Those that cannot.
    unreadable: Vec<Replaced>,
    /// The highest number.
    last: u64,
}

impl Manifests {
    fn find(repository: &Repository, series: SeriesId) -> Result<Self, EngineError> {
        let numbers = manifest_numbers(repository, series)?;
        let mut found = Self { seed: None, unreadable: Vec::new(), last: numbers.last().copied().unwrap_or(0) };
        for number in numbers.into_iter().rev() {
            match manifest_at(repository, series, number) {
                Ok(stored) => drop(found.seed.get_or_insert(stored.manifest)),
                Err(error) if error.is_damage() => found.unreadable.push(Replaced::Manifest(series, number)),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(found)
    }

    /// Tells whether there are damaged manifests, and no containers.
    fn are_all(&self, holdings: &Holdings) -> bool {
        holdings.readable.is_empty() && holdings.unreadable.is_empty() && !self.unreadable.is_empty()
    }
}

/// A series on its way to a new manifest.
struct Rebuild<'r> {
    manifests: &'r Manifests,
    holdings: &'r Holdings,
    borrowed: &'r Borrowed,
    answers: Answers,
    chunks: ChunkSource<'r>,
    /// The manifest to be: so far its name and the containers that answer for anything.
    next: Manifest,
    /// Snapshots that the seed does not name.
    found: Vec<Snapshot>,
}

/// Lost chunks that one snapshot may need: 4 TiB of 16 KiB each, marked in 32 MiB. A hostile catalog names more than
/// any memory can mark; beyond this it counts as damaged.
const LOST_CHUNKS_MAX: u64 = 1 << 28;

/// A snapshot, and what it needs.
struct Walked {
    direct: RoaringTreemap,
    /// True if its catalog could be walked to its end.
    is_whole: bool,
}

impl<'r> Rebuild<'r> {
    /// Chooses containers and looks for snapshots; `None` if nothing says what the series' name is.
    fn new(
        repository: &'r Repository,
        series: SeriesId,
        manifests: &'r Manifests,
        holdings: &'r Holdings,
        borrowed: &'r Borrowed,
    ) -> Option<Self> {
        let mut answers = choose(&holdings.readable, &borrowed.numbers());
        let mut draft = Manifest::new(series, "");
        draft.containers = answers.records(&holdings.readable);
        let own = answers.by_holding.iter().fold(RoaringTreemap::new(), |own, numbers| own | numbers);
        borrowed.add_to(&mut draft, manifests.seed.as_ref(), &own);
        answers.available -= &borrowed.lost - &own;
        let chunks = ChunkSource::new(repository, &draft);
        let mut records = records_in(&chunks, &holdings.readable, &answers);
        records.retain(|record| repository.keys().series_id(&record.series_name) == series);
        let from_seed = manifests.seed.as_ref().map(|seed| seed.name.clone());
        let listed = repository.config().series.get(&series).cloned();
        let of_record = records.first().map(|record| record.series_name.clone());
        // A series without containers never had a snapshot.
        let name = from_seed.or(of_record).or_else(|| listed.clone().filter(|_| manifests.are_all(holdings)))?;
        draft.listed = listed.is_some();
        let mut known: HashSet<_> =
            manifests.seed.iter().flat_map(Manifest::snapshots).map(|snapshot| snapshot.id).collect();
        let found = records.into_iter().map(|record| record.snapshot).filter(|snapshot| known.insert(snapshot.id));
        let mut found: Vec<Snapshot> = found.collect();
        found.sort_by_key(|snapshot| snapshot.record);
        draft.name = name;
        Some(Self { manifests, holdings, borrowed, answers, chunks, next: draft, found })
    }

    fn plan(
        mut self,
        fault: &StoreError,
        claimed: (RoaringTreemap, bool),
        options: &RepairOptions,
        resources: &Resources,
    ) -> Result<SeriesPlan, EngineError> {
        self.require_numbers()?;
        let seed = self.manifests.seed.as_ref();
        self.take_notes(seed);
        let mut damaged = Vec::new();
        for (snapshot, position) in self.candidates(seed) {
            resources.unless_cancelled()?;
            let walked = self.walk(&snapshot, seed.zip(position));
            let lost = &walked.direct - &self.answers.available;
            let is_hurt = !walked.is_whole || !lost.is_empty();
            if is_hurt {
                damaged.push(DamagedSnapshot {
                    catalog_is_damaged: !walked.is_whole,
                    ..self::damaged_by(&self.chunks, &snapshot, &lost)
                });
            }
            if !is_hurt || !options.drop_damaged {
                self.push(snapshot, &walked.direct)?;
            }
        }
        self.keep_lost_containers(seed);
        self.keep_loans(seed, claimed)?;
        let before_last: HashSet<_> = self.next.snapshots().iter().rev().skip(1).map(|kept| kept.id).collect();
        self.next.unsettled.retain(|id| before_last.contains(id));
        self.next.shortcuts.retain(|id, _| before_last.contains(id));
        Ok(self.into_plan(fault, damaged, options))
    }

    /// Takes over what the seed knows beside snapshots and containers, and numbers that were never given.
    fn take_notes(&mut self, seed: Option<&Manifest>) {
        let next = &mut self.next;
        if let Some(seed) = seed {
            (next.next_data, next.next_metadata) = (seed.next_data, seed.next_metadata);
            next.dependents_depths.clone_from(&seed.dependents_depths);
            next.unsettled.clone_from(&seed.unsettled);
            next.shortcuts.clone_from(&seed.shortcuts);
            next.damaged = &seed.damaged - &self.answers.available;
        }
        next.ghosts_due = true;
        self.borrowed.last().into_iter().for_each(|last| above(next, last));
        for holding in &self.holdings.readable {
            if let Some(last) = holding.reader.index().places().last() {
                above(next, last.chunk.number);
            }
        }
    }

    /// The snapshots in the order of their commits, which is that of their records, but for those that were rewritten:
    /// they have newer records than their place in the seed says. With that place.
    fn candidates(&self, seed: Option<&Manifest>) -> Vec<(Snapshot, Option<usize>)> {
        let of_seed = seed.into_iter().flat_map(|seed| seed.snapshots().iter().cloned().enumerate());
        let mut last = ChunkNumber::METADATA_FIRST;
        let of_seed = of_seed.map(|(position, snapshot)| {
            last = last.max(snapshot.record);
            (last, snapshot, Some(position))
        });
        let found = self.found.iter().map(|snapshot| (snapshot.record, snapshot.clone(), None));
        let mut all: Vec<_> = of_seed.chain(found).collect();
        all.sort_by_key(|(record, ..)| *record);
        all.into_iter().map(|(_, snapshot, position)| (snapshot, position)).collect()
    }

    /// Collects the chunks that the snapshot refers to; of a catalog that cannot be walked to its end, also those in
    /// the seed.
    fn walk(&self, snapshot: &Snapshot, in_seed: Option<(&Manifest, usize)>) -> Walked {
        let mut walked = Walked { direct: RoaringTreemap::new(), is_whole: true };
        let mut room = self.answers.available.len() + LOST_CHUNKS_MAX;
        CatalogReader::new(&self.chunks, snapshot.root).visit_chunks(&mut |step| match step {
            Ok(run) if run.count <= room => room -= walked.direct.insert_range(run.range()),
            Ok(_) | Err(_) => walked.is_whole = false,
        });
        walked.direct.insert(snapshot.root.0);
        walked.direct.insert(snapshot.record.0);
        if let Some((seed, position)) = in_seed.filter(|_| !walked.is_whole) {
            walked.direct |= seed.direct(position);
        }
        walked
    }

    fn push(&mut self, snapshot: Snapshot, direct: &RoaringTreemap) -> Result<(), EngineError> {
        let closure = self.chunks.closure(&(direct & &self.answers.available))?;
        let data_count = direct.rank(ChunkNumber::METADATA_FIRST.0 - 1);
        let last_data = data_count.checked_sub(1).and_then(|at| direct.select(at));
        last_data.into_iter().chain(direct.max()).for_each(|last| above(&mut self.next, ChunkNumber(last)));
        self.next.push_snapshot(snapshot, direct, &(closure | direct));
        Ok(())
    }

    /// Keeps chunks of lost containers that snapshots need in the manifest: in the seed's records, so that a container
    /// that is brought back counts again; and where no record tells, among the damaged chunks.
    fn keep_lost_containers(&mut self, seed: Option<&Manifest>) {
        let mut unanswered = self.next.live() - &self.answers.available;
        let readable: HashSet<_> = self.holdings.readable.iter().map(|holding| holding.reader.record().id).collect();
        for record in seed.iter().flat_map(|seed| &seed.containers).filter(|record| !readable.contains(&record.id)) {
            let numbers = record.numbers() & &unanswered;
            if !numbers.is_empty() {
                unanswered -= &numbers;
                let mut record = record.clone();
                record.change_numbers(|_| numbers);
                self.next.containers.push(record);
            }
        }
        self.next.damaged |= unanswered;
    }

    /// Borrows what the snapshots need and nothing else, and keeps what others have borrowed, with its bases; all that
    /// there is if that cannot be known.
    fn keep_loans(
        &mut self,
        seed: Option<&Manifest>,
        (claimed, is_known): (RoaringTreemap, bool),
    ) -> Result<(), EngineError> {
        let live = self.next.live();
        let next = &mut self.next;
        next.keep_imports(&live);
        next.drop_idle_lenders();
        let mut stored = next.containers.iter().fold(RoaringTreemap::new(), |all, record| all | record.numbers());
        next.sketch = seed.map(|seed| seed.sketch.clone()).unwrap_or_default();
        next.sketch.keep(&(&stored & &live));
        next.lends = seed.is_some_and(|seed| seed.lends) || !claimed.is_empty() || !is_known;
        stored.remove_range(ChunkNumber::METADATA_FIRST.0..);
        let seeded = seed.map(|seed| &seed.lent & &claimed).unwrap_or_default();
        let wanted = if is_known { claimed & &stored } else { stored.clone() };
        let closure = self.chunks.closure(&(&wanted & &self.answers.available))?;
        next.lent = ((closure | wanted | seeded) & stored) - live;
        Ok(())
    }

    /// Refuses a series with an object of a number so high that a commit beyond all of them has none.
    fn require_numbers(&self) -> Result<(), EngineError> {
        let series = self.next.series;
        require_numbers_after(&ObjectName::Manifest(series, self.manifests.last), self.manifests.last)?;
        let readable = self.holdings.readable.iter().map(|holding| holding.reader.record());
        let readable = readable.map(|record| (record.kind, record.id));
        let unreadable = self.holdings.unreadable.iter().map(|unreadable| (unreadable.kind, unreadable.id));
        for (kind, id) in readable.chain(unreadable) {
            require_numbers_after(&ObjectName::Container(kind, series, id), id.lease)?;
        }
        Ok(())
    }

    fn into_plan(self, fault: &StoreError, damaged: Vec<DamagedSnapshot>, options: &RepairOptions) -> SeriesPlan {
        let Self { manifests, holdings, borrowed, next, found, .. } = self;
        let series = next.series;
        let named: HashSet<_> = next.containers.iter().map(|record| record.id).collect();
        let mut faults = vec![fault.to_string()];
        faults.extend(holdings.unreadable.iter().map(|unreadable| unreadable.error.to_string()));
        faults.extend(borrowed.faults.iter().cloned());
        let lost = holdings.unreadable.iter().filter(|lost| !named.contains(&lost.id));
        let mut unreadable = manifests.unreadable.clone();
        unreadable.extend(lost.map(|lost| Replaced::Container(lost.kind, series, lost.id)));
        let seen = options.seen.get(&series).copied().unwrap_or(0);
        let leases = holdings.readable.iter().map(|holding| holding.reader.record().id.lease);
        let last = leases
            .chain(holdings.unreadable.iter().map(|unreadable| unreadable.id.lease))
            .fold(manifests.last.max(seen), u64::max);
        let is_dropped = |snapshot: &Snapshot| {
            options.drop_damaged && damaged.iter().any(|damaged: &DamagedSnapshot| damaged.snapshot.id == snapshot.id)
        };
        let found = found.into_iter().filter(|snapshot| !is_dropped(snapshot)).collect();
        SeriesPlan {
            series,
            name: Some(next.name.clone()),
            faults,
            basis: manifests.seed.as_ref().map_or(Basis::Containers, |seed| Basis::Older(seed.sequence)),
            snapshots: next.snapshots().len() as u64,
            found,
            damaged,
            drops_damaged: options.drop_damaged,
            aside: unreadable.iter().map(|what| what.name()).collect(),
            protected: 0,
            is_beyond_repair: false,
            step: Step::Commit { manifest: Box::new(next), last, unreadable },
        }
    }
}

/// Sees to it that the number is not given again.
fn above(manifest: &mut Manifest, number: ChunkNumber) {
    let next = if number.is_metadata() { &mut manifest.next_metadata } else { &mut manifest.next_data };
    *next = (*next).max(ChunkNumber(number.0.saturating_add(1)));
}

/// The snapshot records in containers that the seed does not name.
fn records_in(chunks: &ChunkSource<'_>, holdings: &[Holding], answers: &Answers) -> Vec<SnapshotRecord> {
    let unnamed = holdings
        .iter()
        .zip(&answers.by_holding)
        .filter(|(holding, _)| !holding.is_named && holding.reader.record().kind == ContainerKind::Metadata);
    let numbers = unnamed.flat_map(|(_, numbers)| numbers);
    let decoded = numbers.filter_map(|number| {
        let number = ChunkNumber(number);
        let bytes = chunks.load(number).ok().filter(|bytes| SnapshotRecord::is_record(bytes))?;
        SnapshotRecord::decode(number, &bytes).ok()
    });
    decoded.collect()
}
