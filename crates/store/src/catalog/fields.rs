//! Writing one entry in a leaf, but for its path: the fields that differ from the entry before.
//!
//! A flag byte tells the kind and which fields are left out because they are those of the entry before, or of an entry
//! full of zeros at the start of a leaf. Times, inodes and chunk numbers are written as differences. `docs/FORMAT.md`
//! draws the box.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::{
    Content, Entry, Metadata, Name, Xattr,
    wire::{Fault, WireReader, put_bytes, put_difference, put_number},
};
use crate::{
    ids::Time,
    recipe::{check_recipe, put_recipe, read_recipe},
};

/// The flag byte of an entry: the kind in three bits, then what it shares with the entry before.
mod flags {
    pub(super) const KIND: u8 = 0b111;
    pub(super) const SAME_OWNER: u8 = 1 << 3;
    pub(super) const SAME_MODE: u8 = 1 << 4;
    pub(super) const SAME_DEVICE: u8 = 1 << 5;
    pub(super) const CHANGED_WHEN_MODIFIED: u8 = 1 << 6;
    pub(super) const XATTRS: u8 = 1 << 7;
}

mod kinds {
    pub(super) const DIRECTORY: u8 = 0;
    pub(super) const FILE: u8 = 1;
    pub(super) const SYMLINK: u8 = 2;
    pub(super) const FIFO: u8 = 3;
    pub(super) const CHAR_DEVICE: u8 = 4;
    pub(super) const BLOCK_DEVICE: u8 = 5;
}

/// Fields that an entry inherits from the one before it in the same leaf, beside the path.
#[derive(Clone, Debug, Default)]
pub(super) struct Inherited {
    owner: Owner,
    mode: u32,
    device: u64,
    inode: u64,
    modified_seconds: i64,
    /// The chunk number after the last run.
    chunk: u64,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Owner {
    uid: u32,
    gid: u32,
    user: Option<Name>,
    group: Option<Name>,
}

/// Checks that an entry can be written, and returns more bytes than it takes in a leaf: what is in it of variable
/// length, 20 for each piece of its recipe or pair of its attributes, and 200 for the rest (13 numbers of at most 10
/// bytes, times, flags).
pub(super) fn check_entry(entry: &Entry) -> Result<usize, Fault> {
    let metadata = &entry.metadata;
    check_metadata(metadata)?;
    let names = [&metadata.user, &metadata.group].into_iter().flatten().map(|name| name.as_bytes().len());
    let xattrs = metadata.xattrs.iter().map(|(name, value)| name.len() + value.len() + 20);
    let content = match &entry.content {
        Content::File { recipe, .. } => 20 * check_recipe(recipe)?,
        Content::Symlink { target } => target.len(),
        Content::Directory | Content::Fifo | Content::CharDevice { .. } | Content::BlockDevice { .. } => 0,
    };
    Ok(200 + entry.path.as_bytes().len() + names.sum::<usize>() + xattrs.sum::<usize>() + content)
}

/// Appends what an entry says of its file; [`check_entry`] has passed it.
pub(super) fn put_fields(out: &mut Vec<u8>, entry: &Entry, inherited: &mut Inherited) {
    put_metadata(out, entry, inherited);
    put_content(out, &entry.content, &mut inherited.chunk);
}

/// Reads what [`put_fields`] wrote.
pub(super) fn read_fields(
    reader: &mut WireReader<'_>,
    inherited: &mut Inherited,
) -> Result<(Metadata, Content), Fault> {
    let (kind, metadata) = read_metadata(reader, inherited)?;
    let content = read_content(reader, kind, &mut inherited.chunk)?;
    Ok((metadata, content))
}

fn put_metadata(out: &mut Vec<u8>, entry: &Entry, inherited: &mut Inherited) {
    let metadata = &entry.metadata;
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    let same_owner = is_same_owner(metadata, &inherited.owner);
    let same_mode = metadata.mode == inherited.mode;
    let same_device = metadata.device == inherited.device;
    let changed_when_modified = metadata.changed == metadata.modified;
    out.push(
        kind(&entry.content)
            | flag(same_owner, flags::SAME_OWNER)
            | flag(same_mode, flags::SAME_MODE)
            | flag(same_device, flags::SAME_DEVICE)
            | flag(changed_when_modified, flags::CHANGED_WHEN_MODIFIED)
            | flag(!metadata.xattrs.is_empty(), flags::XATTRS),
    );
    if !same_owner {
        inherited.owner = owner(metadata);
        put_owner(out, &inherited.owner);
    }
    if !same_mode {
        put_number(out, metadata.mode.into());
    }
    if !same_device {
        put_number(out, metadata.device);
    }
    put_time(out, metadata.modified, inherited.modified_seconds);
    if !changed_when_modified {
        put_time(out, metadata.changed, metadata.modified.seconds);
    }
    put_difference(out, metadata.inode, inherited.inode);
    put_number(out, metadata.links);
    if !metadata.xattrs.is_empty() {
        put_xattrs(out, &metadata.xattrs);
    }
    inherit(inherited, metadata);
}

fn read_metadata(reader: &mut WireReader<'_>, inherited: &mut Inherited) -> Result<(u8, Metadata), Fault> {
    let head = reader.byte()?;
    let has = |flag: u8| head & flag != 0;
    if !has(flags::SAME_OWNER) {
        inherited.owner = read_owner(reader)?;
    }
    let mode = if has(flags::SAME_MODE) { inherited.mode } else { reader.number32()? };
    let device = if has(flags::SAME_DEVICE) { inherited.device } else { reader.number()? };
    let modified = read_time(reader, inherited.modified_seconds)?;
    let changed = if has(flags::CHANGED_WHEN_MODIFIED) { modified } else { read_time(reader, modified.seconds)? };
    let inode = reader.difference(inherited.inode)?;
    let links = reader.number()?;
    let xattrs = if has(flags::XATTRS) { read_xattrs(reader)? } else { Vec::new() };
    let Owner { uid, gid, user, group } = inherited.owner.clone();
    let metadata = Metadata { mode, uid, gid, user, group, modified, changed, inode, device, links, xattrs };
    check_metadata(&metadata)?;
    inherit(inherited, &metadata);
    Ok((head & flags::KIND, metadata))
}

fn inherit(inherited: &mut Inherited, metadata: &Metadata) {
    inherited.mode = metadata.mode;
    inherited.device = metadata.device;
    inherited.inode = metadata.inode;
    inherited.modified_seconds = metadata.modified.seconds;
}

fn check_metadata(metadata: &Metadata) -> Result<(), Fault> {
    if metadata.mode > 0o7777 {
        return Err("its mode has more than twelve bits");
    }
    if metadata.modified.nanoseconds >= 1_000_000_000 || metadata.changed.nanoseconds >= 1_000_000_000 {
        return Err("a time has a second or more of nanoseconds");
    }
    Ok(())
}

fn is_same_owner(metadata: &Metadata, owner: &Owner) -> bool {
    metadata.uid == owner.uid
        && metadata.gid == owner.gid
        && metadata.user == owner.user
        && metadata.group == owner.group
}

fn owner(metadata: &Metadata) -> Owner {
    Owner { uid: metadata.uid, gid: metadata.gid, user: metadata.user.clone(), group: metadata.group.clone() }
}

fn put_owner(out: &mut Vec<u8>, owner: &Owner) {
    put_number(out, owner.uid.into());
    put_number(out, owner.gid.into());
    put_name(out, owner.user.as_ref());
    put_name(out, owner.group.as_ref());
}

fn read_owner(reader: &mut WireReader<'_>) -> Result<Owner, Fault> {
    Ok(Owner { uid: reader.number32()?, gid: reader.number32()?, user: read_name(reader)?, group: read_name(reader)? })
}

/// An empty string stands for no name: no user or group is called so.
fn put_name(out: &mut Vec<u8>, name: Option<&Name>) {
    put_bytes(out, name.map(Name::as_bytes).unwrap_or_default());
}

fn read_name(reader: &mut WireReader<'_>) -> Result<Option<Name>, Fault> {
    let bytes = reader.bytes()?;
    Ok((!bytes.is_empty()).then(|| Name::from(bytes)))
}

fn put_time(out: &mut Vec<u8>, time: Time, from_seconds: i64) {
    put_difference(out, time.seconds.cast_unsigned(), from_seconds.cast_unsigned());
    out.extend_from_slice(&time.nanoseconds.to_le_bytes());
}

fn read_time(reader: &mut WireReader<'_>, from_seconds: i64) -> Result<Time, Fault> {
    let seconds = reader.difference(from_seconds.cast_unsigned())?.cast_signed();
    Ok(Time { seconds, nanoseconds: reader.fixed32()? })
}

fn put_xattrs(out: &mut Vec<u8>, xattrs: &[Xattr]) {
    put_number(out, xattrs.len() as u64);
    for (name, value) in xattrs {
        put_bytes(out, name);
        put_bytes(out, value);
    }
}

fn read_xattrs(reader: &mut WireReader<'_>) -> Result<Vec<Xattr>, Fault> {
    let count = reader.number()?;
    if count == 0 {
        return Err("it announces extended attributes and has none");
    }
    (0..count).map(|_| Ok((reader.bytes()?.to_vec(), reader.bytes()?.to_vec()))).collect()
}

fn kind(content: &Content) -> u8 {
    match content {
        Content::Directory => kinds::DIRECTORY,
        Content::File { .. } => kinds::FILE,
        Content::Symlink { .. } => kinds::SYMLINK,
        Content::Fifo => kinds::FIFO,
        Content::CharDevice { .. } => kinds::CHAR_DEVICE,
        Content::BlockDevice { .. } => kinds::BLOCK_DEVICE,
    }
}

fn put_content(out: &mut Vec<u8>, content: &Content, chunk: &mut u64) {
    match content {
        Content::Directory | Content::Fifo => {}
        Content::File { size, recipe } => {
            put_number(out, *size);
            put_recipe(out, recipe, chunk);
        }
        Content::Symlink { target } => put_bytes(out, target),
        Content::CharDevice { major, minor } | Content::BlockDevice { major, minor } => {
            put_number(out, (*major).into());
            put_number(out, (*minor).into());
        }
    }
}

fn read_content(reader: &mut WireReader<'_>, kind: u8, chunk: &mut u64) -> Result<Content, Fault> {
    Ok(match kind {
        kinds::DIRECTORY => Content::Directory,
        kinds::FILE => Content::File { size: reader.number()?, recipe: read_recipe(reader, chunk)? },
        kinds::SYMLINK => Content::Symlink { target: reader.bytes()?.to_vec() },
        kinds::FIFO => Content::Fifo,
        kinds::CHAR_DEVICE => Content::CharDevice { major: reader.number32()?, minor: reader.number32()? },
        kinds::BLOCK_DEVICE => Content::BlockDevice { major: reader.number32()?, minor: reader.number32()? },
        _ => return Err("an entry is of an unknown kind"),
    })
}
