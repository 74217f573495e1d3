//! `silt` itself, beside the systems that are put together here: the same stream, version by version, into a repository
//! of its own.
//!
//! It does more than they: it encrypts, decodes what it encoded before it counts, syncs to disk, commits every version,
//! and with deltas lays the older versions out anew. It takes as many threads as the machine has cores.

use super::stream::Stream;
use super::verify::Found;
use anyhow::{Result, ensure};
use siltstone_engine::Silent;
use siltstone_engine::backup::{
    BackupOptions, DELTA_THRESHOLD_DEFAULT, SEGMENT_BYTES_DEFAULT, Source, backup, chunker_sized,
};
use siltstone_engine::delta::Deltas;
use siltstone_engine::dump::{Archive, dump};
use siltstone_engine::fs::ExcludeRules;
use siltstone_engine::maintain::MIGRATE_THRESHOLD_DEFAULT;
use siltstone_engine::snapshots::{SnapshotFilter, list};
use siltstone_store::Time;
use siltstone_store::catalog::EntryPath;
use siltstone_store::keys::{Argon2Cost, KeyLabel};
use siltstone_store::region::ZSTD_LEVEL_DEFAULT;
use siltstone_store::repository::Repository;
use siltstone_store::storage::{Disk, Listing, ObjectName};
use std::io::{self, Cursor, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Its chunker.
pub(super) const CHUNKER: &str = siltstone_chunk::DEFAULT_NAME;
/// How it finds what resembles what.
pub(super) const SKETCH: &str = "odess-plus";
/// What every version is called in its snapshot.
const NAME: &str = "stream";

/// A repository in which versions are kept.
pub(super) struct Silt {
    repository: Repository,
    options: BackupOptions,
}

impl Silt {
    /// A new one in this folder, for chunks of so many bytes on average.
    ///
    /// # Errors
    /// If it cannot be made, or the average is none that it takes.
    pub(super) fn create(folder: &Path, expected_bytes: u32, deltas: Deltas, memory_bytes: u64) -> Result<Self> {
        let label = KeyLabel { created: Time::default(), host: "lab".into(), user: "lab".into() };
        let chunker = chunker_sized(CHUNKER, expected_bytes.into())?;
        let disk = Disk::create(folder.join("repository"))?;
        // The password protects nothing here, and its hashing is in no time.
        let repository = Repository::init(Arc::new(disk), b"lab", &label, Argon2Cost::TEST, chunker)?;
        Ok(Self { repository, options: options(folder, deltas, memory_bytes) })
    }

    /// Backs up all versions; gives the time of the backups alone.
    ///
    /// # Errors
    /// What stops a backup.
    pub(super) fn back_up(&self, stream: &Stream<'_>) -> Result<Duration> {
        let mut time = Duration::ZERO;
        for version in &stream.versions {
            let reader = Box::new(Cursor::new(version.to_vec()));
            let begin = Instant::now();
            backup(&self.repository, Source::Stream { name: PathBuf::from(NAME), reader }, &self.options, &Silent)?;
            time += begin.elapsed();
        }
        Ok(time)
    }

    /// Reads all versions back and compares them with the stream.
    ///
    /// # Errors
    /// If one cannot be read, or is not what it was.
    pub(super) fn read_back(&self, stream: &Stream<'_>) -> Result<Found> {
        let snapshots = list(&self.repository, &SnapshotFilter::default())?;
        ensure!(snapshots.len() == stream.versions.len(), "there are {} snapshots", snapshots.len());
        let path = EntryPath::new(NAME)?;
        for (snapshot, version) in snapshots.iter().zip(&stream.versions) {
            let mut compare = Compare(version);
            dump(&self.repository, snapshot, Some(&path), Archive::Tar, &mut compare, &Silent)?;
            ensure!(compare.0.is_empty(), "{} bytes are missing at the end of a version", compare.0.len());
        }
        let unique = snapshots.iter().map(|view| view.snapshot.statistics.chunks_new).sum();
        let unique_bytes = snapshots.iter().map(|view| view.snapshot.statistics.added_plain_bytes).sum();
        // The reserve is room that is kept free, not what is stored.
        let objects = self.repository.storage().list(Listing::All)?;
        let stored = objects.iter().filter(|object| !matches!(object.name, ObjectName::Reserve));
        Ok(Found { unique, unique_bytes, stored_bytes: stored.map(|object| object.bytes).sum(), ..Found::default() })
    }
}

fn options(folder: &Path, deltas: Deltas, memory_bytes: u64) -> BackupOptions {
    BackupOptions {
        series: Some(NAME.into()),
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
        memory_bytes,
        cache: Some(folder.join("cache")),
        compression_level: ZSTD_LEVEL_DEFAULT,
        take_over: false,
        deltas,
        migrate: true,
        migrate_threshold: MIGRATE_THRESHOLD_DEFAULT,
        delta_threshold: DELTA_THRESHOLD_DEFAULT,
        segment_bytes: SEGMENT_BYTES_DEFAULT,
        verify_written: false,
        sample_bytes: 0,
    }
}

/// What is still to come.
struct Compare<'v>(&'v [u8]);

impl Write for Compare<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.strip_prefix(bytes).ok_or_else(|| io::Error::other("a version came back otherwise"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
