//! After the papers' SYN: a tree of files, some of which are created, deleted and modified from one version to the
//! next.
//!
//! That is all the papers say of it (MeGA, ATC'22, Table 2 and section 5.4: modifications are "completely random";
//! Odess, TOS, Table 2; so too AE's "Bench", TC'17): no sizes, no shares. MeGA and AE refer to Tarasov et al.,
//! Generating Realistic Datasets for Deduplication Analysis, USENIX ATC'12, a model fitted to file systems that are not
//! public. This is not that model; every number here is our choice, so that figures on the papers' SYN and on this one
//! can be compared in kind only.
//!
//! ```text
//! sizes       log-normal, mean 9.48 and deviation 2.46 of the logarithm: half of the files are below 13 kB; chosen after the body
//!             of the distribution that Impressions (Agrawal et al., FAST'09) draws sizes from, without its heavier tail:
//!             ours ends at 1/32 of the tree, so that no single file decides what is measured
//! folders     one for every eleven files; the parent of each is drawn with a weight of 2 + its folders, after the way trees grow
//!             in A Five-Year Study of File-System Metadata (Agrawal et al., FAST'07)
//! content     content.rs: four kinds, no two files alike
//! versions    deleted, then modified, then created: each a share of the files, drawn evenly
//! modified    a share of the file's bytes, drawn evenly between two bounds, in one stretch of it: edits.rs
//! ```
//!
//! Usually 10 % of the files are modified, by 1 to 10 % of their bytes each; 2 % are created, 1 % deleted. A version is
//! written whole: nothing is linked to the one before. A file's time is that of the version that wrote it last.

use super::content::{Content, word};
use super::draw::{log_normal, share};
use super::edits::{self, Edit};
use super::record::{Changes, Version, version_name};
use super::stop::go_on;
use crate::deterministic::Sequence;
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

const SIZE_MEAN: f64 = 9.48;
const SIZE_DEVIATION: f64 = 2.46;
/// The tree over its largest file.
const TREE_OVER_FILE: u64 = 32;
const FILES_PER_FOLDER: u64 = 11;

/// Parameters of a synthetic history of files.
#[derive(Clone, PartialEq, Debug, Serialize, clap::Args)]
pub struct Syn {
    /// Seed: the same gives the same bytes
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Versions
    #[arg(long, default_value_t = 25)]
    pub versions: u64,
    /// Bytes of the first version (as 40MB, 64MiB)
    #[arg(long, default_value = "44MB", value_parser = super::parse_bytes)]
    pub size: u64,
    /// Files created between versions, percent of all
    #[arg(long, default_value_t = 2.0)]
    pub created_percent: f64,
    /// Files deleted between versions, percent of all
    #[arg(long, default_value_t = 1.0)]
    pub deleted_percent: f64,
    /// Files modified between versions, percent of all
    #[arg(long, default_value_t = 10.0)]
    pub modified_percent: f64,
    /// Least share of a modified file's bytes that change, percent
    #[arg(long, default_value_t = 1.0)]
    pub changed_percent_min: f64,
    /// Largest share of a modified file's bytes that change, percent
    #[arg(long, default_value_t = 10.0)]
    pub changed_percent_max: f64,
}

impl Syn {
    /// These versions, of this size, as the defaults change them.
    pub fn new(seed: u64, versions: u64, size: u64) -> Self {
        Self {
            seed,
            versions,
            size,
            created_percent: 2.0,
            deleted_percent: 1.0,
            modified_percent: 10.0,
            changed_percent_min: 1.0,
            changed_percent_max: 10.0,
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let shares = [self.created_percent, self.deleted_percent, self.modified_percent, self.changed_percent_max];
        let is_sound = shares.iter().all(|percent| (0.0..=100.0).contains(percent))
            && (0.0..=self.changed_percent_max).contains(&self.changed_percent_min);
        ensure!(is_sound, "shares are from 0 to 100 percent, the least not above the largest");
        Ok(())
    }

    /// All versions into `folder`.
    pub(super) fn make(&self, folder: &Path) -> Result<Vec<Version>> {
        let mut tree = Tree::new(self);
        let mut versions = Vec::new();
        for number in 0..self.versions {
            let name = version_name(number, self.versions);
            let before = versions.last().map(|version: &Version| folder.join(&version.name));
            versions.push(tree.advance(&folder.join(&name), before.as_deref(), number, name)?);
        }
        Ok(versions)
    }
}

/// A file, as the newest version has it.
struct Entry {
    /// Index of its folder.
    folder: usize,
    serial: u64,
    content: Content,
    bytes: u64,
    /// The version that wrote it last.
    written: u64,
}

/// Fate of a file in the next version.
enum Action {
    Keep,
    Write(Sequence),
    Edit(Vec<Edit>, Sequence),
}

/// The tree as it is in the newest version.
struct Tree<'p> {
    parameters: &'p Syn,
    sequence: Sequence,
    folders: Vec<String>,
    /// For each folder 2 + its folders times its own index: a draw among these is one by weight.
    weighted: Vec<usize>,
    files: Vec<Entry>,
    next_serial: u64,
}

impl<'p> Tree<'p> {
    fn new(parameters: &'p Syn) -> Self {
        let sequence = Sequence::of(&[parameters.seed, 0x0053_594e]);
        let folders = vec![String::new()];
        Self { parameters, sequence, folders, weighted: vec![0, 0], files: Vec::new(), next_serial: 0 }
    }

    /// Writes the next version.
    fn advance(&mut self, to: &Path, before: Option<&Path>, number: u64, name: String) -> Result<Version> {
        let (actions, mut changes) = match before {
            None => (self.plan_first(), Changes::default()),
            Some(_) => self.plan_next(number),
        };
        for folder in &self.folders {
            fs::create_dir_all(to.join(folder)).with_context(|| format!("{} cannot be made", to.display()))?;
        }
        for (at, action) in actions.into_iter().enumerate() {
            go_on()?;
            changes.changed_bytes += self.carry_out(at, action, to, before)?;
        }
        let bytes = self.files.iter().map(|file| file.bytes).sum();
        Ok(Version { name, bytes, files: self.files.len() as u64, changes: before.map(|_| changes) })
    }

    fn plan_first(&mut self) -> Vec<Action> {
        let mut total = 0;
        let mut actions = Vec::new();
        while total < self.parameters.size {
            actions.push(self.create(0));
            total += self.files[self.files.len() - 1].bytes;
        }
        actions
    }

    fn plan_next(&mut self, number: u64) -> (Vec<Action>, Changes) {
        let parameters = self.parameters;
        let count = self.files.len() as u64;
        let [created, deleted, modified] =
            [parameters.created_percent, parameters.deleted_percent, parameters.modified_percent]
                .map(|percent| share(&mut self.sequence, count, percent));
        for _ in 0..deleted {
            let at = self.sequence.index(self.files.len());
            self.files.remove(at);
        }
        let mut actions: Vec<Action> = self.files.iter().map(|_| Action::Keep).collect();
        let modified = modified.min(self.files.len() as u64);
        for at in self.distinct(modified) {
            actions[at] = self.modify(at, number);
        }
        actions.extend((0..created).map(|_| self.create(number)));
        (actions, Changes { created, deleted, modified, changed_bytes: 0 })
    }

    /// So many different files.
    fn distinct(&mut self, count: u64) -> Vec<usize> {
        let mut all: Vec<usize> = (0..self.files.len()).collect();
        let count = usize::try_from(count).expect("there are no more than files");
        for at in 0..count {
            let other = at + self.sequence.index(all.len() - at);
            all.swap(at, other);
        }
        all.truncate(count);
        all
    }

    fn create(&mut self, number: u64) -> Action {
        if self.next_serial.is_multiple_of(FILES_PER_FOLDER) {
            self.create_folder();
        }
        let largest = (self.parameters.size / TREE_OVER_FILE).max(1);
        let drawn = std::iter::repeat_with(|| log_normal(&mut self.sequence, SIZE_MEAN, SIZE_DEVIATION));
        // A tree too small for files of that distribution gets small ones.
        let bytes = drawn.take(100).find(|&bytes| bytes <= largest).unwrap_or(largest);
        let folder = self.sequence.index(self.folders.len());
        let content = Content::drawn(&mut self.sequence);
        self.files.push(Entry { folder, serial: self.next_serial, content, bytes, written: number });
        self.next_serial += 1;
        Action::Write(Sequence::new(self.sequence.next()))
    }

    fn create_folder(&mut self) {
        let parent = self.weighted[self.sequence.index(self.weighted.len())];
        let (word, number) = (word(&mut self.sequence), self.folders.len());
        let path = Path::new(&self.folders[parent]).join(format!("{word}-{number}"));
        self.folders.push(path.to_string_lossy().into_owned());
        self.weighted.extend([parent, number, number]);
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)] // Below 2^53.
    fn modify(&mut self, at: usize, number: u64) -> Action {
        let (least, most) = (self.parameters.changed_percent_min, self.parameters.changed_percent_max);
        let percent = least + (most - least) * self.sequence.unit();
        let file = &mut self.files[at];
        let changed = (file.bytes as f64 * percent / 100.0).ceil() as u64;
        let edits = edits::plan(&mut self.sequence, file.bytes, changed);
        let (inserted, deleted) = edits.iter().fold((0, 0), |(i, d), edit| (i + edit.inserted, d + edit.deleted));
        file.bytes = file.bytes + inserted - deleted;
        file.written = number;
        Action::Edit(edits, Sequence::new(self.sequence.next()))
    }

    /// Writes one file; returns how many bytes are not as they were.
    fn carry_out(&self, at: usize, action: Action, to: &Path, before: Option<&Path>) -> Result<u64> {
        let file = &self.files[at];
        let name = format!("{}/{:06}.{}", self.folders[file.folder], file.serial, file.content.extension());
        let name = name.trim_start_matches('/');
        let path = to.join(name);
        let old = || before.map(|before| before.join(name)).context("only a version before has files to keep");
        let failed = || format!("{} cannot be written", path.display());
        let changed = match action {
            Action::Keep => fs::copy(old()?, &path).with_context(failed).map(|_| 0)?,
            Action::Write(sequence) => {
                let mut out = BufWriter::new(File::create(&path).with_context(failed)?);
                file.content.write(sequence, file.bytes, &mut out).and_then(|()| out.flush()).with_context(failed)?;
                file.bytes
            }
            Action::Edit(edits, mut sequence) => {
                edits::apply(&old()?, &path, &edits, file.content, &mut sequence)?;
                edits.iter().map(Edit::changed).sum()
            }
        };
        set_time(&path, file.written).with_context(failed)?;
        Ok(changed)
    }
}

/// A day passes between versions.
fn set_time(path: &Path, version: u64) -> std::io::Result<()> {
    const FIRST: Duration = Duration::from_secs(1_700_000_000);
    const DAY: u64 = 86_400;
    let time = SystemTime::UNIX_EPOCH + FIRST + Duration::from_secs(version * DAY);
    File::options().write(true).open(path)?.set_modified(time)
}

/// Digest of all names and contents below a folder.
#[cfg(test)]
pub(super) fn digest(folder: &Path) -> String {
    let mut hasher = blake3::Hasher::new();
    for path in crate::tree::files(folder).unwrap() {
        let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
        let bytes = fs::read(&path).unwrap();
        hasher.update(name.as_bytes()).update(&[0]).update(&(bytes.len() as u64).to_le_bytes()).update(&bytes);
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;
    use std::collections::BTreeMap;

    fn made(parameters: &Syn) -> (tempfile::TempDir, Vec<Version>) {
        let folder = tempfile::tempdir().unwrap();
        let versions = parameters.make(folder.path()).unwrap();
        (folder, versions)
    }

    #[test]
    fn a_seed_gives_the_same_bytes_everywhere_and_for_ever() {
        let (first, _) = made(&Syn::new(1, 3, 300_000));
        let (second, _) = made(&Syn::new(2, 3, 300_000));
        assert_eq!(digest(first.path()), "59f8a7da4e9e956b");
        assert_ne!(digest(first.path()), digest(second.path()));
    }

    fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
        let named = |path: std::path::PathBuf| {
            (path.strip_prefix(folder).unwrap().to_string_lossy().into_owned(), fs::read(&path).unwrap())
        };
        tree::files(folder).unwrap().into_iter().map(named).collect()
    }

    #[test]
    fn what_a_version_says_of_itself_is_what_is_there() {
        let (folder, versions) = made(&Syn::new(3, 4, 1_000_000));
        let trees: Vec<_> = versions.iter().map(|version| contents(&folder.path().join(&version.name))).collect();
        for (at, (version, tree)) in versions.iter().zip(&trees).enumerate() {
            assert_eq!(version.files, tree.len() as u64);
            assert_eq!(version.bytes, tree.values().map(|bytes| bytes.len() as u64).sum::<u64>());
            let Some(changes) = &version.changes else { continue };
            let before = &trees[at - 1];
            let created = tree.keys().filter(|name| !before.contains_key(*name)).count() as u64;
            let deleted = before.keys().filter(|name| !tree.contains_key(*name)).count() as u64;
            let modified = tree.iter().filter(|(name, bytes)| before.get(*name).is_some_and(|old| old != *bytes));
            assert_eq!((created, deleted), (changes.created, changes.deleted));
            // A byte that is replaced may be what it was.
            assert!(changes.modified.abs_diff(modified.count() as u64) <= 1);
        }
        assert!(versions[0].changes.is_none());
    }

    #[test]
    fn as_much_changes_as_the_shares_say() {
        let (_folder, versions) = made(&Syn::new(4, 12, 1_500_000));
        let sum = |part: fn(&Changes) -> u64| versions.iter().filter_map(|v| v.changes.as_ref()).map(part).sum::<u64>();
        let files: u64 = versions[..11].iter().map(|version| version.files).sum();
        let bytes: u64 = versions[..11].iter().map(|version| version.bytes).sum();
        let per_mille = |count: u64, all: u64| count * 1000 / all;
        assert!((95..=105).contains(&per_mille(sum(|c| c.modified), files)));
        assert!((15..=25).contains(&per_mille(sum(|c| c.created), files)));
        assert!((5..=15).contains(&per_mille(sum(|c| c.deleted), files)));
        // A tenth of the files by 5.5 % of their bytes, and 2 % that are new.
        let changed = per_mille(sum(|c| c.changed_bytes), bytes);
        assert!((12..=45).contains(&changed), "{changed}");
    }
}
