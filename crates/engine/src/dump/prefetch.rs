//! Content of a dump, cut into portions that are read ahead.
//!
//! A portion ends where the content goes on in another region, so that each region is decoded by one worker and, as far
//! as the order of the files allows, once. Where regions are deltas that is not enough: their bases lie in many others.
//! So portions come by groups, and of a group with deltas all content is gathered together.

use crate::chunks::{Address, ChunkSource};
use crate::decode::HeldChunk;
use crate::fs::Extent;
use crate::linked::Linked;
use siltstone_store::catalog::{Content, Entry, EntryPath};
use siltstone_store::recipe::{Piece, Recipe, RecipeReader};
use siltstone_store::{ChunkNumber, StoreError};
use std::collections::{BTreeSet, HashMap};
use std::ops::RangeInclusive;

/// The most steps in a group, about: of small files their metadata is what takes memory.
const GROUP_STEPS_MAX: usize = 1 << 16;
/// The most steps and bytes of content in a portion (one longer chunk excepted).
const STEPS_MAX: usize = 4096;
const BYTES_MAX: usize = 4 << 20;

/// Times that content comes to each region of a group from another, beyond which it is likely to come again.
const REPEATS_MIN: usize = 2;

/// Step of writing a dump.
pub(super) enum Step {
    /// An entry begins. Of a file with holes what is none, if that is wanted.
    Begin(Box<Entry>, Option<Vec<Extent>>),
    /// A further name of one that came before.
    Link(Box<Entry>, EntryPath),
    /// So much content, the next in [`Portion::content`].
    Chunk {
        /// Where it comes from.
        number: ChunkNumber,
        /// Its length.
        bytes: usize,
    },
    /// A hole of so many bytes.
    Hole(u64),
    /// The entry is complete.
    End,
    /// Nothing more can be had.
    Failed(StoreError),
}

/// Some steps, and the content they need once it has been read.
#[derive(Default)]
pub(super) struct Portion {
    pub(super) steps: Vec<Step>,
    pub(super) content: Vec<u8>,
    /// How much that will be.
    bytes: usize,
    /// The region that all of it lies in.
    region: Option<Address>,
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
        (!group.portions.is_empty()).then_some(group)
    }

    /// Tells whether some content lies in region deltas.
    pub(super) fn has_deltas(&self, chunks: &ChunkSource<'_>) -> bool {
        // What cannot be read is told where its content is read.
        self.regions().into_iter().any(|address| chunks.has_bases(address).unwrap_or(false))
    }

    /// Tells whether content comes from the same regions again and again.
    pub(super) fn has_repeats(&self) -> bool {
        let mut visits: Vec<Address> = self.portions.iter().filter_map(|portion| portion.region).collect();
        // A large region has several portions in a row.
        visits.dedup();
        visits.len() > REPEATS_MIN * self.regions().len()
    }

    fn regions(&self) -> BTreeSet<Address> {
        self.portions.iter().filter_map(|portion| portion.region).collect()
    }

    /// Returns the chunks of its content.
    pub(super) fn numbers(&self) -> BTreeSet<ChunkNumber> {
        let steps = self.portions.iter().flat_map(|portion| &portion.steps);
        steps
            .filter_map(|step| match step {
                Step::Chunk { number, .. } => Some(*number),
                _ => None,
            })
            .collect()
    }
}

impl Portion {
    /// Reads and verifies the content, but for what was gathered. What cannot be read ends the portion.
    pub(super) fn read(mut self, chunks: &ChunkSource<'_>, gathered: &HashMap<ChunkNumber, HeldChunk>) -> Self {
        self.content.reserve_exact(self.bytes);
        for at in 0..self.steps.len() {
            let Some(Step::Chunk { number, bytes }) = self.steps.get(at) else { continue };
            let (number, bytes, before) = (*number, *bytes, self.content.len());
            let read = match gathered.get(&number).and_then(|chunk| chunk.read().ok()) {
                Some(chunk) => {
                    self.content.extend_from_slice(&chunk);
                    Ok(())
                }
                None => chunks.with_chunk(number, |chunk| self.content.extend_from_slice(chunk)),
            };
            let read = read.and_then(|()| {
                let damaged = || StoreError::damaged(&format!("chunk {number}"), "length", "it differs from the index");
                if self.content.len() - before == bytes { Ok(()) } else { Err(damaged()) }
            });
            if let Err(error) = read {
                self.steps.truncate(at);
                self.steps.push(Step::Failed(error));
                break;
            }
        }
        self
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
    pending: Option<(Step, Option<Address>)>,
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
    fn step(&mut self) -> Option<(Step, Option<Address>)> {
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

    fn entry(&mut self) -> Result<Option<(Step, Option<Address>)>, StoreError> {
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
            if let Step::Chunk { bytes, .. } = step {
                portion.bytes += bytes;
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

    fn step(&mut self, chunks: &ChunkSource<'_>) -> Result<Option<(Step, Option<Address>)>, StoreError> {
        loop {
            if let Some(number) = self.run.next() {
                let number = ChunkNumber(number);
                let (container, place) = chunks.place_of(number)?;
                self.at = self.at.saturating_add(u64::from(place.chunk.length));
                let address = Address { container, region: place.region };
                return Ok(Some((Step::Chunk { number, bytes: place.chunk.length as usize }, Some(address))));
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
    fn regions_wanted_again_and_again_are_told_from_those_wanted_once() {
        assert!(group(&[0, 1, 0, 1, 0]).has_repeats());
        assert!(!group(&[0, 1, 0, 1]).has_repeats() && !group(&[0, 1, 2, 3, 4, 5]).has_repeats());
        assert!(!group(&[0, 0, 0, 0, 0]).has_repeats(), "a large region");
        assert!(!PortionGroup::default().has_repeats());
    }
}
