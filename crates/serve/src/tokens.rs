//! Tokens: who may do what. A token is 32 random bytes, shown once; the file keeps its BLAKE3 hash, so that who reads
//! the file cannot use it. Random bytes need no slow hash.
//!
//! The file is TOML, for its owner alone. It is replaced as a whole, and looked at before each request: a token that
//! was removed stops working at once. A file that cannot be read lets nobody in.

use crate::ServeError;
use blake3::Hash;
use serde::{Deserialize, Serialize};
use siltstone_remote::protocol::{Granted, Right, SeriesScope};
use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Beginning of every token, by which scanners of secrets know one.
const PREFIX: &str = "silt_";
/// Length of the longest token that is looked at.
const TOKEN_BYTES_MAX: usize = 256;

/// A token as the file keeps it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenEntry {
    /// Name of the token, as logs show it.
    pub name: String,
    /// BLAKE3 of the token, as 64 hexadecimal digits.
    pub hash: String,
    /// The series it reaches.
    pub series: SeriesScope,
    /// Its rights.
    pub rights: BTreeSet<Right>,
}

/// The file of tokens.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenFile {
    /// The tokens, in the order of the file.
    #[serde(default, rename = "token")]
    pub tokens: Vec<TokenEntry>,
}

impl TokenFile {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ServeError::TokenFile`], [`ServeError::TokenFileOpen`] if others than its owner have rights to it,
    /// [`ServeError::TokenFileInvalid`].
    pub fn read(path: &Path) -> Result<Self, ServeError> {
        let failed = |source| ServeError::TokenFile { path: path.to_owned(), source };
        let metadata = fs::metadata(path).map_err(failed)?;
        if metadata.mode() & 0o077 != 0 {
            return Err(ServeError::TokenFileOpen { path: path.to_owned() });
        }
        let invalid = |reason: String| ServeError::TokenFileInvalid { path: path.to_owned(), reason };
        let file: Self =
            toml::from_str(&fs::read_to_string(path).map_err(failed)?).map_err(|error| invalid(error.to_string()))?;
        match file.tokens.iter().find(|entry| Hash::from_hex(&entry.hash).is_err()) {
            Some(entry) => Err(invalid(format!("the hash of '{}' is none", entry.name))),
            None => Ok(file),
        }
    }

    /// Reads a file as [`TokenFile::read`] does; one that is missing holds no tokens.
    ///
    /// # Errors
    /// As [`TokenFile::read`].
    pub fn read_or_new(path: &Path) -> Result<Self, ServeError> {
        match Self::read(path) {
            Err(ServeError::TokenFile { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(Self::default())
            }
            read => read,
        }
    }

    /// Writes the file in one step, for its owner alone.
    ///
    /// # Errors
    /// [`ServeError::TokenFile`].
    pub fn write(&self, path: &Path) -> Result<(), ServeError> {
        let failed = |source| ServeError::TokenFile { path: path.to_owned(), source };
        let text = toml::to_string(self).map_err(|error| failed(io::Error::other(error)))?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
        file.persist(path).map(drop).map_err(|error| failed(error.error))
    }

    /// Adds a token and returns it: it is kept nowhere.
    ///
    /// # Errors
    /// [`ServeError::TokenExists`].
    pub fn add(&mut self, name: &str, series: SeriesScope, rights: BTreeSet<Right>) -> Result<String, ServeError> {
        if self.tokens.iter().any(|entry| entry.name == name) {
            return Err(ServeError::TokenExists { name: name.to_owned() });
        }
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(|error| ServeError::Random(error.to_string()))?;
        let token = format!("{PREFIX}{}", Hash::from_bytes(random).to_hex());
        let hash = blake3::hash(token.as_bytes()).to_hex().to_string();
        self.tokens.push(TokenEntry { name: name.to_owned(), hash, series, rights });
        Ok(token)
    }

    /// Removes a token.
    ///
    /// # Errors
    /// [`ServeError::NoSuchToken`].
    pub fn remove(&mut self, name: &str) -> Result<(), ServeError> {
        let at = self.tokens.iter().position(|entry| entry.name == name);
        let at = at.ok_or_else(|| ServeError::NoSuchToken { name: name.to_owned() })?;
        self.tokens.remove(at);
        Ok(())
    }
}

/// The tokens of a server, as their file holds them now.
#[derive(Debug)]
pub struct Tokens {
    path: PathBuf,
    loaded: Mutex<Loaded>,
}

/// The tokens as they were read last.
#[derive(Debug)]
struct Loaded {
    version: Version,
    grants: Vec<(Hash, Arc<Granted>)>,
}

/// State of a file by which a change shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Version([i64; 4], [u64; 3]);

impl Version {
    fn of(metadata: &Metadata) -> Self {
        let times = [metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()];
        Self(times, [metadata.dev(), metadata.ino(), metadata.size()])
    }
}

impl Loaded {
    fn read(path: &Path) -> Result<Self, ServeError> {
        // The state first: what changes while it is read is read again.
        let version = version_of(path)?;
        let file = TokenFile::read(path)?;
        let grant = |entry: TokenEntry| {
            let hash = Hash::from_hex(&entry.hash).ok()?;
            let TokenEntry { name: token, series, rights, .. } = entry;
            Some((hash, Arc::new(Granted { token, series, rights, keeps_reserve: false })))
        };
        Ok(Self { version, grants: file.tokens.into_iter().filter_map(grant).collect() })
    }
}

fn version_of(path: &Path) -> Result<Version, ServeError> {
    let failed = |source| ServeError::TokenFile { path: path.to_owned(), source };
    Ok(Version::of(&fs::metadata(path).map_err(failed)?))
}

impl Tokens {
    /// Reads a file, and looks at it again whenever a token is looked for.
    ///
    /// # Errors
    /// As [`TokenFile::read`].
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, ServeError> {
        let path = path.into();
        let loaded = Mutex::new(Loaded::read(&path)?);
        Ok(Self { path, loaded })
    }

    /// Returns the rights of a token; `None` if there is none like it. Hashes are compared in constant time.
    ///
    /// # Errors
    /// As [`TokenFile::read`]: then nobody is let in.
    pub fn find(&self, token: &str) -> Result<Option<Arc<Granted>>, ServeError> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if version_of(&self.path)? != loaded.version {
            *loaded = Loaded::read(&self.path)?;
        }
        if token.len() > TOKEN_BYTES_MAX {
            return Ok(None);
        }
        let hash = blake3::hash(token.as_bytes());
        let found = loaded
            .grants
            .iter()
            .fold(None, |found, (known, granted)| if *known == hash { Some(granted) } else { found });
        Ok(found.cloned())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn file_with(names: &[&str]) -> (tempfile::TempDir, PathBuf, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        let mut file = TokenFile::read_or_new(&path).unwrap();
        let rights = BTreeSet::from([Right::Put, Right::Read]);
        let tokens = names.iter().map(|name| file.add(name, SeriesScope::All, rights.clone()).unwrap()).collect();
        file.write(&path).unwrap();
        (folder, path, tokens)
    }

    #[test]
    fn a_token_is_found_until_it_is_removed() {
        let (_folder, path, secrets) = file_with(&["one", "two"]);
        let tokens = Tokens::open(&path).unwrap();
        assert_eq!(tokens.find(&secrets[1]).unwrap().unwrap().token, "two");
        assert_eq!(tokens.find("silt_").unwrap(), None);
        assert_eq!(tokens.find(&"x".repeat(10_000)).unwrap(), None);
        let mut file = TokenFile::read(&path).unwrap();
        file.remove("two").unwrap();
        file.write(&path).unwrap();
        assert_eq!(tokens.find(&secrets[1]).unwrap(), None);
        assert_eq!(tokens.find(&secrets[0]).unwrap().unwrap().token, "one");
        assert!(matches!(file.remove("two"), Err(ServeError::NoSuchToken { .. })));
        assert!(matches!(file.add("one", SeriesScope::All, BTreeSet::new()), Err(ServeError::TokenExists { .. })));
    }

    #[test]
    fn the_file_is_for_its_owner_and_does_not_hold_the_token() {
        let (_folder, path, secrets) = file_with(&["one"]);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains(secrets[0].strip_prefix(PREFIX).unwrap()), "{text}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(Tokens::open(&path), Err(ServeError::TokenFileOpen { .. })));
    }

    #[test]
    fn a_file_that_cannot_be_read_lets_nobody_in() {
        let (_folder, path, secrets) = file_with(&["one"]);
        let tokens = Tokens::open(&path).unwrap();
        for text in ["[[token]]\nname = 'x'", "[[token]]\nname='x'\nhash='0'\nseries=['all']\nrights=[]", "x"] {
            fs::write(&path, text).unwrap();
            assert!(matches!(tokens.find(&secrets[0]), Err(ServeError::TokenFileInvalid { .. })), "{text}");
        }
        fs::remove_file(&path).unwrap();
        assert!(matches!(tokens.find(&secrets[0]), Err(ServeError::TokenFile { .. })));
    }
}
