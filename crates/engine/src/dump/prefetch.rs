//! Content of a dump, cut into portions: one ends where the content goes on in another region.

use super::kept::KeptChunks;
use crate::chunks::{Address, ChunkSource, PlainRegion};
use crate::decode::{Bytes, HeldChunk};
use crate::fs::Extent;
use crate::linked::Linked;
use siltstone_store::catalog::{Content, Entry, EntryPath};
use siltstone_store::recipe::{Piece, Recipe, RecipeReader};
use siltstone_store::{ChunkNumber, StoreError};
use std::collections::HashMap;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

/// The most steps and bytes of content in a portion (one longer chunk excepted).
const STEPS_MAX: usize = 4096;
const BYTES_MAX: usize = 4 << 20;

/// Step of writing a dump, with content as it is wanted or as it was read.
pub(super) enum Step<C> {
    /// An entry begins. Of a file with holes what is none, if that is wanted.
    Begin(Box<Entry>, Option<Vec<Extent>>),
    /// A further name of one that came before.
    Link(Box<Entry>, EntryPath),
    /// Content.
    Content(C),
    /// A hole of so many bytes.
    Hole(u64),
    /// The entry is complete.
    End,
    /// Nothing more can be had.
    Failed(StoreError),
}

/// Chunk that is wanted.
pub(super) struct Wanted {
    pub(super) number: ChunkNumber,
    pub(super) bytes: usize,
    /// Position of this occurrence, if an earlier one keeps the chunk for it.
    pub(super) kept_for: Option<usize>,
    /// Position of the next occurrence, if this one keeps the chunk for it.
    pub(super) kept_until: Option<usize>,
}

/// Content of a group that need not be decoded.
#[derive(Default)]
pub(super) struct AtHand {
    /// Chunks that were gathered.
    pub(super) gathered: HashMap<ChunkNumber, HeldChunk>,
    /// Chunks that came before and were kept.
    pub(super) kept: KeptChunks,
}

/// A step, and the region that its content lies in.
type WantedStep = (Step<Wanted>, Option<Address>);

/// Content that was read.
pub(super) enum ReadContent {
    /// Bytes of a region, where they were decoded.
    InRegion(PlainRegion, Range<usize>),
    /// Bytes of one chunk.
    Chunk(Bytes),
}

impl ReadContent {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::InRegion(plain, range) => plain.get(range.clone()).unwrap_or_default(),
            Self::Chunk(bytes) => bytes,
        }
    }

    /// Returns its bytes alone, without the region.
    fn to_chunk(&self) -> Bytes {
        match self {
            Self::InRegion(..) => Bytes::copy_from_slice(self.bytes()),
            Self::Chunk(bytes) => bytes.clone(),
        }
    }

    /// Takes up what comes next if it lies right behind, or gives it back.
    fn followed_by(&mut self, next: Self) -> Option<Self> {
        match (self, &next) {
            (Self::InRegion(plain, range), Self::InRegion(same, more))
                if Arc::ptr_eq(plain, same) && range.end == more.start =>
            {
                range.end = more.end;
                None
            }
            _ => Some(next),
        }
    }
}

impl Wanted {
    pub(super) fn new(number: ChunkNumber, bytes: usize) -> Self {
        Self { number, bytes, kept_for: None, kept_until: None }
    }

    /// Reads and verifies the chunk, unless it is at hand.
    fn read(self, chunks: &ChunkSource<'_>, at_hand: &AtHand) -> Result<ReadContent, StoreError> {
        let kept = self.kept_for.and_then(|now| at_hand.kept.take(now));
        let gathered = || at_hand.gathered.get(&self.number).and_then(|chunk| chunk.read().ok());
        let read = match kept.or_else(gathered) {
            Some(chunk) => ReadContent::Chunk(chunk),
            None => {
                let (plain, range) = chunks.chunk_in_region(self.number)?;
                ReadContent::InRegion(plain, range)
            }
        };
        if read.bytes().len() != self.bytes {
            return Err(StoreError::damaged(&format!("chunk {}", self.number), "length", "it differs from the index"));
        }
        if let Some(again) = self.kept_until {
            at_hand.kept.put(again, read.to_chunk());
        }
        Ok(read)
    }
}

impl Step<Wanted> {
    /// Reads its content.
    fn read(self, read: impl FnOnce(Wanted) -> Result<ReadContent, StoreError>) -> Step<ReadContent> {
        match self {
            Self::Begin(entry, data) => Step::Begin(entry, data),
            Self::Link(entry, first) => Step::Link(entry, first),
            Self::Content(wanted) => read(wanted).map_or_else(Step::Failed, Step::Content),
            Self::Hole(bytes) => Step::Hole(bytes),
            Self::End => Step::End,
            Self::Failed(error) => Step::Failed(error),
        }
    }
}

/// Some steps whose content lies in one region.
#[derive(Default)]
pub(super) struct Portion {
    pub(super) steps: Vec<Step<Wanted>>,
    /// Bytes of content.
    pub(super) bytes: usize,
    pub(super) region: Option<Address>,
    /// No later portion of the group has its region.
    pub(super) is_last: bool,
}

impl Portion {
    /// Returns the content that is wanted, in order.
    pub(super) fn content(&self) -> impl Iterator<Item = &Wanted> {
        self.steps.iter().filter_map(|step| match step {
            Step::Content(wanted) => Some(wanted),
            _ => None,
        })
    }

    pub(super) fn content_mut(&mut self) -> impl Iterator<Item = &mut Wanted> {
        self.steps.iter_mut().filter_map(|step| match step {
            Step::Content(wanted) => Some(wanted),
            _ => None,
        })
    }

    /// Returns how many bytes of it earlier occurrences keep.
    pub(super) fn kept_bytes(&self) -> usize {
        self.content().filter(|wanted| wanted.kept_for.is_some()).map(|wanted| wanted.bytes).sum()
    }

    /// Reads and verifies the content, but for what is at hand. What cannot be read ends the portion.
    pub(super) fn read(self, chunks: &ChunkSource<'_>, at_hand: &AtHand) -> Vec<Step<ReadContent>> {
        let mut steps: Vec<Step<ReadContent>> = Vec::new();
        for step in self.steps {
            if matches!(steps.last(), Some(Step::Failed(_))) {
                break;
            }
            let step = match (steps.last_mut(), step.read(|wanted| wanted.read(chunks, at_hand))) {
                (Some(Step::Content(before)), Step::Content(next)) => match before.followed_by(next) {
                    Some(next) => Step::Content(next),
                    None => continue,
                },
                (_, step) => step,
            };
            steps.push(step);
        }
        if let Some(region) = self.region.filter(|_| self.is_last) {
            chunks.release(region);
        }
        steps
    }
}

/// The portions of a walk, in order; the last one after a failure.
pub(super) struct Portions<'c, 'r, E> {
    chunks: &'c ChunkSource<'r>,
    entries: E,
    /// Further names are told as such.
    linked: Option<Linked>,
    with_extents: bool,
    file: Option<File<'c, 'r>>,
    /// A step that begins the next portion, and where its content lies.
    pending: Option<WantedStep>,
    has_ended: bool,
}

/// A file whose content is passing by.
struct File<'c, 'r> {
    path: EntryPath,
    size: u64,
    pieces: RecipeReader<&'c ChunkSource<'r>>,
    /// Numbers of the current run still to come.
    run: RangeInclusive<u64>,
    at: u64,
}

impl<'c, 'r, E: Iterator<Item = Result<Entry, StoreError>>> Portions<'c, 'r, E> {
    pub(super) fn of(chunks: &'c ChunkSource<'r>, entries: E) -> Self {
        Self { chunks, entries, linked: None, with_extents: false, file: None, pending: None, has_ended: false }
    }

    /// For an archive that has hard links and files with holes.
    pub(super) fn with_links_and_extents(self) -> Self {
        Self { linked: Some(Linked::default()), with_extents: true, ..self }
    }

    /// The next step, and where its content lies.
    fn step(&mut self) -> Option<WantedStep> {
        if let Some(pending) = self.pending.take() {
            return Some(pending);
        }
        if self.has_ended {
            return None;
        }
        let step = match &mut self.file {
            Some(file) => file.step(self.chunks).transpose(),
            None => self.entry().transpose(),
        };
        match step? {
            Ok(step) => {
                if matches!(step.0, Step::End) {
                    self.file = None;
                }
                Some(step)
            }
            Err(error) => {
                self.has_ended = true;
                Some((Step::Failed(error), None))
            }
        }
    }

    fn entry(&mut self) -> Result<Option<WantedStep>, StoreError> {
        let Some(entry) = self.entries.next().transpose()? else { return Ok(None) };
        if let Some(linked) = &mut self.linked {
            if let Some(first) = linked.first_name(&entry) {
                return Ok(Some((Step::Link(Box::new(entry), first), None)));
            }
            linked.remember(&entry.path, &entry);
        }
        let mut data = None;
        let mut file = File::empty(&entry.path, self.chunks);
        if let Content::File { size, recipe } = &entry.content {
            data = if self.with_extents { extents(self.chunks, recipe)? } else { None };
            file.size = *size;
            file.pieces = RecipeReader::new(recipe, self.chunks);
        }
        self.file = Some(file);
        Ok(Some((Step::Begin(Box::new(entry), data), None)))
    }
}

impl<E: Iterator<Item = Result<Entry, StoreError>>> Iterator for Portions<'_, '_, E> {
    type Item = Portion;

    fn next(&mut self) -> Option<Portion> {
        let mut portion = Portion::default();
        let mut region = None;
        while portion.steps.len() < STEPS_MAX && portion.bytes < BYTES_MAX {
            let Some((step, address)) = self.step() else { break };
            if address.is_some() && region.is_some() && address != region {
                self.pending = Some((step, address));
                break;
            }
            region = region.or(address);
            if let Step::Content(wanted) = &step {
                portion.bytes += wanted.bytes;
            }
            portion.steps.push(step);
        }
        portion.region = region;
        (!portion.steps.is_empty()).then_some(portion)
    }
}

impl<'c, 'r> File<'c, 'r> {
    #[allow(clippy::reversed_empty_ranges)]
    fn empty(path: &EntryPath, chunks: &'c ChunkSource<'r>) -> Self {
        let nothing = Recipe::Inline(Vec::new());
        Self { path: path.clone(), size: 0, pieces: RecipeReader::new(&nothing, chunks), run: 1..=0, at: 0 }
    }

    fn step(&mut self, chunks: &ChunkSource<'_>) -> Result<Option<WantedStep>, StoreError> {
        loop {
            if let Some(number) = self.run.next() {
                let number = ChunkNumber(number);
                let (container, place) = chunks.place_of(number)?;
                self.at = self.at.saturating_add(u64::from(place.chunk.length));
                let address = Address { container, region: place.region };
                let wanted = Wanted::new(number, place.chunk.length as usize);
                return Ok(Some((Step::Content(wanted), Some(address))));
            }
            match self.pieces.next().transpose()? {
                Some(Piece::Run(run)) => self.run = run.range(),
                Some(Piece::Hole(bytes)) => {
                    self.at = self.at.saturating_add(bytes);
                    return Ok(Some((Step::Hole(bytes), None)));
                }
                None if self.at == self.size => return Ok(Some((Step::End, None))),
                None => {
                    let reason = format!("it makes {} bytes instead of {}", self.at, self.size);
                    return Err(StoreError::damaged(&self.path, "recipe", reason));
                }
            }
        }
    }
}

/// The parts of a file that are no holes; `None` if it has none.
fn extents(chunks: &ChunkSource<'_>, recipe: &Recipe) -> Result<Option<Vec<Extent>>, StoreError> {
    let mut has_holes = false;
    for piece in RecipeReader::new(recipe, chunks) {
        has_holes |= matches!(piece?, Piece::Hole(_));
        if has_holes {
            break;
        }
    }
    if !has_holes {
        return Ok(None);
    }
    let (mut data, mut at) = (Vec::<Extent>::new(), 0_u64);
    for piece in RecipeReader::new(recipe, chunks) {
        match piece? {
            Piece::Hole(bytes) => at = at.saturating_add(bytes),
            Piece::Run(run) => {
                let mut bytes = 0_u64;
                for number in run.range() {
                    bytes += u64::from(chunks.place_of(ChunkNumber(number))?.1.chunk.length);
                }
                match data.last_mut() {
                    Some(last) if last.offset + last.bytes == at => last.bytes += bytes,
                    _ => data.push(Extent { offset: at, bytes }),
                }
                at = at.saturating_add(bytes);
            }
        }
    }
    Ok(Some(data))
}
