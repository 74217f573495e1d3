//! Findings of a check.

use super::help::Help;
use super::restored::SampledFile;
use siltstone_store::StoreError;

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

impl Finding {
    /// Tells of an error that no snapshot is known to suffer from.
    pub(super) fn of(object: &str, error: &StoreError, help: Help) -> Self {
        Self { object: object.to_owned(), what: error.to_string(), snapshots: Vec::new(), help }
    }
}

impl CheckReport {
    /// Adds what the check of one series saw.
    pub(super) fn add(&mut self, series: Self) {
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
