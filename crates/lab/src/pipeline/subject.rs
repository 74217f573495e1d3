//! Subjects: a system, or `silt`, on one stream, with all that came out read back.

use super::delta::BaseLimits;
use super::fingerprint::Hash;
use super::silt::Silt;
use super::stream::Stream;
use super::system::{Compression, System};
use super::verify::{Found, read_back};
use crate::experiment::{Outcome, Row, Sample, Subject, row};
use crate::settings::Settings;
use crate::table::{as_float, mb_per_s};
use anyhow::Result;
use siltstone_chunk::{Chunker, Isa};
use siltstone_engine::backup::CHUNK_BYTES_AVERAGE;
use siltstone_engine::delta::Deltas;
use siltstone_similar::sketch::Sketcher;
use std::rc::Rc;
use std::time::Duration;

/// Parameters and measures that both experiments show.
pub(super) const COLUMNS: &str = "system method isa expected_bytes hash threads mb_per_s seconds \
    reduction_ratio stored_average_bytes processor_percent read_busy_percent chunk_busy_percent \
    fingerprint_busy_percent index_busy_percent sketch_busy_percent delta_busy_percent compress_busy_percent \
    write_busy_percent";

/// Chunks are this many bytes on average unless the user asks for others (AE, section 4.4; Odess, section 4.3).
const EXPECTED_BYTES: [u32; 1] = [8 << 10];
/// `silt` works with no less.
const SILT_MEMORY_MIB_MIN: u64 = 256;
/// The name of the system that is `silt` itself.
pub(super) const SILT: &str = "silt";

/// The sizes to measure with.
pub(super) fn expected_bytes(settings: &Settings) -> Vec<u32> {
    if settings.expected_bytes.is_empty() { EXPECTED_BYTES.into() } else { settings.expected_bytes.clone() }
}

/// Parts of a system, apart from its methods.
#[derive(Clone, Copy, Debug)]
pub(super) struct Build {
    /// Its name in tables.
    pub(super) name: &'static str,
    pub(super) hash: Hash,
    pub(super) compression: Compression,
    /// Threads of each stage that can have several.
    pub(super) threads: usize,
}

/// Whatever tells a row from others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Label {
    pub(super) method: &'static str,
    pub(super) isa: &'static str,
    pub(super) expected_bytes: u32,
}

/// The methods of a row.
#[derive(Clone)]
pub(super) struct Parts {
    pub(super) label: Label,
    pub(super) chunker: Rc<dyn Chunker>,
    /// Sketcher that finds resemblance, and the memory it may hold; without it there are no deltas.
    pub(super) sketcher: Option<(Rc<dyn Sketcher>, BaseLimits)>,
}

impl Parts {
    /// A subject for each way to put them together.
    pub(super) fn in_systems<'i>(self, builds: &[Build], stream: &Stream<'i>) -> Vec<Box<dyn Subject + 'i>> {
        let pipeline = |build: &Build| Pipeline { stream: stream.clone(), build: *build, parts: self.clone() };
        builds.iter().map(|build| Box::new(pipeline(build)) as Box<dyn Subject>).collect()
    }
}

/// A system put together here.
struct Pipeline<'i> {
    stream: Stream<'i>,
    build: Build,
    parts: Parts,
}

impl Subject for Pipeline<'_> {
    fn parameters(&self) -> Row {
        let Build { name, hash, threads, .. } = self.build;
        parameters(name, self.parts.label, hash, threads)
    }

    fn run(&mut self) -> Result<Outcome> {
        let Build { hash, compression, threads, .. } = self.build;
        let sketcher = self.parts.sketcher.as_ref().map(|(sketcher, limits)| (sketcher.as_ref(), *limits));
        let system = System { chunker: self.parts.chunker.as_ref(), hash, sketcher, compression, threads };
        let folder = tempfile::tempdir()?;
        let took = system.run(&self.stream, folder.path())?;
        let found = match read_back(folder.path(), &self.stream) {
            Ok(found) => found,
            Err(error) => return Ok(Outcome::Wrong(format!("{error:#}"))),
        };
        let mut sample = sample(&self.stream, took.wall, &found);
        let wall = took.wall.as_secs_f64().max(1e-9);
        let all: Duration = took.busy.iter().map(|busy| busy.time).sum();
        sample.values.push(("processor_percent".into(), 100.0 * all.as_secs_f64() / wall));
        for busy in &took.busy {
            let share = busy.time.as_secs_f64() / f64::from(busy.threads) / wall;
            sample.values.push((busy.stage.busy_percent(), 100.0 * share));
        }
        Ok(Outcome::Right(vec![sample]))
    }
}

/// `silt` itself, with the method that its row is named by; none if it does not take chunks of this size.
pub(super) fn silt<'i>(
    stream: &Stream<'i>,
    method: &'static str,
    expected_bytes: u32,
    deltas: Deltas,
    settings: &Settings,
) -> Option<Box<dyn Subject + 'i>> {
    let label = Label { method, isa: Isa::best().name(), expected_bytes };
    let subject = SiltSubject {
        stream: stream.clone(),
        label,
        deltas,
        memory_bytes: settings.memory_mib.max(SILT_MEMORY_MIB_MIN) << 20,
    };
    CHUNK_BYTES_AVERAGE.contains(&expected_bytes.into()).then(|| Box::new(subject) as Box<dyn Subject + 'i>)
}

struct SiltSubject<'i> {
    stream: Stream<'i>,
    label: Label,
    deltas: Deltas,
    memory_bytes: u64,
}

impl Subject for SiltSubject<'_> {
    fn parameters(&self) -> Row {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        parameters(SILT, self.label, Hash::Blake3, threads)
    }

    fn run(&mut self) -> Result<Outcome> {
        let folder = tempfile::tempdir()?;
        let silt = Silt::create(folder.path(), self.label.expected_bytes, self.deltas, self.memory_bytes)?;
        let time = silt.back_up(&self.stream)?;
        Ok(match silt.read_back(&self.stream) {
            Ok(found) => Outcome::Right(vec![sample(&self.stream, time, &found)]),
            Err(error) => Outcome::Wrong(format!("{error:#}")),
        })
    }
}

fn parameters(system: &str, label: Label, hash: Hash, threads: usize) -> Row {
    row([
        ("system", system.into()),
        ("method", label.method.into()),
        ("isa", label.isa.into()),
        ("expected_bytes", label.expected_bytes.into()),
        ("hash", hash.name().into()),
        ("threads", threads.into()),
    ])
}

fn sample(stream: &Stream<'_>, time: Duration, found: &Found) -> Sample {
    let (bytes, seconds) = (stream.bytes(), time.as_secs_f64());
    Sample::of([
        ("mb_per_s", mb_per_s(bytes, seconds)),
        ("seconds", seconds),
        ("reduction_ratio", as_float(bytes) / as_float(found.stored_bytes.max(1))),
        ("stored_average_bytes", as_float(found.unique_bytes) / as_float(found.unique.max(1))),
    ])
}
