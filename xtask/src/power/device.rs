//! A block device that remembers: a file in a file system of our own (FUSE), which keeps its bytes in memory and logs
//! every write and every flush. A loop device over it looks like a disk to the kernel, so what it logs is what a disk
//! would have been told.

use anyhow::{Context, Result};
use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, Generation, INodeNo, LockOwner,
    OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyWrite, Request, WriteFlags,
};
use siltstone_testbed::deterministic::Sequence;
use siltstone_testbed::program;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

const FILE: &str = "disk";
const FILE_NUMBER: INodeNo = INodeNo(2);
const SECTOR_BYTES: usize = 512;

/// One thing the disk was told.
#[derive(Clone, Debug)]
enum Record {
    Write { offset: usize, bytes: Vec<u8> },
    Flush,
}

/// The disk's content, and how it came to be.
#[derive(Debug)]
struct Disk {
    beginning: Vec<u8>,
    now: Vec<u8>,
    log: Vec<Record>,
}

/// The log of a device, to be read while it is in use and after.
#[derive(Clone, Debug)]
pub(super) struct Log(Arc<Mutex<Disk>>);

impl Log {
    /// Log of a disk that has this content.
    pub(super) fn new(beginning: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new(Disk { now: beginning.clone(), beginning, log: Vec::new() })))
    }

    /// Returns how much has been logged.
    pub(super) fn position(&self) -> usize {
        self.with(|disk| disk.log.len())
    }

    /// Flushes logged before this position.
    pub(super) fn flushes(&self, position: usize) -> usize {
        self.with(|disk| disk.log[..position].iter().filter(|record| matches!(record, Record::Flush)).count())
    }

    /// The disk after a power loss at this position: all that was written before the last flush is there; of what came
    /// after, any part may be, in whole sectors.
    pub(super) fn after_power_loss(&self, position: usize, sequence: &mut Sequence) -> Vec<u8> {
        self.with(|disk| {
            let log = &disk.log[..position];
            let flushed = log.iter().rposition(|record| matches!(record, Record::Flush)).unwrap_or(0);
            let mut image = disk.beginning.clone();
            for (at, record) in log.iter().enumerate() {
                let Record::Write { offset, bytes } = record else { continue };
                let kept = if at < flushed { bytes.len() } else { survivors(bytes.len(), sequence) };
                image[*offset..offset + kept].copy_from_slice(&bytes[..kept]);
            }
            image
        })
    }

    fn with<T>(&self, look: impl FnOnce(&mut Disk) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Draws how much of an unflushed write is on the disk: all, nothing, or some sectors.
fn survivors(bytes: usize, sequence: &mut Sequence) -> usize {
    match sequence.below(5) {
        0 | 1 => bytes,
        2 | 3 => 0,
        _ => sequence.index(bytes / SECTOR_BYTES + 1) * SECTOR_BYTES,
    }
}

/// The file system with the one file.
struct Files(Log);

impl Files {
    fn attributes(&self, number: INodeNo) -> FileAttr {
        let size = self.0.with(|disk| disk.now.len() as u64);
        let is_file = number == FILE_NUMBER;
        FileAttr {
            ino: number,
            size: if is_file { size } else { 0 },
            blocks: size / SECTOR_BYTES as u64,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if is_file { FileType::RegularFile } else { FileType::Directory },
            perm: if is_file { 0o600 } else { 0o700 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

/// Nothing changes but by us: attributes may be kept.
const FOR_EVER: Duration = Duration::from_hours(1);

impl Filesystem for Files {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == INodeNo::ROOT && name == FILE {
            reply.entry(&FOR_EVER, &self.attributes(FILE_NUMBER), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOR_EVER, &self.attributes(number));
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.0.with(|disk| {
            let start = usize::try_from(offset).unwrap_or(usize::MAX).min(disk.now.len());
            let end = start.saturating_add(size as usize).min(disk.now.len());
            reply.data(&disk.now[start..end]);
        });
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        self.0.with(|disk| {
            let offset = usize::try_from(offset).unwrap_or(usize::MAX);
            let Some(place) = offset.checked_add(data.len()).and_then(|end| disk.now.get_mut(offset..end)) else {
                return reply.error(Errno::ENOSPC);
            };
            place.copy_from_slice(data);
            disk.log.push(Record::Write { offset, bytes: data.to_vec() });
            reply.written(u32::try_from(data.len()).unwrap_or(u32::MAX));
        });
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.0.with(|disk| disk.log.push(Record::Flush));
        reply.ok();
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }
}

/// A mounted file system with one file system image on a loop device; all of it goes when this is dropped.
pub(super) struct Mounted {
    folder: PathBuf,
    device: String,
    /// Gone after the loop device.
    session: Option<BackgroundSession>,
}

impl Mounted {
    /// Mounts the image in `file`, below `place`.
    pub(super) fn image(file: &Path, place: &Path) -> Result<Self> {
        Self::on(file, place, None)
    }

    /// Mounts a disk that logs, below `place`.
    pub(super) fn logged(log: &Log, place: &Path) -> Result<Self> {
        let folder = place.join("device");
        fs::create_dir_all(&folder)?;
        let session = fuser::spawn_mount(Files(log.clone()), &folder, &Config::default());
        let session = session.context("a file system of our own cannot be mounted")?;
        Self::on(&folder.join(FILE), place, Some(session))
    }

    fn on(file: &Path, place: &Path, session: Option<BackgroundSession>) -> Result<Self> {
        let device = program::quietly(Command::new("losetup").args(["--find", "--show"]).arg(file))?;
        let device = device.trim().to_owned();
        let folder = place.join("mounted");
        fs::create_dir_all(&folder)?;
        let mounted = Self { folder, device, session };
        program::quietly(Command::new("mount").args(["-t", "ext4"]).arg(&mounted.device).arg(&mounted.folder))?;
        Ok(mounted)
    }

    /// Where it is mounted.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = program::quietly(Command::new("umount").arg(&self.folder));
        let _ = program::quietly(Command::new("losetup").args(["--detach", &self.device]));
        drop(self.session.take());
    }
}
