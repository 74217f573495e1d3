//! Backing up a version (MeGA, ATC 2022, Figure 2 and section 4.2), the same way for all layouts: segment by segment,
//! what is stored already is referred to, what resembles something is encoded against it, the rest is stored whole;
//! where the rule allows the reference.
//!
//! ```text
//! cut -> fingerprints* -> known? -> sketches* -> candidates -> rule -> read bases* -> deltas* -> regions* -> containers
//! ```
//! An incremental backup takes the same way. It is told what changed (module `incremental`), and a chunk that did not
//! change is neither read, nor cut, nor hashed: its record says which it is.
//!
//! Work with a star is done by all threads. A base is always whole: deltas are one step deep. Where sharing ends with
//! the version before, it is with all that version needs, bases included; or else every other version of a chunk would
//! be stored whole. The paper does not say it, but counts bases among what a recipe names (Figure 2) and what a version
//! needs (section 3.3).

use super::cache::Cache;
use super::choose::{Allowed, Container, Rule};
use super::container_store::{Stored, Writer};
use super::incremental::{Changes, Records};
use super::index::{Likeness, Sketches};
use super::parallel;
use super::prefetch;
use super::recipe::{self, Item, Number};
use super::stored::{BackedUp, BasesOfContainer, Chunk, Store};
use anyhow::{Context, Result, ensure};
use siltstone_chunk::Chunker;
use siltstone_similar::delta::{ChunkDelta, CopyInsert};
use siltstone_similar::sketch::Sketch;
use siltstone_store::Fingerprint;
use std::collections::{HashMap, HashSet};
use std::time::Instant;

/// Chunks that a thread takes to fingerprint at once.
const FINGERPRINTED_TOGETHER: usize = 64;

/// A backup that is under way.
struct Pass {
    writer: Writer,
    cache: Cache,
    recipe: Vec<Item>,
    /// The first container that is not older than this version.
    first_own: Container,
    /// Whole chunks that lie in no finished container.
    open: HashMap<Number, Box<[u8]>>,
    /// Bases that were wanted of each container.
    bases: HashMap<Container, HashSet<Number>>,
    deltas: u64,
    /// Bytes of the version that were read.
    read_bytes: u64,
}

/// Fate of a chunk of a segment.
#[derive(Clone, Copy)]
enum Fate {
    /// It is referred to.
    Known(Number),
    /// It gets this number.
    New(Number, Option<Base>),
}

/// Base that a new chunk is encoded against.
#[derive(Clone, Copy)]
enum Base {
    /// A chunk before this segment.
    Stored(Number),
    /// The whole chunk at this place of the segment.
    SameSegment(Number, usize),
}

impl Store {
    /// Backs up the version with this number, which must be new. An incremental backup says how it differs from the
    /// version before (`changes`); without changes it is a full one.
    ///
    /// # Errors
    /// If what is stored cannot be read, nothing can be written, or the changes are those of another version.
    pub(super) fn back_up(&mut self, version: usize, bytes: &[u8], changes: Option<&Changes>) -> Result<BackedUp> {
        let begin = Instant::now();
        let mut records = changes.map(|changes| self.records(version, bytes, changes)).transpose()?;
        let mut pass = Pass {
            writer: Writer::default(),
            cache: Cache::new(self.scale.cache_bytes),
            recipe: Vec::new(),
            first_own: self.disk.next_container(),
            open: HashMap::new(),
            bases: HashMap::new(),
            deltas: 0,
            read_bytes: 0,
        };
        let mut at = 0;
        while at < bytes.len() {
            let segment_begin = at;
            let (mut chunks, mut recorded) = (Vec::new(), Vec::new());
            while at < bytes.len() && at - segment_begin < self.scale.segment_bytes {
                let record = records.as_mut().and_then(|records| records.at(at));
                let length = record.map_or_else(|| self.chunker.cut(&bytes[at..]), |record| record.bytes as usize);
                chunks.push(&bytes[at..at + length]);
                recorded.push(record.map(|record| record.number));
                at += length;
            }
            self.segment(&mut pass, &chunks, &recorded)?;
        }
        let written = pass.writer.finish(&self.disk)?;
        self.note(written);
        let recipe = self.disk.write_metadata(&recipe::encode(&pass.recipe))?;
        self.recipes.insert(version, recipe.container);
        self.disk.barrier()?;
        self.index.next_version();
        let seconds = begin.elapsed().as_secs_f64();
        let bases_by_container = pass.bases.iter().map(|(container, bases)| {
            let (_, bytes) = self.use_of(*container)?;
            Ok(BasesOfContainer { bases: bases.len() as u64, bytes })
        });
        let bases_by_container = bases_by_container.collect::<Result<_>>()?;
        let Pass { deltas, read_bytes, .. } = pass;
        Ok(BackedUp { seconds, bases: pass.cache.reads(), bases_by_container, deltas, read_bytes })
    }

    /// Records of the version before, where this one has kept something of it.
    fn records<'c>(&self, version: usize, bytes: &[u8], changes: &'c Changes) -> Result<Records<'c>> {
        ensure!(changes.bytes() == bytes.len(), "the changes are not those of version {version}");
        let recipe = match version.checked_sub(1) {
            Some(before) if changes.keep_something() => self.recipe(before)?.0,
            _ => Vec::new(),
        };
        Ok(Records::new(recipe, changes))
    }

    /// Stores a segment. Of chunks that a record was found for, `recorded` has the number.
    fn segment(&mut self, pass: &mut Pass, chunks: &[&[u8]], recorded: &[Option<Number>]) -> Result<()> {
        let fingerprints = self.fingerprints(chunks, recorded)?;
        let found = recorded.iter().zip(&fingerprints);
        let known: Vec<Option<Number>> =
            found.map(|(number, fingerprint)| number.or_else(|| self.index.find(fingerprint))).collect();
        let likenesses = self.likenesses(chunks, &fingerprints, &known)?;
        let candidates: Vec<Option<Number>> =
            likenesses.iter().map(|likeness| self.index.find_like(likeness.as_ref()?)).collect();
        let allowed = self.allowed(pass, &known, &candidates)?;
        let mut fates = self.fates(pass, &allowed, &fingerprints, &known, &likenesses, &candidates)?;
        let deltas = self.deltas(pass, chunks, &mut fates)?;
        // A record is not enough where the rule has its chunk written again.
        let is_read = |(number, fate): (&Option<Number>, &Fate)| number.is_none() || matches!(fate, Fate::New(..));
        let read = chunks.iter().zip(recorded.iter().zip(&fates)).filter(|(_, one)| is_read(*one));
        pass.read_bytes += read.map(|(chunk, _)| chunk.len() as u64).sum::<u64>();
        let outcomes = fates.iter().zip(deltas);
        for ((chunk, fingerprint), (fate, delta)) in chunks.iter().zip(fingerprints).zip(outcomes) {
            let number = match *fate {
                Fate::Known(number) => number,
                Fate::New(number, base) => {
                    self.add(pass, number, fingerprint, chunk, base.zip(delta.as_deref()))?;
                    number
                }
            };
            let Chunk { bytes, base, .. } = *self.chunk(number)?;
            pass.recipe.push(Item { number, bytes, base });
            // A version needs the bases of its deltas too: the next one may share them.
            if self.index.forgets() {
                for needed in [Some(number), base].into_iter().flatten() {
                    self.find_again(needed)?;
                }
            }
        }
        let written = pass.writer.flush(&self.disk)?;
        written.iter().flat_map(|one| &one.members).for_each(|number| drop(pass.open.remove(number)));
        self.note(written);
        Ok(())
    }

    /// Stores a new chunk: the delta, if there is one.
    fn add(
        &mut self,
        pass: &mut Pass,
        number: Number,
        fingerprint: Fingerprint,
        chunk: &[u8],
        delta: Option<(Base, &[u8])>,
    ) -> Result<()> {
        let bytes = delta.map_or(chunk, |(_, delta)| delta);
        pass.writer.push(&self.disk, Stored { number, fingerprint, bytes })?;
        match delta {
            Some((Base::Stored(base) | Base::SameSegment(base, _), _)) => {
                self.chunks[number as usize].base = Some(base);
                pass.deltas += 1;
            }
            None if self.way.has_deltas => drop(pass.open.insert(number, Box::from(chunk))),
            None => {}
        }
        self.find_again(number)
    }

    /// The chunk can be found from now on; as a base, only if it is whole.
    fn find_again(&mut self, number: Number) -> Result<()> {
        let Chunk { fingerprint, likeness, base, .. } = *self.chunk(number)?;
        self.index.insert(number, fingerprint, likeness.filter(|_| base.is_none()).as_ref());
        Ok(())
    }

    /// Returns the fingerprint of each chunk: of those with a record as it is stored, of the others by their bytes.
    fn fingerprints(&self, chunks: &[&[u8]], recorded: &[Option<Number>]) -> Result<Vec<Fingerprint>> {
        let read: Vec<&[u8]> =
            chunks.iter().zip(recorded).filter(|(_, number)| number.is_none()).map(|(chunk, _)| *chunk).collect();
        let groups: Vec<&[&[u8]]> = read.chunks(FINGERPRINTED_TOGETHER).collect();
        let hashes = parallel::each(
            self.scale.threads,
            &groups,
            || Ok(()),
            |(), group| {
                let mut hashes = Vec::with_capacity(group.len());
                self.fingerprinter.fingerprints(group, &mut hashes);
                Ok(hashes)
            },
        )?;
        let mut of_read = hashes.iter().flatten().map(Fingerprint::of_hash);
        let fingerprint = |number: &Option<Number>| match number {
            Some(number) => Ok(self.chunk(*number)?.fingerprint),
            None => of_read.next().context("a chunk has no fingerprint"),
        };
        recorded.iter().map(fingerprint).collect()
    }

    /// Returns the super-features of each chunk that is not known, at its first place in the segment.
    fn likenesses(
        &self,
        chunks: &[&[u8]],
        fingerprints: &[Fingerprint],
        known: &[Option<Number>],
    ) -> Result<Vec<Option<Likeness>>> {
        let mut likenesses = vec![None; chunks.len()];
        if !self.way.has_deltas {
            return Ok(likenesses);
        }
        let mut seen = HashSet::new();
        let is_first = |at: &usize| known[*at].is_none() && seen.insert(fingerprints[*at]);
        let firsts: Vec<usize> = (0..chunks.len()).filter(is_first).collect();
        let found = parallel::each(
            self.scale.threads,
            &firsts,
            || Ok(()),
            |(), at| Ok(self.sketcher.sketch(chunks[*at]).and_then(|sketch| self.likeness(&sketch))),
        )?;
        firsts.into_iter().zip(found).for_each(|(at, likeness)| likenesses[at] = likeness);
        Ok(likenesses)
    }

    fn likeness(&self, sketch: &Sketch) -> Option<Likeness> {
        Likeness::try_from(&*sketch.super_features(self.sketcher.grouping())).ok()
    }

    /// Containers that count for the rule when a chunk is referred to: of capping those of older versions, of the
    /// selector all that must be read.
    fn counted(&self, pass: &Pass, number: Number) -> Result<Option<Container>> {
        let counts = |container: &Container| match self.way.rule {
            Rule::Everything => false,
            Rule::Capping(_) => *container < pass.first_own,
            Rule::Threshold(_) => true,
        };
        Ok(self.chunk(number)?.container.filter(counts))
    }

    /// Those of a duplicate: its own, and that of its base.
    fn counted_of_duplicate(&self, pass: &Pass, number: Number) -> Result<impl Iterator<Item = Container> + use<>> {
        let base = self.chunk(number)?.base.map(|base| self.counted(pass, base)).transpose()?.flatten();
        Ok(self.counted(pass, number)?.into_iter().chain(base))
    }

    fn allowed(&self, pass: &Pass, known: &[Option<Number>], candidates: &[Option<Number>]) -> Result<Allowed> {
        let (mut duplicates, mut bases) = (Vec::new(), Vec::new());
        for number in known.iter().flatten() {
            duplicates.extend(self.counted_of_duplicate(pass, *number)?);
        }
        for number in candidates.iter().flatten() {
            bases.extend(self.counted(pass, *number)?);
        }
        Ok(Allowed::by(self.way.rule, &duplicates, &bases))
    }

    fn fates(
        &mut self,
        pass: &Pass,
        allowed: &Allowed,
        fingerprints: &[Fingerprint],
        known: &[Option<Number>],
        likenesses: &[Option<Likeness>],
        candidates: &[Option<Number>],
    ) -> Result<Vec<Fate>> {
        let mut numbered: HashMap<Fingerprint, Number> = HashMap::new();
        let (mut whole, mut places) = (Sketches::default(), HashMap::new());
        let mut fates = Vec::with_capacity(fingerprints.len());
        for (at, fingerprint) in fingerprints.iter().enumerate() {
            if let Some(number) = numbered.get(fingerprint) {
                fates.push(Fate::Known(*number));
                continue;
            }
            let mut likeness = likenesses[at];
            let base = match known[at] {
                Some(number) => {
                    if self.counted_of_duplicate(pass, number)?.all(|container| allowed.duplicate(container)) {
                        fates.push(Fate::Known(number));
                        continue;
                    }
                    // Written again, whole.
                    likeness = self.chunk(number)?.likeness;
                    None
                }
                None => match candidates[at] {
                    Some(number) => {
                        let is_read = self.counted(pass, number)?.is_none_or(|container| allowed.base(container));
                        is_read.then_some(Base::Stored(number))
                    }
                    None => likeness
                        .as_ref()
                        .and_then(|likeness| whole.find(likeness))
                        .map(|number| Base::SameSegment(number, places[&number])),
                },
            };
            let number = Number::try_from(self.chunks.len()).context("the store holds too many chunks")?;
            numbered.insert(*fingerprint, number);
            if let (None, Some(likeness)) = (base, &likeness) {
                whole.insert(number, likeness);
                places.insert(number, at);
            }
            self.chunks.push(Chunk { fingerprint: *fingerprint, bytes: 0, base: None, likeness, container: None });
            fates.push(Fate::New(number, base));
        }
        Ok(fates)
    }

    /// The deltas that are smaller than their chunks; where they are not, the base is taken out of the fate.
    fn deltas(&mut self, pass: &mut Pass, chunks: &[&[u8]], fates: &mut [Fate]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut wanted = Vec::new();
        let mut uses = Vec::new();
        for (at, fate) in fates.iter().enumerate() {
            let Fate::New(number, base) = *fate else { continue };
            self.chunks[number as usize].bytes = u32::try_from(chunks[at].len())?;
            let Some(base) = base else { continue };
            let container = match base {
                Base::Stored(base) => self.chunk(base)?.container,
                Base::SameSegment(..) => None,
            };
            if let (Base::Stored(base), Some(container)) = (base, container) {
                uses.push(self.use_of(container)?);
                pass.bases.entry(container).or_default().insert(base);
            }
            wanted.push((at, base, container));
        }
        let misses = pass.cache.misses(&uses);
        let pairs = prefetch::in_order(&self.disk, &misses, self.scale.threads, |prefetcher| {
            let mut pairs: Vec<(usize, Box<[u8]>)> = Vec::with_capacity(wanted.len());
            for (at, base, container) in wanted {
                let bytes = match (base, container) {
                    (Base::SameSegment(_, place), _) => chunks[place].into(),
                    (Base::Stored(base), Some(container)) => {
                        pass.cache.get(prefetcher, container)?.stored(base)?.into()
                    }
                    (Base::Stored(base), None) => {
                        pass.open.get(&base).with_context(|| format!("chunk {base} is not at hand"))?.clone()
                    }
                };
                pairs.push((at, bytes));
            }
            Ok(pairs)
        })?;
        let isa = self.isa;
        let encoded = parallel::each(
            self.scale.threads,
            &pairs,
            || Ok(CopyInsert::new(isa)),
            |codec, (at, base)| {
                let (chunk, mut delta) = (chunks[*at], Vec::new());
                let is_smaller = codec.encode(base, chunk, chunk.len().saturating_sub(1), &mut delta).is_ok();
                Ok(is_smaller.then_some(delta))
            },
        )?;
        let mut deltas = vec![None; chunks.len()];
        for ((at, _), delta) in pairs.into_iter().zip(encoded) {
            if let (None, Fate::New(_, base)) = (&delta, &mut fates[at]) {
                *base = None;
            }
            deltas[at] = delta;
        }
        Ok(deltas)
    }
}
