//! Holds the map of crates in `docs/ARCHITECTURE.md` against what cargo says: the same crates, needing the same ones of
//! ours.

use serde_json::Value;
use siltstone_testbed::workspace;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

type Map = BTreeMap<String, BTreeSet<String>>;

/// Lines `crate -> needed, needed : sentence` of the block marked as `crates`; one that begins with a blank goes on
/// with the line before.
fn drawn() -> Map {
    let text = fs::read_to_string(workspace::root().join("docs/ARCHITECTURE.md")).unwrap();
    let block = text.split("```crates\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a block of crates");
    block.replace("\n ", " ").lines().map(entry).collect()
}

fn entry(line: &str) -> (String, BTreeSet<String>) {
    let (arrow, sentence) = line.split_once(" : ").unwrap_or_else(|| panic!("no sentence in: {line}"));
    assert!(!sentence.trim().is_empty(), "no sentence in: {line}");
    let (name, needed) = arrow.split_once("->").unwrap_or_else(|| panic!("no arrow in: {line}"));
    let needed = needed.split(',').map(str::trim).filter(|needed| !needed.is_empty());
    (name.trim().to_owned(), needed.map(str::to_owned).collect())
}

fn actual() -> Map {
    let metadata = workspace::metadata().unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let ours: BTreeSet<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    packages.iter().map(|package| (text(&package["name"]), needed(package, &ours))).collect()
}

fn needed(package: &Value, ours: &BTreeSet<&str>) -> BTreeSet<String> {
    let dependencies = package["dependencies"].as_array().unwrap().iter();
    let normal = dependencies.filter(|dependency| dependency["kind"].is_null());
    normal.map(|dependency| text(&dependency["name"])).filter(|name| ours.contains(name.as_str())).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[test]
fn the_map_of_crates_is_what_cargo_says() {
    assert_eq!(drawn(), actual(), "left: docs/ARCHITECTURE.md, right: cargo metadata");
}
