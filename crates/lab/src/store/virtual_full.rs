//! Full backups against incremental ones that leave whole versions behind: *virtual full backups* (MeGA, ATC 2022,
//! section 4.6, a plan that the paper does not measure).
//!
//! Both stores have the same method and the same versions. One of them reads, cuts and hashes all of a version. The
//! other is told what changed: by file where versions are folders, by blocks of 64 KiB where they are files. It copies
//! the records of the rest (module `incremental`). Finding out what changed is not timed. Versions lie in memory, so
//! what an incremental backup saves of reading them from a disk comes on top of what is measured.

use super::history::{ROUNDS_PER_HISTORY, mb};
use super::incremental::{Changes, Inventory};
use super::method::{Kept, Method, THRESHOLD_MEDIAN};
use super::on_history::OnHistory;
use super::recipe::Item;
use super::scale::Sizes;
use super::stored::BackedUp;
use super::versions::{Digest, leave_page_cache};
use crate::experiment::{Experiment, Finding, Head, Input, Needs, Outcome, Rounds, Sample, Subject};
use crate::report::{Axis, Figure, Line, Plot};
use crate::settings::Settings;
use crate::table::as_float;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Methods that are compared.
const METHODS: [Method; 3] = [Method::Mega(THRESHOLD_MEDIAN), Method::Mfd, Method::Greedy];

const COLUMNS: &str = "method parameter version full_mb_per_s virtual_mb_per_s virtual_over_full version_mb changed_mb \
                       read_mb records_different full_stored_mb virtual_stored_mb full_deduplication_ratio \
                       virtual_deduplication_ratio";

/// `store-virtual-full`.
pub(super) struct VirtualFull;

impl Experiment for VirtualFull {
    fn head(&self) -> Head {
        Head {
            name: "store-virtual-full",
            title: "What a backup saves that is told what changed, and leaves a whole version all the same",
            reproduces: &["MeGA (ATC 2022), section 4.6"],
            needs: Needs::Versions,
            methods: Method::names(&METHODS),
            rounds: Rounds::OneFor(ROUNDS_PER_HISTORY),
            columns: COLUMNS,
        }
    }

    fn subjects<'i>(&self, input: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        OnHistory::subjects(METHODS, Sizes::Paper, (input, settings), measure)
    }

    fn figures(&self, findings: &[Finding]) -> Vec<Figure> {
        let right: Vec<&Finding> = findings.iter().filter(|finding| finding.wrong.is_none()).collect();
        let histories: BTreeSet<&str> = right.iter().map(|finding| finding.data.as_str()).collect();
        let of_history = |data: &str| {
            let findings: Vec<&Finding> = right.iter().copied().filter(|finding| finding.data == data).collect();
            [speeds(data, &findings), reads(data, &findings)]
        };
        histories.into_iter().flat_map(of_history).collect()
    }
}

fn speeds(data: &str, findings: &[&Finding]) -> Figure {
    let lines = METHODS.iter().flat_map(|method| {
        let name = method.name();
        [("full", "full_mb_per_s"), ("virtual full", "virtual_mb_per_s")]
            .map(|(form, measure)| line(format!("{name}, {form}"), findings, name, measure))
    });
    Figure {
        title: format!("Backup speed, full and virtual full: {data}"),
        redraws: String::new(),
        caption: "Bytes of the whole version per second, from memory, until all was durable.".into(),
        plot: Plot::Lines { x: Axis::linear("version"), y: Axis::linear("MB/s"), series: with_points(lines) },
    }
}

/// Bytes that the backups had to do with. Cuts are the same for all methods, and so are these.
fn reads(data: &str, findings: &[&Finding]) -> Figure {
    let method = findings.first().map(|finding| finding.parameter("method")).unwrap_or_default();
    let lines = [("the version", "version_mb"), ("read and cut", "read_mb"), ("listed as changed", "changed_mb")]
        .map(|(name, measure)| line(name.into(), findings, &method, measure));
    Figure {
        title: format!("Bytes that a virtual full backup reads: {data}"),
        redraws: String::new(),
        caption: "Read are the changes and the chunks around them. A full backup reads the version.".into(),
        plot: Plot::Lines { x: Axis::linear("version"), y: Axis::linear("MB"), series: with_points(lines) },
    }
}

fn line(name: String, findings: &[&Finding], method: &str, measure: &str) -> Line {
    let of_method = findings.iter().filter(|finding| finding.parameter("method") == method);
    let point = |finding: &&Finding| Some((finding.parameters.get("version")?.as_f64()?, finding.median(measure)?));
    let mut points: Vec<(f64, f64)> = of_method.filter_map(point).collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    Line { name, is_theory: false, points }
}

fn with_points(lines: impl IntoIterator<Item = Line>) -> Vec<Line> {
    lines.into_iter().filter(|line| !line.points.is_empty()).collect()
}

/// Form of a store's backups.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Full,
    VirtualFull,
}

/// A store that is filled in one form.
struct Filled {
    form: Form,
    folder: PathBuf,
    kept: Kept,
}

impl Filled {
    fn create(form: Form, name: &str, of: &OnHistory, folder: &Path) -> Result<Self> {
        let (folder, kept) = of.create(folder, name)?;
        Ok(Self { form, folder, kept })
    }

    fn recipe(&self, version: usize) -> Result<Vec<Item>> {
        let store = self.kept.store().context("Siltstone's manifests are no recipes")?;
        Ok(store.recipe(version)?.0)
    }
}

/// Findings of a version in one of the stores.
struct Stored {
    backed_up: BackedUp,
    bytes: u64,
}

/// Fills two stores with the same versions.
fn measure(of: &OnHistory, folder: &Path) -> Result<Outcome> {
    let mut full = Filled::create(Form::Full, "full", of, folder)?;
    let mut virtual_full = Filled::create(Form::VirtualFull, "virtual-full", of, folder)?;
    let (mut samples, mut digests) = (Vec::new(), Vec::new());
    let (mut before, mut logical_bytes) = (Inventory::default(), 0);
    for version in 1..=of.versions.count() {
        let bytes = of.versions.load(version)?;
        let inventory = of.versions.inventory(version, &bytes)?;
        let changes = Changes::between(&before, &inventory);
        before = inventory;
        digests.push(Digest::of(&bytes));
        logical_bytes += bytes.len() as u64;
        let back_up = |store: &mut Filled| -> Result<Stored> {
            leave_page_cache(&store.folder)?;
            let changes = (store.form == Form::VirtualFull).then_some(&changes);
            let backed_up = store.kept.back_up_changes(version, &bytes, changes)?;
            store.kept.settle(version)?;
            Ok(Stored { backed_up, bytes: store.kept.held()?.bytes })
        };
        // By turns, so that neither always comes first.
        let (by_full, by_virtual) = if version % 2 == 0 {
            let by_full = back_up(&mut full)?;
            (by_full, back_up(&mut virtual_full)?)
        } else {
            let by_virtual = back_up(&mut virtual_full)?;
            (back_up(&mut full)?, by_virtual)
        };
        let mut sample = sample(&changes, &by_full, &by_virtual, logical_bytes);
        let different = different(&full.recipe(version)?, &virtual_full.recipe(version)?);
        sample.values.push(("records_different".into(), as_float(different)));
        samples.push(sample.at("version", version));
    }
    let restored = folder.join("restored");
    for (store, form) in [(&full, "full"), (&virtual_full, "virtual full")] {
        if let Some(version) = store.kept.first_wrong((1..).zip(&digests), &restored)? {
            return Ok(Outcome::Wrong(format!("version {version}, a {form} backup, is not restored as it was")));
        }
    }
    Ok(Outcome::Right(samples))
}

fn sample(changes: &Changes, by_full: &Stored, by_virtual: &Stored, logical_bytes: u64) -> Sample {
    let version_mb = mb(changes.bytes() as u64);
    let [full_seconds, virtual_seconds] = [by_full, by_virtual].map(|stored| stored.backed_up.seconds);
    Sample::of([
        ("full_mb_per_s", version_mb / full_seconds),
        ("virtual_mb_per_s", version_mb / virtual_seconds),
        ("virtual_over_full", full_seconds / virtual_seconds),
        ("version_mb", version_mb),
        ("changed_mb", mb(changes.changed_bytes() as u64)),
        ("read_mb", mb(by_virtual.backed_up.read_bytes)),
        ("full_stored_mb", mb(by_full.bytes)),
        ("virtual_stored_mb", mb(by_virtual.bytes)),
        ("full_deduplication_ratio", mb(logical_bytes) / mb(by_full.bytes)),
        ("virtual_deduplication_ratio", mb(logical_bytes) / mb(by_virtual.bytes)),
    ])
}

/// Counts places at which recipes are not the same.
fn different(one: &[Item], other: &[Item]) -> u64 {
    let same = one.iter().zip(other).filter(|(one, other)| one == other).count();
    (one.len().max(other.len()) - same) as u64
}
