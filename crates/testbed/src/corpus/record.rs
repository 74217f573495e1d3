//! `corpus.toml`: what lies beside the versions of a corpus that was made, so that it can be told what it is, and made
//! again.

use super::Corpus;
use crate::tree;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Name of the record in the corpus's folder.
pub const RECORD: &str = "corpus.toml";

/// Record of a corpus that was made.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Its kind, as on the command line.
    pub kind: String,
    /// Description, in a sentence.
    pub description: String,
    /// True if the same parameters give the same bytes: on every machine, at any time.
    pub repeatable: bool,
    /// Version of the lab that made it.
    pub made_by: String,
    /// Parameters it was made with: the options of the command line.
    pub parameters: toml::Table,
    /// Versions of the programs that took part.
    pub programs: BTreeMap<String, String>,
    /// Its versions, oldest first.
    #[serde(rename = "version")]
    pub versions: Vec<Version>,
}

/// A version of a corpus.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Version {
    /// Name of its file or folder.
    pub name: String,
    /// Bytes of all its files.
    pub bytes: u64,
    /// Its files.
    pub files: u64,
    /// Changes since the version before, where the maker knows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Changes>,
}

/// Changes from one version to the next.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Changes {
    /// Files that are new.
    pub created: u64,
    /// Files that are gone.
    pub deleted: u64,
    /// Files that are changed.
    pub modified: u64,
    /// Bytes inserted, deleted or replaced, in new files all; 0 where the maker does not count them.
    pub changed_bytes: u64,
}

impl Version {
    /// The version that lies here.
    pub(super) fn found(path: &Path, name: String) -> Result<Self> {
        let files = if path.is_dir() { tree::files(path)?.len() as u64 } else { 1 };
        Ok(Self { name, bytes: tree::bytes(path)?, files, changes: None })
    }

    /// All that lie in this folder.
    pub(super) fn all_in(folder: &Path) -> Result<Vec<Self>> {
        let named = |path: PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Self::found(&path, name)
        };
        tree::entries(folder)?.into_iter().map(named).collect()
    }
}

/// A name that sorts as the numbers do.
pub(super) fn version_name(number: u64, versions: u64) -> String {
    let width = versions.saturating_sub(1).to_string().len().max(3);
    format!("{number:0width$}")
}

impl Record {
    /// The record of a corpus in this folder, if it has one.
    ///
    /// # Errors
    /// If there is one that cannot be read.
    pub fn read(folder: &Path) -> Result<Option<Self>> {
        let file = folder.join(RECORD);
        if !file.is_file() {
            return Ok(None);
        }
        let text = fs::read_to_string(&file).with_context(|| format!("{} cannot be read", file.display()))?;
        let record = toml::from_str(&text).with_context(|| format!("{} does not describe a corpus", file.display()))?;
        Ok(Some(record))
    }

    /// Writes it into the corpus's folder.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let text = format!("# Makes this again: {}\n{}", self.command(), toml::to_string(self)?);
        let file = folder.join(RECORD);
        fs::write(&file, text).with_context(|| format!("{} cannot be written", file.display()))
    }

    /// The command line that makes it again.
    pub fn command(&self) -> String {
        let option = |(name, value): (&String, &toml::Value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            format!(" --{} {value}", name.replace('_', "-"))
        };
        let options: String = self.parameters.iter().map(option).collect();
        format!("silt-lab corpus {} --out DIR{options}", self.kind)
    }

    /// The corpus in this folder.
    ///
    /// # Errors
    /// If the record names what is not a name in this folder, or is not there.
    pub(super) fn corpus(&self, folder: &Path) -> Result<Corpus> {
        let version = |version: &Version| {
            let is_name = Path::new(&version.name).components().count() == 1 && !version.name.starts_with('.');
            let path = folder.join(&version.name);
            let is_there = is_name && path.exists();
            is_there.then_some(path).with_context(|| {
                format!("{} names the version '{}', which is not there", folder.join(RECORD).display(), version.name)
            })
        };
        let versions = self.versions.iter().map(version).collect::<Result<_>>()?;
        Ok(Corpus { name: self.kind.clone(), description: self.description.clone(), versions })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let parameters = toml::toml! {
            seed = 7
            changed_percent_max = 10.0
            package = "npm:x"
        };
        let version = |name: &str| Version { name: name.into(), bytes: 3, files: 1, changes: Some(Changes::default()) };
        Record {
            kind: "syn".into(),
            description: "a tree".into(),
            repeatable: true,
            made_by: "0".into(),
            parameters,
            programs: BTreeMap::new(),
            versions: vec![version("000"), version("001")],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Record::read(folder.path()).unwrap(), None);
        record().write(folder.path()).unwrap();
        assert_eq!(Record::read(folder.path()).unwrap(), Some(record()));
    }

    #[test]
    fn the_command_has_every_parameter() {
        let command = record().command();
        assert!(command.starts_with("silt-lab corpus syn --out DIR --"), "{command}");
        for option in ["--seed 7", "--changed-percent-max 10.0", "--package npm:x"] {
            assert!(command.contains(option), "{command}");
        }
    }

    #[test]
    fn versions_that_are_not_there_are_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("000"), "").unwrap();
        let error = record().corpus(folder.path()).unwrap_err().to_string();
        assert!(error.contains("'001'"), "{error}");
        let mut outside = record();
        outside.versions[0].name = "../x".into();
        assert!(outside.corpus(folder.path()).is_err());
    }
}
