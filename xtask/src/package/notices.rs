//! The licences of everything that is linked into the programs. All of them let these be handed out as long as their
//! words go with them (`deny.toml` lets no others in).

use super::binary;
use anyhow::{Context, Result};
use serde_json::Value;
use siltstone_testbed::{program, tree, workspace};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// How names of files with licences begin.
const NAMES: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

const HEAD: &str = "\
silt and silt-import are linked statically with the libraries below, with the standard library of Rust (MIT or
Apache-2.0, Copyright The Rust Project Developers), and with parts of LLVM's compiler-rt and libunwind (Apache-2.0 with
LLVM exception). First their names, versions and licences; then the texts, each with those who come with it.
";

/// Returns the text of the file `THIRD-PARTY`.
pub(super) fn all() -> Result<String> {
    let mut command = workspace::cargo();
    command.args(["metadata", "--locked", "--format-version", "1", "--filter-platform", &binary::triple()]);
    let metadata: Value = serde_json::from_str(&program::quietly(&mut command)?)?;
    let linked = linked(&metadata)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let packages = packages.filter(|package| !package["source"].is_null() && linked.contains(&text(&package["id"])));
    let (mut list, mut texts) = (vec![HEAD.to_owned()], BTreeMap::<String, Vec<String>>::new());
    for package in packages {
        let name = format!("{} {}", text(&package["name"]), text(&package["version"]));
        list.push(format!("{name}: {}", text(&package["license"])));
        for file in licences(Path::new(&text(&package["manifest_path"])))? {
            let words = String::from_utf8_lossy(&fs::read(file)?).trim().replace("\r\n", "\n");
            texts.entry(words).or_default().push(name.clone());
        }
    }
    for (words, names) in texts {
        list.push(format!("\n{}\n{}\n\n{words}", "=".repeat(80), names.join(", ")));
    }
    Ok(list.join("\n") + "\n")
}

/// Ids of the packages that the programs need when they run, and of those they need.
fn linked(metadata: &Value) -> Result<BTreeSet<String>> {
    let nodes = metadata["resolve"]["nodes"].as_array().context("`cargo metadata` resolved nothing")?;
    let needed: BTreeMap<String, Vec<String>> = nodes.iter().map(|node| (text(&node["id"]), normal(node))).collect();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let is_program = |package: &&Value| binary::PROGRAMS.iter().any(|(_, name)| package["name"] == *name);
    let programs = packages.filter(is_program).map(|package| text(&package["id"]));
    let (mut found, mut open) = (BTreeSet::new(), programs.collect::<Vec<_>>());
    while let Some(id) = open.pop() {
        open.extend(needed.get(&id).into_iter().flatten().filter(|id| !found.contains(*id)).cloned());
        found.insert(id);
    }
    Ok(found)
}

/// Ids of what a package needs when it runs.
fn normal(node: &Value) -> Vec<String> {
    let dependencies = node["deps"].as_array().into_iter().flatten();
    let runs = |dependency: &&Value| {
        dependency["dep_kinds"].as_array().into_iter().flatten().any(|kind| kind["kind"].is_null())
    };
    dependencies.filter(runs).map(|dependency| text(&dependency["pkg"])).collect()
}

/// Files with licences beside a manifest, and in the folders there, where sources in C have theirs.
fn licences(manifest: &Path) -> Result<Vec<PathBuf>> {
    let home = manifest.parent().context("a manifest lies in a folder")?;
    let (folders, files): (Vec<_>, Vec<_>) = tree::entries(home)?.into_iter().partition(|entry| entry.is_dir());
    let within = folders.iter().map(|folder| tree::entries(folder)).collect::<Result<Vec<_>>>()?;
    let is_licence = |file: &PathBuf| {
        let name = file.file_name().map(|name| name.to_string_lossy().to_uppercase()).unwrap_or_default();
        file.is_file() && NAMES.iter().any(|start| name.starts_with(start))
    };
    Ok(files.into_iter().chain(within.into_iter().flatten()).filter(is_licence).collect())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("not stated").to_owned()
}
