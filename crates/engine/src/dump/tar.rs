//! tar with PAX records. What a plain header has no room for goes into records before it: long names, times to the
//! nanosecond and before 1970, large numbers, attributes, access control lists, and the map of a file with holes (GNU's
//! form 1.0).

use super::{Gate, Sink, write_zeros};
use crate::fs::{Extent, Problem, ProblemKind};
use crate::{Observer, acl};
use siltstone_store::Time;
use siltstone_store::catalog::{Content, Entry, EntryPath, Metadata, Name};
use std::cell::Cell;
use std::io::{self, Write};
use std::rc::Rc;
use tar::{Builder, EntryType, Header};

const BLOCK_BYTES: u64 = 512;
/// The greatest numbers that 7 and 11 octal digits hold: of owners, and of sizes and times.
const OWNER_MAX: u32 = 0o7_777_777;
const NUMBER_MAX: u64 = 0o77_777_777_777;

/// An archive being written.
pub(super) struct Tar<'o> {
    archive: Builder<Gate<'o>>,
    is_shut: Rc<Cell<bool>>,
    observer: &'o dyn Observer,
    /// Bytes written of the current entry's content.
    written: u64,
    /// True if holes of the current entry are left out.
    is_sparse: bool,
}

impl<'o> Tar<'o> {
    pub(super) fn new(output: &'o mut dyn Write, observer: &'o dyn Observer) -> Self {
        let is_shut = Rc::new(Cell::new(false));
        let archive = Builder::new(Gate { output, is_shut: is_shut.clone() });
        Self { archive, is_shut, observer, written: 0, is_sparse: false }
    }

    fn append(&mut self, mut header: Header, records: &Records) -> io::Result<()> {
        let fields = records.0.iter().map(|(name, value)| (name.as_str(), value.as_slice()));
        self.archive.append_pax_extensions(fields)?;
        header.set_cksum();
        // The content follows piece by piece.
        self.archive.append(&header, io::empty())
    }

    fn tell_lost(&self, entry: &Entry, lost: &[Vec<u8>]) {
        for name in lost {
            let reason = format!("{}: its name is no text, which tar cannot hold", name.escape_ascii());
            self.observer.problem(&Problem::entry(&entry.path, ProblemKind::Attribute, reason));
        }
    }
}

impl Drop for Tar<'_> {
    fn drop(&mut self) {
        self.is_shut.set(true);
    }
}

impl Sink for Tar<'_> {
    fn begin(&mut self, entry: &Entry, data: Option<&[Extent]>) -> io::Result<()> {
        let (mut header, mut records) = (header(&entry.metadata), Records::default());
        let lost = records.add_metadata(&mut header, &entry.metadata);
        self.tell_lost(entry, &lost);
        (self.written, self.is_sparse) = (0, data.is_some());
        let mut path = entry.path.as_bytes().to_vec();
        let mut map = Vec::new();
        let kind = match &entry.content {
            Content::Directory => {
                path.push(b'/');
                EntryType::Directory
            }
            Content::File { size, .. } => {
                let mut bytes = *size;
                if let Some(data) = data {
                    map = sparse_map(data, *size);
                    bytes = map.len() as u64 + data.iter().map(|extent| extent.bytes).sum::<u64>();
                    records.add_sparse(&path, *size);
                    path = [b"GNUSparseFile.0/", path.as_slice()].concat();
                }
                header.set_size(bytes);
                if bytes > NUMBER_MAX {
                    records.add("size", bytes.to_string());
                }
                EntryType::Regular
            }
            Content::Symlink { target } => {
                records.add_name("linkpath", &mut header.as_old_mut().linkname, target);
                EntryType::Symlink
            }
            Content::Fifo => EntryType::Fifo,
            Content::CharDevice { major, minor } => device(&mut header, *major, *minor, EntryType::Char)?,
            Content::BlockDevice { major, minor } => device(&mut header, *major, *minor, EntryType::Block)?,
        };
        header.set_entry_type(kind);
        records.add_name("path", &mut header.as_old_mut().name, &path);
        self.append(header, &records)?;
        self.bytes(&map)
    }

    fn link(&mut self, entry: &Entry, first: &EntryPath) -> io::Result<()> {
        let (mut header, mut records) = (header(&entry.metadata), Records::default());
        records.add_metadata(&mut header, &Metadata { xattrs: Vec::new(), ..entry.metadata.clone() });
        header.set_entry_type(EntryType::Link);
        records.add_name("linkpath", &mut header.as_old_mut().linkname, first.as_bytes());
        records.add_name("path", &mut header.as_old_mut().name, entry.path.as_bytes());
        self.append(header, &records)
    }

    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len() as u64;
        self.archive.get_mut().write_all(bytes)
    }

    fn hole(&mut self, bytes: u64) -> io::Result<()> {
        if self.is_sparse {
            return Ok(());
        }
        self.written += bytes;
        write_zeros(self.archive.get_mut(), bytes)
    }

    fn end(&mut self) -> io::Result<()> {
        let padding = self.written.next_multiple_of(BLOCK_BYTES) - self.written;
        self.written = 0;
        write_zeros(self.archive.get_mut(), padding)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.archive.finish()
    }
}

/// A header with what fits of an inode's numbers; the rest is for the records.
fn header(metadata: &Metadata) -> Header {
    let mut header = Header::new_ustar();
    header.set_mode(metadata.mode & 0o7777);
    header.set_uid(metadata.uid.min(OWNER_MAX).into());
    header.set_gid(metadata.gid.min(OWNER_MAX).into());
    header.set_mtime(u64::try_from(metadata.modified.seconds).unwrap_or(0).min(NUMBER_MAX));
    header.set_size(0);
    header
}

fn device(header: &mut Header, major: u32, minor: u32, kind: EntryType) -> io::Result<EntryType> {
    header.set_device_major(major)?;
    header.set_device_minor(minor)?;
    Ok(kind)
}

/// The PAX records before a header.
#[derive(Default)]
struct Records(Vec<(String, Vec<u8>)>);

impl Records {
    fn add(&mut self, name: &str, value: impl Into<Vec<u8>>) {
        self.0.push((name.to_owned(), value.into()));
    }

    /// Puts a name into a field of the header, and into a record if it does not fit.
    fn add_name(&mut self, record: &str, field: &mut [u8], name: &[u8]) {
        let fitting = name.len().min(field.len());
        field[..fitting].copy_from_slice(&name[..fitting]);
        if fitting == name.len() {
            return;
        }
        if std::str::from_utf8(name).is_err() {
            self.0.insert(0, ("hdrcharset".to_owned(), b"BINARY".to_vec()));
        }
        self.add(record, name);
    }

    /// Adds the metadata of an inode that a header has no room for. Returns the names of attributes that no record can
    /// have.
    fn add_metadata(&mut self, header: &mut Header, metadata: &Metadata) -> Vec<Vec<u8>> {
        for (record, number) in [("uid", metadata.uid), ("gid", metadata.gid)] {
            if number > OWNER_MAX {
                self.add(record, number.to_string());
            }
        }
        let bytes = |name: &Option<Name>| name.as_ref().map(|name| name.as_bytes().to_vec()).unwrap_or_default();
        if let Some(ustar) = header.as_ustar_mut() {
            // One byte less than the field has: these end with NUL.
            self.add_name("uname", &mut ustar.uname[..31], &bytes(&metadata.user));
            self.add_name("gname", &mut ustar.gname[..31], &bytes(&metadata.group));
        }
        let Time { seconds, nanoseconds } = metadata.modified;
        if nanoseconds != 0 || !u64::try_from(seconds).is_ok_and(|seconds| seconds <= NUMBER_MAX) {
            self.add("mtime", decimal(seconds, nanoseconds));
        }
        let mut lost = Vec::new();
        for (name, value) in &metadata.xattrs {
            let list = acl::LISTS.iter().find(|(list, _)| list == name);
            match (list.and_then(|(_, record)| Some((record, acl::text(value)?))), std::str::from_utf8(name)) {
                (Some((record, text)), _) => self.add(record, text),
                // As GNU tar writes the two characters that would end the name too soon.
                (None, Ok(name)) => {
                    let name = name.replace('%', "%25").replace('=', "%3D");
                    self.add(&format!("SCHILY.xattr.{name}"), value.clone());
                }
                (None, Err(_)) => lost.push(name.clone()),
            }
        }
        lost
    }

    fn add_sparse(&mut self, path: &[u8], size: u64) {
        self.add("GNU.sparse.major", "1");
        self.add("GNU.sparse.minor", "0");
        self.add("GNU.sparse.name", path);
        self.add("GNU.sparse.realsize", size.to_string());
    }
}

/// A moment as a decimal number of seconds. Nanoseconds count forwards, whichever side of 1970 it is.
fn decimal(seconds: i64, nanoseconds: u32) -> String {
    if seconds >= 0 || nanoseconds == 0 {
        let fraction = if nanoseconds == 0 { String::new() } else { format!(".{nanoseconds:09}") };
        return format!("{seconds}{fraction}");
    }
    let (whole, rest) = (seconds.saturating_add(1).unsigned_abs(), 1_000_000_000_u32.saturating_sub(nanoseconds));
    format!("-{whole}.{rest:09}")
}

/// The map that comes before the content of a file with holes: how many parts, and of each where it begins and its
/// length, as lines of text, filled up to a block. The last part ends where the file does, if an empty one.
fn sparse_map(data: &[Extent], size: u64) -> Vec<u8> {
    let end =
        data.last().is_none_or(|last| last.offset + last.bytes < size).then_some(Extent { offset: size, bytes: 0 });
    let parts = data.iter().chain(&end).map(|part| format!("{}\n{}\n", part.offset, part.bytes));
    let count = format!("{}\n", data.len() + usize::from(end.is_some()));
    let mut map: Vec<u8> = std::iter::once(count).chain(parts).collect::<String>().into_bytes();
    map.resize(map.len().next_multiple_of(512), 0);
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_decimal_on_both_sides_of_1970() {
        let cases = [
            (0, 0, "0"),
            (5, 1, "5.000000001"),
            (-1, 0, "-1"),
            (-1, 500_000_000, "-0.500000000"),
            (-2, 1, "-1.999999999"),
            (i64::MIN, 999_999_999, "-9223372036854775807.000000001"),
        ];
        for (seconds, nanoseconds, expected) in cases {
            assert_eq!(decimal(seconds, nanoseconds), expected);
        }
    }

    #[test]
    fn a_map_fills_blocks_and_ends_where_the_file_does() {
        let text = |data: &[Extent], size| {
            let map = sparse_map(data, size);
            assert_eq!(map.len() % 512, 0);
            String::from_utf8(map).expect("text").trim_end_matches('\0').to_owned()
        };
        assert_eq!(text(&[], 100), "1\n100\n0\n");
        assert_eq!(text(&[Extent { offset: 10, bytes: 5 }], 15), "1\n10\n5\n");
        assert_eq!(text(&[Extent { offset: 10, bytes: 5 }], 16), "2\n10\n5\n16\n0\n");
        let many: Vec<_> = (0..200).map(|at| Extent { offset: 2 * at, bytes: 1 }).collect();
        assert!(sparse_map(&many, 400).len() > 512);
    }
}
