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
mod containers;
mod data;
mod help;
mod options;
pub(crate) mod read_log;
mod record;
mod report;
mod restored;
mod series;
mod snapshots;

pub use help::Help;
pub use options::{CheckOptions, ReadData};
pub use report::{CheckReport, DamageRecord, Finding, RecordOutcome};
pub use restored::{RestoreSample, SampleOutcome, SampledFile};

use crate::many_series::{self, ManySeries};
use crate::orphans::orphans_among;
use crate::{EngineError, Resources};
use borrowed::{Lenders, Loans};
use read_log::ReadLog;
use series::{Asked, ContainerDamage, Learnt, SeriesCheck};
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::series::{
    StoredManifest, manifest_faults, newest_manifest, parts_kept, refuse_lost_history, verify_history,
};
use siltstone_store::storage::{Listing, ObjectMeta, ObjectName, Original};
use siltstone_store::twins;
use siltstone_store::{PartId, SeriesId, StoreError};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Instant;

/// How often a series is checked anew because a writer went on meanwhile.
const ATTEMPTS_MAX: u32 = 8;

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
    report.findings.extend(repository.record_faults()?.iter().map(|error| Finding::of("config", error, Help::Repair)));
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
    note_orphans(repository, &listed, &checked, &parts, &mut report);
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
        Err(error) if error.is_outage() => return Err(error.into()),
        Err(error) => {
            let help = Help::against_unreadable(&error, containers.is_some());
            (vec![Finding::of(&format!("series/{series}"), &error, help)], None)
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

/// Key slots of which a place is damaged or missing, or both are.
fn check_slots(repository: &Repository) -> Result<Vec<Finding>, EngineError> {
    let hurt = twins::of_repository(repository)?.into_iter();
    let slots = hurt.filter(|twins| matches!(twins.original, Original::Key(_)));
    let findings = slots.flat_map(|twins| {
        let help = if twins.is_mendable() { Help::Repair } else { Help::KeyAdd };
        twins.faults.into_iter().map(move |(_, error)| Finding::of("keys", &error, help))
    });
    Ok(findings.collect())
}

/// A container written under a later lease than the newest manifest tells that newer ones are missing. (It was listed
/// before the manifest was read, so no writer at work explains it.)
fn lost_history(manifest: &Manifest, containers: &[ObjectMeta]) -> Option<Finding> {
    let error = refuse_lost_history(containers, manifest.sequence).err()?;
    Some(Finding::of(&manifest.object_name().to_string(), &error, Help::Repair))
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
    Ok(faults.iter().map(|error| Finding::of(&object, error, Help::Repair)).collect())
}

/// Containers that their manifest does not name, manifests older than the one before the newest, and parts that neither
/// of these names. Of a series whose manifest cannot be read, nothing is called an orphan.
fn note_orphans(
    repository: &Repository,
    listed: &[ObjectMeta],
    manifests: &[Manifest],
    parts: &HashMap<SeriesId, BTreeSet<PartId>>,
    report: &mut CheckReport,
) {
    let mut of_series: HashMap<SeriesId, Vec<ObjectMeta>> = HashMap::new();
    for meta in listed {
        if let Some(series) = meta.name.series() {
            of_series.entry(series).or_default().push(*meta);
        }
    }
    for manifest in manifests {
        let listed = of_series.remove(&manifest.series).unwrap_or_default();
        let kept = parts.get(&manifest.series);
        let is_unnamed = |meta: &&ObjectMeta| meta.name.part().zip(kept).is_some_and(|(id, kept)| !kept.contains(&id));
        for meta in orphans_among(repository, manifest, &listed).into_iter().chain(listed.iter().filter(is_unnamed)) {
            report.orphans += 1;
            report.orphan_bytes += meta.bytes;
        }
    }
}
