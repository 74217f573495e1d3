//! A version as the bytes that `tar --format=ustar --mtime=@0 --mode=644 --owner=0 --group=0 --numeric-owner` makes of
//! its sorted files: what many people deduplicate. Names beyond the header's room are shortened, since nothing is ever
//! unpacked from it.

use crate::tree;
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

const BLOCK_BYTES: usize = 512;
/// Archives end with zeros up to a multiple of this: tar's usual record.
const RECORD_BYTES: usize = 20 * BLOCK_BYTES;

/// Appends the archive of the folder `root`.
pub fn append(archive: &mut Vec<u8>, root: &Path) -> Result<()> {
    let begin = archive.len();
    for path in tree::files(root)? {
        let name = Path::new(".").join(path.strip_prefix(root)?);
        let file_bytes = fs::metadata(&path)?.len();
        archive.extend_from_slice(&header(name.as_os_str().as_encoded_bytes(), file_bytes));
        append_file(archive, &path)?;
        pad(archive, begin, BLOCK_BYTES);
    }
    archive.resize(archive.len() + 2 * BLOCK_BYTES, 0);
    pad(archive, begin, RECORD_BYTES);
    Ok(())
}

/// Returns the files of the folder `root`, by their paths below it, and the bytes that the entry of each takes in what
/// [`append`] appends: header, content and padding. Entries follow one another; after the last comes the archive's end.
pub fn entries(root: &Path) -> Result<Vec<(PathBuf, Range<usize>)>> {
    let mut begin = 0;
    let entry = |path: PathBuf| {
        let file_bytes = usize::try_from(fs::metadata(&path)?.len())?;
        let end = begin + BLOCK_BYTES + file_bytes.next_multiple_of(BLOCK_BYTES);
        Ok((path.strip_prefix(root)?.to_owned(), std::mem::replace(&mut begin, end)..end))
    };
    tree::files(root)?.into_iter().map(entry).collect()
}

/// Counts of what was taken from data that nobody prepared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Taken {
    /// Files whose bytes are there.
    pub files: usize,
    /// Files and folders that could not be read; they are left out.
    pub unreadable: usize,
    /// True if something was left out for its size.
    pub is_part: bool,
}

/// Appends the archive of a folder as it is found: of its first files where all would be more than so many bytes, of
/// the last of them a part, and without what cannot be read.
pub fn append_found(archive: &mut Vec<u8>, root: &Path, bytes_max: u64) -> Result<Taken> {
    let begin = archive.len();
    let (files, unreadable) = tree::readable_files(root);
    let mut taken = Taken { files: 0, unreadable, is_part: false };
    for path in files {
        let held = (archive.len() - begin) as u64;
        if taken.is_part || held >= bytes_max {
            taken.is_part = true;
            break;
        }
        let name = Path::new(".").join(path.strip_prefix(root)?);
        let at = archive.len();
        archive.resize(at + BLOCK_BYTES, 0);
        let Ok(is_part) = append_first(archive, &path, bytes_max - held) else {
            archive.truncate(at);
            taken.unreadable += 1;
            continue;
        };
        taken.is_part = is_part;
        taken.files += 1;
        let file_bytes = (archive.len() - at - BLOCK_BYTES) as u64;
        archive[at..at + BLOCK_BYTES].copy_from_slice(&header(name.as_os_str().as_encoded_bytes(), file_bytes));
        pad(archive, begin, BLOCK_BYTES);
    }
    archive.resize(archive.len() + 2 * BLOCK_BYTES, 0);
    pad(archive, begin, RECORD_BYTES);
    Ok(taken)
}

/// Appends the first bytes of a file, at most so many; says whether there are more.
pub fn append_first(into: &mut Vec<u8>, path: &Path, bytes_max: u64) -> Result<bool> {
    let mut file = File::open(path).with_context(|| format!("{} cannot be opened", path.display()))?;
    let read = file.by_ref().take(bytes_max).read_to_end(into);
    read.with_context(|| format!("{} cannot be read", path.display()))?;
    Ok(file.read(&mut [0]).is_ok_and(|more| more > 0))
}

/// Appends the bytes of a file.
pub fn append_file(into: &mut Vec<u8>, path: &Path) -> Result<()> {
    let mut file = File::open(path).with_context(|| format!("{} cannot be opened", path.display()))?;
    file.read_to_end(into).with_context(|| format!("{} cannot be read", path.display()))?;
    Ok(())
}

fn pad(archive: &mut Vec<u8>, begin: usize, multiple: usize) {
    archive.resize(begin + (archive.len() - begin).next_multiple_of(multiple), 0);
}

/// The header of a file, as POSIX.1-1988 lays it out.
fn header(name: &[u8], file_bytes: u64) -> [u8; BLOCK_BYTES] {
    const CHECKSUM: std::ops::Range<usize> = 148..156;
    let mut header = [0; BLOCK_BYTES];
    let mut set = |at: usize, field: &[u8]| header[at..at + field.len()].copy_from_slice(field);
    set(0, &name[..name.len().min(100)]);
    set(100, b"0000644\0");
    set(108, b"0000000\0");
    set(116, b"0000000\0");
    set(124, format!("{file_bytes:011o}\0").as_bytes().get(..12).unwrap_or_default());
    set(136, b"00000000000\0");
    set(CHECKSUM.start, &[b' '; 8]);
    set(156, b"0");
    set(257, b"ustar\x0000");
    set(329, b"0000000\0");
    set(337, b"0000000\0");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[CHECKSUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program;
    use std::process::Command;

    #[test]
    fn is_what_tar_makes() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/two"), vec![7; 1300]).unwrap();
        fs::write(root.join("a/one"), "one").unwrap();
        let mut ours = Vec::new();
        append(&mut ours, &root).unwrap();
        let mut found = Vec::new();
        assert_eq!(append_found(&mut found, &root, 1 << 20).unwrap(), Taken { files: 2, ..Taken::default() });
        assert!(found == ours);
        let entries = entries(&root).unwrap();
        assert_eq!(entries, [("a/b/two".into(), 0..2048), ("a/one".into(), 2048..3072)]);
        assert!(ours[2048..].starts_with(b"./a/one") && ours[2560..].starts_with(b"one"));
        assert_eq!(ours.len() % RECORD_BYTES, 0);
        let kept = folder.path().join("ours.tar");
        fs::write(&kept, &ours).unwrap();
        let listed = program::quietly(Command::new("tar").arg("-tf").arg(&kept)).unwrap();
        assert_eq!(listed, "./a/b/two\n./a/one\n");
        let theirs = folder.path().join("theirs.tar");
        let mut tar = Command::new("tar");
        tar.arg("-cf").arg(&theirs).arg("-C").arg(&root).args(["--format=ustar", "--mtime=@0", "--mode=644"]);
        program::quietly(tar.args(["--owner=0", "--group=0", "--numeric-owner", "./a/b/two", "./a/one"])).unwrap();
        assert!(fs::read(theirs).unwrap() == ours);
    }
    #[test]
    fn what_is_too_much_or_unreadable_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["1", "2", "3"] {
            fs::write(folder.path().join(name), vec![7; 10_000]).unwrap();
        }
        let bytes_max = 15_000;
        let mut found = Vec::new();
        assert!(append_found(&mut found, folder.path(), bytes_max).unwrap().is_part);
        let kept: u64 = found.iter().map(|byte| u64::from(*byte == 7)).sum();
        assert!((13_000..15_000).contains(&kept), "{kept}");
        assert_eq!(found.len() % RECORD_BYTES, 0);
        assert!(!append_first(&mut found, &folder.path().join("1"), 10_000).unwrap());
        assert!(append_first(&mut found, &folder.path().join("1"), 9_999).unwrap());
        assert_eq!(append_found(&mut found, &folder.path().join("gone"), bytes_max).unwrap().unreadable, 1);
    }
}
