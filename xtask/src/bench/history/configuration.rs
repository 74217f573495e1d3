//! Configurations that are compared: one row each. The only place that knows which words of `silt` make which
//! configuration.

use anyhow::{Context, Result, bail};
use siltstone_testbed::tool::{Name, Reading, Settings, Tool};
use std::fs;
use std::path::Path;

/// A program and how it is asked to work.
#[derive(Clone, Copy, Debug)]
pub(in crate::bench) struct Configuration {
    /// As in the tables, and as one types it.
    pub(in crate::bench) name: &'static str,
    /// Which program.
    pub(in crate::bench) program: Name,
    settings: Settings,
}

const CHUNK_8: &[&str] = &["--chunk-size", "8K"];
const CHUNK_16: &[&str] = &["--chunk-size", "16K"];
const CHUNK_32: &[&str] = &["--chunk-size", "32K"];
const CHUNK_64: &[&str] = &["--chunk-size", "64K"];

/// All of them, in the order of the tables.
pub(super) const ALL: [Configuration; 17] = [
    silt("off", CHUNK_16, &["--deltas", "off"]),
    silt("forward:4", CHUNK_16, &["--deltas", "forward:4"]),
    silt("forward:8", CHUNK_16, &["--deltas", "forward:8"]),
    silt("forward:16", CHUNK_16, &["--deltas", "forward:16"]),
    silt("reverse", CHUNK_16, &["--deltas", "reverse"]),
    silt("t0", CHUNK_16, &["--deltas", "reverse", "--migrate-threshold", "0"]),
    silt("t0.1", CHUNK_16, &["--deltas", "reverse", "--migrate-threshold", "0.1"]),
    silt("t0.25", CHUNK_16, &["--deltas", "reverse", "--migrate-threshold", "0.25"]),
    silt("t0.5", CHUNK_16, &["--deltas", "reverse", "--migrate-threshold", "0.5"]),
    silt("chunk8", CHUNK_8, &["--deltas", "reverse"]),
    silt("chunk32", CHUNK_32, &["--deltas", "reverse"]),
    silt("chunk64", CHUNK_64, &["--deltas", "reverse"]),
    peer("restic", Name::Restic, &["--compression", "max"]),
    peer("restic:auto", Name::Restic, &[]),
    peer("borg", Name::Borg, &[]),
    peer("kopia", Name::Kopia, &[]),
    peer("rustic", Name::Rustic, &[]),
];

const fn silt(name: &'static str, init: &'static [&'static str], backup: &'static [&'static str]) -> Configuration {
    Configuration {
        name,
        program: Name::Silt,
        settings: Settings { init, backup, says_json: true, hashes_quickly: false },
    }
}

const fn peer(name: &'static str, program: Name, backup: &'static [&'static str]) -> Configuration {
    Configuration { name, program, settings: Settings { init: &[], backup, says_json: false, hashes_quickly: false } }
}

/// A configuration whose program was found or built.
#[derive(Clone, Debug)]
pub(in crate::bench) struct Prepared {
    /// Which.
    pub(in crate::bench) configuration: Configuration,
    /// Program that runs it.
    pub(in crate::bench) tool: Tool,
}

/// One of each kind, for a run that only shows that all works.
pub(super) const FEW: [&str; 5] = ["off", "forward:4", "reverse", "restic", "borg"];

/// All configurations, but for those of peers that take long to compile and are not installed.
pub(in crate::bench) fn installed() -> Result<Vec<Configuration>> {
    let mut found = Vec::new();
    for configuration in ALL {
        let is_optional = matches!(configuration.program, Name::Rustic | Name::Kopia);
        if is_optional && Tool::found(configuration.program)?.is_none() {
            eprintln!("{} is left out: it is not installed", configuration.name);
        } else {
            found.push(configuration);
        }
    }
    Ok(found)
}

/// The configurations of these names.
pub(in crate::bench) fn named(names: &[impl AsRef<str>]) -> Result<Vec<Configuration>> {
    let known = || ALL.map(|configuration| configuration.name).join(", ");
    let find = |name: &str| {
        let found = ALL.into_iter().find(|configuration| configuration.name == name);
        found.with_context(|| format!("no configuration {name}; there are: {}", known()))
    };
    names.iter().map(|name| find(name.as_ref())).collect()
}

/// Finds or builds the programs and tries every configuration on next to nothing, so that a word which a program does
/// not know is told before the work begins.
pub(in crate::bench) fn prepare(configurations: &[Configuration], work: &Path) -> Result<Vec<Prepared>> {
    let mut prepared: Vec<Prepared> = Vec::new();
    for &configuration in configurations {
        let found = prepared.iter().find(|other| other.configuration.program == configuration.program);
        let tool = match found {
            Some(other) => other.tool.clone(),
            None => Tool::prepare(configuration.program)?,
        };
        prepared.push(Prepared { configuration, tool: tool.with(configuration.settings) });
    }
    let failures = prepared.iter().filter_map(|prepared| {
        let error = tried(prepared, work).err()?;
        Some(format!("{}: {error:#}", prepared.configuration.name))
    });
    let failures: Vec<String> = failures.collect();
    if !failures.is_empty() {
        bail!("{} of {} configurations do not run:\n{}", failures.len(), prepared.len(), failures.join("\n"));
    }
    Ok(prepared)
}

/// Returns the version of each program as it says it, a line each.
pub(in crate::bench) fn versions(prepared: &[Prepared]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for Prepared { tool, .. } in prepared {
        let line = format!("{}: {}", tool.name.text(), tool.version);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

fn tried(prepared: &Prepared, work: &Path) -> Result<()> {
    let folder = tempfile::tempdir_in(work)?;
    let source = folder.path().join("source");
    fs::create_dir(&source)?;
    fs::write(source.join("file"), "next to nothing")?;
    let repository = prepared.tool.init(&folder.path().join(prepared.configuration.name))?;
    repository.backup(&source, "tried", Reading::Changed)?;
    repository.restore("tried", &source, &folder.path().join("restored")).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_differ_and_are_found() {
        let names: BTreeSet<&str> = ALL.iter().map(|configuration| configuration.name).collect();
        assert_eq!(names.len(), ALL.len());
        let found = named(&["borg", "t0.25"]).unwrap();
        assert_eq!(found.iter().map(|found| found.name).collect::<Vec<_>>(), ["borg", "t0.25"]);
        assert_eq!(named(&FEW).unwrap().len(), FEW.len());
        assert!(named(&["reverse:"]).unwrap_err().to_string().contains("chunk64"));
    }

    #[test]
    fn settings_differ() {
        let settings: BTreeSet<String> =
            ALL.iter().map(|one| format!("{:?} {:?}", one.program, one.settings)).collect();
        assert_eq!(settings.len(), ALL.len());
    }
}
