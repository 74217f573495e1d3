//! `silt find`: looks for files in all snapshots.

use crate::choose::{find_all_or_list, without};
use crate::context::Context;
use crate::error::{CliError, Done};
use crate::output::buffered;
use crate::parse::{Moment, SizeRange};
use crate::patterns::FilterArgs;
use crate::render::{EntryJson, Path, counted, local, long_line, visible};
use crate::repository::open;
use clap::{Args, ValueEnum};
use glob::{MatchOptions, Pattern};
use serde::Serialize;
use siltstone_engine::EngineError;
use siltstone_engine::find::{Found, find};
use siltstone_engine::snapshots::SnapshotView;
use siltstone_store::SeriesId;
use siltstone_store::catalog::{Content, Entry, EntryPath, Metadata};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Look for files in snapshots
///
/// A pattern matches names: `*.txt`, `report?`. One with a slash matches paths: `/etc/*.conf`, `src/**/mod.rs`.
#[derive(Args, Debug)]
pub(crate) struct FindArgs {
    /// Patterns; whatever matches any of them is found
    #[arg(value_name = "PATTERN", required = true)]
    patterns: Vec<Pattern>,
    /// Take capital and small letters as equal
    #[arg(short, long)]
    ignore_case: bool,
    /// Only of this type
    #[arg(long, value_name = "TYPE")]
    r#type: Option<Kind>,
    /// Only files of at least (+) or at most (-) this size: +10M, -1K (may be repeated)
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    size: Vec<SizeRange>,
    /// Only what was modified at this time or later
    #[arg(short = 'O', long, value_name = "TIME")]
    oldest: Option<Moment>,
    /// Only what was modified at this time or before
    #[arg(short = 'N', long, value_name = "TIME")]
    newest: Option<Moment>,
    /// Look in this snapshot only (may be repeated) [default: all]
    #[arg(short, long = "snapshot", value_name = "ID")]
    snapshots: Vec<String>,
    /// Show mode, owner, size and time
    #[arg(short, long)]
    long: bool,
    #[command(flatten)]
    filter: FilterArgs,
}

/// Types of entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Kind {
    #[value(alias = "f")]
    File,
    #[value(alias = "d")]
    Dir,
    #[value(alias = "l")]
    Symlink,
    Other,
}

/// Entries found in one snapshot, in restic's shape.
#[derive(Serialize)]
struct FoundJson<'f> {
    matches: Vec<EntryJson>,
    hits: usize,
    snapshot: String,
    series: &'f str,
}

pub(crate) fn run(arguments: &FindArgs, context: &Context) -> Result<Done, CliError> {
    let repository = open(context)?;
    let filter = arguments.filter.filter();
    let (views, done) = find_all_or_list(&repository, &arguments.snapshots, &filter, context.output)?;
    let mut shown = Shown { output: buffered(), arguments, json: context.output.json, versions: Versions::default() };
    shown.begin().map_err(CliError::Output)?;
    let mut failed = None;
    let is_wanted = |entry: &Entry| arguments.matches(entry);
    let damage = find(&repository, &views, &is_wanted, &mut |view, found| {
        shown.add(view, found).map_err(|error| {
            failed = Some(error);
            EngineError::Interrupted
        })
    });
    if let Some(error) = failed {
        return Err(CliError::Output(error));
    }
    let damage = damage?;
    let is_any = shown.end().map_err(CliError::Output)?;
    if !is_any {
        context.output.report("nothing matches")?;
    }
    Ok(done.and(without(&damage, context.output)))
}

impl FindArgs {
    fn matches(&self, entry: &Entry) -> bool {
        let modified = entry.metadata.modified;
        self.patterns.iter().any(|pattern| matches_path(pattern, &entry.path, !self.ignore_case))
            && self.r#type.is_none_or(|kind| kind == kind_of(entry))
            && self.size.iter().all(|range| matches!(entry.content, Content::File { size, .. } if range.holds(size)))
            && self.oldest.is_none_or(|oldest| modified >= oldest.0)
            && self.newest.is_none_or(|newest| modified <= newest.0)
    }
}

/// Tells whether a pattern matches the name, or, where it has a slash, the path or the end of it.
fn matches_path(pattern: &Pattern, path: &EntryPath, case_sensitive: bool) -> bool {
    let options = MatchOptions { case_sensitive, require_literal_separator: true, require_literal_leading_dot: false };
    let matches = |bytes: &[u8]| pattern.matches_with(&String::from_utf8_lossy(bytes), options);
    let text = pattern.as_str();
    if text.starts_with('/') {
        return matches(&[b"/", path.as_bytes()].concat());
    }
    if !text.contains('/') {
        return matches(path.name());
    }
    let bytes = path.as_bytes();
    let begins = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at + 1);
    std::iter::once(0).chain(begins).any(|begin| matches(bytes.get(begin..).unwrap_or_default()))
}

fn kind_of(entry: &Entry) -> Kind {
    match entry.content {
        Content::Directory => Kind::Dir,
        Content::File { .. } => Kind::File,
        Content::Symlink { .. } => Kind::Symlink,
        _ => Kind::Other,
    }
}

/// Prints what is found: as JSON snapshot by snapshot, as text with the first and the last snapshot that has it.
struct Shown<'s, W> {
    output: W,
    arguments: &'s FindArgs,
    json: bool,
    versions: Versions,
}

impl<W: Write> Shown<'_, W> {
    fn begin(&mut self) -> io::Result<()> {
        if self.json { write!(self.output, "[") } else { Ok(()) }
    }

    fn add(&mut self, view: &SnapshotView, found: &Found) -> io::Result<()> {
        if !self.json {
            if self.versions.series.is_some_and(|series| series != view.series) {
                self.print_versions()?;
            }
            self.versions.add(view, found);
            return Ok(());
        }
        if found.is_empty() {
            return Ok(());
        }
        let matches: Vec<EntryJson> = found.values().map(EntryJson::from).collect();
        let (hits, snapshot, series) = (matches.len(), view.snapshot.id.to_string(), view.series_name.as_str());
        self.output.write_all(if self.versions.is_any { b"," } else { b"" })?;
        self.versions.is_any = true;
        serde_json::to_writer(&mut self.output, &FoundJson { matches, hits, snapshot, series }).map_err(io::Error::from)
    }

    /// Ends the output; tells whether anything was found.
    fn end(mut self) -> io::Result<bool> {
        if self.json {
            writeln!(self.output, "]")?;
        } else {
            self.print_versions()?;
        }
        self.output.flush()?;
        Ok(self.json || self.versions.is_any)
    }

    /// Prints what was found in a series.
    fn print_versions(&mut self) -> io::Result<()> {
        let (views, stretches) = self.versions.take();
        for ((first, last), mut entries) in stretches {
            let (Some(from), Some(to)) = (views.get(first), views.get(last)) else { continue };
            let blank = if std::mem::replace(&mut self.versions.is_any, true) { "\n" } else { "" };
            let (id, time) = (from.snapshot.id.short(), local(from.snapshot.time));
            let place = format!("of {}", visible(from.series_name.as_bytes()));
            if first == last {
                writeln!(self.output, "{blank}in snapshot {id} {place}, from {time}:")?;
            } else {
                let (last_id, until, count) = (to.snapshot.id.short(), local(to.snapshot.time), last - first + 1);
                writeln!(
                    self.output,
                    "{blank}in {} {place}, from {id} ({time}) to {last_id} ({until}):",
                    counted(count as u64, "snapshot")
                )?;
            }
            entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
            for entry in &entries {
                if self.arguments.long {
                    writeln!(self.output, "{}", long_line(entry))?;
                } else {
                    writeln!(self.output, "{}", Path::of(&entry.path).visible())?;
                }
            }
        }
        Ok(())
    }
}

/// Versions of what is found in the snapshots of a series, each with the first and the last that has it.
#[derive(Default)]
struct Versions {
    series: Option<SeriesId>,
    views: Vec<SnapshotView>,
    /// Those that the last snapshot has, with the first that has them.
    current: BTreeMap<EntryPath, (Entry, usize)>,
    ended: Stretches,
    /// True once anything was shown.
    is_any: bool,
}

/// Entries by the places of the first and the last snapshot that has them.
type Stretches = BTreeMap<(usize, usize), Vec<Entry>>;

impl Versions {
    fn add(&mut self, view: &SnapshotView, found: &Found) {
        let at = self.views.len();
        self.series = Some(view.series);
        self.views.push(view.clone());
        let is_over = |path: &EntryPath, entry: &Entry| found.get(path).is_none_or(|now| !is_same(entry, now));
        for (_, (entry, first)) in self.current.extract_if(.., |path, (entry, _)| is_over(path, entry)) {
            self.ended.entry((first, at - 1)).or_default().push(entry);
        }
        for (path, entry) in found {
            self.current.entry(path.clone()).or_insert_with(|| (entry.clone(), at));
        }
    }

    /// Ends the series: gives its snapshots and what was found.
    fn take(&mut self) -> (Vec<SnapshotView>, Stretches) {
        let last = self.views.len().saturating_sub(1);
        for (entry, first) in std::mem::take(&mut self.current).into_values() {
            self.ended.entry((first, last)).or_default().push(entry);
        }
        self.series = None;
        (std::mem::take(&mut self.views), std::mem::take(&mut self.ended))
    }
}

/// Tells whether two entries are one version. Recipes of one series are equal if nothing was written.
fn is_same(one: &Entry, other: &Entry) -> bool {
    let seen = |metadata: &Metadata| (metadata.mode, metadata.uid, metadata.gid, metadata.modified);
    one.content == other.content && seen(&one.metadata) == seen(&other.metadata)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names_or_paths() {
        let matches = |pattern: &str, path: &str, case_sensitive| {
            let path = EntryPath::new(path).expect("a path");
            matches_path(&Pattern::new(pattern).expect("a pattern"), &path, case_sensitive)
        };
        for (pattern, path) in [
            ("*.txt", "home/a.txt"),
            ("home", "home"),
            ("/home/*.txt", "home/a.txt"),
            ("src/*.rs", "home/src/main.rs"),
            ("src/**/mod.rs", "home/src/a/b/mod.rs"),
            (".*", "home/.profile"),
        ] {
            assert!(matches(pattern, path, true), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("*.txt", "a.txt/b"),
            ("/a.txt", "home/a.txt"),
            ("src/*.rs", "src/a/b.rs"),
            ("A*", "abc"),
            ("rc/x", "src/x"),
        ] {
            assert!(!matches(pattern, path, true), "{pattern} {path}");
        }
        assert!(matches("A*", "abc", false));
    }
}
