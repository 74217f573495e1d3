//! Which entries of a snapshot a restore takes: patterns that include, and patterns that exclude.

use super::patterns::{Case, PatternError, Patterns, PatternsBuilder, Verdict};
use siltstone_store::catalog::EntryPath;
use std::path::Path;

/// Chooses entries by their path in the snapshot; by default all.
///
/// With patterns that include, an entry is taken if one matches it or a directory above it. What a pattern that
/// excludes matches is left, with all it holds.
#[derive(Clone, Debug, Default)]
pub struct PathFilter {
    include: Option<Patterns>,
    exclude: Patterns,
}

/// Answer of a [`PathFilter`] on an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntrySelection {
    /// Taken.
    Selected,
    /// A directory that is not itself taken but may hold what is.
    Descend,
    /// Left; if a directory, with all it holds.
    Excluded,
}

impl PathFilter {
    /// Begins a filter.
    pub fn builder() -> PathFilterBuilder {
        PathFilterBuilder::default()
    }

    /// Tells whether everything is taken.
    pub fn takes_everything(&self) -> bool {
        self.include.is_none() && self.exclude.is_empty()
    }

    /// Tells whether only what patterns include is taken.
    pub fn chooses(&self) -> bool {
        self.include.is_some()
    }

    /// Decides on an entry; the answer does not depend on what was asked before.
    pub fn select(&self, path: &EntryPath, is_directory: bool) -> EntrySelection {
        let path = path.as_bytes();
        if !self.exclude.is_empty() && self.exclude.verdict_with_parents(path, is_directory) == Verdict::Matched {
            return EntrySelection::Excluded;
        }
        let Some(include) = &self.include else {
            return EntrySelection::Selected;
        };
        match include.verdict_with_parents(path, is_directory) {
            Verdict::Matched => EntrySelection::Selected,
            _ if is_directory => EntrySelection::Descend,
            _ => EntrySelection::Excluded,
        }
    }
}

/// Collects a [`PathFilter`].
#[derive(Default)]
pub struct PathFilterBuilder {
    include: Option<PatternsBuilder>,
    exclude: PatternsBuilder,
}

impl PathFilterBuilder {
    /// Takes what a pattern in the language of `.gitignore` matches.
    pub fn include(&mut self, pattern: &str, case: Case) -> Result<&mut Self, PatternError> {
        self.include.get_or_insert_default().pattern(pattern, case)?;
        Ok(self)
    }

    /// Takes what the patterns of a file match, one a line.
    pub fn include_file(&mut self, path: &Path, case: Case) -> Result<&mut Self, PatternError> {
        self.include.get_or_insert_default().file(path, case)?;
        Ok(self)
    }

    /// Leaves what a pattern in the language of `.gitignore` matches.
    pub fn exclude(&mut self, pattern: &str, case: Case) -> Result<&mut Self, PatternError> {
        self.exclude.pattern(pattern, case)?;
        Ok(self)
    }

    /// Leaves what the patterns of a file match, one a line.
    pub fn exclude_file(&mut self, path: &Path, case: Case) -> Result<&mut Self, PatternError> {
        self.exclude.file(path, case)?;
        Ok(self)
    }

    /// The filter collected.
    pub fn build(&self) -> Result<PathFilter, PatternError> {
        let include = self.include.as_ref().map(PatternsBuilder::build).transpose()?;
        Ok(PathFilter { include, exclude: self.exclude.build()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select(filter: &PathFilter, path: &str, is_directory: bool) -> EntrySelection {
        filter.select(&EntryPath::new(path).expect("a valid path"), is_directory)
    }

    #[test]
    fn everything_is_taken_by_default() {
        assert_eq!(select(&PathFilter::default(), "a/b", false), EntrySelection::Selected);
        assert!(PathFilter::default().takes_everything());
    }

    #[test]
    fn an_included_directory_brings_all_it_holds() {
        let mut builder = PathFilter::builder();
        builder.include("/home/u/photos", Case::Sensitive).expect("valid");
        builder.include("*.TXT", Case::Insensitive).expect("valid");
        let filter = builder.build().expect("a filter");
        assert_eq!(select(&filter, "home", true), EntrySelection::Descend);
        assert_eq!(select(&filter, "home/u/photos", true), EntrySelection::Selected);
        assert_eq!(select(&filter, "home/u/photos/2020/a.jpg", false), EntrySelection::Selected);
        assert_eq!(select(&filter, "etc/motd.txt", false), EntrySelection::Selected);
        assert_eq!(select(&filter, "etc/motd", false), EntrySelection::Excluded);
    }

    #[test]
    fn an_excluded_directory_leaves_all_it_holds() {
        let mut builder = PathFilter::builder();
        builder.exclude("cache/", Case::Sensitive).expect("valid");
        let filter = builder.build().expect("a filter");
        assert_eq!(select(&filter, "home/cache/x/y", false), EntrySelection::Excluded);
        assert_eq!(select(&filter, "home/x", false), EntrySelection::Selected);
    }
}
