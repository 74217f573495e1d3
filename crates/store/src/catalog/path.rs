//! Paths of a catalog: relative, made of bytes, and ordered as a depth-first walk meets them.
//!
//! The order compares paths as if `/` were the smallest byte. So a directory stands right before what it holds and
//! everything beneath it stands together: a subtree is one stretch of the catalog, found by one seek and left by one
//! comparison.

use crate::error::StoreError;
use std::{cmp::Ordering, fmt};

/// Greatest length of a path, in bytes. Linux gives no bound (directories are reached one by one); this one keeps a
/// catalog node that holds a few of them small.
pub const PATH_BYTES_MAX: usize = 1 << 20;

/// A path below the catalog's root: components joined by `/`, none of them empty, `.` or `..`, and no NUL byte.
///
/// The root itself has no entry. Names are bytes: they need not be UTF-8.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct EntryPath(Vec<u8>);

impl EntryPath {
    /// Takes the bytes of a path.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if a component is empty, `.`, `..` or holds a NUL; [`StoreError::Limit`] beyond
    /// [`PATH_BYTES_MAX`].
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, StoreError> {
        let bytes = bytes.into();
        match Self::fault(&bytes) {
            None => Ok(Self(bytes)),
            Some(PathFault::TooLong) => {
                let (found, limit) = (bytes.len() as u64, PATH_BYTES_MAX as u64);
                Err(StoreError::limit("catalog path", "length in bytes", found, limit))
            }
            Some(fault) => Err(StoreError::Refused {
                what: format!("catalog path \"{}\"", bytes.escape_ascii()),
                reason: fault.reason().to_owned(),
            }),
        }
    }

    /// The bytes of the path.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Gives the bytes back.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// The last component.
    pub fn name(&self) -> &[u8] {
        self.0.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
    }

    /// The components, from the root down.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|&byte| byte == b'/')
    }

    /// The path of the directory that holds this entry; `None` directly below the root.
    pub fn parent(&self) -> Option<Self> {
        let slash = self.0.iter().rposition(|&byte| byte == b'/')?;
        self.0.get(..slash).map(|bytes| Self(bytes.to_vec()))
    }

    /// The path of an entry of this directory.
    ///
    /// # Errors
    /// As [`EntryPath::new`]; a name that holds a `/` is refused too.
    pub fn join(&self, name: &[u8]) -> Result<Self, StoreError> {
        if name.contains(&b'/') {
            return Err(StoreError::Refused {
                what: format!("catalog name \"{}\"", name.escape_ascii()),
                reason: "a name holds no slash".to_owned(),
            });
        }
        Self::new([self.as_bytes(), b"/", name].concat())
    }

    /// Tells whether the entry lies below `directory`, at any depth; not so for the directory itself.
    pub fn is_beneath(&self, directory: &Self) -> bool {
        self.0.strip_prefix(directory.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'/'))
    }

    /// Compares the bytes of two paths as the paths are compared, without a look at whether they are any.
    pub fn compare_bytes(left: &[u8], right: &[u8]) -> Ordering {
        let shared = shared_bytes(left, right);
        let rank = |byte: Option<&u8>| byte.map(|&byte| if byte == b'/' { 0 } else { byte });
        rank(left.get(shared)).cmp(&rank(right.get(shared)))
    }

    /// Returns the fault that makes these bytes no path, if there is one.
    fn fault(bytes: &[u8]) -> Option<PathFault> {
        if bytes.len() > PATH_BYTES_MAX {
            return Some(PathFault::TooLong);
        }
        if bytes.contains(&0) {
            return Some(PathFault::Nul);
        }
        bytes.split(|&byte| byte == b'/').find_map(|name| match name {
            b"" => Some(PathFault::EmptyName),
            b"." | b".." => Some(PathFault::DotName),
            _ => None,
        })
    }

    /// Takes bytes from a catalog node; the reason if they are no path.
    pub(super) fn decode(bytes: Vec<u8>) -> Result<Self, &'static str> {
        Self::fault(&bytes).map_or(Ok(Self(bytes)), |fault| Err(fault.reason()))
    }
}

#[derive(Clone, Copy)]
enum PathFault {
    TooLong,
    Nul,
    EmptyName,
    DotName,
}

impl PathFault {
    fn reason(self) -> &'static str {
        match self {
            Self::TooLong => "the path is longer than the limit",
            Self::Nul => "a path holds no NUL byte",
            Self::EmptyName => "a component of the path is empty",
            Self::DotName => "a component of the path is \".\" or \"..\"",
        }
    }
}

/// Counts the leading bytes that two byte strings have in common.
pub(super) fn shared_bytes(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

impl Ord for EntryPath {
    fn cmp(&self, other: &Self) -> Ordering {
        Self::compare_bytes(&self.0, &other.0)
    }
}

impl PartialOrd for EntryPath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for EntryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for EntryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EntryPath(\"{}\")", self.0.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_path() -> impl Strategy<Value = EntryPath> {
        let bytes =
            prop::collection::vec(prop_oneof![Just(b'/'), Just(b'.'), Just(b'a'), Just(1u8), Just(0xffu8)], 1..9);
        bytes.prop_filter_map("no path", |bytes| EntryPath::new(bytes).ok())
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_the_components(left in any_path(), right in any_path()) {
            prop_assert_eq!(left.cmp(&right), left.components().cmp(right.components()));
            let beneath = left.components().count() > right.components().count()
                && left.components().zip(right.components()).all(|(left, right)| left == right);
            prop_assert_eq!(left.is_beneath(&right), beneath);
        }

        #[test]
        fn a_path_is_its_parent_and_its_name(path in any_path()) {
            let again = path.parent().map_or_else(|| EntryPath::new(path.name()), |parent| parent.join(path.name()));
            prop_assert_eq!(again.unwrap(), path);
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for bytes in ["", "/", "/a", "a/", "a//b", ".", "..", "a/./b", "../a", "a/..", "a\0b"] {
            assert!(EntryPath::new(bytes).is_err(), "{bytes:?}");
        }
        for bytes in ["a", "...", ".a", "a/..b", "a\nb", "a b/\u{1}"] {
            assert!(EntryPath::new(bytes).is_ok(), "{bytes:?}");
        }
        assert!(EntryPath::new(vec![b'a'; PATH_BYTES_MAX]).is_ok());
        assert!(matches!(EntryPath::new(vec![b'a'; PATH_BYTES_MAX + 1]), Err(StoreError::Limit { .. })));
        assert!(EntryPath::new("a").unwrap().join(b"b/c").is_err());
    }
}
