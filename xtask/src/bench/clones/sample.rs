//! Draws files from folders of this machine until they make so many bytes: real data, as every Debian has it. Only
//! regular files are taken, folder by folder, so that what lies together stays together.

use anyhow::{Context, Result, ensure};
use siltstone_testbed::deterministic::Sequence;
use siltstone_testbed::tree;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Where files are drawn if the user names no folder.
pub(super) const USUAL: [&str; 3] = ["/usr/bin", "/usr/lib", "/usr/share"];
/// A file larger than the share of its folder divided by this is passed over, unless all files are taken: one file must
/// not stand for the whole.
const FILE_SHARE: u64 = 8;

/// Number and bytes of the files that were drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) files: usize,
    pub(super) bytes: u64,
}

/// Copies files of `folders` into `base`, which must not exist, until they make about `bytes_wanted`, an equal share of
/// each folder. What a folder lacks of its share goes to those after it. The same folders and `seed` give the same
/// files.
pub(super) fn take(folders: &[PathBuf], bytes_wanted: u64, seed: u64, base: &Path) -> Result<Sample> {
    fs::create_dir_all(base)?;
    let mut sample = Sample::default();
    for (number, folder) in folders.iter().enumerate() {
        let folder = fs::canonicalize(folder).with_context(|| format!("{} cannot be found", folder.display()))?;
        let share = bytes_wanted.saturating_sub(sample.bytes) / (folders.len() - number) as u64;
        for (file, bytes) in drawn(&folder, share, seed)? {
            copy(&file, &base.join(file.strip_prefix("/")?))?;
            sample.files += 1;
            sample.bytes += bytes;
        }
    }
    ensure!(sample.bytes > 0, "no files were found in {folders:?}");
    set_times(base)?;
    Ok(sample)
}

/// The files of `folder` that make `share` bytes at most, with their lengths.
fn drawn(folder: &Path, share: u64, seed: u64) -> Result<Vec<(PathBuf, u64)>> {
    let mut groups: BTreeMap<PathBuf, Vec<(PathBuf, u64)>> = BTreeMap::new();
    let mut total = 0;
    for path in tree::readable_files(folder).0.into_iter().filter(|path| File::open(path).is_ok()) {
        let bytes = fs::metadata(&path)?.len();
        total += bytes;
        groups.entry(path.parent().unwrap_or(folder).to_path_buf()).or_default().push((path, bytes));
    }
    if total <= share {
        return Ok(groups.into_values().flatten().collect());
    }
    let mut sequence = Sequence::new(seed);
    let mut groups: Vec<_> = groups.into_values().collect();
    let (mut chosen, mut left) = (Vec::new(), share);
    while !groups.is_empty() {
        let mut group = groups.swap_remove(sequence.index(groups.len()));
        while !group.is_empty() {
            let (path, bytes) = group.swap_remove(sequence.index(group.len()));
            if bytes <= left.min(share / FILE_SHARE) {
                left -= bytes;
                chosen.push((path, bytes));
            }
        }
    }
    Ok(chosen)
}

/// Copies a file with its mode and the time of its last change.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().context("a file has a folder")?)?;
    fs::copy(from, to).with_context(|| format!("{} cannot be copied", from.display()))?;
    File::open(to)?.set_modified(fs::metadata(from)?.modified()?)?;
    Ok(())
}

/// Gives all folders of the sample one time, so that it does not depend on when it was drawn.
fn set_times(folder: &Path) -> Result<()> {
    for entry in tree::entries(folder)?.into_iter().filter(|entry| entry.is_dir()) {
        set_times(&entry)?;
    }
    Ok(File::open(folder)?.set_modified(super::source::time_of(0))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_testbed::tree::Listing;

    fn folders(root: &Path) -> Vec<PathBuf> {
        let sizes = [("small", 3, 1000), ("large", 200, 1000), ("other", 200, 2000)];
        for (name, files, bytes) in sizes {
            for number in 0..files {
                let folder = root.join(name).join((number % 7).to_string());
                fs::create_dir_all(&folder).unwrap();
                fs::write(folder.join(number.to_string()), vec![7; bytes]).unwrap();
            }
        }
        fs::write(root.join("large/one"), vec![7; 50_000]).unwrap();
        sizes.map(|(name, ..)| root.join(name)).to_vec()
    }

    #[test]
    fn a_sample_has_the_bytes_asked_for_and_is_the_same_each_time() {
        let work = tempfile::tempdir().unwrap();
        let folders = folders(&work.path().join("system"));
        let [one, again, other] = ["one", "again", "other"].map(|name| work.path().join(name));
        let sample = take(&folders, 123_000, 1, &one).unwrap();
        // 3000 of the first, which has no more, and 60 000 of each of the others.
        assert_eq!(sample, Sample { files: 3 + 60 + 30, bytes: 123_000 });
        assert_eq!(take(&folders, 123_000, 1, &again).unwrap(), sample);
        take(&folders, 123_000, 2, &other).unwrap();
        let [one, again, other] = [one, again, other].map(|base| Listing::of(&base).unwrap());
        one.expect_same(&again).unwrap();
        assert!(one.expect_same(&other).is_err());
    }

    #[test]
    fn a_file_too_large_for_its_share_is_passed_over() {
        let work = tempfile::tempdir().unwrap();
        let folders = folders(&work.path().join("system"));
        for seed in 0..20 {
            let base = work.path().join(seed.to_string());
            take(&folders, 123_000, seed, &base).unwrap();
            assert!(tree::files(&base).unwrap().iter().all(|file| !file.ends_with("large/one")));
        }
    }

    #[test]
    fn all_is_taken_where_there_is_less() {
        let work = tempfile::tempdir().unwrap();
        let folders = folders(&work.path().join("system"));
        let sample = take(&folders, 10_000_000, 1, &work.path().join("base")).unwrap();
        assert_eq!(sample, Sample { files: 404, bytes: 653_000 });
    }
}
