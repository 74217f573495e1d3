//! Deltas of chunks: how fast, and how small alone and many together. Codecs take turns, round after round, on the same
//! pairs; each delta is decoded and compared with its target before anything is timed, and each round must write what
//! the first wrote.

use super::Findings;
use super::pairs::{self, Pair};
use super::xdelta;
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use siltstone_chunk::Isa;
use siltstone_lab::sketch::versions::{Known, Order, Versions};
use siltstone_similar::delta::{ChunkDelta, CopyInsert, PoolReader, PoolWriter, Prefix};
use siltstone_similar::region::{Level, RegionEncoder};
use siltstone_testbed::bench::publish::{Row, table_of};
use siltstone_testbed::data::Data;
use siltstone_testbed::statistics::{Spread, rounded};
use siltstone_testbed::table::{as_float, mb_per_s};
use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

/// Average size of a chunk, bytes.
const CHUNK_BYTES: u32 = 8 << 10;
/// Targets of all pairs of a set of data, about.
const PAIR_BYTES_MAX: u64 = 100_000_000;
const PAIR_BYTES_MAX_QUICK: u64 = 20_000_000;
/// Deltas that are compressed together.
const POOL_BYTES: usize = 4 << 20;
/// The level of that.
const POOL_LEVEL: i32 = 3;
/// The row that the others are held against.
const REFERENCE: &str = "zstd-prefix-3";

const COLUMNS: &str = "codec isa pairs encode_mb_per_s encode_spread_percent decode_mb_per_s \
    decode_spread_percent bytes_percent pooled_percent pooled_to_reference";

/// Which pairs are measured together.
#[derive(Clone, Copy)]
enum Kind {
    Accepted,
    All,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::All => "all",
        }
    }

    fn holds(self, pair: &Pair) -> bool {
        match self {
            Self::Accepted => pair.is_accepted,
            Self::All => true,
        }
    }
}

/// A codec while it is measured.
struct Runner {
    name: String,
    isa: &'static str,
    codec: Box<dyn ChunkDelta>,
    deltas: Deltas,
    pooled_bytes: u64,
    encode_seconds: Vec<f64>,
    decode_seconds: Vec<f64>,
}

/// Deltas one after another.
#[derive(Clone, Default, PartialEq, Eq)]
struct Deltas {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// All codecs on the pairs of all data, and on those that are worth a delta.
pub(super) fn measure(
    sources: impl Iterator<Item = Result<Data>>,
    rounds: u64,
    is_quick: bool,
    work: &Path,
) -> Result<Findings> {
    xdelta::ensure_installed()?;
    let mut findings = Findings::default();
    for data in sources {
        let data = data?;
        eprintln!("{}: pairs", data.name);
        let versions = Versions::of(&data, CHUNK_BYTES, Order::OldestFirst, Known::VersionBefore)?;
        let all = pairs::find(&versions, if is_quick { PAIR_BYTES_MAX_QUICK } else { PAIR_BYTES_MAX })?;
        eprintln!("{}: xdelta3 on {} pairs", data.name, all.len());
        let outside = xdelta::deltas(&all, work)?;
        for kind in [Kind::Accepted, Kind::All] {
            let of_kind = |(pair, delta): (&Pair<'_>, &Vec<u8>)| kind.holds(pair).then(|| delta.clone());
            let outside: Vec<u8> = all.iter().zip(&outside).filter_map(of_kind).flatten().collect();
            let pairs: Vec<Pair> = all.iter().copied().filter(|pair| kind.holds(pair)).collect();
            if pairs.is_empty() {
                continue;
            }
            let kind = kind.name();
            eprintln!("{}: codecs on {} {kind} pairs", data.name, pairs.len());
            let mut rows = measure_own(&pairs, rounds)?;
            rows.push(measure_outside(&pairs, &outside, rounds, work, &mut findings.notes)?);
            hold_against_reference(&mut rows);
            for row in &mut rows {
                row.insert("data".into(), json!(data.name));
                row.insert("of".into(), json!(kind));
            }
            let table = table_of(COLUMNS, &rows);
            let _ = write!(findings.tables, "\n### Chunk deltas, {}, {kind} pairs\n\n{table}", data.name);
            findings.rows.extend(rows);
        }
        findings.notes.push(format!("codecs, {}: {}", data.name, data.description));
    }
    findings.notes.push(format!(
        "codecs: pairs are chunks of {} KiB on average with the chunk of an earlier version that shares the most features; accepted are those \
         whose delta takes less than half of the chunk alone (zstd, level 3); percent are of the targets' bytes; pooled: after zstd level \
         {POOL_LEVEL} over {} MiB of deltas, of copy-insert with instructions and literals apart; pooled_to_reference: to {REFERENCE}",
        CHUNK_BYTES >> 10,
        POOL_BYTES >> 20,
    ));
    Ok(findings)
}

/// The codecs of the crate, in turns.
fn measure_own(pairs: &[Pair], rounds: u64) -> Result<Vec<Row>> {
    let mut runners = runners()?;
    for runner in &mut runners {
        runner.check(pairs)?;
    }
    for _ in 0..rounds {
        for runner in &mut runners {
            runner.run(pairs)?;
        }
    }
    Ok(runners.iter().map(|runner| runner.row(pairs)).collect())
}

/// The program, whose deltas are there already.
fn measure_outside(pairs: &[Pair], deltas: &[u8], rounds: u64, work: &Path, notes: &mut Vec<String>) -> Result<Row> {
    let rates = xdelta::rates(pairs, rounds, work)?;
    let mut row = row("xdelta3 -1", "its own", pairs, deltas.len() as u64, pooled_alone(deltas)?);
    set_rates(&mut row, rates.encode, rates.decode);
    notes.push(format!(
        "codecs: xdelta3 -1 -S none -n -A -B 2097152 as a process, a pair at a time for sizes, {} pairs at a time for rates, less what a run on empty \
         files took: {:.2} ms (median)",
        xdelta::BATCH_PAIRS,
        rates.start_ms,
    ));
    Ok(row)
}

/// Adds to each row its pooled size as a ratio.
fn hold_against_reference(rows: &mut [Row]) {
    let pooled = |row: &Row| row["pooled_bytes"].as_u64().map(as_float);
    let reference = rows.iter().find(|row| row["codec"] == REFERENCE).and_then(pooled);
    for row in rows {
        let ratio = pooled(row).zip(reference).map(|(own, reference)| rounded(own / reference, 3));
        row.insert("pooled_to_reference".into(), json!(ratio));
    }
}

fn runners() -> Result<Vec<Runner>> {
    let own = [Isa::SCALAR, Isa::best()]
        .map(|isa| Runner::new("copy-insert".into(), isa.name(), Box::new(CopyInsert::new(isa))));
    let mut runners = Vec::from(own);
    for level in [1, 3, 6] {
        let codec = Prefix::new(Level::Zstd(level))?;
        runners.push(Runner::new(format!("{}-{level}", codec.name()), "its own", Box::new(codec)));
    }
    Ok(runners)
}

impl Runner {
    fn new(name: String, isa: &'static str, codec: Box<dyn ChunkDelta>) -> Self {
        let (deltas, pooled_bytes) = (Deltas::default(), 0);
        Self { name, isa, codec, deltas, pooled_bytes, encode_seconds: Vec::new(), decode_seconds: Vec::new() }
    }

    /// Encodes all pairs once, untimed, and looks at what is made of the deltas.
    fn check(&mut self, pairs: &[Pair]) -> Result<()> {
        self.deltas = Deltas::of(&mut *self.codec, pairs)?;
        let mut made = Vec::new();
        for (pair, delta) in pairs.iter().zip(self.deltas.iter()) {
            made.clear();
            self.codec.decode(pair.base, delta, pair.target.len(), &mut made)?;
            ensure!(made == pair.target, "{} makes something else than what it had encoded", self.name);
        }
        self.pooled_bytes =
            if self.name == "copy-insert" { pooled_apart(pairs)? } else { pooled_alone(&self.deltas.bytes)? };
        Ok(())
    }

    fn run(&mut self, pairs: &[Pair]) -> Result<()> {
        let begin = Instant::now();
        let deltas = Deltas::of(&mut *self.codec, black_box(pairs))?;
        self.encode_seconds.push(begin.elapsed().as_secs_f64());
        ensure!(deltas == self.deltas, "{} writes something else each time", self.name);
        let mut made = Vec::new();
        let begin = Instant::now();
        for (pair, delta) in pairs.iter().zip(deltas.iter()) {
            made.clear();
            self.codec.decode(pair.base, black_box(delta), pair.target.len(), &mut made)?;
            black_box(&made);
        }
        self.decode_seconds.push(begin.elapsed().as_secs_f64());
        Ok(())
    }

    fn row(&self, pairs: &[Pair]) -> Row {
        let bytes = self.deltas.bytes.len() as u64;
        let mut row = row(&self.name, self.isa, pairs, bytes, self.pooled_bytes);
        let rates = |seconds: &[f64]| Spread::of(seconds.iter().map(|seconds| mb_per_s(target_bytes(pairs), *seconds)));
        set_rates(&mut row, rates(&self.encode_seconds), rates(&self.decode_seconds));
        row
    }
}

impl Deltas {
    fn of(codec: &mut dyn ChunkDelta, pairs: &[Pair]) -> Result<Self> {
        let mut deltas = Self::default();
        for pair in pairs {
            codec.encode(pair.base, pair.target, usize::MAX, &mut deltas.bytes)?;
            deltas.ends.push(deltas.bytes.len());
        }
        Ok(deltas)
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let begins = [0].into_iter().chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, end)| &self.bytes[begin..*end])
    }
}

/// Deltas that stand alone, compressed together.
fn pooled_alone(deltas: &[u8]) -> Result<u64> {
    let mut encoder = RegionEncoder::new(Level::Zstd(POOL_LEVEL))?;
    let mut out = Vec::new();
    Ok(deltas
        .chunks(POOL_BYTES)
        .map(|pool| {
            encoder.encode(&[], &[pool], &mut out);
            out.len() as u64
        })
        .sum())
}

/// Pools of copy-insert deltas; each is opened again and compared.
fn pooled_apart(pairs: &[Pair]) -> Result<u64> {
    let mut writer = PoolWriter::new(Isa::best(), Level::Zstd(POOL_LEVEL))?;
    let (mut bytes, mut first) = (0, 0);
    for (at, pair) in pairs.iter().enumerate() {
        writer.add(pair.base, pair.target, usize::MAX)?;
        if writer.bytes() >= POOL_BYTES || at + 1 == pairs.len() {
            let (plain_bytes, mut pool) = (writer.bytes(), Vec::new());
            writer.finish(&mut pool);
            check_pool(&pool, plain_bytes, &pairs[first..=at])?;
            bytes += pool.len() as u64;
            first = at + 1;
        }
    }
    Ok(bytes)
}

fn check_pool(pool: &[u8], plain_bytes: usize, pairs: &[Pair]) -> Result<()> {
    let mut reader = PoolReader::new();
    let mut deltas = reader.open(pool, plain_bytes)?;
    let mut made = Vec::new();
    for pair in pairs {
        made.clear();
        deltas.next(pair.target.len())?.decode(pair.base, pair.target.len(), &mut made)?;
        ensure!(made == pair.target, "a pool makes something else than what it was made of");
    }
    Ok(())
}

fn target_bytes(pairs: &[Pair]) -> u64 {
    pairs.iter().map(|pair| pair.target.len() as u64).sum()
}

fn row(codec: &str, isa: &str, pairs: &[Pair], bytes: u64, pooled_bytes: u64) -> Row {
    let share = |bytes: u64| as_float(bytes) / as_float(target_bytes(pairs));
    let mut row = Row::new();
    let mut set = |key: &str, value: Value| row.insert(key.to_owned(), value);
    set("table", json!("codecs"));
    set("codec", json!(codec));
    set("isa", json!(isa));
    set("pairs", json!(pairs.len()));
    set("target_bytes", json!(target_bytes(pairs)));
    set("bytes", json!(bytes));
    set("pooled_bytes", json!(pooled_bytes));
    set("bytes_percent", json!(rounded(100.0 * share(bytes), 3)));
    set("pooled_percent", json!(rounded(100.0 * share(pooled_bytes), 3)));
    row
}

fn set_rates(row: &mut Row, encode: Spread, decode: Spread) {
    for (name, rates) in [("encode", encode), ("decode", decode)] {
        row.insert(format!("{name}_mb_per_s"), json!(rounded(rates.median, 1)));
        row.insert(format!("{name}_spread_percent"), json!(rounded(rates.percent(), 1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_testbed::deterministic::Sequence;

    #[test]
    fn every_codec_makes_small_deltas_of_alike_chunks() {
        let base = Sequence::new(6).bytes(8000);
        let mut target = base.clone();
        target[4000] ^= 1;
        let pairs = [Pair { base: &base, target: &target, is_accepted: true }];
        for mut runner in runners().unwrap() {
            runner.check(&pairs).unwrap();
            runner.run(&pairs).unwrap();
            let row = runner.row(&pairs);
            assert!(row["bytes"].as_u64().unwrap() < 60, "{row:?}");
            assert!(row["encode_mb_per_s"].is_number() && row["decode_mb_per_s"].is_number());
            let mut rows = [row];
            hold_against_reference(&mut rows);
            assert!(COLUMNS.split(' ').all(|column| rows[0].contains_key(column)));
        }
    }
}
