//! One archive per release, as those who keep archives of releases have them: the packages that npm serves, decompressed. Text, most of
//! it generated from sources that change little. The archive's order of files and its times are those of its makers.

use super::{Amount, Corpus, once};
use crate::install;
use crate::program;
use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Successive releases of a package.
struct Shape {
    name: &'static str,
    package: &'static str,
    releases: &'static [&'static str],
}

/// The compiler and its library, twice as generated code; with release 5.0 it became modules inside, and half as large. About 1.5 GB.
const FULL: Shape = Shape {
    name: "tars",
    package: "typescript",
    releases: &[
        "4.5.2", "4.5.3", "4.5.4", "4.5.5", "4.6.2", "4.6.3", "4.6.4", "4.7.2", "4.7.3", "4.7.4", "4.8.2", "4.8.3",
        "4.8.4", "4.9.3", "4.9.4", "4.9.5", "5.0.2", "5.0.3", "5.0.4", "5.1.3", "5.1.5", "5.1.6", "5.2.2", "5.3.2",
        "5.3.3",
    ],
};
/// About 30 MB.
const LITTLE: Shape = Shape { name: "tars-little", package: "prettier", releases: &["2.8.6", "2.8.7", "2.8.8"] };

/// The archives, fetched if they are not there yet.
pub(super) fn history(folder: &Path, amount: Amount) -> Result<Corpus> {
    let shape = if amount == Amount::Little { LITTLE } else { FULL };
    let kept = folder.join(shape.name);
    fs::create_dir_all(&kept)?;
    let versions = shape.releases.iter().map(|release| fetched(&kept, shape.package, release));
    let versions = versions.collect::<Result<Vec<PathBuf>>>()?;
    let (first, last) = (shape.releases[0], shape.releases[versions.len() - 1]);
    let description =
        format!("tar archives of the package {} {first} to {last} of npm, {} releases", shape.package, versions.len());
    Ok(Corpus { name: "tars".into(), description, versions })
}

fn fetched(kept: &Path, package: &str, release: &str) -> Result<PathBuf> {
    let folder = kept.join(release);
    once(&folder, |partial| {
        install::ensure(&[install::NPM])?;
        eprintln!("fetching {package} {release}");
        let mut npm = Command::new("npm");
        npm.args(["pack", "--silent", "--pack-destination"]).arg(partial).arg(format!("{package}@{release}"));
        program::quietly(npm.current_dir(partial))?;
        program::quietly(Command::new("gzip").arg("-d").arg(partial.join(format!("{package}-{release}.tgz")))).map(drop)
    })?;
    Ok(folder.join(format!("{package}-{release}.tar")))
}
