//! One archive per release, as those who keep archives of releases have them: the packages that npm serves,
//! decompressed. Text, most of it generated from sources that change little. The archive's order of files and its times
//! are those of its makers.

use super::registry::{Package, Registry};
use super::{Amount, Corpora, Corpus, once};
use anyhow::Result;
use std::path::PathBuf;

/// Successive releases of a package.
struct Shape {
    name: &'static str,
    package: &'static str,
    releases: &'static [&'static str],
}

/// The compiler and its library, twice as generated code; with release 5.0 it became modules inside, and half as large.
/// About 1.5 GB.
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
pub(super) fn history(corpora: &Corpora, amount: Amount) -> Result<Corpus> {
    let shape = if amount == Amount::Little { LITTLE } else { FULL };
    let kept = corpora.folder.join(shape.name);
    let package = Package::new(Registry::Npm, shape.package);
    let mut versions: Vec<PathBuf> = Vec::new();
    for release in shape.releases {
        let folder = kept.join(release);
        once(&folder, |partial| {
            package.ensure_client(corpora.missing)?;
            eprintln!("fetching {package} {release}");
            package.fetch(release, partial).map(drop)
        })?;
        versions.push(folder.join(format!("{}-{release}.tar", shape.package)));
    }
    let (first, last) = (shape.releases[0], shape.releases[versions.len() - 1]);
    let description =
        format!("tar archives of the package {} {first} to {last} of npm, {} releases", shape.package, versions.len());
    Ok(Corpus { name: "tars".into(), description, versions })
}
