//! Siltstone itself, called in this process: each version is a stream of one file, in one series. It takes as many
//! threads as there are CPUs: see [`super::parallel::on_cpus`].

use super::cache::Reads;
use super::scale::Scale;
use super::shelf::new_repository;
use super::stored::{BackedUp, Held, Restored, Upkeep};
use super::uncached::Uncached;
use anyhow::{Context, Result, ensure};
use siltstone_engine::Silent;
use siltstone_engine::backup::{BackupOptions, DELTA_THRESHOLD_DEFAULT, SEGMENT_BYTES_DEFAULT, Source, backup};
use siltstone_engine::delta::{DEPTH_DEFAULT, Deltas, FORWARD_DEPTH_DEFAULT};
use siltstone_engine::forget::{ForgetOptions, Marking, REWRITE_THRESHOLD_DEFAULT, forget};
use siltstone_engine::fs::{ExcludeRules, Ownership, PathFilter};
use siltstone_engine::maintain::{MIGRATE_THRESHOLD_DEFAULT, MigrateOptions, PIECE_BYTES_DEFAULT, maintain};
use siltstone_engine::restore::{self, Overwrite, RestoreOptions, restore};
use siltstone_engine::snapshots::{self, SnapshotFilter, SnapshotView};
use siltstone_store::SnapshotId;
use siltstone_store::container::ContainerKind;
use siltstone_store::repository::Repository;
use siltstone_store::storage::{NameKind, ObjectName, Recorder, Storage};
use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// What the stream is called in a snapshot.
const NAME: &str = "version";

/// A repository of Siltstone's and the snapshots in it.
pub(super) struct Engine {
    storage: Arc<Recorder<Uncached>>,
    repository: Repository,
    deltas: Deltas,
    /// The share of a container that may be superseded before it is split.
    migrate_threshold: f64,
    scale: Scale,
    cache: PathBuf,
    snapshots: BTreeMap<usize, SnapshotId>,
}

impl Engine {
    /// An empty one below this folder. `paper` splits containers as MeGA does, at once; others at Siltstone's default.
    pub(super) fn create(folder: &Path, deltas: Deltas, scale: Scale) -> Result<Self> {
        let storage = Arc::new(Recorder::new(Uncached::create(&folder.join("repository"))?));
        let repository = new_repository(Arc::clone(&storage) as Arc<dyn Storage>, &scale)?;
        let migrate_threshold = if deltas == Deltas::Paper { 0.0 } else { MIGRATE_THRESHOLD_DEFAULT };
        let cache = folder.join("cache");
        Ok(Self { storage, repository, deltas, migrate_threshold, scale, cache, snapshots: BTreeMap::new() })
    }

    /// Backs up the version with this number; what it leaves behind is left to [`Self::settle`].
    pub(super) fn back_up(&mut self, version: usize, bytes: &Arc<[u8]>) -> Result<BackedUp> {
        let begin = Instant::now();
        self.storage.reset();
        let reader = Box::new(Cursor::new(Arc::clone(bytes)));
        let source = Source::Stream { name: Path::new("/").join(NAME), reader };
        let options = BackupOptions {
            series: Some("lab".into()),
            host: "lab".into(),
            user: "lab".into(),
            tags: Vec::new(),
            description: None,
            time: None,
            program: "silt-lab".into(),
            exclude: ExcludeRules::default(),
            one_file_system: false,
            force: false,
            ignore_ctime: false,
            ignore_inode: false,
            dry_run: false,
            skip_if_unchanged: false,
            checkpoint: None,
            shrink_share: None,
            estimate: false,
            memory_bytes: self.scale.engine_memory_bytes,
            cache: Some(self.cache.clone()),
            compression_level: self.scale.level,
            take_over: false,
            deltas: self.deltas,
            migrate: false,
            migrate_threshold: self.migrate_threshold,
            delta_threshold: DELTA_THRESHOLD_DEFAULT,
            segment_bytes: SEGMENT_BYTES_DEFAULT,
            verify_written: false,
            sample_bytes: 0,
        };
        let summary = backup(&self.repository, source, &options, &Silent)?;
        let seconds = begin.elapsed().as_secs_f64();
        self.snapshots.insert(version, summary.snapshot.context("the backup made no snapshot")?);
        Ok(BackedUp { seconds, bases: self.containers_read()?, deltas: summary.deltas.kept })
    }

    /// What was read of data containers since the counts were last reset; it is not told apart how long that took.
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
        let manifests = self.repository.manifests()?;
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
        let options = MigrateOptions {
            deltas: self.deltas,
            threshold: self.migrate_threshold,
            compression_level: self.scale.level,
            memory_bytes: self.scale.engine_memory_bytes,
            piece_bytes: PIECE_BYTES_DEFAULT,
            verify_written: false,
            take_over: false,
            user: "lab".into(),
        };
        maintain(&self.repository, &options, &Silent)?;
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
        let views = snapshots::list(&self.repository, &SnapshotFilter::default())?;
        views.into_iter().find(|view| view.snapshot.id == *id).with_context(|| format!("snapshot {id} is gone"))
    }

    /// Restores a version into a new file.
    pub(super) fn restore(&self, version: usize, into: &Path) -> Result<Restored> {
        let begin = Instant::now();
        let view = self.view(version)?;
        let target = into.with_extension("folder");
        let options = RestoreOptions {
            target: target.clone(),
            below: None,
            filter: PathFilter::default(),
            overwrite: Overwrite::Always,
            delete: false,
            verify: false,
            keep_damaged: false,
            unsafe_delete: false,
            sparse: false,
            dry_run: false,
            ownership: Ownership::None,
            memory_bytes: self.scale.engine_memory_bytes,
            gap_bytes: restore::GAP_BYTES_DEFAULT,
        };
        let summary = restore(&self.repository, &view, &options, &Silent)?;
        let seconds = begin.elapsed().as_secs_f64();
        ensure!(summary.problems == 0, "Siltstone reported {} problems", summary.problems);
        fs::rename(target.join(NAME), into)?;
        fs::remove_dir_all(target)?;
        let (involved, containers) = (summary.containers_needed, summary.containers_read);
        let reads = Reads { involved, containers, bytes: summary.bytes_read, seconds: 0.0 };
        Ok(Restored { seconds, reads, prewritten_bytes: summary.bytes_prewritten })
    }

    /// Forgets a version.
    pub(super) fn forget(&mut self, version: usize) -> Result<Upkeep> {
        let view = self.view(version)?;
        let before = self.data_containers()?;
        self.storage.reset();
        let begin = Instant::now();
        let options = ForgetOptions {
            allow_remove_all: true,
            dry_run: false,
            rewrite_threshold: REWRITE_THRESHOLD_DEFAULT,
            take_over: false,
            user: "lab".into(),
            compression_level: self.scale.level,
            marking: Marking::default(),
        };
        forget(&self.repository, &[(view.series, view.snapshot.id)], &options, &Silent)?;
        self.snapshots.remove(&version);
        self.upkeep(begin, &before)
    }

    /// What the repository takes; the caches outside of it do not count.
    pub(super) fn held(&self) -> Result<Held> {
        let (bytes, data) = (self.repository.bytes()?, self.data_containers()?);
        let data_bytes: u64 = data.values().sum();
        Ok(Held { bytes, metadata_bytes: bytes.saturating_sub(data_bytes), containers: data.len() as u64 })
    }
}

/// Siltstone's policies by the names that `silt` has for them, each at the depth it has unless another is asked for.
pub(super) const POLICIES: [(&str, Deltas); 4] = [
    ("off", Deltas::Off),
    ("paper", Deltas::Paper),
    ("forward", Deltas::Forward { depth: FORWARD_DEPTH_DEFAULT }),
    ("reverse", Deltas::Reverse { depth: DEPTH_DEFAULT }),
];
