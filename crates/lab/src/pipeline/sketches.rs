//! The experiment `pipeline-sketches`: how fast is a system that encodes deltas, with each way to find what resembles
//! what, and how much smaller does it make the data? (Odess, section 4.3.4.)

use super::delta::BaseLimits;
use super::fingerprint::Hash;
use super::show::{Measure, Words, advice, by_stage, by_system};
use super::silt::SKETCH;
use super::stream::Stream;
use super::subject::{Build, COLUMNS, Label, Parts, SILT, expected_bytes, silt};
use super::system::Compression;
use crate::chunk::method::Method;
use crate::experiment::{Experiment, Finding, Head, Input, Needs, Rounds, Subject};
use crate::report::Figure;
use crate::settings::Settings;
use crate::sketch::own::{self, Own};
use anyhow::{Context, Result};
use siltstone_chunk::{Isa, Lagged, Sizes};
use siltstone_engine::delta::Deltas;
use siltstone_similar::sketch::{self, Shape, Sketcher};

/// The four of Odess's Figure 23.
const METHODS: [&str; 4] = ["ntransform-32", "finesse", "odess", "odess-plus"];
/// No deltas at all.
const NONE: &str = "none";
/// The chunker of all rows but `silt`'s: Odess takes `FastCDC`.
const CHUNKER: &str = "fastcdc-2016-nc2";

/// Odess's system: no compression beside deltas, a thread per stage.
const PAPER: &str = "dedup, SHA-1, delta";
/// With what backup programs do besides.
const COMPRESSED: &str = "dedup, BLAKE3, delta, zstd";

/// The experiment.
pub(super) struct Sketches;

impl Experiment for Sketches {
    fn head(&self) -> Head {
        Head {
            name: "pipeline-sketches",
            title: "Throughput and reduction of the pipelined system with deltas, by what finds resemblance",
            reproduces: &["Odess (TOS), Fig. 23 (b) and (c)"],
            needs: Needs::Bytes,
            methods: known().collect(),
            rounds: Rounds::All,
            columns: COLUMNS,
        }
    }

    fn subjects<'i>(&self, input: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        let stream = Stream::of(input.data()?, settings.quick);
        let cutter = Method::by_name(CHUNKER).with_context(|| format!("there is no chunker {CHUNKER}"))?;
        let mut subjects: Vec<Box<dyn Subject + 'i>> = Vec::new();
        for expected_bytes in expected_bytes(settings) {
            let limits = base_limits(&stream, expected_bytes, settings);
            for method in wanted(settings) {
                if method == SILT {
                    subjects.extend(silt(&stream, SKETCH, expected_bytes, Deltas::default(), settings));
                    continue;
                }
                let (sketcher, isa) = sketcher(method, expected_bytes)?;
                let sketcher = sketcher.map(|sketcher| (sketcher.into(), limits));
                let label = Label { method, isa: isa.name(), expected_bytes };
                let chunker = cutter.chunker(expected_bytes, Isa::best())?.into();
                subjects.extend(Parts { label, chunker, sketcher }.in_systems(&builds(settings), &stream));
            }
        }
        Ok(subjects)
    }

    fn figures(&self, findings: &[Finding]) -> Vec<Figure> {
        let throughput = Words {
            title: "System throughput by sketch",
            redraws: "Odess (TOS), Fig. 23 (b)",
            caption: "The paper's system has SHA-1, a thread per stage and no compression beside deltas. silt encodes old versions against new \
                      ones, decodes again what it encoded, encrypts and syncs.",
        };
        let reduction = Words {
            title: "Reduction by sketch",
            redraws: "Odess (TOS), Fig. 23 (c)",
            caption: "All that went in over all that lies on disk: what is said of chunks and versions is counted too.",
        };
        let busy = Words {
            title: "Stages at work by sketch",
            redraws: "",
            caption: "Processor time of a stage per thread, in percent of the run.",
        };
        let mut figures = by_system(findings, Measure { name: "mb_per_s", axis: "MB/s" }, throughput);
        figures.extend(by_system(
            findings,
            Measure { name: "reduction_ratio", axis: "bytes in / bytes stored" },
            reduction,
        ));
        figures.extend(by_stage(findings, PAPER, busy));
        figures
    }

    fn advice(&self, findings: &[Finding]) -> Vec<String> {
        advice(findings, COMPRESSED)
    }
}

/// Names of rows: all, or those that the user chose.
fn wanted(settings: &Settings) -> Vec<&'static str> {
    if settings.methods.is_empty() {
        return usual().collect();
    }
    known().filter(|name| settings.chooses_method(name)).collect()
}

fn usual() -> impl Iterator<Item = &'static str> {
    std::iter::once(NONE).chain(METHODS).chain([own::NAME, SILT])
}

/// Those and all other sketches there are.
fn known() -> impl Iterator<Item = &'static str> {
    usual().chain(sketch::names().filter(|name| !METHODS.contains(name)))
}

fn builds(settings: &Settings) -> Vec<Build> {
    let build = |name, hash, compression, threads| Build { name, hash, compression, threads };
    vec![
        build(PAPER, Hash::Sha1, Compression::None, 1),
        build(COMPRESSED, Hash::Blake3, Compression::Zstd, settings.threads),
    ]
}

/// Returns the sketcher of this name, and the instruction set it is made for; without one there are no deltas.
fn sketcher(method: &str, expected_bytes: u32) -> Result<(Option<Box<dyn Sketcher>>, Isa)> {
    let best = Isa::best();
    Ok(match sketch::METHODS.iter().find(|row| row.name == method) {
        Some(row) => {
            let isa = if row.vector { best } else { Isa::SCALAR };
            (Some(row.make(Shape::DEFAULT, isa)), isa)
        }
        None if method == own::NAME => {
            let chunker = Lagged::new(Sizes::around(expected_bytes)?, &[0; 32], best);
            (Some(Box::new(Own::new(chunker, Shape::DEFAULT, best))), best)
        }
        None => (None, Isa::SCALAR),
    })
}

/// Room for all chunks there can be in the index, and a quarter of what memory may be taken for their bytes.
fn base_limits(stream: &Stream<'_>, expected_bytes: u32, settings: &Settings) -> BaseLimits {
    let most = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let chunks = most(2 * stream.bytes() / u64::from(expected_bytes.max(1)) + 1024);
    BaseLimits { chunks, bytes: most(settings.memory_mib << 18) }
}
