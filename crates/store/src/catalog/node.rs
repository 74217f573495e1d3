//! The nodes of a catalog: leaves hold entries, inner nodes hold the first path and the number of each child.
//!
//! Both begin with a tag and a count. Paths are front-coded: the number of leading bytes shared with the path before, then the rest. An
//! entry leaves out what it has in common with the one before it, and writes numbers that grow slowly as differences; all of
//! that starts anew in each node, so that a node is read without any other. `docs/FORMAT.md` draws the boxes.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation
)]

use super::{
    Content, Entry, EntryPath, Metadata, Name,
    path::{compare_paths, shared_bytes},
    wire::{Fault, WireReader, put_bytes, put_difference, put_number},
};
use crate::{
    ids::{ChunkNumber, Time},
    recipe::{check_recipe, put_recipe, read_recipe},
};
use std::{cmp::Ordering, sync::Arc};

/// Greatest size of a node, plain.
pub const NODE_BYTES_MAX: usize = 8 << 20;

/// Greatest sum of the paths in a node, once they are whole again: bounds what front coding can hide in a few bytes.
pub(super) const NODE_PATHS_BYTES_MAX: usize = 8 << 20;

/// Greatest height of a catalog above its leaves: with two children a node, more leaves than there are chunk numbers.
pub(super) const LEVELS_MAX: u8 = 64;

const TAG_LEAF: u8 = 1;
const TAG_INNER: u8 = 2;

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

/// What an entry inherits from the one before it in the same node.
#[derive(Debug, Default)]
struct Inherited {
    path: Vec<u8>,
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

/// Writes a leaf entry by entry.
#[derive(Debug, Default)]
pub(super) struct LeafEncoder {
    body: Vec<u8>,
    first: Option<EntryPath>,
    count: u64,
    paths_bytes: usize,
    inherited: Inherited,
}

impl LeafEncoder {
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn bytes(&self) -> usize {
        self.body.len()
    }

    pub(super) fn paths_bytes(&self) -> usize {
        self.paths_bytes
    }

    /// Appends an entry that [`check_entry`] has passed.
    pub(super) fn push(&mut self, entry: &Entry) {
        if self.first.is_none() {
            self.first = Some(entry.path.clone());
        }
        put_path(&mut self.body, entry.path.as_bytes(), &mut self.inherited.path);
        put_metadata(&mut self.body, entry, &mut self.inherited);
        put_content(&mut self.body, &entry.content, &mut self.inherited.chunk);
        self.count += 1;
        self.paths_bytes += entry.path.as_bytes().len();
    }

    /// The first path and the bytes of the finished leaf; the encoder is then as new.
    pub(super) fn take(&mut self) -> (Option<EntryPath>, Vec<u8>) {
        let done = std::mem::take(self);
        let mut node = vec![TAG_LEAF];
        put_number(&mut node, done.count);
        node.extend_from_slice(&done.body);
        (done.first, node)
    }
}

/// Writes an inner node child by child.
#[derive(Debug, Default)]
pub(super) struct InnerEncoder {
    body: Vec<u8>,
    first: Option<Child>,
    count: u64,
    paths_bytes: usize,
    /// Path and number of the child before.
    path: Vec<u8>,
    node: Option<ChunkNumber>,
}

impl InnerEncoder {
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn bytes(&self) -> usize {
        self.body.len()
    }

    pub(super) fn paths_bytes(&self) -> usize {
        self.paths_bytes
    }

    /// The node's child, if it has exactly one.
    pub(super) fn only_child(&self) -> Option<ChunkNumber> {
        self.first.as_ref().filter(|_| self.count == 1).map(|child| child.node)
    }

    pub(super) fn push(&mut self, child: &Child) {
        if self.first.is_none() {
            self.first = Some(child.clone());
        }
        put_path(&mut self.body, child.first.as_bytes(), &mut self.path);
        put_difference(
            &mut self.body,
            child.node.0,
            self.node.unwrap_or(ChunkNumber::METADATA_FIRST).0,
        );
        self.node = Some(child.node);
        self.count += 1;
        self.paths_bytes += child.first.as_bytes().len();
    }

    /// The first path and the bytes of the finished node; the encoder is then as new.
    pub(super) fn take(&mut self, level: u8) -> (Option<EntryPath>, Vec<u8>) {
        let done = std::mem::take(self);
        let mut node = vec![TAG_INNER, level];
        put_number(&mut node, done.count);
        node.extend_from_slice(&done.body);
        (done.first.map(|child| child.first), node)
    }
}

/// A child of an inner node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Child {
    /// The first path beneath it.
    pub(super) first: EntryPath,
    pub(super) node: ChunkNumber,
}

impl Child {
    /// More bytes than it takes in a node.
    pub(super) fn bytes_bound(&self) -> usize {
        self.first.as_bytes().len() + 30
    }
}

/// A node as loaded.
#[derive(Debug)]
pub(super) enum Node {
    Leaf(LeafDecoder),
    Inner { level: u8, children: Vec<Child> },
}

impl Node {
    /// Reads the head of a leaf, or the whole of an inner node.
    pub(super) fn open(bytes: Arc<[u8]>) -> Result<Self, Fault> {
        if bytes.len() > NODE_BYTES_MAX {
            return Err("it exceeds the size of a node");
        }
        let mut reader = WireReader::new(&bytes);
        match reader.byte()? {
            TAG_LEAF => {
                let left = reader.number()?;
                let offset = bytes.len() - reader.left();
                Ok(Self::Leaf(LeafDecoder {
                    bytes,
                    offset,
                    left,
                    paths_bytes: 0,
                    inherited: Inherited::default(),
                }))
            }
            TAG_INNER => {
                let level = reader.byte()?;
                if !(1..=LEVELS_MAX).contains(&level) {
                    return Err("its level is not one an inner node can have");
                }
                Ok(Self::Inner {
                    level,
                    children: read_children(&mut reader)?,
                })
            }
            _ => Err("it is no node of a catalog"),
        }
    }

    /// 0 for a leaf.
    pub(super) fn level(&self) -> u8 {
        match self {
            Self::Leaf(_) => 0,
            Self::Inner { level, .. } => *level,
        }
    }
}

/// Reads a leaf entry by entry.
#[derive(Debug)]
pub(super) struct LeafDecoder {
    bytes: Arc<[u8]>,
    offset: usize,
    left: u64,
    paths_bytes: usize,
    inherited: Inherited,
}

impl LeafDecoder {
    /// The next entry. After an error the node is not to be used.
    pub(super) fn next(&mut self) -> Result<Option<Entry>, Fault> {
        let mut reader = WireReader::new(self.bytes.get(self.offset..).unwrap_or_default());
        if self.left == 0 {
            return reader.end().map(|()| None);
        }
        let path = read_path(&mut reader, &mut self.inherited.path, &mut self.paths_bytes)?;
        let (kind, metadata) = read_metadata(&mut reader, &mut self.inherited)?;
        let content = read_content(&mut reader, kind, &mut self.inherited.chunk)?;
        self.offset = self.bytes.len() - reader.left();
        self.left -= 1;
        Ok(Some(Entry {
            path,
            metadata,
            content,
        }))
    }
}

fn read_children(reader: &mut WireReader<'_>) -> Result<Vec<Child>, Fault> {
    let count = reader.number()?;
    if count == 0 {
        return Err("it has no children");
    }
    let (mut path, mut paths_bytes) = (Vec::new(), 0);
    let mut before = ChunkNumber::METADATA_FIRST;
    let mut children = Vec::new();
    for _ in 0..count {
        let first = read_path(reader, &mut path, &mut paths_bytes)?;
        let node = ChunkNumber(reader.difference(before.0)?);
        if !node.is_metadata() {
            return Err("a child is no metadata chunk");
        }
        before = node;
        children.push(Child { first, node });
    }
    reader.end()?;
    Ok(children)
}

/// Appends a path, given the one before it, which it then replaces.
fn put_path(out: &mut Vec<u8>, path: &[u8], before: &mut Vec<u8>) {
    let shared = shared_bytes(before, path);
    put_number(out, shared as u64);
    put_bytes(out, path.get(shared..).unwrap_or_default());
    before.truncate(shared);
    before.extend_from_slice(path.get(shared..).unwrap_or_default());
}

/// Reads a path, given the one before it, which it then replaces and which it must follow in the order.
fn read_path(reader: &mut WireReader<'_>, before: &mut Vec<u8>, paths_bytes: &mut usize) -> Result<EntryPath, Fault> {
    let shared = usize::try_from(reader.number()?).map_err(|_| "a path shares more than the one before it has")?;
    let suffix = reader.bytes()?;
    let head = before
        .get(..shared)
        .ok_or("a path shares more than the one before it has")?;
    *paths_bytes = paths_bytes.saturating_add(shared).saturating_add(suffix.len());
    if *paths_bytes > NODE_PATHS_BYTES_MAX {
        return Err("its paths exceed the size all paths of a node can have");
    }
    let path = [head, suffix].concat();
    if compare_paths(before, &path) != Ordering::Less {
        return Err("its paths are not in order");
    }
    before.truncate(shared);
    before.extend_from_slice(suffix);
    EntryPath::decode(path)
}

/// That an entry can be written, and more bytes than it takes in a leaf: what is in it of variable length, 20 for each piece
/// of its recipe or pair of its attributes, and 200 for the rest (13 numbers of at most 10 bytes, times, flags).
pub(super) fn check_entry(entry: &Entry) -> Result<usize, Fault> {
    let metadata = &entry.metadata;
    check_metadata(metadata)?;
    let names = [&metadata.user, &metadata.group]
        .into_iter()
        .flatten()
        .map(|name| name.as_bytes().len());
    let xattrs = metadata
        .xattrs
        .iter()
        .map(|(name, value)| name.len() + value.len() + 20);
    let content = match &entry.content {
        Content::File { recipe, .. } => 20 * check_recipe(recipe)?,
        Content::Symlink { target } => target.len(),
        Content::Directory | Content::Fifo | Content::CharDevice { .. } | Content::BlockDevice { .. } => 0,
    };
    Ok(200 + entry.path.as_bytes().len() + names.sum::<usize>() + xattrs.sum::<usize>() + content)
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
    let mode = if has(flags::SAME_MODE) {
        inherited.mode
    } else {
        reader.number32()?
    };
    let device = if has(flags::SAME_DEVICE) {
        inherited.device
    } else {
        reader.number()?
    };
    let modified = read_time(reader, inherited.modified_seconds)?;
    let changed = if has(flags::CHANGED_WHEN_MODIFIED) {
        modified
    } else {
        read_time(reader, modified.seconds)?
    };
    let inode = reader.difference(inherited.inode)?;
    let links = reader.number()?;
    let xattrs = if has(flags::XATTRS) {
        read_xattrs(reader)?
    } else {
        Vec::new()
    };
    let Owner { uid, gid, user, group } = inherited.owner.clone();
    let metadata = Metadata {
        mode,
        uid,
        gid,
        user,
        group,
        modified,
        changed,
        inode,
        device,
        links,
        xattrs,
    };
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
    Owner {
        uid: metadata.uid,
        gid: metadata.gid,
        user: metadata.user.clone(),
        group: metadata.group.clone(),
    }
}

fn put_owner(out: &mut Vec<u8>, owner: &Owner) {
    put_number(out, owner.uid.into());
    put_number(out, owner.gid.into());
    put_name(out, owner.user.as_ref());
    put_name(out, owner.group.as_ref());
}

fn read_owner(reader: &mut WireReader<'_>) -> Result<Owner, Fault> {
    Ok(Owner {
        uid: reader.number32()?,
        gid: reader.number32()?,
        user: read_name(reader)?,
        group: read_name(reader)?,
    })
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
    Ok(Time {
        seconds,
        nanoseconds: reader.fixed32()?,
    })
}

fn put_xattrs(out: &mut Vec<u8>, xattrs: &[(Vec<u8>, Vec<u8>)]) {
    put_number(out, xattrs.len() as u64);
    for (name, value) in xattrs {
        put_bytes(out, name);
        put_bytes(out, value);
    }
}

fn read_xattrs(reader: &mut WireReader<'_>) -> Result<Vec<(Vec<u8>, Vec<u8>)>, Fault> {
    let count = reader.number()?;
    if count == 0 {
        return Err("it announces extended attributes and has none");
    }
    (0..count)
        .map(|_| Ok((reader.bytes()?.to_vec(), reader.bytes()?.to_vec())))
        .collect()
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
        kinds::FILE => Content::File {
            size: reader.number()?,
            recipe: read_recipe(reader, chunk)?,
        },
        kinds::SYMLINK => Content::Symlink {
            target: reader.bytes()?.to_vec(),
        },
        kinds::FIFO => Content::Fifo,
        kinds::CHAR_DEVICE => Content::CharDevice {
            major: reader.number32()?,
            minor: reader.number32()?,
        },
        kinds::BLOCK_DEVICE => Content::BlockDevice {
            major: reader.number32()?,
            minor: reader.number32()?,
        },
        _ => return Err("an entry is of an unknown kind"),
    })
}
