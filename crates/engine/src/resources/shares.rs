//! Shares of memory: the one place that says which part of a command's memory goes where.
//!
//! ```text
//! command         takes                                          of M bytes
//! backup          queues, buffers, compressors, and a window of  144 MiB
//!                 new text whose like may come, 16 MiB
//!                 list of changes                                (M - 144 MiB) / 4
//!                 R: what is left of M after these two
//!                 segments, and bases read for them (forward)    F = min(R / 2, 160 MiB)
//!                   text of a segment, at most                   F / 8
//!                   waiting for bases                            F / 8
//!                 sketches and anchors of new chunks (if deltas  (R - F) / 4, half of it each
//!                 are made)
//!                 text of new chunks (if a settling follows),    at most 128 MiB of what fingerprints leave: these get
//!                 compressed where it becomes much smaller       64 MiB, or 64 bytes for each of the last snapshot
//!                 fingerprints: the rest                         I = R - F - sketches - text
//!                   of those, chunks of older snapshots only     I / 16
//!                   of those, in a first backup, text that waits I / 8, at most 64 MiB
//!                   until a series is found that lends it
//!                   of those, files of which further names are   I / 16
//!                   expected
//! restore         each of two batches and their plans            M / 4
//!                 waiting for bases                              M / 4, and what the batches leave beyond 64 MiB
//!                 range reads, all fetches together              M / 8, each from 1 to 4 MiB
//! maintain,       batch of regions taken apart                   64 MiB
//! forget,         segment of regions to be encoded               20 MiB
//! repair          waiting for bases                              M / 8
//!                 sketches and anchors of new chunks             M / 8, half of it each
//!                 text of ghosts' dependents and their bases     M / 16, and 15 times as much in a temporary file
//! recompression   as those; batch of regions taken apart         16 MiB
//!                 that, segments, regions, containers            160 MiB in all
//!                 encoders                                       112 MiB for each thread: as many as there is room for
//! check           waiting for bases                              M / 4
//!                 containers read whole, and what is decoded     M / 2, at least 24 MiB for each fetch
//! copy            the backups that it makes                      M - M / 4, shared out as above
//!                 content read ahead, all readers together       M / 8, each from 1 to 16 MiB
//!                 waiting for bases                              M / 16
//!                 decoded regions                                M / 16
//! dump            decoded regions that are wanted again          M / 4, but at least M / 8 and 8 MiB per fetch, which
//!                                                                is all where content hangs on other regions
//!                 chunks that come again                         M / 2 with those regions
//!                 what is read before its turn                   8 MiB per fetch, but at most a quarter of that
//!                 content that is decoded together               3 M / 8, and more of it in a temporary file:
//!                                                                4 M in all, from 3 M / 8 to 1 GiB
//!                 waiting for bases                              M / 4
//! reading files   decoded regions                                M / 8
//!                 waiting for bases                              M / 8
//! mount           decoded regions                                3 M / 8
//!                 waiting for bases                              3 M / 8
//!                 files and folders that the kernel knows of     M / 8
//! ```
//! In a repository whose containers of data are filled to C bytes, above 16 MiB, M is what is left of a writer's memory
//! after 3 (C - 16 MiB): a container in the making, and its parity. A check reads fewer containers at a time.

//! Shares without an M are fixed; beside them each thread has buffers of its own, some MiB.
//!
//! Nothing that shapes a repository's bytes depends on M: how regions are batched and segments cut in maintenance
//! decides in which order they are laid into containers. Only what waits, or is looked up, grows with M.
//!
//! Anything that does not fit goes to temporary files in the folder that `Resources::scratch_of` gives: the
//! repository's within the cache, else the scratch folder. A restore's lie in its target, which has the room.

use super::Resources;
use siltstone_store::container::CONTAINER_BYTES_DEFAULT;

const MIB: u64 = 1 << 20;

/// Queues, buffers and compressors of a backup, and the window in which new chunks wait.
const BACKUP_FIXED_BYTES: u64 = 144 * MIB;
/// The least a backup's indexes can work with.
const BACKUP_INDEX_BYTES_MIN: u64 = 16 * MIB;
/// The part of a backup's memory beside what is fixed that a list of changes may take.
const LIST_PART: u64 = 4;
/// The most that selecting takes.
const SELECTION_BYTES_MAX: u64 = 160 * MIB;
/// The most that the text of new chunks takes.
const TEXT_BYTES_MAX: u64 = 128 * MIB;
/// Bytes that fingerprints have before that, at least and for each chunk of the last snapshot: those lie in memory if
/// they take half of what is for fingerprints.
const FINGERPRINT_BYTES_MIN: u64 = 64 * MIB;
const KNOWN_CHUNK_BYTES: u64 = 64;
/// The part of a first backup's memory for fingerprints that text takes which another series may lend, and the most.
const LENDER_PART: u64 = 8;
const LENDER_BYTES_MAX: u64 = 64 * MIB;
/// The part of a backup's memory for fingerprints that files take of which further names are expected.
const LINKED_PART: u64 = 16;
/// The least and the most that one range read of a restore brings (one longer region excepted). Of 294 MB of plain
/// regions whole containers at a time take 10 % more processor time than 2 MiB, 4 MiB 3 % (2 cores, November 2026):
/// large buffers are mapped anew each time.
const RESTORE_READ_BYTES: std::ops::RangeInclusive<u64> = MIB..=4 * MIB;

/// Buffers and regions under way of a restore.
const RESTORE_FIXED_BYTES: u64 = 64 * MIB;

/// Times that a container is in memory while it is written: its bytes, and what its parity is computed in.
const CONTAINER_COPIES: u64 = 3;

/// Bytes, about, that a batch of repacking makes of its regions: the text of plain ones, and what is stored of deltas.
/// It shapes the repository's bytes.
pub(crate) const REPACK_BATCH_BYTES: usize = 64 << 20;
/// As [`REPACK_BATCH_BYTES`], where all is encoded once more: beside it lie larger regions, and larger encoders.
pub(crate) const RECOMPRESS_BATCH_BYTES: usize = 16 << 20;
/// Regions, segments and containers in the making of a recompression.
const RECOMPRESS_FIXED_BYTES: u64 = 160 * MIB;
/// Encoders of each of its threads, of plain regions and of deltas, at the highest level.
const RECOMPRESS_ENCODER_BYTES: u64 = 112 * MIB;
/// The longest range read of a check: a container of the usual size.
pub(crate) const CHECK_READ_BYTES_MAX: u64 = 16 * MIB;
/// Content that a dump decodes together: times its memory, and at most.
const DUMP_GROUP_PART: u64 = 4;
const DUMP_GROUP_BYTES_MAX: u64 = 1 << 30;
/// Bytes that a dump reads ahead for each fetch; it keeps as much decoded.
const DUMP_BYTES_PER_FETCH: u64 = 8 * MIB;

/// The least and the most that each reader of a copy has of content read ahead (one longer chunk excepted).
const COPY_AHEAD_BYTES: std::ops::RangeInclusive<u64> = MIB..=16 * MIB;
/// The part of a copy's memory that reading its source takes.
const COPY_SOURCE_PART: u64 = 4;

/// Commands that have a least memory to work with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Command {
    /// Making a snapshot.
    Backup,
    /// Copying snapshots of another repository.
    Copy,
    /// Restoring one.
    Restore,
    /// Writing one as a stream.
    Dump,
    /// Settling what backups left behind.
    Maintain,
    /// Encoding once more what lies in containers.
    Recompress,
    /// Removing snapshots.
    Forget,
    /// Looking for damage.
    Check,
    /// Mending it.
    Repair,
}

impl Command {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Backup,
        Self::Copy,
        Self::Restore,
        Self::Dump,
        Self::Maintain,
        Self::Recompress,
        Self::Forget,
        Self::Check,
        Self::Repair,
    ];

    /// Returns the least memory that the command can work with, bytes, where containers are filled to
    /// `container_bytes`.
    pub fn memory_bytes_min(self, container_bytes: u64) -> u64 {
        let larger = larger_containers_bytes(container_bytes);
        match self {
            Self::Backup | Self::Maintain | Self::Forget | Self::Repair => {
                BACKUP_FIXED_BYTES + BACKUP_INDEX_BYTES_MIN + larger
            }
            Self::Recompress => RECOMPRESS_FIXED_BYTES + RECOMPRESS_ENCODER_BYTES + larger,
            // What reading the source leaves is enough for a backup.
            Self::Copy => 216 * MIB + (larger * COPY_SOURCE_PART).div_ceil(COPY_SOURCE_PART - 1),
            Self::Check => 128 * MIB + larger,
            Self::Restore | Self::Dump => 64 * MIB,
        }
    }
}

/// Shares of a backup's memory, bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(clippy::struct_field_names, reason = "the unit")]
pub(crate) struct BackupShares {
    /// Fingerprints of the last snapshot's chunks and of new ones.
    pub(crate) index_bytes: u64,
    /// Fingerprints of chunks that only older snapshots need.
    pub(crate) older_bytes: u64,
    /// Chunks by their sketches.
    pub(crate) similar_bytes: u64,
    /// Text of new chunks, for the settling that follows.
    pub(crate) text_bytes: u64,
    /// Text of a segment, at most; it is less than asked for where memory is short.
    pub(crate) segment_bytes_max: u64,
    /// Deltas and bases that wait for others.
    pub(crate) waiting_bytes: u64,
    /// Text that waits until a series is found that lends it.
    pub(crate) lender_bytes: u64,
    /// Files of which further names are expected.
    pub(crate) linked_bytes: u64,
}

/// Uses of a backup's memory that not every backup has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BackupUses {
    /// Bytes of its list of changes.
    pub(crate) list_bytes: u64,
    /// True if new chunks are encoded against old ones.
    pub(crate) selects: bool,
    /// True if sketches are looked up.
    pub(crate) sketches: bool,
    /// Chunks of the last snapshot.
    pub(crate) known_chunks: u64,
    /// True if chunks of older snapshots are used again.
    pub(crate) reaches_back: bool,
    /// True if a series is looked for that lends chunks, from the first one on.
    pub(crate) looks_for_lenders: bool,
}

/// Shares of a restore's memory, bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(clippy::struct_field_names, reason = "the unit")]
pub(crate) struct RestoreShares {
    /// Each of two batches, with its plan.
    pub(crate) batch_bytes: u64,
    /// Deltas and bases that wait for others.
    pub(crate) waiting_bytes: u64,
    /// The longest range read.
    pub(crate) read_bytes_max: u64,
}

/// Returns what more may wait for bases in a restore whose batches leave so much of their memory, bytes.
pub(crate) fn restore_spare_bytes(unused_bytes: u64) -> u64 {
    unused_bytes.saturating_sub(RESTORE_FIXED_BYTES)
}

/// Shares of a copy's memory, bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(clippy::struct_field_names, reason = "the unit")]
pub(crate) struct CopyShares {
    /// The backups that it makes.
    pub(crate) backup_bytes: u64,
    /// Content that each reader has read ahead.
    pub(crate) ahead_bytes: u64,
    /// Deltas and bases that wait for others.
    pub(crate) waiting_bytes: u64,
    /// Decoded regions of the source.
    pub(crate) region_bytes: usize,
}

/// Shares of a dump's memory, bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(clippy::struct_field_names, reason = "the unit")]
pub(crate) struct DumpShares {
    /// Decoded regions that are wanted again, where nothing waits for bases, and nothing is held.
    pub(crate) region_bytes: usize,
    /// Chunks that come again, then too.
    pub(crate) kept_bytes: usize,
    /// Decoded regions where content hangs on others.
    pub(crate) region_bytes_of_deltas: usize,
    /// Bytes that are decoded, and as many that are read, before their turn.
    pub(crate) bytes_ahead: usize,
    /// Content that is decoded together where it hangs on other regions.
    pub(crate) group_bytes: usize,
    /// As much of that as is held in memory.
    pub(crate) held_bytes: u64,
    /// Deltas and bases that wait for others.
    pub(crate) waiting_bytes: u64,
}

/// Shares of memory in moving chunks from container to container: maintenance, `forget`, repair; bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(clippy::struct_field_names, reason = "the unit")]
pub(crate) struct RepackShares {
    /// Deltas and bases that wait for others.
    pub(crate) waiting_bytes: u64,
    /// New chunks by their sketches.
    pub(crate) similar_bytes: u64,
    /// Text in memory of deltas that hang on ghosts, and of what they may hang on instead.
    pub(crate) dependents_bytes: u64,
}

impl Resources {
    /// Returns how a backup shares its memory out.
    pub(crate) fn backup_shares(&self, uses: BackupUses) -> BackupShares {
        let rest = self.memory_bytes.saturating_sub(BACKUP_FIXED_BYTES).saturating_sub(uses.list_bytes);
        let selection = if uses.selects { (rest / 2).min(SELECTION_BYTES_MAX) } else { 0 };
        let rest = rest - selection;
        let similar_bytes = if uses.sketches { rest / 4 } else { 0 };
        let rest = rest - similar_bytes;
        let fingerprint_bytes = FINGERPRINT_BYTES_MIN.max(KNOWN_CHUNK_BYTES.saturating_mul(uses.known_chunks));
        let text_bytes = rest.saturating_sub(fingerprint_bytes).min(TEXT_BYTES_MAX);
        let text_bytes = if uses.sketches && !uses.selects { text_bytes } else { 0 };
        let rest = rest - text_bytes;
        let older_bytes = if uses.reaches_back { rest / 16 } else { 0 };
        let rest = rest - older_bytes;
        let lender_bytes = if uses.looks_for_lenders { (rest / LENDER_PART).min(LENDER_BYTES_MAX) } else { 0 };
        let linked_bytes = rest / LINKED_PART;
        let index_bytes = rest - lender_bytes - linked_bytes;
        // Two segments at a time, the bases of one, and regions under way.
        let (segment_bytes_max, waiting_bytes) = (selection / 8, selection / 8);
        BackupShares {
            index_bytes,
            older_bytes,
            similar_bytes,
            text_bytes,
            segment_bytes_max,
            waiting_bytes,
            lender_bytes,
            linked_bytes,
        }
    }

    /// Returns how a restore shares its memory out.
    pub(crate) fn restore_shares(&self) -> RestoreShares {
        let (least, most) = RESTORE_READ_BYTES.into_inner();
        let read_bytes = self.memory_bytes / 8 / self.fetches.max(1) as u64;
        RestoreShares {
            batch_bytes: self.memory_bytes / 4,
            waiting_bytes: self.memory_bytes / 4,
            read_bytes_max: read_bytes.clamp(least, most),
        }
    }

    /// Returns how a copy shares its memory out.
    pub(crate) fn copy_shares(&self) -> CopyShares {
        let (least, most) = COPY_AHEAD_BYTES.into_inner();
        let source_bytes = self.memory_bytes / COPY_SOURCE_PART;
        let readers = self.workers.max(2) as u64;
        CopyShares {
            backup_bytes: self.memory_bytes - source_bytes,
            ahead_bytes: (source_bytes / 2 / readers).clamp(least, most),
            waiting_bytes: source_bytes / 4,
            region_bytes: usize::try_from(source_bytes / 4).unwrap_or(usize::MAX),
        }
    }

    /// Returns how maintenance, `forget` and repair share their memory out.
    pub(crate) fn repack_shares(&self) -> RepackShares {
        let share = self.memory_bytes / 8;
        RepackShares { waiting_bytes: share, similar_bytes: share, dependents_bytes: share / 2 }
    }

    /// Returns these with as many threads as there is memory for their encoders where all is encoded once more.
    pub(crate) fn for_recompression(&self) -> Self {
        let fitting = self.memory_bytes.saturating_sub(RECOMPRESS_FIXED_BYTES) / RECOMPRESS_ENCODER_BYTES;
        let threads = usize::try_from(fitting).unwrap_or(usize::MAX).clamp(1, self.workers.max(1));
        self.clone().with_workers(threads).with_fetches(threads)
    }

    /// Returns how many containers of this size may be read at the same time: each whole, with a region of it decoded.
    pub(crate) fn whole_fetches(&self, container_bytes: u64) -> usize {
        let bytes = container_bytes.max(CHECK_READ_BYTES_MAX);
        let fitting = self.memory_bytes / 2 / (bytes + bytes / 2);
        self.fetches.min(usize::try_from(fitting).unwrap_or(usize::MAX)).max(1)
    }

    /// Returns what may wait for bases in a check, bytes.
    pub(crate) fn check_waiting_bytes(&self) -> u64 {
        self.memory_bytes / 4
    }

    /// Returns what a reader of files may keep of decoded regions, bytes.
    pub(crate) fn file_reader_bytes(&self) -> usize {
        usize::try_from(self.memory_bytes / 8).unwrap_or(usize::MAX)
    }

    /// Returns how a dump shares its memory out.
    pub(crate) fn dump_shares(&self) -> DumpShares {
        let share = self.memory_bytes / 8;
        let ahead = self.fetches as u64 * DUMP_BYTES_PER_FETCH;
        let (of_deltas, region_bytes) = (share + ahead, (share + ahead).max(2 * share));
        let group_bytes = (DUMP_GROUP_PART * self.memory_bytes).min(DUMP_GROUP_BYTES_MAX).max(3 * share);
        DumpShares {
            region_bytes: usize::try_from(region_bytes).unwrap_or(usize::MAX),
            kept_bytes: usize::try_from((4 * share).saturating_sub(region_bytes)).unwrap_or(usize::MAX),
            region_bytes_of_deltas: usize::try_from(of_deltas).unwrap_or(usize::MAX),
            // As much again is decoded and not read.
            bytes_ahead: usize::try_from(ahead.min(region_bytes / 4)).unwrap_or(usize::MAX),
            group_bytes: usize::try_from(group_bytes).unwrap_or(usize::MAX),
            held_bytes: 3 * share,
            waiting_bytes: 2 * share,
        }
    }
}

/// Returns the memory that containers take which are filled to more than usual, bytes beyond the shares above.
pub(crate) fn larger_containers_bytes(container_bytes: u64) -> u64 {
    CONTAINER_COPIES * container_bytes.saturating_sub(CONTAINER_BYTES_DEFAULT)
}

/// Returns the most that a list of changes may take of a backup's memory, bytes.
pub(crate) fn list_bytes_max(memory_bytes: u64) -> u64 {
    memory_bytes.saturating_sub(BACKUP_FIXED_BYTES) / LIST_PART
}

/// Returns the memory of a backup whose list of changes takes so much, bytes.
pub(crate) fn memory_bytes_for_list(list_bytes: u64) -> u64 {
    let needed = list_bytes.saturating_mul(LIST_PART).saturating_add(BACKUP_FIXED_BYTES);
    needed.max(Command::Backup.memory_bytes_min(CONTAINER_BYTES_DEFAULT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::MEMORY_BYTES_DEFAULT;

    fn with(mib: u64) -> Resources {
        Resources::default().with_memory_bytes(mib * MIB).with_fetches(2)
    }

    #[test]
    fn the_shares_of_a_backup_add_up_to_its_memory_and_no_more() {
        for mib in [160, 256, 512, 2048] {
            for (selects, sketches, reaches_back) in
                [(false, false, false), (false, true, true), (true, true, true), (true, false, true)]
            {
                let list_bytes = list_bytes_max(mib * MIB);
                let looks_for_lenders = !reaches_back;
                let known_chunks = 1 << 20;
                let uses = BackupUses { list_bytes, selects, sketches, known_chunks, reaches_back, looks_for_lenders };
                let shares = with(mib).backup_shares(uses);
                let indexes = shares.index_bytes + shares.older_bytes + shares.similar_bytes + shares.lender_bytes;
                let indexes = indexes + shares.linked_bytes + shares.text_bytes;
                let selection = 8 * shares.waiting_bytes;
                let all = BACKUP_FIXED_BYTES + list_bytes + indexes + selection;
                assert!(all <= mib * MIB && all + 8 > mib * MIB, "{mib} MiB, {uses:?}: {shares:?}");
                assert!(shares.index_bytes > 0, "{mib} MiB, {uses:?}");
            }
        }
    }

    #[test]
    fn a_list_of_changes_fits_into_the_memory_that_is_said_to_be_needed() {
        for bytes in [0, 1, 5 * MIB, 4 << 30] {
            let memory = memory_bytes_for_list(bytes);
            assert!(
                list_bytes_max(memory) >= bytes && memory >= Command::Backup.memory_bytes_min(CONTAINER_BYTES_DEFAULT),
                "{bytes}"
            );
        }
    }

    #[test]
    fn the_least_memory_of_a_copy_is_enough_for_the_backups_it_makes() {
        for mib in [Command::Copy.memory_bytes_min(CONTAINER_BYTES_DEFAULT) / MIB, 512, 4096] {
            let resources = with(mib).with_workers(2);
            let shares = resources.copy_shares();
            let reading = 2 * shares.ahead_bytes + shares.waiting_bytes + shares.region_bytes as u64;
            assert!(shares.backup_bytes >= Command::Backup.memory_bytes_min(CONTAINER_BYTES_DEFAULT), "{mib} MiB");
            assert!(shares.backup_bytes + reading <= mib * MIB, "{mib} MiB");
        }
    }

    #[test]
    fn what_batches_leave_waits_for_bases_but_for_what_is_fixed() {
        for (mib, waiting) in [(64, 16), (256, 128), (512, 320)] {
            let shares = with(mib).restore_shares();
            assert_eq!(restore_spare_bytes(0), 0);
            let spare_bytes = restore_spare_bytes(2 * shares.batch_bytes);
            assert_eq!(shares.waiting_bytes + spare_bytes, waiting * MIB, "{mib} MiB");
        }
    }

    #[test]
    fn range_reads_are_bounded_whatever_memory_there_is() {
        let read = |mib| with(mib).restore_shares().read_bytes_max;
        assert_eq!([read(1), read(32), read(8192)], [MIB, 2 * MIB, 4 * MIB]);
    }

    #[test]
    fn every_command_says_how_much_memory_it_needs_at_least() {
        for container_bytes in [CONTAINER_BYTES_DEFAULT, 64 * MIB, 128 * MIB] {
            for command in Command::ALL {
                let least = command.memory_bytes_min(container_bytes) / MIB;
                assert!(with(least).suffice_beside(command, container_bytes).is_ok(), "{command:?}");
                let refused = with(least - 1).suffice_beside(command, container_bytes).expect_err("too little");
                assert!(refused.to_string().contains(&format!("{least} MiB")), "{refused}");
            }
        }
    }

    #[test]
    fn larger_containers_leave_what_a_command_works_with() {
        let larger = larger_containers_bytes(128 * MIB);
        assert_eq!((larger, larger_containers_bytes(CONTAINER_BYTES_DEFAULT)), (336 * MIB, 0));
        let copying = with(Command::Copy.memory_bytes_min(128 * MIB) / MIB).copy_shares();
        assert!(copying.backup_bytes >= Command::Backup.memory_bytes_min(128 * MIB));
        assert_eq!([16, 64, 128].map(|mib| with(512).whole_fetches(mib * MIB)), [2, 2, 1]);
        assert!(larger < MEMORY_BYTES_DEFAULT - Command::Backup.memory_bytes_min(CONTAINER_BYTES_DEFAULT));
    }
}
