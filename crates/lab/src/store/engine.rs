//! Siltstone itself, called in this process: each version is a stream of one file, in one series. It takes as many
//! threads as there are CPUs: see [`super::parallel::on_cpus`].

use super::cache::Reads;
use super::scale::Scale;
use super::stored::{BackedUp, Held, Restored, Upkeep};
use super::uncached::{Syncs, Uncached};
use crate::repository::{backup_options, new_repository, resources};
use anyhow::{Context, Result, ensure};
use siltstone_engine::Session;
use siltstone_engine::VerifyWritten;
use siltstone_engine::backup::Source;
use siltstone_engine::delta::{DEPTH_DEFAULT, Deltas, FORWARD_DEPTH_DEFAULT, ForwardPolicy, KeepRule};
use siltstone_engine::forget::{ForgetOptions, SnapshotSelection};
use siltstone_engine::fs::Ownership;
use siltstone_engine::maintain::{MIGRATE_THRESHOLD_DEFAULT, MaintainOptions};
use siltstone_engine::restore::RestoreOptions;
use siltstone_engine::snapshots::{SnapshotFilter, SnapshotView};
use siltstone_similar::benefit::Benefit;
use siltstone_store::SnapshotId;
use siltstone_store::container::ContainerKind;
use siltstone_store::storage::{NameKind, ObjectName, Recorder, Storage};
use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Name of the stream in a snapshot.
const NAME: &str = "version";

/// A repository of Siltstone's and the snapshots in it.
pub(super) struct Engine {
    storage: Arc<Recorder<Uncached>>,
    syncs: Syncs,
    session: Session,
    deltas: Deltas,
    /// The share of a container that may be superseded before it is split.
    migrate_threshold: f64,
    scale: Scale,
    snapshots: BTreeMap<usize, SnapshotId>,
}

impl Engine {
    /// Creates an empty one below this folder. [`PAPER`] splits containers as MeGA does, at once; others at Siltstone's
    /// default.
    pub(super) fn create(folder: &Path, deltas: Deltas, scale: Scale) -> Result<Self> {
        let folder_of_objects = Uncached::create(&folder.join("repository"))?;
        let syncs = folder_of_objects.syncs();
        let storage = Arc::new(Recorder::new(folder_of_objects));
        let repository = new_repository(Arc::clone(&storage) as Arc<dyn Storage>, scale.expected_bytes)?;
        let migrate_threshold = if deltas == PAPER { 0.0 } else { MIGRATE_THRESHOLD_DEFAULT };
        let session = Session::new(repository, resources(folder.join("cache"), scale.engine_memory_bytes));
        Ok(Self { storage, syncs, session, deltas, migrate_threshold, scale, snapshots: BTreeMap::new() })
    }

    /// Returns the count of its syncs.
    pub(super) fn syncs(&self) -> u64 {
        self.syncs.count()
    }

    /// Backs up the version with this number; what it leaves behind is left to [`Self::settle`].
    pub(super) fn back_up(&mut self, version: usize, bytes: &Arc<[u8]>) -> Result<BackedUp> {
        let begin = Instant::now();
        self.storage.reset();
        let reader = Box::new(Cursor::new(Arc::clone(bytes)));
        let source = Source::Stream { name: Path::new("/").join(NAME), reader };
        let options = backup_options(self.deltas)
            .with_compression_level(self.scale.level)
            .with_migrate_threshold(self.migrate_threshold);
        let summary = self.session.backup(source, &options)?;
        let seconds = begin.elapsed().as_secs_f64();
        self.snapshots.insert(version, summary.snapshot.context("the backup made no snapshot")?);
        let (deltas, read_bytes) = (summary.deltas.kept, bytes.len() as u64);
        Ok(BackedUp { seconds, bases: self.containers_read()?, bases_by_container: Vec::new(), deltas, read_bytes })
    }

    /// Returns what was read of data containers since the counts were last reset; it is not told apart how long that
    /// took.
    fn containers_read(&self) -> Result<Reads> {
        let data = self.data_containers()?;
        let mut reads = Reads::default();
        for (name, calls) in self.storage.calls().objects {
            if data.contains_key(&name) && calls.reads + calls.range_reads > 0 {
                reads.involved += 1;
                reads.containers += 1;
                reads.bytes += calls.bytes_read;
            }
        }
        Ok(reads)
    }

    /// Data containers and their sizes.
    fn data_containers(&self) -> Result<BTreeMap<ObjectName, u64>> {
        let manifests = self.session.repository().manifests()?;
        let records =
            manifests.iter().flat_map(|manifest| manifest.containers.iter().map(|record| (manifest.series, record)));
        let data = records.filter(|(_, record)| record.kind == ContainerKind::Data);
        Ok(data.map(|(series, record)| (record.object_name(series), record.object_bytes)).collect())
    }

    /// Settles what the last backup left behind.
    pub(super) fn settle(&mut self) -> Result<Upkeep> {
        let before = self.data_containers()?;
        self.storage.reset();
        let begin = Instant::now();
        let options = MaintainOptions::default()
            .with_deltas(self.deltas)
            .with_threshold(self.migrate_threshold)
            .with_compression_level(self.scale.level)
            .with_verify_written(VerifyWritten::Never)
            .with_user("lab".into());
        self.session.maintain(&options)?;
        self.upkeep(begin, &before)
    }

    fn upkeep(&self, begin: Instant, before: &BTreeMap<ObjectName, u64>) -> Result<Upkeep> {
        let seconds = begin.elapsed().as_secs_f64();
        let calls = self.storage.calls().of_kind(NameKind::Container);
        let after = self.data_containers()?;
        Ok(Upkeep {
            seconds,
            read_bytes: calls.bytes_read,
            written_bytes: calls.bytes_written,
            containers: before.len() as u64,
            untouched: before.keys().filter(|name| after.contains_key(name)).count() as u64,
        })
    }

    fn view(&self, version: usize) -> Result<SnapshotView> {
        let id = self.snapshots.get(&version).with_context(|| format!("version {version} is not stored"))?;
        let views = self.session.snapshots(&SnapshotFilter::default())?;
        views.into_iter().find(|view| view.snapshot.id == *id).with_context(|| format!("snapshot {id} is gone"))
    }

    /// Restores a version into a new file.
    pub(super) fn restore(&self, version: usize, into: &Path) -> Result<Restored> {
        let begin = Instant::now();
        let view = self.view(version)?;
        let target = into.with_extension("folder");
        let options = RestoreOptions::new(target.clone()).with_ownership(Ownership::None);
        let summary = self.session.restore(&view, &options)?;
        let seconds = begin.elapsed().as_secs_f64();
        ensure!(summary.problems == 0, "Siltstone reported {} problems", summary.problems);
        fs::rename(target.join(NAME), into)?;
        fs::remove_dir_all(target)?;
        let (involved, containers) = (summary.containers_needed, summary.containers_read);
        let reads = Reads { involved, containers, bytes: summary.bytes_read, ..Reads::default() };
        Ok(Restored { seconds, reads, prewritten_bytes: summary.bytes_prewritten })
    }

    /// Forgets a version.
    pub(super) fn forget(&mut self, version: usize) -> Result<Upkeep> {
        let view = self.view(version)?;
        let before = self.data_containers()?;
        self.storage.reset();
        let begin = Instant::now();
        let options = ForgetOptions::default()
            .with_allow_remove_all(true)
            .with_user("lab".into())
            .with_compression_level(self.scale.level);
        let plan = self.session.plan_forget(SnapshotSelection::Given(vec![view.key()]), &options)?;
        self.session.execute(&plan)?;
        self.snapshots.remove(&version);
        self.upkeep(begin, &before)
    }

    /// Returns what the repository takes; the caches outside of it do not count.
    pub(super) fn held(&self) -> Result<Held> {
        let (bytes, data) = (self.session.repository().bytes()?, self.data_containers()?);
        let data_bytes: u64 = data.values().sum();
        Ok(Held { bytes, metadata_bytes: bytes.saturating_sub(data_bytes), containers: data.len() as u64 })
    }
}

/// MeGA's policy (ATC 2022, section 4.2) in Siltstone's store: each chunk alone, against the first that shares a
/// super-feature, which is whole; kept whenever it is smaller. Lifecycles are those of successive backups: what only
/// older ones have is not used again.
const PAPER: Deltas = Deltas::Custom(ForwardPolicy {
    depth: 1,
    candidates: 1,
    super_features: true,
    keep: KeepRule { clear_part: 1, benefit: Benefit::ANY },
    region_bytes: 0,
    intra_segment: false,
    reaches_back: false,
});

/// Siltstone's policies by the names that `silt` has for them, each at the depth it has unless another is asked for;
/// and `paper`, which is the lab's.
pub(super) const POLICIES: [(&str, Deltas); 4] = [
    ("off", Deltas::Off),
    ("paper", PAPER),
    ("forward", Deltas::Forward { depth: FORWARD_DEPTH_DEFAULT }),
    ("reverse", Deltas::Reverse { depth: DEPTH_DEFAULT }),
];
