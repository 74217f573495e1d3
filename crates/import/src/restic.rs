//! A restic repository, and its snapshots as they are to be here.

use crate::folder::Folder;
use crate::node::time;
use crate::walk::Walk;
use rustic_core::repofile::SnapshotFile;
use rustic_core::{
    Credentials, IndexedFullStatus, Repository, RepositoryBackends, RepositoryOptions, RusticError, TreeId,
};
use siltstone::OpenError;
use siltstone_engine::EngineError;
use siltstone_engine::backup::default_series_name;
use siltstone_engine::backup::source::EntrySource;
use siltstone_engine::import::ForeignRepository;
use siltstone_engine::snapshots::SnapshotView;
use siltstone_store::manifest::{Snapshot, SnapshotStatistics};
use siltstone_store::{ChunkNumber, SeriesId, SnapshotId};
use std::collections::{BTreeSet, HashMap};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

/// A repository whose index is in memory.
pub(crate) type Indexed = Repository<IndexedFullStatus>;

/// Repository of restic.
struct Restic {
    repository: Arc<Indexed>,
    snapshots: Vec<SnapshotView>,
    trees: HashMap<SnapshotId, TreeId>,
}

/// Opens the repository in a folder and reads its index and its list of snapshots.
pub(crate) fn open(folder: &Path, password: &[u8]) -> Result<Box<dyn ForeignRepository>, OpenError> {
    let unreadable = |error: Box<RusticError>| OpenError::Unreadable(said(&*error));
    // restic takes passwords for text.
    let password = std::str::from_utf8(password).map_err(|_| OpenError::WrongPassword)?;
    let mut options = RepositoryOptions::default();
    options.no_cache = true;
    let backends = RepositoryBackends::new(Arc::new(Folder::new(folder)), None);
    let opened = Repository::new(&options, &backends)
        .and_then(|repository| repository.open(&Credentials::password(password)))
        .map_err(|error| if error.is_incorrect_password() { OpenError::WrongPassword } else { unreadable(error) })?;
    let files = opened.get_all_snapshots().map_err(unreadable)?;
    let repository = Arc::new(opened.to_indexed().map_err(unreadable)?);
    let mut trees = HashMap::new();
    let mut snapshots = Vec::new();
    for (position, file) in files.iter().enumerate() {
        let view = view(file, position)?;
        trees.insert(view.snapshot.id, file.tree);
        snapshots.push(view);
    }
    Ok(Box::new(Restic { repository, snapshots, trees }))
}

/// A snapshot as it is to be here.
fn view(file: &SnapshotFile, position: usize) -> Result<SnapshotView, OpenError> {
    let hex = file.id.to_hex();
    let id = SnapshotId::from_hex(hex.as_str())
        .ok_or_else(|| OpenError::Unreadable(format!("snapshot {} has no id", hex.as_str())))?;
    let paths: BTreeSet<Vec<u8>> = file.paths.iter().map(|path| path.clone().into_bytes()).collect();
    let mut paths: Vec<Vec<u8>> = paths.into_iter().collect();
    if paths.is_empty() {
        paths.push(b"/".to_vec());
    }
    let series_name = default_series_name(&file.hostname, &paths);
    let time = time(file.time.timestamp());
    let counts = file.summary.as_ref();
    let statistics = SnapshotStatistics {
        files: counts.map_or(0, |counts| counts.total_files_processed),
        directories: counts.map_or(0, |counts| counts.total_dirs_processed),
        logical_bytes: counts.map_or(0, |counts| counts.total_bytes_processed),
        ..SnapshotStatistics::default()
    };
    let label = Some(&file.label).filter(|label| !label.is_empty());
    let snapshot = Snapshot {
        id,
        time,
        made: time,
        host: file.hostname.clone(),
        user: file.username.clone(),
        paths,
        tags: file.tags.iter().cloned().collect(),
        description: file.description.as_ref().or(label).cloned(),
        program: file.program_version.clone(),
        root: ChunkNumber(0),
        record: ChunkNumber(0),
        statistics,
        partial: false,
        deleted: None,
    };
    Ok(SnapshotView { series: series_id(&series_name), series_name, position, borrows_of: Vec::new(), snapshot })
}

/// A number that stands for a series of the source, so that its snapshots can be told from those of others.
fn series_id(name: &str) -> SeriesId {
    let mut hasher = std::hash::DefaultHasher::new();
    std::hash::Hash::hash(name, &mut hasher);
    let number = std::hash::Hasher::finish(&hasher);
    SeriesId(u128::from(number).to_be_bytes())
}

impl ForeignRepository for Restic {
    fn snapshots(&self) -> &[SnapshotView] {
        &self.snapshots
    }

    fn entries(
        &self,
        snapshot: &SnapshotView,
        base: Option<&SnapshotView>,
    ) -> Result<Box<dyn EntrySource>, EngineError> {
        let unreadable = |reason| EngineError::CopyUnreadable { snapshot: snapshot.snapshot.id.short(), reason };
        let tree = |view: &SnapshotView| self.trees.get(&view.snapshot.id).copied();
        let root = tree(snapshot).ok_or_else(|| unreadable("it is not of this repository".to_owned()))?;
        let walk = Walk::new(self.repository.clone(), root, base.and_then(tree)).map_err(unreadable)?;
        Ok(Box::new(walk))
    }
}

/// Message of an error of the library with its causes, in one line: without its heading, advice and backtrace.
pub(crate) fn said(error: &(dyn Error + 'static)) -> String {
    let (mut text, mut cause) = (message(&error.to_string()), error.source());
    while let Some(error) = cause {
        text = format!("{text}: {}", message(&error.to_string()));
        cause = error.source();
    }
    text
}

fn message(text: &str) -> String {
    let (_, message) = text.split_once("Message:\n").unwrap_or_default();
    let message = if message.is_empty() { text } else { message };
    message.lines().next().unwrap_or_default().trim().trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustic_core::ErrorKind;

    #[test]
    fn an_error_of_the_library_is_told_in_one_line() {
        let inner = RusticError::new(ErrorKind::Cryptography, "MAC check failed.").attach_error_code("C001");
        let outer =
            RusticError::with_source(ErrorKind::Internal, "cannot read {name}", inner).attach_context("name", "it");
        assert_eq!(said(&*outer), "cannot read it: MAC check failed");
        assert_eq!(said(&std::io::Error::other("no such file")), "no such file");
    }
}
