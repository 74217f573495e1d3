//! Import: an archive (tar) becomes a snapshot, and so does each snapshot of another program's repository.
//!
//! ```text
//! foreign  snapshots of another program's repository, which a crate of its own reads
//! verify   whether what came of them is what they are
//!
//! entries  members as entries of a backup, in catalog order; content is read by whoever comes to it
//! index    looks at every member once, front to back; sorts the names, resolves hard links
//! member   the headers and records of one member                (ustar, GNU, PAX)
//! sparse   where the data of a file with holes lies             (GNU's four forms)
//! records  PAX records; numbers and moments as text
//! spool    the archive as a file that can be read anywhere: itself, or a nameless copy, decompressed
//! ```
//! Of an archive's, each uses those below it, none the other way round. What is kept of a member is its name and where
//! it stands; its headers are read again when its turn comes. A catalog wants its entries in order and tar has none, so
//! an archive that comes as a stream has to lie somewhere first.
//!
//! What a member means is what `tar --extract` would make of it: of several members of one name the last holds, a hard
//! link is bound to what its target was when the link came, leading slashes are dropped. A name with `..` is refused.

mod entries;
mod foreign;
pub(crate) mod index;
mod member;
mod records;
mod sparse;
mod spool;
mod verify;

pub use foreign::{ForeignRepository, import_snapshots};
pub use verify::{VerifySummary, verify_snapshots};

use crate::backup::source::DescribedEntries;
use crate::backup::{BackupOptions, BackupSummary, Source, backup};
use crate::{Command, EngineError, Resources};
use entries::Members;
use index::Index;
use siltstone_store::catalog::EntryPath;
use siltstone_store::repository::Repository;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;

/// Share of the memory that the names of an archive may take, and what they may take in any case.
const NAMES_SHARE: u64 = 3;
const NAMES_BYTES_MIN: u64 = 8 << 20;

/// Bytes of a tar archive, compressed by gzip or zstd or not at all.
pub enum TarBytes {
    /// A regular file, which must not change meanwhile.
    File(File),
    /// A stream. A copy of it lies in the folder for temporary files as long as the archive is open.
    Stream(Box<dyn Read + Send>),
}

/// A tar archive to be imported.
pub struct TarArchive {
    name: String,
    file: Arc<File>,
}

impl TarArchive {
    /// Makes an archive ready to be read anywhere in it; `name` is what messages call it. A copy, if one has to be
    /// made, lies in the folder for temporary files of the resources, or that which suits the repository.
    ///
    /// # Errors
    /// [`EngineError::BadArchive`] if it cannot be read, copied or decompressed.
    pub fn open(
        name: &str,
        bytes: TarBytes,
        repository: &Repository,
        resources: &Resources,
    ) -> Result<Self, EngineError> {
        let scratch = resources.scratch_of(repository);
        let file = spool::readable(bytes, &scratch, &*resources.observer).map_err(|fault| fault.of(name))?;
        resources.unless_cancelled()?;
        Ok(Self { name: name.to_owned(), file: Arc::new(file) })
    }
}

/// Options of an import.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ImportOptions {
    /// Options of the backup. Those that concern a walk of the file system have no meaning here.
    pub backup: BackupOptions,
    /// Directory of the snapshot that the archive's names are put below; by default the root.
    pub below: Option<EntryPath>,
}

crate::setters::setters!(ImportOptions {
    with_backup(backup: BackupOptions),
    with_below(below: Option<EntryPath>),
});

/// Makes a snapshot of what a tar archive holds. All content is read; what the repository has already is not stored
/// again. A member that cannot be kept is told as a problem, and the rest goes on.
///
/// # Errors
/// [`EngineError::BadArchive`] if it is damaged, cut short, or has too many names for the memory; those of [`backup`].
/// Then there is no new snapshot.
pub fn import_tar(
    repository: &Repository,
    archive: &TarArchive,
    options: &ImportOptions,
    resources: &Resources,
) -> Result<BackupSummary, EngineError> {
    resources.suffice_for(Command::Backup, repository)?;
    let TarArchive { name, file } = archive;
    let below = options.below.as_ref();
    let spare_bytes = resources.spare_bytes(Command::Backup, repository);
    let names_bytes = spare_bytes.min(resources.memory_bytes / NAMES_SHARE).max(NAMES_BYTES_MIN);
    let index = Index::read(file, below, names_bytes, &*resources.observer).map_err(|fault| fault.of(name))?;
    resources.unless_cancelled()?;
    resources.observer.estimate(index.files(), index.bytes(), true);
    let memory_bytes = resources.memory_bytes - index.memory_bytes().min(spare_bytes);
    let root = [b"/", below.map(EntryPath::as_bytes).unwrap_or_default()].concat();
    let entries = Box::new(Members::new(archive, index, options));
    let source = Source::Entries { paths: vec![root], entries: DescribedEntries { entries, base: None } };
    backup(repository, source, &options.backup, &resources.clone().with_memory_bytes(memory_bytes))
}
