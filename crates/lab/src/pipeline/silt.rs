//! `silt` itself, beside the systems that are put together here: the same stream, version by version, into a repository
//! of its own.
//!
//! It does more than they: it encrypts, decodes what it encoded before it counts, syncs to disk, commits every version,
//! and with deltas lays the older versions out anew. It takes as many threads as the machine has cores.

use super::stream::Stream;
use super::verify::Found;
use crate::repository::{backup_options, new_repository, resources};
use anyhow::{Result, ensure};
use siltstone_engine::Session;
use siltstone_engine::backup::{BackupOptions, Source};
use siltstone_engine::delta::Deltas;
use siltstone_engine::dump::Archive;
use siltstone_engine::snapshots::SnapshotFilter;
use siltstone_store::catalog::EntryPath;
use siltstone_store::storage::{Disk, Listing, ObjectName};
use std::io::{self, Cursor, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Its chunker.
pub(super) const CHUNKER: &str = siltstone_chunk::DEFAULT_NAME;
/// Sketches by which it finds resemblance.
pub(super) const SKETCH: &str = "odess-plus";
/// Name of every version in its snapshot.
const NAME: &str = "stream";

/// A repository in which versions are kept.
pub(super) struct Silt {
    session: Session,
    options: BackupOptions,
}

impl Silt {
    /// A new one in this folder, for chunks of so many bytes on average.
    ///
    /// # Errors
    /// If it cannot be made, or the average is none that it takes.
    pub(super) fn create(folder: &Path, expected_bytes: u32, deltas: Deltas, memory_bytes: u64) -> Result<Self> {
        let disk = Disk::create(folder.join("repository"))?;
        let repository = new_repository(Arc::new(disk), expected_bytes)?;
        let session = Session::new(repository, resources(folder.join("cache"), memory_bytes));
        Ok(Self { session, options: backup_options(deltas).with_migrate(true) })
    }

    /// Backs up all versions; gives the time of the backups alone.
    ///
    /// # Errors
    /// Those of a backup.
    pub(super) fn back_up(&self, stream: &Stream<'_>) -> Result<Duration> {
        let mut time = Duration::ZERO;
        for version in &stream.versions {
            let reader = Box::new(Cursor::new(version.to_vec()));
            let begin = Instant::now();
            self.session.backup(Source::Stream { name: PathBuf::from(NAME), reader }, &self.options)?;
            time += begin.elapsed();
        }
        Ok(time)
    }

    /// Reads all versions back and compares them with the stream.
    ///
    /// # Errors
    /// If one cannot be read, or is not what it was.
    pub(super) fn read_back(&self, stream: &Stream<'_>) -> Result<Found> {
        let snapshots = self.session.snapshots(&SnapshotFilter::default())?;
        ensure!(snapshots.len() == stream.versions.len(), "there are {} snapshots", snapshots.len());
        let path = EntryPath::new(NAME)?;
        for (snapshot, version) in snapshots.iter().zip(&stream.versions) {
            let mut compare = Compare(version);
            self.session.dump(snapshot, Some(&path), Archive::Tar, &mut compare)?;
            ensure!(compare.0.is_empty(), "{} bytes are missing at the end of a version", compare.0.len());
        }
        let unique = snapshots.iter().map(|view| view.snapshot.statistics.chunks_new).sum();
        let unique_bytes = snapshots.iter().map(|view| view.snapshot.statistics.added_plain_bytes).sum();
        // The reserve is room that is kept free, not what is stored.
        let objects = self.session.repository().storage().list(Listing::All)?;
        let stored = objects.iter().filter(|object| !matches!(object.name, ObjectName::Reserve));
        Ok(Found { unique, unique_bytes, stored_bytes: stored.map(|object| object.bytes).sum(), ..Found::default() })
    }
}

/// Compares what is written with the bytes that are still to come.
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
