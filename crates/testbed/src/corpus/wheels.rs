//! Successive releases of compiled programs: the package `NumPy` as pip installs it for one fixed platform. Four fifths
//! are machine code in shared libraries, rebuilt for each release, the rest is text. A release has about 900 files and
//! 65 MB.

use super::registry::{Package, Registry};
use super::{Amount, Corpora, Corpus, once};
use anyhow::Result;

const RELEASES: [&str; 14] = [
    "1.24.0", "1.24.1", "1.24.2", "1.24.3", "1.24.4", "1.25.0", "1.25.1", "1.25.2", "1.26.0", "1.26.1", "1.26.2",
    "1.26.3", "1.26.4", "2.0.0",
];
/// Releases taken when little is asked for: the last of one series.
const LITTLE: std::ops::Range<usize> = 11..13;

/// The releases, fetched if they are not there yet.
pub(super) fn corpus(corpora: &Corpora, amount: Amount) -> Result<Corpus> {
    let releases = match amount {
        Amount::Little => &RELEASES[LITTLE],
        Amount::Memory | Amount::Full => &RELEASES[..],
    };
    let kept = corpora.folder.join("numpy");
    let package = Package::new(Registry::Pip, "numpy");
    for release in releases {
        once(&kept.join(release), |partial| {
            package.ensure_client(corpora.missing)?;
            eprintln!("fetching NumPy {release}");
            package.fetch(release, partial).map(drop)
        })?;
    }
    let (first, last) = (releases[0], releases[releases.len() - 1]);
    let description = format!("NumPy {first} to {last}, {} releases, as installed on Linux for x86-64", releases.len());
    let versions = releases.iter().map(|release| kept.join(release)).collect();
    Ok(Corpus { name: "numpy".into(), description, versions })
}
