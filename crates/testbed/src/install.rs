//! Programs that a task needs and the machine lacks: named, or, where that is asked for, installed with the system's
//! own package manager (Debian's).

use crate::program;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// The system's package manager, of which one at a time can be at work.
static PACKAGE_MANAGER: Mutex<()> = Mutex::new(());

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
/// The C++ compiler that the fuzzer is built with.
pub const CPLUSPLUS: Needed = Needed { program: "c++", package: "g++" };
/// Compiles programs that the distribution has not.
pub const GO: Needed = Needed { program: "go", package: "golang-go" };
/// Reaches servers.
pub const SSH: Needed = Needed { program: "ssh", package: "openssh-client" };
/// Lets the tests' clients in, without a port of its own.
pub const SSHD: Needed = Needed { program: "/usr/sbin/sshd", package: "openssh-server" };
/// Serves files to clients of SFTP.
pub const SFTP_SERVER: Needed = Needed { program: "/usr/lib/openssh/sftp-server", package: "openssh-sftp-server" };
/// Reaches services of clouds.
pub const RCLONE: Needed = Needed { program: "rclone", package: "rclone" };
/// Sets access control lists in tests.
pub const SETFACL: Needed = Needed { program: "setfacl", package: "acl" };
/// Sets extended attributes in tests.
pub const SETFATTR: Needed = Needed { program: "setfattr", package: "attr" };
/// Compares trees.
pub const RSYNC: Needed = Needed { program: "rsync", package: "rsync" };
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
/// Makes data folders of a server, with all its programs.
pub const POSTGRES: Needed = Needed { program: "initdb and pgbench", package: "postgresql" };
/// Encodes each version against the one before.
pub const ZSTD: Needed = Needed { program: "zstd", package: "zstd" };
/// A peer.
pub const RESTIC: Needed = Needed { program: "restic", package: "restic" };
/// A peer.
pub const BORG: Needed = Needed { program: "borg", package: "borgbackup" };

/// Action for programs that are needed and not there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Missing {
    /// Say which, and which packages they come in.
    #[default]
    Refuse,
    /// Install their packages.
    Install,
}

impl Missing {
    /// Makes sure that all of these are there.
    pub fn obtain(self, needed: &[Needed]) -> Result<()> {
        let missing: Vec<Needed> = needed.iter().copied().filter(|needed| find(needed.program).is_none()).collect();
        if missing.is_empty() { Ok(()) } else { self.obtain_packages(&missing) }
    }

    /// Installs these packages, which are not there, or names them in an error.
    pub fn obtain_packages(self, missing: &[Needed]) -> Result<()> {
        match self {
            Self::Install if find("apt-get").is_some() => {
                packages(&missing.iter().map(|needed| needed.package).collect::<Vec<_>>())
            }
            Self::Install => bail!("{}; install it and run this again", said(missing)),
            Self::Refuse => bail!("{}; install it, or run this again with --install", said(missing)),
        }
    }
}

fn said(missing: &[Needed]) -> String {
    let said =
        |needed: &Needed| format!("{} is needed and not there (Debian's package {})", needed.program, needed.package);
    missing.iter().map(said).collect::<Vec<_>>().join(", ")
}

/// Makes sure that all of these are there, installing the packages of those that are not.
pub fn ensure(needed: &[Needed]) -> Result<()> {
    Missing::Install.obtain(needed)
}

/// Makes sure that a program is there, by whatever it was installed.
pub fn ensure_program(needed: Needed) -> Result<()> {
    if candidates(needed.program).is_empty() { ensure(&[needed]) } else { Ok(()) }
}

/// Installs Debian packages.
pub fn packages(names: &[&str]) -> Result<()> {
    let _alone = PACKAGE_MANAGER.lock().unwrap_or_else(PoisonError::into_inner);
    apt_get(&["update", "--quiet"], &[])?;
    apt_get(&["install", "--yes", "--quiet", "--no-install-recommends"], names)
}

/// Makes sure that a program is there which another one installs, by these words.
pub fn by(installer: Needed, words: &[&str], program: &str) -> Result<()> {
    if candidates(program).is_empty() {
        ensure(&[installer])?;
        program::run(Command::new(installer.program).args(words))?;
    }
    Ok(())
}

/// Where `program` is: at its path if that is absolute, else on the search path.
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

/// Tells whether this process may do everything.
pub fn is_root() -> Result<bool> {
    Ok(program::quietly(Command::new("id").arg("-u"))?.trim() == "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_installed_unasked() {
        let needed = Needed { program: "no-such-program", package: "no-such-package" };
        let error = Missing::Refuse.obtain(&[needed]).unwrap_err().to_string();
        assert!(["no-such-program", "no-such-package", "--install"].iter().all(|word| error.contains(word)), "{error}");
        Missing::Refuse.obtain(&[Needed { program: "sh", package: "dash" }]).unwrap();
    }
}
