//! Each stage's work alone: on one thread, in a loop, over the same bytes. Nothing that does this work can
//! be faster; what a stage loses to it goes to handing over, waiting for memory that others use too, and what it does
//! besides.
//!
//! Reading, cutting and fingerprinting go over the whole source, all else over what is new in it. Times are of this
//! thread on a core, by Linux's own count; of syncing it is the time until the disk has answered.

use super::content::{Content, KEY, Pair, Region, chunker, pieces};
use crate::zstd_error;
use anyhow::{Context, Result, bail};
use siltstone_chunk::{Fingerprinter, SliceChunks};
use siltstone_similar::sketch::{Shape, by_name};
use siltstone_store::container::{CONTAINER_BYTES_DEFAULT, ContainerKind};
use siltstone_store::region::{Base, ChunkEntry, EncodedRegion, RegionDecoder, RegionEncoder, ZSTD_LEVEL_DEFAULT};
use siltstone_store::sealed::{ObjectKey, ObjectKind, PieceNumber};
use siltstone_store::storage::ObjectName;
use siltstone_store::{ChunkNumber, ContainerId, Fingerprint, MasterKey, RepositoryId, RepositoryKeys, SeriesId};
use siltstone_testbed::table::mb_per_s;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};
use zstd_safe::{CCtx, CParameter};

/// One kind of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    /// Opening and `read` from the page cache into one buffer.
    Reading,
    /// The default chunker.
    Cutting,
    /// BLAKE3 of the chunks of a piece together.
    Fingerprinting,
    /// zstd as regions are compressed.
    Compressing,
    /// Regions decoded again.
    Checking,
    /// Sketches of the chunks.
    Sketching,
    /// Region deltas, decoded again and compared.
    Encoding,
    /// AES-256-GCM, into the container's buffer.
    Sealing,
    /// `write` of whole containers.
    Writing,
    /// `fsync` of each.
    Syncing,
}

/// Measurement of one work alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alone {
    pub(super) work: Work,
    /// Bytes of input.
    pub(super) bytes: u64,
    /// The least of some rounds.
    pub(super) time: Duration,
}

/// So many rounds, and up to so many as long as they have taken less than this.
const ROUNDS_MIN: u32 = 3;
const ROUNDS_MAX: u32 = 9;
const ROUNDS_TIME: Duration = Duration::from_secs(2);
/// Read at once.
const READ_BYTES: usize = 1 << 20;
/// As in `siltstone-engine`.
const SKETCH_METHOD: &str = "odess-plus";

impl Work {
    /// As in the tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Reading => "read",
            Self::Cutting => "cut",
            Self::Fingerprinting => "fingerprint",
            Self::Compressing => "compress",
            Self::Checking => "check",
            Self::Sketching => "sketch",
            Self::Encoding => "delta, checked",
            Self::Sealing => "seal",
            Self::Writing => "write",
            Self::Syncing => "sync",
        }
    }
}

impl Alone {
    pub(super) fn mb_per_s(&self) -> f64 {
        mb_per_s(self.bytes, self.time.as_secs_f64())
    }
}

/// The works over a whole source.
pub(super) fn of_source(content: &Content) -> Result<Vec<Alone>> {
    let bytes = content.bytes();
    let mut buffer = vec![0; READ_BYTES];
    let reading = least(|| {
        for path in content.files.keys() {
            let mut file = File::open(path)?;
            while file.read(&mut buffer)? > 0 {}
        }
        Ok(())
    })?;
    let chunker = chunker()?;
    let cutting = least(|| {
        for bytes in content.files.values() {
            black_box(SliceChunks::new(&chunker, bytes).count());
        }
        Ok(())
    })?;
    let pieces = pieces(&content.chunks()?);
    let fingerprinter = Fingerprinter::best(KEY);
    let mut fingerprints = Vec::new();
    let fingerprinting = least(|| {
        for piece in &pieces {
            fingerprints.clear();
            fingerprinter.fingerprints(piece, &mut fingerprints);
            black_box(&fingerprints);
        }
        Ok(())
    })?;
    let works = [(Work::Reading, reading), (Work::Cutting, cutting), (Work::Fingerprinting, fingerprinting)];
    Ok(works.map(|(work, time)| Alone { work, bytes, time }).into())
}

/// The works over what is new; files are written below `folder`.
pub(super) fn of_new(regions: &[Region<'_>], folder: &Path) -> Result<Vec<Alone>> {
    let plain: Vec<Vec<u8>> = regions.iter().map(|region| region.concat()).collect();
    let bytes = plain.iter().map(|plain| plain.len() as u64).sum();
    let encoded = encoded(regions, &plain)?;
    let compressing = compressing(&plain, &encoded)?;
    let checking = checking(&plain, &encoded)?;
    let sketcher = by_name(SKETCH_METHOD, Shape::DEFAULT)?;
    let sketching = least(|| {
        regions.iter().flatten().for_each(|chunk| {
            black_box(sketcher.sketch(chunk));
        });
        Ok(())
    })?;
    let works = [(Work::Compressing, compressing), (Work::Checking, checking), (Work::Sketching, sketching)];
    let mut all: Vec<Alone> = works.map(|(work, time)| Alone { work, bytes, time }).into();
    all.extend(of_packed(&encoded, folder)?);
    Ok(all)
}

/// The works of a migration: over what dies.
pub(super) fn of_dying(pairs: &[Pair<'_>], folder: &Path) -> Result<Vec<Alone>> {
    let bytes = pairs.iter().flat_map(|pair| &pair.region).map(|text| text.len() as u64).sum();
    let mut encoder = RegionEncoder::fast(ZSTD_LEVEL_DEFAULT);
    let mut deltas = Vec::new();
    let encoding = least(|| {
        deltas.clear();
        for pair in pairs {
            let bases: Vec<Base<'_>> =
                (0..).zip(&pair.bases).map(|(number, bytes)| Base { number: ChunkNumber(number), bytes }).collect();
            deltas.push(EncodedRegion::encode_against(
                &mut encoder,
                &bases,
                entries(&pair.region, 1 << 32)?,
                &pair.region,
            )?);
        }
        Ok(())
    })?;
    let mut all = vec![Alone { work: Work::Encoding, bytes, time: encoding }];
    all.extend(of_packed(&deltas, folder)?);
    Ok(all)
}

/// The works over what lies on disk in the end.
fn of_packed(regions: &[EncodedRegion], folder: &Path) -> Result<Vec<Alone>> {
    let payloads: Vec<&[u8]> = regions.iter().map(|region| region.payload.as_slice()).collect();
    let bytes: u64 = payloads.iter().map(|payload| payload.len() as u64).sum();
    let mut containers = Vec::new();
    let sealing = least(|| {
        containers = sealed(&payloads)?;
        Ok(())
    })?;
    let work = tempfile::tempdir_in(folder)?;
    let (mut writing, mut syncing) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS_MIN {
        let (mut on_core_before, mut written, mut synced) = (on_core()?, Duration::ZERO, Duration::ZERO);
        for (number, container) in containers.iter().enumerate() {
            let mut file = File::create(work.path().join(number.to_string()))?;
            file.write_all(container)?;
            written += on_core()?.saturating_sub(on_core_before);
            let begin = Instant::now();
            file.sync_all()?;
            synced += begin.elapsed();
            on_core_before = on_core()?;
        }
        (writing, syncing) = (writing.min(written), syncing.min(synced));
        (0..containers.len()).try_for_each(|number| fs::remove_file(work.path().join(number.to_string())))?;
    }
    let works = [(Work::Sealing, sealing), (Work::Writing, writing), (Work::Syncing, syncing)];
    Ok(works.map(|(work, time)| Alone { work, bytes, time }).into())
}

/// The least time on a core that this work took in some rounds.
fn least(mut work: impl FnMut() -> Result<()>) -> Result<Duration> {
    let (begin, mut least) = (Instant::now(), Duration::MAX);
    for round in 0..ROUNDS_MAX {
        if round >= ROUNDS_MIN && begin.elapsed() > ROUNDS_TIME {
            break;
        }
        let before = on_core()?;
        work()?;
        least = least.min(on_core()?.saturating_sub(before));
    }
    Ok(least)
}

/// Returns the time this thread has run so far. Yielding makes Linux bring its count up to now.
fn on_core() -> Result<Duration> {
    std::thread::yield_now();
    let text =
        fs::read_to_string("/proc/thread-self/schedstat").context("the system does not count what threads run")?;
    let nanoseconds = text.split(' ').next().and_then(|number| number.parse().ok());
    nanoseconds.map(Duration::from_nanos).with_context(|| format!("the system counts {text:?}"))
}

fn entries(chunks: &[&[u8]], first: u64) -> Result<Vec<ChunkEntry>> {
    let entry = |(number, chunk): (u64, &&[u8])| {
        let (number, length) = (ChunkNumber(number), u32::try_from(chunk.len())?);
        Ok(ChunkEntry { number, fingerprint: Fingerprint([0; 16]), length })
    };
    (first..).zip(chunks).map(entry).collect()
}

fn encoded(regions: &[Region<'_>], plain: &[Vec<u8>]) -> Result<Vec<EncodedRegion>> {
    let mut encoder = RegionEncoder::fast(ZSTD_LEVEL_DEFAULT);
    let encode =
        |(region, plain): (&Region<'_>, &Vec<u8>)| Ok(EncodedRegion::encode(&mut encoder, entries(region, 0)?, plain)?);
    regions.iter().zip(plain).map(encode).collect()
}

/// zstd alone, set as the store sets it for each region: quick, or thorough where a sample of it pays for that. What it
/// gives is held against what the store gives.
fn compressing(plain: &[Vec<u8>], encoded: &[EncodedRegion]) -> Result<Duration> {
    let quick = [
        CParameter::CompressionLevel(ZSTD_LEVEL_DEFAULT),
        CParameter::WindowLog(21),
        CParameter::HashLog(16),
        CParameter::MinMatch(6),
    ];
    let mut contexts = [set(&quick)?, set(&[CParameter::CompressionLevel(3), CParameter::WindowLog(21)])?];
    let mut out =
        Vec::with_capacity(plain.iter().map(|plain| zstd_safe::compress_bound(plain.len())).max().unwrap_or(0));
    let mut chosen = Vec::with_capacity(plain.len());
    for (plain, encoded) in plain.iter().zip(encoded) {
        let mut sizes = Vec::new();
        for context in &mut contexts {
            out.clear();
            sizes.push(context.compress2(&mut out, plain).map_err(zstd_error)?.min(plain.len()));
        }
        let stored = encoded.payload.len();
        let at = sizes.iter().position(|bytes| *bytes == stored);
        chosen
            .push(at.with_context(|| format!("zstd is not set as the store sets it: {sizes:?} bytes, not {stored}"))?);
    }
    least(|| {
        for (plain, at) in plain.iter().zip(&chosen) {
            out.clear();
            contexts[*at].compress2(&mut out, plain).map_err(zstd_error)?;
        }
        Ok(())
    })
}

fn set(parameters: &[CParameter]) -> Result<CCtx<'static>> {
    let mut context = CCtx::create();
    parameters.iter().try_for_each(|parameter| context.set_parameter(*parameter).map(drop)).map_err(zstd_error)?;
    Ok(context)
}

fn checking(plain: &[Vec<u8>], encoded: &[EncodedRegion]) -> Result<Duration> {
    let mut decoder = RegionDecoder::new();
    least(|| {
        for (plain, encoded) in plain.iter().zip(encoded) {
            if encoded.clone().decode(&mut decoder, &"a region", "all of it", &[])? != *plain {
                bail!("a region decodes to something else");
            }
        }
        Ok(())
    })
}

/// Payloads, sealed into objects as containers hold them.
fn sealed(payloads: &[&[u8]]) -> Result<Vec<Vec<u8>>> {
    let keys = RepositoryKeys::derive(&MasterKey::from_bytes([7; 32]), RepositoryId([7; 16]));
    let mut objects: Vec<(ObjectKey, Vec<u8>, u32)> = Vec::new();
    let target = usize::try_from(CONTAINER_BYTES_DEFAULT)?;
    for payload in payloads {
        let is_full = objects.last().is_none_or(|(_, object, _)| object.len() + payload.len() > target);
        if is_full {
            let id = ContainerId { lease: 0, serial: u32::try_from(objects.len())? };
            let key = ObjectKey::create(
                &keys,
                ObjectName::Container(ContainerKind::Data, SeriesId([7; 16]), id),
                ObjectKind::DataContainer,
            )?;
            objects.push((key, Vec::new(), 0));
        }
        let Some((key, object, pieces)) = objects.last_mut() else { break };
        let begin = object.len();
        object.extend_from_slice(payload);
        key.seal_piece(PieceNumber(*pieces), object, begin)?;
        *pieces += 1;
    }
    Ok(objects.into_iter().map(|(_, object, _)| object).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_testbed::deterministic::Sequence;
    use std::collections::BTreeSet;

    #[test]
    fn every_work_goes_over_all_bytes_and_is_measured_once() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("source");
        fs::create_dir(&source).unwrap();
        let mut text = Sequence::new(3).bytes(200_000);
        for byte in &mut text {
            *byte &= 15;
        }
        fs::write(source.join("a"), &text).unwrap();
        let content = Content::of(&source).unwrap();
        let chunks = content.chunks_beyond(None).unwrap();
        let regions = super::super::content::regions(&chunks);
        let mut all = of_source(&content).unwrap();
        all.extend(of_new(&regions, folder.path()).unwrap());
        let names: BTreeSet<&str> = all.iter().map(|alone| alone.work.name()).collect();
        assert_eq!((names.len(), all.len()), (9, 9));
        for alone in &all[..6] {
            assert_eq!(alone.bytes, 200_000, "{alone:?}");
        }
        assert!(all[6..].iter().all(|alone| alone.bytes < 150_000), "sealed and written is what was compressed");
        let pairs = super::super::content::pairs(&chunks, &chunks, 1 << 19);
        let of_dying = of_dying(&pairs, folder.path()).unwrap();
        assert_eq!((of_dying[0].work, of_dying[0].bytes), (Work::Encoding, 200_000));
        assert!(of_dying[1].bytes < 2000, "a delta against itself is next to nothing");
    }
}
