//! Restoring a sample into nothing: files drawn at random are read chunk by chunk, each held against its fingerprint,
//! and where the source still stands as it was recorded, against the source's bytes.
//!
//! It goes the way a restore goes, from the snapshot's root over catalog and recipe to the bytes, and needs no room.

use super::report::Finding;
use super::series::{Learnt, SeriesCheck};
use crate::EngineError;
use crate::chunks::{Address, ChunkSource, Probe};
use crate::setters::setters;
use siltstone_store::catalog::{CatalogReader, Content, Entry};
use siltstone_store::manifest::Snapshot;
use siltstone_store::recipe::{Piece, Recipe, RecipeReader};
use siltstone_store::{ChunkNumber, StoreError};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Which files to restore into nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RestoreSample {
    /// How many files of each series; all, where there are fewer.
    pub files: usize,
    /// Draws them: the same seed draws the same files from the same snapshots.
    pub seed: u64,
    /// This machine: sources of snapshots of another are not looked at.
    pub host: String,
    /// The snapshots to draw from, by the beginning of their ids; all if there is none.
    pub snapshots: Vec<String>,
}

impl RestoreSample {
    /// Samples files of all snapshots, drawn by the seed on the machine of this name.
    pub fn new(files: usize, seed: u64, host: String) -> Self {
        Self { files, seed, host, snapshots: Vec::new() }
    }
}

setters!(RestoreSample { with_snapshots(snapshots: Vec<String>) });

/// A file that was restored into nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SampledFile {
    /// Short id of its snapshot.
    pub snapshot: String,
    /// Its path, as the snapshot has it.
    pub path: siltstone_store::catalog::EntryPath,
    /// Its size.
    pub bytes: u64,
    /// Outcome of restoring it.
    pub outcome: SampleOutcome,
}

/// Outcome of restoring a file into nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SampleOutcome {
    /// Every chunk has its fingerprint; the source is gone, elsewhere or was changed.
    Sound,
    /// Every chunk has its fingerprint, and the source, unchanged by its size, time and inode, has the same bytes.
    SameAsSource,
    /// It cannot be restored, or the source has other bytes although it looks unchanged.
    Wrong {
        /// Why.
        reason: String,
    },
}

/// A pseudo-random sequence.
struct Random(blake3::OutputReader);

impl Random {
    fn new(seed: u64, series: &[u8]) -> Self {
        Self(blake3::Hasher::new().update(&seed.to_le_bytes()).update(series).finalize_xof())
    }

    fn below(&mut self, bound: u64) -> u64 {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        u64::from_le_bytes(bytes) % bound.max(1)
    }
}

impl SeriesCheck<'_> {
    /// Restores a sample of the series' files into nothing.
    pub(super) fn restore_sample(
        &self,
        sample: &RestoreSample,
        learnt: &mut Learnt,
        findings: &mut Vec<Finding>,
    ) -> Result<Vec<SampledFile>, EngineError> {
        let chunks = ChunkSource::new(self.repository, self.manifest);
        let mut probe = Probe::default();
        let mut files = Vec::new();
        for (snapshot, entry) in self.draw(sample, &chunks)? {
            self.unless_cancelled()?;
            let Content::File { size, recipe } = &entry.content else { continue };
            let mut source = if snapshot.host == sample.host { Source::open(&entry, *size) } else { None };
            let restored = restore(&chunks, recipe, *size, source.as_mut());
            let outcome = match restored {
                Ok(()) => match source {
                    Some(source) if source.is_unchanged(&entry, *size) => match source.differs_at {
                        None => SampleOutcome::SameAsSource,
                        Some(at) => SampleOutcome::Wrong {
                            reason: format!(
                                "it differs at byte {at} from the source, which looks unchanged: one of them has decayed"
                            ),
                        },
                    },
                    _ => SampleOutcome::Sound,
                },
                Err((_, error)) if error.is_outage() => return Err(error.into()),
                Err((number, error)) => {
                    if let Some(number) = number {
                        locate(&chunks, number, &mut probe)?;
                    }
                    SampleOutcome::Wrong { reason: error.to_string() }
                }
            };
            if let SampleOutcome::Wrong { reason } = &outcome {
                let id = snapshot.id.short();
                let object = format!("snapshot {id}, /{}", entry.path);
                let snapshots = vec![id];
                findings.push(Finding { object, what: reason.clone(), help: self.help_for(&snapshots), snapshots });
            }
            files.push(SampledFile { snapshot: snapshot.id.short(), path: entry.path, bytes: *size, outcome });
        }
        learnt.damaged |= &probe.damaged;
        learnt.sound -= &probe.damaged;
        Ok(files)
    }

    /// Draws files, each of all with the same chance; in the order of snapshots and paths.
    fn draw(&self, sample: &RestoreSample, chunks: &ChunkSource<'_>) -> Result<Vec<(&Snapshot, Entry)>, EngineError> {
        let mut random = Random::new(sample.seed, &self.manifest.series.0);
        let (mut drawn, mut seen) = (Vec::new(), 0u64);
        for snapshot in self.manifest.snapshots() {
            let id = snapshot.id.to_string();
            if !sample.snapshots.is_empty() && !sample.snapshots.iter().any(|wanted| id.starts_with(wanted.as_str())) {
                continue;
            }
            // What keeps a catalog from being read has been told.
            for entry in CatalogReader::new(chunks, snapshot.root).entries().filter_map(Result::ok) {
                if !matches!(entry.content, Content::File { .. }) {
                    continue;
                }
                self.unless_cancelled()?;
                seen += 1;
                if drawn.len() < sample.files {
                    drawn.push((seen, snapshot, entry));
                } else if let Ok(place) = usize::try_from(random.below(seen))
                    && let Some(taken) = drawn.get_mut(place)
                {
                    *taken = (seen, snapshot, entry);
                }
            }
        }
        drawn.sort_by_key(|(seen, ..)| *seen);
        Ok(drawn.into_iter().map(|(_, snapshot, entry)| (snapshot, entry)).collect())
    }
}

/// Reads all of a file's content; gives the chunk that cannot be read, if it is because of one.
fn restore(
    chunks: &ChunkSource<'_>,
    recipe: &Recipe,
    size: u64,
    mut source: Option<&mut Source>,
) -> Result<(), (Option<ChunkNumber>, StoreError)> {
    let mut done = 0u64;
    for piece in RecipeReader::new(recipe, chunks) {
        match piece.map_err(|error| (None, error))? {
            Piece::Hole(bytes) => {
                done = done.saturating_add(bytes);
                if let Some(source) = source.as_mut() {
                    source.compare_hole(bytes);
                }
            }
            Piece::Run(run) => {
                for number in run.range().map(ChunkNumber) {
                    let compare = |bytes: &[u8]| {
                        if let Some(source) = source.as_mut() {
                            source.compare(bytes);
                        }
                        bytes.len() as u64
                    };
                    done += chunks.with_chunk(number, compare).map_err(|error| (Some(number), error))?;
                }
            }
        }
    }
    let reason = || format!("its recipe gives {done} bytes instead of {size}");
    if done == size { Ok(()) } else { Err((None, StoreError::damaged("a file", "recipe", reason()))) }
}

/// Finds the damage that keeps a chunk from being read where it lies.
fn locate(chunks: &ChunkSource<'_>, number: ChunkNumber, probe: &mut Probe) -> Result<(), EngineError> {
    // A container whose index cannot be read has been told, with all it holds.
    if let Ok((container, place)) = chunks.place_of(number) {
        probe.read(chunks, Address { container, region: place.region })?;
    }
    Ok(())
}

/// The source of a file, beside what is restored of it.
struct Source {
    file: File,
    path: PathBuf,
    at: u64,
    differs_at: Option<u64>,
}

impl Source {
    /// The file where it was, if it looks as it was recorded.
    fn open(entry: &Entry, size: u64) -> Option<Self> {
        let path = Path::new("/").join(OsStr::from_bytes(entry.path.as_bytes()));
        looks_unchanged(&path, entry, size).then_some(())?;
        Some(Self { file: File::open(&path).ok()?, path, at: 0, differs_at: None })
    }

    fn is_unchanged(&self, entry: &Entry, size: u64) -> bool {
        looks_unchanged(&self.path, entry, size)
    }

    fn compare(&mut self, bytes: &[u8]) {
        let mut found = vec![0; bytes.len()];
        let is_read = self.file.read_exact(&mut found).is_ok();
        let equal = bytes.iter().zip(&found).take_while(|(one, other)| one == other).count();
        if self.differs_at.is_none() && (!is_read || equal < bytes.len()) {
            self.differs_at = Some(self.at + equal as u64);
        }
        self.at += bytes.len() as u64;
    }

    fn compare_hole(&mut self, bytes: u64) {
        let copied = io::copy(&mut (&self.file).take(bytes), &mut Zeros);
        if self.differs_at.is_none() && copied.ok() != Some(bytes) {
            self.differs_at = Some(self.at);
        }
        self.at = self.at.saturating_add(bytes);
    }
}

/// Takes nothing but zeros.
struct Zeros;

impl io::Write for Zeros {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.iter().all(|byte| *byte == 0) { Ok(bytes.len()) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn looks_unchanged(path: &Path, entry: &Entry, size: u64) -> bool {
    let Ok(found) = std::fs::symlink_metadata(path) else { return false };
    let modified = (found.mtime(), u32::try_from(found.mtime_nsec()).unwrap_or(0));
    let recorded = &entry.metadata;
    found.is_file()
        && found.len() == size
        && modified == (recorded.modified.seconds, recorded.modified.nanoseconds)
        && found.ino() == recorded.inode
}
