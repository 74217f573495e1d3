//! The experiment `pipeline-chunkers`: does a faster chunker make the system faster, and what holds it up then? (AE,
//! section 4.4.)

use super::fingerprint::Hash;
use super::show::{Measure, Words, advice, by_stage, by_system};
use super::silt::CHUNKER;
use super::stream::Stream;
use super::subject::{Build, COLUMNS, Label, Parts, SILT, expected_bytes, silt};
use super::system::Compression;
use crate::chunk::method::Method;
use crate::distinct;
use crate::experiment::{Experiment, Finding, Head, Input, Needs, Rounds, Subject};
use crate::report::Figure;
use crate::settings::Settings;
use anyhow::Result;
use siltstone_chunk::Isa;
use siltstone_engine::delta::Deltas;

/// Those of AE's Figure 8 (Rabin with limits, MAXP, AE and its optimisations, LEST at an eighth), of `VectorCDC`,
/// crates that others use, and Siltstone's own.
const METHODS: [&str; 19] = [
    "rabin",
    "maxp-t",
    "ae8-max",
    "ae8-opt1",
    "ae8-opt2-eighth",
    "ae-max",
    "ram-t",
    "crc",
    "gear",
    "ss-gear",
    "fastcdc-2016-nc2",
    "fastcdc-2020-nc2",
    "crate:fastcdc",
    "crate:gearhash",
    "seqcdc",
    "gear-nc2",
    "swpr",
    "aes16",
    "lagged",
];
/// Those that tell most.
const METHODS_QUICK: [&str; 8] =
    ["rabin", "maxp-t", "ae8-max", "ae8-opt2-eighth", "fastcdc-2016-nc2", "crate:fastcdc", "ram-t", "lagged"];

/// AE's system: a thread per stage.
const PAPER: &str = "dedup, SHA-1";
/// Name of the system with a faster hash.
const FAST: &str = "dedup, BLAKE3";
/// With what backup programs do besides.
const COMPRESSED: &str = "dedup, BLAKE3, zstd";

/// The experiment.
pub(super) struct Chunkers;

impl Experiment for Chunkers {
    fn head(&self) -> Head {
        Head {
            name: "pipeline-chunkers",
            title: "Throughput of the pipelined deduplication system with each chunker, and which of its stages \
                    holds it up",
            reproduces: &["AE (TC'17), Fig. 8"],
            needs: Needs::Bytes,
            methods: Method::timed().map(Method::name).chain([SILT]).collect(),
            rounds: Rounds::All,
            columns: COLUMNS,
        }
    }

    fn subjects<'i>(&self, input: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        let stream = Stream::of(input.data()?, settings.quick);
        let mut subjects: Vec<Box<dyn Subject + 'i>> = Vec::new();
        for expected_bytes in expected_bytes(settings) {
            for method in Method::timed().filter(|method| is_wanted(method.name(), settings)) {
                // Without vectors, and with the best there are.
                for isa in distinct([Isa::SCALAR, method.best()]) {
                    let label = Label { method: method.name(), isa: method.isa_name(isa), expected_bytes };
                    let chunker = method.chunker(expected_bytes, isa)?.into();
                    subjects.extend(Parts { label, chunker, sketcher: None }.in_systems(&builds(settings), &stream));
                }
            }
            if is_wanted(SILT, settings) {
                subjects.extend(silt(&stream, CHUNKER, expected_bytes, Deltas::Off, settings));
            }
        }
        Ok(subjects)
    }

    fn figures(&self, findings: &[Finding]) -> Vec<Figure> {
        let throughput = Words {
            title: "System throughput by chunker",
            redraws: "AE (TC'17), Fig. 8",
            caption: "Read from memory, written to a temporary folder, not synced. The paper's system has SHA-1 and a thread per stage. \
                      silt encrypts, decodes again what it encoded, and syncs.",
        };
        let busy = Words {
            title: "Stages at work by chunker",
            redraws: "",
            caption: "Processor time of a stage per thread, in percent of the run. A stage near 100 % holds the others up; if none is, and \
                      together they take all cores, the machine does.",
        };
        let mut figures = by_system(findings, Measure { name: "mb_per_s", axis: "MB/s" }, throughput);
        figures.extend(by_stage(findings, PAPER, busy));
        figures.extend(by_stage(findings, COMPRESSED, busy));
        figures
    }

    fn advice(&self, findings: &[Finding]) -> Vec<String> {
        advice(findings, COMPRESSED)
    }
}

fn is_wanted(name: &str, settings: &Settings) -> bool {
    match &settings.methods[..] {
        [] if settings.quick => name == SILT || METHODS_QUICK.contains(&name),
        [] => name == SILT || METHODS.contains(&name),
        _ => settings.chooses_method(name),
    }
}

fn builds(settings: &Settings) -> Vec<Build> {
    let build = |name, hash, compression, threads| Build { name, hash, compression, threads };
    let all = [
        build(PAPER, Hash::Sha1, Compression::None, 1),
        build(FAST, Hash::Blake3, Compression::None, 1),
        build(COMPRESSED, Hash::Blake3, Compression::Zstd, settings.threads),
    ];
    all.into_iter().filter(|build| !settings.quick || build.name != FAST).collect()
}
