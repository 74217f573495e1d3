//! Deltas of regions: how fast and how small at each size and level, beside deltas of single chunks and zstd as it
//! comes. Codecs take turns, round after round, on the same regions; what each writes is decoded and compared before
//! anything is timed, and each round must write what the first wrote.

use super::Findings;
use super::candidates::candidates;
use super::regional::{Codec, OwnRegions, PerChunk, PlainZstd};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use siltstone_lab::sketch::versions::{Known, Order, Versions};
use siltstone_similar::region::{Level, Offer, choose_bases};
use siltstone_testbed::bench::publish::{Row, table_of};
use siltstone_testbed::data::Data;
use siltstone_testbed::statistics::{Spread, rounded};
use siltstone_testbed::table::{as_float, mb_per_s};
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

/// Average size of a chunk, bytes.
const CHUNK_BYTES: u32 = 16 << 10;
/// Sizes of regions, bytes.
const REGION_BYTES: [usize; 5] = [64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20];
/// Bases of a region, in percent of its text.
const BASES_PERCENT: usize = 200;
/// Text that is encoded, of the regions of all versions evenly; slow levels see less.
const TEXT_BYTES: usize = 48 << 20;
const SLOW_TEXT_BYTES: usize = 6 << 20;
const SLOWEST_TEXT_BYTES: usize = 2 << 20;
const QUICK_DIVISOR: usize = 6;
/// The row that rates and sizes are held against.
const REFERENCE: &str = "zstd-3, plain";

const COLUMNS: &str = "codec regions text_mb encode_mb_per_s encode_spread_percent rate_to_plain \
    decode_mb_per_s decode_spread_percent bytes_percent bytes_to_plain ratio_to_per_chunk";

/// A run of new chunks, and what it is encoded against.
#[derive(Clone)]
pub(super) struct Region<'d> {
    pub(super) bases: Vec<&'d [u8]>,
    pub(super) members: Vec<&'d [u8]>,
    /// Likest chunk of each member.
    pub(super) likest: Vec<Option<&'d [u8]>>,
}

impl Region<'_> {
    pub(super) fn text_bytes(&self) -> usize {
        self.members.iter().map(|member| member.len()).sum()
    }
}

/// A codec while it is measured.
struct Runner<'r> {
    name: String,
    codec: Box<dyn Codec + 'r>,
    regions: &'r [Region<'r>],
    /// Bytes it writes, region by region.
    written: Vec<Vec<u8>>,
    encode_seconds: Vec<f64>,
    decode_seconds: Vec<f64>,
}

/// All codecs at all sizes on all data.
pub(super) fn measure(sources: impl Iterator<Item = Result<Data>>, rounds: u64, is_quick: bool) -> Result<Findings> {
    let mut findings = Findings::default();
    for data in sources {
        let data = data?;
        eprintln!("{}: candidates", data.name);
        let versions = Versions::of(&data, CHUNK_BYTES, Order::OldestFirst, Known::VersionBefore)?;
        let candidates = candidates(&versions);
        let mut rows = Vec::new();
        for region_bytes in REGION_BYTES {
            eprintln!("{}: regions of {} KiB", data.name, region_bytes >> 10);
            let divisor = if is_quick { QUICK_DIVISOR } else { 1 };
            let regions = regions(&versions, &candidates, region_bytes);
            if regions.is_empty() {
                continue;
            }
            let mut at_size = measure_regions(&regions, divisor, rounds)?;
            for row in &mut at_size {
                row.insert("data".into(), json!(data.name));
                row.insert("region_bytes".into(), json!(region_bytes));
            }
            let table = table_of(COLUMNS, &at_size);
            let _ = write!(findings.tables, "\n### Regions of {} KiB, {}\n\n{table}", region_bytes >> 10, data.name);
            rows.extend(at_size);
        }
        findings.rows.extend(rows);
        findings.notes.push(format!("regions, {}: {}", data.name, data.description));
    }
    findings.notes.push(format!(
        "regions: new chunks of {} KiB on average, of all versions but the first, in the order of the data; bases of the two likest chunks \
         of earlier versions and the two at the same place for each member, at most {BASES_PERCENT} % of the text; rounds: {rounds}; \
         rates are of the text, one thread, copying bases and members counted; percent are of the text; {REFERENCE}: bases as \
         zstd's prefix, in separate memory, with its own tables; per chunk: each member against its likest chunk at zstd's level 3, those \
         without one, or which are smaller so, together as a region without bases; the ratio to that is on the same regions",
        CHUNK_BYTES >> 10,
    ));
    Ok(findings)
}

/// The regions of all versions but the first.
fn regions<'d>(versions: &Versions<'d>, candidates: &[Vec<Offer<usize>>], region_bytes: usize) -> Vec<Region<'d>> {
    let first = versions.new.first().map_or(0, |new| new.end);
    let numbers = versions.regions(region_bytes).into_iter().filter(|region| region.start >= first);
    let region = |numbers: std::ops::Range<usize>| {
        let bytes = |number: usize| versions.bytes(number);
        let offers: Vec<&[Offer<usize>]> = candidates[numbers.clone()].iter().map(Vec::as_slice).collect();
        let text_bytes: usize = numbers.clone().map(|number| bytes(number).len()).sum();
        let bases = choose_bases(&offers, text_bytes * BASES_PERCENT / 100);
        let likest = offers.iter().map(|offers| offers.first().map(|offer| bytes(offer.number))).collect();
        Region { bases: bases.into_iter().map(bytes).collect(), members: numbers.map(bytes).collect(), likest }
    };
    numbers.map(region).collect()
}

/// About so many bytes of text, evenly taken.
fn taken<'d>(regions: &[Region<'d>], text_bytes: usize) -> Vec<Region<'d>> {
    let all: usize = regions.iter().map(Region::text_bytes).sum();
    let is_taken = |at: usize| at * text_bytes / all.max(1) != (at + 1) * text_bytes / all.max(1);
    if text_bytes >= all {
        return regions.to_vec();
    }
    regions.iter().enumerate().filter(|(at, _)| is_taken(*at)).map(|(_, region)| region.clone()).collect()
}

fn measure_regions(regions: &[Region], divisor: usize, rounds: u64) -> Result<Vec<Row>> {
    let [much, little, least] =
        [TEXT_BYTES, SLOW_TEXT_BYTES, SLOWEST_TEXT_BYTES].map(|bytes| taken(regions, bytes / divisor));
    let prefixes: Vec<Vec<u8>> = much.iter().map(|region| region.bases.concat()).collect();
    let mut runners = vec![
        Runner::new("per chunk, zstd-3", PerChunk::new(&much)?, &much),
        Runner::new(REFERENCE, PlainZstd::new(&prefixes)?, &much),
        Runner::new("fast", OwnRegions::new(Level::Fast)?, &much),
    ];
    for (level, regions) in [(1, &much), (3, &much), (6, &much), (12, &little), (19, &least)] {
        runners.push(Runner::new(&format!("zstd-{level}"), OwnRegions::new(Level::Zstd(level))?, regions));
    }
    for runner in &mut runners {
        runner.check()?;
    }
    for _ in 0..rounds {
        for runner in &mut runners {
            runner.run()?;
        }
    }
    runners.iter().map(|runner| runner.row(&runners[1])).collect()
}

impl<'r> Runner<'r> {
    fn new(name: &str, codec: impl Codec + 'r, regions: &'r [Region<'r>]) -> Self {
        let (name, codec) = (name.to_owned(), Box::new(codec));
        Self { name, codec, regions, written: Vec::new(), encode_seconds: Vec::new(), decode_seconds: Vec::new() }
    }

    /// Encodes all regions once, untimed, and looks at what comes back.
    fn check(&mut self) -> Result<()> {
        for at in 0..self.regions.len() {
            let mut out = Vec::new();
            self.codec.encode(at, &self.regions[at], &mut out)?;
            let text = self.codec.decode(at, &self.regions[at], &out)?;
            ensure!(text == self.regions[at].members.concat(), "{} does not give back what it encoded", self.name);
            self.written.push(out);
        }
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        let mut out = Vec::new();
        let mut seconds = 0.0;
        for (at, region) in self.regions.iter().enumerate() {
            let begin = Instant::now();
            self.codec.encode(at, black_box(region), &mut out)?;
            seconds += begin.elapsed().as_secs_f64();
            ensure!(out == self.written[at], "{} writes something else each time", self.name);
        }
        self.encode_seconds.push(seconds);
        let begin = Instant::now();
        for (at, region) in self.regions.iter().enumerate() {
            black_box(self.codec.decode(at, region, black_box(&self.written[at]))?);
        }
        self.decode_seconds.push(begin.elapsed().as_secs_f64());
        Ok(())
    }

    fn text_bytes(&self) -> u64 {
        self.regions.iter().map(|region| region.text_bytes() as u64).sum()
    }

    fn bytes(&self) -> u64 {
        self.written.iter().map(|written| written.len() as u64).sum()
    }

    fn rates(&self, seconds: &[f64]) -> Spread {
        Spread::of(seconds.iter().map(|seconds| mb_per_s(self.text_bytes(), *seconds)))
    }

    fn row(&self, plain: &Self) -> Result<Row> {
        let chunk_bytes = PerChunk::bytes(self.regions)?;
        let (encode, decode) = (self.rates(&self.encode_seconds), self.rates(&self.decode_seconds));
        let (text_bytes, bytes) = (self.text_bytes(), self.bytes());
        // Slow levels see other regions: there the two cannot be compared.
        let is_beside = self.regions.len() == plain.regions.len();
        let beside = |ratio: f64| if is_beside { json!(rounded(ratio, 3)) } else { Value::Null };
        let mut row = Row::new();
        let mut set = |key: &str, value: Value| row.insert(key.to_owned(), value);
        set("table", json!("regions"));
        set("codec", json!(self.name));
        set("regions", json!(self.regions.len()));
        set("text_mb", json!(rounded(as_float(text_bytes) / 1e6, 1)));
        set("encode_mb_per_s", json!(rounded(encode.median, 1)));
        set("encode_spread_percent", json!(rounded(encode.percent(), 1)));
        set("rate_to_plain", beside(encode.median / plain.rates(&plain.encode_seconds).median));
        set("decode_mb_per_s", json!(rounded(decode.median, 1)));
        set("decode_spread_percent", json!(rounded(decode.percent(), 1)));
        set("bytes", json!(bytes));
        set("bytes_percent", json!(rounded(100.0 * as_float(bytes) / as_float(text_bytes), 3)));
        set("bytes_to_plain", beside(as_float(bytes) / as_float(plain.bytes())));
        set("ratio_to_per_chunk", json!(rounded(as_float(bytes) / as_float(chunk_bytes), 3)));
        Ok(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_testbed::deterministic::Sequence;

    #[test]
    fn every_codec_makes_small_deltas_of_alike_regions() {
        let base = Sequence::new(6).bytes(100_000);
        let mut text = base.clone();
        text[40_000] ^= 1;
        let (bases, members): (Vec<&[u8]>, Vec<&[u8]>) = (base.chunks(9000).collect(), text.chunks(9000).collect());
        let likest = bases.iter().map(|base| Some(*base)).collect();
        let regions = vec![Region { bases, members, likest }; 3];
        let rows = measure_regions(&regions, 1, 1).unwrap();
        assert_eq!(rows.len(), 8);
        for row in rows {
            assert!(row["bytes"].as_u64().unwrap() < 3000, "{row:?}");
            assert!(row["encode_mb_per_s"].is_number() && row["decode_mb_per_s"].is_number());
            assert!(COLUMNS.split(' ').all(|column| row.contains_key(column)));
        }
    }

    #[test]
    fn regions_are_taken_evenly() {
        let text = [7; 1000];
        let region = |members: &'static str| Region {
            bases: vec![],
            members: vec![members.as_bytes(), &text[..999]],
            likest: vec![],
        };
        let regions: Vec<Region> = ["a", "b", "c", "d", "e", "f"].map(region).into();
        let first = |regions: &[Region]| regions.iter().map(|region| region.members[0][0]).collect::<Vec<_>>();
        assert_eq!(first(&taken(&regions, 6000)), b"abcdef");
        assert_eq!(first(&taken(&regions, 3000)), b"bdf");
        assert_eq!(first(&taken(&regions, 2000)), b"cf");
    }
}
