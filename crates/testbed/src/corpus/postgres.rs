//! The data folder of a `PostgreSQL` server between runs of pgbench: `initdb`, `pgbench -i`, then again and again so
//! many transactions, a checkpoint, a clean stop and a copy. A folder has the tables in files of up to 1 GiB (8 KiB
//! pages, rewritten in place), indexes and the write-ahead log. Transactions come from seeds, but the server keeps
//! times and identifiers of its own: two makings differ.
//!
//! A server does not run as root. Where root makes this, it runs as the user `postgres` if there is one, else as
//! `nobody`.

use super::record::{Version, version_name};
use super::stop::go_on;
use crate::install::{self, Missing};
use crate::program;
use crate::tree;
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes of a folder without any table of pgbench, and those that one unit of its scale adds: catalogs with the log,
/// and 100 000 accounts.
const EMPTY_BYTES: u64 = 58_000_000;
const SCALE_BYTES: u64 = 15_000_000;
const ACCOUNTS_PER_SCALE: u64 = 100_000;
/// Where Debian keeps the programs of each major version.
const DEBIAN: &str = "/usr/lib/postgresql";

/// Parameters of a database server's folder.
#[derive(Clone, PartialEq, Debug, Serialize, clap::Args)]
pub struct Postgres {
    /// Seed of the transactions
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Versions
    #[arg(long, default_value_t = 12)]
    pub versions: u64,
    /// Bytes of a version, about (as 100MB): 58 MB, and 15 MB for each unit of pgbench's scale
    #[arg(long, default_value = "100MB", value_parser = super::parse_bytes)]
    pub size: u64,
    /// Transactions between versions, percent of the accounts
    #[arg(long, default_value_t = 1.0)]
    pub transactions_percent: f64,
}

impl Postgres {
    pub(super) fn check(&self) -> Result<()> {
        let is_sound = (0.0..=1000.0).contains(&self.transactions_percent);
        ensure!(is_sound, "transactions are from 0 to 1000 percent of the accounts");
        Ok(())
    }

    fn scale(&self) -> u64 {
        (self.size.saturating_sub(EMPTY_BYTES) / SCALE_BYTES).max(1)
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)] // Below 2^53.
    fn transactions(&self) -> u64 {
        ((self.scale() * ACCOUNTS_PER_SCALE) as f64 * self.transactions_percent / 100.0).ceil() as u64
    }

    /// All versions into `folder`.
    pub(super) fn make(&self, folder: &Path, missing: Missing) -> Result<Vec<Version>> {
        let server = Server::create(missing)?;
        let mut versions = Vec::new();
        for number in 0..self.versions {
            go_on()?;
            let name = version_name(number, self.versions);
            eprintln!("making version {} of {} of the PostgreSQL server", number + 1, self.versions);
            server.start()?;
            let done = if number == 0 {
                server.bench(&["--initialize", "--quiet", "--scale", &self.scale().to_string()])
            } else {
                let seed = self.seed.wrapping_mul(1 << 20).wrapping_add(number).to_string();
                server.bench(&["--random-seed", &seed, "--transactions", &self.transactions().to_string()])
            };
            let checked = done.and_then(|()| server.checkpoint());
            server.stop()?;
            checked?;
            let kept = folder.join(&name);
            tree::copy(&server.data(), &kept)?;
            versions.push(Version::found(&kept, name)?);
        }
        Ok(versions)
    }
}

/// Finds the programs of a server, if one can be made here.
pub(super) fn find_programs() -> Option<PathBuf> {
    let major = |folder: &PathBuf| folder.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    let mut folders: Vec<PathBuf> = tree::entries(Path::new(DEBIAN)).unwrap_or_default();
    folders.sort_by_key(major);
    let debian = folders.into_iter().rev().map(|folder| folder.join("bin"));
    let on_path = install::find("initdb").and_then(|program| program.parent().map(Path::to_path_buf));
    on_path.into_iter().chain(debian).find(|folder| folder.join("initdb").is_file() && folder.join("pgbench").is_file())
}

/// A server of our own, in a folder of its own.
struct Server {
    programs: PathBuf,
    /// User and group that the server runs as, where we are root.
    user: Option<(u32, u32)>,
    folder: tempfile::TempDir,
}

impl Server {
    fn create(missing: Missing) -> Result<Self> {
        let programs = match find_programs() {
            Some(programs) => programs,
            None => {
                missing.obtain_packages(&[install::POSTGRES])?;
                find_programs().context("initdb and pgbench are not there, though their package was installed")?
            }
        };
        let user = if install::is_root()? { Some(unprivileged()?) } else { None };
        let folder = tempfile::tempdir()?;
        if let Some((user, group)) = user {
            chown(folder.path(), Some(user), Some(group))?;
        }
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700))?;
        let server = Self { programs, user, folder };
        let mut initdb = server.program("initdb");
        initdb.args(["--no-sync", "--auth=trust", "--username=lab", "--locale=C", "--encoding=UTF8", "--pgdata"]);
        program::quietly(initdb.arg(server.data()))?;
        Ok(server)
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// One of the server's programs, as its user.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command.current_dir(self.folder.path()).env("LC_ALL", "C");
        command
    }

    /// A program that talks to the running server.
    fn client(&self, name: &str) -> Command {
        let mut command = self.program(name);
        command.arg("--host").arg(self.folder.path()).args(["--username", "lab"]);
        command
    }

    fn control(&self, words: &[&str]) -> Result<()> {
        let mut control = self.program("pg_ctl");
        control.args(["--wait", "--silent", "--log"]).arg(self.folder.path().join("log"));
        let done = program::quietly(control.arg("--pgdata").arg(self.data()).args(words)).map(drop);
        done.with_context(|| fs::read_to_string(self.folder.path().join("log")).unwrap_or_default())
    }

    /// Starts it, reachable through a socket in its folder alone, without flushes that a maker has no use for.
    fn start(&self) -> Result<()> {
        let socket = self.folder.path().display();
        let options = format!(
            "-c listen_addresses='' -c unix_socket_directories='{socket}' -c fsync=off -c max_wal_size=64MB \
             -c min_wal_size=32MB"
        );
        self.control(&["--options", &options, "start"])
    }

    fn stop(&self) -> Result<()> {
        self.control(&["--mode", "fast", "stop"])
    }

    fn bench(&self, words: &[&str]) -> Result<()> {
        program::quietly(self.client("pgbench").args(words).arg("postgres")).map(drop)
    }

    fn checkpoint(&self) -> Result<()> {
        program::quietly(self.client("psql").args(["--no-psqlrc", "--command", "checkpoint", "postgres"])).map(drop)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.data().join("postmaster.pid").exists() {
            // It holds nothing that is needed any more.
            let _ = self.control(&["--mode", "immediate", "stop"]);
        }
    }
}

/// User and group of an account without rights.
fn unprivileged() -> Result<(u32, u32)> {
    let number = |option, user| program::quietly(Command::new("id").args([option, user]));
    let both =
        |user| Ok::<_, anyhow::Error>((number("-u", user)?.trim().parse()?, number("-g", user)?.trim().parse()?));
    both("postgres").or_else(|_| both("nobody")).context("PostgreSQL does not run as root, and there is no other user")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "sets up a server, which takes many seconds"]
    fn a_server_is_copied_between_transactions() {
        if find_programs().is_none() {
            eprintln!("SKIPPED: PostgreSQL is not installed");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let postgres = Postgres { seed: 1, versions: 2, size: 1, transactions_percent: 0.02 };
        let versions = postgres.make(folder.path(), Missing::Refuse).unwrap();
        assert!(versions.iter().all(|version| version.bytes > 20_000_000 && version.files > 500), "{versions:?}");
        let control =
            |version: &Version| fs::read(folder.path().join(&version.name).join("global/pg_control")).unwrap();
        assert_ne!(control(&versions[0]), control(&versions[1]));
        assert!(!folder.path().join("000/postmaster.pid").exists());
    }
}
