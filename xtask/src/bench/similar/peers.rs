//! zstd as a program over whole versions: each against the one before, and its best over all of them.

use crate::bench::data::Data;
use crate::bench::publish::Row;
use crate::install::{self, Needed};
use crate::program;
use crate::table::{self, as_float};
use anyhow::Result;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const ZSTD: Needed = Needed { program: "zstd", package: "zstd" };
/// zstd's best gets so long.
const SECONDS_MAX: &str = "300";

/// What zstd makes of the versions.
pub(super) struct Peers {
    /// The first version, and the sum of each against the one before, at level 3.
    pub(super) chain_bytes: u64,
    chain_seconds: f64,
    /// All versions as one stream at level 19 with the longest window, if it ended in time.
    best_bytes: Option<u64>,
}

/// Runs both; only the first with `is_quick`.
pub(super) fn measure(data: &Data, is_quick: bool, work: &Path) -> Result<Peers> {
    install::ensure(&[ZSTD])?;
    let folder = tempfile::Builder::new().prefix("versions").tempdir_in(work)?;
    let file = |name: &str| folder.path().join(name);
    let (mut chain_bytes, mut chain_seconds) = (0, 0.0);
    for (at, range) in data.ranges().into_iter().enumerate() {
        let (this, before, out) = (file(&at.to_string()), file(&at.saturating_sub(1).to_string()), file("out"));
        fs::write(&this, &data.bytes[range])?;
        let mut zstd = Command::new(ZSTD.program);
        zstd.args(["-3", "-q", "-f", "--long=31", "-T1"]);
        if at > 0 {
            zstd.arg(format!("--patch-from={}", before.display()));
        }
        let begin = Instant::now();
        program::quietly(zstd.arg(&this).arg("-o").arg(&out))?;
        chain_seconds += begin.elapsed().as_secs_f64();
        chain_bytes += fs::metadata(&out)?.len();
        if at > 0 {
            fs::remove_file(before)?;
        }
    }
    let best_bytes = if is_quick { None } else { best(data, &file("all"))? };
    Ok(Peers { chain_bytes, chain_seconds, best_bytes })
}

fn best(data: &Data, all: &Path) -> Result<Option<u64>> {
    fs::write(all, &data.bytes)?;
    let out = all.with_extension("zst");
    let mut command = Command::new("timeout");
    command.args([SECONDS_MAX, ZSTD.program, "-19", "-q", "-f", "--long=31", "-T1"]).arg(all).arg("-o").arg(&out);
    let ended = program::try_quietly(&mut command)?.status.success();
    Ok(if ended { Some(fs::metadata(&out)?.len()) } else { None })
}

impl Peers {
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
