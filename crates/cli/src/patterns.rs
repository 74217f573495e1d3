//! Options that choose by pattern or by property, and the rules they make.

use crate::error::CliError;
use crate::parse::{Size, TagList};
use clap::Args;
use siltstone_engine::fs::{Case, ExcludeRules, PathFilter, PatternError};
use siltstone_engine::snapshots::SnapshotFilter;
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
    /// Whether any snapshot passes.
    pub(crate) fn is_empty(&self) -> bool {
        self.filter().hosts.is_empty() && self.tags.is_empty() && self.paths.is_empty() && self.series.is_empty()
    }

    /// The filter; `$SILT_HOST` stands in where no host is given, and an empty host switches it off.
    pub(crate) fn filter(&self) -> SnapshotFilter {
        let variable = || crate::environment::variable("SILT_HOST").map(|host| host.to_string_lossy().into_owned());
        let hosts: Vec<String> =
            if self.hosts.is_empty() { variable().into_iter().collect() } else { self.hosts.clone() };
        SnapshotFilter {
            hosts: hosts.into_iter().filter(|host| !host.is_empty()).collect(),
            tags: self.tags.iter().map(|list| list.0.clone()).collect(),
            paths: self.paths.iter().map(|path| absolute(path)).collect(),
            series: self.series.clone(),
            deleted: false,
        }
    }
}

fn absolute(path: &Path) -> Vec<u8> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // Comparing by components takes `/home/` for `/home`.
    let clean: PathBuf = path.components().collect();
    OsString::from(clean).into_vec()
}

/// What a backup leaves out.
#[derive(Args, Debug, Default)]
pub(crate) struct ExcludeArgs {
    /// Leave out what matches a pattern, in the language of .gitignore (may be repeated)
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
    /// The rules these options make.
    pub(crate) fn rules(&self) -> Result<ExcludeRules, CliError> {
        self.build().map_err(CliError::Pattern)
    }

    fn build(&self) -> Result<ExcludeRules, PatternError> {
        let mut rules = ExcludeRules::builder();
        for (patterns, case) in [(&self.exclude, Case::Sensitive), (&self.iexclude, Case::Insensitive)] {
            patterns.iter().try_for_each(|pattern| rules.pattern(pattern, case).map(drop))?;
        }
        for (files, case) in [(&self.exclude_file, Case::Sensitive), (&self.iexclude_file, Case::Insensitive)] {
            files.iter().try_for_each(|file| rules.pattern_file(file, case).map(drop))?;
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

/// What a restore takes.
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
    /// Leave what matches a pattern (may be repeated)
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

impl SelectArgs {
    /// The filter these options make.
    pub(crate) fn filter(&self) -> Result<PathFilter, CliError> {
        self.build().map_err(CliError::Pattern)
    }

    fn build(&self) -> Result<PathFilter, PatternError> {
        let mut filter = PathFilter::builder();
        for (patterns, case) in [(&self.include, Case::Sensitive), (&self.iinclude, Case::Insensitive)] {
            patterns.iter().try_for_each(|pattern| filter.include(pattern, case).map(drop))?;
        }
        for (files, case) in [(&self.include_file, Case::Sensitive), (&self.iinclude_file, Case::Insensitive)] {
            files.iter().try_for_each(|file| filter.include_file(file, case).map(drop))?;
        }
        for (patterns, case) in [(&self.exclude, Case::Sensitive), (&self.iexclude, Case::Insensitive)] {
            patterns.iter().try_for_each(|pattern| filter.exclude(pattern, case).map(drop))?;
        }
        for (files, case) in [(&self.exclude_file, Case::Sensitive), (&self.iexclude_file, Case::Insensitive)] {
            files.iter().try_for_each(|file| filter.exclude_file(file, case).map(drop))?;
        }
        filter.build()
    }
}
