//! The sources of a backup as one tree: made absolute, cleaned, doubles and sources inside sources merged.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{CString, OsStr},
    io,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

/// A source as it is recorded: absolute, and cleaned by its letters alone (`a/../b` is `b`, whatever `a` is), so that
/// naming a folder in another way does not begin another series.
///
/// # Errors
/// A relative path while the working directory is gone, an empty path, or one with a NUL byte.
pub fn absolute_source(path: &Path) -> io::Result<PathBuf> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.is_empty() || bytes.contains(&0) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "an empty path, or one with a NUL byte"));
    }
    let whole = if path.is_absolute() { path.to_owned() } else { std::env::current_dir()?.join(path) };
    let mut names: Vec<&[u8]> = Vec::new();
    for name in whole.as_os_str().as_bytes().split(|&byte| byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    let cleaned = [b"/", names.join(&b'/').as_slice()].concat();
    Ok(PathBuf::from(std::ffi::OsString::from_vec(cleaned)))
}

/// One directory on the way to sources, or a source.
#[derive(Default, Debug)]
pub(super) struct SourceNode {
    /// True if everything below is backed up; then it has no children.
    pub(super) is_source: bool,
    /// Entries below, by name, in catalog order.
    pub(super) children: BTreeMap<CString, SourceNode>,
}

/// All sources.
#[derive(Default, Debug)]
pub(super) struct SourceTree {
    /// The node of `/`.
    pub(super) root: SourceNode,
    /// Sources that lie inside others, as catalog paths: file system borders do not hold them back, and one that the
    /// walk does not come to is missing.
    pub(super) nested: BTreeSet<Vec<u8>>,
}

impl SourceTree {
    /// Merges sources.
    ///
    /// # Errors
    /// As [`absolute_source`].
    pub(super) fn new(sources: &[PathBuf]) -> io::Result<Self> {
        let mut cleaned = sources.iter().map(|path| absolute_source(path)).collect::<io::Result<Vec<_>>>()?;
        // An outer source sorts before what lies inside it.
        cleaned.sort_unstable();
        cleaned.dedup();
        let mut tree = Self::default();
        for path in &cleaned {
            tree.insert(path.as_os_str());
        }
        Ok(tree)
    }

    fn insert(&mut self, path: &OsStr) {
        let bytes = path.as_bytes();
        let names = bytes.split(|&byte| byte == b'/').filter(|name| !name.is_empty());
        let mut node = &mut self.root;
        for name in names {
            if node.is_source {
                self.nested.insert(bytes.strip_prefix(b"/").unwrap_or(bytes).to_vec());
                return;
            }
            // NUL was refused before.
            node = node.children.entry(CString::new(name).unwrap_or_default()).or_default();
        }
        node.is_source = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(path: &str) -> String {
        absolute_source(Path::new(path)).expect("a path").to_string_lossy().into_owned()
    }

    #[test]
    fn sources_are_cleaned_by_their_letters() {
        assert_eq!(cleaned("/a//b/./c/../d/"), "/a/b/d");
        assert_eq!(cleaned("/../.."), "/");
        let here = std::env::current_dir().expect("a working directory");
        assert_eq!(PathBuf::from(cleaned("x/../y")), here.join("y"));
        assert_eq!(PathBuf::from(cleaned(".")), here);
        assert!(absolute_source(Path::new("")).is_err());
    }

    #[test]
    fn doubles_and_sources_inside_sources_merge() {
        let sources = ["/a/b", "/a/b-c", "/a/b/c", "/a/./b", "/d"].map(PathBuf::from);
        let tree = SourceTree::new(&sources).expect("a tree");
        let a = &tree.root.children[c"a"];
        assert!(!a.is_source && a.children[c"b"].is_source && a.children[c"b-c"].is_source);
        assert!(a.children[c"b"].children.is_empty());
        assert_eq!(tree.nested.iter().collect::<Vec<_>>(), [b"a/b/c"]);
        assert!(tree.root.children[c"d"].is_source);
    }

    #[test]
    fn the_root_swallows_everything() {
        let tree = SourceTree::new(&["/".into(), "/x".into()]).expect("a tree");
        assert!(tree.root.is_source && tree.root.children.is_empty() && tree.nested.contains(&b"x"[..]));
    }
}
