//! Checking a repository: that everything committed is there, authentic, consistent and, if asked, readable to the last
//! byte.
//!
//! ```text
//! always        key slots open; newest manifests open and agree with themselves; containers are there, in the recorded size,
//!               with sound indexes; the bases of every region are in some container, and none leads back to it; every catalog can
//!               be walked; each snapshot's necessary chunks are exactly those it refers to, and their bases, and what is so needed
//!               both before and after it
//!               what is borrowed is in loans that are there, and each lender has all of it
//! --read-data   of the chosen containers every byte: header, seals, padding, and each chunk against its fingerprint
//! ```
//! Only what a container answers for has to be readable: a superseded copy may hang on bases that are gone.
//!
//! Damage of a lender is told for those who borrow of it, too, without a second look at its containers (module
//! `borrowed`).
//!
//! Looking takes no lease; what a backup in progress adds meanwhile is an orphan to it, and said to be one. What was
//! found is then recorded in the manifest, if asked for (module `record`).

mod bases;
mod borrowed;
mod data;
mod help;
pub(crate) mod read_log;
mod record;
mod restored;
mod snapshots;

use crate::chunks::ChunkSource;
use crate::many_series::{self, ManySeries};
use crate::orphans::Needed;
use crate::parallel::{Pool, Ticket};
use crate::protect::unprotected;
use crate::setters::setters;
use crate::{EngineError, Resources};
use borrowed::{Lenders, Loans};
pub use help::Help;
use read_log::ReadLog;
pub use restored::{RestoreSample, SampleOutcome, SampledFile};
use roaring::RoaringTreemap;
use siltstone_store::container::{ContainerReader, ContainerRecord};
use siltstone_store::manifest::{Manifest, NecessaryChunks};
use siltstone_store::repository::Repository;
use siltstone_store::series::{
    StoredManifest, manifest_faults, newest_manifest, parts_kept, refuse_lost_history, verify_history,
};
use siltstone_store::storage::{Listing, ObjectMeta, ObjectName, Original};
use siltstone_store::twins;
use siltstone_store::{ChunkNumber, ChunkRun, PartId, SeriesId, StoreError};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How much of the containers' data to read.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum ReadData {
    /// Structure only: objects present and of the right size, indexes, catalogs, recipes, necessary chunks.
    #[default]
    None,
    /// Every byte.
    All,
    /// Part `part` (1-based) of `parts` equal parts of the containers, always the same ones.
    Subset {
        /// Which part, from 1.
        part: u32,
        /// Number of parts.
        parts: u32,
    },
    /// A random share of the containers.
    Percent(f64),
}

/// Options of a check.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct CheckOptions {
    /// How much of the data to read.
    pub read_data: ReadData,
    /// Who records in the manifests which chunks are damaged, so that backups heed it; `None`: nobody does.
    pub record: Option<String>,
    /// Do not read what was read within this time and was sound.
    pub max_age: Option<Duration>,
    /// Begin no further reading of data once this time has passed. What was read longest ago comes first; some is read
    /// in any case.
    pub max_duration: Option<Duration>,
    /// The folder in which this machine remembers what it read and when; `None`: it does not.
    pub state: Option<PathBuf>,
    /// Files to restore into nothing.
    pub restore_sample: Option<RestoreSample>,
}

impl CheckOptions {
    /// Reads so much, and records nothing.
    pub fn reading(read_data: ReadData) -> Self {
        Self::default().with_read_data(read_data)
    }
}

setters!(CheckOptions {
    with_read_data(read_data: ReadData),
    with_record(record: Option<String>),
    with_max_age(max_age: Option<Duration>),
    with_max_duration(max_duration: Option<Duration>),
    with_state(state: Option<PathBuf>),
    with_restore_sample(restore_sample: Option<RestoreSample>),
});

/// How often a series is checked anew because a writer went on meanwhile.
const ATTEMPTS_MAX: u32 = 8;

/// One thing found wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Name of the object (or snapshot) concerned.
    pub object: String,
    /// Fault, in words.
    pub what: String,
    /// Snapshots (short ids) that cannot be restored in full because of it, where known.
    pub snapshots: Vec<String>,
    /// Help against it.
    pub help: Help,
}

/// Report of a check.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// Damage; empty means the repository is sound as far as it was looked at.
    pub findings: Vec<Finding>,
    /// Damage of what nothing needs any more, such as the old place of a chunk that was healed. The object goes once
    /// the rest of it does.
    pub harmless: Vec<Finding>,
    /// Series looked at.
    pub series: u64,
    /// Snapshots looked at.
    pub snapshots: u64,
    /// Containers in all.
    pub containers: u64,
    /// Containers read whole.
    pub containers_read: u64,
    /// Bytes read from containers read whole.
    pub bytes_read: u64,
    /// Containers that were not read because they were a short while ago, and were sound.
    pub containers_fresh: u64,
    /// Containers that were to be read when the time was over.
    pub containers_left: u64,
    /// Their bytes.
    pub bytes_left: u64,
    /// The files that were restored into nothing.
    pub sample: Vec<SampledFile>,
    /// Why it could not be kept which containers were read, if it could not: the next check reads them again.
    pub not_remembered: Option<String>,
    /// Objects no manifest names, left by an interrupted run; the next backup or forget of their series removes them.
    pub orphans: u64,
    /// Their bytes.
    pub orphan_bytes: u64,
    /// Containers without the parity that the repository's settings want; `silt maintain` makes it.
    pub unprotected: u64,
    /// Damage that is known now and was not before, or no longer, by series.
    pub records: Vec<DamageRecord>,
}

/// Damage of a series that a check found, or found gone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DamageRecord {
    /// The series' name.
    pub series: String,
    /// Chunks that are damaged where they lie and were not known to be.
    pub damaged: u64,
    /// Chunks that were known to be damaged and are readable again.
    pub sound: u64,
    /// Outcome of recording it in the manifest.
    pub outcome: RecordOutcome,
}

/// Outcome of recording damage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RecordOutcome {
    /// It stands in the manifest: backups heed it.
    Recorded,
    /// Nobody asked for it.
    NotAsked,
    /// It could not be.
    Failed {
        /// Why.
        reason: String,
    },
}

impl CheckReport {
    /// Adds what the check of one series saw.
    fn add(&mut self, series: Self) {
        self.findings.extend(series.findings);
        self.harmless.extend(series.harmless);
        self.snapshots += series.snapshots;
        self.containers += series.containers;
        self.containers_read += series.containers_read;
        self.bytes_read += series.bytes_read;
        self.unprotected += series.unprotected;
        self.records.extend(series.records);
        self.containers_fresh += series.containers_fresh;
        self.containers_left += series.containers_left;
        self.bytes_left += series.bytes_left;
        self.sample.extend(series.sample);
        self.not_remembered = series.not_remembered.or(self.not_remembered.take());
    }
}

/// Checks the whole repository; damage is reported, not returned as an error.
///
/// # Errors
/// Anything that keeps the repository from being looked at: the storage cannot be listed; the user interrupted the
/// check.
pub fn check(
    repository: &Repository,
    options: &CheckOptions,
    resources: &Resources,
) -> Result<CheckReport, EngineError> {
    repository.require_reading("checking a repository")?;
    let deadline = options.max_duration.and_then(|most| Instant::now().checked_add(most));
    let mut report = CheckReport::default();
    report.findings.extend(check_slots(repository)?);
    report.findings.extend(repository.record_faults()?.iter().map(|error| finding("config", error, Help::Repair)));
    let listed = repository.storage().list(Listing::All).map_err(StoreError::from)?;
    let mut containers: BTreeMap<SeriesId, Vec<ObjectMeta>> = BTreeMap::new();
    for meta in &listed {
        if let ObjectName::Container(_, series, _) = meta.name {
            containers.entry(series).or_default().push(*meta);
        }
    }
    let series: BTreeSet<SeriesId> = repository.series()?.into_iter().chain(containers.keys().copied()).collect();
    report.series = series.len() as u64;
    let many = ManySeries::of(repository, resources.memory_bytes);
    let looked_at = many.each(
        series.into_iter().collect(),
        |_| many_series::SERIES_BYTES_MIN,
        |series| {
            resources.unless_cancelled()?;
            look_at_manifests(repository, series, containers.get(&series).map(Vec::as_slice))
        },
    )?;
    let (mut checked, mut parts) = (Vec::new(), HashMap::new());
    for (findings, readable) in looked_at {
        report.findings.extend(findings);
        if let Some(newest) = readable {
            parts.insert(newest.manifest.series, newest.parts);
            checked.push(newest.manifest);
        }
    }
    note_orphans(&listed, &checked, &parts, &mut report);
    let loans = Loans::listed(&listed);
    loans.note_unnamed(&checked, &mut report);
    // The series of which something was not read for longest comes first: so each has its turn, however short the time.
    let oldest = |manifest: &Manifest| {
        let log = ReadLog::open(options.state.as_deref(), repository, manifest.series);
        manifest.containers.iter().map(|record| log.last_read(record)).min()
    };
    checked.sort_by_cached_key(oldest);
    let checked: Vec<Checked> = if deadline.is_some() {
        // One after the other: the time is for those that come first.
        let mut has_read = false;
        let one_by_one = checked.into_iter().map(|manifest| {
            let asked = Asked { options, deadline, has_read };
            let checked = check_series(repository, manifest, &asked, resources)?;
            has_read |= checked.report.containers_read > 0;
            Ok::<_, EngineError>(checked)
        });
        one_by_one.collect::<Result<_, _>>()?
    } else {
        let asked = Asked { options, deadline, has_read: false };
        many.each(checked, many_series::weight, |manifest| check_series(repository, manifest, &asked, resources))?
    };
    let lenders = Lenders::of(&checked);
    let look_at_loans = |mut series: Checked| {
        resources.unless_cancelled()?;
        lenders.add_findings(&mut series);
        Loans::add_findings(repository, &mut series)?;
        Ok::<_, EngineError>(series)
    };
    for series in many.each(checked, |_| many_series::SERIES_BYTES_MIN, look_at_loans)? {
        resources.unless_cancelled()?;
        let Checked { manifest, learnt, report: mut found, .. } = series;
        found.records.extend(record::record(repository, &manifest, &learnt, options, resources));
        report.add(found);
    }
    Ok(report)
}

/// A series that was looked at.
struct Checked {
    /// The manifest that was held against the containers in the end.
    manifest: Manifest,
    report: CheckReport,
    /// Damage of its containers, also of such as nothing of its own hangs on.
    damage: Vec<ContainerDamage>,
    learnt: Learnt,
}

/// The newest manifest of a series, with the parts that it and the one before name.
struct Newest {
    manifest: Manifest,
    parts: BTreeSet<PartId>,
}

/// Looks at the newest manifest of a series, the one before and their copies; returns what is wrong with them, and if
/// it can be read the newest with the parts that it and the one before name.
fn look_at_manifests(
    repository: &Repository,
    series: SeriesId,
    containers: Option<&[ObjectMeta]>,
) -> Result<(Vec<Finding>, Option<Newest>), EngineError> {
    Ok(match newest_manifest(repository, series) {
        Ok(Some(stored)) => {
            let mut findings: Vec<Finding> =
                lost_history(&stored.manifest, containers.unwrap_or_default()).into_iter().collect();
            findings.extend(check_manifests(repository, &stored)?);
            let parts = parts_kept(repository, &stored)?;
            (findings, Some(Newest { manifest: stored.manifest, parts }))
        }
        Ok(None) => {
            let what = "its manifest is missing, but containers of it are there; 'silt repair' rebuilds it from them";
            let (object, what) = (format!("series/{series}"), what.to_owned());
            (vec![Finding { object, what, snapshots: Vec::new(), help: Help::Repair }], None)
        }
        Err(error) => {
            let help = Help::against_unreadable(&error, containers.is_some());
            (vec![finding(&format!("series/{series}"), &error, help)], None)
        }
    })
}

/// Checks a series as one manifest describes it. If a writer went on meanwhile, what it removed is no damage: then the
/// newer manifest is checked instead.
fn check_series(
    repository: &Repository,
    mut manifest: Manifest,
    asked: &Asked<'_>,
    resources: &Resources,
) -> Result<Checked, EngineError> {
    let mut attempts_left = ATTEMPTS_MAX;
    loop {
        let listed = repository.storage().list_containers(manifest.series).map_err(StoreError::from)?;
        let sizes = listed.iter().map(|meta| (meta.name, meta.bytes));
        let mut found = CheckReport::default();
        let check = SeriesCheck { repository, manifest: &manifest, sizes: sizes.collect(), resources, asked };
        let (learnt, damage) = check.run(&mut found)?;
        attempts_left -= 1;
        let newest = if found.findings.is_empty() || attempts_left == 0 {
            None
        } else {
            repository.manifest(manifest.series).ok().flatten().filter(|newest| newest.sequence > manifest.sequence)
        };
        match newest {
            Some(newest) => manifest = newest,
            None => return Ok(Checked { manifest, report: found, damage, learnt }),
        }
    }
}

fn finding(object: &str, error: &StoreError, help: Help) -> Finding {
    Finding { object: object.to_owned(), what: error.to_string(), snapshots: Vec::new(), help }
}

/// Key slots of which a place is damaged or missing, or both are.
fn check_slots(repository: &Repository) -> Result<Vec<Finding>, EngineError> {
    let hurt = twins::of_repository(repository)?.into_iter();
    let slots = hurt.filter(|twins| matches!(twins.original, Original::Key(_)));
    let findings = slots.flat_map(|twins| {
        let help = if twins.is_mendable() { Help::Repair } else { Help::KeyAdd };
        twins.faults.into_iter().map(move |(_, error)| finding("keys", &error, help))
    });
    Ok(findings.collect())
}

/// A container written under a later lease than the newest manifest tells that newer ones are missing. (It was listed
/// before the manifest was read, so no writer at work explains it.)
fn lost_history(manifest: &Manifest, containers: &[ObjectMeta]) -> Option<Finding> {
    let error = refuse_lost_history(containers, manifest.sequence).err()?;
    Some(finding(&manifest.object_name().to_string(), &error, Help::Repair))
}

/// Damage of the newest manifest, the one before and their copies, unless a writer went on meanwhile and removed them.
fn check_manifests(repository: &Repository, stored: &StoredManifest) -> Result<Vec<Finding>, EngineError> {
    let newest = &stored.manifest;
    let mut faults = manifest_faults(repository, stored)?;
    faults.extend(verify_history(repository, newest).err());
    let is_newest =
        || Ok::<_, StoreError>(repository.manifest(newest.series)?.is_some_and(|now| now.sequence == newest.sequence));
    if faults.is_empty() || !is_newest()? {
        return Ok(Vec::new());
    }
    let object = newest.object_name().to_string();
    Ok(faults.iter().map(|error| finding(&object, error, Help::Repair)).collect())
}

/// Containers that their manifest does not name, manifests older than the one before the newest, and parts that neither
/// of these names. Of a series whose manifest cannot be read, nothing is called an orphan.
fn note_orphans(
    listed: &[ObjectMeta],
    manifests: &[Manifest],
    parts: &HashMap<SeriesId, BTreeSet<PartId>>,
    report: &mut CheckReport,
) {
    let needed: HashMap<SeriesId, Needed> =
        manifests.iter().map(|manifest| (manifest.series, Needed::by(manifest))).collect();
    for meta in listed {
        let Some(series) = meta.name.series() else { continue };
        let is_unnamed_part = meta.name.part().zip(parts.get(&series)).is_some_and(|(id, kept)| !kept.contains(&id));
        if is_unnamed_part || needed.get(&series).is_some_and(|needed| needed.is_orphan(&meta.name)) {
            report.orphans += 1;
            report.orphan_bytes += meta.bytes;
        }
    }
}

/// Request to check a series.
struct Asked<'c> {
    options: &'c CheckOptions,
    /// When to begin no further reading.
    deadline: Option<Instant>,
    /// True if data of another series was read.
    has_read: bool,
}

/// The check of one series.
struct SeriesCheck<'c> {
    repository: &'c Repository,
    manifest: &'c Manifest,
    sizes: HashMap<ObjectName, u64>,
    resources: &'c Resources,
    asked: &'c Asked<'c>,
}

/// Damage of a container and the chunks it costs of those that it answers for.
#[derive(Clone)]
struct ContainerDamage {
    object: String,
    error: String,
    chunks: Vec<ChunkRun>,
    cost: Cost,
}

/// Cost of a damage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cost {
    /// The chunks are lost where they lie; or there are none, and the object is not what was written.
    Lost,
    /// The chunks hang on something that is lost.
    Hangs,
    /// Nothing: no container answers for what was hit there.
    Nothing,
    /// Nothing, for whoever has a newer program: what holds them is of a format that this one does not know.
    ForeignFormat,
}

/// Facts about single chunks that a check learnt.
#[derive(Default)]
struct Learnt {
    /// Those that are lost where they lie.
    damaged: RoaringTreemap,
    /// Those that were read and are sound.
    sound: RoaringTreemap,
}

/// Those of the numbers that the container answers for, in runs of one.
fn answered(record: &ContainerRecord, numbers: impl IntoIterator<Item = ChunkNumber>) -> Vec<ChunkRun> {
    let answers = |number: &ChunkNumber| {
        let at = record.chunks.partition_point(|run| *run.range().end() < number.0);
        record.chunks.get(at).is_some_and(|run| run.range().contains(&number.0))
    };
    numbers.into_iter().filter(answers).map(|first| ChunkRun { first, count: 1 }).collect()
}

/// The chunks that these cost.
fn numbers<'d>(damage: impl IntoIterator<Item = &'d ContainerDamage>) -> RoaringTreemap {
    let mut numbers = RoaringTreemap::new();
    for run in damage.into_iter().flat_map(|damage| &damage.chunks) {
        numbers.insert_range(run.range());
    }
    numbers
}

impl SeriesCheck<'_> {
    fn run(&self, report: &mut CheckReport) -> Result<(Learnt, Vec<ContainerDamage>), EngineError> {
        let name = self.manifest.object_name().to_string();
        let faults = self.manifest.faults();
        report.findings.extend(faults.iter().map(|error| finding(&name, error, Help::against_contradiction(error))));
        report.containers += self.manifest.containers.len() as u64;
        report.unprotected += unprotected(self.repository, self.manifest)?.len() as u64;
        let (mut damage, mut read) = self.check_containers(report)?;
        for unneeded in damage.extract_if(.., |damage| damage.cost == Cost::Nothing) {
            let (object, what) = (unneeded.object, unneeded.error);
            report.harmless.push(Finding { object, what, snapshots: Vec::new(), help: Help::RepairReadData });
        }
        let of_containers = damage.clone();
        damage.extend(self.check_lenders()?);
        let lost = numbers(&damage);
        let mut findings = Vec::new();
        let (needs, damaged_catalogs) = self.check_snapshots(&lost, &mut findings)?;
        report.snapshots += self.manifest.snapshots().len() as u64;
        self.add_container_findings(&damage, &needs, report);
        report.findings.append(&mut findings);
        report.findings.extend(self.healed());
        let damaged = numbers(damage.iter().filter(|damage| damage.cost == Cost::Lost)) | damaged_catalogs;
        read -= lost;
        let mut learnt = Learnt { sound: read - &damaged, damaged };
        if let Some(sample) = &self.asked.options.restore_sample {
            report.sample = self.restore_sample(sample, &mut learnt, &mut report.findings)?;
        }
        Ok((learnt, of_containers))
    }

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
    fn check_containers(
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
        let results: Vec<(Vec<ContainerDamage>, bool)> = std::thread::scope(|scope| {
            let pool = Pool::start(scope, "check", self.resources.fetches, self.resources.fetches, || Ok(()))?;
            let submit = |(record, chosen): (&ContainerRecord, bool)| {
                let record = record.clone();
                pool.submit(move |()| {
                    let (damage, is_open) = self.check_container(&record);
                    if !(chosen && is_open) {
                        self.resources.observer.advance(1, 0);
                    }
                    (damage, is_open)
                })
            };
            let tickets: Vec<_> = records.iter().zip(chosen.iter().copied()).map(submit).collect();
            tickets.into_iter().map(Ticket::wait).collect::<Result<_, StoreError>>()
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

    fn unless_cancelled(&self) -> Result<(), EngineError> {
        self.resources.unless_cancelled()
    }

    /// Looks for a container, its size and its index; `true` if the index is sound.
    fn check_container(&self, record: &ContainerRecord) -> (Vec<ContainerDamage>, bool) {
        if self.resources.observer.is_cancelled() {
            return (Vec::new(), false);
        }
        let damaged = |error: String| self.damaged(record, error, record.chunks.clone());
        let Some(found) = self.sizes.get(&record.object_name(self.manifest.series)) else {
            return self.unless_healed(record, vec![damaged("it is missing".to_owned())], false);
        };
        let mut damage = Vec::new();
        if *found != record.object_bytes {
            damage.push(damaged(format!("it has {found} bytes instead of {}", record.object_bytes)));
        }
        let (storage, keys) = (self.repository.storage(), self.repository.keys());
        let opened = ContainerReader::open(storage, keys, self.manifest.series, record);
        let is_open = opened.is_ok();
        damage.extend(opened.err().map(|error| damaged(error.to_string())));
        self.unless_healed(record, damage, is_open)
    }

    /// Returns the damage of a container, and whether it can be opened: nothing, and yes, if its parity heals it. That
    /// is told apart from what is lost.
    fn unless_healed(
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
    fn healed(&self) -> impl Iterator<Item = Finding> {
        let names: BTreeSet<ObjectName> = self.repository.healed().into_iter().collect();
        let records = self.manifest.containers.iter().map(|record| record.object_name(self.manifest.series));
        records.filter(move |name| names.contains(name)).map(|name| Finding {
            object: name.to_string(),
            what: "it is damaged, and its parity makes it good: run 'silt repair --read-data'".to_owned(),
            snapshots: Vec::new(),
            help: Help::RepairReadData,
        })
    }

    fn damaged(&self, record: &ContainerRecord, error: String, chunks: Vec<ChunkRun>) -> ContainerDamage {
        ContainerDamage {
            object: record.object_name(self.manifest.series).to_string(),
            error,
            chunks,
            cost: Cost::Lost,
        }
    }

    /// Tells each damage with the snapshots it touches, going by what each needs itself.
    fn add_container_findings(&self, damage: &[ContainerDamage], needs: &NecessaryChunks, report: &mut CheckReport) {
        report.findings.extend(findings_of(damage, self.manifest, needs));
    }

    /// Returns the help against damage of these snapshots, given by their short ids.
    fn help_for(&self, snapshots: &[String]) -> Help {
        help_for(self.manifest, snapshots)
    }
}

/// Each damage with the snapshots of a series that it touches, going by what they need.
fn findings_of(damage: &[ContainerDamage], manifest: &Manifest, needs: &NecessaryChunks) -> Vec<Finding> {
    let mut touched = vec![Vec::new(); damage.len()];
    if !damage.is_empty() {
        let snapshots = manifest.snapshots();
        needs.for_each(|position, necessary| {
            for (touched, damage) in touched.iter_mut().zip(damage) {
                let is_touched = damage.chunks.iter().any(|run| necessary.range_cardinality(run.range()) > 0);
                if is_touched && let Some(snapshot) = snapshots.get(position) {
                    touched.push(snapshot.id.short());
                }
            }
        });
    }
    let finding = |(damage, snapshots): (&ContainerDamage, Vec<String>)| Finding {
        object: damage.object.clone(),
        what: damage.error.clone(),
        help: match damage.cost {
            Cost::ForeignFormat => Help::NewerProgram,
            _ => help_for(manifest, &snapshots),
        },
        snapshots,
    };
    damage.iter().zip(touched).map(finding).collect()
}

/// Returns the help against damage of these snapshots of a series, given by their short ids.
fn help_for(manifest: &Manifest, snapshots: &[String]) -> Help {
    let last = manifest.snapshots().iter().rfind(|snapshot| !snapshot.partial);
    Help::against_loss(snapshots, last.map(|snapshot| snapshot.id.short()).as_deref())
}
