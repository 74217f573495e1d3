//! Exclusion from a backup: patterns, directories that carry a mark, and files beyond a size.

use super::identity::FolderIdentity;
use super::patterns::{Case, PatternError, Patterns, PatternsBuilder, Verdict};
use std::path::Path;

/// The mark of a cache directory, <https://bford.info/cachedir/>.
const CACHE_MARK_NAME: &str = "CACHEDIR.TAG";
const CACHE_MARK_HEADER: &str = "Signature: 8a477f597d28d172789f06886806bc55";

/// Rules for what is left out; by default nothing.
///
/// Patterns are held against the path from `/` of everything at or below a source, the sources themselves included (a
/// shell may have expanded them). Directories above a source are always kept.
#[derive(Clone, Debug, Default)]
pub struct ExcludeRules {
    patterns: Patterns,
    marks: Vec<Mark>,
    file_bytes_max: Option<u64>,
    own_folders: Vec<FolderIdentity>,
}

/// A file whose presence leaves out what else its directory holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Mark {
    /// Its name.
    pub(super) name: Vec<u8>,
    /// Beginning of the file; empty if its presence is enough.
    pub(super) header: Vec<u8>,
}

impl ExcludeRules {
    /// Begins a set of rules.
    pub fn builder() -> ExcludeRulesBuilder {
        ExcludeRulesBuilder::default()
    }

    /// Adds one folder that is left out with all it holds by whatever path it is met, because the program itself writes
    /// there during the backup. A folder that does not exist changes nothing.
    #[must_use]
    pub fn without_own_folder(mut self, folder: &Path) -> Self {
        self.own_folders.extend(FolderIdentity::of(folder));
        self
    }

    pub(super) fn is_own(&self, device: u64, inode: u64) -> bool {
        self.own_folders.contains(&FolderIdentity { device, inode })
    }

    pub(super) fn matches(&self, path: &[u8], is_directory: bool) -> bool {
        !self.patterns.is_empty() && self.patterns.verdict(path, is_directory) == Verdict::Matched
    }

    pub(super) fn is_too_large(&self, file_bytes: u64) -> bool {
        self.file_bytes_max.is_some_and(|max| file_bytes > max)
    }

    pub(super) fn marks(&self) -> &[Mark] {
        &self.marks
    }
}

/// Collects [`ExcludeRules`].
#[derive(Default)]
pub struct ExcludeRulesBuilder {
    patterns: PatternsBuilder,
    marks: Vec<Mark>,
    file_bytes_max: Option<u64>,
}

impl ExcludeRulesBuilder {
    /// Leaves out what a pattern in the language of `.gitignore` matches; later patterns overrule earlier ones.
    pub fn pattern(&mut self, pattern: &str, case: Case) -> Result<&mut Self, PatternError> {
        self.patterns.pattern(pattern, case)?;
        Ok(self)
    }

    /// Leaves out what the patterns of a file match, one a line.
    pub fn pattern_file(&mut self, path: &Path, case: Case) -> Result<&mut Self, PatternError> {
        self.patterns.file(path, case)?;
        Ok(self)
    }

    /// Leaves out what a directory holds if a file of that name lies in it, given as `NAME` or `NAME:HEADER`; with a
    /// header only if the file begins with it. The directory itself and the file are kept.
    pub fn if_present(&mut self, mark: &str) -> Result<&mut Self, PatternError> {
        let (name, header) = mark.split_once(':').unwrap_or((mark, ""));
        if name.is_empty() || name.contains('/') {
            let reason = "a file name is wanted, without slashes, or NAME:HEADER".to_owned();
            return Err(PatternError::Invalid { pattern: mark.to_owned(), reason });
        }
        self.marks.push(Mark { name: name.into(), header: header.into() });
        Ok(self)
    }

    /// Leaves out what directories marked as caches by a `CACHEDIR.TAG` hold.
    pub fn caches(&mut self) -> &mut Self {
        self.marks.push(Mark { name: CACHE_MARK_NAME.into(), header: CACHE_MARK_HEADER.into() });
        self
    }

    /// Leaves out regular files of more than this many bytes.
    pub fn larger_than(&mut self, bytes: u64) -> &mut Self {
        self.file_bytes_max = Some(bytes);
        self
    }

    /// The rules collected.
    pub fn build(&self) -> Result<ExcludeRules, PatternError> {
        let patterns = self.patterns.build()?;
        Ok(ExcludeRules {
            patterns,
            marks: self.marks.clone(),
            file_bytes_max: self.file_bytes_max,
            own_folders: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(patterns: &[&str]) -> ExcludeRules {
        let mut builder = ExcludeRules::builder();
        for pattern in patterns {
            builder.pattern(pattern, Case::Sensitive).expect("a valid pattern");
        }
        builder.build().expect("rules")
    }

    #[test]
    fn patterns_match_at_every_depth_unless_anchored() {
        let rules = rules(&["*.o", "/tmp", "build/out", "cache/", "**/deep/*", "# a comment", ""]);
        for (path, is_directory) in [
            ("a.o", false),
            ("home/u/a.o", false),
            ("tmp", true),
            ("build/out", false),
            ("home/u/build/out", true),
            ("home/cache", true),
            ("x/deep/y", false),
        ] {
            assert!(rules.matches(path.as_bytes(), is_directory), "{path}");
        }
        for (path, is_directory) in [("home/tmp", true), ("home/cache", false), ("build/x/out", false), ("a.oo", false)]
        {
            assert!(!rules.matches(path.as_bytes(), is_directory), "{path}");
        }
    }

    #[test]
    fn the_last_matching_pattern_decides() {
        let rules = rules(&["*.log", "!keep/this.log"]);
        assert!(rules.matches(b"a/b.log", false));
        assert!(!rules.matches(b"a/keep/this.log", false));
    }

    #[test]
    fn case_is_a_property_of_each_pattern() {
        let mut builder = ExcludeRules::builder();
        builder.pattern("*.Tmp", Case::Sensitive).expect("valid");
        builder.pattern("*.JPG", Case::Insensitive).expect("valid");
        builder.pattern("*.Raw", Case::Sensitive).expect("valid");
        let rules = builder.build().expect("rules");
        assert!(rules.matches(b"x.jpg", false) && rules.matches(b"x.Tmp", false) && rules.matches(b"x.Raw", false));
        assert!(!rules.matches(b"x.tmp", false) && !rules.matches(b"x.raw", false));
    }

    #[test]
    fn names_that_are_no_text_can_be_matched() {
        assert!(rules(&["*.o"]).matches(b"dir\xff/a\xfe.o", false));
        assert!(rules(&["a?b"]).matches(b"a\nb", false));
    }

    #[test]
    fn bad_rules_are_refused_by_name() {
        let mut builder = ExcludeRules::builder();
        let error = builder.pattern("a[", Case::Sensitive).err().expect("no glob");
        assert!(error.to_string().contains("a["), "{error}");
        assert!(builder.if_present("a/b").is_err() && builder.if_present(":x").is_err());
        let error = builder.pattern_file(Path::new("/nonexistent/rules"), Case::Sensitive).err().expect("no file");
        assert!(error.to_string().contains("/nonexistent/rules"), "{error}");
    }

    #[test]
    fn a_file_of_patterns_is_read_line_by_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("rules");
        std::fs::write(&file, "\u{feff}# all of these\r\n*.a\r\n\r\n!b.a\n").expect("written");
        let mut builder = ExcludeRules::builder();
        builder.pattern_file(&file, Case::Sensitive).expect("read");
        let rules = builder.build().expect("rules");
        assert!(rules.matches(b"x/c.a", false) && !rules.matches(b"x/b.a", false));
    }
}
