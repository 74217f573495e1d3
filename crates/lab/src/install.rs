//! Installing what a task needs and the machine lacks, with the system's own package manager (Debian's). A machine without it gets
//! a message that names the missing programs.

use crate::program;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program, or another file, and the Debian package it comes in.
#[derive(Clone, Copy, Debug)]
pub struct Needed {
    /// Name of the program, or the whole path of a file that is none.
    pub program: &'static str,
    /// Name of the package.
    pub package: &'static str,
}

/// The C compiler that the cryptography and compression libraries are built with.
pub const COMPILER: Needed = Needed { program: "cc", package: "gcc" };
/// Sets access control lists in tests.
pub const SETFACL: Needed = Needed { program: "setfacl", package: "acl" };
/// Sets extended attributes in tests.
pub const SETFATTR: Needed = Needed { program: "setfattr", package: "attr" };
/// Makes the growing database.
pub const SQLITE: Needed = Needed { program: "sqlite3", package: "sqlite3" };
/// Makes the dumps of a key-value store.
pub const REDIS: Needed = Needed { program: "redis-server", package: "redis-server" };
/// Talks to it.
pub const REDIS_CLIENT: Needed = Needed { program: "redis-cli", package: "redis-tools" };
/// Fetches releases of compiled programs.
pub const PIP: Needed = Needed { program: "pip3", package: "python3-pip" };
/// Fetches archives of releases.
pub const NPM: Needed = Needed { program: "npm", package: "npm" };
/// Encodes each version against the one before.
pub const ZSTD: Needed = Needed { program: "zstd", package: "zstd" };
/// A peer.
pub const RESTIC: Needed = Needed { program: "restic", package: "restic" };
/// A peer.
pub const BORG: Needed = Needed { program: "borg", package: "borgbackup" };

/// Makes sure that all of these are there, installing the packages of those that are not.
pub fn ensure(needed: &[Needed]) -> Result<()> {
    let missing: Vec<Needed> = needed.iter().copied().filter(|needed| find(needed.program).is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if find("apt-get").is_none() {
        let names: Vec<&str> = missing.iter().map(|needed| needed.program).collect();
        bail!("these programs are needed and not there: {}; install them and run this again", names.join(", "));
    }
    packages(&missing.iter().map(|needed| needed.package).collect::<Vec<_>>())
}

/// Installs Debian packages.
pub fn packages(names: &[&str]) -> Result<()> {
    apt_get(&["update", "--quiet"], &[])?;
    apt_get(&["install", "--yes", "--quiet", "--no-install-recommends"], names)
}

/// Where `program` is: on the search path, or where Go installs programs (a newer peer than the distribution's may be there).
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// The programs of this name, those installed by Go first.
pub fn candidates(program: &str) -> Vec<PathBuf> {
    let go = std::env::var_os("GOPATH")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join("go")))
        .map(|folder| folder.join("bin").join(program))
        .filter(|file| file.is_file());
    go.into_iter().chain(find(program)).collect()
}

fn apt_get(words: &[&str], packages: &[&str]) -> Result<()> {
    let mut command = if is_root()? { Command::new("apt-get") } else { Command::new("sudo") };
    if !is_root()? {
        command.arg("apt-get");
    }
    program::run(command.args(words).args(packages).env("DEBIAN_FRONTEND", "noninteractive"))
}

fn is_root() -> Result<bool> {
    Ok(program::quietly(Command::new("id").arg("-u"))?.trim() == "0")
}
