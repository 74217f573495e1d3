//! The repository that is damaged: two series, one with several versions of a small tree, settled, so that deltas hang
//! on one another.

use crate::kill_loop::generate;
use anyhow::{Result, bail};
use siltstone_testbed::deterministic::Sequence;
use siltstone_testbed::program;
use siltstone_testbed::tool::{Reading, Repository, Tool};
use siltstone_testbed::tree::{self, Listing};
use siltstone_testbed::workspace::Build;
use std::fs;
use std::path::{Path, PathBuf};

const VERSIONS: usize = 5;
const MEGABYTES: u64 = 3;

/// A version of the tree: the label of its snapshot, and what it holds.
pub(super) struct Version {
    pub(super) label: String,
    pub(super) id: String,
    pub(super) listing: Listing,
}

/// The repository as it was before any damage, and what was backed up into it.
pub(super) struct Scene {
    pub(super) folder: PathBuf,
    pub(super) source: PathBuf,
    pub(super) repository: Repository,
    pub(super) versions: Vec<Version>,
}

impl Scene {
    pub(super) fn make(folder: &Path, release: bool, parity: Option<u32>) -> Result<Self> {
        let init: &'static [&'static str] = match parity {
            None | Some(0) => &["--parity", "off"],
            Some(2) => &["--parity", "2%"],
            Some(5) => &["--parity", "5%"],
            Some(10) => &["--parity", "10%"],
            Some(other) => bail!("{other} percent of parity: 2, 5 or 10 are tried"),
        };
        let silt = Tool::silt_for_trials(Build::of(release), init)?;
        let (source, other) = (folder.join("source"), folder.join("other"));
        let mut sequence = Sequence::new(7);
        generate(&source, MEGABYTES, &mut sequence)?;
        generate(&other, 1, &mut sequence)?;
        let repository = silt.init(&folder.join("pristine"))?;
        repository.backup(&other, "other", Reading::Changed)?;
        let mut versions = Vec::new();
        for version in 0..VERSIONS {
            if version > 0 {
                edit(&source, &mut sequence)?;
            }
            let label = format!("v{version}");
            repository.backup(&source, &label, Reading::Changed)?;
            let id = repository.snapshot_id(&label)?;
            versions.push(Version { label, id, listing: Listing::of(&source)? });
        }
        program::quietly(repository.command().arg("maintain"))?;
        Ok(Self { folder: folder.to_path_buf(), source, repository, versions })
    }

    /// The objects of the repository, by name, with their sizes.
    pub(super) fn objects(&self) -> Result<Vec<(String, u64)>> {
        let place = self.repository.path();
        let mut objects = Vec::new();
        for path in tree::files(&place)? {
            let name = path.strip_prefix(&place)?.to_string_lossy().into_owned();
            // The reserve has no meaning, unfinished writes no reader.
            if name != "reserve" && !name.starts_with("tmp/") {
                objects.push((name, fs::metadata(&path)?.len()));
            }
        }
        Ok(objects)
    }
}

/// Changes a little in some files, so that their new chunks resemble the old ones.
pub(crate) fn edit(source: &Path, sequence: &mut Sequence) -> Result<()> {
    let files = tree::files(source)?;
    for _ in 0..files.len().div_ceil(4) {
        let path = &files[sequence.index(files.len())];
        let mut content = fs::read(path)?;
        if !content.is_empty() {
            let at = sequence.index(content.len());
            content[at] ^= 1;
            content.splice(at..at, *b"a few more words");
            fs::write(path, content)?;
        }
    }
    Ok(())
}
