//! The peer kopia. Each machine connects to the repository under the name of its host; one of them maintains it. Files
//! are compressed by zstd, as its default is not to. It takes the newest time of all that is in a folder for the time
//! of the folder, so these times are not compared.

use crate::program;
use crate::tool::PASSWORD;
use anyhow::{Context, Result};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The user of all hosts.
const USER: &str = "root";
const KEEPER: &str = "keeper";
/// Snapshots of a source that are kept: as many as there will be. By its default it forgets all but ten.
const ALL: &str = "1000000";
/// Verb that forgets the snapshots named after it.
pub const DELETE: [&str; 3] = ["snapshot", "delete", "--delete"];
/// Verb that then gives the space back at once, which is safe as nobody else is writing.
pub const GIVE_BACK: [&str; 4] = ["maintenance", "run", "--full", "--safety=none"];

/// A repository of kopia below a folder.
#[derive(Debug)]
pub struct Kopia {
    program: PathBuf,
    folder: PathBuf,
}

impl Kopia {
    /// The repository that was, or is to be, made below `folder`.
    pub fn at(program: &Path, folder: &Path) -> Self {
        Self { program: program.to_path_buf(), folder: folder.to_path_buf() }
    }

    /// Makes a new repository below `folder`, by the machine that will maintain it.
    pub fn init(program: &Path, folder: &Path) -> Result<Self> {
        let kopia = Self::at(program, folder);
        fs::create_dir_all(kopia.path())?;
        kopia.connect("create", KEEPER, &kopia.keeper())?;
        let policy = ["policy", "set", "--global", "--compression", "zstd", "--keep-latest", ALL];
        program::quietly(kopia.keeper_command().args(policy))?;
        Ok(kopia)
    }

    /// Its folder.
    pub fn path(&self) -> PathBuf {
        self.folder.join("repository")
    }

    /// Lets the machine of a host know the repository.
    pub fn join(&self, host: &str, machine: &Path) -> Result<()> {
        self.connect("connect", host, machine)
    }

    fn keeper(&self) -> PathBuf {
        self.folder.join("machines").join(KEEPER)
    }

    /// The program on the machine that maintains the repository, waiting for its verb.
    pub fn keeper_command(&self) -> Command {
        self.command(&self.keeper())
    }

    fn connect(&self, verb: &str, host: &str, machine: &Path) -> Result<()> {
        fs::create_dir_all(machine)?;
        let mut command = self.command(machine);
        command.args(["repository", verb, "filesystem", "--override-username", USER, "--override-hostname", host]);
        command.arg("--path").arg(self.path()).arg("--cache-directory").arg(machine.join("cache"));
        program::quietly(&mut command).map(drop)
    }

    /// The program on a machine, waiting for its verb.
    fn command(&self, machine: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.env("KOPIA_PASSWORD", PASSWORD).env("KOPIA_CONFIG_PATH", machine.join("repository.config"));
        command.env("KOPIA_LOG_DIR", machine.join("logs")).env("KOPIA_CHECK_FOR_UPDATES", "false");
        command
    }

    /// The snapshots of all hosts, oldest first.
    pub fn all_snapshots(&self) -> Result<Vec<Value>> {
        let said = program::quietly(self.keeper_command().args(["snapshot", "list", "--all", "--json"]))?;
        let mut snapshots: Vec<Value> = serde_json::from_str(&said).context("the list of snapshots is not JSON")?;
        snapshots.sort_by(|one, other| one["startTime"].as_str().cmp(&other["startTime"].as_str()));
        Ok(snapshots)
    }
}
