//! A list of what changed, as another program or a file system tells it.
//!
//! Text, one entry a line: `PATH`, or `PATH<TAB>OFFSET<TAB>LENGTH` with decimal numbers of bytes. Or raw: paths alone,
//! each ended by a NUL byte, for names that hold tabs or newlines. The list comes from outside: what is not understood
//! is refused, by its place.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)
)]

mod ranges;

use crate::EngineError;
use crate::fs::absolute_source;
use crate::resources::shares::{list_bytes_max, memory_bytes_for_list};
use ranges::Ranges;
use siltstone_store::catalog::{EntryPath, PATH_BYTES_MAX};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::io::{self, BufRead, Read};
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// No file reaches beyond this.
const FILE_BYTES_MAX: u64 = i64::MAX as u64;
/// No entry is longer: a path as long as paths may be, and as much again that cleaning takes away.
const ENTRY_BYTES_MAX: u64 = 2 * PATH_BYTES_MAX as u64;
/// Bytes shown of an entry that is not understood.
const SHOWN_BYTES: usize = 200;
/// Bytes that a path takes beside its own bytes: its node, and its name once more for the walk.
const PATH_OVERHEAD_BYTES: u64 = 176;
/// Bytes that a range takes: in the list, where half of the room may be free, and twice while its file is read.
const RANGE_BYTES: u64 = 64;

const EXPECTED: &str = "expected a path, or a path, an offset and a length in bytes with tabs between them";
const EXPECTED_PATH: &str = "expected a path without NUL bytes";
const EXPECTED_END: &str = "expected a path ended by a NUL byte";
const EXPECTED_NUMBER: &str = "expected an offset and a length in bytes, as decimal numbers, within 2^63";

/// Paths, and ranges of files, that changed since the previous snapshot. May be empty.
///
/// It is held in memory: a path takes its length twice and some 180 bytes, a range 64 bytes, those that touch are one.
/// Beyond a quarter of what the backup may divide it is refused.
#[derive(Clone, Debug)]
pub struct ChangedList {
    entries: BTreeMap<EntryPath, Listed>,
    /// Place at which the root of the file system is listed.
    root: Option<Place>,
    bytes: u64,
    bytes_max: u64,
}

#[derive(Clone, Debug)]
struct Listed {
    /// Only these bytes of it; `None`: all of it.
    ranges: Option<Ranges>,
    /// Place at which it stands first.
    place: Place,
}

/// Place of an entry in its list, from 1.
#[derive(Clone, Copy, Debug)]
enum Place {
    Line(u64),
    Entry(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Entry(number) => write!(f, "entry {number}"),
        }
    }
}

/// An entry as understood; no path is the root of the file system.
type Parsed = (Option<EntryPath>, Option<Range<u64>>);

impl ChangedList {
    /// An empty list (nothing changed) for a backup within so much memory,
    /// [`crate::Resources::memory_bytes`].
    pub fn new(memory_bytes: u64) -> Self {
        Self { entries: BTreeMap::new(), root: None, bytes: 0, bytes_max: list_bytes_max(memory_bytes) }
    }

    /// Adds the lines of a text, called `list` in errors. Empty lines say nothing. Relative paths begin at the working
    /// directory.
    ///
    /// # Errors
    /// [`EngineError::BadChangedList`] for the first line that is neither a path nor a path with a range;
    /// [`EngineError::ChangedListTooLarge`]; [`EngineError::ChangedListUnreadable`].
    pub fn add_lines(&mut self, list: &str, text: impl BufRead) -> Result<(), EngineError> {
        let base = working_directory();
        self.add_all(list, text, b'\n', Place::Line, |line| {
            if line.is_empty() {
                return Ok(None);
            }
            let (path, range) = parse_line(line)?;
            Ok(Some((absolute(path, base.as_deref()).ok_or(EXPECTED_PATH)?, range)))
        })
    }

    /// Adds paths, each ended by a NUL byte, taken as they are; the same otherwise.
    ///
    /// # Errors
    /// Those of [`Self::add_lines`]; [`EngineError::BadChangedList`] too if the last path has no end.
    pub fn add_raw(&mut self, list: &str, bytes: impl BufRead) -> Result<(), EngineError> {
        let base = working_directory();
        self.add_all(list, bytes, 0, Place::Entry, |path| {
            let path = path.strip_suffix(b"\0").filter(|path| !path.is_empty()).ok_or(EXPECTED_END)?;
            Ok(Some((absolute(path, base.as_deref()).ok_or(EXPECTED_PATH)?, None)))
        })
    }

    fn add_all(
        &mut self,
        list: &str,
        mut bytes: impl BufRead,
        end: u8,
        place: fn(u64) -> Place,
        parse: impl Fn(&[u8]) -> Result<Option<Parsed>, &'static str>,
    ) -> Result<(), EngineError> {
        let unreadable = |source| EngineError::ChangedListUnreadable { list: list.to_owned(), source };
        let mut entry = Vec::new();
        let mut count = 0;
        while next_entry(&mut bytes, end, &mut entry).map_err(unreadable)? {
            count += 1;
            let place = place(count);
            let is_cut = is_cut(&entry, end);
            if entry.last() == Some(&b'\n') && end == b'\n' {
                entry.pop();
            }
            let understood = if is_cut { Err(EXPECTED) } else { parse(&entry) };
            if let Some(parsed) = understood.map_err(|expected| refused(list, place, &entry, expected))? {
                self.add(parsed, place);
            }
            if self.bytes > self.bytes_max {
                let held = self.bytes / count;
                while next_entry(&mut bytes, end, &mut entry).map_err(unreadable)? {
                    count += 1;
                }
                return Err(too_large(list, count, self.bytes_max, held.saturating_mul(count)));
            }
        }
        for ranges in self.entries.values_mut().filter_map(|listed| listed.ranges.as_mut()) {
            self.bytes -= ranges.settle() * RANGE_BYTES;
        }
        Ok(())
    }

    fn add(&mut self, (path, range): Parsed, place: Place) {
        let Some(path) = path else {
            self.root.get_or_insert(place);
            return;
        };
        let path_bytes = PATH_OVERHEAD_BYTES + 2 * path.as_bytes().len() as u64;
        let listed = self.entries.entry(path).or_insert_with(|| {
            self.bytes += path_bytes;
            Listed { ranges: range.is_some().then(Ranges::default), place }
        });
        match (&mut listed.ranges, range) {
            (Some(ranges), Some(range)) => {
                let before = ranges.held();
                ranges.add(range);
                self.bytes = self.bytes + ranges.held() * RANGE_BYTES - before * RANGE_BYTES;
            }
            (Some(ranges), None) => {
                self.bytes -= ranges.held() * RANGE_BYTES;
                listed.ranges = None;
            }
            (None, _) => {}
        }
    }

    /// About how much memory it takes, bytes, with what a backup makes of it.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.bytes
    }

    /// Tests whether a backup of these sources, given as absolute paths, within so much memory can go by it.
    ///
    /// # Errors
    /// [`EngineError::OutsideSources`] for an entry that lies in none of them; [`EngineError::ChangedListTooLarge`].
    pub(super) fn check(&self, sources: &[Vec<u8>], memory_bytes: u64) -> Result<(), EngineError> {
        if self.bytes > list_bytes_max(memory_bytes) {
            let count = self.entries.len() as u64;
            return Err(too_large("the list of changes", count, list_bytes_max(memory_bytes), self.bytes));
        }
        let listed = self.entries.iter().map(|(path, listed)| (path.as_bytes(), listed.place));
        let all = self.root.map(|place| (&b""[..], place)).into_iter().chain(listed);
        for (path, place) in all {
            if !sources.iter().any(|source| is_within(path, source)) {
                let path = Path::new("/").join(OsStr::from_bytes(path));
                return Err(EngineError::OutsideSources { path, place: place.to_string() });
            }
        }
        Ok(())
    }

    /// Tells whether the root of the file system is listed: then nothing is copied.
    pub(super) fn is_everything(&self) -> bool {
        self.root.is_some()
    }

    /// Lists what is looked at, each with all that lies beneath it; in catalog order, none beneath another.
    pub(super) fn paths(&self) -> Vec<EntryPath> {
        let mut paths: Vec<EntryPath> = Vec::new();
        // A directory comes before what it holds.
        for path in self.entries.keys() {
            if !paths.last().is_some_and(|last| path.is_beneath(last)) {
                paths.push(path.clone());
            }
        }
        paths
    }

    /// The ranges listed of a file, ascending and apart; `None` if it is not listed, or as a whole, be it with a folder
    /// that it lies in.
    pub(super) fn ranges_of(&self, path: &EntryPath) -> Option<&[Range<u64>]> {
        let ranges = self.entries.get(path)?.ranges.as_ref()?;
        let is_listed = |folder: &EntryPath| self.entries.contains_key(folder);
        let mut folders = std::iter::successors(path.parent(), EntryPath::parent);
        (!folders.any(|folder| is_listed(&folder))).then_some(ranges.as_slice())
    }
}

fn too_large(list: &str, entries: u64, bytes_max: u64, needed_bytes: u64) -> EngineError {
    let needed_mib = (memory_bytes_for_list(needed_bytes) >> 20).saturating_add(1);
    let most_mib = bytes_max >> 20;
    EngineError::ChangedListTooLarge { list: list.to_owned(), entries, most_mib, needed_mib }
}

/// Reads the next entry with its end; false if there is none. One that is too long comes in parts, which [`is_cut`]
/// tells.
fn next_entry(bytes: &mut impl BufRead, end: u8, entry: &mut Vec<u8>) -> io::Result<bool> {
    entry.clear();
    Ok(Read::take(&mut *bytes, ENTRY_BYTES_MAX).read_until(end, entry)? > 0)
}

fn is_cut(entry: &[u8], end: u8) -> bool {
    entry.len() as u64 == ENTRY_BYTES_MAX && entry.last() != Some(&end)
}

fn refused(list: &str, place: Place, found: &[u8], expected: &'static str) -> EngineError {
    let shown = found.get(..SHOWN_BYTES).unwrap_or(found);
    let found = String::from_utf8_lossy(shown).escape_debug().to_string();
    EngineError::BadChangedList { list: list.to_owned(), place: place.to_string(), found, expected }
}

fn parse_line(line: &[u8]) -> Result<(&[u8], Option<Range<u64>>), &'static str> {
    let mut fields = line.split(|&byte| byte == b'\t');
    let (path, offset, length) = (fields.next().unwrap_or_default(), fields.next(), fields.next());
    if path.is_empty() || fields.next().is_some() {
        return Err(EXPECTED);
    }
    let Some(offset) = offset else {
        return Ok((path, None));
    };
    let offset = parse_number(offset)?;
    let end = offset.checked_add(parse_number(length.ok_or(EXPECTED)?)?).filter(|end| *end <= FILE_BYTES_MAX);
    Ok((path, Some(offset..end.ok_or(EXPECTED_NUMBER)?)))
}

fn parse_number(field: &[u8]) -> Result<u64, &'static str> {
    let is_decimal = !field.is_empty() && field.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(field).ok().filter(|_| is_decimal);
    text.and_then(|text| text.parse().ok()).ok_or(EXPECTED_NUMBER)
}

/// Asked for once: a list may be long.
fn working_directory() -> Option<PathBuf> {
    absolute_source(Path::new(".")).ok()
}

/// The path as sources are recorded, `Some(None)` for the root; `None` for what is no path.
#[allow(clippy::option_option, reason = "the root is a path that no entry has")]
fn absolute(path: &[u8], base: Option<&Path>) -> Option<Option<EntryPath>> {
    let path = Path::new(OsStr::from_bytes(path));
    let absolute = if path.is_absolute() { absolute_source(path) } else { absolute_source(&base?.join(path)) };
    let bytes = absolute.ok()?.into_os_string().into_vec();
    match bytes.strip_prefix(b"/").unwrap_or(&bytes) {
        [] => Some(None),
        // What no catalog can hold, no list can mean.
        path => EntryPath::new(path).ok().map(Some),
    }
}

/// Tells whether a path (without the leading slash) is a source (with it), or lies in it.
fn is_within(path: &[u8], source: &[u8]) -> bool {
    let source = source.strip_prefix(b"/").unwrap_or(source);
    let rest = path.strip_prefix(source);
    source.is_empty() || rest.is_some_and(|rest| rest.first().is_none_or(|&byte| byte == b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Command;
    use siltstone_store::container::CONTAINER_BYTES_DEFAULT;

    const MEMORY: u64 = 512 << 20;

    fn lines(text: &str) -> Result<ChangedList, EngineError> {
        let mut list = ChangedList::new(MEMORY);
        list.add_lines("the list", text.as_bytes())?;
        list.check(&[b"/src".to_vec(), b"/other".to_vec()], MEMORY)?;
        Ok(list)
    }

    fn paths(list: &ChangedList) -> Vec<String> {
        list.paths().iter().map(ToString::to_string).collect()
    }

    fn ranges(list: &ChangedList, path: &str) -> Vec<(u64, u64)> {
        let found = list.ranges_of(&EntryPath::new(path).expect("a path"));
        found.into_iter().flatten().map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn entries_are_sorted_and_merged() {
        let changes =
            lines("/src/b\t5\t5\n/src/a/x\n/src/b\t0\t2\n\n/src/a-b\n/src/a/./y/..\n/src/b\t8\t4\n").expect("fine");
        assert_eq!(paths(&changes), ["src/a", "src/a-b", "src/b"]);
        assert_eq!(ranges(&changes, "src/b"), [(0, 2), (5, 12)]);
        let nothing = lines("").expect("nothing changed");
        assert!(nothing.paths().is_empty() && nothing.memory_bytes() == 0);
    }

    #[test]
    fn what_is_listed_as_a_whole_has_no_ranges() {
        for text in ["/src/a\t1\t2\n/src/a", "/src/a\n/src/a\t1\t2", "/src/a/b\t1\t2\n/src/a\n", "/src\n/src/a\t0\t1"] {
            let changes = lines(text).expect("fine");
            assert_eq!(changes.paths().len(), 1, "{text:?}");
            for path in ["src", "src/a", "src/a/b"] {
                assert_eq!(ranges(&changes, path), [], "{path} of {text:?}");
            }
        }
    }

    #[test]
    fn malformed_lines_are_named() {
        let bad = [
            "\t1\t2",
            "/src/a\t1",
            "/src/a\t1\t",
            "/src/a\t\t1",
            "/src/a\t1\t2\t3",
            "/src/a\t-1\t2",
            "/src/a\t+1\t2",
            "/src/a\t1\t0x2",
            "/src/a\t1\t2 ",
            "/src/a\t1\t2\r",
            "/src/a\t18446744073709551616\t1",
            "/src/a\t18446744073709551615\t1",
            "/src/a\t9223372036854775807\t1",
            "/src/a\0b",
        ];
        for line in bad {
            let error = lines(&format!("/src/fine\n\n{line}\n")).expect_err(line).to_string();
            assert!(error.contains("the list, line 3") && error.contains("expected"), "{line:?}: {error}");
            assert!(!error.contains(|c: char| c.is_control()) && !error.contains("\\n"), "{error:?}");
        }
        assert!(lines(&format!("/src/{}", "a/".repeat(1 << 20))).is_err());
    }

    #[test]
    fn what_lies_outside_the_sources_is_named() {
        for path in ["/etc/passwd", "/srcs", "/", "/src/../etc", "relative"] {
            let error = lines(&format!("/src/a\n{path}")).expect_err(path);
            assert!(matches!(&error, EngineError::OutsideSources { .. }), "{path}: {error}");
            assert!(error.to_string().contains("line 2"), "{error}");
        }
    }

    #[test]
    fn the_root_may_be_a_source() {
        let mut list = ChangedList::new(MEMORY);
        list.add_lines("the list", &b"/a\nrelative"[..]).expect("fine");
        list.check(&[b"/".to_vec()], MEMORY).expect("all lies in the root");
        assert!(!list.is_everything() && list.paths().len() == 2);
        list.add_lines("the list", &b"/"[..]).expect("fine");
        list.check(&[b"/".to_vec()], MEMORY).expect("all lies in the root");
        assert!(list.is_everything());
    }

    #[test]
    fn raw_lists_hold_any_name() {
        let mut list = ChangedList::new(MEMORY);
        list.add_raw("raw", &b"/src/a\tb\t1\0/src/c\nd\0/src/\xff\0"[..]).expect("fine");
        let paths = list.paths();
        assert_eq!(
            paths.iter().map(EntryPath::as_bytes).collect::<Vec<_>>(),
            [&b"src/a\tb\t1"[..], b"src/c\nd", b"src/\xff"]
        );
        for bad in [&b"/src/a"[..], b"/src/a\0/src/b", b"/src/a\0\0"] {
            assert!(matches!(list.add_raw("raw", bad), Err(EngineError::BadChangedList { .. })), "{bad:?}");
        }
        list.add_raw("raw", &b""[..]).expect("nothing");
    }

    #[test]
    fn what_is_held_is_bounded_and_told() {
        let least = Command::Backup.memory_bytes_min(CONTAINER_BYTES_DEFAULT);
        let mut list = ChangedList::new(least);
        let ranges = (0..200_000u64).flat_map(|at| format!("/src/image\t{}\t1\n", 2 * at).into_bytes());
        let text: Vec<u8> = ranges.collect();
        let error = list.add_lines("the journal", &text[..]).expect_err("too long").to_string();
        assert!(error.contains("the journal") && error.contains("200000 entries"), "{error}");
        let EngineError::ChangedListTooLarge { needed_mib, .. } =
            ChangedList::new(least).add_lines("the journal", &text[..]).expect_err("too long")
        else {
            panic!("{error}");
        };
        let mut enough = ChangedList::new(needed_mib << 20);
        enough.add_lines("the journal", &text[..]).expect("room enough");
        let refused = enough.check(&[b"/src".to_vec()], least);
        assert!(matches!(refused, Err(EngineError::ChangedListTooLarge { .. })), "{refused:?}");
    }

    #[test]
    fn what_is_listed_again_is_held_once() {
        let mut list = ChangedList::new(Command::Backup.memory_bytes_min(CONTAINER_BYTES_DEFAULT));
        let again = "/src/image\t10\t5\n/src/image\t0\t5\n/src/file\n".repeat(100_000);
        list.add_lines("the journal", again.as_bytes()).expect("two paths and two ranges");
        assert_eq!(list.memory_bytes(), 2 * PATH_OVERHEAD_BYTES + 2 * (9 + 8) + 2 * RANGE_BYTES);
        list.add_lines("the journal", &b"/src/image\n"[..]).expect("no range any more");
        assert_eq!(list.memory_bytes(), 2 * PATH_OVERHEAD_BYTES + 2 * (9 + 8));
    }
}
