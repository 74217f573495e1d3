//! A snapshot, and maybe a path in it: `latest`, `latest~2`, `40dc1520:/home/user`.

use siltstone_store::StoreError;
use siltstone_store::catalog::EntryPath;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Snapshot and path of `SNAP[:path]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SnapshotReference {
    /// Id, or `latest`, or `latest~N`.
    pub(crate) snapshot: String,
    /// The path in it, as given; `None` if there is no colon.
    pub(crate) path: Option<OsString>,
}

impl From<OsString> for SnapshotReference {
    fn from(text: OsString) -> Self {
        let mut parts = text.as_bytes().splitn(2, |&byte| byte == b':');
        let snapshot = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
        let path = parts.next().map(|path| OsString::from_vec(path.to_vec()));
        Self { snapshot, path }
    }
}

impl SnapshotReference {
    /// The entry meant; `None` for the whole snapshot.
    pub(crate) fn entry_path(&self) -> Result<Option<EntryPath>, StoreError> {
        self.path.as_deref().map_or(Ok(None), entry_path)
    }
}

/// A path as users write it (`/home/user/`, `./a//b`), as the path of an entry; `None` for the root.
///
/// # Errors
/// [`StoreError::Refused`] for a path that holds `..`.
pub(crate) fn entry_path(path: &OsStr) -> Result<Option<EntryPath>, StoreError> {
    let parts = path.as_bytes().split(|&byte| byte == b'/').filter(|part| !part.is_empty() && *part != b".");
    let joined = parts.collect::<Vec<_>>().join(&b'/');
    if joined.is_empty() { Ok(None) } else { EntryPath::new(joined).map(Some) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_colon_parts_snapshot_and_path() {
        let reference = |text: &str| SnapshotReference::from(OsString::from(text));
        assert_eq!(reference("latest").path, None);
        assert_eq!(reference("latest~1:/a:b").snapshot, "latest~1");
        assert_eq!(reference("latest~1:/a:b").path, Some("/a:b".into()));
        let bytes = SnapshotReference::from(OsString::from_vec(b"ab:/\xff".to_vec()));
        assert_eq!(bytes.path.map(OsString::into_vec), Some(b"/\xff".to_vec()));
    }

    #[test]
    fn paths_are_cleaned() {
        let clean = |text: &str| entry_path(OsStr::new(text)).map(|path| path.map(EntryPath::into_bytes));
        assert_eq!(clean("/home//user/./x/").expect("fine"), Some(b"home/user/x".to_vec()));
        assert_eq!(clean("/").expect("fine"), None);
        assert_eq!(clean("").expect("fine"), None);
        assert!(clean("/home/../etc").is_err());
    }
}
