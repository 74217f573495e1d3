//! Ground that tasks, the lab and benchmarks stand on: programs run and timed, trees and their comparison, corpora,
//! deterministic data, statistics, tables.
//!
//! ```text
//! program, install, machine      other programs: run, measured, killed, installed; the machine they run on
//! tree, archive, edit            trees of files: compared, copied, made equal, edited; as one archive
//! deterministic, corpus, data    the same data on every machine: numbers, versions on disk, versions in memory
//! statistics, table, json        from samples to what is shown; what programs say as JSON
//! workspace, tool, record        this checkout, the backup programs, results that are kept
//! minio, emulators, distance     servers of object stores; servers as if they were far away
//! trials                         independent trials on all cores
//! bench                          what benchmarks share: options, turns, what is done with results
//! ```
//!
//! None of the crates under test is used here, and no cryptography or compression: what is needed to begin compiles
//! quickly, and what judges shares no code with what is judged.

pub mod archive;
pub mod bench;
pub mod corpus;
pub mod data;
pub mod deterministic;
pub mod distance;
pub mod edit;
pub mod emulators;
pub mod install;
pub mod json;
pub mod kopia;
pub mod machine;
pub mod minio;
pub mod program;
pub mod record;
pub mod statistics;
pub mod table;
pub mod tool;
pub mod tree;
pub mod trials;
pub mod workspace;
