//! Options that choose by pattern or by property, and the rules they make.

use crate::error::CliError;
use crate::parse::{Size, TagList};
use clap::Args;
use siltstone_engine::fs::{Case, ExcludeRules, PathFilter, PathFilterBuilder, PatternError};
use siltstone_engine::snapshots::SnapshotFilter;
use siltstone_store::catalog::EntryPath;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Which snapshots a command is about.
#[derive(Args, Debug, Default)]
pub(crate) struct FilterArgs {
    /// Only snapshots of this host (may be repeated) [default: $SILT_HOST]
    #[arg(short = 'H', long = "host", value_name = "HOST")]
    pub(crate) hosts: Vec<String>,
    /// Only snapshots with all of these tags, `tag[,tag,...]` (repeated: with those of any)
    #[arg(long = "tag", value_name = "TAGS")]
    pub(crate) tags: Vec<TagList>,
    /// Only snapshots of this absolute path (repeated: of all of them)
    #[arg(long = "path", value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Only snapshots of this series (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub(crate) series: Vec<String>,
}

impl FilterArgs {
    /// The filter; `$SILT_HOST` stands in where no host is given, and an empty host switches it off.
    pub(crate) fn filter(&self) -> SnapshotFilter {
        let variable = || crate::environment::variable("SILT_HOST").map(|host| host.to_string_lossy().into_owned());
        let hosts: Vec<String> =
            if self.hosts.is_empty() { variable().into_iter().collect() } else { self.hosts.clone() };
        SnapshotFilter::default()
            .with_hosts(hosts.into_iter().filter(|host| !host.is_empty()).collect())
            .with_tags(self.tags.iter().map(|list| list.0.clone()).collect())
            .with_paths(self.paths.iter().map(|path| absolute(path)).collect())
            .with_series(self.series.clone())
    }
}

fn absolute(path: &Path) -> Vec<u8> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // Comparing by components takes `/home/` for `/home`.
    let clean: PathBuf = path.components().collect();
    OsString::from(clean).into_vec()
}

/// Options that say which files a backup leaves out.
#[derive(Args, Debug, Default)]
pub(crate) struct ExcludeArgs {
    #[command(flatten)]
    pub(crate) leave: LeaveArgs,
    /// Leave out the content of directories that hold a file of this name, if it begins with the header given
    #[arg(long, value_name = "NAME[:HEADER]")]
    pub(crate) exclude_if_present: Vec<String>,
    /// Leave out the content of cache directories, marked by a CACHEDIR.TAG file <https://bford.info/cachedir/>
    #[arg(long)]
    pub(crate) exclude_caches: bool,
    /// Leave out files larger than this
    #[arg(long, value_name = "SIZE")]
    pub(crate) exclude_larger_than: Option<Size>,
}

impl ExcludeArgs {
    /// Tells whether nothing is to be left out.
    pub(crate) fn is_empty(&self) -> bool {
        self.leave.is_empty()
            && self.exclude_if_present.is_empty()
            && !self.exclude_caches
            && self.exclude_larger_than.is_none()
    }

    /// The rules these options make.
    pub(crate) fn rules(&self) -> Result<ExcludeRules, CliError> {
        self.build().map_err(CliError::Pattern)
    }

    fn build(&self) -> Result<ExcludeRules, PatternError> {
        let mut rules = ExcludeRules::builder();
        for (pattern, case) in with_case(&self.leave.exclude, &self.leave.iexclude) {
            rules.pattern(pattern, case)?;
        }
        for (file, case) in with_case(&self.leave.exclude_file, &self.leave.iexclude_file) {
            rules.pattern_file(file, case)?;
        }
        self.exclude_if_present.iter().try_for_each(|mark| rules.if_present(mark).map(drop))?;
        if self.exclude_caches {
            rules.caches();
        }
        if let Some(Size(bytes)) = self.exclude_larger_than {
            rules.larger_than(bytes);
        }
        rules.build()
    }
}

/// Options that say which files a restore takes.
#[derive(Args, Debug, Default)]
pub(crate) struct SelectArgs {
    /// Restore only what matches a pattern, in the language of .gitignore (may be repeated)
    #[arg(short, long, value_name = "PATTERN")]
    pub(crate) include: Vec<String>,
    /// As --include, whatever the case of letters
    #[arg(long, value_name = "PATTERN")]
    pub(crate) iinclude: Vec<String>,
    /// Read include patterns from a file, one per line (may be repeated)
    #[arg(long, value_name = "FILE")]
    pub(crate) include_file: Vec<PathBuf>,
    /// As --include-file, whatever the case of letters
    #[arg(long, value_name = "FILE")]
    pub(crate) iinclude_file: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) leave: LeaveArgs,
}

/// Options that leave files out by pattern.
#[derive(Args, Debug, Default)]
pub(crate) struct LeaveArgs {
    /// Leave out what matches a pattern, in the language of .gitignore (may be repeated)
    ///
    /// A leading / is the root of the file system; other patterns match at every depth, those with a slash inside too.
    #[arg(short, long, value_name = "PATTERN")]
    pub(crate) exclude: Vec<String>,
    /// As --exclude, whatever the case of letters
    #[arg(long, value_name = "PATTERN")]
    pub(crate) iexclude: Vec<String>,
    /// Read exclude patterns from a file, one per line (may be repeated)
    #[arg(long, value_name = "FILE")]
    pub(crate) exclude_file: Vec<PathBuf>,
    /// As --exclude-file, whatever the case of letters
    #[arg(long, value_name = "FILE")]
    pub(crate) iexclude_file: Vec<PathBuf>,
}

impl LeaveArgs {
    /// Tells whether nothing is to be left out.
    pub(crate) fn is_empty(&self) -> bool {
        self.exclude.is_empty()
            && self.iexclude.is_empty()
            && self.exclude_file.is_empty()
            && self.iexclude_file.is_empty()
    }

    /// The filter these options make.
    pub(crate) fn filter(&self) -> Result<PathFilter, CliError> {
        let mut filter = PathFilter::builder();
        self.add_to(&mut filter).and_then(|()| filter.build()).map_err(CliError::Pattern)
    }

    fn add_to(&self, filter: &mut PathFilterBuilder) -> Result<(), PatternError> {
        for (pattern, case) in with_case(&self.exclude, &self.iexclude) {
            filter.exclude(pattern, case)?;
        }
        for (file, case) in with_case(&self.exclude_file, &self.iexclude_file) {
            filter.exclude_file(file, case)?;
        }
        Ok(())
    }
}

impl SelectArgs {
    /// The filter these options make, and what was picked beside them.
    pub(crate) fn filter(&self, picked: Vec<EntryPath>) -> Result<PathFilter, CliError> {
        self.build(picked).map_err(CliError::Pattern)
    }

    fn build(&self, picked: Vec<EntryPath>) -> Result<PathFilter, PatternError> {
        let mut filter = PathFilter::builder();
        for path in picked {
            filter.include_path(path);
        }
        for (pattern, case) in with_case(&self.include, &self.iinclude) {
            filter.include(pattern, case)?;
        }
        for (file, case) in with_case(&self.include_file, &self.iinclude_file) {
            filter.include_file(file, case)?;
        }
        self.leave.add_to(&mut filter)?;
        filter.build()
    }
}

/// Both kinds of patterns, or of files of patterns, each with what it makes of the case of letters.
fn with_case<'a, T>(sensitive: &'a [T], insensitive: &'a [T]) -> impl Iterator<Item = (&'a T, Case)> {
    let with = |case| move |one: &'a T| (one, case);
    sensitive.iter().map(with(Case::Sensitive)).chain(insensitive.iter().map(with(Case::Insensitive)))
}
