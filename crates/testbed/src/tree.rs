//! Trees of files: listing one with everything a restore must bring back, comparing two listings, and making one tree
//! equal to another in place. This is the benchmark's and the tests' own eye: it shares no code with the program under
//! test.

use crate::program;
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Kind and content of the entry at one path.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Kind {
    Directory,
    File { bytes: u64, digest: u64 },
    Symlink { target: PathBuf },
    Fifo,
    Device { number: u64 },
}

/// One entry: what it is and the metadata a restore must bring back.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Node {
    kind: Kind,
    mode: u32,
    owner: u32,
    group: u32,
    modified: (i64, i64),
}

/// All entries below a folder, itself included (as the empty path).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listing(BTreeMap<PathBuf, Node>);

impl Listing {
    /// Reads the tree at `root`, all file contents included.
    pub fn of(root: &Path) -> Result<Self> {
        let mut nodes = BTreeMap::new();
        list_into(root, Path::new(""), &mut nodes)?;
        Ok(Self(nodes))
    }

    /// Returns the listing without this path and what lies below it.
    #[must_use]
    pub fn without(mut self, path: &Path) -> Self {
        self.0.retain(|found, _| !found.starts_with(path));
        self
    }

    /// Lists a folder without the folder itself.
    #[must_use]
    pub fn without_top(mut self) -> Self {
        self.0.remove(Path::new(""));
        self
    }

    /// Returns the listing with all folders of one time: for a program that brings other times back.
    #[must_use]
    pub fn without_times_of_folders(mut self) -> Self {
        self.0.values_mut().filter(|node| node.kind == Kind::Directory).for_each(|node| node.modified = (0, 0));
        self
    }

    /// Number of regular files.
    pub fn files(&self) -> usize {
        self.0.values().filter(|node| matches!(node.kind, Kind::File { .. })).count()
    }

    /// Bytes of all regular files.
    pub fn bytes(&self) -> u64 {
        self.0.values().map(|node| if let Kind::File { bytes, .. } = node.kind { bytes } else { 0 }).sum()
    }

    /// Fails with the first few differences if `found` is not the same tree.
    pub fn expect_same(&self, found: &Self) -> Result<()> {
        let paths: BTreeSet<&PathBuf> = self.0.keys().chain(found.0.keys()).collect();
        let differing: Vec<&PathBuf> =
            paths.into_iter().filter(|path| self.0.get(*path) != found.0.get(*path)).collect();
        if differing.is_empty() {
            return Ok(());
        }
        let shown = differing.iter().take(5).map(|path| {
            format!("  {}: expected {}, found {}", path.display(), said(self.0.get(*path)), said(found.0.get(*path)))
        });
        bail!("{} entries differ:\n{}", differing.len(), shown.collect::<Vec<_>>().join("\n"));
    }

    /// Fails with the first few regular files of `found` that have the name of one of these and not its content. What
    /// is missing, and what has a name of its own, is passed over: a restore that could not be done whole may leave
    /// out, but not lie.
    pub fn expect_no_false_file(&self, found: &Self) -> Result<()> {
        let is_false = |(path, node): &(&PathBuf, &Node)| {
            let content = |node: &Node| if let Kind::File { digest, .. } = node.kind { Some(digest) } else { None };
            let wanted = self.0.get(*path).and_then(content);
            content(node).is_some() && wanted.is_some() && content(node) != wanted
        };
        let lies: Vec<String> =
            found.0.iter().filter(is_false).map(|(path, _)| format!("  {}", path.display())).collect();
        if lies.is_empty() {
            return Ok(());
        }
        bail!("{} files have their name but not their content:\n{}", lies.len(), lies[..lies.len().min(5)].join("\n"));
    }

    /// Number of regular files that `found` has with the same content.
    pub fn files_in(&self, found: &Self) -> usize {
        let is_file = |node: &Node| matches!(node.kind, Kind::File { .. });
        let is_there =
            |(path, node): &(&PathBuf, &Node)| found.0.get(*path).is_some_and(|there| there.kind == node.kind);
        self.0.iter().filter(|(_, node)| is_file(node)).filter(is_there).count()
    }
}

fn said(node: Option<&Node>) -> String {
    node.map_or("nothing".into(), |node| format!("{node:?}"))
}

fn list_into(root: &Path, relative: &Path, nodes: &mut BTreeMap<PathBuf, Node>) -> Result<()> {
    let path = if relative.as_os_str().is_empty() { root.to_path_buf() } else { root.join(relative) };
    let node = node_at(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    let is_directory = node.kind == Kind::Directory;
    nodes.insert(relative.to_path_buf(), node);
    if is_directory {
        for name in names(&path)? {
            list_into(root, &relative.join(name), nodes)?;
        }
    }
    Ok(())
}

fn node_at(path: &Path) -> Result<Node> {
    let status = fs::symlink_metadata(path)?;
    let form = status.file_type();
    let kind = if form.is_dir() {
        Kind::Directory
    } else if form.is_file() {
        Kind::File { bytes: status.len(), digest: digest(path)? }
    } else if form.is_symlink() {
        Kind::Symlink { target: fs::read_link(path)? }
    } else if form.is_fifo() {
        Kind::Fifo
    } else {
        Kind::Device { number: status.rdev() }
    };
    let modified = (status.mtime(), status.mtime_nsec());
    Ok(Node { kind, mode: status.mode(), owner: status.uid(), group: status.gid(), modified })
}

/// Hashes a file's content by the standard library's function, which is another than that of the program under test.
fn digest(path: &Path) -> Result<u64> {
    const BLOCK_BYTES: u64 = 1 << 16;
    let (mut file, mut hasher, mut block) = (File::open(path)?, DefaultHasher::new(), Vec::new());
    loop {
        block.clear();
        // Always whole blocks: what is hashed does not depend on how much a read gives.
        if file.by_ref().take(BLOCK_BYTES).read_to_end(&mut block)? == 0 {
            return Ok(hasher.finish());
        }
        hasher.write(&block);
    }
}

/// Sorted names in a folder.
fn names(folder: &Path) -> Result<Vec<OsString>> {
    let entries = fs::read_dir(folder).with_context(|| format!("{} cannot be listed", folder.display()))?;
    let mut names = entries.map(|entry| Ok(entry?.file_name())).collect::<Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

/// Paths of all regular files below `root`, sorted.
pub fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for path in entries(&folder)? {
            let form = fs::symlink_metadata(&path)?.file_type();
            if form.is_dir() {
                folders.push(path);
            } else if form.is_file() {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Paths of all regular files below `root`, sorted, that can be found, and how many folders and entries cannot be
/// looked at.
pub fn readable_files(root: &Path) -> (Vec<PathBuf>, usize) {
    let (mut found, mut unreadable) = (Vec::new(), 0);
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Ok(paths) = entries(&folder) else {
            unreadable += 1;
            continue;
        };
        for path in paths {
            match fs::symlink_metadata(&path).map(|status| status.file_type()) {
                Ok(form) if form.is_dir() => folders.push(path),
                Ok(form) if form.is_file() => found.push(path),
                Ok(_) => {}
                Err(_) => unreadable += 1,
            }
        }
    }
    found.sort();
    (found, unreadable)
}

/// Bytes of a file, or of all regular files below a folder (their lengths, not the blocks they take).
pub fn bytes(root: &Path) -> Result<u64> {
    if root.is_file() {
        return Ok(fs::metadata(root)?.len());
    }
    files(root)?.iter().map(|path| Ok(fs::metadata(path)?.len())).sum()
}

/// Reads every file below `root` once, so that the page cache holds them; returns the bytes read.
pub fn read_all(root: &Path) -> Result<u64> {
    let mut buffer = vec![0; 1 << 20];
    let mut total = 0;
    for path in files(root)? {
        let mut file = File::open(&path).with_context(|| format!("{} cannot be opened", path.display()))?;
        loop {
            let count = file.read(&mut buffer)?;
            if count == 0 {
                break;
            }
            total += count as u64;
        }
    }
    Ok(total)
}

/// Copies a file or a tree with all its metadata.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    program::quietly(Command::new("cp").arg("-a").arg("--").arg(from).arg(to)).map(drop)
}

/// Name of a file that [`make_equal`] puts into a folder.
pub const ONLY_FILE: &str = "data";

/// Makes the folder `tree` hold what `wanted` holds, touching only what differs: so unchanged files keep their times
/// and inodes, and changed ones get new times, as when someone works in the folder or unpacks a new release over the
/// old one. A `wanted` that is a file becomes the only file, [`ONLY_FILE`].
pub fn make_equal(tree: &Path, wanted: &Path) -> Result<()> {
    fs::create_dir_all(tree)?;
    if wanted.is_dir() {
        return equal_folders(tree, wanted);
    }
    for name in names(tree)?.into_iter().filter(|name| name != ONLY_FILE) {
        remove(&tree.join(name))?;
    }
    equal_entries(&tree.join(ONLY_FILE), wanted)
}

fn equal_folders(tree: &Path, wanted: &Path) -> Result<()> {
    let wanted_names = names(wanted)?;
    for name in names(tree)?.into_iter().filter(|name| wanted_names.binary_search(name).is_err()) {
        remove(&tree.join(name))?;
    }
    for name in wanted_names {
        equal_entries(&tree.join(&name), &wanted.join(&name))?;
    }
    Ok(())
}

fn equal_entries(here: &Path, wanted: &Path) -> Result<()> {
    let wanted_form = fs::symlink_metadata(wanted)?.file_type();
    match fs::symlink_metadata(here).map(|status| status.file_type()) {
        Ok(form) if form == wanted_form && form.is_dir() => return equal_folders(here, wanted),
        Ok(form) if form == wanted_form && form.is_file() && same_bytes(here, wanted)? => return Ok(()),
        Ok(form) if form == wanted_form && form.is_symlink() && fs::read_link(here)? == fs::read_link(wanted)? => {
            return Ok(());
        }
        Ok(form) if form != wanted_form || !form.is_file() => remove(here)?,
        _ => {}
    }
    if wanted_form.is_dir() {
        fs::create_dir(here)?;
        equal_folders(here, wanted)
    } else if wanted_form.is_file() {
        fs::copy(wanted, here).with_context(|| format!("{} cannot be written", here.display())).map(drop)
    } else {
        copy(wanted, here)
    }
}

fn same_bytes(one: &Path, other: &Path) -> Result<bool> {
    Ok(fs::metadata(one)?.len() == fs::metadata(other)?.len() && digest(one)? == digest(other)?)
}

fn remove(path: &Path) -> Result<()> {
    let is_directory = fs::symlink_metadata(path)?.is_dir();
    let removed = if is_directory { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.with_context(|| format!("{} cannot be removed", path.display()))
}

/// Entries of a folder, sorted by name.
pub fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    Ok(names(folder)?.into_iter().map(|name| folder.join(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::SystemTime;

    fn sample(root: &Path) {
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/one"), "one").unwrap();
        fs::write(root.join("a/b/two"), "two").unwrap();
        symlink("one", root.join("a/link")).unwrap();
    }

    #[test]
    fn only_times_of_folders_can_be_left_out() {
        let work = tempfile::tempdir().unwrap();
        let [source, restored] = ["source", "restored"].map(|name| work.path().join(name));
        sample(&source);
        copy(&source, &restored).unwrap();
        let compare = || {
            let [expected, found] = [&source, &restored].map(|tree| Listing::of(tree).unwrap());
            let same =
                expected.clone().without_times_of_folders().expect_same(&found.clone().without_times_of_folders());
            (expected.expect_same(&found).is_ok(), same.is_ok())
        };
        let make_old =
            |path: &str| File::open(restored.join(path)).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(compare(), (true, true));
        ["", "a", "a/b"].into_iter().for_each(make_old);
        assert_eq!(compare(), (false, true));
        make_old("a/one");
        assert_eq!(compare(), (false, false));
    }

    #[test]
    fn a_copy_is_the_same_and_every_kind_of_change_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let (tree, other) = (folder.path().join("tree"), folder.path().join("copy"));
        sample(&tree);
        copy(&tree, &other).unwrap();
        let expected = Listing::of(&tree).unwrap();
        expected.expect_same(&Listing::of(&other).unwrap()).unwrap();

        let changes: [&dyn Fn(); 5] = [
            &|| fs::write(other.join("a/one"), "0ne").unwrap(),
            &|| fs::set_permissions(other.join("a/one"), fs::Permissions::from_mode(0o600)).unwrap(),
            &|| {
                fs::File::open(other.join("a/b")).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
            },
            &|| fs::write(other.join("a/new"), "").unwrap(),
            &|| fs::remove_file(other.join("a/link")).unwrap(),
        ];
        for change in changes {
            remove(&other).unwrap();
            copy(&tree, &other).unwrap();
            change();
            assert!(expected.expect_same(&Listing::of(&other).unwrap()).is_err());
        }
    }

    #[test]
    fn making_equal_touches_only_what_differs() {
        let folder = tempfile::tempdir().unwrap();
        let (tree, wanted) = (folder.path().join("tree"), folder.path().join("wanted"));
        sample(&tree);
        sample(&wanted);
        fs::write(tree.join("a/extra"), "").unwrap();
        fs::write(tree.join("a/b/two"), "2").unwrap();
        let untouched = fs::metadata(tree.join("a/one")).unwrap();
        make_equal(&tree, &wanted).unwrap();
        assert_eq!(files(&tree).unwrap().len(), 2);
        assert_eq!(fs::read(tree.join("a/b/two")).unwrap(), b"two");
        let after = fs::metadata(tree.join("a/one")).unwrap();
        assert_eq!((untouched.ctime_nsec(), untouched.ino()), (after.ctime_nsec(), after.ino()));
    }
}
