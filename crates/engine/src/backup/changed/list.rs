//! A list of what changed, as another program or a file system tells it.
//!
//! Text, one entry a line: `PATH`, or `PATH<TAB>OFFSET<TAB>LENGTH` with decimal numbers of bytes. Or raw: paths alone, each ended by a
//! NUL byte, for names that hold tabs or newlines. The list comes from outside: what is not understood is refused, by its place.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)
)]

use super::Changes;
use crate::EngineError;
use crate::fs::absolute_source;
use siltstone_store::catalog::EntryPath;
use std::ffi::OsStr;
use std::fmt;
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// No file reaches beyond this.
const FILE_BYTES_MAX: u64 = i64::MAX as u64;
/// How much of an entry that is not understood is shown.
const SHOWN_BYTES: usize = 200;

const EXPECTED: &str = "expected a path, or a path, an offset and a length in bytes with tabs between them";
const EXPECTED_PATH: &str = "expected a path without NUL bytes";
const EXPECTED_NUMBER: &str = "expected an offset and a length in bytes, as decimal numbers, within 2^63";

/// Paths, and ranges of files, that changed since the previous snapshot. May be empty.
#[derive(Clone, Debug, Default)]
pub struct ChangedList {
    entries: Vec<Listed>,
}

#[derive(Clone, Debug)]
struct Listed {
    /// Absolute and cleaned.
    path: Vec<u8>,
    range: Option<Range<u64>>,
    place: Place,
}

/// Where in its list an entry stands, from 1.
#[derive(Clone, Copy, Debug)]
enum Place {
    Line(usize),
    Entry(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Entry(number) => write!(f, "entry {number}"),
        }
    }
}

impl ChangedList {
    /// An empty list: nothing changed.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the lines of a text, called `list` in errors. Empty lines say nothing. Relative paths begin at the working directory.
    ///
    /// # Errors
    /// [`EngineError::BadChangedList`] for the first line that is neither a path nor a path with a range.
    pub fn add_lines(&mut self, list: &str, text: &[u8]) -> Result<(), EngineError> {
        let lines = text.split(|&byte| byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty());
        let base = working_directory();
        for (index, line) in lines {
            let place = Place::Line(index + 1);
            let refused = |expected| refused(list, place, line, expected);
            let (path, range) = parse_line(line).map_err(refused)?;
            let path = absolute(path, base.as_deref()).ok_or_else(|| refused(EXPECTED_PATH))?;
            self.entries.push(Listed { path, range, place });
        }
        Ok(())
    }

    /// Adds paths, each ended by a NUL byte, taken as they are; the same otherwise.
    ///
    /// # Errors
    /// [`EngineError::BadChangedList`] if the last path has no end.
    pub fn add_raw(&mut self, list: &str, bytes: &[u8]) -> Result<(), EngineError> {
        let base = working_directory();
        for (index, path) in bytes.split_inclusive(|&byte| byte == 0).enumerate() {
            let place = Place::Entry(index + 1);
            let refused = |expected| refused(list, place, path, expected);
            let ended = path.strip_suffix(b"\0").filter(|path| !path.is_empty());
            let ended = ended.ok_or_else(|| refused("expected a path ended by a NUL byte"))?;
            let path = absolute(ended, base.as_deref()).ok_or_else(|| refused(EXPECTED_PATH))?;
            self.entries.push(Listed { path, range: None, place });
        }
        Ok(())
    }

    /// The changes within these sources, given as absolute paths.
    ///
    /// # Errors
    /// [`EngineError::OutsideSources`] for the first entry that lies in none of them.
    pub(in crate::backup) fn within(&self, sources: &[Vec<u8>]) -> Result<Changes, EngineError> {
        let mut changes = Changes::default();
        let mut entries = Vec::with_capacity(self.entries.len());
        for Listed { path, range, place } in &self.entries {
            if !sources.iter().any(|source| is_within(path, source)) {
                let path = PathBuf::from(OsStr::from_bytes(path));
                return Err(EngineError::OutsideSources { path, place: place.to_string() });
            }
            match path.strip_prefix(b"/").filter(|path| !path.is_empty()) {
                Some(path) => entries.push((EntryPath::new(path)?, range.clone())),
                None => changes.is_everything = true,
            }
        }
        // A path alone sorts before its ranges, a directory before what it holds.
        let key = |(_, range): &(EntryPath, Option<Range<u64>>)| range.as_ref().map(|range| (range.start, range.end));
        entries.sort_unstable_by(|left, right| left.0.cmp(&right.0).then_with(|| key(left).cmp(&key(right))));
        for (path, range) in entries {
            match (changes.paths.last(), range) {
                (Some(last), Some(range)) if *last == path => {
                    if let Some(ranges) = changes.ranges.get_mut(&path) {
                        join(ranges, range);
                    }
                }
                (Some(last), _) if *last == path || path.is_beneath(last) => {}
                (_, range) => {
                    if let Some(range) = range {
                        changes.ranges.insert(path.clone(), vec![range]);
                    }
                    changes.paths.push(path);
                }
            }
        }
        Ok(changes)
    }
}

fn refused(list: &str, place: Place, found: &[u8], expected: &'static str) -> EngineError {
    let shown = found.get(..SHOWN_BYTES).unwrap_or(found);
    let found = String::from_utf8_lossy(shown).escape_debug().to_string();
    EngineError::BadChangedList { list: list.to_owned(), place: place.to_string(), found, expected }
}

/// Adds a range that begins no earlier than the last one.
fn join(ranges: &mut Vec<Range<u64>>, range: Range<u64>) {
    match ranges.last_mut() {
        Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
        _ => ranges.push(range),
    }
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

/// The path as sources are recorded; `None` for what is no path.
fn absolute(path: &[u8], base: Option<&Path>) -> Option<Vec<u8>> {
    let path = Path::new(OsStr::from_bytes(path));
    let absolute = if path.is_absolute() { absolute_source(path) } else { absolute_source(&base?.join(path)) };
    let bytes = absolute.ok()?.into_os_string().into_vec();
    // What no catalog can hold, no list can mean.
    let is_path = bytes == b"/" || EntryPath::new(bytes.strip_prefix(b"/").unwrap_or(&bytes)).is_ok();
    is_path.then_some(bytes)
}

fn is_within(path: &[u8], source: &[u8]) -> bool {
    let rest = path.strip_prefix(source.strip_suffix(b"/").unwrap_or(source));
    rest.is_some_and(|rest| rest.first().is_none_or(|&byte| byte == b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Result<Changes, EngineError> {
        let mut list = ChangedList::new();
        list.add_lines("the list", text.as_bytes())?;
        list.within(&[b"/src".to_vec(), b"/other".to_vec()])
    }

    fn paths(changes: &Changes) -> Vec<String> {
        changes.paths.iter().map(ToString::to_string).collect()
    }

    fn ranges(changes: &Changes, path: &str) -> Vec<(u64, u64)> {
        let found = changes.ranges.get(&EntryPath::new(path).expect("a path"));
        found.into_iter().flatten().map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn entries_are_sorted_and_merged() {
        let changes =
            lines("/src/b\t5\t5\n/src/a/x\n/src/b\t0\t2\n\n/src/a-b\n/src/a/./y/..\n/src/b\t8\t4\n").expect("fine");
        assert_eq!(paths(&changes), ["src/a", "src/a-b", "src/b"]);
        assert_eq!(ranges(&changes, "src/b"), [(0, 2), (5, 12)]);
        assert_eq!(lines("").expect("nothing changed"), Changes::default());
    }

    #[test]
    fn what_is_listed_as_a_whole_has_no_ranges() {
        for text in ["/src/a\t1\t2\n/src/a", "/src/a\n/src/a\t1\t2", "/src/a/b\t1\t2\n/src/a\n", "/src\n/src/a\t0\t1"] {
            let changes = lines(text).expect("fine");
            assert_eq!((changes.paths.len(), changes.ranges.len()), (1, 0), "{text:?}");
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
            assert!(!error.contains(|c: char| c.is_control()), "{error:?}");
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
        let mut list = ChangedList::new();
        list.add_lines("the list", b"/a\nrelative").expect("fine");
        let changes = list.within(&[b"/".to_vec()]).expect("all lies in the root");
        assert!(!changes.is_everything && changes.paths.len() == 2);
        list.add_lines("the list", b"/").expect("fine");
        assert!(list.within(&[b"/".to_vec()]).expect("all").is_everything);
    }

    #[test]
    fn raw_lists_hold_any_name() {
        let mut list = ChangedList::new();
        list.add_raw("raw", b"/src/a\tb\t1\0/src/c\nd\0/src/\xff\0").expect("fine");
        let changes = list.within(&[b"/src".to_vec()]).expect("fine");
        let found: Vec<&[u8]> = changes.paths.iter().map(EntryPath::as_bytes).collect();
        assert_eq!(found, [&b"src/a\tb\t1"[..], b"src/c\nd", b"src/\xff"]);
        for bad in [&b"/src/a"[..], b"/src/a\0/src/b", b"/src/a\0\0"] {
            assert!(matches!(list.add_raw("raw", bad), Err(EngineError::BadChangedList { .. })), "{bad:?}");
        }
        list.add_raw("raw", b"").expect("nothing");
    }
}
