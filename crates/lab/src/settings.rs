//! What a run is made with. All of it stands in a small TOML file, from which the run can be repeated.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Settings of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Names of experiments, or of commands for all of theirs (`chunk`, `sketch`, `pipeline`, `store`).
    pub experiments: Vec<String>,
    /// The user's data: each a file, or a folder with one file or folder per version.
    pub data: Vec<PathBuf>,
    /// Corpora made by the lab, by name.
    pub corpora: Vec<String>,
    /// Little data, few rounds, few points.
    pub quick: bool,
    /// How often what is timed is run.
    pub rounds: u64,
    /// Seed of everything that is made.
    pub seed: u64,
    /// What may be held in memory, MiB.
    pub memory_mib: u64,
    /// Threads of what runs on several.
    pub threads: usize,
    /// Expected sizes of chunks, bytes; empty for the experiment's own.
    pub expected_bytes: Vec<u32>,
    /// Only these methods; empty for all.
    pub methods: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            experiments: Vec::new(),
            data: Vec::new(),
            corpora: Vec::new(),
            quick: false,
            rounds: 5,
            seed: 1,
            memory_mib: 4096,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            expected_bytes: Vec::new(),
            methods: Vec::new(),
        }
    }
}
