//! The data of a run: what the user points at, and corpora by name.

use crate::corpus::{self, Amount, Corpora, Corpus};
use crate::report::InputSummary;
use crate::settings::Settings;
use crate::tree;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Limit of a quick run: of the user's data as many of the first versions as make at most so many bytes, but two; of
/// all data so many into memory.
pub(super) const QUICK_BYTES: u64 = 128_000_000;

/// The data that these settings ask for, made or fetched where it is not there yet, and described.
///
/// # Errors
/// If some of it is not there and cannot be made.
pub fn inputs(settings: &Settings, corpora: &Corpora) -> Result<Vec<(Corpus, InputSummary)>> {
    let mut inputs: Vec<(Corpus, InputSummary)> = Vec::new();
    let given = settings.data.iter().map(|path| given(path, settings));
    let amount = if settings.quick { Amount::Little } else { Amount::Full };
    let named = settings.corpora.iter().map(|name| corpora.named(name, amount, settings.seed));
    for corpus in given.chain(named) {
        let mut corpus = corpus?;
        let (name, mut number) = (corpus.name.clone(), 1);
        while inputs.iter().any(|(other, _)| other.name == corpus.name) {
            number += 1;
            corpus.name = format!("{name}-{number}");
        }
        let summary = summary(&corpus);
        inputs.push((corpus, summary));
    }
    Ok(inputs)
}

fn summary(corpus: &Corpus) -> InputSummary {
    let bytes = corpus.versions.iter().map(|version| bytes(version)).sum();
    let (name, description) = (corpus.name.clone(), corpus.description.clone());
    InputSummary { name, description, bytes, versions: corpus.versions.len() }
}

/// Bytes of a file, or of all files below a folder that can be looked at.
fn bytes(version: &Path) -> u64 {
    let files = if version.is_dir() { tree::readable_files(version).0 } else { vec![version.to_path_buf()] };
    files.iter().filter_map(|file| fs::metadata(file).ok()).map(|status| status.len()).sum()
}

/// Returns the data that the user points at: a file or a folder as one version, or every entry of a folder as one.
fn given(path: &Path, settings: &Settings) -> Result<Corpus> {
    let whole = fs::canonicalize(path).with_context(|| format!("{} is not there", path.display()))?;
    let mut corpus = if settings.versions && whole.is_dir() {
        corpus::given(&whole)?
    } else {
        let name = whole.file_name().map_or("data".into(), |name| name.to_string_lossy().into_owned());
        let kind = if whole.is_dir() { "folder" } else { "file" };
        Corpus { name, description: format!("a {kind} given by the user"), versions: vec![whole] }
    };
    if settings.quick {
        keep_little(&mut corpus);
    }
    Ok(corpus)
}

/// Drops the last versions where all are too much for a quick run.
fn keep_little(corpus: &mut Corpus) {
    let mut total = 0;
    for number in 0..corpus.versions.len() {
        total += bytes(&corpus.versions[number]);
        if total > QUICK_BYTES && number >= 2 {
            corpus.versions.truncate(number);
            corpus.description = format!("{}, the first {number}", corpus.description);
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        fs::create_dir(&data).unwrap();
        for name in ["1", "2", "3"] {
            fs::write(data.join(name), name.repeat(5)).unwrap();
        }
        (folder, data)
    }

    fn found(settings: &Settings) -> Vec<InputSummary> {
        let corpora = Corpora::at("nowhere".into());
        inputs(settings, &corpora).unwrap().into_iter().map(|(_, summary)| summary).collect()
    }

    #[test]
    fn a_folder_is_one_version_or_one_of_each_entry() {
        let (_guard, data) = folder();
        let one = found(&Settings { data: vec![data.clone(), data.join("2")], ..Settings::default() });
        assert_eq!((one[0].name.as_str(), one[0].versions, one[0].bytes), ("data", 1, 15));
        assert_eq!((one[1].name.as_str(), one[1].versions, one[1].bytes), ("2", 1, 5));
        let each = found(&Settings { data: vec![data], versions: true, ..Settings::default() });
        assert_eq!((each[0].versions, each[0].bytes), (3, 15));
    }

    #[test]
    fn names_are_told_apart() {
        let (_guard, data) = folder();
        let twice = found(&Settings { data: vec![data.clone(), data], ..Settings::default() });
        assert_eq!((twice[0].name.as_str(), twice[1].name.as_str()), ("data", "data-2"));
    }

    #[test]
    fn what_is_not_there_is_named() {
        let settings = Settings { data: vec!["not/there".into()], ..Settings::default() };
        let error = inputs(&settings, &Corpora::at("nowhere".into())).unwrap_err();
        assert!(error.to_string().contains("not/there"));
    }
}
