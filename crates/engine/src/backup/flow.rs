//! Types that flow from stage to stage: items on their way to the catalog, pieces of files, segments of new
//! chunks, regions and checkpoints. Stages import them; this file imports no stage.

use super::links::Inode;
use super::outcome::{Account, Taken, Tally};
use super::source::Unread;
use crate::delta::Likeness;
use crate::fs::Problem;
use crate::held::HeldBytes;
use crate::observer::EntryAction;
use crate::parallel::Ticket;
use crossbeam_channel::{Receiver, Sender};
use roaring::RoaringTreemap;
use siltstone_store::catalog::{Entry, EntryPath, Metadata};
use siltstone_store::container::ContainerKind;
use siltstone_store::manifest::Snapshot;
use siltstone_store::recipe::Recipe;
use siltstone_store::region::{ChunkEntry, EncodedRegion};
use siltstone_store::{ChunkNumber, ChunkRun, Fingerprint, StoreError};
use std::ops::Range;
use std::sync::atomic::AtomicBool;

/// Chunks of earlier snapshots that are as good as unknown, so that they are stored again.
#[derive(Debug, Default)]
pub(super) struct Unusable {
    /// Chunks that the storage lost or that cannot be read where they lie, and what hangs on them.
    pub(super) lost: RoaringTreemap,
    /// Set by the planner when it meets damage in the previous catalog. It runs ahead of the entries whose nodes could
    /// be damaged, so none of these is used again as it is.
    pub(super) catalog_damaged: AtomicBool,
}

/// A file of which only ranges changed since the previous snapshot.
pub(super) struct Patch {
    /// Content it had then.
    pub(super) recipe: Recipe,
    /// Its length then.
    pub(super) size: u64,
    /// Ranges that changed, ascending and apart. All that lies beyond the shorter of both lengths changed as well.
    pub(super) changed: Vec<Range<u64>>,
}

/// An entry on its way to the catalog.
pub(super) enum Item {
    /// Complete.
    Ready {
        entry: Entry,
        action: EntryAction,
        /// The chunks of a long recipe; those of a short one stand in the entry itself.
        needs: Vec<ChunkRun>,
    },
    /// Another name of a file that an earlier item reads.
    Link { path: EntryPath, metadata: Metadata, action: EntryAction },
    /// No entry: no further name of this file follows that is not read itself.
    Forget(Inode),
    /// A file to be read.
    Read(ToRead),
}

/// A file to be read.
pub(super) struct ToRead {
    pub(super) path: EntryPath,
    pub(super) metadata: Metadata,
    pub(super) size: u64,
    pub(super) unread: Unread,
    pub(super) action: EntryAction,
    /// Changed ranges of a file on disk, if the rest is known.
    pub(super) patch: Option<Box<Patch>>,
    /// True if further names of it may follow as [`Item::Link`].
    pub(super) is_remembered: bool,
}

/// A batch of items for one reader, and where its pieces go.
pub(super) struct Job {
    pub(super) items: Vec<Item>,
    pub(super) pieces: Sender<Ticket<ReadyPiece>>,
}

/// Input of the assembling stage.
pub(super) enum Step {
    /// Items that need no reading.
    Items(Vec<Item>),
    /// The pieces a reader makes of a job, in order.
    Pieces(Receiver<Ticket<ReadyPiece>>),
}

/// A piece, read, cut and fingerprinted.
pub(super) struct ReadyPiece {
    pub(super) bytes: Vec<u8>,
    pub(super) parts: Vec<Part>,
}

/// Part of a piece; they come in stream order.
pub(super) enum Part {
    /// An item that needed no reading.
    Item(Item),
    /// A large file begins; told of files that a checkpoint may meet half read.
    Begin(EntryPath),
    /// The next chunk of the current file.
    Chunk { start: usize, length: usize, fingerprint: Fingerprint },
    /// The next chunks of the current file, known from the previous snapshot and not read, with their bytes.
    Kept { run: ChunkRun, bytes: u64 },
    /// The next hole of the current file.
    Hole(u64),
    /// The current file ends.
    End(Box<FileEnd>),
}

/// End of a file that was read.
pub(super) struct FileEnd {
    pub(super) path: EntryPath,
    pub(super) metadata: Metadata,
    pub(super) action: EntryAction,
    /// Bytes read and holes passed over.
    pub(super) size: u64,
    /// Bytes read.
    pub(super) read_bytes: u64,
    /// True if there is content to keep.
    pub(super) is_complete: bool,
    pub(super) problem: Option<Problem>,
    /// True if further names of it may follow as [`Item::Link`].
    pub(super) is_remembered: bool,
}

/// New chunks in the order of the stream, of both kinds.
#[derive(Debug, Default)]
pub(super) struct Segment {
    pub(super) chunks: Vec<ChunkEntry>,
    pub(super) plain: Vec<u8>,
}

/// Input of the selector.
pub(super) enum Gathered {
    /// New chunks.
    Segment(Segment),
    /// Mark: all up to here is to be made durable and committed.
    Checkpoint(Box<Reached>),
}

/// A region, with the likeness and the text of its chunks.
pub(super) struct Encoded {
    pub(super) region: EncodedRegion,
    /// Empty if nothing is to be found by them.
    pub(super) likenesses: Vec<Likeness>,
    /// Their text; empty if nothing will be encoded against them.
    pub(super) texts: Vec<HeldBytes>,
    /// True if there was something to encode it against.
    pub(super) was_offered: bool,
}

/// Input of the packer, in the order it was cut off.
pub(super) enum Handed {
    /// A region.
    Region(ContainerKind, Ticket<Result<Encoded, StoreError>>),
    /// Mark: all up to here is to be made durable and committed.
    Checkpoint(Box<Reached>),
}

/// Point that a backup has reached.
pub(super) struct Reached {
    /// The partial snapshot to be; what the rest of the run did is not in its statistics yet.
    pub(super) snapshot: Snapshot,
    /// Chunks that its catalog refers to.
    pub(super) direct: RoaringTreemap,
    /// Chunks of other series that are used.
    pub(super) taken: Vec<Taken>,
    /// The next numbers of data and metadata chunks.
    pub(super) next: (ChunkNumber, ChunkNumber),
    pub(super) tally: Tally,
    pub(super) account: Account,
    /// True if the run ends here.
    pub(super) is_last: bool,
}

/// Failure of a stage whose neighbour has gone away; that one has the error to tell.
pub(super) struct Disconnected;
