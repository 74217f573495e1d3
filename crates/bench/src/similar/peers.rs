//! zstd as a program over whole versions: each against the one before, and its best over all of them.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use siltstone_testbed::bench::patch_chain::PatchChain;
use siltstone_testbed::bench::publish::Row;
use siltstone_testbed::data::Data;
use siltstone_testbed::install::ZSTD;
use siltstone_testbed::program;
use siltstone_testbed::table::{self, as_float};
use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use tempfile::TempDir;

/// zstd's best gets so long.
const SECONDS_MAX: &str = "300";
const BEST: &str = "best.zst";

/// Bytes that zstd makes of the versions.
pub(super) struct Peers {
    /// The first version, and the sum of each against the one before, at level 3.
    pub(super) chain_bytes: u64,
    chain_seconds: f64,
    /// All versions as one stream at level 19 with the longest window, if it ended in time.
    best_bytes: Option<u64>,
    /// That, while it runs beside everything else.
    best: Option<Child>,
    folder: TempDir,
}

impl Peers {
    /// Runs the chain, and begins zstd's best unless `is_quick`.
    pub(super) fn begin(data: &Data, is_quick: bool, work: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("versions").tempdir_in(work)?;
        let mut chain = PatchChain::begin(3, folder.path())?;
        data.ranges().into_iter().try_for_each(|range| chain.add_bytes(&data.bytes[range]))?;
        let (chain_bytes, chain_seconds) = (chain.bytes, chain.seconds);
        let best = if is_quick { None } else { Some(best(data, folder.path())?) };
        Ok(Self { chain_bytes, chain_seconds, best_bytes: None, best, folder })
    }

    /// Waits for zstd's best, for as long as it may take.
    pub(super) fn finish(&mut self) -> Result<()> {
        let Some(mut best) = self.best.take() else { return Ok(()) };
        if best.wait()?.success() {
            self.best_bytes = Some(fs::metadata(self.folder.path().join(BEST))?.len());
        }
        Ok(())
    }

    /// For people.
    pub(super) fn line(&self) -> String {
        let best = self.best_bytes.map_or("not ended in time, or not asked for".into(), table::bytes);
        let chain = table::bytes(self.chain_bytes);
        format!(
            "`zstd -3 --patch-from=previous`: {chain} in {:.1} s; `zstd -19 --long=31` of all: {best}\n",
            self.chain_seconds
        )
    }

    /// For programs.
    pub(super) fn rows(&self, data: &str) -> Vec<Row> {
        let row = |way: &str, bytes: u64| {
            let mut row = Row::new();
            let mut set = |key: &str, value: Value| row.insert(key.to_owned(), value);
            set("table", json!("layouts"));
            set("data", json!(data));
            set("way", json!(way));
            set("bytes", json!(bytes));
            set("ratio_to_chain", json!(as_float(bytes) / as_float(self.chain_bytes)));
            row
        };
        let best = self.best_bytes.map(|bytes| row("zstd -19 --long=31 of all", bytes));
        [row("zstd -3 --patch-from=previous", self.chain_bytes)].into_iter().chain(best).collect()
    }
}

fn best(data: &Data, folder: &Path) -> Result<Child> {
    let all = folder.join("all");
    fs::write(&all, &data.bytes)?;
    let mut command = Command::new("timeout");
    command.args([SECONDS_MAX, ZSTD.program, "-19", "-q", "-f", "--long=31", "-T1"]);
    command.arg(all).arg("-o").arg(folder.join(BEST));
    command.spawn().with_context(|| format!("`{}` could not be started", program::command_line(&command)))
}
