//! `--read-data`: every byte of the chosen containers, each read once; of others what holds bases for them.
//!
//! Regions are decoded by [`crate::decode`], in which deltas and bases wait for each other within a budget. Many
//! containers are taken in groups, so that the plan stays small; bases that several groups need are read for each.

use super::read_log::ReadLog;
use super::report::CheckReport;
use super::series::{ContainerDamage, Cost, SeriesCheck, answered};
use crate::EngineError;
use crate::chunks::{Address, ChunkSource};
use crate::decode::{
    DecodeSettings, DecodeVisitor, Decoding, GAP_BYTES_DEFAULT, Order, Plan, PlannedRegion, Tally, Worker,
};
use crate::lease::now;
use crate::maintain::dead::largest_bytes;
use crate::parallel::{Pool, lock};
use crate::resources::shares::CHECK_READ_BYTES_MAX;
use siltstone_store::StoreError;
use siltstone_store::container::{ContainerReader, ContainerRecord};
use siltstone_store::parity;
use siltstone_store::region::{ChunkEntry, RegionDecoder, split_region};
use siltstone_store::storage::ObjectName;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

/// Containers checked together: 32 GiB or less.
const GROUP_CONTAINERS: usize = 2048;
/// Containers checked together where it is remembered what was read: an interrupt costs 2 GiB or less.
const REMEMBERED_GROUP_CONTAINERS: usize = 128;
/// Containers checked together where time is short: 256 MiB or less are read after it is over.
const TIMED_GROUP_CONTAINERS: usize = 16;

/// Gathers what is wrong.
struct CheckVisitor<'c> {
    check: &'c SeriesCheck<'c>,
    chunks: Arc<ChunkSource<'c>>,
    whole: HashSet<usize>,
    damage: Mutex<Vec<ContainerDamage>>,
    /// Containers that could not be read, which has been told.
    unread: Mutex<HashSet<usize>>,
    /// Regions that are sound and cannot be decoded.
    dependent: Mutex<Vec<(Address, Arc<StoreError>)>>,
    /// Error that ends the check and is no damage: the place is away, or refuses.
    failure: OnceLock<Arc<StoreError>>,
    containers_read: AtomicU64,
    bytes_read: AtomicU64,
}

impl SeriesCheck<'_> {
    /// Reads these containers whole, but for what was read of late, and what there is no time for. Gives the damage,
    /// and which were read.
    pub(super) fn check_data(
        &self,
        chunks: &Arc<ChunkSource<'_>>,
        whole: Vec<usize>,
        report: &mut CheckReport,
    ) -> Result<(Vec<ContainerDamage>, Vec<usize>), EngineError> {
        let order = Order::new(self.manifest);
        let mut log = ReadLog::open(self.asked.options.state.as_deref(), self.repository, self.manifest.series);
        let mut left = self.due(whole, chunks, &order, &log, report);
        let (mut damage, mut read) = (Vec::new(), Vec::new());
        let fetches = self.fetches();
        std::thread::scope(|scope| {
            let pool: Pool<'_, Worker> = Pool::start(scope, "check", fetches, fetches, || Ok(Worker::default()))?;
            while !left.is_empty() && self.has_time(!read.is_empty()) {
                let rest = left.split_off(left.len().min(self.group_containers()));
                let group = std::mem::replace(&mut left, rest);
                let found = self.check_group(&pool, chunks, &order, &group, report)?;
                self.unless_cancelled()?;
                self.remember(chunks, &group, &found, &mut log, report);
                damage.extend(found);
                read.extend(group);
            }
            report.containers_left += left.len() as u64;
            report.bytes_left += left.iter().map(|at| chunks.record(*at).object_bytes).sum::<u64>();
            Ok((damage, read))
        })
    }

    /// Containers that may be read whole at the same time.
    fn fetches(&self) -> usize {
        self.resources.whole_fetches(largest_bytes(&self.manifest.containers))
    }

    /// Those of the containers that are to be read, in the order of reading.
    fn due(
        &self,
        mut whole: Vec<usize>,
        chunks: &ChunkSource<'_>,
        order: &Order<'_>,
        log: &ReadLog,
        report: &mut CheckReport,
    ) -> Vec<usize> {
        let options = self.asked.options;
        let now = now().seconds;
        let last_read = |at: usize| log.last_read(&chunks.record(at));
        if let Some(most) = options.max_age {
            let most = i64::try_from(most.as_secs()).unwrap_or(i64::MAX);
            // A time that is yet to come says nothing.
            let is_fresh = |read: i64| (0..=most).contains(&now.saturating_sub(read));
            let before = whole.len();
            whole.retain(|at| !last_read(*at).is_some_and(is_fresh));
            report.containers_fresh += (before - whole.len()) as u64;
        }
        whole.sort_by_cached_key(|at| order.rank(&chunks.record(*at)));
        if options.max_duration.is_some() {
            whole.sort_by_key(|at| last_read(*at));
        }
        whole
    }

    fn group_containers(&self) -> usize {
        match (self.asked.options.max_duration, &self.asked.options.state) {
            (Some(_), _) => TIMED_GROUP_CONTAINERS,
            (None, Some(_)) => REMEMBERED_GROUP_CONTAINERS,
            (None, None) => GROUP_CONTAINERS,
        }
    }

    /// Tells whether to read on. Something is read in any case, or a check with too little time would never come
    /// further.
    fn has_time(&self, has_read: bool) -> bool {
        let is_over = self.asked.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        !is_over || !(has_read || self.asked.has_read)
    }

    /// Notes when these were read. An interrupted check goes on after the last group noted.
    fn remember(
        &self,
        chunks: &ChunkSource<'_>,
        group: &[usize],
        damage: &[ContainerDamage],
        log: &mut ReadLog,
        report: &mut CheckReport,
    ) {
        let hurt: HashSet<&str> = damage.iter().map(|damage| damage.object.as_str()).collect();
        // What was read with its parity is damaged, and so is a container whose parity is.
        let healed: HashSet<ObjectName> = self.repository.healed().into_iter().collect();
        for at in group {
            let (name, record) = (chunks.object_name(*at), chunks.record(*at));
            let parity = ObjectName::Parity(self.manifest.series, record.id);
            let is_hurt = [name, parity].iter().any(|name| hurt.contains(name.to_string().as_str()));
            log.note(&record, !is_hurt && !healed.contains(&name), now().seconds);
        }
        if let Err(error) = log.save(self.manifest) {
            report.not_remembered = Some(error.to_string());
        }
    }

    fn check_group<'env>(
        &'env self,
        pool: &Pool<'env, Worker>,
        chunks: &Arc<ChunkSource<'env>>,
        order: &Order<'_>,
        group: &[usize],
        report: &mut CheckReport,
    ) -> Result<Vec<ContainerDamage>, EngineError> {
        let mut wanted = Vec::new();
        for container in group {
            // An index that could be opened a moment ago and cannot now is told by the visit.
            let Some(reader) = chunks.sound_reader(*container)? else { continue };
            let record = chunks.record(*container);
            for (region, entry) in reader.index().regions().iter().enumerate() {
                if !answered(&record, entry.chunks.iter().map(|chunk| chunk.number)).is_empty() {
                    wanted.push(Address { container: *container, region });
                }
            }
        }
        let plan = Plan::visiting(chunks, &wanted, group, order);
        let settings = DecodeSettings {
            gap_bytes: GAP_BYTES_DEFAULT,
            read_bytes_max: CHECK_READ_BYTES_MAX,
            waiting_bytes_max: self.resources.check_waiting_bytes(),
            verifies_bases: true,
            spill_folder: self.resources.scratch_of(self.repository),
        };
        let visitor = CheckVisitor {
            check: self,
            chunks: chunks.clone(),
            whole: group.iter().copied().collect(),
            damage: Mutex::default(),
            unread: Mutex::default(),
            dependent: Mutex::default(),
            failure: OnceLock::new(),
            containers_read: AtomicU64::new(0),
            bytes_read: AtomicU64::new(0),
        };
        let decoding = Arc::new(Decoding::new(chunks.clone(), plan, settings, Arc::<Tally>::default(), visitor));
        decoding.wait(decoding.start(pool, self.fetches()))?;
        let visitor = decoding.visitor();
        if let Some(error) = visitor.failure.get() {
            return Err(StoreError::Shared(error.clone()).into());
        }
        report.containers_read += visitor.containers_read.load(Ordering::Relaxed);
        report.bytes_read += visitor.bytes_read.load(Ordering::Relaxed);
        let mut damage = std::mem::take(&mut *lock(&visitor.damage));
        damage.sort_by(|a, b| (&a.object, &a.error).cmp(&(&b.object, &b.error)));
        let dependent = std::mem::take(&mut *lock(&visitor.dependent));
        damage.extend(self.unreadable(chunks, dependent));
        Ok(damage)
    }
}

impl CheckVisitor<'_> {
    /// Ends the check with an error that is no damage: what it keeps from being read may be sound.
    fn stop(&self, error: Arc<StoreError>) {
        // The first is told.
        let _ = self.failure.set(error);
    }

    /// Notes damage of a region; that of a lender's is told by the check of the lender.
    fn note(&self, address: Address, error: &StoreError) {
        if self.chunks.object_name(address.container).series() != Some(self.check.manifest.series) {
            return;
        }
        let record = self.chunks.record(address.container);
        let reader = self.chunks.reader(address.container).ok();
        let entry = reader.as_ref().and_then(|reader| reader.index().regions().get(address.region));
        let lost = answered(&record, entry.iter().flat_map(|entry| &entry.chunks).map(|chunk| chunk.number));
        self.push(self.check.damaged(&record, error.to_string(), lost));
    }

    /// Holds the parity of a container, if it has any, against the container; a difference is the parity's where the
    /// container is sound.
    fn check_parity(&self, record: &ContainerRecord, object: &[u8]) {
        let (repository, series) = (self.check.repository, self.check.manifest.series);
        let (keys, name) = (repository.keys(), ObjectName::Parity(series, record.id));
        let held = match repository.storage().read(&name, name.bytes_max()).map_err(StoreError::from) {
            Err(error) if error.is_not_found() => return,
            read => read.and_then(|parity| parity::check(keys, series, record.id, object, &parity)),
        };
        let error = match held {
            Err(error) if error.is_damage() => error,
            Err(error) => return self.stop(Arc::new(error)),
            Ok(()) => return,
        };
        if ContainerReader::check(keys, series, record, object, &mut RegionDecoder::new()).is_empty() {
            let damage = self.check.damaged(record, error.to_string(), Vec::new());
            self.push(ContainerDamage { object: name.to_string(), ..damage });
        }
    }

    /// Notes damage that costs no chunk.
    fn push_unless_healed(&self, record: &ContainerRecord, error: &StoreError, cost: Cost) {
        let damage = self.check.damaged(record, error.to_string(), Vec::new());
        self.check
            .unless_healed(record, vec![ContainerDamage { cost, ..damage }], true)
            .0
            .into_iter()
            .for_each(|damage| self.push(damage));
    }

    fn push(&self, damage: ContainerDamage) {
        lock(&self.damage).push(damage);
    }
}

impl DecodeVisitor for CheckVisitor<'_> {
    fn decoded(&self, region: PlannedRegion, chunks: &[ChunkEntry], plain: &[u8]) {
        let keys = self.chunks.repository().keys();
        let mut differing = split_region(chunks, plain)
            .filter(|(chunk, bytes)| keys.fingerprint_of(chunk.number, bytes) != chunk.fingerprint);
        if let Some((chunk, _)) = differing.next() {
            let name = self.chunks.object_name(region.address.container);
            let part = format!("region {}, chunk {}", region.address.region, chunk.number);
            let error = StoreError::damaged(&name, part, "its content does not match its fingerprint");
            self.note(region.address, &error);
        }
    }

    fn failed(&self, region: PlannedRegion, origin: PlannedRegion, error: &Arc<StoreError>) {
        if !error.is_damage() {
            return self.stop(error.clone());
        }
        // What indexes already told has been told, with all that depends on it.
        if origin.is_fault {
            return;
        }
        if region == origin {
            let unread = lock(&self.unread);
            if !unread.contains(&region.address.container) {
                self.note(region.address, error);
            }
        } else {
            let mut dependent = lock(&self.dependent);
            dependent.push((region.address, error.clone()));
        }
    }

    fn failed_too(&self, region: PlannedRegion, error: &Arc<StoreError>) {
        if error.is_damage() {
            self.note(region.address, error);
        } else {
            self.stop(error.clone());
        }
    }

    fn reads_whole(&self, container: usize) -> bool {
        self.whole.contains(&container)
    }

    /// Checks all but the regions that are needed, which come by themselves.
    fn whole(&self, container: usize, reader: &ContainerReader, object: Result<&[u8], &Arc<StoreError>>) {
        let record = self.chunks.record(container);
        let object = match object {
            Ok(object) => object,
            Err(error) if !error.is_damage() => return self.stop(error.clone()),
            Err(error) => {
                lock(&self.unread).insert(container);
                return self.push(self.check.damaged(&record, error.to_string(), record.chunks.clone()));
            }
        };
        if let Err(error) = reader.check_frame(object) {
            self.push_unless_healed(&record, &error, Cost::Lost);
        }
        self.check_parity(&record, object);
        let mut decoder = RegionDecoder::new();
        for (region, entry) in reader.index().regions().iter().enumerate() {
            if !answered(&record, entry.chunks.iter().map(|chunk| chunk.number)).is_empty() {
                continue;
            }
            if let Err(error) = reader.check_region(self.chunks.repository().keys(), region, object, &mut decoder) {
                self.push_unless_healed(&record, &error, Cost::Nothing);
            }
        }
    }

    fn visited(&self, container: usize, bytes_read: u64) {
        if self.whole.contains(&container) {
            self.containers_read.fetch_add(u64::from(bytes_read > 0), Ordering::Relaxed);
            self.bytes_read.fetch_add(bytes_read, Ordering::Relaxed);
            self.check.resources.observer.advance(1, bytes_read);
        }
    }

    /// The check then takes more memory; nothing is wrong with the repository.
    fn spill_failed(&self, _: &StoreError) {}

    fn is_cancelled(&self) -> bool {
        self.failure.get().is_some() || self.check.resources.observer.is_cancelled()
    }
}
