//! Content of a dump, cut into portions: one ends where the content goes on in another region.

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
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) number: ChunkNumber,
    pub(super) bytes: usize,
}

/// A step, and the region that its content lies in.
type WantedStep = (Step<Wanted>, Option<Address>);

/// Content that was read.
pub(super) enum ReadContent {
    /// Bytes of a region, where they were decoded.
    InRegion(PlainRegion, Range<usize>),
    /// Bytes of one chunk.
    Gathered(Bytes),
}

impl ReadContent {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::InRegion(plain, range) => plain.get(range.clone()).unwrap_or_default(),
            Self::Gathered(bytes) => bytes,
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
    /// Reads and verifies the chunk, unless it was gathered.
    fn read(
        self,
        chunks: &ChunkSource<'_>,
        gathered: &HashMap<ChunkNumber, HeldChunk>,
    ) -> Result<ReadContent, StoreError> {
        let read = match gathered.get(&self.number).and_then(|chunk| chunk.read().ok()) {
            Some(chunk) => ReadContent::Gathered(chunk),
            None => {
                let (plain, range) = chunks.chunk_in_region(self.number)?;
                ReadContent::InRegion(plain, range)
            }
        };
        if read.bytes().len() == self.bytes {
            return Ok(read);
        }
        Err(StoreError::damaged(&format!("chunk {}", self.number), "length", "it differs from the index"))
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
    /// Reads and verifies the content, but for what was gathered. What cannot be read ends the portion.
    pub(super) fn read(
        self,
        chunks: &ChunkSource<'_>,
        gathered: &HashMap<ChunkNumber, HeldChunk>,
    ) -> Vec<Step<ReadContent>> {
        let mut steps: Vec<Step<ReadContent>> = Vec::new();
        for step in self.steps {
            if matches!(steps.last(), Some(Step::Failed(_))) {
                break;
            }
            let step = match (steps.last_mut(), step.read(|wanted| wanted.read(chunks, gathered))) {
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
            if let Step::Content(wanted) = step {
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
                let wanted = Wanted { number, bytes: place.chunk.length as usize };
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
