//! Subjects: data that is backed up, changed, and backed up again.

use anyhow::{Context, Result};
use siltstone_testbed::bench::DataOptions;
use siltstone_testbed::corpus::{Amount, Corpus, History};
use siltstone_testbed::edit;
use siltstone_testbed::tree;
use siltstone_testbed::workspace;
use std::fs;
use std::path::{Path, PathBuf};

/// At least so much is backed up at once, if there is as much.
const SOURCE_BYTES: u64 = 300_000_000;
/// Bytes of a source tree: many versions side by side.
const TREES_BYTES: u64 = 1_000_000_000;
/// Bytes of a source tree with `--quick`.
const SOURCE_BYTES_QUICK: u64 = 40_000_000;
/// Which one percent is edited.
const SEED: u64 = 1;

/// A source with a before and an after.
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) description: String,
    steps: Steps,
}

enum Steps {
    /// These versions side by side; of their files one percent is edited.
    Edited(Vec<PathBuf>),
    /// Some versions side by side; then in the place of each the one after it.
    Replaced(Vec<(PathBuf, PathBuf)>),
}

impl Subject {
    /// Those asked for; by default what keeps most, what changes little, and what changes everywhere.
    pub(super) fn chosen(options: &DataOptions, quick: bool) -> Result<Vec<Self>> {
        if options.is_default() {
            let amount = if quick { Amount::Little } else { Amount::Full };
            let corpora = workspace::corpora()?;
            let edited = Self::edited(&corpora.history(History::Openssl, amount)?, quick)?;
            let others = [History::System, History::Redis].into_iter();
            let replaced = others.map(|kind| Self::replaced(&corpora.history(kind, amount)?, quick));
            return std::iter::once(Ok(edited)).chain(replaced).collect();
        }
        let corpora = options.corpora(quick, &[])?.into_iter();
        corpora
            .map(
                |corpus| {
                    if corpus.name == "openssl" { Self::edited(&corpus, quick) } else { Self::replaced(&corpus, quick) }
                },
            )
            .collect()
    }

    fn edited(corpus: &Corpus, quick: bool) -> Result<Self> {
        let versions = corpus.newest(if quick { SOURCE_BYTES_QUICK } else { TREES_BYTES })?;
        let description =
            format!("{} newest side by side of {}; one percent edited", versions.len(), corpus.description);
        let steps = Steps::Edited(versions.into_iter().map(Path::to_path_buf).collect());
        Ok(Self { name: corpus.name.clone(), description, steps })
    }

    fn replaced(corpus: &Corpus, quick: bool) -> Result<Self> {
        let pairs = pairs(&corpus.versions, if quick { SOURCE_BYTES_QUICK } else { SOURCE_BYTES })?;
        let description =
            format!("{} side by side of {}; each replaced by the one after it", pairs.len(), corpus.description);
        Ok(Self { name: corpus.name.clone(), description, steps: Steps::Replaced(pairs) })
    }

    /// Makes `source`, which is not there yet.
    pub(super) fn make(&self, source: &Path) -> Result<()> {
        fs::create_dir(source)?;
        let versions: Vec<&PathBuf> = match &self.steps {
            Steps::Edited(versions) => versions.iter().collect(),
            Steps::Replaced(pairs) => pairs.iter().map(|(before, _)| before).collect(),
        };
        for (number, version) in versions.into_iter().enumerate() {
            tree::make_equal(&source.join(number.to_string()), version)?;
        }
        Ok(())
    }

    /// Changes it before the next backup.
    pub(super) fn change(&self, source: &Path) -> Result<()> {
        match &self.steps {
            Steps::Edited(_) => edit::one_percent(source, SEED),
            Steps::Replaced(pairs) => {
                let mut pairs = pairs.iter().enumerate();
                pairs.try_for_each(|(number, (_, after))| tree::make_equal(&source.join(number.to_string()), after))
            }
        }
    }
}

/// Versions and the ones after them, the newest first, none in two pairs: as many as make `bytes_wanted`, or all there
/// are.
fn pairs(versions: &[PathBuf], bytes_wanted: u64) -> Result<Vec<(PathBuf, PathBuf)>> {
    let mut chosen = Vec::new();
    let mut bytes = 0;
    for pair in versions.rchunks_exact(2) {
        if bytes >= bytes_wanted {
            break;
        }
        bytes += tree::bytes(&pair[0])?;
        chosen.push((pair[0].clone(), pair[1].clone()));
    }
    chosen.first().context("two versions are needed at least")?;
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_neighbours_and_as_many_as_needed() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..5 {
            fs::write(folder.path().join(number.to_string()), [7; 10]).unwrap();
        }
        let versions = tree::entries(folder.path()).unwrap();
        let names = |bytes| -> Vec<(String, String)> {
            let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
            pairs(&versions, bytes).unwrap().iter().map(|(one, other)| (name(one), name(other))).collect()
        };
        let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
        assert_eq!(names(10), [pair("3", "4")]);
        assert_eq!(names(1000), [pair("3", "4"), pair("1", "2")]);
        assert!(pairs(&versions[..1], 1).is_err());
    }

    #[test]
    fn a_source_is_made_and_changed() {
        let folder = tempfile::tempdir().unwrap();
        let versions = folder.path().join("versions");
        fs::create_dir(&versions).unwrap();
        for (name, text) in [("0", "before"), ("1", "after")] {
            fs::write(versions.join(name), text).unwrap();
        }
        let corpus =
            Corpus { name: "c".into(), description: String::new(), versions: tree::entries(&versions).unwrap() };
        let subject = Subject::replaced(&corpus, true).unwrap();
        let source = folder.path().join("source");
        subject.make(&source).unwrap();
        let file = source.join("0").join(tree::ONLY_FILE);
        assert_eq!(fs::read_to_string(&file).unwrap(), "before");
        subject.change(&source).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "after");
    }
}
