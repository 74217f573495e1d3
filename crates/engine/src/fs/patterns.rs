//! Patterns that choose paths, in the language of `.gitignore`.
//!
//! A pattern with a leading `/` is held against the whole path from the root; any other matches at every depth, also if
//! it has a slash inside (there `.gitignore` would anchor it to its own folder, and the root of the file system is
//! never what is meant). `*` and `?` stop at slashes, `**` does not; a trailing `/` matches directories only; `!` takes
//! back what earlier patterns matched; `#` begins a comment. The last pattern that matches decides.

use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};
use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path, path::PathBuf};

/// Greatest size of a file of patterns, in bytes.
const PATTERN_FILE_BYTES_MAX: u64 = 64 << 20;

/// Rule for letters of the other case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Case {
    /// `a` is not `A`.
    Sensitive,
    /// `a` is `A`.
    Insensitive,
}

/// A pattern cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// It is no valid glob.
    #[error("pattern '{pattern}': {reason}")]
    Invalid {
        /// The pattern.
        pattern: String,
        /// Fault.
        reason: String,
    },
    /// The file of patterns cannot be read.
    #[error("file of patterns {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Collects patterns in the order in which they are to be tried.
pub(super) struct PatternsBuilder(GitignoreBuilder);

impl Default for PatternsBuilder {
    fn default() -> Self {
        let mut builder = GitignoreBuilder::new("/");
        // A pattern that cannot mean what was meant is better refused than taken by its letters.
        builder.allow_unclosed_class(false);
        Self(builder)
    }
}

impl PatternsBuilder {
    /// Adds a pattern.
    pub(super) fn pattern(&mut self, pattern: &str, case: Case) -> Result<(), PatternError> {
        let invalid =
            |reason: ignore::Error| PatternError::Invalid { pattern: pattern.into(), reason: reason.to_string() };
        self.0.case_insensitive(case == Case::Insensitive).map_err(invalid)?;
        self.0.add_line(None, &at_any_depth(pattern)).map_err(invalid)?;
        Ok(())
    }

    /// Adds the patterns of a file, one a line.
    pub(super) fn file(&mut self, path: &Path, case: Case) -> Result<(), PatternError> {
        lines_of(path)?.iter().try_for_each(|line| self.pattern(line, case))
    }

    pub(super) fn build(&self) -> Result<Patterns, PatternError> {
        let failed = |error: ignore::Error| PatternError::Invalid { pattern: String::new(), reason: error.to_string() };
        Ok(Patterns(self.0.build().map_err(failed)?))
    }
}

/// Reads a file of patterns, one a line.
pub(super) fn lines_of(path: &Path) -> Result<Vec<String>, PatternError> {
    let text = read_pattern_file(path).map_err(|source| PatternError::File { path: path.into(), source })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(&text).lines().map(str::to_owned).collect())
}

fn read_pattern_file(path: &Path) -> std::io::Result<String> {
    use std::io::Read;
    let mut text = String::new();
    std::fs::File::open(path)?.take(PATTERN_FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// Lets a pattern with an inner slash match at every depth, as one without does.
fn at_any_depth(pattern: &str) -> String {
    let (negation, glob) = pattern.strip_prefix('!').map_or(("", pattern), |glob| ("!", glob));
    let glob_names = glob.trim_end().trim_end_matches('/');
    let is_anchored = glob.starts_with(['/', '#']) || glob.starts_with("**/") || !glob_names.contains('/');
    if is_anchored { pattern.to_owned() } else { format!("{negation}**/{glob}") }
}

/// Patterns ready to be held against paths.
#[derive(Clone, Debug)]
pub(super) struct Patterns(Gitignore);

impl Default for Patterns {
    fn default() -> Self {
        Self(Gitignore::empty())
    }
}

/// Answer of the last matching pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Matched,
    TakenBack,
    NoMatch,
}

impl Patterns {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Tells whether there is a pattern that could match: not where all are comments or take back.
    pub(super) fn can_match(&self) -> bool {
        self.0.num_ignores() > 0
    }

    /// Returns the answer of the patterns on this very path (as a catalog writes it).
    pub(super) fn verdict(&self, path: &[u8], is_directory: bool) -> Verdict {
        Self::read(&self.0.matched(Path::new(OsStr::from_bytes(path)), is_directory))
    }

    /// Returns the answer of the patterns on this path or, if none, on the nearest directory above that they match.
    pub(super) fn verdict_with_parents(&self, path: &[u8], is_directory: bool) -> Verdict {
        Self::read(&self.0.matched_path_or_any_parents(Path::new(OsStr::from_bytes(path)), is_directory))
    }

    fn read<T>(found: &Match<T>) -> Verdict {
        match found {
            Match::Ignore(_) => Verdict::Matched,
            Match::Whitelist(_) => Verdict::TakenBack,
            Match::None => Verdict::NoMatch,
        }
    }
}
