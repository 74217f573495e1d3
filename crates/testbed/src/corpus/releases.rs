//! Successive releases of a real source tree: OpenSSL, which the crate `openssl-src` carries whole (without its tests).
//! It is chosen because cargo alone can fetch it, at any release, on any machine that can build this project. A release
//! has about 2 400 files and 33 MB.

use super::registry::unpacked_crate;
use super::{Amount, Corpora, Corpus, once};
use crate::tree;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// Versions of the crate, one for each release of OpenSSL 3, in the order of those.
const RELEASES: [&str; 27] = [
    "300.0.3+3.0.0",
    "300.0.4+3.0.1",
    "300.0.5+3.0.2",
    "300.0.7+3.0.3",
    "300.0.8+3.0.4",
    "300.0.9+3.0.5",
    "300.0.11+3.0.7",
    "300.0.13+3.0.8",
    "300.1.1+3.1.0",
    "300.1.2+3.1.1",
    "300.1.4+3.1.2",
    "300.1.5+3.1.3",
    "300.1.6+3.1.4",
    "300.2.1+3.2.0",
    "300.2.3+3.2.1",
    "300.3.0+3.3.0",
    "300.3.1+3.3.1",
    "300.3.2+3.3.2",
    "300.4.1+3.4.0",
    "300.4.2+3.4.1",
    "300.5.0+3.5.0",
    "300.5.1+3.5.1",
    "300.5.2+3.5.2",
    "300.5.4+3.5.4",
    "300.5.5+3.5.5",
    "300.6.0+3.6.2",
    "300.6.1+3.6.3",
];

/// Releases taken when little is asked for: the newest.
const LITTLE: usize = 2;
/// Releases may be withdrawn from the registry; with fewer than this left (or than the few asked for) there is no
/// corpus.
const RELEASES_MIN: usize = 20;

/// Releases whose [`PART`] is a small history.
const LITTLE_HISTORY: usize = 3;
const PART: &str = "crypto";

/// The releases; when little is asked for, a part of the newest.
pub(super) fn history(corpora: &Corpora, amount: Amount) -> Result<Corpus> {
    let mut corpus = fetch(corpora, if amount == Amount::Little { LITTLE_HISTORY } else { RELEASES.len() })?;
    if amount == Amount::Little {
        corpus.description = format!("folder {PART} of the {}", corpus.description);
        corpus.versions.iter_mut().for_each(|version| version.push(PART));
    }
    Ok(corpus)
}

/// The releases, fetched if they are not there yet.
pub(super) fn corpus(corpora: &Corpora, amount: Amount) -> Result<Corpus> {
    fetch(corpora, if amount == Amount::Little { LITTLE } else { RELEASES.len() })
}

/// So many of the newest.
fn fetch(corpora: &Corpora, count: usize) -> Result<Corpus> {
    let releases = &RELEASES[RELEASES.len() - count..];
    let kept = corpora.folder.join("openssl");
    let mut versions = Vec::new();
    let mut missing = Ok(());
    for release in releases {
        match fetched(&kept, release) {
            Ok(version) => versions.push(version),
            Err(error) => missing = Err(error.context(format!("OpenSSL {} cannot be fetched", number(release)))),
        }
    }
    let count = versions.len();
    if count < RELEASES_MIN.min(releases.len()) {
        missing?;
    }
    let (first, last) = (number(releases[0]), number(releases[releases.len() - 1]));
    let description =
        format!("sources of OpenSSL {first} to {last}, {count} releases, as the crate openssl-src holds them");
    Ok(Corpus { name: "openssl".into(), description, versions })
}

/// `3.0.1` of `300.0.4+3.0.1`.
fn number(release: &str) -> &str {
    release.split_once('+').map_or(release, |(_, number)| number)
}

fn fetched(kept: &Path, release: &str) -> Result<PathBuf> {
    let folder = kept.join(number(release));
    once(&folder, |partial| {
        eprintln!("fetching OpenSSL {}", number(release));
        let version = release.split_once('+').map_or(release, |(version, _)| version);
        let unpacked = unpacked_crate("openssl-src", &format!("={version}"))?;
        for entry in tree::entries(&unpacked.folder.join("openssl"))? {
            tree::copy(&entry, partial)?;
        }
        Ok(())
    })?;
    Ok(folder)
}
