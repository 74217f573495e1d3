//! A report of made-up numbers with every kind of plot and every difficulty, to look at and to check in a browser:
//! `cargo run -p siltstone-lab --example report -- FILE.html`.

mod figures;

use anyhow::{Context, Result};
use siltstone_lab::experiment::{Finding, Head, Needs, Rounds, Row};
use siltstone_lab::report::html::page;
use siltstone_lab::report::{InputSummary, Report};
use siltstone_lab::settings::Settings;
use siltstone_testbed::deterministic::Sequence;

const DATA: [&str; 3] =
    ["redis-history", "openssl-releases", "</title><script>alert(1)</script> “photos” & more/ﾌｧｲﾙ.img"];

fn main() -> Result<()> {
    let file = std::env::args_os().nth(1).context("name the file to write: report FILE.html")?;
    let mut chance = Chance(Sequence::new(7));
    let report = report(&mut chance);
    let page = page(&report);
    let figures: usize = report.figures.iter().map(|(_, figures)| figures.len()).sum();
    println!("{figures} figures, {} rows, {} bytes", report.findings.len(), page.len());
    std::fs::write(&file, page).with_context(|| format!("{} cannot be written", file.display()))
}

/// Made-up measurements.
struct Chance(Sequence);

impl Chance {
    /// Between 0 and 1.
    fn share(&mut self) -> f64 {
        siltstone_testbed::table::as_float(self.0.below(1 << 20)) / f64::from(1 << 20)
    }

    /// Five rounds around a number.
    fn rounds(&mut self, around: f64) -> Vec<f64> {
        (0..5).map(|_| around * (0.94 + 0.12 * self.share())).collect()
    }
}

const EXPERIMENTS: [Head; 4] = [
    Head {
        name: "chunk-throughput",
        title: "How fast chunkers cut, by algorithm, instruction set and expected size",
        reproduces: &["AE (TC'17), Figs. 5 and 6", "VectorCDC (FAST'25), Fig. 8"],
        needs: Needs::Bytes,
        methods: Vec::new(),
        rounds: Rounds::All,
        columns: "method isa expected_bytes gb_per_s average_bytes savings_percent",
    },
    Head {
        name: "chunk-sizes",
        title: "How sizes of chunks are distributed, beside the theory",
        reproduces: &["AE (TC'17), Fig. 4 and Table 4"],
        needs: Needs::Bytes,
        methods: Vec::new(),
        rounds: Rounds::All,
        columns: "method expected_bytes average_bytes deviation_bytes",
    },
    Head {
        name: "sketch-quality",
        title: "How well sketches estimate resemblance",
        reproduces: &["Odess (TOS'21), Table 2"],
        needs: Needs::Bytes,
        methods: Vec::new(),
        rounds: Rounds::All,
        columns: "method dcr dce scr_percent",
    },
    Head {
        name: "store-versions",
        title: "What successive backups and their restores cost, per version",
        reproduces: &["MeGA (TOS'23), Figs. 8 to 16"],
        needs: Needs::Versions,
        methods: Vec::new(),
        rounds: Rounds::All,
        columns: "method version backup_mb_per_s restore_mb_per_s containers_read ratio",
    },
];

fn report(chance: &mut Chance) -> Report {
    let mut findings = Vec::new();
    for data in DATA {
        for method in figures::chunkers() {
            for expected in [4096, 8192, 16384] {
                let values = [
                    ("gb_per_s", chance.rounds(0.2)),
                    ("average_bytes", vec![f64::from(expected) * 1.1; 5]),
                    ("savings_percent", vec![41.25; 5]),
                ];
                findings.push(finding(
                    "chunk-throughput",
                    data,
                    &[
                        ("method", method.as_str().into()),
                        ("isa", "avx512".into()),
                        ("expected_bytes", expected.into()),
                    ],
                    &values,
                ));
            }
        }
        for method in figures::STORES {
            for version in 1..=27 {
                let values = [
                    ("backup_mb_per_s", chance.rounds(412.0)),
                    ("restore_mb_per_s", chance.rounds(1234.5)),
                    ("containers_read", vec![f64::from(version) * 12.0]),
                    ("ratio", vec![17.312_345]),
                ];
                findings.push(finding(
                    "store-versions",
                    data,
                    &[("method", method.into()), ("version", version.into())],
                    &values,
                ));
            }
        }
    }
    findings[5].values.clear();
    findings[5].wrong = Some("cut 17 at byte 81 920 lies at 81 921 in the oracle <b>not bold</b>".into());
    Report {
        settings: Settings { corpora: vec!["redis-history".into()], data: vec!["/home/me/<photos>".into()], ..Settings::default() },
        version: "0.1.0 (1a2b3c4)".into(),
        day: "2026-11-21".into(),
        machine: ["processor: Example 9999 @ 3.1 GHz, 16 cores", "memory: 65536000 kB", "system: Example Linux, Linux 6.1.0", "file system: ext2/ext3, data in the page cache", "compiler: rustc 1.95.0"]
            .map(str::to_owned)
            .into(),
        inputs: DATA
            .iter()
            .zip([17_u64, 27, 1])
            .map(|(name, versions)| InputSummary {
                name: (*name).into(),
                description: "Dumps of a key-value store between runs of its benchmark, a fifth of its keys written anew in each".into(),
                bytes: versions * 123_456_789,
                versions: usize::try_from(versions).unwrap_or(1),
            })
            .collect(),
        experiments: EXPERIMENTS.into(),
        findings,
        figures: vec![
            ("chunk-throughput".into(), DATA.iter().flat_map(|data| figures::throughput(chance, data).into_iter().chain(figures::odd(data))).collect()),
            ("chunk-sizes".into(), DATA.iter().flat_map(|data| figures::sizes(chance, data)).collect()),
            ("sketch-quality".into(), DATA.iter().flat_map(|data| figures::sketches(chance, data)).collect()),
            ("store-versions".into(), DATA.iter().flat_map(|data| figures::versions(chance, data)).collect()),
        ],
        advice: vec![
            ("chunk-throughput".into(), vec!["On redis-history, RAM with AVX-512 cuts 14 times as fast as Rabin and finds 98 % of what Rabin finds: take it with 8 KiB.".into(), "Larger chunks lose little here: 64 KiB instead of 8 KiB costs 3 % of the savings.".into()]),
            ("store-versions".into(), vec!["MeGA restores the newest version from 31 containers, Greedy from 912; its deduplication ratio is 4 % lower.".into()]),
        ],
        skipped: vec!["store-versions on </title><script>alert(1)</script>: it has one version, two are needed".into()],
        is_whole: false,
    }
}

fn finding(
    experiment: &str,
    data: &str,
    parameters: &[(&str, serde_json::Value)],
    values: &[(&str, Vec<f64>)],
) -> Finding {
    let row: Row = parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let values = values.iter().map(|(name, values)| ((*name).to_owned(), values.clone())).collect();
    Finding { experiment: experiment.into(), data: data.into(), parameters: row, values, wrong: None }
}
