//! Borrowing: chunks that another series of the repository has are used instead of being stored again.
//!
//! ```text
//! new chunk  ->  in a sketch of the directory?  ->  hits of one tell that much is shared  ->  its index is opened
//!            ->  a loan of all it may lend, and its newest manifest again: what both grant may be used
//! until then ->  new chunks wait, as many as there is room for: if the lender has them they are not stored
//! end        ->  a loan of what was used takes the place of the first
//! ```
//! Other series are looked at in a first backup, and once a later one has much that is new. Whole chunks alone are
//! borrowed: a delta would bring its chain along. What is borrowed gets numbers of this series, all of a lender's
//! within one stretch, so that each has its number before anybody knows which are used. What had waited keeps the
//! number it had got.
//!
//! Cost: a look into the sketches for every new chunk; once a lender is found, one range read for each of its
//! containers. Until then about 2 / k of what is shared is met (k as in `BottomK`); what of it finds no room to wait
//! is stored.

use super::options::{Borrow, Reused};
use super::outcome::{Account, Taken};
use super::run::BackupRun;
use crate::EngineError;
use crate::chunks::ChunkSource;
use crate::index::{CachedRun, FingerprintIndex};
use crate::lending::{OWN_BYTES_MIN, OWN_CHUNKS_MIN, knows};
use crate::observer::Notice;
use roaring::RoaringTreemap;
use siltstone_store::container::ContainerKind;
use siltstone_store::directory::{Directory, DirectoryEntry};
use siltstone_store::manifest::{BorrowedRun, BottomK, LENDERS_MAX, Manifest};
use siltstone_store::region::ChunkEntry;
use siltstone_store::series::{Loan, SeriesWriter, newest_manifest};
use siltstone_store::{ChunkNumber, ChunkRun, Fingerprint, LoanId, SeriesId, StoreError};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// Bytes of new chunks after which a series that has snapshots looks at others.
const NEW_BYTES_MIN: u64 = 16 << 20;
/// Chunks of a sketch that are met before its series is taken for a lender,
const HITS_MIN: u64 = 2;
/// and chunks of the series that these stand for: at least so many, and one of so many that were looked for. While new
/// chunks wait for the first lender it has to be one that has much, or a few that have little would be asked in its
/// place.
const MET_MIN: u64 = 8;
const MET_ONE_IN: u64 = 256;
const MET_ONE_IN_WAITING: u64 = 8;
/// The numbers of chunks that are borrowed or lent are below this, so that a reader has room for those of lenders.
const NUMBERS_MAX: u64 = 1 << 56;
/// The chunks of a loan that may be surplus: up to so many, or one in so many of those needed, a smaller loan is not
/// worth its requests, and is left to maintenance.
const SURPLUS_MAX: u64 = 64;
const SURPLUS_ONE_IN: u64 = 16;
/// Lenders that one backup looks into at most, but for one that has more than all of them together. The index of each
/// may take half of the memory that those before it left.
const OPENED_MAX: usize = 8;
const INDEX_BYTES_MIN: u64 = 1 << 20;

/// A series that may turn out to be a lender.
struct Candidate {
    series: SeriesId,
    /// Chunks of it that each of its sketch stands for.
    weight: u64,
    /// Chunks that it has, about.
    chunks: u64,
    /// Chunks of the sketch that were met.
    hits: u64,
    /// True once it was asked.
    is_asked: bool,
}

impl Candidate {
    /// Tells whether enough was met to look closer, where it has to stand for so many chunks.
    fn is_promising(&self, met_min: u64) -> bool {
        self.hits >= HITS_MIN && self.hits.saturating_mul(self.weight) >= met_min
    }
}

/// A series to look into.
#[derive(Clone, Copy)]
struct Asked {
    series: SeriesId,
    /// Chunks that it has, about.
    chunks: u64,
}

/// The series of the directory, and which of them have a chunk in their sketch.
#[derive(Default)]
struct Candidates {
    series: Vec<Candidate>,
    by_value: HashMap<u64, Vec<usize>>,
}

impl Candidates {
    fn of<'d>(entries: impl Iterator<Item = &'d DirectoryEntry>) -> Self {
        let mut candidates = Self::default();
        for (at, entry) in entries.enumerate() {
            let (series, weight, chunks) = (entry.series, entry.sketch.weight(), entry.sketch.chunks());
            candidates.series.push(Candidate { series, weight, chunks, hits: 0, is_asked: false });
            entry.sketch.values().for_each(|value| candidates.by_value.entry(value).or_default().push(at));
        }
        candidates
    }

    /// Counts a chunk that was met; gives the series of which enough was met now.
    fn meet(&mut self, fingerprint: &Fingerprint, met_min: u64) -> Vec<Asked> {
        let mut promising = Vec::new();
        for at in self.by_value.remove(&BottomK::value(fingerprint)).unwrap_or_default() {
            if let Some(candidate) = self.series.get_mut(at) {
                candidate.hits += 1;
                if !candidate.is_asked && candidate.is_promising(met_min) {
                    candidate.is_asked = true;
                    promising.push(Asked { series: candidate.series, chunks: candidate.chunks });
                }
            }
        }
        promising
    }
}

/// A series that is borrowed of.
struct Opened {
    index: FingerprintIndex,
    taken: Taken,
    /// Its numbers that may be used.
    granted: RoaringTreemap,
    /// Numbers here of those that this series has borrowed before.
    known: BTreeMap<u64, ChunkRun>,
}

/// The writer of a run, while others put containers by it.
pub(super) trait MakesLoans: Sync {
    /// Makes a loan of another series' chunks, once the manifest says that there may be one.
    fn borrow(&self, lender: SeriesId, chunks: &[BorrowedRun]) -> Result<Loan, StoreError>;
}

/// Looks for new chunks in other series.
pub(super) struct Borrowing<'b> {
    run: &'b BackupRun<'b>,
    manifest: &'b Manifest,
    /// The writer that makes loans; none in a dry run.
    loans: Option<&'b dyn MakesLoans>,
    /// The series to look at; none before that is due.
    candidates: Option<Candidates>,
    /// Series that are to be opened, the last first.
    asked: Vec<Asked>,
    opened: Vec<Opened>,
    /// Numbers of chunks that waited and that a lender has.
    waited: RoaringTreemap,
    /// The directory, once it was looked at.
    directory: Option<Directory>,
    new_bytes: u64,
    /// Chunks that were looked for.
    looked_for: u64,
    index_bytes: u64,
    spill: PathBuf,
    pub(super) borrowed: Reused,
}

impl<'b> Borrowing<'b> {
    /// Search in other series as the options say; none if this run does not borrow. Indexes of lenders take so
    /// many bytes together.
    pub(super) fn new(
        run: &'b BackupRun<'b>,
        manifest: &'b Manifest,
        loans: Option<&'b dyn MakesLoans>,
        (index_bytes, spill): (u64, &Path),
    ) -> Option<Self> {
        if run.options.borrow == Borrow::Never || !run.repository.may_read() {
            return None;
        }
        Some(Self {
            run,
            manifest,
            loans,
            candidates: None,
            asked: Vec::new(),
            opened: Vec::new(),
            waited: RoaringTreemap::new(),
            directory: None,
            new_bytes: 0,
            looked_for: 0,
            index_bytes,
            spill: spill.to_owned(),
            borrowed: Reused::default(),
        })
    }

    /// The number here of a chunk that no snapshot of this series has, if another series lends it. `next` is the number
    /// that the next new chunk gets; `waiting` are new chunks that were met before and are not stored yet.
    pub(super) fn find(
        &mut self,
        fingerprint: &Fingerprint,
        bytes: usize,
        (next, waiting): (&mut ChunkNumber, &[ChunkEntry]),
    ) -> Result<Option<ChunkNumber>, EngineError> {
        self.look_out(bytes as u64)?;
        self.looked_for += 1;
        if let Some(number) = self.known(fingerprint)? {
            self.count(bytes);
            return Ok(Some(number));
        }
        while let Some(lender) = self.promising(fingerprint, !waiting.is_empty()) {
            self.open(lender, next, waiting)?;
            if let Some(number) = self.known(fingerprint)? {
                self.count(bytes);
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    fn count(&mut self, bytes: usize) {
        self.borrowed.chunks += 1;
        self.borrowed.plain_bytes += bytes as u64;
    }

    /// Tells whether a lender may still be found, so that it is worth while for new chunks to wait.
    pub(super) fn is_searching(&self) -> bool {
        self.opened.is_empty() && self.candidates.as_ref().is_some_and(|candidates| !candidates.by_value.is_empty())
    }

    /// Tells whether a chunk that waited is borrowed under the number it had got, and counts it if so.
    pub(super) fn takes(&mut self, chunk: &ChunkEntry) -> bool {
        let is_taken = self.waited.contains(chunk.number.0);
        if is_taken {
            self.count(chunk.length as usize);
        }
        is_taken
    }

    /// Reads the sketches of the other series, once that is due.
    fn look_out(&mut self, bytes: u64) -> Result<(), EngineError> {
        if self.candidates.is_some() {
            return Ok(());
        }
        self.new_bytes += bytes;
        let is_first = self.manifest.snapshots().is_empty();
        let is_named = matches!(self.run.options.borrow, Borrow::From(_));
        if !(is_first || is_named || self.new_bytes >= NEW_BYTES_MIN) {
            return Ok(());
        }
        let repository = self.run.repository;
        if let Borrow::From(name) = &self.run.options.borrow {
            let series = repository.keys().series_id(name);
            let is_there = newest_manifest(repository, series)?.is_some_and(|stored| stored.manifest.lends);
            if !is_there || series == self.manifest.series {
                return Err(EngineError::NoLender { series: name.clone() });
            }
            self.asked.push(Asked { series, chunks: u64::MAX });
            self.candidates = Some(Candidates::default());
            return Ok(());
        }
        let own = self.manifest.series;
        let directory = self.run.hint(Directory::newest(repository));
        let entries = directory.iter().flat_map(|directory| &directory.entries);
        self.candidates = Some(Candidates::of(entries.filter(|entry| entry.series != own)));
        self.directory = directory;
        Ok(())
    }

    /// A series that is likely to have much of what is backed up, given another chunk that was met.
    fn promising(&mut self, fingerprint: &Fingerprint, is_waiting: bool) -> Option<SeriesId> {
        let one_in = if is_waiting && self.opened.is_empty() { MET_ONE_IN_WAITING } else { MET_ONE_IN };
        let met_min = MET_MIN.max(self.looked_for / one_in);
        self.asked.extend(self.candidates.as_mut()?.meet(fingerprint, met_min));
        let has_more = |asked: &Asked| {
            let opened = self.opened.iter().map(|opened| opened.taken.offered).sum::<u64>();
            self.opened.len() < OPENED_MAX || asked.chunks > opened
        };
        let asked = self.asked.pop().filter(has_more)?;
        Some(asked.series)
    }

    /// The number here of a chunk that an opened lender has.
    fn known(&mut self, fingerprint: &Fingerprint) -> Result<Option<ChunkNumber>, EngineError> {
        for opened in &mut self.opened {
            let Some(there) = opened.index.get(fingerprint)? else { continue };
            if let Some((first, here)) = opened.known.range(..=there.0).next_back()
                && there.0 - first < here.count
            {
                return Ok(Some(ChunkNumber(here.first.0 + (there.0 - first))));
            }
            if let Some(here) = opened.taken.waited.get(&there.0) {
                return Ok(Some(ChunkNumber(*here)));
            }
            if opened.granted.contains(there.0) {
                opened.taken.chunks.insert(there.0);
                return Ok(Some(ChunkNumber(there.0.wrapping_add(opened.taken.shift))));
            }
        }
        Ok(None)
    }

    /// Makes a loan of all that a series may lend, and opens an index of what it grants. If that fails with a series
    /// that was not asked for by its name, the backup goes on without it.
    fn open(&mut self, lender: SeriesId, next: &mut ChunkNumber, waiting: &[ChunkEntry]) -> Result<(), EngineError> {
        match self.try_open(lender, next, waiting) {
            Err(EngineError::Store(error)) if self.run.options.borrow == Borrow::Auto && !error.is_lost_race() => {
                self.run.hint::<()>(Err(error));
                Ok(())
            }
            other => other,
        }
    }

    fn try_open(
        &mut self,
        lender: SeriesId,
        next: &mut ChunkNumber,
        waiting: &[ChunkEntry],
    ) -> Result<(), EngineError> {
        let repository = self.run.repository;
        let is_known = self.manifest.lenders.iter().any(|known| known.series == lender);
        if !is_known && self.manifest.lenders.len() + self.opened.len() >= LENDERS_MAX {
            return Ok(());
        }
        let Some(stored) = newest_manifest(repository, lender)? else { return Ok(()) };
        let (lendable, borrowed) = (stored.manifest.lendable(), self.manifest.borrowed_of(lender));
        let wanted = &lendable - &borrowed;
        let Some((first, last)) = wanted.min().zip(wanted.max()) else { return Ok(()) };
        if next.0.saturating_add(last) >= NUMBERS_MAX {
            return Ok(());
        }
        let index = self.index_of(&stored.manifest, &(&wanted | &borrowed))?;
        let mut waited = BTreeMap::new();
        for chunk in waiting.iter().filter(|chunk| !self.waited.contains(chunk.number.0)) {
            if let Some(there) = index.get(&chunk.fingerprint)?.filter(|there| wanted.contains(there.0)) {
                waited.entry(there.0).or_insert(chunk.number.0);
            }
        }
        let shift = next.0.wrapping_sub(first);
        next.0 += last - first + 1;
        let offered = wanted.len();
        let others = wanted.iter().filter(|there| !waited.contains_key(there)).collect();
        let all = Taken { lender, loan: None, offered, shift, chunks: others, waited };
        let (loan, granted) = match self.loans {
            Some(loans) => {
                let loan = loans.borrow(lender, &all.runs())?;
                (Some(loan.id), loan.granted)
            }
            None => (None, wanted),
        };
        // What is offered under a number is taken under it, once it is met.
        let taken = Taken { loan, chunks: RoaringTreemap::new(), ..all.only(|_, there| granted.contains(there)) };
        let known = self.manifest.imports.iter().filter(|import| self.manifest.lender_of(import) == Some(lender));
        let known = known.map(|import| (import.run.first_there.0, import.run.chunks)).collect();
        self.waited.extend(taken.waited.values());
        self.opened.push(Opened { index, taken, granted, known });
        self.run.resources.observer.notice(&Notice::Borrowing { series: stored.manifest.name });
        Ok(())
    }

    /// An index of those of a series' chunks that lie whole in its containers.
    fn index_of(&self, manifest: &Manifest, numbers: &RoaringTreemap) -> Result<FingerprintIndex, EngineError> {
        let index_bytes = (self.index_bytes >> (self.opened.len() + 1).min(32)).max(INDEX_BYTES_MIN);
        let mut index = FingerprintIndex::open(CachedRun::empty(), index_bytes, &self.spill);
        let chunks = ChunkSource::new(self.run.repository, manifest);
        for (at, record) in chunks.own_records() {
            let answered = record.numbers() & numbers;
            if record.kind != ContainerKind::Data || answered.is_empty() {
                continue;
            }
            // What a damaged one holds is stored again; a check will tell of it.
            let Some(reader) = chunks.sound_reader(at)? else { continue };
            for entry in reader.index().regions().iter().filter(|entry| entry.bases.is_empty()) {
                for chunk in entry.chunks.iter().filter(|chunk| answered.contains(chunk.number.0)) {
                    index.insert(chunk.fingerprint, chunk.number)?;
                }
            }
        }
        Ok(index)
    }

    /// The directory, if it was looked at.
    pub(super) fn into_directory(self) -> Option<Directory> {
        self.directory
    }

    /// Chunks borrowed so far, of each series whose index was opened.
    pub(super) fn taken(&self) -> Vec<Taken> {
        self.opened.iter().map(|opened| opened.taken.clone()).collect()
    }
}

/// Adds what was borrowed to a manifest: the loan, and the imports that it lacks.
pub(super) fn add_taken(next: &mut Manifest, taken: &Taken, loan: Option<LoanId>) {
    let borrowed = next.borrowed_of(taken.lender);
    let missing = taken.only(|_, there| !borrowed.contains(there));
    let Some(lender) = next.lenders.iter_mut().find(|known| known.series == taken.lender) else { return };
    if !taken.is_empty() {
        lender.loans.extend(loan);
        // It is of all that may be borrowed, and if this run ends here nobody comes back to it but maintenance.
        lender.has_surplus = true;
        next.add_imports(taken.lender, &missing.runs());
    }
}

/// Adds to the manifest to be those of the chunks that its snapshot needs, and makes a loan of these alone in place of
/// the one that they rest on. `before` is the manifest at the beginning of the run.
pub(super) fn settle(
    writer: &SeriesWriter<'_>,
    next: &mut Manifest,
    before: &Manifest,
    taken: &Taken,
    necessary: &RoaringTreemap,
) -> Result<(), EngineError> {
    let needed = taken.only(|here, _| necessary.contains(here));
    add_taken(next, &needed, taken.loan);
    let Some(first) = taken.loan.filter(|_| !needed.is_empty()) else { return Ok(()) };
    // Those of checkpoints too: they go with this commit, but not before it.
    let chunks = next.borrowed_of(taken.lender) - before.borrowed_of(taken.lender);
    let lender = next.lenders.iter_mut().find(|known| known.series == taken.lender);
    if let Some(lender) = lender.filter(|lender| lender.loans.len() == 1)
        && taken.offered.saturating_sub(chunks.len()) <= SURPLUS_MAX.max(chunks.len() / SURPLUS_ONE_IN)
    {
        lender.has_surplus = false;
        return Ok(());
    }
    let smaller = writer.borrow_chunks(taken.lender, &taken.only(|_, there| chunks.contains(there)).runs())?;
    let is_whole = chunks.is_subset(&smaller.granted);
    if let Some(lender) = next.lenders.iter_mut().find(|known| known.series == taken.lender && is_whole) {
        lender.loans.remove(&first);
        lender.loans.insert(smaller.id);
        lender.has_surplus = lender.loans.len() > 1;
    } else {
        let _ = writer.give_back(taken.lender, &[smaller.id]);
    }
    Ok(())
}

/// Gives a loan back that the newest manifest does not name. If that fails it is left to a later sweep.
pub(super) fn give_back(writer: &SeriesWriter<'_>, taken: &Taken) {
    let lenders = &writer.manifest().lenders;
    let unnamed = taken.loan.filter(|loan| !lenders.iter().any(|lender| lender.loans.contains(loan)));
    let _ = writer.give_back(taken.lender, unnamed.as_slice());
}

impl BackupRun<'_> {
    /// The result, if there is one. An error is told and goes no further: without what was looked for more is stored,
    /// and nothing else is lost.
    fn hint<R>(&self, result: Result<R, StoreError>) -> Option<R> {
        let told = |error: StoreError| {
            self.resources.observer.notice(&Notice::LenderPassedOver { reason: error.to_string() });
        };
        result.map_err(told).ok()
    }

    /// Puts the series into the directory, if it has much of its own and what stands there of it is out of date.
    pub(super) fn announce(&self, manifest: &Manifest, directory: Option<Directory>, account: &Account) {
        let Some(directory) = directory.filter(|_| manifest.lends) else { return };
        let is_original = account.borrowed.chunks == 0 || account.data_plain_bytes >= OWN_BYTES_MIN;
        let entry = DirectoryEntry { series: manifest.series, sketch: manifest.sketch.clone() };
        if is_original && !knows(&directory.entries, &entry) && entry.sketch.chunks() >= OWN_CHUNKS_MIN {
            self.hint(directory.with(self.repository, &entry));
        }
    }

    /// Tells whether other series may borrow of this one. What a write-only client makes is for those alone who hold a
    /// key that reads.
    pub(super) fn may_lend(&self) -> bool {
        self.repository.may_read()
    }
}
