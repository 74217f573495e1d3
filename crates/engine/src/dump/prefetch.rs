//! Content of a dump, cut into portions that are read ahead.
//!
//! A portion ends where the content goes on in another region, so that each region is decoded by one worker and, as far
//! as the order of the files allows, once. Where regions are deltas that is not enough: their bases lie in many others.
//! So portions come by groups, and of a group with deltas all content is gathered together.

use crate::chunks::{Address, ChunkSource, PlainRegion};
use crate::decode::{Bytes, HeldChunk};
use crate::fs::Extent;
use crate::linked::Linked;
use siltstone_store::catalog::{Content, Entry, EntryPath};
use siltstone_store::recipe::{Piece, Recipe, RecipeReader};
use siltstone_store::{ChunkNumber, StoreError};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

/// The most steps in a group, about: of small files their metadata is what takes memory.
const GROUP_STEPS_MAX: usize = 1 << 16;
/// The most steps and bytes of content in a portion (one longer chunk excepted).
const STEPS_MAX: usize = 4096;
const BYTES_MAX: usize = 4 << 20;

/// Regions that content goes to and fro between: what is compressed and what is not, what is new and what was there.
const NEAR_REGIONS: usize = 4;
/// The least that a task counts of what may be done ahead, bytes: so there are not too many of them.
pub(super) const TASK_BYTES_MIN: usize = 64 << 10;

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
    number: ChunkNumber,
    bytes: usize,
}

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
    steps: Vec<Step<Wanted>>,
    /// Bytes of content.
    bytes: usize,
    region: Option<Address>,
    /// The content goes on in a region that one of the last portions had.
    is_near: bool,
    /// No later portion of the group has its region.
    is_last: bool,
}

/// Part of the work on a group.
pub(super) enum Task {
    /// Decodes a region, of so many bytes, that portions to come will have.
    Decode(Address, usize),
    /// Reads a portion whose region is decoded by then.
    Cut(Portion),
    /// Reads a portion.
    Read(Portion),
}

impl Task {
    /// Returns how much more memory its result takes, about, bytes.
    pub(super) fn weight(&self) -> usize {
        let bytes = match self {
            Self::Decode(_, bytes) => *bytes,
            Self::Cut(_) => 0,
            Self::Read(portion) => portion.bytes,
        };
        bytes.max(TASK_BYTES_MIN)
    }

    /// Reads a portion; the content that was gathered is at hand.
    pub(super) fn run(
        self,
        chunks: &ChunkSource<'_>,
        gathered: &HashMap<ChunkNumber, HeldChunk>,
    ) -> Vec<Step<ReadContent>> {
        match self {
            Self::Decode(address, _) => {
                // What cannot be read is told where its content is read.
                let _ = chunks.region(address.container, address.region);
                Vec::new()
            }
            Self::Cut(portion) | Self::Read(portion) => portion.read(chunks, gathered),
        }
    }
}

/// Portions that follow each other.
#[derive(Default)]
pub(super) struct PortionGroup {
    pub(super) portions: Vec<Portion>,
}

impl PortionGroup {
    /// Takes portions until they have about so many bytes of content, one at least; `None` if there are none.
    pub(super) fn next(portions: &mut impl Iterator<Item = Portion>, bytes_max: usize) -> Option<Self> {
        let (mut group, mut bytes, mut steps) = (Self::default(), 0, 0);
        while group.portions.is_empty() || (bytes < bytes_max && steps < GROUP_STEPS_MAX) {
            let Some(portion) = portions.next() else { break };
            bytes += portion.bytes;
            steps += portion.steps.len();
            group.portions.push(portion);
        }
        group.mark();
        (!group.portions.is_empty()).then_some(group)
    }

    fn mark(&mut self) {
        let mut near = VecDeque::new();
        for portion in &mut self.portions {
            let Some(region) = portion.region else { continue };
            let before = near.iter().position(|other| *other == region);
            portion.is_near = before.and_then(|at| near.remove(at)).is_some();
            near.push_front(region);
            near.truncate(NEAR_REGIONS);
        }
        let mut wanted = BTreeSet::new();
        for portion in self.portions.iter_mut().rev() {
            portion.is_last = portion.region.is_some_and(|region| wanted.insert(region));
        }
    }

    /// Turns into the tasks that read it. Regions are decoded by tasks of their own, about so many bytes before they are
    /// read: while one worker decodes a region, the others need not wait for it.
    pub(super) fn into_tasks(self, bytes_ahead: usize, chunks: &ChunkSource<'_>) -> Vec<Task> {
        // What cannot be read is told where its content is read.
        self.tasks(bytes_ahead, |address| chunks.plain_bytes(address).unwrap_or(0))
    }

    fn tasks(self, bytes_ahead: usize, bytes_of: impl Fn(Address) -> usize) -> Vec<Task> {
        let begun = |portion: &Portion| portion.region.filter(|_| !portion.is_near);
        let regions: Vec<Address> = self.portions.iter().filter_map(begun).collect();
        let mut regions = regions.into_iter();
        let (mut ahead, mut weights_ahead) = (0, VecDeque::new());
        let mut tasks = Vec::new();
        for portion in self.portions {
            if begun(&portion).is_some() {
                while ahead < bytes_ahead.max(1)
                    && let Some(address) = regions.next()
                {
                    let task = Task::Decode(address, bytes_of(address));
                    weights_ahead.push_back(task.weight());
                    ahead += task.weight();
                    tasks.push(task);
                }
                ahead -= weights_ahead.pop_front().unwrap_or(0);
            }
            tasks.push(Task::Cut(portion));
        }
        tasks
    }

    /// Turns into the tasks that read it from what was gathered.
    pub(super) fn into_reads(self) -> Vec<Task> {
        self.portions.into_iter().map(Task::Read).collect()
    }

    /// Tells whether some content lies in region deltas.
    pub(super) fn has_deltas(&self, chunks: &ChunkSource<'_>) -> bool {
        // What cannot be read is told where its content is read.
        self.regions().into_iter().any(|address| chunks.has_bases(address).unwrap_or(false))
    }

    fn regions(&self) -> BTreeSet<Address> {
        self.portions.iter().filter_map(|portion| portion.region).collect()
    }

    /// Returns the chunks of its content.
    pub(super) fn numbers(&self) -> BTreeSet<ChunkNumber> {
        let steps = self.portions.iter().flat_map(|portion| &portion.steps);
        steps
            .filter_map(|step| match step {
                Step::Content(wanted) => Some(wanted.number),
                _ => None,
            })
            .collect()
    }
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
    pending: Option<(Step<Wanted>, Option<Address>)>,
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
    fn step(&mut self) -> Option<(Step<Wanted>, Option<Address>)> {
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

    fn entry(&mut self) -> Result<Option<(Step<Wanted>, Option<Address>)>, StoreError> {
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

    fn step(&mut self, chunks: &ChunkSource<'_>) -> Result<Option<(Step<Wanted>, Option<Address>)>, StoreError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn group(regions: &[usize]) -> PortionGroup {
        let portion = |region: &usize| {
            let region = Some(Address { container: 0, region: *region });
            Portion { region, ..Portion::default() }
        };
        PortionGroup { portions: regions.iter().map(portion).collect() }
    }

    #[test]
    fn portions_know_whether_their_region_came_before_and_comes_again() {
        let mut group = group(&[0, 0, 1, 0, 2, 3, 4, 1, 0]);
        group.mark();
        let is_near = [false, true, false, true, false, false, false, false, false];
        let is_last = [false, false, false, false, true, true, true, true, true];
        assert_eq!(group.portions.iter().map(|portion| portion.is_near).collect::<Vec<_>>(), is_near);
        assert_eq!(group.portions.iter().map(|portion| portion.is_last).collect::<Vec<_>>(), is_last);
    }

    /// The regions of a group's tasks, those to decode as they are, those to read on in less 100.
    fn tasks(regions: &[usize], bytes_ahead: usize) -> Vec<isize> {
        let mut group = group(regions);
        group.mark();
        let shown = |task: &Task| match task {
            Task::Decode(address, _) => address.region.cast_signed(),
            Task::Cut(portion) | Task::Read(portion) => portion.region.map_or(0, |at| at.region.cast_signed()) - 100,
        };
        group.tasks(bytes_ahead, |_| 1 << 20).iter().map(shown).collect()
    }

    #[test]
    fn regions_are_decoded_so_many_bytes_before_they_are_read() {
        assert_eq!(tasks(&[0, 0, 1, 0, 1, 2, 3], 0), [0, -100, -100, 1, -99, -100, -99, 2, -98, 3, -97]);
        assert_eq!(tasks(&[0, 0, 1, 0, 1, 2, 3], 2 << 20), [0, 1, -100, -100, 2, -99, -100, -99, 3, -98, -97]);
        assert_eq!(tasks(&[0, 1], usize::MAX), [0, 1, -100, -99]);
        assert!(tasks(&[], 1).is_empty());
    }
}
