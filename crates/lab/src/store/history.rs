//! A whole history with each method: every version backed up and settled, then every version restored, newest first,
//! and compared. MeGA's Figures 1, 4 and 11 to 16 come of one run, with the paper's sizes of containers and caches. A
//! second experiment has Siltstone's for all methods, so that its rows compare like with like.

use super::cache::Reads;
use super::device::{Device, HARD_DISK, OBJECT_STORE};
use super::figures;
use super::method::Method;
use super::on_history::OnHistory;
use super::scale::Sizes;
use super::stored::{BackedUp, Held, Restored, Upkeep};
use super::versions::{Digest, leave_page_cache};
use crate::experiment::{Experiment, Finding, Head, Input, Needs, Outcome, Rounds, Sample, Subject};
use crate::report::Figure;
use crate::settings::Settings;
use crate::table::as_float;
use anyhow::Result;
use std::fs;
use std::path::Path;

/// Rounds of other experiments to one of a history, which is long and measures every version for itself.
pub(super) const ROUNDS_PER_HISTORY: u64 = 5;

/// Memory in which deltas wait for their bases in a second restore, so that others must be prewritten.
const LITTLE_MEMORY_BYTES: usize = 64 << 10;

/// Columns of both experiments.
const COLUMNS: &str = "method parameter version backup_mb_per_s backup_disk_seconds backup_object_seconds backup_syncs \
                       base_containers_read base_read_mb base_read_seconds backup_written_mb deltas settle_seconds \
                       settle_written_mb settle_syncs restore_mb_per_s restore_disk_seconds restore_object_seconds \
                       containers_involved containers_read restore_read_mb needed_mb fragments_mb read_again_mb \
                       written_percent needed_percent prewritten_mb little_memory_prewritten_mb \
                       little_memory_restore_mb_per_s deduplication_ratio stored_mb metadata_mb containers \
                       container_kib cache_mib";

/// `store-history` and `store-alike`.
pub(super) struct History {
    /// Sizes that the methods have.
    pub(super) sizes: Sizes,
}

impl History {
    fn methods(&self) -> Vec<Method> {
        match self.sizes {
            Sizes::Paper => Method::all(),
            Sizes::Siltstone => Method::alike(),
        }
    }
}

impl Experiment for History {
    fn head(&self) -> Head {
        let (name, title, reproduces): (_, _, &[&str]) = match self.sizes {
            Sizes::Paper => (
                "store-history",
                "What a history of versions costs to back up, to keep and to restore, by method",
                &[
                    "MeGA (ATC 2022), Figure 1",
                    "MeGA (ATC 2022), Figure 4",
                    "MeGA (ATC 2022), Figure 11",
                    "MeGA (ATC 2022), Figure 12",
                    "MeGA (ATC 2022), Figure 13",
                    "MeGA (ATC 2022), Figure 14",
                    "MeGA (ATC 2022), Figure 15",
                    "MeGA (ATC 2022), Figure 16",
                ],
            ),
            Sizes::Siltstone => (
                "store-alike",
                "The same where all methods have containers, caches and syncs as Siltstone has them",
                &[],
            ),
        };
        Head {
            name,
            title,
            reproduces,
            needs: Needs::Versions,
            methods: Method::names(&self.methods()),
            rounds: Rounds::OneFor(ROUNDS_PER_HISTORY),
            columns: COLUMNS,
        }
    }

    fn subjects<'i>(&self, input: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        OnHistory::subjects(self.methods(), self.sizes, (input, settings), measure)
    }

    fn figures(&self, findings: &[Finding]) -> Vec<Figure> {
        match self.sizes {
            Sizes::Paper => figures::of_history(findings),
            Sizes::Siltstone => figures::of_alike(findings),
        }
    }

    fn advice(&self, findings: &[Finding]) -> Vec<String> {
        match self.sizes {
            Sizes::Paper => figures::advice(findings),
            Sizes::Siltstone => Vec::new(),
        }
    }
}

/// Findings of one version before any was restored.
struct Stored {
    bytes: usize,
    digest: Digest,
    logical_bytes: u64,
    backed_up: BackedUp,
    settled: Upkeep,
    held: Held,
    /// Containers and bytes that the backup wrote.
    written: (u64, u64),
    /// Syncs of the backup, and of settling.
    syncs: [u64; 2],
}

fn measure(of: &OnHistory, folder: &Path) -> Result<Outcome> {
    let (store, mut kept) = of.create(folder, "store")?;
    let restored = folder.join("restored");
    let mut stored: Vec<Stored> = Vec::new();
    for version in 1..=of.versions.count() {
        let bytes = of.versions.load(version)?;
        leave_page_cache(&store)?;
        let (held_before, syncs_before) = (kept.held()?, kept.syncs());
        let backed_up = kept.back_up(version, &bytes)?;
        let (held_after, syncs_after) = (kept.held()?, kept.syncs());
        let settled = kept.settle(version)?;
        let before = stored.last().map_or(0, |last| last.logical_bytes);
        let written = (
            held_after.containers.saturating_sub(held_before.containers),
            held_after.bytes.saturating_sub(held_before.bytes),
        );
        stored.push(Stored {
            bytes: bytes.len(),
            digest: Digest::of(&bytes),
            logical_bytes: before + bytes.len() as u64,
            backed_up,
            settled,
            held: kept.held()?,
            written,
            syncs: [syncs_after - syncs_before, kept.syncs() - syncs_after],
        });
    }
    let mut samples = Vec::new();
    for (before, stored) in stored.iter().enumerate().rev() {
        let version = before + 1;
        leave_page_cache(&store)?;
        let done = match kept.restore(version, &restored) {
            Ok(done) => done,
            Err(error) => return Ok(Outcome::Wrong(format!("version {version} cannot be restored: {error:#}"))),
        };
        if Digest::of_file(&restored)? != stored.digest {
            return Ok(Outcome::Wrong(format!("version {version} is not restored as it was")));
        }
        fs::remove_file(&restored)?;
        let mut sample = sample(of, version, stored, done);
        leave_page_cache(&store)?;
        if let Some(done) = kept.restore_within(version, &restored, LITTLE_MEMORY_BYTES)? {
            if Digest::of_file(&restored)? != stored.digest {
                return Ok(Outcome::Wrong(format!("version {version} is not restored as it was with little memory")));
            }
            fs::remove_file(&restored)?;
            let bytes = mb(stored.bytes as u64);
            sample.values.push(("little_memory_prewritten_mb".into(), mb(done.prewritten_bytes)));
            sample.values.push(("little_memory_restore_mb_per_s".into(), bytes / done.seconds));
        }
        samples.push(sample);
    }
    samples.reverse();
    Ok(Outcome::Right(samples))
}

fn sample(of: &OnHistory, version: usize, stored: &Stored, restored: Restored) -> Sample {
    let Stored { bytes, logical_bytes, backed_up, settled, held, written, syncs, .. } = stored;
    let bytes = *bytes as u64;
    let (containers, written) = *written;
    let backing_up = |device: Device| device.reading(&backed_up.bases) + device.seconds(containers, written);
    let mut sample = Sample::of([
        ("backup_mb_per_s", mb(bytes) / backed_up.seconds),
        ("backup_disk_seconds", backing_up(HARD_DISK)),
        ("backup_object_seconds", backing_up(OBJECT_STORE)),
        ("backup_syncs", as_float(syncs[0])),
        ("base_containers_read", as_float(backed_up.bases.containers)),
        ("base_read_mb", mb(backed_up.bases.bytes)),
        ("backup_written_mb", mb(written)),
        ("deltas", as_float(backed_up.deltas)),
        ("settle_seconds", settled.seconds),
        ("settle_written_mb", mb(settled.written_bytes)),
        ("settle_syncs", as_float(syncs[1])),
        ("restore_mb_per_s", mb(bytes) / restored.seconds),
        ("restore_disk_seconds", HARD_DISK.reading(&restored.reads)),
        ("restore_object_seconds", OBJECT_STORE.reading(&restored.reads)),
        ("containers_involved", as_float(restored.reads.involved)),
        ("containers_read", as_float(restored.reads.containers)),
        ("restore_read_mb", mb(restored.reads.bytes)),
        ("prewritten_mb", mb(restored.prewritten_bytes)),
        ("deduplication_ratio", mb(*logical_bytes) / mb(held.bytes)),
        ("stored_mb", mb(held.bytes)),
        ("metadata_mb", mb(held.metadata_bytes)),
        ("containers", as_float(held.containers)),
    ]);
    let mut and = |name: &str, value: f64| sample.values.push((name.to_owned(), value));
    if !matches!(of.method, Method::Silt(..)) {
        let Reads { bytes, involved_bytes, needed_bytes, .. } = restored.reads;
        and("needed_mb", mb(needed_bytes));
        and("fragments_mb", mb(involved_bytes - needed_bytes));
        and("read_again_mb", mb(bytes - involved_bytes));
        and("written_percent", percent(written, written + backed_up.bases.bytes));
        and("needed_percent", percent(needed_bytes, bytes));
        and("base_read_seconds", backed_up.bases.seconds);
        and("container_kib", as_float(of.scale.container_bytes >> 10));
        and("cache_mib", as_float(of.scale.cache_bytes as u64) / as_float(1 << 20));
    }
    sample.at("version", version)
}

/// A part as a percentage of all; 0 of nothing.
pub(super) fn percent(part: u64, all: u64) -> f64 {
    100.0 * as_float(part) / as_float(all.max(1))
}

/// Bytes in MB.
pub(super) fn mb(bytes: u64) -> f64 {
    as_float(bytes) / 1e6
}
