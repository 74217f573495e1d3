//! History of a repository: what is there, held against what was seen. Pure.

use siltstone_store::repository::Repository;
use siltstone_store::series::SeriesSummary;
use siltstone_store::{SeriesId, Time};
use std::borrow::Cow;
use std::fmt;

/// Thing that has a history: a chain of commits, of which the highest number is the truth.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Subject {
    /// The record of the repository.
    Record,
    /// A series.
    Series(SeriesId),
}

impl Subject {
    /// Returns the series, if it is one.
    pub fn series(&self) -> Option<SeriesId> {
        match self {
            Self::Record => None,
            Self::Series(series) => Some(*series),
        }
    }
}

/// The newest commit of a history, as it was seen once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sighting {
    /// Subject in words, short enough for a line: a long name of a series is cut short.
    pub title: String,
    /// The commit's number.
    pub sequence: u64,
    /// Time of the commit; 1970 where that is not known.
    pub committed: Time,
    /// BLAKE3 of its object.
    pub hash: [u8; 32],
    /// The numbers that the next data and metadata chunk get; they never fall.
    pub next: [u64; 2],
}

/// A commit that is there.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) sighting: Sighting,
    /// BLAKE3 of the object before.
    pub(crate) previous: [u8; 32],
}

impl Found {
    pub(crate) fn series(of: &SeriesSummary) -> Self {
        let sighting = Sighting {
            title: format!("series '{}'", shortened(&of.name)),
            sequence: of.sequence,
            committed: Time { nanoseconds: 0, ..of.committed },
            hash: of.hash,
            next: of.next.map(|number| number.0),
        };
        Self { sighting, previous: of.previous }
    }

    pub(crate) fn record(repository: &Repository) -> Self {
        let (config, hash) = repository.record();
        let title = "the record of the repository".to_owned();
        let sighting = Sighting { title, sequence: config.sequence, committed: Time::default(), hash, next: [0; 2] };
        Self { sighting, previous: config.previous }
    }
}

/// Greatest length of a title, in bytes.
pub(crate) const TITLE_BYTES: usize = 79;
/// Greatest length of a series' name in a title, in bytes: of what the words and quotes around it leave.
const NAME_BYTES: usize = TITLE_BYTES - "series ''".len();

/// The name, or its beginning with dots.
fn shortened(name: &str) -> Cow<'_, str> {
    if name.len() <= NAME_BYTES {
        return name.into();
    }
    let kept = name.get(..name.floor_char_boundary(NAME_BYTES - "...".len())).unwrap_or_default();
    format!("{kept}...").into()
}

/// A history that is not what it was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loss {
    /// Commit that was seen.
    pub seen: Sighting,
    /// Commit that is there; `None` if nothing is.
    pub found: Option<Sighting>,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (title, seen) = (&self.seen.title, Commit(&self.seen));
        match &self.found {
            None => write!(f, "{title} is gone ({seen} was seen)"),
            Some(found) if found.sequence < self.seen.sequence => {
                write!(f, "{title} was rolled back to {} ({seen} was seen)", Commit(found))
            }
            Some(found) => {
                write!(f, "{title} was replaced: {} does not continue {seen}, which was seen", Commit(found))
            }
        }
    }
}

struct Commit<'s>(&'s Sighting);

impl fmt::Display for Commit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sighting { sequence, committed, .. } = self.0;
        write!(f, "commit {sequence}")?;
        if *committed == Time::default() { Ok(()) } else { write!(f, " of {committed}") }
    }
}

/// Tells whether what is there contradicts what was seen.
pub(crate) fn judge(seen: &Sighting, found: Option<&Found>) -> Option<Loss> {
    let loss = |found| Some(Loss { seen: seen.clone(), found });
    let Some(Found { sighting, previous }) = found else { return loss(None) };
    let has_fallen = sighting.next.iter().zip(&seen.next).any(|(found, seen)| found < seen);
    let contradicts = has_fallen
        || match sighting.sequence.checked_sub(seen.sequence) {
            None => true,
            Some(0) => sighting.hash != seen.hash,
            Some(1) => *previous != seen.hash,
            Some(_) => false,
        };
    if contradicts { loss(Some(sighting.clone())) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_fits_into_a_title_and_says_that_it_goes_on() {
        assert_eq!(shortened("laptop:/home"), "laptop:/home");
        assert_eq!(shortened(&"x".repeat(NAME_BYTES)), "x".repeat(NAME_BYTES));
        let long = shortened(&"\u{e9}".repeat(60)).into_owned();
        assert!(long.ends_with("\u{e9}...") && long.len() <= NAME_BYTES, "{long}");
    }
}
