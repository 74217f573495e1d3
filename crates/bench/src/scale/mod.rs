//! How everything grows, `cargo xtask bench scale`: trees of up to ten million files and 1 TB, made while they are
//! read, are backed up, changed, read here and there, checked and thinned. Time, memory and the repository's own bytes
//! are told for each size. Content is made so that little of it is stored: speeds are those of everything but
//! compressing.

mod source;
mod steps;

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde_json::{Value, json};
use siltstone_testbed::bench::options::ScaleOptions;
use siltstone_testbed::bench::publish::{Row, table_of};
use siltstone_testbed::program::{self, Cost};
use siltstone_testbed::statistics::rounded;
use siltstone_testbed::table::as_float;
use siltstone_testbed::workspace;
use std::path::Path;
use std::process::Command;
use steps::Step;
pub(crate) use steps::{StepOptions, run as step};

/// Commands, in this order, on each repository.
const STEPS: [Step; 12] = [
    Step::First,
    Step::Unchanged,
    Step::Changed,
    Step::Snapshots,
    Step::Newest,
    Step::Oldest,
    Step::Restore,
    Step::Check,
    Step::Forget,
    Step::Maintain,
    Step::Cold,
    Step::Newest,
];
const COLUMNS: &str = "files logical_gb step seconds cpu_seconds peak_mib read_gb new_chunks chunks data_mb \
    metadata_mb manifest_mb cache_mb objects";

/// Runs the benchmark and prints its table.
pub(super) fn run(options: &ScaleOptions) -> Result<()> {
    let quick = [2];
    let sizes: &[u64] = if options.output.quick { &quick } else { &options.gigabytes };
    let work = match &options.place {
        Some(place) => tempfile::tempdir_in(place)?,
        None => tempfile::tempdir_in(workspace::target()?)?,
    };
    let mut rows = Vec::new();
    for &gigabytes in sizes {
        let files = (gigabytes * 1_000_000_000 / options.file_bytes).max(1000);
        let folder = work.path().join(gigabytes.to_string());
        std::fs::create_dir(&folder)?;
        measured(options, files, &folder, Step::Init)?;
        let mut logical_bytes = 0;
        for step in STEPS {
            let (cost, facts) = measured(options, files, &folder, step)?;
            logical_bytes = facts["logical_bytes"].as_u64().unwrap_or(logical_bytes);
            let row = row(files, logical_bytes, step, cost, &facts);
            eprintln!("{}", Value::Object(row.clone()));
            rows.push(row);
        }
        std::fs::remove_dir_all(&folder)?;
    }
    let notes = [
        format!("files of {} bytes on average, one of ten large; one of a hundred changes", options.file_bytes),
        format!("content repeats itself so that a compressor makes about 1/{} of it", options.shrink),
        format!("memory asked for: {} MiB; each command is a process of its own", options.memory),
        "seconds: opening the repository included, and comparing what was read or restored with the source".to_owned(),
        "forget: all snapshots but the newest; cold: a backup by a machine that has no cache of this repository"
            .to_owned(),
    ];
    options.output.publish("scale", &table_of(COLUMNS, &rows).to_string(), &rows, &notes, work.path())
}

/// Runs a command and returns its cost and what it says.
fn measured(options: &ScaleOptions, files: u64, folder: &Path, step: Step) -> Result<(Cost, Value)> {
    let mut command = Command::new(std::env::current_exe()?);
    let name = step.to_possible_value().context("it has a name")?;
    command.args(["scale-step", "--step", name.get_name(), "--folder"]).arg(folder);
    command.arg("--files").arg(files.to_string()).arg("--file-bytes").arg(options.file_bytes.to_string());
    command.arg("--shrink").arg(options.shrink.to_string());
    command.arg("--memory-bytes").arg((options.memory << 20).to_string());
    let (cost, said) = program::measured_saying(&mut command)?;
    let facts = if step == Step::Init { json!({}) } else { serde_json::from_str(&said)? };
    Ok((cost, facts))
}

fn row(files: u64, logical_bytes: u64, step: Step, cost: Cost, facts: &Value) -> Row {
    let megabytes = |name: &str| facts[name].as_u64().map(|bytes| rounded(as_float(bytes) / 1e6, 1));
    let step = step.to_possible_value().map(|name| name.get_name().to_owned());
    let cells = [
        ("files", json!(files)),
        ("logical_gb", json!(rounded(as_float(logical_bytes) / 1e9, 1))),
        ("step", json!(step)),
        ("seconds", json!(facts["seconds"].as_f64().map(|seconds| rounded(seconds, 2)))),
        ("cpu_seconds", json!(rounded(cost.processor.as_secs_f64(), 2))),
        ("peak_mib", json!(rounded(as_float(cost.peak_bytes) / f64::from(1 << 20), 0))),
        ("read_gb", json!(facts["read_bytes"].as_u64().map(|bytes| rounded(as_float(bytes) / 1e9, 2)))),
        ("new_chunks", facts["chunks_new"].clone()),
        ("chunks", facts["chunks"].clone()),
        ("data_mb", json!(megabytes("data_bytes"))),
        ("metadata_mb", json!(megabytes("metadata_bytes"))),
        ("manifest_mb", json!(megabytes("manifest_bytes"))),
        ("cache_mb", json!(megabytes("cache_bytes"))),
        ("objects", facts["objects"].clone()),
    ];
    cells.into_iter().map(|(column, value)| (column.to_owned(), value)).collect()
}
