//! One member of an archive: its headers, the long names and PAX records before them, and what they say.
//!
//! Formats: Unix V7, ustar (POSIX 1003.1), GNU, PAX. Numbers may be octal or binary, names as long as they like.

use super::records::{self, Records};
use super::sparse::{self, Sparse};
use crate::{EngineError, acl};
use siltstone_store::Time;
use siltstone_store::catalog::{Metadata, Name, Xattr};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use tar::Header;

/// Bytes of a block; headers and content begin at a multiple of it.
pub(super) const BLOCK: usize = 512;
pub(super) const BLOCK_BYTES: u64 = BLOCK as u64;
/// Longest extended header or long name that is read.
const EXTENDED_BYTES_MAX: usize = 16 << 20;
/// PAX record for the label that `SELinux` keeps as an attribute.
const SELINUX: (&str, &[u8]) = ("RHT.security.selinux", b"security.selinux");
/// Attribute that holds the access control list of a file itself.
const ACL_ACCESS: &[u8] = b"system.posix_acl_access";
/// How GNU tar and star begin the records for extended attributes.
const XATTR_PREFIX: &[u8] = b"SCHILY.xattr.";

/// An archive that cannot be read on.
#[derive(Debug)]
pub(super) struct Fault {
    /// Where, in bytes from the begin.
    pub(super) at: u64,
    /// Why.
    pub(super) reason: String,
}

impl Fault {
    pub(super) fn new(at: u64, reason: impl Into<String>) -> Self {
        Self { at, reason: reason.into() }
    }

    /// Names the archive.
    pub(super) fn of(self, archive: &str) -> EngineError {
        EngineError::BadArchive { archive: archive.to_owned(), at: self.at, reason: self.reason }
    }
}

/// A member as its headers describe it.
#[derive(Debug)]
pub(super) struct Member {
    /// Its name as the archive has it.
    pub(super) name: Vec<u8>,
    pub(super) metadata: Metadata,
    pub(super) kind: MemberKind,
    /// Where its content begins.
    pub(super) content_at: u64,
    /// Bytes of its content in the archive.
    pub(super) stored_bytes: u64,
    /// Parts of it that cannot be kept.
    pub(super) lost: Vec<String>,
}

/// Kind of a member.
#[derive(Debug)]
pub(super) enum MemberKind {
    Directory,
    File {
        /// Length, holes included.
        size: u64,
        /// Where its data lies, if it has holes.
        sparse: Option<Sparse>,
    },
    /// A further name of the file of this name.
    Link {
        target: Vec<u8>,
    },
    Symlink {
        target: Vec<u8>,
    },
    Fifo,
    CharDevice {
        major: u32,
        minor: u32,
    },
    BlockDevice {
        major: u32,
        minor: u32,
    },
    /// Another, by its letter.
    Unknown(u8),
}

/// Content at a place of an archive.
pub(super) enum Found {
    Member(Box<Member>),
    /// Records for all members that follow.
    Global(Records),
    /// Something that is no member.
    Other,
    /// The end.
    End,
}

/// Reads what stands at `at`, `globals` being in force; and where the next thing begins.
///
/// # Errors
/// The archive is damaged, ends too soon or cannot be read.
pub(super) fn read(file: &File, at: u64, globals: &Records) -> Result<(Found, u64), Fault> {
    let mut before = Before::default();
    let mut next = at;
    loop {
        let at = next;
        let Some(header) = header_at(file, at)? else {
            return if before.is_empty() {
                Ok((Found::End, at))
            } else {
                Err(Fault::new(at, "the archive ends within a member"))
            };
        };
        let raw = header.as_old();
        let size = field(&raw.size, at, "size")?;
        let size = u64::try_from(size).map_err(|_| Fault::new(at, "a size below zero"))?;
        let content_at = at + BLOCK_BYTES;
        let extended = || bytes_at(file, content_at, size);
        let padded = |bytes: u64| {
            let end = bytes.checked_next_multiple_of(BLOCK_BYTES).and_then(|bytes| content_at.checked_add(bytes));
            end.ok_or_else(|| Fault::new(at, "a size beyond all archives"))
        };
        match raw.linkflag[0] {
            b'L' => before.name = Some(text(&extended()?).to_vec()),
            b'K' => before.target = Some(text(&extended()?).to_vec()),
            b'x' | b'X' => before.records = parsed(&extended()?, at)?,
            b'g' if before.is_empty() => return Ok((Found::Global(parsed(&extended()?, at)?), padded(size)?)),
            b'g' => return Err(Fault::new(at, "records for all members stand between a member's headers")),
            b'V' => return Ok((Found::Other, padded(size)?)),
            b'M' => return Err(Fault::new(at, "this is a further part of an archive in several volumes; join them")),
            letter => {
                let (member, after) = before.member(file, (&header, at, size), letter, globals)?;
                return Ok((Found::Member(Box::new(member)), after));
            }
        }
        next = padded(size)?;
    }
}

/// Tells whether a sound header stands at a place.
pub(super) fn is_header(file: &File, at: u64) -> bool {
    matches!(header_at(file, at), Ok(Some(_)))
}

/// The header at a place; `None` at the end of the archive.
fn header_at(file: &File, at: u64) -> Result<Option<Header>, Fault> {
    let mut block = [0; BLOCK];
    match read_full(file, &mut block, at)? {
        0 => return Ok(None),
        read if read < block.len() => return Err(Fault::new(at, "the archive is cut short within a header")),
        _ => {}
    }
    if block.iter().all(|&byte| byte == 0) {
        return Ok(None);
    }
    let header = Header::from_byte_slice(&block);
    let sum = records::number(&header.as_old().cksum);
    // Old programs added the bytes up as signed numbers.
    let of = |bytes: &[u8]| {
        bytes
            .iter()
            .fold((0, 0), |(plain, signed), &byte| (plain + i64::from(byte), signed + i64::from(byte.cast_signed())))
    };
    let (head, tail) = (of(&block[..148]), of(&block[156..]));
    let spaces = 8 * i64::from(b' ');
    if sum != Some(head.0 + tail.0 + spaces) && sum != Some(head.1 + tail.1 + spaces) {
        return Err(Fault::new(at, "no tar header stands here: the archive is damaged, or is none"));
    }
    Ok(Some(header.clone()))
}

fn read_full(file: &File, buffer: &mut [u8], at: u64) -> Result<usize, Fault> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Fault::new(at, error.to_string())),
        }
    }
    Ok(filled)
}

/// The body of an extended header.
fn bytes_at(file: &File, at: u64, bytes: u64) -> Result<Vec<u8>, Fault> {
    let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= EXTENDED_BYTES_MAX);
    let too_long = || Fault::new(at, format!("an extended header of more than {EXTENDED_BYTES_MAX} bytes"));
    let mut body = vec![0; bytes.ok_or_else(too_long)?];
    if read_full(file, &mut body, at)? < body.len() {
        return Err(Fault::new(at, "the archive is cut short within an extended header"));
    }
    Ok(body)
}

fn parsed(body: &[u8], at: u64) -> Result<Records, Fault> {
    Records::parse(body).ok_or_else(|| Fault::new(at, "the records of this extended header are malformed"))
}

fn field(bytes: &[u8], at: u64, what: &str) -> Result<i64, Fault> {
    records::number(bytes).ok_or_else(|| Fault::new(at, format!("the {what} in this header is no number")))
}

/// The bytes before the first NUL.
fn text(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// Extensions that stand before the header of a member and belong to it.
#[derive(Default)]
struct Before {
    name: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
    records: Records,
}

impl Before {
    fn is_empty(&self) -> bool {
        self.name.is_none() && self.target.is_none() && self.records.iter().next().is_none()
    }

    /// The member of this header, and where the next thing begins.
    fn member(
        self,
        file: &File,
        (header, at, size): (&Header, u64, u64),
        letter: u8,
        globals: &Records,
    ) -> Result<(Member, u64), Fault> {
        let said = Said { own: &self.records, globals };
        let fault = |reason: &str| Fault::new(at, reason);
        let mut lost = Vec::new();
        let metadata = said.metadata(header, at, &mut lost)?;
        let mut name =
            said.get("path").map(<[u8]>::to_vec).or(self.name).unwrap_or_else(|| header.path_bytes().to_vec());
        let target = said.get("linkpath").map(<[u8]>::to_vec).or(self.target);
        let target = target.unwrap_or_else(|| text(&header.as_old().linkname).to_vec());
        let mut stored_bytes = match said.get("size") {
            Some(value) => records::decimal(value).ok_or_else(|| fault("the record 'size' is no number"))?,
            None => size,
        };
        let mut content_at = at + BLOCK_BYTES;
        let device = || {
            let (major, minor) = match (header.as_ustar(), header.as_gnu()) {
                (Some(ustar), _) => (&ustar.dev_major, &ustar.dev_minor),
                (_, Some(gnu)) => (&gnu.dev_major, &gnu.dev_minor),
                _ => return Err(fault("a device without numbers")),
            };
            let part = |bytes: &[u8]| {
                u32::try_from(field(bytes, at, "device number")?).map_err(|_| fault("a device number beyond 32 bits"))
            };
            Ok((part(major)?, part(minor)?))
        };
        let mut kind = match letter {
            // A V7 archive tells a directory by its name alone.
            b'\0' if name.ends_with(b"/") => MemberKind::Directory,
            b'\0' | b'0' | b'7' => MemberKind::File { size: stored_bytes, sparse: None },
            b'S' => {
                let (sparse, size, after) = sparse::old(file, header, at)?;
                content_at = after;
                MemberKind::File { size, sparse: Some(sparse) }
            }
            b'1' => MemberKind::Link { target },
            b'2' => MemberKind::Symlink { target },
            b'3' => device().map(|(major, minor)| MemberKind::CharDevice { major, minor })?,
            b'4' => device().map(|(major, minor)| MemberKind::BlockDevice { major, minor })?,
            b'5' | b'D' => MemberKind::Directory,
            b'6' => MemberKind::Fifo,
            other => MemberKind::Unknown(other),
        };
        if let MemberKind::File { sparse: None, .. } = kind
            && let Some((sparse, size)) = sparse::in_records(&self.records).map_err(fault)?
        {
            kind = MemberKind::File { size, sparse: Some(sparse) };
            name = self.records.get("GNU.sparse.name").map_or(name, <[u8]>::to_vec);
        }
        match kind {
            MemberKind::File { .. } | MemberKind::Unknown(_) => {}
            // GNU's directories of incremental backups list their names.
            MemberKind::Directory if letter == b'D' => {}
            // POSIX lets a link carry the content again; older programs give its size and no content.
            MemberKind::Link { .. } if stored_bytes > 0 && !is_followed(file, content_at) => {}
            _ => stored_bytes = 0,
        }
        let end = stored_bytes.checked_next_multiple_of(BLOCK_BYTES).and_then(|bytes| content_at.checked_add(bytes));
        let end = end.ok_or_else(|| fault("a size beyond all archives"))?;
        Ok((Member { name, metadata, kind, content_at, stored_bytes, lost }, end))
    }
}

/// Tells whether the next header, or the end, stands right at a place.
fn is_followed(file: &File, at: u64) -> bool {
    header_at(file, at).is_ok()
}

/// The records that hold for a member.
struct Said<'r> {
    own: &'r Records,
    globals: &'r Records,
}

impl Said<'_> {
    /// The value of a record. An empty one of the member's own takes back what was said for all.
    fn get(&self, key: &str) -> Option<&[u8]> {
        self.own.get(key).or_else(|| self.globals.get(key)).filter(|value| !value.is_empty())
    }

    fn metadata(&self, header: &Header, at: u64, lost: &mut Vec<String>) -> Result<Metadata, Fault> {
        let raw = header.as_old();
        let owner = |key: &str, bytes: &[u8]| {
            let number = match self.get(key) {
                Some(value) => records::decimal::<i64>(value),
                None => records::number(bytes),
            };
            // Some programs write the numbers beyond 2^31 as negative ones.
            let unsigned = |number| u32::try_from(number).or_else(|_| i32::try_from(number).map(i32::cast_unsigned));
            number
                .and_then(|number| unsigned(number).ok())
                .ok_or_else(|| Fault::new(at, format!("the {key} is no number of an owner")))
        };
        let name = |key: &str, bytes: Option<&[u8]>| {
            let bytes = self.get(key).unwrap_or_else(|| bytes.map(text).unwrap_or_default());
            (!bytes.is_empty()).then(|| Name::from(bytes))
        };
        let moment = |key: &str| match self.get(key).map(records::moment) {
            Some(None) => Err(Fault::new(at, format!("the record '{key}' is no moment"))),
            given => Ok(given.flatten()),
        };
        // The names stand in the same place in both forms.
        let (user, group) = match (header.as_ustar(), header.as_gnu()) {
            (Some(ustar), _) => (Some(&ustar.uname[..]), Some(&ustar.gname[..])),
            (_, Some(gnu)) => (Some(&gnu.uname[..]), Some(&gnu.gname[..])),
            _ => (None, None),
        };
        let seconds = field(&raw.mtime, at, "time")?;
        let modified = moment("mtime")?.unwrap_or(Time { seconds, nanoseconds: 0 });
        let mode = field(&raw.mode, at, "mode")?;
        let mut metadata = Metadata {
            mode: u32::try_from(mode & 0o7777).unwrap_or_default(),
            uid: owner("uid", &raw.uid)?,
            gid: owner("gid", &raw.gid)?,
            user: name("uname", user),
            group: name("gname", group),
            modified,
            changed: moment("ctime")?.unwrap_or(modified),
            links: 1,
            ..Metadata::default()
        };
        metadata.xattrs = self.xattrs(&metadata, lost);
        let list = metadata.xattrs.iter().find(|(name, _)| name == ACL_ACCESS);
        if let Some(permissions) = list.and_then(|(_, list)| acl::permissions(list)) {
            // Some programs write the group's own permissions into the header, where the kernel shows the mask.
            metadata.mode = metadata.mode & 0o7000 | permissions;
        }
        Ok(metadata)
    }

    /// Extended attributes and access control lists, in the order of their names.
    fn xattrs(&self, metadata: &Metadata, lost: &mut Vec<String>) -> Vec<Xattr> {
        let mut found: Vec<Xattr> = Vec::new();
        for (key, value) in self.own.iter() {
            if let Some(name) = key.strip_prefix(XATTR_PREFIX) {
                found.push((unescaped(name), value.to_vec()));
            } else if key == SELINUX.0.as_bytes() {
                found.push((SELINUX.1.to_vec(), [value, b"\0"].concat()));
            } else if key == b"SCHILY.acl.ace" {
                lost.push("its access control list of NFSv4 has no place on Linux".to_owned());
            }
        }
        for (attribute, record) in acl::LISTS {
            let Some(value) = self.own.get(record).filter(|value| !value.is_empty()) else { continue };
            match acl::parse(value, metadata) {
                // The permissions say the same.
                Ok(list) if attribute == ACL_ACCESS && list.len() <= acl::PLAIN_BYTES => {}
                Ok(list) => found.push((attribute.to_vec(), list)),
                Err(reason) => lost.push(format!("access control list: {reason}")),
            }
        }
        found.sort_by(|left, right| left.0.cmp(&right.0));
        // Of records of one name the last holds.
        found.reverse();
        found.dedup_by(|before, last| before.0 == last.0);
        found.reverse();
        found
    }
}

/// The name of an attribute as GNU tar writes it, with the two characters that would end it too soon put back.
fn unescaped(name: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&byte, after)) = rest.split_first() {
        let (byte, after) = match rest {
            [b'%', b'2', b'5', after @ ..] => (b'%', after),
            [b'%', b'3', b'D' | b'd', after @ ..] => (b'=', after),
            _ => (byte, after),
        };
        plain.push(byte);
        rest = after;
    }
    plain
}
