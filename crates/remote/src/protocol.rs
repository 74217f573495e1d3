//! The protocol of `silt serve`: what the server and its clients both know of it. `docs/SERVE.md` describes it.

use serde::{Deserialize, Serialize};
use siltstone_store::SeriesId;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Path of an object, before its name.
pub const OBJECTS: &str = "/o/";
/// Path that deletes the objects named in the body, one a line.
pub const DELETE: &str = "/delete";
/// Path of a listing.
pub const LIST: &str = "/list";
/// Path of the rights of the token that asks.
pub const RIGHTS: &str = "/rights";
/// Path of the server's counters.
pub const METRICS: &str = "/metrics";

/// Objects in a page of a listing, at most.
pub const PAGE_OBJECTS_MAX: usize = 10_000;
/// Names in a request to delete, at most.
pub const DELETE_NAMES_MAX: usize = 1000;

/// A right of a token.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Right {
    /// Create objects of series, and renew leases.
    Put,
    /// List names.
    List,
    /// Read objects.
    Read,
    /// Delete objects of series.
    Forget,
    /// Create and delete what belongs to no series: the record of the repository and its key slots.
    Admin,
    /// Read the server's counters.
    Metrics,
}

impl Right {
    /// All rights.
    pub const ALL: [Self; 6] = [Self::Put, Self::List, Self::Read, Self::Forget, Self::Admin, Self::Metrics];

    /// Returns the word for it in files and on command lines.
    pub fn word(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::List => "list",
            Self::Read => "read",
            Self::Forget => "forget",
            Self::Admin => "admin",
            Self::Metrics => "metrics",
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl FromStr for Right {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::word).join(", ");
        let found = Self::ALL.into_iter().find(|right| right.word() == word);
        found.ok_or_else(|| format!("'{word}' is no right; there are {}", known()))
    }
}

/// The series that a token reaches. As text: `all`, or the identities of the series.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub enum SeriesScope {
    /// Every series, those that are made later included.
    All,
    /// These series.
    These(BTreeSet<SeriesId>),
}

impl SeriesScope {
    /// Tells whether it includes this series.
    pub fn holds(&self, series: SeriesId) -> bool {
        match self {
            Self::All => true,
            Self::These(these) => these.contains(&series),
        }
    }
}

/// The word for all series.
const ALL_SERIES: &str = "all";

impl TryFrom<Vec<String>> for SeriesScope {
    type Error = String;

    fn try_from(words: Vec<String>) -> Result<Self, String> {
        if words.as_slice() == [ALL_SERIES] {
            return Ok(Self::All);
        }
        let id = |word: &String| {
            SeriesId::from_hex(word)
                .ok_or_else(|| format!("'{word}' is no series: write 'all', or 32 digits of its id"))
        };
        Ok(Self::These(words.iter().map(id).collect::<Result<_, _>>()?))
    }
}

impl From<SeriesScope> for Vec<String> {
    fn from(scope: SeriesScope) -> Self {
        match scope {
            SeriesScope::All => vec![ALL_SERIES.to_owned()],
            SeriesScope::These(these) => these.iter().map(ToString::to_string).collect(),
        }
    }
}

/// The rights of a token: the answer to [`RIGHTS`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Granted {
    /// Name of the token.
    pub token: String,
    /// The series whose objects it reaches.
    pub series: SeriesScope,
    /// Rights on them.
    pub rights: BTreeSet<Right>,
    /// True if the place behind the server runs full, so that clients keep a reserve there.
    #[serde(default)]
    pub keeps_reserve: bool,
}

/// A page of a listing: the answer to [`LIST`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Page {
    /// Names of objects and their lengths in bytes, in the order of the names' texts.
    pub objects: Vec<(String, u64)>,
    /// True if objects come after these.
    pub has_more: bool,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_read_as_they_are_shown() {
        for right in Right::ALL {
            assert_eq!(right.to_string().parse(), Ok(right));
            assert_eq!(serde_json::to_string(&right).unwrap(), format!("\"{right}\""));
        }
        assert!("write".parse::<Right>().unwrap_err().contains("put, list, read"));
    }

    #[test]
    fn a_scope_is_all_or_identities() {
        let id = "a5".repeat(16);
        let read =
            |words: &[&str]| SeriesScope::try_from(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(read(&["all"]), Ok(SeriesScope::All));
        let one = read(&[&id]).unwrap();
        assert!(one.holds(SeriesId([0xa5; 16])) && !one.holds(SeriesId([0x5a; 16])));
        assert_eq!(Vec::from(one), std::slice::from_ref(&id));
        assert!(!read(&[]).unwrap().holds(SeriesId([0xa5; 16])), "none is none");
        for wrong in [&["all", &id][..], &["A5"], &[""]] {
            read(wrong).unwrap_err();
        }
    }
}
