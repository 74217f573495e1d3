//! A whole history with each method: every version backed up and settled, then every version restored, newest first,
//! and compared. All of MeGA's Figures 11 to 16 come of one run.

use super::device::{Device, HARD_DISK, OBJECT_STORE};
use super::figures;
use super::method::Method;
use super::parallel::on_cpus;
use super::scale::Scale;
use super::stored::{BackedUp, Held, Restored, Upkeep};
use super::versions::{Digest, Versions, leave_page_cache};
use crate::experiment::{Experiment, Finding, Head, Input, Needs, Outcome, Rounds, Row, Sample, Subject};
use crate::report::Figure;
use crate::settings::Settings;
use anyhow::Result;
use std::fs;

/// Rounds of other experiments to one of a history, which is long and measures every version for itself.
const ROUNDS_PER_HISTORY: u64 = 5;

/// Memory in which deltas wait for their bases in a second restore, so that others must be prewritten.
const LITTLE_MEMORY_BYTES: usize = 64 << 10;

/// `store-history`.
pub(super) struct History;

impl Experiment for History {
    fn head(&self) -> Head {
        Head {
            name: "store-history",
            title: "What a history of versions costs to back up, to keep and to restore, by method",
            reproduces: &[
                "MeGA (ATC 2022), Figure 11",
                "MeGA (ATC 2022), Figure 12",
                "MeGA (ATC 2022), Figure 13",
                "MeGA (ATC 2022), Figure 14",
                "MeGA (ATC 2022), Figure 15",
                "MeGA (ATC 2022), Figure 16",
            ],
            needs: Needs::Versions,
            methods: Method::names(&Method::all()),
            rounds: Rounds::OneFor(ROUNDS_PER_HISTORY),
            columns: "method parameter version backup_mb_per_s backup_disk_seconds backup_object_seconds \
                     base_containers_read base_read_mb base_read_seconds deltas settle_seconds settle_written_mb \
                     restore_mb_per_s restore_disk_seconds restore_object_seconds containers_involved \
                     containers_read restore_read_mb prewritten_mb little_memory_prewritten_mb \
                     little_memory_restore_mb_per_s deduplication_ratio stored_mb metadata_mb container_kib cache_mib",
        }
    }

    fn subjects<'i>(&self, input: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        let versions = Versions::of(input.corpus(), settings)?;
        let scale = Scale::of(versions.mean_bytes(), settings);
        let methods = Method::all().into_iter().filter(|method| method.is_asked_for(settings));
        Ok(methods
            .map(|method| Box::new(Run { method, versions: versions.clone(), scale }) as Box<dyn Subject>)
            .collect())
    }

    fn figures(&self, findings: &[Finding]) -> Vec<Figure> {
        figures::of_history(findings)
    }

    fn advice(&self, findings: &[Finding]) -> Vec<String> {
        figures::advice(findings)
    }
}

/// One method on one history.
struct Run {
    method: Method,
    versions: Versions,
    scale: Scale,
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
}

impl Subject for Run {
    fn parameters(&self) -> Row {
        self.method.parameters()
    }

    fn run(&mut self) -> Result<Outcome> {
        on_cpus(self.scale.threads, || self.measure())
    }
}

impl Run {
    fn measure(&self) -> Result<Outcome> {
        let folder = tempfile::tempdir()?;
        let (store, restored) = (folder.path().join("store"), folder.path().join("restored"));
        fs::create_dir(&store)?;
        let mut kept = self.method.create(&store, self.scale)?;
        let mut stored: Vec<Stored> = Vec::new();
        for version in 1..=self.versions.count() {
            let bytes = self.versions.load(version)?;
            leave_page_cache(&store)?;
            let held_before = kept.held()?;
            let backed_up = kept.back_up(version, &bytes)?;
            let held_after = kept.held()?;
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
            let mut sample = self.sample(version, stored, done);
            leave_page_cache(&store)?;
            if let Some(done) = kept.restore_within(version, &restored, LITTLE_MEMORY_BYTES)? {
                if Digest::of_file(&restored)? != stored.digest {
                    return Ok(Outcome::Wrong(format!(
                        "version {version} is not restored as it was with little memory"
                    )));
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

    fn sample(&self, version: usize, stored: &Stored, restored: Restored) -> Sample {
        let Stored { bytes, logical_bytes, backed_up, settled, held, written, .. } = stored;
        let bytes = *bytes as u64;
        let (containers, written) = *written;
        let backing_up = |device: Device| device.reading(&backed_up.bases) + device.seconds(containers, written);
        let mut sample = Sample::of([
            ("backup_mb_per_s", mb(bytes) / backed_up.seconds),
            ("backup_disk_seconds", backing_up(HARD_DISK)),
            ("backup_object_seconds", backing_up(OBJECT_STORE)),
            ("base_containers_read", number(backed_up.bases.containers)),
            ("base_read_mb", mb(backed_up.bases.bytes)),
            ("deltas", number(backed_up.deltas)),
            ("settle_seconds", settled.seconds),
            ("settle_written_mb", mb(settled.written_bytes)),
            ("restore_mb_per_s", mb(bytes) / restored.seconds),
            ("restore_disk_seconds", HARD_DISK.reading(&restored.reads)),
            ("restore_object_seconds", OBJECT_STORE.reading(&restored.reads)),
            ("containers_involved", number(restored.reads.involved)),
            ("containers_read", number(restored.reads.containers)),
            ("restore_read_mb", mb(restored.reads.bytes)),
            ("prewritten_mb", mb(restored.prewritten_bytes)),
            ("deduplication_ratio", mb(*logical_bytes) / mb(held.bytes)),
            ("stored_mb", mb(held.bytes)),
            ("metadata_mb", mb(held.metadata_bytes)),
        ]);
        let mut and = |name: &str, value: f64| sample.values.push((name.to_owned(), value));
        if !matches!(self.method, Method::Silt(..)) {
            and("base_read_seconds", backed_up.bases.seconds);
            and("container_kib", number(self.scale.container_bytes >> 10));
            and("cache_mib", number(self.scale.cache_bytes as u64) / number(1 << 20));
        }
        sample.at("version", version)
    }
}

/// A count as a measure.
#[allow(clippy::cast_precision_loss)]
pub(super) fn number(count: u64) -> f64 {
    count as f64
}

/// Bytes in MB.
pub(super) fn mb(bytes: u64) -> f64 {
    number(bytes) / 1e6
}
