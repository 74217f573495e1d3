//! Holds `rust-version`, the oldest compiler that each manifest promises, against what is used: the compiler that all
//! is built and tested with (`rust-toolchain.toml`), and what the crates that we depend on promise themselves. That our
//! own code needs no younger standard library, clippy's lint `incompatible_msrv` sees; `cargo xtask cross` builds the
//! chunkers with their oldest compiler.

use serde_json::Value;
use siltstone_testbed::{program, workspace};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Numbers of `1.85` or `1.85.0`; what promises nothing is older than all.
fn version(promise: &Value) -> Vec<u32> {
    promise.as_str().unwrap_or_default().split('.').take(2).filter_map(|number| number.parse().ok()).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Ids of what `package` needs to be built, and of what that needs.
fn needed<'m>(package: &'m str, nodes: &BTreeMap<&'m str, &'m Value>) -> BTreeSet<&'m str> {
    let (mut found, mut open) = (BTreeSet::new(), vec![package]);
    while let Some(id) = open.pop() {
        if found.insert(id) {
            let needs = nodes[id]["deps"].as_array().into_iter().flatten();
            let is_built = |kinds: &Value| kinds.as_array().into_iter().flatten().any(|kind| kind["kind"] != "dev");
            open.extend(needs.filter(|need| is_built(&need["dep_kinds"])).map(|need| text(&need["pkg"])));
        }
    }
    found
}

#[test]
fn the_oldest_compiler_is_the_one_that_everything_is_tested_with() {
    let root = workspace::root();
    let pinned = fs::read_to_string(root.join("rust-toolchain.toml")).unwrap();
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let promised = manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap().trim_matches('"');
    assert!(pinned.contains(&format!("channel = \"{promised}.")), "Cargo.toml promises {promised}, and: {pinned}");
}

#[test]
fn no_crate_that_we_depend_on_needs_a_younger_compiler() {
    let mut command = workspace::cargo();
    command.args(["metadata", "--locked", "--format-version", "1", "--filter-platform", "x86_64-unknown-linux-gnu"]);
    let metadata: Value = serde_json::from_str(&program::quietly(&mut command).unwrap()).unwrap();
    let list = |value: &'_ Value| value.as_array().unwrap().clone();
    let packages = list(&metadata["packages"]);
    let packages: BTreeMap<&str, &Value> = packages.iter().map(|package| (text(&package["id"]), package)).collect();
    let nodes = list(&metadata["resolve"]["nodes"]);
    let nodes: BTreeMap<&str, &Value> = nodes.iter().map(|node| (text(&node["id"]), node)).collect();
    for ours in packages.values().filter(|package| package["source"].is_null()) {
        for theirs in needed(text(&ours["id"]), &nodes).into_iter().map(|id| packages[id]) {
            assert!(
                version(&theirs["rust_version"]) <= version(&ours["rust_version"]),
                "{} promises Rust {} and needs {} {}, which needs {}",
                ours["name"],
                ours["rust_version"],
                theirs["name"],
                theirs["version"],
                theirs["rust_version"]
            );
        }
    }
}
