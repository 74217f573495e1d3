//! Which entries of a snapshot a restore takes: patterns that include, and patterns that exclude.

use super::patterns::{Case, PatternError, Patterns, PatternsBuilder, Verdict, lines_of};
use siltstone_store::catalog::EntryPath;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Chooses entries by their path in the snapshot; by default all.
///
/// With patterns that include, an entry is taken if one matches it or a directory above it. What a pattern that
/// excludes matches is left, with all it holds.
#[derive(Clone, Debug, Default)]
pub struct PathFilter {
    include: Option<Patterns>,
    /// Each pattern that includes, by itself.
    each: Vec<Arc<Single>>,
    /// Entries that are included by their paths.
    picked: BTreeSet<EntryPath>,
    exclude: Patterns,
}

/// A pattern that includes: as it was written, and ready to be held against paths.
#[derive(Debug)]
struct Single {
    text: String,
    pattern: Patterns,
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
        !self.chooses() && self.exclude.is_empty()
    }

    /// Tells whether only what patterns or paths include is taken.
    pub fn chooses(&self) -> bool {
        self.include.is_some() || !self.picked.is_empty()
    }

    /// Begins a walk, of all or of what is at or below a path, that remembers which patterns matched.
    pub(crate) fn selector(&self, below: Option<&EntryPath>) -> Selector<'_> {
        let mut selector = Selector { filter: self, unmatched: self.each.iter().map(|single| &**single).collect() };
        let mut above = below.and_then(EntryPath::parent);
        while let Some(path) = above {
            selector.note(&path, true);
            above = path.parent();
        }
        selector
    }

    /// Decides on an entry; the answer does not depend on what was asked before.
    pub fn select(&self, path: &EntryPath, is_directory: bool) -> EntrySelection {
        let matches = |patterns: &Patterns| {
            !patterns.is_empty() && patterns.verdict_with_parents(path.as_bytes(), is_directory) == Verdict::Matched
        };
        if matches(&self.exclude) {
            return EntrySelection::Excluded;
        }
        if !self.chooses() || self.include.as_ref().is_some_and(matches) || self.is_picked(path) {
            EntrySelection::Selected
        } else if is_directory {
            EntrySelection::Descend
        } else {
            EntrySelection::Excluded
        }
    }

    /// Tells whether it, or a directory above it, is included by its path.
    fn is_picked(&self, path: &EntryPath) -> bool {
        if self.picked.is_empty() {
            return false;
        }
        let mut at = Some(path.clone());
        while let Some(path) = at {
            if self.picked.contains(&path) {
                return true;
            }
            at = path.parent();
        }
        false
    }
}

/// A filter in use, with the patterns that include and have matched nothing that is taken so far.
///
/// An entry that is taken is held against each of them: typing errors are few.
pub(crate) struct Selector<'f> {
    filter: &'f PathFilter,
    unmatched: Vec<&'f Single>,
}

impl<'f> Selector<'f> {
    /// Decides on an entry. The directories above it came before it.
    pub(crate) fn select(&mut self, path: &EntryPath, is_directory: bool) -> EntrySelection {
        let selection = self.filter.select(path, is_directory);
        if selection == EntrySelection::Selected {
            self.note(path, is_directory);
        }
        selection
    }

    /// Returns the patterns that matched nothing, as they were written.
    pub(crate) fn unmatched(&self) -> impl Iterator<Item = &'f str> {
        self.unmatched.iter().map(|single| single.text.as_str())
    }

    fn note(&mut self, path: &EntryPath, is_directory: bool) {
        let matches = |single: &Single| single.pattern.verdict(path.as_bytes(), is_directory) == Verdict::Matched;
        self.unmatched.retain(|single| !matches(single));
    }
}

/// Collects a [`PathFilter`].
#[derive(Default)]
pub struct PathFilterBuilder {
    include: Option<PatternsBuilder>,
    each: Vec<Arc<Single>>,
    picked: BTreeSet<EntryPath>,
    exclude: PatternsBuilder,
}

impl PathFilterBuilder {
    /// Takes what a pattern in the language of `.gitignore` matches.
    pub fn include(&mut self, pattern: &str, case: Case) -> Result<&mut Self, PatternError> {
        self.include.get_or_insert_default().pattern(pattern, case)?;
        let mut single = PatternsBuilder::default();
        single.pattern(pattern, case)?;
        let single = Single { text: pattern.to_owned(), pattern: single.build()? };
        if single.pattern.can_match() {
            self.each.push(Arc::new(single));
        }
        Ok(self)
    }

    /// Takes the entry at this path; of a directory, all it holds.
    pub fn include_path(&mut self, path: EntryPath) -> &mut Self {
        self.picked.insert(path);
        self
    }

    /// Takes what the patterns of a file match, one a line.
    pub fn include_file(&mut self, path: &Path, case: Case) -> Result<&mut Self, PatternError> {
        // A list without a pattern takes nothing.
        self.include.get_or_insert_default();
        for line in lines_of(path)? {
            self.include(&line, case)?;
        }
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
        let (each, picked) = (self.each.clone(), self.picked.clone());
        Ok(PathFilter { include, each, picked, exclude: self.exclude.build()? })
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
    fn a_path_takes_that_entry_alone_whatever_characters_it_has() {
        let mut builder = PathFilter::builder();
        for path in ["a/[x]*", "b"] {
            builder.include_path(EntryPath::new(path).expect("a valid path"));
        }
        builder.exclude("*.tmp", Case::Sensitive).expect("valid");
        let filter = builder.build().expect("a filter");
        assert!(filter.chooses() && !filter.takes_everything());
        assert_eq!(select(&filter, "a", true), EntrySelection::Descend);
        assert_eq!(select(&filter, "a/[x]*", false), EntrySelection::Selected);
        assert_eq!(select(&filter, "a/x1", false), EntrySelection::Excluded);
        assert_eq!(select(&filter, "b/c/d", false), EntrySelection::Selected);
        assert_eq!(select(&filter, "b/c/d.tmp", false), EntrySelection::Excluded);
        assert_eq!(select(&filter, "bb", false), EntrySelection::Excluded);
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
