//! A machine's root file system as software is installed on it: Debian 12 as `debootstrap` makes it, then step by step
//! more packages. Needs root, because a file system's owner does; a version has 200 to 600 MB.

use super::{Amount, Corpora, Corpus, once};
use crate::install::{Missing, Needed};
use crate::program;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const DEBOOTSTRAP: Needed = Needed { program: "/usr/sbin/debootstrap", package: "debootstrap" };
const RELEASE: &str = "bookworm";

/// Packages that each version adds to the one before; the first is the base alone.
const STEPS: [(&str, &[&str]); 5] = [
    ("0-base", &[]),
    ("1-python", &["python3", "python3-pip"]),
    ("2-database", &["postgresql"]),
    ("3-tools", &["git", "vim", "curl", "rsync"]),
    ("4-server", &["nginx", "php-fpm"]),
];
/// Versions made when little is asked for.
const LITTLE: usize = 2;

/// Versions there can be.
pub(super) const VERSIONS_MAX: usize = STEPS.len();

/// The versions, made if they are not there yet.
pub(super) fn corpus(corpora: &Corpora, amount: Amount) -> Result<Corpus> {
    let count = match amount {
        Amount::Little => LITTLE,
        Amount::Memory | Amount::Full => STEPS.len(),
    };
    let kept = corpora.folder.join("system");
    let versions = make(&kept, count, corpora.missing)?;
    let description = format!("root file system of Debian 12, {} versions with ever more packages", versions.len());
    Ok(Corpus { name: "system".into(), description, versions })
}

/// The first versions, those that are not there yet made.
pub(super) fn make(kept: &Path, count: usize, missing: Missing) -> Result<Vec<PathBuf>> {
    let mut versions: Vec<PathBuf> = Vec::new();
    for (name, packages) in &STEPS[..count] {
        let version = kept.join(name);
        once(&version, |partial| {
            eprintln!("making the root file system {name}");
            let made = match versions.last() {
                None => bootstrap(partial, missing),
                Some(before) => install(before, partial, packages),
            };
            made.context("a root file system can be made by root, on a Debian machine that reaches its mirror")
        })?;
        versions.push(version);
    }
    Ok(versions)
}

/// The base system.
pub(super) fn bootstrap(root: &Path, missing: Missing) -> Result<()> {
    missing.obtain(&[DEBOOTSTRAP])?;
    program::quietly(Command::new(DEBOOTSTRAP.program).args(["--variant=minbase", RELEASE]).arg(root))?;
    forget_lists(root)
}

fn install(before: &Path, root: &Path, packages: &[&str]) -> Result<()> {
    program::quietly(Command::new("cp").arg("--archive").arg(before.join(".")).arg(root))?;
    apt_get(root, &["update"])?;
    apt_get(root, &[&["install", "--yes", "--no-install-recommends"], packages].concat())?;
    apt_get(root, &["clean"])?;
    forget_lists(root)
}

/// The system's own package manager, inside of it.
pub(super) fn apt_get(root: &Path, words: &[&str]) -> Result<()> {
    let mut command = Command::new("chroot");
    command.arg(root).env("DEBIAN_FRONTEND", "noninteractive").env("LC_ALL", "C").arg("apt-get").args(words);
    program::quietly(&mut command).map(drop)
}

/// Removes what `apt-get update` fetched, which depends on the day.
fn forget_lists(root: &Path) -> Result<()> {
    let lists = root.join("var/lib/apt/lists");
    fs::remove_dir_all(&lists)?;
    Ok(fs::create_dir(lists)?)
}
