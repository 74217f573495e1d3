//! The folder that is backed up. It becomes one clone of the same base after another: a share of each clone's bytes is
//! its own, all else is the base's. So only the base and one clone lie there at once.
//!
//! Half of the bytes of its own stand in files of the base that a clone has in another version, half in files that it
//! adds. Both are made of real files: in each block of 32 bytes one byte becomes another one, so that nothing of it can
//! be found elsewhere, and it compresses nearly as before.

use anyhow::{Context, Result, ensure};
use siltstone_testbed::deterministic::Sequence;
use siltstone_testbed::tree;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Size of the blocks of which one byte each is changed, in bytes.
const BLOCK_BYTES: usize = 32;
/// Changed or added at once; a larger file is changed in one place.
const RUN_BYTES_MAX: usize = 1 << 20;
/// A run within a larger file begins at a multiple of this.
const ALIGNMENT_BYTES: usize = 64 << 10;
/// Seconds since 1970: the time of the base, to which a clone adds its number.
const FIRST_SECOND: u64 = 1_700_000_000;

/// Time of all that is a clone's own; 0 is the base.
pub(super) fn time_of(number: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(FIRST_SECOND + number)
}

/// Part of a clone that is not the base's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Own {
    pub(super) changed_files: usize,
    pub(super) added_files: usize,
    /// Bytes rewritten and added.
    pub(super) bytes: u64,
}

/// The base, and the folder that is one clone of it at a time.
pub(super) struct Source {
    base: PathBuf,
    place: PathBuf,
    /// Files of the base that are not empty, by their paths in it.
    files: Vec<PathBuf>,
    /// Bytes of a clone that are its own.
    own_bytes: u64,
    seed: u64,
    changed: Vec<PathBuf>,
    added: Vec<PathBuf>,
}

impl Source {
    /// Copies `base` to `place`, which must not exist. Each clone will differ from it in `percent` of its bytes.
    pub(super) fn of(base: &Path, place: &Path, percent: u64, seed: u64) -> Result<Self> {
        tree::copy(base, place)?;
        let (mut files, mut base_bytes) = (Vec::new(), 0);
        for path in tree::files(base)? {
            let bytes = fs::metadata(&path)?.len();
            base_bytes += bytes;
            if bytes > 0 {
                files.push(path.strip_prefix(base)?.to_path_buf());
            }
        }
        ensure!(!files.is_empty(), "{} has no data", base.display());
        let (base, place) = (base.to_path_buf(), place.to_path_buf());
        let own_bytes = base_bytes * percent / 100;
        Ok(Self { base, place, files, own_bytes, seed, changed: Vec::new(), added: Vec::new() })
    }

    /// Makes the folder the clone of this number, whatever it was before.
    pub(super) fn become_clone(&mut self, number: u64) -> Result<Own> {
        self.become_base()?;
        let mut sequence = Sequence::of(&[self.seed, number]);
        let mut own = Own::default();
        let half = self.own_bytes / 2;
        let mut files = self.files.clone();
        while own.bytes < half && !files.is_empty() {
            let file = files.swap_remove(sequence.index(files.len()));
            own.bytes += self.change(&file, half - own.bytes, &mut sequence)?;
            own.changed_files += 1;
            self.changed.push(file);
        }
        while own.bytes < self.own_bytes {
            let like = self.files[sequence.index(self.files.len())].clone();
            let file = like.with_file_name(format!("own-{number:03}-{:05}", own.added_files));
            own.bytes += self.add(&file, &like, self.own_bytes - own.bytes, &mut sequence)?;
            own.added_files += 1;
            self.added.push(file);
        }
        let own_files: Vec<&PathBuf> = self.changed.iter().chain(&self.added).collect();
        for file in &own_files {
            File::open(self.place.join(file))?.set_modified(time_of(number))?;
        }
        for folder in parents(own_files) {
            File::open(self.place.join(folder))?.set_modified(time_of(number))?;
        }
        Ok(own)
    }

    /// Takes back all that the last clone had of its own.
    fn become_base(&mut self) -> Result<()> {
        for file in &self.added {
            fs::remove_file(self.place.join(file))?;
        }
        for file in &self.changed {
            fs::remove_file(self.place.join(file))?;
            tree::copy(&self.base.join(file), &self.place.join(file))?;
        }
        for folder in parents(self.changed.iter().chain(&self.added)) {
            let modified = fs::metadata(self.base.join(folder))?.modified()?;
            File::open(self.place.join(folder))?.set_modified(modified)?;
        }
        (self.changed, self.added) = (Vec::new(), Vec::new());
        Ok(())
    }

    /// Replaces a file by another version of it, as package managers do: a new file under the old name. Returns the
    /// bytes that differ, `bytes_max` at most.
    fn change(&self, file: &Path, bytes_max: u64, sequence: &mut Sequence) -> Result<u64> {
        let place = self.place.join(file);
        let mut content = fs::read(&place)?;
        let run = content.len().min(RUN_BYTES_MAX).min(usize::try_from(bytes_max)?);
        let places = (content.len() - run) / ALIGNMENT_BYTES + 1;
        let begin = sequence.index(places) * ALIGNMENT_BYTES;
        rewrite(&mut content[begin..begin + run], sequence);
        let permissions = fs::metadata(&place)?.permissions();
        fs::remove_file(&place)?;
        fs::write(&place, content).with_context(|| format!("{} cannot be written", place.display()))?;
        fs::set_permissions(&place, permissions)?;
        Ok(run as u64)
    }

    /// Adds a file that compresses as one of the base does; returns its length, `bytes_max` at most.
    fn add(&self, file: &Path, like: &Path, bytes_max: u64, sequence: &mut Sequence) -> Result<u64> {
        let mut content = fs::read(self.base.join(like))?;
        content.truncate(RUN_BYTES_MAX.min(usize::try_from(bytes_max)?));
        rewrite(&mut content, sequence);
        fs::write(self.place.join(file), &content)?;
        Ok(content.len() as u64)
    }
}

/// Changes the first byte of each block.
fn rewrite(bytes: &mut [u8], sequence: &mut Sequence) {
    bytes.iter_mut().step_by(BLOCK_BYTES).for_each(|byte| *byte ^= sequence.next().to_le_bytes()[0] | 1);
}

fn parents<'a>(files: impl IntoIterator<Item = &'a PathBuf>) -> BTreeSet<&'a Path> {
    files.into_iter().filter_map(|file| file.parent()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_testbed::tree::Listing;
    use std::os::unix::fs::PermissionsExt;

    const SMALL_FILES: u64 = 200;

    /// A base of small files, some of them empty or read-only, and of a large one: 6 MB in all.
    fn base(root: &Path) -> PathBuf {
        let base = root.join("base");
        for number in 0..SMALL_FILES {
            let folder = base.join((number % 11).to_string());
            fs::create_dir_all(&folder).unwrap();
            let file = folder.join(format!("file-{number}"));
            let length = if number % 10 == 0 { 0 } else { 5_000 + number * 80 };
            fs::write(&file, Sequence::new(number).bytes(usize::try_from(length).unwrap())).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(if number % 3 == 0 { 0o444 } else { 0o644 }))
                .unwrap();
        }
        fs::write(base.join("large"), Sequence::new(999).bytes(4 << 20)).unwrap();
        base
    }

    /// Bytes of `clone` in blocks that its base does not have at that place; a block at the end may be shorter.
    fn differing_bytes(base: &Path, clone: &Path) -> u64 {
        let mut differing = 0;
        for path in tree::files(clone).unwrap() {
            let own = fs::read(&path).unwrap();
            let other = fs::read(base.join(path.strip_prefix(clone).unwrap())).unwrap_or_default();
            let mut others = other.chunks(BLOCK_BYTES);
            differing +=
                own.chunks(BLOCK_BYTES).filter(|block| others.next() != Some(block)).map(<[u8]>::len).sum::<usize>();
        }
        differing as u64
    }

    #[test]
    fn each_clone_differs_in_the_share_asked_for() {
        let work = tempfile::tempdir().unwrap();
        let base = base(work.path());
        let base_bytes = tree::bytes(&base).unwrap();
        for percent in [2, 10] {
            let place = work.path().join(format!("source-{percent}"));
            let mut source = Source::of(&base, &place, percent, 1).unwrap();
            for number in 1..=5 {
                let own = source.become_clone(number).unwrap();
                let wanted = base_bytes * percent / 100;
                assert_eq!(own.bytes, wanted);
                assert!(own.changed_files > 1 && own.added_files > 1, "{own:?}");
                // The last run may end within a block.
                assert!(differing_bytes(&base, &place).abs_diff(wanted) < BLOCK_BYTES as u64);
                // The rewritten half replaces, the other one adds.
                assert_eq!(tree::bytes(&place).unwrap(), base_bytes + wanted - wanted / 2);
            }
        }
    }

    #[test]
    fn a_clone_depends_on_its_number_and_the_seed_alone() {
        let work = tempfile::tempdir().unwrap();
        let base = base(work.path());
        let listing_of = |name: &str, seed: u64, numbers: &[u64]| {
            let place = work.path().join(name);
            let mut source = Source::of(&base, &place, 2, seed).unwrap();
            for &number in numbers {
                source.become_clone(number).unwrap();
            }
            Listing::of(&place).unwrap()
        };
        let third = listing_of("one", 1, &[3]);
        third.expect_same(&listing_of("after others", 1, &[1, 2, 3])).unwrap();
        third.expect_same(&listing_of("again", 1, &[3, 4, 3])).unwrap();
        assert!(third.expect_same(&listing_of("other clone", 1, &[4])).is_err());
        assert!(third.expect_same(&listing_of("other seed", 2, &[3])).is_err());
    }

    #[test]
    fn clones_have_nothing_of_their_own_in_common() {
        let work = tempfile::tempdir().unwrap();
        let base = base(work.path());
        let places = [1, 2].map(|number| {
            let place = work.path().join(number.to_string());
            Source::of(&base, &place, 10, 1).unwrap().become_clone(number).unwrap();
            place
        });
        let base_bytes = tree::bytes(&base).unwrap();
        // Few are changed in both, at the same place to the same byte.
        let differing = differing_bytes(&places[0], &places[1]);
        assert!(differing > base_bytes * 13 / 100, "{differing} of {base_bytes}");
    }
}
