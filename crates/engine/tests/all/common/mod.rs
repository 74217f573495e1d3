//! A repository on a simulated disk, a source folder to change, and restores to compare. Shared by the engine's tests.
#![allow(unreachable_pub, clippy::unused_self, clippy::needless_pass_by_value)]

pub mod faults;
pub mod guarded;
pub mod log;
pub mod policy;
pub mod repair;
pub mod ruin;
pub mod scene;
pub mod tree;
pub mod writer;

use proptest::prelude::{ProptestConfig, Strategy};
use proptest::test_runner::TestRunner;
use siltstone_engine::VerifyWritten;
use siltstone_engine::backup::{self, BackupOptions, BackupSummary, Source};
use siltstone_engine::browse;
use siltstone_engine::check::{self, CheckOptions, CheckReport, ReadData};
use siltstone_engine::delta::Deltas;
use siltstone_engine::forget::{self, ForgetOptions, ForgetSummary, Marking, RewritePlan};
use siltstone_engine::fs::{Case, ExcludeRules, Ownership, PathFilter};
use siltstone_engine::maintain::{MIGRATE_THRESHOLD_DEFAULT, MaintainOptions, PIECE_BYTES_DEFAULT};
use siltstone_engine::restore::{self, Overwrite, RestoreOptions, RestoreSummary};
use siltstone_engine::snapshots::{self, SnapshotFilter, SnapshotKey, SnapshotView};
use siltstone_engine::undelete::{self, UndeleteOptions};
use siltstone_engine::{EngineError, Observer, Resources};
use siltstone_store::catalog::{Entry, EntryPath};
use siltstone_store::config::Config;
use siltstone_store::keys::{Argon2Cost, KeyLabel};
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::storage::{SimulatedDisk, Storage};
use siltstone_store::{SnapshotId, Time};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

pub const PASSWORD: &[u8] = b"a password";

/// A repository and a source.
pub struct Sandbox {
    pub folder: Arc<TempDir>,
    pub storage: Arc<dyn Storage>,
    /// Whether backups keep an index beside it.
    pub has_cache: bool,
}

impl Sandbox {
    /// An empty source and a new repository on a sound simulated disk.
    pub fn new() -> Self {
        Self::on(Arc::new(SimulatedDisk::new()))
    }

    /// Makes a scene on a storage of the test's.
    pub fn on(storage: Arc<dyn Storage>) -> Self {
        Self::below(&std::env::temp_dir(), storage)
    }

    /// A new repository on a storage of the test's, with source and cache in a new folder below this one.
    pub fn below(parent: &Path, storage: Arc<dyn Storage>) -> Self {
        init(storage.clone()).expect("a new repository");
        let folder = Arc::new(TempDir::new_in(parent).expect("a temporary folder"));
        std::fs::create_dir(folder.path().join("source")).expect("a source folder");
        Self { folder, storage, has_cache: true }
    }

    /// Returns the scene with the same source and cache beside another storage, such as a later state of this one's.
    pub fn at(&self, storage: impl Storage + 'static) -> Self {
        Self { folder: self.folder.clone(), storage: Arc::new(storage), has_cache: self.has_cache }
    }

    /// Has the manifests written from now on cut into the smallest parts.
    pub fn cut_into_parts(&self) {
        let change = |config: &mut Config| {
            config.set_part_bytes(0);
            Ok(())
        };
        self.repository().amend(change).expect("a setting");
    }

    pub fn source(&self) -> PathBuf {
        self.folder.path().join("source")
    }

    pub fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.source().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        std::fs::write(path, bytes).expect("a file");
    }

    pub fn symlink(&self, path: &str, target: &str) {
        std::os::unix::fs::symlink(target, self.source().join(path)).expect("a link");
    }

    pub fn remove(&self, path: &str) {
        let path = self.source().join(path);
        if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }.expect("removed");
    }

    pub fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    /// Little memory, a cache unless told otherwise, and nobody who listens.
    pub fn resources(&self) -> Resources {
        resources().with_cache(self.has_cache.then(|| self.cache()))
    }

    /// Resources of this sandbox, with an observer.
    pub fn heard_by(&self, observer: impl Into<Arc<dyn Observer>>) -> Resources {
        self.resources().with_observer(observer.into())
    }

    pub fn repository(&self) -> Repository {
        Repository::open(self.storage.clone(), PASSWORD).expect("the repository opens")
    }

    pub fn try_backup(&self, options: &BackupOptions) -> Result<BackupSummary, EngineError> {
        self.try_backup_within(options, &self.resources())
    }

    pub fn try_backup_within(
        &self,
        options: &BackupOptions,
        resources: &Resources,
    ) -> Result<BackupSummary, EngineError> {
        let repository = Repository::open(self.storage.clone(), PASSWORD)?;
        backup::backup(&repository, Source::Paths(vec![self.source()]), options, resources)
    }

    /// Backs the source up; every file is read.
    pub fn backup(&self) -> SnapshotId {
        let options = self.options().with_force(true);
        self.try_backup(&options).expect("a backup").snapshot.expect("a snapshot")
    }

    pub fn options(&self) -> BackupOptions {
        BackupOptions::default()
            .with_series(Some("test".into()))
            .with_host("host".into())
            .with_user("user".into())
            .with_tags(Vec::new())
            .with_description(None)
            .with_time(None)
            .with_program("test".into())
            .with_exclude(ExcludeRules::default())
            .with_one_file_system(false)
            .with_force(false)
            .with_ignore_ctime(false)
            .with_ignore_inode(false)
            .with_dry_run(false)
            .with_skip_if_unchanged(false)
            .with_checkpoint(None)
            .with_shrink_share(None)
            .with_estimate(false)
            .with_compression_level(1)
            .with_take_over(false)
            .with_deltas(Deltas::default())
            .with_migrate(true)
            .with_migrate_threshold(MIGRATE_THRESHOLD_DEFAULT)
            .with_delta_threshold(backup::DELTA_THRESHOLD_DEFAULT)
            .with_segment_bytes(backup::SEGMENT_BYTES_DEFAULT)
            .with_verify_written(VerifyWritten::Always)
            .with_sample_bytes(Some(backup::SAMPLE_BYTES_DEFAULT))
    }

    pub fn migrate_options(&self) -> MaintainOptions {
        MaintainOptions::default()
            .with_deltas(Deltas::default())
            .with_threshold(MIGRATE_THRESHOLD_DEFAULT)
            .with_compression_level(1)
            .with_piece_bytes(PIECE_BYTES_DEFAULT)
            .with_verify_written(VerifyWritten::Always)
            .with_take_over(false)
            .with_user("user".into())
    }

    /// The manifest of the only series.
    pub fn manifest(&self) -> Manifest {
        self.repository().manifests().expect("manifests").pop().expect("one series")
    }

    /// Bytes of all objects.
    pub fn bytes(&self) -> u64 {
        self.repository().bytes().expect("bytes")
    }

    pub fn snapshots(&self) -> Vec<SnapshotView> {
        snapshots::list(&self.repository(), &SnapshotFilter::default()).expect("a list")
    }

    pub fn view(&self, id: SnapshotId) -> SnapshotView {
        self.snapshots().into_iter().find(|view| view.snapshot.id == id).expect("the snapshot")
    }

    /// All entries of a snapshot.
    pub fn entries(&self, id: SnapshotId) -> Vec<Entry> {
        let mut entries = Vec::new();
        let mut keep = |entry: &Entry| {
            entries.push(entry.clone());
            Ok(())
        };
        browse::ls(&self.repository(), &self.view(id), None, true, &mut keep).expect("a listing");
        entries
    }

    pub fn restore_options(&self, target: &Path) -> RestoreOptions {
        RestoreOptions::new(target.to_owned())
            .with_below(None)
            .with_filter(PathFilter::default())
            .with_overwrite(Overwrite::Always)
            .with_delete(false)
            .with_verify(true)
            .with_keep_damaged(false)
            .with_unsafe_delete(false)
            .with_sparse(false)
            .with_dry_run(false)
            .with_ownership(Ownership::Numeric)
            .with_gap_bytes(restore::GAP_BYTES_DEFAULT)
    }

    pub fn restore(&self, id: SnapshotId, target: &Path) -> Result<RestoreSummary, EngineError> {
        restore::restore(&self.repository(), &self.view(id), &self.restore_options(target), &resources())
    }

    /// The tree of the source as a restore of the snapshot gives it. Only what lies below the source is restored: the
    /// folders above it belong to root, and restoring their owner is not for everybody who runs tests.
    pub fn restored(&self, id: SnapshotId) -> tree::Tree {
        let folder = TempDir::new().expect("a temporary folder");
        let target = folder.path().join("restored");
        let options = self.restore_options(&target).with_below(Some(entry_path(&self.source())));
        let summary = restore::restore(&self.repository(), &self.view(id), &options, &resources()).expect("a restore");
        assert_eq!(summary.problems, 0);
        tree::read(&target)
    }

    pub fn check(&self, read_data: ReadData) -> CheckReport {
        check::check(&self.repository(), &CheckOptions::reading(read_data), &resources()).expect("a check")
    }

    pub fn forget_options(&self, dry_run: bool) -> ForgetOptions {
        ForgetOptions::default()
            .with_dry_run(dry_run)
            .with_allow_remove_all(true)
            .with_rewrite_threshold(forget::REWRITE_THRESHOLD_DEFAULT)
            .with_take_over(false)
            .with_user("user".into())
            .with_compression_level(1)
            .with_marking(Marking::default())
    }

    pub fn try_forget(&self, ids: &[SnapshotId], options: &ForgetOptions) -> Result<ForgetSummary, EngineError> {
        let repository = Repository::open(self.storage.clone(), PASSWORD)?;
        forget::forget(&repository, &keys_of(&repository, ids)?, options, &resources())
    }

    pub fn forget(&self, ids: &[SnapshotId], dry_run: bool) -> ForgetSummary {
        self.try_forget(ids, &self.forget_options(dry_run)).expect("forgetting")
    }

    /// Marks snapshots as deleted at this second, for so many.
    pub fn mark(&self, ids: &[SnapshotId], at: i64, seconds: u64) -> ForgetSummary {
        self.try_forget(ids, &self.marking(at, seconds)).expect("marking")
    }

    /// Options of a `forget` at this second that marks for so many; for none, it removes.
    pub fn marking(&self, at: i64, seconds: u64) -> ForgetOptions {
        let now = Time { seconds: at, nanoseconds: 0 };
        let series = self.repository().series().expect("series");
        let marking = Marking::default().with_keep(Duration::from_secs(seconds)).with_now(now).with_series(series);
        self.forget_options(false).with_marking(marking)
    }

    pub fn try_undelete(&self, ids: &[SnapshotId]) -> Result<u64, EngineError> {
        let repository = Repository::open(self.storage.clone(), PASSWORD)?;
        let options = UndeleteOptions::default().with_take_over(true).with_user("user".into());
        undelete::undelete(&repository, &keys_of(&repository, ids)?, &options, &resources())
    }

    /// A plan to take what a pattern matches out of all snapshots, live and deleted.
    pub fn plan_rewrite(&self, pattern: &str, options: &ForgetOptions) -> Result<RewritePlan, EngineError> {
        self.plan_rewrite_of(&SnapshotFilter::default(), pattern, options)
    }

    /// A plan to take what a pattern matches out of all snapshots that a filter lets through, live and deleted.
    pub fn plan_rewrite_of(
        &self,
        filter: &SnapshotFilter,
        pattern: &str,
        options: &ForgetOptions,
    ) -> Result<RewritePlan, EngineError> {
        let repository = Repository::open(self.storage.clone(), PASSWORD)?;
        let mut excluded = PathFilter::builder();
        excluded.exclude(pattern, Case::Sensitive).expect("a pattern");
        let mut views = snapshots::list(&repository, filter)?;
        views.extend(snapshots::list(&repository, &filter.clone().with_deleted(true))?);
        forget::plan_rewrite(&repository, views, excluded.build().expect("a filter"), options, &resources())
    }

    /// Takes what a pattern matches out of all snapshots, live and deleted.
    pub fn try_rewrite(&self, pattern: &str, options: &ForgetOptions) -> Result<ForgetSummary, EngineError> {
        let repository = Repository::open(self.storage.clone(), PASSWORD)?;
        self.plan_rewrite(pattern, options)?.execute(&repository, &resources())
    }

    /// Snapshots marked as deleted.
    pub fn deleted(&self) -> Vec<SnapshotView> {
        let filter = SnapshotFilter::default().with_deleted(true);
        snapshots::list(&self.repository(), &filter).expect("a list")
    }
}

/// Little memory, no cache, and nobody who listens.
pub fn resources() -> Resources {
    Resources::default().with_memory_bytes(256 << 20)
}

/// Resources of a test, with an observer.
pub fn heard_by(observer: impl Into<Arc<dyn Observer>>) -> Resources {
    resources().with_observer(observer.into())
}

/// Where these snapshots stand, live or deleted.
fn keys_of(repository: &Repository, ids: &[SnapshotId]) -> Result<Vec<SnapshotKey>, EngineError> {
    let mut keys = Vec::new();
    for deleted in [false, true] {
        let views = snapshots::list(repository, &SnapshotFilter::default().with_deleted(deleted))?;
        let named = views.iter().filter(|view| ids.contains(&view.snapshot.id));
        keys.extend(named.map(|view| (view.series, view.snapshot.id)));
    }
    Ok(keys)
}

/// Makes a repository with the cheapest password hashing there is.
pub fn init(storage: Arc<dyn Storage>) -> Result<Repository, EngineError> {
    Ok(Repository::init(storage, PASSWORD, &label(), Argon2Cost::TEST, backup::default_chunker())?)
}

/// Who makes a key slot.
pub fn label() -> KeyLabel {
    KeyLabel { created: Time::default(), host: "host".into(), user: "user".into() }
}

/// An absolute path as a snapshot calls it.
pub fn entry_path(path: &Path) -> EntryPath {
    let bytes = std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str());
    EntryPath::new(bytes.strip_prefix(b"/").expect("an absolute path")).expect("a path")
}

/// Bytes that do not compress, the same for the same seed.
pub fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut noise = vec![0; bytes];
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.finalize_xof().fill(&mut noise);
    noise
}

/// Words of a small language, the same for the same seed: bytes that zstd makes smaller, at a higher level more so.
pub fn text(seed: u64, bytes: usize) -> Vec<u8> {
    let word = |number: u8| {
        noise(1000 + u64::from(number), 2 + usize::from(number % 9)).into_iter().map(|byte| b'a' + byte % 26)
    };
    let words: Vec<Vec<u8>> = (0..=u8::MAX).map(|number| word(number).chain([b' ']).collect()).collect();
    let drawn = noise(seed, bytes).into_iter();
    drawn.flat_map(|number| words[usize::from(number)].iter().copied()).take(bytes).collect()
}

/// Tries what a strategy draws.
pub fn for_each_drawn<S: Strategy>(config: ProptestConfig, values: &S, trial: impl Fn(S::Value)) {
    let result = TestRunner::new(config).run(values, |value| {
        trial(value);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

/// Settings of a test of random steps, with this number of cases, or that of `SILTSTONE_MODEL_CASES`.
pub fn random_steps(cases: u32) -> ProptestConfig {
    let wanted = std::env::var("SILTSTONE_MODEL_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig {
        cases: wanted.unwrap_or(cases),
        max_shrink_iters: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}
