//! The first backup of a series: told, with the series that it resembles, for who renames a host, moves a folder or
//! mistypes a name begins anew without meaning to.
//!
//! Names alone are compared: they lie in the record of the repository, which every command reads. Nothing is fetched.

use super::run::BackupRun;
use crate::observer::Notice;
use siltstone_store::manifest::Manifest;
use strsim::normalized_damerau_levenshtein;

/// The least likeness of two names, from 0 to 1: `laptop` and `latpop` have 0.83, `web-1` and `web-2` 0.8.
const LIKENESS_MIN: f64 = 0.8;

impl BackupRun<'_> {
    /// Tells that this backup is the first of its series, if it is. A copy is told as such.
    pub(super) fn tell_new_series(&self, manifest: &Manifest) {
        if !manifest.snapshots().is_empty() || self.original.is_some() {
            return;
        }
        let others = self.repository.series_recorded();
        let others = others.iter().filter(|(id, _)| **id != manifest.series).map(|(_, name)| name.as_str());
        let resembles = most_alike(self.series, others).map(str::to_owned);
        self.resources.observer.notice(&Notice::NewSeries { series: self.series.to_owned(), resembles });
    }
}

/// The name that is most like this one; of several the first. `None` if none is.
fn most_alike<'n>(name: &str, others: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let rated = others.map(|other| (other, likeness(name, other)));
    let alike = rated.filter(|(_, likeness)| *likeness >= LIKENESS_MIN);
    alike.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(other, _)| other)
}

/// Likeness of two names, from 0 to 1. Names of host and paths are alike whose paths are the same, or whose host is,
/// with one path within another; all others by what must be typed to make one of the other.
fn likeness(a: &str, b: &str) -> f64 {
    let typed = normalized_damerau_levenshtein(&a.to_lowercase(), &b.to_lowercase());
    let (Some((a_host, a_paths)), Some((b_host, b_paths))) = (a.split_once(":/"), b.split_once(":/")) else {
        return typed;
    };
    if a_paths == b_paths {
        // Another host: a renamed machine, before one whose name is only like it.
        return 0.95;
    }
    if a_host == b_host && share_a_path(a_paths, b_paths) {
        return 0.98;
    }
    // Hosts and folders have short names, which are soon alike, and stand for different things.
    0.0
}

/// Tells whether a path of one list is one of the other, or lies within it. The first slash of each list is cut off.
fn share_a_path(a: &str, b: &str) -> bool {
    let is_within = |inner: &str, outer: &str| {
        outer.is_empty() || inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    a.split(":/").any(|a| b.split(":/").any(|b| is_within(a, b) || is_within(b, a)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alike<'n>(name: &str, others: &[&'n str]) -> Option<&'n str> {
        most_alike(name, others.iter().copied())
    }

    #[test]
    fn a_mistyped_name_is_alike_and_another_name_is_not() {
        assert_eq!(alike("latpop", &["server", "laptop"]), Some("laptop"));
        assert_eq!(alike("Laptop", &["laptop"]), Some("laptop"));
        assert_eq!(alike("mail", &["laptop", "photos"]), None);
        assert_eq!(alike("mail", &[]), None);
    }

    #[test]
    fn a_folder_within_another_of_the_same_host_is_alike() {
        let others = ["desk:/home/me", "lap:/home/me", "desk:/srv"];
        assert_eq!(alike("desk:/home/me/work", &others), Some("desk:/home/me"));
        assert_eq!(alike("desk:/etc:/home/me", &others), Some("desk:/home/me"));
        assert_eq!(alike("desk:/", &["desk:/srv"]), Some("desk:/srv"));
        assert_eq!(alike("desk:/home/melanie", &["desk:/home/me"]), None);
    }

    #[test]
    fn the_same_paths_of_another_host_are_alike() {
        assert_eq!(alike("new:/home/me", &["old:/home/me", "old:/srv"]), Some("old:/home/me"));
        assert_eq!(alike("new:/data", &["old:/home/me"]), None);
    }
}
