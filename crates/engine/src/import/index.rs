//! The names of an archive in catalog order, and where the member of each stands.

use super::member::{self, BLOCK_BYTES, Fault, Found, Member, MemberKind};
use super::records::Records;
use super::sparse;
use crate::fs::{Problem, ProblemKind};
use crate::{Observer, Silent};
use siltstone_store::catalog::EntryPath;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::fs::File;

/// Members looked at between two looks at whether the user wants to stop.
const MEMBERS_A_LOOK: u64 = 1024;
/// Marks a name that is no hard link.
const NO_TARGET: u32 = u32::MAX;

/// Where the name of a member stands, and the member itself.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Where in the bytes of all names it begins; the target of a hard link follows it.
    begin: usize,
    bytes: u32,
    target_bytes: u32,
    /// Where in the archive the member begins.
    at: u64,
}

/// A name of the snapshot to be, and where in the archive the member is that it stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place<'i> {
    pub(super) path: &'i [u8],
    pub(super) at: u64,
    /// False for a hard link, whose member has another name.
    pub(super) is_own: bool,
}

/// The names of an archive.
#[derive(Debug, Default)]
pub(super) struct Index {
    names: Vec<u8>,
    slots: Vec<Slot>,
    /// Records for all members that begin at a place or after it.
    globals: Vec<(u64, Records)>,
    /// How many names each member has that has several.
    linked: HashMap<u64, u64>,
    /// Members met that are not kept.
    problems: Vec<Problem>,
    problem_bytes: u64,
    files: u64,
    bytes: u64,
}

impl Index {
    /// Looks at all members of an archive and puts their names below the directory `below`.
    ///
    /// # Errors
    /// The archive is damaged, is cut short or cannot be read, or its names take more memory than `memory_bytes`.
    pub(super) fn read(
        file: &File,
        below: Option<&EntryPath>,
        memory_bytes: u64,
        observer: &dyn Observer,
    ) -> Result<Self, Fault> {
        let end = file.metadata().map_err(|error| Fault::new(0, error.to_string()))?.len();
        let mut index = Self::default();
        let (mut at, mut count) = (0, 0u64);
        if end == 0 {
            return Err(Fault::new(0, "the archive is empty: not even its end is marked"));
        }
        loop {
            let (found, next) = member::read(file, at, index.globals_at(at))?;
            if next > end.max(at) {
                return Err(Fault::new(
                    end,
                    format!("the archive is cut short: what begins at byte {at} ends at {next}"),
                ));
            }
            match found {
                Found::Member(member) => index.add(*member, at, below),
                Found::Global(records) => {
                    let mut all = index.globals_at(at).clone();
                    all.merge(records);
                    index.globals.push((next, all));
                }
                Found::Other => {}
                Found::End => break,
            }
            at = next;
            count += 1;
            if index.memory_bytes() > memory_bytes {
                let (mib, names) = (memory_bytes >> 20, index.slots.len());
                return Err(Fault::new(
                    at,
                    format!("its names take too much memory: the first {names} take {mib} MiB; give more by --memory"),
                ));
            }
            if count.is_multiple_of(MEMBERS_A_LOOK) && observer.is_cancelled() {
                return Ok(index);
            }
        }
        index.look_behind(file, at);
        index.settle();
        Ok(index)
    }

    /// Files and what they hold, for the progress.
    pub(super) fn files(&self) -> u64 {
        self.files
    }

    /// Bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Memory that the index takes, about.
    pub(super) fn memory_bytes(&self) -> u64 {
        let records: u64 = self.globals.iter().map(|(_, records)| records.memory_bytes()).sum();
        let slots = self.slots.capacity() * size_of::<Slot>() + self.linked.capacity() * 4 * size_of::<u64>();
        self.names.capacity() as u64 + slots as u64 + records + self.problem_bytes
    }

    /// The name of this number.
    pub(super) fn place(&self, number: usize) -> Option<Place<'_>> {
        let slot = self.slots.get(number)?;
        Some(Place { path: self.name(slot), at: slot.at, is_own: slot.target_bytes == NO_TARGET })
    }

    /// How many names the member at a place has.
    pub(super) fn names_of(&self, at: u64) -> u64 {
        self.linked.get(&at).copied().unwrap_or(1)
    }

    /// The records in force at a place.
    pub(super) fn globals_at(&self, at: u64) -> &Records {
        static NONE: Records = Records::none();
        let before = self.globals.partition_point(|(from, _)| *from <= at);
        before.checked_sub(1).and_then(|last| self.globals.get(last)).map_or(&NONE, |(_, records)| records)
    }

    /// Takes what is not kept, so far.
    pub(super) fn take_problems(&mut self) -> Vec<Problem> {
        self.problem_bytes = 0;
        std::mem::take(&mut self.problems)
    }

    fn tell(&mut self, name: &[u8], reason: impl Into<String>) {
        let problem = Problem::object(String::from_utf8_lossy(name), ProblemKind::NotImported, reason.into());
        self.problem_bytes += (size_of::<Problem>() + name.len() + problem.reason.len()) as u64;
        self.problems.push(problem);
    }

    fn add(&mut self, member: Member, at: u64, below: Option<&EntryPath>) {
        let path = match path_of(&member.name, below) {
            Ok(Some(path)) => path,
            // The root of a snapshot has no entry.
            Ok(None) => return,
            Err(reason) => return self.tell(&member.name, reason),
        };
        let target = match &member.kind {
            MemberKind::Link { target } => match path_of(target, below) {
                Ok(Some(target)) => Some(target.into_bytes()),
                Ok(None) => return self.tell(&member.name, "it is a hard link to the root"),
                Err(reason) => {
                    return self.tell(&member.name, format!("it is a hard link, and of its target: {reason}"));
                }
            },
            MemberKind::Unknown(letter) => {
                let letter = letter.escape_ascii();
                return self.tell(&member.name, format!("its kind is '{letter}', which means nothing here"));
            }
            MemberKind::File { size, .. } => {
                self.files += 1;
                self.bytes = self.bytes.saturating_add(*size);
                None
            }
            _ => None,
        };
        for reason in member.lost {
            self.tell(&member.name, reason);
        }
        let (begin, bytes) = (self.names.len(), length(path.as_bytes()));
        self.names.extend_from_slice(path.as_bytes());
        let target_bytes = target.map_or(NO_TARGET, |target| {
            self.names.extend_from_slice(&target);
            length(&target)
        });
        self.slots.push(Slot { begin, bytes, target_bytes, at });
    }

    /// Tells of a second archive that stands behind the end of this one. `tar` does not read it either.
    fn look_behind(&mut self, file: &File, end: u64) {
        let behind = (1..=BEHIND_BLOCKS_MAX).map(|blocks| end + blocks * BLOCK_BYTES);
        for at in behind {
            if member::is_header(file, at) {
                let reason = format!("a second archive follows at byte {at}; import it by itself");
                self.problems.push(Problem::object("what stands after the end", ProblemKind::NotImported, reason));
                return;
            }
        }
    }

    /// Sorts the names, resolves hard links, and keeps the last of each name.
    fn settle(&mut self) {
        let names = std::mem::take(&mut self.names);
        let name = |slot: &Slot| name_in(&names, slot);
        self.slots.sort_unstable_by(|left, right| {
            EntryPath::compare_bytes(name(left), name(right)).then(left.at.cmp(&right.at))
        });
        let mut resolved = Vec::with_capacity(self.slots.len());
        let mut dangling = Vec::new();
        for (number, slot) in self.slots.iter().enumerate() {
            let is_last = self.slots.get(number + 1).is_none_or(|next| name(next) != name(slot));
            if !is_last {
                continue;
            }
            match bound(&names, &self.slots, slot) {
                Some(at) => resolved.push(Slot { at, ..*slot }),
                None => dangling.push(*slot),
            }
        }
        let mut linked: HashMap<u64, u64> = HashMap::new();
        for slot in resolved.iter().filter(|slot| slot.target_bytes != NO_TARGET) {
            linked.entry(slot.at).or_default();
        }
        for slot in &resolved {
            linked.entry(slot.at).and_modify(|names| *names += 1);
        }
        for slot in dangling {
            let target = String::from_utf8_lossy(target_in(&names, &slot)).into_owned();
            self.tell(name(&slot), format!("it is a hard link to '{target}', which does not stand before it"));
        }
        (self.slots, self.linked, self.names) = (resolved, linked, names);
    }

    fn name(&self, slot: &Slot) -> &[u8] {
        name_in(&self.names, slot)
    }
}

/// Blocks behind the end that are looked at: an archive is filled up to 20 blocks.
const BEHIND_BLOCKS_MAX: u64 = 20;

/// The length of a path, which is never longer than a mebibyte.
fn length(path: &[u8]) -> u32 {
    u32::try_from(path.len()).unwrap_or(NO_TARGET - 1)
}

fn name_in<'n>(names: &'n [u8], slot: &Slot) -> &'n [u8] {
    names.get(slot.begin..).and_then(|rest| rest.get(..slot.bytes as usize)).unwrap_or_default()
}

fn target_in<'n>(names: &'n [u8], slot: &Slot) -> &'n [u8] {
    let begin = slot.begin + slot.bytes as usize;
    names.get(begin..).and_then(|rest| rest.get(..slot.target_bytes as usize)).unwrap_or_default()
}

/// Where the member stands that a name is bound to: itself, or what the target of a hard link was when the link came.
fn bound(names: &[u8], sorted: &[Slot], slot: &Slot) -> Option<u64> {
    let mut slot = *slot;
    while slot.target_bytes != NO_TARGET {
        let wanted = target_in(names, &slot);
        let is_before = |other: &Slot| match EntryPath::compare_bytes(name_in(names, other), wanted) {
            Ordering::Equal => other.at < slot.at,
            order => order.is_lt(),
        };
        let last = sorted.partition_point(is_before).checked_sub(1).and_then(|last| sorted.get(last))?;
        slot = Some(*last).filter(|last| name_in(names, last) == wanted)?;
    }
    Some(slot.at)
}

/// Reads everything of an archive but content: names, headers, maps; says how many names it has.
pub(crate) fn explore(file: &File) -> Option<usize> {
    let index = Index::read(file, None, EXPLORED_BYTES_MAX, &Silent).ok()?;
    for slot in &index.slots {
        let Ok((Found::Member(mut member), _)) = member::read(file, slot.at, index.globals_at(slot.at)) else {
            continue;
        };
        if let MemberKind::File { size, sparse: Some(sparse) } = std::mem::replace(&mut member.kind, MemberKind::Fifo) {
            let _ = sparse::extents(file, &member, size, sparse);
        }
    }
    Some(index.slots.len())
}

/// Memory of an index that is only looked at.
const EXPLORED_BYTES_MAX: u64 = 16 << 20;

/// The path of a name: without slashes at its begin and end and without `.`; `None` for the root.
pub(super) fn path_of(name: &[u8], below: Option<&EntryPath>) -> Result<Option<EntryPath>, String> {
    let parts = name.split(|&byte| byte == b'/').filter(|part| !matches!(part, [] | [b'.']));
    let mut path = below.map(|below| below.as_bytes().to_vec()).unwrap_or_default();
    for part in parts {
        if part == b".." {
            return Err("its name holds '..', which could lead anywhere".to_owned());
        }
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(part);
    }
    if path.is_empty() {
        return Ok(None);
    }
    EntryPath::new(path).map(Some).map_err(|error| error.to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::io::Write;
    use tar::{Builder, Header};

    #[test]
    fn names_that_take_too_much_memory_are_refused() {
        let mut builder = Builder::new(Vec::new());
        for number in 0..5_000 {
            let mut header = Header::new_ustar();
            header.set_path(format!("{number:0>90}")).unwrap();
            header.set_size(0);
            header.set_cksum();
            builder.append(&header, std::io::empty()).unwrap();
        }
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&builder.into_inner().unwrap()).unwrap();
        let index = Index::read(&file, None, 2 << 20, &Silent).unwrap();
        assert_eq!((index.slots.len(), index.files()), (5_000, 5_000));
        assert!((5_000 * 90..2 << 20).contains(&index.memory_bytes()), "{}", index.memory_bytes());
        let fault = Index::read(&file, None, 400 << 10, &Silent).unwrap_err();
        assert!(fault.reason.contains("--memory"), "{}", fault.reason);
    }
}
