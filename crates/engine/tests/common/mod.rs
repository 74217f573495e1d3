//! A repository on a simulated disk, a source folder to change, and restores to compare. Shared by the engine's tests.
#![allow(dead_code, unreachable_pub, missing_docs, clippy::unused_self, clippy::needless_pass_by_value)]

pub mod faults;
pub mod guarded;
pub mod log;
pub mod ruin;
pub mod scene;
pub mod tree;
pub mod writer;

use siltstone_engine::backup::{self, BackupOptions, BackupSummary, Source};
use siltstone_engine::check::{self, CheckOptions, CheckReport, ReadData};
use siltstone_engine::delta::Deltas;
use siltstone_engine::forget::{self, ForgetOptions, ForgetSummary, Marking};
use siltstone_engine::fs::{ExcludeRules, Ownership, PathFilter};
use siltstone_engine::maintain::{MIGRATE_THRESHOLD_DEFAULT, MigrateOptions, PIECE_BYTES_DEFAULT};
use siltstone_engine::restore::{self, Overwrite, RestoreOptions, RestoreSummary};
use siltstone_engine::snapshots::{self, SnapshotFilter, SnapshotKey, SnapshotView};
use siltstone_engine::undelete::{self, UndeleteOptions};
use siltstone_engine::{EngineError, Silent};
use siltstone_store::catalog::EntryPath;
use siltstone_store::keys::{Argon2Cost, KeyLabel};
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
}

impl Sandbox {
    /// An empty source and a new repository on a sound simulated disk.
    pub fn new() -> Self {
        Self::on(Arc::new(SimulatedDisk::new()))
    }

    /// The same on a storage of the test's.
    pub fn on(storage: Arc<dyn Storage>) -> Self {
        init(storage.clone()).expect("a new repository");
        let folder = Arc::new(TempDir::new().expect("a temporary folder"));
        std::fs::create_dir(folder.path().join("source")).expect("a source folder");
        Self { folder, storage }
    }

    /// The same source and cache beside another storage, such as a later state of this one's.
    pub fn at(&self, storage: impl Storage + 'static) -> Self {
        Self { folder: self.folder.clone(), storage: Arc::new(storage) }
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

    pub fn repository(&self) -> Repository {
        Repository::open(self.storage.clone(), PASSWORD).expect("the repository opens")
    }

    pub fn try_backup(&self, options: &BackupOptions) -> Result<BackupSummary, EngineError> {
        let repository = Repository::open(self.storage.clone(), PASSWORD)?;
        backup::backup(&repository, Source::Paths(vec![self.source()]), options, &Silent)
    }

    /// Backs the source up; every file is read.
    pub fn backup(&self) -> SnapshotId {
        let options = BackupOptions { force: true, ..self.options() };
        self.try_backup(&options).expect("a backup").snapshot.expect("a snapshot")
    }

    pub fn options(&self) -> BackupOptions {
        BackupOptions {
            series: Some("test".into()),
            host: "host".into(),
            user: "user".into(),
            tags: Vec::new(),
            description: None,
            time: None,
            program: "test".into(),
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
            memory_bytes: 256 << 20,
            cache: Some(self.folder.path().join("cache")),
            compression_level: 1,
            take_over: false,
            deltas: Deltas::default(),
            migrate: true,
            migrate_threshold: MIGRATE_THRESHOLD_DEFAULT,
            delta_threshold: backup::DELTA_THRESHOLD_DEFAULT,
            segment_bytes: backup::SEGMENT_BYTES_DEFAULT,
            verify_written: true,
            sample_bytes: backup::SAMPLE_BYTES_DEFAULT,
        }
    }

    pub fn migrate_options(&self) -> MigrateOptions {
        MigrateOptions {
            deltas: Deltas::default(),
            threshold: MIGRATE_THRESHOLD_DEFAULT,
            compression_level: 1,
            memory_bytes: 256 << 20,
            piece_bytes: PIECE_BYTES_DEFAULT,
            verify_written: true,
            take_over: false,
            user: "user".into(),
        }
    }

    pub fn snapshots(&self) -> Vec<SnapshotView> {
        snapshots::list(&self.repository(), &SnapshotFilter::default()).expect("a list")
    }

    pub fn view(&self, id: SnapshotId) -> SnapshotView {
        self.snapshots().into_iter().find(|view| view.snapshot.id == id).expect("the snapshot")
    }

    pub fn restore_options(&self, target: &Path) -> RestoreOptions {
        RestoreOptions {
            target: target.to_owned(),
            below: None,
            filter: PathFilter::default(),
            overwrite: Overwrite::Always,
            delete: false,
            verify: true,
            keep_damaged: false,
            unsafe_delete: false,
            sparse: false,
            dry_run: false,
            ownership: Ownership::Numeric,
            memory_bytes: 256 << 20,
            gap_bytes: restore::GAP_BYTES_DEFAULT,
        }
    }

    pub fn restore(&self, id: SnapshotId, target: &Path) -> Result<RestoreSummary, EngineError> {
        restore::restore(&self.repository(), &self.view(id), &self.restore_options(target), &Silent)
    }

    /// The tree of the source as a restore of the snapshot gives it. Only what lies below the source is restored: the
    /// folders above it belong to root, and restoring their owner is not for everybody who runs tests.
    pub fn restored(&self, id: SnapshotId) -> tree::Tree {
        let folder = TempDir::new().expect("a temporary folder");
        let target = folder.path().join("restored");
        let options = RestoreOptions { below: Some(entry_path(&self.source())), ..self.restore_options(&target) };
        let summary = restore::restore(&self.repository(), &self.view(id), &options, &Silent).expect("a restore");
        assert_eq!(summary.problems, 0);
        tree::read(&target)
    }

    pub fn check(&self, read_data: ReadData) -> CheckReport {
        check::check(&self.repository(), &CheckOptions::reading(read_data), &Silent).expect("a check")
    }

    pub fn forget_options(&self, dry_run: bool) -> ForgetOptions {
        ForgetOptions {
            dry_run,
            allow_remove_all: true,
            rewrite_threshold: forget::REWRITE_THRESHOLD_DEFAULT,
            take_over: false,
            user: "user".into(),
            compression_level: 1,
            marking: Marking::default(),
        }
    }

    pub fn try_forget(&self, ids: &[SnapshotId], options: &ForgetOptions) -> Result<ForgetSummary, EngineError> {
        let repository = Repository::open(self.storage.clone(), PASSWORD)?;
        forget::forget(&repository, &keys_of(&repository, ids)?, options, &Silent)
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
        let marking = Marking { keep: Duration::from_secs(seconds), now, series, ..Marking::default() };
        ForgetOptions { marking, ..self.forget_options(false) }
    }

    pub fn try_undelete(&self, ids: &[SnapshotId]) -> Result<u64, EngineError> {
        let repository = Repository::open(self.storage.clone(), PASSWORD)?;
        let options = UndeleteOptions { take_over: true, user: "user".into() };
        undelete::undelete(&repository, &keys_of(&repository, ids)?, &options, &Silent)
    }

    /// Snapshots marked as deleted.
    pub fn deleted(&self) -> Vec<SnapshotView> {
        let filter = SnapshotFilter { deleted: true, ..SnapshotFilter::default() };
        snapshots::list(&self.repository(), &filter).expect("a list")
    }
}

/// Where these snapshots stand, live or deleted.
fn keys_of(repository: &Repository, ids: &[SnapshotId]) -> Result<Vec<SnapshotKey>, EngineError> {
    let mut keys = Vec::new();
    for deleted in [false, true] {
        let views = snapshots::list(repository, &SnapshotFilter { deleted, ..SnapshotFilter::default() })?;
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
