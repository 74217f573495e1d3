//! What `cargo publish` would say of the crates that are to be published, and how large they are, without publishing.

use anyhow::{Context, Result, ensure};
use clap::Args;
use siltstone_testbed::{program, workspace};

/// Option: how much.
#[derive(Args)]
pub(crate) struct Options {
    /// Compile each crate from its package, as whoever depends on it will; it takes as long as a first build.
    #[arg(long)]
    build: bool,
}

/// Largest package of one crate, compressed, in KiB: test data does not belong into what everybody downloads. The
/// engine has 640, all of it code and its tests.
const KIB_MAX: f64 = 1024.0;
/// Warnings of cargo in every rehearsal.
const REHEARSAL: &str = "warning: aborting upload due to dry run";

/// Rehearses; fails on a warning, and on a crate that is too large.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut cargo = workspace::cargo();
    // The commit may be yet to come: what is looked at is what lies there.
    cargo.args(["publish", "--dry-run", "--workspace", "--locked", "--allow-dirty"]);
    cargo.args((!options.build).then_some("--no-verify"));
    cargo.env("CARGO_TARGET_DIR", workspace::target()?.join("publish"));
    let output = program::try_quietly(&mut cargo)?;
    let said = String::from_utf8_lossy(&output.stderr);
    eprintln!("{}", said.trim_end());
    ensure!(output.status.success(), "cargo would not publish: {}", output.status);
    let warned = said.lines().find(|line| line.starts_with("warning") && *line != REHEARSAL);
    ensure!(warned.is_none(), "cargo warned: {}", warned.unwrap_or_default());
    let sizes = said.lines().filter_map(compressed_kib).collect::<Vec<_>>();
    let largest = sizes.iter().copied().reduce(f64::max).context("cargo packaged nothing")?;
    ensure!(largest <= KIB_MAX, "a crate takes {largest} KiB: exclude its test data");
    println!("{} crates can be published; the largest takes {largest} KiB", sizes.len());
    Ok(())
}

/// Reads `Packaged 21 files, 106.5KiB (27.1KiB compressed)`.
fn compressed_kib(line: &str) -> Option<f64> {
    let (_, size) = line.trim().strip_prefix("Packaged ")?.split_once('(')?;
    let size = size.strip_suffix(" compressed)")?;
    let number = |unit| size.strip_suffix(unit).and_then(|number| number.parse::<f64>().ok());
    number("KiB").or_else(|| number("MiB").map(|mib| mib * 1024.0)).or_else(|| number("B").map(|bytes| bytes / 1024.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::fs;

    /// Packages that are to be published, as cargo describes them.
    fn published() -> Vec<Value> {
        let metadata = workspace::metadata().unwrap();
        let packages = metadata["packages"].as_array().unwrap().iter();
        packages.filter(|package| package["publish"].is_null()).cloned().collect()
    }

    #[test]
    fn every_published_crate_says_what_it_is() {
        for package in published() {
            let name = package["name"].as_str().unwrap();
            let has = |field: &str| !package[field].is_null() && package[field] != Value::Array(vec![]);
            for field in ["description", "license", "readme", "documentation", "keywords", "categories", "rust_version"]
            {
                assert!(has(field), "{name} has no {field}");
            }
            let folder = std::path::Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap();
            for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
                let own = fs::read(folder.join(licence)).unwrap_or_else(|error| panic!("{name}: {licence}: {error}"));
                assert_eq!(own, fs::read(workspace::root().join(licence)).unwrap(), "{name}: {licence}");
            }
        }
    }

    #[test]
    fn published_crates_need_no_crate_that_is_not() {
        let packages = published();
        let names: Vec<&str> = packages.iter().map(|package| package["name"].as_str().unwrap()).collect();
        assert_eq!(names.len(), 10, "{names:?}");
        for package in &packages {
            let needed = package["dependencies"].as_array().unwrap().iter();
            for dependency in needed.filter(|dependency| !dependency["path"].is_null() && dependency["kind"] != "dev") {
                let name = dependency["name"].as_str().unwrap();
                assert!(names.contains(&name), "{} needs {name}", package["name"]);
                assert_ne!(dependency["req"], "*", "{} names no version of {name}", package["name"]);
            }
        }
    }

    #[test]
    fn sizes_of_packages_are_read() {
        assert_eq!(compressed_kib("    Packaged 21 files, 106.5KiB (27.1KiB compressed)"), Some(27.1));
        assert_eq!(compressed_kib("    Packaged 368 files, 3.2MiB (1.5MiB compressed)"), Some(1536.0));
        assert_eq!(compressed_kib("   Uploading siltstone v0.1.0"), None);
    }
}
