//! zip, as a stream: sizes come after the content. It has names, content, permissions and times in seconds; no owners,
//! hard links (the content comes again) and special files. Each entry takes some 200 bytes of memory until the end,
//! where zip has its list.

use super::{Gate, Sink, write_zeros};
use crate::Observer;
use crate::fs::{Extent, Problem, ProblemKind};
use crate::observer::Notice;
use siltstone_store::Time;
use siltstone_store::catalog::{Content, Entry, EntryPath};
use std::cell::Cell;
use std::io::{self, Write};
use std::rc::Rc;
use zip::write::{FullFileOptions, StreamWriter};
use zip::{CompressionMethod, DateTime, ZipWriter};

/// From here on a length may need the long form.
const LONG_BYTES: u64 = 0xf000_0000;
/// The field for a time in seconds since 1970, and its flag.
const TIMESTAMP: u16 = 0x5455;
const MODIFIED: u8 = 1;

/// An archive being written.
pub(super) struct Zip<'o> {
    archive: Option<ZipWriter<StreamWriter<Gate<'o>>>>,
    is_shut: Rc<Cell<bool>>,
    observer: &'o dyn Observer,
    /// True if the current entry has content in the archive.
    is_file: bool,
}

impl<'o> Zip<'o> {
    pub(super) fn new(output: &'o mut dyn Write, observer: &'o dyn Observer) -> Self {
        let is_shut = Rc::new(Cell::new(false));
        let archive = ZipWriter::new_stream(Gate { output, is_shut: is_shut.clone() });
        Self { archive: Some(archive), is_shut, observer, is_file: false }
    }

    fn archive(&mut self) -> io::Result<&mut ZipWriter<StreamWriter<Gate<'o>>>> {
        self.archive.as_mut().ok_or_else(|| io::Error::other("the archive is complete"))
    }
}

impl Drop for Zip<'_> {
    fn drop(&mut self) {
        self.is_shut.set(true);
    }
}

impl Sink for Zip<'_> {
    fn begin(&mut self, entry: &Entry, _: Option<&[Extent]>) -> io::Result<()> {
        let (name, options) = (name(&entry.path), options(entry)?);
        self.is_file = false;
        match &entry.content {
            Content::Directory => self.archive()?.add_directory(name, options)?,
            Content::File { size, .. } => {
                self.is_file = true;
                self.archive()?.start_file(name, options.large_file(*size >= LONG_BYTES))?;
            }
            Content::Symlink { target } => match std::str::from_utf8(target) {
                Ok(target) => self.archive()?.add_symlink(name, target, options)?,
                Err(_) => {
                    let reason = "what it points to is no text, which zip cannot hold";
                    self.observer.problem(&Problem::entry(&entry.path, ProblemKind::NotWritten, reason));
                }
            },
            Content::Fifo | Content::CharDevice { .. } | Content::BlockDevice { .. } => {
                self.observer.notice(&Notice::LeftOut { path: entry.path.clone(), why: "zip has no such files" });
            }
        }
        Ok(())
    }

    fn link(&mut self, entry: &Entry, _: &EntryPath) -> io::Result<()> {
        self.begin(entry, None)
    }

    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_file { self.archive()?.write_all(bytes) } else { Ok(()) }
    }

    fn hole(&mut self, bytes: u64) -> io::Result<()> {
        if self.is_file { write_zeros(self.archive()?, bytes) } else { Ok(()) }
    }

    fn end(&mut self) -> io::Result<()> {
        self.is_file = false;
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        if let Some(archive) = self.archive.take() {
            archive.finish()?;
        }
        Ok(())
    }
}

/// The path as text; bytes that are none are shown as `\xff`, so that no two names become one.
fn name(path: &EntryPath) -> String {
    let mut name = String::new();
    for chunk in path.as_bytes().utf8_chunks() {
        name.push_str(chunk.valid());
        name.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    name
}

fn options(entry: &Entry) -> io::Result<FullFileOptions<'static, 'static>> {
    let Time { seconds, .. } = entry.metadata.modified;
    let mut options = FullFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .unix_permissions(entry.metadata.mode)
        .last_modified_time(date(seconds));
    if let Ok(seconds) = i32::try_from(seconds) {
        let field = [&[MODIFIED][..], &seconds.to_le_bytes()].concat();
        options.add_extra_field(TIMESTAMP, field, false)?;
    }
    Ok(options)
}

/// The moment as zip has it: from 1980 to 2107, in steps of two seconds, here in UTC; the nearest where it is beyond
/// that.
fn date(seconds: i64) -> DateTime {
    let moment = jiff::Timestamp::from_second(seconds).ok();
    let moment = moment.map(|moment| moment.to_zoned(jiff::tz::TimeZone::UTC).datetime());
    moment.and_then(|moment| DateTime::try_from(moment).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_apart() {
        let path = |bytes: &[u8]| EntryPath::new(bytes).expect("a path");
        assert_eq!(name(&path(b"a/\xc3\xa9\xff")), "a/\u{e9}\\xff");
        assert_ne!(name(&path(b"\xfe")), name(&path(b"\xff")));
    }

    #[test]
    fn moments_beyond_what_zip_has_are_its_first() {
        assert_eq!((date(0).year(), date(i64::MAX).year()), (1980, 1980));
        let date = date(1_600_000_001);
        assert_eq!((date.year(), date.month(), date.day(), date.hour(), date.minute()), (2020, 9, 13, 12, 26));
    }
}
