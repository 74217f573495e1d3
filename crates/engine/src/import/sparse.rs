//! Maps of files with holes, in the four forms that GNU tar has had for them.
//!
//! ```text
//! old   letter S: four parts in the header, 21 in each block after it
//! 0.0   PAX records, two for each part
//! 0.1   one PAX record
//! 1.0   PAX records say so; the map is text before the content, filled up to a block
//! ```
//! A part is where data begins in the file and its length. In the archive the data follows without the holes.

use super::member::{BLOCK, BLOCK_BYTES, Fault, Member};
use super::records::{self, Records};
use crate::fs::Extent;
use std::fs::File;
use std::os::unix::fs::FileExt;
use tar::{GnuExtSparseHeader, GnuSparseHeader, Header};

/// Parts of a map that are read; what has more is refused.
const PARTS_MAX: usize = 1 << 20;
/// Most bytes of a line of a map that is text.
const LINE_BYTES_MAX: usize = 24;

/// Where the data of a file with holes lies.
#[derive(Debug)]
pub(super) enum Sparse {
    /// Here.
    Map(Vec<Extent>),
    /// The map stands before the content.
    InContent,
}

/// The map in a header of the old form and the blocks after it, the length of the file, and where its content begins.
///
/// # Errors
/// It is malformed or cut short.
pub(super) fn old(file: &File, header: &Header, at: u64) -> Result<(Sparse, u64, u64), Fault> {
    let gnu = header.as_gnu().ok_or_else(|| Fault::new(at, "a file with holes in a header that has no map"))?;
    let size = number(&gnu.realsize, at)?;
    let mut map = Vec::new();
    add(&mut map, &gnu.sparse, at)?;
    let mut content_at = at + BLOCK_BYTES;
    let mut goes_on = gnu.is_extended();
    while goes_on {
        let mut block = GnuExtSparseHeader::new();
        let cut = |error: std::io::Error| Fault::new(content_at, format!("the map of a file with holes: {error}"));
        file.read_exact_at(block.as_mut_bytes(), content_at).map_err(cut)?;
        add(&mut map, block.sparse(), content_at)?;
        goes_on = block.is_extended();
        content_at += BLOCK_BYTES;
    }
    Ok((Sparse::Map(map), size, content_at))
}

fn add(map: &mut Vec<Extent>, parts: &[GnuSparseHeader], at: u64) -> Result<(), Fault> {
    for part in parts.iter().filter(|part| !part.is_empty()) {
        map.push(Extent { offset: number(&part.offset, at)?, bytes: number(&part.numbytes, at)? });
    }
    if map.len() > PARTS_MAX { Err(Fault::new(at, too_many())) } else { Ok(()) }
}

fn number(field: &[u8], at: u64) -> Result<u64, Fault> {
    let number = records::number(field).and_then(|number| u64::try_from(number).ok());
    number.ok_or_else(|| Fault::new(at, "the map of a file with holes is malformed"))
}

fn too_many() -> String {
    format!("a file with more than {PARTS_MAX} holes, more than are read")
}

/// The map that PAX records tell of, and the length of the file; `None` if they tell of none.
///
/// # Errors
/// They are malformed.
pub(super) fn in_records(records: &Records) -> Result<Option<(Sparse, u64)>, &'static str> {
    let malformed = || "the records of a file with holes are malformed";
    let size = |key: &str| records.get(key).map(|value| records::decimal::<u64>(value).ok_or_else(malformed));
    if let Some(major) = records.get("GNU.sparse.major") {
        if (major, records.get("GNU.sparse.minor")) != (b"1", Some(b"0")) {
            return Err("a file with holes in a form later than 1.0");
        }
        let size = size("GNU.sparse.realsize").ok_or_else(malformed)??;
        return Ok(Some((Sparse::InContent, size)));
    }
    let Some(size) = size("GNU.sparse.size").transpose()? else { return Ok(None) };
    let numbers: Option<Vec<u64>> = match records.get("GNU.sparse.map") {
        Some(b"") => Some(Vec::new()),
        Some(map) => map.split(|&byte| byte == b',').map(records::decimal).collect(),
        None => {
            let keys: [&[u8]; 2] = [b"GNU.sparse.offset", b"GNU.sparse.numbytes"];
            records.iter().filter(|(key, _)| keys.contains(key)).map(|(_, value)| records::decimal(value)).collect()
        }
    };
    match numbers.as_deref().map(<[u64]>::as_chunks::<2>) {
        Some((parts, [])) => {
            let map = parts.iter().map(|&[offset, bytes]| Extent { offset, bytes }).collect();
            Ok(Some((Sparse::Map(map), size)))
        }
        _ => Err(malformed()),
    }
}

/// Where the data of a file lies in it, in order, and where in the archive it begins.
///
/// # Errors
/// The map is malformed, or does not fit the file.
pub(super) fn extents(file: &File, member: &Member, size: u64, sparse: Sparse) -> Result<(Vec<Extent>, u64), Fault> {
    let at = member.content_at;
    let (map, data_at) = match sparse {
        Sparse::Map(map) => (map, at),
        Sparse::InContent => in_content(file, member)?,
    };
    let mut ends = 0;
    let mut sum = 0u64;
    for part in &map {
        let end = part.offset.checked_add(part.bytes).filter(|&end| part.offset >= ends && end <= size);
        ends = end.ok_or_else(|| Fault::new(at, "the map of a file with holes does not fit the file"))?;
        sum += part.bytes;
    }
    if data_at.checked_add(sum) != at.checked_add(member.stored_bytes) {
        return Err(Fault::new(at, "the map of a file with holes does not fit its content"));
    }
    Ok((map.into_iter().filter(|part| part.bytes > 0).collect(), data_at))
}

/// Reads a map that is text: how many parts, and of each where it begins and its length, each a line.
fn in_content(file: &File, member: &Member) -> Result<(Vec<Extent>, u64), Fault> {
    let malformed = || Fault::new(member.content_at, "the map of a file with holes is malformed");
    let mut lines =
        Lines { file, at: member.content_at, end: member.content_at + member.stored_bytes, block: Vec::new() };
    let count = lines.next_number().ok_or_else(malformed)?;
    if count > PARTS_MAX as u64 {
        return Err(Fault::new(member.content_at, too_many()));
    }
    let mut map = Vec::new();
    for _ in 0..count {
        let offset = lines.next_number().ok_or_else(malformed)?;
        let bytes = lines.next_number().ok_or_else(malformed)?;
        map.push(Extent { offset, bytes });
    }
    Ok((map, lines.at))
}

/// Lines of text, read a block at a time.
struct Lines<'f> {
    file: &'f File,
    /// Where the next block begins, and where the content ends.
    at: u64,
    end: u64,
    /// Rest of the current one, last byte first.
    block: Vec<u8>,
}

impl Lines<'_> {
    fn next_number(&mut self) -> Option<u64> {
        let mut line = Vec::new();
        loop {
            let Some(byte) = self.block.pop() else {
                (self.at + BLOCK_BYTES <= self.end).then_some(())?;
                let mut block = vec![0; BLOCK];
                self.file.read_exact_at(&mut block, self.at).ok()?;
                self.at += BLOCK_BYTES;
                block.reverse();
                self.block = block;
                continue;
            };
            match byte {
                b'\n' => return records::decimal(&line),
                _ if line.len() < LINE_BYTES_MAX => line.push(byte),
                _ => return None,
            }
        }
    }
}
